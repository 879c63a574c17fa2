//! Ten and more outcomes as texts that a person can judge, and each of their figures taken from the trials once more.

use super::super::story::{LIMIT_MBIT, Plan, Story, Truth, adsl, current, rwin};
use super::super::{DelayRules, LimitedBy, Run, RunFacts, Setting, TuneInputs, TuneReport};
use super::*;
use std::fmt::Write as _;
use std::time::Duration;
use wt_trial::{Amount, Limits, Page, Workload};
use wt_units::Level;

#[path = "decided_tests.rs"]
mod decided;

/// One outcome.
pub(super) struct Case {
    title: &'static str,
    pub(super) tunnel: &'static str,
    pub(super) story: Story,
    delay: Option<DelayRules>,
}

impl Case {
    pub(super) fn lab(title: &'static str, story: Story) -> Self {
        Self { title, tunnel: "lab", story, delay: None }
    }

    pub(super) fn report(&self) -> TuneReport {
        self.report_of(if self.tunnel == "live" { &["192.0.2.80"] } else { &[] })
    }

    /// The same where these served.
    fn report_of(&self, addresses: &[&str]) -> TuneReport {
        let setting = |t: &Truth| Setting { label: t.label.clone(), settings: t.settings.clone() };
        let settings: Vec<Setting> = self.story.truths.iter().map(setting).collect();
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        TuneReport::assemble(&TuneInputs {
            id: "20261121-081500-adsl-3f9a",
            target: "adsl",
            tunnel: self.tunnel,
            path: &self.story.path,
            current: &self.story.current,
            settings: &settings,
            plateau: self.story.plateau,
            assessment: &self.story.assessment,
            records: &self.story.records,
            run: &Run { spent: Duration::from_secs(49), ..Run::default() },
            facts: &RunFacts { addresses, delay: self.delay, ..RunFacts::default() },
        })
    }
}

#[test]
fn what_beats_a_baseline_isnt_recommended_where_what_one_has_wasnt_compared() {
    let base = with(Knob::Rwin, Level::Number(8192));
    let better = with(Knob::Rwin, Level::Number(65_536));
    let plan = |current: Option<Settings>| {
        let mut truths =
            vec![Truth::new("baseline (rwin=8192)", base.clone(), 0.4), Truth::new("rwin=65536", better.clone(), 3.4)];
        truths.extend(current.map(|settings| Truth::new("current", settings, 3.0)));
        Plan { truths, levels: vec![], noise: 0.01, budget: 60, stop_after: None, seed: 3 }
    };
    let case = |plan: Plan| Case::lab("", plan.run());
    let report = case(plan(None)).report();
    let answer = &report.verdict.answer;
    assert_eq!((answer.action, answer.steps.len(), report.plan.len()), (AnswerAction::Set, 0, 0), "{answer:#?}");
    assert!(answer.lines[2].contains("--arm current") && !answer.lines[2].contains("settings apply"), "{answer:#?}");
    assert!(!report.next.iter().any(|line| line.contains("settings apply") || line.starts_with("Set ")), "{report:#?}");
    let report = case(plan(Some(current()))).report();
    assert!(report.verdict.answer.lines[2].contains("settings apply rwin=65536"), "{:#?}", report.verdict.answer);
}

#[test]
fn each_host_that_served_has_a_command_of_its_own() {
    let story = one(with(Knob::Rwin, Level::Number(65_536)), 3.0, 3.4, 0.01, 60).run();
    let report = Case { tunnel: "live", ..Case::lab("", story) }.report_of(&["192.0.2.80", "192.0.2.81"]);
    let apply = |address: &str| format!("sudo windtunnel settings apply rwin=65536 --to {address}");
    let (first, second) = (apply("192.0.2.80"), apply("192.0.2.81"));
    let answer = &report.verdict.answer;
    let steps: Vec<&str> = answer.steps.iter().map(|step| step.command.as_str()).collect();
    assert_eq!(steps, [&first, CONFIRM, &second]);
    assert_eq!(answer.lines[2], format!("Do: {first}; if it works, {CONFIRM} && {second}"));
    assert_eq!(report.plan.iter().map(|step| &step.command).collect::<Vec<_>>(), [&first, &second]);
    assert!(report.next.iter().any(|line| line.contains("2 hosts in turn. Apply it for each")), "{report:#?}");
}

