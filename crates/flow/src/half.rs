//! What one end of a connection sends, and what it is found to do.
//!
//! The events have the names and conditions of Wireshark's "TCP analysis", so that figures can be laid side by side.
//!
//! # Source
//! Wireshark User's Guide, section 7.5 "TCP Analysis".

mod known_times;
mod retransmission;
mod unseen;

pub(crate) use self::known_times::KnownTimes;
use self::retransmission::RecentRetransmissions;
use crate::copies::Lately;
use crate::counts::{Counts, Offer};
use crate::over_time::OverTime;
use crate::packet::{MOST_SACKS, Segment};
use crate::samples::{Course, Sample};
use crate::supply::Supply;
use std::collections::VecDeque;
use wt_wire::{Ecn, Seq, TcpFlags};

/// Segments that wait for their ACK, for one direction.
const MOST_OUTSTANDING: usize = 8192;
/// Timestamps that wait for their echo.
const MOST_STAMPS: usize = 64;
/// Right edges that are remembered.
const MOST_EDGES: usize = 64;
/// Packets above this are joined segments that no link carries.
const LARGEST_LINK: u32 = 9216;
/// Payload of a usual link's packets, bytes.
const LARGEST_PAYLOAD: u32 = 1460;

/// A segment that waits for its ACK.
#[derive(Debug, Clone, Copy)]
struct SentSegment {
    seq: Seq,
    end: Seq,
    /// When it came, and the sender's clock in it. Of one that came into a gap: those of the segment by which the gap was seen.
    at_ns: u64,
    stamp: Option<u32>,
    packet_len: u32,
    /// What of its identification fits, and the hops that it had to go.
    ident: u8,
    hops: u8,
    times: u8,
    /// It was retransmitted in smaller pieces.
    shrunk: bool,
}

/// What became of segments too large for the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Sizes {
    /// The largest packet that was acknowledged, bytes.
    pub(crate) largest_passed: u32,
    /// The smallest packet that was sent three times or more and was never acknowledged in that size, bytes.
    pub(crate) smallest_stuck: Option<u32>,
    /// How often it was sent.
    pub(crate) times: u8,
    /// It went through once it was cut up.
    pub(crate) shrunk: bool,
    /// The other end was heard after it was first sent.
    pub(crate) peer_heard: bool,
}

/// What the segment before was, as far as the next answers it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Was {
    #[default]
    Usual,
    KeepAlive,
    ZeroWindowProbe,
}

/// One direction.
#[derive(Debug, Default)]
pub(crate) struct Half {
    pub(crate) counts: Counts,
    pub(crate) offer: Option<Offer>,
    pub(crate) isn: Option<Seq>,
    /// Its last SYN acknowledged the other's.
    has_answered_syn: bool,
    /// Behind the highest byte seen.
    pub(crate) next: Option<Seq>,
    next_at_ns: u64,
    window: u16,
    /// The window in bytes; the raw field where the shift isn't known.
    pub(crate) window_bytes: u32,
    pub(crate) window_min: Option<u32>,
    pub(crate) window_max: u32,
    /// How its windows were over time, once it was sent anything.
    pub(crate) over_time: OverTime,
    /// Bytes of the other end times ns until this one acknowledged them, and bytes.
    pub(crate) waited: (f64, f64),
    pub(crate) ack: Option<Seq>,
    pub(crate) ack_at_ns: u64,
    duplicates: u32,
    sacks: [(Seq, Seq); MOST_SACKS],
    sack_count: usize,
    was: Was,
    outstanding: VecDeque<SentSegment>,
    /// Its first timestamp, and that of the ACK behind which nothing of the other end's was under way.
    first_stamp: Option<u32>,
    last_stamp: Option<u32>,
    /// Most connections have none.
    recent: Option<Box<RecentRetransmissions>>,
    /// Payload that passed here before, bytes.
    repeated: u64,
    /// The number of its first segment here, and payload behind it that was acknowledged and never passed, bytes.
    first: Option<Seq>,
    pub(crate) unseen_bytes: u64,
    /// Not all that waits for its ACK is known.
    overflowed: bool,
    /// Behind the highest byte seen when a retransmission was last seen: until it is acknowledged, losses are repaired.
    pub(crate) recovery: Option<Seq>,
    /// From a segment of this end to its ACK.
    pub(crate) rtt: Sample,
    /// From a timestamp of this end to its echo.
    pub(crate) echo: Sample,
    stamps: VecDeque<(u32, u64)>,
    /// The newest of its timestamps: packets of the same tick have the same one, also after its echo.
    newest_stamp: Option<Seq>,
    /// What it sent before is no sample: the clock was set back since.
    measured_from_ns: u64,
    /// How long this end took to acknowledge, over time.
    pub(crate) ack_course: Course,
    /// How long this end took to acknowledge.
    pub(crate) acks: Sample,
    edges: VecDeque<(u64, Seq)>,
    pub(crate) zero_since_ns: Option<u64>,
    pub(crate) zero_ns: u64,
    pub(crate) zero_longest_ns: u64,
    pub(crate) zero_episodes: u64,
    /// Its last data went as far as the other end's window allowed.
    pub(crate) limited: bool,
    pub(crate) limited_segments: u64,
    /// Segments that may have reached the other end's window: its shift isn't known.
    pub(crate) unsure_segments: u64,
    pub(crate) most_in_flight: u32,
    pub(crate) sizes: Sizes,
    pub(crate) largest_segment: u32,
    pub(crate) fin: bool,
    pub(crate) rst: bool,
    pub(crate) last_data_ns: u64,
    /// Behind bytes that it had sent, as its last ACK says, and that didn't come here.
    unseen_until: Option<Seq>,
    pub(crate) lately: Lately,
    /// Segments that came again as the very same packet, by all that tells one from a retransmission.
    pub(crate) same_again: u64,
    pub(crate) supply: Supply,
}

