//! The journal in PostgreSQL, on a server of the test's own.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../journal/tests/suite/mod.rs"]
mod suite;

use serde_json::json;
use suite::{experiment, finished, outcome, spec};
use wt_fleet::{PgJournal, PushState, StoreAddress, push, status};
use wt_journal::{
    Filter, Journal, JournalError, NewExperiment, SqliteJournal, State, WithSamples, export_json, import_journal,
};
use wt_testing::{PostgresServer, require};

fn address(text: &str) -> StoreAddress {
    text.parse().unwrap()
}

fn exported(journal: &dyn Journal, id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    export_json(journal, id, WithSamples::Yes, &mut out).unwrap();
    out
}

#[test]
fn postgres_holds_what_every_store_must_hold() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    for (number, (name, check)) in suite::CHECKS.iter().enumerate() {
        eprintln!("{name}");
        let place = address(&server.database(&format!("d{number}")).unwrap());
        check(&mut PgJournal::open(&place, "here").unwrap());
    }
    foreign_databases_are_left_as_they_are(&server);
    many_that_make_the_tables_at_once_are_all_served(&server);
    of_those_who_go_on_with_one_experiment_at_once_one_is_let(&server);
}

fn of_those_who_go_on_with_one_experiment_at_once_one_is_let(server: &PostgresServer) {
    let place = address(&server.database("twice").unwrap());
    let let_on = suite::who_goes_on_with_a(|| PgJournal::open(&place, "here").unwrap());
    assert_eq!(let_on.len(), 1, "{let_on:?}");
}

fn foreign_databases_are_left_as_they_are(server: &PostgresServer) {
    let place = address(&server.database("foreign_one").unwrap());
    assert!(matches!(PgJournal::open_to_read(&place), Err(JournalError::NotAJournal { .. })), "nothing is there yet");
    server.sql("foreign_one", "CREATE TABLE trials (x int)").unwrap();
    assert!(matches!(PgJournal::open(&place, "s"), Err(JournalError::NotAJournal { .. })));
    let tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = 'public'";
    assert_eq!(server.sql("foreign_one", tables).unwrap(), "1");
    let place = address(&server.database("newer").unwrap());
    drop(PgJournal::open(&place, "s").unwrap());
    drop(PgJournal::open_to_read(&place).unwrap());
    server.sql("newer", "UPDATE windtunnel_schema SET version = 99").unwrap();
    for opened in [PgJournal::open(&place, "s"), PgJournal::open_to_read(&place)] {
        assert!(matches!(opened, Err(JournalError::Newer { found: 99, .. })));
    }
    let nowhere = address(&server.address("nowhere"));
    let error = PgJournal::open(&nowhere, "s").unwrap_err();
    assert!(
        matches!(error, JournalError::Unreachable { .. }) && error.to_string().contains("does not exist"),
        "{error}"
    );
    // Somebody who may read, and nothing else.
    server
        .sql(
            "newer",
            "UPDATE windtunnel_schema SET version = 4; CREATE ROLE reader LOGIN; \
                         GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
        )
        .unwrap();
    let reader = address(&server.address("newer").replace("wt@", "reader@"));
    assert_eq!(PgJournal::open_to_read(&reader).unwrap().list(&Filter::default()).unwrap(), []);
    let refused = PgJournal::open(&reader, "s").unwrap().create_experiment(&experiment("a", 1)).unwrap_err();
    assert!(matches!(refused, JournalError::Open { .. }), "{refused}");
}

fn many_that_make_the_tables_at_once_are_all_served(server: &PostgresServer) {
    let place = address(&server.database("crowd").unwrap());
    std::thread::scope(|scope| {
        for site in 0..8 {
            let place = &place;
            scope.spawn(move || {
                let mut journal = PgJournal::open(place, &site.to_string()).unwrap();
                finished(&mut journal, &format!("e{site}"), 1, 5, None);
            });
        }
    });
    let list = PgJournal::open_to_read(&place).unwrap().list(&Filter::default()).unwrap();
    assert_eq!(list.iter().map(|one| one.trials).collect::<Vec<_>>(), [5; 8]);
}

