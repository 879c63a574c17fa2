//! What happens while an experiment runs.

use super::plan::Plan;
use serde::Serialize;
use std::time::Duration;
use wt_experiment::Experiment;
use wt_report::tune::TrialFigure;
use wt_trial::{Phase, Status, TrialOutcome, TrialSpec};
use wt_units::Settings;

/// Takes events as they happen; called on the thread that runs the experiment.
pub type Sink<'a> = &'a mut dyn FnMut(TuneEvent);

/// What happens while an experiment runs. The lines of `--json-stream` are `begin`, `trial` and `round`.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TuneEvent {
    /// Something for people who watch.
    Note {
        /// A sentence.
        text: String,
    },
    /// Something that people must know.
    Warning {
        /// A sentence.
        text: String,
    },
    /// The rounds are over.
    Finished,
    /// An experiment begins.
    Begin {
        /// Its name in the journal.
        id: String,
        /// What its settings are called; 0 is the current ones.
        arms: Vec<String>,
        /// The most trials that it may take.
        max_trials: usize,
        /// How long those take, seconds.
        expected_s: f64,
        /// What is compared.
        measured: TrialFigure,
    },
    /// A trial begins.
    Start {
        /// What it is for.
        phase: Phase,
        /// Its round, from 1; 0 outside of rounds.
        round: u32,
        /// The number of its settings.
        arm: usize,
    },
    /// A trial has ended.
    Trial(TrialEvent),
    /// A round has ended.
    Round(RoundEvent),
}

/// A round that has ended.
#[derive(Debug, Clone, Serialize)]
pub struct RoundEvent {
    /// Rounds so far.
    pub rounds: usize,
    /// Trials so far.
    pub trials: usize,
    /// Evidence of each setting for being faster than the current ones, to one.
    pub evidence: Vec<f64>,
    /// The evidence that a claim needs, to one.
    pub needed: Vec<Option<f64>>,
    /// Whether each setting is shown to be faster: evidence alone claims nothing where trials were interrupted or spoilt, most weren't
    /// completed, or the gain is too small to matter.
    pub shown: Vec<bool>,
    /// The estimated ratio of each setting to the current ones; larger is better.
    pub ratio: Vec<Option<f64>>,
    /// How long the trials took, seconds.
    pub spent_s: f64,
    /// Settings that the next round still has.
    pub left: usize,
}

/// A trial that has ended.
#[derive(Debug, Clone, Serialize)]
pub struct TrialEvent {
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
    /// Payload over time, bit/s.
    pub goodput_bps: f64,
    /// What is compared, in the unit of `measured`.
    pub figure: Option<f64>,
    /// How it ended.
    pub status: Status,
    /// What is to be said of it.
    pub notes: Vec<String>,
}

impl TuneEvent {
    /// Something for people who watch.
    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self::Note { text: text.into() }
    }

    /// An experiment begins.
    pub(crate) fn begin(plan: &Plan, arms: Vec<String>, max_trials: usize, at_most: Duration) -> Self {
        let (id, measured) = (plan.id.clone(), TrialFigure::of_workload(&plan.workload));
        Self::Begin { id, arms, max_trials, expected_s: at_most.as_secs_f64(), measured }
    }

    /// A trial begins.
    pub(crate) fn start(spec: &TrialSpec) -> Self {
        Self::Start { phase: spec.phase, round: spec.round, arm: spec.arm }
    }

    /// A trial has ended.
    pub(crate) fn trial(spec: &TrialSpec, outcome: &TrialOutcome) -> Self {
        Self::Trial(TrialEvent {
            phase: spec.phase,
            round: spec.round,
            order: spec.order,
            arm: spec.arm,
            settings: spec.settings.clone(),
            goodput_bps: outcome.goodput_bps(),
            figure: outcome.figure(spec.workload.scale()),
            status: outcome.status,
            notes: outcome.notes.clone(),
        })
    }

    /// A round has ended.
    pub(crate) fn round(experiment: &Experiment, spent: Duration) -> Self {
        let assessment = experiment.assessment();
        Self::Round(RoundEvent {
            rounds: assessment.rounds,
            trials: assessment.trials,
            evidence: assessment.arms.iter().map(|arm| arm.evidence).collect(),
            needed: assessment.arms.iter().map(|arm| arm.needed).collect(),
            shown: (0..assessment.arms.len()).map(|arm| experiment.is_shown(arm)).collect(),
            ratio: assessment.arms.iter().map(|arm| arm.ratio.filter(|ratio| ratio.is_finite())).collect(),
            spent_s: spent.as_secs_f64(),
            left: experiment.planned().len(),
        })
    }
}