#[test]
fn where_most_trials_of_the_current_settings_break_off_nothing_is_said_of_any_speed() {
    let mut story = one(with(Knob::Rwin, Level::Number(4096)), 3.0, 3.0, 0.01, 12).run();
    for arm in &mut story.assessment.arms {
        (arm.incomplete, arm.mostly_bad) = (arm.trials, true);
    }
    (story.assessment.gain_at_most, story.assessment.all_same) = (None, false);
    let answer = Case { tunnel: "live", ..Case::lab("", story) }.report().verdict.answer;
    assert_eq!((answer.action, answer.before), (AnswerAction::Failed, None), "{answer:#?}");
    let what = "Nothing could be compared: more than half of the trials with your current settings weren't completed.";
    assert_eq!(answer.lines[0], what);
    assert!(answer.lines[1].starts_with("Sure: 12 of 12 trials stalled, broke off or failed; "), "{answer:#?}");
    // What is ruled out from so little on is told as that.
    let mut story = one(with(Knob::Rwin, Level::Number(4096)), 3.0, 3.0, 0.01, 24).run();
    story.assessment.gain_at_most = Some(1e-13);
    let [_, sure, ..] = Case::lab("", story).report().verdict.answer.lines;
    assert!(sure.contains("a gain of 0.1 % or more is ruled out"), "{sure}");
}

