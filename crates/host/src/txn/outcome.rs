use crate::change::{CheckpointId, Risk, RouteChange, ScopeName};
use crate::knob::Value;
use serde::Serialize;
use utoipa::ToSchema;

/// What came of a change.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Applied)]
pub struct ApplyOutcome {
    /// The version of this form.
    pub schema_version: u32,
    /// Which change it is.
    pub id: CheckpointId,
    /// What was asked, and what the kernel says.
    pub applied: Vec<AppliedRow>,
    /// Routes that went or came, apart from those that only hold one of the settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteChange>,
    /// When it is put back unless it is confirmed; `null` once it is confirmed, or put back.
    pub confirm_deadline: Option<String>,
    /// How long that is, seconds.
    pub confirm_within_s: Option<u64>,
    /// Whether it stays.
    pub confirmed: bool,
    /// Files that make it stay.
    pub files: Vec<String>,
    /// What doesn't stay, and why.
    pub notes: Vec<Risk>,
    /// What was left out, and why.
    pub skipped: Vec<Risk>,
    /// If it failed: whether it was put back.
    pub revert: Option<RevertReport>,
    /// Why it failed.
    pub error: Option<String>,
}

/// What was asked, and what the kernel says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct AppliedRow {
    /// The setting.
    pub key: String,
    /// What was to be.
    pub asked: Value,
    /// What is; `null` if it can't be told.
    pub granted: Option<Value>,
    /// What a connection had that was made after the change; `null` if none was, or it can't tell.
    pub observed: Option<Value>,
    /// Where.
    pub scope: ScopeName,
    /// On which route or device.
    pub target: String,
}

/// Whether a change that failed was put back.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RevertReport {
    /// Whether everything is as it was.
    pub done: bool,
    /// What isn't, and what the kernel said.
    pub errors: Vec<String>,
    /// What was put back elsewhere, or is gone: devices that were renamed or removed meanwhile.
    pub notes: Vec<String>,
    /// The file with the old state.
    pub backup: String,
}
