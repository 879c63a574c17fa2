use crate::model;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use wt_problem::Problem;
use wt_report::TrialFigure;
use wt_setup::Arm;
use wt_sim::{SimError, SimTunnel};
use wt_trial::{Amount, Cancel, Phase, Sample, Scale, Status, TrialOutcome, TrialSpec, Workload};

/// What the model says of one setting, over all seeds.
#[derive(Debug, Clone, Default)]
pub(crate) struct SettingForecast {
    /// Its number in the design.
    pub(crate) arm: usize,
    /// Payload over time, bit/s: the median, and the range of nine in ten seeds.
    pub(crate) goodput_bps: f64,
    pub(crate) range_bps: (f64, f64),
    /// What is compared: the median of its figures; `None` where most runs have none, or weren't whole.
    pub(crate) figure: Option<f64>,
    /// Figures and goodput of all runs, in the order of the seeds.
    pub(crate) figures: Vec<f64>,
    pub(crate) goodputs: Vec<f64>,
    /// From the request to the last byte; `None` if not all arrived in time.
    pub(crate) completion: Option<Duration>,
    /// The mean of the smoothed RTT over the smallest one, less one of these.
    pub(crate) queueing_us: f64,
    /// Retransmitted segments, of all with payload.
    pub(crate) retransmitted: f64,
    /// Time in which the sender waited for room in its send buffer, of all in which it had something to send.
    pub(crate) buffer_limited: f64,
    /// Seeds in which nothing arrived.
    pub(crate) failures: usize,
    /// Seeds in which the model stopped early, for want of time: figures are of what was done until then.
    pub(crate) cut_short: usize,
    /// The sender over time under the first seed, if that was asked for.
    pub(crate) samples: Vec<Sample>,
}

impl SettingForecast {
    /// Whether it came to no figure because the model stopped early, not because the setting doesn't work.
    pub(crate) fn was_cut(&self) -> bool {
        self.figure.is_none() && self.cut_short > 0
    }
}

/// How many runs are computed at once; asking the system takes longer than many a run.
pub(crate) fn processors() -> usize {
    static PROCESSORS: OnceLock<usize> = OnceLock::new();
    *PROCESSORS.get_or_init(|| std::thread::available_parallelism().map_or(1, usize::from))
}

/// Often enough to see slow start: twice a round trip.
pub(crate) fn sample_interval(rtt_us: u64) -> Duration {
    Duration::from_micros(rtt_us / 2).clamp(Duration::from_millis(2), Duration::from_millis(50))
}

/// What is to be computed.
pub(crate) struct Question<'a> {
    pub(crate) tunnel: &'a SimTunnel,
    pub(crate) arms: &'a [Arm],
    pub(crate) workload: Workload,
    pub(crate) deadline: Duration,
    pub(crate) seeds: u64,
    pub(crate) seed: u64,
    /// How often the sender is looked at.
    pub(crate) sample_every: Duration,
    /// Whether what was seen is kept.
    pub(crate) samples: bool,
}

/// One run of one setting.
#[derive(Debug, Clone, Default)]
struct RunFigures {
    goodput_bps: f64,
    /// The worst there is where nothing was measured.
    figure: f64,
    completion_us: Option<f64>,
    queueing_us: f64,
    sent: u64,
    retransmits: u64,
    /// Of the time in which there was something to send.
    buffer_limited: f64,
    cut_short: bool,
    samples: Vec<Sample>,
}

/// Events of all runs of one question at most: about half a minute of computing on two processors.
const ALL_EVENTS: u64 = 300_000_000;
/// But each run may take so many.
const LEAST_EVENTS: u64 = 200_000;

/// For so many segments another thread is worth starting, which takes as long as the model takes for some hundreds.
const SEGMENTS_OF_A_THREAD: u64 = 3_000;

/// What the figures of a workload are: of a transfer of fixed size, its time.
pub(crate) fn measured(workload: &Workload) -> TrialFigure {
    match workload {
        Workload::Bulk { amount: Amount::Size(_), .. } => TrialFigure::completion(),
        _ => TrialFigure::of_workload(workload),
    }
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((share * last as f64).round() as usize).copied().unwrap_or(0.0)
}

