//! The chain in the model: two connections, and the edge as a relay between them.

use super::answer::{CdnModelled, RequestModelled, WindowModelled};
use super::request::CdnRequest;
use super::timed::TimedRequests;
use super::windows::{EdgeRequest, WINDOWS};
use std::collections::BTreeMap;
use std::time::Duration;
use wt_experiment::factorial::Run;
use wt_forecast::model;
use wt_lab::Scenario;
use wt_link::PathConfig;
use wt_problem::Problem;
use wt_sim::{Exchange, FlowSpec, Job, RelaySpec, Simulation, StackConfig};
use wt_trial::Direction;

/// What our client asks, and the head of a web server's answer, bytes.
const ASK: u64 = 60;
const HEAD: u64 = 300;
/// A request takes no longer.
const PATIENCE: Duration = Duration::from_secs(600);

/// The two halves of the path: client to edge, edge to backend.
fn halves(scenario: &Scenario) -> (PathConfig, PathConfig) {
    let mut near = scenario.path();
    let edge = scenario.links.iter().position(|link| link.hop.host.is_some()).unwrap_or(0);
    let far = near.links.split_off(edge.min(near.links.len()));
    (near, PathConfig { links: far })
}

/// How long one request takes from the first SYN to the last byte.
fn request(
    halves: &(PathConfig, PathConfig),
    asked: &CdnRequest,
    kind: EdgeRequest,
    run: &Run,
) -> Result<Option<Duration>, Problem> {
    let level = |large: bool| if large { asked.high } else { asked.low };
    let end = StackConfig::default;
    let answer = asked.object.get() + HEAD;
    let client = StackConfig { initrwnd: Some(level(run[3])), ..end() };
    let near = StackConfig { initcwnd: level(run[2]), ..end() };
    let failed = |error| model::problem(&error);
    let mut simulation = Simulation::new(&halves.0, Vec::new(), asked.lab.seed).map_err(failed)?;
    let flow = match kind {
        EdgeRequest::Hit => {
            let job = Job::Exchanges(vec![Exchange { ask: ASK, answer, pause: Duration::ZERO }]);
            simulation.add_flow(FlowSpec { client, server: near, job, start: Duration::ZERO }).map_err(failed)?
        }
        EdgeRequest::Miss => {
            let far = StackConfig { initrwnd: Some(level(run[1])), ..end() };
            let origin = StackConfig { initcwnd: level(run[0]), ..end() };
            // An edge that keeps no idle connections asks over a new one.
            let spec = RelaySpec { client, near, far, origin, answer, on_demand: true };
            simulation.add_relay(&halves.1, spec).map_err(failed)?.0
        }
    };
    let report = simulation.run(PATIENCE);
    let flow = &report.flows[flow];
    Ok(flow.connect.zip(flow.elapsed).map(|(connect, elapsed)| connect + elapsed))
}

/// By how much the large level of a window is faster: the mean over both levels of the others.
fn ratio(timed: &TimedRequests, window: usize) -> Option<f64> {
    let mean = |large: bool| timed.mean(|run| run[window] == large);
    Some(mean(false)? / mean(true)?)
}

/// Computes all combinations.
///
/// # Errors
/// A [`Problem`] where the model can't run the path.
pub(super) fn run(asked: &CdnRequest, scenario: &Scenario) -> Result<CdnModelled, Problem> {
    let halves = halves(scenario);
    let mut requests = BTreeMap::new();
    for kind in EdgeRequest::ALL {
        let mut timed = TimedRequests::default();
        for number in 0..1_usize << WINDOWS.len() {
            let run: Run = (0..WINDOWS.len()).map(|window| number >> window & 1 == 1).collect();
            let took = request(&halves, asked, kind, &run)?.ok_or_else(|| {
                Problem::usage(format!("the object never arrives on {}, in the model", asked.lab.path))
                    .hint("windtunnel lab show PATH prints its rates and losses")
            })?;
            timed.0.push((run, took));
        }
        requests.insert(kind, answer(&timed, (asked.low, asked.high)));
    }
    Ok(CdnModelled {
        schema_version: 1,
        tunnel: "sim",
        path: asked.lab.path.clone(),
        object_bytes: asked.object.get(),
        low: asked.low,
        high: asked.high,
        rtt_ms: scenario.facts(Direction::Down).rtt_us as f64 / 1e3,
        requests,
    })
}

fn answer(timed: &TimedRequests, levels: (u32, u32)) -> RequestModelled {
    let window = |(number, (window, what)): (usize, &(&'static str, &'static str))| WindowModelled {
        window,
        what,
        ratio: ratio(timed, number),
    };
    RequestModelled {
        seconds: timed.mean(|_| true),
        windows: WINDOWS.iter().enumerate().map(window).collect(),
        combinations: timed.hops(levels),
    }
}
