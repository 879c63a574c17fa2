use super::*;
use crate::host::{CLIENT_V4, CLIENT_V6, SERVER_V4, SERVER_V6, router_v4, router_v6};
use std::net::Ipv4Addr;
use wt_wire::{
    Checksum, Icmpv4Kind, Icmpv4View, Icmpv6Kind, Icmpv6View, IpView, Protocol, TcpFlags, TcpOption, TcpView, UdpView,
};

const EDGE: Ipv4Addr = Ipv4Addr::new(198, 19, 1, 1);

/// Three links of 1 ms each; `hop` is that in front of the second, `mtu` that of the third.
fn links(hop: &str, mtu: u32) -> Links {
    recorded_links(hop, mtu, Vec::new())
}

/// The same, recorded at these ends.
fn recorded_links(hop: &str, mtu: u32, ends: Vec<LinkEnd>) -> Links {
    let link = |name: &str, more: &str| {
        let way = "{ rate = \"100mbit\", delay = \"1ms\" }";
        format!("[[link]]\nname = \"{name}\"\n{more}\ndown = {way}\nup = {way}\n")
    };
    let text = format!(
        "title = \"t\"\nsource = \"s\"\n{}{}{}",
        link("a", "mtu = 1500"),
        link("b", &format!("mtu = 1492\nhop = {{ {hop} }}")),
        link("c", &format!("mtu = {mtu}"))
    );
    let scenario = Scenario::parse("t.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    let place = |node, v4: Ipv4Addr, v6: std::net::Ipv6Addr| Place { node, addresses: [v4.into(), v6.into()] };
    let mut places = vec![place(0, CLIENT_V4, CLIENT_V6), place(3, SERVER_V4, SERVER_V6)];
    if hop.contains("host") {
        places.push(place(1, EDGE, "2001:2:0:19::1:1".parse().unwrap()));
    }
    Links::new(scenario, places, ends, 1).unwrap()
}

/// A packet with right checksums.
fn packet(from: IpAddr, to: IpAddr, protocol: Protocol, transport: &[u8]) -> Vec<u8> {
    let mut bytes;
    match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            bytes = vec![0x45, 2, 0, 0, 0, 1, 0x40, 0, 64, protocol.0, 0, 0];
            bytes[2..4].copy_from_slice(&((20 + transport.len()) as u16).to_be_bytes());
            bytes.extend(from.octets().into_iter().chain(to.octets()));
            let sum = Checksum::new().with(&bytes).finish();
            bytes[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            bytes = vec![0x60, 0x20, 0, 0, 0, 0, protocol.0, 64];
            bytes[4..6].copy_from_slice(&(transport.len() as u16).to_be_bytes());
            bytes.extend(from.octets().into_iter().chain(to.octets()));
        }
        _ => panic!("of one version"),
    }
    let at = bytes.len();
    bytes.extend_from_slice(transport);
    let sum = match protocol {
        Protocol::ICMP => Checksum::new(),
        _ => Checksum::pseudo_header(from, to, protocol.0, transport.len() as u32),
    };
    let field = at
        + if protocol == Protocol::TCP {
            16
        } else if protocol == Protocol::UDP {
            6
        } else {
            2
        };
    let sum = sum.with(transport).finish();
    bytes[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    bytes
}

/// A segment of TCP; a SYN has the options that Linux sends.
fn tcp(v6: bool, flags: u8, payload: usize) -> Vec<u8> {
    let options: &[u8] =
        if flags & 2 == 0 { &[] } else { &[2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 0, 1, 3, 3, 7] };
    let mut bytes = vec![0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, ((5 + options.len() / 4) << 4) as u8, flags];
    bytes.extend([0xff, 0xff, 0, 0, 0, 0]);
    bytes.extend_from_slice(options);
    bytes.resize(bytes.len() + payload, 0x55);
    if v6 {
        packet(CLIENT_V6.into(), SERVER_V6.into(), Protocol::TCP, &bytes)
    } else {
        packet(CLIENT_V4.into(), SERVER_V4.into(), Protocol::TCP, &bytes)
    }
}

fn udp(from: (Ipv4Addr, u16), to: (Ipv4Addr, u16)) -> Vec<u8> {
    let mut bytes = [from.1.to_be_bytes(), to.1.to_be_bytes(), 12u16.to_be_bytes(), [0, 0]].concat();
    bytes.extend([1, 2, 3, 4]);
    packet(from.0.into(), to.0.into(), Protocol::UDP, &bytes)
}

fn send_at(links: &mut Links, host: usize, at: Time, bytes: Vec<u8>) {
    let layout = Layout::of(&bytes, &wt_sys::vnet::VnetHeader::default()).unwrap();
    links.send(host, at, &Rc::new(Buffer::of(bytes, layout)));
}

/// Where each packet arrived, when, and what it was there; every checksum must be right.
fn arrivals(links: &mut Links) -> Vec<(usize, Time, Vec<u8>)> {
    let mut arrived = Vec::new();
    while let Some(outcome) = links.poll(Time::from_secs(100)) {
        let Outcome::Arrived { host, at, packet } = outcome else { continue };
        let bytes = router::whole(&packet);
        let view = IpView::new(&bytes).unwrap();
        if let IpView::V4(view) = view {
            assert!(view.checksum_ok());
        }
        match view.transport().unwrap() {
            (Protocol::TCP, tcp) => assert!(TcpView::new(tcp).unwrap().checksum_ok(view.src(), view.dst())),
            (Protocol::UDP, udp) => assert!(UdpView::new(udp).unwrap().checksum_ok(view.src(), view.dst())),
            (Protocol::ICMP, icmp) => assert!(Icmpv4View::new(icmp).unwrap().checksum_ok()),
            _ => {}
        }
        arrived.push((host, at, bytes));
    }
    arrived
}

/// Sends one packet from the client and gives what arrives anywhere.
fn after(links: &mut Links, bytes: Vec<u8>) -> Vec<(usize, Vec<u8>)> {
    send_at(links, 0, Time::ZERO, bytes);
    arrivals(links).into_iter().map(|(host, _, bytes)| (host, bytes)).collect()
}

/// The options of the SYN that reaches the server.
fn options_behind(hop: &str, v6: bool) -> Vec<String> {
    let arrived = after(&mut links(hop, 1500), tcp(v6, 2, 0));
    assert_eq!((arrived.len(), arrived[0].0), (1, 1), "{hop}");
    let view = IpView::new(&arrived[0].1).unwrap();
    let options = TcpView::new(view.transport().unwrap().1).unwrap().options().map(Result::unwrap);
    options.filter(|option| *option != TcpOption::Nop).map(|option| format!("{option:?}")).collect()
}

#[test]
fn middleboxes_change_the_options_of_a_syn_in_both_versions() {
    for v6 in [false, true] {
        let plain = options_behind("", v6);
        assert_eq!(plain.len(), 4, "{plain:?}");
        let fitting = if v6 { "Mss(1432)" } else { "Mss(1452)" };
        for (hop, gone, there) in [
            ("mss_clamp = 1300", "Mss(1460)", "Mss(1300)"),
            ("mss_clamp = 1460", "", "Mss(1460)"),
            ("mss_clamp = \"pmtu\"", "Mss(1460)", fitting),
            ("mss = 8960", "Mss(1460)", "Mss(8960)"),
            ("window_scale = 0", "WindowScale(7)", "WindowScale(0)"),
            ("strip = [\"sack\"]", "SackPermitted", "Mss(1460)"),
            ("strip = [\"timestamps\", \"window-scale\"]", "Timestamps", "SackPermitted"),
            ("strip = [\"mss\"]", "Mss", "WindowScale(7)"),
            ("mss_clamp = 1300, direction = \"down\"", "Mss(1300)", "Mss(1460)"),
            ("mss_clamp = 1300, direction = \"up\"", "Mss(1460)", "Mss(1300)"),
        ] {
            let seen = options_behind(hop, v6);
            assert!(gone.is_empty() || !seen.iter().any(|option| option.starts_with(gone)), "{hop}: {seen:?}");
            assert!(seen.iter().any(|option| option == there), "{hop}, IPv6 {v6}: {seen:?}");
        }
    }
}

#[test]
fn ecn_is_bleached_stripped_or_punished() {
    let behind = |hop: &str, flags| {
        let arrived = after(&mut links(hop, 1500), tcp(false, flags, 0));
        arrived.first().map(|(_, bytes)| {
            let view = IpView::new(bytes).unwrap();
            (view.ecn().is_capable(), TcpView::new(view.transport().unwrap().1).unwrap().flags())
        })
    };
    let asking = TcpFlags::SYN | TcpFlags::ECE | TcpFlags::CWR;
    assert_eq!(behind("", 0xc2), Some((true, asking)));
    assert_eq!(behind("ecn = \"bleach\"", 0xc2), Some((false, asking)));
    assert_eq!(behind("ecn = \"strip-syn\"", 0xc2), Some((true, TcpFlags::SYN)));
    assert_eq!(behind("ecn = \"drop-syn\"", 0xc2), None);
    assert_eq!(behind("ecn = \"drop-syn\"", 2), Some((true, TcpFlags::SYN)));
}

#[test]
fn what_is_blocked_ends_and_the_rest_goes_on() {
    let reaches = |hop: &str, bytes: Vec<u8>| !after(&mut links(hop, 1500), bytes).is_empty();
    let echo = || packet(CLIENT_V4.into(), SERVER_V4.into(), Protocol::ICMP, &[8, 0, 0, 0, 0, 1, 0, 1]);
    let error = || wt_wire::port_unreachable(&udp((SERVER_V4, 1), (CLIENT_V4, 2)), CLIENT_V4.into()).unwrap();
    let datagram = || udp((CLIENT_V4, 1), (SERVER_V4, 2));
    for (hop, blocked) in [
        ("block = [\"icmp\"]", [true, true, false]),
        ("block = [\"icmp-errors\"]", [false, true, false]),
        ("block = [\"udp\"]", [false, false, true]),
        ("block = []", [false; 3]),
    ] {
        let reached = [echo(), error(), datagram()].map(|bytes| !reaches(hop, bytes));
        assert_eq!(reached, blocked, "{hop}");
    }
    let mut fragment = datagram();
    fragment[6] = 0x20;
    let header = Checksum::new().with(&fragment[..10]).with(&fragment[12..20]).finish();
    fragment[10..12].copy_from_slice(&header.to_be_bytes());
    assert!(!reaches("block = [\"fragments\"]", fragment.clone()) && reaches("block = []", fragment));
}

/// What a router tells of a packet of 1450 bytes before a link of MTU 1400.
fn told(hop: &str, v6: bool) -> Option<(IpAddr, u32)> {
    let mut links = links(hop, 1400);
    let payload = if v6 { 1390 } else { 1410 };
    let arrived = after(&mut links, tcp(v6, 16, payload));
    let (_, bytes) = arrived.into_iter().find(|(host, _)| *host == 0)?;
    let view = IpView::new(&bytes).unwrap();
    let (_, icmp) = view.transport().unwrap();
    let mtu = if v6 {
        let Icmpv6Kind::PacketTooBig { mtu } = Icmpv6View::new(icmp).unwrap().kind() else { panic!("{icmp:?}") };
        mtu
    } else {
        let Icmpv4Kind::FragNeeded { mtu } = Icmpv4View::new(icmp).unwrap().kind() else { panic!("{icmp:?}") };
        u32::from(mtu)
    };
    Some((view.src(), mtu))
}

/// The same, of the hop in front of the third link, by its own table.
fn told_by_third(hop: &str, v6: bool) -> Option<u32> {
    let way = "{ rate = \"100mbit\", delay = \"1ms\" }";
    let link = |name: &str, more: &str| format!("[[link]]\nname = \"{name}\"\n{more}\ndown = {way}\nup = {way}\n");
    let text = format!(
        "title = \"t\"\nsource = \"s\"\n{}{}",
        link("a", ""),
        link("b", &format!("mtu = 1400\nhop = {{ {hop} }}"))
    );
    let place = |node, v4: Ipv4Addr, v6: std::net::Ipv6Addr| Place { node, addresses: [v4.into(), v6.into()] };
    let places = vec![place(0, CLIENT_V4, CLIENT_V6), place(2, SERVER_V4, SERVER_V6)];
    let mut links = Links::new(Scenario::parse("t.toml", &text).unwrap(), places, Vec::new(), 1).unwrap();
    let arrived = after(&mut links, tcp(v6, 16, if v6 { 1390 } else { 1410 }));
    let (_, bytes) = arrived.into_iter().next()?;
    let view = IpView::new(&bytes).unwrap();
    let (_, icmp) = view.transport().unwrap();
    let at = if v6 { 4 } else { 6 };
    Some(if v6 {
        u32::from_be_bytes([icmp[at], icmp[5], icmp[6], icmp[7]])
    } else {
        u32::from(u16::from_be_bytes([icmp[at], icmp[7]]))
    })
}

#[test]
fn routers_tell_of_packets_that_are_too_long_or_lie_or_keep_silent() {
    assert_eq!(told("", false), Some((router_v4(2).into(), 1400)));
    assert_eq!(told("", true), Some((router_v6(2).into(), 1400)));
    for (hop, v4, v6) in [
        ("", Some(1400), Some(1400)),
        ("too_big_mtu = 1300", Some(1300), Some(1300)),
        ("too_big_mtu = 0", Some(0), Some(0)),
        ("too_big = \"none\"", None, None),
        ("too_big = \"ipv4\"", Some(1400), None),
        ("too_big = \"ipv6\"", None, Some(1400)),
    ] {
        assert_eq!((told_by_third(hop, false), told_by_third(hop, true)), (v4, v6), "{hop}");
    }
    assert_eq!(told("block = [\"icmp-errors\"]", false), None, "nor does it let another one's message through");
}

#[test]
fn a_router_that_has_used_up_its_messages_is_silent_until_it_has_new_ones() {
    let answers = |hop: &str| {
        let mut links = links(hop, 1500);
        for tenth in 0..30 {
            let mut probe = udp((CLIENT_V4, 1), (SERVER_V4, 33434));
            probe[8] = 1;
            let sum = Checksum::new().with(&probe[..10]).with(&probe[12..20]).finish();
            probe[10..12].copy_from_slice(&sum.to_be_bytes());
            send_at(&mut links, 0, Time::from_millis(tenth * 100), probe);
        }
        arrivals(&mut links).len()
    };
    assert_eq!(answers(""), 30);
    // Two at once, and two more in each of the 2.9 seconds that follow.
    assert_eq!(answers("icmp_per_second = 2, icmp_burst = 2"), 2 + 5);
    assert_eq!(answers("icmp_per_second = 0"), 0);
    assert_eq!(answers("time_exceeded = false"), 0);
}

#[test]
fn every_hop_answers_at_its_own_address() {
    for (number, ms) in [(0, 0), (1, 2), (2, 4), (3, 6)] {
        let mut links = links("", 1500);
        let request = packet(CLIENT_V4.into(), router_v4(number).into(), Protocol::ICMP, &[8, 0, 0, 0, 0, 1, 0, 1]);
        send_at(&mut links, 0, Time::ZERO, request);
        let arrived = arrivals(&mut links);
        let (host, at, bytes) = arrived.first().unwrap_or_else(|| panic!("router {number} is silent"));
        assert_eq!((*host, at.0 / 1_000_000), (0, ms), "router {number}");
        assert_eq!(IpView::new(bytes).unwrap().src(), IpAddr::from(router_v4(number)));
    }
    let silent = after(
        &mut links("echo = false", 1500),
        packet(CLIENT_V6.into(), router_v6(1).into(), Protocol::ICMPV6, &[128, 0, 0, 0, 0, 1, 0, 1]),
    );
    assert!(silent.is_empty());
    let mut links = links("", 1500);
    let refused = after(&mut links, udp((CLIENT_V4, 9), (router_v4(2), 33434)));
    let view = IpView::new(&refused[0].1).unwrap();
    assert_eq!(view.transport().unwrap().1[..2], [3, 3], "the port of a router is unreachable");
}

#[test]
fn behind_a_nat_the_server_sees_the_router_and_its_answers_find_back() {
    let mut links = links("nat = true", 1400);
    let public = router_v4(1);
    let there = after(&mut links, udp((CLIENT_V4, 5000), (SERVER_V4, 53)));
    assert_eq!((there.len(), there[0].0), (1, 1));
    let view = IpView::new(&there[0].1).unwrap();
    assert_eq!(view.src(), IpAddr::from(public));
    send_at(&mut links, 1, Time::from_secs(1), udp((SERVER_V4, 53), (public, 5000)));
    let back = arrivals(&mut links);
    let view = IpView::new(&back[0].2).unwrap();
    assert_eq!((back[0].0, view.src(), view.dst()), (0, SERVER_V4.into(), CLIENT_V4.into()));
    // Nobody outside reaches the client but through the NAT.
    send_at(&mut links, 1, Time::from_secs(2), udp((SERVER_V4, 53), (CLIENT_V4, 5000)));
    assert!(arrivals(&mut links).is_empty());
    // An error from behind the NAT reaches the client and quotes what the client sent.
    send_at(&mut links, 0, Time::from_secs(3), tcp(false, 16, 1410));
    let told = arrivals(&mut links);
    let view = IpView::new(&told[0].2).unwrap();
    assert_eq!((told[0].0, view.src(), view.dst()), (0, router_v4(2).into(), CLIENT_V4.into()));
    let quote = Icmpv4View::new(view.transport().unwrap().1).unwrap().quote().unwrap();
    assert_eq!((quote.src(), quote.dst()), (CLIENT_V4, SERVER_V4));
    // The router itself answers at its address, from both sides.
    for (host, from) in [(0, CLIENT_V4), (1, SERVER_V4)] {
        let request = packet(from.into(), public.into(), Protocol::ICMP, &[8, 0, 0, 0, 0, 1, 0, 1]);
        send_at(&mut links, host, Time::from_secs(4), request);
        let reply = arrivals(&mut links);
        assert_eq!(reply.iter().map(|(host, ..)| *host).collect::<Vec<_>>(), [host]);
    }
}

#[test]
fn segments_of_a_super_packet_behind_a_nat_are_still_one_buffer() {
    let mut links = links("nat = true", 1500);
    let mut bytes = tcp(false, 16, 3 * 1000);
    // As the kernel gives it: the checksum field holds the pseudo-header's sum.
    let len = (bytes.len() - 20) as u32;
    let sum = Checksum::pseudo_header(CLIENT_V4.into(), SERVER_V4.into(), 6, len).folded();
    bytes[36..38].copy_from_slice(&sum.to_be_bytes());
    let header = wt_sys::vnet::VnetHeader {
        flags: wt_sys::vnet::NEEDS_CSUM,
        gso_type: wt_sys::vnet::GSO_TCPV4,
        gso_size: 1000,
        hdr_len: 40,
        csum_start: 20,
        csum_offset: 16,
    };
    let layout = Layout::of(&bytes, &header).unwrap();
    links.send(0, Time::ZERO, &Rc::new(Buffer::of(bytes, layout)));
    let mut run: Option<crate::segment::Run> = None;
    while let Some(outcome) = links.poll(Time::from_secs(1)) {
        let Outcome::Arrived { packet, .. } = outcome else { panic!("lost") };
        match &mut run {
            Some(run) => assert!(run.extend(&packet)),
            None => run = Some(crate::segment::Run::of(&packet)),
        }
    }
    let outgoing = run.unwrap().outgoing(0);
    let headers = &outgoing.headers[..40];
    assert_eq!(headers[12..16], router_v4(1).octets());
    let sum = Checksum::pseudo_header(router_v4(1).into(), SERVER_V4.into(), 6, len).folded();
    assert_eq!(headers[36..38], sum.to_be_bytes());
}

#[test]
fn a_host_on_the_way_gets_what_is_for_it_and_passes_on_the_rest() {
    let mut links = links("host = \"edge\"", 1400);
    let where_to = |links: &mut Links, host, at, bytes| {
        send_at(links, host, Time::from_secs(at), bytes);
        arrivals(links).into_iter().map(|(host, at, _)| (host, at.0 / 1_000_000 % 1000)).collect::<Vec<_>>()
    };
    assert_eq!(where_to(&mut links, 0, 0, udp((CLIENT_V4, 1), (EDGE, 2))), [(2, 1)]);
    assert_eq!(where_to(&mut links, 0, 1, udp((CLIENT_V4, 1), (SERVER_V4, 2))), [(1, 3)]);
    assert_eq!(where_to(&mut links, 1, 2, udp((SERVER_V4, 1), (EDGE, 2))), [(2, 2)]);
    assert_eq!(where_to(&mut links, 2, 3, udp((EDGE, 1), (SERVER_V4, 2))), [(1, 2)]);
    assert_eq!(where_to(&mut links, 2, 4, udp((EDGE, 1), (CLIENT_V4, 2))), [(0, 1)]);
    // A link that is too small tells the host that sent, wherever it stands.
    let mut long = tcp(false, 16, 1410);
    long[12..16].copy_from_slice(&EDGE.octets());
    let header = Checksum::new().with(&long[..10]).with(&long[12..20]).finish();
    long[10..12].copy_from_slice(&header.to_be_bytes());
    assert_eq!(where_to(&mut links, 2, 5, long), [(2, 2)]);
}

#[test]
fn a_recording_has_what_the_first_hop_drops_and_says_and_no_router_records_what_it_does_not_forward() {
    let end = |link, server_side| LinkEnd { link, server_side };
    let ends = vec![end(2, true), end(2, false), end(1, true)];
    // A segment of 1450 bytes from the server, or from the client: the last link takes 1400.
    let shots = |from_server: bool, may_fragment: bool| {
        let mut links = recorded_links("", 1400, ends.clone());
        let mut bytes = tcp(false, 16, 1410);
        if from_server {
            let (client, server) = (CLIENT_V4.octets(), SERVER_V4.octets());
            bytes[12..16].copy_from_slice(&server);
            bytes[16..20].copy_from_slice(&client);
        }
        bytes[6] = if may_fragment { 0 } else { 0x40 };
        bytes[10..12].fill(0);
        let header = Checksum::new().with(&bytes[..20]).finish();
        bytes[10..12].copy_from_slice(&header.to_be_bytes());
        send_at(&mut links, usize::from(from_server), Time::ZERO, bytes);
        while links.poll(Time::from_secs(1)).is_some() {}
        links.shots().map(|shot| (shot.end, shot.inbound, shot.bytes.len())).collect::<Vec<_>>()
    };
    // Its device has the segment, and the message of 576 bytes at most.
    assert_eq!(shots(true, false), [(0, false, 1450), (0, true, 576)]);
    let cut = [(0, false, 1450), (1, true, 1396), (1, true, 74), (2, false, 1396), (2, false, 74)];
    let mut passed = shots(true, true);
    passed.sort_by_key(|(end, ..)| *end);
    assert_eq!(passed, cut);
    // The router in front of the link has it only before that, and what it says.
    let there: Vec<_> = shots(false, false).into_iter().filter(|(end, ..)| *end < 2).collect();
    assert_eq!(there, []);
    // An echo of the router beside the host, and the answer.
    let mut links = recorded_links("", 1400, ends);
    let request = packet(SERVER_V4.into(), router_v4(3).into(), Protocol::ICMP, &[8, 0, 0, 0, 0, 1, 0, 1]);
    send_at(&mut links, 1, Time::ZERO, request);
    let seen: Vec<_> = links.shots().map(|shot| (shot.end, shot.inbound, shot.bytes[8])).collect();
    assert_eq!(seen, [(0, false, 64), (0, true, 64)]);
}
