use super::basis::Basis;
use super::id::CheckpointId;
use super::route_change::RouteChange;
use super::setting::Change;
use crate::snapshot::{Scope, Snapshot};
use crate::system::{Action, Identity};
use serde::{Deserialize, Serialize};

/// What a checkpoint file says it is.
pub(crate) const CHECKPOINT_FORMAT: &str = "windtunnel-checkpoint";

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
    /// The experiment that it rests on, if it does; those of older versions don't say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
}

impl Checkpoint {
    /// Whether it was made in this network namespace since it booted.
    #[must_use]
    pub fn is_of(&self, here: &Identity) -> bool {
        self.identity.boot_id == here.boot_id && self.identity.is_same_network(here)
    }

    /// Whether it was made before this machine last booted, in the network namespace that is this one's again: the one of process 1,
    /// or one that has an /etc of its own. Any other ended with the boot, and what was changed in it.
    #[must_use]
    pub fn is_of_an_earlier_boot(&self, here: &Identity) -> bool {
        let then = &self.identity;
        // A service with few capabilities can't tell, and neither can who isn't root: both are of the first namespace as a rule.
        let is_alike = then.network_of_init.zip(here.network_of_init).is_none_or(|(then, here)| then == here);
        then.boot_id != here.boot_id && is_alike && then.owns_etc && here.owns_etc
    }

    /// Whether it ended with the network namespace that it was made in, at the latest when this machine last booted.
    #[must_use]
    pub(crate) fn ended_with_its_network(&self, here: &Identity) -> bool {
        let comes_again = self.identity.network_of_init != Some(false) || self.is_of_an_earlier_boot(here);
        self.identity.boot_id != here.boot_id && !comes_again
    }

    /// Whether it was made here, or here before the last boot.
    #[must_use]
    pub(crate) fn concerns(&self, here: &Identity) -> bool {
        self.is_of(here) || self.is_of_an_earlier_boot(here)
    }

    /// Routes that went or came with it.
    #[must_use]
    pub(crate) fn route_changes(&self) -> Vec<RouteChange> {
        RouteChange::between(&self.before, &self.wanted, &self.scope, &self.changes)
    }

    /// Whether one of its steps can cut the machine off.
    #[must_use]
    pub fn can_cut_off(&self) -> bool {
        self.actions.iter().any(Action::can_cut_off)
    }
}
