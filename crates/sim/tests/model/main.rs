//! The model against theory, and against nonsense.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod common;
mod fuzz;
mod golden;
mod handshakes;
mod laws;
mod mechanisms;
mod nonsense;
mod sources;
mod workloads;
