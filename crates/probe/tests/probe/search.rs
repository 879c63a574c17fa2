//! The search against simulated paths: the nine variants of the published measurements, and worse.

use crate::common::{Link, Net, RunCost, rng, run, run_with, run_with_outage};
use std::time::Duration;
use wt_probe::{Answer, Finding, Kind, PathKind, ProbeAnswer, RouterRefusal, Search, SearchConfig, SearchReport};

pub(crate) const ALL: [Kind; 3] = [Kind::Echo, Kind::OldSegment, Kind::Udp];

pub(crate) fn search(net: &Net, kinds: &[Kind]) -> Search {
    Search::new(config(net, kinds), rng(net.seed))
}

/// What is asked of most paths here: one target, and no flows beside.
pub(crate) fn config(net: &Net, kinds: &[Kind]) -> SearchConfig {
    SearchConfig {
        max: net.links[0].mtu,
        v6: net.v6,
        kinds: kinds.to_vec(),
        handshake: true,
        patient: true,
        losses: true,
        flows: 1,
        told: None,
    }
}

fn find(net: &Net, kinds: &[Kind]) -> (SearchReport, RunCost) {
    let mut search = search(net, kinds);
    let ran = run(net, &mut search);
    (search.report(), ran)
}

type Change = fn(&mut Net);

/// Every variant with the right number and kind.
const VARIANTS: [(&str, Change, u16, PathKind); 9] = [
    ("normal", |_| {}, 1400, PathKind::Clean),
    ("black hole", |net| net.links[2].icmp = false, 1400, PathKind::BlackHole),
    ("black hole everywhere", |net| net.links.iter_mut().for_each(|link| link.icmp = false), 1400, PathKind::BlackHole),
    ("drop 1300", |net| net.links[2].drop_above = Some(1300), 1300, PathKind::LyingRouter),
    ("loss 30 % above 1300", |net| lossy(net, [0.3; 2]), 1400, PathKind::SizeDependentLoss),
    ("loss 30 % above 1300, forward", |net| lossy(net, [0.3, 0.0]), 1400, PathKind::SizeDependentLoss),
    ("no echo", |net| net.echo = false, 1400, PathKind::IcmpBlocked),
    ("MSS clamped to 1200", |net| net.links[2].clamp = Some(1200), 1400, PathKind::Clamped),
    // As Linux does it: six at once and then one a second.
    ("rationed ICMP", |net| net.links.iter_mut().for_each(|l| l.limit = Some((6.0, 1.0))), 1400, PathKind::RateLimited),
];

fn lossy(net: &mut Net, loss: [f64; 2]) {
    net.links[1].loss_above = 1300;
    net.links[1].loss = loss;
}

#[test]
fn every_variant_gets_the_right_number_and_kind_fifty_times_in_both_versions_of_ip() {
    for (name, change, pmtu, kind) in VARIANTS {
        for v6 in [false, true] {
            for seed in 0..50 {
                let mut net = Net { v6, ..Net::new(seed) };
                change(&mut net);
                let (report, _) = find(&net, &ALL);
                assert_eq!((report.pmtu, report.kind), (Some(pmtu), kind), "{name}, v6 {v6}, seed {seed}: {report:#?}");
            }
        }
    }
}

#[test]
fn routers_that_say_so_once_a_second_only_are_told_by_what_they_leave_unsaid() {
    for seed in 0..50 {
        let mut net = Net::new(seed);
        net.links.iter_mut().for_each(|link| link.limit = Some((1.0, 1.0)));
        let (report, _) = find(&net, &ALL);
        assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::RateLimited), "{report:#?}");
    }
}

#[test]
fn a_clean_path_takes_at_most_32_packets_and_two_bursts() {
    let (report, ran) = find(&Net::new(1), &ALL);
    assert_eq!((report.pmtu, report.kind, report.rounds), (Some(1400), PathKind::Clean, 2));
    assert!(ran.packets <= 32, "{}", ran.packets);
    assert!(ran.time <= Duration::from_millis(110), "{:?}", ran.time);
}