#[test]
fn what_is_typically_faster_and_slower_in_total_is_told_as_that_in_the_first_line() {
    let mut case = Case::lab("", one(with(Knob::Rwin, Level::Number(65_536)), 3.0, 3.4, 0.01, 60).run());
    let pick = case.story.assessment.pick;
    assert!(pick > 0 && !case.report().verdict.answer.what.contains("in total"), "{:?}", case.report().verdict.answer);
    case.story.assessment.arms[pick].total_ratio = Some(0.558);
    let report = case.report();
    let answer = &report.verdict.answer;
    assert!(answer.lines[0].ends_with(" That is typical; in total it is slower (×0.55)."), "{answer:#?}");
    let text = report.answer_to_terminal(80, false);
    assert!(text.contains("(×0.55).") && text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn a_budget_that_goes_on_counts_a_round_that_was_interrupted_as_lost() {
    let mut case = Case::lab("", Plan { stop_after: Some(2), ..adsl(1.06, 600) }.run());
    case.story.assessment.needed.iter_mut().for_each(|needed| needed.more_trials = 2);
    let budget = |case: &Case, trials: usize| {
        let command = case.report().verdict.answer.steps[0].command.clone();
        assert!(command.ends_with(&format!("--budget \"{trials} trials\"")), "{command}");
    };
    budget(&case, 2);
    let mut cut = case.story.records.last().unwrap().clone();
    (cut.spec.round, cut.outcome.status) = (cut.spec.round + 1, Status::Aborted);
    case.story.records.push(cut.clone());
    budget(&case, case.story.assessment.trials);
    // It was run anew, and doubt is the assessment's.
    cut.outcome.status = Status::Completed;
    case.story.records.push(cut);
    budget(&case, 2);
}

#[test]
fn who_is_faster_by_a_window_was_not_held_by_the_path() {
    let mut story = one(rwin(1_048_576), 2.0, 6.0, 0.02, 40).run();
    story.path.physical_goodput_bps = None;
    let limits = Case::lab("", story).report().limits;
    assert!(limits.text.contains("wasn't the path alone, since rwin=1048576 is faster."), "{}", limits.text);
    assert_eq!(limits.by, LimitedBy::Unknown);
    let mut story = held(2.0, |record| {
        let sample = |t_us: u64| wt_trial::Sample { t_us, snd_cwnd: 14_480 + t_us, ..wt_trial::Sample::default() };
        record.outcome.sender = (0..10).map(|n| sample(n * 10_000)).collect();
    });
    story.path.physical_goodput_bps = None;
    let text = Case::lab("", story).report().limits.text;
    assert!(
        text.contains("isn't known. Most of their trials ended in slow start: longer ones (--trial) tell more."),
        "{text}"
    );
}

#[test]
fn where_the_current_settings_deliver_nothing_it_is_said_what_works_and_no_figure_is_made_up() {
    let report = Case::lab("", one(with(Knob::Mtu, Level::Number(1_400)), 0.0, 3.0, 0.02, 40).run()).report();
    let (answer, n) = (&report.verdict.answer, report.rounds);
    assert_eq!((answer.action, report.verdict.stop), (AnswerAction::Set, Some(StopReason::Claimed)));
    let what = format!(
        "mtu=1400 on the client works, where your current settings deliver nothing ({n} of {n} trials failed)."
    );
    assert_eq!(answer.lines[0], what);
    assert!(answer.lines[1].starts_with("Sure: that it is faster, with 95 % confidence; "), "{answer:#?}");
    assert!(answer.lines[2].contains("settings apply mtu=1400"), "{answer:#?}");
    assert_eq!((answer.before, answer.after, answer.change_percent, answer.sure.at_least), (None, None, None, None));
    let (verdict, arm) = (&report.verdict, &report.arms[1]);
    assert_eq!((verdict.ratio, verdict.at_least, arm.ratio, arm.low, arm.high), (None, None, None, None, None));
    assert!(report.settings_chart().is_none());
    let text = report.to_terminal(100, false);
    assert!(!text.contains("Undecided") && !text.contains("no data") && !text.contains("unknown"), "{text}");
}

#[test]
fn what_is_faster_is_decided_whoever_else_may_be_more_so() {
    let truths = vec![
        Truth::new("current", Settings::new(), 2.0),
        Truth::new("rwin=65536", rwin(65_536), 4.0),
        Truth::new("rwin=131072", rwin(131_072), 4.05),
    ];
    let mut story = Plan { truths, levels: vec![], noise: 0.05, budget: 60, stop_after: None, seed: 3 }.run();
    story.assessment.stop = Some(StopReason::Budget);
    let next = Case::lab("", story).report().next;
    assert!(!next.iter().any(|line| line.contains("Undecided")), "{next:?}");
    assert!(next.iter().any(|line| line.starts_with("More trials tell it from the others better: ")), "{next:?}");
}

#[test]
fn where_trials_scatter_the_figure_is_called_an_average_and_the_median_of_the_table_stands_beside_it() {
    let told = |shares: &[u64]| {
        let mut case = Case::lab("scattered", held(4.0, |_| ()));
        case.story.path.physical_goodput_bps = None;
        let own = case.story.records.iter_mut().filter(|record| record.spec.arm == 0);
        own.zip(shares.iter().cycle())
            .for_each(|(record, share)| record.outcome.bytes = record.outcome.bytes * share / 100);
        let report = case.report();
        let warned: Vec<String> = report.warnings.iter().filter(|line| line.contains("scatter")).cloned().collect();
        (report, warned)
    };
    let (calm, warned) = told(&[100]);
    assert!(!calm.verdict.answer.what.contains("average") && warned.is_empty(), "{warned:?}");
    let (report, warned) = told(&[100, 20, 110, 100, 40]);
    let (answer, measured) = (&report.verdict.answer, &report.measured);
    let mean = measured.show(answer.before);
    assert!(answer.what.contains(&format!("You have a goodput of {mean} now, on average.")), "{}", answer.what);
    let median = measured.show(report.arms[0].figure);
    assert!(warned.len() == 1 && warned[0].contains(&median) && warned[0].contains(&mean), "{warned:?}");
    assert_ne!(median, mean);
    let tile = |report: &TuneReport| report.to_html().contains("<dt>goodput, on average</dt>");
    assert!(tile(&report) && !tile(&calm));
}

/// The current settings and one other, without a plateau.
pub(super) fn one(settings: Settings, from: f64, to: f64, noise: f64, budget: usize) -> Plan {
    let truths = vec![Truth::new("current", Settings::new(), from), Truth::new(&settings.to_string(), settings, to)];
    Plan { truths, levels: vec![], noise, budget, stop_after: None, seed: 3 }
}

pub(super) fn with(knob: Knob, level: Level) -> Settings {
    Settings::new().with(knob, level)
}

fn each(mut story: Story, change: impl Fn(&mut TrialRecord)) -> Story {
    story.records.iter_mut().for_each(change);
    story
}

/// What held the current settings back at `mbit`, which no other setting changes.
fn held(mbit: f64, change: impl Fn(&mut TrialRecord)) -> Story {
    each(one(with(Knob::Cc, Level::Name("reno".into())), mbit, mbit, 0.002, 60).run(), change)
}

fn waits(of: impl Fn(u64) -> Limits) -> impl Fn(&mut TrialRecord) {
    move |record| record.outcome.limits = of(record.outcome.elapsed_us)
}

const RULES: DelayRules = DelayRules { alpha: 0.01, epsilon: 0.1 };

/// The link is full with either setting; after the race `rounds` of two show the delay of the other.
fn calm(rounds: u32, delay_us: u64) -> Story {
    let mut story = one(rwin(30_240), 0.98 * LIMIT_MBIT, 0.975 * LIMIT_MBIT, 0.002, 60).run_at(0.05 - RULES.alpha);
    for record in &mut story.records {
        let delay = if record.spec.arm == 0 { 57_000 } else { delay_us };
        record.outcome.observed.rtt_us = Some(delay + record.id.unsigned_abs() * 7919 % 2_000);
    }
    let last = story.records.iter().map(|r| r.spec.round).max().unwrap_or(0);
    let mut again = Vec::new();
    for round in 1..=rounds {
        let like = (round - 1) % last + 1;
        for mut record in story.records.iter().filter(|r| r.spec.round == like).cloned() {
            record.spec.phase = wt_trial::Phase::Delay;
            record.spec.round = last + round;
            record.outcome.observed.rtt_us = record.outcome.observed.rtt_us.map(|us| us + u64::from(round) * 131 % 500);
            again.push(record);
        }
    }
    story.records.extend(again);
    story
}

fn cases() -> Vec<Case> {
    let page = |record: &mut TrialRecord| {
        record.outcome.elapsed_us = (1.2e6 * 8e6 / record.outcome.goodput_bps()) as u64;
        record.outcome.bytes = 1_200_000;
        record.spec.workload = Workload::Page { page: Page::built_in() };
    };
    let up = |record: &mut TrialRecord| {
        let amount = Amount::Time(Duration::from_secs(3));
        record.spec.workload = Workload::Bulk { direction: Direction::Up, amount };
    };
    let windows = Settings::new().with(Knob::Initcwnd, Level::Number(32)).with(Knob::Initrwnd, Level::Number(40));
    let failing = |record: &mut TrialRecord| record.outcome.status = Status::Failed;
    let mut failed = one(with(Knob::Mss, Level::Number(1_400)), 6.0, 6.0, 0.01, 8).run();
    failed.assessment.arms.iter_mut().for_each(|arm| arm.failed = arm.trials);
    let doubtful = |interrupted: usize| {
        let mut story = one(with(Knob::Mtu, Level::Number(1_400)), 2.0, 4.0, 0.02, 40).run();
        let verdict = &mut story.assessment;
        (verdict.kind, verdict.pick, verdict.gain_at_most) = (VerdictKind::NoDifference, 0, None);
        (verdict.arms[1].doubtful, verdict.arms[0].interrupted) = (true, interrupted);
        story
    };
    vec![
        Case::lab("a smaller MTU is faster on the client", adsl(1.06, 200).run()),
        Case::lab(
            "pages are faster with a larger window of the server",
            each(one(with(Knob::Initcwnd, Level::Number(32)), 5.9, 7.1, 0.02, 40).run(), page),
        ),
        Case::lab("pages are faster with a window of each end", each(one(windows, 5.9, 7.1, 0.02, 40).run(), page)),
        Case::lab(
            "an upload is faster with another congestion control",
            each(one(with(Knob::Cc, Level::Name("bbr".into())), 3.0, 6.0, 0.02, 40).run(), up),
        ),
        Case::lab("a switch of both ends", one(with(Knob::Sack, Level::Name("on".into())), 2.0, 2.5, 0.02, 40).run()),
        Case {
            title: "a receive window on the real path",
            tunnel: "live",
            delay: None,
            story: one(rwin(1_048_576), 2.0, 6.0, 0.02, 40).run(),
        },
        Case::lab("nothing is faster: the link is full", held(0.98 * LIMIT_MBIT, |_| ())),
        Case::lab(
            "nothing is faster: the receive window",
            held(
                0.22 * LIMIT_MBIT,
                waits(|us| Limits { busy_us: us, rwnd_limited_us: us * 48 / 100, ..Limits::default() }),
            ),
        ),
        Case::lab(
            "nothing is faster: the send buffer",
            held(
                0.5 * LIMIT_MBIT,
                waits(|us| Limits { busy_us: us, sndbuf_limited_us: us * 7 / 10, ..Limits::default() }),
            ),
        ),
        Case::lab(
            "nothing is faster: the program",
            held(0.4 * LIMIT_MBIT, waits(|us| Limits { busy_us: us * 4 / 10, ..Limits::default() })),
        ),
        Case::lab(
            "nothing is faster: losses",
            held(0.3 * LIMIT_MBIT, |record| {
                record.outcome.observed.retransmits = Some(20);
                record.outcome.observed.segments = Some(1_000);
            }),
        ),
        Case {
            title: "nothing is faster on a path of which nothing is known",
            tunnel: "live",
            delay: None,
            story: {
                let mut story = held(4.0, |_| ());
                story.path.physical_goodput_bps = None;
                story
            },
        },
        Case::lab("stopped after two rounds", Plan { stop_after: Some(2), ..adsl(1.06, 600) }.run()),
        Case::lab("too little was measured", one(with(Knob::Sndbuf, Level::Number(65_536)), 5.0, 5.2, 0.3, 12).run()),
        Case::lab("attempts of one of the two were spoilt", doubtful(0)),
        Case::lab("somebody interrupted a trial", doubtful(1)),
        Case { delay: Some(RULES), ..Case::lab("the same speed with less delay", calm(12, 36_000)) },
        Case { delay: Some(RULES), ..Case::lab("less delay isn't proven yet", calm(4, 36_000)) },
        Case::lab("every trial failed", each(failed, failing)),
    ]
}

/// The geometric mean of an arm's figures over the rounds that the other has, too.
fn typical(case: &Case, report: &TuneReport, arm: usize, other: usize) -> f64 {
    let scale = report.measured.scale;
    let figures = |arm: usize| {
        let own = case.story.records.iter().filter(move |r| r.spec.arm == arm);
        own.filter_map(move |r| Some((r.spec.round, r.outcome.figure(scale)?)))
    };
    let shared = figures(arm).filter(|(round, _)| figures(other).any(|(also, _)| also == *round));
    let logs: Vec<f64> = shared.map(|(_, figure)| figure.ln()).collect();
    (logs.iter().sum::<f64>() / logs.len() as f64).exp()
}

#[test]
fn the_first_four_lines_say_what_where_how_much_how_sure_and_what_next() {
    let golden = include_str!("answers.txt");
    let mut all = String::new();
    for case in cases() {
        let report = case.report();
        let answer = &report.verdict.answer;
        let _ = write!(all, "## {}\n{}\n", case.title, report.answer_to_terminal(80, false));
        check(&case, &report, answer);
    }
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/src/tune/answers.txt"), &all).unwrap();
    } else {
        assert_eq!(all, golden, "UPDATE_GOLDEN=1 cargo test -p wt-report writes it anew");
    }
}

/// Every figure of the answer follows from the trials, and stands in its lines.
fn check(case: &Case, report: &TuneReport, answer: &Answer) {
    let title = case.title;
    let [what, sure, does, kept] = &answer.lines;
    assert!(kept.contains(report.id.as_str()) && answer.kept == report.id, "{title}: {kept}");
    let rounds = report.rounds + report.delay.as_ref().filter(|delay| delay.shown).map_or(0, |delay| delay.rounds);
    assert!(sure.contains(&counted(rounds, "round")) && sure.contains("49 s"), "{title}: {sure}");
    assert_eq!(answer.sure.rounds, rounds, "{title}: the object has the rounds that the line has");
    for step in &answer.steps {
        assert!(
            does.contains(&step.command) && (step.host == AnswerHost::Here || does.contains(step.host.place())),
            "{title}"
        );
    }
    if answer.action != AnswerAction::Set {
        assert_eq!((&answer.setting, answer.host, answer.after, answer.sure.at_least), (&None, None, None, None));
        if let Some(reached) = answer.reached {
            let own: Vec<f64> =
                case.story.records.iter().filter(|r| r.spec.arm == 0).map(|r| r.outcome.goodput_bps()).collect();
            let median = wt_units::upper_median(own).unwrap();
            assert!((reached - median / (LIMIT_MBIT * 1e6)).abs() < 1e-6, "{title}");
        }
        return;
    }
    if let Some(delay) = report.delay.as_ref().filter(|delay| delay.shown) {
        let geometric = |arm: usize| {
            let own = case.story.records.iter().filter(|r| r.spec.phase == wt_trial::Phase::Delay && r.spec.arm == arm);
            let logs: Vec<f64> = own.map(|r| (r.outcome.observed.rtt_us.unwrap() as f64 / 1e3).ln()).collect();
            (logs.iter().sum::<f64>() / logs.len() as f64).exp()
        };
        let (before, after) = (answer.before.unwrap(), answer.after.unwrap());
        assert!((before - geometric(0)).abs() < 1e-9 && (after - geometric(1)).abs() < 1e-9, "{title}");
        assert_eq!((answer.unit, answer.host, delay.arm), ("ms", Some(AnswerHost::Client), 1), "{title}");
        let least = answer.sure.at_least.unwrap();
        assert!(answer.change_percent.unwrap() < least && least < 0.0, "{title}: {least}");
        assert!((answer.sure.confidence - 0.95).abs() < 1e-9, "the claims of speed and of delay share one risk");
        return;
    }
    let arm = report.verdict.arm;
    let setting = case.story.truths[arm].settings.to_string();
    assert_eq!(answer.setting.as_ref(), Some(&setting), "{title}");
    let host = answer.host.unwrap();
    assert!(setting.split(' ').all(|one| what.contains(one)), "{title}: {what}");
    assert!(host == AnswerHost::Both || what.contains(host.place()), "{title}: {what}");
    let (before, after) = (answer.before.unwrap(), answer.after.unwrap());
    assert!((before / typical(case, report, 0, arm) - 1.0).abs() < 1e-9, "{title}: {before}");
    // What is told lies half-way between what was seen and what is shown at least: the model's estimate is that of the
    // rounds that both share as long as none is dropped, and near it otherwise.
    let middle = |seen: f64, least: f64| (seen * least).sqrt();
    let change = answer.change_percent.unwrap();
    let shown = before * (1.0 + answer.sure.at_least.unwrap() / 100.0);
    assert!((after / middle(typical(case, report, arm, 0), shown) - 1.0).abs() < 0.01, "{title}: {after}");
    let cautious = case.story.assessment.arms[arm].cautious.unwrap().exp();
    let told = if report.measured.better == "smaller" { before / after } else { after / before };
    assert!((told / cautious - 1.0).abs() < 1e-9, "{title}: {told} {cautious}");
    assert!((change - (after / before - 1.0) * 100.0).abs() < 1e-6, "{title}: {change}");
    let least = answer.sure.at_least.unwrap();
    assert!(least.abs() <= change.abs() && (least >= 0.0) == (change > 0.0), "{title}: {least} {change}");
    let shown = |figure| report.measured.show(Some(figure));
    assert!(what.contains(&format!("{}: {} → {}", "faster", shown(before), shown(after))), "{title}: {what}");
    assert!(sure.contains("with 95 % confidence"), "{title}: {sure}");
    assert!(setting.split(' ').all(|one| does.contains(one)) && does.contains("settings apply"), "{title}: {does}");
}

#[test]
fn what_looks_better_is_told_as_it_is_once_it_is_shown() {
    let told = |workload: Workload, to: f64| {
        let plan = one(with(Knob::Cc, Level::Name("reno".into())), 5.0, to, 0.1, 8);
        let mut story = each(plan.run(), |record| record.spec.workload = workload.clone());
        story.assessment.leader = 1;
        let report = Case::lab("", story).report();
        let ratio = report.arms[1].ratio.unwrap();
        (report.verdict.answer.action, report.verdict.answer.what.clone(), ratio)
    };
    let page = Workload::Page { page: Page::built_in() };
    let (action, what, ratio) = told(page.clone(), 12.0);
    assert_eq!(action, AnswerAction::Undecided);
    let saved = words::percent((1.0 - 1.0 / ratio) * 100.0);
    assert!(ratio > 1.5 && what.contains(&format!("looks {saved} faster, which isn't proven")), "{ratio} {what}");
    let stream = Workload::Stream {
        direction: Direction::Down,
        message: wt_units::Bytes(500),
        interval: Duration::from_millis(20),
        time: Duration::from_secs(3),
    };
    let (_, what, ratio) = told(stream, 12.0);
    let saved = words::percent((1.0 - 1.0 / ratio) * 100.0);
    assert!(what.contains(&format!("looks to deliver messages {saved} less late, which isn't proven")), "{what}");
    // Of time, a gain that is ruled out is a time saved, too.
    let story = each(one(with(Knob::Cc, Level::Name("reno".into())), 5.0, 5.0, 0.02, 24).run(), |record| {
        record.spec.workload = page.clone();
    });
    let most = story.assessment.gain_at_most.unwrap();
    let gain = words::percent_up((1.0 - (-most).exp()) * 100.0);
    let [_, sure, ..] = Case::lab("", story).report().verdict.answer.lines;
    assert!(sure.contains(&format!("a gain of more than {gain} is ruled out")), "{sure} {most}");
}

#[test]
fn the_side_of_a_setting_is_that_of_its_knob_and_direction() {
    let case = Case::lab("", adsl(1.0, 12).run());
    let run = Run::default();
    let facts = RunFacts::default();
    let inputs = |tunnel: &'static str| TuneInputs {
        id: "",
        target: "",
        tunnel,
        path: &case.story.path,
        current: &case.story.current,
        settings: &[],
        plateau: None,
        assessment: &case.story.assessment,
        records: &[],
        run: &run,
        facts: &facts,
    };
    use AnswerHost::{Both, Client, Here, Server};
    use Direction::{Down, Up};
    for (knob, direction, lab, live) in [
        (Knob::Initcwnd, Down, Server, Server),
        (Knob::Initcwnd, Up, Client, Here),
        (Knob::Cc, Down, Server, Server),
        (Knob::Sndbuf, Up, Client, Here),
        (Knob::Rwin, Down, Client, Here),
        (Knob::Rwin, Up, Server, Server),
        (Knob::Initrwnd, Down, Client, Here),
        (Knob::Mtu, Down, Client, Here),
        (Knob::Mss, Up, Client, Here),
        (Knob::Sack, Down, Both, Here),
        (Knob::Timestamps, Up, Both, Here),
    ] {
        assert_eq!(inputs("lab").host_of(knob, direction), lab, "{knob} {direction:?} in the lab");
        assert_eq!(inputs("live").host_of(knob, direction), live, "{knob} {direction:?} on the real path");
    }
}

