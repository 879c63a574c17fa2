/// From what is asked to what is to be done.
mod build;
/// Why there is no plan.
mod error;
/// What follows from the wanted state.
mod finish;
/// What somebody wants.
mod request;
/// Back to a state that was stored.
mod restore;
/// What could go wrong.
mod risks;

pub use error::PlanError;
pub(crate) use request::masked;
pub use request::{Request, RequestError, Target};

use crate::change::Plan;
use crate::read::Survey;
use crate::snapshot::Snapshot;
use crate::surroundings::Surroundings;
use crate::system::System;

/// The least MTU of IPv6 (RFC 8200, section 5), bytes: below it Linux takes IPv6 off a device.
pub(crate) const IPV6_LEAST_MTU: u32 = 1_280;

impl Plan {
    /// Works out what is to be done. Nothing is written.
    ///
    /// # Errors
    /// [`PlanError`].
    pub fn make(system: &mut dyn System, survey: &Survey, request: &Request) -> Result<Self, PlanError> {
        build::build(system, survey, request)
    }

    /// The plan that leads to a state that was stored: since then in this network namespace, or at another time, when
    /// routes are compared by where they lead only. What can't be put back is left out, and said.
    #[must_use]
    pub fn to_snapshot(survey: &Survey, stored: &Snapshot, before: Option<&Surroundings>, same_network: bool) -> Self {
        restore::to_snapshot(survey, stored, before, same_network)
    }
}