#[test]
fn a_black_hole_takes_at_most_64_packets_and_300_ms_and_its_hop_is_named() {
    for seed in 0..50 {
        let mut net = Net::new(seed);
        net.links[2].icmp = false;
        let (report, ran) = find(&net, &ALL);
        assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::BlackHole));
        assert_eq!(report.hole.map(|hop| (hop.ttl, hop.address)), Some((2, net.router(2))));
        assert!(ran.packets <= 64 && report.rounds <= 4, "{} packets, {} rounds", ran.packets, report.rounds);
        assert!(ran.time <= Duration::from_millis(300), "{:?}", ran.time);
    }
}

#[test]
fn any_pmtu_behind_a_black_hole_is_found_exactly_within_its_budget() {
    for pmtu in 576..1500 {
        let mut net = Net::new(u64::from(pmtu));
        net.links[2] = Link { icmp: false, ..Link::mtu(pmtu) };
        let (report, ran) = find(&net, &ALL);
        assert_eq!(
            (report.pmtu, report.kind),
            (Some(pmtu.min(1492)), if pmtu < 1492 { PathKind::BlackHole } else { PathKind::Clean })
        );
        let (packets, rounds) = if pmtu >= 1280 { (64, 4) } else { (110, 5) };
        assert!(
            ran.packets <= packets && report.rounds <= rounds,
            "{pmtu}: {} packets, {} rounds",
            ran.packets,
            report.rounds
        );
    }
}

#[test]
fn on_a_modem_line_no_burst_is_sent_twice_and_the_next_ones_keep_to_its_rate() {
    for (kbit, ms) in [(64.0, 20), (64.0, 40), (64.0, 46), (32.0, 40), (128.0, 40), (256.0, 10)] {
        for v6 in [false, true] {
            let mut net = Net { v6, rate: Some(kbit * 1e3), rtt: Duration::from_millis(ms), ..Net::new(1) };
            net.links = vec![Link::mtu(1500); 3];
            let (report, ran) = find(&net, &ALL);
            assert_eq!((report.pmtu, report.kind), (Some(1500), PathKind::Clean), "{kbit}, {ms} ms: {report:#?}");
            assert!(ran.packets <= 33 && report.rounds <= 2, "{kbit}, {ms} ms: {} in {}", ran.packets, report.rounds);
            let each = 1400.0 * 8.0 / kbit / 1e3;
            assert!((0.8..1.3).contains(&(report.pace.as_secs_f64() / each)), "{kbit}, {ms} ms: {:?}", report.pace);
        }
    }
}

#[test]
fn where_echoes_are_forbidden_a_fast_line_is_not_waited_for() {
    for v6 in [false, true] {
        let (report, ran) = find(&Net { echo: false, v6, ..Net::new(8) }, &ALL);
        assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::IcmpBlocked));
        assert!(ran.time <= Duration::from_millis(300), "{:?}", ran.time);
    }
}

/// What root, who may ping, and everybody can send.
pub(crate) const USERS: [&[Kind]; 3] = [&ALL, &[Kind::Echo, Kind::Stream, Kind::Udp], &[Kind::Stream, Kind::Udp]];

#[test]
fn a_silent_router_before_one_that_speaks_is_found_whoever_asks() {
    for (kinds, v6, seed) in everybody(50) {
        let mut net = Net { v6, ..Net::new(seed) };
        net.links = [1500, 1496, 1500, 1427, 1500].map(Link::mtu).to_vec();
        net.links[1].icmp = false;
        let (report, ran) = find(&net, kinds);
        assert_eq!((report.pmtu, report.kind), (Some(1427), PathKind::BlackHole), "{kinds:?}, {seed}: {report:#?}");
        assert_eq!(report.hole.map(|hop| hop.address), Some(net.router(1)), "{kinds:?}, {seed}: {report:#?}");
        assert!(report.hints.iter().any(|hint| hint.router == Some(net.router(3)) && hint.mtu == 1427));
        assert!(ran.time <= Duration::from_millis(700), "{kinds:?}: {:?}", ran.time);
    }
}

/// Every user, both versions of IP, so many seeds.
pub(crate) fn everybody(seeds: u64) -> impl Iterator<Item = (&'static [Kind], bool, u64)> {
    let versions = USERS.into_iter().flat_map(|kinds| [(kinds, false), (kinds, true)]);
    versions.flat_map(move |(kinds, v6)| (0..seeds).map(move |seed| (kinds, v6, seed)))
}

