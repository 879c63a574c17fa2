//! What comparisons over one emulated path have in common: trials in rounds, in the journal.

use super::tune::notebook::Notebook;
use crate::edge::Failure;
use std::io::Write as _;
use std::time::Duration;
use wt_sys::clock::unix_us;
use wt_trial::{Cancel, Phase, Status, TrialOutcome, TrialSpec, Tunnel, Workload};
use wt_units::Settings;

/// A trial that says nothing is run again at most so often.
pub(crate) const REPEATS: u32 = 20;

/// A tunnel, and what is kept of the trials in it.
pub(crate) struct Trials<T> {
    pub(crate) tunnel: T,
    pub(crate) notebook: Notebook,
    pub(crate) cancel: Cancel,
    /// Of everything random on the path.
    pub(crate) seed: u64,
    /// The RTT of the idle path.
    pub(crate) rtt: Duration,
    /// Whether to say nothing of how it goes.
    pub(crate) quiet: bool,
    /// Trials that were run.
    pub(crate) done: u32,
}

impl<T: Tunnel> Trials<T> {
    /// Says how it goes.
    pub(crate) fn say(&self, text: &str) {
        if !self.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
    }

    /// Between two trials: the ends need a few round trips to let go.
    pub(crate) fn cool_down(&self) -> Duration {
        (self.rtt * 4).clamp(Duration::from_millis(50), Duration::from_secs(5))
    }

    /// Runs one of a round, with the number of what is compared. It is in the journal when this returns.
    ///
    /// # Errors
    /// A [`Failure`] when the tunnel broke or the journal can't be written.
    pub(crate) fn run(
        &mut self,
        (round, arm): (u32, usize),
        settings: Settings,
        workload: Workload,
        deadline: Duration,
    ) -> Result<TrialOutcome, Failure> {
        self.done += 1;
        let spec = TrialSpec {
            experiment: self.notebook.id().to_owned(),
            phase: Phase::Round,
            round,
            order: self.done,
            arm,
            settings,
            workload,
            deadline,
            // All of a round meet the same random losses.
            seed: self.seed.wrapping_add(u64::from(round)),
        };
        let id = self.notebook.begin(&spec, unix_us())?;
        let outcome = match self.tunnel.run(&spec, &self.cancel) {
            Ok(outcome) => outcome,
            Err(error) => {
                self.notebook.finish(id, &TrialOutcome::empty(Status::Aborted, Duration::ZERO, error.to_string()))?;
                return Err(Failure::ours(error.to_string()).hint("run `windtunnel doctor`"));
            }
        };
        self.notebook.finish(id, &outcome)?;
        // Waits for nothing but time; a signal ends it early.
        let _ = wt_sys::poll::wait_readable(&[], Some(self.cool_down()));
        Ok(outcome)
    }
}