impl Half {
    /// A segment of this end; `rev` is the other one. `first_rtt_ns` is that of the handshake, `back_ns` the time from
    /// here to this end and back, and `room` how many more segments may wait for their ACKs in the whole table.
    pub(crate) fn sent(&mut self, rev: &mut Self, s: &Segment, now: u64, known: &KnownTimes, room: &mut usize) {
        let syn = s.has(TcpFlags::SYN);
        let control = s.flags.has_any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        self.count(s);
        if !s.has(TcpFlags::RST) {
            self.first.get_or_insert(s.seq);
        }
        // Neither carries anything but what comes again, or none of it.
        let is_payload = s.len > 1 || s.len == 1 && !self.is_keep_alive(s) && !self.is_window_probe(rev, s);
        self.counts.data_packets += u64::from(is_payload);
        self.counts.bytes_sent += if is_payload { u64::from(s.len) } else { 0 };
        self.unseen_until = self.unseen_until.filter(|_| !is_payload);
        let is_new_syn = syn && !self.synchronise(s);
        let mut was = Was::Usual;
        if self.is_window_probe(rev, s) {
            self.counts.zero_window_probes += 1;
            was = Was::ZeroWindowProbe;
        } else {
            was = self.acknowledgement_only(rev, s, control, was);
        }
        if s.has(TcpFlags::ACK) && self.ack != Some(s.ack) {
            self.duplicates = 0;
        }
        if (s.len > 0 || control && !s.has(TcpFlags::RST)) && was == Was::Usual && !is_new_syn {
            self.classify(rev, s, now, known);
        }
        let takes_numbers = s.len > 0 || s.flags.has_any(TcpFlags::SYN | TcpFlags::FIN);
        // Of two SYNs that cross the first one waits for its ACK.
        let waits_already = is_new_syn && self.next.is_some_and(|next| s.seq.is_before(next));
        if takes_numbers && was != Was::KeepAlive && !waits_already {
            self.keep(s, now, room);
            self.measure_flight(rev, s, now, known.back_ns);
        }
        let end = s.end();
        if was != Was::ZeroWindowProbe && self.next.is_none_or(|next| next.is_before(end)) {
            (self.next, self.next_at_ns) = (Some(end), now);
        }
        self.was = was;
        self.receive_side(rev, s, now, known, room);
        self.fin |= s.has(TcpFlags::FIN);
        self.rst |= s.has(TcpFlags::RST);
    }

    /// Whether it only asks if the other end is there: nothing, or any byte, before what comes next.
    ///
    /// # Source
    /// RFC 9293 section 3.8.4.
    pub(crate) fn is_keep_alive(&self, s: &Segment) -> bool {
        let control = s.flags.has_any(TcpFlags::SYN | TcpFlags::FIN | TcpFlags::RST);
        s.len <= 1 && self.next == Some(s.seq.plus(1)) && !control
    }

