//! Rehearsal on real kernels: two hosts in network namespaces, joined by a path that our own emulator runs in real time.
//!
//! Nothing here needs root: [`enter`] moves the process into a user namespace, in which it may make what it needs.
//! Everything lives in this one process, so whatever kills it leaves no namespace, device or process behind.
#![forbid(unsafe_code)]

/// A second connection beside a trial's own.
mod beside;
/// The thread that runs the stages.
mod engine;
/// Paths for other emulators.
mod export;
/// Where files are that nobody leaves behind.
mod folder;
/// The lab on a kernel of its own, in virtual time.
mod guest;
/// What hops do to packets.
mod hop;
/// The hosts.
mod host;
/// Traces of another emulator.
mod import;
/// What programs in a lab can know of it.
mod inside;
/// Setting up and ending.
mod lab;
/// The path with its hops.
mod links;
/// Paths drawn.
mod picture;
/// Towards the hosts' kernels.
mod port;
/// Packets into files.
mod record;
/// What routers answer.
mod router;
/// Running any program in the lab.
mod run;
/// Paths as TOML, and the shipped ones.
pub mod scenario;
/// Super-packets and their segments.
mod segment;
/// What the lab says of itself.
mod stats;
/// Trials in the lab.
mod tunnel;

pub use beside::Competitor;
pub use export::{Emulator, ExportAnswer, ExportedPath};
pub use folder::Folder;
pub use guest::{GUEST, GuestError, VirtualKernel, guest, is_guest};
pub use host::{Backend, CLIENT_V4, CLIENT_V6, DEVICE, Host, PORT, SERVER_V4, SERVER_V6};
pub use import::{ImportError, ImportRequest, ImportedScenario, import_mahimahi};
pub use inside::LabFacts;
pub use lab::{Lab, LabError, LabOptions, enter};
pub use record::{LinkEnd, Recording, RecordingCounts, check_target};
pub use run::{INIT, Program, init};
pub use scenario::{Scenario, presets};
pub use stats::EngineStats;
pub use tunnel::{LabTunnel, SharedFlow, SharedFlowOutcome};
