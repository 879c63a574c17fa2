use super::*;
use proptest::prelude::*;
use std::net::Ipv4Addr;

const ME: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 2));
const TARGET: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 3, 0, 2));
const ROUTER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 2, 0, 2));

/// An IPv4 packet around a transport payload.
fn ip(protocol: u8, src: IpAddr, dst: IpAddr, payload: &[u8]) -> Vec<u8> {
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (src, dst) else { unreachable!("only IPv4 here") };
    let len = u16::try_from(20 + payload.len()).unwrap();
    let mut bytes = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, protocol, 0, 0];
    bytes[2..4].copy_from_slice(&len.to_be_bytes());
    bytes.extend(src.octets());
    bytes.extend(dst.octets());
    let sum = Checksum::new().with(&bytes).finish();
    bytes[10..12].copy_from_slice(&sum.to_be_bytes());
    bytes.extend(payload);
    bytes
}

fn router() -> Ipv4Addr {
    Ipv4Addr::new(10, 2, 0, 2)
}

fn syn() -> Vec<u8> {
    let options = full_options(1460);
    let flags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ECE.0 | TcpFlags::CWR.0);
    let segment = Segment {
        addresses: (ME, TARGET),
        ports: (40_000, 80),
        seq: 77,
        ack: 0,
        flags,
        window: 65_535,
        options: &options,
        payload_len: 0,
        data: &[],
    };
    segment.to_bytes()
}

#[test]
fn an_echo_reply_is_ours_by_its_identifier_only() {
    let mut reply = echo_request(false, 7, 42, 0, 100);
    reply[0] = 0;
    reply[2..4].fill(0);
    let sum = Checksum::new().with(&reply).finish();
    reply[2..4].copy_from_slice(&sum.to_be_bytes());
    let packet = ip(1, TARGET, ME, &reply);
    let heard = ReceivedAnswer { target: TARGET, token: Token::Echo(42), said: ProbeAnswer::Reached { ttl: Some(61) } };
    assert_eq!(read_icmp(&packet, TARGET, Some(61), 7), Some(heard));
    assert_eq!(read_icmp(&packet, TARGET, Some(61), 8), None);
    let mut broken = packet;
    broken[50] ^= 1;
    assert_eq!(read_icmp(&broken, TARGET, Some(61), 7), None, "the checksum is wrong");
}

#[test]
fn all_echo_requests_of_one_size_have_one_checksum() {
    let sums: Vec<_> =
        (0..u16::MAX).step_by(1001).map(|seq| echo_request(false, 7, seq, 3, 64)[2..4].to_vec()).collect();
    assert!(sums.windows(2).all(|pair| pair[0] == pair[1]));
    assert_ne!(sums[0], echo_request(false, 7, 0, 4, 64)[2..4], "another flow");
}

#[test]
fn too_big_names_the_probe_that_it_quotes() {
    let probe = ip(1, ME, TARGET, &echo_request(false, 7, 43, 0, 1480));
    let error = wt_wire::frag_needed(&probe, router(), 1400).unwrap();
    let heard = read_icmp(&error, ROUTER, None, 7).unwrap();
    assert_eq!((heard.target, heard.token, heard.said), (TARGET, Token::Echo(43), ProbeAnswer::TooBig { mtu: 1400 }));
    assert_eq!(read_icmp(&error, ROUTER, None, 9), None, "another program's");
}

#[test]
fn a_quoted_syn_shows_what_the_router_saw() {
    let error = wt_wire::time_exceeded(&ip(6, ME, TARGET, &syn()), ROUTER).unwrap();
    let heard = read_icmp(&error, ROUTER, None, 7).unwrap();
    assert_eq!(heard.token, Token::Tcp { port: 40_000, seq: 77 });
    let ProbeAnswer::Expired { quote } = heard.said else { panic!("{heard:?}") };
    let seen =
        SynOptions { mss: Some(1460), window_scale: Some(7), sack: true, timestamps: true, fast_open: true, ecn: true };
    assert_eq!((quote.tos, quote.options), (Some(0), Some(seen)));
}

#[test]
fn a_quotation_of_eight_bytes_names_the_probe_and_leaves_the_rest_unknown() {
    let error = wt_wire::time_exceeded(&ip(6, ME, TARGET, &syn()), ROUTER).unwrap();
    let mut short = error[..20 + 8 + 20 + 8].to_vec();
    let len = u16::try_from(short.len()).unwrap();
    short[2..4].copy_from_slice(&len.to_be_bytes());
    short[22..24].fill(0);
    let sum = Checksum::new().with(&short[20..]).finish();
    short[22..24].copy_from_slice(&sum.to_be_bytes());
    let heard = read_icmp(&short, ROUTER, None, 7).unwrap();
    assert_eq!(heard.token, Token::Tcp { port: 40_000, seq: 77 });
    assert!(matches!(heard.said, ProbeAnswer::Expired { quote: Quote { options: None, .. } }));
}

#[test]
fn a_duplicate_is_named_by_the_target() {
    let mut options = vec![1, 1, 5, 10];
    options.extend(900u32.to_be_bytes());
    options.extend(1000u32.to_be_bytes());
    let ack = Segment {
        addresses: (TARGET, ME),
        ports: (80, 40_000),
        seq: 5,
        ack: 2000,
        flags: TcpFlags::ACK,
        window: 100,
        options: &options,
        payload_len: 0,
        data: &[],
    };
    let packet = ip(6, TARGET, ME, &ack.to_bytes());
    assert_eq!(read_tcp(&packet, false), Some(((80, 40_000), TcpHeard::Duplicate { start: 900 })));
}

#[test]
fn segments_have_right_checksums() {
    let bytes = syn();
    assert!(TcpView::new(&bytes).unwrap().checksum_ok(ME, TARGET));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_the_readers(bytes in prop::collection::vec(any::<u8>(), 0..200), ttl in any::<Option<u8>>()) {
        for from in [ROUTER, IpAddr::from([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1])] {
            let _ = read_icmp(&bytes, from, ttl, 7);
            let _ = read_tcp(&bytes, from.is_ipv6());
        }
    }

    #[test]
    fn no_cut_and_no_flipped_bit_of_a_true_answer_breaks_the_readers(cut in 0usize..200, flip in 0usize..1600, mend: bool) {
        let mut error = wt_wire::time_exceeded(&ip(6, ME, TARGET, &syn()), ROUTER).unwrap();
        error.truncate(cut.max(1));
        let at = flip / 8 % error.len();
        error[at] ^= 1 << (flip % 8);
        if mend && error.len() > 28 {
            error[22..24].fill(0);
            let sum = Checksum::new().with(&error[20..]).finish();
            error[22..24].copy_from_slice(&sum.to_be_bytes());
        }
        let _ = read_icmp(&error, ROUTER, None, 7);
    }
}
