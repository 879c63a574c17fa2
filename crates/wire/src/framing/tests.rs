use super::*;
use proptest::prelude::*;
use wt_units::BitsPerSecond;

fn framing(text: &str) -> Framing {
    Framing::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn wire(text: &str, ip_len: u64) -> u64 {
    framing(text).wire_len(Bytes(ip_len)).get()
}

/// What Linux's sch_cake computes for a packet of so many bytes (overhead, then mpu, then the coding).
fn cake(ip_len: u64, overhead: u64, mpu: u64, coding: Coding) -> u64 {
    let len = (ip_len + overhead).max(mpu);
    match coding {
        Coding::Plain => len,
        Coding::Atm => len.div_ceil(48) * 53,
        Coding::Ptm => len + len.div_ceil(64),
    }
}

#[test]
fn every_keyword_of_tc_cake_has_its_constant() {
    use Coding::{Atm, Plain, Ptm};
    for (keyword, overhead, mpu, coding) in [
        ("raw", 0, 0, Plain),
        ("noatm", 0, 0, Plain),
        ("atm", 0, 0, Atm),
        ("ptm", 0, 0, Ptm),
        ("conservative", 48, 0, Atm),
        ("pppoa-vcmux", 10, 0, Atm),
        ("pppoa-llc", 14, 0, Atm),
        ("pppoe-vcmux", 32, 0, Atm),
        ("pppoe-llcsnap", 40, 0, Atm),
        ("bridged-vcmux", 24, 0, Atm),
        ("bridged-llcsnap", 32, 0, Atm),
        ("ipoa-vcmux", 8, 0, Atm),
        ("ipoa-llcsnap", 16, 0, Atm),
        ("pppoe-ptm", 30, 0, Ptm),
        ("bridged-ptm", 22, 0, Ptm),
        ("docsis", 18, 64, Plain),
        ("ethernet", 38, 84, Plain),
        ("ether-vlan", 4, 0, Plain),
        ("ethernet ether-vlan", 42, 84, Plain),
        ("ethernet ether-vlan ether-vlan", 46, 84, Plain),
        ("pppoe-ptm ether-vlan", 34, 0, Ptm),
        ("pppoe-llcsnap ether-vlan", 44, 0, Atm),
        ("overhead 44 atm", 44, 0, Atm),
        ("overhead=18 mpu=64", 18, 64, Plain),
        ("ethernet overhead 44", 44, 84, Plain),
        ("conservative noatm", 48, 0, Plain),
        ("ethernet raw", 0, 84, Plain),
        ("mpu 64", 0, 64, Plain),
    ] {
        for ip_len in (20..=1600).chain([9000, 65_535]) {
            assert_eq!(wire(keyword, ip_len), cake(ip_len, overhead, mpu, coding), "{keyword} at {ip_len}");
        }
    }
}

#[test]
fn a_negative_overhead_shortens_the_packet_and_never_below_nothing() {
    assert_eq!(wire("overhead=-14", 100), 86);
    assert_eq!(wire("overhead=-64", 20), 0);
    assert_eq!(wire("overhead -14 atm", 62), 53);
}

#[test]
fn links_add_their_headers() {
    for (stack, ip_len, expected) in [
        ("ethernet", 92, 130),
        ("vlan", 92, 134),
        ("ethernet-vlan", 92, 134),
        ("ethernet+vlan", 92, 134),
        ("vlan+ethernet", 92, 134),
        ("qinq", 92, 138),
        ("ethernet+qinq", 92, 138),
        ("vlan+vlan", 92, 138),
        ("ethernet", 1500, 1538),
        ("ethernet", 20, 84),
        ("ethernet", 46, 84),
        ("ethernet", 47, 85),
        ("vlan", 42, 84),
        ("vlan", 43, 85),
        ("pppoe", 1492, 1538),
        ("ppp+pppoe+ethernet", 1492, 1538),
        ("pppoe+vlan", 1492, 1542),
        ("pppoe+ether-vlan", 1492, 1542),
        ("ether-vlan", 1492, 1496),
        ("mpls+mpls", 1500, 1546),
        ("ppp", 1500, 1507),
        ("pppoe-llc-bridged-fcs-atm", 1444, 31 * 53),
        ("pppoe-llc-bridged-fcs-atm", 1445, 32 * 53),
        ("pppoe-llc-bridged-fcs-atm", 1492, 32 * 53),
        ("pppoe-llc-bridged-fcs-atm", 1493, 33 * 53),
        ("pppoe-llcsnap+fcs", 1492, 32 * 53),
        ("pppoe-llc-bridged-atm", 1496, 32 * 53),
        ("pppoe-vcmux-bridged-fcs-atm", 1500, 32 * 53),
        ("pppoe-vcmux-bridged-atm", 1504, 32 * 53),
        ("llc-bridged-fcs-atm", 1500, 32 * 53),
        ("vcmux-bridged-fcs-atm", 1508, 32 * 53),
    ] {
        assert_eq!(wire(stack, ip_len), expected, "{stack} at {ip_len}");
    }
}

#[test]
fn tunnels_bring_their_carriers_and_pad_exactly() {
    for (stack, ip_len, expected) in [
        ("wireguard", 1408, 1408 + 60),
        ("wireguard", 1409, 1424 + 60),
        ("wireguard+ip6", 1408, 1408 + 80),
        ("wireguard+udp+ip6", 1408, 1408 + 80),
        ("wireguard+ethernet", 1408, 1408 + 98),
        ("wg/udp/ip/ethernet", 1408, 1408 + 98),
        // ESP tunnel, AES-GCM: 20 + 8 + 8, packet and 2 in fours, 16.
        ("esp", 1402, 1404 + 52),
        ("esp", 1403, 1408 + 52),
        ("esp+udp", 1402, 1404 + 60),
        ("esp-cbc-sha1", 1438, 1440 + 20 + 24 + 12),
        ("esp-cbc-sha1", 1439, 1456 + 20 + 24 + 12),
        ("esp-cbc-sha256", 1438, 1440 + 20 + 24 + 16),
        ("gre", 1476, 1500),
        ("gre+ip6", 1476, 1520),
        ("gre-key", 1472, 1500),
        ("gretap", 1462, 1500),
        ("vxlan", 1450, 1500),
        ("vxlan+ip6", 1430, 1500),
        ("vlan+vxlan", 1446, 1500),
        ("geneve", 1450, 1500),
        ("l2tp", 1462, 1500),
        ("l2tpv3", 1462, 1500),
        ("6in4", 1480, 1500),
        ("ipip", 1480, 1500),
        ("4in6", 1460, 1500),
        // Transport mode: GRE and ESP in one IP packet.
        ("gre+esp", 1400, 1408 + 34 - 2 + 20),
        ("l2tp+udp+esp+ip4", 1400, 1420 + 34 - 2 + 20),
        ("ipip+ipip", 100, 140),
        ("wireguard+wireguard", 96, 96 + 60 + 4 + 60),
    ] {
        assert_eq!(wire(stack, ip_len), expected, "{stack} at {ip_len}");
        let link = if stack.ends_with("ethernet") { 38 } else { 0 };
        assert_eq!(framing(stack).outer_len(Bytes(ip_len)), Bytes(expected - link));
    }
}

#[test]
fn wireguard_does_not_pad_beyond_the_mtu_of_its_interface() {
    let vpn = framing("wireguard+ip6");
    assert_eq!(vpn.at_mtu(Bytes(1420)).outer_len(Bytes(1420)), Bytes(1500));
    assert_eq!(vpn.at_mtu(Bytes(1420)).outer_len(Bytes(1418)), Bytes(1500));
    assert_eq!(vpn.at_mtu(Bytes(1420)).outer_len(Bytes(1400)), Bytes(1488));
    assert_eq!(vpn.outer_len(Bytes(1420)), Bytes(1504));
    // An inner tunnel's full packet is what WireGuard's interface carries.
    assert_eq!(framing("vxlan+wireguard").at_mtu(Bytes(1370)).outer_len(Bytes(1370)), Bytes(1480));
}

#[test]
fn the_fitting_mtu_is_the_largest_that_fits() {
    for (stack, link_mtu, expected) in [
        ("wireguard+ip6+ethernet", 1500, 1420),
        ("wireguard+ethernet", 1500, 1440),
        ("wireguard+ip6+pppoe-ptm", 1500, 1412),
        ("esp", 1500, 1446),
        ("gre", 1500, 1476),
        ("vxlan", 1500, 1450),
        ("6in4", 1500, 1480),
        ("ethernet", 1500, 1500),
        ("pppoe-llc-bridged-fcs-atm", 1500, 1492),
        ("mpls+mpls+ethernet", 1500, 1492),
        ("wireguard", 40, 0),
    ] {
        assert_eq!(framing(stack).fitting_mtu(Bytes(link_mtu)), Bytes(expected), "{stack}");
    }
}

#[test]
fn adsl_is_best_at_whole_cells() {
    let adsl = framing("pppoe-llc-bridged-fcs-atm");
    let best = |max| adsl.best_mtu(Bytes(max), Headers::TCP4).unwrap().get();
    assert_eq!(
        (best(1444), best(1454), best(1489), best(1490), best(1492), best(1500)),
        (1444, 1444, 1444, 1490, 1492, 1492)
    );
    let efficiency = |mtu| adsl.bulk(Headers::TCP4, Bytes(mtu)).unwrap().efficiency().get();
    assert!((efficiency(1444) - 0.8545).abs() < 5e-5, "{}", efficiency(1444));
    for mtu in 41..=1500 {
        let cells = adsl.cells(Bytes(mtu)).unwrap();
        assert_eq!(efficiency(mtu), (mtu - 40) as f64 / (53 * cells) as f64);
    }
    // The sawtooth between 1400 and 1500: about three points from a peak to the valley behind it.
    let depth = efficiency(1444) - efficiency(1445);
    assert!((0.025..0.03).contains(&depth), "{depth}");
}

#[test]
fn known_totals_come_out_to_the_byte() {
    let ethernet = framing("ethernet");
    let udp = ethernet.bulk(Headers::UDP4, Bytes(1500)).unwrap();
    let tcp = ethernet.bulk(Headers::TCP4, Bytes(1500)).unwrap();
    assert_eq!((udp.payload_len, udp.wire_len), (Bytes(1472), Bytes(1538)));
    assert_eq!((tcp.payload_len, tcp.wire_len), (Bytes(1460), Bytes(1538)));
    assert_eq!(format!("{:.2}", udp.overhead().unwrap().get() * 100.0), "4.48");
    assert_eq!(format!("{:.2}", tcp.overhead().unwrap().get() * 100.0), "5.34");
    // 8 MiB/s of TCP payload.
    let needed = tcp.link_rate_for(BitsPerSecond(8 * 8 * 1024 * 1024));
    assert!(needed > BitsPerSecond(70_000_000) && needed < BitsPerSecond(71_000_000), "{needed}");
    let v6 = Headers { ip: IpVersion::V6, transport: Transport::Tcp { options_len: 12 } };
    assert_eq!(ethernet.bulk(v6, Bytes(1500)).unwrap().payload_len, Bytes(1428));
}

#[test]
fn a_long_payload_is_split_and_an_empty_one_takes_a_packet() {
    let ethernet = framing("ethernet");
    let account = ethernet.account(Headers::TCP4, Bytes(1500), Bytes(3000)).unwrap();
    assert_eq!(account.packets, 3);
    assert_eq!(account.wire_len, Bytes(1538 + 1538 + 80 + 40 + 38));
    assert_eq!(account.ip_len, Bytes(3120));
    let ack = ethernet.account(Headers::TCP4, Bytes(1500), Bytes(0)).unwrap();
    assert_eq!((ack.packets, ack.wire_len, ack.overhead()), (1, Bytes(84), None));
    assert_eq!(ethernet.account(Headers::TCP4, Bytes(1500), Bytes(2920)).unwrap().packets, 2);
    assert!(ethernet.bulk(Headers::TCP4, Bytes(40)).is_err());
    assert!(ethernet.bulk(Headers::TCP4, Bytes(65_536)).is_err());
}

#[test]
fn mistakes_are_named_with_what_is_near() {
    for (text, part) in [
        ("", "at least one word"),
        (" + / ", "at least one word"),
        ("ethrnet", "did you mean ethernet"),
        ("wireguard+etherent", "ethernet"),
        ("pppoe-llcsnp", "pppoe-llcsnap"),
        ("overhead", "from -64 to 256"),
        ("overhead=257", "from -64 to 256"),
        ("overhead=-65", "not \"-65\""),
        ("overhead=4x", "not \"4x\""),
        ("mpu=-1", "from 0 to 256"),
        ("mpu=257", "from 0 to 256"),
        ("ip4+ethernet", "below the packet's own IP header"),
        ("ethernet/ip/udp/wireguard", "\"ethernet\" can't be inside \"ip4\""),
        ("ethernet+wireguard", "\"ethernet\" can't be inside \"wireguard\""),
        ("udp+ip4", "carries no tunnel"),
        ("tcp+ethernet", "carries no tunnel"),
        ("wireguard+vlan+wireguard", "can't be inside"),
    ] {
        let error = Framing::parse(text).unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
    assert_eq!(Framing::parse(&"vlan+".repeat(25)), Err(FramingError::TooLong));
}

#[test]
fn every_word_stands_by_itself_or_says_why_not() {
    for word in Framing::words() {
        for name in std::iter::once(&word.name).chain(word.aliases) {
            let text = name.replace("=N", "=40");
            match Framing::parse(&text) {
                Ok(framing) => assert_eq!(Framing::parse(&framing.to_string()), Ok(framing)),
                Err(error) => assert!(word.group == Group::Carrier, "{text}: {error}"),
            }
        }
    }
    let names: Vec<&str> = Framing::words().flat_map(|w| std::iter::once(&w.name).chain(w.aliases)).copied().collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(names.len(), unique.len(), "a spelling is given twice");
}

fn any_stack() -> impl Strategy<Value = Framing> {
    let word =
        proptest::sample::select(Framing::words().map(|word| word.name.replace("=N", "=40")).collect::<Vec<_>>());
    proptest::collection::vec(word, 1..6)
        .prop_filter_map("not every order is a stack", |words| Framing::parse(&words.join("+")).ok())
}

proptest! {
    #[test]
    fn wire_len_never_falls_and_never_is_shorter_than_the_packet(stack in any_stack(), len in 0u64..70_000, more in 0u64..200) {
        prop_assert!(stack.wire_len(Bytes(len)) >= Bytes(len));
        prop_assert!(stack.wire_len(Bytes(len)) <= stack.wire_len(Bytes(len + more)));
        prop_assert!(stack.wire_len(Bytes(u64::MAX - more)) >= Bytes(u64::MAX - more));
    }

    #[test]
    fn the_linear_form_says_the_same(stack in any_stack(), len in 64u64..70_000) {
        if let Some(Linear { add, min, coding }) = stack.linear() {
            let framed = len.saturating_add_signed(add).max(min.get());
            let wire = cake(framed, 0, 0, coding);
            prop_assert_eq!(stack.wire_len(Bytes(len)), Bytes(wire));
        }
    }

    #[test]
    fn cells_have_a_period_of_48(stack in any_stack(), len in 300u64..70_000) {
        if let (Some(cells), false) = (stack.cells(Bytes(len)), stack.has_tunnel()) {
            prop_assert_eq!(stack.cells(Bytes(len + 48)), Some(cells + 1));
            prop_assert_eq!(stack.wire_len(Bytes(len)), Bytes(cells * 53));
        }
    }

    #[test]
    fn pieces_add_up_to_the_wire(stack in any_stack(), payload in 0u64..9000, options in 0u8..=60, v6: bool, udp: bool) {
        let ip = if v6 { IpVersion::V6 } else { IpVersion::V4 };
        let transport = if udp { Transport::Udp } else { Transport::Tcp { options_len: options } };
        let headers = Headers { ip, transport };
        let mtu = Bytes(1500);
        for stack in [stack.clone(), stack.at_mtu(mtu)] {
            let total: i64 = stack.pieces(headers, Bytes(payload)).iter().map(|piece| piece.len).sum();
            let wire = stack.wire_len(headers.header_len() + Bytes(payload));
            prop_assert_eq!(total as u64, wire.get());
        }
    }

    #[test]
    fn no_payload_is_lost_or_more_efficient_than_one(stack in any_stack(), mtu in 110u64..65_536, payload in 0u64..1 << 40) {
        let account = stack.account(Headers::TCP4, Bytes(mtu), Bytes(payload)).unwrap();
        prop_assert_eq!(account.ip_len, Bytes(payload + 40 * account.packets));
        prop_assert!(account.efficiency().get() <= 1.0);
        let rate = BitsPerSecond(8_000_000);
        prop_assert!(account.goodput(rate) <= rate);
        prop_assert!(payload == 0 || account.link_rate_for(account.goodput(rate)) <= rate);
    }

    #[test]
    fn the_best_mtu_beats_every_other(stack in any_stack(), max in 1300u64..1501) {
        let best = stack.best_mtu(Bytes(max), Headers::TCP4).unwrap();
        let of = |mtu| stack.bulk(Headers::TCP4, mtu).unwrap().efficiency();
        prop_assert!(best <= Bytes(max));
        for mtu in (41..=max).map(Bytes) {
            prop_assert!(of(mtu) < of(best) || (of(mtu) == of(best) && mtu <= best), "{stack} {mtu:?} {best:?}");
        }
    }

    #[test]
    fn what_fits_fits_and_one_more_does_not(stack in any_stack(), link_mtu in 600u64..9001) {
        let mtu = stack.fitting_mtu(Bytes(link_mtu));
        let outer = |mtu: Bytes| stack.at_mtu(mtu).outer_len(mtu) + stack.shim_len();
        prop_assert!(outer(mtu) <= Bytes(link_mtu));
        prop_assert!(outer(mtu + Bytes(1)) > Bytes(link_mtu));
    }

    #[test]
    fn no_text_makes_the_parser_panic_and_what_parses_reads_back(text in "[-+=/, a-z0-9]{0,40}|.{0,20}") {
        if let Ok(stack) = Framing::parse(&text) {
            prop_assert_eq!(Framing::parse(&stack.to_string()), Ok(stack));
        }
    }
}
