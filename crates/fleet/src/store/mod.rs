//! The journal in a database of PostgreSQL: the tables of the one in SQLite, with the site that measured.
//!
//! Each statement says its parameters' types and is sent unnamed, so that a pooler that shares connections between
//! transactions may stand in between. A trial's number is the one that it has at its site.
//!
//! # Source
//! PostgreSQL 15: "JSON Types", "Explicit Locking"; PgBouncer, "Features".

/// Writing as an agent does: by functions, which is all that it may call.
mod agent;
/// Reading.
mod read;
/// Numbered migrations, and whose database it is.
mod schema;
/// Hosts over time.
mod sightings;
/// What lists show of an experiment.
mod summary;
/// Trials as columns.
mod trials;
/// Writing.
mod write;

pub use agent::{AgentState, AgentStore, FleetIdentity, FleetJob, JobEnd};
pub use trials::PushedTrials;
pub(crate) use write::{ANOTHER, Mark, head_of};

use crate::address::StoreAddress;
use crate::client::{Client, Transaction, TypedValue, said};
use postgres::Row;
use postgres::error::SqlState;
use std::cell::RefCell;
use std::path::{Path, PathBuf};
use wt_journal::{
    ExperimentSummary, Filter, Journal, JournalError, NewExperiment, Orphans, Owner, Prune, PruneOutcome, Sighting,
    State, StoredExperiment, TrialId, TrialRow, WithSamples,
};
use wt_trial::{TrialOutcome, TrialRecord, TrialSpec};

/// A journal in PostgreSQL.
pub struct PgJournal {
    client: RefCell<Client>,
    /// The address without a password, where errors have the path of a file.
    place: PathBuf,
    /// The site in whose name is written.
    site: String,
}

impl std::fmt::Debug for PgJournal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PgJournal").field("place", &self.place).field("site", &self.site).finish_non_exhaustive()
    }
}

impl PgJournal {
    /// Opens the journal to read and write in the name of a site, and makes its tables if there are none. Tables of an older
    /// schema are brought up to date.
    ///
    /// # Errors
    /// [`JournalError::Unreachable`]; [`JournalError::NotAJournal`] and [`JournalError::Newer`] leave the database untouched.
    pub fn open(address: &StoreAddress, site: &str) -> Result<Self, JournalError> {
        let mut journal = Self::connect(address, site)?;
        let place = journal.place.clone();
        schema::bring_up_to_date(journal.client.get_mut(), &place)?;
        Ok(journal)
    }

    /// Opens a journal to read it only: nothing is made and nothing is brought up to date.
    ///
    /// # Errors
    /// [`JournalError::Unreachable`], [`JournalError::NotAJournal`], [`JournalError::Newer`]; [`JournalError::Other`] for one of
    /// an older schema.
    pub fn open_to_read(address: &StoreAddress) -> Result<Self, JournalError> {
        let mut journal = Self::connect(address, "")?;
        let place = journal.place.clone();
        schema::must_be_readable(journal.client.get_mut(), &place)?;
        Ok(journal)
    }

    fn connect(address: &StoreAddress, site: &str) -> Result<Self, JournalError> {
        let place = PathBuf::from(address.to_string());
        match address.connect() {
            Ok(client) => Ok(Self { client: RefCell::new(client), place, site: site.to_owned() }),
            Err(why) => Err(JournalError::Unreachable { path: place, why }),
        }
    }

    /// Where it is, without a password.
    #[must_use]
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The rows of a statement; what is borrowed is given back before anybody sees them.
    fn rows_of(&self, sql: &str, parameters: &[TypedValue<'_>]) -> Result<Vec<Row>, Trouble> {
        Ok(self.client.borrow_mut().query_typed(sql, parameters)?)
    }

    /// Reads something; an error becomes one of the journal's.
    fn read<T>(&self, read: impl FnOnce() -> Result<T, Trouble>) -> Result<T, JournalError> {
        read().map_err(|trouble| trouble.into_error(&self.place))
    }

    /// Runs `work` as a whole or not at all; what is committed is on the server's disk.
    fn transact<T>(
        &mut self,
        work: impl FnOnce(&mut Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, JournalError> {
        let client = self.client.get_mut();
        let whole = (|| {
            let mut transaction = client.long_transaction()?;
            transaction.batch_execute("SET LOCAL synchronous_commit = on")?;
            let done = work(&mut transaction)?;
            transaction.commit()?;
            Ok(done)
        })();
        whole.map_err(|trouble: Trouble| trouble.into_error(&self.place))
    }
}

impl Journal for PgJournal {
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

/// What can be pushed to.
pub(crate) trait PushStore {
    /// Writes down an experiment or finds it, and gives its trials that are there already.
    fn begin(&mut self, stored: &StoredExperiment, site: &str) -> Result<Vec<Mark>, JournalError>;

    /// Writes those of an experiment's trials that aren't there yet; how many.
    fn write(&mut self, id: &str, trials: &[TrialRecord]) -> Result<u64, JournalError>;

    /// Writes down how it ended, where that isn't known yet; whether it wasn't.
    fn end(&mut self, stored: &StoredExperiment) -> Result<bool, JournalError>;
}

/// What ends a piece of work with the database.
enum Trouble {
    /// The database says so.
    Database(postgres::Error),
    /// A column holds what is invalid.
    Senseless(String),
    /// We say so.
    Ours(JournalError),
}

impl Trouble {
    fn into_error(self, place: &Path) -> JournalError {
        match self {
            Self::Database(error) => database_error(place, &error),
            Self::Senseless(what) => JournalError::Damaged { path: place.to_owned(), what },
            Self::Ours(error) => error,
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

impl From<postgres::Error> for Trouble {
    fn from(error: postgres::Error) -> Self {
        Self::Database(error)
    }
}

impl From<JournalError> for Trouble {
    fn from(error: JournalError) -> Self {
        Self::Ours(error)
    }
}

impl From<String> for Trouble {
    fn from(what: String) -> Self {
        Self::Senseless(what)
    }
}

/// Whether it isn't the server's answer, but that there is none.
pub(crate) fn is_gone(error: &postgres::Error) -> bool {
    error.code().is_none_or(|code| code.code().starts_with("57P") || code.code().starts_with("08"))
}

/// What the database says, by what can be done about it.
fn database_error(place: &Path, error: &postgres::Error) -> JournalError {
    let (path, why) = (place.to_owned(), said(error));
    let Some(code) = error.code() else {
        // No word of the server's: a row that can't be read, or a connection that is gone.
        return if error.is_closed()
            || std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>())
        {
            JournalError::Unreachable { path, why }
        } else {
            JournalError::Damaged { path, what: why }
        };
    };
    match code {
        code if [&SqlState::DISK_FULL, &SqlState::OUT_OF_MEMORY].contains(&code) => JournalError::Full { path },
        code if [&SqlState::LOCK_NOT_AVAILABLE, &SqlState::T_R_DEADLOCK_DETECTED].contains(&code) => {
            JournalError::Busy { path }
        }
        code if *code == SqlState::READ_ONLY_SQL_TRANSACTION => JournalError::ReadOnly { path },
        code if *code == SqlState::INSUFFICIENT_PRIVILEGE => JournalError::Open { path, why },
        code if code.code().starts_with("57P") || code.code().starts_with("08") => {
            JournalError::Unreachable { path, why }
        }
        code if code.code() == "22021" => JournalError::Unwritable { what: "a text", why },
        _ => JournalError::Other { path, why },
    }
}

fn missing(id: &str) -> Trouble {
    JournalError::NoSuchExperiment { key: id.to_owned(), nearest: Vec::new() }.into()
}
