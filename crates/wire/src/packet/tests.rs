use super::*;
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

const A4: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const B4: Ipv4Addr = Ipv4Addr::new(198, 51, 100, 2);
const A6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const B6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);
const ROUTER4: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 254);
const ROUTER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0xff, 0, 0, 0, 0, 0xfe);

fn ipv4(protocol: Protocol, flags_and_offset: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let header_len = 20 + options.len();
    let mut bytes = vec![0; 20];
    bytes[0] = 0x40 | (header_len / 4) as u8;
    bytes[1] = 0x02;
    bytes[2..4].copy_from_slice(&((header_len + payload.len()) as u16).to_be_bytes());
    bytes[4..6].copy_from_slice(&0x1234u16.to_be_bytes());
    bytes[6..8].copy_from_slice(&flags_and_offset.to_be_bytes());
    bytes[8] = 64;
    bytes[9] = protocol.0;
    bytes[12..16].copy_from_slice(&A4.octets());
    bytes[16..20].copy_from_slice(&B4.octets());
    bytes.extend_from_slice(options);
    ipv4::fill_checksum(&mut bytes);
    bytes.extend_from_slice(payload);
    bytes
}

fn ipv6(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 40];
    bytes[0] = 0x60;
    bytes[1] = 0x20;
    bytes[4..6].copy_from_slice(&(payload.len() as u16).to_be_bytes());
    bytes[6] = next;
    bytes[7] = 64;
    bytes[8..24].copy_from_slice(&A6.octets());
    bytes[24..40].copy_from_slice(&B6.octets());
    bytes.extend_from_slice(payload);
    bytes
}

fn tcp(flags: u16, options: &[u8], payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; 20];
    bytes[0..2].copy_from_slice(&443u16.to_be_bytes());
    bytes[2..4].copy_from_slice(&50_000u16.to_be_bytes());
    bytes[4..8].copy_from_slice(&0xffff_fff0u32.to_be_bytes());
    bytes[8..12].copy_from_slice(&1000u32.to_be_bytes());
    bytes[12..14].copy_from_slice(&(((5 + options.len() / 4) as u16) << 12 | flags).to_be_bytes());
    bytes[14..16].copy_from_slice(&64_240u16.to_be_bytes());
    bytes.extend_from_slice(options);
    bytes.extend_from_slice(payload);
    bytes
}

#[test]
fn an_ipv4_header_is_read_field_by_field() {
    let bytes = ipv4(Protocol::TCP, 0x4000, &[1, 1, 1, 0], b"payload");
    let mut longer = bytes.clone();
    longer.extend_from_slice(b"trailing bytes of Ethernet's padding");
    let view = Ipv4View::new(&longer).unwrap();
    assert_eq!((view.header_len(), view.total_len()), (24, 31));
    assert_eq!((view.src(), view.dst(), view.ident(), view.ttl()), (A4, B4, 0x1234, 64));
    assert_eq!((view.protocol(), view.dscp(), view.ecn()), (Protocol::TCP, 0, Ecn::Ect0));
    assert!(view.dont_fragment() && !view.is_fragment() && view.checksum_ok());
    assert_eq!((view.options(), view.payload()), (&[1, 1, 1, 0][..], &b"payload"[..]));
    assert_eq!(view.as_bytes(), &bytes[..]);
}

#[test]
fn broken_packets_are_refused_with_the_reason() {
    let good = ipv4(Protocol::TCP, 0, &[], &[0; 20]);
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        Ipv4View::new(&bytes).map(|_| ())
    };
    assert_eq!(with(0, 0x65), Err(ViewError::Version { what: "an IPv4 packet", version: 6 }));
    assert_eq!(with(0, 0x44), Err(ViewError::Length { what: "an IPv4 header", value: 16 }));
    assert_eq!(with(3, 19), Err(ViewError::Length { what: "an IPv4 packet", value: 19 }));
    assert_eq!(with(3, 41), Err(ViewError::Truncated { what: "an IPv4 packet", needed: 41, available: 40 }));
    assert!(Ipv4View::new(&good[..39]).is_err() && Ipv4View::quoted(&good[..28]).is_ok());
    assert!(Ipv6View::new(&good).is_err() && IpView::new(&[]).is_err() && IpView::new(&[0x50; 60]).is_err());
    assert!(TcpView::new(&[0; 19]).is_err() && TcpView::new(&[0; 20]).is_err());
    assert!(UdpView::new(&[0; 8]).is_err(), "a length below 8");
}

