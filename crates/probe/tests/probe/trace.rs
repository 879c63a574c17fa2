//! Traces over simulated paths.

use crate::common::{Link, Net, OFFERED, RunCost, run, run_with};
use proptest::prelude::*;
use std::time::Duration;
use wt_probe::{Answer, Change, Kind, ProbeAnswer, RouterRefusal, Trace, TraceConfig};

fn trace(net: &Net, flows: u8, probes: u8) -> (Trace, RunCost) {
    let mut trace = Trace::new(config(flows, probes));
    let ran = run(net, &mut trace);
    (trace, ran)
}

fn config(flows: u8, probes: u8) -> TraceConfig {
    TraceConfig { kind: Kind::Echo, handshake: true, flows, probes, size: 60, max: 1500, offered: OFFERED }
}

#[test]
fn a_clean_path_takes_two_round_trips_with_links_mtus_and_changes() {
    let net = Net::new(1);
    let (trace, ran) = trace(&net, 1, 1);
    let hops = trace.hops();
    assert_eq!(hops.len(), 4);
    for (number, hop) in hops.iter().enumerate() {
        let address = if number == 3 { net.target() } else { net.router(number + 1) };
        assert_eq!((usize::from(hop.ttl), &hop.addresses[..]), (number + 1, &[address][..]));
        assert!(hop.changed.is_empty());
    }
    let mtus: Vec<_> = hops.iter().map(|hop| hop.mtu).collect();
    assert_eq!(mtus, [Some(1492), Some(1400), Some(1400), None]);
    assert!(ran.packets <= 40 && ran.time <= Duration::from_millis(130), "{} packets, {:?}", ran.packets, ran.time);
}

#[test]
fn who_says_that_packets_go_no_further_is_kept_where_the_target_keeps_silent() {
    let net = Net { echo: false, tcp: false, udp: None, ..Net::new(1) };
    let from = Some(net.router(2));
    let mut trace = Trace::new(config(1, 1));
    run_with(&net, &mut trace, |probe, at| {
        let said = ProbeAnswer::Unreachable { code: 13 };
        let beyond = probe.ttl.is_none_or(|ttl| ttl > 2);
        beyond.then_some(Answer { id: probe.id, at: at + net.rtt / 2, from, said }).into_iter().collect()
    });
    assert_eq!(trace.refusal(), Some(RouterRefusal { from, expired: false, code: 13 }));
    assert_eq!(crate::trace::trace(&Net::new(1), 1, 1).0.refusal(), None);
}

#[test]
fn thirty_hops_are_found_though_the_first_burst_holds_twenty() {
    let net = Net { links: vec![Link::mtu(1500); 30], ..Net::new(2) };
    let (trace, ran) = trace(&net, 1, 1);
    assert_eq!((trace.hops().len(), trace.target()), (30, Some(30)));
    assert!(ran.time <= Duration::from_millis(250), "{:?}", ran.time);
}

#[test]
fn a_target_silent_to_icmp_is_found_by_tcp_at_once() {
    let net = Net { echo: false, udp: None, ..Net::new(3) };
    let (trace, ran) = trace(&net, 1, 3);
    assert_eq!((trace.target(), trace.by_tcp()), (Some(4), true));
    assert!(trace.hops()[..3].iter().all(|hop| hop.count.sent == 3 && hop.quoted), "{:?}", trace.hops());
    assert!(ran.time <= Duration::from_millis(500), "{:?}", ran.time);
}

#[test]
fn each_of_six_changes_is_seen_at_the_hop_behind_the_one_that_made_it() {
    let mut net = Net::new(4);
    net.links = vec![Link::mtu(1500); 8];
    net.links[1].clamp = Some(1200);
    net.links[2].tamper = Some(|options, _| options.sack = false);
    net.links[3].tamper = Some(|options, _| options.timestamps = false);
    net.links[4].tamper = Some(|options, tos| (options.window_scale, *tos) = (None, 0));
    net.links[5].tamper = Some(|options, _| options.ecn = false);
    net.links[6].tamper = Some(|options, _| options.fast_open = false);
    let (trace, ran) = trace(&net, 1, 1);
    let seen: Vec<Vec<Change>> = trace.hops().into_iter().map(|hop| hop.changed).collect();
    assert_eq!(seen[1], [Change::Mss(Some(1460), Some(1200))]);
    assert_eq!(seen[2], [Change::Sack]);
    assert_eq!(seen[3], [Change::Timestamps]);
    assert_eq!(seen[4], [Change::WindowScale(Some(7), None), Change::Tos(2, 0)]);
    assert_eq!(seen[5], [Change::Ecn]);
    assert_eq!(seen[6], [Change::FastOpen]);
    assert!(ran.packets <= 40 && ran.time <= Duration::from_millis(130), "{} packets, {:?}", ran.packets, ran.time);
}

#[test]
fn behind_a_black_hole_only_what_routers_say_is_known_of_links() {
    let mut net = Net::new(7);
    net.links[2].icmp = false;
    let (trace, ran) = trace(&net, 1, 1);
    let mtus: Vec<_> = trace.hops().iter().map(|hop| hop.mtu).collect();
    assert_eq!(mtus, [Some(1492), None, None, None]);
    assert!(ran.time <= Duration::from_millis(200), "{:?}", ran.time);
}

