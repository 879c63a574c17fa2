//! What operations of the application need before they begin: what is compared and for how long, the journal, scenarios,
//! labs, congestion controls.
//!
//! Here too stands what each failure of those means to people, once for every operation and every front end.
#![forbid(unsafe_code)]

/// Measurements that can't be analysed.
pub mod analyse;
/// What candidates are compared with, and settings that belong together.
mod arms;
/// Settings from what was asked for knob by knob.
mod assignments;
/// What an experiment may cost.
mod budget;
/// Other settings for a server's own connections, without BPF.
pub mod connections;
/// Congestion controls of ours, loaded for as long as an operation runs.
pub mod controls;
/// Which settings are compared.
pub mod design;
/// What works on this machine.
pub mod doctor;
/// Files that are written as a whole or not at all.
pub mod files;
/// Pages of browsers.
mod har;
/// The journal, opened.
pub mod journal;
/// Scenarios and labs.
pub mod lab;
mod machine;
/// What monitoring reads.
pub mod metrics;
/// The order of trials.
mod order;
/// Units for systemd that measure again.
pub mod schedule;
/// Metrics over HTTP.
pub mod scraped;
/// What `serve` needs before it begins.
pub mod serve;
/// This host's settings.
pub mod settings;
/// Requests as text.
mod text;
/// Trials that a tunnel can't run.
mod trials;
/// Connections on a device as they pass.
pub mod watch;
/// What each trial does, as it is written.
pub mod workload;

/// What is fed with random bytes.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;

pub use arms::{Baseline, NamedArm, systems};
pub use assignments::{settings_of, together};
pub use budget::Budget;
pub use controls::Controls;
pub use design::{Arm, Design, DesignFacts, DesignQuestion, Levels};
pub use order::draw_order_seed;
pub use settings::HostAccess;
pub use text::{as_text, duration_or_none};
pub use trials::tunnel_problem;
pub use workload::WorkloadRequest;
