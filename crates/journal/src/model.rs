use crate::{ExperimentConfig, JournalError};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use wt_trial::{PathFacts, Phase, Status, TrialOutcome, TrialRecord, TrialSpec, TunnelKind, Workload};
use wt_units::Settings;

/// The number of a trial within its journal; never used twice.
pub type TrialId = i64;

/// How far an experiment has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = ExperimentState)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Under way, or was when the program died.
    Running,
    /// It ended by its own rule.
    Finished,
    /// The user ended it; what was measured counts.
    Stopped,
    /// The program died or failed; what was measured counts.
    Aborted,
}

impl State {
    pub(crate) const ALL: [Self; 4] = [Self::Running, Self::Finished, Self::Stopped, Self::Aborted];

    /// The word in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Finished => "finished",
            Self::Stopped => "stopped",
            Self::Aborted => "aborted",
        }
    }
}

/// The process that runs an experiment, so that another one that got the same id later isn't taken for it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Owner {
    /// The process id.
    pub pid: u32,
    /// When it began, in clock ticks since boot.
    pub start_ticks: u64,
    /// Which boot that was.
    pub boot_id: String,
}

/// One of the settings that an experiment compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[schema(as = StoredArm)]
pub struct Arm {
    /// What people call it.
    pub label: String,
    /// What it sets.
    pub settings: Settings,
}

/// An experiment before its first trial.
#[derive(Debug, Clone, PartialEq)]
pub struct NewExperiment {
    /// Its name: [`experiment_id`](crate::experiment_id).
    pub id: String,
    /// What it runs on: `adsl`.
    pub target: String,
    /// Where its trials run: `sim`, `lab` or `live`.
    pub tunnel: String,
    /// When it began, µs since the Unix epoch.
    pub started_unix_us: i64,
    /// What the user wrote about it.
    pub comment: String,
    /// The version of the program.
    pub version: String,
    /// What is in force without any setting of ours.
    pub current: Settings,
    /// What is compared, 0 being the current settings.
    pub arms: Vec<Arm>,
    /// What it is, and all that is needed to run it again.
    pub config: ExperimentConfig,
    /// Seeds everything random in it.
    pub seed: u64,
    /// What is known of the path.
    pub path: PathFacts,
    /// Who runs it.
    pub owner: Owner,
}

impl NewExperiment {
    /// The same as it is stored while it runs: without an end and a verdict.
    #[must_use]
    pub fn begun(&self) -> StoredExperiment {
        StoredExperiment {
            id: self.id.clone(),
            target: self.target.clone(),
            tunnel: self.tunnel.clone(),
            state: State::Running,
            started_unix_us: self.started_unix_us,
            ended_unix_us: None,
            comment: self.comment.clone(),
            version: self.version.clone(),
            current: self.current.clone(),
            arms: self.arms.clone(),
            config: self.config.clone(),
            seed: self.seed,
            path: self.path.clone(),
            verdict: None,
            owner: self.owner.clone(),
        }
    }

    /// An experiment of which nothing but its name, target and tunnel is said.
    #[must_use]
    pub fn new(id: impl Into<String>, target: impl Into<String>, tunnel: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            target: target.into(),
            tunnel: tunnel.into(),
            started_unix_us: 0,
            comment: String::new(),
            version: String::new(),
            current: Settings::new(),
            arms: Vec::new(),
            config: ExperimentConfig::Unknown(serde_json::Value::Null),
            seed: 0,
            path: PathFacts::default(),
            owner: Owner::default(),
        }
    }
}

/// An experiment as the journal keeps it, without its trials.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct StoredExperiment {
    /// Its name.
    pub id: String,
    /// What it runs on.
    pub target: String,
    /// Where its trials run.
    pub tunnel: String,
    /// How far it has come.
    pub state: State,
    /// When it began, µs since the Unix epoch.
    pub started_unix_us: i64,
    /// When it ended, if it has; for an orphan, when it was last heard of.
    pub ended_unix_us: Option<i64>,
    /// What the user wrote about it.
    pub comment: String,
    /// The version of the program that ran it.
    pub version: String,
    /// What was in force without any setting of ours.
    pub current: Settings,
    /// What is compared, 0 being the current settings.
    pub arms: Vec<Arm>,
    /// What it is, and all that is needed to run it again.
    #[schema(value_type = Object)]
    pub config: ExperimentConfig,
    /// Seeds everything random in it.
    pub seed: u64,
    /// What is known of the path.
    pub path: PathFacts,
    /// What the data allow one to say, once it has ended; the caller's own form.
    #[schema(value_type = Option<Object>)]
    pub verdict: Option<serde_json::Value>,
    /// Who runs or ran it.
    pub owner: Owner,
}

