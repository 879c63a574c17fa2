//! The largest packet that comes back: the target is asked to send, with another maximum segment size on every connection.
//!
//! A target fills its segments up to the MSS that it was offered and forbids fragments, so the largest segment that
//! arrives tells which packets the way back lets pass. Where routers there say what is too long, the target adapts and one
//! connection tells all; where they don't, only those arrive that are small enough.
//!
//! # What this leaves out
//! Targets whose answers are shorter than a packet, and those whose MSS is lowered on the way: nothing longer ever comes.

use std::collections::BTreeMap;

/// Connections at once.
const FAN_OUT: usize = 12;
/// Rounds of connections at most.
const MOST_ROUNDS: u32 = 7;

/// Nothing further behind the first byte is looked at: more than a window of it never comes.
const FURTHEST: u32 = 1 << 20;
/// No more segments of a connection are looked at.
const MOST_SEGMENTS: usize = 256;

/// One connection.
#[derive(Debug, Clone, Default)]
struct Try {
    mss: u16,
    /// Segments by length.
    segments: BTreeMap<u16, u32>,
    /// What has arrived: how many bytes from where on.
    arrived: BTreeMap<u32, u16>,
    /// Where the data ends, if the target has said so.
    end: Option<u32>,
}

impl Try {
    fn largest(&self) -> u16 {
        self.segments.last_key_value().map_or(0, |(size, _)| *size)
    }

    fn is_full(&self) -> bool {
        self.largest() == self.mss
    }

    /// Up to where something has arrived.
    fn reach(&self) -> u32 {
        self.arrived.iter().map(|(at, len)| at.saturating_add(u32::from(*len))).max().unwrap_or(0)
    }

    /// Up to where everything has arrived.
    fn joined(&self) -> u32 {
        let join = |end: u32, (at, len): (&u32, &u16)| {
            if *at <= end { end.max(at.saturating_add(u32::from(*len))) } else { end }
        };
        self.arrived.iter().fold(0, join)
    }

    /// Whether all that the target had to send has arrived.
    fn is_complete(&self) -> bool {
        self.end == Some(self.joined())
    }

    /// Whether this shows that nothing longer than `low` comes: longer segments got lost, or it was sent in several of just
    /// that length. A target that only wrote its answer in pieces leaves no gap, and one segment of a length.
    fn refutes(&self, low: u16) -> bool {
        let gap = self.joined() < self.reach() || self.reach() == 0;
        !self.is_full() && (gap || self.segments.get(&low).is_some_and(|count| *count >= 2))
    }

    /// The length to which the target has shortened its segments.
    fn adapted(&self) -> Option<u16> {
        let (size, count) = self.segments.last_key_value()?;
        (*size < self.mss && *count >= 2).then_some(*size)
    }
}

/// The search for the largest packet that comes back.
#[derive(Debug, Clone)]
pub struct Reverse {
    headers: u16,
    max: u16,
    tries: Vec<Try>,
    rounds: u32,
}

impl Reverse {
    /// A search on a path whose packets have so many bytes of IP and TCP headers, with an MSS of at most `max`.
    #[must_use]
    pub const fn new(headers: u16, max: u16) -> Self {
        Self { headers, max, tries: Vec::new(), rounds: 0 }
    }

    /// A connection has been opened with this MSS; gives its number.
    pub fn open(&mut self, mss: u16) -> usize {
        self.tries.push(Try { mss, ..Try::default() });
        self.tries.len() - 1
    }

    /// A segment has arrived on a connection: its payload lies so far behind the first byte. Longer ones than were asked
    /// for are nobody's.
    pub fn segment(&mut self, connection: usize, at: u32, len: u16) {
        let Some(known) =
            self.tries.get_mut(connection).filter(|known| (1..=known.mss).contains(&len) && at < FURTHEST)
        else {
            return;
        };
        let new = known.arrived.len() < MOST_SEGMENTS && known.arrived.insert(at, len) != Some(len);
        if new {
            *known.segments.entry(len).or_default() += 1;
        }
    }

    /// The target says that its data ends so far behind the first byte.
    pub fn end(&mut self, connection: usize, at: u32) {
        if let Some(known) = self.tries.get_mut(connection) {
            known.end = Some(at);
        }
    }

