//! What every store of a journal must hold: the same checks over each. A check gets an empty journal.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each of its users needs another part")]

/// Written out and taken in again.
mod exchange;
/// flent's files.
mod flent;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::{Value, json};
use std::time::Duration;
use wt_journal::{
    Arm, Filter, Journal, JournalError, NewExperiment, Orphans, Owner, Prune, PruneOutcome, Sighting, SqliteJournal,
    State, StoredExperiment, WithSamples, export_csv, export_json, import_journal, import_json,
};
use wt_trial::{
    Amount, Direction, Limits, Measures, Observed, PathFacts, Phase, Sample, Status, TrialOutcome, TrialRecord,
    TrialSpec, Workload,
};
use wt_units::{Knob, Level, Settings};

/// A check with its name.
pub(crate) type Check = (&'static str, fn(&mut dyn Journal));

/// All of them.
pub(crate) const CHECKS: &[Check] = &[
    ("what_is_written_is_read_back", what_is_written_is_read_back),
    ("what_was_seen_of_a_host_comes_back_in_its_order", what_was_seen_of_a_host_comes_back_in_its_order),
    ("an_experiment_is_found_by_name_beginning_or_last", an_experiment_is_found_by_name_beginning_or_last),
    ("names_that_are_taken_or_dangerous_are_refused", names_that_are_taken_or_dangerous_are_refused),
    ("an_experiment_is_continued_once", an_experiment_is_continued_once),
    ("the_list_is_filtered_and_the_newest_comes_first", the_list_is_filtered_and_the_newest_comes_first),
    ("the_list_tells_workload_and_verdict", the_list_tells_workload_and_verdict),
    ("a_trial_is_finished_once_and_only_while_it_runs", a_trial_is_finished_once_and_only_while_it_runs),
    ("only_what_the_dead_left_behind_is_marked", only_what_the_dead_left_behind_is_marked),
    ("pruning_keeps_what_is_needed", pruning_keeps_what_is_needed),
    ("what_goes_on_with_an_experiment_is_found", what_goes_on_with_an_experiment_is_found),
    ("any_words_and_numbers_survive", any_words_and_numbers_survive),
    ("exports_hold_every_trial_and_are_imported_once", exports_hold_every_trial_and_are_imported_once),
    ("more_trials_than_are_read_at_once_come_in_their_order", more_trials_than_are_read_at_once_come_in_their_order),
    ("pruning_spares_the_newest_and_those_under_way", pruning_spares_the_newest_and_those_under_way),
    ("any_text_and_any_number_survives", any_text_and_any_number_survives),
    ("an_export_has_the_goodput_that_bytes_and_time_say", an_export_has_the_goodput_that_bytes_and_time_say),
    (
        "what_is_exported_and_imported_is_the_same",
        exchange::what_is_exported_and_imported_is_the_same_and_nothing_comes_twice,
    ),
    (
        "another_experiment_of_the_same_name_is_refused",
        exchange::another_experiment_of_the_same_name_and_nonsense_are_refused_and_change_nothing,
    ),
    ("pruning_by_name", exchange::pruning_by_name_spares_what_others_continue_and_a_dry_run_changes_nothing),
    (
        "flents_file_has_as_many_values_as_times",
        flent::flents_file_has_as_many_values_in_each_series_as_times_and_rates_in_mbit,
    ),
    (
        "an_experiment_comes_back_from_flents_file",
        flent::an_experiment_comes_back_from_flents_file_with_all_but_what_it_doesnt_draw,
    ),
    (
        "a_test_that_flent_ran_becomes_one_trial",
        flent::a_test_that_flent_ran_becomes_one_trial_of_its_rates_and_round_trips,
    ),
    (
        "files_of_flent_that_make_no_sense_are_refused",
        flent::files_of_flent_that_make_no_sense_are_refused_with_the_reason,
    ),
];

fn rwin(bytes: u64) -> Settings {
    Settings::new().with(Knob::Rwin, Level::Number(bytes)).with(Knob::Cc, Level::Name("cubic".into()))
}

/// An experiment on two settings.
pub(crate) fn experiment(id: &str, started: i64) -> NewExperiment {
    NewExperiment {
        started_unix_us: started,
        comment: "a <comment>, with \"quotes\"".into(),
        version: "0.1.0".into(),
        current: rwin(131_072),
        arms: vec![
            Arm { label: "current".into(), settings: rwin(131_072) },
            Arm { label: "4x".into(), settings: rwin(5_840) },
        ],
        config: json!({"budget": 120, "path": "adsl"}).into(),
        seed: u64::MAX - 1,
        path: PathFacts { rtt_us: 31_000, pmtu: 1_492, bdp_bytes: 26_000, physical_goodput_bps: Some(6_830_000) },
        owner: Owner { pid: 7, start_ticks: 99, boot_id: "boot".into() },
        ..NewExperiment::new(id, "adsl", "lab")
    }
}

/// A trial of it.
pub(crate) fn spec(experiment: &str, round: u32, arm: usize) -> TrialSpec {
    TrialSpec {
        experiment: experiment.into(),
        phase: Phase::Round,
        round,
        order: 1,
        arm,
        settings: rwin(5_840),
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Time(Duration::from_millis(1_500)) },
        deadline: Duration::from_secs(9),
        seed: u64::MAX,
    }
}

