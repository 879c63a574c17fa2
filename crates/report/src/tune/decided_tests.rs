//! When nothing is left open, and what is said where less delay is shown and no more speed.

use super::*;
use wt_trial::{Exchanges, Repeat, Spread};
use wt_units::Bytes;

/// The answer of an experiment that ended for this reason, where a gain of more than this share is ruled out.
fn ended(stop: StopReason, ruled_out: Option<f64>) -> TuneReport {
    let mut story = one(with(Knob::Rwin, Level::Number(65_536)), 3.0, 3.0, 0.05, 24).run();
    let a = &mut story.assessment;
    let by_user = stop == StopReason::User;
    a.kind = if by_user { VerdictKind::Stopped } else { VerdictKind::NoDifference };
    (a.stop, a.gain_at_most, a.all_same) = (Some(stop), ruled_out.map(f64::ln_1p), false);
    Case::lab("", story).report()
}

#[test]
fn a_budget_whose_end_is_foreseen_leaves_open_what_one_that_is_used_up_does() {
    for stop in [StopReason::Futile, StopReason::Budget] {
        for ruled_out in [None, Some(4.94), Some(0.3)] {
            let answer = ended(stop, ruled_out).verdict.answer;
            assert_eq!(answer.action, AnswerAction::Undecided, "{stop:?}, {ruled_out:?}: {answer:#?}");
            assert!(
                answer.lines[0].starts_with("No answer yet: ") && answer.lines[2].contains("--resume"),
                "{answer:#?}"
            );
        }
        assert_eq!(ended(stop, Some(0.1)).verdict.answer.action, AnswerAction::Keep);
    }
}

#[test]
fn nobody_is_sent_after_a_gain_that_is_ruled_out_whoever_ended_it() {
    for stop in [StopReason::User, StopReason::Budget, StopReason::Futile] {
        let report = ended(stop, Some(0.003));
        let answer = &report.verdict.answer;
        assert_eq!((answer.action, answer.steps.len()), (AnswerAction::Keep, 0), "{stop:?}: {answer:#?}");
        assert!(answer.lines[1].contains("0.3 % is ruled out"), "{answer:#?}");
        assert!(!report.next.iter().any(|line| line.contains("--resume")), "{:?}", report.next);
    }
    let report = ended(StopReason::User, Some(0.5));
    assert_eq!(report.verdict.answer.action, AnswerAction::Undecided);
    assert!(report.next.iter().any(|line| line.contains("--resume")), "{:?}", report.next);
}

#[test]
fn where_less_delay_is_shown_the_whole_report_says_so_and_offers_nothing_that_is_ruled_out() {
    let mut story = calm(12, 36_000);
    story.assessment.all_same = false;
    let rules = DelayRules { alpha: 0.05 * 0.2, ..RULES };
    let report = Case { delay: Some(rules), ..Case::lab("", story) }.report();
    assert!(report.verdict.answer.is_of_delay(), "{:#?}", report.verdict.answer);
    let delay = report.delay.as_ref().unwrap();
    assert_eq!(report.arms[delay.arm].word(), "less delay");
    let text = &report.verdict.text;
    assert!(!text.contains("Keep what you have"), "{text}");
    for part in [
        "No difference in speed shown.",
        "has less delay at the same speed: evidence ",
        "each of 100 : 1 that are needed, from 12 rounds of their own",
    ] {
        assert!(text.contains(part), "{part} is missing in:\n{text}");
    }
    assert!(!report.next.iter().any(|line| line.contains("A gain of 20 %")), "{:?}", report.next);
    // Where nothing of that is shown the text stays as it is.
    let report = Case { delay: Some(RULES), ..Case::lab("", calm(12, 57_000)) }.report();
    assert!(report.verdict.text.contains("Keep what you have. "), "{}", report.verdict.text);
}

#[test]
fn less_delay_than_a_baseline_is_told_as_that() {
    let mut story = calm(12, 36_000);
    story.truths[0] = Truth::new("baseline (rwin=16384)", rwin(16_384), LIMIT_MBIT);
    let what = Case { delay: Some(RULES), ..Case::lab("", story) }.report().verdict.answer.what;
    assert!(what.contains(" less delay than the baseline (rwin=16384): "), "{what}");
}

