//! From scenarios to the model's paths.

use crate::edge::Failure;
use wt_lab::Scenario;
use wt_sim::{SimError, SimPath, SimTunnel, StackConfig};
use wt_trial::Direction;

/// A scenario as the model takes it: the same stages as in the lab.
pub(crate) fn sim_path(scenario: &Scenario) -> SimPath {
    SimPath {
        name: scenario.name.clone(),
        config: scenario.path(),
        icmp: scenario.links.iter().map(|link| link.icmp).collect(),
        client_mtu: scenario.client_mtu,
        server_mtu: scenario.server_mtu,
        facts: [scenario.facts(Direction::Down), scenario.facts(Direction::Up)],
    }
}

/// The model of a scenario.
///
/// # Errors
/// A usage failure when the path makes no sense to the model.
pub(crate) fn tunnel(scenario: &Scenario, stack: StackConfig) -> Result<SimTunnel, Failure> {
    tunnel_of(sim_path(scenario), stack)
}

/// The model of a path.
///
/// # Errors
/// As [`tunnel`].
pub(crate) fn tunnel_of(path: SimPath, stack: StackConfig) -> Result<SimTunnel, Failure> {
    SimTunnel::new(path, stack).map_err(|error| failure(&error))
}

/// What to say when the model can't run something.
pub(crate) fn failure(error: &SimError) -> Failure {
    Failure::usage(format!("the model can't run this: {error}"))
}
