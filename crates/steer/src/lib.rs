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
/// Arms and outcomes in the backend's words.
mod backend;
/// What happens meanwhile.
mod event;
/// The kernel's own count of connections.
mod opens;
/// What the journal keeps.
mod record;
/// What is asked for.
mod request;
/// From the first epoch to the report.
mod session;

pub use after::combine;
pub use answer::{
    CombinedArm, PlannedArm, TrafficAnswer, TrafficCombined, TrafficList, TrafficPlan, TrafficStatus, TrafficStop,
};
pub use backend::{BackendState, backends};
pub use event::TrafficEvent;
pub use record::{report, report_of, status, stop};
pub use request::{
    HoldbackRequest, TrafficCombineRequest, TrafficReportRequest, TrafficRequest, arms_of_levels, identical_arms,
};
pub use session::start;
