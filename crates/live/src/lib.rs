//! The real path as a place where trials run.
//!
//! [`LiveTunnel`] talks to servers that mostly aren't ours. Every setting is made at the narrowest scope that exists: on
//! the connection's own socket, else on a route to that one target, else, only if it was allowed, on the whole host; the
//! latter two as a change that is put back after the trial, and by a guard if this process dies. [`Manners`] says when
//! such a server is to be left alone.
#![forbid(unsafe_code)]

/// Routes and host-wide settings for the time of one trial.
mod change;
/// What holds when nothing is asked for.
mod in_force;
/// The link of this host, as it is.
mod link;
/// Networks that are lost.
mod lost;
/// How much we may ask of servers that aren't ours.
mod manners;
/// What came of a trial.
mod outcome;
/// Where each knob is set.
mod scope;
/// Far ends.
mod target;
/// The tunnel.
mod tunnel;

pub use change::{ChangeError, Changer};
pub use manners::Manners;
pub use scope::{Scope, scope_of};
pub use target::{FindError, Target, is_near};
pub use tunnel::{Control, LiveConfig, LiveTunnel};
