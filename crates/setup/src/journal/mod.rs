//! The journal: opened, what its failures mean, and what is in it.

/// Writing an experiment out.
mod exported;
/// Taking in, and pruning.
mod kept;
/// What goes to the journal of many hosts.
mod pushed;
/// What is in it.
mod shown;

pub use exported::{ExportAnswer, ExportFormat, ExportRequest, continued, export, export_to_file};
pub use kept::{ImportAnswer, IncompleteExperiment, PruneAnswer, PruneRequest, RefusedExperiment, import, prune};
pub use pushed::{
    PushAnswer, PushRequest, PushedExperiment, StatusRequest, measured_by, push, push_measured, reached, status,
    store_address,
};
pub use shown::{
    EXPERIMENT_KINDS, ExperimentRequest, ListAnswer, ListRequest, SampledTrial, SamplesAnswer, SamplesRequest,
    ShowAnswer, list, samples, show,
};

use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_fleet::{PgJournal, StoreAddress};
use wt_journal::{Claim, Journal, JournalError, Owner, SqliteJournal};
use wt_problem::Problem;
use wt_sys::process::ProcessIdentity;

/// How long a server with a journal has for each answer where somebody scrapes, and waits.
pub(crate) const SCRAPE: Duration = Duration::from_secs(1);

/// Who we are, for the journal.
pub fn own_identity() -> Owner {
    let ProcessIdentity { pid, start_ticks, boot_id } = ProcessIdentity::own();
    Owner { pid, start_ticks, boot_id }
}

/// The address of a journal in PostgreSQL, where that and no file is named; the password may come from the environment.
fn address(named: Option<&Path>) -> Option<Result<StoreAddress, Problem>> {
    let text = named?.to_str().filter(|text| StoreAddress::is_meant(text))?;
    let wrong = |error: wt_fleet::AddressError| {
        Problem::usage(format!("invalid address of a journal: {error}"))
            .hint("postgresql://USER@HOST/DATABASE, with the password in PGPASSWORD or ~/.pgpass")
    };
    Some(text.parse::<StoreAddress>().map_err(wrong).map(|it| it.with_password_of(|name| std::env::var_os(name))))
}

/// Whether what `--journal` names is a journal in PostgreSQL, and no file.
#[must_use]
pub fn is_common(named: Option<&Path>) -> bool {
    address(named).is_some()
}

/// Opens what `--journal` names to read it: this host's journal or another file as [`open`] does, or one in PostgreSQL.
///
/// # Errors
/// A [`Problem`] that names the file or the address, and what to try.
pub fn open_to_read(named: Option<&Path>) -> Result<Box<dyn Journal>, Problem> {
    if let Some(address) = address(named) {
        return Ok(Box::new(PgJournal::open_to_read(&address?).map_err(|error| problem(&error))?));
    }
    let path = file(named)?;
    // Who only reads makes no journal of it.
    if named.is_some() && std::fs::metadata(&path).is_ok_and(|file| file.is_file() && file.len() == 0) {
        return Err(problem(&JournalError::NotAJournal { path, why: "it is empty".to_owned() }));
    }
    Ok(Box::new(match opened(&path) {
        // What can't be written is read as it stands.
        Err(error @ (JournalError::Open { .. } | JournalError::ReadOnly { .. } | JournalError::Full { .. })) => {
            // That it can't be written isn't what ends this.
            let is_read_only = matches!(error, JournalError::ReadOnly { .. });
            SqliteJournal::open_to_read(&path)
                .map_err(|of_reading| problem(if is_read_only { &of_reading } else { &error }))?
        }
        journal => journal.map_err(|error| problem(&error))?,
    }))
}

/// Refuses a file that isn't there: who only reads makes no journal, least of all where a name is mistyped.
///
/// # Errors
/// A usage [`Problem`] that names the file.
pub fn must_exist(named: Option<&Path>) -> Result<(), Problem> {
    match named {
        Some(path) if !is_common(named) && !path.exists() => {
            Err(Problem::usage(format!("there is no journal {}", path.display()))
                .hint("check its name; windtunnel tune --journal FILE makes one"))
        }
        _ => Ok(()),
    }
}

/// Opens what `--journal` names to take experiments in or throw them away: what isn't a measurement may go to a journal in
/// PostgreSQL at once, in this host's name.
///
/// # Errors
/// As [`open_to_read`].
pub(crate) fn open_to_keep(named: Option<&Path>) -> Result<Box<dyn Journal>, Problem> {
    match address(named) {
        None => Ok(Box::new(open(named)?)),
        Some(address) => {
            let site = crate::machine::host_name().unwrap_or_else(|| "unknown".to_owned());
            Ok(Box::new(PgJournal::open(&address?, &site).map_err(|error| problem(&error))?))
        }
    }
}