/// What came of it.
pub(crate) fn outcome() -> TrialOutcome {
    let sample = |t| Sample { t_us: t, bytes: t * 3, snd_cwnd: 14_600, rtt: 31_000, ..Sample::default() };
    TrialOutcome {
        status: Status::Completed,
        bytes: 1_000_000,
        elapsed_us: 1_500_000,
        granted: rwin(5_792),
        scopes: [("rwin".to_owned(), "socket".to_owned())].into(),
        observed: Observed { mss: Some(1_448), ..Default::default() },
        sender: vec![sample(1), sample(2)],
        receiver: vec![sample(3)],
        limits: Limits { busy_us: 5, rwnd_limited_us: 4, sndbuf_limited_us: 3 },
        notes: vec!["first".into(), "second \"note\"\n".into()],
        measures: Measures { score: Some(0.125), flows_bps: vec![1.5, 2.0], ..Measures::default() },
    }
}

/// A finished experiment of so many trials.
pub(crate) fn finished(journal: &mut dyn Journal, id: &str, started: i64, trials: u32, continues: Option<&str>) {
    let config = json!({"continues": continues});
    journal.create_experiment(&NewExperiment { config: config.into(), ..experiment(id, started) }).unwrap();
    for round in 1..=trials {
        let trial = journal.begin_trial(&spec(id, round, round as usize % 2), started + i64::from(round)).unwrap();
        journal.finish_trial(trial, &outcome()).unwrap();
    }
    journal.finish_experiment(id, State::Finished, started + 1_000, Some(&json!({"text": "faster"}))).unwrap();
}

fn an_experiment_is_continued_once(journal: &mut dyn Journal) {
    chain(journal, &["a", "b"]);
    let on = |before: &str| json!({"continues": before}).into();
    let refused = journal.create_experiment(&NewExperiment { config: on("a"), ..experiment("c", 9) }).unwrap_err();
    assert!(matches!(&refused, JournalError::Continued { id, by } if id == "a" && by == "b"), "{refused}");
    assert!(matches!(journal.load("c"), Err(JournalError::NoSuchExperiment { .. })), "nothing of it is there");
    journal.create_experiment(&NewExperiment { config: on("b"), ..experiment("c", 9) }).unwrap();
    // What somebody else has measured is taken as it is.
    let other = journal.load("b").unwrap();
    journal.import(&StoredExperiment { id: "d".to_owned(), ..other }, &[]).unwrap();
}

