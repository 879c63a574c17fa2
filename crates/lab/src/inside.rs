//! What programs in a lab can know of it.

use serde::{Deserialize, Serialize};
use wt_trial::PathFacts;

/// Where it stands, in the lab's own /run.
const FILE: &str = "/run/windtunnel-lab.json";
/// The variable in which the lab's process 1 finds it.
pub(crate) const VARIABLE: &str = "WINDTUNNEL_LAB";

/// What a lab tells the programs in it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LabFacts {
    /// The command line that makes such a lab again, up to what runs in its client: `windtunnel lab run adsl`; empty where nobody said it.
    pub command: String,
    /// The path as it is emulated, for payload to the client.
    pub path: PathFacts,
}

impl LabFacts {
    /// Those of the lab in which this process runs; `None` outside of one, and where it had no place for them.
    #[must_use]
    pub fn here() -> Option<Self> {
        serde_json::from_slice(&std::fs::read(FILE).ok()?).ok()
    }

    /// As [`VARIABLE`] has it.
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Puts into the lab's own /run what its process 1 was told.
pub(crate) fn publish() {
    if let Some(text) = std::env::var_os(VARIABLE) {
        // Programs run without it, too.
        let _ = std::fs::write(FILE, text.as_encoded_bytes());
    }
}
