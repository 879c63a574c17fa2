use super::experiment::ComparedExperiment;
use super::{SideBySideAnswer, SideBySideRequest, run};
use std::path::Path;
use std::time::Duration;
use wt_journal::{Arm, ExperimentConfig, Journal as _, Owner, SqliteJournal, State, StoredExperiment, TuneConfig};
use wt_trial::{Amount, Direction, PathFacts, Phase, Status, TrialOutcome, TrialRecord, TrialSpec, Workload};
use wt_units::{Knob, Level, Settings};

/// A finished experiment of the current settings and one window, in which the trials that `fails` names moved nothing.
fn keep(journal: &mut SqliteJournal, id: &str, seed: u64, fails: impl Fn(u32, usize) -> bool) {
    keep_gaining(journal, id, seed, 1_200_000, fails);
}

/// The same with a window that moves so many bytes where the current settings move 1 MB.
fn keep_gaining(journal: &mut SqliteJournal, id: &str, seed: u64, gains: u64, fails: impl Fn(u32, usize) -> bool) {
    let workload = Workload::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_secs(1)) };
    let window = Settings::new().with(Knob::Initcwnd, Level::Number(20));
    let arms = vec![
        Arm { label: "current".to_owned(), settings: Settings::new() },
        Arm { label: "initcwnd=20".to_owned(), settings: window.clone() },
    ];
    let (order_seed, relevant) = (Some(seed), Some(0.01));
    let config = TuneConfig { workload: Some(workload.clone()), order_seed, relevant, ..TuneConfig::default() };
    let trial = |(round, arm): (u32, usize)| {
        let mut outcome = TrialOutcome::empty(Status::Failed, Duration::from_secs(1), "");
        if !fails(round, arm) {
            let gained = if arm == 1 { gains } else { 1_000_000 };
            (outcome.status, outcome.bytes) = (Status::Completed, gained + u64::from(round) * 7919 % 10_000);
        }
        let spec = TrialSpec {
            experiment: id.to_owned(),
            phase: Phase::Round,
            round,
            order: arm as u32 + 1,
            arm,
            settings: if arm == 1 { window.clone() } else { Settings::new() },
            workload: workload.clone(),
            deadline: Duration::from_secs(10),
            seed: 1,
        };
        TrialRecord { id: i64::from(round) * 2 + arm as i64, spec, started_unix_us: 1, outcome }
    };
    let trials: Vec<TrialRecord> = (1..=20).flat_map(|round| [(round, 0), (round, 1)]).map(trial).collect();
    let stored = StoredExperiment {
        id: id.to_owned(),
        target: "lan".to_owned(),
        tunnel: "lab".to_owned(),
        state: State::Finished,
        started_unix_us: 1,
        ended_unix_us: Some(2),
        comment: String::new(),
        version: String::new(),
        current: Settings::new(),
        arms,
        config: ExperimentConfig::Tune(Box::new(config)),
        seed,
        path: PathFacts::default(),
        verdict: None,
        owner: Owner::default(),
    };
    journal.import(&stored, &trials).unwrap();
}

fn compared(journal: &Path, anyway: bool) -> SideBySideAnswer {
    let experiments = vec!["whole".to_owned(), "broken".to_owned()];
    run(&SideBySideRequest { experiments, anyway, journal: Some(journal.to_owned()) }).unwrap()
}

#[test]
fn trials_that_moved_nothing_are_counted_and_make_no_rate_no_ratio_and_no_difference() {
    let folder = tempfile::tempdir().unwrap();
    let two = folder.path().join("two.sqlite3");
    let mut journal = SqliteJournal::open(&two).unwrap();
    keep(&mut journal, "whole", 1, |_, _| false);
    keep(&mut journal, "broken", 2, |round, arm| arm == 0 && round <= 2);
    let answer = compared(&two, false);
    let ratio = answer.current[0].difference.unwrap().ratio;
    assert!((0.98..1.02).contains(&ratio) && answer.comparable, "{answer:#?}");
    assert_eq!(answer.experiments.iter().map(|one| one.failed).collect::<Vec<_>>(), [0, 2]);
    assert!(answer.text.contains("in broken 2 of 20 trials of the current settings failed"), "{}", answer.text);
    // The text is the headline, tables, and the remarks: programs have each by itself.
    assert!(answer.text.starts_with(&format!("{}\n\n", answer.headline)), "{answer:#?}");
    assert!(answer.text.ends_with(&format!("\n\n{}", answer.remarks.join("\n"))), "{answer:#?}");
    assert!(answer.remarks.iter().any(|remark| remark.contains("2 of 20 trials")), "{:?}", answer.remarks);

    let none = folder.path().join("none.sqlite3");
    let mut journal = SqliteJournal::open(&none).unwrap();
    keep(&mut journal, "whole", 1, |_, _| false);
    keep(&mut journal, "broken", 2, |_, _| true);
    let answer = compared(&none, false);
    assert!(!answer.comparable && answer.because[0].contains("in which anything was moved"), "{:?}", answer.because);
    let answer = compared(&none, true);
    let tried = &answer.settings[0].each[1];
    assert_eq!((tried.ratio, tried.low, tried.high), (None, None, None));
    assert_eq!((answer.experiments[1].goodput_bps, answer.experiments[1].figure), (None, None));
    assert!(answer.current[0].difference.is_none() && !answer.settings[0].gains_differ, "{answer:#?}");
}

