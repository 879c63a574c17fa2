use super::schema::{APPLICATION_ID, NEWEST};
use super::*;
use crate::{Arm, export_csv, export_json};
use proptest::prelude::*;
use std::os::unix::fs::PermissionsExt as _;
use wt_trial::{Amount, Direction, Measures, PathFacts, Phase, Sample, Status, Workload};
use wt_units::{Knob, Level, Settings};

pub(super) struct Fixture {
    _dir: tempfile::TempDir,
    pub(super) journal: SqliteJournal,
}

pub(super) fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&dir.path().join("sub/journal.sqlite3")).unwrap();
    Fixture { _dir: dir, journal }
}

fn rwin(bytes: u64) -> Settings {
    Settings::new().with(Knob::Rwin, Level::Number(bytes)).with(Knob::Cc, Level::Name("cubic".into()))
}

pub(super) fn experiment(id: &str, started: i64) -> NewExperiment {
    NewExperiment {
        started_unix_us: started,
        comment: "a <comment>, with \"quotes\"".into(),
        version: "0.1.0".into(),
        current: rwin(131_072),
        arms: vec![
            Arm { label: "current".into(), settings: rwin(131_072) },
            Arm { label: "4x".into(), settings: rwin(5_840) },
        ],
        config: serde_json::json!({"budget": 120, "path": "adsl"}).into(),
        seed: u64::MAX - 1,
        path: PathFacts { rtt_us: 31_000, pmtu: 1_492, bdp_bytes: 26_000, physical_goodput_bps: Some(6_830_000) },
        owner: Owner { pid: 7, start_ticks: 99, boot_id: "boot".into() },
        ..NewExperiment::new(id, "adsl", "lab")
    }
}

pub(super) fn spec(experiment: &str, round: u32, arm: usize) -> TrialSpec {
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

pub(super) fn outcome() -> TrialOutcome {
    let sample = |t| Sample { t_us: t, bytes: t * 3, snd_cwnd: 14_600, rtt: 31_000, ..Sample::default() };
    TrialOutcome {
        status: Status::Completed,
        bytes: 1_000_000,
        elapsed_us: 1_500_000,
        granted: rwin(5_792),
        scopes: [("rwin".to_owned(), "socket".to_owned())].into(),
        observed: wt_trial::Observed { mss: Some(1_448), ..Default::default() },
        sender: vec![sample(1), sample(2)],
        receiver: vec![sample(3)],
        limits: wt_trial::Limits { busy_us: 5, rwnd_limited_us: 4, sndbuf_limited_us: 3 },
        notes: vec!["first".into(), "second \"note\"\n".into()],
        measures: Measures { score: Some(0.125), flows_bps: vec![1.5, 2.0], ..Measures::default() },
    }
}

#[test]
fn what_is_written_is_read_back() {
    let mut f = fixture();
    let new = experiment("a", 5);
    f.journal.create_experiment(&new).unwrap();
    let trial = f.journal.begin_trial(&spec("a", 1, 1), 100).unwrap();
    assert_eq!(f.journal.rows("a").unwrap()[0].status, Status::Running);
    f.journal.finish_trial(trial, &outcome()).unwrap();
    let record = TrialRecord { id: trial, spec: spec("a", 1, 1), started_unix_us: 100, outcome: outcome() };
    assert_eq!(f.journal.trials("a", WithSamples::Yes).unwrap(), [record]);
    assert!(f.journal.trials("a", WithSamples::No).unwrap()[0].outcome.sender.is_empty());

    let verdict = serde_json::json!({"kind": "faster"});
    f.journal.finish_experiment("a", State::Finished, 900, Some(&verdict)).unwrap();
    let stored = f.journal.load("a").unwrap();
    assert_eq!((stored.seed, stored.current, stored.arms, stored.path), (new.seed, new.current, new.arms, new.path));
    assert_eq!((stored.config, stored.owner, stored.comment), (new.config, new.owner, new.comment));
    assert_eq!((stored.state, stored.ended_unix_us, stored.verdict), (State::Finished, Some(900), Some(verdict)));
}

#[test]
fn the_journal_is_its_owners_alone() {
    let f = fixture();
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(f.journal.path()), 0o600);
    assert_eq!(mode(f.journal.path().parent().unwrap()), 0o700);
    let names: Vec<_> = std::fs::read_dir(f.journal.path().parent().unwrap()).unwrap().map(|e| e.unwrap()).collect();
    assert!(names.iter().all(|e| e.file_name().to_string_lossy().starts_with("journal.sqlite3")));
    assert!(names.iter().all(|e| mode(&e.path()) == 0o600), "the log too");
}

