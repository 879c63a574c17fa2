use crate::error::check;
use crate::{SysError, SysResult};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::Command;

/// Nanoseconds since boot, the time that the machine slept included: never set, never jumps.
#[must_use]
pub fn boottime_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; CLOCK_BOOTTIME exists since Linux 2.6.39.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// Makes the command the leader of a session of its own, so that no terminal and no shell takes it down, and lets it
/// ignore the signals that come when a terminal goes or somebody presses Ctrl-C.
///
/// # Source
/// setsid(2), signal(7).
pub fn detach(command: &mut Command) {
    let leave = || {
        // SAFETY: setsid takes nothing; async-signal-safe. It fails only for a leader, which a fresh child isn't.
        if unsafe { libc::setsid() } < 0 {
            return Err(io::Error::last_os_error());
        }
        for number in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGPIPE, libc::SIGTERM] {
            // SAFETY: SIG_IGN is valid for these signals; signal is async-signal-safe.
            unsafe { libc::signal(number, libc::SIG_IGN) };
        }
        Ok(())
    };
    // SAFETY: the closure only calls setsid and signal, which are async-signal-safe, and allocates nothing.
    unsafe { command.pre_exec(leave) };
}

/// A standard stream of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StandardStream {
    /// What it reads.
    Input,
    /// What it answers.
    Output,
}

/// Puts /dev/null in the place of a standard stream, which closes the pipe that was there.
///
/// # Errors
/// [`SysError`].
pub fn silence(stream: StandardStream) -> SysResult<()> {
    let number = match stream {
        StandardStream::Input => libc::STDIN_FILENO,
        StandardStream::Output => libc::STDOUT_FILENO,
    };
    let null = File::options().read(true).write(true).open("/dev/null").map_err(SysError::io("open /dev/null"))?;
    // SAFETY: dup2 replaces the stream at once; nobody owns the number of a standard stream, and std looks it up each time.
    let result = unsafe { libc::dup2(null.as_raw_fd(), number) };
    check(result, || "close a standard stream".to_owned()).map(drop)
}

/// A descriptor that can be read once the machine has been up for long enough.
///
/// # Source
/// timerfd_create(2) with `CLOCK_BOOTTIME`.
#[derive(Debug)]
pub struct Alarm(OwnedFd);

impl Alarm {
    /// Goes off at `boottime_ns`, or at once if that has passed.
    ///
    /// # Errors
    /// [`SysError`] when the process has no descriptors left.
    pub fn at(boottime_ns: u64) -> SysResult<Self> {
        let doing = || "set an alarm".to_owned();
        // SAFETY: timerfd_create takes numbers.
        let fd = check(unsafe { libc::timerfd_create(libc::CLOCK_BOOTTIME, libc::TFD_CLOEXEC) }, doing)?;
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let never = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // Zero would switch the alarm off.
        let at = boottime_ns.max(1);
        let first = libc::timespec {
            tv_sec: i64::try_from(at / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(at % 1_000_000_000).unwrap_or(0),
        };
        let times = libc::itimerspec { it_interval: never, it_value: first };
        // SAFETY: `times` is a live itimerspec, the old one isn't wanted.
        let set = unsafe {
            libc::timerfd_settime(fd.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const times, std::ptr::null_mut())
        };
        check(set, doing)?;
        Ok(Self(fd))
    }
}

impl AsFd for Alarm {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// A descriptor that can be read once a file was put or replaced in a directory.
///
/// # Source
/// inotify(7).
#[derive(Debug)]
pub struct Watch(OwnedFd);

impl Watch {
    /// Watches a directory from now on.
    ///
    /// # Errors
    /// [`SysError`] when the directory isn't there, or the user watches too much.
    pub fn on(directory: &Path) -> SysResult<Self> {
        let doing = || format!("watch {}", directory.display());
        let path = std::ffi::CString::new(directory.as_os_str().as_bytes())
            .map_err(|_| SysError { doing: doing(), source: io::Error::from(io::ErrorKind::InvalidInput) })?;
        // SAFETY: inotify_init1 takes a number.
        let fd = check(unsafe { libc::inotify_init1(libc::IN_CLOEXEC | libc::IN_NONBLOCK) }, doing)?;
        // SAFETY: the descriptor was just opened and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let events = libc::IN_MOVED_TO | libc::IN_CLOSE_WRITE | libc::IN_DELETE | libc::IN_DELETE_SELF;
        // SAFETY: `path` is a live C string.
        check(unsafe { libc::inotify_add_watch(fd.as_raw_fd(), path.as_ptr(), events) }, doing)?;
        Ok(Self(fd))
    }

    /// Forgets what has happened so far.
    pub fn clear(&self) {
        let mut buffer = [0_u8; 4096];
        // SAFETY: read writes at most as many bytes as the buffer has; the descriptor doesn't block.
        while unsafe { libc::read(self.0.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len()) } > 0 {}
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::{Alarm, Watch, boottime_ns};
    use crate::poll::wait_readable;
    use std::os::fd::AsFd as _;
    use std::time::Duration;

    #[test]
    fn an_alarm_in_the_past_goes_off_at_once_and_one_to_come_does_not() {
        let (past, future) = (Alarm::at(0).unwrap(), Alarm::at(boottime_ns() + 3_600_000_000_000).unwrap());
        assert_eq!(wait_readable(&[past.as_fd()], Some(Duration::from_secs(5))).unwrap(), 1);
        assert_eq!(wait_readable(&[future.as_fd()], Some(Duration::ZERO)).unwrap(), 0);
    }

    #[test]
    fn a_replaced_file_is_noticed_until_it_is_cleared() {
        let directory = tempfile::tempdir().unwrap();
        let watch = Watch::on(directory.path()).unwrap();
        assert_eq!(wait_readable(&[watch.as_fd()], Some(Duration::ZERO)).unwrap(), 0);
        std::fs::write(directory.path().join("new"), "text").unwrap();
        std::fs::rename(directory.path().join("new"), directory.path().join("state")).unwrap();
        assert_eq!(wait_readable(&[watch.as_fd()], Some(Duration::from_secs(5))).unwrap(), 1);
        watch.clear();
        assert_eq!(wait_readable(&[watch.as_fd()], Some(Duration::ZERO)).unwrap(), 0);
    }
}
