//! What a router does about a packet that it can't forward as it is.

use crate::host::{router_v4, router_v6};
use crate::segment::{Run, Segment, Transport};
use std::net::IpAddr;
use wt_link::Packet;
use wt_wire::Checksum;

/// The packet as it stands before the router.
pub(crate) fn whole(packet: &Packet<Segment>) -> Vec<u8> {
    let run = Run::of(packet);
    let outgoing = run.outgoing(0);
    let mut bytes = outgoing.headers[..outgoing.headers_len].to_vec();
    bytes.extend_from_slice(&run.buffer.bytes()[outgoing.payload]);
    bytes
}

/// The packet as it is on a wire: with a whole checksum. `None` if its place lies outside of the packet.
pub(crate) fn on_the_wire(packet: &Packet<Segment>) -> Option<Vec<u8>> {
    let mut bytes = whole(packet);
    if let Some((start, offset)) = packet.payload.buffer.layout.checksum {
        // The field holds the pseudo-header's sum.
        let (start, at) = (usize::from(start), usize::from(start) + usize::from(offset));
        let sum = Checksum::new().with(bytes.get(start..)?).finish();
        // Zero means none to UDP (RFC 768).
        let udp = packet.payload.buffer.layout.transport == Transport::Udp;
        let sum = if udp && sum == 0 { 0xffff } else { sum };
        bytes.get_mut(at..at + 2)?.copy_from_slice(&sum.to_be_bytes());
    }
    Some(bytes)
}

/// "Fragmentation needed" or "packet too big" from the router with this number; `None` for packets that get no answer.
pub(crate) fn too_big(packet: &Packet<Segment>, router: usize, mtu: u32) -> Option<Vec<u8>> {
    let bytes = whole(packet);
    if packet.payload.buffer.layout.v6 {
        wt_wire::packet_too_big(&bytes, router_v6(router), mtu)
    } else {
        wt_wire::frag_needed(&bytes, router_v4(router), u16::try_from(mtu).unwrap_or(u16::MAX))
    }
}

/// "Time exceeded" from the router with this number; `None` for packets that get no answer.
pub(crate) fn time_exceeded(packet: &Packet<Segment>, router: usize) -> Option<Vec<u8>> {
    let v6 = packet.payload.buffer.layout.v6;
    let address = if v6 { IpAddr::V6(router_v6(router)) } else { IpAddr::V4(router_v4(router)) };
    wt_wire::time_exceeded(&whole(packet), address)
}

/// What the router with this number answers to a packet for its own address: a reply to an echo, "port unreachable" to
/// UDP; `None` for packets that get no answer.
pub(crate) fn own_answer(packet: &Packet<Segment>, router: usize) -> Option<Vec<u8>> {
    let v6 = packet.payload.buffer.layout.v6;
    let address = if v6 { IpAddr::V6(router_v6(router)) } else { IpAddr::V4(router_v4(router)) };
    let bytes = whole(packet);
    match packet.payload.buffer.layout.transport {
        Transport::Udp => wt_wire::port_unreachable(&bytes, address),
        Transport::Tcp => None,
        Transport::Other => wt_wire::echo_reply(&bytes),
    }
}

/// The fragments of an IPv4 packet that allows it; none if it doesn't.
pub(crate) fn fragments(packet: &Packet<Segment>, mtu: u32) -> Vec<Vec<u8>> {
    let layout = &packet.payload.buffer.layout;
    if packet.dont_fragment || layout.v6 {
        return Vec::new();
    }
    // Nobody can make the checksum of a part: it is made now.
    let Some(bytes) = on_the_wire(packet) else { return Vec::new() };
    wt_wire::fragment_ipv4(&bytes, mtu as usize).unwrap_or_default()
}
