//! The rate of the narrowest link, from how far a burst is drawn apart.
//!
//! # What this leaves out
//! Other traffic, which makes the rate look smaller: it is what a new connection would get at this moment.

use crate::rate::{Passage, Spacing, spacing};
use crate::{Answer, Kind, Machine, Probe, ProbeAnswer, Rtt, Time};
use wt_units::upper_median;

/// Packets of one train.
const LENGTH: usize = 58;
/// How many trains at least, and at most, where the answers of the first ones were too uneven.
const TRAINS: usize = 2;
const MOST_TRAINS: usize = 8;
/// The first packets may pass a token bucket at another rate.
const SKIPPED: usize = 10;
/// Between trains, so that each finds the queue empty.
const PAUSE: Time = Time::from_millis(100);
/// A sender that is not so many times faster than the estimate has measured itself.
const FASTER: f64 = 1.3;
/// An interval whose ends lie no further apart needs no more trains.
const NARROW: f64 = 1.1;
/// One whose ends lie further apart isn't told.
const WIDEST: f64 = 1.5;
/// Shorter packets come in less than this share of the time where it is the way there that draws them apart.
const SHRINKS: f64 = 0.93;
/// So many trains of those at least, and at most.
const SHORTER_TRAINS: (usize, usize) = (1, 4);
/// They are no shorter.
const SHORTEST: u16 = 60;

/// A rate, bits of IP packets a second.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bottleneck {
    /// The estimate.
    pub bps: f64,
    /// It is no less.
    pub low: f64,
    /// It is no more; `None` where this host's sending was what limited it.
    pub high: Option<f64>,
    /// Whether this host's sending was what limited it: the path may be faster.
    pub sender_limited: bool,
    /// Whether it may be the answers that come no faster, over a way back that is slower by far: the way there may be faster.
    pub answers_limited: bool,
}

/// A few trains of packets, back to back.
#[derive(Debug)]
pub struct Train {
    kind: Kind,
    size: u16,
    /// How many trains at least, and at most.
    trains: (usize, usize),
    /// Times of sending and of answers, by number.
    flights: Vec<(Time, Option<Time>)>,
    opened: bool,
    /// Counts a SYN, if one was sent.
    offset: usize,
    not_before: Time,
    /// How soon an idle path answers.
    least_rtt: Option<Time>,
    rtt: Rtt,
    heard: Option<Time>,
    done: bool,
}

impl Train {
    /// Trains of old segments of this length, or else of echoes, which meet the narrowest link of both ways. `least_rtt` is
    /// how soon the idle path answers, if that is known: it tells a fast link from answers that all were held up.
    #[must_use]
    pub fn new(kind: Kind, size: u16, least_rtt: Option<Time>) -> Self {
        let opened = kind != Kind::OldSegment;
        Self {
            kind,
            size,
            trains: (TRAINS, MOST_TRAINS),
            flights: Vec::new(),
            opened,
            offset: 0,
            not_before: Time::ZERO,
            least_rtt,
            rtt: Rtt::default(),
            heard: None,
            done: false,
        }
    }

    /// Trains of packets of half the length: see [`with_shorter`](Self::with_shorter). `None` where it is no answers that may limit
    /// it: echoes are as long as what they answer.
    #[must_use]
    pub fn shorter(&self) -> Option<Self> {
        let size = (self.size / 2).max(SHORTEST);
        let short_answers = self.kind != Kind::Echo && size < self.size && self.bottleneck().is_some();
        short_answers.then(|| Self { trains: SHORTER_TRAINS, ..Self::new(self.kind, size, self.least_rtt) })
    }

    /// The rate, as [`bottleneck`](Self::bottleneck), with what shorter packets show: answers are as short whatever they answer, so
    /// that those to shorter packets come closer to each other only where it isn't they that fill the way back.
    #[must_use]
    pub fn with_shorter(&self, shorter: &Self) -> Option<Bottleneck> {
        let (found, passed) = (self.bottleneck()?, self.spacing()?);
        let short = shorter.spacing().filter(|short| short.width() <= WIDEST);
        if short.is_some_and(|short| short.best < passed.best * SHRINKS) {
            return Some(found);
        }
        Some(Bottleneck { high: None, answers_limited: true, ..found })
    }

