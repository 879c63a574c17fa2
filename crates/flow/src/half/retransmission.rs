//! What an end sends that doesn't go on where it ended: it was captured before, sent before, or overtaken on the way.

use super::{Half, KnownTimes, MOST_OUTSTANDING, SentSegment};
use crate::copies::CopyHints;
use crate::packet::Segment;
use std::collections::VecDeque;
use std::ops::Range;
use wt_wire::{Seq, TcpFlags};

/// An answer to a gap comes by so much later than the time from here to its sender and back, at the most.
const FAST_NS: u64 = 20_000_000;
/// Reordering takes no longer than this where the RTT isn't known.
const REORDER_NS: u64 = 3_000_000;
/// Segments that one packet is compared with.
const MOST_OVERLAPPED: usize = 64;
/// Retransmissions of which the receiver may still say that they weren't needed.
const MOST_RECENT: usize = 64;

/// The last retransmissions, as long as the receiver hasn't said that they weren't needed.
#[derive(Debug, Default)]
pub(super) struct RecentRetransmissions(VecDeque<Retransmission>);

/// A retransmission that was taken for the answer to a loss.
#[derive(Debug, Clone, Copy)]
struct Retransmission {
    seq: Seq,
    end: Seq,
    /// Its first byte had passed here before.
    passed: bool,
}

impl Half {
    /// Whether this segment of this end was captured a moment ago, or at another place that the path takes it to.
    pub(crate) fn is_copy(&mut self, rev: &Self, s: &Segment, now: u64, rtt_ns: Option<u64>) -> bool {
        let takes_numbers = s.len > 0 || s.flags.has_any(TcpFlags::SYN | TcpFlags::FIN);
        let is_new = if takes_numbers {
            self.next.is_none_or(|next| next.is_before(s.end()))
        } else {
            self.ack.is_none_or(|ack| ack.is_before(s.ack))
        };
        let apart = if is_new || takes_numbers {
            None
        } else {
            self.lately.apart(self.numbered(), (&rev.lately, rev.numbered()))
        };
        self.lately.is_copy(s, now, is_new, CopyHints { before: self.counts.packets, apart, rtt_ns })
            || takes_numbers && !is_new && self.is_far_copy(s, now)
    }

    /// Its packets that took numbers, about.
    fn numbered(&self) -> u64 {
        self.counts.data_packets + u64::from(self.isn.is_some()) + u64::from(self.fin)
    }

    /// A segment with data that doesn't go on where the last one ended was sent before, or was overtaken.
    pub(super) fn classify(&mut self, rev: &Self, s: &Segment, now: u64, known: &KnownTimes) {
        let Some(next) = self.next.filter(|next| s.seq.is_before(*next)) else { return };
        // It may go on with what is new: its first byte says what it is.
        let end = earlier(s.seq.plus(s.len), next);
        let passed = self.has_passed(rev, s.seq);
        let repeated = self.repeated_of(rev, s.seq, end);
        self.repeated += u64::from(repeated);
        if !passed && repeated == 0 && self.is_overtaken(s, now, known) {
            self.counts.out_of_order += 1;
            return;
        }
        // What ends it is an ACK: nothing does where the other end's packets weren't captured.
        self.recovery = (rev.counts.packets > 0).then_some(next);
        self.counts.retransmissions += 1;
        self.counts.data_retransmissions += u64::from(s.len > 0);
        self.counts.bytes_retransmitted += u64::from(bytes_between(s.seq, end));
        if rev.asks_for(s.seq, end, now, known.back_ns) {
            self.counts.fast_retransmissions += 1;
        } else if s.len > 0 && rev.ack.is_some_and(|ack| !ack.is_before(end)) {
            self.counts.spurious_retransmissions += 1;
            return;
        }
        *self.lost(passed) += 1;
        if s.len > 0 {
            let RecentRetransmissions(recent) = &mut **self.recent.get_or_insert_default();
            if recent.len() >= MOST_RECENT {
                recent.pop_front();
            }
            recent.push_back(Retransmission { seq: s.seq, end, passed });
        }
    }

    /// What counts losses on the side on which a retransmission says that they are.
    fn lost(&mut self, passed: bool) -> &mut u64 {
        if passed { &mut self.counts.lost_after } else { &mut self.counts.lost_before }
    }

