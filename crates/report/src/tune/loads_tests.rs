//! Loads of a page in a browser, two first windows compared: nothing goes on with them, and their path may be unknown.

use super::super::story::{Plan, Story, Truth};
use super::super::{NewComparison, Run, RunFacts, Setting, TuneInputs, TuneReport};
use std::time::Duration;
use wt_experiment::NeededRounds;
use wt_trial::{Page, PathFacts, Workload};
use wt_units::{Knob, Level, Settings};

const COMMAND: &str =
    "windtunnel lab run adsl --server nginx -- windtunnel page http://server/ --compare initcwnd=3,10";

/// So many rounds of loads that scatter.
fn loads(rounds: usize) -> Story {
    let truth = |segments: u64, mbit: f64| {
        let settings = Settings::new().with(Knob::Initcwnd, Level::Number(segments));
        Truth::new(&settings.to_string(), settings, mbit)
    };
    let truths = vec![truth(3, 3.0), truth(10, 3.1)];
    let mut story =
        Plan { truths, levels: vec![], noise: 0.03, budget: 2 * rounds, stop_after: Some(rounds), seed: 3 }.run();
    for (place, record) in story.records.iter_mut().enumerate() {
        record.spec.workload = Workload::Page { page: Page::built_in() };
        record.outcome.elapsed_us = 2_000_000 + 50_000 * place as u64;
    }
    story.path = PathFacts::default();
    story
}

fn report_of(story: &Story, again: Option<NewComparison>) -> TuneReport {
    let setting = |t: &Truth| Setting { label: t.label.clone(), settings: t.settings.clone() };
    let settings: Vec<Setting> = story.truths.iter().map(setting).collect();
    TuneReport::assemble(&TuneInputs {
        id: "20261121-081500-page-3f9a",
        target: "http://server/",
        tunnel: "lab",
        path: &story.path,
        current: &settings[0].settings,
        settings: &settings,
        plateau: None,
        assessment: &story.assessment,
        records: &story.records,
        run: &Run { spent: Duration::from_secs(49), ..Run::default() },
        facts: &RunFacts { again, ..RunFacts::default() },
    })
}

fn anew() -> Option<NewComparison> {
    Some(NewComparison { command: COMMAND.to_owned(), fewest_rounds: 8 })
}

/// The number behind `--runs` in the only command of a text.
fn runs(text: &str) -> Option<usize> {
    let (_, told) = text.split_once(&format!("{COMMAND} --runs "))?;
    told.split_whitespace().next()?.parse().ok()
}

#[test]
fn of_a_path_that_nobody_knows_neither_figures_nor_round_trips_are_told() {
    let mut story = loads(4);
    let report = report_of(&story, anew());
    assert_eq!((report.path.rtt_us, report.path.pmtu, report.path.bdp_bytes), (0, 0, 0));
    assert!(!report.limits.text.is_empty() && !report.limits.text.contains("round trips"), "{}", report.limits.text);
    let (text, page) = (report.to_terminal(100, false), report.to_html());
    assert!(text.contains("\ncurrent settings: initcwnd=3\n") && !text.contains("RTT"), "{text}");
    assert!(!page.contains("RTT, idle") && !page.contains("Largest packet") && !page.contains("0.00 ms"), "{page}");
    story.path = PathFacts { rtt_us: 100_000, pmtu: 1500, ..PathFacts::default() };
    let report = report_of(&story, anew());
    assert!(report.limits.text.contains(" round trips."), "{}", report.limits.text);
    let (text, page) = (report.to_terminal(100, false), report.to_html());
    assert!(text.contains("path: RTT 100.0 ms, PMTU 1500; current settings: initcwnd=3"), "{text}");
    assert!(page.contains("RTT, idle") && !page.contains("Bandwidth-delay product"), "{page}");
}

#[test]
fn what_begins_anew_has_rounds_enough_to_show_something_and_says_that_these_do_not_count() {
    let few = report_of(&loads(4), anew());
    let (line, next) = (&few.verdict.answer.lines[2], few.next.join("\n"));
    assert!(line.starts_with("Do: ") && runs(line).is_some_and(|runs| runs >= 10), "{line}");
    assert!(runs(&next).is_some_and(|runs| runs >= 10) && next.contains("these 4 don't count"), "{next}");
    assert!(!next.contains("more trials") && !next.contains("--resume"), "{next}");
    let mut noisy = loads(4);
    noisy.assessment.needed = vec![NeededRounds { gain: 0.2, rounds: 40, more_rounds: 36, more_trials: 72 }];
    let many = report_of(&noisy, anew());
    assert_eq!((runs(&many.verdict.answer.lines[2]), runs(&many.next.join("\n"))), (Some(40), Some(40)), "{many:#?}");
    // Where nothing is foreseen it is twice as many as there were.
    noisy.assessment.needed.clear();
    noisy.assessment.rounds = 400;
    assert_eq!(runs(&report_of(&noisy, anew()).verdict.answer.lines[2]), Some(800));
    noisy.assessment.rounds = 700;
    assert_eq!(runs(&report_of(&noisy, anew()).verdict.answer.lines[2]), Some(1000));
}

#[test]
fn the_median_of_loads_in_a_browser_is_the_one_that_page_told() {
    let story = loads(4);
    let mut own: Vec<f64> =
        story.records.iter().filter(|r| r.spec.arm == 0).map(|r| r.outcome.elapsed_us as f64 / 1e6).collect();
    own.sort_by(f64::total_cmp);
    let report = report_of(&story, anew());
    let figure = report.arms[0].figure.unwrap();
    assert!((figure - f64::midpoint(own[1], own[2])).abs() < 1e-9, "{figure} of {own:?}");
    assert!(report.limits.text.contains(&report.measured.show(Some(figure))), "{}", report.limits.text);
    // Of trials whose experiment can be continued the tables have one that was measured, as ever.
    assert_eq!(report_of(&story, None).arms[0].figure, Some(own[2]));
}
