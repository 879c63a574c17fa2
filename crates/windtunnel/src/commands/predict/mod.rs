//! `windtunnel predict`: what would other settings do? Answered by the model, with its known error.

/// The flags.
mod args;
/// The answer for people.
mod print;
/// A table of paths.
mod table;

pub(crate) use args::PredictArgs;

use crate::cli::forms::write_whole;
use crate::edge::{Exit, Outcome, emit};
use wt_forecast::predict;
use wt_trial::Cancel;

/// The chart's size, pixels.
const WIDTH: u32 = 760;
const HEIGHT: u32 = 420;

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &PredictArgs) -> Outcome {
    args.check()?;
    if let Some(table) = &args.table {
        return table::run(args, table);
    }
    args.units.choose();
    let answer = predict(&args.request(), &Cancel::new())?;
    if args.json {
        emit!("{}", serde_json::json!(answer));
    } else {
        print::terminal(&answer, args);
    }
    if let Some(file) = &args.svg {
        let written = write_whole(file, &answer.chart().to_svg(WIDTH, HEIGHT));
        written.map_err(|problem| problem.hint("name a file in a directory that you may write to"))?;
    }
    Ok(Exit::Done)
}