    /// The other end says that these bytes arrived twice: what retransmitted them wasn't needed, and nothing was lost.
    ///
    /// # Source
    /// RFC 3708 section 3: a report of a segment that was retransmitted once says so.
    pub(super) fn arrived_twice(&mut self, (mut left, right): (Seq, Seq)) {
        while left.is_before(right) {
            let common = |sent: &Retransmission| sent.seq.is_before(right) && left.is_before(sent.end);
            let Some(RecentRetransmissions(recent)) = self.recent.as_deref_mut() else { return };
            let Some(sent) = recent.iter().position(common).and_then(|place| recent.remove(place)) else { return };
            self.counts.spurious_retransmissions += 1;
            let lost = self.lost(sent.passed);
            *lost = lost.saturating_sub(1);
            left = later(left, sent.end);
        }
    }

    /// Whether this end, the receiver, has said a moment ago that these bytes are missing: by ACKs that repeat one, or by blocks
    /// behind them. `back_ns` is the time from here to the sender and back.
    ///
    /// # Source
    /// RFC 6675 section 2: an ACK with new blocks is a duplicate ACK, whatever its window; and until all that was under way is
    /// acknowledged, each gap is retransmitted in the same recovery. What a timer sets off comes after a silence.
    fn asks_for(&self, seq: Seq, end: Seq, now: u64, back_ns: u64) -> bool {
        if now.saturating_sub(self.ack_at_ns) >= back_ns.saturating_add(back_ns / 4 + FAST_NS) {
            return false;
        }
        let Some(ack) = self.ack.filter(|ack| !seq.is_before(*ack)) else { return false };
        let mut blocks = self.sacks.iter().take(self.sack_count);
        let sacked = blocks.clone().any(|(left, right)| !seq.is_before(*left) && !right.is_before(end));
        let is_gap = blocks.any(|(left, _)| ack.is_before(*left) && !left.is_before(end));
        !sacked && (is_gap || self.duplicates >= 2 && ack == seq)
    }

    /// The first segment behind where this one belongs.
    fn beyond(&self, s: &Segment) -> usize {
        self.outstanding.partition_point(|sent| sent.seq.is_before(s.seq))
    }

    /// Whether a segment that fills a gap was sent before the one that left the gap, and not again: by its timestamp, or because
    /// an answer to the gap comes a round trip after it, wherever the capture is.
    fn is_overtaken(&self, s: &Segment, now: u64, known: &KnownTimes) -> bool {
        let beyond = self.outstanding.get(self.beyond(s));
        match (beyond.and_then(|beyond| beyond.stamp), s.timestamps) {
            (Some(beyond), Some((own, _))) if own != beyond => Seq(own).is_before(Seq(beyond)),
            _ => {
                let open_ns = now.saturating_sub(beyond.map_or(self.next_at_ns, |beyond| beyond.at_ns));
                // Round trips vary: the first one may have been a slow one.
                open_ns < known.rtt_ns().map_or(REORDER_NS, |rtt| rtt / 4 * 3)
            }
        }
    }

    /// Whether the byte with this number passed here before, or was acknowledged.
    fn has_passed(&self, rev: &Self, seq: Seq) -> bool {
        let first = self.outstanding.partition_point(|sent| !seq.is_before(sent.end));
        let waits = self.outstanding.get(first).is_some_and(|sent| !seq.is_before(sent.seq));
        waits || rev.ack.is_some_and(|ack| seq.is_before(ack))
    }

    /// How many of these bytes passed here before, or were acknowledged.
    fn repeated_of(&self, rev: &Self, seq: Seq, end: Seq) -> u32 {
        let acknowledged = rev.ack.map_or(seq, |ack| earlier(later(ack, seq), end));
        let mut bytes = bytes_between(seq, acknowledged);
        let mut at = acknowledged;
        let places = self.overlapping(at, end);
        for sent in self.outstanding.range(places.clone()) {
            let until = earlier(sent.end, end);
            bytes += bytes_between(later(sent.seq, at), until);
            at = later(at, until);
        }
        // Of more than are compared all the rest counts.
        bytes + if places.len() >= MOST_OVERLAPPED { bytes_between(at, end) } else { 0 }
    }

    /// The places of segments that wait for their ACK and have bytes in common with these.
    fn overlapping(&self, seq: Seq, end: Seq) -> Range<usize> {
        let first = self.outstanding.partition_point(|sent| !seq.is_before(sent.end));
        let common =
            self.outstanding.iter().skip(first).take(MOST_OVERLAPPED).take_while(|sent| sent.seq.is_before(end));
        first..first + common.count()
    }