#[test]
fn that_gains_differ_is_said_in_whatever_order_the_experiments_are_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("three.sqlite3");
    let mut journal = SqliteJournal::open(&file).unwrap();
    for (id, gains) in [("a", 1_200_000), ("b", 1_200_000), ("c", 1_900_000)] {
        keep_gaining(&mut journal, id, 1, gains, |_, _| false);
    }
    for (order, differ) in [(&["a", "b", "c"][..], true), (&["a", "c", "b"], true), (&["a", "b"], false)] {
        let experiments = order.iter().map(ToString::to_string).collect();
        let answer = run(&SideBySideRequest { experiments, anyway: true, journal: Some(file.clone()) }).unwrap();
        assert_eq!(answer.settings[0].gains_differ, differ, "{order:?}");
    }
}

#[test]
fn of_a_path_that_nobody_knows_nothing_is_said_to_differ() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("paths.sqlite3");
    let mut journal = SqliteJournal::open(&file).unwrap();
    keep(&mut journal, "whole", 1, |_, _| false);
    keep(&mut journal, "broken", 2, |_, _| false);
    let mut known = journal.load("broken").unwrap();
    known.id = "known".to_owned();
    known.path = PathFacts { rtt_us: 40_000, pmtu: 1492, ..PathFacts::default() };
    journal.import(&known, &[]).unwrap();
    let notes = |journal: &SqliteJournal, ids: [&str; 2]| {
        let experiments = ids.map(|id| ComparedExperiment::read(journal, &journal.load(id).unwrap()).unwrap());
        experiments[0].differences(&experiments[1]).join("; ")
    };
    let told = notes(&journal, ["whole", "known"]);
    assert!(!told.contains("RTT") && !told.contains("MTU"), "{told}");
    known.id = "farther".to_owned();
    known.path = PathFacts { rtt_us: 80_000, pmtu: 1500, ..PathFacts::default() };
    journal.import(&known, &[]).unwrap();
    let told = notes(&journal, ["known", "farther"]);
    assert!(told.contains("RTT differed: 40.0 ms against 80.0 ms") && told.contains("MTU differed: 1492"), "{told}");
}

#[test]
fn a_gain_that_tune_finds_too_little_to_recommend_is_no_recommendation_of_two_experiments_either() {
    let of = |gains: [u64; 2]| {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("two.sqlite3");
        let mut journal = SqliteJournal::open(&file).unwrap();
        keep_gaining(&mut journal, "whole", 1, gains[0], |_, _| false);
        keep_gaining(&mut journal, "broken", 2, gains[1], |_, _| false);
        compared(&file, false)
    };
    let little = of([1_004_000, 1_004_000]);
    let first = "initcwnd=20 is faster by less than 1 % by these 2 experiments together: not worth a change.";
    assert!(little.text.starts_with(first) && little.text.contains("faster by little"), "{}", little.text);
    assert!(little.text.contains("over all their rounds initcwnd=20 is ×1.004, too little"), "{}", little.text);
    let shared = &little.settings[0];
    assert!(shared.evidence >= shared.needed && shared.faster_by_little, "{shared:#?}");
    assert!((shared.ratio.unwrap() - 1.004).abs() < 1e-4, "{shared:#?}");

    for gains in [[1_200_000, 1_200_000], [1_004_000, 1_030_000]] {
        let worth = of(gains);
        let first = "initcwnd=20 is shown to be faster by these 2 experiments together.";
        assert!(worth.text.starts_with(first) && !worth.settings[0].faster_by_little, "{}", worth.text);
    }
}

#[test]
fn uploads_by_two_clocks_are_not_compared() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("two.sqlite3");
    let mut journal = SqliteJournal::open(&file).unwrap();
    keep(&mut journal, "made", 1, |_, _| false);
    for (id, by_sender) in [("whole", Some(true)), ("broken", None)] {
        let mut stored = journal.load("made").unwrap();
        let ExperimentConfig::Tune(tune) = &mut stored.config else { panic!("{:?}", stored.config) };
        let workload = Workload::Bulk { direction: Direction::Up, amount: Amount::Size(wt_units::Bytes(1_000_000)) };
        (tune.workload, tune.by_sender) = (Some(workload), by_sender);
        stored.id = id.to_owned();
        let trials = journal.trials("made", wt_journal::WithSamples::Yes).unwrap();
        journal.import(&stored, &trials).unwrap();
    }
    let answer = compared(&file, false);
    let because = "the clock of the uploads differs: their sender against their receiver";
    assert!(!answer.comparable && answer.because.iter().any(|why| why == because), "{:?}", answer.because);
}
