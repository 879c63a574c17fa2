//! Load balancers that send flows over unequal branches.

use crate::common::{Link, Net, RunCost, rng, run};
use crate::search::{ALL, USERS, config, everybody};
use rand::RngExt as _;
use std::time::Duration;
use wt_probe::{Finding, FlowTally, PathKind, Search, SearchConfig, SearchReport};

const FLOWS: u8 = 12;

fn find(net: &Net, config: SearchConfig) -> (SearchReport, RunCost) {
    let mut search = Search::new(SearchConfig { flows: FLOWS, ..config }, rng(net.seed));
    let ran = run(net, &mut search);
    (search.report(), ran)
}

/// Every third connection takes the branch, and everything else if said so.
fn balanced(narrow: u16, silent: bool, others: bool, net: Net) -> Net {
    let mut branch = net.links.clone();
    branch[2] = Link { icmp: !silent, ..Link::mtu(narrow) };
    Net { branch: Some((branch, |id, _| id.is_multiple_of(3), others)), retransmits: true, ..net }
}

fn wide(v6: bool, seed: u64) -> Net {
    Net { v6, links: [1500; 4].map(Link::mtu).to_vec(), rtt: Duration::from_millis(20), ..Net::new(seed) }
}

#[test]
fn a_narrow_silent_branch_that_echoes_do_not_take_is_never_called_clean() {
    for (kinds, v6, seed) in everybody(30) {
        let net = balanced(1400, true, false, wide(v6, seed));
        let (report, ran) = find(&net, config(&net, kinds));
        assert_eq!(report.kind, PathKind::NarrowBranch, "{kinds:?}, {seed}: {report:#?}");
        let wanted = FlowTally { size: 1500, flows: 12, carried: 8, silent: 4 };
        assert_eq!(report.flows, Some(wanted), "{kinds:?}, {seed}: {report:#?}");
        assert!(ran.time <= Duration::from_secs(5), "{kinds:?}: {:?}", ran.time);
    }
}

#[test]
fn a_hole_on_the_branch_of_echoes_alone_is_told_by_what_the_others_carry() {
    for v6 in [false, true] {
        for seed in 0..30 {
            let net = balanced(1400, true, true, wide(v6, seed));
            let (report, _) = find(&net, config(&net, &ALL));
            assert_eq!((report.pmtu, report.kind), (Some(1400), PathKind::NarrowBranch), "{report:#?}");
            let wanted = FlowTally { size: 1401, flows: 12, carried: 8, silent: 4 };
            assert_eq!(report.flows, Some(wanted), "{report:#?}");
        }
    }
}

#[test]
fn flows_that_all_take_one_way_change_no_verdict_and_cost_a_round_trip() {
    let without = |net: &Net, kinds: &[wt_probe::Kind]| {
        let mut search = Search::new(config(net, kinds), rng(net.seed));
        let ran = run(net, &mut search);
        (search.report(), ran)
    };
    for hole in [false, true] {
        for (kinds, v6, seed) in everybody(20) {
            let mut net = Net { retransmits: true, ..wide(v6, seed) };
            net.links[2] = Link { icmp: !hole, ..Link::mtu(1427) };
            let ((alone, least), (report, ran)) = (without(&net, kinds), find(&net, config(&net, kinds)));
            assert_eq!((report.pmtu, report.kind, report.hole), (alone.pmtu, alone.kind, alone.hole), "{report:#?}");
            let carried = if hole { 0 } else { 12 };
            assert_eq!(report.flows.map(|flows| flows.carried), Some(carried), "{kinds:?}: {report:#?}");
            // Who has streams alone begins with them later.
            let trips = if kinds.contains(&wt_probe::Kind::Echo) { 1 } else { 2 };
            let most = least.time + net.rtt * trips + Duration::from_millis(if hole { 80 } else { 5 });
            assert!(ran.time <= most, "{kinds:?}, hole {hole}: {:?} and {:?}", ran.time, least.time);
        }
    }
}

/// Whether a hash sends this connection over the second of two branches.
fn by_chance(id: u32, seed: u64) -> bool {
    rng(seed << 32 | u64::from(id)).random()
}

