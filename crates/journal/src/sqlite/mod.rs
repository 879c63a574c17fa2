//! The journal in a file of SQLite.
//!
//! The file is in write-ahead mode with `synchronous = NORMAL`: what is committed survives the end of the process,
//! `kill -9` included; a power failure may lose the last trials but never damages the file. `FULL` would wait for the
//! disk in the middle of a measurement, for trials that a power failure has spoilt anyway.
//!
//! # Source
//! <https://www.sqlite.org/pragma.html#pragma_synchronous>, <https://www.sqlite.org/wal.html>

/// Words and JSON in columns.
mod codec;
/// The file: where it lies, and how it is made.
mod file;
/// Reading.
mod read;
/// Numbered migrations, and whose file it is.
mod schema;
/// Hosts over time.
mod sightings;
/// Writing.
mod write;

pub use file::default_path;

use crate::{
    ExperimentSummary, Filter, Journal, JournalError, NewExperiment, Orphans, Owner, Prune, PruneOutcome, Sighting,
    State, StoredExperiment, TrialId, TrialRow, WithSamples,
};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_trial::{TrialOutcome, TrialRecord, TrialSpec};

/// How long to wait for another program that writes; its transactions take milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// A journal in a file of SQLite.
#[derive(Debug)]
pub struct SqliteJournal {
    connection: Connection,
    path: PathBuf,
}

impl SqliteJournal {
    /// Opens the journal, and makes it if there is none: the file for its owner only (0600), missing directories too
    /// (0700). A file of an older schema is brought up to date.
    ///
    /// # Errors
    /// [`JournalError::Open`]; [`JournalError::NotAJournal`] and [`JournalError::Newer`] leave the file untouched.
    pub fn open(path: &Path) -> Result<Self, JournalError> {
        file::must_not_be_special(path)?;
        file::make(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(path, flags).map_err(|e| database_error(path, &e))?;
        let mut journal = Self { connection, path: path.to_owned() };
        journal.prepare()?;
        Ok(journal)
    }

    /// Opens a journal to read it only: the file is left as it is, be it of another owner.
    ///
    /// # Errors
    /// [`JournalError::Open`], [`JournalError::NotAJournal`], [`JournalError::Newer`]; [`JournalError::Other`] for one of an
    /// older schema, which its own program has to bring up to date first.
    pub fn open_to_read(path: &Path) -> Result<Self, JournalError> {
        file::must_not_be_special(path)?;
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let open = |name: &Path, flags| {
            let connection = Connection::open_with_flags(name, flags).map_err(|e| database_error(path, &e))?;
            connection.busy_timeout(PATIENCE).map_err(|e| database_error(path, &e))?;
            schema::must_be_readable(&connection, path)?;
            Ok(Self { connection, path: path.to_owned() })
        };
        match open(path, flags) {
            // In write-ahead mode even reading makes a file beside it, which a read-only medium, a full one and a folder of somebody
            // else don't take.
            Err(JournalError::Open { .. } | JournalError::Full { .. } | JournalError::ReadOnly { .. })
                if file::is_whole(path) =>
            {
                open(&file::immutable(path), flags | OpenFlags::SQLITE_OPEN_URI)
            }
            // Nobody asked to write.
            Err(JournalError::ReadOnly { path }) => {
                let why = "its latest trials are still in the file beside it that ends in -wal, which only those who may write \
                           in its folder can read";
                Err(JournalError::Open { path, why: why.to_owned() })
            }
            opened => opened,
        }
    }

    /// From now on this is how long a call waits for another program that writes, before it is [`JournalError::Busy`].
    ///
    /// # Errors
    /// [`JournalError`]: none is known.
    pub fn wait_at_most(&mut self, patience: Duration) -> Result<(), JournalError> {
        self.connection.busy_timeout(patience).map_err(|e| database_error(&self.path, &e))
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn prepare(&mut self) -> Result<(), JournalError> {
        let path = &self.path;
        self.connection.busy_timeout(PATIENCE).map_err(|e| database_error(path, &e))?;
        schema::bring_up_to_date(&mut self.connection, path)?;
        // Two that open a new file at once: the loser of this switch follows the winner at its next transaction. On a
        // read-only file reading still works.
        match self.connection.pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get::<_, String>(0)) {
            Ok(_) => {}
            Err(e) if matches!(e.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::ReadOnly)) => {}
            Err(e) => return Err(database_error(path, &e)),
        }
        for (name, value) in [("synchronous", "NORMAL"), ("foreign_keys", "ON")] {
            self.connection.pragma_update(None, name, value).map_err(|e| database_error(path, &e))?;
        }
        Ok(())
    }

    /// What the database says, in our words.
    fn error(&self, error: &rusqlite::Error) -> JournalError {
        database_error(&self.path, error)
    }

