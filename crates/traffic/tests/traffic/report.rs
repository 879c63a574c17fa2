//! The report: its JSON is a contract, its text is 80 columns wide, and both say no more than was shown.

use crate::world::{Effect, NOTHING, Run, Tails, World, config, gain, run};
use wt_traffic::{
    ArmTally, ArmThresholds, DrawKey, TrafficAllocation, TrafficAnalysis, TrafficClaim, TrafficConfig, TrafficRamp,
    TrafficReport, TrafficRun, TrafficTally, TrafficUnit, TrafficVerdictKind,
};

const RUN: TrafficRun<'static> = TrafficRun { id: "traffic-1", backend: "sockops" };

fn tally(run: &Run, report: &TrafficReport) -> TrafficTally {
    let arms: Vec<ArmTally> = report
        .arms
        .iter()
        .map(|arm| ArmTally { assigned: arm.recorded, recorded: arm.recorded, ..ArmTally::default() })
        .collect();
    let seen = run.analysis.treated() + run.analysis.controls();
    TrafficTally { passive_opens: Some(seen), seen, arms, ..TrafficTally::default() }
}

fn report_of(config: TrafficConfig, epochs: (u64, u64), effect: Effect) -> TrafficReport {
    let run = run(6, Tails::Lognormal, config, epochs, effect, false);
    let first = run.analysis.report(RUN, &TrafficTally::default());
    run.analysis.report(RUN, &tally(&run, &first))
}

fn by_prefix(effect: Effect) -> TrafficReport {
    report_of(config(TrafficUnit::Prefix, TrafficRamp::none()), (10, 1000), effect)
}

#[test]
fn connections_that_stay_open_are_counted_among_those_that_the_evidence_is_of() {
    let run = run(6, Tails::Lognormal, config(TrafficUnit::Prefix, TrafficRamp::none()), (10, 1000), gain(1.3), false);
    let ended = run.analysis.report(RUN, &tally(&run, &run.analysis.report(RUN, &TrafficTally::default())));
    let open = |arm: &wt_traffic::TrafficArmReport| ArmTally {
        assigned: arm.assigned,
        open: arm.assigned,
        ..ArmTally::default()
    };
    let arms = ended.arms.iter().map(open).collect();
    let kept = run.analysis.report(RUN, &TrafficTally { arms, ..TrafficTally::default() });
    assert!(kept.arms.iter().all(|arm| arm.recorded == 0 && arm.outcomes == Some(arm.assigned)), "{:?}", kept.arms);
    let [all, a, b] =
        [&ended.arms[..], &ended.arms[..1], &ended.arms[1..]].map(|of| of.iter().map(|arm| arm.recorded).sum::<u64>());
    let text = kept.text();
    assert!(
        text.contains(&format!("{all} connections.\n")) && text.contains(&format!("Open: {a} with A, {b} with B;")),
        "{text}"
    );
    assert!(!ended.text().contains("Open:") && ended.text().contains(&format!("{all} connections.\n")));
}

#[test]
fn a_gain_is_claimed_beside_the_first_arm_with_its_interval_and_the_command() {
    let report = by_prefix(gain(1.3));
    let verdict = &report.verdict;
    assert_eq!((verdict.kind, verdict.arm.as_deref()), (TrafficVerdictKind::Faster, Some("B")));
    assert_eq!(verdict.claim, TrafficClaim::Beside);
    assert!(verdict.evidence >= verdict.needed && verdict.needed == 40.0);
    let effect = &report.effects[0];
    let (low, high) = (effect.low.unwrap(), effect.high.unwrap());
    assert!(1.0 < low && low < 1.3 && 1.3 < high && high < 1.6, "{low} {high}");
    assert_eq!(verdict.at_least, effect.low);
    let saved = effect.saved_ms.unwrap();
    assert!(
        0.0 < effect.saved_low_ms.unwrap()
            && effect.saved_low_ms.unwrap() < saved
            && saved < effect.saved_high_ms.unwrap()
    );
    let commands: Vec<_> = report.next.iter().map(|step| step.command.as_deref().unwrap_or_default()).collect();
    assert_eq!(commands[0], "sudo windtunnel settings apply --verdict traffic-1");
    assert_eq!(*commands.last().unwrap(), "sudo windtunnel traffic start --holdback traffic-1 --for 7d");
    let text = report.text();
    let lines: Vec<&str> = text.lines().collect();
    for (line, begins) in lines.iter().zip([
        "Connections with B are faster beside A",
        "Evidence ",
        "Do: sudo windtunnel settings apply --verdict traffic-1",
        "Claimed beside A only",
    ]) {
        assert!(line.starts_with(begins), "{text}");
    }
}

#[test]
fn without_an_effect_the_report_says_that_nothing_is_shown() {
    let report = by_prefix(NOTHING);
    assert_eq!((report.verdict.kind, report.verdict.at_least), (TrafficVerdictKind::Undecided, None));
    let none = report_of(config(TrafficUnit::Prefix, TrafficRamp::none()), (0, 0), NOTHING);
    assert_eq!(none.verdict.kind, TrafficVerdictKind::NoData);
    assert!(none.text().starts_with("No epoch is old enough"), "{}", none.text());
}

