//! Randomised experiments on a server's own connections: who gets which settings, what became of them, and what that shows.
//!
//! Each new connection is assigned to an arm by a keyed hash of its client's prefix and the epoch ([`DrawKey::arm`]); arm 0
//! has the current settings. One [`ConnectionOutcome`] is recorded of each. What is claimed comes from the coins alone.
//!
//! Pure: no socket, no clock, no file. Keys come from the caller, and nothing here writes one.
//!
//! # Example
//! Two epochs of a server whose clients are simulated by three lines.
//! ```
//! use std::net::Ipv4Addr;
//! use wt_traffic::*;
//!
//! let arm = |name: &str, settings: &str| TrafficArm { name: name.to_owned(), settings: settings.parse().unwrap() };
//! let config = TrafficConfig {
//!     ports: vec![443],
//!     arms: vec![arm("A", "initcwnd=10"), arm("B", "initcwnd=32")],
//!     ramp: TrafficRamp::none(),
//!     ..TrafficConfig::default()
//! };
//! let (coins, tags) = (DrawKey([1, 2]), DrawKey([3, 4])); // in earnest from the system's generator
//! let mut analysis = TrafficAnalysis::new(config.clone())?;
//! for epoch in 0..2 {
//!     let shares = config.shares(coins, epoch, analysis.treated(), &analysis.stopped());
//!     analysis.begin_epoch(epoch, &shares, config.drawn_place(coins, epoch));
//!     let thresholds = ArmThresholds::new(&shares); // what a program in the kernel compares its draws with
//!     for client in 0..500u32 {
//!         let prefix = ClientPrefix::of(Ipv4Addr::from(0x0b00_0000 + client * 256).into());
//!         let Some(arm) = coins.arm(prefix, epoch, config.unit, 0, &thresholds) else { continue };
//!         analysis.record(&ConnectionOutcome {
//!             arm,
//!             epoch,
//!             offset_us: 0,
//!             tag: tags.tag(prefix),
//!             connection: u64::from(client),
//!             by_response: false,
//!             bytes_acked: 100_000,
//!             duration_us: if arm == 1 { 100_000 } else { 200_000 } + u64::from(client % 97) * 1000,
//!             busy_us: None,
//!             min_rtt_us: 30_000,
//!             sent_segments: 70,
//!             retransmitted_segments: 0,
//!             rtos: None,
//!             fate: ConnectionFate::Closed,
//!             set_errors: 0,
//!             compliant: true,
//!         });
//!     }
//!     analysis.close_epoch(epoch); // when its youngest connection is config.age old
//! }
//! let report = analysis.report(TrafficRun { id: "traffic-1", backend: "sockops" }, &TrafficTally::default());
//! assert_eq!((report.verdict.kind, report.verdict.claim), (TrafficVerdictKind::Faster, TrafficClaim::Beside));
//! println!("{}", report.text());
//! # Ok::<(), TrafficConfigError>(())
//! ```
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
/// Whether a gain is still there after the verdict.
mod holdback;
/// What to do after a look at a report.
mod next;
/// What became of one connection.
mod outcome;
/// Settings of what a server receives.
mod receiver;
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
    ALLOCATION_BLOCK, MOST_PORTS, TrafficAllocation, TrafficArm, TrafficConfig, TrafficConfigError, TrafficRamp,
    TrafficUnit,
};
pub use draw::{ArmThresholds, DrawKey, sip13};
pub use expect::TrafficExpectation;
pub use guard::{GUARD_THRESHOLD, GUARD_WARNING, TrafficGuard};
pub use holdback::{HoldbackState, TrafficHoldback};
pub use outcome::{ConnectionFate, ConnectionOutcome, ResponseOutcome};
pub use receiver::ReceiverSettings;
pub use report::{
    TRAFFIC_SCHEMA_VERSION, TrafficArmReport, TrafficClaim, TrafficClassArm, TrafficClassReport, TrafficEffect,
    TrafficGuardReport, TrafficNoData, TrafficReport, TrafficSelfCheck, TrafficStep, TrafficVerdict,
    TrafficVerdictKind,
};
pub use settings::{ArmSettings, ArmSettingsError, SocketSetting};
pub use tally::{ArmTally, ShortTransfers, TrafficTally};
