//! What a receiver knows: the stream as far as it has come, and what it owes acknowledgements for.

use crate::segment::Range;
use crate::tcp::config::StackConfig;
use std::collections::VecDeque;

/// `TCP_ATO_MIN` and `TCP_DELACK_MIN`: 40 ms.
pub(in crate::tcp) const ATO_MIN_NS: u64 = 40_000_000;
/// Segments acknowledged one by one at most.
const MAX_QUICK: u32 = 16;
/// The MSS before a segment has come.
pub(in crate::tcp) const DEFAULT_MSS: u32 = 536;
/// `TCP_MIN_MSS`: no MSS is smaller.
pub(in crate::tcp) const MIN_MSS: u32 = 88;

/// What an acknowledgement is pending for.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::tcp) struct Pending {
    pub(in crate::tcp) scheduled: bool,
    pub(in crate::tcp) now: bool,
    pub(in crate::tcp) pushed: bool,
    pub(in crate::tcp) pushed_twice: bool,
}

/// The receiving side.
#[derive(Debug)]
pub(in crate::tcp) struct Receiver {
    /// The next byte that is missing.
    pub(in crate::tcp) nxt: u64,
    /// How far the application has read.
    pub(in crate::tcp) copied: u64,
    /// How far it may read now.
    pub(in crate::tcp) read_limit: u64,
    /// What was last acknowledged, and the window sent with it.
    pub(in crate::tcp) wup: u64,
    pub(in crate::tcp) wnd: u64,
    pub(in crate::tcp) scale: u8,
    pub(in crate::tcp) clamp: u64,
    pub(in crate::tcp) ssthresh: u64,
    pub(in crate::tcp) buffer: u64,
    pub(in crate::tcp) locked: bool,
    /// Share of the buffer that is window, 1/256.
    pub(in crate::tcp) ratio: u64,
    /// What a packet occupies, over its payload.
    pub(in crate::tcp) occupied: f64,
    pub(in crate::tcp) mss: u32,
    pub(in crate::tcp) advmss: u32,
    /// Pieces beyond the hole, in order, apart from each other.
    pub(in crate::tcp) pieces: VecDeque<Range>,
    /// Bytes in them.
    pub(in crate::tcp) out_of_order: u64,
    pub(in crate::tcp) reports: [Range; 4],
    pub(in crate::tcp) report_count: usize,
    pub(in crate::tcp) dsack: Option<Range>,
    pub(in crate::tcp) pending: Pending,
    pub(in crate::tcp) quick: u32,
    pub(in crate::tcp) ato_ns: u64,
    pub(in crate::tcp) last_data_ns: u64,
    /// Payload of the segment before, if that may have been a full one that is shorter than `mss`; 0 otherwise.
    pub(in crate::tcp) last_len: u32,
    /// Replies go out with data: acknowledgements may wait for them.
    pub(in crate::tcp) interactive: bool,
    pub(in crate::tcp) ts_recent: u32,
    pub(in crate::tcp) compressed: u32,
    pub(in crate::tcp) compressed_nxt: u64,
    pub(in crate::tcp) duplicates: u32,
    /// Eight times the RTT, µs.
    pub(in crate::tcp) rtt_us: u32,
    pub(in crate::tcp) last_ecr: u32,
    pub(in crate::tcp) rtt_mark: (u64, u64),
    /// What was copied during the last RTT, and where and when that measurement began.
    pub(in crate::tcp) space: u64,
    pub(in crate::tcp) space_seq: u64,
    pub(in crate::tcp) space_us: u64,
    pub(in crate::tcp) ece: bool,
    /// Segments and payload that arrived, in order or not.
    pub(in crate::tcp) segments: u64,
}

impl Receiver {
    pub(in crate::tcp) fn new(config: &StackConfig, advmss: u32) -> Self {
        Self {
            nxt: 0,
            copied: 0,
            read_limit: u64::MAX,
            wup: 0,
            wnd: 0,
            scale: 0,
            clamp: 0,
            ssthresh: 0,
            buffer: config.rwin.map_or(config.rmem.0, |window| u64::from(window) * 4),
            locked: config.rwin.is_some(),
            ratio: 128,
            occupied: config.truesize_ratio,
            mss: DEFAULT_MSS,
            advmss,
            pieces: VecDeque::new(),
            out_of_order: 0,
            reports: [Range::default(); 4],
            report_count: 0,
            dsack: None,
            pending: Pending::default(),
            quick: 0,
            ato_ns: 0,
            last_data_ns: 0,
            last_len: 0,
            interactive: false,
            ts_recent: 0,
            compressed: 0,
            compressed_nxt: 0,
            duplicates: 0,
            rtt_us: 0,
            last_ecr: 0,
            rtt_mark: (0, 0),
            space: 0,
            space_seq: 0,
            space_us: 0,
            ece: false,
            segments: 0,
        }
    }

