//! What is written out, taken in again, and pruned by name.

use super::{chain, experiment, exported, ids, local, spec};
use serde_json::{Value, json};
use wt_journal::{Filter, Journal, JournalError, Prune, WithSamples, import_journal, import_json};

pub(super) fn what_is_exported_and_imported_is_the_same_and_nothing_comes_twice(to: &mut dyn Journal) {
    let mut from = local();
    chain(&mut from.journal, &["a", "b"]);
    let both = [exported(&from.journal, "a"), exported(&from.journal, "b")].concat();
    to.create_experiment(&experiment("own", 1)).unwrap();
    to.begin_trial(&spec("own", 1, 0), 5).unwrap();
    let imported = import_json(to, &both[..]).unwrap();
    assert_eq!((imported.taken, imported.trials), (vec!["a".to_owned(), "b".to_owned()], 6));
    for id in ["a", "b"] {
        assert_eq!(to.load(id).unwrap(), from.journal.load(id).unwrap());
        let of = |journal: &dyn Journal| {
            let trials = journal.trials(id, WithSamples::Yes).unwrap();
            trials.into_iter().map(|trial| (trial.spec, trial.started_unix_us, trial.outcome)).collect::<Vec<_>>()
        };
        assert_eq!(of(to), of(&from.journal));
    }
    let again = import_json(to, &both[..]).unwrap();
    assert_eq!((again.taken.len(), again.known.len(), again.trials), (0, 2, 0));
    let other = import_journal(to, &from.journal).unwrap();
    assert_eq!((other.taken.len(), other.known.len()), (0, 2));
    let mut third = local();
    let merged = import_journal(&mut third.journal, to).unwrap();
    assert_eq!(merged.taken, ["a", "b"]);
    assert_eq!(merged.refused, [("own".to_owned(), "it is still under way there".to_owned())]);
}

pub(super) fn another_experiment_of_the_same_name_and_nonsense_are_refused_and_change_nothing(to: &mut dyn Journal) {
    chain(to, &["a"]);
    let mut file: Value = serde_json::from_slice(&exported(to, "a")).unwrap();
    let mut empty = local();
    for (id, taken) in [("last", 0), ("w", 1)] {
        file["experiment"]["id"] = json!(id);
        let imported = import_json(&mut empty.journal, file.to_string().as_bytes()).unwrap();
        assert_eq!(imported.taken.len(), taken, "{id}: {imported:?}");
    }
    file["experiment"]["id"] = json!("a");
    file["trials"][0]["outcome"]["bytes"] = json!(7);
    let imported = import_json(to, file.to_string().as_bytes()).unwrap();
    assert_eq!(imported.refused.len(), 1, "{imported:?}");
    file["experiment"]["id"] = json!("b");
    file["trials"][0]["spec"]["arm"] = json!(99);
    let imported = import_json(to, file.to_string().as_bytes()).unwrap();
    assert!(imported.refused[0].1.contains("doesn't list"), "{imported:?}");
    file["trials"][0]["spec"]["arm"] = json!(0);
    for id in ["../x", "last", "-x", ""] {
        file["experiment"]["id"] = json!(id);
        assert_eq!(import_json(to, file.to_string().as_bytes()).unwrap().refused.len(), 1, "{id}");
    }
    file["experiment"]["id"] = json!("c");
    for time in ["/experiment/started_unix_us", "/experiment/ended_unix_us", "/trials/0/started_unix_us"] {
        let mut odd = file.clone();
        *odd.pointer_mut(time).unwrap() = json!(9_200_000_000_000_000_000_i64);
        let imported = import_json(to, odd.to_string().as_bytes()).unwrap();
        assert!(imported.refused[0].1.contains("is no time"), "{time}: {imported:?}");
    }
    file["schema_version"] = json!(2);
    for text in ["", " \n", "{}", "[1]", "{", "nonsense", &file.to_string(), "\u{0}"] {
        let error = import_json(to, text.as_bytes()).unwrap_err();
        assert!(matches!(error.error, JournalError::NotAnExport { number: 1, .. }), "{text}: {error}");
    }
    assert_eq!(to.list(&Filter::default()).unwrap().len(), 1);
    file["schema_version"] = json!(1);
    file["experiment"]["id"] = json!("whole");
    let (whole, cut) = (file.to_string(), file.to_string().replace("whole", "cut"));
    let error = import_json(to, format!("{whole}{}", &cut[..cut.len() / 2]).as_bytes()).unwrap_err();
    assert!(matches!(error.error, JournalError::NotAnExport { number: 2, .. }), "{error}");
    assert_eq!(error.before.taken, ["whole"], "what was taken before it is told");
}

pub(super) fn pruning_by_name_spares_what_others_continue_and_a_dry_run_changes_nothing(journal: &mut dyn Journal) {
    chain(journal, &["a", "b", "c", "d"]);
    let prune = |ids: &[&str], dry_run| Prune {
        ids: Some(ids.iter().map(|id| (*id).to_owned()).collect()),
        dry_run,
        ..Prune::default()
    };
    let told = journal.prune(prune(&["a", "d"], true)).unwrap();
    assert_eq!((told.ids, told.kept, told.trials), (vec!["d".to_owned()], vec!["a".to_owned()], 3));
    assert_eq!(journal.list(&Filter::default()).unwrap().len(), 4);
    // Of a chain, all or from its end.
    let told = journal.prune(prune(&["a", "b", "c"], false)).unwrap();
    assert_eq!((told.ids.len(), told.kept.len()), (0, 3));
    let told = journal.prune(prune(&["c", "d"], false)).unwrap();
    assert_eq!(told.ids, ["c", "d"]);
    assert_eq!(ids(journal, &Filter::default()), ["b", "a"]);
}