#[test]
fn routers_that_ration_what_they_say_hide_nobody_before_them() {
    for (kinds, v6, seed) in everybody(50) {
        // Of streams, the kernel hears the only word, and not we.
        let limits = [(6.0, 1.0), (2.0, 1.0), (1.0, 1.0)];
        for limit in limits.into_iter().take(if kinds.contains(&Kind::Stream) { 1 } else { 3 }) {
            let mut net = Net { v6, ..Net::new(seed) };
            net.links.iter_mut().for_each(|link| link.limit = Some(limit));
            let (report, _) = find(&net, kinds);
            assert_ne!(report.kind, PathKind::BlackHole, "{kinds:?}, {limit:?}, seed {seed}: {report:#?}");
            assert_eq!(report.pmtu, Some(1400), "{kinds:?}, {limit:?}, seed {seed}: {report:#?}");
        }
    }
}

#[test]
fn paths_below_576_bytes_are_measured_whoever_asks() {
    for mtu in (68..1280).step_by(17).chain([296, 552, 575, 576, 577, 1006]) {
        for kinds in USERS {
            for icmp in [true, false] {
                let mut net = Net::new(u64::from(mtu));
                net.links[2] = Link { icmp, ..Link::mtu(mtu) };
                // The kernel's TCP makes what the path is known to carry.
                if icmp {
                    net.stream_limit = mtu.max(552);
                }
                let (report, ran) = find(&net, kinds);
                let kind = if icmp { PathKind::Clean } else { PathKind::BlackHole };
                assert_eq!((report.pmtu, report.kind), (Some(mtu), kind), "{kinds:?}: {report:#?}");
                assert!(ran.time < Duration::from_secs(3), "{mtu}, {kinds:?}: {:?}", ran.time);
            }
        }
    }
}

#[test]
fn echoes_that_vanish_on_their_way_back_say_nothing_of_the_way_there() {
    for (kinds, v6, seed) in everybody(20) {
        let mut net = Net { v6, ..Net::new(seed) };
        net.links[2].icmp = false;
        net.links[3].back = Some(1300);
        let (report, _) = find(&net, kinds);
        assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::BlackHole), "{kinds:?}: {report:#?}");
        assert_eq!(report.hole.map(|hop| hop.ttl), Some(2), "{kinds:?}: {report:#?}");
    }
}

#[test]
fn a_small_mss_that_no_router_has_lowered_is_the_targets_own() {
    let net = Net { mss: 1260, ..Net::new(4) };
    let (report, _) = find(&net, &ALL);
    assert_eq!((report.kind, report.clamp), (PathKind::Clean, None), "{report:#?}");
    assert!(report.findings.contains(&Finding::TargetsMss { mss: 1260 }), "{report:#?}");
}

#[test]
fn an_mss_that_is_lowered_on_the_way_there_alone_is_found_where_it_is_asked_for() {
    for v6 in [false, true] {
        let mut net = Net { clamps_one_way: true, v6, links: vec![Link::mtu(1500); 3], ..Net::new(4) };
        let lowered = |net: &Net| {
            let mut search = search(net, &ALL);
            run(net, &mut search);
            assert_eq!((search.report().kind, search.report().clamp), (PathKind::Clean, None));
            assert!(search.ask_for_quotes());
            run(net, &mut search);
            assert!(!search.ask_for_quotes(), "once is enough");
            (search.sees_lowered_mss(), search.report())
        };
        let (seen, report) = lowered(&net);
        assert!(!seen && report.clamp.is_none() && report.findings.is_empty(), "{report:#?}");
        net.links[1].clamp = Some(1000);
        let (seen, report) = lowered(&net);
        let clamp = report.clamp.map(|clamp| (clamp.to, clamp.hop.map(|hop| hop.ttl)));
        assert_eq!((seen, report.kind, clamp), (true, PathKind::Clamped, Some((1000, Some(2)))), "{report:#?}");
    }
}

#[test]
fn a_router_that_names_an_impossible_mtu_is_called_a_liar() {
    for says in [0, 1, 9000] {
        let mut net = Net::new(5);
        net.links[2].says = Some(says);
        let (report, _) = find(&net, &ALL);
        assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::LyingRouter), "{says}: {report:#?}");
    }
}

#[test]
fn a_router_that_names_too_small_an_mtu_is_called_a_liar_and_not_believed() {
    let mut net = Net::new(5);
    net.links[2].says = Some(1300);
    let (report, _) = find(&net, &ALL);
    assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::LyingRouter));
}