#[test]
fn an_ipv6_header_and_its_extensions_are_read() {
    // Hop-by-hop (8 bytes), fragment, destination options (16 bytes), UDP.
    let mut payload = vec![44, 0, 1, 4, 0, 0, 0, 0];
    payload.extend_from_slice(&[60, 0, 0, 1, 0, 0, 0, 9]);
    payload.extend_from_slice(&[17, 1, 1, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    payload.extend_from_slice(&[0, 53, 0, 99, 0, 9, 0, 0, 0xaa]);
    let bytes = ipv6(0, &payload);
    let view = Ipv6View::new(&bytes).unwrap();
    assert_eq!((view.src(), view.dst(), view.hop_limit()), (A6, B6, 64));
    assert_eq!((view.traffic_class(), view.ecn(), view.flow_label()), (2, Ecn::Ect0, 0));
    let upper = view.upper_layer().unwrap();
    assert_eq!((upper.protocol, upper.fragment_offset, upper.is_fragment), (Protocol::UDP, 0, true));
    let udp = UdpView::new(upper.payload).unwrap();
    assert_eq!((udp.src_port(), udp.dst_port(), udp.payload()), (53, 99, &[0xaa][..]));
    // A later fragment shows no transport.
    let mut later = payload.clone();
    later[10] = 5;
    assert_eq!(IpView::new(&ipv6(0, &later)).unwrap().transport(), None);
    // A chain without end is refused.
    assert!(Ipv6View::new(&ipv6(60, &[60, 0, 0, 0, 0, 0, 0, 0].repeat(20))).unwrap().upper_layer().is_err());
}

#[test]
fn the_options_of_a_syn_are_read() {
    let options = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 1, 0, 0, 0, 0, 7, 1, 3, 3, 7, 34, 2, 254, 4, 0, 1, 0, 0];
    let bytes = tcp(0x0c2, &options, &[]);
    let view = TcpView::new(&bytes).unwrap();
    let read: Vec<TcpOption<'_>> = view.options().collect::<Result<_, _>>().unwrap();
    assert_eq!(
        read,
        [
            TcpOption::Mss(1460),
            TcpOption::SackPermitted,
            TcpOption::Timestamps { value: 256, echo: 7 },
            TcpOption::Nop,
            TcpOption::WindowScale(7),
            TcpOption::FastOpen(&[]),
            TcpOption::Unknown { kind: 254, data: &[0, 1] },
        ]
    );
    assert!(view.flags().has(TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR) && !view.flags().has_any(TcpFlags::ACK));
    assert_eq!((view.seq(), view.ack(), view.window(), view.seq_len()), (Seq(0xffff_fff0), Seq(1000), 64_240, 1));
    let scale = |option| if let TcpOption::WindowScale(shift) = option { Some(shift) } else { None };
    assert_eq!(view.options().find(scale), Some(7));
}

#[test]
fn broken_options_end_the_list_with_an_error() {
    for broken in [&[2u8, 1, 0, 0][..], &[2, 0, 0, 0], &[1, 1, 1, 2], &[8, 10, 0, 0]] {
        let bytes = tcp(16, broken, &[]);
        let mut options = TcpView::new(&bytes).unwrap().options().skip_while(|o| *o == Ok(TcpOption::Nop));
        assert!(options.next().is_some_and(|option| option.is_err()), "{broken:?}");
        assert_eq!(options.next(), None);
    }
    // Right kind, wrong length: handed out as bytes.
    let bytes = tcp(16, &[2, 3, 9, 0], &[]);
    let first = TcpView::new(&bytes).unwrap().options().next();
    assert_eq!(first, Some(Ok(TcpOption::Unknown { kind: 2, data: &[9] })));
}

#[test]
fn duplicate_sack_blocks_are_told_from_new_ones() {
    let sack = |blocks: &[(u32, u32)]| {
        let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
        for (start, end) in blocks {
            option.extend_from_slice(&start.to_be_bytes());
            option.extend_from_slice(&end.to_be_bytes());
        }
        tcp(16, &option, &[])
    };
    let duplicate = |blocks: &[(u32, u32)], ack| {
        let bytes = sack(blocks);
        let find =
            |option| if let TcpOption::Sack(blocks) = option { Some(blocks.is_duplicate(Seq(ack))) } else { None };
        TcpView::new(&bytes).unwrap().options().find(find).unwrap()
    };
    // The examples of RFC 2883, sections 4.1 and 4.2.
    assert!(duplicate(&[(3000, 3500)], 4000));
    assert!(duplicate(&[(3000, 3500), (4500, 5000)], 4000));
    assert!(duplicate(&[(5000, 5500), (4500, 6000)], 4000));
    assert!(!duplicate(&[(4500, 5000)], 4000));
    assert!(!duplicate(&[(6000, 6500), (4500, 5000)], 4000));
    assert!(!duplicate(&[(5, 500)], u32::MAX - 4), "around the end of the circle");
}

#[test]
fn sequence_numbers_go_around() {
    assert!(Seq(u32::MAX).is_before(Seq(0)) && !Seq(0).is_before(Seq(u32::MAX)) && !Seq(7).is_before(Seq(7)));
    assert_eq!(Seq(5).since(Seq(u32::MAX)), 6);
    assert_eq!(Seq(u32::MAX).plus(2), Seq(1));
}

#[test]
fn routers_answer_and_quote() {
    let packet = ipv4(Protocol::TCP, 0x4000, &[], &tcp(16, &[], &[9; 1460]));
    let answer = frag_needed(&packet, ROUTER4, 1400).unwrap();
    let ip = Ipv4View::new(&answer).unwrap();
    assert!(ip.checksum_ok());
    assert_eq!((ip.src(), ip.dst(), ip.protocol(), ip.total_len()), (ROUTER4, A4, Protocol::ICMP, 576));
    let icmp = Icmpv4View::new(ip.payload()).unwrap();
    assert!(icmp.checksum_ok() && icmp.is_error());
    assert_eq!(icmp.kind(), Icmpv4Kind::FragNeeded { mtu: 1400 });
    let quote = icmp.quote().unwrap();
    assert_eq!((quote.src(), quote.dst(), quote.total_len()), (A4, B4, 1500));
    assert_eq!(TcpView::new(quote.payload()).unwrap().src_port(), 443);

    let short = ipv4(Protocol::UDP, 0, &[], &[0, 1, 0, 2, 0, 8, 0, 0]);
    let answer = time_exceeded(&short, ROUTER4.into()).unwrap();
    let icmp = Icmpv4View::new(Ipv4View::new(&answer).unwrap().payload()).unwrap();
    assert_eq!(icmp.kind(), Icmpv4Kind::TimeExceeded { code: 0 });
    assert_eq!(icmp.payload(), &short[..]);

    let packet = ipv6(6, &tcp(16, &[], &[9; 1440]));
    let answer = packet_too_big(&packet, ROUTER6, 1280).unwrap();
    assert_eq!(answer.len(), 1280);
    let ip = Ipv6View::new(&answer).unwrap();
    assert_eq!((ip.src(), ip.dst()), (ROUTER6, A6));
    let icmp = Icmpv6View::new(ip.payload()).unwrap();
    assert!(icmp.checksum_ok(ROUTER6, A6));
    assert_eq!(icmp.kind(), Icmpv6Kind::PacketTooBig { mtu: 1280 });
    assert_eq!(icmp.quote().unwrap().total_len(), 1500);
    let answer = time_exceeded(&packet, ROUTER6.into()).unwrap();
    let icmp = Icmpv6View::new(Ipv6View::new(&answer).unwrap().payload()).unwrap();
    assert_eq!(icmp.kind(), Icmpv6Kind::TimeExceeded { code: 0 });
}

#[test]
fn some_packets_get_no_answer() {
    let icmp = |kind: u8| ipv4(Protocol::ICMP, 0, &[], &[kind, 0, 0, 0, 0, 0, 0, 0]);
    assert!(time_exceeded(&icmp(8), ROUTER4.into()).is_some(), "an echo request");
    for kind in [3, 4, 5, 11, 12] {
        assert_eq!(time_exceeded(&icmp(kind), ROUTER4.into()), None, "an error of type {kind}");
    }
    assert_eq!(time_exceeded(&ipv4(Protocol::UDP, 1, &[], &[0; 8]), ROUTER4.into()), None, "a later fragment");
    let to = |at: usize, address: [u8; 4]| {
        let mut packet = ipv4(Protocol::UDP, 0, &[], &[0; 8]);
        packet[at..at + 4].copy_from_slice(&address);
        frag_needed(&packet, ROUTER4, 1400)
    };
    assert!(to(16, [10, 0, 0, 1]).is_some());
    for (at, address) in
        [(16, [224, 0, 0, 1]), (16, [255; 4]), (12, [0; 4]), (12, [127, 0, 0, 1]), (12, [239, 1, 1, 1])]
    {
        assert_eq!(to(at, address), None, "{address:?}");
    }
    assert_eq!(time_exceeded(&icmp(8), ROUTER6.into()), None, "a router of the other version");
    let error = ipv6(58, &[1, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(packet_too_big(&error, ROUTER6, 1280), None);
    let mut group = ipv6(17, &[0; 8]);
    group[24] = 0xff;
    assert!(packet_too_big(&group, ROUTER6, 1280).is_some() && time_exceeded(&group, ROUTER6.into()).is_none());
}

#[test]
fn a_packet_that_must_stay_whole_stays_whole() {
    let packet = ipv4(Protocol::UDP, 0x4000, &[], &[0; 1480]);
    assert_eq!(fragment_ipv4(&packet, 1400), Err(FragmentError::DontFragment));
    assert_eq!(fragment_ipv4(&packet, 1500), Ok(vec![packet.clone()]));
    let packet = ipv4(Protocol::UDP, 0, &[], &[0; 1480]);
    assert_eq!(fragment_ipv4(&packet, 27), Err(FragmentError::MtuTooSmall { mtu: 27, header_len: 20 }));
    assert_eq!(fragment_ipv4(&packet, 28).unwrap().len(), 185);
}

#[test]
fn later_fragments_carry_only_the_options_that_are_copied() {
    // Record route (7, not copied), then a stream id (136, copied).
    let packet = ipv4(Protocol::UDP, 0, &[7, 3, 4, 136, 4, 0, 9, 0], &[5; 100]);
    let fragments = fragment_ipv4(&packet, 72).unwrap();
    let options: Vec<&[u8]> = fragments.iter().map(|f| Ipv4View::new(f).unwrap().options()).collect();
    assert_eq!(options, [&[7, 3, 4, 136, 4, 0, 9, 0][..], &[136, 4, 0, 9], &[136, 4, 0, 9]]);
}

#[test]
fn ttl_and_marks_keep_the_checksum_right() {
    let mut packet = ipv4(Protocol::TCP, 0, &[], &[0; 20]);
    for left in (0..64).rev() {
        assert_eq!(decrement_ttl(&mut packet), Ok(left));
        assert!(Ipv4View::new(&packet).unwrap().checksum_ok());
    }
    assert_eq!(decrement_ttl(&mut packet), Ok(0));
    assert_eq!(mark_ce(&mut packet), Ok(true));
    assert_eq!(Ipv4View::new(&packet).unwrap().ecn(), Ecn::Ce);
    assert!(Ipv4View::new(&packet).unwrap().checksum_ok());
    let mut packet = ipv6(6, &[0; 20]);
    assert_eq!((decrement_ttl(&mut packet), mark_ce(&mut packet)), (Ok(63), Ok(true)));
    let view = Ipv6View::new(&packet).unwrap();
    assert_eq!((view.hop_limit(), view.ecn(), view.flow_label()), (63, Ecn::Ce, 0));
    packet[1] = 0;
    assert_eq!(mark_ce(&mut packet), Ok(false));
}

/// Reads everything that every view offers.
fn read_all(bytes: &[u8]) {
    for ip in [IpView::new(bytes), IpView::quoted(bytes)].into_iter().flatten() {
        let _ = (ip.total_len(), ip.ttl(), ip.ecn(), ip.dont_fragment(), ip.src(), ip.dst());
        if let IpView::V4(view) = ip {
            let _ = (view.dscp(), view.ident(), view.is_fragment(), view.checksum_ok(), view.header(), view.options());
        }
        if let IpView::V6(view) = ip {
            let _ = (view.traffic_class(), view.flow_label(), view.upper_layer());
        }
        if let Some((_, payload)) = ip.transport() {
            read_transport(payload, ip.src(), ip.dst());
        }
    }
    read_transport(bytes, A4.into(), B4.into());
    let _ = (frag_needed(bytes, ROUTER4, 576), packet_too_big(bytes, ROUTER6, 1280));
    let _ = (time_exceeded(bytes, ROUTER4.into()), time_exceeded(bytes, ROUTER6.into()));
    let _ = (decrement_ttl(&mut bytes.to_vec()), mark_ce(&mut bytes.to_vec()));
}

fn read_transport(bytes: &[u8], src: IpAddr, dst: IpAddr) {
    for tcp in [TcpView::new(bytes), TcpView::quoted(bytes)].into_iter().flatten() {
        let _ = (tcp.src_port(), tcp.dst_port(), tcp.seq(), tcp.ack(), tcp.flags(), tcp.window(), tcp.urgent());
        let _ = (tcp.checksum_ok(src, dst), tcp.payload(), tcp.seq_len());
        for option in tcp.options().flatten() {
            if let TcpOption::Sack(blocks) = option {
                let _ = (blocks.is_duplicate(tcp.ack()), blocks.len(), blocks.iter().count());
            }
        }
    }
    for udp in [UdpView::new(bytes), UdpView::quoted(bytes)].into_iter().flatten() {
        let _ = (udp.src_port(), udp.len(), udp.checksum_ok(src, dst), udp.payload());
    }
    if let Ok(icmp) = Icmpv4View::new(bytes) {
        let _ = (icmp.kind(), icmp.checksum_ok(), icmp.quote());
    }
    if let Ok(icmp) = Icmpv6View::new(bytes) {
        let _ = (icmp.kind(), icmp.checksum_ok(A6, B6), icmp.quote());
    }
}

/// The checksum as RFC 1071 section 4.1 puts it: one word after the other.
fn plain_checksum(bytes: &[u8]) -> u16 {
    let mut sum = 0u32;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
    }
    while sum >> 16 != 0 {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_bytes_make_a_view_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), first in 0u8..4) {
        // Mostly something that looks like IP.
        if let (Some(byte), 1..) = (bytes.first_mut(), first) {
            *byte = if first < 3 { 0x40 | *byte & 15 } else { 0x60 };
        }
        read_all(&bytes);
    }

    #[test]
    fn damaged_packets_make_no_view_panic(at in 0usize..90, byte: u8, cut in 0usize..200, v6: bool) {
        let segment = tcp(16, &[1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9], &[7; 40]);
        let mut bytes = if v6 { ipv6(6, &segment) } else { ipv4(Protocol::TCP, 0, &[], &segment) };
        bytes[at % 84] = byte;
        bytes.truncate(cut);
        read_all(&bytes);
    }

    #[test]
    fn the_checksum_is_that_of_the_rfc_however_it_is_fed(bytes in proptest::collection::vec(any::<u8>(), 0..3000), cut: usize, again: usize) {
        let cut = cut % (bytes.len() + 1);
        let (first, rest) = bytes.split_at(cut);
        let (second, third) = rest.split_at(again % (rest.len() + 1));
        let fed = Checksum::new().with(first).with(second).with(third);
        prop_assert_eq!(fed.finish(), plain_checksum(&bytes));
    }

    #[test]
    fn an_updated_checksum_is_the_one_computed_anew(mut words in proptest::collection::vec(any::<u16>(), 2..20), at: usize, new: u16) {
        // A header is never all zeros: then both forms of zero would be right.
        words[0] = 0x4500;
        let at = 1 + at % (words.len() - 1);
        let bytes = |words: &[u16]| words.iter().flat_map(|word| word.to_be_bytes()).collect::<Vec<u8>>();
        let before = plain_checksum(&bytes(&words));
        let old = std::mem::replace(&mut words[at], new);
        prop_assert_eq!(updated_checksum(before, old, new), plain_checksum(&bytes(&words)));
    }

    #[test]
    fn transport_checksums_come_out_zero(payload in proptest::collection::vec(any::<u8>(), 0..100), v6: bool) {
        let (src, dst): (IpAddr, IpAddr) = if v6 { (A6.into(), B6.into()) } else { (A4.into(), B4.into()) };
        let mut segment = tcp(16, &[], &payload);
        let sum = Checksum::pseudo_header(src, dst, 6, segment.len() as u32).with(&segment).finish();
        segment[16..18].copy_from_slice(&sum.to_be_bytes());
        prop_assert!(TcpView::new(&segment).unwrap().checksum_ok(src, dst));
        segment[20 - 6] ^= 0x10;
        prop_assert!(!TcpView::new(&segment).unwrap().checksum_ok(src, dst));
    }

    #[test]
    fn fragments_fit_and_together_are_the_packet(payload in proptest::collection::vec(any::<u8>(), 1..4000), mtu in 68usize..1600, again in 68usize..600) {
        let packet = ipv4(Protocol::UDP, 0, &[1, 1, 1, 0], &payload);
        let mut together = vec![None; payload.len()];
        let mut last = 0;
        for fragment in fragment_ipv4(&packet, mtu).unwrap() {
            prop_assert!(fragment.len() <= mtu);
            // A second router with a smaller MTU.
            for part in fragment_ipv4(&fragment, again).unwrap() {
                let view = Ipv4View::new(&part).unwrap();
                prop_assert!(view.checksum_ok() && part.len() <= again);
                prop_assert_eq!((view.ident(), view.src(), view.dst()), (0x1234, A4, B4));
                last += usize::from(!view.more_fragments());
                for (index, byte) in view.payload().iter().enumerate() {
                    prop_assert_eq!(together[view.fragment_offset() + index].replace(*byte), None);
                }
            }
        }
        prop_assert_eq!(last, 1);
        prop_assert_eq!(together.into_iter().collect::<Option<Vec<u8>>>(), Some(payload));
    }
}
