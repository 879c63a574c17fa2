//! What goes from one journal to another, and to other programs.

use super::tests::{Fixture, experiment, fixture, outcome, spec};
use super::*;
use crate::{export_flent, export_json, import_journal, import_json};
use serde_json::{Value, json};
use wt_trial::Sample;

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

fn exported(journal: &SqliteJournal, id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    export_json(journal, id, WithSamples::Yes, &mut out).unwrap();
    out
}

#[test]
fn what_is_exported_and_imported_is_the_same_and_nothing_comes_twice() {
    let from = chain(&["a", "b"]);
    let both = [exported(&from.journal, "a"), exported(&from.journal, "b")].concat();
    let mut to = fixture();
    to.journal.create_experiment(&experiment("own", 1)).unwrap();
    to.journal.begin_trial(&spec("own", 1, 0), 5).unwrap();
    let imported = import_json(&mut to.journal, &both[..]).unwrap();
    assert_eq!((imported.taken, imported.trials), (vec!["a".to_owned(), "b".to_owned()], 6));
    for id in ["a", "b"] {
        assert_eq!(to.journal.load(id).unwrap(), from.journal.load(id).unwrap());
        let of = |journal: &SqliteJournal| {
            let trials = journal.trials(id, WithSamples::Yes).unwrap();
            trials.into_iter().map(|trial| (trial.spec, trial.started_unix_us, trial.outcome)).collect::<Vec<_>>()
        };
        assert_eq!(of(&to.journal), of(&from.journal));
    }
    let again = import_json(&mut to.journal, &both[..]).unwrap();
    assert_eq!((again.taken.len(), again.known.len(), again.trials), (0, 2, 0));
    let other = import_journal(&mut to.journal, &from.journal).unwrap();
    assert_eq!((other.taken.len(), other.known.len()), (0, 2));
    let mut third = fixture();
    let merged = import_journal(&mut third.journal, &to.journal).unwrap();
    assert_eq!(merged.taken, ["a", "b"]);
    assert_eq!(merged.refused, [("own".to_owned(), "it is still under way there".to_owned())]);
}

#[test]
fn another_experiment_of_the_same_name_and_nonsense_are_refused_and_change_nothing() {
    let from = chain(&["a"]);
    let mut file: Value = serde_json::from_slice(&exported(&from.journal, "a")).unwrap();
    let mut to = chain(&["a"]);
    file["trials"][0]["outcome"]["bytes"] = json!(7);
    let imported = import_json(&mut to.journal, file.to_string().as_bytes()).unwrap();
    assert_eq!(imported.refused.len(), 1, "{imported:?}");
    file["experiment"]["id"] = json!("b");
    file["trials"][0]["spec"]["arm"] = json!(99);
    let imported = import_json(&mut to.journal, file.to_string().as_bytes()).unwrap();
    assert!(imported.refused[0].1.contains("doesn't list"), "{imported:?}");
    file["trials"][0]["spec"]["arm"] = json!(0);
    for id in ["../x", "last", "-x", ""] {
        file["experiment"]["id"] = json!(id);
        assert_eq!(import_json(&mut to.journal, file.to_string().as_bytes()).unwrap().refused.len(), 1, "{id}");
    }
    file["schema_version"] = json!(2);
    for text in ["", " \n", "{}", "[1]", "{", "nonsense", &file.to_string(), "\u{0}"] {
        let error = import_json(&mut to.journal, text.as_bytes()).unwrap_err();
        assert!(matches!(error, JournalError::NotAnExport { number: 1, .. }), "{text}: {error}");
    }
    assert_eq!(to.journal.list(&Filter::default()).unwrap().len(), 1);
}