#[test]
fn jumbo_frames_take_one_or_two_bursts_more() {
    for (mtu, icmp) in [(9000, true), (8996, true), (4470, false), (1500, false), (8999, false)] {
        let mut net = Net::new(u64::from(mtu));
        net.links = vec![Link::mtu(9000), Link { icmp, ..Link::mtu(mtu) }, Link::mtu(9000)];
        let (report, ran) = find(&net, &ALL);
        assert_eq!(report.pmtu, Some(mtu));
        assert!(ran.packets <= 130 && report.rounds <= 7, "{mtu}: {} packets, {} rounds", ran.packets, report.rounds);
    }
}

#[test]
fn the_clamping_hop_is_named() {
    let mut net = Net::new(3);
    net.links[2].clamp = Some(1200);
    let clamp = find(&net, &ALL).0.clamp.expect("a clamp");
    assert_eq!((clamp.from, clamp.to, clamp.hop.map(|hop| hop.ttl)), (1460, 1200, Some(3)));
}

#[test]
fn a_server_behind_a_smaller_link_that_says_so_clamps_nothing() {
    let net = Net { mss: 1360, ..Net::new(4) };
    let (report, _) = find(&net, &ALL);
    assert_eq!((report.kind, report.clamp), (PathKind::Clean, None));
}

#[test]
fn with_udp_alone_every_number_and_seven_kinds_are_right_though_answers_are_rationed() {
    let mut right = 0;
    for (name, change, pmtu, kind) in VARIANTS {
        let mut net = Net::new(9);
        change(&mut net);
        let (report, ran) = find(&net, &[Kind::Udp]);
        assert_eq!(report.pmtu, Some(pmtu), "{name}: {report:#?}");
        assert!(ran.packets <= 64, "{name}: {}", ran.packets);
        // Packets that get lost are told from answers that are rationed after two seconds only.
        let limit = Duration::from_millis(if name.starts_with("loss") { 2500 } else { 1300 });
        assert!(ran.time <= limit, "{name}: {:?}", ran.time);
        // Nobody asked for an echo, so that it is forbidden remains unknown.
        right += u32::from(report.kind == kind || name == "no echo");
    }
    assert!(right >= 7, "{right}");
}

#[test]
fn with_what_the_kernel_gives_everybody_eight_of_nine_are_right_fifty_times_and_all_where_echoes_may_be_sent() {
    for (name, change, pmtu, kind) in VARIANTS {
        for v6 in [false, true] {
            for seed in 0..50 {
                let mut net = Net { v6, ..Net::new(seed) };
                change(&mut net);
                let (report, _) = find(&net, &[Kind::Echo, Kind::Stream, Kind::Udp]);
                assert_eq!((report.pmtu, report.kind), (Some(pmtu), kind), "{name}, v6 {v6}, seed {seed}: {report:#?}");
                let (report, ran) = find(&net, &[Kind::Stream, Kind::Udp]);
                // Nobody asked for an echo, so that it is forbidden remains unknown.
                let kind = if name == "no echo" { PathKind::Clean } else { kind };
                assert_eq!((report.pmtu, report.kind), (Some(pmtu), kind), "{name}, v6 {v6}, seed {seed}: {report:#?}");
                assert!(ran.time < Duration::from_secs(3), "{name}: {:?}", ran.time);
            }
        }
    }
}

#[test]
fn a_kernel_that_remembers_the_path_mtu_sends_no_longer_segments_and_the_answer_is_the_same() {
    for (limit, change) in [(1400, (|_| {}) as Change), (1492, |net| net.links[2].icmp = false)] {
        let mut net = Net { stream_limit: limit, ..Net::new(4) };
        change(&mut net);
        let (report, _) = find(&net, &[Kind::Stream, Kind::Udp]);
        let kind = if limit == 1400 { PathKind::Clean } else { PathKind::BlackHole };
        assert_eq!((report.pmtu, report.kind), (Some(1400), kind), "{report:#?}");
    }
}

