//! `windtunnel tune`: vary settings in rounds, decide honestly, report.

/// Flags.
mod args;
/// The key of a server of ours.
mod key;
/// The answer, as people read it.
mod print;
/// What a person sees meanwhile.
mod progress;

use crate::cli::signals::cancel_on_signals;
use crate::edge::Outcome;
pub(crate) use args::TuneArgs;
pub(crate) use key::find as find_key;
pub(crate) use progress::Progress;
use wt_setup::Budget;

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &TuneArgs) -> Outcome {
    args.forms.units.choose();
    if let Some(exit) = args.time.instead()? {
        return Ok(exit);
    }
    args.forms.check()?;
    let request = args.request()?;
    let time = if let Some(Budget::Time(time)) = request.budget { Some(time) } else { None };
    let mut progress = Progress::new(args.json_stream, args.forms.json, args.quiet).within(time);
    let cancel = cancel_on_signals()?;
    let answer = wt_tune::run(&request, &cancel, &mut |event| progress.event(&event))?;
    print::answer(answer, &args.forms, args.forms.json || args.json_stream, &args.retyped())
}
