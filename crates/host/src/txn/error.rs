use super::outcome::ApplyOutcome;
use crate::change::{CheckpointId, CheckpointIdError, DROP_IN, Phase};
use std::path::PathBuf;
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
    /// What would make it stay can't be written, so nothing was changed.
    #[error(
        "nothing was changed: {DROP_IN} isn't an ordinary file (a link to /dev/null masks it), so the change couldn't be confirmed"
    )]
    NoPlace,
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
        report: Box<ApplyOutcome>,
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
    /// An earlier change couldn't be put back, and is still partly in force.
    #[error("change {id} couldn't be put back{}", reasons(errors))]
    Stuck {
        /// Which.
        id: CheckpointId,
        /// What isn't as it was.
        errors: Vec<String>,
    },
    /// What the plan was made for isn't so any more.
    #[error("nothing was changed: {} changed while the change was planned", what.join(", "))]
    Stale {
        /// What was changed by somebody else.
        what: Vec<String>,
    },
    /// Its time is up, and it isn't put back yet.
    #[error("change {id} can't be confirmed any more: its time is up, and it is to be put back{}", reasons(errors))]
    Expired {
        /// Which.
        id: CheckpointId,
        /// Why it couldn't be so far.
        errors: Vec<String>,
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
    #[error("change {later} was made later to the same settings, or to a copy of them: undo that one first")]
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

/// What follows a sentence that has reasons.
fn reasons(errors: &[String]) -> String {
    if errors.is_empty() { String::new() } else { format!(": {}", errors.join("; ")) }
}

/// Why a checkpoint can't be stored or isn't believed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It isn't the number of a checkpoint.
    #[error(transparent)]
    BadId(#[from] CheckpointIdError),
    /// There is none of this number.
    #[error("there is no change {0}: windtunnel settings history lists them")]
    NoSuch(CheckpointId),
    /// The file belongs to somebody else.
    #[error("{} belongs to user {owner}, not to user {wanted}: it isn't ours and is not used", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Whose it is.
        owner: u32,
        /// Whose it must be.
        wanted: u32,
    },
    /// Others than the owner can change it.
    #[error("{} can be changed by others than its owner (mode {mode:04o}): it is not used", path.display())]
    Writable {
        /// The file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// It is a link, a device, or the like.
    #[error("{} is not an ordinary file or directory: it is not used", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
    },
    /// It can't be read: it was cut off, or is something else.
    #[error("{} is damaged or truncated and is not used: {why}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        why: String,
    },
    /// A newer program wrote it.
    #[error("{} was written by a newer windtunnel (schema {found}; this one knows {known}): it is not used", path.display())]
    Newer {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// The file system failed.
    #[error(transparent)]
    System(#[from] SysError),
}
