//! `settings prove`: is it faster now?

use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, Problem, emit, say};
use clap::Args;
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use wt_compare::prove::{ProveEvent, ProveRequest, ProvenBy, usual_rounds};
use wt_experiment::VerdictKind;
use wt_setup::HostAccess;

/// Measures whether a change that is in force makes anything faster: on and off in random order
///
/// An ordinary client runs once with and once without the change in each round. The answer holds however long you watch, and is
/// kept in the journal. Exit code 0 if it is shown to be faster, 1 if not.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo windtunnel settings prove --url https://example.org/file.iso
  sudo windtunnel settings prove 3 --by 'scp server:big.bin /dev/null'")]
pub(super) struct ProveArgs {
    /// The change [default: the latest in force]
    id: Option<String>,
    #[command(flatten)]
    how: ProveHow,
    /// The journal
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    pub(super) json: bool,
}

/// What measures, and how often.
#[derive(Debug, Args)]
pub(super) struct ProveHow {
    /// Fetch this with curl, whose own time counts
    #[arg(long, value_name = "URL", conflicts_with = "by")]
    url: Option<String>,
    /// Run this command in a shell; its time counts
    #[arg(long, value_name = "CMD")]
    by: Option<String>,
    /// Rounds at most, of two runs each, so that 20 take 40 times as long as one; fewer than seven can't show anything
    #[arg(long, value_name = "N", default_value_t = usual_rounds(), value_parser = clap::value_parser!(u16).range(2..=1000))]
    rounds: u16,
}

pub(super) fn run(args: &ProveArgs, host: &mut HostAccess) -> Outcome {
    prove(args.id.as_deref(), &args.how, None, args.journal.clone(), args.json, host)
}

/// Proves a change; where nobody says what is to measure, by what the experiment measured.
pub(super) fn prove(
    id: Option<&str>,
    how: &ProveHow,
    measured: Option<String>,
    journal: Option<PathBuf>,
    json: bool,
    host: &mut HostAccess,
) -> Outcome {
    let url = how.url.clone().or(measured).map(ProvenBy::Url);
    let by = how.by.clone().map(ProvenBy::Command).or(url).ok_or_else(|| {
        Problem::usage("nothing is said that could be timed")
            .hint("name what curl is to fetch, --url URL, or a command, --by 'CMD'")
    })?;
    let request = ProveRequest { id: id.map(str::to_owned), by, rounds: how.rounds, journal };
    let cancel = cancel_on_signals()?;
    let mut events = |event: ProveEvent| drop(writeln!(std::io::stderr().lock(), "{event}"));
    let answer = wt_compare::prove::prove(&request, host, &mut events, &cancel)?;
    if json {
        emit!("{}", json!(answer));
    } else {
        let time = |seconds: Option<f64>| seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds:.3} s"));
        say!("{}", answer.text);
        say!(
            "Median time of {}: {} without change {}, {} with it.",
            answer.by,
            time(answer.before_s),
            answer.change,
            time(answer.after_s)
        );
        say!("In the journal as {}.", answer.id);
    }
    Ok(if answer.verdict == VerdictKind::Faster { Exit::Done } else { Exit::No })
}
