//! What an endpoint knows. What it does with it stands beside: each module there says which part of Linux it is.

/// One end of one connection.
mod endpoint;
/// The path's MTU.
mod pmtu;
/// Loss by time.
mod rack;
/// The receiving side.
mod receiver;
/// When each timer fires.
mod timers;

pub(crate) use endpoint::{Endpoint, Out};
pub(super) use endpoint::{Phase, SenderLimit};
pub(super) use pmtu::{BASE_MSS, Pmtu};
pub(super) use receiver::{ATO_MIN_NS, DEFAULT_MSS, MIN_MSS, Pending};
pub(super) use timers::{Kind, NEVER};