/// The two in the middle; of an odd number the same one twice.
fn middle(sorted: &[f64]) -> (f64, f64) {
    let at = |place: usize| sorted.get(place).copied().unwrap_or(0.0);
    (at(sorted.len().saturating_sub(1) / 2), at(sorted.len() / 2))
}

/// The median; of two in the middle the geometric mean, so that rates and the times behind them tell the same.
fn median(sorted: &[f64]) -> f64 {
    match middle(sorted) {
        (low, high) if low == high => low,
        (low, high) => low.sqrt() * high.sqrt(),
    }
}

impl Question<'_> {
    /// Runs every setting with every seed, on as many processors as there are. The answer doesn't depend on how many.
    ///
    /// # Errors
    /// A usage problem where the model can't run a setting; [`Fault::Stopped`](wt_problem::Fault::Stopped) when it was cancelled.
    pub(crate) fn answer(&self, cancel: &Cancel) -> Result<Vec<SettingForecast>, Problem> {
        self.answer_on(processors(), cancel)
    }

    /// The same on so many threads at most; on one it stays on the caller's.
    pub(crate) fn answer_on(&self, threads: usize, cancel: &Cancel) -> Result<Vec<SettingForecast>, Problem> {
        let jobs = self.arms.len() * self.seeds as usize;
        let tunnel = self.tunnel.clone().bounded((ALL_EVENTS / jobs.max(1) as u64).max(LEAST_EVENTS));
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<Result<RunFigures, SimError>>>> = Mutex::new((0..jobs).map(|_| None).collect());
        let work = || {
            while let job = next.fetch_add(1, Ordering::Relaxed)
                && job < jobs
                && !cancel.is_cancelled()
            {
                let run = self.run(&tunnel, job / self.seeds as usize, job as u64 % self.seeds);
                results.lock().unwrap_or_else(PoisonError::into_inner)[job] = Some(run);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..threads.min(jobs).min(self.worthwhile_threads(jobs as u64)) {
                scope.spawn(work);
            }
            work();
        });
        let results = results.into_inner().unwrap_or_else(PoisonError::into_inner);
        let mut runs = Vec::with_capacity(jobs);
        for run in results {
            let run = run.ok_or_else(|| Problem::stopped("stopped before the model had answered"))?;
            runs.push(run.map_err(|error| model::problem(&error))?);
        }
        let measured = measured(&self.workload);
        let by_arm = runs.chunks(self.seeds.max(1) as usize).enumerate();
        Ok(by_arm.map(|(arm, runs)| summary(arm, runs, &measured)).collect())
    }

    /// On how many threads so many runs are done sooner than on one.
    fn worthwhile_threads(&self, jobs: u64) -> usize {
        match &self.workload {
            Workload::Bulk { amount: Amount::Size(size), .. } => {
                let segments = size.get() / 1000 * jobs;
                usize::try_from(segments / SEGMENTS_OF_A_THREAD + 1).unwrap_or(usize::MAX)
            }
            _ => usize::MAX,
        }
    }

    fn run(&self, tunnel: &SimTunnel, arm: usize, number: u64) -> Result<RunFigures, SimError> {
        let spec = TrialSpec {
            experiment: "predict".to_owned(),
            phase: Phase::Round,
            round: 1,
            order: 1,
            arm,
            settings: self.arms[arm].settings.clone(),
            workload: self.workload.clone(),
            deadline: self.deadline,
            // The same seeds for every setting: they meet the same losses.
            seed: self.seed.wrapping_add(number),
        };
        let mut outcome = tunnel.try_run(&spec, self.sample_every)?;
        let figures = figures_of(&self.workload, &outcome);
        let samples = if self.samples && number == 0 { std::mem::take(&mut outcome.sender) } else { Vec::new() };
        Ok(RunFigures { samples, ..figures })
    }
}

