use crate::{Pacer, Time};
use std::time::Duration;

/// So many hosts come at first, so many a second: few are done sooner than anything could wait for them.
const FIRST: u32 = 256;
const FIRST_RATE: f64 = 4000.0;
/// Those after them come at this rate at first, a second.
const THEN: f64 = 1400.0;
/// So long after the first ones they may still be what packets wait behind: it says nothing about the rate.
const SETTLES: Duration = Duration::from_millis(150);
/// By so much the rate grows with each host while nothing waits, hosts a second: it doubles in 4 s.
const GROWTH: f64 = 0.17;
/// For so long after packets have waited the rate grows slower: by this part where it comes to what was carried then, and the
/// more the farther it is from that. What carries little more than it is asked for gets no time to fall behind; but what made
/// packets wait may have been another program.
const MEMORY: Duration = Duration::from_millis(1500);
const CAREFUL: f64 = 0.1;
/// Of the rate at which packets waited so much was carried: it had grown on until they were seen.
const CARRIED: f64 = 0.92;
/// Where every packet of such a time has waited for longer than this, something is asked for more than it can do: then the rate is
/// lowered to this part. Single ones wait for other programs, or for a hypervisor.
const INTERVAL: Duration = Duration::from_millis(50);
const STANDING: Duration = Duration::from_millis(2);
const CUT: f64 = 0.85;
/// Not before so long after the last time, and no growth either: what was begun before goes on.
const AGAIN: Duration = Duration::from_millis(300);
/// The rate gets no lower.
const LEAST: f64 = 20.0;
/// At once: what comes in this time. More than that would come back at once, too, and wait for us.
const BURST: Duration = Duration::from_millis(4);

/// How fast hosts are begun.
#[derive(Debug)]
pub(super) enum Pace {
    /// So many a second.
    Fixed(Pacer),
    /// As many as this host, the way and the servers carry.
    Seen(SeenPace),
}

impl Pace {
    pub(super) fn fixed(per_second: u32) -> Self {
        Self::Fixed(Pacer::new(per_second, (f64::from(per_second) * BURST.as_secs_f64()).max(1.0) as u32))
    }

    /// When the next one may begin.
    pub(super) fn next(&self) -> Time {
        match self {
            Self::Fixed(pacer) => pacer.next(),
            Self::Seen(pace) => pace.next(),
        }
    }

    /// Counts one that begins now.
    pub(super) fn take(&mut self, now: Time) {
        match self {
            Self::Fixed(pacer) => {
                pacer.take(now);
            }
            Self::Seen(pace) => pace.take(now),
        }
    }

    /// Hears how long a packet has waited that needn't have, and where.
    pub(super) fn waited(&mut self, now: Time, place: WaitingPlace, delay: Duration) {
        if let Self::Seen(pace) = self {
            pace.waited(now, place, delay);
        }
    }

    /// Hears that packets found no room.
    pub(super) fn overflown(&mut self, now: Time) {
        if let Self::Seen(pace) = self {
            pace.cut(now);
        }
    }
}

/// Where packets wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingPlace {
    /// On the way or at the server.
    There,
    /// On this host, for us.
    Here,
}

/// The least that packets have waited within an interval: what all of them waited is a queue that stands, and no burst.
///
/// # Source
/// As CoDel tells good queues from bad ones (RFC 8289 section 3.1).
#[derive(Debug, Default)]
struct Least {
    since: Time,
    least: Option<Duration>,
}

impl Least {
    /// Takes a delay; the least of the interval that has ended, if one has.
    fn hear(&mut self, now: Time, delay: Duration) -> Option<Duration> {
        if now < self.since + INTERVAL {
            self.least = Some(self.least.map_or(delay, |least| least.min(delay)));
            return None;
        }
        self.since = now;
        self.least.replace(delay)
    }
}

/// A rate that grows with each host while nothing waits, so exponentially in time, and is lowered by a part of itself where packets wait.
#[derive(Debug)]
pub(super) struct SeenPace {
    /// Hosts a second.
    rate: f64,
    /// What was carried when packets waited last; infinite before.
    carried: f64,
    begun: u32,
    /// When the next slot is, if none is left over.
    slot: Time,
    /// What is waited for there, and here.
    least: [Least; 2],
    /// No cut before.
    cut_at: Time,
}

