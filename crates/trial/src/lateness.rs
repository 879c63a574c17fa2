use crate::{Lateness, Spread};
use std::time::Duration;

/// Nothing shorter is a stall, whatever the pace.
const SHORTEST_STALL: Duration = Duration::from_millis(50);
/// Intervals without a message that are a stall.
const STALL_INTERVALS: u32 = 5;

/// From how long on silence is a stall in a stream with so long from one message to the next.
#[must_use]
pub fn floor_of_stall(interval: Duration) -> Duration {
    (interval * STALL_INTERVALS).max(SHORTEST_STALL)
}

/// When the messages of a steady stream came.
#[derive(Debug, Clone)]
pub struct MessageTimes {
    expected: u32,
    interval_ns: u64,
    stall_ns: u64,
    /// When each came, ns.
    times: Vec<u64>,
}

impl MessageTimes {
    /// Of so many messages none has come yet; silence from `stall` on counts as one.
    #[must_use]
    pub fn new(expected: u32, interval: Duration, stall: Duration) -> Self {
        let times = Vec::with_capacity(expected as usize);
        Self { expected, interval_ns: interval.as_nanos() as u64, stall_ns: stall.as_nanos() as u64, times }
    }

    /// So many have come by now (ns of any clock).
    pub fn note(&mut self, now_ns: u64, so_far: u64) {
        let so_far = usize::try_from(so_far).unwrap_or(usize::MAX).min(self.expected as usize);
        if so_far > self.times.len() {
            self.times.resize(so_far, now_ns);
        }
    }

    /// Whether all have come.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.times.len() >= self.expected as usize
    }

    /// How many came.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.times.len() as u64
    }

    /// How late they were among themselves; missing ones aren't counted. `None` if none came.
    #[must_use]
    pub fn lateness(&self) -> Option<Lateness> {
        self.lateness_with_missing(Duration::ZERO)
    }

    /// The same, where each that is missing counts as so late.
    #[must_use]
    pub fn lateness_with_missing(&self, missing: Duration) -> Option<Lateness> {
        let offsets = || {
            self.times.iter().zip(0u64..).map(|(at, number)| i128::from(*at) - i128::from(number * self.interval_ns))
        };
        let earliest = offsets().min()?;
        let late = offsets().map(|offset| u64::try_from((offset - earliest) / 1000).unwrap_or(u64::MAX));
        let lost = (self.expected as usize).saturating_sub(self.times.len());
        let lost = if missing.is_zero() { 0 } else { lost };
        let lost = std::iter::repeat_n(u64::try_from(missing.as_micros()).unwrap_or(u64::MAX), lost);
        let (mut stalls, mut longest, mut burst) = (0, 0, 0);
        for (at, pair) in self.times.windows(2).enumerate() {
            let silence = pair[1] - pair[0];
            if silence >= self.stall_ns {
                stalls += 1;
                longest = longest.max(silence);
                let together = self.times[at + 1..].iter().take_while(|t| **t - pair[1] < self.interval_ns).count();
                burst = burst.max(together as u64);
            }
        }
        Some(Lateness {
            expected: self.expected.into(),
            spread: Spread::of(late.chain(lost).collect())?,
            stalls,
            longest_stall_us: longest / 1000,
            burst,
        })
    }
}

impl Lateness {
    /// One over the lateness that 99 % keep below, 1/s. Less than 10 µs is a machine's own doing and counts as that.
    #[must_use]
    pub fn score(&self) -> f64 {
        1e6 / (self.spread.p99_us.max(10) as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Duration = Duration::from_millis(10);

    fn messages(times_ms: &[u64]) -> MessageTimes {
        let mut arrivals = MessageTimes::new(times_ms.len() as u32, INTERVAL, floor_of_stall(INTERVAL));
        for (at, number) in times_ms.iter().zip(1..) {
            arrivals.note(at * 1_000_000, number);
        }
        arrivals
    }

    #[test]
    fn a_steady_stream_is_never_late() {
        let steady: Vec<u64> = (0..100).map(|n| 500 + n * 10).collect();
        let late = messages(&steady).lateness().unwrap();
        assert_eq!((late.spread.max_us, late.stalls, late.burst), (0, 0, 0));
    }

    #[test]
    fn a_stall_and_the_burst_after_it_are_seen() {
        // Nothing between 190 ms and 300 ms; then the 10 messages of that time at once, and that of 300 ms.
        let times: Vec<u64> = (0..100u64).map(|n| if (20..30).contains(&n) { 300 } else { n * 10 }).collect();
        let late = messages(&times).lateness().unwrap();
        assert_eq!((late.stalls, late.longest_stall_us, late.burst), (1, 110_000, 10 + 1));
        assert_eq!(late.spread.max_us, 100_000);
        assert_eq!(late.spread.p50_us, 0);
    }

    #[test]
    fn what_never_comes_is_as_late_as_it_can_be() {
        let mut cut = MessageTimes::new(100, INTERVAL, floor_of_stall(INTERVAL));
        cut.note(0, 50);
        let late = cut.lateness_with_missing(Duration::from_secs(3)).unwrap();
        assert_eq!((late.spread.count, late.spread.max_us, late.spread.p99_us), (100, 3_000_000, 3_000_000));
        assert!(late.score() < 1.0 && MessageTimes::new(5, INTERVAL, INTERVAL).lateness().is_none());
    }
}