#[test]
fn what_could_not_be_set_as_asked_is_neither_ranked_nor_recommended() {
    let mut case = Case::lab("", one(with(Knob::Cc, Level::Name("bbr".into())), 3.0, 6.0, 0.02, 40).run());
    assert_eq!(case.report().verdict.answer.action, AnswerAction::Set);
    for record in case.story.records.iter_mut().filter(|r| r.spec.arm == 1) {
        record.outcome.granted.set(Knob::Cc, Level::Name("reno".into()));
    }
    let report = case.report();
    assert_eq!((report.arms[1].state, report.verdict.arm), (super::super::ArmState::NotSet, 0));
    assert_ne!(report.verdict.answer.action, AnswerAction::Set);
    let row = report.to_terminal(100, false).lines().find(|line| line.starts_with("cc=bbr ")).unwrap().to_owned();
    assert!(row.ends_with("couldn't be set") && !row.contains('×') && !row.contains(" : 1"), "{row}");
    assert!(
        report.settings_chart().is_none_or(|chart| chart.categories.is_empty()) && report.evidence_chart().is_none()
    );
    assert!(report.to_html().contains("<tr class=\"unset\">"));
}

#[test]
fn why_the_line_is_not_full_is_found_from_what_the_trials_waited_for() {
    let by: Vec<LimitedBy> = cases().iter().skip(6).take(5).map(|case| case.report().limits.by).collect();
    assert_eq!(by, [LimitedBy::Link, LimitedBy::Rwnd, LimitedBy::Sndbuf, LimitedBy::Application, LimitedBy::Loss]);
    assert_eq!(current().number(Knob::Mtu), Some(1_492));
}

