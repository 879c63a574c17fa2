//! A client, an edge and a backend, and which of their four initial windows matters on which request.

/// What comes out.
mod answer;
/// The three hosts.
mod chain;
/// The same, computed.
mod model;
/// What is asked for.
mod request;
/// What runs in the hosts.
mod servers;
/// From the first round to the last.
mod session;
/// Requests with their times.
mod timed;
/// The four windows, and what is asked of the edge.
mod windows;

pub use answer::{CdnAnswer, CdnMeasured, CdnModelled, HopSeconds, RequestMeasured, WindowMeasured};
pub use request::{CdnRequest, Proxy};
pub use session::{RELEVANT, fewest_rounds, run};
pub use windows::EdgeRequest;
