//! Journals of every schema that there ever was, with rows as they were written then: they are brought up to date, read, and
//! what an experiment was stays the same text.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use rusqlite::Connection;
use std::path::Path;
use wt_journal::{ExperimentConfig, Journal as _, SqliteJournal, WithSamples, export_json, import_json};
use wt_trial::{Direction, Observed};
use wt_units::Knob;

/// "Wtnl".
const APPLICATION_ID: i64 = 0x5774_6e6c;

/// The schema and the rows of each version, one upon the other.
const VERSIONS: [(&str, &str); 4] = [
    (include_str!("../src/migrations/0001_journal.sql"), include_str!("golden/schema-1.sql")),
    (include_str!("../src/migrations/0002_measures.sql"), include_str!("golden/schema-2.sql")),
    (include_str!("../src/migrations/0003_sightings.sql"), include_str!("golden/schema-3.sql")),
    (include_str!("../src/migrations/0004_views.sql"), include_str!("golden/schema-4.sql")),
];

/// A journal as the program of this schema left it.
fn journal(path: &Path, schema: usize) {
    let connection = Connection::open(path).unwrap();
    for (tables, rows) in &VERSIONS[..schema] {
        connection.execute_batch(tables).unwrap();
        connection.execute_batch(rows).unwrap();
    }
    connection.pragma_update(None, "user_version", schema as i64).unwrap();
    connection.pragma_update(None, "application_id", APPLICATION_ID).unwrap();
}