#[test]
fn less_delay_is_claimed_only_with_the_speed_and_the_evidence_for_both() {
    let report = |story: &Story| RULES.report(&story.records, 0).unwrap();
    let shown = report(&calm(12, 36_000));
    assert!(shown.shown && shown.needed == 100.0 && (shown.less() - 0.36).abs() < 0.02, "{shown:?}");
    assert!(shown.at_least.is_some_and(|least| 0.25 < least && least < shown.less()), "{shown:?}");
    let few = report(&calm(4, 36_000));
    assert!(!few.shown && few.evidence < 100.0 && few.rounds == 4, "{few:?}");
    let alike = report(&calm(12, 57_000));
    assert!(!alike.shown && alike.evidence < 100.0 && alike.within_evidence >= 100.0, "{alike:?}");
    // A quarter of the speed is lost: that is no bargain.
    let slow = each(calm(12, 36_000), |record| {
        if record.spec.arm == 1 {
            record.outcome.bytes = record.outcome.bytes * 3 / 4;
        }
    });
    assert!(!report(&slow).shown && report(&slow).evidence >= 100.0, "{:?}", report(&slow));
    assert_eq!((RULES.candidate(&slow.records, 0), RULES.candidate(&calm(0, 36_000).records, 0)), (None, Some(1)));
    assert_eq!(RULES.candidate(&calm(0, 55_000).records, 0), None, "too little to be worth a test");
    assert!(RULES.fewest_rounds() <= 12, "{}", RULES.fewest_rounds());
}

