//! Clients that want to sway a verdict or fill the memory.

use crate::world::{NOTHING, Tails, World, config};
use wt_traffic::{
    ArmThresholds, ConnectionFate, ConnectionOutcome, DrawKey, ResponseOutcome, TrafficAnalysis, TrafficEffect,
    TrafficRamp, TrafficRun, TrafficTally, TrafficUnit, TrafficVerdictKind,
};

fn outcome(arm: usize, epoch: u64, tag: u64) -> ConnectionOutcome {
    ConnectionOutcome {
        arm,
        epoch,
        offset_us: 0,
        tag,
        connection: 0,
        by_response: false,
        bytes_acked: 30_000,
        duration_us: 50_000,
        busy_us: None,
        min_rtt_us: 20_000,
        sent_segments: 22,
        retransmitted_segments: 0,
        rtos: Some(0),
        fate: ConnectionFate::Closed,
        set_errors: 0,
        compliant: true,
    }
}

/// Six epochs of ordinary clients, and in each `flood` connections of one prefix, which sees its arm and behaves accordingly.
fn flooded(unit: TrafficUnit, flood: u64) -> TrafficAnalysis {
    let (key, tags, half) = (DrawKey([1, 9]), DrawKey([2, 9]), ArmThresholds::new(&[0.5, 0.5]));
    let mut analysis = TrafficAnalysis::new(config(unit, TrafficRamp::none())).unwrap();
    let mut world = World::new(9, Tails::Lognormal);
    for epoch in 0..6 {
        analysis.begin_epoch(epoch, &[0.5, 0.5], None);
        world.epoch();
        for port in 0..1000 {
            let arrival = world.arrival();
            let arm = key.arm(arrival.prefix, epoch, unit, port << 16 | 1, &half).unwrap();
            analysis.record(&arrival.outcome(arm, epoch, tags, NOTHING));
        }
        let attacker = wt_traffic::ClientPrefix(4 << 60 | 0x00cb_0071);
        for port in 0..flood {
            let arm = key.arm(attacker, epoch, unit, port << 16 | 1, &half).unwrap();
            let good = ConnectionOutcome { connection: port, ..outcome(arm, epoch, tags.tag(attacker)) };
            let bad =
                ConnectionOutcome { bytes_acked: 10, fate: ConnectionFate::Reset, retransmitted_segments: 22, ..good };
            analysis.record(if arm == 1 { &bad } else { &good });
        }
        analysis.close_epoch(epoch);
    }
    analysis
}

#[test]
fn a_prefix_that_floods_weighs_no_more_than_one_unit_an_epoch() {
    let analysis = flooded(TrafficUnit::Prefix, 100_000 / 6);
    assert!(analysis.stopped().is_empty());
    let report = analysis.report(TrafficRun { id: "x", backend: "sockops" }, &TrafficTally::default());
    assert_eq!(report.verdict.kind, TrafficVerdictKind::Undecided, "{}", report.text());
    let check = report.self_checks.iter().find(|check| check.name == "largest_prefix").unwrap();
    assert!(!check.ok && check.text.contains('%'), "{check:?}");
    // Six bets, each of which at most doubles the wealth.
    let without = flooded(TrafficUnit::Prefix, 0);
    for side in 0..2 {
        let swayed = analysis.best_evidence(1)[side] - without.best_evidence(1)[side];
        assert!(swayed.abs() <= 6.0 * std::f64::consts::LN_2, "{swayed}");
    }
}

#[test]
fn by_connection_a_prefix_weighs_as_much_as_twenty_connections_an_epoch_however_many_it_opens() {
    let floods = [0, 20, 16_000].map(|flood| flooded(TrafficUnit::Connection, flood));
    let effect = |analysis: &TrafficAnalysis| {
        analysis.report(TrafficRun { id: "x", backend: "b" }, &TrafficTally::default()).effects[0].clone()
    };
    let [none, twenty, all] = floods.each_ref().map(effect);
    assert!(all.units <= 6 * 3000 && all.units > twenty.units, "{} {}", all.units, twenty.units);
    // An attacker that is a thousand times as busy moves nothing much further than twenty connections an epoch do.
    let moved = |effect: &TrafficEffect| (effect.ratio.unwrap().ln() - none.ratio.unwrap().ln()).abs();
    assert!(moved(&all) <= 1.2 * moved(&twenty), "{} {}", moved(&all), moved(&twenty));
    let against = |at: usize| floods[at].best_evidence(1)[1];
    let against_none = against(0);
    assert!(
        against(2) - against_none <= 1.5 * (against(1) - against_none) + 0.1,
        "{} {} {against_none}",
        against(2),
        against(1)
    );
}

