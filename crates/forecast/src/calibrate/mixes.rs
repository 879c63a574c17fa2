//! Several downloads that share a path, in the lab and in the model: who gets which share, and how long they take.
//!
//! Which flow loses a packet depends on a microsecond, and whatever follows on that. So a cell is run with several draws of
//! starts, the same ones in both, and the means over them are compared, by congestion control.

use super::{CalibrateRequest, CalibratedEnds};
use crate::model;
use crate::stack::kernel_stack;
use serde::Serialize;
use std::time::Duration;
use wt_lab::scenario::{Direction as Way, InvalidScenario, Link, QueueBound, Scenario};
use wt_lab::{Lab, LabTunnel, SharedFlow, SharedFlowOutcome};
use wt_link::{CoDelConfig, Discipline, FqCoDelConfig, PieConfig, StageConfig};
use wt_problem::Problem;
use wt_sim::{FlowSpec, Job, Report, SimPath, Simulation, StackConfig};
use wt_trial::{Amount, Cancel, Direction, Phase, TrialSpec, Tunnel as _, Workload};
use wt_units::{BitsPerSecond, Bytes, Knob, Settings};

/// The name of its region.
pub(super) const REGION: &str = "mixes";
/// How long all flows together take at least: so many bytes they have.
const FULL_FOR: Duration = Duration::from_secs(6);
/// Flows begin within this time.
const STARTS_WITHIN: Duration = Duration::from_secs(1);
/// No run takes longer.
const DEADLINE: Duration = Duration::from_secs(120);
/// How often bytes are counted in the model.
const SAMPLE_EVERY: Duration = Duration::from_millis(50);

/// What waits in front of the link.
const QUEUES: [(&str, bool); 7] = [
    ("drop-tail", false),
    ("codel", false),
    ("codel", true),
    ("fq-codel", false),
    ("fq-codel", true),
    ("pie", false),
    ("pie", true),
];

/// Who shares it: congestion controls and how many flows each has.
const MIXES: [&[(&str, u32)]; 10] = [
    &[("cubic", 2)],
    &[("bbr", 2)],
    &[("cubic", 1), ("reno", 1)],
    &[("cubic", 1), ("bbr", 1)],
    &[("cubic", 4)],
    &[("cubic", 2), ("reno", 2)],
    &[("cubic", 3), ("bbr", 3)],
    &[("reno", 8)],
    &[("cubic", 10)],
    &[("cubic", 4), ("reno", 3), ("bbr", 3)],
];

/// Rate and RTT of the link.
const LINES: [(u64, u64); 3] = [(20_000_000, 40_000), (10_000_000, 80_000), (8_000_000, 20_000)];

/// One mix over one path.
#[derive(Debug, Clone)]
pub(super) struct MixCell {
    /// How it is called: what it varies.
    pub(super) name: String,
    rate_bps: u64,
    rtt_us: u64,
    queue: &'static str,
    ecn: bool,
    mix: &'static [(&'static str, u32)],
}

/// All 70 cells.
pub(super) fn cells() -> Vec<MixCell> {
    let mut cells = Vec::new();
    for (number, mix) in MIXES.into_iter().enumerate() {
        for (turn, (queue, ecn)) in QUEUES.into_iter().enumerate() {
            let (rate_bps, rtt_us) = LINES[(number + turn) % LINES.len()];
            let who: Vec<String> = mix.iter().map(|(control, flows)| format!("{flows} {control}")).collect();
            let ecn_name = if ecn { " ecn" } else { "" };
            let (who, mbit, ms) = (who.join(" + "), rate_bps / 1_000_000, rtt_us / 1_000);
            let name = format!("{who} {queue}{ecn_name} {mbit}Mbit {ms}ms");
            cells.push(MixCell { name, rate_bps, rtt_us, queue, ecn, mix });
        }
    }
    cells
}