#[test]
fn a_flow_beside_rivals_isnt_said_to_leave_its_line_empty() {
    let competing = Workload::Competing { direction: Direction::Down, rivals: 2, time: Duration::from_secs(3) };
    let story = held(0.3 * LIMIT_MBIT, |record| {
        record.spec.workload = competing.clone();
        (record.outcome.observed.retransmits, record.outcome.observed.segments) = (Some(21), Some(100));
        record.outcome.measures.flows_bps = vec![1.0e6, 1.6e6, 1.7e6];
    });
    let report = Case::lab("", story).report();
    let answer = &report.verdict.answer;
    assert_eq!((answer.reached, &report.ceiling, report.limits.by), (None, &None, LimitedBy::Path), "{answer:#?}");
    assert!(!answer.lines[0].contains("osses") && !answer.lines[0].contains("of what it can carry"), "{answer:#?}");
    let text = &report.limits.text;
    assert!(!text.contains("Losses") && text.contains("Of what all 3 flows carried it got 23 %"), "{text}");
}

#[test]
fn a_link_that_carries_more_than_it_is_said_to_isnt_called_full() {
    for (times, full) in [(0.97, true), (7.6, false)] {
        let answer = Case::lab("", held(times * LIMIT_MBIT, |_| ())).report().verdict.answer;
        assert_eq!(answer.reached.is_some(), full, "{answer:#?}");
        assert_eq!(answer.what.contains(" of what it can carry"), full, "{answer:#?}");
        assert!(answer.what.starts_with("Keep your settings: nothing tested is shown to be faster"), "{answer:#?}");
    }
}

#[test]
fn what_is_counted_is_told_as_a_number_of_it() {
    let transactions = Workload::Transactions {
        request: Bytes(200),
        response: Bytes(10_000),
        think: Duration::ZERO,
        amount: Repeat::Time(Duration::from_secs(3)),
    };
    let story = held(3.0, |record| {
        record.spec.workload = transactions.clone();
        record.outcome.measures.exchanges = Some(Exchanges { latency: Spread::default(), per_second: 22.26 });
    });
    let what = Case::lab("", story).report().verdict.answer.what;
    assert!(what.contains(" You have 22.26 transactions a second now."), "{what}");
}

#[test]
fn a_gain_that_is_next_to_nothing_at_least_is_told_without_a_figure() {
    let mut story = one(with(Knob::Rwin, Level::Number(65_536)), 3.0, 3.6, 0.01, 60).run();
    story.assessment.arms[1].at_least = Some(0.0004);
    let sure = Case::lab("", story).report().verdict.answer.lines[1].clone();
    assert!(sure.contains("that it is faster, with 95 % confidence") && !sure.contains('<'), "{sure}");
}

#[test]
fn what_is_to_be_set_at_the_other_end_has_one_command_in_the_whole_report() {
    let story = one(with(Knob::Initcwnd, Level::Number(32)), 3.0, 3.6, 0.01, 60).run();
    let report = Case::lab("", story).report();
    let command = &report.verdict.answer.steps[0].command;
    assert_eq!(command, "sudo windtunnel settings apply initcwnd=32 --to default");
    assert!(report.next.iter().any(|line| line.ends_with(&format!("Apply it there: {command}"))), "{:?}", report.next);
}

/// The case in which these arms got another congestion control than they asked for.
fn unset(mut case: Case, arms: &[usize]) -> TuneReport {
    for record in case.story.records.iter_mut().filter(|record| arms.contains(&record.spec.arm)) {
        let level = Level::Name("reno".into());
        record.outcome.observed.cc = Some("reno".to_owned());
        record.outcome.granted.set(Knob::Cc, level);
    }
    case.report()
}

