use super::reading::{End, Reading};
use crate::Time;
use std::time::Duration;

/// Nothing comes sooner after new data than this but what was under way with them.
const LEAST_PAUSE: Duration = Duration::from_millis(3);
/// After so long without anything, or half a round trip, what follows an acknowledgement is its consequence.
const QUIET: Duration = Duration::from_millis(5);
/// A tail loss probe comes two round trips and two ticks of the kernel (of 4 ms mostly) after the flight: later than this.
const PROBE_PAUSE: Duration = Duration::from_millis(4);
/// From this RTT on the delayed acknowledgement leaves before a tail loss probe comes.
const LONG: Duration = Duration::from_millis(20);
/// How long a server may think before it sends something.
const THINKING: Duration = Duration::from_secs(5);
/// How long more may take after the flight, beside the delayed acknowledgement.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Timestamps take so many bytes of every segment.
const TIMESTAMP: u32 = 12;

/// What the kernel has counted of a connection's arrivals so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Segments with data; fewer where the kernel got them merged.
    pub segments: u32,
    /// Bytes in order.
    pub bytes: u32,
    /// Segments that this end has sent: one more is the kernel's acknowledgement.
    pub sent: u32,
    /// The shortest round trip so far; zero if that isn't known.
    pub rtt: Duration,
    /// Whether some came out of order, so that the kernel has acknowledged at once.
    pub disordered: bool,
    /// Whether the server has ended the connection.
    pub ended: bool,
}

/// How a connection was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpenedConnection {
    /// The MSS that was offered, bytes.
    pub mss: u16,
    /// Whether each segment has timestamps.
    pub timestamps: bool,
    /// The round trip time of the handshake.
    pub rtt: Duration,
    /// How much this end's kernel lets the server send at once, bytes.
    pub window: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Waiting,
    Flying,
    /// The flight is over; whether there is more shows when the kernel has acknowledged.
    Over {
        deadline: Time,
    },
    Done,
    /// Something went wrong, and nothing can be said.
    Missed,
}

/// A flight as a kernel's own TCP sees it: the request is sent, nothing is read, and the kernel holds its acknowledgement
/// back, mostly for 40 ms. Whatever comes until a round trip after that acknowledgement is the first window, but for one
/// segment that comes alone and two round trips later: the server's tail loss probe (RFC 8985 section 7.2). So it doesn't
/// matter that a path pauses.
///
/// This leaves out: what a lost segment hides. A hole makes the kernel acknowledge at once, so a connection on which
/// something came out of order says nothing. That holds after the flight, too, which shows a tail that got lost.
///
/// # Source
/// tcp(7), `TCP_QUICKACK`; `tcp_send_delayed_ack()` in net/ipv4/tcp_output.c of Linux.
#[derive(Debug, Clone)]
pub struct DelayedAnswer {
    opened: OpenedConnection,
    begun: Time,
    state: State,
    looked: Time,
    /// What is of the flight, as far as the round trip time is known: on a busy host that is an upper bound.
    counts: Counts,
    /// What came while the kernel hadn't acknowledged anything: that is of the flight for certain.
    certain: Counts,
    /// What else has come, if it may be a tail loss probe.
    probe: Option<Counts>,
    /// When the kernel hadn't acknowledged anything yet, for the last time.
    unacked: Time,
    acked: bool,
    grown: Time,
    more: bool,
}

impl DelayedAnswer {
    /// The request has been sent at `now`.
    #[must_use]
    pub fn new(opened: OpenedConnection, now: Time) -> Self {
        Self {
            opened,
            begun: now,
            state: State::Waiting,
            looked: now,
            counts: Counts::default(),
            certain: Counts::default(),
            probe: None,
            unacked: now,
            acked: false,
            grown: now,
            more: false,
        }
    }

