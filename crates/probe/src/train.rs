//! The rate of the narrowest link, from how far a burst is drawn apart.
//!
//! # What this leaves out
//! Other traffic, which makes the rate look smaller: it is what a new connection would get at this moment.

use crate::{Answer, Kind, Machine, Probe, Rtt, Said, Time};
use wt_units::upper_median;

/// Packets of one train.
const LENGTH: usize = 58;
/// How many trains.
const TRAINS: usize = 2;
/// The first packets may pass a token bucket at another rate.
const SKIPPED: usize = 10;
/// With fewer answers nothing is said.
const FEWEST: usize = 6;
/// Between trains, so that each finds the queue empty.
const PAUSE: Time = Time::from_millis(100);
/// A sender that is not so many times faster than the estimate has measured itself.
const FASTER: f64 = 1.3;

/// A rate.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bottleneck {
    /// Bits of IP packets a second.
    pub bps: f64,
    /// Whether this host's sending was what limited it: the path may be faster.
    pub sender_limited: bool,
}

/// A few trains of packets, back to back.
#[derive(Debug)]
pub struct Train {
    kind: Kind,
    size: u16,
    /// Times of sending and of answers, by number.
    flights: Vec<(Time, Option<Time>)>,
    opened: bool,
    /// Counts a SYN, if one was sent.
    offset: usize,
    not_before: Time,
    rtt: Rtt,
    heard: Option<Time>,
    done: bool,
}

impl Train {
    /// Trains of old segments of this length, or else of echoes, which meet the narrowest link of both ways.
    #[must_use]
    pub fn new(kind: Kind, size: u16) -> Self {
        let opened = kind != Kind::OldSegment;
        Self {
            kind,
            size,
            flights: Vec::new(),
            opened,
            offset: 0,
            not_before: Time::ZERO,
            rtt: Rtt::default(),
            heard: None,
            done: false,
        }
    }

    /// The rate: the slope of the line that lies below all arrivals of a train and as close to them as can be, one slope
    /// for all trains.
    ///
    /// Packets are held up behind the narrowest link, by a host that has something else to do above all, and never come
    /// early: those that came at their time lie on the line, however few they are.
    ///
    /// # Source
    /// Moon, Skelly and Towsley, IEEE INFOCOM 1999, who fit the skew of clocks so.
    #[must_use]
    pub fn bottleneck(&self) -> Option<Bottleneck> {
        let trains = || self.flights.get(self.offset..).unwrap_or_default().chunks(LENGTH);
        // The first packets may pass a token bucket; of a short queue only those come out again.
        let passed = |skipped: usize| slope_below(&trains().map(|train| arrivals(train, skipped)).collect::<Vec<_>>());
        let passed = passed(SKIPPED).or_else(|| passed(0)).filter(|gap| *gap > 0.0)?;
        let sent: Vec<Vec<Time>> =
            trains().map(|train| train.iter().skip(SKIPPED).map(|(sent, _)| *sent).collect()).collect();
        let left = upper_median(sent.iter().flat_map(|times| gaps_of(times))).unwrap_or(0.0);
        let bits = f64::from(self.size) * 8.0;
        // Sent at one instant of the clock: faster than can be told.
        let sent = if left > 0.0 { bits / left } else { f64::INFINITY };
        let bps = bits / passed;
        Some(Bottleneck { bps: bps.min(sent), sender_limited: sent < bps * FASTER })
    }

    fn sent(&self) -> usize {
        self.flights.len() - self.offset
    }

    fn due(&self) -> Time {
        let last = self.flights.last().map_or(Time::ZERO, |(sent, _)| *sent);
        self.rtt.verdict_at(last, self.heard)
    }

    /// Whether a train has left and its answers are still awaited.
    fn awaits(&self, now: Time) -> bool {
        let begun = self.sent() > 0 && self.sent().is_multiple_of(LENGTH);
        let train = &self.flights[self.flights.len().saturating_sub(LENGTH)..];
        begun && train.iter().any(|(_, answered)| answered.is_none()) && now < self.due()
    }
}

/// When the answers to one train came, in order.
fn arrivals(train: &[(Time, Option<Time>)], skipped: usize) -> Vec<Time> {
    let mut times: Vec<Time> = train.iter().skip(skipped).filter_map(|(_, answered)| *answered).collect();
    times.sort_unstable();
    times
}

