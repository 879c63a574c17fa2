use crate::edge::Problem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use wt_sys::interrupt::exit_when_repeated;
use wt_trial::Cancel;

/// A signal that comes so soon after the first is the same interruption once more.
const SAME: Duration = Duration::from_millis(500);

/// The first Ctrl-C (or SIGTERM) asks everybody to stop; one after half a second ends the program at once.
pub(crate) fn cancel_on_signals() -> Result<Cancel, Problem> {
    cancel_on(&[signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP])
}

/// The same for these signals.
pub(crate) fn cancel_on(signals: &[i32]) -> Result<Cancel, Problem> {
    let cancel = Cancel::new();
    let caught = signals.iter().try_for_each(|signal| signal_hook::flag::register(*signal, cancel.flag()).map(drop));
    caught
        .and_then(|()| exit_when_repeated(signals, SAME, 130))
        .map_err(|error| Problem::internal(format!("can't catch signals: {error}")))?;
    Ok(cancel)
}

/// Those that end a program ask everybody to stop, however often they come: for whoever has something to put back, and does so at once.
pub(crate) fn cancel_alone_on_signals() -> Result<Cancel, Problem> {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
    let cancel = Cancel::new();
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, cancel.flag())
            .map_err(|error| Problem::internal(format!("can't catch signals: {error}")))?;
    }
    Ok(cancel)
}

/// As [`cancel_on`], and which of them came.
pub(crate) fn cancel_on_saying(signals: &[i32]) -> Result<(Cancel, impl Fn() -> Option<u8>), Problem> {
    let came = Arc::new(AtomicUsize::new(0));
    for &signal in signals {
        let number = usize::try_from(signal).unwrap_or(0);
        signal_hook::flag::register_usize(signal, Arc::clone(&came), number)
            .map_err(|error| Problem::internal(format!("can't catch signals: {error}")))?;
    }
    let cancel = cancel_on(signals)?;
    Ok((cancel, move || u8::try_from(came.load(Ordering::SeqCst)).ok().filter(|signal| *signal != 0)))
}
