use super::basis::Basis;
use super::route_change::RouteChange;
use super::setting::{Change, Risk};
use crate::snapshot::{Scope, Snapshot};
use crate::system::Action;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// The version of the JSON that [`Plan`] becomes.
const SCHEMA_VERSION: u32 = 1;

/// What is to be changed on this host, and everything that somebody should know before it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = SettingsPlan)]
pub struct Plan {
    /// The version of this form.
    pub schema_version: u32,
    /// Where.
    pub to: String,
    /// Where those settings are to hold that don't belong there, by their keys; places as `to` names them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub places: BTreeMap<String, String>,
    /// Whether it leads back to what the system does by itself, on narrower places than the host, too.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub resets: bool,
    /// Old and new.
    pub changes: Vec<Change>,
    /// Routes that go or come, apart from those that only hold one of the settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteChange>,
    /// The commands that would do it.
    pub commands: Vec<String>,
    /// The commands that would undo it.
    pub revert_commands: Vec<String>,
    /// What could go wrong.
    pub risks: Vec<Risk>,
    /// What was asked for but isn't done, and why.
    pub skipped: Vec<Risk>,
    /// What makes whoever configures the devices keep it; a confirmation writes that.
    #[serde(default)]
    pub lasting: Vec<LastingFile>,
    /// The experiment that it rests on, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub basis: Option<Basis>,
    /// What will be written. Not shown: the commands say the same.
    #[serde(skip)]
    pub actions: Vec<Action>,
    /// The state that is wanted, where it is meant. Not shown either.
    #[serde(skip)]
    pub wanted: Snapshot,
    /// What of the state is meant.
    #[serde(skip)]
    pub scope: Scope,
}

impl Plan {
    /// A plan that changes nothing.
    #[must_use]
    pub fn nothing() -> Self {
        Self::new(String::new(), Snapshot::default())
    }

    /// A plan that leads to `wanted`; what is to be done for that is still to be filled in.
    pub(crate) fn new(to: String, wanted: Snapshot) -> Self {
        Self {
            schema_version: SCHEMA_VERSION,
            to,
            places: BTreeMap::new(),
            resets: false,
            changes: Vec::new(),
            routes: Vec::new(),
            commands: Vec::new(),
            revert_commands: Vec::new(),
            risks: Vec::new(),
            skipped: Vec::new(),
            lasting: Vec::new(),
            basis: None,
            actions: Vec::new(),
            wanted,
            scope: Scope::default(),
        }
    }

    /// Whether nothing would be written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }
}

/// A file for whoever configures a device, with which it keeps settings that it would set back otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastingFile {
    /// The device.
    pub device: String,
    /// Who configures it.
    pub manager: String,
    /// Where the file belongs.
    pub path: String,
    /// What it holds; empty if that manager has no words for any of it.
    pub content: String,
    /// Permission bits.
    pub mode: u32,
    /// What it has no words for.
    pub skipped: Vec<Risk>,
}