/// Begins to go on with `a` by many connections at once, each of its own; the names of those that were let.
pub(crate) fn who_goes_on_with_a<J: Journal>(open: impl Fn() -> J + Sync) -> Vec<String> {
    finished(&mut open(), "a", 1, 3, None);
    let all_are_there = std::sync::Barrier::new(4);
    let begin = |id: String| {
        let mut journal = open();
        // Nobody goes on with it yet, whoever asks.
        all_are_there.wait();
        let config = json!({"continues": "a"}).into();
        match journal.create_experiment(&NewExperiment { config, ..experiment(&id, 2) }) {
            Ok(()) => Some(id),
            Err(JournalError::Continued { .. }) => None,
            Err(other) => panic!("{other}"),
        }
    };
    let begin = &begin;
    std::thread::scope(|threads| {
        let begun: Vec<_> = (0..4).map(|n| threads.spawn(move || begin(format!("on-{n}")))).collect();
        begun.into_iter().filter_map(|one| one.join().unwrap()).collect()
    })
}

/// Finished experiments of these names, each continuing the one before.
fn chain(journal: &mut dyn Journal, ids: &[&str]) {
    let mut before = None;
    for (started, id) in (1i64..).zip(ids) {
        finished(journal, id, started * 1_000_000, 3, before);
        before = Some(*id);
    }
}

/// Another journal, in SQLite, that goes with the check.
struct Local {
    _folder: tempfile::TempDir,
    journal: SqliteJournal,
}

fn local() -> Local {
    let folder = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&folder.path().join("journal.sqlite3")).unwrap();
    Local { _folder: folder, journal }
}

fn exported(journal: &dyn Journal, id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    export_json(journal, id, WithSamples::Yes, &mut out).unwrap();
    out
}

fn ids(journal: &dyn Journal, filter: &Filter) -> Vec<String> {
    journal.list(filter).unwrap().into_iter().map(|e| e.id).collect()
}

fn what_is_written_is_read_back(journal: &mut dyn Journal) {
    let new = experiment("a", 5);
    journal.create_experiment(&new).unwrap();
    let trial = journal.begin_trial(&spec("a", 1, 1), 100).unwrap();
    assert_eq!(journal.rows("a").unwrap()[0].status, Status::Running);
    journal.finish_trial(trial, &outcome()).unwrap();
    let record = TrialRecord { id: trial, spec: spec("a", 1, 1), started_unix_us: 100, outcome: outcome() };
    assert_eq!(journal.trials("a", WithSamples::Yes).unwrap(), [record]);
    assert!(journal.trials("a", WithSamples::No).unwrap()[0].outcome.sender.is_empty());
    let rows = journal.rows("a").unwrap();
    assert_eq!((rows[0].id, rows[0].score, rows[0].deadline_us), (trial, Some(0.125), None));

    let verdict = json!({"kind": "faster"});
    journal.finish_experiment("a", State::Finished, 900, Some(&verdict)).unwrap();
    let stored = journal.load("a").unwrap();
    assert_eq!((stored.seed, stored.current, stored.arms, stored.path), (new.seed, new.current, new.arms, new.path));
    assert_eq!((stored.config, stored.owner, stored.comment), (new.config, new.owner, new.comment));
    assert_eq!((stored.state, stored.ended_unix_us, stored.verdict), (State::Finished, Some(900), Some(verdict)));
    let failed = TrialOutcome { status: Status::Failed, ..outcome() };
    journal.create_experiment(&experiment("b", 6)).unwrap();
    let trial = journal.begin_trial(&spec("b", 1, 1), 100).unwrap();
    journal.finish_trial(trial, &failed).unwrap();
    assert_eq!(journal.rows("b").unwrap()[0].deadline_us, Some(9_000_000), "who failed is judged by it");
}

fn what_was_seen_of_a_host_comes_back_in_its_order(journal: &mut dyn Journal) {
    let seen = |host: &str, at_unix_us, n: u32| Sighting { host: host.into(), at_unix_us, found: json!(n) };
    journal.note("first-window", &[seen("a", 1, 3), seen("b", 2, 10), seen("a", 3, 10)]).unwrap();
    journal.note("other", &[seen("a", 4, 99)]).unwrap();
    assert_eq!(journal.sightings("first-window", Some("a"), 10).unwrap(), [seen("a", 1, 3), seen("a", 3, 10)]);
    assert_eq!(journal.sightings("first-window", None, 2).unwrap(), [seen("b", 2, 10), seen("a", 3, 10)]);
    assert!(journal.sightings("first-window", Some("c"), 10).unwrap().is_empty());
}

