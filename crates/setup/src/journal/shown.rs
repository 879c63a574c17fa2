use super::problem;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use utoipa::ToSchema;
use wt_journal::{ExperimentSummary, Filter, Journal, JournalError, StoredExperiment, TrialId, WithSamples};
use wt_problem::Problem;
use wt_trial::{Phase, Sample, SampleColumns, Status, TrialRecord};
use wt_units::Settings;

/// The trials of a very long experiment are listed from here on.
const MOST_SHOWN: usize = 2_000;
/// So many samples at most; trials beyond that are left out, and counted.
const MOST_SAMPLES: usize = 1_000_000;

/// What kinds of experiments a journal has.
pub const EXPERIMENT_KINDS: [&str; 8] = ["tune", "screen", "cc", "stacks", "test", "traffic", "flent", "proof"];

/// What the list of experiments is asked.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ListRequest {
    /// At most so many, the newest; nothing means all.
    pub limit: Option<usize>,
    /// Only those of one kind, of [`EXPERIMENT_KINDS`].
    pub kind: Option<String>,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<PathBuf>,
}

/// What is asked of one experiment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExperimentRequest {
    /// Its name, the beginning of it, or `last`.
    pub experiment: String,
    /// The journal's file; nothing means the usual one.
    #[serde(default)]
    pub journal: Option<PathBuf>,
}

/// Which samples are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SamplesRequest {
    /// The experiment's name, the beginning of it, or `last`.
    pub experiment: String,
    /// Only this trial, by its number in the journal.
    #[serde(default)]
    pub trial: Option<TrialId>,
    /// The journal's file; nothing means the usual one.
    #[serde(default)]
    pub journal: Option<PathBuf>,
}

/// The experiments, the newest first.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = JournalList)]
pub struct ListAnswer {
    /// 1.
    pub schema_version: u32,
    /// Each of them.
    pub experiments: Vec<ExperimentSummary>,
}

/// An experiment with its trials, without samples.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = JournalShow)]
pub struct ShowAnswer {
    /// 1.
    pub schema_version: u32,
    /// What it is.
    pub experiment: StoredExperiment,
    /// How many of its first trials are left out.
    pub trials_left_out: usize,
    /// The others, in the order in which they were run.
    pub trials: Vec<TrialRecord>,
}

/// What TCP said over time, trial by trial, on one axis.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = JournalSamples)]
pub struct SamplesAnswer {
    /// 1.
    pub schema_version: u32,
    /// The experiment's name.
    pub id: String,
    /// What it runs on.
    pub target: String,
    /// What its settings are called.
    pub arms: Vec<String>,
    /// The trials.
    pub trials: Vec<SampledTrial>,
    /// How many more were left out.
    pub trials_left_out: usize,
    /// The samples of all trials, one after the other; times are those since the first trial.
    pub samples: SampleColumns,
}

/// Where a trial's samples are, and what came of it.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct SampledTrial {
    /// Its number in the journal.
    pub id: TrialId,
    /// What it was for.
    pub phase: Phase,
    /// Its round, from 1; 0 outside of rounds.
    pub round: u32,
    /// Its place in the round, from 1.
    pub order: u32,
    /// The number of its settings.
    pub arm: usize,
    /// What was asked for.
    pub settings: Settings,
    /// How it ended.
    pub status: Status,
    /// Payload over time, bit/s.
    pub goodput_bps: f64,
    /// When it began, µs since the first one did.
    pub begin_us: u64,
    /// How long it took, µs.
    pub elapsed_us: u64,
    /// Which end took the samples: `sender`, or `receiver` where only that is ours.
    pub side: &'static str,
    /// The place of its first sample.
    pub from: usize,
    /// How many there are.
    pub count: usize,
}

/// The experiments, the newest first.
///
/// # Errors
/// A [`Problem`] when the journal can't be read.
pub fn list(request: &ListRequest) -> Result<ListAnswer, Problem> {
    let journal = super::open_to_read(request.journal.as_deref())?;
    // Kinds are told apart in what is read, not by a column.
    let limit = request.limit.filter(|_| request.kind.is_none());
    let mut experiments = journal.list(&Filter { limit, ..Filter::default() }).map_err(|error| problem(&error))?;
    if let Some(kind) = &request.kind {
        experiments.retain(|one| one.kind == *kind);
        experiments.truncate(request.limit.unwrap_or(usize::MAX));
    }
    Ok(ListAnswer { schema_version: 1, experiments })
}

