//! Holes in the capture: what its packets say of the time in which they came is no more than that there was something.

use super::{Connection, End};
use crate::packet::Segment;
use wt_wire::{Seq, TcpFlags};

/// A time in which nothing was under way as seen here, until a segment came whose number says that something had been sent before. If it got
/// lost on the way here, it is sent again; if the capture lacks it, it is acknowledged as it is.
#[derive(Debug, Clone, Copy)]
pub(super) struct DoubtfulPause {
    by: End,
    idle_ns: u64,
    until: Seq,
}

impl Connection {
    /// Whether this segment acknowledges data of the other end that isn't in the capture.
    pub(super) fn acknowledges_unseen(&self, by: End, s: &Segment) -> bool {
        // A single number may be a FIN's.
        let beyond = |next: Seq| next.plus(1).is_before(s.ack);
        let other = self.half(by.other());
        s.has(TcpFlags::ACK) && !s.has(TcpFlags::RST) && !other.fin && other.next.is_some_and(beyond)
    }

    /// Notes that an end was idle for so long, if this segment of it comes behind numbers that didn't come here.
    pub(super) fn doubt_pause(&mut self, by: End, s: &Segment, idle_ns: u64) {
        if self.half(by).next.is_some_and(|next| next.is_before(s.seq)) {
            self.doubtful = Some(DoubtfulPause { by, idle_ns, until: s.seq });
        }
    }

    /// After a segment of an end: whether what it acknowledges says that the pause before was a hole. `unseen_before` are the ACKs of what isn't
    /// in the capture that it had sent before.
    pub(super) fn resolve_pause(&mut self, end: End, s: &Segment, unseen_before: u64) {
        let is_told =
            |doubt: &DoubtfulPause| doubt.by == end.other() && s.has(TcpFlags::ACK) && !s.ack.is_before(doubt.until);
        let Some(doubt) = self.doubtful.filter(is_told) else { return };
        self.doubtful = None;
        if self.half(end).counts.acked_unseen > unseen_before {
            let idle = &mut self.time.idle[doubt.by.index()];
            *idle = idle.saturating_sub(doubt.idle_ns);
            self.spend_hole(doubt.idle_ns);
        }
    }

    /// Something was under way that isn't in the capture.
    pub(super) fn spend_hole(&mut self, ns: u64) {
        self.time.under_way += ns;
        self.time.hole += ns;
    }

    /// How long the capture lacks what was under way, while nothing else was, µs.
    pub(crate) fn hole_us(&self) -> u64 {
        self.time.hole / 1000
    }
}
