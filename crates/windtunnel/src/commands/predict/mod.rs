//! `windtunnel predict`: what would other settings do? Answered by the model, with its known error.

/// Settings that are asked for together.
pub(crate) mod asked;
/// The shipped calibration.
pub(crate) mod known;
/// A path from flags.
mod path;
/// The answer in its forms.
mod show;
/// The computation.
pub(crate) mod surface;

use super::tune::design::{Design, Known, Levels, design};
use super::tune::workload::Wanted;
use super::{lab, model};
use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use known::Region;
use path::PathFlags;
use std::path::PathBuf;
use std::time::Duration;
use surface::{Answer, Question};
use wt_lab::Scenario;
use wt_link::{Discipline, LossConfig, PathConfig, RateConfig, StageConfig};
use wt_report::Measured;
use wt_sim::StackConfig;
use wt_trial::{Amount, Cancel, Direction, Tunnel, Workload};
use wt_units::{Bytes, Knob, Level};
use wt_wire::{Headers, IpVersion, Transport};

/// Says what other settings would do on a path, by a model of Linux TCP, in moments
///
/// The model runs the stages of the lab's path and Linux' procedures in virtual time. It is no evidence: beside each answer
/// stands how far it was from a real kernel on paths like this one, and a gain within that error is no gain. Use it to choose
/// what is worth measuring with `windtunnel tune`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel predict adsl
  windtunnel predict transatlantic --knobs cc,initcwnd --size 1MB
  windtunnel predict --rate 8mbit --rtt 40ms --loss 0.1% --queue 64KiB --framing pppoe-llcsnap
  windtunnel predict transatlantic --set cc=bbr,initcwnd=20 --size 3MB
  windtunnel predict lte --workload page --knobs initcwnd
  windtunnel predict dialup --levels rwin=1x..16x --svg rwin.svg")]
pub(crate) struct PredictArgs {
    /// A preset's name or a TOML file; or describe the path with --rate and its companions
    path: Option<String>,
    #[command(flatten)]
    flags: PathFlags,
    /// What to vary
    #[arg(long, value_delimiter = ',', default_value = "rwin,mtu,cc,initcwnd", value_parser = knob)]
    knobs: Vec<Knob>,
    /// Levels of a knob, instead of those chosen from the path: rwin=4x,8x,64KiB or rwin=1x..16x; may be repeated
    #[arg(long, value_name = "KNOB=LEVELS")]
    levels: Vec<Levels>,
    /// Settings to compare with the current ones, all of them together; then nothing else is varied
    #[arg(long, value_name = "KNOB=LEVEL,…", value_delimiter = ',', conflicts_with_all = ["knobs", "levels"])]
    set: Vec<asked::One>,
    /// What is done, in the words of `tune`: bulk, soak, transactions, bursts, stream, page, competing, load, with their parameters;
    /// --workload help lists all
    #[arg(long, value_name = "WORKLOAD[:KEY=VALUE,…]", default_value = "bulk")]
    workload: Wanted,
    /// A transfer of this size [default: as much as goes in 75 RTTs, 3 s to 60 s]
    #[arg(long, value_name = "SIZE", conflicts_with = "time")]
    size: Option<Bytes>,
    /// As much as goes in so long
    #[arg(long, value_parser = super::tune::trial_time)]
    time: Option<Duration>,
    /// Payload from the client to the server
    #[arg(long)]
    up: bool,
    /// How many different fates of chance each setting meets, where there is chance
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Also tell each setting's first run over time, in the JSON
    #[arg(long, requires = "json")]
    samples: bool,
    /// Writes the chart as SVG into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

fn knob(text: &str) -> Result<Knob, String> {
    text.parse().map_err(|error: wt_units::ParseError| error.to_string())
}

/// Everything that the answer shows.
struct Prediction {
    scenario: Scenario,
    direction: Direction,
    workload: Workload,
    design: Design,
    answers: Vec<Answer>,
    seeds: u64,
    error: Option<Region>,
}

/// A transfer is given up after this long, in the model's time.
const DEADLINE: Duration = Duration::from_secs(3_600);

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &PredictArgs) -> Outcome {
    let scenario = match &args.path {
        Some(path) => lab::load(path)?,
        None => args.flags.scenario()?,
    };
    let prediction = predict(scenario, args)?;
    if let Some(file) = &args.svg {
        let svg = show::chart(&prediction).to_svg(760, 420);
        std::fs::write(file, svg)
            .map_err(|error| Failure::environment(format!("can't write {}: {error}", file.display())))?;
    }
    if args.json {
        say!("{}", show::json(&prediction));
    } else {
        show::terminal(&prediction);
    }
    Ok(Exit::Done)
}

