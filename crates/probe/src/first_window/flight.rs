use crate::Time;
use std::time::Duration;

/// More pieces than this aren't kept apart: a server that sends holes without end fills no memory.
const MOST_PIECES: usize = 1024;
/// A copy that comes sooner after new data was duplicated on the way, not retransmitted by a timer.
const LEAST_QUIET: Duration = Duration::from_millis(3);
/// How much later than two round trips and a half a tail loss probe comes at most: two ticks of 10 ms, and a little. What comes
/// still later was held up on the way.
const LATEST: Duration = Duration::from_millis(30);
/// Two ticks of a server's kernel, at 4 ms each, and a little.
const SETTLING: Duration = Duration::from_millis(10);
/// A tail loss probe of Linux comes at least two jiffies after the flight.
const LEAST_PAUSE: Duration = Duration::from_millis(1);
/// An application pauses once before it has what it shall send; who pauses so often writes little by little.
const GAPS: usize = 2;

/// What a server sent while nothing was acknowledged: which bytes, in how many segments.
///
/// Bytes are counted from the first one of the stream. Segments are counted as they arrive; holes are filled with as many
/// of the largest size as they take.
///
/// # Source
/// tcp(7) and ip-route(8): Linux counts its congestion window and `initcwnd` in segments, whatever their length.
#[derive(Debug, Clone)]
pub struct Flight {
    /// The MSS that was offered, bytes.
    offered: u32,
    rtt: Duration,
    /// How long the first answer took.
    answer: Duration,
    /// Whether the server may send tail loss probes: only with SACK it does.
    probing: bool,
    /// Disjoint ranges in order.
    ranges: Vec<(u32, u32)>,
    segments: u32,
    max_segment: u32,
    /// How often that length came.
    longest: u32,
    last_new: Option<Time>,
    /// Where the stream ends, if a FIN was seen.
    fin: Option<u32>,
    /// How far the server says it has sent, by the sequence number of what carries no data.
    said: u32,
    /// Whether the last new segment was as long as the longest one.
    full: bool,
    /// What came after the last pause.
    late: Option<Late>,
    /// Whether we have said something since something new came.
    spoken: bool,
    /// The longest pauses before new segments, but for the last one's and those that our own words explain.
    gaps: [Duration; GAPS],
    /// The pause before the last new segment; zero where it answers us.
    last_gap: Duration,
    /// When the server began again.
    again: Option<Time>,
}

/// What came after a pause.
#[derive(Debug, Clone, Copy)]
struct Late {
    /// The first byte.
    start: u32,
    /// How many segments.
    count: u32,
    /// How many there were before.
    first: u32,
    pause: Duration,
    /// Whether the segment before the pause was a full one.
    after_full: bool,
}

/// What an arrival means for the flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArrivalKind {
    /// Something new.
    New,
    /// Nothing new, and nothing follows from it.
    Copy,
    /// The first segment once more, after a pause: the server's retransmission timer has fired and the flight is over.
    Again,
}

impl Flight {
    /// Nothing yet, from a server that was offered this MSS (bytes) and has answered after `rtt`;
    /// `probing` if SACK was agreed to, so that it may send a tail loss probe.
    #[must_use]
    pub fn new(offered: u16, rtt: Duration, probing: bool) -> Self {
        Self {
            offered: u32::from(offered.max(1)),
            rtt,
            answer: Duration::ZERO,
            probing,
            ranges: Vec::new(),
            segments: 0,
            max_segment: 0,
            longest: 0,
            last_new: None,
            fin: None,
            said: 0,
            full: false,
            late: None,
            spoken: false,
            gaps: [Duration::ZERO; GAPS],
            last_gap: Duration::ZERO,
            again: None,
        }
    }

    /// We have said something: what comes next is its answer, and may take its time.
    pub fn spoke(&mut self) {
        self.spoken = true;
    }

    /// The path's round trip took so long, as is known only now.
    pub fn set_rtt(&mut self, rtt: Duration) {
        self.rtt = rtt;
    }

