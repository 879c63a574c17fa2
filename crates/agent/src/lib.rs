//! Many hosts that measure by one plan, a mesh: [`run`] writes it down at the fleet's server, [`agent`] does one host's part of it, as
//! far as that host's own policy lets it.
//!
//! What this leaves out: everything that decides. Turns, the journal of all and who may do what are the server's (`wt-fleet`); rounds
//! and verdicts are `wt-tune`'s, in a process of its own.
#![forbid(unsafe_code)]

/// What a host does.
mod agent;
/// What it did.
mod answer;
/// A change of settings on this host.
mod change;
/// One experiment in a process of its own.
mod child;
/// What monitoring reads of it.
mod figures;
/// Hours of the day.
mod hours;
/// What an agent is asked to measure.
mod job;
/// Who measures what to whom.
mod mesh;
/// What a fleet's owner asks.
mod owner;
/// What a host lets be measured from it.
mod policy;
/// A change of settings for the whole fleet.
mod rollout;
/// What hosts measured, from a journal without a fleet.
mod sites;
/// How a change goes through a fleet.
mod waves;
/// What the owner is told.
mod words;

pub use agent::{AgentEvent, AgentRequest, agent};
pub use answer::AgentAnswer;
pub use job::JobSpec;
pub use mesh::Mesh;
pub use owner::{
    FleetAddAnswer, FleetAddRequest, FleetInitAnswer, FleetRequest, FleetRunAnswer, FleetRunRequest, FleetStatusAnswer,
    FleetStopAnswer, MeshRequest, add, experiments, init, run, runs, status, stop,
};
pub use policy::{Policy, PolicyAnswer};
pub use rollout::{FleetApplyAnswer, FleetApplyRequest, FleetUndoRequest, apply, undo};
pub use sites::status_of;
pub use waves::WavePace;