fn figures_of(workload: &Workload, outcome: &TrialOutcome) -> RunFigures {
    let observed = &outcome.observed;
    let rtts: Vec<u64> = outcome.sender.iter().map(|sample| sample.rtt).filter(|rtt| *rtt > 0).collect();
    let mean = if rtts.is_empty() {
        observed.rtt_us.unwrap_or(0) as f64
    } else {
        rtts.iter().sum::<u64>() as f64 / rtts.len() as f64
    };
    let whole = outcome.status == Status::Completed;
    let measured = measured(workload);
    let figure = match measured.scale {
        // What never was whole took longer than all that was.
        Scale::Time if !whole => None,
        scale => outcome.figure(scale),
    };
    let worst = if measured.better == "smaller" { f64::INFINITY } else { 0.0 };
    RunFigures {
        goodput_bps: outcome.goodput_bps(),
        figure: figure.unwrap_or(worst),
        completion_us: whole.then_some(outcome.elapsed_us as f64),
        queueing_us: (mean - observed.min_rtt_us.unwrap_or(0) as f64).max(0.0),
        sent: observed.segments.unwrap_or(0),
        retransmits: observed.retransmits.unwrap_or(0),
        buffer_limited: outcome.limits.sndbuf_limited_us as f64 / outcome.limits.busy_us.max(1) as f64,
        cut_short: observed.cut_short.unwrap_or(false),
        samples: Vec::new(),
    }
}

fn summary(arm: usize, runs: &[RunFigures], measured: &TrialFigure) -> SettingForecast {
    let sorted = |value: &dyn Fn(&RunFigures) -> f64| {
        let mut values: Vec<f64> = runs.iter().map(value).collect();
        values.sort_by(f64::total_cmp);
        values
    };
    let goodputs = sorted(&|run| run.goodput_bps);
    let completion = median(&sorted(&|run| run.completion_us.unwrap_or(f64::INFINITY)));
    let figure = median(&sorted(&|run| run.figure));
    let queueing = middle(&sorted(&|run| run.queueing_us));
    let buffer_limited = middle(&sorted(&|run| run.buffer_limited));
    let is_any = figure.is_finite() && (figure > 0.0 || measured.better == "smaller");
    let sent: u64 = runs.iter().map(|run| run.sent).sum();
    let retransmits: u64 = runs.iter().map(|run| run.retransmits).sum();
    SettingForecast {
        arm,
        goodput_bps: median(&goodputs),
        range_bps: (quantile(&goodputs, 0.05), quantile(&goodputs, 0.95)),
        figure: is_any.then_some(figure),
        figures: runs.iter().map(|run| run.figure).collect(),
        goodputs: runs.iter().map(|run| run.goodput_bps).collect(),
        completion: completion.is_finite().then(|| Duration::from_secs_f64(completion / 1e6)),
        queueing_us: f64::midpoint(queueing.0, queueing.1),
        buffer_limited: f64::midpoint(buffer_limited.0, buffer_limited.1),
        retransmitted: if sent == 0 { 0.0 } else { retransmits as f64 / sent as f64 },
        cut_short: runs.iter().filter(|run| run.cut_short).count(),
        failures: runs.iter().filter(|run| run.goodput_bps == 0.0).count(),
        samples: runs.first().map(|run| run.samples.clone()).unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn goodput_and_time_of_a_transfer_tell_the_same_of_any_number_of_runs() {
        let runs: Vec<RunFigures> = [0.9, 4.0, 1.0, 0.4, 2.5, 0.5]
            .iter()
            .map(|s| RunFigures {
                goodput_bps: 8e6 / s,
                figure: *s,
                completion_us: Some(s * 1e6),
                queueing_us: *s,
                ..RunFigures::default()
            })
            .collect();
        for (count, time) in [(1, 0.9), (2, 3.6_f64.sqrt()), (3, 1.0), (4, 0.9_f64.sqrt()), (6, 0.9_f64.sqrt())] {
            let all = summary(0, &runs[..count], &TrialFigure::completion());
            assert!((all.figure.unwrap() / time - 1.0).abs() < 1e-9, "{count}: {:?}", all.figure);
            assert!((all.goodput_bps * time / 8e6 - 1.0).abs() < 1e-9, "{count}: {}", all.goodput_bps);
        }
        assert_eq!(summary(0, &runs[..2], &TrialFigure::completion()).queueing_us, 2.45);
        let undone = RunFigures { figure: f64::INFINITY, ..RunFigures::default() };
        assert_eq!(summary(0, &[runs[0].clone(), undone], &TrialFigure::completion()).figure, None, "half isn't most");
    }
}