/// Seconds from one arrival to the next, by the line below each train's; nothing of trains that are too short.
fn slope_below(trains: &[Vec<Time>]) -> Option<f64> {
    let seconds = |times: &Vec<Time>| -> Vec<f64> {
        let first = times.first().copied().unwrap_or_default();
        times.iter().map(|time| time.saturating_sub(first).as_secs_f64()).collect()
    };
    let trains: Vec<Vec<f64>> = trains.iter().filter(|times| times.len() >= FEWEST).map(seconds).collect();
    let longest = trains.iter().filter_map(|times| times.last()).fold(0.0, |most: f64, last| most.max(*last));
    // How far the arrivals lie above the closest line of a slope: convex in the slope.
    let distance = |slope: f64| -> f64 {
        let above = |times: &Vec<f64>| {
            let over = || times.iter().zip(0u32..).map(|(time, number)| time - slope * f64::from(number));
            let least = over().fold(f64::INFINITY, f64::min);
            over().map(|over| over - least).sum::<f64>()
        };
        trains.iter().map(above).sum()
    };
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let (mut from, mut to) = (0.0, longest);
    for _ in 0..80 {
        let (left, right) = (to - golden * (to - from), from + golden * (to - from));
        if distance(left) <= distance(right) { to = right } else { from = left }
    }
    (!trains.is_empty()).then_some(f64::midpoint(from, to))
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
        if between && self.not_before <= self.flights.last().map_or(Time::ZERO, |(sent, _)| *sent) {
            self.not_before = now + PAUSE;
        }
        self.done |= self.sent() >= LENGTH * TRAINS;
        if self.done || self.not_before > now {
            return None;
        }
        self.flights.push((now, None));
        Some(Probe { id, kind: self.kind, ip_len: self.size, ttl: None, flow: 0 })
    }

    fn handle(&mut self, answer: &Answer) {
        let Some(flight) = self.flights.get_mut(answer.id as usize).filter(|flight| flight.1.is_none()) else { return };
        match answer.said {
            Said::Open { sack: true, .. } => self.opened = true,
            Said::Open { .. } | Said::Refused => self.done = true,
            Said::Reached { .. } => {}
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
        let last = self.flights.last().map_or(Time::ZERO, |(sent, _)| *sent);
        if !self.opened {
            return Some(last + Rtt::UNKNOWN);
        }
        Some(if self.awaits(last) { self.due() } else { self.not_before })
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends all trains at `sent_every` over a link that passes one packet each `passes_every`.
    fn measure(kind: Kind, sent_every: Time, passes_every: Time) -> (Train, Time) {
        let mut train = Train::new(kind, 1400);
        let (mut now, mut free) = (Time::ZERO, Time::ZERO);
        let mut pending: Vec<(Time, u32, Said)> = Vec::new();
        while !train.is_done() {
            if let Some(probe) = train.poll_probe(now) {
                let said = if probe.kind == Kind::Syn {
                    Said::Open { mss: None, sack: true }
                } else {
                    Said::Reached { ttl: None }
                };
                free = free.max(now) + passes_every;
                pending.push((free + Time::from_millis(40), probe.id, said));
                now += sent_every;
            } else {
                let answer = pending.iter().map(|(at, ..)| *at).min();
                now = now.max(answer.into_iter().chain(train.wakeup()).min().unwrap_or(now));
                now += if answer.is_none() { Time::from_nanos(1) } else { Time::ZERO };
            }
            for (at, id, said) in pending.extract_if(.., |(at, ..)| *at <= now) {
                train.handle(&Answer { id, at, from: None, said });
            }
        }
        (train, now)
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

    #[test]
    fn packets_held_up_by_a_busy_host_change_nothing() {
        // The host wakes up every millisecond only, and once for ten: all that came meanwhile come at once.
        let gap = 112e-6;
        let train = |from: f64| -> Vec<Time> {
            let times = (0..48).map(|number| from + gap * f64::from(number));
            let woken = times.map(|time| if (0.002..0.004).contains(&(time - from)) { from + 0.004 } else { time });
            woken.map(|time| Time::from_secs_f64((time * 1000.0).ceil() / 1000.0)).collect()
        };
        let slope = slope_below(&[train(0.0403), train(0.2507)]).unwrap();
        assert!((slope / gap - 1.0).abs() < 0.05, "{slope}");
        assert_eq!(slope_below(&[vec![Time::ZERO; 3]]), None);
    }

    #[test]
    fn a_queue_that_holds_a_quarter_of_the_train_is_enough() {
        let mut train = Train::new(Kind::Echo, 1400);
        let gap = Time::from_millis(11);
        for number in 0..LENGTH as u32 {
            let id = train.poll_probe(Time::ZERO).unwrap().id;
            assert_eq!(id, number);
        }
        for id in 0..10 {
            let at = Time::from_millis(40) + gap * (id + 1);
            train.handle(&Answer { id, at, from: None, said: Said::Reached { ttl: None } });
        }
        let found = train.bottleneck().unwrap();
        assert!((found.bps / (1400.0 * 8.0 / 0.011) - 1.0).abs() < 1e-6, "{found:?}");
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
        let mut train = Train::new(Kind::OldSegment, 1400);
        assert!(train.poll_probe(Time::ZERO).is_some() && train.poll_probe(Time::ZERO).is_none());
        assert!(train.poll_probe(Time::from_secs(1)).is_none() && train.is_done());
        assert_eq!(train.bottleneck(), None);
    }
}