fn an_experiment_is_found_by_name_beginning_or_last(journal: &mut dyn Journal) {
    assert!(matches!(journal.load("last"), Err(JournalError::Empty { .. })));
    for (id, started) in
        [("20261121-081500-adsl-3f9a", 10), ("20261121-091500-lan-0001", 30), ("20261122-081500-adsl-ffff", 20)]
    {
        journal.create_experiment(&experiment(id, started)).unwrap();
    }
    assert_eq!(journal.load("last").unwrap().id, "20261121-091500-lan-0001");
    assert_eq!(journal.load("20261122").unwrap().id, "20261122-081500-adsl-ffff");
    match journal.load("20261121") {
        Err(JournalError::Ambiguous { candidates, .. }) => assert_eq!(candidates.len(), 2),
        other => panic!("{other:?}"),
    }
    match journal.load("20261121-081500-adsl-3f9b") {
        Err(e @ JournalError::NoSuchExperiment { .. }) => {
            assert!(e.to_string().contains("did you mean \"20261121-081500-adsl-3f9a\""), "{e}");
        }
        other => panic!("{other:?}"),
    }
    for odd in ["", "%", "_", "'; DROP TABLE trials; --", "*", "\0"] {
        assert!(matches!(journal.load(odd), Err(JournalError::NoSuchExperiment { .. })), "{odd:?}");
    }
    // A name that is the beginning of another is itself.
    journal.create_experiment(&experiment("2026", 1)).unwrap();
    assert_eq!(journal.load("2026").unwrap().id, "2026");
}

fn names_that_are_taken_or_dangerous_are_refused(journal: &mut dyn Journal) {
    journal.create_experiment(&experiment("a", 1)).unwrap();
    for id in ["a", "last", "", "../x", "a b", "-rf", "é", &"x".repeat(101)] {
        let refused = journal.create_experiment(&experiment(id, 2));
        assert!(matches!(refused, Err(JournalError::BadId { .. })), "{id}");
    }
    assert_eq!(ids(journal, &Filter::default()), ["a"]);
}

fn the_list_is_filtered_and_the_newest_comes_first(journal: &mut dyn Journal) {
    for (id, started, target) in [("a", 1, "adsl"), ("b", 3, "lan"), ("c", 2, "adsl")] {
        let new = NewExperiment { target: target.into(), ..experiment(id, started) };
        journal.create_experiment(&new).unwrap();
    }
    journal.begin_trial(&spec("c", 1, 0), 5).unwrap();
    journal.finish_experiment("a", State::Stopped, 9, None).unwrap();
    assert_eq!(ids(journal, &Filter::default()), ["b", "c", "a"]);
    assert_eq!(ids(journal, &Filter { state: Some(State::Running), limit: Some(1), ..Filter::default() }), ["b"]);
    let one = Filter { target: Some("adsl".into()), since_unix_us: Some(2), ..Filter::default() };
    assert_eq!(ids(journal, &one), ["c"]);
    assert_eq!(ids(journal, &Filter { tunnel: Some("live".into()), ..Filter::default() }), [""; 0]);
    assert_eq!(journal.list(&Filter::default()).unwrap()[1].trials, 1);
}

