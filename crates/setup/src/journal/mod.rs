//! The journal: opened, what its failures mean, and what is in it.

/// Taking in, and pruning.
mod kept;
/// What is in it.
mod shown;

pub use kept::{ImportAnswer, PruneAnswer, PruneRequest, RefusedExperiment, import, prune};
pub use shown::{
    ExperimentRequest, ListAnswer, ListRequest, SampledTrial, SamplesAnswer, SamplesRequest, ShowAnswer, list, samples,
    show,
};

use std::path::Path;
use wt_journal::{Claim, Journal as _, JournalError, Owner, SqliteJournal};
use wt_problem::Problem;
use wt_sys::process::ProcessIdentity;

/// Who we are, for the journal.
pub fn own_identity() -> Owner {
    let ProcessIdentity { pid, start_ticks, boot_id } = ProcessIdentity::own();
    Owner { pid, start_ticks, boot_id }
}

/// Opens the journal, and says of trials whose program died that they were aborted.
///
/// # Errors
/// A [`Problem`] that names the file and what to try.
pub fn open(path: Option<&Path>) -> Result<SqliteJournal, Problem> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => wt_journal::default_path(|name| std::env::var_os(name)).ok_or_else(|| {
            Problem::environment(
                "there is no place for the journal: neither XDG_DATA_HOME nor HOME is an absolute path",
            )
            .hint("name a file with --journal")
        })?,
    };
    let mut journal = SqliteJournal::open(&path).map_err(|error| problem(&error))?;
    let alive = |id: &str, owner: &Owner| {
        let Owner { pid, start_ticks, boot_id } = owner.clone();
        let same_process = || ProcessIdentity { pid, start_ticks, boot_id }.is_alive();
        Claim::is_held(&path, id).unwrap_or_else(same_process)
    };
    journal.mark_orphans(&alive).map_err(|error| problem(&error))?;
    Ok(journal)
}

/// What to say when the journal fails.
pub fn problem(error: &JournalError) -> Problem {
    let text = error.to_string();
    match error {
        JournalError::NoSuchExperiment { .. } | JournalError::Ambiguous { .. } | JournalError::Empty { .. } => {
            Problem::usage(text).hint("windtunnel journal list shows what there is")
        }
        JournalError::Full { .. } => {
            Problem::environment(text).hint("free some space, or choose another file with --journal")
        }
        JournalError::Open { .. } | JournalError::ReadOnly { .. } | JournalError::NotAJournal { .. } => {
            Problem::environment(text).hint("choose another file with --journal")
        }
        JournalError::Newer { .. } => Problem::environment(text).hint("use the newer Windtunnel, or another --journal"),
        JournalError::NotAnExport { .. } => Problem::usage(text).hint(
            "windtunnel journal export writes what import reads (json, flent); or name a journal, an SQLite file",
        ),
        JournalError::Busy { .. } => Problem::environment(text).hint("wait until the other program has ended"),
        _ => Problem::internal(text),
    }
}