#[test]
fn where_the_only_candidate_could_not_be_set_nothing_is_ruled_out_or_called_the_same() {
    let bbr = || with(Knob::Cc, Level::Name("bbr".into()));
    for rate in [3.0, 6.0] {
        let report = unset(Case::lab("", one(bbr(), 3.0, rate, 0.001, 40).run()), &[1]);
        let answer = &report.verdict.answer;
        assert_eq!((answer.action, report.verdict.arm), (AnswerAction::Failed, 0), "{answer:#?}");
        assert_eq!(answer.what, "Nothing was compared: cc=bbr (observed: cc reno) couldn't be set.");
        let text = format!("{} {:?} {:?}", report.verdict.text, answer.lines, report.next);
        for claim in ["ruled out", "are the same", "faster", "--resume", "No difference"] {
            assert!(!text.contains(claim), "{claim} in {text}");
        }
        assert_eq!(report.verdict.headline, "Nothing could be compared: cc=bbr couldn't be set.");
    }
}

#[test]
fn what_is_ruled_out_is_ruled_out_of_those_that_could_be_set() {
    let cc = |name: &str| with(Knob::Cc, Level::Name(name.into()));
    let truths = [("current", Settings::new(), 3.0), ("cc=bbr", cc("bbr"), 3.0), ("cc=vegas", cc("vegas"), 3.0)];
    let truths = truths.into_iter().map(|(label, settings, rate)| Truth::new(label, settings, rate)).collect();
    let story = Plan { truths, levels: Vec::new(), noise: 0.001, budget: 60, stop_after: None, seed: 2 }.run();
    let all = Case::lab("", story);
    let (alike, one) = (all.report(), unset(all, &[2]));
    assert!(alike.verdict.text.contains("All settings are the same"), "{}", alike.verdict.text);
    assert_eq!(one.verdict.answer.action, AnswerAction::Keep, "{:#?}", one.verdict.answer);
    assert!(one.verdict.text.contains("cc=vegas couldn't be set: nothing is said of it."), "{}", one.verdict.text);
}

#[test]
fn one_spoilt_attempt_isnt_too_many_and_one_command_goes_on() {
    let told = |spoilt: usize| {
        let mut story = one(with(Knob::Mtu, Level::Number(1_400)), 2.0, 4.0, 0.02, 12).run();
        let a = &mut story.assessment;
        (a.kind, a.pick, a.gain_at_most, a.stop) = (VerdictKind::NoDifference, 0, None, Some(StopReason::Budget));
        (a.arms[1].doubtful, a.arms[1].spoilt, a.may_go_on) = (true, spoilt, true);
        // As if nothing had been spoilt.
        let need = wt_experiment::NeededRounds { gain: 0.05, rounds: 13, more_rounds: 1, more_trials: 2 };
        a.needed = vec![need];
        Case::lab("", story).report()
    };
    let report = told(1);
    let answer = &report.verdict.answer;
    assert!(answer.lines[0].contains("an attempt was refused or spoilt, and its round counts as lost"), "{answer:#?}");
    let go_on: Vec<&String> = report.next.iter().filter(|line| line.contains("--resume")).collect();
    assert!(go_on.len() == 1 && go_on[0].ends_with(&answer.steps[0].command), "{go_on:?} {:?}", answer.steps);
    assert!(told(2).verdict.answer.lines[0].contains("too many attempts"));
}

#[test]
fn nothing_is_offered_that_goes_on_where_nothing_is_left_open() {
    let mut case = Case::lab("", one(with(Knob::Rwin, Level::Number(65_536)), 3.0, 1.5, 0.05, 60).run());
    let offered = |report: &TuneReport| serde_json::to_string(report).unwrap().contains("--resume");
    // By estimate alone: then gains can still be ruled out.
    let a = &mut case.story.assessment;
    assert_eq!((a.stop, a.may_go_on, a.needed.is_empty()), (Some(StopReason::OnlyCurrentLeft), true, false), "{a:?}");
    a.may_go_on = false;
    assert!(offered(&Case::lab("", one(with(Knob::Rwin, Level::Number(65_536)), 3.0, 1.5, 0.05, 60).run()).report()));
    let report = case.report();
    let answer = &report.verdict.answer;
    assert!(answer.action == AnswerAction::Keep && !offered(&report), "{:?} {answer:#?}", report.next);
    assert!(report.next[0].starts_with("Nothing is left open in it"), "{:?}", report.next);
    assert!(!report.verdict.text.contains("more round"), "{}", report.verdict.text);
}