    /// Whether it tries a closed window with one byte.
    fn is_window_probe(&self, rev: &Self, s: &Segment) -> bool {
        s.len == 1 && Some(s.seq) == self.next && rev.window == 0 && rev.ack.is_some()
    }

    fn count(&mut self, s: &Segment) {
        let counts = &mut self.counts;
        counts.packets += 1;
        counts.ce_marks += u64::from(s.ecn == Ecn::Ce);
        counts.ece += u64::from(s.has(TcpFlags::ECE) && !s.has(TcpFlags::SYN));
        counts.super_packets += u64::from(s.packet_len > LARGEST_LINK);
        counts.duplicate_reports += u64::from(s.duplicate_sack);
    }

    /// Whether this SYN was sent before. Where both ends open the connection at once, each acknowledges the other's SYN with one that
    /// has the number of its own, and that is none that was (RFC 9293 section 3.5).
    fn synchronise(&mut self, s: &Segment) -> bool {
        let again = self.isn == Some(s.seq) && (self.has_answered_syn || !s.has(TcpFlags::ACK));
        self.counts.syn_retransmissions += u64::from(again);
        self.isn = Some(s.seq);
        self.has_answered_syn = s.has(TcpFlags::ACK);
        if s.is_header_whole {
            self.note_offer(s);
        }
        again
    }

    /// The other end takes this one's SYN and not the data in it (Fast Open): that comes again, and isn't lost.
    ///
    /// # Source
    /// RFC 7413 section 4.2.2.
    fn decline_data_of_syn(&mut self, ack: Seq) {
        let Some(isn) = self.isn.filter(|isn| isn.plus(1) == ack) else { return };
        let Some(next) = self.next.filter(|next| ack.is_before(*next) && self.counts.data_packets == 1) else { return };
        self.repeated += u64::from(u32::try_from(next.since(ack)).unwrap_or(0));
        self.next = Some(ack);
        if let Some(syn) = self.outstanding.front_mut().filter(|sent| sent.seq == isn) {
            syn.end = ack;
        }
    }

    fn note_offer(&mut self, s: &Segment) {
        let ecn = if s.has(TcpFlags::ACK) {
            s.has(TcpFlags::ECE) && !s.has(TcpFlags::CWR)
        } else {
            s.has(TcpFlags::ECE | TcpFlags::CWR)
        };
        self.offer = Some(Offer {
            mss: s.mss,
            window_scale: s.window_scale,
            sack: s.sack_permitted,
            timestamps: s.timestamps.is_some(),
            ecn,
        });
    }

    /// Counts what a segment that is no probe of a closed window says about the past: gaps, keep-alives, repeated ACKs.
    fn acknowledgement_only(&mut self, rev: &Self, s: &Segment, control: bool, was: Was) -> Was {
        let mut was = was;
        if s.window == 0 && !control {
            self.counts.zero_windows += 1;
        }
        let Some(next) = self.next else { return was };
        if next.is_before(s.seq) && !s.has(TcpFlags::RST) {
            self.counts.gaps += 1;
            self.unseen_until = if s.len == 0 { Some(s.seq) } else { None };
        }
        if self.is_keep_alive(s) {
            self.counts.keep_alives += 1;
            was = Was::KeepAlive;
        }
        if s.len > 0 || control || s.seq != next {
            let edge = rev.ack.map(|ack| ack.plus(rev.window_bytes));
            if s.len > 0 && !control && edge == Some(s.end()) && rev.shift(self).is_some() {
                self.counts.window_full += 1;
            }
            return was;
        }
        let same_ack = self.ack == Some(s.ack);
        let same_window = s.window == self.window;
        match (same_ack, s.window) {
            (true, 1..) if !same_window => {
                self.counts.window_updates += 1;
                self.duplicates += u32::from(s.sack_count > 0);
            }
            (true, 1..) if rev.was != Was::KeepAlive => {
                self.counts.duplicate_acks += 1;
                self.duplicates += 1;
            }
            _ => {}
        }
        was
    }

