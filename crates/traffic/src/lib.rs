//! Randomised experiments on a server's own connections: who gets which settings, what became of them, and what that shows.
//!
//! Each new connection is assigned to an arm by a keyed hash of its client's prefix and the epoch ([`DrawKey::arm`]); arm 0
//! has the current settings. One [`ConnectionOutcome`] is recorded of each. What is claimed comes from the coins alone.
//!
//! Pure: no socket, no clock, no file. Keys come from the caller, and nothing here writes one.
#![forbid(unsafe_code)]

/// From outcomes to evidence.
mod analysis;
/// The report of an analysis.
mod assessment;
/// The coin-betting e-process for many units.
mod bets;
/// Whether an experiment can be trusted.
mod checks;
/// Classes of outcomes by size and RTT.
mod class;
/// Prefixes of clients, and who is left alone.
mod client;
/// What an experiment is.
mod config;
/// Who gets which arm.
mod draw;
/// How long it takes.
mod expect;
/// What stops an arm by itself.
mod guard;
/// What became of one connection.
mod outcome;
/// What an experiment shows, as JSON.
mod report;
/// The settings of an arm.
mod settings;
/// Differences between whole epochs.
mod slots;
/// How many connections were assigned, recorded and missed.
mod tally;
/// What is known of open units and of prefixes.
mod units;
/// The report as text.
mod wording;

pub use analysis::{CLAIM_THRESHOLD, TrafficAnalysis};
pub use assessment::TrafficRun;
pub use bets::{CoinBets, CoinOutcome, CombinedEvidence, LogWealth, STAKES, ServerEvidence, combine, mixed};
pub use client::{ClientPrefix, left_alone};
pub use config::{
    ALLOCATION_BLOCK, TrafficAllocation, TrafficArm, TrafficConfig, TrafficConfigError, TrafficRamp, TrafficUnit,
};
pub use draw::{ArmThresholds, DrawKey, sip13};
pub use expect::TrafficExpectation;
pub use guard::{GUARD_THRESHOLD, GUARD_WARNING, TrafficGuard};
pub use outcome::{ConnectionFate, ConnectionOutcome};
pub use report::{
    TRAFFIC_SCHEMA_VERSION, TrafficArmReport, TrafficClaim, TrafficClassArm, TrafficClassReport, TrafficEffect,
    TrafficGuardReport, TrafficReport, TrafficSelfCheck, TrafficVerdict, TrafficVerdictKind,
};
pub use settings::{ArmSettings, ArmSettingsError, SocketSetting};
pub use tally::{ArmTally, TrafficTally};
