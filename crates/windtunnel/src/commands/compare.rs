//! `windtunnel compare`: experiments of the journal side by side, and whether they can be compared at all.

use crate::cli::forms::give;
use crate::commands::comparison::ends;
use crate::edge::{Outcome, say};
use clap::Args;
use std::path::PathBuf;
use wt_compare::side_by_side::{self, SideBySideAnswer, SideBySideRequest};

/// Compares experiments of the journal side by side
///
/// Within an experiment settings are compared by randomised rounds, and that evidence counts. Between experiments nothing was
/// randomised: whatever else changed meanwhile is part of the difference, so that there is an estimate with an interval, and no
/// evidence. What was tried in all of them is told with its evidence from each, and from all together. Ends with code 1 if they
/// can't be compared.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel compare 20261121-0815 20261122-0815
  windtunnel compare before after last --json
Experiments are those of windtunnel journal list: their names, or beginnings of them.")]
pub(crate) struct CompareArgs {
    /// The experiments, two or more; the others are compared with the first
    #[arg(required = true, num_args = 2.., value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Put them side by side though they can't be compared
    #[arg(long)]
    anyway: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// The journal, a file or postgresql://... [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &CompareArgs) -> Outcome {
    let CompareArgs { experiments, anyway, journal, json } = args;
    let request = SideBySideRequest { experiments: experiments.clone(), anyway: *anyway, journal: journal.clone() };
    let answer = side_by_side::run(&request)?;
    give(&answer, *json, |answer| say!("{}", table(answer)))?;
    Ok(ends(!answer.comparable))
}

/// The answer for a terminal.
fn table(answer: &SideBySideAnswer) -> String {
    let mut lines =
        vec![format!("{:<36} {:<7} {:<4} {:>7} {:>14}  target", "experiment", "tunnel", "way", "rounds", "goodput")];
    for one in &answer.experiments {
        let rate = one.goodput_bps.map_or_else(|| "-".to_owned(), |bps| format!("{:.2} Mbit/s", bps / 1e6));
        let way = one.direction.as_deref().unwrap_or("?");
        lines.push(format!("{:<36} {:<7} {way:<4} {:>7} {rate:>14}  {}", one.id, one.tunnel, one.rounds, one.target));
    }
    lines.push(String::new());
    lines.push(answer.text.clone());
    lines.join("\n")
}
