//! What comes out of an experiment, or of the question what one would do.

use super::plan::Plan;
use super::screen_report::ScreenReport;
use serde::Serialize;
use serde_json::Value;
use std::time::Duration;
use utoipa::ToSchema;
use wt_forecast::Expectation;
use wt_journal::Factor;
use wt_report::TuneReport;
use wt_setup::Arm;
use wt_trial::PathFacts;
use wt_units::Settings;

/// What comes out.
pub enum TuneAnswer {
    /// The report of an experiment that was run.
    Report(Box<TuneReport>),
    /// The report of a screen that was run, with its confirmation.
    Screen(Box<ScreenReport>),
    /// What an experiment would compare.
    Plan(Box<TunePlan>),
    /// What a screen would vary.
    ScreenPlan(Box<ScreenPlan>),
}

impl Serialize for TuneAnswer {
    /// The object of `--json`.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Report(report) => report.serialize(serializer),
            Self::Screen(screen) => screen.json().serialize(serializer),
            Self::Plan(plan) => plan.serialize(serializer),
            Self::ScreenPlan(plan) => plan.serialize(serializer),
        }
    }
}

impl std::fmt::Debug for TuneAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Report(_) => "TuneAnswer::Report",
            Self::Screen(_) => "TuneAnswer::Screen",
            Self::Plan(_) => "TuneAnswer::Plan",
            Self::ScreenPlan(_) => "TuneAnswer::ScreenPlan",
        })
    }
}

/// What an experiment would compare, and how long it may take.
#[derive(Debug, Serialize, ToSchema)]
pub struct TunePlan {
    /// 1.
    pub schema_version: u32,
    /// The path, with the share of probes that got lost.
    pub path: PathWithLoss,
    /// What holds now.
    pub current: Settings,
    /// What would be compared, the current settings first.
    pub arms: Vec<Arm>,
    /// The most trials.
    pub max_trials: usize,
    /// After how many rounds the clearest gain could be shown; none if the budget can show nothing.
    pub fewest_rounds: Option<usize>,
    /// What the model expects, if it was asked.
    pub model: Option<Value>,
    /// How long each trial takes, seconds.
    pub trial_s: f64,
    /// How long all of them take, seconds.
    pub expected_s: f64,
    /// Payload that they may move, bytes; on the real path.
    pub expected_bytes: Option<u64>,
    /// Sentences on what the model expects.
    #[serde(skip)]
    pub model_notes: Vec<String>,
    /// Sentences on what it would cost.
    #[serde(skip)]
    pub cost_notes: Vec<String>,
}

/// The path, with the share of probes that got lost.
#[derive(Debug, Serialize, ToSchema)]
pub struct PathWithLoss {
    /// The path.
    #[serde(flatten)]
    pub facts: PathFacts,
    /// The share of probes that got lost, if there were any.
    pub loss: Option<f64>,
}

/// What a screen would vary.
#[derive(Debug, Serialize, ToSchema)]
pub struct ScreenPlan {
    /// 1.
    pub schema_version: u32,
    /// The path.
    pub path: PathFacts,
    /// What holds now.
    pub current: Settings,
    /// The knobs with their two levels.
    pub factors: Vec<Factor>,
    /// The most rounds.
    pub rounds: usize,
    /// Trials of a round.
    pub trials_per_round: usize,
    /// The most trials, those of the confirmation among them.
    pub max_trials: usize,
    /// After how many rounds an effect shows at the earliest, however clear it is.
    pub fewest_rounds: usize,
    /// That the rounds are fewer; there only if they are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reach: Option<String>,
    /// How long each trial takes, seconds.
    pub trial_s: f64,
    /// How long all of them take, seconds.
    pub expected_s: f64,
}

/// How long so many trials take with all that belongs to them.
pub(crate) fn whole_time(plan: &Plan, path: &PathFacts, trials: usize) -> Duration {
    let per_trial = plan.per_trial(Duration::from_micros(path.rtt_us));
    per_trial.saturating_mul(u32::try_from(trials).unwrap_or(u32::MAX))
}

/// The model's part of a plan.
pub(crate) fn model_of(expected: Option<&Expectation>) -> (Option<Value>, Vec<String>) {
    (expected.map(Expectation::to_json), expected.map(Expectation::lines).unwrap_or_default())
}
