//! Files of HTTP servers that aren't ours, and how payload comes from and goes to strangers in general.

/// Where the payload ends.
mod body;
/// What is answered first.
mod head;
/// One connection, one request.
mod http;
/// Payload from and to servers that aren't ours.
mod intake;

pub(crate) use body::{Body, BodyError};
pub(crate) use head::{Framing, Head};
pub use http::USER_AGENT;
#[cfg(any(fuzzing, test))]
pub(crate) use http::read_all;
pub(crate) use http::{Exchange, bring, fetch};
pub(crate) use intake::{intake, outflow};