fn the_list_tells_workload_and_verdict(journal: &mut dyn Journal) {
    let workload = json!({"workload": {"kind": "page"}, "screen": {}});
    journal.create_experiment(&NewExperiment { config: workload.into(), ..experiment("a", 100) }).unwrap();
    let answer = json!({"action": "set", "what": "32 is faster.", "setting": "initcwnd=32", "change_percent": -17.66});
    let verdict = json!({"kind": "faster", "headline": "old words", "answer": answer});
    journal.finish_experiment("a", State::Finished, 200, Some(&verdict)).unwrap();
    journal.create_experiment(&experiment("b", 300)).unwrap();
    let older = json!({"kind": "no-difference", "headline": "old words"});
    journal.finish_experiment("b", State::Finished, 400, Some(&older)).unwrap();
    let other = json!({"compare": {}});
    journal.create_experiment(&NewExperiment { config: other.into(), ..experiment("c", 500) }).unwrap();
    let list = journal.list(&Filter::default()).unwrap();
    let told: Vec<_> = list
        .iter()
        .map(|e| {
            [&Some(e.kind.clone()), &e.workload, &e.verdict, &e.action, &e.answer, &e.setting]
                .map(|text| text.clone().unwrap_or_default())
        })
        .collect();
    assert_eq!(told[0], ["cc", "", "", "", "", ""]);
    assert_eq!(told[1], ["tune", "", "no-difference", "", "old words", ""]);
    assert_eq!(told[2], ["screen", "page", "faster", "set", "32 is faster.", "initcwnd=32"]);
    assert_eq!((list[2].change_bp, list[1].change_bp, list[0].change_bp), (Some(-1766), None, None));
}

fn a_trial_is_finished_once_and_only_while_it_runs(journal: &mut dyn Journal) {
    let missing = journal.begin_trial(&spec("nobody", 1, 0), 1);
    assert!(matches!(missing, Err(JournalError::NoSuchExperiment { .. })));
    journal.create_experiment(&experiment("a", 1)).unwrap();
    let trial = journal.begin_trial(&spec("a", 1, 0), 1).unwrap();
    let still = TrialOutcome { status: Status::Running, ..outcome() };
    assert!(matches!(journal.finish_trial(trial, &still), Err(JournalError::Unwritable { .. })));
    journal.finish_trial(trial, &outcome()).unwrap();
    assert!(matches!(journal.finish_trial(trial, &outcome()), Err(JournalError::TrialNotRunning { .. })));
    let left = journal.begin_trial(&spec("a", 1, 1), 2).unwrap();
    journal.finish_experiment("a", State::Stopped, 3, None).unwrap();
    let trials = journal.trials("a", WithSamples::No).unwrap();
    assert_eq!(trials[1].outcome.status, Status::Aborted);
    assert_eq!(trials[1].outcome.notes, ["the experiment ended while this trial was under way"]);
    assert!(matches!(journal.finish_trial(left, &outcome()), Err(JournalError::TrialNotRunning { .. })));
    assert!(matches!(journal.begin_trial(&spec("a", 2, 1), 4), Err(JournalError::ExperimentNotRunning { .. })));
    let again = journal.finish_experiment("a", State::Finished, 5, None);
    assert!(matches!(again, Err(JournalError::ExperimentNotRunning { .. })));
}

fn only_what_the_dead_left_behind_is_marked(journal: &mut dyn Journal) {
    for (id, pid) in [("dead", 1), ("alive", 2), ("done", 1)] {
        let owner = Owner { pid, ..Owner::default() };
        journal.create_experiment(&NewExperiment { owner, ..experiment(id, 10) }).unwrap();
        journal.begin_trial(&spec(id, 1, 0), 20).unwrap();
    }
    journal.finish_experiment("done", State::Finished, 30, None).unwrap();
    let orphans = journal.mark_orphans(&|_, owner| owner.pid == 2).unwrap();
    assert_eq!(orphans, Orphans { experiments: vec!["dead".into()], trials: 1 });
    let dead = journal.load("dead").unwrap();
    assert_eq!((dead.state, dead.ended_unix_us), (State::Aborted, Some(20)));
    assert_eq!(journal.load("alive").unwrap().state, State::Running);
    assert_eq!(journal.mark_orphans(&|_, _| true).unwrap(), Orphans::default());
}

