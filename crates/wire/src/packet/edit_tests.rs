use super::*;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const A: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1))];
const B: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(198, 51, 100, 2)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2))];
const NAT: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(203, 0, 113, 9)), IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 9, 9, 9, 9, 9, 9))];

/// MSS 1460, SACK, timestamps, NOP, window scale 7, fast open: as a Linux sends them, and then a cookie.
const SYN_OPTIONS: [u8; 24] = [2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7, 34, 4, 0xaa, 0xbb];

/// The sum over pseudo-header and transport: 0xffff if the checksum is right, or the field if it is the partial one.
fn transport_sum(bytes: &[u8]) -> u16 {
    let view = IpView::new(bytes).unwrap();
    let (protocol, transport) = view.transport().unwrap();
    let sum = match protocol {
        Protocol::ICMP => Checksum::new(),
        _ => Checksum::pseudo_header(view.src(), view.dst(), protocol.0, transport.len() as u32),
    };
    sum.with(transport).folded()
}

fn header_is_right(bytes: &[u8]) -> bool {
    Ipv4View::new(bytes).map_or(true, |view| view.checksum_ok())
}

/// A packet from A to B with right checksums.
fn packet(v6: bool, protocol: Protocol, transport: &[u8], checksum_at: usize) -> Vec<u8> {
    let mut bytes = vec![0; if v6 { 40 } else { 20 }];
    if v6 {
        bytes[0] = 0x60;
        bytes[1] = 0x20;
        bytes[4..6].copy_from_slice(&(transport.len() as u16).to_be_bytes());
        (bytes[6], bytes[7]) = (protocol.0, 64);
        if let (IpAddr::V6(a), IpAddr::V6(b)) = (A[1], B[1]) {
            bytes[8..24].copy_from_slice(&a.octets());
            bytes[24..40].copy_from_slice(&b.octets());
        }
    } else {
        (bytes[0], bytes[1], bytes[8], bytes[9]) = (0x45, 2, 64, protocol.0);
        bytes[2..4].copy_from_slice(&((20 + transport.len()) as u16).to_be_bytes());
        if let (IpAddr::V4(a), IpAddr::V4(b)) = (A[0], B[0]) {
            bytes[12..16].copy_from_slice(&a.octets());
            bytes[16..20].copy_from_slice(&b.octets());
        }
        ipv4::fill_checksum(&mut bytes);
    }
    let at = bytes.len();
    bytes.extend_from_slice(transport);
    bytes[at + checksum_at..at + checksum_at + 2].fill(0);
    let sum = !transport_sum(&bytes);
    bytes[at + checksum_at..at + checksum_at + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

fn syn(v6: bool) -> Vec<u8> {
    let mut tcp = vec![0; 20];
    tcp[0..4].copy_from_slice(&[0x9c, 0x40, 0, 80]);
    tcp[4..8].copy_from_slice(&77_000u32.to_be_bytes());
    tcp[12..14].copy_from_slice(&(11u16 << 12 | 0xc2).to_be_bytes()); // SYN, ECE, CWR
    tcp.extend_from_slice(&SYN_OPTIONS);
    packet(v6, Protocol::TCP, &tcp, 16)
}

fn udp(v6: bool) -> Vec<u8> {
    packet(v6, Protocol::UDP, &[0x30, 0x39, 0, 53, 0, 11, 0, 0, 1, 2, 3], 6)
}

fn echo(v6: bool, reply: bool) -> Vec<u8> {
    let kind = [[8, 128], [0, 129]][usize::from(reply)][usize::from(v6)];
    let protocol = if v6 { Protocol::ICMPV6 } else { Protocol::ICMP };
    packet(v6, protocol, &[kind, 0, 0, 0, 0x12, 0x34, 0, 1, 9, 8, 7], 2)
}

#[test]
fn every_change_keeps_the_checksums_right_in_both_versions() {
    type Change = fn(&mut PacketEdit<'_>, usize) -> bool;
    let changes: [(&str, Change); 9] = [
        ("mss", |edit, _| edit.clamp_mss(1360)),
        ("mss up", |edit, _| edit.set_mss(8960)),
        ("scale", |edit, _| edit.set_window_scale(2)),
        ("strip one at an odd place", |edit, _| edit.strip_options(&[3])),
        ("strip all", |edit, _| edit.strip_options(&[2, 3, 4, 8, 34])),
        ("flags", |edit, _| edit.clear_flags(TcpFlags::ECE | TcpFlags::CWR)),
        ("ecn", |edit, _| edit.clear_ecn()),
        ("source", |edit, v| {
            edit.set_source(NAT[v], Some(1024));
            true
        }),
        ("destination", |edit, v| {
            edit.set_destination(NAT[v], Some(7));
            true
        }),
    ];
    for (name, change) in changes {
        for v6 in [false, true] {
            let before = syn(v6);
            let mut bytes = before.clone();
            let mut edit = PacketEdit::new(&mut bytes, TransportChecksum::Whole).unwrap();
            assert!(change(&mut edit, usize::from(v6)), "{name}");
            assert_eq!(transport_sum(&bytes), 0xffff, "{name}, IPv6 {v6}");
            assert!(header_is_right(&bytes) && bytes != before && bytes.len() == before.len(), "{name}");
        }
    }
}

#[test]
fn a_partial_checksum_stays_the_pseudo_headers_sum() {
    for v6 in [false, true] {
        let mut bytes = syn(v6);
        let at = if v6 { 40 } else { 20 };
        let sum = |bytes: &[u8]| {
            let view = IpView::new(bytes).unwrap();
            Checksum::pseudo_header(view.src(), view.dst(), 6, (bytes.len() - at) as u32).folded()
        };
        let partial = sum(&bytes).to_be_bytes();
        bytes[at + 16..at + 18].copy_from_slice(&partial);
        let mut edit = PacketEdit::new(&mut bytes, TransportChecksum::Partial).unwrap();
        edit.set_source(NAT[usize::from(v6)], Some(5));
        edit.clamp_mss(1000);
        edit.strip_options(&[4, 8]);
        let field = u16::from_be_bytes([bytes[at + 16], bytes[at + 17]]);
        assert_eq!(field, sum(&bytes), "IPv6 {v6}");
    }
}

#[test]
fn what_is_stripped_becomes_padding_and_the_rest_stays() {
    let mut bytes = syn(false);
    let mut edit = PacketEdit::new(&mut bytes, TransportChecksum::Whole).unwrap();
    assert!(edit.strip_options(&[4, 3]));
    assert!(!edit.strip_options(&[4, 3]), "they are gone");
    let seen: Vec<_> = edit.tcp().unwrap().options().map(Result::unwrap).filter(|o| *o != TcpOption::Nop).collect();
    assert_eq!(
        seen,
        [TcpOption::Mss(1460), TcpOption::Timestamps { value: 9, echo: 0 }, TcpOption::FastOpen(&[0xaa, 0xbb])]
    );
    assert!(!edit.set_window_scale(3), "there is none to change");
    assert!(!edit.clamp_mss(1460), "it is small enough");
}

#[test]
fn ports_of_udp_and_identifiers_of_echoes_are_changed_as_nat_does() {
    for v6 in [false, true] {
        let nat = NAT[usize::from(v6)];
        let mut bytes = udp(v6);
        let mut edit = PacketEdit::new(&mut bytes, TransportChecksum::Whole).unwrap();
        assert_eq!(edit.ports(), Some((12345, 53)));
        edit.set_source(nat, Some(2000));
        assert_eq!(edit.ports(), Some((2000, 53)));
        assert_eq!(transport_sum(&bytes), 0xffff);
        for reply in [false, true] {
            let mut bytes = echo(v6, reply);
            let mut edit = PacketEdit::new(&mut bytes, TransportChecksum::Whole).unwrap();
            assert_eq!(edit.ports(), Some(if reply { (0, 0x1234) } else { (0x1234, 0) }));
            edit.set_source(nat, Some(9));
            edit.set_destination(nat, Some(10));
            assert_eq!(edit.ports(), Some(if reply { (0, 10) } else { (9, 0) }));
            assert_eq!(transport_sum(&bytes), 0xffff, "IPv6 {v6}, reply {reply}");
        }
    }
    let mut without = udp(false);
    without[26..28].fill(0);
    PacketEdit::new(&mut without, TransportChecksum::Whole).unwrap().set_source(NAT[0], Some(1));
    assert_eq!(without[26..28], [0, 0], "no checksum stays none");
}

#[test]
fn an_echo_request_is_answered_from_where_it_went() {
    for v6 in [false, true] {
        let answer = echo_reply(&echo(v6, false)).unwrap();
        let view = IpView::new(&answer).unwrap();
        assert_eq!((view.src(), view.dst(), view.ttl()), (B[usize::from(v6)], A[usize::from(v6)], 64));
        assert_eq!(transport_sum(&answer), 0xffff);
        assert!(header_is_right(&answer));
        assert_eq!(view.transport().unwrap().1[4..], [0x12, 0x34, 0, 1, 9, 8, 7]);
        assert!(echo_reply(&echo(v6, true)).is_none() && echo_reply(&udp(v6)).is_none());
        let refusal = port_unreachable(&udp(v6), B[usize::from(v6)]).unwrap();
        assert_eq!(transport_sum(&refusal), 0xffff);
        let (_, message) = IpView::new(&refusal).unwrap().transport().unwrap();
        assert_eq!(message[..2], if v6 { [1, 4] } else { [3, 3] });
    }
}

proptest! {
    #[test]
    fn no_bytes_whatever_make_a_change_panic(mut bytes in prop::collection::vec(any::<u8>(), 0..120), nibble in 0..3u8) {
        if let Some(first) = bytes.first_mut() {
            *first = [0x45, 0x60, *first][usize::from(nibble)];
        }
        let mut copy = bytes.clone();
        let _ = echo_reply(&bytes);
        let _ = port_unreachable(&bytes, NAT[0]);
        let _ = fill_icmp_checksum(&mut copy);
        for checksum in [TransportChecksum::Whole, TransportChecksum::Partial] {
            if let Ok(mut edit) = PacketEdit::new(&mut bytes, checksum) {
                let _ = edit.ports();
                edit.set_source(NAT[0], Some(1));
                edit.set_destination(NAT[1], Some(1));
                edit.clear_ecn();
                edit.clear_flags(TcpFlags::ECE);
                edit.clamp_mss(1);
                edit.set_window_scale(1);
                edit.strip_options(&[2, 3, 4, 5, 8, 34]);
            }
        }
    }
}