    /// The MSS of each connection of the next round, which may be equal; none when all is said that can be.
    #[must_use]
    pub fn next_round(&mut self, forward: Option<u16>) -> Vec<u16> {
        self.rounds += 1;
        let least = 536.min(self.max);
        let forward = forward.map(|pmtu| pmtu.saturating_sub(self.headers)).filter(|mss| *mss <= self.max);
        if self.rounds > MOST_ROUNDS || self.decided(forward).is_some() {
            return Vec::new();
        }
        let low = self.low();
        // The answer ends before it fills a segment.
        let whole = self.tries.iter().any(|at| at.is_complete() && at.reach() < u32::from(at.mss));
        let short = self.tries.iter().any(|at| at.mss == least) && self.reach() < u32::from(least);
        if whole || short {
            return Vec::new();
        }
        if low < least {
            // Next to nothing has come: small ones may.
            let next = forward.map(|mss| (mss + 1).min(self.max));
            return [Some(least), forward, next, next].into_iter().flatten().collect();
        }
        let high = self.high(low);
        if high == low + 1 {
            return vec![low, high];
        }
        let gap = usize::from(high - low - 1);
        // Most paths are alike both ways.
        let guess = forward.filter(|mss| *mss > low && *mss < high && self.tries.iter().all(|at| at.mss != *mss));
        if let Some(mss) = guess {
            return vec![mss, mss + 1, mss + 1];
        }
        let step = |part| if gap <= FAN_OUT { part } else { part * gap / (FAN_OUT + 1) };
        (1..=gap.min(FAN_OUT)).map(|part| low + u16::try_from(step(part)).unwrap_or(1)).collect()
    }

    /// The largest packet that comes back, bytes, if it is clear; `forward` is the largest that gets there.
    #[must_use]
    pub fn pmtu(&self, forward: Option<u16>) -> Option<u16> {
        let forward = forward.map(|pmtu| pmtu.saturating_sub(self.headers));
        self.decided(forward).map(|mss| mss + self.headers)
    }

    /// Whether longer packets than [`pmtu`](Self::pmtu) vanish on their way back and nobody tells the target: none of its answers was sent
    /// anew in shorter segments, and of two or more there was nothing, or gaps.
    #[must_use]
    pub fn is_hole(&self, forward: Option<u16>) -> bool {
        let low = self.low();
        let longer = || self.tries.iter().filter(|at| at.mss > low && !at.is_complete());
        let is_gone = |at: &&Try| at.joined() < at.reach() || at.reach() == 0;
        low < self.max
            && self.pmtu(forward).is_some()
            && longer().all(|at| at.adapted() != Some(low))
            && longer().filter(is_gone).count() >= 2
    }

    fn reach(&self) -> u32 {
        self.tries.iter().map(Try::reach).max().unwrap_or(0)
    }

    fn low(&self) -> u16 {
        self.tries.iter().map(Try::largest).max().unwrap_or(0)
    }

    /// The smallest MSS that wasn't used up; one more than the largest if there is none.
    fn high(&self, low: u16) -> u16 {
        let unfilled = self.tries.iter().filter(|at| at.mss > low && !at.is_full()).map(|at| at.mss);
        unfilled.min().unwrap_or(self.max + 1)
    }