    /// Whether a segment that waits for its ACK is this very packet, at a place with other hops to go.
    fn is_far_copy(&mut self, s: &Segment, now: u64) -> bool {
        let stamp = s.timestamps.map(|(value, _)| value);
        let is_told = s.ident != 0 || stamp.is_some();
        let is_same = |sent: &SentSegment| {
            sent.seq == s.seq && sent.end == s.end() && sent.ident == part_of(s.ident) && sent.stamp == stamp
        };
        let sent = self.outstanding.get(self.beyond(s)).copied().filter(|sent| is_told && is_same(sent));
        sent.is_some_and(|sent| self.lately.is_far_copy(s, sent.hops, now.saturating_sub(sent.at_ns)))
    }

    /// Keeps a segment until it is acknowledged; what of it waits already is noted as sent again.
    pub(super) fn keep(&mut self, s: &Segment, now: u64, room: &mut usize) {
        let end = s.end();
        if s.len > 0 {
            self.last_data_ns = now;
            self.largest_segment = self.largest_segment.max(s.len);
        }
        let stamp = s.timestamps.map(|(value, _)| value);
        let (seq, packet_len, ident, hops) = (s.seq, s.packet_len, part_of(s.ident), s.hops);
        let new = SentSegment { seq, end, at_ns: now, stamp, packet_len, ident, hops, times: 1, shrunk: false };
        // A probe of a closed window waits beyond what counts as sent.
        let sent_until = self.outstanding.back().map(|last| last.end).into_iter().chain(self.next).reduce(later);
        let Some(next) = sent_until.filter(|next| s.seq.is_before(*next)) else {
            return self.wait(new, room);
        };
        let places = self.overlapping(s.seq, end);
        for sent in self.outstanding.range_mut(places.clone()) {
            if sent.seq == s.seq {
                let is_same = sent.times == 1 && sent.end == end && sent.stamp == stamp && sent.ident == ident;
                // Without identification and timestamp a retransmission is no other, but if even its SYN came again.
                let is_sure = s.ident != 0 || stamp.is_some() || self.counts.syn_retransmissions > 0;
                self.same_again += u64::from(is_same && is_sure);
                sent.times = sent.times.saturating_add(1);
                sent.shrunk |= end.is_before(sent.end);
            } else {
                // A part of it was retransmitted.
                sent.times = sent.times.max(2);
            }
        }
        self.fill(SentSegment { end: earlier(end, next), times: 2, ..new }, places, room);
        if next.is_before(end) {
            self.wait(SentSegment { seq: next, ..new }, room);
        }
    }

    /// Puts what of a segment didn't pass here before between those that did and have bytes in common with it, which stand in
    /// these places.
    fn fill(&mut self, sent: SentSegment, mut places: Range<usize>, room: &mut usize) {
        if places.len() >= MOST_OVERLAPPED {
            return;
        }
        let mut at = sent.seq;
        while at.is_before(sent.end) {
            let beyond = self.outstanding.get(places.start).copied();
            let known = beyond.filter(|_| !places.is_empty());
            if let Some(known) = known.filter(|known| !at.is_before(known.seq)) {
                at = later(at, known.end);
                places.start += 1;
                continue;
            }
            let end = known.map_or(sent.end, |known| earlier(known.seq, sent.end));
            if self.outstanding.len() >= MOST_OUTSTANDING || *room == 0 {
                self.overflowed = true;
                return;
            }
            *room -= 1;
            let (at_ns, stamp) = beyond.map_or((sent.at_ns, sent.stamp), |beyond| (beyond.at_ns, beyond.stamp));
            self.outstanding.insert(places.start, SentSegment { seq: at, end, at_ns, stamp, ..sent });
            places = places.start + 1..places.end + 1;
            at = end;
        }
    }

    /// Keeps what was sent for the first time.
    fn wait(&mut self, sent: SentSegment, room: &mut usize) {
        if self.outstanding.len() >= MOST_OUTSTANDING || *room == 0 {
            self.overflowed = true;
            if self.outstanding.pop_front().is_none() {
                return;
            }
            *room += 1;
        }
        *room -= 1;
        self.outstanding.push_back(sent);
    }
}

/// An identification in a byte; of 256 that differ one has the same.
fn part_of(ident: u16) -> u8 {
    let [high, low] = ident.to_be_bytes();
    high ^ low
}

fn earlier(a: Seq, b: Seq) -> Seq {
    if a.is_before(b) { a } else { b }
}

fn later(a: Seq, b: Seq) -> Seq {
    if a.is_before(b) { b } else { a }
}

/// From one number to another; 0 if that is no later.
fn bytes_between(from: Seq, to: Seq) -> u32 {
    u32::try_from(to.since(from)).unwrap_or(0)
}
