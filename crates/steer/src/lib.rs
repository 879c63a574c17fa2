//! Experiments on a server's own connections while they run: [`start`] assigns new connections of this network namespace to
//! arms until it is cancelled or its time is up, keeps what it finds in the journal, and answers with the report.
//!
//! What is claimed, and why, is `wt-traffic`'s; what happens in the kernel is `wt-bpf`'s. Here is what lies between: epochs and
//! shares, the heartbeat, the accounts, the journal, and who else is told to stop.
#![forbid(unsafe_code)]

/// After the verdict.
mod after;
/// What comes out.
mod answer;
/// What is claimed of the outcomes.
mod assess;
/// Which way of assigning connections is taken.
mod assign;
/// What each of them does.
mod assigner;
/// Arms and outcomes in the backend's words.
mod backend;
/// Connections as the kernel tells of them without BPF.
mod census;
/// Which experiment assigns the connections of a port.
mod claims;
/// What happens meanwhile.
mod event;
/// Experiment files.
mod file;
/// What puts routes back when the experiment's process ends.
mod guard;
/// The hash of marks.
mod jhash;
/// Who runs the experiment, and from where.
mod login;
/// What is open on a server's ports now.
mod now;
/// The kernel's own count of connections.
mod opens;
/// The options of an experiment as texts.
mod options;
/// The addresses of this host.
mod own;
/// A report as a page.
mod page;
/// What the journal keeps.
mod record;
/// What is asked for.
mod request;
/// Marks of nftables and policy routes.
mod routes;
/// Whose congestion control the connections of a server have.
mod server_cc;
/// From the first epoch to the report.
mod session;
/// Settings of the whole host.
mod slots;
/// Tables of routes, and what leads to them.
mod tables;
/// What objects say to people.
mod wording;

pub use after::combine;
pub use answer::{
    CombinedArm, PlannedArm, TrafficAnswer, TrafficCombined, TrafficList, TrafficPlan, TrafficStatus, TrafficStop,
};
pub use assign::{BackendChoice, BackendState, backends};
pub use claims::ClaimedPorts;
pub use event::TrafficEvent;
pub use file::{TrafficFile, parse_share};
pub use guard::guard;
pub use now::OpenNow;
pub use options::{TrafficInclusion, TrafficOptions};
pub use page::page;
pub use record::{report, report_of, status, stop};
pub use request::{
    HoldbackRequest, TrafficCombineRequest, TrafficReportRequest, TrafficRequest, arms_of_levels, identical_arms,
};
pub use session::start;