#[test]
fn more_than_a_hundred_thousand_units_are_never_live_and_it_is_said() {
    for unit in [TrafficUnit::Prefix, TrafficUnit::Connection] {
        let mut analysis = TrafficAnalysis::new(config(unit, TrafficRamp::none())).unwrap();
        analysis.begin_epoch(0, &[0.5, 0.5], None);
        for tag in 0..120_000 {
            analysis.record(&outcome((tag % 2) as usize, 0, tag));
        }
        assert_eq!(analysis.live_units(), 100_000);
        let report = analysis.report(TrafficRun { id: "x", backend: "sockops" }, &TrafficTally::default());
        let check = report.self_checks.iter().find(|check| check.name == "units").unwrap();
        assert!(!check.ok && check.text.contains("20000 connections came when 100,000"), "{check:?}");
        analysis.close_epoch(0);
        assert_eq!(analysis.live_units(), 0);
    }
}

#[test]
fn extreme_figures_of_a_client_neither_panic_nor_reach_the_report_as_no_number() {
    let mut analysis = TrafficAnalysis::new(config(TrafficUnit::Prefix, TrafficRamp::none())).unwrap();
    for epoch in 0..3 {
        analysis.begin_epoch(epoch, &[0.5, 0.5], None);
        for tag in 0..50 {
            let extreme = ConnectionOutcome {
                bytes_acked: [0, 1, u64::MAX][tag as usize % 3],
                duration_us: [u64::MAX, 0, 1][tag as usize / 3 % 3],
                min_rtt_us: u32::MAX,
                sent_segments: [0, u32::MAX][tag as usize % 2],
                retransmitted_segments: u32::MAX,
                rtos: Some(u32::MAX),
                ..outcome((tag % 2) as usize, epoch, tag)
            };
            analysis.record(&extreme);
        }
        analysis.record(&outcome(9, epoch, 1));
        analysis.record(&outcome(0, 77, 1));
        analysis.close_epoch(epoch);
    }
    let report = analysis.report(TrafficRun { id: "x", backend: "sockops" }, &TrafficTally::default());
    let json = serde_json::to_string(&report).unwrap();
    assert_eq!(serde_json::from_str::<wt_traffic::TrafficReport>(&json).unwrap().id, "x");
    assert!(report.self_checks.iter().any(|check| check.text.contains("6 connections belong to no open epoch")));
}

#[test]
fn a_connection_with_many_responses_is_one_unit_and_one_of_an_epoch_that_is_scored_is_late() {
    let mut analysis = TrafficAnalysis::new(config(TrafficUnit::Connection, TrafficRamp::none())).unwrap();
    analysis.begin_epoch(0, &[0.5, 0.5], None);
    let of = |arm: usize, connection: u64| ConnectionOutcome {
        connection,
        by_response: true,
        ..outcome(arm, 0, connection)
    };
    for connection in 0..40 {
        let arm = connection as usize % 2;
        for response in 0..=connection {
            analysis.respond(&ResponseOutcome {
                arm,
                epoch: 0,
                offset_us: 0,
                tag: connection,
                connection,
                bytes: 1_000 * (1 + response % 50),
                time_us: 20_000,
                aborted: false,
            });
        }
        analysis.record(&of(arm, connection));
    }
    analysis.close_epoch(0);
    analysis.record(&of(0, 41));
    let report = analysis.report(TrafficRun { id: "x", backend: "sockops" }, &TrafficTally::default());
    assert_eq!(report.effects[0].units, 40);
    let responses: u64 = report.arms.iter().filter_map(|arm| arm.responses).sum();
    let classed: u64 = report.classes.iter().flat_map(|class| &class.arms).map(|arm| arm.connections).sum();
    assert_eq!((responses, classed), (820, 820));
    let check = report.self_checks.iter().find(|check| check.name == "units").unwrap();
    assert!(check.ok && check.text.contains("1 connections were still open"), "{check:?}");
}
