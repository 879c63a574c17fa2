//! Searches among routers and targets with manners of their own: words that are spent, ports that refuse, and flags that are
//! cleared.

use crate::common::{Link, Net, RunCost, rng, run};
use crate::search::{ALL, config, everybody};
use std::time::Duration;
use wt_probe::{Finding, Kind, PathKind, Search, SearchConfig, SearchReport};

fn find(net: &Net, config: SearchConfig) -> (SearchReport, RunCost) {
    let mut search = Search::new(config, rng(net.seed));
    let ran = run(net, &mut search);
    (search.report(), ran)
}

#[test]
fn a_router_whose_only_word_was_spent_a_moment_ago_is_asked_again_before_it_is_called_a_hole() {
    for (kinds, v6, seed) in everybody(30) {
        for mtu in [1280, 1400, 1427] {
            let mut net = Net { v6, spent: true, retransmits: true, ..Net::new(seed) };
            net.links[2] = Link { limit: Some((1.0, 1.0)), ..Link::mtu(mtu) };
            let flows = if seed % 2 == 0 { 12 } else { 1 };
            let (report, ran) = find(&net, SearchConfig { told: Some(mtu), flows, ..config(&net, kinds) });
            assert_eq!((report.pmtu, report.hole), (Some(mtu), None), "{kinds:?}: {report:#?}");
            assert_eq!(report.kind, PathKind::RateLimited, "{kinds:?}: {report:#?}");
            assert!(ran.time <= Duration::from_secs(3), "{kinds:?}: {:?}", ran.time);
        }
    }
}

#[test]
fn a_small_mtu_that_a_router_made_up_and_this_hosts_tcp_believes_is_no_path_mtu() {
    for v6 in [false, true] {
        for udp in [(6.0, 1.0), (1.0, 1.0), (0.0, 1.0)] {
            for seed in 0..10 {
                let mut net = Net { v6, stream_limit: 1300, udp: Some(udp), retransmits: true, ..Net::new(seed) };
                net.links = [1500, 1500, 1400, 1500].map(Link::mtu).to_vec();
                net.links[2].says = Some(1300);
                let (report, ran) = find(&net, config(&net, &[Kind::Stream, Kind::Udp]));
                assert!(matches!(report.pmtu, Some(1400) | None), "{udp:?}: {report:#?}");
                assert!(matches!(report.kind, PathKind::LyingRouter | PathKind::Inconclusive), "{udp:?}: {report:#?}");
                assert!(ran.time <= Duration::from_secs(60), "{udp:?}: {:?}", ran.time);
                // Who says the truth is believed, and soon.
                net.links[2] = Link::mtu(1300);
                let (report, ran) = find(&net, config(&net, &[Kind::Stream, Kind::Udp]));
                assert_eq!((report.pmtu, report.kind), (Some(1300), PathKind::Clean), "{udp:?}: {report:#?}");
                assert!(ran.time <= Duration::from_millis(900), "{udp:?}: {:?}", ran.time);
            }
        }
    }
}

#[test]
fn a_real_hole_is_not_waited_at_unless_a_router_has_named_its_mtu_before() {
    for (told, least, most) in [(None, 0, 300), (Some(1492), 0, 300), (Some(1400), 2200, 2900)] {
        let mut net = Net::new(1);
        net.links[2].icmp = false;
        let (report, ran) = find(&net, SearchConfig { told, ..config(&net, &ALL) });
        assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::BlackHole), "{told:?}: {report:#?}");
        let bounds = Duration::from_millis(least)..=Duration::from_millis(most);
        assert!(bounds.contains(&ran.time), "{told:?}: {:?}", ran.time);
    }
}

/// What root can send to a target whose port is closed.
const REFUSED: [Kind; 4] = [Kind::Echo, Kind::OldSegment, Kind::RefusedSyn, Kind::Udp];

#[test]
fn a_target_that_answers_by_refusing_alone_is_measured_by_its_refusals() {
    for (icmp, kind) in [(true, PathKind::IcmpBlocked), (false, PathKind::BlackHole)] {
        for v6 in [false, true] {
            for seed in 0..30 {
                let mut net = Net { v6, echo: false, tcp: false, udp: None, refuses: true, ..Net::new(seed) };
                net.links[2] = Link { icmp, ..Link::mtu(1427) };
                let (report, ran) = find(&net, config(&net, &REFUSED));
                assert_eq!((report.pmtu, report.kind), (Some(1427), kind), "{report:#?}");
                assert_eq!(report.method, Some(Kind::RefusedSyn), "{report:#?}");
                assert_eq!(report.hole.map(|hop| hop.ttl), (!icmp).then_some(2), "{report:#?}");
                assert!(ran.time <= Duration::from_millis(700), "{:?}", ran.time);
            }
        }
    }
}

