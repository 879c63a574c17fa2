//! What is done with bytes of strangers, for libFuzzer and for the tests of `wt-probe` alike. Nothing here may panic, run for
//! long or break what is asserted.
#![allow(dead_code, unreachable_pub, reason = "every fuzz target uses one of them")]

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;
use wt_probe::codec::{read_icmp, read_tcp};
use wt_probe::{
    Answer, Kind, Machine, ProbeAnswer, Quote, Reverse, Scan, ScanConfig, Search, SearchConfig, SynOptions, Trace,
    TraceConfig, Train,
};
use wt_wire::{
    Framing, Icmpv4View, Icmpv6View, IpView, Ipv4View, Ipv6View, PacketEdit, TcpOption, TcpView, TransportChecksum,
    UdpView,
};

const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

/// Every view of a packet, whole and quoted.
pub fn packets(bytes: &[u8]) {
    for view in [IpView::new(bytes), IpView::quoted(bytes)].into_iter().flatten() {
        let _ = (view.total_len(), view.ttl(), view.ecn(), view.dont_fragment(), view.src(), view.dst());
        if let Some((_, payload)) = view.transport() {
            assert!(payload.len() <= bytes.len());
            transport(payload);
        }
    }
    for view in [Ipv4View::new(bytes), Ipv4View::quoted(bytes)].into_iter().flatten() {
        assert!(view.header_len() <= bytes.len() && view.options().len() <= 40);
        let _ = (view.checksum_ok(), view.is_fragment(), view.fragment_offset(), view.payload().len());
    }
    for view in [Ipv6View::new(bytes), Ipv6View::quoted(bytes)].into_iter().flatten() {
        let _ = (view.upper_layer(), view.payload().len(), view.flow_label());
    }
    transport(bytes);
}

fn transport(bytes: &[u8]) {
    if let Ok(view) = Icmpv4View::new(bytes) {
        let _ = (view.kind(), view.checksum_ok(), view.is_error(), view.quote().map(|quote| quote.payload().len()));
    }
    if let Ok(view) = Icmpv6View::new(bytes) {
        let _ = (view.kind(), view.is_error(), view.quote().map(|quote| quote.payload().len()));
    }
    for view in [TcpView::new(bytes), TcpView::quoted(bytes)].into_iter().flatten() {
        let _ = (view.flags(), view.window(), view.checksum_ok(V4, V4), view.payload().len());
        let options = view.options().take(64);
        let count = options.map(|option| match option {
            Ok(TcpOption::Sack(blocks)) => blocks.iter().count() + usize::from(blocks.is_duplicate(view.ack())),
            _ => 1,
        });
        assert!(count.sum::<usize>() <= 64 * 6, "40 bytes hold no more");
    }
    for view in [UdpView::new(bytes), UdpView::quoted(bytes)].into_iter().flatten() {
        let _ = (view.src_port(), view.len(), view.payload().len());
    }
}

/// What routers and middleboxes do to packets: the length never changes, and a packet stays one.
pub fn edits(bytes: &[u8]) {
    for how in [TransportChecksum::Whole, TransportChecksum::Partial] {
        let mut copy = bytes.to_vec();
        let Ok(mut edit) = PacketEdit::new(&mut copy, how) else { continue };
        edit.set_source(V4, Some(7));
        edit.set_destination(V6, Some(9));
        let _ = (edit.clear_ecn(), edit.clamp_mss(1200), edit.set_mss(900), edit.set_window_scale(3));
        let _ = (edit.strip_options(&[4, 8, 34]), edit.tcp().map(|view| view.payload().len()), edit.ports());
        assert!(edit.view().is_some());
    }
    let mut copy = bytes.to_vec();
    let _ = (wt_wire::decrement_ttl(&mut copy), wt_wire::mark_ce(&mut copy), wt_wire::fill_icmp_checksum(&mut copy));
    let _ = wt_wire::echo_reply(bytes);
    let errors = [wt_wire::frag_needed(bytes, Ipv4Addr::LOCALHOST, 1400), wt_wire::time_exceeded(bytes, V4)];
    let others = [wt_wire::time_exceeded(bytes, V6), wt_wire::port_unreachable(bytes, V4)];
    let last = [wt_wire::packet_too_big(bytes, Ipv6Addr::LOCALHOST, 1400), wt_wire::port_unreachable(bytes, V6)];
    for error in errors.into_iter().chain(others).chain(last).flatten() {
        assert!(IpView::new(&error).is_ok(), "what we write we can read");
    }
    if let Ok(parts) = wt_wire::fragment_ipv4(bytes, 600) {
        assert!(parts.iter().all(|part| Ipv4View::new(part).is_ok()));
    }
}

/// Answers to probes: what is read names no probe that wasn't in the bytes.
pub fn answers(bytes: &[u8]) {
    // Random bytes hardly ever have a right checksum.
    let mut whole = bytes.to_vec();
    wt_wire::fill_icmp_checksum(&mut whole);
    for (bytes, from) in [(bytes, V4), (&whole, V4), (bytes, V6)] {
        if let Some(heard) = read_icmp(bytes, from, Some(64), 0x1234) {
            assert!(heard.target.is_ipv6() == from.is_ipv6());
        }
    }
    let _ = (read_tcp(bytes, false), read_tcp(bytes, true));
}

