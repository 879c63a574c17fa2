//! What was sent and isn't cumulatively acknowledged: a ring of segments in the order of the stream, and through it a list
//! in the order of sending.
//!
//! What this leaves out: bursts as one unit. The kernel keeps a burst in one buffer and splits it when a part is
//! acknowledged; here each segment stands by itself from the beginning, with the burst's time. It matters
//! for what a burst occupies in the send buffer while a part of it is acknowledged.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | `tcp_rtx_queue`, a red-black tree | – | a ring, searched by halving |
//! | `tsorted_sent_queue` | 8985 | a list through the ring |
//! | `retransmit_skb_hint` | – | `resume` |

use std::collections::VecDeque;

/// No segment.
const NIL: u32 = u32::MAX;

/// Bits of [`SentSegment::flags`].
pub(super) mod mark {
    pub(crate) const SACKED: u8 = 1;
    pub(crate) const LOST: u8 = 2;
    /// Sent again, and that copy is on the way.
    pub(crate) const RETRANS: u8 = 4;
    pub(crate) const EVER_RETRANS: u8 = 8;
    pub(crate) const APP_LIMITED: u8 = 16;
    /// The first of a burst.
    pub(crate) const HEAD: u8 = 32;
    /// Already counted for the delivery rate.
    pub(crate) const RATED: u8 = 64;
}

/// A segment that was sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct SentSegment {
    pub(super) seq: u64,
    pub(super) len: u16,
    pub(super) flags: u8,
    prev: u32,
    next: u32,
    /// When it was sent last, ns.
    pub(super) sent_ns: u64,
    pub(super) first_tx_us: u64,
    pub(super) delivered_us: u64,
    pub(super) delivered: u64,
}

impl SentSegment {
    pub(super) const fn new(seq: u64, len: u16) -> Self {
        Self { seq, len, flags: 0, prev: NIL, next: NIL, sent_ns: 0, first_tx_us: 0, delivered_us: 0, delivered: 0 }
    }

    pub(super) const fn end(&self) -> u64 {
        self.seq + self.len as u64
    }

    pub(super) const fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A segment's number: it stays the same while others before it are acknowledged.
pub(super) type Id = u32;

/// The ring with its list.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    ring: VecDeque<SentSegment>,
    /// Number of the first one in the ring.
    base: Id,
    /// First and last in the order of sending.
    oldest: Option<Id>,
    newest: Option<Id>,
    /// Nothing before this is to be retransmitted.
    resume: Id,
    /// Bursts in the ring.
    pub(super) bursts: u32,
}

/// Numbers use 31 bits, so that none is [`NIL`].
const MASK: u32 = 0x7FFF_FFFF;

impl Scoreboard {
    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    pub(super) fn front(&self) -> Option<&SentSegment> {
        self.ring.front()
    }

    pub(super) fn back_id(&self) -> Option<Id> {
        self.ring.len().checked_sub(1).map(|index| self.id(index))
    }

    pub(super) fn first_id(&self) -> Id {
        self.base
    }

    fn id(&self, index: usize) -> Id {
        self.base.wrapping_add(index as u32) & MASK
    }

    fn index(&self, id: Id) -> usize {
        (id.wrapping_sub(self.base) & MASK) as usize
    }

    pub(super) fn get(&self, id: Id) -> &SentSegment {
        &self.ring[self.index(id)]
    }

    pub(super) fn get_mut(&mut self, id: Id) -> &mut SentSegment {
        let index = self.index(id);
        &mut self.ring[index]
    }

    pub(super) fn following(&self, id: Id) -> Option<Id> {
        let next = self.index(id) + 1;
        (next < self.ring.len()).then(|| self.id(next))
    }

    /// The first segment that ends behind this byte.
    pub(super) fn find(&self, seq: u64) -> Option<Id> {
        let index = self.ring.partition_point(|sent| sent.end() <= seq);
        (index < self.ring.len()).then(|| self.id(index))
    }

