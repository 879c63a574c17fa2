//! `windtunnel cdn`: a client, an edge and a backend, and which of their four initial windows matters on which request.

/// The three hosts.
mod chain;
/// The same, computed.
mod model;
/// What came of it, in words and as JSON.
mod result;
/// What runs in them.
mod servers;

use super::lab::{self, LabOptions};
use super::tune::cancel_on_signals;
use crate::edge::{Failure, Fault, Outcome};
use chain::{Chain, Proxy, Request};
use clap::Args;
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use result::{Kind, Report, Trials};
use std::time::Duration;
use wt_experiment::factorial::{Run, Screen};
use wt_trial::Cancel;
use wt_units::Bytes;

/// The probability of any false "matters", over both kinds of requests.
const ALPHA: f64 = 0.05;
/// Requests that come late by our own fault are asked again at most so often in a row.
const REPEATS: u32 = 3;

/// The four windows, in the order of their knobs: whose, which, and towards whom.
pub(crate) const WINDOWS: [(&str, &str); 4] = [
    ("backend", "initcwnd of the backend towards the edge"),
    ("edge-receive", "initrwnd of the edge towards the backend"),
    ("edge-send", "initcwnd of the edge towards the client"),
    ("client", "initrwnd of the client towards the edge"),
];

/// Which of the four initial windows of a CDN matters on which request
///
/// A client, an edge with nginx or Varnish as a caching proxy, and a backend, as three hosts of the lab. Every round asks for an object
/// that the edge has (a hit) and for one that it must fetch (a miss) under half of the combinations of two levels of
/// each window, in random order, over cold connections. What is claimed holds however long you watched (95 %).
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel cdn
  windtunnel cdn my-chain.toml --object 300kB --low 4 --high 32 --rounds 12 --json
  windtunnel cdn --model")]
pub(crate) struct CdnArgs {
    /// The path: a preset's name or a TOML file, with one host on the way
    #[arg(default_value = "cdn-chain", value_name = "PATH")]
    path: String,
    /// How large the object is
    #[arg(long, default_value = "100kB", value_parser = object)]
    object: Bytes,
    /// The small level of each window, segments
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1000))]
    low: u32,
    /// The large level of each window, segments
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(2..=1000))]
    high: u32,
    /// Rounds, of eight combinations each
    #[arg(long, default_value_t = 12, value_parser = clap::value_parser!(u32).range(2..=1000))]
    rounds: u32,
    /// Let the model answer, in moments and without any host: all sixteen combinations once. It is no evidence
    #[arg(long, conflicts_with_all = ["rounds", "proxy"])]
    model: bool,
    /// What caches at the edge
    #[arg(long, value_enum, default_value_t = Proxy::Nginx)]
    proxy: Proxy,
    #[command(flatten)]
    options: LabOptions,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// No progress
    #[arg(long, short)]
    quiet: bool,
}

fn object(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if (1..=50_000_000).contains(&size.get()) { Ok(size) } else { Err("from 1 B to 50 MB, please".to_owned()) }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &CdnArgs) -> Outcome {
    if args.low >= args.high {
        return Err(Failure::usage("--low must be smaller than --high"));
    }
    let scenario = lab::load(&args.path)?;
    if scenario.links.iter().filter(|link| link.hop.host.is_some()).count() != 1 {
        return Err(Failure::usage(format!("{} has not exactly one host on the way", args.path))
            .hint("windtunnel lab show cdn-chain prints an example: hop = { host = \"edge\" }"));
    }
    if args.model {
        return model::run(args, &scenario);
    }
    let lab = lab::start(scenario, &args.options)?;
    let cancel = cancel_on_signals()?;
    let chain = Chain::start(lab, args.object, args.proxy)?;
    let mut session = Session { args, chain, cancel, counter: 0 };
    let report = session.rounds()?;
    Ok(report.tell(args.json))
}

struct Session<'a> {
    args: &'a CdnArgs,
    chain: Chain,
    cancel: Cancel,
    /// Names objects that nobody has asked for yet.
    counter: u64,
}

impl Session<'_> {
    fn rounds(&mut self) -> Result<Report, Failure> {
        let ours = |error: &dyn std::fmt::Display| Failure::ours(error.to_string());
        let mut rng = ChaCha12Rng::seed_from_u64(self.args.options.seed);
        let mut kinds = Vec::new();
        for request in [Request::Hit, Request::Miss] {
            let screen = Screen::new(WINDOWS.len(), ALPHA / 2.0).map_err(|error| ours(&error))?;
            kinds.push(Kind { request, screen, trials: Trials::default() });
        }
        self.say(&format!("{} rounds take about {} s", self.args.rounds, self.expected().as_secs().max(1)));
        for round in 1..=self.args.rounds {
            for kind in &mut kinds {
                let mut outcomes: Vec<(Run, f64)> = Vec::new();
                for run in kind.screen.next_round(&mut rng) {
                    if self.cancel.is_cancelled() {
                        break;
                    }
                    let took = self.trial(kind.request, &run)?;
                    outcomes.push((run.clone(), -took.as_secs_f64().ln()));
                    kind.trials.0.push((run, took));
                }
                kind.screen.record(&outcomes).map_err(|error| ours(&error))?;
            }
            if self.cancel.is_cancelled() {
                if round == 1 {
                    return Err(Failure::new(Fault::Stopped, "stopped in the first round"));
                }
                break;
            }
            self.say(&format!("round {round} of {}", self.args.rounds));
        }
        let round_trips = self.chain.round_trips();
        Ok(Report {
            path: self.args.path.clone(),
            proxy: self.args.proxy.name(),
            object: self.args.object,
            levels: (self.args.low, self.args.high),
            round_trips,
            kinds,
        })
    }

    /// About how long all rounds take: eight combinations of each kind, half of them with small windows.
    fn expected(&self) -> Duration {
        let each = [Request::Hit, Request::Miss]
            .map(|request| self.chain.expected(request, self.args.low) + self.chain.expected(request, self.args.high));
        each.iter().sum::<Duration>() * 4 * self.args.rounds
    }

    /// One request over cold connections; again when the lab itself was late.
    fn trial(&mut self, request: Request, run: &Run) -> Result<Duration, Failure> {
        let level = |high: bool| if high { self.args.high } else { self.args.low };
        let windows = [level(run[0]), level(run[1]), level(run[2]), level(run[3])];
        self.chain.set_windows(windows)?;
        let mut taken = None;
        for _ in 0..=REPEATS {
            self.counter += 1;
            let (took, complaint) = self.chain.request(request, self.counter)?;
            taken = Some(took);
            if complaint.is_none() {
                break;
            }
        }
        taken.ok_or_else(|| Failure::ours("a request took no time"))
    }

    fn say(&self, text: &str) {
        use std::io::Write as _;
        if !self.args.quiet {
            let _ = writeln!(std::io::stderr().lock(), "{text}");
        }
    }
}