    /// Looks at what the kernel has counted; to be called every fraction of a millisecond. Whether it is done.
    pub fn see(&mut self, now: Time, counts: Counts) -> bool {
        let before = std::mem::replace(&mut self.looked, now);
        if counts.rtt > Duration::ZERO {
            self.opened.rtt = self.opened.rtt.min(counts.rtt);
        }
        if counts.disordered && self.state != State::Done {
            self.state = State::Missed;
        }
        let seen = self.probe.unwrap_or(self.counts).bytes;
        if self.state == State::Flying && !self.acked {
            self.acked = counts.sent > self.counts.sent;
            self.unacked = if self.acked { before } else { now };
        }
        match self.state {
            State::Waiting if counts.bytes > 0 => {
                self.state = State::Flying;
                self.grow(now, before, counts);
            }
            State::Waiting if counts.ended || now >= self.begun + THINKING => self.state = State::Done,
            // The request may still be on its way out.
            State::Waiting => (self.counts.sent, self.unacked) = (counts.sent, now),
            // An end that brings nothing is no part of the flight, whenever it comes.
            State::Flying if counts.ended && counts.bytes == seen && self.probe.is_none() => {
                self.counts.ended = true;
                self.state = State::Done;
            }
            State::Flying if counts.bytes > seen || counts.ended => self.grow(now, before, counts),
            State::Flying if self.acked && now >= self.grown + self.pause() => {
                self.state = State::Over { deadline: now + PATIENCE };
            }
            State::Over { .. } if counts.bytes > seen && !counts.ended => {
                self.more = true;
                self.state = State::Done;
            }
            State::Over { deadline } if counts.ended || now >= deadline => self.state = State::Done,
            _ => {}
        }
        matches!(self.state, State::Done | State::Missed)
    }

    /// What it has shown; `None` when nothing can be said, because segments got lost or nobody looked for too long.
    #[must_use]
    pub fn reading(&self) -> Option<Reading> {
        if self.state == State::Missed {
            return None;
        }
        let mss = self.opened.mss;
        let Counts { bytes, .. } = self.counts;
        let full = self.full();
        let least = bytes.div_ceil(full);
        let segments = self.segments(&self.counts);
        // The first is often short, so that there is one more than the bytes need.
        let max_segment = if segments <= least + 1 { full.min(bytes) } else { bytes.div_ceil(segments.max(1)) };
        let end = if bytes > 0 { End::Flight } else { End::NoData };
        let exhausted = bytes > 0 && self.counts.ended;
        let probe = u32::from(segments > 1 && self.may_have_probe());
        let unsure = segments - self.segments(&self.certain).clamp(1.min(segments), segments);
        let spare = probe.max(unsure);
        Some(Reading {
            mss,
            end,
            segments,
            spare,
            firm: spare == 0,
            limited: self.more && self.probe.is_some(),
            bytes,
            max_segment,
            left_over: Some(bytes.saturating_sub(segments.saturating_sub(1) * full)),
            sure: self.more,
            more: self.more,
            exhausted,
            late: false,
            capped: bytes.saturating_add(full) > self.opened.window,
        })
    }

    /// Whether a tail loss probe may be among what was counted: where the server was late or the path held packets up, so
    /// that it came with the flight, and no such probe came apart. On a long path it comes after the acknowledgement.
    fn may_have_probe(&self) -> bool {
        let rtt = self.opened.rtt;
        // The server's RTT may have been shorter than ours on a busy host: only its two ticks are certain.
        let in_time = self.grown < self.begun + rtt + PROBE_PAUSE;
        !in_time && self.probe.is_none() && rtt < LONG
    }

    /// After so long without anything a flight is over, once the kernel has acknowledged it.
    fn pause(&self) -> Duration {
        QUIET.max(self.opened.rtt / 2)
    }

    /// How many segments that were. Where the kernel got segments merged it counts too few; of full ones the bytes tell how many
    /// there were.
    fn segments(&self, counts: &Counts) -> u32 {
        counts.segments.max(counts.bytes.div_ceil(self.full()))
    }

    /// The payload of a full segment, bytes.
    fn full(&self) -> u32 {
        let options = if self.opened.timestamps { TIMESTAMP } else { 0 };
        u32::from(self.opened.mss).saturating_sub(options).max(1)
    }

