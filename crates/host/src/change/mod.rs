//! What a change is, as data: what is planned, what is stored of it, and how far it has come. Nothing here reads or
//! writes the machine, so that whoever plans, makes, exports or shows changes can share it.

/// What a change rests on.
mod basis;
/// How everything was before a change, and how it is to be.
mod checkpoint;
/// The numbers of checkpoints.
mod id;
/// What is to be done.
mod plan;
/// A route that goes or comes.
mod route_change;
/// One setting that changes.
mod setting;
/// How far a change has come.
mod state;

pub use basis::{Basis, BasisDevice};
pub(crate) use checkpoint::CHECKPOINT_FORMAT;
pub use checkpoint::Checkpoint;
pub use id::{CheckpointId, CheckpointIdError};
pub use plan::{LastingFile, Plan};
pub use route_change::{RouteChange, RouteFate};
pub use setting::{Change, Place, Risk, RouteFamily, ScopeName};
pub use state::{DROP_IN, FileChange, Pending, Phase, State};
pub(crate) use state::{DROP_IN_NAME, SCHEMA_VERSION, STATE_FORMAT};