    fn decided(&self, forward: Option<u16>) -> Option<u16> {
        let low = self.low();
        if low == 0 {
            return None;
        }
        if low == self.max {
            return Some(low);
        }
        // As much data as doesn't fit into one such segment must have been there to send.
        let plenty = self.reach() > u32::from(low);
        let adapted = self.tries.iter().any(|at| at.mss == self.max && at.adapted() == Some(low));
        let refuted = self.tries.iter().filter(|at| at.mss == low + 1 && at.refutes(low)).count() >= 2;
        let filled = self.tries.iter().any(|at| at.mss == low && at.is_full());
        (plenty && (adapted && forward == Some(low) || filled && refuted)).then_some(low)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A target that has so many bytes to send over a way back of this MTU.
    fn ask(pmtu: u16, says_so: bool, bytes: u32, forward: u16) -> (Option<u16>, u32, usize) {
        let (reverse, rounds) = asked(pmtu, says_so, bytes, forward);
        (reverse.pmtu(Some(forward)), rounds, reverse.tries.len())
    }

    /// The same, with what was learnt and how many rounds it took.
    fn asked(pmtu: u16, says_so: bool, bytes: u32, forward: u16) -> (Reverse, u32) {
        let mut reverse = Reverse::new(40, 1460);
        let mut round = vec![1460];
        let mut rounds = 0;
        while !round.is_empty() {
            rounds += 1;
            for mss in round {
                let number = reverse.open(mss);
                let most = if says_so { mss.min(pmtu - 40) } else { mss };
                let mut at = 0;
                while at < bytes {
                    let len = (bytes - at).min(u32::from(most)) as u16;
                    if len + 40 <= pmtu {
                        reverse.segment(number, at, len);
                        reverse.segment(number, at, len);
                    }
                    at += u32::from(len);
                }
                reverse.end(number, bytes);
            }
            round = reverse.next_round(Some(forward));
        }
        (reverse, rounds)
    }

    #[test]
    fn a_way_back_is_a_hole_where_longer_packets_vanish_and_no_router_says_so() {
        for (pmtu, forward) in [(1400, 1500), (1400, 1400), (1492, 1500), (1400, 1300)] {
            assert!(asked(pmtu, false, 10_000, forward).0.is_hole(Some(forward)), "{pmtu}, {forward}");
            assert!(!asked(pmtu, true, 10_000, forward).0.is_hole(Some(forward)), "{pmtu}, {forward}: routers speak");
        }
        assert!(!asked(1500, false, 10_000, 1500).0.is_hole(Some(1500)), "nothing is too long");
        assert!(!asked(1400, false, 300, 1500).0.is_hole(Some(1500)), "nothing longer was sent");
    }

    #[test]
    fn a_way_back_like_the_way_there_takes_one_connection_where_routers_speak() {
        assert_eq!(ask(1400, true, 10_000, 1400), (Some(1400), 1, 1));
        assert_eq!(ask(1500, true, 10_000, 1500), (Some(1500), 1, 1));
        assert_eq!(ask(1500, true, 10_000, 1400), (Some(1500), 1, 1));
    }

    #[test]
    fn any_size_is_found_exactly_whatever_routers_say() {
        for pmtu in 576..=1500 {
            for says_so in [true, false] {
                for forward in [pmtu, 1500, 1400] {
                    let (found, rounds, connections) = ask(pmtu, says_so, 10_000, forward);
                    assert_eq!(found, Some(pmtu), "{says_so}, forward {forward}");
                    assert!(rounds <= 7 && connections <= 48, "{pmtu}: {rounds} rounds, {connections} connections");
                }
            }
        }
    }

    #[test]
    fn a_black_hole_back_like_the_one_there_takes_three_rounds() {
        let (found, rounds, connections) = ask(1400, false, 10_000, 1400);
        assert_eq!(found, Some(1400));
        assert!(rounds <= 3 && connections <= 16, "{rounds} {connections}");
    }

    #[test]
    fn an_answer_that_was_written_in_pieces_says_nothing_where_it_fills_no_segment() {
        let mut reverse = Reverse::new(40, 8960);
        let mut round = vec![8960];
        while !round.is_empty() {
            for mss in round {
                let number = reverse.open(mss);
                let mut at = 0;
                for piece in [6142u32, 3071] {
                    let mut left = piece;
                    while left > 0 {
                        let len = left.min(u32::from(mss));
                        reverse.segment(number, at, len as u16);
                        (at, left) = (at + len, left - len);
                    }
                }
            }
            round = reverse.next_round(Some(9000));
        }
        assert_eq!(reverse.pmtu(Some(9000)), None);
    }

    #[test]
    fn short_answers_say_nothing() {
        assert_eq!(ask(1500, true, 300, 1500), (None, 1, 1), "the whole answer has come");
        assert_eq!(ask(1400, false, 900, 1400).0, None);
        assert_eq!(ask(1400, true, 0, 1400), (None, 1, 1));
    }
}
