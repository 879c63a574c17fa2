//! What goes from one journal to another, and to other programs.

use super::tests::{Fixture, experiment, fixture, outcome, spec};
use super::*;
use crate::{export_flent, export_json, import_journal, import_json};
use serde_json::{Value, json};

/// A journal with finished experiments of these names, each continuing the one before.
fn chain(ids: &[&str]) -> Fixture {
    let mut f = fixture();
    let mut before = Value::Null;
    for (started, id) in (1i64..).zip(ids) {
        let config = json!({"continues": before});
        f.journal.create_experiment(&NewExperiment { config, ..experiment(id, started * 1_000_000) }).unwrap();
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
    for text in ["{}", "[1]", "{", "nonsense", &file.to_string(), "\u{0}"] {
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
