//! What would other settings do? Answered by the model, with its known error.
//!
//! The model is no evidence: beside each answer stands how far it was from a real kernel on paths like this one, and a gain
//! within that error is no gain.

/// The answer.
mod answer;
/// The answer as a chart.
mod chart;
/// Where: a scenario, or a link described by its figures.
mod path;
/// What is asked.
mod request;
#[cfg(test)]
mod tests;

pub use answer::{PredictAnswer, PredictedArm};
pub use path::{LinkRequest, PathRequest};
pub use request::{PredictRequest, USUAL_KNOBS};

use crate::model::{self, is_random};
use crate::stack::{StackSettings, asked_host_stack};
use crate::surface::{Question, processors, sample_interval};
use std::time::Duration;
use wt_lab::Scenario;
use wt_problem::Problem;
use wt_setup::Design;
use wt_setup::design::{DesignFacts, design};
use wt_sim::{SimTunnel, StackConfig};
use wt_trial::{Amount, Cancel, PathFacts, Tunnel as _, Workload};
use wt_units::{Bytes, Knob};
use wt_wire::{Headers, IpVersion, Transport};

/// A transfer is given up after this long, in the model's time.
const DEADLINE: Duration = Duration::from_secs(3_600);
/// A sender that waits for room in its send buffer for this share of its time is held by it: with any room it would wait less.
pub(crate) const HELD: f64 = 0.05;
/// How often the sender is looked at where nobody asks for what was seen.
const USUAL_INTERVAL: Duration = Duration::from_millis(50);

/// Asks the model what the settings of a request do on its path, on as many processors as there are.
///
/// # Errors
/// A usage problem where the request, the path or a setting is invalid; a stopped one once `cancel` is set.
pub fn predict(request: &PredictRequest, cancel: &Cancel) -> Result<PredictAnswer, Problem> {
    predict_on(request, processors(), cancel)
}

/// The same on so many threads at most.
pub(crate) fn predict_on(request: &PredictRequest, threads: usize, cancel: &Cancel) -> Result<PredictAnswer, Problem> {
    request.check()?;
    let scenario = request.path.scenario()?;
    let (stack, host) = if request.this_host {
        asked_host_stack().map(|(stack, settings)| (stack, Some(settings)))?
    } else {
        (StackConfig::default(), None)
    };
    let tunnel = model::tunnel(&scenario, stack)?;
    let facts = tunnel.path(request.workload.direction(request.direction));
    let mut design = design_of(request, &scenario, &tunnel, &facts)?;
    if let Some(current) = design.arms.first_mut() {
        current.why = why_current(host.as_ref());
    }
    for arm in &design.arms {
        tunnel.check(&arm.settings).map_err(|error| Problem::usage(error.to_string()))?;
    }
    let workload = workload_of(request, &facts);
    let random = is_random(&scenario.path(), &workload);
    let question = Question {
        tunnel: &tunnel,
        arms: &design.arms,
        workload: workload.clone(),
        deadline: DEADLINE,
        seeds: if random { request.seeds } else { 1 },
        seed: request.seed,
        sample_every: if request.samples { sample_interval(facts.rtt_us) } else { USUAL_INTERVAL },
        samples: request.samples,
    };
    let mut forecasts = question.answer_on(threads, cancel)?;
    let seeds = (question.seeds, random);
    // Nobody named what is varied, and what holds the transfer is none of it.
    if request.chooses_knobs() && forecasts.first().is_some_and(|current| current.buffer_limited >= HELD) {
        let buffers = PredictRequest { knobs: Some(vec![Knob::Sndbuf]), levels: Vec::new(), ..request.clone() };
        let larger = design_of(&buffers, &scenario, &tunnel, &facts)?;
        let mut more = Question { arms: &larger.arms[1..], ..question }.answer_on(threads, cancel)?;
        more.iter_mut().for_each(|forecast| forecast.arm += design.arms.len());
        forecasts.append(&mut more);
        design.arms.extend(larger.arms.into_iter().skip(1));
    }
    let answer = PredictAnswer::of(&scenario, workload, seeds, &design, forecasts);
    Ok(PredictAnswer { this_host: host, ..answer })
}

/// Whose the current settings are, and what.
fn why_current(host: Option<&StackSettings>) -> String {
    match host {
        Some(settings) => format!("this host's: {settings}"),
        None => format!("the defaults of Linux 6.18, whatever a host has: {}", StackSettings::usual()),
    }
}

/// What is compared: each level by itself, or the settings that are asked for, together.
fn design_of(
    request: &PredictRequest,
    scenario: &Scenario,
    tunnel: &SimTunnel,
    path: &PathFacts,
) -> Result<Design, Problem> {
    let current = tunnel.current();
    let framing = &scenario.bottleneck().framing;
    let segment = Headers { ip: IpVersion::V4, transport: Transport::Tcp { options_len: 12 } };
    let best_mtu = |most: u64| {
        framing.cells(Bytes(most))?;
        framing.best_mtu(Bytes(most.saturating_sub(47)), segment).ok().map(Bytes::get)
    };
    let controls = wt_sim::cc::NAMES.map(str::to_owned);
    let mss = path.pmtu.saturating_sub(tunnel.header_len()).max(1);
    let facts = DesignFacts { current: &current, path, congestion_controls: &controls, mss, best_mtu: &best_mtu };
    match &request.set[..] {
        [] => design(request.knobs(), &request.levels, &facts),
        set => wt_setup::together(set, &facts),
    }
}

/// What each run does: a transfer of a size, or what was asked for as long as goes in 75 RTTs.
fn workload_of(request: &PredictRequest, path: &PathFacts) -> Workload {
    let usual =
        Duration::from_micros(path.rtt_us.saturating_mul(75)).clamp(Duration::from_secs(3), Duration::from_secs(60));
    let time = request.time.or_else(|| request.workload.usual_time()).unwrap_or(usual);
    let direction = request.direction;
    match request.size {
        Some(size) => Workload::Bulk { direction, amount: Amount::Size(size) },
        None => request.workload.workload(direction, time),
    }
}