#[test]
fn the_default_path_follows_the_directories_of_the_user() {
    let env = |pairs: &'static [(&str, &str)]| {
        default_path(move |name| pairs.iter().find(|(n, _)| *n == name).map(|(_, v)| v.into()))
    };
    let path = |text: &str| Some(PathBuf::from(text));
    assert_eq!(env(&[("XDG_DATA_HOME", "/d"), ("HOME", "/h")]), path("/d/windtunnel/journal.sqlite3"));
    assert_eq!(env(&[("XDG_DATA_HOME", "rel"), ("HOME", "/h")]), path("/h/.local/share/windtunnel/journal.sqlite3"));
    assert_eq!(env(&[("HOME", "/root")]), path("/root/.local/share/windtunnel/journal.sqlite3"));
    assert_eq!(env(&[]), None);
}

#[test]
fn an_empty_file_becomes_a_journal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    std::fs::write(&path, b"").unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    let pragma = |name| journal.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!((pragma("application_id"), pragma("user_version"), pragma("foreign_keys")), (APPLICATION_ID, NEWEST, 1));
    let mode: String = journal.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
    assert_eq!((mode.as_str(), pragma("synchronous")), ("wal", 1));
}

#[test]
fn what_was_seen_of_a_host_comes_back_in_its_order() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = SqliteJournal::open(&dir.path().join("j")).unwrap();
    let seen = |host: &str, at_unix_us, n: u32| Sighting { host: host.into(), at_unix_us, found: serde_json::json!(n) };
    journal.note("first-window", &[seen("a", 1, 3), seen("b", 2, 10), seen("a", 3, 10)]).unwrap();
    journal.note("other", &[seen("a", 4, 99)]).unwrap();
    assert_eq!(journal.sightings("first-window", Some("a"), 10).unwrap(), [seen("a", 1, 3), seen("a", 3, 10)]);
    assert_eq!(journal.sightings("first-window", None, 2).unwrap(), [seen("b", 2, 10), seen("a", 3, 10)]);
    assert!(journal.sightings("first-window", Some("c"), 10).unwrap().is_empty());
}

#[test]
fn a_journal_of_the_first_schema_is_brought_up_to_date() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j");
    let old = include_str!("../migrations/0001_journal.sql");
    let marks = format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 1;");
    Connection::open(&path).unwrap().execute_batch(&format!("{old}{marks}")).unwrap();
    let journal = SqliteJournal::open(&path).unwrap();
    assert!(journal.sightings("first-window", None, 1).unwrap().is_empty());
    let version: i64 = journal.connection.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
    assert_eq!(version, NEWEST);
}

#[test]
fn other_files_are_refused_and_left_untouched() {
    let dir = tempfile::tempdir().unwrap();
    let make = |name: &str, sql: &str| {
        let path = dir.path().join(name);
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        path
    };
    let text = dir.path().join("text");
    std::fs::write(&text, "not a database, but long enough to have a header of one hundred bytes or more. ".repeat(9))
        .unwrap();
    let foreign = make("foreign", "CREATE TABLE t (x); PRAGMA user_version = 1;");
    let marked = make("marked", "PRAGMA application_id = 1234; CREATE TABLE t (x);");
    let newer = make(
        "newer",
        &format!("PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = 99; CREATE TABLE t (x);"),
    );
    for path in [&text, &foreign, &marked, &newer] {
        let before = std::fs::read(path).unwrap();
        let error = SqliteJournal::open(path).unwrap_err();
        match error {
            JournalError::NotAJournal { .. } if path != &newer => {}
            JournalError::Newer { found: 99, known: NEWEST, .. } if path == &newer => {}
            other => panic!("{}: {other}", path.display()),
        }
        assert!(std::fs::read(path).unwrap() == before, "{}", path.display());
        assert!(!path.with_extension("-wal").exists());
    }
    assert!(matches!(SqliteJournal::open(dir.path()), Err(JournalError::Open { .. })), "a directory");
    assert!(matches!(SqliteJournal::open(Path::new("/proc/nothing/j")), Err(JournalError::Open { .. })));
}