    /// More has come since `before`.
    fn grow(&mut self, now: Time, before: Time, counts: Counts) {
        let first = self.counts.bytes == 0;
        if first && counts.sent > self.counts.sent {
            (self.acked, self.unacked) = (true, before);
        }
        // What an acknowledgement allows takes a round trip; the handshake's may have been longer than others are.
        let soon = now.saturating_sub(before) < self.opened.rtt / 2 && now < self.unacked + self.opened.rtt / 3;
        let quiet = |since: Time| since.saturating_sub(self.grown);
        let bytes = counts.bytes.saturating_sub(self.counts.bytes);
        let count = bytes.div_ceil(self.full()).max(counts.segments.saturating_sub(self.counts.segments));
        if self.acked && !first && quiet(before) >= self.pause() {
            self.more = !counts.ended;
            self.state = State::Done;
        } else if self.acked && !soon && !(first && count == 1) {
            // Nobody has looked for too long, or the flight goes on for longer than that: they can't be told apart. One segment is of
            // one flight.
            self.state = State::Missed;
        } else if count == 1 && !first && !counts.ended && quiet(now) >= LEAST_PAUSE.max(self.opened.rtt * 3 / 2) {
            self.probe = Some(counts);
        } else {
            self.counts = Counts { sent: self.counts.sent, ..counts };
            if !self.acked {
                self.certain = self.counts;
            }
            (self.probe, self.grown) = (None, now);
            if counts.ended {
                self.state = State::Done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn opened(mss: u16, rtt_ms: u32) -> OpenedConnection {
        OpenedConnection { mss, timestamps: true, rtt: rtt_ms * MS, window: 65_535 }
    }

    fn counts(segments: u32, bytes: u32) -> Counts {
        Counts { segments, bytes, sent: 3, ..Counts::default() }
    }

    /// Looks every 200 µs; `arrivals` are the counts from a time on, in milliseconds. The kernel acknowledges 40 ms after
    /// the first.
    fn watch(opened: OpenedConnection, arrivals: &[(u32, Counts)]) -> Option<Reading> {
        let mut flight = DelayedAnswer::new(opened, Duration::ZERO);
        for tick in 0..60_000u32 {
            let now = Duration::from_micros(200) * tick;
            let known = arrivals.iter().rev().find(|(at, _)| *at * MS <= now).map(|(_, counts)| *counts);
            let acked = arrivals.first().is_some_and(|(at, _)| now >= (*at + 40) * MS);
            let known = known.unwrap_or(counts(0, 0));
            if flight.see(now, Counts { sent: known.sent + u32::from(acked), ..known }) {
                return flight.reading();
            }
        }
        panic!("it never ends");
    }

    #[test]
    fn what_comes_before_the_acknowledgement_is_the_window() {
        for rtt in [1, 10, 40] {
            let arrivals =
                [(rtt, counts(4, 4 * 524)), (rtt + 2, counts(10, 200 + 9 * 524)), (2 * rtt + 42, counts(20, 10_000))];
            let reading = watch(opened(536, rtt), &arrivals).unwrap();
            assert_eq!((reading.segments, reading.bytes, reading.max_segment), (10, 200 + 9 * 524, 524), "{rtt}");
            assert!(reading.sure && reading.more && !reading.exhausted && !reading.capped);
        }
    }

    #[test]
    fn a_path_that_pauses_ends_no_flight_and_a_tail_loss_probe_is_no_part_of_it() {
        for rtt in [1, 10, 40] {
            let paused =
                [(rtt, counts(4, 4 * 524)), (rtt + 25, counts(10, 10 * 524)), (2 * rtt + 42, counts(20, 10_480))];
            assert_eq!(watch(opened(536, rtt), &paused).unwrap().segments, 10, "{rtt}");
        }
        let probed = [(1, counts(10, 10 * 524)), (12, counts(11, 11 * 524)), (45, counts(31, 31 * 524))];
        let reading = watch(opened(536, 1), &probed).unwrap();
        assert_eq!((reading.segments, reading.bytes, reading.more), (10, 10 * 524, true));
    }

    #[test]
    fn merged_segments_count_by_their_bytes_and_small_ones_by_their_number() {
        let merged = [(5, counts(1, 200 + 9 * 524)), (60, counts(12, 9_000))];
        assert_eq!(watch(opened(536, 5), &merged).unwrap().segments, 10);
        let small = [(5, counts(10, 1_000)), (60, counts(20, 2_000))];
        let reading = watch(opened(536, 5), &small).unwrap();
        assert_eq!((reading.segments, reading.max_segment), (10, 100));
    }

    #[test]
    fn a_response_that_ends_has_shown_no_more_than_itself() {
        let ended = Counts { ended: true, ..counts(3, 1_400) };
        for arrivals in
            [vec![(5, ended)], vec![(5, counts(3, 1_400)), (6, ended)], vec![(5, counts(3, 1_400)), (90, ended)]]
        {
            let reading = watch(opened(536, 5), &arrivals).unwrap();
            assert!(!reading.more && !reading.sure && reading.segments == 3, "{reading:?}");
        }
        let nothing = watch(opened(536, 5), &[]).unwrap();
        assert_eq!((nothing.end, nothing.segments), (End::NoData, 0));
    }

    #[test]
    fn an_end_that_brings_nothing_says_nothing_of_what_was_not_looked_at() {
        let mut flight = DelayedAnswer::new(opened(536, 1), Duration::ZERO);
        flight.see(MS, counts(0, 0));
        flight.see(2 * MS, counts(1, 5));
        assert!(flight.see(5 * MS, Counts { ended: true, sent: 4, ..counts(1, 5) }));
        let reading = flight.reading().unwrap();
        assert_eq!((reading.segments, reading.bytes, reading.exhausted), (1, 5, true));
        let mut flight = DelayedAnswer::new(opened(536, 1), Duration::ZERO);
        flight.see(MS, counts(0, 0));
        assert!(flight.see(20 * MS, Counts { ended: true, sent: 4, ..counts(1, 5) }));
        assert_eq!(flight.reading().map(|reading| reading.bytes), Some(5), "one segment is of one flight");
    }

    #[test]
    fn what_got_lost_or_was_not_looked_at_says_nothing() {
        let hole = Counts { disordered: true, ..counts(9, 524) };
        assert_eq!(watch(opened(536, 5), &[(5, hole)]), None);
        assert_eq!(watch(opened(536, 5), &[(5, counts(10, 5_000)), (60, hole)]), None, "the tail got lost");
        let acked = |segments, bytes| Counts { sent: 4, ..counts(segments, bytes) };
        let look = |looks: &[(u32, Counts)]| {
            let mut flight = DelayedAnswer::new(opened(536, 5), Duration::ZERO);
            flight.see(MS, counts(0, 0));
            let done = looks.iter().any(|(at, counts)| flight.see(*at * MS, *counts));
            done.then(|| flight.reading())
        };
        assert_eq!(look(&[(5, counts(4, 2_000)), (9, counts(6, 3_000)), (14, acked(20, 10_000))]), Some(None));
        assert_eq!(look(&[(70, acked(20, 10_000))]), Some(None), "flights can't be told apart");
        let quiet = look(&[(5, counts(4, 2_000)), (40, counts(4, 2_000)), (90, acked(20, 10_000))]).unwrap();
        assert_eq!(quiet.map(|reading| (reading.segments, reading.more)), Some((4, true)), "nothing came for long");
        let late = look(&[
            (5, counts(4, 2_000)),
            (60, counts(10, 5_000)),
            (61, acked(10, 5_000)),
            (70, acked(10, 5_000)),
            (90, acked(20, 9_000)),
        ]);
        assert_eq!(late.unwrap().unwrap().segments, 10, "the kernel hadn't acknowledged");
    }

    #[test]
    fn a_look_that_comes_late_may_have_seen_the_tail_loss_probe_too() {
        let mut flight = DelayedAnswer::new(opened(536, 1), Duration::ZERO);
        flight.see(MS, counts(0, 0));
        flight.see(20 * MS, counts(11, 11 * 524));
        flight.see(42 * MS, Counts { sent: 4, ..counts(11, 11 * 524) });
        assert!(flight.see(60 * MS, Counts { sent: 4, ..counts(31, 31 * 524) }));
        let reading = flight.reading().unwrap();
        assert_eq!((reading.segments, reading.spare, reading.more), (11, 1, true));
    }

    #[test]
    fn what_came_after_the_acknowledgement_may_be_its_consequence_if_the_round_trip_is_shorter_than_it_seemed() {
        let mut flight = DelayedAnswer::new(opened(536, 300), Duration::ZERO);
        let acked = |segments, bytes| Counts { sent: 4, ..counts(segments, bytes) };
        flight.see(MS, counts(0, 0));
        for (at, counts) in
            [(40, counts(3, 1_500)), (80, acked(3, 1_500)), (122, acked(5, 2_500)), (300, acked(5, 2_500))]
        {
            assert!(!flight.see(at * MS, counts), "{at}");
        }
        assert!(flight.see(400 * MS, acked(9, 4_500)));
        let reading = flight.reading().unwrap();
        assert_eq!((reading.segments, reading.spare, reading.firm), (5, 2, false), "three are certain");
    }

    #[test]
    fn what_fills_our_own_window_is_a_lower_bound() {
        let arrivals = [(5, counts(125, 125 * 524)), (80, counts(200, 100_000))];
        assert!(watch(opened(536, 5), &arrivals).unwrap().capped);
    }
}