/// What [`open_to_read`] opens, as it stands: nothing is written to it, and none is made where there is none. A server has `patience` for each
/// answer, or as long as usual.
pub(crate) fn open_as_it_stands(named: Option<&Path>, patience: Option<Duration>) -> Option<Box<dyn Journal>> {
    if let Some(address) = address(named) {
        let address = address.ok()?;
        let address = match patience {
            Some(patience) => address.with_patience(patience),
            None => address,
        };
        return Some(Box::new(PgJournal::open_to_read(&address).ok()?));
    }
    let path = named.map(Path::to_owned).or_else(|| wt_journal::default_path(|name| std::env::var_os(name)))?;
    let journal = if path.exists() { SqliteJournal::open_to_read(&path).ok() } else { None };
    journal.map(|journal| -> Box<dyn Journal> { Box::new(journal) })
}

/// Opens this host's journal where `--journal` names one in PostgreSQL: what is measured is written here while it runs, and goes there
/// when it has ended. A file is opened as [`open`] does.
///
/// # Errors
/// As [`open`].
pub fn open_here(named: Option<&Path>) -> Result<SqliteJournal, Problem> {
    open(named.filter(|_| !is_common(named)))
}

/// Opens the journal, and says of trials whose program died that they were aborted.
///
/// # Errors
/// A [`Problem`] that names the file and what to try.
pub fn open(path: Option<&Path>) -> Result<SqliteJournal, Problem> {
    if let Some(address) = address(path) {
        let address = address?;
        return Err(Problem::usage(format!("{address} is no journal of this host, and here one is needed"))
            .hint("leave --journal away, or name a file"));
    }
    opened(&file(path)?).map_err(|error| problem(&error))
}

/// The file that is named, or the usual one.
fn file(named: Option<&Path>) -> Result<PathBuf, Problem> {
    named.map(Path::to_owned).or_else(|| wt_journal::default_path(|name| std::env::var_os(name))).ok_or_else(|| {
        Problem::environment("there is no place for the journal: neither XDG_DATA_HOME nor HOME is an absolute path")
            .hint("name a file with --journal")
    })
}

fn opened(path: &Path) -> Result<SqliteJournal, JournalError> {
    let mut journal = SqliteJournal::open(path)?;
    let alive = |id: &str, owner: &Owner| {
        let Owner { pid, start_ticks, boot_id } = owner.clone();
        let same_process = || ProcessIdentity { pid, start_ticks, boot_id }.is_alive();
        Claim::is_held(path, id).unwrap_or_else(same_process)
    };
    journal.mark_orphans(&alive)?;
    Ok(journal)
}

/// The experiments that are being measured right now, of the usual journal and of others on this machine; opens nothing.
pub fn running() -> Vec<String> {
    let path = wt_journal::default_path(|name| std::env::var_os(name));
    let mut running = path.map_or_else(Vec::new, |path| Claim::running(&path));
    running.extend(wt_sys::presence::Presence::of_others());
    running
}

/// What to say when the journal fails.
pub fn problem(error: &JournalError) -> Problem {
    let text = error.to_string();
    match error {
        JournalError::NoSuchExperiment { .. } | JournalError::Ambiguous { .. } | JournalError::Empty { .. } => {
            Problem::usage(text).hint("windtunnel journal list shows what there is")
        }
        JournalError::Continued { by, .. } => Problem::usage(text)
            .because("to go on from the same place again, until it turns out as hoped, would show what isn't there")
            .hint(format!("windtunnel tune --resume {by}")),
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
        JournalError::Unreachable { .. } => Problem::environment(text)
            .hint("check the address, that its server runs and lets you in: psql with the same address says more"),
        JournalError::Export(cause) => Problem::environment(text)
            .because(cause.to_string())
            .hint("free some space where it goes, or write it elsewhere; the journal is as it was"),
        JournalError::Damaged { path, .. } if !is_common(Some(path)) => {
            let path = path.to_string_lossy();
            let file = wt_units::shell_word(&path);
            Problem::environment(text).because("a failing disk, an incomplete copy or another program changed the file").hint(format!(
                "windtunnel journal import {file} --journal NEW takes in the experiments that are whole; sqlite3 {file} .dump shows \
                 what is left of the others"
            ))
        }
        JournalError::Busy { .. } => Problem::environment(text).hint("wait until the other program has ended"),
        _ => Problem::internal(text),
    }
}