    /// Puts a piece beyond the hole into its place; returns what it is part of now, and what of it was there already.
    pub(in crate::tcp) fn insert(&mut self, piece: Range) -> (Range, Option<Range>) {
        let first = self.pieces.partition_point(|known| known.end < piece.start);
        let mut whole = piece;
        let mut last = first;
        let mut twice = None;
        while let Some(known) = self.pieces.get(last).filter(|known| known.start <= piece.end) {
            let overlap = Range { start: known.start.max(piece.start), end: known.end.min(piece.end) };
            if overlap.start < overlap.end && twice.is_none() {
                twice = Some(overlap);
            }
            whole = Range { start: whole.start.min(known.start), end: whole.end.max(known.end) };
            self.out_of_order -= known.end - known.start;
            last += 1;
        }
        self.out_of_order += whole.end - whole.start;
        if last == first {
            self.pieces.insert(first, whole);
        } else {
            self.pieces[first] = whole;
            if last - first > 1 {
                self.pieces.drain(first + 1..last);
            }
        }
        (whole, twice)
    }

    /// The block that the next reports begin with.
    pub(in crate::tcp) fn report(&mut self, block: Range) {
        let mut kept = [Range::default(); 4];
        kept[0] = block;
        let mut count = 1;
        for known in &self.reports[..self.report_count] {
            let apart = known.end < block.start || known.start > block.end;
            if apart && count < kept.len() {
                kept[count] = *known;
                count += 1;
            }
        }
        (self.reports, self.report_count) = (kept, count);
    }

    /// Takes pieces that the stream has reached.
    pub(in crate::tcp) fn join(&mut self) {
        while let Some(first) = self.pieces.front().copied().filter(|first| first.start <= self.nxt) {
            self.pieces.pop_front();
            self.out_of_order -= first.end - first.start;
            self.nxt = self.nxt.max(first.end);
        }
        let nxt = self.nxt;
        let mut count = 0;
        for n in 0..self.report_count {
            if self.reports[n].end > nxt {
                self.reports[count] = self.reports[n];
                count += 1;
            }
        }
        self.report_count = count;
    }

    pub(in crate::tcp) fn is_quick(&self) -> bool {
        self.quick > 0 && !self.interactive
    }

    /// Acknowledges the next so many segments one by one.
    pub(in crate::tcp) fn add_quick(&mut self) {
        let segments = (self.wnd / (2 * u64::from(self.mss))).max(2).min(u64::from(MAX_QUICK));
        self.quick = self.quick.max(segments as u32);
    }

    pub(in crate::tcp) fn enter_quick(&mut self) {
        self.add_quick();
        self.interactive = false;
        self.ato_ns = ATO_MIN_NS;
    }

    /// The window has room to grow: acknowledge the next one at once, so that the sender learns of it.
    pub(in crate::tcp) fn keep_quick(&mut self) {
        self.quick |= 1;
    }

    pub(in crate::tcp) fn no_longer_quick(&mut self) {
        self.quick = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, end: u64) -> Range {
        Range { start, end }
    }

    #[test]
    fn pieces_join_and_the_latest_is_reported_first() {
        let mut rcv = Receiver::new(&StackConfig::default(), 1448);
        for piece in [range(20, 30), range(40, 50), range(60, 70)] {
            let (whole, twice) = rcv.insert(piece);
            assert_eq!((whole, twice), (piece, None));
            rcv.report(whole);
        }
        assert_eq!(rcv.reports[..rcv.report_count], [range(60, 70), range(40, 50), range(20, 30)]);
        let (whole, twice) = rcv.insert(range(30, 42));
        assert_eq!((whole, twice), (range(20, 50), Some(range(40, 42))));
        rcv.report(whole);
        assert_eq!(rcv.reports[..rcv.report_count], [range(20, 50), range(60, 70)]);
        assert_eq!((rcv.pieces.len(), rcv.out_of_order), (2, 40));
        rcv.nxt = 20;
        rcv.join();
        assert_eq!((rcv.nxt, rcv.out_of_order, rcv.report_count), (50, 10, 1));
    }
}
