//! Changes that are made whole or not at all, and that don't stay unless somebody says so.
//!
//! A checkpoint on disk says how everything was and how it is to be. Beside it, a small state file says how far the
//! change has come; it is replaced in one step. A *guard*, a process of its own with a stand-in, waits until the change
//! is confirmed; if that doesn't happen in time, or if the process that makes the change dies, it puts everything back.
//! Whoever comes next and finds a change that nobody guards any more does the same.

/// Making changes.
mod apply;
/// What is stored.
mod checkpoint;
/// Making changes stay.
mod confirm;
/// The process that puts everything back.
mod guard;
/// What was done, and whether it still holds.
mod history;
/// Putting everything back.
mod revert;
/// Where it is stored.
mod store;
/// Taking changes back.
mod undo;

pub use apply::{Applied, AppliedRow, ApplyOptions, RevertReport, apply};
pub use checkpoint::{Checkpoint, Phase, State};
pub use confirm::{Confirmed, confirm};
pub use guard::{GuardCommand, GuardOptions, guard};
pub use history::{Drift, HistoryRow, Pending, Recovered, VerifyReport, history, pending, recover, verify};
pub(crate) use store::from_bytes;
pub use store::{CheckpointId, Store, StoreError};
pub use undo::{Undone, undo};

use crate::plan::Risk;
use wt_sys::SysError;

/// Why a change wasn't made, didn't stay or couldn't be taken back.
#[derive(Debug, thiserror::Error)]
pub enum TxnError {
    /// Another process is at it.
    #[error("another windtunnel changes the settings right now{holder}")]
    Busy {
        /// Which.
        holder: String,
    },
    /// An earlier change waits for its confirmation.
    #[error("change {id} waits for its confirmation")]
    Pending {
        /// Which.
        id: CheckpointId,
    },
    /// The process may not.
    #[error("{what} needs CAP_NET_ADMIN over this network namespace")]
    NotPrivileged {
        /// What was tried.
        what: String,
    },
    /// The setting belongs to another network namespace.
    #[error("{what} can be changed in the first network namespace only")]
    OtherNamespace {
        /// What was tried.
        what: String,
    },
    /// Something could not be put back if it were changed, so nothing was.
    #[error(
        "nothing was changed: the present state can't be written back, so the change couldn't be undone ({source})"
    )]
    Irreversible {
        /// What the kernel said.
        source: SysError,
    },
    /// The checkpoint couldn't be stored, so nothing was changed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The guard didn't start, so nothing was changed.
    #[error("nothing was changed: the guard that would put everything back didn't start ({0})")]
    Guard(String),
    /// Writing, or checking what was written, failed; what came of putting it back is in the report.
    #[error("{cause}")]
    Failed {
        /// What failed.
        cause: String,
        /// What was asked and granted, and whether it was put back.
        report: Box<Applied>,
    },
    /// There is nothing that waits.
    #[error("no change waits for a confirmation")]
    NothingPending,
    /// Somebody has changed it since, so that it isn't what was applied that would stay.
    #[error("change {id} isn't confirmed, for it isn't in force any more: {}", what.join("; "))]
    Drifted {
        /// Which.
        id: CheckpointId,
        /// What isn't as it was made.
        what: Vec<String>,
    },
    /// Its time is up; everything was put back.
    #[error("change {id} was put back: the confirmation came too late")]
    TooLate {
        /// Which.
        id: CheckpointId,
    },
    /// There is nothing to take back.
    #[error("there is no change to undo")]
    NothingToUndo,
    /// It isn't in force.
    #[error("change {id} isn't in force: it is {phase}")]
    NotInForce {
        /// Which.
        id: CheckpointId,
        /// How far it has come.
        phase: Phase,
    },
    /// It was made somewhere else.
    #[error("change {id} was made in another network namespace ({network})")]
    OtherNetwork {
        /// Which.
        id: CheckpointId,
        /// Where.
        network: String,
    },
    /// Later changes build on it.
    #[error("change {later} was made later to the same settings: undo that one first")]
    Later {
        /// The later one.
        later: CheckpointId,
    },
    /// The files that make it stay couldn't be written; it is in force, but doesn't stay.
    #[error("{source}; nothing was written that stays, and the change still waits for its confirmation")]
    NotPersistent {
        /// What the file system said.
        source: SysError,
    },
    /// Something couldn't be put back.
    #[error("not everything could be put back: {}", errors.join("; "))]
    NotPutBack {
        /// What, and what the kernel said.
        errors: Vec<String>,
        /// The file with the old state.
        backup: String,
        /// Whether, instead, everything is as it was before.
        as_before: bool,
    },
    /// The kernel couldn't be read.
    #[error(transparent)]
    System(#[from] SysError),
}

/// A note for people on what was left out.
pub(crate) fn note(key: &str, text: impl Into<String>) -> Risk {
    Risk { key: key.to_owned(), text: text.into() }
}
