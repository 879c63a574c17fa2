//! How what an end sends flows: whether more lay ready behind it, whether it grows, and whether what is under way stays level.
//!
//! A sender that its congestion window holds back sends more in each round trip until something gets lost or a queue fills; one that its
//! program, its send buffer or a fixed rate holds back does not. And a segment that isn't full ends what a sender had: what comes after it was
//! handed over later, whatever the window.
//!
//! # What this leaves out
//! Programs that hand over whole segments only, at an even rate, look like a congestion control that keeps to a rate.

use crate::packet::Segment;
use serde::Serialize;
use wt_wire::TcpFlags;

/// Blocks of time that are compared, in round trips.
const BLOCK_RTTS: u64 = 2;
/// They are no shorter than this, ns: what hosts do by chance is short.
const SHORTEST_BLOCK_NS: u64 = 20_000_000;
/// Fewer blocks than this without an event aren't called level.
const FEWEST_LEVEL: u32 = 5;
/// Fewer blocks than this with as much under way as ever are chance: a congestion control that grows slowly has grown by then.
const FEWEST_CAPPED: u32 = 16;
/// So many blocks before a loss belong to it: what the congestion control did since the last.
const BEFORE_LOSS: u32 = 4;
/// So many before one with a queue: one that stands shows in most.
const BEFORE_QUEUE: u32 = 2;
/// An ACK is held back on purpose if it is later than this, ns.
///
/// # Source
/// Linux, `include/net/tcp.h`, `TCP_DELACK_MIN`: 40 ms; RFC 9293 section 3.8.6.3: below 500 ms.
const HELD_ACK_NS: u64 = 20_000_000;
/// What an ACK sets off goes out so soon behind it, ns.
const AT_ONCE_NS: u64 = 1_000_000;
/// What hosts do by chance doesn't take longer, ns.
const LEAST_LATE_NS: u64 = 5_000_000;
/// Payload of segments where the handshake doesn't say it, bytes.
const USUAL_PAYLOAD: u32 = 1460;
/// An RTT that is longer than the least by less than this says nothing of a queue, ns.
const LEAST_QUEUE_NS: u64 = 1_000_000;

/// What kept an end from sending more while its data was under way: parts of `under_way_us`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct SupplyShares {
    /// Its program had given it no more: its last segment wasn't full, and more came later, not upon an ACK, µs.
    pub application_limited_us: u64,
    /// How often.
    pub application_limited_times: u64,
    /// A small segment waited until the small one before was acknowledged: Nagle's rule, µs.
    pub nagle_us: u64,
    /// How often.
    pub nagle_times: u64,
    /// Of these, how often that ACK was held back by 20 ms or more.
    pub delayed_ack_times: u64,
    /// For how long these ACKs were held back in all, µs.
    pub delayed_ack_us: u64,
    /// It sent as much as before over ten round trips or more, without a loss, growth or a queue: what held it back isn't told by that, µs.
    pub level_us: u64,
    /// It sent more than before, or something got lost, or a queue stood: the path and the congestion control, µs.
    pub moved_us: u64,
    /// Round trips, seen near it, in which ACKs left less than half under way of what it had had, and it sent more only an eighth of an RTT
    /// later, without a loss, µs.
    pub late_us: u64,
    /// It had as much under way as ever for 32 round trips or more, as seen here, and no more, without any of these, µs.
    pub capped_us: u64,
    /// All that it had sent had arrived, as far as the least time to the other end and back tells, and that hadn't answered yet, µs.
    pub unanswered_us: u64,
}

/// What is known when an end sends something new.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SupplyFacts {
    pub(crate) now: u64,
    pub(crate) rtt_ns: Option<u64>,
    /// From here to the sender and back, and to the receiver and back, ns.
    pub(crate) back_ns: Option<u64>,
    pub(crate) forth_ns: Option<u64>,
    /// When it sent something new before, and when the other end's last packet came.
    pub(crate) last_data_ns: u64,
    pub(crate) last_ack_ns: u64,
    /// Everything that it sent before is acknowledged, as seen here.
    pub(crate) is_all_acknowledged: bool,
    /// Payload of a full segment as the handshake allows it, bytes.
    pub(crate) full: u32,
    /// What it has under way with this segment, bytes.
    pub(crate) flight: u32,
}

/// A block of time.
#[derive(Debug, Clone, Copy, Default)]
struct Block {
    /// Time with its data under way, and that part of it in which it had no more to send, ns.
    busy_ns: u64,
    starved_ns: u64,
    bytes: u32,
    /// The most under way, bytes.
    flight: u32,
    is_lossy: bool,
    /// ACKs had left little under way, and it sent more only later.
    is_late: bool,
}