#[test]
fn what_is_pushed_is_the_same_there_and_pushing_again_adds_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = require!("postgres", PostgresServer::start(folder.path()));
    let place = address(&server.database("common").unwrap());
    let mut common = PgJournal::open(&place, "own").unwrap();
    let local_in = |name: &str| SqliteJournal::open(&folder.path().join(name)).unwrap();
    let site = |_: &_| "berlin".to_owned();
    let mut local = local_in("a");
    for (n, (id, before)) in [("a", None), ("b", Some("a"))].into_iter().enumerate() {
        finished(&mut local, id, (n as i64 + 1) * 10_000, 250, before);
    }
    assert_eq!(status(&local, &common).unwrap().experiments.iter().map(|one| one.new).sum::<u64>(), 500);
    let report = push(&local, &mut common, None, &site).unwrap();
    assert_eq!(report.experiments.iter().map(|one| one.new).collect::<Vec<_>>(), [250, 250]);
    let counts = "SELECT (SELECT count(*) FROM experiments), (SELECT count(*) FROM arms), (SELECT count(*) FROM trials), \
                  (SELECT count(*) FROM details), (SELECT count(*) FROM samples), (SELECT count(*) FROM measures)";
    let whole = server.sql("common", counts).unwrap();
    assert_eq!(whole, "2|4|500|500|1000|500");
    assert_eq!(server.sql("common", "SELECT DISTINCT site FROM experiments").unwrap(), "berlin");
    for _ in 0..3 {
        let again = push(&local, &mut common, None, &site).unwrap();
        assert!(again.experiments.iter().all(|one| one.new == 0 && one.state == PushState::Known), "{again:?}");
    }
    assert_eq!(server.sql("common", counts).unwrap(), whole);
    assert!(status(&local, &common).unwrap().experiments.iter().all(|one| one.state == PushState::Known));
    for id in ["a", "b"] {
        assert!(exported(&local, id) == exported(&common, id), "byte for byte");
        assert_eq!(local.rows(id).unwrap(), common.rows(id).unwrap());
    }
    assert_eq!(local.list(&Filter::default()).unwrap(), common.list(&Filter::default()).unwrap());

    // One that is under way goes as far as it has come.
    local.create_experiment(&experiment("c", 90_000)).unwrap();
    let trial = |local: &mut SqliteJournal, round| {
        let trial = local.begin_trial(&spec("c", round, 0), 90_000 + i64::from(round)).unwrap();
        local.finish_trial(trial, &outcome()).unwrap();
    };
    trial(&mut local, 1);
    local.begin_trial(&spec("c", 2, 0), 90_002).unwrap();
    let only = ["c".to_owned()];
    assert_eq!(push(&local, &mut common, Some(&only), &site).unwrap().experiments[0].new, 1);
    assert_eq!(common.load("c").unwrap().state, State::Running);
    trial(&mut local, 3);
    // The server dies in between, and what it has said yes to is there.
    server.kill_and_restart().unwrap();
    let error = push(&local, &mut common, Some(&only), &site).unwrap_err();
    assert!(matches!(error, JournalError::Unreachable { .. }), "{error}");
    let mut common = PgJournal::open(&place, "own").unwrap();
    local.finish_experiment("c", State::Stopped, 95_000, Some(&json!({"kind": "none"}))).unwrap();
    assert_eq!(status(&local, &common).unwrap().experiments[2].new, 2);
    assert_eq!(push(&local, &mut common, None, &site).unwrap().experiments[2].new, 2);
    assert!(exported(&local, "c") == exported(&common, "c"), "with its end and verdict");

    // Another one of that name, and the same one by another way.
    let mut other = local_in("other");
    other.create_experiment(&NewExperiment { seed: 1, ..experiment("a", 10_000) }).unwrap();
    let refused = push(&other, &mut common, None, &site).unwrap();
    assert!(
        matches!(&refused.experiments[0].state, PushState::Refused(why) if why.contains("another one")),
        "{refused:?}"
    );
    let told = status(&other, &common).unwrap();
    assert_eq!(told.experiments[0].state, refused.experiments[0].state, "who asks is told the same");
    let mut copied = local_in("copied");
    finished(&mut copied, "z", 1, 3, None);
    import_journal(&mut copied, &local).unwrap();
    let known = push(&copied, &mut common, None, &site).unwrap();
    let news: Vec<u64> = known.experiments.iter().map(|one| one.new).collect();
    assert_eq!(news, [3, 0, 0, 0], "{known:?}");
    let mut forged = local_in("forged");
    finished(&mut forged, "a", 10_000, 3, None);
    forged.prune(wt_journal::Prune { keep_newest: Some(0), ..Default::default() }).unwrap();
    forged
        .create_experiment(&NewExperiment { config: json!({"continues": null}).into(), ..experiment("a", 10_000) })
        .unwrap();
    let odd = forged.begin_trial(&spec("a", 1, 1), 77).unwrap();
    forged.finish_trial(odd, &outcome()).unwrap();
    let refused = push(&forged, &mut common, None, &site).unwrap();
    assert!(
        matches!(&refused.experiments[0].state, PushState::Refused(why) if why.contains("other trials")),
        "{refused:?}"
    );
    assert_eq!(server.sql("common", "SELECT count(*) FROM trials").unwrap(), "506");

    // One damaged row keeps nothing back but its own experiment.
    let mut damaged = local_in("damaged");
    finished(&mut damaged, "p", 1, 3, None);
    finished(&mut damaged, "q", 2, 3, None);
    let raw = rusqlite::Connection::open(folder.path().join("damaged")).unwrap();
    raw.execute("UPDATE details SET notes = '[' WHERE trial = 2", []).unwrap();
    let report = push(&damaged, &mut common, None, &site).unwrap();
    let [p, q] = report.experiments.as_slice() else { panic!("{report:?}") };
    assert!(matches!(&p.state, PushState::Refused(why) if why.contains("damaged") && why.contains("trial 2")), "{p:?}");
    assert_eq!((q.new, &q.state), (3, &PushState::Pushed));
}