fn texts(path: &Path, sql: &str) -> Vec<(String, String)> {
    let connection = Connection::open(path).unwrap();
    let mut query = connection.prepare(sql).unwrap();
    let rows = query.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

#[test]
fn what_every_schema_holds_is_read_and_written_again_as_the_same_text() {
    for schema in 1..=VERSIONS.len() {
        let dir = tempfile::tempdir().unwrap();
        let (old, new) = (dir.path().join("old.sqlite3"), dir.path().join("new.sqlite3"));
        journal(&old, schema);
        let configs = texts(&old, "SELECT id, config FROM experiments ORDER BY id");
        let observed = texts(
            &old,
            "SELECT t.started_us || '', d.observed FROM details d JOIN trials t ON t.id = d.trial ORDER BY 1",
        );
        let opened = SqliteJournal::open(&old).unwrap();
        assert_eq!(texts(&old, "SELECT id, config FROM experiments ORDER BY id"), configs, "opening changes no row");
        let mut copy = SqliteJournal::open(&new).unwrap();
        for (id, config) in &configs {
            let stored = opened.load(id).unwrap();
            assert_eq!(&serde_json::to_string(&stored.config).unwrap(), config, "{id}");
            let mut exported = Vec::new();
            export_json(&opened, id, WithSamples::Yes, &mut exported).unwrap();
            let text = String::from_utf8(exported.clone()).unwrap();
            assert!(text.contains(&format!("\"config\":{config},")), "{id}: {text}");
            assert_eq!(import_json(&mut copy, exported.as_slice()).unwrap().taken, std::slice::from_ref(id));
        }
        drop(copy);
        assert_eq!(texts(&new, "SELECT id, config FROM experiments ORDER BY id"), configs);
        let again = texts(
            &new,
            "SELECT t.started_us || '', d.observed FROM details d JOIN trials t ON t.id = d.trial ORDER BY 1",
        );
        assert_eq!(again, observed);
    }
}

#[test]
fn what_every_row_says_is_understood() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("j.sqlite3");
    journal(&path, VERSIONS.len());
    let journal = SqliteJournal::open(&path).unwrap();
    let config = |id: &str| journal.load(id).unwrap().config;

    let first = config("20261121-0905");
    let plateau = first.tune().plateau.clone().unwrap();
    assert_eq!((plateau.knob, plateau.levels.clone(), plateau.epsilon()), (Some(Knob::Rwin), Some(vec![1, 0]), 0.1));
    assert_eq!((plateau.is_strict(), first.tune().cool_down_us, first.lab()), (false, None, None));
    assert!(first.tune().workload.is_some() && first.tune().more.is_empty(), "{first:?}");
    let trials = journal.trials("20261121-090500-adsl-0001", WithSamples::No).unwrap();
    let Observed { mss, sack, window_scale, segments, .. } = trials[0].outcome.observed.clone();
    assert_eq!((mss, sack, window_scale, segments), (Some(1440), Some(true), None, None));

    let calls = config("20261121-1600");
    assert_eq!((calls.lab(), calls.tune().max_trials, calls.tune().direction()), (Some("adsl"), None, Direction::Down));
    assert_eq!(calls.tune().host.clone().unwrap().kernel.as_deref(), Some("6.1.0"));

    let ExperimentConfig::Controls(controls) = config("20261121-1610") else { panic!("a comparison of controls") };
    let compare = controls.compare.unwrap();
    assert_eq!(compare.arms.unwrap()[1].variant, "beta=0.8");
    assert_eq!(compare.disturbance.unwrap().kind.as_deref(), Some("outage"));

    let live = config("20261122-0100");
    let tune = live.tune();
    let path = tune.live.clone().unwrap();
    assert_eq!((path.loss, path.rate_bps, path.length), (Some(0.001), None, Some(3_000_000)));
    assert!(path.address.unwrap().is_ipv6());
    assert_eq!((tune.direction(), tune.identical), (Direction::Up, Some(true)));
    assert_eq!(tune.held().unwrap().to_string(), "sack=off");
    assert_eq!((tune.weights.clone(), tune.model.is_some()), (Some(vec![1.0, 2.5]), true));
    assert!(tune.plateau.clone().unwrap().is_strict() && tune.workload.is_some());
    assert_eq!(tune.continues.as_deref(), Some("20261121-160000-adsl-0002"));

    let ExperimentConfig::Stacks(stacks) = config("20261122-0101") else { panic!("a comparison of stacks") };
    let stacks = stacks.stacks.unwrap();
    let (arms, workloads) = (stacks.arms.unwrap(), stacks.workloads.unwrap());
    assert_eq!(workloads.len(), 1);
    assert_eq!((arms[0].window, arms[1].window, arms[1].choice.as_str()), (None, Some(8192), "smoltcp:cc=reno"));

    let factors = config("20261122-0102").screen().unwrap().factors.clone().unwrap();
    assert_eq!((factors.len(), factors[1].level(true).to_string()), (2, "off".to_owned()));
    assert!(matches!(config("20261122-0103"), ExperimentConfig::Flent(_)));
    assert_eq!(config("20261122-0104").later_format(), Some(2));
    assert_eq!(config("20261122-0105"), ExperimentConfig::Unknown(serde_json::Value::Null));
}

#[test]
fn journals_of_every_schema_have_the_views_once_they_are_opened() {
    for schema in 1..=VERSIONS.len() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("j.sqlite3");
        journal(&path, schema);
        drop(SqliteJournal::open(&path).unwrap());
        for (view, table) in [("v_trials", "trials"), ("v_experiments", "experiments")] {
            let sql = format!("SELECT (SELECT count(*) FROM {view}) || '', (SELECT count(*) FROM {table}) || ''");
            let (seen, there) = texts(&path, &sql).swap_remove(0);
            assert_eq!(seen, there, "{view} of schema {schema}");
        }
    }
}

#[test]
fn tables_of_the_last_schema_are_read_by_who_may_not_write() {
    let dir = tempfile::tempdir().unwrap();
    for (schema, is_readable) in [(2, false), (3, true), (4, true)] {
        let path = dir.path().join(format!("{schema}.sqlite3"));
        journal(&path, schema);
        let opened = SqliteJournal::open_to_read(&path);
        assert_eq!(opened.is_ok_and(|journal| journal.load("20261121-0905").is_ok()), is_readable, "schema {schema}");
    }
}