/// A mix of numbers that looks random (SplitMix64).
fn mixed(seed: u64) -> u64 {
    let mut z = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl MixCell {
    fn scenario(&self) -> Result<Scenario, InvalidScenario> {
        let ecn = self.ecn;
        let codel = CoDelConfig { ecn, ..CoDelConfig::default() };
        let aqm = match self.queue {
            "codel" => Some(Discipline::CoDel(codel)),
            "fq-codel" => Some(Discipline::FqCoDel(FqCoDelConfig { codel, ..FqCoDelConfig::default() })),
            "pie" => Some(Discipline::Pie(PieConfig { ecn, ..PieConfig::default() })),
            _ => None,
        };
        // A drop-tail queue holds one bandwidth-delay product; behind an AQM is room for four.
        let room = if aqm.is_some() { 4 } else { 1 };
        let packets = (self.rate_bps * self.rtt_us / 8_000_000 / 1_500 * room).max(10);
        let way = || {
            let way = Way::builder(BitsPerSecond(self.rate_bps)).delay(Duration::from_micros(self.rtt_us / 2));
            let way = way.queue(QueueBound::Packets(u32::try_from(packets).unwrap_or(u32::MAX)));
            if let Some(aqm) = aqm { way.aqm(aqm) } else { way }
        };
        let link = Link::builder("line", way(), way());
        Scenario::builder("mix").title("calibration").source("a row of the table").link(link).build()
    }

    /// What both hosts have.
    fn held(&self) -> Settings {
        let level = Knob::Ecn.parse_level(if self.ecn { "on" } else { "off" });
        level.ok().map(|level| (Knob::Ecn, level)).into_iter().collect()
    }

    /// The flows, with the starts of this draw.
    fn flows(&self, draw: u64) -> Vec<SharedFlow> {
        let all: u64 = self.mix.iter().map(|(_, flows)| u64::from(*flows)).sum();
        let size = Bytes(self.rate_bps / 8 * FULL_FOR.as_secs() / all);
        let controls = self.mix.iter().flat_map(|(control, flows)| (0..*flows).map(move |_| *control));
        let start = |number: u64| {
            let within = STARTS_WITHIN.as_micros() as u64;
            Duration::from_micros(mixed(draw << 8 | number) % within)
        };
        let flow =
            |(number, control): (u64, &str)| SharedFlow { control: control.to_owned(), start: start(number), size };
        (0..).zip(controls).map(flow).collect()
    }
}

/// Results of one congestion control of a mix: means over its flows and the draws.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixClass {
    /// The congestion control.
    pub control: String,
    /// How many flows have it.
    pub flows: u32,
    /// Its share of the bytes that had arrived when the first flow was done, in the lab and in the model.
    pub share: [f64; 2],
    /// Completion time of a flow, µs, in the lab and in the model.
    pub completion_us: [f64; 2],
}

/// One mix over one path in the lab and in the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MixRow {
    /// What it varies.
    pub name: String,
    /// By how many draws of starts in the lab.
    pub draws: u64,
    /// What the lab's machinery adds to the smallest RTT, µs; the model's path has it, too.
    pub rtt_excess_us: u64,
    /// Each congestion control.
    pub classes: Vec<MixClass>,
}

impl MixRow {
    /// Completion time of all flows, model over lab, minus one: the mean of flows.
    #[must_use]
    pub fn time_error(&self) -> f64 {
        let sum = |place: usize| -> f64 {
            self.classes.iter().map(|class| class.completion_us[place] * f64::from(class.flows)).sum()
        };
        sum(1) / sum(0) - 1.0
    }

    /// The largest error of any congestion control's completion time.
    #[must_use]
    pub fn worst_class_time_error(&self) -> f64 {
        let error = |class: &MixClass| class.completion_us[1] / class.completion_us[0] - 1.0;
        self.classes.iter().map(error).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0)
    }

    /// The largest difference of any congestion control's share, in shares of the path.
    #[must_use]
    pub fn share_error(&self) -> f64 {
        let error = |class: &MixClass| class.share[1] - class.share[0];
        self.classes.iter().map(error).max_by(|a, b| a.abs().total_cmp(&b.abs())).unwrap_or(0.0)
    }
}