impl StoredExperiment {
    /// The settings that all others are held against: those in force, and of loads of a page in a browser, which sets a first window for
    /// each, those of the first.
    #[must_use]
    pub fn reference(&self) -> &Settings {
        let first = self.arms.first().filter(|_| self.config.tune().browser.is_some());
        first.map_or(&self.current, |arm| &arm.settings)
    }

    /// The number of the change that was proved, where this is a proof of one: its verdict says so, or as what it was begun.
    #[must_use]
    pub fn proved_change(&self) -> Option<&str> {
        let proof = self.verdict.as_ref().and_then(|verdict| verdict.get("proof")).filter(|proof| proof.is_object());
        let said = proof.map(|proof| proof.get("change").and_then(serde_json::Value::as_str).unwrap_or_default());
        let begun = || {
            let silent = matches!(self.config, ExperimentConfig::Unknown(serde_json::Value::Null));
            let rest = self.comment.strip_prefix(PROOF_BEGINS).filter(|_| silent)?;
            Some(rest.split_once(':').map_or(rest, |(change, _)| change))
        };
        said.or_else(begun)
    }

    /// Whether its trials were uploads of a size that their receivers timed. Now their senders do, to the acknowledgement of the last
    /// byte, which is half a round trip and more later: the two aren't put together. Servers that aren't ours never had the clock.
    #[must_use]
    pub fn has_receivers_clock(&self) -> bool {
        let config = self.config.tune();
        let is_ours = self.tunnel != TunnelKind::Live.name() || self.target.starts_with("wt://");
        let workload = serde_json::from_value(config.said("workload"));
        is_ours && workload.as_ref().is_ok_and(Workload::is_upload_of_size) && config.by_sender != Some(true)
    }
}

/// How the comment begins under which a change's proof is written down; its configuration says nothing.
pub const PROOF_BEGINS: &str = "proof of change ";

/// One line of the list of experiments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExperimentSummary {
    /// Its name.
    pub id: String,
    /// What it runs on.
    pub target: String,
    /// Where its trials run.
    pub tunnel: String,
    /// How far it has come.
    pub state: State,
    /// When it began, µs since the Unix epoch.
    pub started_unix_us: i64,
    /// When it ended, if it has.
    pub ended_unix_us: Option<i64>,
    /// What the user wrote about it.
    pub comment: String,
    /// Its trials so far, every phase and status.
    pub trials: u64,
    /// What it is: `tune`, `screen`, `cc`, `stacks`, `test`, `traffic`, `flent` or `proof`.
    pub kind: String,
    /// What each trial did: `bulk`, `page`.
    pub workload: Option<String>,
    /// What the verdict is called: `faster`, `none`.
    pub verdict: Option<String>,
    /// What the verdict says to do: `set`, `keep`, `undecided`, `failed`.
    pub action: Option<String>,
    /// The verdict's first line.
    pub answer: Option<String>,
    /// What it recommends to set.
    pub setting: Option<String>,
    /// What that changes, in hundredths of a percent; negative where the figure gets smaller.
    pub change_bp: Option<i64>,
}

/// Which experiments to list; everything left open matches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Filter {
    /// Only those in this state.
    pub state: Option<State>,
    /// Only those on this target.
    pub target: Option<String>,
    /// Only those in this tunnel.
    pub tunnel: Option<String>,
    /// Only those that began then or later, µs since the Unix epoch.
    pub since_unix_us: Option<i64>,
    /// At most so many, the newest first.
    pub limit: Option<usize>,
}

