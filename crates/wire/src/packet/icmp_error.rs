use super::ipv4::fill_checksum;
use super::{Checksum, IpView, Ipv4View, Ipv6View, PacketEdit, Protocol, TransportChecksum, fill_icmp_checksum, icmp};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The longest error message for IPv4 (RFC 1812 section 4.3.2.3).
const LONGEST_V4: usize = 576;
/// The longest error message for IPv6: the least MTU (RFC 4443 section 2.4 (c)).
const LONGEST_V6: usize = 1280;

/// What a router answers to an IPv4 packet that must not be fragmented and is longer than the next hop's MTU; `None` for
/// packets that get no answer.
///
/// # Source
/// RFC 1191 section 4; RFC 1122 section 3.2.2 for those without an answer.
///
/// # Example
/// ```
/// # let mut packet = vec![0; 60];
/// # packet[0] = 0x45; packet[3] = 60; packet[9] = 6;
/// # packet[12..20].copy_from_slice(&[192, 0, 2, 1, 192, 0, 2, 2]);
/// use wt_wire::{Icmpv4Kind, Icmpv4View, Ipv4View};
/// let answer = wt_wire::frag_needed(&packet, "198.51.100.1".parse()?, 1400).ok_or("no answer")?;
/// let ip = Ipv4View::new(&answer)?;
/// assert_eq!(Icmpv4View::new(ip.payload())?.kind(), Icmpv4Kind::FragNeeded { mtu: 1400 });
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use]
pub fn frag_needed(packet: &[u8], router: Ipv4Addr, mtu: u16) -> Option<Vec<u8>> {
    error_v4(packet, router, 3, 4, u32::from(mtu))
}

/// What a router answers to an IPv6 packet that is longer than the next hop's MTU; `None` for packets that get no answer.
///
/// # Source
/// RFC 4443 sections 2.4 (e) and 3.2. Unlike other errors it also answers packets to multicast groups.
#[must_use]
pub fn packet_too_big(packet: &[u8], router: Ipv6Addr, mtu: u32) -> Option<Vec<u8>> {
    error_v6(packet, router, 2, mtu)
}

/// What a router answers to a packet whose time to live (hop limit) runs out; `None` for packets that get no answer, and
/// if the router's address is of the other version.
///
/// # Source
/// RFC 792 and RFC 1812 section 5.2.7.3; RFC 4443 section 3.3.
#[must_use]
pub fn time_exceeded(packet: &[u8], router: IpAddr) -> Option<Vec<u8>> {
    match router {
        IpAddr::V4(router) => error_v4(packet, router, 11, 0, 0),
        IpAddr::V6(router) => error_v6(packet, router, 3, 0),
    }
}

/// What a host answers to a packet for a port at which nobody listens; `None` for packets that get no answer, and if the
/// host's address is of the other version.
///
/// # Source
/// RFC 792 and RFC 1122 section 3.2.2.1 (type 3, code 3); RFC 4443 section 3.1 (type 1, code 4).
#[must_use]
pub fn port_unreachable(packet: &[u8], host: IpAddr) -> Option<Vec<u8>> {
    match host {
        IpAddr::V4(host) => error_v4(packet, host, 3, 3, 0),
        IpAddr::V6(host) => {
            let mut answer = error_v6(packet, host, 1, 0)?;
            answer[41] = 4;
            fill_icmp_checksum(&mut answer);
            Some(answer)
        }
    }
}

/// The reply to an echo request, from the address to which it was sent; `None` for anything else.
///
/// # Source
/// RFC 792; RFC 4443 section 4.2.
#[must_use]
pub fn echo_reply(packet: &[u8]) -> Option<Vec<u8>> {
    let view = IpView::new(packet).ok()?;
    let (protocol, message) = view.transport()?;
    let (request, reply) = if protocol == Protocol::ICMP { (8, 0) } else { (128, 129) };
    let is_echo = matches!(protocol, Protocol::ICMP | Protocol::ICMPV6) && message.len() >= 8 && message[0] == request;
    if !is_echo {
        return None;
    }
    let (src, dst, end) = (view.src(), view.dst(), view.total_len());
    let at = end - message.len();
    let mut answer = packet[..end].to_vec();
    answer[at] = reply;
    let mut edit = PacketEdit::new(&mut answer, TransportChecksum::Whole).ok()?;
    edit.set_source(dst, None);
    edit.set_destination(src, None);
    let ttl = if src.is_ipv4() { 8 } else { 7 };
    answer[ttl] = 64;
    if src.is_ipv4() {
        let header = usize::from(answer[0] & 15) * 4;
        fill_checksum(&mut answer[..header]);
    }
    fill_icmp_checksum(&mut answer);
    Some(answer)
}