    /// Adds what was just sent for the first time.
    pub(super) fn push(&mut self, sent: SentSegment) {
        self.bursts += u32::from(sent.has(mark::HEAD));
        let id = self.id(self.ring.len());
        self.ring.push_back(sent);
        self.link_last(id);
    }

    /// Takes the first one out.
    pub(super) fn pop(&mut self) -> Option<SentSegment> {
        let first = self.base;
        self.unlink(first);
        let sent = self.ring.pop_front()?;
        self.bursts -= u32::from(sent.has(mark::HEAD));
        self.base = first.wrapping_add(1) & MASK;
        if self.resume == first {
            self.resume = self.base;
        }
        Some(sent)
    }

    /// The one that was sent longest ago and is neither delivered nor given up.
    pub(super) fn oldest(&self) -> Option<Id> {
        self.oldest
    }

    /// The one that was sent after it.
    pub(super) fn sent_after(&self, id: Id) -> Option<Id> {
        Some(self.get(id).next).filter(|next| *next != NIL)
    }

    fn link_last(&mut self, id: Id) {
        let last = self.newest;
        let sent = self.get_mut(id);
        (sent.prev, sent.next) = (last.unwrap_or(NIL), NIL);
        match last {
            Some(last) => self.get_mut(last).next = id,
            None => self.oldest = Some(id),
        }
        self.newest = Some(id);
    }

    /// Takes it out of the order of sending, if it is in there.
    pub(super) fn unlink(&mut self, id: Id) {
        if self.ring.is_empty() {
            return;
        }
        let SentSegment { prev, next, .. } = *self.get(id);
        if prev == NIL && next == NIL && self.oldest != Some(id) {
            return;
        }
        match prev {
            NIL => self.oldest = Some(next).filter(|next| *next != NIL),
            prev => self.get_mut(prev).next = next,
        }
        match next {
            NIL => self.newest = Some(prev).filter(|prev| *prev != NIL),
            next => self.get_mut(next).prev = prev,
        }
        let sent = self.get_mut(id);
        (sent.prev, sent.next) = (NIL, NIL);
    }

    /// It was retransmitted: it is the youngest now.
    pub(super) fn relink_last(&mut self, id: Id) {
        self.unlink(id);
        self.link_last(id);
    }

    /// Something at `id` is to be retransmitted: the search begins there at the latest.
    pub(super) fn look_from(&mut self, id: Id) {
        if self.ring.is_empty() || self.index(id) < self.index(self.resume) {
            self.resume = id;
        }
    }

    /// Where the search for what is to be retransmitted goes on.
    pub(super) fn resume(&self) -> Option<Id> {
        (self.index(self.resume) < self.ring.len()).then_some(self.resume)
    }

    pub(super) fn set_resume(&mut self, id: Option<Id>) {
        self.resume = id.unwrap_or_else(|| self.id(self.ring.len()));
    }