#[test]
fn an_experiment_is_found_by_name_beginning_or_last() {
    let mut f = fixture();
    assert!(matches!(f.journal.load("last"), Err(JournalError::Empty { .. })));
    for (id, started) in
        [("20261121-081500-adsl-3f9a", 10), ("20261121-091500-lan-0001", 30), ("20261122-081500-adsl-ffff", 20)]
    {
        f.journal.create_experiment(&experiment(id, started)).unwrap();
    }
    assert_eq!(f.journal.load("last").unwrap().id, "20261121-091500-lan-0001");
    assert_eq!(f.journal.load("20261122").unwrap().id, "20261122-081500-adsl-ffff");
    match f.journal.load("20261121") {
        Err(JournalError::Ambiguous { candidates, .. }) => assert_eq!(candidates.len(), 2),
        other => panic!("{other:?}"),
    }
    match f.journal.load("20261121-081500-adsl-3f9b") {
        Err(e @ JournalError::NoSuchExperiment { .. }) => {
            assert!(e.to_string().contains("did you mean \"20261121-081500-adsl-3f9a\""), "{e}");
        }
        other => panic!("{other:?}"),
    }
    for odd in ["", "%", "_", "'; DROP TABLE trials; --", "*"] {
        assert!(matches!(f.journal.load(odd), Err(JournalError::NoSuchExperiment { .. })), "{odd}");
    }
    // A name that is the beginning of another is itself.
    f.journal.create_experiment(&experiment("2026", 1)).unwrap();
    assert_eq!(f.journal.load("2026").unwrap().id, "2026");
}