#[test]
fn what_tcp_has_shown_stays_where_the_target_answers_no_datagrams() {
    let rationed = [None, Some((1.0, 0.0))];
    for (v6, limits) in [(false, [1040, 1400, 1492]), (true, [1060, 1400, 1492])] {
        for (limit, udp) in limits.into_iter().flat_map(|limit| rationed.map(|udp| (limit, udp))) {
            for icmp in [true, false] {
                let mut net = Net { v6, udp, stream_limit: limit, retransmits: true, ..Net::new(5) };
                net.links = [1500; 4].map(Link::mtu).to_vec();
                let (report, ran) = find(&net, &[Kind::Stream, Kind::Udp]);
                assert_eq!((report.pmtu, report.kind), (Some(limit), PathKind::Inconclusive), "{udp:?}: {report:#?}");
                assert!(report.is_lower_bound() && report.hole.is_none(), "{report:#?}");
                assert!(ran.time <= Duration::from_secs(4), "{limit}, {udp:?}: {:?}", ran.time);
                // What TCP's packets show of shorter ones is no lower bound.
                net.links[2] = Link { icmp, ..Link::mtu(1300) };
                let (report, _) = find(&net, &[Kind::Stream, Kind::Udp]);
                let least = limit.min(1300);
                assert_eq!((report.pmtu, report.is_lower_bound()), (Some(least), limit < 1300), "{udp:?}: {report:#?}");
            }
        }
    }
}

#[test]
fn who_says_that_packets_go_no_further_is_kept_with_what_he_says() {
    let net = Net { echo: false, tcp: false, udp: None, ..Net::new(5) };
    for (said, refusal) in [
        (ProbeAnswer::Unreachable { code: 13 }, RouterRefusal { from: Some(net.router(2)), expired: false, code: 13 }),
        (
            ProbeAnswer::Expired { quote: wt_probe::Quote::default() },
            RouterRefusal { from: Some(net.router(2)), expired: true, code: 0 },
        ),
    ] {
        let mut search = search(&net, &ALL);
        run_with(&net, &mut search, |probe, at| {
            let whole = probe.ttl.is_none();
            whole
                .then_some(Answer { id: probe.id, at: at + net.rtt, from: Some(net.router(2)), said })
                .into_iter()
                .collect()
        });
        let report = search.report();
        assert_eq!((report.pmtu, report.refusal), (None, Some(refusal)), "{report:#?}");
    }
    // Where packets get through, whoever says otherwise is wrong.
    assert_eq!(find(&Net::new(5), &ALL).0.refusal, None);
}

#[test]
fn a_target_that_accepts_connections_and_carries_no_data_is_not_said_to_answer_nothing() {
    let mut net = Net { udp: None, retransmits: true, ..Net::new(5) };
    net.links[1].drop_above = Some(60);
    let (report, _) = find(&net, &[Kind::Stream, Kind::Udp]);
    assert_eq!((report.pmtu, &report.findings[..]), (None, &[Finding::LittleAnswered][..]), "{report:#?}");
}

#[test]
fn without_tcp_and_udp_echo_is_enough_and_without_all_it_says_that_nothing_answers() {
    let net = Net::new(2);
    assert_eq!(find(&net, &[Kind::Echo]).0.pmtu, Some(1400));
    let net = Net { echo: false, tcp: false, udp: None, ..Net::new(2) };
    let (report, ran) = find(&net, &ALL);
    assert_eq!((report.pmtu, report.kind), (None, PathKind::Inconclusive));
    assert_eq!(report.findings, [Finding::Unreachable { code: None }]);
    assert!(ran.time <= Duration::from_millis(4200), "{:?}", ran.time);
}

#[test]
fn an_echo_that_is_answered_only_later_is_no_forbidden_one() {
    // The first second's packets get lost, as when an address has to be resolved first.
    let net = Net::new(6);
    let mut search = search(&net, &ALL);
    let ran = run_with_outage(&net, &mut search, Duration::from_millis(900));
    let report = search.report();
    assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::Clean), "{report:#?}");
    assert!(ran.time <= Duration::from_millis(1500), "{:?}", ran.time);
}

#[test]
fn a_target_that_answers_udp_alone_is_found_without_waiting_for_a_fixed_second() {
    let net = Net { echo: false, tcp: false, ..Net::new(8) };
    let (report, ran) = find(&net, &ALL);
    assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::IcmpBlocked));
    assert!(ran.time <= Duration::from_millis(500), "{:?}", ran.time);
}

