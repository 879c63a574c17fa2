use crate::{Direction, PathFacts, TrialOutcome, TrialSpec};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use wt_units::{Knob, Level, Settings, Url};

/// Where a trial runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TunnelKind {
    /// A model in virtual time.
    Sim,
    /// Real kernels over an emulated path.
    Lab,
    /// The real path.
    Live,
}

impl TunnelKind {
    /// The word in flags, files and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Lab => "lab",
            Self::Live => "live",
        }
    }
}

/// Says to everybody who holds it that the user wants to stop.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everybody to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody asked to stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }

    /// The flag itself, for a signal handler.
    #[must_use]
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// The likely cause of an error, and what to try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advice {
    /// The likely cause.
    pub cause: &'static str,
    /// What to try.
    pub remedy: &'static str,
}

/// Why a tunnel can't run a trial at all. A trial that ran and failed is an outcome, not an error.
#[derive(Debug, thiserror::Error)]
pub enum TunnelError {
    /// This tunnel can't set the knob to this level.
    #[error("the {tunnel} tunnel can't set {knob}={level}: {why}")]
    CannotSet {
        /// The tunnel.
        tunnel: &'static str,
        /// The knob.
        knob: Knob,
        /// The level.
        level: Level,
        /// Why, and what could be done.
        why: String,
    },
    /// This tunnel doesn't run such workloads.
    #[error("the {tunnel} tunnel doesn't run this workload: {why}")]
    CannotRun {
        /// The tunnel.
        tunnel: &'static str,
        /// Why.
        why: String,
    },
    /// The remote host can't or won't, and trying again helps nobody.
    #[error("{why}")]
    RemoteHost {
        /// What it said or did.
        why: String,
        /// Why that is so and what to try, where that is known.
        advice: Option<Advice>,
    },
    /// The network between here and the remote host is gone, and didn't come back while it was waited for.
    #[error("{why}")]
    Lost {
        /// What is missing.
        why: String,
        /// Whether it is missing at this host, rather than somewhere on the way.
        here: bool,
    },
    /// What the user allowed is used up: bytes, time.
    #[error("{why}")]
    Spent {
        /// What is used up.
        why: String,
    },
    /// This host can't, for want of a privilege or because somebody else changes the same.
    #[error("{why}")]
    Environment {
        /// What it lacks.
        why: String,
        /// What to try, where that is known.
        remedy: Option<String>,
    },
    /// The machinery broke: a namespace is gone, the emulator stopped.
    #[error("the {tunnel} tunnel broke: {why}")]
    Broken {
        /// The tunnel.
        tunnel: &'static str,
        /// What happened, and what to try.
        why: String,
    },
}

/// A place where trials run.
pub trait Tunnel {
    /// Which of the three it is.
    fn kind(&self) -> TunnelKind;

    /// What it runs on, for people: `lab adsl`.
    fn target(&self) -> String;

    /// What holds for a connection for which nothing is asked.
    fn current(&self) -> Settings;

    /// What is varied when nobody says what.
    fn usual_knobs(&self, _: Direction) -> Vec<Knob> {
        vec![Knob::Rwin, Knob::Mtu, Knob::Cc]
    }

    /// What is known of the path without running anything, for payload in this direction.
    fn path(&self, direction: Direction) -> PathFacts;

    /// Bytes of a segment's headers, IP's and TCP's with the options that every segment has; usually IPv4 with timestamps.
    fn header_len(&self) -> u64 {
        52
    }

    /// Whether these settings can be set here.
    ///
    /// # Errors
    /// [`TunnelError::CannotSet`] with the reason.
    fn check(&self, settings: &Settings) -> Result<(), TunnelError>;

    /// Whether anything stands in the way of such trials right now.
    ///
    /// # Errors
    /// [`TunnelError::Environment`] with what to do about it.
    fn stands_ready(&mut self, _: &[&Settings]) -> Result<(), TunnelError> {
        Ok(())
    }

    /// Whether the rest of this round had better not be run: the remote host refuses again and again.
    fn gives_up_round(&self) -> bool {
        false
    }

    /// How long the remote host wants to be left alone before the next trial: [`run`](Self::run) waits for so long.
    fn pause(&self) -> std::time::Duration {
        std::time::Duration::ZERO
    }

    /// Why the remote host wants to be left alone, in its words or about it; nothing where it doesn't.
    fn refusal(&self) -> Option<&str> {
        None
    }

    /// The remote host that was asked last, after redirections, and its address; nothing where there is none.
    fn asked_last(&self) -> Option<(Url, SocketAddr)> {
        None
    }

    /// Runs one trial, and puts back whatever it set.
    ///
    /// # Errors
    /// [`TunnelError`] when no trial can be run; a transfer that fails is an `Ok` outcome that says so.
    fn run(&mut self, spec: &TrialSpec, cancel: &Cancel) -> Result<TrialOutcome, TunnelError>;
}
