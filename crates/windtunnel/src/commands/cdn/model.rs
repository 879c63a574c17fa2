//! The chain in the model: two connections, and the edge as a relay between them.

use super::chain::Request;
use super::result::Trials;
use super::{CdnArgs, WINDOWS};
use crate::commands::model;
use crate::edge::{Exit, Failure, Outcome, say};
use serde_json::{Map, Value, json};
use std::time::Duration;
use wt_experiment::factorial::Run;
use wt_lab::Scenario;
use wt_link::PathConfig;
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
    args: &CdnArgs,
    kind: Request,
    run: &Run,
) -> Result<Option<Duration>, Failure> {
    let level = |large: bool| if large { args.high } else { args.low };
    let end = StackConfig::default;
    let answer = args.object.get() + HEAD;
    let client = StackConfig { initrwnd: Some(level(run[3])), ..end() };
    let near = StackConfig { initcwnd: level(run[2]), ..end() };
    let failed = |error| model::failure(&error);
    let mut simulation = Simulation::new(&halves.0, Vec::new(), args.options.seed).map_err(failed)?;
    let flow = match kind {
        Request::Hit => {
            let job = Job::Exchanges(vec![Exchange { ask: ASK, answer, pause: Duration::ZERO }]);
            simulation.add_flow(FlowSpec { client, server: near, job, start: Duration::ZERO }).map_err(failed)?
        }
        Request::Miss => {
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
fn ratio(trials: &Trials, window: usize) -> Option<f64> {
    let mean = |large: bool| trials.mean(|run| run[window] == large);
    Some(mean(false)? / mean(true)?)
}

/// Computes all combinations and prints what they come to.
///
/// # Errors
/// A [`Failure`] where the model can't run the path.
pub(super) fn run(args: &CdnArgs, scenario: &Scenario) -> Outcome {
    let halves = halves(scenario);
    let levels = (args.low, args.high);
    let mut requests = Map::new();
    if !args.json {
        say!("{}: a model's answer, not a measurement; an object of {} over cold connections", args.path, args.object);
    }
    for kind in [Request::Hit, Request::Miss] {
        let mut trials = Trials::default();
        for number in 0..1_usize << WINDOWS.len() {
            let run: Run = (0..WINDOWS.len()).map(|window| number >> window & 1 == 1).collect();
            let took = request(&halves, args, kind, &run)?.ok_or_else(|| {
                Failure::usage(format!("the object never arrives on {}, in the model", args.path))
                    .hint("windtunnel lab show PATH prints its rates and losses")
            })?;
            trials.0.push((run, took));
        }
        if args.json {
            requests.insert(kind.name().to_owned(), object(&trials, levels));
        } else {
            print(kind, &trials, levels);
        }
    }
    if args.json {
        say!(
            "{}",
            json!({
                "schema_version": 1,
                "tunnel": "sim",
                "path": args.path,
                "object_bytes": args.object.get(),
                "low": args.low,
                "high": args.high,
                "rtt_ms": scenario.facts(Direction::Down).rtt_us as f64 / 1e3,
                "requests": requests,
            })
        );
    }
    Ok(Exit::Done)
}

fn object(trials: &Trials, levels: (u32, u32)) -> Value {
    let window = |(number, (name, what)): (usize, &(&str, &str))| json!({ "window": name, "what": what, "ratio": ratio(trials, number) });
    json!({
        "seconds": trials.mean(|_| true),
        "windows": WINDOWS.iter().enumerate().map(window).collect::<Vec<_>>(),
        "combinations": trials.hops(levels),
    })
}

fn print(kind: Request, trials: &Trials, levels: (u32, u32)) {
    say!("\n{}\n  {:<44} {:>14}", kind.title(), "window", format!("{} -> {}", levels.0, levels.1));
    for (number, (_, what)) in WINDOWS.iter().enumerate() {
        let ratio = ratio(trials, number).map_or("?".to_owned(), |ratio| format!("×{ratio:.2}"));
        say!("  {what:<44} {ratio:>14}");
    }
    trials.print_hops(levels);
}