impl Default for SeenPace {
    fn default() -> Self {
        Self {
            rate: FIRST_RATE,
            carried: f64::INFINITY,
            begun: 0,
            slot: Time::ZERO,
            least: Default::default(),
            cut_at: Time::ZERO,
        }
    }
}

impl SeenPace {
    fn next(&self) -> Time {
        self.slot.saturating_sub(BURST)
    }

    fn take(&mut self, now: Time) {
        self.slot = self.slot.max(now) + Duration::from_secs_f64(1.0 / self.rate);
        self.begun = self.begun.saturating_add(1);
        if self.begun == FIRST {
            self.rate = self.rate.min(THEN);
            self.cut_at = self.cut_at.max(now + SETTLES);
        } else if self.begun > FIRST && now >= self.cut_at {
            let remembered = self.carried.is_finite() && now < self.cut_at + MEMORY;
            let distance = if remembered { (self.rate / self.carried - 1.0).abs() } else { 1.0 };
            self.rate += GROWTH * (distance / CAREFUL).clamp(CAREFUL, 1.0);
        }
    }

    fn waited(&mut self, now: Time, place: WaitingPlace, delay: Duration) {
        let least = self.least[usize::from(place == WaitingPlace::Here)].hear(now, delay);
        if least.is_some_and(|least| least > STANDING) {
            self.cut(now);
        }
    }

    fn cut(&mut self, now: Time) {
        if now < self.cut_at {
            return;
        }
        let most = if self.begun < FIRST { THEN } else { f64::INFINITY };
        let rate = self.rate.min(most);
        (self.rate, self.carried) = ((rate * CUT).max(LEAST), rate * CARRIED);
        self.cut_at = now + AGAIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts begun in so many seconds by a world that carries so many a second: what is more waits.
    fn begun(capacity: f64, seconds: u64) -> u32 {
        let mut pace = Pace::Seen(SeenPace::default());
        let (mut now, mut begun) = (Time::ZERO, 0u32);
        // Until when the world is busy with what it has, and until when nobody is begun.
        let (mut busy, mut held) = (Time::ZERO, Time::ZERO);
        let mut answers = std::collections::VecDeque::new();
        while now < Duration::from_secs(seconds) {
            while answers.front().is_some_and(|(at, _)| *at <= now) {
                let (_, waited) = answers.pop_front().unwrap();
                pace.waited(now, WaitingPlace::There, waited);
                if waited >= Duration::from_millis(10) {
                    held = held.max(now + waited);
                }
            }
            if pace.next().max(held) <= now {
                pace.take(now);
                begun += 1;
                let waited = busy.saturating_sub(now);
                busy = busy.max(now) + Duration::from_secs_f64(1.0 / capacity);
                answers.push_back((now + Duration::from_millis(40) + waited, waited));
            }
            let next = pace.next().max(held);
            now = answers.front().map_or(next, |(at, _)| (*at).min(next)).max(now + Duration::from_nanos(1));
        }
        begun
    }

    #[test]
    fn it_finds_what_a_slow_world_and_a_fast_one_carry() {
        for capacity in [300.0, 1000.0, 1700.0, 5000.0, 20_000.0] {
            let rate = f64::from(begun(capacity, 20) - begun(capacity, 10)) / 10.0;
            assert!((0.75 * capacity..=capacity).contains(&rate), "{rate} of {capacity}");
        }
    }

    #[test]
    fn two_hundred_hosts_come_within_a_twentieth_of_a_second() {
        let mut pace = Pace::Seen(SeenPace::default());
        let mut now = Time::ZERO;
        for _ in 0..200 {
            now = now.max(pace.next());
            pace.take(now);
        }
        assert!(now <= Duration::from_millis(50), "{now:?}");
    }

    #[test]
    fn what_is_asked_for_is_kept_to_whatever_waits() {
        let mut pace = Pace::fixed(100);
        pace.waited(Time::ZERO, WaitingPlace::Here, Duration::from_secs(1));
        pace.overflown(Time::ZERO);
        let mut now = Time::ZERO;
        for _ in 0..=100 {
            now = now.max(pace.next());
            pace.take(now);
        }
        assert_eq!(now, Duration::from_secs(1));
    }
}