fn pruning_keeps_what_is_needed(journal: &mut dyn Journal) {
    for (n, (id, before)) in [("a", None), ("b", Some("a")), ("c", Some("b")), ("d", None)].into_iter().enumerate() {
        finished(journal, id, (n as i64 + 1) * 10_000, 2, before);
    }
    journal.create_experiment(&experiment("running", 5)).unwrap();
    assert_eq!(journal.prune(Prune::default()).unwrap(), PruneOutcome::default(), "nothing said, nothing done");
    let by_name = |ids: &[&str], dry_run| Prune {
        ids: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
        dry_run,
        ..Prune::default()
    };
    let told = journal.prune(by_name(&["a", "d", "running"], true)).unwrap();
    assert_eq!((told.ids, told.kept, told.trials), (vec!["d".to_owned()], vec!["running".into(), "a".into()], 2));
    assert_eq!(journal.list(&Filter::default()).unwrap().len(), 5);
    let samples = Prune { before_unix_us: Some(15_000), samples_only: true, ..Prune::default() };
    let told = journal.prune(samples.clone()).unwrap();
    assert_eq!((told.ids, told.experiments, told.trials), (vec!["a".to_owned()], 1, 2));
    let again = journal.prune(samples).unwrap();
    assert_eq!((again.ids.len(), again.experiments, again.trials), (0, 0, 0), "they are gone already");
    let thinned = journal.trials("a", WithSamples::Yes).unwrap();
    assert_eq!((thinned[0].outcome.sender.len(), thinned[0].outcome.bytes), (0, 1_000_000));
    let told = journal.prune(by_name(&["c"], false)).unwrap();
    assert_eq!((told.ids, told.experiments, told.trials), (vec!["c".to_owned()], 1, 2));
    let told = journal.prune(Prune { keep_newest: Some(1), ..Prune::default() }).unwrap();
    assert_eq!(told.ids, ["a", "b"], "a chain goes as a whole");
    assert_eq!(ids(journal, &Filter::default()), ["d", "running"]);
}

fn what_goes_on_with_an_experiment_is_found(journal: &mut dyn Journal) {
    chain(journal, &["a", "b", "c"]);
    // Who only speaks of it goes on with nothing, and of two the first counts.
    let comment = NewExperiment { config: json!({"comment": "a"}).into(), ..experiment("early", 1) };
    journal.create_experiment(&comment).unwrap();
    let second = journal.load("b").unwrap();
    let fork = StoredExperiment { id: "fork".to_owned(), started_unix_us: 9_000_000, ..second };
    journal.import(&fork, &[]).unwrap();
    assert_eq!(journal.continued_by("a").unwrap().as_deref(), Some("b"));
    assert_eq!(journal.continuations("a").unwrap(), ["b", "c"]);
    assert_eq!((journal.continued_by("c").unwrap(), journal.continuations("fork").unwrap().len()), (None, 0));
    // What is damaged may go on with itself.
    finished(journal, "x", 10_000_000, 1, Some("y"));
    finished(journal, "y", 11_000_000, 1, Some("x"));
    assert_eq!(journal.continuations("x").unwrap(), ["y"]);
}