#[test]
fn two_that_push_the_same_at_once_write_it_once() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    let place = address(&server.database("common").unwrap());
    let file = folder.path().join("j");
    finished(&mut SqliteJournal::open(&file).unwrap(), "a", 10_000, 300, None);
    drop(PgJournal::open(&place, "x").unwrap());
    let new: u64 = std::thread::scope(|scope| {
        let pushes: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let local = SqliteJournal::open_to_read(&file).unwrap();
                    let mut common = PgJournal::open(&place, "x").unwrap();
                    push(&local, &mut common, None, &|_| "x".to_owned()).unwrap().experiments[0].new
                })
            })
            .collect();
        pushes.into_iter().map(|push| push.join().unwrap()).sum()
    });
    assert_eq!(new, 300);
    assert_eq!(server.sql("common", "SELECT count(*) FROM trials").unwrap(), "300");
}

/// The columns of both views that have fractions.
const REAL: [&str; 9] =
    ["elapsed_s", "goodput_bps", "score", "ratio", "at_least", "change_percent", "evidence", "needed", "alpha"];

/// The rows of a view as objects, by name and number.
fn rows_of_sqlite(file: &std::path::Path, view: &str, order: &str) -> Vec<serde_json::Value> {
    use rusqlite::types::ValueRef;
    let connection = rusqlite::Connection::open(file).unwrap();
    let mut query = connection.prepare(&format!("SELECT * FROM {view} ORDER BY {order}")).unwrap();
    let names: Vec<String> = query.column_names().map(str::to_owned).collect();
    let mut rows = query.query([]).unwrap();
    let mut all = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let value = |n: usize| match row.get_ref(n).unwrap() {
            ValueRef::Null => serde_json::Value::Null,
            ValueRef::Integer(number) => json!(number),
            ValueRef::Real(number) => json!(number),
            ValueRef::Text(text) => json!(String::from_utf8_lossy(text)),
            ValueRef::Blob(_) => panic!("a view has no bytes"),
        };
        all.push(names.iter().enumerate().map(|(n, name)| (name.clone(), value(n))).collect());
    }
    all
}