    /// The first answer took so long from the request on: at least as long as the server found its round trip, which our own
    /// delays are part of.
    pub fn answered(&mut self, after: Duration) {
        self.answer = after;
    }

    /// The server's round trip at most.
    fn slow(&self) -> Duration {
        self.rtt.max(self.answer)
    }

    /// Takes a packet's payload of `len` bytes from byte `start`. `unit` is the size of the segments of which the network
    /// device has merged it, if it has; else it is one segment, however long: some servers send no segments shorter than
    /// 536 bytes, whatever they are offered. What may have been `pushed` is no tail loss probe.
    pub fn arrive(&mut self, at: Time, start: u32, len: u32, unit: Option<u16>, pushed: bool) -> ArrivalKind {
        let end = start.saturating_add(len);
        let unit = unit.map_or(len, u32::from).max(1);
        let pause = self.last_new.map(|last| at.saturating_sub(last));
        let new = self.add(start, end);
        let quiet = pause.is_some_and(|pause| pause >= LEAST_QUIET.max(self.rtt / 4));
        if start == 0 && quiet {
            self.again = self.again.or(Some(at));
        }
        if new == 0 {
            return if start == 0 && quiet { ArrivalKind::Again } else { ArrivalKind::Copy };
        }
        let count = new.div_ceil(unit);
        self.segments = self.segments.saturating_add(count);
        let length = unit.min(len);
        if length > self.max_segment {
            (self.max_segment, self.longest) = (length, 0);
        }
        self.longest = self.longest.saturating_add(if length == self.max_segment { count } else { 0 });
        // The first segment got lost, and this is its second copy.
        if start == 0 && quiet {
            self.last_new = Some(at);
            return ArrivalKind::Again;
        }
        self.wait(at);
        self.last_new = Some(at);
        let alone = pause.filter(|pause| !pushed && *pause >= LEAST_PAUSE.max(self.rtt + self.rtt / 2));
        self.late = match (alone, self.late) {
            // Only the last pause counts: a handshake may have others.
            (Some(pause), _) => Some(Late { start, count, first: self.segments - count, pause, after_full: self.full }),
            (None, Some(late)) => Some(Late { count: late.count.saturating_add(count), ..late }),
            (None, None) => None,
        };
        self.full = length == self.max_segment && len.is_multiple_of(unit);
        ArrivalKind::New
    }

    /// Something new has come, and isn't the first copy of a flight that began again.
    fn wait(&mut self, at: Time) {
        let answers = std::mem::take(&mut self.spoken);
        let gap = self.last_new.filter(|_| !answers).map_or(Duration::ZERO, |last| at.saturating_sub(last));
        let before = std::mem::replace(&mut self.last_gap, gap);
        if let Some(shortest) = self.gaps.iter_mut().min().filter(|shortest| **shortest < before) {
            *shortest = before;
        }
    }

    /// Whether the application writes little by little: it paused several times, and then for not much longer than before. So
    /// it may have been its pause, not the window, that a tail loss probe or the retransmission timer came after.
    #[must_use]
    pub fn is_trickled(&self) -> bool {
        let probed = self.probe().and(self.late).map(|late| late.pause);
        let again = || self.again.zip(self.last_new).map(|(again, last)| again.saturating_sub(last));
        let Some(silence) = probed.or_else(again) else { return false };
        // The gap before a probe is the silence.
        let last = if probed.is_some() { Duration::ZERO } else { self.last_gap };
        let pauses = self.gaps.iter().chain([&last]).filter(|gap| **gap >= LEAST_QUIET && **gap * 2 > silence);
        pauses.count() >= GAPS
    }

    /// A FIN after byte `end`.
    pub fn finish(&mut self, end: u32) {
        self.fin = Some(self.fin.map_or(end, |fin| fin.min(end)));
    }

    /// What carries no data says that so many bytes have been sent.
    pub fn say(&mut self, sent: u32) {
        self.said = self.said.max(sent);
    }

