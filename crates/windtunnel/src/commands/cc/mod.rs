//! `windtunnel cc`: congestion controls of the kernel and ours.

/// The comparison of several on one path.
pub(crate) mod compare;
/// What there is.
mod list;
/// Into the kernel and out of it.
mod load;
/// What one does.
mod show;

use crate::edge::{Outcome, Problem};
use clap::{Args, Subcommand};
use wt_cc::Choice;

/// Loads and compares congestion controls, FreeBSD's among them
///
/// newreno, hd, chd, cdg, vegas and htcp by FreeBSD's rules, illinois and westwood: BPF programs that are loaded into the
/// running kernel, without modules and without a reboot. Loading needs root (CAP_BPF and CAP_PERFMON); using one that is
/// loaded needs nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel cc list
  windtunnel cc show chd
  sudo windtunnel cc load chd@freebsd-hz100 -- scp file host:
  sudo windtunnel cc compare --lab freebsd-scp --algorithms reno,cubic,chd")]
pub(crate) struct CcArgs {
    #[command(subcommand)]
    command: CcCommand,
}

#[derive(Debug, Subcommand)]
enum CcCommand {
    /// Lists those of the kernel and ours, and who may use each
    List {
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Shows what one does, its parameters and where it comes from
    Show {
        /// Its name: chd, chd@freebsd-hz100, cubic
        name: String,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    Load(load::LoadArgs),
    Unload(load::UnloadArgs),
    Compare(Box<compare::CompareArgs>),
}

/// Parameters of one's own.
#[derive(Debug, Args, Clone, Default)]
pub(crate) struct Parameters {
    /// Queueing delay up to which nothing happens (hd, chd)
    #[arg(long, value_name = "TIME")]
    queue_min: Option<String>,
    /// Queueing delay at which backing off is likeliest (hd, chd)
    #[arg(long, value_name = "TIME")]
    queue_threshold: Option<String>,
    /// Largest probability of backing off (hd per ACK, chd per round trip)
    #[arg(long, value_name = "SHARE")]
    pmax: Option<String>,
    /// Any parameter: --set alpha=2; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    more: Vec<String>,
}

impl Parameters {
    /// Reads a name with its variant, and sets what was asked for.
    fn choose(&self, text: &str) -> Result<Choice, Problem> {
        let usage = |error: wt_cc::ChoiceError| Problem::usage(error.to_string()).hint("windtunnel cc list shows them");
        let mut choice: Choice = text.parse().map_err(usage)?;
        let named = [("queue-min", &self.queue_min), ("queue-threshold", &self.queue_threshold), ("pmax", &self.pmax)];
        for (name, value) in named {
            if let Some(value) = value {
                choice.set(name, value).map_err(usage)?;
            }
        }
        for pair in &self.more {
            let (name, value) = pair
                .split_once('=')
                .ok_or_else(|| Problem::usage(format!("--set {pair}: write NAME=VALUE, such as alpha=2")))?;
            choice.set(name, value).map_err(usage)?;
        }
        choice.check().map_err(usage)?;
        Ok(choice)
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &CcArgs) -> Outcome {
    match &args.command {
        CcCommand::List { json } => list::run(*json),
        CcCommand::Show { name, json } => show::run(name, *json),
        CcCommand::Load(args) => load::run(args),
        CcCommand::Unload(args) => load::unload(args),
        CcCommand::Compare(args) => compare::run(args),
    }
}
