//! `windtunnel path`: one screen about a path.

/// Flags.
mod args;
/// Answers to people.
mod print;

pub(crate) use args::PathArgs;

use crate::cli::forms::say_json;
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, say};
use wt_prober::path::path;

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &PathArgs) -> Outcome {
    let answer = path(&args.request(), &cancel_on_signals()?, &mut |_| {})?;
    if args.json() {
        say_json(&answer)?;
    } else {
        say!("{}", print::text(&answer));
    }
    Ok(Exit::Done)
}