#[test]
fn what_the_estimate_contradicts_by_now_is_claimed_no_more() {
    let (mut world, key, tags) = (World::new(9, Tails::Lognormal), DrawKey([9, 1]), DrawKey([9, 2]));
    let mut analysis = TrafficAnalysis::new(config(TrafficUnit::Connection, TrafficRamp::none())).unwrap();
    let shares = [0.5, 0.5];
    let mut kinds = Vec::new();
    for epoch in 0..60 {
        analysis.begin_epoch(epoch, &shares, None);
        world.epoch();
        for number in 0..200 {
            let arrival = world.arrival();
            let rest = u64::from(arrival.port) << 16 | epoch << 40 | number << 50 | 1;
            let arm =
                key.arm(arrival.prefix, epoch, TrafficUnit::Connection, rest, &ArmThresholds::new(&shares)).unwrap();
            analysis.record(&arrival.outcome(arm, epoch, tags, gain(if epoch < 10 { 0.6 } else { 1.5 })));
        }
        analysis.close_epoch(epoch);
        let verdict = analysis.report(RUN, &TrafficTally::default()).verdict;
        let (ratio, agrees) = (verdict.ratio.unwrap_or(1.0), |now: f64| match verdict.kind {
            TrafficVerdictKind::Faster => now > 1.0,
            TrafficVerdictKind::Slower => now < 1.0,
            _ => true,
        });
        assert!(agrees(ratio), "{verdict:?}");
        kinds.push(verdict.kind);
    }
    assert!(kinds.contains(&TrafficVerdictKind::Slower), "{kinds:?}");
    assert_ne!(kinds.last(), Some(&TrafficVerdictKind::Slower));
}

#[test]
fn an_arm_that_retransmits_more_is_stopped_and_the_guard_named() {
    let worse = Effect { retransmissions: 4.0, resets: 3.0, ..NOTHING };
    let report = by_prefix(worse);
    assert_eq!(report.verdict.kind, TrafficVerdictKind::Stopped, "{}", report.text());
    let stopped: Vec<_> = report.guardrails.iter().filter(|guard| guard.stopped).collect();
    assert_eq!(stopped.len(), 1);
    assert_eq!(stopped[0].needed, 160.0);
    assert!(report.verdict.evidence >= 20.0 && report.verdict.needed == 20.0, "{:?}", report.verdict);
    let text = report.text();
    assert!(text.starts_with("B is stopped: more") && text.contains("keep your current settings"), "{text}");
}

#[test]
fn whole_slots_say_it_of_everybody_and_coins_by_connection_of_those_beside() {
    let slots = report_of(config(TrafficUnit::Slot, TrafficRamp::none()), (60, 300), gain(1.5));
    assert_eq!((slots.verdict.kind, slots.verdict.claim), (TrafficVerdictKind::Faster, TrafficClaim::Everybody));
    assert_eq!(slots.effects[0].units, 30);
    assert!(slots.text().contains("Claimed of everybody"), "{}", slots.text());
    let connections = report_of(config(TrafficUnit::Connection, TrafficRamp::none()), (10, 1000), gain(1.3));
    assert_eq!(
        (connections.verdict.kind, connections.verdict.claim),
        (TrafficVerdictKind::Faster, TrafficClaim::Beside)
    );
}

#[test]
fn mixed_allocations_say_the_total_effect_and_the_spillover() {
    let mixed =
        TrafficConfig { allocation: TrafficAllocation::Mixed, ..config(TrafficUnit::Prefix, TrafficRamp::none()) };
    let report = report_of(mixed, (90, 300), gain(1.5));
    let effect = &report.effects[0];
    let (total, spillover) = (effect.total_ratio.unwrap(), effect.spillover_ratio.unwrap());
    assert!((1.3..1.7).contains(&total) && (0.85..1.18).contains(&spillover), "{total} {spillover}");
    assert_eq!((report.verdict.kind, report.verdict.claim), (TrafficVerdictKind::Faster, TrafficClaim::Everybody));
    assert!(report.text().contains("those without it beside it"), "{}", report.text());
}

