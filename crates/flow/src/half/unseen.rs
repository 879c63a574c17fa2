//! What an end sent that isn't in the capture, as the numbers tell that are in it.

use super::Half;
use wt_wire::Seq;

impl Half {
    /// Bytes that it had sent, as its last ACK says, and that neither came here nor were acknowledged by the other end.
    pub(crate) fn unseen(&self, rev: &Self) -> u32 {
        let (Some(until), Some(ack)) = (self.unseen_until, rev.ack) else { return 0 };
        u32::try_from(until.since(ack)).unwrap_or(0)
    }

    /// Bytes from what was covered by ACKs to a number that the other end acknowledges now, of which nothing passed here. What was sent before
    /// this end was first seen isn't the capture's.
    pub(super) fn missing(&self, covered: Option<Seq>, until: Seq) -> u64 {
        let (Some(covered), Some(first)) = (covered, self.first) else { return 0 };
        let from = if covered.is_before(first) { first } else { covered };
        u64::try_from(until.since(from)).unwrap_or(0)
    }

    /// The same behind all that passed here. Behind its FIN or RST it sends nothing, and a single number may be that of its FIN.
    pub(super) fn missing_at_end(&self, covered: Option<Seq>, until: Seq) -> u64 {
        let last = self.next.filter(|next| (self.fin || self.rst) && next.is_before(until)).unwrap_or(until);
        Some(self.missing(covered, last)).filter(|missing| *missing > 1).unwrap_or(0)
    }
}