/// Of each congestion control its share and its mean completion time, µs; `None` where not all was done.
pub(super) fn figures(cell: &MixCell, outcomes: &[SharedFlowOutcome]) -> Option<Vec<(f64, f64)>> {
    let ends: Option<Vec<Duration>> = outcomes.iter().map(|flow| Some(flow.begun + flow.elapsed?)).collect();
    let first = *ends?.iter().min()?;
    let size = cell.flows(0).first()?.size.get() as f64;
    let arrived = |flow: &SharedFlowOutcome| arrived_by(flow, size, first);
    let all: f64 = outcomes.iter().map(arrived).sum();
    let mut rest = outcomes;
    let mut figures = Vec::new();
    for (_, flows) in cell.mix {
        let (class, others) = rest.split_at_checked(*flows as usize)?;
        rest = others;
        let bytes: f64 = class.iter().map(arrived).sum();
        let time: Duration = class.iter().filter_map(|flow| flow.elapsed).sum();
        figures.push((bytes / all, time.as_secs_f64() * 1e6 / f64::from(*flows)));
    }
    Some(figures)
}

/// How much of a flow had arrived by a time, between two samples in proportion.
fn arrived_by(flow: &SharedFlowOutcome, size: f64, by: Duration) -> f64 {
    let Some(since) = by.checked_sub(flow.begun) else { return 0.0 };
    let end = flow.elapsed.map(|elapsed| (elapsed.as_secs_f64() * 1e6, size));
    let since = since.as_secs_f64() * 1e6;
    let mut before = (0.0, 0.0);
    let points = flow.arrivals.iter().map(|(us, bytes)| (*us as f64, (*bytes as f64).min(size)));
    for (us, bytes) in points.chain(end) {
        if us >= since {
            let share = if us > before.0 { (since - before.0) / (us - before.0) } else { 1.0 };
            return before.1 + (bytes - before.1) * share;
        }
        before = (us, bytes);
    }
    before.1
}

/// The model's path of a cell, with what the lab's machinery adds to its RTT.
fn model_path(cell: &MixCell, excess_us: u64) -> Result<SimPath, Problem> {
    let scenario = cell.scenario().map_err(|error| Problem::internal(error.to_string()))?;
    let mut path = model::sim_path(&scenario);
    path.config.links[0].backward.push(StageConfig::Delay { delay: Duration::from_micros(excess_us) });
    Ok(path)
}

/// What the model says of one draw.
pub(super) fn in_model(
    cell: &MixCell,
    stack: &StackConfig,
    excess_us: u64,
    draw: u64,
) -> Result<Vec<SharedFlowOutcome>, Problem> {
    let path = model_path(cell, excess_us)?;
    let mut simulation =
        Simulation::new(&path.config, path.icmp.clone(), draw).map_err(|error| model::problem(&error))?;
    simulation.sample_every(SAMPLE_EVERY);
    let tunnel = model::tunnel_of(path, stack.clone())?;
    for flow in cell.flows(draw) {
        let cc = Knob::Cc.parse_level(&flow.control).map_err(|error| Problem::internal(error.to_string()))?;
        let (client, server) = tunnel.stacks(&cell.held().with(Knob::Cc, cc), Direction::Down);
        let job = Job::Bulk { direction: Direction::Down, amount: Amount::Size(flow.size) };
        let spec = FlowSpec { client, server, job, start: flow.start };
        simulation.add_flow(spec).map_err(|error| model::problem(&error))?;
    }
    let Report { flows, .. } = simulation.run(DEADLINE);
    let outcome = |flow: wt_sim::FlowReport| SharedFlowOutcome {
        begun: flow.begun + flow.connect.unwrap_or_default(),
        elapsed: flow.elapsed,
        arrivals: flow.receiver.iter().map(|sample| (sample.t_us, sample.bytes)).collect(),
    };
    Ok(flows.into_iter().map(outcome).collect())
}

/// By how much the lab's smallest RTT exceeds the model's, µs.
fn excess(cell: &MixCell, lab: &mut LabTunnel, stack: &StackConfig, cancel: &Cancel) -> Result<u64, Problem> {
    let spec = TrialSpec {
        experiment: "calibrate".to_owned(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings: Settings::new(),
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(Bytes(10_000)) },
        deadline: DEADLINE,
        seed: 1,
    };
    let internal = |error: wt_trial::TunnelError| Problem::internal(error.to_string());
    let mut model = model::tunnel_of(model_path(cell, 0)?, stack.clone())?;
    let ideal = model.run(&spec, cancel).map_err(internal)?.observed.min_rtt_us.unwrap_or(u64::MAX);
    let lab = lab.run(&spec, cancel).map_err(|error| Problem::environment(error.to_string()))?;
    Ok(lab.observed.min_rtt_us.unwrap_or(0).saturating_sub(ideal))
}