    /// Cuts everything anew into segments of at most `mss` bytes, across the borders of those that left as one burst and have met
    /// the same fate since: they are one buffer. Each part inherits the marks and times of the whole. Returns how many parts each mark has now: all, SACKED, LOST, RETRANS.
    pub(super) fn resegment(&mut self, mss: u16) -> [u32; 4] {
        let mut order: Vec<Id> = Vec::with_capacity(self.ring.len());
        let mut next = self.oldest;
        while let Some(id) = next {
            order.push(id);
            next = self.sent_after(id);
        }
        let mut parts: Vec<(usize, usize)> = Vec::with_capacity(self.ring.len());
        let mut ring = VecDeque::with_capacity(self.ring.len() * 2);
        let mut rest = self.ring.iter().peekable();
        while let Some(sent) = rest.next() {
            let (begin, mut whole, mut members) = (ring.len(), u64::from(sent.len), 1);
            let is_same = |next: &&SentSegment| {
                next.flags == sent.flags & !mark::HEAD && next.sent_ns == sent.sent_ns && !next.has(mark::HEAD)
            };
            while let Some(next) = rest.next_if(is_same) {
                whole += u64::from(next.len);
                members += 1;
            }
            let mut at = 0;
            while at < whole {
                let len = u64::from(mss).min(whole - at);
                let flags = if at == 0 { sent.flags } else { sent.flags & !mark::HEAD };
                ring.push_back(SentSegment {
                    seq: sent.seq + at,
                    len: len as u16,
                    flags,
                    prev: NIL,
                    next: NIL,
                    ..*sent
                });
                at += len;
            }
            parts.push((begin, ring.len()));
            // The others of the burst have become parts of the first one.
            parts.extend(std::iter::repeat_n((ring.len(), ring.len()), members - 1));
        }
        let old: Vec<usize> = order.iter().map(|id| self.index(*id)).collect();
        self.ring = ring;
        (self.oldest, self.newest, self.resume) = (None, None, self.base);
        for index in old {
            for part in parts[index].0..parts[index].1 {
                self.link_last(self.id(part));
            }
        }
        let count = |flag: u8| self.ring.iter().filter(|sent| sent.has(flag)).count() as u32;
        [self.ring.len() as u32, count(mark::SACKED), count(mark::LOST), count(mark::RETRANS)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn board(count: u64) -> Scoreboard {
        let mut board = Scoreboard::default();
        (0..count).for_each(|n| board.push(SentSegment::new(n * 1000, 1000)));
        board
    }

    fn order(board: &Scoreboard) -> Vec<u64> {
        let mut seqs = Vec::new();
        let mut next = board.oldest();
        while let Some(id) = next {
            seqs.push(board.get(id).seq / 1000);
            next = board.sent_after(id);
        }
        seqs
    }

    #[test]
    fn what_is_sent_again_is_the_youngest_and_what_is_delivered_is_gone() {
        let mut board = board(5);
        let second = board.find(1000).unwrap();
        board.relink_last(second);
        board.unlink(board.find(3000).unwrap());
        assert_eq!(order(&board), [0, 2, 4, 1]);
        board.pop();
        assert_eq!(order(&board), [2, 4, 1]);
        board.relink_last(board.find(3000).unwrap());
        assert_eq!(order(&board), [2, 4, 1, 3]);
        while board.pop().is_some() {}
        assert_eq!(order(&board), Vec::<u64>::new());
        board.push(SentSegment::new(9000, 1));
        assert_eq!(order(&board), [9]);
    }

    #[test]
    fn a_smaller_mss_cuts_every_segment_and_keeps_the_order_of_sending() {
        let mut board = board(3);
        board.relink_last(board.first_id());
        board.get_mut(board.find(1000).unwrap()).flags |= mark::LOST;
        assert_eq!(board.resegment(400), [9, 0, 3, 0]);
        let mut seqs = Vec::new();
        let mut next = board.oldest();
        while let Some(id) = next {
            seqs.push(board.get(id).seq);
            next = board.sent_after(id);
        }
        assert_eq!(seqs, [1000, 1400, 1800, 2000, 2400, 2800, 0, 400, 800]);
        assert_eq!(board.get(board.find(1999).unwrap()).len, 200);
    }

    #[test]
    fn a_burst_is_cut_anew_as_the_one_buffer_that_it_is() {
        let mut board = Scoreboard::default();
        for n in 0..4 {
            let mut sent = SentSegment::new(n * 1448, 1448);
            sent.flags = if n % 2 == 0 { mark::HEAD } else { 0 };
            board.push(sent);
        }
        assert_eq!(board.resegment(1440), [6, 0, 0, 0], "1440 + 1440 + 16, twice");
        let lengths: Vec<u16> = board.ring.iter().map(|sent| sent.len).collect();
        assert_eq!(lengths, [1440, 1440, 16, 1440, 1440, 16]);
        assert_eq!((board.bursts, board.ring[3].seq), (2, 2896));
        // What was acknowledged selectively is a buffer of its own.
        board.ring[1].flags |= mark::SACKED;
        assert_eq!(board.resegment(1440)[0], 6);
    }
}