fn error_v4(packet: &[u8], router: Ipv4Addr, kind: u8, code: u8, word: u32) -> Option<Vec<u8>> {
    let offending = Ipv4View::quoted(packet).ok()?;
    if !answerable_v4(&offending) {
        return None;
    }
    let quote = offending.as_bytes();
    let quote = &quote[..quote.len().min(LONGEST_V4 - 28)];
    let mut answer = vec![0; 28];
    answer[0] = 0x45;
    // Precedence 6, internetwork control (RFC 1812 section 4.3.2.5).
    answer[1] = 0xc0;
    answer[2..4].copy_from_slice(&u16::try_from(28 + quote.len()).ok()?.to_be_bytes());
    answer[8] = 64;
    answer[9] = Protocol::ICMP.0;
    answer[12..16].copy_from_slice(&router.octets());
    answer[16..20].copy_from_slice(&offending.src().octets());
    fill_checksum(&mut answer[..20]);
    answer[20] = kind;
    answer[21] = code;
    answer[24..28].copy_from_slice(&word.to_be_bytes());
    answer.extend_from_slice(quote);
    let sum = Checksum::new().with(&answer[20..]).finish();
    answer[22..24].copy_from_slice(&sum.to_be_bytes());
    Some(answer)
}

/// No answer to later fragments, errors, and what doesn't come from or go to one host.
fn answerable_v4(offending: &Ipv4View<'_>) -> bool {
    let is_error = offending.protocol() == Protocol::ICMP
        && offending.payload().first().is_none_or(|kind| icmp::is_v4_error(*kind));
    let is_one = |address: Ipv4Addr| !address.is_unspecified() && !address.is_broadcast() && !address.is_multicast();
    offending.fragment_offset() == 0
        && !is_error
        && is_one(offending.src())
        && !offending.src().is_loopback()
        && is_one(offending.dst())
}

fn error_v6(packet: &[u8], router: Ipv6Addr, kind: u8, word: u32) -> Option<Vec<u8>> {
    let offending = Ipv6View::quoted(packet).ok()?;
    if !answerable_v6(&offending, kind == 2) {
        return None;
    }
    let quote = offending.as_bytes();
    let quote = &quote[..quote.len().min(LONGEST_V6 - 48)];
    let icmp_len = u16::try_from(8 + quote.len()).ok()?;
    let mut answer = vec![0; 48];
    answer[0] = 0x60;
    answer[4..6].copy_from_slice(&icmp_len.to_be_bytes());
    answer[6] = Protocol::ICMPV6.0;
    answer[7] = 64;
    answer[8..24].copy_from_slice(&router.octets());
    answer[24..40].copy_from_slice(&offending.src().octets());
    answer[40] = kind;
    answer[44..48].copy_from_slice(&word.to_be_bytes());
    answer.extend_from_slice(quote);
    let pseudo =
        Checksum::pseudo_header(router.into(), offending.src().into(), Protocol::ICMPV6.0, u32::from(icmp_len));
    let sum = pseudo.with(&answer[40..]).finish();
    answer[42..44].copy_from_slice(&sum.to_be_bytes());
    Some(answer)
}

fn answerable_v6(offending: &Ipv6View<'_>, too_big: bool) -> bool {
    let is_error = match IpView::V6(*offending).transport() {
        Some((Protocol::ICMPV6, payload)) => payload.first().is_none_or(|kind| *kind < 128),
        _ => false,
    };
    let src = offending.src();
    !is_error && !src.is_unspecified() && !src.is_multicast() && (too_big || !offending.dst().is_multicast())
}