#[test]
fn names_that_are_taken_or_dangerous_are_refused() {
    let mut f = fixture();
    f.journal.create_experiment(&experiment("a", 1)).unwrap();
    for id in ["a", "last", "", "../x", "a b", "-rf", "é", &"x".repeat(101)] {
        let refused = f.journal.create_experiment(&experiment(id, 2));
        assert!(matches!(refused, Err(JournalError::BadId { .. })), "{id}");
    }
    assert_eq!(f.journal.list(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn the_list_is_filtered_and_the_newest_comes_first() {
    let mut f = fixture();
    for (id, started, target) in [("a", 1, "adsl"), ("b", 3, "lan"), ("c", 2, "adsl")] {
        let new = NewExperiment { target: target.into(), ..experiment(id, started) };
        f.journal.create_experiment(&new).unwrap();
    }
    f.journal.begin_trial(&spec("c", 1, 0), 5).unwrap();
    f.journal.finish_experiment("a", State::Stopped, 9, None).unwrap();
    let ids = |filter: &Filter| -> Vec<String> { f.journal.list(filter).unwrap().into_iter().map(|e| e.id).collect() };
    assert_eq!(ids(&Filter::default()), ["b", "c", "a"]);
    assert_eq!(ids(&Filter { state: Some(State::Running), limit: Some(1), ..Filter::default() }), ["b"]);
    assert_eq!(ids(&Filter { target: Some("adsl".into()), since_unix_us: Some(2), ..Filter::default() }), ["c"]);
    assert_eq!(ids(&Filter { tunnel: Some("live".into()), ..Filter::default() }), [""; 0]);
    assert_eq!(f.journal.list(&Filter::default()).unwrap()[1].trials, 1);
}

#[test]
fn the_list_tells_workload_and_verdict_as_far_as_somebody_wrote_them() {
    let mut f = fixture();
    let workload = serde_json::json!({"workload": {"kind": "page"}});
    f.journal.create_experiment(&NewExperiment { config: workload.into(), ..experiment("a", 100) }).unwrap();
    let answer = serde_json::json!({"action": "set", "what": "32 is faster.", "setting": "initcwnd=32", "change_percent": -17.66});
    let verdict = serde_json::json!({"kind": "faster", "headline": "old words", "answer": answer});
    f.journal.finish_experiment("a", State::Finished, 200, Some(&verdict)).unwrap();
    f.journal.create_experiment(&experiment("b", 300)).unwrap();
    let older = serde_json::json!({"kind": "no-difference", "headline": "old words", "answer": {"change_percent": {}}});
    f.journal.finish_experiment("b", State::Finished, 400, Some(&older)).unwrap();
    f.journal.create_experiment(&experiment("c", 500)).unwrap();
    let list = f.journal.list(&Filter::default()).unwrap();
    let told: Vec<_> = list
        .iter()
        .map(|e| {
            [&Some(e.id.clone()), &e.workload, &e.verdict, &e.action, &e.answer, &e.setting]
                .map(|text| text.clone().unwrap_or_default())
        })
        .collect();
    assert_eq!(told[0], ["c", "", "", "", "", ""]);
    assert_eq!(told[1], ["b", "", "no-difference", "", "old words", ""]);
    assert_eq!(told[2], ["a", "page", "faster", "set", "32 is faster.", "initcwnd=32"]);
    assert_eq!((list[2].change_bp, list[0].change_bp), (Some(-1766), None));
}

#[test]
fn a_trial_is_finished_once_and_only_while_it_runs() {
    let mut f = fixture();
    let missing = f.journal.begin_trial(&spec("nobody", 1, 0), 1);
    assert!(matches!(missing, Err(JournalError::NoSuchExperiment { .. })));
    f.journal.create_experiment(&experiment("a", 1)).unwrap();
    let trial = f.journal.begin_trial(&spec("a", 1, 0), 1).unwrap();
    let still = TrialOutcome { status: Status::Running, ..outcome() };
    assert!(matches!(f.journal.finish_trial(trial, &still), Err(JournalError::Unwritable { .. })));
    f.journal.finish_trial(trial, &outcome()).unwrap();
    assert!(matches!(f.journal.finish_trial(trial, &outcome()), Err(JournalError::TrialNotRunning { .. })));
    let left = f.journal.begin_trial(&spec("a", 1, 1), 2).unwrap();
    f.journal.finish_experiment("a", State::Stopped, 3, None).unwrap();
    assert_eq!(f.journal.rows("a").unwrap()[1].status, Status::Aborted);
    assert!(matches!(f.journal.finish_trial(left, &outcome()), Err(JournalError::TrialNotRunning { .. })));
    assert!(matches!(f.journal.begin_trial(&spec("a", 2, 1), 4), Err(JournalError::ExperimentNotRunning { .. })));
    let again = f.journal.finish_experiment("a", State::Finished, 5, None);
    assert!(matches!(again, Err(JournalError::ExperimentNotRunning { .. })));
}

#[test]
fn only_what_the_dead_left_behind_is_marked() {
    let mut f = fixture();
    for (id, pid) in [("dead", 1), ("alive", 2), ("done", 1)] {
        let owner = Owner { pid, ..Owner::default() };
        f.journal.create_experiment(&NewExperiment { owner, ..experiment(id, 10) }).unwrap();
        f.journal.begin_trial(&spec(id, 1, 0), 20).unwrap();
    }
    f.journal.finish_experiment("done", State::Finished, 30, None).unwrap();
    let orphans = f.journal.mark_orphans(&|_, owner| owner.pid == 2).unwrap();
    assert_eq!(orphans, Orphans { experiments: vec!["dead".into()], trials: 1 });
    let dead = f.journal.load("dead").unwrap();
    assert_eq!((dead.state, dead.ended_unix_us), (State::Aborted, Some(20)));
    let trial = &f.journal.trials("dead", WithSamples::No).unwrap()[0].outcome;
    assert_eq!((trial.status, trial.notes.len()), (Status::Aborted, 1));
    assert_eq!(f.journal.rows("alive").unwrap()[0].status, Status::Running);
    assert_eq!(f.journal.mark_orphans(&|_, owner| owner.pid == 2).unwrap(), Orphans::default());
}

fn counts(pruned: Pruned) -> (u64, u64) {
    (pruned.experiments, pruned.trials)
}

#[test]
fn pruning_spares_the_newest_and_those_under_way() {
    let mut f = fixture();
    for started in 1..=5 {
        let id = format!("e{started}");
        f.journal.create_experiment(&experiment(&id, started)).unwrap();
        let trial = f.journal.begin_trial(&spec(&id, 1, 0), started).unwrap();
        f.journal.finish_trial(trial, &outcome()).unwrap();
        if started != 1 {
            f.journal.finish_experiment(&id, State::Finished, 9, None).unwrap();
        }
    }
    assert_eq!(f.journal.prune(Prune::default()).unwrap(), Pruned::default(), "nothing said, nothing done");
    let samples = Prune { before_unix_us: Some(4), samples_only: true, ..Prune::default() };
    assert_eq!(counts(f.journal.prune(samples).unwrap()), (2, 2));
    let thinned = f.journal.trials("e3", WithSamples::Yes).unwrap();
    assert_eq!((thinned[0].outcome.sender.len(), thinned[0].outcome.bytes), (0, 1_000_000));
    let old = Prune { keep_newest: Some(2), ..Prune::default() };
    assert_eq!(counts(f.journal.prune(old).unwrap()), (2, 2));
    let left: Vec<String> = f.journal.list(&Filter::default()).unwrap().into_iter().map(|e| e.id).collect();
    assert_eq!(left, ["e5", "e4", "e1"]);
    for table in ["arms", "trials", "details", "samples"] {
        let rows: i64 =
            f.journal.connection.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, if table == "trials" || table == "details" { 3 } else { 6 }, "{table}");
    }
    // Numbers of trials are never used again.
    assert_eq!(f.journal.begin_trial(&spec("e1", 2, 0), 50).unwrap(), 6);
}

#[test]
fn pruning_gives_the_space_back() {
    let mut f = fixture();
    f.journal.create_experiment(&experiment("a", 1)).unwrap();
    let sample = |i: u64| Sample { t_us: i, bytes: i.wrapping_mul(0x9e37_79b9_7f4a_7c15), ..Sample::default() };
    let long = TrialOutcome { sender: (0..20_000).map(sample).collect(), ..outcome() };
    for round in 1..=10 {
        let trial = f.journal.begin_trial(&spec("a", round, 0), 1).unwrap();
        f.journal.finish_trial(trial, &long).unwrap();
    }
    f.journal.finish_experiment("a", State::Finished, 2, None).unwrap();
    f.journal.give_space_back().unwrap();
    let size = || std::fs::metadata(f.journal.path.clone()).unwrap().len();
    let before = size();
    let path = f.journal.path.clone();
    f.journal.prune(Prune { keep_newest: Some(0), ..Prune::default() }).unwrap();
    let after = std::fs::metadata(path).unwrap().len();
    assert!(before > 2_000_000 && after < before / 10, "{before} {after}");
}

#[test]
fn a_full_disk_is_an_error_that_leaves_the_journal_intact() {
    let mut f = fixture();
    f.journal.create_experiment(&experiment("a", 1)).unwrap();
    f.journal.connection.pragma_update_and_check(None, "max_page_count", 60, |row| row.get::<_, i64>(0)).unwrap();
    let long = TrialOutcome { sender: vec![Sample { t_us: u64::MAX / 2, ..Sample::default() }; 500], ..outcome() };
    let mut whole = 0;
    let error = loop {
        let trial = match f.journal.begin_trial(&spec("a", 1, 0), 1) {
            Ok(trial) => trial,
            Err(e) => break e,
        };
        match f.journal.finish_trial(trial, &long) {
            Ok(()) => whole += 1,
            Err(e) => break e,
        }
        assert!(whole < 1_000, "the disk never fills");
    };
    assert!(matches!(error, JournalError::Full { .. }), "{error}");
    let trials = f.journal.trials("a", WithSamples::Yes).unwrap();
    let completed: Vec<_> = trials.iter().filter(|t| t.outcome.status == Status::Completed).collect();
    assert!(whole > 3 && completed.len() == whole && completed.iter().all(|t| t.outcome.sender.len() == 500));
    assert!(trials.len() <= whole + 1, "at most the trial in flight is unfinished");
    let check: String = f.journal.connection.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(check, "ok");
    // With room again it goes on.
    f.journal
        .connection
        .pragma_update_and_check(None, "max_page_count", 1_000_000, |row| row.get::<_, i64>(0))
        .unwrap();
    f.journal.begin_trial(&spec("a", 2, 0), 1).unwrap();
}

#[test]
fn damage_is_named() {
    let mut f = fixture();
    f.journal.create_experiment(&experiment("a", 1)).unwrap();
    let trial = f.journal.begin_trial(&spec("a", 1, 0), 1).unwrap();
    f.journal.finish_trial(trial, &outcome()).unwrap();
    for (sql, part) in [
        ("UPDATE samples SET data = x'0102'", "trial 1: samples: cut short"),
        ("UPDATE details SET granted = '{\"warp\":9}'", "granted settings"),
        ("UPDATE trials SET status = 'sleeping'", "unknown status \"sleeping\""),
    ] {
        f.journal.connection.execute(sql, []).unwrap();
        let error = f.journal.trials("a", WithSamples::Yes).unwrap_err();
        assert!(matches!(error, JournalError::Damaged { .. }) && error.to_string().contains(part), "{error}");
    }
}

#[test]
fn threads_that_open_and_write_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("journal.sqlite3");
    std::thread::scope(|scope| {
        for writer in 0..6 {
            let path = &path;
            scope.spawn(move || {
                let mut journal = SqliteJournal::open(path).unwrap();
                let id = format!("w{writer}");
                journal.create_experiment(&experiment(&id, writer)).unwrap();
                for round in 1..=20 {
                    let trial = journal.begin_trial(&spec(&id, round, 0), 1).unwrap();
                    journal.finish_trial(trial, &outcome()).unwrap();
                }
            });
        }
    });
    let journal = SqliteJournal::open(&path).unwrap();
    let list = journal.list(&Filter::default()).unwrap();
    assert_eq!(list.iter().map(|e| e.trials).collect::<Vec<_>>(), [20; 6]);
    for e in list {
        let rounds: Vec<u32> = journal.rows(&e.id).unwrap().iter().map(|row| row.round).collect();
        assert_eq!(rounds, (1..=20).collect::<Vec<_>>());
    }
    assert_eq!(
        std::fs::read_dir(dir.path())
            .unwrap()
            .filter(|e| { e.as_ref().unwrap().file_name().to_string_lossy().contains(".new-") })
            .count(),
        0,
        "nothing half made is left"
    );
}

#[test]
fn exports_hold_every_trial() {
    let mut f = fixture();
    f.journal.create_experiment(&experiment("a", 1)).unwrap();
    for round in 1..=3 {
        let trial = f.journal.begin_trial(&spec("a", round, 1), 1).unwrap();
        f.journal.finish_trial(trial, &outcome()).unwrap();
    }
    let mut json = Vec::new();
    export_json(&f.journal, "last", WithSamples::Yes, &mut json).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!((json["schema_version"].as_u64(), json["experiment"]["id"].as_str()), (Some(1), Some("a")));
    let trials: Vec<TrialRecord> = serde_json::from_value(json["trials"].clone()).unwrap();
    assert_eq!(trials, f.journal.trials("a", WithSamples::Yes).unwrap());
    let mut text = Vec::new();
    export_csv(&f.journal, "a", &mut text).unwrap();
    let mut csv = csv::Reader::from_reader(text.as_slice());
    let rows: Vec<csv::StringRecord> = csv.records().map(|row| row.unwrap()).collect();
    assert_eq!(rows.len(), 3);
    // Law: the goodput is what bytes and time say.
    assert_eq!((&rows[0][5], &rows[0][11], &rows[0][12]), ("4x", "1000000", "5333333"));
    assert_eq!(&rows[2][16], "first; second \"note\"\n");
}

fn any_text() -> impl Strategy<Value = String> {
    proptest::collection::vec(any::<char>(), 0..20).prop_map(|chars| chars.into_iter().collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn any_words_and_numbers_survive(
        notes in proptest::collection::vec(any_text(), 0..4), key in any_text(), seed in any::<u64>(),
        bytes in 0..i64::MAX as u64, round in any::<u32>(), comment in any_text(), start in any::<u32>(),
    ) {
        let mut f = fixture();
        let owner = Owner { pid: start, start_ticks: u64::from(start), boot_id: comment.clone() };
        let new = NewExperiment { comment: comment.clone(), seed, owner: owner.clone(), ..experiment("a", 1) };
        f.journal.create_experiment(&new).unwrap();
        let spec = TrialSpec { seed, round, ..spec("a", 1, 0) };
        let outcome = TrialOutcome { notes, bytes, observed: serde_json::Map::from_iter([(key, serde_json::json!(comment))]).into(), ..outcome() };
        let trial = f.journal.begin_trial(&spec, i64::MIN).unwrap();
        f.journal.finish_trial(trial, &outcome).unwrap();
        let back = f.journal.trials("a", WithSamples::Yes).unwrap().swap_remove(0);
        prop_assert_eq!((back.spec, back.outcome), (spec, outcome));
        let stored = f.journal.load("a").unwrap();
        prop_assert_eq!((stored.comment, stored.seed, stored.owner), (comment, seed, owner));
    }
}