    /// Reads something; an error becomes one of ours.
    fn read<T>(&self, read: impl FnOnce() -> Result<T, Trouble>) -> Result<T, JournalError> {
        read().map_err(|trouble| trouble.into_error(&self.path))
    }
}

impl Journal for SqliteJournal {
    fn create_experiment(&mut self, new: &NewExperiment) -> Result<(), JournalError> {
        self.write_experiment(new)
    }

    fn begin_trial(&mut self, spec: &TrialSpec, started_unix_us: i64) -> Result<TrialId, JournalError> {
        self.write_trial(spec, started_unix_us)
    }

    fn finish_trial(&mut self, id: TrialId, outcome: &TrialOutcome) -> Result<(), JournalError> {
        self.write_outcome(id, outcome)
    }

    fn finish_experiment(
        &mut self,
        id: &str,
        state: State,
        ended_unix_us: i64,
        verdict: Option<&serde_json::Value>,
    ) -> Result<(), JournalError> {
        self.write_end(id, state, ended_unix_us, verdict)
    }

    fn list(&self, filter: &Filter) -> Result<Vec<ExperimentSummary>, JournalError> {
        self.read_list(filter)
    }

    fn load(&self, key: &str) -> Result<StoredExperiment, JournalError> {
        let id = self.find(key)?;
        self.read_experiment(&id)
    }

    fn for_each_trial_from(
        &self,
        id: &str,
        from: TrialId,
        samples: WithSamples,
        each: &mut dyn FnMut(TrialRecord) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        self.read_trials(id, from, samples, each)
    }

    fn rows(&self, id: &str) -> Result<Vec<TrialRow>, JournalError> {
        self.read_rows(id)
    }

    fn continued_by(&self, id: &str) -> Result<Option<String>, JournalError> {
        self.read_continuation(id)
    }

    fn mark_orphans(&mut self, is_alive: &dyn Fn(&str, &Owner) -> bool) -> Result<Orphans, JournalError> {
        self.write_orphans(is_alive)
    }

    fn import(&mut self, experiment: &StoredExperiment, trials: &[TrialRecord]) -> Result<(), JournalError> {
        self.write_import(experiment, trials)
    }

    fn prune(&mut self, what: Prune) -> Result<PruneOutcome, JournalError> {
        self.delete(&what)
    }

    fn note(&mut self, kind: &str, seen: &[Sighting]) -> Result<(), JournalError> {
        self.write_sightings(kind, seen)
    }

    fn sightings(&self, kind: &str, host: Option<&str>, most: usize) -> Result<Vec<Sighting>, JournalError> {
        self.read_sightings(kind, host, most)
    }
}

/// What ends a piece of work with the database.
enum Trouble {
    /// The database says so.
    Database(rusqlite::Error),
    /// A column holds what is invalid.
    Senseless(String),
    /// We say so.
    Ours(JournalError),
}

impl Trouble {
    fn into_error(self, path: &Path) -> JournalError {
        match self {
            Self::Database(e) => database_error(path, &e),
            Self::Senseless(what) => JournalError::Damaged { path: path.to_owned(), what },
            Self::Ours(e) => e,
        }
    }

    /// Says where the senseless thing stands.
    fn of(self, whose: impl std::fmt::Display) -> Self {
        match self {
            Self::Senseless(what) => Self::Senseless(format!("{whose}: {what}")),
            other => other,
        }
    }
}

impl From<rusqlite::Error> for Trouble {
    fn from(error: rusqlite::Error) -> Self {
        Self::Database(error)
    }
}

impl From<JournalError> for Trouble {
    fn from(error: JournalError) -> Self {
        Self::Ours(error)
    }
}

/// What the database says, by what can be done about it.
fn database_error(path: &Path, error: &rusqlite::Error) -> JournalError {
    let path = path.to_owned();
    let extended = error.sqlite_error().map(|e| e.extended_code);
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => JournalError::Full { path },
        // The shared-memory file beside the journal can't grow.
        _ if extended == Some(rusqlite::ffi::SQLITE_IOERR_SHMSIZE) => JournalError::Full { path },
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => JournalError::Busy { path },
        Some(ErrorCode::ReadOnly) => JournalError::ReadOnly { path },
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            JournalError::Open { path, why: error.to_string() }
        }
        Some(ErrorCode::NotADatabase) => {
            JournalError::NotAJournal { path, why: "it is no database of SQLite".to_owned() }
        }
        Some(ErrorCode::DatabaseCorrupt) => JournalError::Damaged { path, what: error.to_string() },
        _ => match error {
            rusqlite::Error::FromSqlConversionFailure(..)
            | rusqlite::Error::IntegralValueOutOfRange(..)
            | rusqlite::Error::InvalidColumnType(..) => JournalError::Damaged { path, what: error.to_string() },
            _ => JournalError::Other { path, why: error.to_string() },
        },
    }
}

#[cfg(test)]
mod tests;