/// What is found of one end. All times are parts of the time with its data under way, ns.
///
/// Among thousands of connections what is kept of each is seldom in the CPU's caches: what few have is kept apart.
#[derive(Debug, Default)]
pub(crate) struct Supply {
    /// Time since its last new data.
    waits_ns: u64,
    /// Of that, until the last ACK that left something under way.
    progress_ns: u64,
    /// When ACKs had left no more than half of what it had had under way; 0 if they haven't.
    low_since_ns: u64,
    /// Until when the block of time that is measured lasts, and the time of it with its data under way.
    until_ns: u64,
    busy_ns: u64,
    /// Bytes in this block, and the most under way.
    bytes: u32,
    flight: u32,
    /// The most under way since the last event, bytes.
    ceiling: u32,
    /// Of segments behind which more lay, the longest, bytes.
    proven_full: u32,
    /// Its last new data wasn't a full segment, and was pushed: no more lay behind it.
    is_emptied: bool,
    is_pushed: bool,
    /// The last segment was small, too.
    is_small: bool,
    /// Of this block, as of [`Block`].
    is_lossy: bool,
    is_late: bool,
    /// Segments behind which more lay were no multiple of any length.
    is_full_unknown: bool,
    /// By how much at the least ACKs of two segments and echoes took longer than the least ever in this block, µs, if there were any.
    has_excess: [bool; 2],
    excess_us: [u32; 2],
    /// Its data had arrived, and the other end's program hadn't answered yet.
    unanswered_ns: u64,
    history: Option<Box<SupplyHistory>>,
}

/// What is kept of blocks that are over, and of waits that aren't for the path.
#[derive(Debug, Default)]
struct SupplyHistory {
    starved_in_block_ns: u64,
    /// The bytes of a block that the next ones are compared with: the most of a block in which they grew, since the last loss.
    reference: u32,
    /// Blocks since the last event, and their time.
    stretch: (u32, u64),
    /// Those in which it had as much under way as ever, since that grew.
    capped: (u32, u64),
    /// It sent as much as before, without loss, growth or a queue.
    level_ns: u64,
    /// It sent more than before, or something got lost, or a queue stood.
    moved_ns: u64,
    /// It had as much under way as ever since the last event.
    capped_ns: u64,
    /// ACKs had left less than half under way of what it had had, and it sent more only later.
    late_ns: u64,
    /// It had no more to send.
    starved_ns: u64,
    starved_times: u64,
    /// A small segment waited for the ACK of the one before.
    nagle_ns: u64,
    nagle_times: u64,
    /// Of these, how often that ACK was held back, and for how long in all.
    held_times: u64,
    held_ns: u64,
}

impl Supply {
    /// Its data is under way for so long.
    pub(crate) const fn wait(&mut self, ns: u64) {
        self.waits_ns += ns;
    }

    /// An ACK came and left so many bytes under way.
    pub(crate) fn acknowledged(&mut self, now: u64, flight: u32) {
        if flight > 0 {
            self.progress_ns = self.waits_ns;
        }
        if self.low_since_ns == 0 && flight <= self.ceiling / 2 {
            self.low_since_ns = now;
        }
    }

    /// Something of it is repaired.
    pub(crate) const fn lose(&mut self) {
        self.is_lossy = true;
    }

    /// An ACK of at least two segments (`side` 0) or an echo (1) took longer than the least by so much.
    pub(crate) fn exceed(&mut self, side: usize, ns: u64) {
        let us = u32::try_from(ns / 1000).unwrap_or(u32::MAX);
        if let (Some(least), Some(has)) = (self.excess_us.get_mut(side), self.has_excess.get_mut(side)) {
            *least = if *has { us.min(*least) } else { us };
            *has = true;
        }
    }

    /// The other end answers all that this end had sent: what it waited for was the round trip, and that end's program.
    /// `loop_ns` is the time from here to that end and back.
    pub(crate) fn answered(&mut self, loop_ns: Option<u64>) {
        if !self.is_pushed {
            return;
        }
        let travel = if self.progress_ns > 0 { Some(self.progress_ns) } else { loop_ns };
        self.unanswered_ns += travel.map_or(0, |travel| self.waits_ns.saturating_sub(travel));
        (self.waits_ns, self.progress_ns, self.low_since_ns) = (0, 0, 0);
    }