fn any_words_and_numbers_survive(journal: &mut dyn Journal) {
    let texts =
        ["", "\u{1b}[2J", "%41 \\0 \\u0000 $1 '; --", "\u{7ff}\u{800}\u{ffff}\u{10ffff}", "{\"a\":1}", "\r\n\t"];
    for (n, text) in texts.iter().enumerate() {
        let id = format!("e{n}");
        let owner = Owner { pid: u32::MAX, start_ticks: i64::MAX as u64, boot_id: (*text).to_owned() };
        let config: Value = json!({"z": text, "a": {"b\0": "nul \0 stays", "minus": -0.0, "big": u64::MAX}});
        let new = NewExperiment {
            comment: (*text).to_owned(),
            seed: u64::MAX - n as u64,
            owner: owner.clone(),
            config: config.clone().into(),
            ..experiment(&id, i64::MAX - n as i64)
        };
        journal.create_experiment(&new).unwrap();
        let spec = TrialSpec { seed: 1 << 63, round: u32::MAX, ..spec(&id, 1, 0) };
        let observed = serde_json::Map::from_iter([((*text).to_owned(), json!([text, "\0"]))]);
        let notes = vec![(*text).to_owned(), "nul \0".to_owned()];
        let outcome = TrialOutcome { notes, bytes: i64::MAX as u64, observed: observed.into(), ..outcome() };
        let trial = journal.begin_trial(&spec, i64::MIN).unwrap();
        journal.finish_trial(trial, &outcome).unwrap();
        let back = journal.trials(&id, WithSamples::Yes).unwrap().swap_remove(0);
        assert_eq!((back.spec, back.outcome, back.started_unix_us), (spec, outcome, i64::MIN));
        let stored: StoredExperiment = journal.load(&id).unwrap();
        assert_eq!((&stored.comment, stored.seed, &stored.owner), (&new.comment, new.seed, &owner));
        let written = serde_json::to_string(&new.config).unwrap();
        assert_eq!(serde_json::to_string(&stored.config).unwrap(), written, "to the order of its keys");
    }
    assert_eq!(journal.list(&Filter::default()).unwrap().len(), texts.len());
}

fn exports_hold_every_trial_and_are_imported_once(journal: &mut dyn Journal) {
    finished(journal, "a", 10_000, 3, None);
    let text = exported(journal, "a");
    let mut csv = Vec::new();
    export_csv(journal, "a", &mut csv).unwrap();
    assert_eq!(String::from_utf8(csv).unwrap().matches(",completed,").count(), 3);
    assert_eq!(import_json(journal, &text[..]).unwrap().known, ["a"]);
    let stored = journal.load("a").unwrap();
    journal.prune(Prune { keep_newest: Some(0), ..Prune::default() }).unwrap();
    assert_eq!(import_json(journal, &text[..]).unwrap().taken, ["a"]);
    assert_eq!(journal.load("a").unwrap(), stored);
    assert_eq!(import_json(journal, &text[..]).unwrap().known, ["a"]);
    let mut file: Value = serde_json::from_slice(&text).unwrap();
    file["trials"][0]["outcome"]["bytes"] = json!(7);
    assert_eq!(import_json(journal, file.to_string().as_bytes()).unwrap().refused.len(), 1);
    let Local { _folder, journal: mut other } = local();
    assert_eq!(import_journal(&mut other, journal).unwrap().taken, ["a"]);
    assert_eq!(import_journal(journal, &other).unwrap().known, ["a"]);
    let of = |journal: &dyn Journal| {
        let trials = journal.trials("a", WithSamples::Yes).unwrap();
        trials.into_iter().map(|trial| (trial.spec, trial.started_unix_us, trial.outcome)).collect::<Vec<_>>()
    };
    assert_eq!(of(journal), of(&other));
}

fn more_trials_than_are_read_at_once_come_in_their_order(journal: &mut dyn Journal) {
    finished(journal, "a", 10_000, 450, None);
    let mut rounds = Vec::new();
    let mut from = Vec::new();
    journal
        .for_each_trial("a", WithSamples::No, &mut |trial| {
            rounds.push(trial.spec.round);
            from.push(trial.id);
            // The journal may be asked meanwhile.
            journal.load("a").map(drop)
        })
        .unwrap();
    assert_eq!(rounds, (1..=450).collect::<Vec<_>>());
    let mut tail = 0;
    let mut count = |_| {
        tail += 1;
        Ok(())
    };
    journal.for_each_trial_from("a", from[200], WithSamples::Yes, &mut count).unwrap();
    assert_eq!(tail, 250);
}