/// Sums over draws, of each congestion control: share and completion time.
#[derive(Debug, Default)]
struct Sums {
    draws: u32,
    classes: Vec<(f64, f64)>,
}

impl Sums {
    fn add(&mut self, figures: &[(f64, f64)]) {
        self.draws += 1;
        self.classes.resize(figures.len(), (0.0, 0.0));
        for (sum, figure) in self.classes.iter_mut().zip(figures) {
            *sum = (sum.0 + figure.0, sum.1 + figure.1);
        }
    }

    /// Share and completion time of the congestion control with this number; not a number where no draw came to an end.
    fn mean(&self, number: usize) -> (f64, f64) {
        let (share, time) = self.classes.get(number).copied().unwrap_or_default();
        (share / f64::from(self.draws), time / f64::from(self.draws))
    }
}

/// One cell in both, and how the kernel's ends were set up; `None` where none of its runs finished.
pub(super) fn compare(
    cell: &MixCell,
    request: &CalibrateRequest,
    cancel: &Cancel,
) -> Result<Option<(MixRow, CalibratedEnds)>, Problem> {
    let scenario = cell.scenario().map_err(|error| Problem::internal(error.to_string()))?;
    let started = Lab::with(scenario, request.lab_options());
    let mut lab = started.and_then(LabTunnel::new).map_err(|error| wt_setup::lab::problem(&error))?;
    let stack = kernel_stack(&lab);
    let rtt_excess_us = excess(cell, &mut lab, &stack, cancel)?;
    let (mut in_lab, mut draws) = (Sums::default(), 0);
    for draw in (request.seed..).take(request.repeat as usize) {
        let ran = lab.share(&cell.held(), &cell.flows(draw), (draw, DEADLINE), cancel);
        let ran = ran.map_err(|error| Problem::environment(error.to_string()))?;
        if cancel.is_cancelled() {
            return Ok(None);
        }
        if let Some(figures) = figures(cell, &ran) {
            in_lab.add(&figures);
            draws += 1;
        }
    }
    if draws == 0 {
        return Ok(None);
    }
    let in_model = model_sums(cell, &stack, rtt_excess_us, request.seed, draws)?;
    let row = row_of(cell, rtt_excess_us, draws, &[in_lab, in_model]);
    Ok(Some((row, CalibratedEnds::of(&stack))))
}

/// The model's sums, where the lab had so many draws from this seed on.
fn model_sums(cell: &MixCell, stack: &StackConfig, excess_us: u64, seed: u64, draws: u64) -> Result<Sums, Problem> {
    let mut sums = Sums::default();
    for draw in (seed..).take(draws as usize) {
        if let Some(figures) = figures(cell, &in_model(cell, stack, excess_us, draw)?) {
            sums.add(&figures);
        }
    }
    Ok(sums)
}

fn row_of(cell: &MixCell, rtt_excess_us: u64, draws: u64, [lab, model]: &[Sums; 2]) -> MixRow {
    let classes = (0..).zip(cell.mix).map(|(number, (control, flows))| {
        let (lab, model) = (lab.mean(number), model.mean(number));
        MixClass {
            control: (*control).to_owned(),
            flows: *flows,
            share: [lab.0, model.0],
            completion_us: [lab.1, model.1],
        }
    });
    MixRow { name: cell.name.clone(), draws, rtt_excess_us, classes: classes.collect() }
}

/// What the model says of a cell beside what a kernel said: what a golden file is compared with.
#[cfg(test)]
pub(super) fn beside(cell: &MixCell, stack: &StackConfig, mut golden: MixRow) -> MixRow {
    let model = model_sums(cell, stack, golden.rtt_excess_us, 1, golden.draws).unwrap();
    for (number, class) in (0..).zip(&mut golden.classes) {
        (class.share[1], class.completion_us[1]) = model.mean(number);
    }
    golden
}