    /// How much is under way as this end knew it when it sent the segment, and whether the window was reached.
    fn measure_flight(&mut self, rev: &Self, s: &Segment, now: u64, back_ns: u64) {
        if s.len == 0 || s.has(TcpFlags::SYN) {
            return;
        }
        let Some(ack) = rev.ack else { return };
        let flight = s.end().since(ack);
        self.most_in_flight = self.most_in_flight.max(u32::try_from(flight).unwrap_or(0));
        if self.next.is_some_and(|next| s.end().is_before(next)) {
            return;
        }
        let known_edge = rev.edge_at(now.saturating_sub(back_ns));
        let usual = rev.offer.and_then(|offer| offer.mss).map_or(1460, u32::from).max(536);
        let one_more = known_edge.is_some_and(|edge| edge.is_before(s.end().plus(self.largest_segment.min(usual))));
        // A window whose shift isn't known may be larger by far than it says, and is no smaller.
        let is_known = rev.shift(self).is_some();
        self.limited = one_more && is_known;
        self.limited_segments += u64::from(self.limited);
        self.unsure_segments += u64::from(one_more && !is_known);
    }

    /// The edge of this end's window at a time.
    fn edge_at(&self, at_ns: u64) -> Option<Seq> {
        let before = self.edges.iter().rev().find(|(since, _)| *since <= at_ns);
        before.or(self.edges.front()).map(|(_, edge)| *edge)
    }

    /// What the segment says about what its sender received.
    fn receive_side(&mut self, rev: &mut Self, s: &Segment, now: u64, known: &KnownTimes, room: &mut usize) {
        if s.has(TcpFlags::RST) {
            return;
        }
        self.note_window(rev, s, now, known);
        if s.has(TcpFlags::ACK) {
            if s.has(TcpFlags::SYN) {
                rev.decline_data_of_syn(s.ack);
            }
            self.acknowledge(rev, s, now, room);
            if let Some(twice) = s.sacks.first().filter(|_| s.duplicate_sack) {
                rev.arrived_twice(*twice);
            }
            (self.ack, self.ack_at_ns) =
                (Some(self.ack.map_or(s.ack, |ack| if ack.is_before(s.ack) { s.ack } else { ack })), now);
            self.sack_count = s.sack_count;
            self.sacks = s.sacks;
        }
        let Some((value, echo)) = s.timestamps else { return };
        self.note_stamp(value, now, s.has(TcpFlags::SYN));
        if s.has(TcpFlags::ACK)
            && let Some(place) = rev.stamps.iter().position(|(value, _)| *value == echo)
        {
            let at = rev.stamps.get(place).map_or(now, |(_, at)| *at);
            rev.stamps.drain(..=place);
            let took = now.saturating_sub(at);
            rev.echo.push(took);
            if s.len > 0 {
                self.supply.exceed(1, took - rev.echo.min_ns().unwrap_or(0));
            }
        }
    }

    /// A timestamp of this end passes. An echo of it may answer the first packet that has it, so that only from there on the time to the
    /// echo is a round trip; and of the first timestamp of a connection whose beginning wasn't seen, that packet may have passed before.
    fn note_stamp(&mut self, value: u32, now: u64, is_syn: bool) {
        let is_new = self.newest_stamp.is_none_or(|newest| newest.is_before(Seq(value)));
        if !is_new {
            return;
        }
        let is_first_known = self.newest_stamp.is_some() || is_syn;
        self.newest_stamp = Some(Seq(value));
        if self.first_stamp.is_none() {
            self.first_stamp = Some(value);
        }
        if !is_first_known {
            return;
        }
        if self.stamps.len() >= MOST_STAMPS {
            // Each second one goes: the oldest are the next that are echoed.
            let mut stays = false;
            self.stamps.retain(|_| {
                stays = !stays;
                stays
            });
        }
        self.stamps.push_back((value, now));
    }

