use super::store::CheckpointId;
use crate::persist::FileChange;
use crate::plan::{Change, Plan};
use crate::read::Survey;
use crate::snapshot::{Scope, Snapshot};
use crate::system::{Action, Identity};
use serde::{Deserialize, Serialize};

/// What a checkpoint file says it is.
pub(crate) const CHECKPOINT_FORMAT: &str = "windtunnel-checkpoint";
/// What a state file says it is.
pub(crate) const STATE_FORMAT: &str = "windtunnel-state";
/// The version of both files.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// How everything was before a change, and how it is to be. Written once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// What the file is.
    pub format: String,
    /// The version of this form.
    pub schema_version: u32,
    /// Which one.
    pub id: CheckpointId,
    /// When, seconds since 1970.
    pub created_unix_s: u64,
    /// Where, and by whom.
    pub identity: Identity,
    /// What was asked for.
    pub to: String,
    /// In our words.
    pub changes: Vec<Change>,
    /// What was to be written.
    pub actions: Vec<Action>,
    /// The state that was wanted, within the scope.
    pub wanted: Snapshot,
    /// How everything was.
    pub before: Snapshot,
    /// What was to be changed.
    pub scope: Scope,
}

impl Checkpoint {
    /// The checkpoint of a plan.
    pub(crate) fn of(id: CheckpointId, plan: &Plan, survey: &Survey, created_unix_s: u64) -> Self {
        Self {
            format: CHECKPOINT_FORMAT.to_owned(),
            schema_version: SCHEMA_VERSION,
            id,
            created_unix_s,
            identity: survey.identity.clone(),
            to: plan.to.clone(),
            changes: plan.changes.clone(),
            actions: plan.actions.clone(),
            wanted: plan.wanted.within(&plan.scope),
            before: survey.snapshot.clone(),
            scope: plan.scope.clone(),
        }
    }

    /// Whether it was made in this network namespace since it booted.
    #[must_use]
    pub fn is_of(&self, here: &Identity) -> bool {
        self.identity.boot_id == here.boot_id && self.identity.network == here.network
    }

    /// Whether it was made on this machine before it last booted.
    #[must_use]
    pub fn is_of_an_earlier_boot(&self, here: &Identity) -> bool {
        self.identity.boot_id != here.boot_id
    }

    /// Whether one of its steps can cut the machine off.
    #[must_use]
    pub fn can_cut_off(&self) -> bool {
        self.actions.iter().any(Action::can_cut_off)
    }
}

/// How far a change has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
        }
    }

    /// Whether nothing of it is left to do.
    #[must_use]
    pub fn is_over(self) -> bool {
        matches!(self, Self::Confirmed | Self::Reverted | Self::Undone | Self::Lapsed)
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
    /// Files that make it stay.
    pub files: Vec<FileChange>,
    /// Since when it has been so, seconds since 1970.
    pub since_unix_s: u64,
    /// What went wrong.
    pub errors: Vec<String>,
    /// Whether the guard put it back, rather than a person.
    pub by_guard: bool,
}

impl State {
    /// The state of a fresh checkpoint.
    pub(crate) fn prepared(now: crate::system::Now, confirm_within_s: u64) -> Self {
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
            files: Vec::new(),
            since_unix_s: now.unix_s,
            errors: Vec::new(),
            by_guard: false,
        }
    }

    /// Whether it waits for a confirmation for which it is too late.
    #[must_use]
    pub fn is_expired(&self, boottime_ns: u64) -> bool {
        self.deadline_ns.is_none_or(|deadline| boottime_ns >= deadline)
    }
}
