use crate::error::check;
use crate::{SysError, SysResult};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::time::Duration;

/// Waits until one of the descriptors can be read or written, a signal comes, or the time is up.
///
/// Bit `i` of the result is set when `fds[i]` is ready (or broken, which the next read tells). 128 descriptors at most.
///
/// # Units
/// `timeout` has nanosecond resolution; `None` waits for ever.
///
/// # Errors
/// [`SysError`], but a signal only ends the wait.
///
/// # Source
/// ppoll(2).
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> SysResult<u128> {
    wait(fds, libc::POLLIN, timeout)
}

/// Like [`wait_readable`], until one can be written.
///
/// # Errors
/// [`SysError`], but a signal only ends the wait.
pub fn wait_writable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> SysResult<u128> {
    wait(fds, libc::POLLOUT, timeout)
}

/// Like [`wait_readable`], for as many descriptors as one likes; the places of those that are ready.
///
/// # Errors
/// [`SysError`], but a signal only ends the wait.
pub fn wait_many(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> SysResult<Vec<usize>> {
    let slot = |fd: &BorrowedFd<'_>| libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLIN, revents: 0 };
    let mut polled: Vec<libc::pollfd> = fds.iter().map(slot).collect();
    let milliseconds = timeout.map_or(-1, |time| i32::try_from(time.as_millis()).unwrap_or(i32::MAX));
    // SAFETY: `polled` holds as many initialised entries as is said.
    let ready = unsafe { libc::poll(polled.as_mut_ptr(), polled.len() as libc::nfds_t, milliseconds) };
    if ready < 0 {
        let error = SysError::last("poll");
        return if error.errno() == Some(libc::EINTR) { Ok(Vec::new()) } else { Err(error) };
    }
    Ok(polled.iter().enumerate().filter(|(_, slot)| slot.revents != 0).map(|(at, _)| at).collect())
}

fn wait(fds: &[BorrowedFd<'_>], events: libc::c_short, timeout: Option<Duration>) -> SysResult<u128> {
    const MOST: usize = u128::BITS as usize;
    const NONE: libc::pollfd = libc::pollfd { fd: -1, events: 0, revents: 0 };
    let mut polled = [NONE; MOST];
    let count = fds.len().min(polled.len());
    for (slot, fd) in polled.iter_mut().zip(fds) {
        *slot = libc::pollfd { fd: fd.as_raw_fd(), events, revents: 0 };
    }
    let spec = timeout.map(|time| libc::timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: i64::from(time.subsec_nanos()),
    });
    let pointer = spec.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
    // SAFETY: `polled` holds at least `count` initialised entries, `pointer` is null or a live timespec, and no signal
    // mask is given.
    let ready = unsafe { libc::ppoll(polled.as_mut_ptr(), count as libc::nfds_t, pointer, std::ptr::null()) };
    if ready < 0 {
        let error = SysError::last("ppoll");
        return if error.errno() == Some(libc::EINTR) { Ok(0) } else { Err(error) };
    }
    Ok(polled[..count].iter().enumerate().filter(|(_, slot)| slot.revents != 0).fold(0, |bits, (i, _)| bits | 1 << i))
}

/// A flag that wakes a thread out of its wait.
#[derive(Debug)]
pub struct Waker(OwnedFd);

impl Waker {
    /// A new, unset one.
    ///
    /// # Errors
    /// [`SysError`] when the process has no descriptors left.
    pub fn new() -> SysResult<Self> {
        // SAFETY: eventfd takes two numbers.
        let fd = check(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) }, || "eventfd".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// Sets it; whoever waits for it wakes.
    pub fn wake(&self) {
        let one = 1u64.to_ne_bytes();
        // SAFETY: writes eight bytes from a live array.
        unsafe { libc::write(self.0.as_raw_fd(), one.as_ptr().cast(), one.len()) };
    }

    /// Unsets it.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        // SAFETY: reads eight bytes into a live array.
        unsafe { libc::read(self.0.as_raw_fd(), count.as_mut_ptr().cast(), count.len()) };
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Lets this thread's waits end up to a nanosecond late instead of the usual 50 µs.
///
/// # Source
/// `PR_SET_TIMERSLACK`, prctl(2).
pub fn sharpen_timers() {
    // SAFETY: prctl with numbers only.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1, 0, 0, 0) };
}