    fn note_window(&mut self, rev: &Self, s: &Segment, now: u64, known: &KnownTimes) {
        self.window = s.window;
        let shift = if s.has(TcpFlags::SYN) { 0 } else { self.shift(rev).unwrap_or(0) };
        self.window_bytes = u32::from(s.window) << shift;
        if s.has(TcpFlags::SYN) {
            return;
        }
        self.window_max = self.window_max.max(self.window_bytes);
        self.window_min = Some(self.window_min.map_or(self.window_bytes, |min| min.min(self.window_bytes)));
        match (s.window == 0 && !s.has(TcpFlags::FIN), self.zero_since_ns) {
            (true, None) => {
                self.zero_since_ns = Some(now);
                self.zero_episodes += 1;
            }
            (false, Some(since)) => self.end_zero(since, now),
            _ => {}
        }
        if !s.has(TcpFlags::ACK) {
            return;
        }
        if rev.largest_segment > 0 {
            self.over_time.note(now, s.ack, self.window_bytes, rev.payload_of_segments(self));
        }
        let edge = s.ack.plus(self.window_bytes);
        // Edges a sixty-fourth of the time apart that they are looked back for.
        let spacing = known.forth_ns / 32;
        let several = self.edges.len() > 1;
        match self.edges.back_mut() {
            Some((since, last)) if now.saturating_sub(*since) < spacing && several => *last = edge,
            Some((_, last)) if *last == edge => {}
            _ => {
                if self.edges.len() >= MOST_EDGES {
                    self.edges.pop_front();
                }
                self.edges.push_back((now, edge));
            }
        }
    }

    /// Payload of the segments that this end sends, bytes: what the other offered, without the options that each has; less if no
    /// larger one was seen.
    fn payload_of_segments(&self, other: &Self) -> u32 {
        let offered = other.offer.and_then(|offer| offer.mss).map_or(1460, u32::from).max(64);
        let stamped = [self.offer, other.offer].iter().all(|offer| offer.is_some_and(|offer| offer.timestamps));
        self.largest_segment.min(if stamped { offered - 12 } else { offered })
    }

    pub(crate) fn end_zero(&mut self, since: u64, now: u64) {
        let time = now.saturating_sub(since);
        self.zero_ns += time;
        self.zero_longest_ns = self.zero_longest_ns.max(time);
        self.zero_since_ns = None;
    }

    /// The shift of its windows, as far as the handshake was seen: windows are scaled only if both offer it.
    pub(crate) fn shift(&self, rev: &Self) -> Option<u8> {
        match (self.offer, rev.offer) {
            (_, Some(other)) if other.window_scale.is_none() => Some(0),
            // Of a handshake that was half seen, the half that was seen counts.
            (Some(own), _) => own.window_scale.or(Some(0)),
            (None, _) => None,
        }
    }

    /// Takes from what the other end sent what this segment acknowledges.
    fn acknowledge(&mut self, rev: &mut Self, s: &Segment, now: u64, room: &mut usize) {
        let advanced = self.ack.is_none_or(|ack| ack.is_before(s.ack));
        // Everything up to here was acknowledged; what follows must have been seen.
        let mut covered = self.ack.filter(|_| rev.next.is_some() && !rev.overflowed);
        let (mut unseen, mut missing) = (false, 0);
        while let Some(sent) = rev.outstanding.front().copied().filter(|sent| !s.ack.is_before(sent.end)) {
            rev.outstanding.pop_front();
            *room += 1;
            unseen |= covered.is_some_and(|covered| covered.is_before(sent.seq));
            missing += rev.missing(covered, sent.seq);
            covered = covered.map(|covered| if covered.is_before(sent.end) { sent.end } else { covered });
            rev.passed(&sent);
            if rev.next == Some(sent.seq) && sent.end.since(sent.seq) == 1 {
                // A probe of its closed window that it took after all.
                rev.next = Some(sent.end);
                rev.counts.data_packets += 1;
                rev.counts.bytes_sent += 1;
            }
            // A segment that was sent twice doesn't tell which one was acknowledged (Karn).
            let is_sample = sent.times == 1 && sent.at_ns >= rev.measured_from_ns;
            if is_sample && sent.packet_len > 0 && rev.isn.is_none_or(|isn| isn != sent.seq) {
                let bytes = f64::from(u32::try_from(sent.end.since(sent.seq)).unwrap_or(0));
                self.waited.0 += bytes * now.saturating_sub(sent.at_ns) as f64;
                self.waited.1 += bytes;
            }
            if sent.end == s.ack && is_sample && advanced {
                let took = now.saturating_sub(sent.at_ns);
                rev.rtt.push(took);
                // Two segments are acknowledged at once (RFC 5681 section 4.2).
                let two = 2 * rev.largest_segment.min(LARGEST_PAYLOAD);
                if self.ack.is_some_and(|ack| !s.ack.is_before(ack.plus(two))) {
                    rev.supply.exceed(0, took - rev.rtt.min_ns().unwrap_or(0));
                }
                if sent.packet_len > 0 && !s.has(TcpFlags::SYN) && rev.isn.is_none_or(|isn| isn != sent.seq) {
                    self.acks.push(took);
                    self.ack_course.push(now, took);
                }
            }
        }
        if advanced && let Some(next) = rev.next {
            rev.supply.acknowledged(now, u32::try_from(next.since(s.ack)).unwrap_or(0));
        }
        if rev.outstanding.is_empty() && advanced {
            self.last_stamp = s.timestamps.map(|(value, _)| value);
        }
        let reached =
            rev.outstanding.front().map_or(s.ack, |sent| if sent.seq.is_before(s.ack) { sent.seq } else { s.ack });
        if advanced && (unseen || covered.is_some_and(|covered| covered.is_before(reached))) {
            self.counts.acked_unseen += 1;
            rev.unseen_bytes += missing + rev.missing_at_end(covered, reached);
        }
        if rev.recovery.is_some_and(|until| !s.ack.is_before(until)) {
            rev.recovery = None;
        }
        rev.sizes.peer_heard |= rev.outstanding.front().is_some_and(|sent| sent.times >= 3);
    }