#[test]
fn a_setting_that_is_cut_off_or_spoilt_has_no_less_delay() {
    let report = |change: &dyn Fn(&mut TrialRecord)| {
        let story = each(calm(12, 36_000), |record| {
            if record.spec.arm == 1 && record.spec.phase == wt_trial::Phase::Delay {
                change(record);
            }
        });
        RULES.report(&story.records, 0).unwrap()
    };
    // Reset after a fifteenth of its time, before a queue has filled: by what it moved until then it is as fast.
    let reset = report(&|record| {
        record.outcome.status = Status::Incomplete;
        record.outcome.bytes /= 15;
        record.outcome.elapsed_us /= 15;
    });
    assert!(!reset.shown && reset.evidence < 2.0 && reset.within_evidence < 2.0, "{reset:?}");
    // Half of its rounds say nothing, perhaps those that would have been bad.
    let spoilt = report(&|record| {
        if record.spec.round % 2 == 0 {
            record.outcome.status = Status::Invalid;
        }
    });
    assert!(!spoilt.shown && spoilt.rounds == 12, "{spoilt:?}");
}

#[test]
fn the_current_level_is_on_every_curve() {
    let initcwnd = |n: u64| with(Knob::Initcwnd, Level::Number(n));
    let truths = [("current", Settings::new(), 4.0), ("4", initcwnd(4), 3.0), ("32", initcwnd(32), 4.8)];
    let truths = truths.into_iter().map(|(label, settings, rate)| Truth::new(label, settings, rate)).collect();
    let mut story = Plan { truths, levels: vec![1, 0, 2], noise: 0.01, budget: 60, stop_after: None, seed: 2 }.run();
    story.plateau = Some(Knob::Initcwnd);
    let report = Case::lab("", story).report();
    let plateau = report.plateau.as_ref().unwrap();
    let points: Vec<(usize, f64)> = plateau.curve.iter().map(|p| (p.arm, p.x)).collect();
    assert_eq!((points, plateau.unit), (vec![(1, 4.0), (0, 10.0), (2, 32.0)], "segments"));
    let chart = report.plateau_chart().unwrap();
    let current = chart.series.iter().find(|s| s.name == "current").unwrap();
    assert_eq!((current.points.len(), current.points[0].0), (1, 10.0));
}
