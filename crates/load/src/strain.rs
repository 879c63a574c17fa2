//! What keeps the receiver of a trial from doing what was granted to it: a kernel that is short of memory for TCP, a window that
//! never opened, a processor that others had. What is measured then says nothing about the settings.

use std::time::Duration;
use wt_trial::TrialOutcome;

/// The share of a trial from which on waiting, and a closed window, shape it.
const SHARE: f64 = 0.5;

/// What the receiver of a trial says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ReceiverState {
    /// How long it was ready to run and had no processor, where it looked.
    pub(crate) waited: Option<Duration>,
    /// The window that it advertised at the end, bytes; 0 where its kernel (before Linux 6.2) doesn't say.
    pub(crate) window: u32,
}

/// The kernel's memory for TCP when a trial begins.
///
/// # Source
/// proc(5); `proto_seq_printf` of net/core/sock.c; `tcp_enter_memory_pressure` of net/ipv4/tcp.c, which counts
/// `TCPMemoryPressures`; ip-sysctl.rst, `tcp_mem`.
#[derive(Debug, Clone, Copy)]
pub struct Strain {
    is_short: bool,
    shortages: u64,
}

impl Strain {
    /// What is so now, in this thread's network namespace.
    #[must_use]
    pub fn begin() -> Self {
        let read = |name: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{name}")).unwrap_or_default();
        Self {
            is_short: is_short(&read("protocols")),
            shortages: counter(&read("netstat"), "TcpExt:", "TCPMemoryPressures").unwrap_or(0),
        }
    }

    /// Why a trial that began with this says nothing; `None` if nothing was amiss. A window that the path makes smaller is part
    /// of what is measured: one that the receiver itself keeps small isn't.
    #[must_use]
    pub fn complaint(&self, outcome: &TrialOutcome, receiver: ReceiverState) -> Option<String> {
        let now = Self::begin();
        if self.is_short || now.is_short || now.shortages > self.shortages {
            return Some(
                "the kernel was short of memory for TCP (net.ipv4.tcp_mem), and so made windows and buffers smaller"
                    .to_owned(),
            );
        }
        let narrow = |(granted, seen)| {
            format!(
                "the receive window was granted {granted} bytes and never opened beyond {seen}: something else held it down"
            )
        };
        let own = |(granted, _): &(u64, u64)| u64::from(receiver.window).saturating_mul(2) < *granted;
        outcome.narrow_window().filter(own).map(narrow).or_else(|| starved(outcome, receiver.waited))
    }
}

/// Whether the kernel is short of memory for TCP: the column `press` of /proc/net/protocols.
fn is_short(protocols: &str) -> bool {
    let mut lines = protocols.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let Some(column) = lines.next().and_then(|names| names.iter().position(|name| *name == "press")) else {
        return false;
    };
    lines.any(|line| matches!(line.first(), Some(&("TCP" | "TCPv6"))) && line.get(column) == Some(&"yes"))
}

/// A counter of a file that has a line of names before each line of numbers.
fn counter(text: &str, section: &str, name: &str) -> Option<u64> {
    let mut lines = text.lines().filter(|line| line.starts_with(section)).map(str::split_whitespace);
    let at = lines.next()?.position(|known| known == name)?;
    lines.next()?.nth(at)?.parse().ok()
}

/// A receiver that waited for a processor while the sender waited for its window.
fn starved(outcome: &TrialOutcome, waited: Option<Duration>) -> Option<String> {
    let share = |us: u64| us as f64 / outcome.elapsed_us.max(1) as f64;
    let waited_us = u64::try_from(waited?.as_micros()).unwrap_or(u64::MAX);
    (share(waited_us) >= SHARE && share(outcome.limits.rwnd_limited_us) >= SHARE).then(|| {
        format!(
            "the receiver waited for a processor for {:.0} % of the time, and the sender for its window: this machine was busy",
            share(waited_us) * 100.0
        )
    })
}

/// How long this thread has been ready to run without a processor.
///
/// # Source
/// sched-stats.rst, "/proc/<pid>/schedstat": the second number, nanoseconds.
pub(crate) fn waited_for_processor() -> Option<Duration> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().nth(1)?.parse().ok().map(Duration::from_nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_trial::{Limits, Status};
    use wt_units::{Knob, Level, Settings};

    fn trial(granted: u64, seen: u64, bytes: u64) -> TrialOutcome {
        let mut outcome = TrialOutcome::empty(Status::Completed, Duration::from_secs(10), "");
        outcome.granted = Settings::new().with(Knob::Rwin, Level::Number(granted));
        outcome.observed.rwin_max = Some(seen);
        (outcome.bytes, outcome.elapsed_us) = (bytes, 10_000_000);
        outcome
    }

    #[test]
    fn the_kernels_shortage_is_read_from_its_column_whatever_stands_before_it() {
        let text = |press: &str| {
            format!(
                "protocol  size sockets  memory press maxhdr  slab module\nUDP 1 2 3 yes 0 yes kernel\nTCP       2048      5  100   {press}     320   yes  kernel\n"
            )
        };
        assert!(is_short(&text("yes")) && !is_short(&text("no")) && !is_short(""));
        let netstat = "TcpExt: A TCPMemoryPressures B\nTcpExt: 1 7 2\nIpExt: C\nIpExt: 9\n";
        assert_eq!(counter(netstat, "TcpExt:", "TCPMemoryPressures"), Some(7));
        assert_eq!(counter(netstat, "IpExt:", "TCPMemoryPressures"), None);
    }

    #[test]
    fn a_window_below_what_was_granted_counts_where_it_had_time_to_open() {
        let calm = Strain { is_short: false, shortages: u64::MAX };
        let of = |window| ReceiverState { window, ..ReceiverState::default() };
        let said = |outcome: TrialOutcome| calm.complaint(&outcome, of(0)).unwrap_or_default();
        // What the receiver advertises and the path makes smaller is no fault of this machine.
        assert_eq!(calm.complaint(&trial(23_040, 5_760, 10_000_000), of(23_040)), None);
        assert!(said(trial(23_040, 5_760, 10_000_000)).contains("never opened beyond 5760"));
        // One that isn't needed isn't opened all the way, and a short transfer opens none.
        assert_eq!(said(trial(23_040, 14_600, 10_000_000)), "");
        assert_eq!(said(trial(23_040, 5_760, 100_000)), "");
        // Without window scaling no more than 65,535 bytes can be advertised, whatever was granted.
        assert_eq!(said(trial(1_000_000, 65_535, 100_000_000)), "");
        let mut scaled = trial(1_000_000, 65_535, 100_000_000);
        scaled.observed.window_scale = Some(7);
        assert!(said(scaled).contains("granted 1000000"));
    }

    #[test]
    fn a_receiver_without_a_processor_counts_where_the_sender_waits_for_it() {
        let of = |waited_s: u64, limited_s: u64| {
            let mut outcome = trial(23_040, 23_040, 10_000_000);
            outcome.limits = Limits { rwnd_limited_us: limited_s * 1_000_000, ..Limits::default() };
            starved(&outcome, Some(Duration::from_secs(waited_s))).is_some()
        };
        assert!(of(6, 8) && !of(4, 8) && !of(6, 4));
        assert_eq!(starved(&trial(1, 1, 1), None), None);
        assert!(waited_for_processor().is_some());
    }
}
