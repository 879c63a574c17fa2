//! This host's TCP/IP settings: read → plan → apply → verify → confirm or undo; backups; exports for other systems.
//!
//! [`Survey`] reads everything, [`Report`] shows it, [`Plan`] says what would change without changing it. [`apply`]
//! changes it such that it is put back by itself unless somebody [`confirm`]s; [`undo`] takes it back later. Everything
//! that touches the machine goes through the trait [`System`].

#![forbid(unsafe_code)]

/// States stored in files.
mod backup;
/// What loads congestion controls at boot.
mod boot;
/// Dates.
mod calendar;
/// What a change is, as data.
mod change;
/// Initial values of operating systems.
mod defaults;
/// The text of our file for sysctl.
mod drop_in;
/// The same settings elsewhere.
mod export;
/// Bytes in text files.
mod hex;
/// What scripts of managers do.
mod hook;
/// The settings that there are.
mod knob;
/// What makes a change stay, for each manager of networks.
mod lasting;
/// What experiments vary, as settings.
mod of_experiment;
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
/// What settings depend on and no change makes.
mod surroundings;
/// The machine.
mod system;
/// Changes made whole or not at all.
mod txn;

pub use backup::{Backup, BackupError};
pub use boot::{boot_link, boot_unit, others_can_change, unit_path, unit_word};
pub use calendar::utc;
pub use change::{
    Basis, BasisDevice, Change, Checkpoint, CheckpointId, CheckpointIdError, DROP_IN, FileChange, LastingFile, Pending,
    Phase, Place, Plan, Risk, RouteChange, RouteFamily, RouteFate, ScopeName, State,
};
pub use defaults::{OsDefault, OsDefaultError, os_default, os_defaults};
pub use export::{Export, ExportFile, ExportFormat, export};
pub use knob::{ALL as KNOBS, ConnectionKnob, HostKnob, Kind, Knob, KnobError, LinkKnob, RouteKnob, Value};
pub use persist::hold_connections;
pub use plan::{PlanError, Request, RequestError, Target};
pub use read::{
    Adapter, Assignment, Caveat, Chain, Clamp, Congestion, Finding, KernelVersion, KnobRow, Manager, ManagerKind,
    Managers, Origin, Report, RouteRow, Severity, Survey, TunedDaemon, caveats, laid_down_toward,
};
pub use route_text::Names;
pub use snapshot::{DevicePart, DeviceState, QdiscState, Scope, Snapshot};
pub use surroundings::Surroundings;
pub use system::{
    Action, Details, Device, Devices, EstablishedConnection, FileStep, Identity, Now, ObservedConnection,
    ObservedPlace, Ownership, RealSystem, System,
};
pub use txn::{
    AppliedRow, ApplyOptions, ApplyOutcome, ConfirmOutcome, Drift, GuardCommand, GuardOptions, HeldChange, HistoryRow,
    RecoveredChange, ReleasedChange, RevertReport, Store, StoreError, TxnError, Undone, VerifyReport, apply, confirm,
    damaged, forget, guard, history, hold, in_force, is_unwatched, pending, recover, switch, undo, undo_by_force,
    verify,
};
