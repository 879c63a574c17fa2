use super::finding::HostFinding;
use std::path::Path;
use wt_journal::{Journal as _, Sighting, SqliteJournal};
use wt_problem::Problem;

/// What findings are called in the journal.
pub(super) const KIND: &str = "first-window";
/// Findings that are written at once.
const BATCH: usize = 256;

/// Writes findings into a journal.
pub(super) struct Recorder {
    journal: SqliteJournal,
    waiting: Vec<Sighting>,
}

impl Recorder {
    /// Opens the journal.
    ///
    /// # Errors
    /// A problem that names it.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Problem> {
        Ok(Self { journal: wt_setup::journal::open(path)?, waiting: Vec::new() })
    }

    /// Writes one down, if its host was asked.
    ///
    /// # Errors
    /// A problem that names the journal.
    pub(super) fn add(&mut self, finding: &HostFinding) -> Result<(), Problem> {
        if !finding.is_of_a_host() {
            return Ok(());
        }
        let found = serde_json::to_value(finding).map_err(|error| Problem::internal(error.to_string()))?;
        let at_unix_us = wt_sys::clock::unix_us();
        self.waiting.push(Sighting { host: finding.host.clone(), at_unix_us, found });
        if self.waiting.len() >= BATCH { self.flush() } else { Ok(()) }
    }

    /// Writes down what waits.
    ///
    /// # Errors
    /// A problem that names the journal.
    pub(super) fn flush(&mut self) -> Result<(), Problem> {
        let waiting = std::mem::take(&mut self.waiting);
        self.journal.note(KIND, &waiting).map_err(|error| wt_setup::journal::problem(&error))
    }
}