/// What an analysis needs of a trial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TrialRow {
    /// Its number.
    pub id: TrialId,
    /// Why it was run.
    pub phase: Phase,
    /// The round, from 1; 0 outside of rounds.
    pub round: u32,
    /// The place within the round, from 1.
    pub order: u32,
    /// Which of the arms.
    pub arm: usize,
    /// How it ended.
    pub status: Status,
    /// When it began, µs since the Unix epoch.
    pub started_unix_us: i64,
    /// How long it took, µs.
    pub elapsed_us: u64,
    /// Payload that reached the receiver.
    pub bytes: u64,
    /// What is compared, where that isn't payload over time.
    pub score: Option<f64>,
    /// The deadline of a trial that wasn't completed, µs; read with the rows of an experiment.
    pub deadline_us: Option<u64>,
}

impl TrialRow {
    /// Payload over elapsed time, bit/s; 0 if nothing moved.
    #[must_use]
    pub fn goodput_bps(&self) -> f64 {
        if self.elapsed_us == 0 { 0.0 } else { self.bytes as f64 * 8e6 / self.elapsed_us as f64 }
    }
}

/// What a view needs of a trial, as the columns have it.
#[derive(Debug)]
pub(crate) struct TableTrial<'a> {
    pub(crate) row: TrialRow,
    pub(crate) asked: &'a str,
    pub(crate) granted: &'a str,
    pub(crate) workload: &'a str,
    pub(crate) observed: &'a str,
}

/// Whether the samples of a trial are read too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WithSamples {
    /// Yes.
    Yes,
    /// No: the lists are empty.
    No,
}

/// What [`Journal::mark_orphans`] found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Orphans {
    /// Experiments whose owner is gone.
    pub experiments: Vec<String>,
    /// Trials that were under way then.
    pub trials: u64,
}

/// What to throw away; every condition that is given must hold. Experiments under way always stay, and, unless only samples
/// go, those that others continue which stay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Prune {
    /// Only those of these names.
    pub ids: Option<Vec<String>>,
    /// Those that began before then, µs since the Unix epoch.
    pub before_unix_us: Option<i64>,
    /// All but so many of the newest.
    pub keep_newest: Option<usize>,
    /// Only the samples; what was measured stays as figures.
    pub samples_only: bool,
    /// Nothing is thrown away; it is only told what would be.
    pub dry_run: bool,
}

/// What [`Journal::prune`] threw away.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PruneOutcome {
    /// Those that lost something, the oldest first.
    pub ids: Vec<String>,
    /// Those that were meant too and stay: under way, or continued by one that stays.
    pub kept: Vec<String>,
    /// How many these are.
    pub experiments: u64,
    /// Their trials.
    pub trials: u64,
}

/// What was seen of a host at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct Sighting {
    /// Its name or address, in small letters.
    pub host: String,
    /// When, µs since the Unix epoch.
    pub at_unix_us: i64,
    /// What; the caller's own form.
    pub found: serde_json::Value,
}

/// A place where every trial is kept.
pub trait Journal {
    /// Writes down an experiment as running. That nothing else goes on with what it continues is asked in the same transaction: of two
    /// that begin at once one is refused.
    ///
    /// # Errors
    /// [`JournalError::BadId`] if the name is taken or can't be one; [`JournalError::Continued`] by another experiment.
    fn create_experiment(&mut self, new: &NewExperiment) -> Result<(), JournalError>;

    /// Writes down a trial as running, before it runs.
    ///
    /// # Errors
    /// [`JournalError::NoSuchExperiment`], [`JournalError::ExperimentNotRunning`].
    fn begin_trial(&mut self, spec: &TrialSpec, started_unix_us: i64) -> Result<TrialId, JournalError>;

    /// Writes down what came of a trial that is under way.
    ///
    /// # Errors
    /// [`JournalError::TrialNotRunning`].
    fn finish_trial(&mut self, id: TrialId, outcome: &TrialOutcome) -> Result<(), JournalError>;

    /// Ends an experiment; trials still under way become aborted.
    ///
    /// # Errors
    /// [`JournalError::NoSuchExperiment`], [`JournalError::ExperimentNotRunning`].
    fn finish_experiment(
        &mut self,
        id: &str,
        state: State,
        ended_unix_us: i64,
        verdict: Option<&serde_json::Value>,
    ) -> Result<(), JournalError>;