    /// The rate with its interval, which holds if one packet in the middle half of all trains was held up by nobody;
    /// `None` with too few answers, and where they say too little: where the interval's ends lie further apart than half of
    /// the lower one.
    #[must_use]
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        self.found().filter(|(_, width)| *width <= WIDEST).map(|(found, _)| found)
    }

    /// Whether enough packets were answered to say something: then no other kind of packet says more.
    #[must_use]
    pub fn is_answered(&self) -> bool {
        self.spacing().is_some()
    }

    fn trains(&self) -> impl Iterator<Item = &[(Time, Option<Time>)]> {
        self.flights.get(self.offset..).unwrap_or_default().chunks(LENGTH)
    }

    fn spacing(&self) -> Option<Spacing> {
        let passages: Vec<Passage> = self.trains().map(passage).collect();
        let opening = (self.offset == 1).then(|| self.flights.first()).flatten();
        let opening = opening.and_then(|(sent, answered)| Some(answered.as_ref()?.saturating_sub(*sent)));
        let least = self.least_rtt.into_iter().chain(opening).min().map(|least| least.as_secs_f64());
        // The first packets may pass a token bucket; of a short queue only those come out again.
        spacing(&passages, SKIPPED, least).or_else(|| spacing(&passages, 0, least))
    }

    /// The rate, and how many times its lower end the upper end of its interval is.
    fn found(&self) -> Option<(Bottleneck, f64)> {
        let passed = self.spacing()?;
        let sent: Vec<Vec<Time>> =
            self.trains().map(|train| train.iter().skip(SKIPPED).map(|(sent, _)| *sent).collect()).collect();
        let left = upper_median(sent.iter().flat_map(|times| gaps_of(times))).unwrap_or(0.0);
        let bits = f64::from(self.size) * 8.0;
        // Sent at one instant of the clock: faster than can be told.
        let sent = if left > 0.0 { bits / left } else { f64::INFINITY };
        let (bps, low) = (bits / passed.best, bits / passed.high);
        let sender_limited = sent < bps * FASTER;
        let high = (!sender_limited).then(|| bits / passed.low);
        let bps = bps.min(sent);
        Some((Bottleneck { bps, low: low.min(bps), high, sender_limited, answers_limited: false }, passed.width()))
    }

    /// Whether more trains would say no more: nobody answers, this host is too slow, or it is known well enough.
    fn is_sure(&self) -> bool {
        self.found().is_none_or(|(found, width)| found.sender_limited || width <= NARROW)
    }

    fn sent(&self) -> usize {
        self.flights.len() - self.offset
    }

    fn last_sent(&self) -> Time {
        self.flights.last().map_or(Time::ZERO, |(sent, _)| *sent)
    }

    fn due(&self) -> Time {
        self.rtt.verdict_at(self.last_sent(), self.heard)
    }

    /// Whether a train has left and its answers are still awaited.
    fn awaits(&self, now: Time) -> bool {
        let begun = self.sent() > 0 && self.sent().is_multiple_of(LENGTH);
        let train = &self.flights[self.flights.len().saturating_sub(LENGTH)..];
        begun && train.iter().any(|(_, answered)| answered.is_none()) && now < self.due()
    }
}

/// When the answers to a train came, since its first packet left.
fn passage(train: &[(Time, Option<Time>)]) -> Passage {
    let begun = train.first().map_or(Time::ZERO, |(sent, _)| *sent);
    let answers = train.iter().enumerate();
    let since = |answered: Time| answered.saturating_sub(begun).as_secs_f64();
    Passage { answers: answers.filter_map(|(number, (_, answered))| Some((number, since((*answered)?)))).collect() }
}

/// Seconds from one to the next, from pairs half of all apart.
fn gaps_of(times: &[Time]) -> Vec<f64> {
    let half = (times.len() / 2).max(1);
    let pairs = times.iter().zip(times.iter().skip(half));
    pairs.map(|(one, other)| other.saturating_sub(*one).as_secs_f64() / half as f64).collect()
}

