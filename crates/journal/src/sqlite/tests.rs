use super::schema::{APPLICATION_ID, NEWEST};
use super::*;
use crate::Arm;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use wt_trial::{Amount, Direction, Measures, PathFacts, Phase, Sample, Status, Workload};
use wt_units::{Knob, Level, Settings};

struct Fixture {
    _dir: tempfile::TempDir,
    journal: SqliteJournal,
}

fn fixture() -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let journal = SqliteJournal::open(&dir.path().join("sub/journal.sqlite3")).unwrap();
    Fixture { _dir: dir, journal }
}

fn rwin(bytes: u64) -> Settings {
    Settings::new().with(Knob::Rwin, Level::Number(bytes)).with(Knob::Cc, Level::Name("cubic".into()))
}

fn experiment(id: &str, started: i64) -> NewExperiment {
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

fn spec(experiment: &str, round: u32, arm: usize) -> TrialSpec {
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

fn outcome() -> TrialOutcome {
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
fn a_device_is_no_journal_and_gets_no_files_beside_it() {
    let dir = tempfile::tempdir().unwrap();
    let device = dir.path().join("device");
    std::os::unix::fs::symlink("/dev/null", &device).unwrap();
    let socket = dir.path().join("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [&device, &socket] {
        for opened in [SqliteJournal::open(path), SqliteJournal::open_to_read(path)] {
            assert!(matches!(opened, Err(JournalError::NotAJournal { .. })), "{opened:?}");
        }
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
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
fn pruning_leaves_no_rows_behind() {
    let mut f = chain(&["a", "b", "c"]);
    let newest = Prune { keep_newest: Some(1), ..Prune::default() };
    assert_eq!(f.journal.prune(newest.clone()).unwrap().experiments, 0, "what others continue stays");
    let mut own = fixture();
    crate::import_journal(&mut own.journal, &f.journal).unwrap();
    own.journal.create_experiment(&experiment("d", 9_000_000)).unwrap();
    let trial = own.journal.begin_trial(&spec("d", 1, 0), 9_000_001).unwrap();
    own.journal.finish_trial(trial, &outcome()).unwrap();
    assert_eq!(own.journal.prune(newest).unwrap().experiments, 3);
    for (table, rows) in [("arms", 2), ("trials", 1), ("details", 1), ("samples", 2)] {
        let count = format!("SELECT count(*) FROM {table}");
        assert_eq!(own.journal.connection.query_row(&count, [], |row| row.get::<_, i64>(0)).unwrap(), rows, "{table}");
    }
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
fn a_trial_whose_wide_part_is_missing_is_damage_and_is_left_out_of_nothing() {
    let f = chain(&["a", "b"]);
    f.journal.connection.execute("DELETE FROM details WHERE trial = 2", []).unwrap();
    assert_eq!(f.journal.list(&Filter::default()).unwrap()[1].trials, 3);
    let read = [
        f.journal.trials("a", WithSamples::Yes).map(drop),
        f.journal.for_each_table_trial("a", &mut |_| Ok(())),
        crate::export_json(&f.journal, "a", WithSamples::Yes, &mut Vec::new()),
        crate::export_csv(&f.journal, "a", &mut Vec::new()),
        crate::export_parquet(&f.journal, "a", crate::ParquetRows::Trials, Vec::new()),
    ];
    for error in read.map(Result::unwrap_err) {
        assert!(matches!(error, JournalError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("trial 2: what it asked for and observed is missing"), "{error}");
    }
    let mut to = fixture();
    let imported = crate::import_journal(&mut to.journal, &f.journal).unwrap();
    assert_eq!((imported.taken, imported.refused.len()), (vec!["b".to_owned()], 1));
    // Whoever lets go of it has the others.
    f.journal.connection.execute("DELETE FROM trials WHERE id NOT IN (SELECT trial FROM details)", []).unwrap();
    assert_eq!(f.journal.trials("a", WithSamples::Yes).unwrap().len(), 2);
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

/// A journal with finished experiments of these names, each continuing the one before.
fn chain(ids: &[&str]) -> Fixture {
    let mut f = fixture();
    let mut before = Value::Null;
    for (started, id) in (1i64..).zip(ids) {
        let config = json!({"continues": before});
        f.journal
            .create_experiment(&NewExperiment { config: config.into(), ..experiment(id, started * 1_000_000) })
            .unwrap();
        for round in 1..=3 {
            let trial = f
                .journal
                .begin_trial(&spec(id, round, round as usize % 2), started * 1_000_000 + i64::from(round))
                .unwrap();
            f.journal.finish_trial(trial, &outcome()).unwrap();
        }
        f.journal.finish_experiment(id, State::Finished, 9, Some(&json!({"text": "faster"}))).unwrap();
        before = json!(id);
    }
    f
}

#[test]
fn a_journal_that_is_only_read_stays_as_it_is() {
    let f = chain(&["a"]);
    let path = f.journal.path().to_owned();
    f.journal.give_space_back().unwrap();
    let before = std::fs::read(&path).unwrap();
    let read = SqliteJournal::open_to_read(&path).unwrap();
    assert_eq!(read.list(&Filter::default()).unwrap().len(), 1);
    drop(read);
    assert_eq!(std::fs::read(&path).unwrap(), before);
    let missing = path.with_file_name("missing");
    assert!(matches!(SqliteJournal::open_to_read(&missing), Err(JournalError::Open { .. })));
    assert!(!missing.exists());
}

/// The text of one of our views.
fn ours(name: &str) -> &'static str {
    schema::views().find(|view| view.starts_with(&format!("CREATE VIEW {name} AS"))).unwrap()
}

#[test]
fn our_own_views_are_those_of_a_journal() {
    let f = fixture();
    let mut query =
        f.journal.connection.prepare("SELECT sql FROM sqlite_schema WHERE type = 'view' ORDER BY name").unwrap();
    let found: Vec<String> = query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    assert_eq!(found, [ours("v_experiments"), ours("v_trials")]);
    assert_eq!(schema::views().count(), 2);
}

#[test]
fn a_journal_with_a_view_a_trigger_or_a_virtual_table_is_refused_before_anything_of_it_runs() {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS id FROM n";
    for (sql, told) in [
        (format!("DROP TABLE sightings; CREATE VIEW sightings AS {endless}"), "view"),
        ("CREATE VIEW more AS SELECT 1 AS id".to_owned(), "view"),
        ("DROP VIEW v_trials; CREATE VIEW v_trials AS SELECT 1 AS experiment".to_owned(), "view"),
        (format!("DROP VIEW v_trials; {} AND 1", ours("v_trials")), "view"),
        // Our views in a journal that is older than they are.
        ("PRAGMA user_version = 3".to_owned(), "view"),
        ("CREATE TRIGGER t AFTER INSERT ON trials BEGIN SELECT 1; END".to_owned(), "trigger"),
        ("CREATE VIRTUAL TABLE evil USING fts5(a)".to_owned(), "virtual table"),
    ] {
        let f = chain(&["a"]);
        let path = f.journal.path().to_owned();
        f.journal.connection.execute_batch(&sql).unwrap();
        drop(f.journal);
        for opened in [SqliteJournal::open(&path), SqliteJournal::open_to_read(&path)] {
            let error = opened.unwrap_err();
            assert!(matches!(error, JournalError::NotAJournal { .. }), "{error}");
            assert!(error.to_string().contains(&format!("it has a {told}")), "{error}");
        }
    }
}

#[test]
fn one_damaged_experiment_keeps_no_other_from_being_taken_in_or_pruned() {
    let mut damaged = fixture();
    for (id, at) in [("a", 1), ("b", 2), ("c", 3)] {
        damaged.journal.create_experiment(&experiment(id, at)).unwrap();
        let trial = damaged.journal.begin_trial(&spec(id, 1, 0), at).unwrap();
        damaged.journal.finish_trial(trial, &outcome()).unwrap();
        damaged.journal.finish_experiment(id, State::Finished, 9, None).unwrap();
    }
    damaged.journal.connection.execute("UPDATE details SET notes = '[' WHERE trial = 1", []).unwrap();
    damaged.journal.connection.execute("UPDATE experiments SET config = '{' WHERE id = 'b'", []).unwrap();
    let mut to = fixture();
    let imported = crate::import_journal(&mut to.journal, &damaged.journal).unwrap();
    assert_eq!(imported.taken, ["c"], "{imported:?}");
    let refused: Vec<&str> = imported.refused.iter().map(|(id, _)| id.as_str()).collect();
    assert!(refused == ["a", "b"] && imported.refused.iter().all(|(_, why)| why.contains("damaged")), "{imported:?}");
    assert_eq!(damaged.journal.continued_by("c").unwrap(), None);
    let pruned = damaged.journal.prune(Prune { ids: Some(vec!["c".to_owned()]), ..Prune::default() }).unwrap();
    assert_eq!(pruned.ids, ["c"]);
}

#[test]
fn a_journal_on_a_medium_that_takes_no_file_beside_it_is_read_as_it_stands() {
    let Fixture { _dir: dir, mut journal } = fixture();
    journal.create_experiment(&experiment("a", 1)).unwrap();
    drop(journal);
    let whole = dir.path().join("sub/journal.sqlite3");
    assert!(file::is_whole(&whole) && !file::is_whole(&dir.path().join("none")));
    let odd = dir.path().join("50% of #1?");
    std::fs::copy(&whole, &odd).unwrap();
    // What SQLite wants to make beside it can't be made, as on a medium that can't be written, by root either.
    std::os::unix::fs::symlink("none/none", dir.path().join("50% of #1?-shm")).unwrap();
    let journal = SqliteJournal::open_to_read(&odd).unwrap();
    assert_eq!(journal.list(&Filter::default()).unwrap().len(), 1);
    std::fs::write(dir.path().join("50% of #1?-wal"), "what isn't in it yet").unwrap();
    assert!(SqliteJournal::open_to_read(&odd).is_err(), "it isn't whole");
}

#[test]
fn a_journal_of_somebody_else_is_read_where_its_reader_may_not_write() {
    let Fixture { _dir: dir, mut journal } = fixture();
    journal.create_experiment(&experiment("a", 1)).unwrap();
    drop(journal);
    let folder = dir.path().join("sub");
    // To its owner this is what another user's folder is to us; root, who may write everywhere, reads it as any other.
    let allow = |mode| std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(mode)).unwrap();
    allow(0o555);
    let read = SqliteJournal::open_to_read(&folder.join("journal.sqlite3")).map(|it| it.list(&Filter::default()));
    allow(0o700);
    assert_eq!(read.unwrap().unwrap().len(), 1);
}

#[test]
fn a_proof_of_a_change_is_told_from_a_comparison_of_settings_before_and_after_its_end() {
    let mut f = fixture();
    let proof = NewExperiment { comment: "proof of change 3: sack=off".into(), ..NewExperiment::new("p", "u", "live") };
    // Of an older program, or imported: its verdict alone says it.
    let other = NewExperiment { config: json!({}).into(), ..NewExperiment::new("q", "u", "live") };
    // A comment says what it likes.
    let tune = NewExperiment { comment: proof.comment.clone(), ..experiment("t", 9) };
    for new in [&proof, &other, &tune] {
        f.journal.create_experiment(new).unwrap();
    }
    let told = |f: &Fixture| {
        let kinds = f.journal.list(&Filter::default()).unwrap();
        let mut all: Vec<_> = kinds.into_iter().map(|one| (f.journal.load(&one.id).unwrap(), one.kind)).collect();
        all.sort_by(|one, other| one.0.id.cmp(&other.0.id));
        let of = |(stored, kind): &(StoredExperiment, String)| {
            format!("{} {kind} {}", stored.id, stored.proved_change().unwrap_or("-"))
        };
        all.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(told(&f), "p proof 3, q tune -, t tune -");
    let verdict = json!({"kind": "faster", "proof": {"change": "4"}});
    f.journal.finish_experiment("q", State::Finished, 1, Some(&verdict)).unwrap();
    assert_eq!(told(&f), "p proof 3, q proof 4, t tune -");
}

#[test]
fn what_an_experiment_on_connections_noted_last_is_its_verdict_when_it_was_killed_and_goes_with_it() {
    let Fixture { _dir, mut journal } = fixture();
    let seen =
        |host: &str, at_unix_us: i64| Sighting { host: host.into(), at_unix_us, found: json!({"n": at_unix_us}) };
    for (id, tunnel) in [("Killed", "traffic"), ("silent", "traffic"), ("other", "lab"), ("runs", "traffic")] {
        journal.create_experiment(&NewExperiment { tunnel: tunnel.into(), ..experiment(id, 1) }).unwrap();
    }
    journal.note("traffic", &[seen("killed", 2), seen("killed", 3), seen("other", 4), seen("runs", 5)]).unwrap();
    journal.note("first-window", &[seen("killed", 6)]).unwrap();
    let marked = journal.mark_orphans(&|id, _| id == "runs").unwrap();
    assert_eq!(marked.experiments, ["Killed", "silent", "other"]);
    let found = |journal: &SqliteJournal, id: &str| journal.load(id).map(|it| (it.state, it.verdict)).unwrap();
    assert_eq!(found(&journal, "Killed"), (State::Aborted, Some(json!({"n": 3}))));
    assert_eq!(found(&journal, "silent"), (State::Aborted, None));
    assert_eq!(found(&journal, "other"), (State::Aborted, None));
    assert_eq!(found(&journal, "runs"), (State::Running, None));
    let mut elsewhere = fixture();
    crate::import_journal(&mut elsewhere.journal, &journal).unwrap();
    assert_eq!(found(&elsewhere.journal, "Killed"), (State::Aborted, Some(json!({"n": 3}))));
    journal.prune(Prune { ids: Some(vec!["Killed".into()]), ..Prune::default() }).unwrap();
    let left =
        |kind| journal.sightings(kind, None, 9).unwrap().into_iter().map(|one| one.at_unix_us).collect::<Vec<_>>();
    assert_eq!((left("traffic"), left("first-window")), (vec![4, 5], vec![6]));
}
