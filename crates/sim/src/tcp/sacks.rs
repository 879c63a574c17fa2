//! Selective acknowledgements at the sender.
//!
//! What this leaves out: a receiver that takes back what it has reported; it matters where receivers run out of memory.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_sacktag_write_queue`, `recv_sack_cache` | 2018, 6675 | [`Endpoint::tag_sacks`]: only what is new in a block is walked |
//! | `tcp_check_dsack` | 2883 | [`Endpoint::on_dsack`] |
//! | `tcp_check_sack_reordering` | – | [`Endpoint::check_reordering`] |
//! | `tcp_add_reno_sack` | 5681 §3.2 | [`Endpoint::add_reno_sack`]: duplicates stand in for reports |

use super::ack::{Ack, found};
use super::scoreboard::{Id, mark};
use super::state::Endpoint;
use crate::cc::CaState;
use crate::segment::{Range, Segment, flag};

/// No reordering counts as larger (`tcp_max_reordering`).
const MAX_REORDERING: u64 = 300;

impl Endpoint {
    /// Marks what the blocks report.
    pub(super) fn tag_sacks(&mut self, segment: &Segment, ack: &mut Ack) {
        if self.tcb.sacked_out == 0 {
            self.snd.highest_sack = self.tcb.snd_una;
        }
        let delivered = self.tcb.delivered;
        let mut blocks = [Range::default(); 4];
        let mut count = 0;
        for (n, block) in segment.sacks().enumerate() {
            if n == 0 && segment.has(flag::DSACK) {
                self.on_dsack(block, ack);
                continue;
            }
            if block.end <= self.tcb.snd_una || block.start >= block.end || block.end > self.tcb.snd_nxt {
                continue;
            }
            blocks[count] = Range { start: block.start.max(self.tcb.snd_una), end: block.end };
            count += 1;
        }
        blocks[..count].sort_unstable_by_key(|block| block.start);
        for block in &blocks[..count] {
            self.tag_new_parts(*block, ack);
        }
        self.snd.sack_cache = blocks;
        debug_assert!(self.tcb.delivered >= delivered);
        if self.tcb.ca_state != CaState::Loss || self.snd.undo_marker.is_some() {
            self.check_reordering(ack.reordered, self.snd.highest_sack);
        }
    }

    /// Walks what of a block the last acknowledgement hadn't reported.
    fn tag_new_parts(&mut self, block: Range, ack: &mut Ack) {
        let mut start = block.start;
        for known in self.snd.sack_cache {
            if known.end <= start || known.start >= block.end || known.start == known.end {
                continue;
            }
            if known.start > start {
                self.tag_range(start, known.start, ack);
            }
            start = start.max(known.end);
        }
        if start < block.end {
            self.tag_range(start, block.end, ack);
        }
    }

    fn tag_range(&mut self, start: u64, end: u64, ack: &mut Ack) {
        let mut next = self.snd.board.find(start);
        while let Some(id) = next {
            let sent = self.snd.board.get(id);
            if sent.end() > end {
                break;
            }
            // One that begins before the range isn't covered as a whole.
            if sent.seq >= start && !sent.has(mark::SACKED) {
                self.tag(id, ack);
            }
            next = self.snd.board.following(id);
        }
    }

    fn tag(&mut self, id: Id, ack: &mut Ack) {
        self.rack_advance(id);
        self.rate_delivered(id, &mut ack.rating);
        let mut sent = *self.snd.board.get(id);
        if sent.has(mark::RETRANS) {
            // A copy that isn't taken for lost is still on the way.
            if sent.has(mark::LOST) {
                sent.flags &= !(mark::LOST | mark::RETRANS);
                self.tcb.lost_out -= 1;
                self.tcb.retrans_out -= 1;
            }
        } else {
            if !sent.has(mark::EVER_RETRANS) {
                if sent.seq < self.snd.highest_sack {
                    ack.reordered = ack.reordered.min(sent.seq);
                }
                if sent.end() <= self.snd.high_seq {
                    ack.found |= found::ORIGINAL;
                }
                ack.first_sack_ns = ack.first_sack_ns.or(Some(sent.sent_ns));
                ack.last_sack_ns = Some(sent.sent_ns);
            }
            if sent.has(mark::LOST) {
                sent.flags &= !mark::LOST;
                self.tcb.lost_out -= 1;
            }
        }
        self.snd.board.get_mut(id).flags = sent.flags | mark::SACKED;
        self.snd.board.unlink(id);
        ack.found |= found::DATA_SACKED;
        self.tcb.sacked_out += 1;
        self.tcb.delivered += 1;
        self.snd.highest_sack = self.snd.highest_sack.max(sent.seq);
    }

    /// Something arrived twice.
    fn on_dsack(&mut self, block: Range, ack: &mut Ack) {
        ack.found |= found::DSACK;
        self.rack.dsack_seen = true;
        if self.snd.tlp_high_seq > 0 && self.snd.tlp_retrans && block.end >= self.snd.tlp_high_seq {
            ack.found |= found::DSACK_TLP;
        }
        let count = ((block.end - block.start).div_ceil(u64::from(self.tcb.mss))) as i64;
        if let Some(marker) = self.snd.undo_marker
            && self.snd.undo_retrans > 0
            && block.end <= ack.prior_una.max(self.tcb.snd_una)
            && block.end > marker
        {
            self.snd.undo_retrans = (self.snd.undo_retrans - count).max(0);
        }
        // A copy of something that is still out has arrived: it isn't on the way any more.
        let mut next = self.snd.board.find(block.start);
        while let Some(id) = next {
            let sent = self.snd.board.get_mut(id);
            if sent.end() > block.end {
                break;
            }
            if sent.has(mark::RETRANS) && sent.has(mark::SACKED) {
                sent.flags &= !mark::RETRANS;
                self.tcb.retrans_out -= 1;
            }
            next = self.snd.board.following(id);
        }
    }

    /// A segment arrived after later ones, and it wasn't a copy: the path reorders.
    pub(super) fn check_reordering(&mut self, low: u64, highest: u64) {
        if low >= highest {
            return;
        }
        let distance = (highest - low).div_ceil(u64::from(self.tcb.mss));
        if distance > u64::from(self.snd.reordering) {
            self.snd.reordering = distance.min(MAX_REORDERING) as u32;
        }
        self.snd.reord_seen += 1;
    }

    /// Without SACK a duplicate acknowledgement tells that something behind the hole has arrived.
    pub(super) fn add_reno_sack(&mut self, count: u32) {
        if count == 0 {
            return;
        }
        let before = self.tcb.sacked_out;
        self.tcb.sacked_out += count;
        let holes = self.tcb.lost_out.max(1).min(self.tcb.packets_out);
        if self.tcb.sacked_out + holes > self.tcb.packets_out {
            self.tcb.sacked_out = self.tcb.packets_out - holes;
        }
        self.tcb.delivered += u64::from(self.tcb.sacked_out.saturating_sub(before));
    }

    /// So many were acknowledged: one was the hole, duplicates had told of the rest.
    pub(super) fn remove_reno_sacks(&mut self, acked: u32) {
        self.tcb.delivered += u64::from(acked.saturating_sub(self.tcb.sacked_out).max(1));
        self.tcb.sacked_out = self.tcb.sacked_out.saturating_sub(acked - 1).min(self.tcb.packets_out);
    }
}
