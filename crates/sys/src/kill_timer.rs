use crate::error::check;
use crate::{SysError, SysResult};
use std::io;

/// Has the kernel kill this process at a time, unless it is dropped before: also a process that is stopped, or that gets no processor.
/// What the process has open is closed then, so that a connection with [`reset_on_close`](crate::tcp::reset_on_close) sends nothing more.
///
/// # Source
/// timer_create(2) with `CLOCK_BOOTTIME` and SIGKILL, which no process can stop, block or ignore (signal(7)).
#[derive(Debug)]
pub struct KillTimer(libc::timer_t);

// SAFETY: a timer belongs to the process, not to a thread; its name is a number.
unsafe impl Send for KillTimer {}
// SAFETY: timer_settime(2) on one timer from several threads is ordered by the kernel.
unsafe impl Sync for KillTimer {}

impl KillTimer {
    /// Kills at `boottime_ns` of the clock that goes on while the machine sleeps.
    ///
    /// # Errors
    /// [`SysError`] when the user has too many timers.
    pub fn at(boottime_ns: u64) -> SysResult<Self> {
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: all zeros is a valid sigevent; what matters is written next.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_SIGNAL, libc::SIGKILL);
        // SAFETY: both are live; the kernel writes the timer's name.
        let made = unsafe { libc::timer_create(libc::CLOCK_BOOTTIME, &raw mut event, &raw mut timer) };
        check(made, || "make a timer".to_owned())?;
        let timer = Self(timer);
        timer.set(boottime_ns)?;
        Ok(timer)
    }

    /// The same at another time.
    ///
    /// # Errors
    /// [`SysError`]
    pub fn set(&self, boottime_ns: u64) -> SysResult<()> {
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would switch the timer off.
        let at = boottime_ns.max(1);
        let (Ok(tv_sec), Ok(tv_nsec)) = (i64::try_from(at / 1_000_000_000), i64::try_from(at % 1_000_000_000)) else {
            return Err(SysError { doing: "set a timer".to_owned(), source: io::ErrorKind::InvalidInput.into() });
        };
        let times = libc::itimerspec { it_interval: never, it_value: libc::timespec { tv_sec, tv_nsec } };
        // SAFETY: the timer is ours until it is dropped, `times` is live, and the old time isn't wanted.
        let set = unsafe { libc::timer_settime(self.0, libc::TIMER_ABSTIME, &raw const times, std::ptr::null_mut()) };
        check(set, || "set a timer".to_owned()).map(drop)
    }
}

impl Drop for KillTimer {
    fn drop(&mut self) {
        // SAFETY: the timer is ours, and nobody uses it any more.
        unsafe { libc::timer_delete(self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard::boottime_ns;
    use std::os::unix::process::ExitStatusExt as _;
    use std::process::Command;
    use std::time::Duration;

    /// What a process of its own does that gets 200 ms.
    const PART: &str = "WINDTUNNEL_TEST_KILL_TIMER";

    fn signal_of(part: &str) -> Option<i32> {
        let mut child = Command::new(std::env::current_exe().unwrap());
        child.args(["--exact", "kill_timer::tests::part", "--ignored"]).env(PART, part);
        child.output().unwrap().status.signal()
    }

    #[test]
    fn a_process_is_killed_at_its_time_also_one_that_is_stopped_and_none_that_was_done_before() {
        assert_eq!(signal_of("waits"), Some(libc::SIGKILL));
        assert_eq!(signal_of("is stopped"), Some(libc::SIGKILL));
        assert_eq!(signal_of("is done"), None);
        assert_eq!(signal_of("gets more time"), None);
    }

    #[test]
    #[ignore = "a part of the test above"]
    fn part() {
        let Ok(part) = std::env::var(PART) else { return };
        let soon = boottime_ns() + 200_000_000;
        let mut timer = Some(KillTimer::at(soon).unwrap());
        let mut lives = false;
        match (part.as_str(), &timer) {
            // SAFETY: raise takes a number.
            ("is stopped", _) => drop(unsafe { libc::raise(libc::SIGSTOP) }),
            ("is done", _) => (timer, lives) = (None, true),
            ("gets more time", Some(timer)) => lives = timer.set(soon + 60_000_000_000).is_ok(),
            _ => {}
        }
        // One that is to be killed waits for it.
        while !lives || boottime_ns() < soon + 50_000_000 {
            crate::poll::wait_readable(&[], Some(Duration::from_millis(20))).unwrap();
        }
        drop(timer);
    }
}
