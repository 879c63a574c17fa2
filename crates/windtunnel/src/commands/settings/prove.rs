//! `settings prove`: is it faster now?

use crate::cli::forms::{REPORT, write_measured};
use crate::cli::signals::cancel_alone_on_signals;
use crate::edge::{Exit, Outcome, Problem, emit, say};
use clap::Args;
use serde_json::json;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use wt_compare::prove::{ProveAnswer, ProveEvent, ProveRequest, ProvenBy, usual_rounds};
use wt_setup::HostAccess;
use wt_setup::settings::ApplyRequest;

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
    /// Rounds at most, of two runs each, so that 20 take 40 times as long as one; fewer than seven can't show anything [default: 20]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(2..=1000))]
    rounds: Option<u16>,
}

impl ProveHow {
    /// Refuses what says how to measure where nothing is measured.
    pub(super) fn is_unused(&self) -> Result<(), Problem> {
        let words = [("--url", self.url.is_some()), ("--by", self.by.is_some()), ("--rounds", self.rounds.is_some())];
        match words.iter().find(|(_, given)| *given) {
            Some((word, _)) => {
                Err(Problem::usage(format!("{word} says how to prove the change, and --prove isn't there"))
                    .hint("add --prove, or leave it out"))
            }
            None => Ok(()),
        }
    }

    /// What is to be proved; where nobody says what is to measure, by what the experiment measured.
    fn request(
        &self,
        id: Option<&str>,
        measured: Option<String>,
        journal: Option<PathBuf>,
    ) -> Result<ProveRequest, Problem> {
        let url = self.url.clone().or(measured).map(ProvenBy::Url);
        let by = self.by.clone().map(ProvenBy::Command).or(url).ok_or_else(|| {
            Problem::usage("nothing is said that could be timed")
                .hint("name what curl is to fetch, --url URL, or a command, --by 'CMD'")
        })?;
        Ok(ProveRequest { id: id.map(str::to_owned), by, rounds: self.rounds.unwrap_or_else(usual_rounds), journal })
    }
}

pub(super) fn run(args: &ProveArgs, host: &mut HostAccess) -> Outcome {
    let answer = prove(&args.how.request(args.id.as_deref(), None, args.journal.clone())?, host)?;
    told(&answer, args.json)
}

/// Makes a change and proves it. All that can be refused is refused before anything is changed.
pub(super) fn apply_and_prove(
    request: &ApplyRequest,
    how: &ProveHow,
    json: bool,
    said: &mut bool,
    host: &mut HostAccess,
) -> Outcome {
    let change = &request.change;
    let proof = how.request(None, change.measured()?, change.journal.clone())?;
    let changed = host.apply(request)?;
    if !json || changed.problem.is_some() {
        super::changed(changed, json, said)?;
        return told(&prove(&proof, host)?, json);
    }
    let proved = prove(&proof, host);
    // One object of both; without a proof it says what was changed all the same.
    let mut object = json!(changed);
    if let Ok(answer) = &proved {
        object["proof"] = json!(answer);
    }
    emit!("{object}");
    *said = true;
    proved.map(|answer| exit_of(&answer))
}

/// Proves a change.
fn prove(request: &ProveRequest, host: &mut HostAccess) -> Result<ProveAnswer, Problem> {
    let cancel = cancel_alone_on_signals()?;
    let mut events = |event: ProveEvent| drop(writeln!(std::io::stderr().lock(), "{event}"));
    wt_compare::prove::prove(request, host, &mut events, &cancel)
}

/// Tells what came out.
fn told(answer: &ProveAnswer, json: bool) -> Outcome {
    if json {
        emit!("{}", json!(answer));
    } else {
        answer.lines().iter().for_each(|line| say!("{line}"));
        say!("In the journal as {}.", answer.id);
    }
    Ok(exit_of(answer))
}

/// The same of a proof of the journal; `html` is a file for its page.
///
/// # Errors
/// A [`Problem`] that names the file.
pub(crate) fn give_proof(answer: &ProveAnswer, html: Option<&Path>, json: bool) -> Outcome {
    if json {
        emit!("{}", json!(answer));
    } else {
        say!("{}", answer.heading());
        answer.lines().iter().for_each(|line| say!("{line}"));
    }
    if let Some(path) = html {
        write_measured(path, &answer.html(), REPORT)?;
        if !json {
            say!("Written: {}", path.display());
        }
    }
    Ok(exit_of(answer))
}

fn exit_of(answer: &ProveAnswer) -> Exit {
    if answer.is_no() { Exit::No } else { Exit::Done }
}
