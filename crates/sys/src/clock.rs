use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Nanoseconds of `CLOCK_MONOTONIC`: never set, never jumps.
#[must_use]
pub fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; CLOCK_MONOTONIC exists on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// How long ago that moment of [`monotonic_ns`] was.
#[must_use]
pub fn since(begun_ns: u64) -> Duration {
    Duration::from_nanos(monotonic_ns().saturating_sub(begun_ns))
}

/// Nanoseconds of `CLOCK_BOOTTIME`: never set, and goes on while the machine sleeps.
#[must_use]
pub fn boottime_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; CLOCK_BOOTTIME exists on every Linux since 2.6.39.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// How long a jiffy of this kernel is, ns: what its coarse clocks and its counters of TCP's busy time step by.
///
/// # Source
/// The resolution of the coarse clocks is `KTIME_LOW_RES`, a tick (include/linux/jiffies.h, kernel/time/posix-timers.c).
#[must_use]
pub fn jiffy_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to; CLOCK_MONOTONIC_COARSE exists on every Linux since 2.6.32.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC_COARSE, &raw mut time) };
    u64::try_from(time.tv_nsec).unwrap_or(0)
}

/// The monotonic time of something that the kernel has stamped with the wall clock, seconds and nanoseconds since 1970.
///
/// The two clocks are read one after the other, and whoever is sent to sleep in between takes the packet for older than it
/// is; so they are read again where that took long.
#[must_use]
pub fn monotonic_of(seconds: i64, nanoseconds: i64) -> u64 {
    let now = monotonic_ns();
    if seconds == 0 {
        return now;
    }
    let (mut best, mut ahead) = (u64::MAX, 0);
    for _ in 0..4 {
        let before = monotonic_ns();
        let mut wall = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `wall` is a valid timespec to write to; CLOCK_REALTIME exists on every Linux.
        unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut wall) };
        let took = monotonic_ns() - before;
        if took < best {
            (best, ahead) =
                (took, i128::from(wall.tv_sec) * 1_000_000_000 + i128::from(wall.tv_nsec) - i128::from(before));
        }
        if took < 20_000 {
            break;
        }
    }
    let at = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds) - ahead;
    // A clock that was set meanwhile makes nothing older than a second.
    u64::try_from(at.max(0)).unwrap_or(now).clamp(now.saturating_sub(1_000_000_000), now)
}

/// Microseconds since the Unix epoch, for the journal. May jump.
#[must_use]
pub fn unix_us() -> i64 {
    #[expect(clippy::disallowed_methods, reason = "the one place where the wall clock is read")]
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// The identity of this boot, so that a process id of the last boot isn't mistaken for one of now.
#[must_use]
pub fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map_or_else(|_| String::new(), |id| id.trim().to_owned())
}

/// CPU time that this thread has used, nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec to write to.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jiffy_is_one_to_ten_milliseconds() {
        assert!((900_000..=10_100_000).contains(&jiffy_ns()), "{}", jiffy_ns());
    }

    #[test]
    fn a_stamp_of_the_wall_clock_lies_where_it_was_taken() {
        let before = monotonic_ns();
        let stamp = unix_us();
        let after = monotonic_ns();
        let at = monotonic_of(stamp / 1_000_000, stamp % 1_000_000 * 1000);
        // The stamp has microseconds, and two reads of clocks lie around it.
        assert!(at + 200_000 >= before && at <= after + 200_000, "{before} {at} {after}");
        assert!(monotonic_of(1, 0) + 1_500_000_000 >= after, "a clock that was set");
        assert!(monotonic_of(0, 0) >= after, "no stamp");
    }
}