    /// The experiments, the newest first.
    ///
    /// # Errors
    /// Those of reading.
    fn list(&self, filter: &Filter) -> Result<Vec<ExperimentSummary>, JournalError>;

    /// The experiment of this name, the only one whose name begins so, or with `last` the newest.
    ///
    /// # Errors
    /// [`JournalError::NoSuchExperiment`] with suggestions, [`JournalError::Ambiguous`], [`JournalError::Empty`].
    fn load(&self, key: &str) -> Result<StoredExperiment, JournalError>;

    /// Hands every trial of an experiment to `each`, in the order in which they began.
    ///
    /// # Errors
    /// [`JournalError::NoSuchExperiment`], those of reading and those of `each`.
    fn for_each_trial(
        &self,
        id: &str,
        samples: WithSamples,
        each: &mut dyn FnMut(TrialRecord) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        self.for_each_trial_from(id, TrialId::MIN, samples, each)
    }

    /// As [`for_each_trial`](Journal::for_each_trial), beginning with the trial of this number: a bounded tail of many.
    ///
    /// # Errors
    /// [`JournalError::NoSuchExperiment`], those of reading and those of `each`.
    fn for_each_trial_from(
        &self,
        id: &str,
        from: TrialId,
        samples: WithSamples,
        each: &mut dyn FnMut(TrialRecord) -> Result<(), JournalError>,
    ) -> Result<(), JournalError>;

    /// What an analysis needs of every trial of an experiment, in the order in which they began.
    ///
    /// # Errors
    /// [`JournalError::NoSuchExperiment`] and those of reading.
    fn rows(&self, id: &str) -> Result<Vec<TrialRow>, JournalError>;

    /// The experiment that goes on with this one, if there is one: the first.
    ///
    /// # Errors
    /// Those of reading.
    fn continued_by(&self, id: &str) -> Result<Option<String>, JournalError>;

    /// The experiments that go on with this one, one after another: the last of them rests on the trials of all.
    ///
    /// # Errors
    /// Those of reading.
    fn continuations(&self, id: &str) -> Result<Vec<String>, JournalError> {
        let mut chain: Vec<String> = Vec::new();
        while let Some(by) = self.continued_by(chain.last().map_or(id, String::as_str))? {
            // What is damaged may go on with itself.
            if by == id || chain.contains(&by) {
                break;
            }
            chain.push(by);
        }
        Ok(chain)
    }

    /// Says of experiments under way whose owner is gone, and of their trials under way, that they were aborted.
    ///
    /// # Errors
    /// Those of writing.
    fn mark_orphans(&mut self, is_alive: &dyn Fn(&str, &Owner) -> bool) -> Result<Orphans, JournalError>;

    /// Takes in a finished experiment with its trials, which get numbers of this journal.
    ///
    /// # Errors
    /// [`JournalError::BadId`] if the name is taken or can't be one, and those of writing.
    fn import(&mut self, experiment: &StoredExperiment, trials: &[TrialRecord]) -> Result<(), JournalError>;

    /// Throws experiments away, and gives the space back.
    ///
    /// # Errors
    /// Those of writing.
    fn prune(&mut self, what: Prune) -> Result<PruneOutcome, JournalError>;

    /// Writes down what was seen of hosts; `kind` says what was looked at.
    ///
    /// # Errors
    /// Those of writing.
    fn note(&mut self, kind: &str, seen: &[Sighting]) -> Result<(), JournalError>;

    /// The last `most` sightings of a kind, of one host or of all, the oldest first.
    ///
    /// # Errors
    /// Those of reading.
    fn sightings(&self, kind: &str, host: Option<&str>, most: usize) -> Result<Vec<Sighting>, JournalError>;

    /// Every trial of an experiment, in the order in which they began.
    ///
    /// # Errors
    /// [`JournalError::NoSuchExperiment`] and those of reading.
    fn trials(&self, id: &str, samples: WithSamples) -> Result<Vec<TrialRecord>, JournalError> {
        let mut all = Vec::new();
        self.for_each_trial(id, samples, &mut |trial| {
            all.push(trial);
            Ok(())
        })?;
        Ok(all)
    }
}
