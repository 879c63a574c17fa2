//! The journal in SQLite holds what every store must hold.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod suite;

use wt_journal::SqliteJournal;

#[test]
fn sqlite_holds_what_every_store_must_hold() {
    for (name, check) in suite::CHECKS {
        let folder = tempfile::tempdir().unwrap();
        eprintln!("{name}");
        check(&mut SqliteJournal::open(&folder.path().join("journal.sqlite3")).unwrap());
    }
}
