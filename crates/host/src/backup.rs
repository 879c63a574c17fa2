use crate::change::Plan;
use crate::read::Survey;
use crate::snapshot::Snapshot;
use crate::surroundings::Surroundings;
use crate::system::Identity;
use crate::txn::StoreError;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FORMAT: &str = "windtunnel-backup";

/// Everything that can be changed, stored in a file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Backup {
    /// What the file is.
    pub format: String,
    /// The version of this form.
    pub schema_version: u32,
    /// When, seconds since 1970.
    pub created_unix_s: u64,
    /// Where.
    pub identity: Identity,
    /// What.
    pub snapshot: Snapshot,
    /// What lies around it, so that what isn't put back can be told; files of older versions don't have it.
    #[serde(default)]
    pub surroundings: Option<Surroundings>,
}

/// Why a backup isn't believed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct BackupError(#[from] StoreError);

impl Backup {
    /// A backup of now.
    #[must_use]
    pub fn of(survey: &Survey, created_unix_s: u64) -> Self {
        Self {
            format: FORMAT.to_owned(),
            schema_version: 1,
            created_unix_s,
            identity: survey.identity.clone(),
            snapshot: survey.snapshot.clone(),
            surroundings: Some(Surroundings::of(survey)),
        }
    }

    /// Reads a backup.
    ///
    /// # Errors
    /// [`BackupError`] when it is truncated, something else, or of a newer version.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self, BackupError> {
        Ok(crate::txn::from_bytes(bytes, path, FORMAT)?)
    }

    /// What is to be done so that everything is as it was then.
    #[must_use]
    pub fn plan(&self, survey: &Survey) -> Plan {
        let here = &survey.identity;
        let same_network = self.identity.boot_id == here.boot_id && self.identity.is_same_network(here);
        Plan::to_snapshot(survey, &self.snapshot, self.surroundings.as_ref(), same_network)
    }
}
