//! What is said over a connection: HTTP, or HTTPS in memory.

use super::tls::{Tls, config};
use rustls::ClientConfig;
use std::sync::Arc;
use wt_probe::first_window::{Goal, Opener, Plain, Session, request};
use wt_problem::Problem;

/// Makes sessions of either kind.
pub(super) struct Sessions {
    tls: Arc<ClientConfig>,
    agent: String,
}

impl Sessions {
    /// With this User-Agent.
    ///
    /// # Errors
    /// Our own fault, if TLS can't be set up.
    pub(super) fn new(agent: String) -> Result<Self, Problem> {
        Ok(Self { tls: config().map_err(|error| Problem::internal(error.to_string()))?, agent })
    }
}

impl Opener for Sessions {
    fn open(&self, goal: &Goal) -> Box<dyn Session> {
        let request = request(&goal.authority(), &goal.path, &self.agent);
        if goal.tls { Box::new(Tls::new(&self.tls, &goal.host, request)) } else { Box::new(Plain::new(request)) }
    }
}
