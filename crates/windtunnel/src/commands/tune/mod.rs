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

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &TuneArgs) -> Outcome {
    args.forms.units.choose();
    if let Some(exit) = args.time.instead()? {
        return Ok(exit);
    }
    let mut progress = Progress::new(args.json_stream, args.forms.json, args.quiet);
    let cancel = cancel_on_signals()?;
    let answer = wt_tune::run(&args.request()?, &cancel, &mut |event| progress.event(&event))?;
    print::answer(&answer, &args.forms, args.forms.json || args.json_stream)
}