    /// The one segment that came alone and last, if it did: a tail loss probe, for which the window made no room. Gives
    /// its first byte: all before was the flight.
    ///
    /// # Source
    /// RFC 8985 section 7: after two round trips without an acknowledgement a sender with SACK sends one segment more.
    #[must_use]
    pub fn probe(&self) -> Option<u32> {
        let late = self.late.filter(|late| self.probing && late.count == 1 && late.start > 0)?;
        // One segment alone is waited for as long as its acknowledgement may be held back; other probes come in time.
        let in_time = late.pause <= self.slow() * 5 / 2 + LATEST || late.first == 1;
        if !in_time {
            return None;
        }
        (late.start >= self.before_late()).then_some(late.start)
    }

    /// Whether a tail loss probe came after a full segment: a short one is the end of what an application had written, and may be
    /// followed by its next words instead.
    #[must_use]
    pub fn is_cut(&self) -> bool {
        self.probe().is_some() && self.late.is_some_and(|late| late.after_full)
    }

    /// How long to wait for others after what may be a tail loss probe. If it was the window's last segment, held up on the
    /// way or by the application, then the real probe comes two round trips and two ticks later; but who was held up for
    /// longer than that is overtaken by nobody, and no application pauses after a full segment.
    #[must_use]
    pub fn settling(&self) -> Duration {
        let whole = SETTLING + self.slow() * 5 / 2;
        if self.late.is_some_and(|late| late.after_full && late.pause >= whole) { SETTLING } else { whole }
    }

    /// The end of what came before the late segment.
    fn before_late(&self) -> u32 {
        let start = self.late.map_or(u32::MAX, |late| late.start);
        self.ranges.iter().map(|range| if range.0 < start { range.1.min(start) } else { 0 }).max().unwrap_or(0)
    }

    /// How many of the segments may be a tail loss probe that couldn't be told apart.
    #[must_use]
    pub fn spare(&self) -> u32 {
        u32::from(self.probing && self.probe().is_none() && self.segments() > 1)
    }

    /// Whether everything that the server says it has sent was seen, as far as the end is concerned.
    #[must_use]
    pub fn has_tail(&self) -> bool {
        self.said <= self.ranges.last().map_or(0, |range| range.1)
    }

    /// How many bytes have been sent, as far as is known; without a tail loss probe.
    #[must_use]
    pub fn bytes(&self) -> u32 {
        let seen = self.ranges.last().map_or(0, |range| range.1);
        let sent = self.probe().unwrap_or_else(|| seen.max(self.said));
        // A FIN takes a number, but no byte.
        self.fin.map_or(sent, |fin| sent.min(fin))
    }

    /// How many segments that was; without a tail loss probe.
    #[must_use]
    pub fn segments(&self) -> u32 {
        let bytes = self.bytes();
        let (mut at, mut count) = (0, self.segments);
        if self.probe().is_some() {
            count = count.saturating_sub(1);
        }
        // A length that came once may be that of a short one; then holes are counted as if segments were as long as was
        // allowed, so that there are never too many.
        let unit = if self.longest > 1 { self.max_segment } else { self.max_segment.max(self.offered) };
        let unit = unit.max(1);
        for (start, end) in self.ranges.iter().filter(|range| range.0 < bytes) {
            count = count.saturating_add((start - at).div_ceil(unit));
            at = *end;
        }
        // One number behind all data may be a FIN that got lost.
        let tail = bytes.saturating_sub(at);
        if tail > 1 { count.saturating_add(tail.div_ceil(unit)) } else { count }
    }

    /// The longest segment, bytes of payload; 0 if there was none.
    #[must_use]
    pub fn max_segment(&self) -> u32 {
        self.max_segment
    }

    /// Whether the server has said that there is no more.
    #[must_use]
    pub fn finished(&self) -> bool {
        self.fin.is_some()
    }

    /// When something new came last.
    #[must_use]
    pub fn last_new(&self) -> Option<Time> {
        self.last_new
    }

