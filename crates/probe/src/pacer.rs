use crate::Time;
use std::time::Duration;

/// Keeps probes below a rate: a token bucket.
///
/// In no window of length `w` do more than `burst + rate · w` probes leave.
#[derive(Debug, Clone)]
pub struct Pacer {
    gap: Duration,
    burst: Duration,
    /// When the bucket is full again, if nothing more leaves.
    full_at: Time,
}

impl Pacer {
    /// At most `per_second` probes a second, and at most `burst` at once.
    #[must_use]
    pub fn new(per_second: u32, burst: u32) -> Self {
        let gap = Duration::from_secs(1) / per_second.max(1);
        Self { gap, burst: gap * burst.max(1), full_at: Duration::ZERO }
    }

    /// When the next probe may leave; not after `now` if it may leave now.
    #[must_use]
    pub fn next(&self) -> Time {
        (self.full_at + self.gap).saturating_sub(self.burst)
    }

    /// Counts one that leaves now, if it may.
    pub fn take(&mut self, now: Time) -> bool {
        if self.next() > now {
            return false;
        }
        self.full_at = self.full_at.max(now) + self.gap;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_window_holds_more_than_its_share(
            rate in 1u32..5000, burst in 1u32..100, steps in prop::collection::vec(0u64..3_000_000, 1..400)
        ) {
            let mut pacer = Pacer::new(rate, burst);
            let (mut now, mut sent) = (Duration::ZERO, Vec::new());
            for step in steps {
                now += Duration::from_nanos(step);
                if pacer.take(now) {
                    sent.push(now);
                }
            }
            for (i, from) in sent.iter().enumerate() {
                for (j, to) in sent.iter().enumerate().skip(i) {
                    let share = f64::from(burst) + (*to - *from).as_secs_f64() * f64::from(rate) * 1.000_01;
                    prop_assert!((j - i + 1) as f64 <= share + 1e-6, "{} probes from {from:?} to {to:?}", j - i + 1);
                }
            }
        }
    }

    #[test]
    fn it_says_when_the_next_may_leave_and_keeps_its_word() {
        let mut pacer = Pacer::new(1000, 2);
        assert!(pacer.take(Duration::ZERO) && pacer.take(Duration::ZERO));
        assert!(!pacer.take(Duration::ZERO));
        assert_eq!(pacer.next(), Duration::from_millis(1));
        assert!(pacer.take(Duration::from_millis(1)));
    }
}