impl Machine for Train {
    fn poll_probe(&mut self, now: Time) -> Option<Probe> {
        let id = u32::try_from(self.flights.len()).unwrap_or(u32::MAX);
        if !self.opened {
            if self.flights.is_empty() {
                self.offset = 1;
                self.flights.push((now, None));
                return Some(Probe { id, kind: Kind::Syn, ip_len: 44, ttl: None, flow: 0 });
            }
            self.done |= now >= self.flights[0].0 + Rtt::UNKNOWN;
            return None;
        }
        let between = self.sent().is_multiple_of(LENGTH) && self.sent() > 0;
        if between && self.awaits(now) {
            return None;
        }
        if between && self.not_before <= self.last_sent() && self.sent() >= LENGTH * self.trains.0 {
            self.done |= self.sent() >= LENGTH * self.trains.1 || self.is_sure();
        }
        if between && self.not_before <= self.last_sent() {
            self.not_before = now + PAUSE;
        }
        if self.done || self.not_before > now {
            return None;
        }
        self.flights.push((now, None));
        Some(Probe { id, kind: self.kind, ip_len: self.size, ttl: None, flow: 0 })
    }

    fn handle(&mut self, answer: &Answer) {
        let Some(flight) = self.flights.get_mut(answer.id as usize).filter(|flight| flight.1.is_none()) else { return };
        match answer.said {
            ProbeAnswer::Open { sack: true, .. } => self.opened = true,
            ProbeAnswer::Open { .. } | ProbeAnswer::Refused => self.done = true,
            ProbeAnswer::Reached { .. } => {}
            _ => return,
        }
        flight.1 = Some(answer.at);
        self.rtt.sample(answer.at.saturating_sub(flight.0));
        self.heard = self.heard.max(Some(answer.at));
    }

