//! Paths and servers probed over real sockets: the runtime of `wt-probe`'s state machines.
//!
//! Each operation is one blocking call that takes a request, a [`Cancel`](wt_trial::Cancel) and somebody to tell events to,
//! and gives an answer or a [`Problem`](wt_problem::Problem). Requests are plain data that serde reads; an answer's JSON is
//! what `--json` prints.
//!
//! - [`mtu`]: the largest packet that gets through, why larger ones don't, and loss size by size.
//! - [`trace`]: the hops of a path.
//! - [`path`]: one screen about a path.
//! - [`first_window`]: how much servers send before anything is acknowledged.
//!
//! Whatever a user may open is opened: raw sockets with `CAP_NET_RAW`, and without it UDP, ping sockets and the kernel's own
//! connections. Nothing on this host is changed.
#![forbid(unsafe_code)]

/// JSON of one host or of several.
mod answers;
/// The clock.
mod clock;
#[cfg(test)]
mod contracts;
/// Runs state machines over sockets.
mod driver;
/// How much servers send before anything is acknowledged.
pub mod first_window;
/// Hosts as people write them.
mod hosts;
/// The largest packet that gets through.
pub mod mtu;
/// Names of addresses.
mod names;
/// What operations that probe paths share.
mod options;
/// One screen about a path.
pub mod path;
/// Who says that a host can't be reached.
mod refusal;
/// Connections on which the target is asked to send.
mod reverse;
#[cfg(test)]
mod several;
/// Where to probe, and the way there.
mod target;
/// The hops of a path.
pub mod trace;
/// Which targets are probed at once.
mod waves;
/// The sockets.
mod wire;

pub use answers::Answers;
pub use driver::Cost;
pub use hosts::{hosts_of, listed_hosts};
pub use options::{IpVersion, ProbeOptions};
pub use refusal::RefusalAnswer;
pub use target::{Target, unresolvable};
