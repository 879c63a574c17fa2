use serde::Serialize;
use utoipa::ToSchema;
use wt_host::{ApplyOutcome, Backup, Finding, HistoryRow, OsDefault, Pending};
use wt_problem::Problem;

/// A change that was tried: what came of it, and what failed.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct ChangeAnswer {
    /// What was done.
    #[serde(flatten)]
    pub applied: ApplyOutcome,
    /// Why it failed, if it did, and whether it was reverted.
    #[serde(skip)]
    pub problem: Option<Problem>,
}

/// The changes that were made.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct HistoryAnswer {
    /// 1.
    pub schema_version: u32,
    /// Each of them, the oldest first.
    pub changes: Vec<HistoryRow>,
    /// Changes that nobody watched any more, and what became of them just now.
    pub recovered: Vec<Finding>,
    /// Whose changes aren't among them; nothing where they are all that were made.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<String>,
}

/// The change that waits for its confirmation.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = PendingChange)]
pub struct PendingAnswer {
    /// 1.
    pub schema_version: u32,
    /// It; `null` where none waits.
    pub pending: Option<Pending>,
    /// Whose changes weren't looked at; nothing where all were.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hidden: Option<String>,
}

/// What operating systems begin with.
#[derive(Debug, Clone, Serialize)]
pub struct DefaultsAnswer {
    /// 1.
    pub schema_version: u32,
    /// Each system.
    pub systems: Vec<&'static OsDefault>,
}

/// What a file of settings holds.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct BackupAnswer {
    /// 1.
    pub schema_version: u32,
    /// Settings of the kernel.
    pub settings: usize,
    /// Network devices.
    pub devices: usize,
    /// Routes.
    pub routes: usize,
}

impl BackupAnswer {
    pub(super) fn of(backup: &Backup) -> Self {
        let snapshot = &backup.snapshot;
        let (settings, devices, routes) = (snapshot.sysctls.len(), snapshot.devices.len(), snapshot.routes.len());
        Self { schema_version: 1, settings, devices, routes }
    }
}