    fn wakeup(&self) -> Option<Time> {
        if self.done {
            return None;
        }
        let last = self.last_sent();
        if !self.opened {
            return Some(last + Rtt::UNKNOWN);
        }
        Some(if self.awaits(last) { self.due().max(self.not_before) } else { self.not_before })
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha8Rng;

    /// A link that passes one packet each `gap`, between a host that sends one each `sent_every` and others that are busy.
    struct World {
        sent_every: Time,
        gap: Time,
        /// The way back passes one answer each so often.
        back_gap: Time,
        /// Whoever is busy from one of these times to the other does nothing: this host, and what delivers answers.
        sending: Vec<(Time, Time)>,
        delivering: Vec<(Time, Time)>,
        /// What an answer is late by, at most.
        jitter: Time,
        /// The share of packets that is lost behind the link.
        loss: f64,
        rng: ChaCha8Rng,
    }

    const BASE: Time = Time::from_millis(40);

    impl World {
        fn calm(sent_every: Time, gap: Time) -> Self {
            let rng = ChaCha8Rng::seed_from_u64(0);
            Self {
                sent_every,
                gap,
                back_gap: Time::from_micros(2),
                sending: Vec::new(),
                delivering: Vec::new(),
                jitter: Time::ZERO,
                loss: 0.0,
                rng,
            }
        }

        /// Each is busy for so long on average, and then for so long isn't.
        fn busy(seed: u64, gap: Time, busy_ms: f64, idle_ms: f64) -> Self {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let mut spells = || {
                let mut length = |ms: f64| Time::from_secs_f64(-ms / 1e3 * rng.random::<f64>().max(1e-9).ln());
                let (mut at, mut spells) = (length(idle_ms), Vec::new());
                while at < Time::from_secs(6) {
                    let until = at + length(busy_ms);
                    spells.push((at, until));
                    at = until + length(idle_ms);
                }
                spells
            };
            let (sending, delivering) = (spells(), spells());
            let jitter = Time::from_micros(20);
            Self { sending, delivering, jitter, rng, ..Self::calm(Time::from_micros(4), gap) }
        }

        fn free(spells: &[(Time, Time)], at: Time) -> Time {
            spells.iter().find(|(from, until)| (*from..*until).contains(&at)).map_or(at, |(_, until)| *until)
        }

        /// Runs trains over it.
        fn measure(self, kind: Kind) -> (Train, Time) {
            self.run(Train::new(kind, 1400, Some(BASE)))
        }

        fn run(mut self, mut train: Train) -> (Train, Time) {
            let (mut now, mut free, mut delivered) = (Time::ZERO, Time::ZERO, Time::ZERO);
            let mut pending: Vec<(Time, u32, ProbeAnswer)> = Vec::new();
            while !train.is_done() {
                now = Self::free(&self.sending, now);
                if let Some(probe) = train.poll_probe(now) {
                    let opens = probe.kind == Kind::Syn;
                    let said = if opens {
                        ProbeAnswer::Open { mss: None, sack: true }
                    } else {
                        ProbeAnswer::Reached { ttl: None }
                    };
                    free = free.max(now) + self.gap * u32::from(train.size) / 1400;
                    let late = self.jitter.mul_f64(self.rng.random::<f64>());
                    let due = Self::free(&self.delivering, free + BASE + late);
                    delivered = due.max(delivered + self.back_gap);
                    if opens || self.rng.random::<f64>() >= self.loss {
                        pending.push((delivered, probe.id, said));
                    }
                    now += self.sent_every;
                } else {
                    let answer = pending.iter().map(|(at, ..)| *at).min();
                    let next = answer.into_iter().chain(train.wakeup()).min();
                    now = next.unwrap_or(now).max(now + Time::from_nanos(1));
                }
                for (at, id, said) in pending.extract_if(.., |(at, ..)| *at <= now) {
                    train.handle(&Answer { id, at, from: None, said });
                }
            }
            (train, now)
        }
    }

    fn measure(kind: Kind, sent_every: Time, gap: Time) -> (Train, Time) {
        World::calm(sent_every, gap).measure(kind)
    }

    #[test]
    fn the_rate_of_the_narrowest_link_is_found_exactly_in_120_packets_within_a_second() {
        for mbit in [5u64, 20, 100] {
            let gap = Time::from_nanos(1400 * 8 * 1000 / mbit);
            let (train, took) = measure(Kind::OldSegment, Time::from_micros(2), gap);
            let found = train.bottleneck().unwrap();
            assert!((found.bps / (mbit as f64 * 1e6) - 1.0).abs() < 1e-3, "{found:?}");
            assert!(!found.sender_limited);
            assert_eq!(train.flights.len(), 117);
            assert!(took < Time::from_secs(1), "{took:?}");
        }
    }

    /// How many of these worlds were told a rate, of those how many an interval that holds it, and how many one within 5 %.
    fn told(seeds: u64, mbit: u64, world: impl Fn(u64, Time) -> World) -> [usize; 3] {
        let gap = Time::from_nanos(1400 * 8 * 1000 / mbit);
        let found = (0..seeds).filter_map(|seed| world(seed, gap).measure(Kind::OldSegment).0.bottleneck());
        found.fold([0; 3], |[told, held, near], found| {
            let truth = mbit as f64 * 1e6;
            // A host that was too slow claims nothing above.
            let holds = found.low <= truth && found.high.is_none_or(|high| truth <= high);
            let close = (found.bps / truth - 1.0).abs() < 0.05;
            [told + 1, held + usize::from(holds), near + usize::from(close)]
        })
    }

    #[test]
    fn on_a_host_with_little_else_to_do_the_rate_is_within_five_percent_and_within_its_interval() {
        for mbit in [5, 20, 50, 100] {
            let [told, held, near] = told(200, mbit, |seed, gap| World::busy(seed, gap, 1.0, 60.0));
            assert!(told >= 199 && held >= told - 1 && near >= told - 2, "{mbit}: {told} {held} {near}");
        }
    }

    #[test]
    fn however_busy_hosts_are_an_interval_that_is_told_holds_the_rate() {
        let mut share = Vec::new();
        for mbit in [5, 20, 50, 100] {
            for (busy, idle) in [(2.0, 10.0), (8.0, 16.0), (8.0, 8.0), (20.0, 10.0), (50.0, 20.0)] {
                let [told, held, near] = told(200, mbit, |seed, gap| World::busy(seed, gap, busy, idle));
                assert!(held as f64 >= 0.95 * told as f64, "{mbit} {busy} {idle}: {told} {held} {near}");
                share.push(format!(
                    "{mbit} Mbit/s, {busy} ms of {}: told {told}, held {held}, near {near}",
                    busy + idle
                ));
            }
        }
        println!("{}", share.join("\n"));
    }

    #[test]
    fn what_is_lost_behind_the_link_leaves_the_interval_true() {
        for loss in [0.01, 0.1] {
            let world = |seed, gap| World { loss, ..World::busy(seed, gap, 2.0, 30.0) };
            let [told, held, _] = told(200, 50, world);
            assert!(told >= 100 && held as f64 >= 0.95 * told as f64, "{loss}: {told} {held}");
        }
    }

    #[test]
    fn a_host_that_is_always_busy_is_told_nothing_after_so_many_trains() {
        let gap = Time::from_micros(224);
        let wakes = |n: u64| (Time::from_millis(25 * n), Time::from_millis(25 * n + 25) - Time::from_nanos(1));
        let world = World { delivering: (0..300).map(wakes).collect(), ..World::calm(Time::from_micros(4), gap) };
        let (train, took) = world.measure(Kind::Echo);
        let truth = 50e6;
        assert!(
            train.bottleneck().is_none_or(|found| found.low <= truth && found.high.is_none_or(|high| truth <= high))
        );
        assert!(train.is_answered() && train.sent() <= LENGTH * MOST_TRAINS && took < Time::from_secs(3), "{took:?}");
    }

    #[test]
    fn a_queue_that_holds_a_quarter_of_the_train_is_enough() {
        let mut train = Train::new(Kind::Echo, 1400, None);
        let gap = Time::from_millis(11);
        for number in 0..LENGTH as u32 {
            let id = train.poll_probe(Time::ZERO).unwrap().id;
            assert_eq!(id, number);
        }
        for id in 0..10 {
            let at = Time::from_millis(40) + gap * (id + 1);
            train.handle(&Answer { id, at, from: None, said: ProbeAnswer::Reached { ttl: None } });
        }
        let found = train.bottleneck().unwrap();
        assert!((found.bps / (1400.0 * 8.0 / 0.011) - 1.0).abs() < 1e-6, "{found:?}");
    }

    #[test]
    fn where_the_way_back_is_too_slow_for_the_answers_the_rate_is_no_more_than_a_lower_bound() {
        // 52 bytes back for 1400 there: 100 Mbit/s there with 1, 3 and 5 back, and 24 with 1.
        for (mbit, back, limited) in [(100, 1.0, true), (100, 3.0, true), (100, 5.0, false), (24, 1.0, false)] {
            let gap = Time::from_nanos(1400 * 8 * 1000 / mbit);
            let back_gap = Time::from_secs_f64(52.0 * 8.0 / back / 1e6);
            for seed in 0..20 {
                let world = |seed| World { back_gap, ..World::busy(seed, gap, 1.0, 60.0) };
                let (train, _) = world(seed).measure(Kind::OldSegment);
                let (shorter, took) = world(seed + 100).run(train.shorter().unwrap());
                let found = train.with_shorter(&shorter).unwrap();
                assert_eq!(
                    (found.answers_limited, found.high.is_none()),
                    (limited, limited),
                    "{mbit}/{back}: {found:?}"
                );
                assert!(
                    found.low <= mbit as f64 * 1e6 && took < Time::from_secs(1),
                    "{mbit}/{back}: {found:?}, {took:?}"
                );
            }
        }
        assert!(measure(Kind::Echo, Time::from_micros(2), Time::from_micros(112)).0.shorter().is_none());
    }

    #[test]
    fn a_slow_sender_says_so() {
        let (train, _) = measure(Kind::Echo, Time::from_micros(30), Time::from_micros(10));
        let found = train.bottleneck().unwrap();
        assert!(found.sender_limited, "{found:?}");
        assert!((found.bps / (1400.0 * 8.0 / 30e-6) - 1.0).abs() < 0.01, "{found:?}");
    }

    #[test]
    fn a_target_that_never_answers_gives_no_rate() {
        let mut train = Train::new(Kind::OldSegment, 1400, None);
        assert!(train.poll_probe(Time::ZERO).is_some() && train.poll_probe(Time::ZERO).is_none());
        assert!(train.poll_probe(Time::from_secs(1)).is_none() && train.is_done());
        assert_eq!(train.bottleneck(), None);
    }
}
