use super::id::CheckpointId;
use crate::system::Now;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use utoipa::ToSchema;
use wt_sys::process::ProcessIdentity;

/// What a state file says it is.
pub(crate) const STATE_FORMAT: &str = "windtunnel-state";
/// The version of the files of a checkpoint and its state.
pub(crate) const SCHEMA_VERSION: u32 = 1;
/// The name of our drop-in.
pub(crate) const DROP_IN_NAME: &str = "90-windtunnel.conf";
/// Where it is.
pub const DROP_IN: &str = "/etc/sysctl.d/90-windtunnel.conf";

/// How far a change has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ChangePhase)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Stored; nothing is written yet.
    Prepared,
    /// Being written.
    Applying,
    /// In force; waits for its confirmation.
    Applied,
    /// The files that make it stay are being written.
    Confirming,
    /// In force, and stays.
    Confirmed,
    /// Being put back.
    Reverting,
    /// Put back, without ever having been confirmed.
    Reverted,
    /// Not everything could be put back.
    RevertFailed,
    /// Being taken back after it was confirmed.
    Undoing,
    /// Taken back.
    Undone,
    /// Gone with a reboot, never having been confirmed.
    Lapsed,
    /// Left as it is, because somebody said so.
    Forgotten,
}

impl Phase {
    /// The word in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Prepared => "prepared",
            Self::Applying => "applying",
            Self::Applied => "applied",
            Self::Confirming => "confirming",
            Self::Confirmed => "confirmed",
            Self::Reverting => "reverting",
            Self::Reverted => "reverted",
            Self::RevertFailed => "revert-failed",
            Self::Undoing => "undoing",
            Self::Undone => "undone",
            Self::Lapsed => "lapsed",
            Self::Forgotten => "forgotten",
        }
    }

    /// Whether nothing of it is left to do.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Confirmed | Self::Reverted | Self::Undone | Self::Lapsed | Self::Forgotten)
    }

    /// Whether nothing of it is left to do, and nothing of it can be taken back any more: nothing follows.
    #[must_use]
    pub(crate) fn is_out_of_force(self) -> bool {
        self.is_over() && self != Self::Confirmed
    }

    /// Whether its values are the present ones.
    #[must_use]
    pub fn is_in_force(self) -> bool {
        matches!(self, Self::Applied | Self::Confirming | Self::Confirmed)
    }
}

impl std::fmt::Display for Phase {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// How far a change has come, and what is needed to go on. Replaced in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct State {
    /// What the file is.
    pub format: String,
    /// The version of this form.
    pub schema_version: u32,
    /// How far.
    pub phase: Phase,
    /// When it is put back unless it is confirmed: nanoseconds since boot.
    pub deadline_ns: Option<u64>,
    /// The same for people: seconds since 1970.
    pub deadline_unix_s: Option<u64>,
    /// How long one may take to confirm, seconds.
    pub confirm_within_s: u64,
    /// When the process that makes the change counts as hung: nanoseconds since boot.
    pub apply_until_ns: u64,
    /// Keys of routes that changed along, once that is known.
    pub along: Option<Vec<String>>,
    /// The process that has taken it out of the kernel for a while, as [`ProcessIdentity`] writes it; older versions don't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_by: Option<String>,
    /// Files that make it stay.
    pub files: Vec<FileChange>,
    /// Since when it has been so, seconds since 1970.
    pub since_unix_s: u64,
    /// What went wrong.
    pub errors: Vec<String>,
    /// What was put back elsewhere, or is gone: devices that were renamed or removed meanwhile.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Whether the guard put it back, rather than a person.
    pub by_guard: bool,
}

impl State {
    /// The state of a fresh checkpoint.
    pub(crate) fn prepared(now: Now, confirm_within_s: u64) -> Self {
        /// Nothing that is written takes longer, unless a driver hangs.
        const LONGEST_APPLY_NS: u64 = 60_000_000_000;
        Self {
            format: STATE_FORMAT.to_owned(),
            schema_version: SCHEMA_VERSION,
            phase: Phase::Prepared,
            deadline_ns: None,
            deadline_unix_s: None,
            confirm_within_s,
            apply_until_ns: now.boottime_ns.saturating_add(LONGEST_APPLY_NS),
            along: None,
            out_by: None,
            files: Vec::new(),
            since_unix_s: now.unix_s,
            errors: Vec::new(),
            notes: Vec::new(),
            by_guard: false,
        }
    }

    /// Whether it is out of the kernel though it is in force: whoever took it out for a while is gone.
    pub(crate) fn was_left_out(&self, boottime_ns: u64) -> bool {
        let stays = self.phase == Phase::Confirmed || self.phase == Phase::Applied && !self.is_expired(boottime_ns);
        let by = self.out_by.as_ref().map(|text| text.parse::<ProcessIdentity>());
        stays && by.is_some_and(|by| !by.is_ok_and(|by| by.is_alive()))
    }

    /// Whether it waits for a confirmation for which it is too late.
    #[must_use]
    pub fn is_expired(&self, boottime_ns: u64) -> bool {
        self.deadline_ns.is_none_or(|deadline| boottime_ns >= deadline)
    }
}

/// A file that a confirmation writes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileChange {
    /// Which.
    pub path: PathBuf,
    /// What it held, in hexadecimal digits; `None` if it wasn't there.
    pub(crate) old: Option<String>,
    /// What it is to hold; `None` takes it away.
    pub(crate) new: Option<String>,
    /// Permission bits.
    pub(crate) mode: u32,
}

/// A change that waits for its confirmation.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Pending {
    /// Which.
    pub id: CheckpointId,
    /// How far it has come.
    pub phase: Phase,
    /// When it is put back.
    pub confirm_deadline: Option<String>,
    /// Seconds until then.
    pub seconds_left: u64,
    /// Whether a guard watches it.
    pub guarded: bool,
}
