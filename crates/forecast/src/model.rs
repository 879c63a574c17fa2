use wt_lab::Scenario;
use wt_link::{Discipline, LossConfig, PathConfig, RateConfig, StageConfig};
use wt_problem::Problem;
use wt_sim::{SimError, SimPath, SimTunnel, StackConfig};
use wt_trial::{Direction, Workload};

/// A scenario as the model takes it: the same stages as in the lab.
#[must_use]
pub fn sim_path(scenario: &Scenario) -> SimPath {
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
/// A usage problem where the model can't take the path.
pub fn tunnel(scenario: &Scenario, stack: StackConfig) -> Result<SimTunnel, Problem> {
    tunnel_of(sim_path(scenario), stack)
}

/// The model of a path.
///
/// # Errors
/// As [`tunnel`].
pub fn tunnel_of(path: SimPath, stack: StackConfig) -> Result<SimTunnel, Problem> {
    SimTunnel::new(path, stack).map_err(|error| problem(&error))
}

/// What to say when the model can't run something.
#[must_use]
pub fn problem(error: &SimError) -> Problem {
    Problem::usage(format!("the model can't run this: {error}"))
}

/// Whether anything is left to chance: on the path, or when rivals begin.
pub(crate) fn is_random(path: &PathConfig, workload: &Workload) -> bool {
    matches!(workload, Workload::Competing { .. }) || has_chance(path)
}

/// Whether anything on a path changes with time by plan: a trial begins at the first second of it, in the lab as in the model.
pub(crate) fn changes_with_time(path: &PathConfig) -> bool {
    let by_plan = |stage: &StageConfig| match stage {
        StageConfig::Outages(_) | StageConfig::DelaySteps { .. } => true,
        StageConfig::Queue(queue) => matches!(queue.rate, RateConfig::Steps(_) | RateConfig::Trace(_)),
        _ => false,
    };
    path.links.iter().any(|link| link.forward.iter().chain(&link.backward).any(by_plan))
}

/// Whether anything on a path is left to chance.
fn has_chance(path: &PathConfig) -> bool {
    let by_chance = |stage: &StageConfig| match stage {
        StageConfig::Loss(loss) => {
            !matches!(loss, LossConfig::EveryNth { .. } | LossConfig::Numbered { .. } | LossConfig::Next { .. })
        }
        StageConfig::Queue(queue) => {
            matches!(queue.discipline, Discipline::Red(_) | Discipline::Pie(_))
                || matches!(queue.rate, RateConfig::Modem(_))
        }
        StageConfig::Jitter(_)
        | StageConfig::Reorder { .. }
        | StageConfig::Duplicate { .. }
        | StageConfig::Corrupt { .. }
        | StageConfig::Thinning(_)
        | StageConfig::Airtime(_) => true,
        _ => false,
    };
    path.links.iter().any(|link| link.medium.is_some() || link.forward.iter().chain(&link.backward).any(by_chance))
}
