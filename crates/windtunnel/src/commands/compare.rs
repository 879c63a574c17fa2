//! `windtunnel compare`: experiments of the journal side by side, and whether they can be compared at all.

use crate::cli::forms::give;
use crate::cli::values::RateUnit;
use crate::commands::comparison::ends;
use crate::edge::{Outcome, say};
use clap::Args;
use std::path::PathBuf;
use wt_compare::side_by_side::{self, SideBySideRequest};

/// Compares experiments of the journal side by side
///
/// Within an experiment settings are compared by randomised rounds, and that evidence counts. Between experiments nothing was
/// randomised: whatever else changed meanwhile is part of the difference, so that there is an estimate, without an interval or
/// evidence. What was tried in all of them is told with its evidence from each, and from all together. Ends with code 1 if they
/// can't be compared.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel compare 20261121-0815 20261122-0815
  windtunnel compare 20261121-0815 last --json
Experiments are those of windtunnel journal list: their names, or beginnings of them.")]
pub(crate) struct CompareArgs {
    /// The experiments, two or more; the others are compared with the first
    #[arg(required = true, num_args = 2.., value_name = "EXPERIMENT")]
    experiments: Vec<String>,
    /// Put them side by side though they can't be compared
    #[arg(long)]
    anyway: bool,
    /// In which unit rates are written
    #[arg(long, value_enum, default_value_t)]
    units: RateUnit,
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
    let CompareArgs { experiments, anyway, units, journal, json } = args;
    units.choose();
    wt_setup::journal::must_exist(journal.as_deref())?;
    let request = SideBySideRequest { experiments: experiments.clone(), anyway: *anyway, journal: journal.clone() };
    let answer = side_by_side::run(&request)?;
    give(&answer, *json, |answer| say!("{}", answer.text))?;
    Ok(ends(!answer.comparable))
}
