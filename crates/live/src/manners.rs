use std::time::Duration;
use wt_trial::Cancel;

/// The first pause after a refusal.
const FIRST: Duration = Duration::from_secs(1);
/// No pause is longer, unless the server asks for it.
const LONGEST: Duration = Duration::from_secs(300);
/// Refusals in a row after which a round is given up.
const STREAK: u32 = 3;
/// A server that wants to be left alone for longer isn't waited for within a round.
const PATIENCE: Duration = Duration::from_secs(60);

/// When a server is to be left alone: pauses that double with each refusal, and never less than it asks for.
///
/// Pure: the caller has the clock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Manners {
    streak: u32,
    not_before: Duration,
    gave_up: bool,
}

impl Manners {
    /// Nothing has been refused yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// It refused at `now`, and perhaps said for how long; returns the pause.
    pub fn refused(&mut self, now: Duration, asked: Option<Duration>) -> Duration {
        let doubled = FIRST.saturating_mul(1_u32.checked_shl(self.streak).unwrap_or(u32::MAX)).min(LONGEST);
        let pause = doubled.max(asked.unwrap_or_default());
        self.streak += 1;
        self.not_before = now.saturating_add(pause);
        self.gave_up = self.streak >= STREAK || pause > PATIENCE;
        pause
    }

    /// It served us.
    pub fn served(&mut self) {
        *self = Self { not_before: self.not_before, ..Self::default() };
    }

    /// How long it is still to be left alone.
    #[must_use]
    pub fn wait(&self, now: Duration) -> Duration {
        self.not_before.saturating_sub(now)
    }

    /// Whether the round had better be given up.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.gave_up
    }

    /// A round begins: it gets its chance.
    pub fn begin_round(&mut self) {
        self.gave_up = false;
    }
}

/// The monotonic clock.
pub(crate) fn clock() -> Duration {
    Duration::from_nanos(wt_sys::clock::monotonic_ns())
}

/// Waits; false when the user wants to stop.
pub(crate) fn leave_alone(time: Duration, cancel: &Cancel) -> bool {
    let end = clock() + time;
    loop {
        let left = end.saturating_sub(clock());
        if cancel.is_cancelled() {
            return false;
        }
        if left.is_zero() {
            return true;
        }
        // Waits for nothing but time; a signal ends it early, and the flag is looked at again.
        let _ = wt_sys::poll::wait_readable(&[], Some(left.min(Duration::from_millis(50))));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const fn s(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn pauses_double_and_begin_anew_once_served() {
        let mut manners = Manners::new();
        let pauses: Vec<u64> = (0..12).map(|_| manners.refused(s(0), None).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
        manners.served();
        assert_eq!(manners.refused(s(1000), None), s(1));
        assert_eq!(manners.wait(s(1000)), s(1));
        assert_eq!(manners.wait(s(1002)), s(0));
    }

    #[test]
    fn what_the_server_asks_for_is_obeyed_and_never_undercut() {
        let mut manners = Manners::new();
        assert_eq!(manners.refused(s(0), Some(s(30))), s(30));
        assert!(!manners.gave_up());
        assert_eq!(manners.refused(s(0), Some(s(0))), s(2));
        assert_eq!(manners.refused(s(0), Some(s(4000))), s(4000));
        assert!(manners.gave_up());
    }

    #[test]
    fn a_round_is_given_up_after_three_refusals_in_a_row_and_the_next_gets_its_chance() {
        let mut manners = Manners::new();
        for expected in [false, false, true] {
            manners.refused(s(0), None);
            assert_eq!(manners.gave_up(), expected);
        }
        manners.begin_round();
        assert!(!manners.gave_up());
        manners.refused(s(0), None);
        assert!(manners.gave_up(), "it refuses still");
    }

    proptest! {
        #[test]
        fn no_pause_is_shorter_than_asked_for_or_than_the_last(asked in proptest::collection::vec(proptest::option::of(0..100_u64), 1..80)) {
            let mut manners = Manners::new();
            let mut doubled = s(0);
            for asked in asked {
                let pause = manners.refused(s(7), asked.map(s));
                prop_assert!(pause >= s(asked.unwrap_or(0)));
                prop_assert!(pause >= doubled.min(LONGEST));
                doubled = (doubled * 2).clamp(FIRST, LONGEST);
                prop_assert_eq!(manners.wait(s(7)), pause);
            }
        }
    }
}