    /// It sends something new that says nothing but how much: with more behind it, in the same block of time, and before ACKs left little
    /// under way; otherwise [`Self::go_on`] is called. Most segments are such.
    pub(crate) fn flows_on(&mut self, s: &Segment, now: u64, flight: u32) -> bool {
        let is_plain = !self.is_emptied
            && self.low_since_ns == 0
            && now < self.until_ns
            && s.len <= self.proven_full
            && !s.flags.has_any(TcpFlags::PSH | TcpFlags::FIN);
        if is_plain {
            (self.is_pushed, self.progress_ns) = (false, 0);
            self.busy_ns += std::mem::take(&mut self.waits_ns);
            self.bytes = self.bytes.saturating_add(s.len);
            self.flight = self.flight.max(flight);
        }
        is_plain
    }

    /// It sends something new.
    pub(crate) fn go_on(&mut self, s: &Segment, facts: &SupplyFacts) {
        let waited = std::mem::take(&mut self.waits_ns);
        self.progress_ns = 0;
        let since = std::mem::take(&mut self.low_since_ns);
        if since > 0 && facts.is_near() {
            let late = facts.now.saturating_sub(since).min(waited);
            self.is_late |= late > (facts.rtt_ns.unwrap_or(u64::MAX) / 8).max(LEAST_LATE_NS);
        }
        let full = self.full(s, facts.full);
        let is_small = full.is_some_and(|full| s.len < full);
        self.busy_ns += waited;
        if self.is_emptied && waited > 0 {
            let loop_ns = facts.back_ns.unwrap_or(0);
            let soon = loop_ns / 8 + AT_ONCE_NS.min(waited / 4);
            let since_ack = facts.now.saturating_sub(facts.last_ack_ns);
            let is_on_ack = (loop_ns..=loop_ns.saturating_add(soon)).contains(&since_ack);
            if is_on_ack && facts.is_all_acknowledged && self.is_small && is_small {
                let held =
                    facts.last_ack_ns.saturating_sub(facts.last_data_ns.saturating_add(facts.forth_ns.unwrap_or(0)));
                self.history.get_or_insert_default().wait_for_ack(waited, held);
            } else if !is_on_ack || !facts.is_near() {
                self.history.get_or_insert_default().starve(waited);
            }
        }
        self.is_pushed = s.has(TcpFlags::PSH);
        self.is_emptied = self.is_pushed && full.is_some_and(|full| !s.len.is_multiple_of(full));
        self.is_small = is_small;
        let length = facts.rtt_ns.unwrap_or(1_000_000_000).saturating_mul(BLOCK_RTTS).max(SHORTEST_BLOCK_NS);
        if self.bytes == 0 {
            self.until_ns = facts.now.saturating_add(length);
        } else if facts.now >= self.until_ns {
            self.close(facts.now, length, facts);
        }
        self.bytes = self.bytes.saturating_add(s.len);
        self.flight = self.flight.max(facts.flight);
    }

    /// Payload of its full segments, bytes, as far as it is known: what the handshake allows, or less if more lay behind shorter ones.
    fn full(&mut self, s: &Segment, allowed: u32) -> Option<u32> {
        if !s.has(TcpFlags::PSH) && !s.has(TcpFlags::FIN) && allowed > 0 {
            if s.len <= allowed {
                self.proven_full = self.proven_full.max(s.len);
            } else {
                let full = if self.proven_full > 0 { self.proven_full } else { allowed };
                self.is_full_unknown |= !s.len.is_multiple_of(full);
            }
        }
        let full = if self.proven_full > 0 { self.proven_full } else { allowed };
        (!self.is_full_unknown && full > 0).then_some(full)
    }

    /// A block is over: what happened in it?
    fn close(&mut self, now: u64, length: u64, facts: &SupplyFacts) {
        let next = self.until_ns.saturating_add(length);
        self.until_ns = if now >= next { now.saturating_add(length) } else { next };
        let history = self.history.get_or_insert_default();
        let block = Block {
            busy_ns: std::mem::take(&mut self.busy_ns),
            starved_ns: std::mem::take(&mut history.starved_in_block_ns),
            bytes: std::mem::take(&mut self.bytes),
            flight: std::mem::take(&mut self.flight),
            is_lossy: std::mem::take(&mut self.is_lossy),
            is_late: std::mem::take(&mut self.is_late),
        };
        let is_starved = block.starved_ns >= block.busy_ns / 2 && block.busy_ns > 0;
        let least = (length / BLOCK_RTTS / 8).max(LEAST_QUEUE_NS) / 1000;
        // A program that is late with what echoes an ACK makes no queue.
        let sides = if is_starved { 1 } else { 2 };
        let has_excess = std::mem::take(&mut self.has_excess);
        let mut excess = self.excess_us.iter().zip(has_excess).take(sides);
        let is_queued = excess.any(|(us, has)| has && u64::from(*us) > least);
        let segments = 2 * if facts.full > 0 { facts.full } else { USUAL_PAYLOAD };
        if is_starved && facts.is_near() && !block.is_lossy {
            // Whatever flows then says nothing of the path.
        } else if block.is_late && !is_starved && !block.is_lossy {
            history.late_ns += block.busy_ns;
            history.stretch.0 += 1;
            self.ceiling = self.ceiling.max(block.flight);
        } else if block.is_lossy || is_queued || history.has_grown(&block, segments) {
            history.move_on(&block, segments);
            self.ceiling = 0;
        } else {
            history.go_level(&block, segments, &mut self.ceiling);
        }
    }