    /// How many new bytes the range has, which it joins to what is there.
    fn add(&mut self, start: u32, end: u32) -> u32 {
        if end <= start {
            return 0;
        }
        let first = self.ranges.partition_point(|range| range.1 < start);
        let last = self.ranges.partition_point(|range| range.0 <= end);
        let touched = &self.ranges[first..last];
        let old: u32 = touched.iter().map(|range| range.1.min(end).saturating_sub(range.0.max(start))).sum();
        let new = (end - start).saturating_sub(old);
        if touched.is_empty() && self.ranges.len() >= MOST_PIECES {
            return 0;
        }
        let low = touched.first().map_or(start, |range| range.0.min(start));
        let high = touched.last().map_or(end, |range| range.1.max(end));
        self.ranges.splice(first..last, [(low, high)]);
        new
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const RTT: Duration = Duration::from_millis(40);

    fn ms(ms: u64) -> Time {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_short_first_segment_counts_as_one() {
        let mut flight = Flight::new(1240, RTT, true);
        flight.arrive(ms(80), 0, 260, None, false);
        for i in 0..9 {
            assert_eq!(flight.arrive(ms(81), 260 + i * 1240, 1240, None, false), ArrivalKind::New);
        }
        assert_eq!(flight.arrive(ms(320), 0, 260, None, false), ArrivalKind::Again);
        assert_eq!((flight.segments(), flight.bytes(), flight.max_segment()), (10, 260 + 9 * 1240, 1240));
    }

    #[test]
    fn merged_packets_count_as_their_segments() {
        let mut flight = Flight::new(1240, RTT, true);
        flight.arrive(ms(80), 0, 536 * 9 + 100, Some(536), false);
        assert_eq!(flight.segments(), 10);
        let mut longer = Flight::new(64, RTT, true);
        for i in 0..3 {
            longer.arrive(ms(80), i * 536, 536, None, false);
        }
        assert_eq!((longer.segments(), longer.max_segment()), (3, 536), "longer than was offered");
    }

    #[test]
    fn holes_count_as_the_segments_that_fill_them() {
        let mut flight = Flight::new(1000, RTT, true);
        flight.arrive(ms(80), 1260, 1000, None, false);
        flight.arrive(ms(80), 4260, 1000, None, false);
        assert_eq!(flight.segments(), 2 + 2 + 2);
        assert_eq!(flight.arrive(ms(320), 0, 260, None, false), ArrivalKind::Again, "its first copy got lost");
        assert_eq!(flight.segments(), 6);
        flight.say(7260);
        assert_eq!((flight.segments(), flight.bytes()), (8, 7260), "the tail got lost");
    }

    #[test]
    fn a_copy_made_on_the_way_ends_no_flight() {
        let mut flight = Flight::new(1000, RTT, true);
        flight.arrive(ms(80), 0, 1000, None, false);
        assert_eq!(flight.arrive(ms(81), 0, 1000, None, false), ArrivalKind::Copy);
        flight.arrive(ms(82), 1000, 1000, None, false);
        assert_eq!(flight.arrive(ms(200), 1000, 1000, None, false), ArrivalKind::Copy, "not the first");
    }

    #[test]
    fn a_tail_loss_probe_is_no_part_of_the_flight_but_tells_its_end() {
        let mut flight = Flight::new(64, RTT, true);
        for i in 0..9 {
            flight.arrive(ms(80), i * 64, 64, None, false);
        }
        assert_eq!(flight.probe(), None);
        // The tenth got lost; the eleventh is the probe.
        flight.arrive(ms(165), 640, 64, None, false);
        assert_eq!((flight.probe(), flight.segments(), flight.bytes()), (Some(640), 10, 640));
        flight.arrive(ms(166), 704, 64, None, false);
        assert_eq!(flight.probe(), None, "two are no probe");
        let mut short = Flight::new(1151, Duration::from_millis(60), true);
        for (at, start, len) in [(130, 0, 78), (130, 78, 1139), (130, 1217, 101), (280, 1318, 1139)] {
            short.arrive(ms(at), start, len, None, false);
        }
        assert_eq!((short.probe(), short.is_cut()), (Some(1318), false), "the application had paused");
        let mut without = Flight::new(64, RTT, false);
        without.arrive(ms(80), 0, 64, None, false);
        without.arrive(ms(165), 64, 64, None, false);
        assert_eq!((without.probe(), without.segments()), (None, 2), "nobody probes without SACK");
    }

    #[test]
    fn a_pause_within_a_handshake_hides_no_probe() {
        let mut flight = Flight::new(1240, RTT, true);
        for (at, start) in [(80, 0), (180, 1240), (181, 2480), (265, 3720)] {
            flight.arrive(ms(at), start, 1240, None, false);
        }
        assert_eq!((flight.probe(), flight.segments(), flight.spare()), (Some(3720), 3, 0));
        flight.arrive(ms(266), 4960, 1240, None, false);
        assert_eq!((flight.probe(), flight.segments(), flight.spare()), (None, 5, 1));
    }

    #[test]
    fn who_writes_little_by_little_was_stopped_by_nothing_that_shows() {
        let trickled = |times: &[u64], again: Option<u64>| {
            let mut flight = Flight::new(64, Duration::from_millis(20), true);
            for (i, at) in (0u32..).zip(times) {
                flight.arrive(ms(*at), i * 60, 60, None, false);
            }
            again.into_iter().for_each(|at| assert_eq!(flight.arrive(ms(at), 0, 60, None, false), ArrivalKind::Again));
            flight.is_trickled()
        };
        // What comes last isn't longer waited for than what came before: a piece more, not the kernel's probe.
        assert!(trickled(&[20, 70, 120, 170], None));
        assert!(trickled(&[20, 70, 120, 170, 220], Some(240)), "the timer came between two pieces");
        assert!(!trickled(&[20, 30, 40, 50, 95], None), "the window was full, and a probe came");
        assert!(!trickled(&[20, 70, 120], Some(240)), "the window was full");
        assert!(!trickled(&[20, 100, 101, 102, 145], None), "one pause is that of a program that begins");
        assert!(!trickled(&[20, 20, 21, 21], Some(240)));
        let mut answered = Flight::new(64, Duration::from_millis(20), true);
        for (i, at) in (0u32..).zip([20, 70, 120, 170]) {
            answered.arrive(ms(at), i * 60, 60, None, false);
            answered.spoke();
        }
        assert!(!answered.is_trickled(), "each was waited for as long as our own words took");
    }

    #[test]
    fn a_fin_is_neither_a_byte_nor_a_segment() {
        let mut flight = Flight::new(1000, RTT, true);
        flight.arrive(ms(80), 0, 400, None, false);
        flight.say(401);
        assert_eq!((flight.segments(), flight.finished()), (1, false));
        flight.finish(400);
        assert_eq!((flight.segments(), flight.bytes(), flight.finished()), (1, 400, true));
    }

    proptest! {
        #[test]
        fn pieces_in_any_order_and_number_are_counted_once(
            order in Just((0..64u32).collect::<Vec<_>>()).prop_shuffle(), copies in 0..64usize
        ) {
            let mut flight = Flight::new(500, RTT, true);
            for i in order.iter().chain(&order[..copies]) {
                flight.arrive(ms(80), i * 500, 500, None, false);
            }
            prop_assert_eq!((flight.segments(), flight.bytes()), (64, 32_000));
        }

        #[test]
        fn whatever_a_server_sends_memory_is_bounded(
            pieces in prop::collection::vec((any::<u32>(), any::<u16>(), any::<Option<u16>>()), 0..3000)
        ) {
            let mut flight = Flight::new(64, RTT, true);
            for (i, (start, len, unit)) in pieces.iter().enumerate() {
                flight.arrive(ms(i as u64), *start, u32::from(*len), *unit, false);
            }
            prop_assert!(flight.ranges.len() <= MOST_PIECES);
            prop_assert!(flight.ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
            let _ = (flight.segments(), flight.bytes(), flight.probe());
        }
    }
}
