//! A packet-level model of Linux TCP over the stages of `wt-link`, in virtual time.
//!
//! A [`Simulation`] holds connections over a path and runs them event by event: the same stages as in the lab, a sender and a
//! receiver that follow the kernel's procedures mechanism by mechanism, and the congestion controls. It reads no clock,
//! opens nothing, and draws only from its seed, so the same input gives the same output on any machine.
//!
//! Each module says what it leaves out and when that matters, and names the kernel's functions and the RFCs that it
//! follows. The model is never evidence: its error against a real kernel is measured, and shown wherever it is used.
#![forbid(unsafe_code)]

/// Congestion controls.
pub mod cc;
/// The event loop.
mod net;
/// Results of a simulation.
mod report;
/// Workloads.
mod run;
/// What travels.
mod segment;
/// What a simulation is asked to do.
mod spec;
/// TCP.
mod tcp;
/// The model as a tunnel.
mod tunnel;

pub use report::{FinishedExchange, FlowReport, Report};
pub use run::Simulation;
pub use segment::SynChange;
pub use spec::{Exchange, FlowSpec, Job, MAX_FLOWS, RelaySpec, SimError};
pub use tcp::{BufferTuning, StackConfig};
pub use tunnel::{SimPath, SimTunnel};
