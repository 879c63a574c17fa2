//! This host's TCP/IP settings: read → plan → apply → verify → confirm or undo; backups; exports for other systems.
//!
//! [`Survey`] reads everything, [`Report`] shows it, [`Plan`] says what would change without changing it. [`apply`]
//! changes it such that it is put back by itself unless somebody [`confirm`]s; [`undo`] takes it back later. Everything
//! that touches the machine goes through the trait [`System`].

#![forbid(unsafe_code)]

/// States stored in files.
mod backup;
/// Dates.
mod calendar;
/// Initial values of operating systems.
mod defaults;
/// The same settings elsewhere.
mod export;
/// The settings that there are.
mod knob;
/// What makes a change stay, for each manager of networks.
mod lasting;
/// Files that make a change stay.
mod persist;
/// From what is asked to what is to be done.
mod plan;
/// What is.
mod read;
/// Routes in words.
mod route_text;
/// Everything that can be changed, at one moment.
mod snapshot;
/// The machine.
mod system;
/// Changes made whole or not at all.
mod txn;

pub use backup::{Backup, BackupError};
pub use calendar::utc;
pub use defaults::{OsDefault, OsDefaultError, os_default, os_defaults};
pub use export::{Export, ExportFile, ExportFormat, export};
pub use knob::{ALL as KNOBS, HostKnob, Kind, Knob, KnobError, LinkKnob, RouteKnob, Value};
pub use lasting::Lasting;
pub use persist::{DROP_IN, FileChange};
pub use plan::{Change, Place, Plan, PlanError, Request, RequestError, Risk, ScopeName, Target};
pub use read::{
    Adapter, Assignment, Caveat, Chain, Congestion, Finding, KernelVersion, KnobRow, Manager, ManagerKind, Managers,
    Origin, Report, RouteRow, Severity, Survey, Tuned, caveats,
};
pub use route_text::Names;
pub use snapshot::{DevicePart, DeviceState, QdiscState, Scope, Snapshot};
pub use system::{Action, Details, Device, Devices, FileStep, Identity, Now, Ownership, RealSystem, System};
pub use txn::{
    Applied, AppliedRow, ApplyOptions, Checkpoint, CheckpointId, Confirmed, Drift, GuardCommand, GuardOptions,
    HistoryRow, Pending, Phase, Recovered, RevertReport, State, Store, StoreError, TxnError, Undone, VerifyReport,
    apply, confirm, guard, history, pending, recover, undo, verify,
};