    /// A segment was acknowledged at last.
    fn passed(&mut self, sent: &SentSegment) {
        let len = self.on_the_wire(sent.packet_len);
        if sent.shrunk && sent.times >= 3 {
            self.stuck(sent, true);
        } else {
            self.sizes.largest_passed = self.sizes.largest_passed.max(len);
        }
    }

    fn stuck(&mut self, sent: &SentSegment, shrunk: bool) {
        let len = self.on_the_wire(sent.packet_len);
        if self.sizes.smallest_stuck.is_none_or(|least| len < least) {
            self.sizes.smallest_stuck = Some(len);
        }
        self.sizes.times = self.sizes.times.max(sent.times);
        self.sizes.shrunk |= shrunk;
    }

    /// The length of the packets that a device makes of a joined one.
    fn on_the_wire(&self, packet_len: u32) -> u32 {
        if packet_len <= LARGEST_LINK { packet_len } else { 1500 }
    }

    /// Whether its window is less than half of what it was: what has arrived isn't read, for an end that reads what arrives offers as much
    /// as before, and tells so as soon as that is twice what it told last.
    pub(crate) fn is_window_low(&self) -> bool {
        self.window_bytes.saturating_mul(2) < self.window_max
    }

    /// Nothing more will come: what was never acknowledged is looked at. Gives back what it held of the table's room.
    pub(crate) fn finish(&mut self, now: u64, room: &mut usize) {
        if let Some(since) = self.zero_since_ns {
            self.end_zero(since, now);
        }
        self.supply.finish();
        for sent in std::mem::take(&mut self.outstanding) {
            *room += 1;
            if sent.times >= 3 && sent.end.since(sent.seq) > 1 {
                self.stuck(&sent, false);
            }
        }
    }

    /// The clock was set back: times before don't count any more, and until when a loss was repaired isn't known.
    pub(crate) fn measure_from(&mut self, now: u64) {
        self.measured_from_ns = now;
        self.stamps.clear();
        self.recovery = None;
    }

    /// Whether a timestamp that the other end echoes is one of this end's from before the ACK behind which nothing was under way.
    pub(crate) fn was_stamped_before_last_ack(&self, echo: u32) -> bool {
        let echo = Seq(echo);
        self.first_stamp.is_some_and(|first| !echo.is_before(Seq(first)))
            && self.last_stamp.is_some_and(|last| echo.is_before(Seq(last)))
    }

    /// Whether something of this end waits for its ACK.
    pub(crate) fn has_outstanding(&self) -> bool {
        !self.outstanding.is_empty()
    }

    /// Whether it says that something is missing.
    pub(crate) fn reports_a_gap(&self) -> bool {
        self.sack_count > 0 || self.duplicates >= 3
    }

    /// Payload that was sent at least once, bytes; of a stream of more than 4 GiB that, too.
    pub(crate) fn unique_bytes(&self) -> u64 {
        self.counts.bytes_sent.saturating_sub(self.repeated)
    }
}