fn predict(scenario: Scenario, args: &PredictArgs) -> Result<Prediction, Failure> {
    let tunnel = model::tunnel(&scenario, StackConfig::default())?;
    let direction = if args.up { Direction::Up } else { Direction::Down };
    let facts = tunnel.path(direction);
    let current = tunnel.current();
    let framing = scenario.bottleneck().framing.clone();
    let segment = Headers { ip: IpVersion::V4, transport: Transport::Tcp { options_len: 12 } };
    let best_mtu = |most: u64| {
        framing.cells(Bytes(most))?;
        framing.best_mtu(Bytes(most.saturating_sub(47)), segment).ok().map(Bytes::get)
    };
    let controls = wt_sim::cc::NAMES.map(str::to_owned);
    let mss = facts.pmtu.saturating_sub(tunnel.header_len()).max(1);
    let known = Known { current: &current, path: &facts, congestion_controls: &controls, mss, best_mtu: &best_mtu };
    let design = match &args.set[..] {
        [] => design(&args.knobs, &args.levels, &known)?,
        set => asked::design(set, &known)?,
    };
    for arm in &design.arms {
        tunnel.check(&arm.settings).map_err(|error| Failure::usage(error.to_string()))?;
    }
    let usual =
        Duration::from_micros(facts.rtt_us.saturating_mul(75)).clamp(Duration::from_secs(3), Duration::from_secs(60));
    let time = args.time.or_else(|| args.workload.usual_time()).unwrap_or(usual);
    let workload = match args.size {
        Some(size) if size.get() == 0 => return Err(Failure::usage("--size 0: there is nothing to transfer")),
        Some(_) if !args.workload.is_plain() => {
            return Err(Failure::usage("--size is for one transfer")
                .hint("page:size=… and bulk:size=… have sizes of their own"));
        }
        Some(size) => Workload::Bulk { direction, amount: Amount::Size(size) },
        None => args.workload.workload(direction, time),
    };
    let mut question = Question {
        tunnel: &tunnel,
        arms: &design.arms,
        workload: workload.clone(),
        deadline: DEADLINE,
        seeds: args.seeds,
        seed: args.seed,
        sample_every: if args.samples { fine(facts.rtt_us) } else { Duration::from_millis(50) },
        samples: args.samples,
    };
    let cancel = Cancel::new();
    let fail = |error: wt_sim::SimError| model::failure(&error);
    question.seeds = if has_chance(&scenario.path()) { args.seeds } else { 1 };
    let answers = question.answer(&cancel).map_err(fail)?;
    let (seeds, error) = (question.seeds, known::error_on(&scenario, &facts));
    Ok(Prediction { direction, workload, answers, seeds, error, design, scenario })
}

/// Often enough to see slow start: twice a round trip.
pub(crate) fn fine(rtt_us: u64) -> Duration {
    Duration::from_micros(rtt_us / 2).clamp(Duration::from_millis(2), Duration::from_millis(50))
}

/// Whether anything on a path is left to chance.
pub(crate) fn has_chance(path: &PathConfig) -> bool {
    let by_chance = |stage: &StageConfig| match stage {
        StageConfig::Loss(loss) => !matches!(loss, LossConfig::EveryNth { .. } | LossConfig::Next { .. }),
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

impl Prediction {
    /// What is compared, and how people are told of it.
    fn measured(&self) -> Measured {
        surface::measured(&self.workload)
    }

    /// The gain of an answer over the current settings: the ratio of what is compared, less one; more is better.
    fn gain(&self, answer: &Answer) -> Option<f64> {
        let current = self.answers.first()?;
        let ratio = match (answer.figure, current.figure) {
            (Some(figure), Some(now)) if self.measured().better == "smaller" => now / figure,
            (Some(figure), Some(now)) => figure / now,
            _ => answer.goodput_bps / current.goodput_bps,
        };
        ratio.is_finite().then_some(ratio - 1.0)
    }

    /// Whether a gain is more than the model's error on nine in ten of such paths.
    fn is_worth_measuring(&self, answer: &Answer) -> bool {
        let error = self.error.as_ref().map_or(0.1, |region| region.p90);
        answer.arm > 0 && self.gain(answer).is_some_and(|gain| gain > error.max(0.01))
    }

    /// Candidates for `tune`, the most promising one first.
    fn candidates(&self) -> Vec<&Answer> {
        let mut candidates: Vec<&Answer> =
            self.answers.iter().filter(|answer| self.is_worth_measuring(answer)).collect();
        candidates.sort_by(|a, b| self.gain(b).unwrap_or(0.0).total_cmp(&self.gain(a).unwrap_or(0.0)));
        candidates
    }

    /// What an arm varies: the knob and its level.
    fn varied(&self, arm: usize) -> Option<(Knob, &Level)> {
        self.design.arms[arm].settings.iter().next()
    }
}