fn pruning_spares_the_newest_and_those_under_way(journal: &mut dyn Journal) {
    for started in 1..=5 {
        let id = format!("e{started}");
        if started != 1 {
            finished(journal, &id, started, 1, None);
            continue;
        }
        journal.create_experiment(&experiment(&id, started)).unwrap();
        let trial = journal.begin_trial(&spec(&id, 1, 0), started).unwrap();
        journal.finish_trial(trial, &outcome()).unwrap();
    }
    let counts = |pruned: PruneOutcome| (pruned.experiments, pruned.trials);
    let samples = Prune { before_unix_us: Some(4), samples_only: true, ..Prune::default() };
    assert_eq!(counts(journal.prune(samples).unwrap()), (2, 2));
    let thinned = journal.trials("e3", WithSamples::Yes).unwrap();
    assert_eq!((thinned[0].outcome.sender.len(), thinned[0].outcome.bytes), (0, 1_000_000));
    let newest = journal.trials("e5", WithSamples::No).unwrap()[0].id;
    assert_eq!(counts(journal.prune(Prune { keep_newest: Some(2), ..Prune::default() }).unwrap()), (2, 2));
    assert_eq!(ids(journal, &Filter::default()), ["e5", "e4", "e1"]);
    // Numbers of trials are never used again.
    assert_eq!(journal.begin_trial(&spec("e1", 2, 0), 50).unwrap(), newest + 1);
}

fn any_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<char>(), 0..20).prop_map(|chars| chars.into_iter().collect())
}

type AnyTexts = (Vec<String>, String, String);
type AnyNumbers = (u64, u64, u32, u32);

fn any_text_and_any_number_survives(journal: &mut dyn Journal) {
    // Texts of an experiment have no zero byte, which PostgreSQL refuses and no command line can hold; JSON may have them.
    let comment = any_text().prop_map(|text| text.replace('\0', ""));
    let texts = (proptest::collection::vec(any_text(), 0..4), any_text(), comment);
    let numbers = (any::<u64>(), 0..i64::MAX as u64, any::<u32>(), any::<u32>());
    let (journal, count) = (std::cell::RefCell::new(journal), std::cell::Cell::new(0));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(24) });
    let law = |((notes, key, comment), (seed, bytes, round, start)): (AnyTexts, AnyNumbers)| {
        let journal = &mut **journal.borrow_mut();
        count.set(count.get() + 1);
        let id = format!("e{}", count.get());
        let owner = Owner { pid: start, start_ticks: u64::from(start), boot_id: comment.clone() };
        let new = NewExperiment { comment: comment.clone(), seed, owner: owner.clone(), ..experiment(&id, 1) };
        journal.create_experiment(&new).unwrap();
        let spec = TrialSpec { seed, round, ..spec(&id, 1, 0) };
        let observed = serde_json::Map::from_iter([(key, json!(comment))]);
        let outcome = TrialOutcome { notes, bytes, observed: observed.into(), ..outcome() };
        let trial = journal.begin_trial(&spec, i64::MIN).unwrap();
        journal.finish_trial(trial, &outcome).unwrap();
        let back = journal.trials(&id, WithSamples::Yes).unwrap().swap_remove(0);
        prop_assert_eq!((back.spec, back.outcome), (spec, outcome));
        let stored = journal.load(&id).unwrap();
        prop_assert_eq!((stored.comment, stored.seed, stored.owner), (comment, seed, owner));
        Ok(())
    };
    runner.run(&(texts, numbers), law).unwrap();
}

fn an_export_has_the_goodput_that_bytes_and_time_say(journal: &mut dyn Journal) {
    finished(journal, "a", 1, 3, None);
    let json: Value = serde_json::from_slice(&exported(journal, "last")).unwrap();
    assert_eq!((json["schema_version"].as_u64(), json["experiment"]["id"].as_str()), (Some(1), Some("a")));
    let trials: Vec<TrialRecord> = serde_json::from_value(json["trials"].clone()).unwrap();
    assert_eq!(trials, journal.trials("a", WithSamples::Yes).unwrap());
    let mut text = Vec::new();
    export_csv(journal, "a", &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    // Law: the goodput is what bytes and time say.
    assert_eq!(text.matches(",1000000,5333333,").count(), 3, "{text}");
    assert!(text.contains("first; second \"\"note\"\"\n"), "{text}");
}