#[test]
fn answers_that_come_when_another_kind_of_packet_is_asked_already_are_none_of_that_kind() {
    let mut unknown = 0;
    for begins in [0, 100] {
        for held_up in (50..4_000).step_by(50) {
            for seed in 0..4 {
                let stall = Some((Duration::from_millis(begins), Duration::from_millis(begins + held_up)));
                let mut net = Net { echo: false, tcp: false, udp: None, refuses: true, stall, ..Net::new(seed) };
                net.links[2] = Link::mtu(1427);
                let (report, ran) = find(&net, config(&net, &REFUSED));
                assert!(matches!(report.pmtu, Some(1427) | None), "{held_up} ms: {report:#?}");
                assert!(!matches!(report.kind, PathKind::BlackHole | PathKind::Clean), "{held_up} ms: {report:#?}");
                assert!(ran.time <= Duration::from_millis(held_up + 30_000), "{held_up} ms: {:?}", ran.time);
                unknown += usize::from(report.pmtu.is_none());
            }
        }
    }
    assert!(unknown * 2 < 2 * 79 * 4, "{unknown} of 632 are not known: nobody heard in time that the port refuses");
}

#[test]
fn who_can_send_no_syn_of_his_own_is_told_that_the_port_refuses() {
    let net = Net { echo: false, tcp: false, udp: None, refuses: true, ..Net::new(1) };
    let (report, _) = find(&net, config(&net, &[Kind::Echo, Kind::Stream, Kind::Udp]));
    assert_eq!((report.pmtu, report.kind), (None, PathKind::Inconclusive), "{report:#?}");
    assert_eq!(report.findings, [Finding::PortRefused], "{report:#?}");
}

#[test]
fn a_router_that_clears_dont_fragment_is_told_with_the_hop_that_sees_it_first() {
    for seed in 0..30 {
        for at in 1..4 {
            let mut net = Net::new(seed);
            net.links = [1500, 1500, 1500, 1500, 1400, 1500].map(Link::mtu).to_vec();
            net.rtt = Duration::from_millis(20);
            net.links[at].clears_df = true;
            // Echoes come back with the time to live of four hops.
            net.links.remove(3);
            net.links.remove(2);
            let cleared = net.links.iter().position(|link| link.clears_df);
            let (report, ran) = find(&net, config(&net, &ALL));
            assert!(ran.packets <= 40, "{}", ran.packets);
            let Some(cleared) = cleared else {
                assert_eq!((report.pmtu, report.kind, report.df_cleared), (Some(1400), PathKind::Clean, None));
                continue;
            };
            assert_eq!((report.pmtu, report.kind), (Some(1500), PathKind::DfCleared), "{report:#?}");
            let hop = report.df_cleared.map(|hop| (usize::from(hop.ttl), hop.address));
            assert_eq!(hop, Some((cleared + 1, net.router(cleared + 1))), "{report:#?}");
        }
    }
}

#[test]
fn where_quotations_cannot_be_read_or_have_no_flag_nothing_is_claimed_of_it() {
    let mut net = Net::new(1);
    net.links[1].clears_df = true;
    let (report, _) = find(&net, config(&net, &[Kind::Echo, Kind::Stream, Kind::Udp]));
    assert_eq!((report.pmtu, report.df_cleared), (Some(1492), None), "{report:#?}");
    let net = Net { v6: true, ..Net::new(1) };
    let (report, _) = find(&net, config(&net, &ALL));
    assert_eq!((report.kind, report.df_cleared), (PathKind::Clean, None), "{report:#?}");
}

#[test]
fn a_target_that_rations_its_echoes_makes_no_black_hole() {
    let mut unknown = 0;
    for (burst, rate) in [(5.0, 20.0), (5.0, 2.0), (8.0, 20.0), (10.0, 50.0), (5.0, 100.0), (12.0, 200.0), (20.0, 10.0)]
    {
        for seed in 0..20 {
            let links = vec![Link::mtu(1500); 2];
            let mut net = Net { echoes: Some((burst, rate)), tcp: false, udp: None, links, ..Net::new(seed) };
            net.rtt = Duration::from_millis(if seed % 2 == 0 { 1 } else { 40 });
            let (report, ran) = find(&net, config(&net, &ALL));
            assert!(matches!(report.pmtu, Some(1500) | None), "{burst}, {rate}, {seed}: {report:#?}");
            assert!(matches!(report.kind, PathKind::Clean | PathKind::Inconclusive), "{burst}, {rate}: {report:#?}");
            let scarce = report.findings.contains(&Finding::TooFewAnswers);
            assert!(report.pmtu.is_some() || scarce || report.findings.contains(&Finding::PathChanged), "{report:#?}");
            assert!(ran.packets < 2000, "{burst}, {rate}: {}", ran.packets);
            unknown += u32::from(scarce);
            // With a port that accepts connections, it is known, unless too long nothing comes at all; and nothing is claimed of the way back.
            let net = Net { tcp: true, ..net };
            let (report, _) = find(&net, config(&net, &ALL));
            let silent = report.findings == [Finding::PathChanged];
            assert!(
                silent || report.pmtu == Some(1500) && report.kind == PathKind::Clean,
                "{burst}, {rate}: {report:#?}"
            );
            assert!(!report.findings.contains(&Finding::EchoLostOnItsWayBack), "{burst}, {rate}: {report:#?}");
        }
    }
    assert!(unknown > 20, "{unknown}");
}