    /// What was found.
    pub(crate) fn shares(&self) -> SupplyShares {
        let unanswered_us = self.unanswered_ns / 1000;
        self.history.as_deref().map_or(SupplyShares { unanswered_us, ..SupplyShares::default() }, |found| {
            SupplyShares {
                application_limited_us: found.starved_ns / 1000,
                application_limited_times: found.starved_times,
                nagle_us: found.nagle_ns / 1000,
                nagle_times: found.nagle_times,
                delayed_ack_times: found.held_times,
                delayed_ack_us: found.held_ns / 1000,
                level_us: found.level_ns / 1000,
                moved_us: found.moved_ns / 1000,
                late_us: found.late_ns / 1000,
                capped_us: found.capped_ns / 1000,
                unanswered_us,
            }
        })
    }

    /// Nothing more comes: what was level to the end counts if it was so for long enough.
    pub(crate) fn finish(&mut self) {
        let Some(history) = self.history.as_deref_mut() else { return };
        if self.busy_ns > 0 && history.stretch.0 > 0 && !self.is_lossy {
            history.stretch = (history.stretch.0 + 1, history.stretch.1 + self.busy_ns);
        }
        if history.stretch.0 >= FEWEST_LEVEL {
            history.end_stretch(0);
        }
    }
}

impl SupplyHistory {
    /// It had no more to send.
    const fn starve(&mut self, ns: u64) {
        self.starved_ns += ns;
        self.starved_times += 1;
        self.starved_in_block_ns += ns;
    }

    /// A small segment waited for an ACK, which was held back for so long.
    const fn wait_for_ack(&mut self, ns: u64, held_ns: u64) {
        self.nagle_ns += ns;
        self.nagle_times += 1;
        self.starved_in_block_ns += ns;
        if held_ns >= HELD_ACK_NS {
            self.held_times += 1;
            self.held_ns += held_ns;
        }
    }

    /// Whether more was sent than before; `segments` are the bytes of two.
    fn has_grown(&self, block: &Block, segments: u32) -> bool {
        self.reference > 0 && block.bytes > self.reference.saturating_add(self.reference / 16 + segments)
    }

    /// A block in which more was sent, or something got lost, or a queue stood.
    fn move_on(&mut self, block: &Block, segments: u32) {
        self.end_stretch(match (self.has_grown(block, segments), block.is_lossy) {
            (true, _) => u32::MAX,
            (_, true) => BEFORE_LOSS,
            _ => BEFORE_QUEUE,
        });
        self.moved_ns += block.busy_ns;
        self.reference = if block.is_lossy { 0 } else { self.reference.max(block.bytes) };
    }

    /// A block in which nothing happened.
    fn go_level(&mut self, block: &Block, segments: u32, ceiling: &mut u32) {
        if self.reference == 0 {
            self.reference = block.bytes;
        }
        self.stretch = (self.stretch.0 + 1, self.stretch.1 + block.busy_ns);
        if block.flight > ceiling.saturating_add(segments) {
            self.end_capped();
            *ceiling = block.flight;
        }
        if block.flight.saturating_add(segments + *ceiling / 16) >= *ceiling {
            self.capped = (self.capped.0 + 1, self.capped.1 + block.busy_ns);
        }
    }

    /// What went before an event belongs to it, as far as so many blocks.
    fn end_stretch(&mut self, belonging: u32) {
        let (blocks, time) = std::mem::take(&mut self.stretch);
        let level = time / u64::from(blocks.max(1)) * u64::from(blocks.saturating_sub(belonging));
        self.level_ns += level;
        self.moved_ns += time - level;
        self.end_capped();
    }

    /// What is under way changes: it was as much for long, or that was chance.
    fn end_capped(&mut self) {
        let (blocks, time) = std::mem::take(&mut self.capped);
        self.capped_ns += if blocks >= FEWEST_CAPPED { time } else { 0 };
    }
}

impl SupplyFacts {
    /// Whether this is so near the sender that what it sends upon an ACK is seen right behind it.
    fn is_near(&self) -> bool {
        matches!((self.back_ns, self.forth_ns), (Some(back), Some(forth)) if back.saturating_mul(8) <= forth)
    }
}
