//! `windtunnel trace`: the hops of a path, all asked at once.

/// Flags.
mod args;
/// Answers to people.
mod print;

pub(crate) use args::TraceArgs;
pub(crate) use print::lines_of;

use crate::cli::forms::say_json;
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome};
use wt_prober::trace::{TraceAnswer, trace};

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &TraceArgs) -> Outcome {
    let answers = trace(&args.request()?, &cancel_on_signals()?, &mut |_| {})?;
    if args.json() {
        say_json(&answers)?;
    } else if args.summary {
        print::summaries(&answers.0);
    } else {
        print::show(&answers.0);
    }
    match answers.0.iter().find_map(TraceAnswer::problem) {
        Some(problem) => Err(problem.clone()),
        None => Ok(Exit::Done),
    }
}
