use wt_lab::Scenario;
use wt_lab::scenario::{BlockedTraffic, Hop, HopDirection, HopIcmp, Link, MssClamp, StrippedOption};
use wt_link::{Discipline, LossConfig, PathConfig, RateConfig, StageConfig};
use wt_problem::Problem;
use wt_sim::{SimError, SimPath, SimTunnel, StackConfig, SynChange};
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
    Ok(tunnel_of(sim_path(scenario), stack)?.changing_syns(syn_changes(scenario)))
}

/// What the hops of a scenario do to the SYNs of the client, and to those of the server.
fn syn_changes(scenario: &Scenario) -> [Vec<SynChange>; 2] {
    let links = &scenario.links;
    let of = |number: usize| {
        let around = links[number.saturating_sub(1)..=number].iter().map(|link| link.mtu.get());
        changes_of(&links[number].hop, around.min().unwrap_or(u64::MAX))
    };
    let towards = |number: &usize, way: HopDirection| [HopDirection::Both, way].contains(&links[*number].hop.direction);
    let up = (0..links.len()).filter(|number| towards(number, HopDirection::Up)).flat_map(of);
    let down = (0..links.len()).rev().filter(|number| towards(number, HopDirection::Down)).flat_map(of);
    [up.collect(), down.collect()]
}

/// What one hop does to SYNs that it changes; the smaller MTU of the links around it is `mtu`.
fn changes_of(hop: &Hop, mtu: u64) -> Vec<SynChange> {
    let clamp = hop.mss_clamp.map(|clamp| match clamp {
        MssClamp::Pmtu => u16::try_from(mtu.saturating_sub(40)).unwrap_or(u16::MAX).max(1),
        MssClamp::At(most) => most,
    });
    let written = [
        clamp.map(SynChange::ClampMss),
        hop.mss.map(SynChange::WriteMss),
        hop.window_scale.map(SynChange::WriteWindowScale),
    ];
    let stripped = hop.strip.iter().filter_map(|option| match option {
        StrippedOption::Mss => Some(SynChange::StripMss),
        StrippedOption::WindowScale => Some(SynChange::StripWindowScale),
        StrippedOption::Sack => Some(SynChange::StripSack),
        StrippedOption::Timestamps => Some(SynChange::StripTimestamps),
        // The model has none.
        StrippedOption::FastOpen => None,
    });
    written.into_iter().flatten().chain(stripped).collect()
}

/// What hops of a scenario do to TCP that the model leaves out, a sentence each hop; nothing of what the model does, nor of what
/// only pings, traces and other protocols meet.
pub(crate) fn left_out_hops(scenario: &Scenario) -> Vec<String> {
    let hosts_mtu = u64::from(scenario.client_mtu.max(scenario.server_mtu));
    // Only what is too long for a link has a router speak of it.
    let speaks_of_mtu = scenario.links.iter().any(|link| link.mtu.get() < hosts_mtu);
    let sentence = |link: &Link| {
        let mut hop = Hop {
            mss_clamp: None,
            mss: None,
            window_scale: None,
            strip: Vec::new(),
            nat: None,
            host: None,
            ..link.hop.clone()
        };
        hop.block.retain(|blocked| *blocked != BlockedTraffic::Udp);
        // It is of IPv4.
        hop.icmp.too_big[1] = hop.icmp.too_big[0];
        (hop.icmp.time_exceeded, hop.icmp.echo) = (true, true);
        if !speaks_of_mtu {
            hop.icmp = HopIcmp::default();
            hop.block.retain(|blocked| *blocked == BlockedTraffic::Fragments);
        }
        let does = hop.describe();
        (!does.is_empty())
            .then(|| format!("The hop before \"{}\" {}: the model leaves that out.", link.name, does.join(", ")))
    };
    scenario.links.iter().filter_map(sentence).collect()
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