#[test]
fn the_views_say_the_same_in_both_stores_and_their_columns_have_the_promised_types() {
    let folder = tempfile::tempdir().unwrap();
    let server = require!("postgres", PostgresServer::start(folder.path()));
    let place = address(&server.database("common").unwrap());
    let file = folder.path().join("j");
    let mut local = SqliteJournal::open(&file).unwrap();
    let goldens = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../windtunnel/tests/golden/journal");
    for entry in std::fs::read_dir(goldens).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.ends_with(".json") && !name.contains(".report.") {
            wt_journal::import_json(&mut local, std::fs::File::open(path).unwrap()).unwrap();
        }
    }
    // What one text with a zero byte in it would do to the whole query.
    local
        .create_experiment(&NewExperiment {
            config: json!({"host": {"name": "a\0b\\"}, "x": "\0\0"}).into(),
            ..experiment("odd", 7)
        })
        .unwrap();
    let trial = local.begin_trial(&spec("odd", 1, 1), 8).unwrap();
    let odd = serde_json::Map::from_iter([("a\0".to_owned(), json!("\0\\\0")), ("rtt_us".to_owned(), json!(7))]);
    local.finish_trial(trial, &wt_trial::TrialOutcome { observed: odd.into(), ..outcome() }).unwrap();
    let site = |stored: &wt_journal::StoredExperiment| {
        stored.config.host().and_then(|host| host.name.clone()).unwrap_or_default().replace('\0', "")
    };
    let mut common = PgJournal::open(&place, "own").unwrap();
    let report = push(&local, &mut common, None, &site).unwrap();
    assert!(
        report.experiments.len() > 8 && report.experiments.iter().all(|one| one.state == PushState::Pushed),
        "{report:?}"
    );
    for (view, order) in [("v_trials", "experiment, trial"), ("v_experiments", "id")] {
        let there = server
            .sql(
                "common",
                &format!(
                    "SELECT row_to_json(v) FROM {view} v ORDER BY {}",
                    order.replace("experiment", "experiment COLLATE \"C\"").replace("id", "id COLLATE \"C\"")
                ),
            )
            .unwrap();
        let there: Vec<serde_json::Value> = there.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let mut here = rows_of_sqlite(&file, view, order);
        for row in &mut here {
            // Who didn't say on which host it ran has the site that pushed it.
            let site = row["site"].as_str().unwrap_or_default().replace('\0', "");
            row["site"] = json!(site);
        }
        assert_eq!(here.len(), there.len());
        // 2 and 2.0 are one number there, and the JSON of a test may be off by the last bit.
        let same =
            |name: &str, here: &serde_json::Value, there: &serde_json::Value| match (here.as_f64(), there.as_f64()) {
                (Some(here), Some(there)) if REAL.contains(&name) => (here - there).abs() <= 1e-14 * here.abs(),
                _ => here == there,
            };
        for (here, there) in here.iter().zip(&there) {
            for (name, value) in here.as_object().unwrap() {
                assert!(same(name, value, &there[name]), "{view}.{name}: {here} {there}");
            }
        }
        let names: Vec<String> = here[0].as_object().unwrap().keys().cloned().collect();
        let types = format!(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = '{view}' ORDER BY column_name COLLATE \"C\""
        );
        let types = server.sql("common", &types).unwrap();
        let (mut count, mut sorted) = (0, names);
        sorted.sort();
        for (line, name) in types.lines().zip(&sorted) {
            let (column, kind) = line.split_once('|').unwrap();
            assert_eq!(column, name);
            assert!(["text", "bigint", "double precision"].contains(&kind), "{line}");
            count += 1;
        }
        assert_eq!(count, sorted.len());
    }
}
