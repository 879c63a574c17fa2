use std::time::Duration;
use wt_probe::Time;

/// The monotonic clock, which the kernel's timestamps of packets follow, too.
pub(crate) fn now() -> Time {
    Duration::from_nanos(wt_sys::clock::monotonic_ns())
}