/// Answers in any order and of any sense, for everything that probes: it ends, within its bounds.
pub fn machines(bytes: &[u8]) {
    let Some((which, rest)) = bytes.split_first() else { return };
    let rng = ChaCha8Rng::seed_from_u64(1);
    let kinds = vec![Kind::Echo, Kind::OldSegment, Kind::RefusedSyn, Kind::Udp];
    match which % 4 {
        0 => {
            let config = SearchConfig {
                max: 1500,
                v6: which & 4 > 0,
                kinds,
                handshake: true,
                patient: which & 8 > 0,
                losses: true,
                flows: 4,
                told: (which & 16 > 0).then_some(1400),
            };
            let mut search = Search::new(config, rng);
            drive(&mut search, rest, 4000);
            let _ = search.report();
        }
        1 => {
            let offered = (SynOptions::default(), 2);
            let config =
                TraceConfig { kind: Kind::Echo, handshake: true, flows: 2, probes: 2, size: 64, max: 1500, offered };
            let mut trace = Trace::new(config);
            drive(&mut trace, rest, 2000);
            let _ = trace.hops();
        }
        2 => {
            let sizes = vec![576, 1280, 1400, 1500];
            let (kind, first, quick, most, most_in_all) = (Kind::Echo, 20, 60, 300, 900);
            let config =
                ScanConfig { sizes, pmtu: 1400, kind, split: true, loose: true, first, quick, most, most_in_all };
            let mut scan = Scan::new(config, rng);
            drive(&mut scan, rest, 1200);
            let _ = (scan.threshold(), scan.directions(), scan.sizes(), scan.rate_check(), scan.loose());
        }
        _ => {
            let mut train = Train::new(Kind::OldSegment, 1400, None);
            // Eight trains of 58 packets and a SYN.
            drive(&mut train, rest, 8 * 58 + 1);
            let _ = train.bottleneck();
            reverse(rest);
        }
    }
}

fn reverse(bytes: &[u8]) {
    let mut reverse = Reverse::new(40, 1460);
    let mut round = vec![1460];
    let mut calls = bytes.chunks(7);
    for _ in 0..10 {
        for mss in round {
            let number = reverse.open(mss);
            for call in calls.by_ref().take(4) {
                let word = |at: usize| {
                    u16::from_be_bytes([call.get(at).copied().unwrap_or(0), call.get(at + 1).copied().unwrap_or(0)])
                };
                reverse.segment(number, u32::from(word(0)) << (word(4) % 17), word(2));
                if word(5) % 3 == 0 {
                    reverse.end(number, u32::from(word(5)));
                }
            }
        }
        round = reverse.next_round(Some(1400));
    }
    assert!(reverse.pmtu(Some(1400)).is_none_or(|pmtu| pmtu <= 1500));
}

/// Feeds a machine with three bytes an answer, then with silence until it is done.
fn drive(machine: &mut impl Machine, bytes: &[u8], most: u32) {
    let (mut now, mut sent, mut idle) = (Duration::ZERO, 0u32, 0u32);
    let mut answers = bytes.chunks(4);
    while !machine.is_done() && idle < 20_000 {
        if machine.poll_probe(now).is_some() {
            sent += 1;
            now += Duration::from_micros(50);
        } else {
            idle += 1;
            now = machine.wakeup().unwrap_or(now).max(now + Duration::from_micros(100));
        }
        assert!(sent <= most, "{sent} probes");
        let Some(bytes) = answers.next() else { continue };
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        let number = u32::from(at(1)) << 8 | u32::from(at(2));
        let said = match at(0) % 11 {
            0 | 1 => ProbeAnswer::Reached { ttl: Some(at(3)) },
            2 => ProbeAnswer::TooBig { mtu: number.wrapping_mul(u32::from(at(3) % 3)) },
            3 => {
                let (options, dont_fragment) = (Some(SynOptions::default()), Some(at(2) % 2 == 0));
                ProbeAnswer::Expired { quote: Quote { tos: Some(at(1)), dont_fragment, options } }
            }
            4 => ProbeAnswer::Open { mss: Some(number as u16), sack: at(3) % 2 == 0 },
            5 => ProbeAnswer::Refused,
            6 => ProbeAnswer::LocalTooBig,
            7 => ProbeAnswer::Connected,
            8 => ProbeAnswer::Retransmitted { copies: u32::from(at(3)) },
            9 => ProbeAnswer::Late,
            _ => ProbeAnswer::Unreachable { code: at(3) },
        };
        let id = sent.saturating_sub(1 + u32::from(at(3) % 16));
        machine.handle(&Answer { id, at: now, from: (at(0) & 8 > 0).then_some(V4), said });
    }
    assert!(machine.is_done(), "it ends");
}

/// Words of the command line that say how packets are framed.
pub fn framing(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        let _ = Framing::parse(text);
    }
}
