//! `windtunnel predict`: what would other settings do? Answered by the model, with its known error.

/// The flags.
mod args;
/// The answer for people.
mod print;
/// A table of paths.
mod table;

pub(crate) use args::PredictArgs;

use crate::edge::{Exit, Outcome, Problem, emit};
use wt_forecast::predict;
use wt_trial::Cancel;

/// The chart's size, pixels.
const WIDTH: u32 = 760;
const HEIGHT: u32 = 420;

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &PredictArgs) -> Outcome {
    args.check()?;
    if let Some(table) = &args.table {
        return table::run(args, table);
    }
    args.units.choose();
    let answer = predict(&args.request(), &Cancel::new())?;
    if let Some(file) = &args.svg {
        std::fs::write(file, answer.chart().to_svg(WIDTH, HEIGHT))
            .map_err(|error| Problem::environment(format!("can't write {}: {error}", file.display())))?;
    }
    if args.json {
        emit!("{}", serde_json::json!(answer));
    } else {
        print::terminal(&answer, args);
    }
    Ok(Exit::Done)
}