/// An experiment with its trials.
///
/// # Errors
/// A usage [`Problem`] where there is none of this name.
pub fn show(request: &ExperimentRequest) -> Result<ShowAnswer, Problem> {
    let journal = super::open_to_read(request.journal.as_deref())?;
    shown(&*journal, &request.experiment).map_err(|error| problem(&error))
}

fn shown(journal: &dyn Journal, key: &str) -> Result<ShowAnswer, JournalError> {
    let experiment = journal.load(key)?;
    let rows = journal.rows(&experiment.id)?;
    let trials_left_out = rows.len().saturating_sub(MOST_SHOWN);
    let from = rows.get(trials_left_out).map_or(TrialId::MIN, |row| row.id);
    drop(rows);
    let mut trials = Vec::new();
    let mut keep = |trial| {
        trials.push(trial);
        Ok(())
    };
    journal.for_each_trial_from(&experiment.id, from, WithSamples::No, &mut keep)?;
    Ok(ShowAnswer { schema_version: 1, experiment, trials_left_out, trials })
}

/// What TCP said over time.
///
/// # Errors
/// A usage [`Problem`] where there is no such experiment or trial.
pub fn samples(request: &SamplesRequest) -> Result<SamplesAnswer, Problem> {
    let journal = super::open_to_read(request.journal.as_deref())?;
    let found = journal.load(&request.experiment).map_err(|error| problem(&error))?;
    let mut axis = Axis::default();
    let only = request.trial;
    let mut done = false;
    let mut each = |trial: TrialRecord| {
        if only.is_none_or(|only| only == trial.id) {
            axis.add(trial);
        }
        done = only.is_some();
        // There is no other way to say that this is enough.
        if done { Err(JournalError::Empty { path: PathBuf::new() }) } else { Ok(()) }
    };
    let read = journal.for_each_trial_from(&found.id, only.unwrap_or(TrialId::MIN), WithSamples::Yes, &mut each);
    if let Err(error) = read
        && !done
    {
        return Err(problem(&error));
    }
    if let (Some(only), true) = (only, axis.trials.is_empty()) {
        return Err(Problem::usage(format!("{} has no trial {only}", found.id))
            .hint(format!("windtunnel journal samples {} lists its trials", found.id)));
    }
    Ok(SamplesAnswer {
        schema_version: 1,
        id: found.id,
        target: found.target,
        arms: found.arms.into_iter().map(|arm| arm.label).collect(),
        trials: axis.trials,
        trials_left_out: axis.left_out,
        samples: SampleColumns::of(&axis.samples),
    })
}

/// Trials one after the other.
#[derive(Default)]
struct Axis {
    trials: Vec<SampledTrial>,
    samples: Vec<Sample>,
    begun_unix_us: Option<i64>,
    left_out: usize,
}

impl Axis {
    fn add(&mut self, trial: TrialRecord) {
        let TrialRecord { id, spec, outcome, started_unix_us, .. } = trial;
        let goodput_bps = outcome.goodput_bps();
        // The sender knows more; on the real path a download has the receiver's only.
        let (side, mut samples) =
            if outcome.sender.is_empty() { ("receiver", outcome.receiver) } else { ("sender", outcome.sender) };
        if self.samples.len() + samples.len() > MOST_SAMPLES {
            self.left_out += 1;
            return;
        }
        let begun = *self.begun_unix_us.get_or_insert(started_unix_us);
        let begin_us = u64::try_from(started_unix_us.saturating_sub(begun)).unwrap_or(0);
        samples.iter_mut().for_each(|sample| sample.t_us = sample.t_us.saturating_add(begin_us));
        self.trials.push(SampledTrial {
            id,
            phase: spec.phase,
            round: spec.round,
            order: spec.order,
            arm: spec.arm,
            settings: spec.settings,
            status: outcome.status,
            goodput_bps,
            begin_us,
            elapsed_us: outcome.elapsed_us,
            side,
            from: self.samples.len(),
            count: samples.len(),
        });
        self.samples.extend(samples);
    }
}
