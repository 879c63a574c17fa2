//! `windtunnel mtu`: the largest packet that gets through, and why larger ones don't.

/// Flags.
mod args;
/// Answers to people.
mod print;
/// A scan to people.
mod print_scan;
/// How a scan goes on.
mod progress;

pub(crate) use args::MtuArgs;

use crate::cli::forms::{say_json, write_whole};
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, say};
use progress::Progress;
use wt_prober::mtu::mtu;

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &MtuArgs) -> Outcome {
    let request = args.request()?;
    let mut progress = Progress::new();
    let answers = mtu(&request, &cancel_on_signals()?, &mut |event| progress.event(&event))?;
    drop(progress);
    if args.json() {
        say_json(&answers)?;
    } else {
        print::show(&answers.0);
    }
    for answer in &answers.0 {
        let Some(scan) = &answer.scan else { continue };
        if !args.json() {
            say!("{}", print_scan::text(&answer.search, scan));
        }
        // Last, so that a file that can't be written costs nothing.
        if let Some(file) = &args.svg {
            let svg = print_scan::chart(&answer.search, scan).to_svg(720, 400);
            write_whole(file, &svg)?;
        }
    }
    match answers.0.iter().find_map(|answer| answer.problem()) {
        Some(problem) => Err(problem.clone()),
        None => Ok(Exit::Done),
    }
}
