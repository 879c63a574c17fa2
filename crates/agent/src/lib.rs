//! Many hosts that measure by one plan, a mesh: [`run`] writes it down at the fleet's server, [`agent`] does one host's part of it, as
//! far as that host's own policy lets it.
//!
//! What this leaves out: everything that decides. Turns, the journal of all and who may do what are the server's (`wt-fleet`); rounds
//! and verdicts are `wt-tune`'s, in a process of its own.
#![forbid(unsafe_code)]

/// What a host does.
mod agent;
/// One experiment in a process of its own.
mod child;
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
/// What hosts measured, from a journal without a fleet.
mod sites;

pub use agent::{AgentAnswer, AgentEvent, AgentRequest, agent};
pub use job::JobSpec;
pub use mesh::Mesh;
pub use owner::{
    FleetAddAnswer, FleetAddRequest, FleetInitAnswer, FleetRequest, FleetRunAnswer, FleetRunRequest, FleetStatusAnswer,
    FleetStopAnswer, MeshRequest, add, experiments, init, run, status, stop,
};
pub use policy::{Policy, PolicyAnswer};
pub use sites::status_of;
