//! Signals that end the program when they come again.

use crate::clock::monotonic_ns;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Ends the program with this exit code, at once, when one of the signals comes later than `grace` after the first of them.
///
/// One interruption may arrive twice: timeout(1) sends it to its child and to its process group. Such a second one doesn't
/// end whoever is about to answer the first.
///
/// # Errors
/// The system's, where a signal can't be caught.
pub fn exit_when_repeated(signals: &[i32], grace: Duration, code: i32) -> std::io::Result<()> {
    let first = Arc::new(AtomicU64::new(0));
    let grace = u64::try_from(grace.as_nanos()).unwrap_or(u64::MAX);
    for &signal in signals {
        let first = Arc::clone(&first);
        let act = move || {
            let now = monotonic_ns();
            if let Err(began) = first.compare_exchange(0, now, Ordering::SeqCst, Ordering::SeqCst)
                && now.saturating_sub(began) > grace
            {
                signal_hook::low_level::exit(code);
            }
        };
        // SAFETY: a signal's handler may read a clock, swap an atomic and call _exit(2), see signal-safety(7); nothing else is done.
        unsafe { signal_hook::low_level::register(signal, act)? };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// The grace of a process of its own, which is interrupted twice at once, milliseconds.
    const GRACE_MS: &str = "WINDTUNNEL_TEST_INTERRUPT";

    #[test]
    fn a_second_interruption_ends_the_program_unless_it_comes_along_with_the_first() {
        for (grace, code) in [("0", Some(130)), ("60000", Some(0))] {
            let mut child = Command::new(std::env::current_exe().unwrap());
            child.args(["--exact", "interrupt::tests::part", "--ignored"]).env(GRACE_MS, grace);
            assert_eq!(child.output().unwrap().status.code(), code, "{grace} ms");
        }
    }

    #[test]
    #[ignore = "a part of the test above"]
    fn part() {
        let Ok(grace) = std::env::var(GRACE_MS) else { return };
        exit_when_repeated(&[libc::SIGINT, libc::SIGTERM], Duration::from_millis(grace.parse().unwrap()), 130).unwrap();
        for signal in [libc::SIGINT, libc::SIGTERM] {
            // SAFETY: raise takes a number.
            unsafe { libc::raise(signal) };
        }
    }
}
