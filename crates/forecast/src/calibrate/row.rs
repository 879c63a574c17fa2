use super::CalibrateRequest;
use super::table::Cell;
use crate::model;
use crate::stack::kernel_stack;
use std::time::Duration;
use wt_lab::{Lab, LabTunnel, Scenario};
use wt_link::StageConfig;
use wt_problem::Problem;
use wt_sim::StackConfig;
use wt_trial::{Amount, Cancel, Direction, Phase, Sample, Status, TrialOutcome, TrialSpec, Tunnel as _, Workload};
use wt_units::Settings;

/// How often a row is run at most, for each time that it should be.
const MOST_ATTEMPTS: u64 = 3;
/// How many times as often lossy rows are run: where time is virtual it costs little.
const LOSSY: u32 = 5;
const LOSSY_VIRTUAL: u32 = 40;
/// The model costs little: of chance it sees more.
const LOSSY_MODEL: u64 = 200;

/// What both said of one row.
pub(super) struct RowInBoth {
    pub(super) cell: Cell,
    /// Completion times, µs, sorted.
    pub(super) lab_us: Vec<u64>,
    pub(super) model_us: Vec<u64>,
    /// What the lab's machinery adds to the smallest RTT, µs; the model's path has it, too.
    pub(super) excess_us: u64,
    /// Retransmitted segments, and drops of queues: in the lab and in the model, each of the first run.
    pub(super) retransmits: [u64; 2],
    pub(super) drops: [u64; 2],
    /// The sender over time in the first run of each.
    pub(super) traces: [Vec<Sample>; 2],
    pub(super) invalid: u32,
    /// The model's ends.
    pub(super) stack: StackConfig,
}

/// The middle of a sorted list.
fn median(sorted: &[u64]) -> Option<f64> {
    let n = sorted.len();
    let at = |index: usize| sorted.get(index).map(|value| *value as f64);
    if n % 2 == 1 { at(n / 2) } else { Some((at((n / 2).checked_sub(1)?)? + at(n / 2)?) / 2.0) }
}

impl RowInBoth {
    fn new(cell: Cell, stack: StackConfig) -> Self {
        let (lab_us, model_us, traces) = (Vec::new(), Vec::new(), [Vec::new(), Vec::new()]);
        let (retransmits, drops) = ([0; 2], [0; 2]);
        Self { cell, lab_us, model_us, excess_us: 0, retransmits, drops, traces, invalid: 0, stack }
    }

    /// The lab's figure: of a path without chance the fastest run, which was disturbed least; else the median.
    pub(super) fn lab(&self) -> Option<f64> {
        if self.cell.lossy { median(&self.lab_us) } else { self.lab_us.first().map(|us| *us as f64) }
    }

    /// The model's figure.
    pub(super) fn model(&self) -> Option<f64> {
        median(&self.model_us)
    }

    /// The model's completion time over the lab's, minus one.
    pub(super) fn error(&self) -> Option<f64> {
        Some(self.model()? / self.lab()? - 1.0)
    }

    /// Whether the lab has run nothing that counts.
    pub(super) fn is_empty(&self) -> bool {
        self.lab_us.is_empty()
    }

    /// Runs it in the lab; returns the smallest RTT that was seen, µs.
    fn run_in_lab(
        &mut self,
        lab: &mut LabTunnel,
        request: &CalibrateRequest,
        cancel: &Cancel,
    ) -> Result<Option<u64>, Problem> {
        let often = if wt_lab::is_guest() { LOSSY_VIRTUAL } else { LOSSY };
        let repeat = if self.cell.lossy { request.repeat * often } else { request.repeat };
        let mut least_rtt: Option<u64> = None;
        // Runs in which the lab was late say nothing of the model: others take their place, as far as that goes.
        for attempt in 0..u64::from(repeat) * MOST_ATTEMPTS {
            if cancel.is_cancelled() || self.lab_us.len() >= repeat as usize {
                break;
            }
            let spec = spec(&self.cell.settings, &self.cell, request.seed + attempt);
            let outcome = lab.run(&spec, cancel).map_err(|error| Problem::environment(error.to_string()))?;
            if cancel.is_cancelled() {
                break;
            }
            if outcome.status != Status::Completed || outcome.bytes != self.cell.size.get() {
                self.invalid += 1;
                continue;
            }
            let rtt = outcome.observed.min_rtt_us.filter(|us| *us > 0);
            least_rtt = rtt.into_iter().chain(least_rtt).min();
            if self.lab_us.is_empty() {
                self.keep_first(0, &outcome);
            }
            self.lab_us.push(outcome.elapsed_us);
        }
        self.lab_us.sort_unstable();
        Ok(least_rtt)
    }

    /// Runs it in the model, whose path has the lab's RTT where that is known, µs.
    fn run_in_model(
        &mut self,
        scenario: &Scenario,
        lab_rtt: Option<u64>,
        seed: u64,
        cancel: &Cancel,
    ) -> Result<(), Problem> {
        let internal = |error: wt_trial::TunnelError| Problem::internal(error.to_string());
        let mut path = model::sim_path(scenario);
        let mut model = model::tunnel_of(path.clone(), self.stack.clone())?;
        let ideal = model.run(&spec(&self.cell.settings, &self.cell, seed), cancel).map_err(internal)?;
        if let Some(lab_rtt) = lab_rtt {
            self.excess_us = lab_rtt.saturating_sub(ideal.observed.min_rtt_us.unwrap_or(u64::MAX));
            let delay = Duration::from_micros(self.excess_us);
            path.config.links[0].backward.push(StageConfig::Delay { delay });
            model = model::tunnel_of(path, self.stack.clone())?;
        }
        for number in 0..if self.cell.lossy { LOSSY_MODEL } else { 1 } {
            let outcome = model.run(&spec(&self.cell.settings, &self.cell, seed + number), cancel).map_err(internal)?;
            if number == 0 {
                self.keep_first(1, &outcome);
            }
            if outcome.status == Status::Completed {
                self.model_us.push(outcome.elapsed_us);
            }
        }
        self.model_us.sort_unstable();
        Ok(())
    }

    /// What is told of the first run in the lab (0) or in the model (1).
    fn keep_first(&mut self, place: usize, outcome: &TrialOutcome) {
        self.retransmits[place] = outcome.observed.retransmits.unwrap_or(0);
        self.drops[place] = outcome.observed.queue_drops.unwrap_or(0);
        self.traces[place].clone_from(&outcome.sender);
    }
}

/// One row in both.
pub(super) fn compare(cell: Cell, request: &CalibrateRequest, cancel: &Cancel) -> Result<RowInBoth, Problem> {
    let scenario = cell.scenario().map_err(Problem::internal)?;
    let started = Lab::with(scenario.clone(), request.lab_options());
    let mut lab = started.and_then(LabTunnel::new).map_err(|error| wt_setup::lab::problem(&error))?;
    let mut row = RowInBoth::new(cell, kernel_stack(&lab));
    let lab_rtt = row.run_in_lab(&mut lab, request, cancel)?;
    row.run_in_model(&scenario, lab_rtt, request.seed, cancel)?;
    Ok(row)
}

pub(super) fn spec(settings: &Settings, cell: &Cell, seed: u64) -> TrialSpec {
    TrialSpec {
        experiment: "calibrate".to_owned(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings: settings.clone(),
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(cell.size) },
        deadline: Duration::from_secs(120),
        seed,
    }
}
