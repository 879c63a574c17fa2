//! What a router answers to a packet that it can't forward.

use crate::segment::Segment;
use wt_link::Packet;

/// "Fragmentation needed" or "packet too big" from the router with this number; none for packets that get no answer.
pub(crate) fn too_big(_packet: &Packet<Segment>, _router: usize, _mtu: u32) -> Option<Vec<u8>> {
    None
}

/// "Time exceeded" from the router with this number.
pub(crate) fn time_exceeded(_packet: &Packet<Segment>, _router: usize) -> Option<Vec<u8>> {
    None
}
