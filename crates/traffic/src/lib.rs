//! Randomised experiments on a server's own connections: who gets which settings, what became of them, and what that shows.
//!
//! Each new connection is assigned to an arm by a keyed hash of its client's prefix and the epoch ([`DrawKey::arm`]); arm 0
//! has the current settings. One [`ConnectionOutcome`] is recorded of each. What is claimed comes from the coins alone.
//!
//! Pure: no socket, no clock, no file. Keys come from the caller, and nothing here writes one.
#![forbid(unsafe_code)]

/// Prefixes of clients, and who is left alone.
mod client;
/// What an experiment is.
mod config;
/// Who gets which arm.
mod draw;
/// What became of one connection.
mod outcome;
/// The settings of an arm.
mod settings;
/// How many connections were assigned, recorded and missed.
mod tally;

pub use client::{ClientPrefix, left_alone};
pub use config::{
    ALLOCATION_BLOCK, TrafficAllocation, TrafficArm, TrafficConfig, TrafficConfigError, TrafficRamp, TrafficUnit,
};
pub use draw::{ArmThresholds, DrawKey, sip13};
pub use outcome::{ConnectionFate, ConnectionOutcome};
pub use settings::{ArmSettings, ArmSettingsError, SocketSetting};
pub use tally::{ArmTally, TrafficTally};