#[test]
fn words_of_routers_that_get_lost_once_are_not_rationed() {
    let mut hushed = 0;
    for from in (100..500).step_by(5) {
        let hush = Some((Duration::from_millis(from), Duration::from_millis(from + 25)));
        let net = Net { echo: false, tcp: false, hush, ..Net::new(8) };
        let (report, _) = find(&net, &ALL);
        assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::IcmpBlocked), "from {from} ms: {report:#?}");
        hushed += u32::from(report.sizes.iter().any(|size| size.size == 1401 && size.silent >= 4));
    }
    assert!(hushed > 0, "no burst was hushed");
}

#[test]
fn the_same_seed_sends_the_same_packets() {
    let mut net = Net::new(77);
    lossy(&mut net, [0.3; 2]);
    assert_eq!(find(&net, &ALL).1.sent, find(&net, &ALL).1.sent);
}

#[test]
fn loss_of_all_sizes_is_not_called_size_dependent_and_the_number_is_right() {
    let mut wrong = 0;
    for seed in 0..200 {
        let mut net = Net::new(seed);
        (net.links[1].loss_above, net.links[1].loss) = (0, [0.05; 2]);
        let (report, _) = find(&net, &ALL);
        assert_eq!(report.pmtu, Some(1400), "seed {seed}: {report:#?}");
        wrong += u32::from(report.kind == PathKind::SizeDependentLoss);
    }
    assert!(wrong <= 2, "{wrong} of 200");
}

#[test]
fn long_packets_that_a_policer_drops_are_not_lost_by_their_size() {
    let mut told = 0;
    for (kinds, v6, seed) in everybody(20) {
        for (burst, mbit) in [(15e3, 10.0), (30e3, 8.0)] {
            let mut net = Net { v6, links: vec![Link::mtu(1500); 3], pps: 2000, ..Net::new(seed) };
            net.links[1].police_bytes = Some((burst, mbit * 1e6 / 8.0));
            let (report, _) = find(&net, kinds);
            assert_ne!(report.kind, PathKind::SizeDependentLoss, "{kinds:?}, {burst}, {mbit}: {report:#?}");
            told += u32::from(report.findings.contains(&Finding::LossByRate));
        }
    }
    assert!(told > 20, "{told}");
}

#[test]
fn a_black_hole_under_random_loss_is_found_exactly() {
    let mut by_size = 0;
    for seed in 0..100 {
        let mut net = Net::new(seed);
        net.links[2].icmp = false;
        (net.links[1].loss_above, net.links[1].loss) = (0, [0.05; 2]);
        let (report, _) = find(&net, &ALL);
        let hop = report.hole.map(|hop| hop.ttl);
        assert_eq!((report.pmtu, hop), (Some(1400), Some(2)), "seed {seed}: {report:#?}");
        // Losses differ by chance once in some hundred times.
        by_size += u32::from(report.kind == PathKind::SizeDependentLoss);
        let kind = matches!(report.kind, PathKind::BlackHole | PathKind::SizeDependentLoss);
        assert!(kind, "seed {seed}: {report:#?}");
    }
    assert!(by_size <= 1, "{by_size} of 100");
}

#[test]
fn a_path_that_changes_meanwhile_gives_an_answer_that_was_true_at_some_time_or_none() {
    let mut unsaid = 0;
    for (before, after, icmp) in [(1400, 1300, true), (1400, 1300, false), (1300, 1400, true), (1300, 1400, false)] {
        for at in (0..320).step_by(2) {
            let with = |mtu| {
                let mut links = Net::new(0).links;
                links[2] = Link { icmp, ..Link::mtu(mtu) };
                links
            };
            let later = Some((Duration::from_millis(at), with(after)));
            let net = Net { links: with(before), later, ..Net::new(at) };
            let (report, _) = find(&net, &ALL);
            let told = report.findings.contains(&Finding::PathChanged);
            unsaid += u32::from(report.pmtu.is_none());
            match report.pmtu {
                Some(pmtu) => assert!([before, after].contains(&pmtu), "{before} to {after} at {at} ms: {report:#?}"),
                None => assert!(
                    told && report.kind == PathKind::Inconclusive,
                    "{before} to {after} at {at} ms: {report:#?}"
                ),
            }
            let fitting = if icmp { PathKind::Clean } else { PathKind::BlackHole };
            assert!(told || report.kind == fitting, "{before} to {after} at {at} ms: {report:#?}");
        }
    }
    assert!(unsaid > 20, "{unsaid}");
}
