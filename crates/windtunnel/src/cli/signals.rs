use crate::edge::Problem;
use wt_trial::Cancel;

/// The first Ctrl-C (or SIGTERM) asks everybody to stop; the second one ends the program at once.
pub(crate) fn cancel_on_signals() -> Result<Cancel, Problem> {
    cancel_on(&[signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP])
}

/// The same for these signals.
pub(crate) fn cancel_on(signals: &[i32]) -> Result<Cancel, Problem> {
    let cancel = Cancel::new();
    for &signal in signals {
        // The order matters: the shutdown looks at the flag before this very signal sets it.
        signal_hook::flag::register_conditional_shutdown(signal, 130, cancel.flag())
            .and_then(|_| signal_hook::flag::register(signal, cancel.flag()))
            .map_err(|error| Problem::internal(format!("can't catch signals: {error}")))?;
    }
    Ok(cancel)
}