#[test]
fn mute_hops_are_asked_again_and_leave_a_gap() {
    let mut net = Net::new(5);
    net.links[2].mute = true;
    let (trace, ran) = trace(&net, 2, 3);
    let hops = trace.hops();
    assert!(hops[1].addresses.is_empty() && hops[1].count.answered == 0 && hops[1].count.sent >= 3);
    assert_eq!((hops[2].count.sent, hops[2].count.answered), (6, 6));
    assert!(ran.time <= Duration::from_millis(1500), "{:?}", ran.time);
}

#[test]
fn a_dead_target_leaves_the_hops_before_it() {
    let net = Net { echo: false, tcp: false, udp: None, ..Net::new(6) };
    let (trace, ran) = trace(&net, 1, 3);
    assert_eq!((trace.target(), trace.hops().len()), (None, 3));
    assert!(ran.time <= Duration::from_millis(2500), "{:?}", ran.time);
}

#[test]
fn a_target_that_refuses_connections_accepts_none() {
    for (tcp, refuses) in [(true, false), (false, true), (false, false)] {
        let net = Net { echo: false, udp: None, tcp, refuses, ..Net::new(3) };
        let (trace, _) = trace(&net, 1, 1);
        assert_eq!((trace.is_open(), trace.is_refused()), (tcp, refuses));
    }
}

#[test]
fn long_probes_lose_nothing_on_a_slow_line_whose_queue_holds_ten_of_them() {
    // 1 Mbit/s with 16 KiB, as an uplink of ADSL has.
    let mut line = Link::mtu(1500);
    line.police_bytes = Some((16_384.0, 125_000.0));
    let net = Net { links: vec![line], rate: Some(1e6), ..Net::new(8) };
    let mut trace = Trace::new(TraceConfig { size: 1400, ..config(4, 4) });
    let ran = run(&net, &mut trace);
    let hops = trace.hops();
    assert_eq!((hops.len(), hops[0].count.sent, hops[0].count.loss()), (1, 16, 0.0), "{:?}", hops[0].count);
    let longest = hops[0].rtts.iter().max().unwrap();
    assert!(*longest < Duration::from_millis(130), "{longest:?}");
    // Each takes 11.2 ms on the line, and what lies beyond the target isn't asked.
    assert!(ran.packets <= 30 && ran.time < Duration::from_millis(900), "{} packets, {:?}", ran.packets, ran.time);
}

#[test]
fn long_probes_take_a_fast_path_little_longer_and_short_ones_leave_at_once() {
    let net = Net::new(9);
    let mut long = Trace::new(TraceConfig { size: 1400, ..config(3, 3) });
    let ran = run(&net, &mut long);
    assert!(long.hops().iter().all(|hop| hop.count.sent == 9 && hop.count.answered == 9), "{:?}", long.hops());
    assert!(ran.packets <= 60 && ran.time <= Duration::from_millis(400), "{} packets, {:?}", ran.packets, ran.time);
    let short = run(&net, &mut Trace::new(config(3, 3)));
    assert!(short.time <= Duration::from_millis(130), "{:?}", short.time);
    let at_once = short.sent.iter().filter(|(at, _)| *at < Duration::from_millis(5)).count();
    assert!(at_once >= 22, "{at_once}");
}

#[test]
fn long_probes_to_a_dead_target_end_as_well() {
    let net = Net { echo: false, tcp: false, udp: None, ..Net::new(6) };
    let mut trace = Trace::new(TraceConfig { size: 1400, ..config(1, 3) });
    let ran = run(&net, &mut trace);
    assert_eq!((trace.target(), trace.hops().len()), (None, 3));
    assert!(ran.time <= Duration::from_secs(5), "{:?}", ran.time);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn answers_without_order_or_sense_never_break_it(
        answers in prop::collection::vec((0u32..80, 0u64..500_000, 0usize..6, any::<u32>()), 0..200), is_long: bool
    ) {
        let net = Net::new(1);
        let mut trace = Trace::new(TraceConfig { size: if is_long { 1400 } else { 60 }, ..config(3, 3) });
        let mut rest = answers.into_iter();
        let ran = run_with(&net, &mut trace, |_, now| {
            rest.by_ref().take(3).map(|(id, at, what, number)| {
                let said = match what {
                    0 => ProbeAnswer::Reached { ttl: Some(number as u8) },
                    1 => ProbeAnswer::Open { mss: Some(number as u16), sack: false },
                    2 => ProbeAnswer::Refused,
                    3 => ProbeAnswer::TooBig { mtu: number },
                    4 => ProbeAnswer::Unreachable { code: number as u8 },
                    _ => ProbeAnswer::Expired { quote: wt_probe::Quote::default() },
                };
                let from = (number % 2 == 0).then(|| net.router(7));
                Answer { id, at: now + Duration::from_micros(at), from, said }
            }).collect()
        });
        prop_assert!(ran.packets <= 2000);
        let _ = trace.hops();
    }
}
