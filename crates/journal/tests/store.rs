//! The journal in SQLite holds what every store must hold.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod suite;

use wt_journal::{Journal as _, SqliteJournal};

#[test]
fn sqlite_holds_what_every_store_must_hold() {
    for (name, check) in suite::CHECKS {
        let folder = tempfile::tempdir().unwrap();
        eprintln!("{name}");
        check(&mut SqliteJournal::open(&folder.path().join("journal.sqlite3")).unwrap());
    }
}

#[test]
fn of_those_who_go_on_with_one_experiment_at_once_one_is_let() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("journal.sqlite3");
    let let_on = suite::who_goes_on_with_a(|| SqliteJournal::open(&path).unwrap());
    assert_eq!(let_on.len(), 1, "{let_on:?}");
    let by = SqliteJournal::open(&path).unwrap().continued_by("a").unwrap();
    assert_eq!(by.as_deref(), Some(let_on[0].as_str()));
}