#[test]
fn pruning_by_name_spares_what_others_continue_and_a_dry_run_changes_nothing() {
    let mut f = chain(&["a", "b", "c", "d"]);
    let prune = |ids: &[&str], dry_run| Prune {
        ids: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
        dry_run,
        ..Prune::default()
    };
    let told = f.journal.prune(prune(&["a", "d"], true)).unwrap();
    assert_eq!((told.ids, told.kept, told.trials), (vec!["d".to_owned()], vec!["a".to_owned()], 3));
    assert_eq!(f.journal.list(&Filter::default()).unwrap().len(), 4);
    // Of a chain, all or from its end.
    let told = f.journal.prune(prune(&["a", "b", "c"], false)).unwrap();
    assert_eq!((told.ids.len(), told.kept.len()), (0, 3));
    let told = f.journal.prune(prune(&["c", "d"], false)).unwrap();
    assert_eq!(told.ids, ["c", "d"]);
    let left: Vec<String> = f.journal.list(&Filter::default()).unwrap().into_iter().map(|e| e.id).collect();
    assert_eq!(left, ["b", "a"]);
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
fn flents_file_has_as_many_values_in_each_series_as_times_and_rates_in_mbit() {
    let f = chain(&["a"]);
    let mut out = Vec::new();
    export_flent(&f.journal, "a", &mut out).unwrap();
    let file: Value = serde_json::from_slice(&out).unwrap();
    assert_eq!((&file["version"], &file["metadata"]["NAME"]), (&json!(4), &json!("tcp_download")));
    assert_eq!(file["metadata"]["TIME"], "1970-01-01T00:00:01.000001Z");
    let x: Vec<f64> = file["x_values"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!(x.windows(2).all(|pair| pair[0] <= pair[1]), "{x:?}");
    for (name, series) in file["results"].as_object().unwrap() {
        assert_eq!(series.as_array().unwrap().len(), x.len(), "{name}");
    }
    assert_eq!(file["raw_values"]["TCP download"][0]["val"], 24.0);
    // Three bytes a microsecond, twice in a row.
    let rates: Vec<f64> =
        file["results"]["TCP download"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert_eq!(rates, [24.0; 3]);
    let of_one: usize = ["current", "4x"]
        .iter()
        .map(|arm| file["results"][arm].as_array().unwrap().iter().filter(|v| v.is_number()).count())
        .sum();
    assert_eq!((of_one, &file["results"]["Ping (ms) ICMP"][0]), (3, &json!(31.0)));
}

fn as_flent(journal: &SqliteJournal, id: &str) -> Value {
    let mut out = Vec::new();
    export_flent(journal, id, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

#[test]
fn an_experiment_comes_back_from_flents_file_with_all_but_what_it_doesnt_draw() {
    let f = chain(&["a"]);
    let file = as_flent(&f.journal, "a");
    let mut to = fixture();
    let imported = import_json(&mut to.journal, file.to_string().as_bytes()).unwrap();
    assert_eq!((imported.taken, imported.trials), (vec!["a".to_owned()], 3));
    assert_eq!(to.journal.load("a").unwrap(), f.journal.load("a").unwrap());
    let (own, others) =
        (to.journal.trials("a", WithSamples::Yes).unwrap(), f.journal.trials("a", WithSamples::Yes).unwrap());
    for (own, other) in own.iter().zip(&others) {
        assert_eq!((&own.spec, own.started_unix_us), (&other.spec, other.started_unix_us));
        let bare =
            |trial: &TrialRecord| TrialOutcome { sender: Vec::new(), receiver: Vec::new(), ..trial.outcome.clone() };
        assert_eq!(bare(own), bare(other));
        let drawn = |samples: &[Sample]| samples.iter().map(|s| (s.t_us, s.bytes, s.rtt)).collect::<Vec<_>>();
        let samples = |trial: &TrialRecord| match trial.outcome.receiver.len() {
            0 | 1 => drawn(&trial.outcome.sender),
            _ => drawn(&trial.outcome.receiver),
        };
        assert!(samples(own).len() > 1);
        assert_eq!(samples(own), samples(other));
    }
    assert_eq!(as_flent(&to.journal, "a"), file, "written again it is the same");
    let again = import_json(&mut to.journal, file.to_string().as_bytes()).unwrap();
    assert_eq!((again.taken.len(), again.known.len()), (0, 1));
    let whole = import_json(&mut to.journal, &exported(&f.journal, "a")[..]).unwrap();
    assert_eq!(whole.known, ["a"], "it is the same experiment");
}

/// A test that flent itself might have run: a step of 0.2 s, one second before the flows begin.
fn of_flent(series: &[(&str, f64)]) -> Value {
    let x: Vec<f64> = (0..60).map(|n| f64::from(n) * 0.2).collect();
    let values = |value: f64| x.iter().map(|x| (*x > 0.9).then_some(value)).collect::<Vec<_>>();
    let results: serde_json::Map<String, Value> =
        series.iter().map(|(name, value)| ((*name).to_owned(), json!(values(*value)))).collect();
    json!({
        "metadata": {"NAME": "a_test", "HOST": "server.example", "TITLE": "by the window", "STEP_SIZE": 0.2,
                     "TIME": "2026-11-21T08:15:00.250000Z", "T0": null, "FLENT_VERSION": "2.1.1", "LENGTH": 10},
        "version": 4, "x_values": x, "results": results, "raw_values": {},
    })
}

#[test]
fn a_test_that_flent_ran_becomes_one_trial_of_its_rates_and_round_trips() {
    let mut to = fixture();
    let file = of_flent(&[("TCP download", 80.0), ("Ping (ms) ICMP", 20.0), ("TCP download::tcp_cwnd", 9.0)]);
    let imported = import_json(&mut to.journal, file.to_string().as_bytes()).unwrap();
    let [id] = imported.taken.as_slice() else { panic!("{imported:?}") };
    let experiment = to.journal.load(id).unwrap();
    assert_eq!((experiment.target.as_str(), experiment.tunnel.as_str()), ("server.example", "live"));
    assert_eq!(
        (experiment.comment.as_str(), experiment.started_unix_us),
        ("a_test: by the window", 1_795_248_900_250_000)
    );
    let [trial] = to.journal.trials(id, WithSamples::Yes).unwrap().try_into().unwrap();
    // Eleven seconds, ten megabytes a second.
    assert_eq!((trial.outcome.elapsed_us, trial.outcome.bytes), (11_000_000, 110_000_000));
    assert_eq!((trial.outcome.goodput_bps(), trial.outcome.receiver[5].rtt), (80e6, 20_000));
    assert_eq!(trial.outcome.receiver.len(), 56);
    assert_eq!(import_json(&mut to.journal, file.to_string().as_bytes()).unwrap().known.len(), 1);

    // Several flows are summed, both directions are a duplex.
    let both = of_flent(&[
        ("TCP download BE", 30.0),
        ("TCP download BK", 10.0),
        ("TCP download avg", 20.0),
        ("TCP upload", 10.0),
        ("Ping (ms) avg", 5.0),
    ]);
    let imported = import_json(&mut to.journal, both.to_string().as_bytes()).unwrap();
    assert!(imported.taken.is_empty(), "the same time, host and title: {imported:?}");
    let mut both = both;
    both["metadata"]["TITLE"] = json!("both ways");
    let imported = import_json(&mut to.journal, both.to_string().as_bytes()).unwrap();
    let [trial] = to.journal.trials(&imported.taken[0], WithSamples::No).unwrap().try_into().unwrap();
    assert_eq!(trial.outcome.measures.flows_bps, [40e6, 10e6]);
    assert_eq!(trial.outcome.figure(trial.spec.workload.scale()), Some(20e6));
}

#[test]
fn files_of_flent_that_make_no_sense_are_refused_with_the_reason() {
    let good = of_flent(&[("TCP download", 80.0)]);
    let of_ours = as_flent(&chain(&["a"]).journal, "a");
    let mut to = fixture();
    for (file, pointer, value, wanted) in [
        (&good, "/results/TCP download/30", json!(-1.0), "is invalid"),
        (&good, "/results/TCP download/30", json!(1e300), "is invalid"),
        (&good, "/results/TCP download", json!([1.0]), "hasn't as many values"),
        (&good, "/results", json!({"Ping (ms) ICMP": vec![1.0; 60]}), "no series"),
        (&good, "/x_values/3", json!(1e300), "its times"),
        (&good, "/x_values/30", json!(0.0), "go backwards"),
        (&good, "/metadata/TIME", json!("yesterday"), "is no time"),
        (&good, "/metadata/TIME", json!(null), "when it was"),
        (&good, "/results/TCP download", json!("x"), "invalid type"),
        (&of_ours, "/metadata/WINDTUNNEL/schema_version", json!(9), "schema_version is 9"),
        (&of_ours, "/metadata/WINDTUNNEL/trials/2/points", json!(u64::MAX), "less points"),
        (&of_ours, "/metadata/WINDTUNNEL/trials/0/trial/outcome/sender", json!([]), "first sample"),
        (&of_ours, "/metadata/WINDTUNNEL/experiment", json!(7), "invalid type"),
    ] {
        let mut file = file.clone();
        *file.pointer_mut(pointer).unwrap() = value;
        let error = import_json(&mut to.journal, file.to_string().as_bytes()).unwrap_err();
        assert!(error.to_string().contains(wanted), "{pointer}: {error}");
    }
    assert_eq!(to.journal.list(&Filter::default()).unwrap().len(), 0);
}
