use super::beside::SharedWithFlow;
use super::units::percent;
use crate::path::ComparedPath;
use serde::Serialize;
use wt_report::Chart;
use wt_trial::bulk::{BulkMetrics, Recovery};
use wt_units::change;

/// What comes out of congestion controls side by side.
#[derive(Debug, Serialize)]
pub struct ControlsAnswer {
    /// 1.
    pub schema_version: u32,
    /// The comparison's name in the journal.
    pub id: String,
    /// The path, as it was named.
    pub lab: String,
    /// How long each trial was, seconds.
    pub trial_s: f64,
    /// What is known of the path.
    pub path: ComparedPath,
    /// What happened in each trial.
    pub disturbance: Option<TrialDisturbance>,
    /// What came of each, the one that the others are compared with first.
    pub algorithms: Vec<ControlResult>,
    /// What is claimed.
    pub verdict: ControlsVerdict,
    /// All pictures.
    #[serde(skip)]
    pub pictures: Vec<Picture>,
}

/// What is claimed of congestion controls side by side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ControlsVerdict {
    /// Whether any differs from the first.
    pub difference_shown: bool,
    /// One sentence or two that a person can act on.
    pub text: String,
    /// Whose start is shown to be faster or slower, by the time until the first 100 kB; empty where nothing can be said.
    pub start: String,
}

/// What happened in each trial.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TrialDisturbance {
    /// Its name.
    pub kind: &'static str,
    /// When, seconds after the path began.
    pub at_s: f64,
    /// How long, seconds.
    pub lasts_s: f64,
}

/// What came of one congestion control.
#[derive(Debug, Serialize)]
pub struct ControlResult {
    /// The algorithm's own name.
    pub name: String,
    /// `kernel`, or the variant of ours.
    pub variant: String,
    /// Payload over time.
    #[serde(rename = "goodput_kBps")]
    pub goodput: GoodputRuns,
    /// Until 90 % of its own steady rate was reached, seconds; `None` where half of the trials or more never held it.
    pub t90_s: Option<f64>,
    /// Until 90 % of the path's rate held, seconds; `None` where most trials never had it.
    pub t90_path_s: Option<f64>,
    /// Until the first 100 kB had arrived, seconds.
    pub first_100kb_s: Option<f64>,
    /// Until the first 1 MB had arrived, seconds; `None` where most trials were shorter.
    pub first_1mb_s: Option<f64>,
    /// Until the rate was back after a loss, seconds; `None` where it wasn't in half or more of the trials with a loss.
    pub recovery_s: Option<f64>,
    /// The 95th percentile of the queueing delay, ms.
    pub p95_queue_ms: Option<f64>,
    /// Retransmitted segments, as a share of all.
    pub retransmit_share: Option<f64>,
    /// Impossible values that a skipped program left.
    pub guard_hits: u64,
    /// Trials that were thrown away.
    pub invalid_trials: u32,
    /// Trials that failed or didn't come to their end; they count with what they moved, and there is no ratio.
    #[serde(skip_serializing_if = "none_failed")]
    pub failed_trials: usize,
    /// Against the first; `None` of the first itself, and with too few rounds.
    pub against_first: Option<AgainstFirst>,
    /// The time until the first 100 kB over the first one's: below 1 starts faster. `None` as above, and where a trial
    /// ended before.
    pub start_against_first: Option<AgainstFirst>,
    /// The measures of each trial.
    pub runs: Vec<BulkMetrics>,
    /// After what was made to happen.
    pub after_disturbance: Option<Recovery>,
    /// Beside another flow.
    pub beside: Option<SharedWithFlow>,
    /// What it is called in tables and legends.
    #[serde(skip)]
    pub label: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
fn none_failed(trials: &usize) -> bool {
    *trials == 0
}

/// Payload over time.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GoodputRuns {
    /// The mean, kB/s.
    pub mean: f64,
    /// Of each trial, in the order of the rounds, kB/s.
    pub runs: Vec<f64>,
}

/// One against the first, within rounds: of rates, or of times.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct AgainstFirst {
    /// Rate, or time, over the first one's.
    pub ratio: f64,
    /// The interval's lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl std::fmt::Display for AgainstFirst {
    /// The change with its interval: `+268 % (-55 to +1200)`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [ratio, low, high] = [self.ratio, self.low, self.high].map(|ratio| change(percent(ratio), 0));
        write!(f, "{ratio} % ({low} to {high})")
    }
}

/// A picture.
#[derive(Debug)]
pub struct Picture {
    /// What its file is called, without the ending.
    pub name: String,
    /// Its heading on a page.
    pub heading: String,
    /// The picture.
    pub chart: Chart,
}

impl AgainstFirst {
    /// Whether it is shown to be larger.
    pub(super) fn is_larger(&self) -> bool {
        self.low > 1.0
    }

    /// Whether it is shown to be smaller.
    pub(super) fn is_smaller(&self) -> bool {
        self.high < 1.0
    }
}

impl ControlsAnswer {
    /// Whether anything was compared and no difference is shown: the answer is "no".
    pub fn is_no(&self) -> bool {
        self.algorithms.len() > 1 && !self.verdict.difference_shown
    }

    /// Rounds of the one that has most.
    pub fn rounds(&self) -> usize {
        self.algorithms.iter().map(|one| one.goodput.runs.len()).max().unwrap_or(0)
    }
}