#[test]
fn what_is_claimed_of_everybody_has_the_figures_of_whole_epochs_and_the_one_beside_comes_second() {
    let mixed =
        TrafficConfig { allocation: TrafficAllocation::Mixed, ..config(TrafficUnit::Prefix, TrafficRamp::none()) };
    // Everybody gains 1.5 / 1.5^0.6 = 1.18 times.
    let report = report_of(mixed, (180, 1000), Effect { taken: 0.6, ..gain(1.5) });
    let (effect, verdict) = (&report.effects[0], &report.verdict);
    assert_eq!((verdict.kind, verdict.claim), (TrafficVerdictKind::Faster, TrafficClaim::Everybody));
    assert!((1.4..1.6).contains(&effect.ratio.unwrap()), "{effect:?}");
    assert!((1.1..1.3).contains(&verdict.ratio.unwrap()), "{verdict:?}");
    assert_eq!((verdict.ratio, verdict.at_least, verdict.blocks), (effect.total_ratio, effect.total_low, Some(60)));
    assert!(verdict.at_least < verdict.ratio && effect.total_ratio < effect.total_high, "{effect:?}");
    assert!(verdict.evidence >= 40.0 && verdict.evidence < effect.evidence_faster, "{verdict:?}");
    let text = report.text();
    let percent = |ratio: f64| format!("{:+.0}%", 100.0 * (ratio - 1.0));
    let (of_everybody, beside) = (percent(verdict.ratio.unwrap()), percent(effect.ratio.unwrap()));
    assert!(text.starts_with(&format!("With B everybody is faster than with A: goodput {of_everybody}.\n")), "{text}");
    assert!(text.contains("is needed: 60 blocks of epochs, "), "{text}");
    assert!(text.contains(&format!("whole epochs were compared. Beside A it is {beside}.\n")), "{text}");
    assert!(text.contains(&format!("B beside A: goodput {beside} (")), "{text}");
    // What was kept by a version that didn't tell the blocks is told as it was.
    let mut json = serde_json::to_value(&report).unwrap();
    json["verdict"].as_object_mut().unwrap().remove("blocks");
    let old: TrafficReport = serde_json::from_value(json).unwrap();
    assert!(old.text().contains("whole epochs were compared.\n"), "{}", old.text());
}

#[test]
fn what_is_missing_from_the_kernels_count_is_said_and_comes_before_any_act() {
    let run = run(6, Tails::Lognormal, config(TrafficUnit::Prefix, TrafficRamp::none()), (10, 1000), gain(1.3), false);
    let mut tally = tally(&run, &run.analysis.report(RUN, &TrafficTally::default()));
    tally.passive_opens = tally.passive_opens.map(|opens| opens + 12);
    let report = run.analysis.report(RUN, &tally);
    let check = report.self_checks.iter().find(|check| check.name == "accounting").unwrap();
    assert!(!check.ok && check.text.contains("12 connections"), "{check:?}");
    assert!(report.text().lines().nth(2).unwrap().contains("checks below"), "{}", report.text());
}

#[test]
fn no_line_of_any_report_is_wider_than_80_columns() {
    let mut reports = vec![by_prefix(gain(1.3)), by_prefix(NOTHING), by_prefix(Effect { resets: 6.0, ..NOTHING })];
    let mut long = reports[0].clone();
    long.arms[1].name = "a-name-that-somebody-has-made-very-long-indeed-for-an-arm-of-an-experiment".repeat(2);
    long.arms[1].settings =
        "cc=bbr initcwnd=32 initrwnd=40 ecn=on cwnd-clamp=100 rto-min=50ms delack-max=20ms".parse().unwrap();
    long.verdict.text = long.verdict.text.replace('B', &long.arms[1].name);
    reports.push(long);
    for report in reports {
        for line in report.text().lines() {
            assert!(line.chars().count() <= 80, "{}: {line}", line.chars().count());
        }
    }
}

#[test]
fn the_json_keeps_its_names_and_reads_back() {
    let report = by_prefix(gain(1.3));
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(serde_json::from_value::<TrafficReport>(json.clone()).unwrap(), report);
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>().join(" ");
    let all = "arms backend classes effects guardrails id next schema_version self_checks unit verdict";
    assert_eq!(keys(&json), all);
    let arm = "aborted_share assigned missed name not_compliant open recorded responses retransmitted_share rto_per_1000 \
               set_errors settings unfinished_share";
    assert_eq!(keys(&json["arms"][0]), arm);
    assert_eq!(keys(&json["verdict"]), "arm at_least claim evidence kind needed ratio text");
    assert_eq!(keys(&json["guardrails"][0]), "arm evidence guard needed stopped");
    assert_eq!(keys(&json["self_checks"][0]), "name ok text");
    assert_eq!(keys(&json["classes"][0]), "arms name");
    assert_eq!(keys(&json["next"][0]), "command text");
    // What a journal has of before reads as well.
    let mut older = json.clone();
    older.as_object_mut().unwrap().remove("next");
    for name in ["needed", "saved_low_ms", "saved_high_ms"] {
        assert!(older["effects"][0].as_object_mut().unwrap().remove(name).is_some(), "{name}");
    }
    let older: TrafficReport = serde_json::from_value(older).unwrap();
    assert_eq!((older.verdict, older.next.len(), older.effects[0].needed), (report.verdict, 0, 0.0));
    assert_eq!(json["schema_version"], 1);
    assert_eq!(json["unit"], "prefix");
    assert_eq!(json["verdict"]["claim"], "beside");
    assert_eq!(json["arms"][1]["settings"]["initcwnd"], 32);
}