#[test]
fn a_narrow_branch_of_two_is_told_by_connections_that_lose_all_or_nothing() {
    const SEEDS: u64 = 1000;
    let mut wrong = Vec::new();
    for kinds in USERS {
        for others in [false, true] {
            for seed in 0..SEEDS {
                let net = balanced(1400, true, others, wide(false, seed));
                let branch = net.branch.map(|(links, _, others)| (links, by_chance as fn(u32, u64) -> bool, others));
                let net = Net { branch, ..net };
                let mut search = Search::new(SearchConfig { flows: 24, ..config(&net, kinds) }, rng(seed));
                run(&net, &mut search);
                let report = search.report();
                if report.kind != PathKind::NarrowBranch {
                    wrong.push((report.kind, report.method, report.flows, seed));
                }
            }
        }
    }
    assert!(wrong.len() <= 2, "{} of {}: {wrong:?}", wrong.len(), USERS.len() as u64 * 2 * SEEDS);
}

#[test]
fn random_loss_is_no_narrow_branch() {
    let mut wrong = 0;
    for kinds in USERS {
        for loss in [0.05, 0.1, 0.3] {
            for above in [0, 1300] {
                for seed in 0..100 {
                    let mut net = Net { retransmits: true, ..wide(false, seed) };
                    (net.links[1].loss_above, net.links[1].loss) = (above, [loss; 2]);
                    let (report, _) = find(&net, config(&net, kinds));
                    wrong += u32::from(report.kind == PathKind::NarrowBranch);
                }
            }
        }
    }
    assert!(wrong <= 2, "{wrong} of 1800");
}

#[test]
fn loss_that_probes_were_spared_shows_by_the_connections() {
    const SEEDS: u64 = 2500;
    let mut wrong = Vec::new();
    for kinds in USERS {
        for back in [0.0, 0.3] {
            for seed in 0..SEEDS {
                let mut net = Net { retransmits: true, ..Net::new(seed) };
                (net.links[2].loss_above, net.links[2].loss) = (1300, [0.3, back]);
                let (report, _) = find(&net, config(&net, kinds));
                if report.kind != PathKind::SizeDependentLoss {
                    wrong.push((report.kind, report.method, seed));
                }
            }
        }
    }
    // One in 800 was wrong when only the other probes' losses counted.
    assert!(wrong.len() <= 2, "{} of {}: {wrong:?}", wrong.len(), USERS.len() as u64 * 2 * SEEDS);
}

#[test]
fn retransmissions_that_take_another_branch_hide_no_narrow_one() {
    let mut narrow = 0;
    for kinds in &USERS[..2] {
        for seed in 0..100 {
            let net = Net { rehashes: true, ..balanced(1400, true, false, wide(true, seed)) };
            let branch = net.branch.map(|(links, _, others)| (links, by_chance as fn(u32, u64) -> bool, others));
            let net = Net { branch, ..net };
            let (report, _) = find(&net, config(&net, kinds));
            let Some(FlowTally { carried, silent, .. }) = report.flows else { panic!("{report:#?}") };
            let said = report.findings.iter().any(|finding| matches!(finding, Finding::FlowsRetransmitted { .. }));
            assert!(silent == 0 || report.kind == PathKind::NarrowBranch, "{seed}, {carried} carried: {report:#?}");
            narrow += u32::from(report.kind == PathKind::NarrowBranch || said);
        }
    }
    // Of twelve connections two or fewer take the branch first in 2 of 100 runs.
    assert!(narrow >= 190, "{narrow} of 200");
}

#[test]
fn connections_that_this_host_keeps_short_are_not_left_out_without_a_word() {
    // What a router named a moment ago, and a target's own MSS that no connection exceeds.
    for (mss, said) in [(1460, true), (1360, false)] {
        let net = Net { stream_limit: 1400, mss, retransmits: true, ..wide(false, 3) };
        let (report, _) = find(&net, config(&net, &ALL));
        assert_eq!((report.pmtu, report.flows), (Some(1500), None), "{report:#?}");
        let finding = Finding::FlowsTooLong { size: 1500, longest: 1400 };
        assert_eq!(report.findings.contains(&finding), said, "{report:#?}");
    }
}

#[test]
fn connections_that_cannot_be_opened_leave_it_unknown() {
    let net = Net { tcp: false, retransmits: true, ..wide(false, 3) };
    let (report, _) = find(&net, config(&net, &ALL));
    assert_eq!((report.pmtu, report.kind, report.flows), (Some(1500), PathKind::Clean, None), "{report:#?}");
}
