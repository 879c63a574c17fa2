//! What of the time under way is told by what an end sends next.

use super::{Connection, End};
use crate::half::Half;
use crate::packet::Segment;
use crate::supply::SupplyFacts;

/// Bytes of a header that the timestamp of each segment takes.
///
/// # Source
/// RFC 7323 section 3.2 and appendix A: ten, and two to align them.
const STAMP_BYTES: u16 = 12;

impl Connection {
    /// An end sends data; known are the times from here to it and back, to the other end and back, and the RTT, ns.
    pub(super) fn supply(
        &mut self,
        end: End,
        s: &Segment,
        now: u64,
        (back_ns, forth_ns, rtt_ns): (Option<u64>, Option<u64>, Option<u64>),
    ) {
        let is_answer = self.spoke_last == Some(end.other());
        let [client, server] = &mut self.halves;
        let (own, other) = if end == End::Client { (client, server) } else { (server, client) };
        if own.next.is_some_and(|next| s.seq.is_before(next)) {
            return;
        }
        if is_answer && other.next.is_some_and(|next| !s.ack.is_before(next)) {
            other.supply.answered(back_ns);
        }
        let flight = other.ack.map_or(0, |ack| u32::try_from(s.end().since(ack)).unwrap_or(0));
        if own.supply.flows_on(s, now, flight) {
            return;
        }
        let facts = SupplyFacts {
            now,
            rtt_ns,
            back_ns,
            forth_ns,
            last_data_ns: own.last_data_ns,
            last_ack_ns: other.ack_at_ns,
            is_all_acknowledged: !own.has_outstanding(),
            full: full_payload(own, other),
            flight,
        };
        own.supply.go_on(s, &facts);
    }
}

/// Payload of a full segment, bytes, as both SYNs allow it; 0 where they aren't in the capture.
fn full_payload(own: &Half, other: &Half) -> u32 {
    let (Some(own), Some(other)) = (own.offer, other.offer) else { return 0 };
    let (Some(own_mss), Some(other_mss)) = (own.mss, other.mss) else { return 0 };
    let stamps = if own.timestamps && other.timestamps { STAMP_BYTES } else { 0 };
    u32::from(own_mss.min(other_mss).saturating_sub(stamps))
}
