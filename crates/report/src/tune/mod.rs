//! What `windtunnel tune` answers, as one documented object.

/// The answer in four lines.
mod answer;
/// What an answer has people type.
mod answer_steps;
/// Its words.
mod answer_words;
/// How the recommended settings are applied.
mod apply;
/// What is shown of a setting.
mod arm;
/// From an assessment and the trials to the report.
mod assemble;
/// What the others were compared with, if somebody named it.
mod baseline;
/// How near the fastest setting came to the link's limit.
mod ceiling;
/// Two settings, each alone and both together.
mod cells;
/// The charts of the report.
mod charts;
/// The same speed with less delay.
mod delay;
/// The trials of it.
mod delay_trials;
/// What the trials of an arm say in figures.
mod figures;
/// Goodput against delay.
mod frontier;
/// What goes on with an experiment.
mod go_on;
/// Asked, granted, observed.
mod granted;
/// What held the current settings back.
mod limits;
/// The same where something else than goodput is compared.
mod limits_work;
/// What was compared.
mod measured;
/// The test of less delay that is left open.
mod open_delay;
/// What a person types again with each command.
mod retyped;
/// Which server served the trials.
mod servers;
/// Whether long transfers decay.
mod soak;
/// Congestion window and rate over time.
mod traces;
/// An experiment that is still being measured.
mod under_way;
/// What trials say that weren't completed.
mod unfinished;
/// Where nothing could be set.
mod unset;
/// Pages, object by object.
mod waterfall;

pub use answer::{Answer, AnswerAction, AnswerHost, AnswerStep, Sure};
pub use assemble::{AllTrials, NewComparison, Run, RunFacts, Setting, TuneInputs};
pub use ceiling::Ceiling;
pub use cells::{FourCells, square};
pub use delay::{DelayReport, DelayRules, OpenDelayTest};
pub use limits::{LimitedBy, LimitsReport};
pub use measured::TrialFigure;
pub use retyped::RetypedOptions;
pub use servers::ServerTrials;
pub use soak::SoakReport;

use crate::words;
use serde::Serialize;
use utoipa::ToSchema;
use wt_experiment::VerdictKind;
use wt_units::{Knob, Level, Settings};

/// The version of the JSON object; grows when a field changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

/// What came of tuning: the object of `tune --json`, and the source of every other form.
///
/// Fields are only ever added within a `schema_version`. A value that isn't known is `null`.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct TuneReport {
    /// The version of this object.
    pub schema_version: u32,
    /// The experiment's name in the journal.
    pub id: String,
    /// What was tuned: a preset, a file, a host.
    pub target: String,
    /// Where the trials ran: `sim`, `lab` or `live`.
    pub tunnel: String,
    /// `running` while its trials are still being run: then all of this is what is so until now. There only then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<&'static str>,
    /// The experiment that goes on with this one: all of this is of a part of its trials. There only where there is such a one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continued_by: Option<String>,
    /// What is known of the path.
    pub path: Path,
    /// The settings in force when nothing is asked for.
    pub current: Settings,
    /// What every candidate was compared with, where that isn't the current settings: what it sets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Settings>,
    /// Two settings, each alone and both together; there only if such four were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cells: Option<FourCells>,
    /// Rounds that count.
    pub rounds: usize,
    /// Trials of rounds, those of rounds cut short included.
    pub trials: usize,
    /// The answer.
    pub verdict: Verdict,
    /// The smallest sufficient level of an ordered knob, if it was sought.
    pub plateau: Option<Plateau>,
    /// What the framing leaves of the link's rate for TCP payload, bit/s; `null` where the link isn't known.
    pub physical_goodput_bps: Option<u64>,
    /// How near the fastest setting came to that; there only where both are known and goodput is compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ceiling: Option<Ceiling>,
    /// What was compared, and what the `figure` fields are.
    pub measured: TrialFigure,
    /// What held the current settings back.
    pub limits: LimitsReport,
    /// The setting that may have less delay at the same speed; `null` where none was tested.
    pub delay: Option<DelayReport>,
    /// The settings (places in `arms`) that no other equals or beats in both goodput and delay, by the medians of their trials,
    /// ascending in both: an estimate, no claim. Empty where delay isn't known, or something else than goodput is compared.
    pub frontier: Vec<usize>,
    /// Whether long transfers decay; there only if that was looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub soak: Vec<SoakReport>,
    /// What a model expected of each setting before the first trial: `known_error` (a share), and of each `expected_gain`, its
    /// `weight` and whether it was `left_out`. It chose and weighed candidates and is no evidence. There only where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<serde_json::Value>,
    /// The changes that make the recommended settings hold; empty where there is nothing to change, or nothing real.
    pub plan: Vec<PlanStep>,
    /// Which server gave what, where a profile names several: servers take turns, so nothing here is claimed of settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub servers: Vec<ServerTrials>,
    /// Every trial of a round, in the order in which they ran.
    pub trial_table: Vec<Trial>,
    /// Every trial of the rounds on which `delay` rests, in the order in which they ran; left out where there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delay_trials: Vec<Trial>,
    /// Every setting that was compared, the current one first.
    pub arms: Vec<Arm>,
    /// What each setting asked for, what it got, and what was seen.
    pub granted: Vec<GrantedKnob>,
    /// What a person should know before trusting the answer.
    pub warnings: Vec<String>,
    /// What to do next.
    pub next: Vec<String>,
    /// How it was run.
    pub run: RunReport,
    /// Congestion window and rate of the median trial of the main settings; for charts, so not in the JSON.
    #[serde(skip)]
    pub traces: Vec<Trace>,
}

/// What is known of the path.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ReportPath)]
pub struct Path {
    /// RTT of a full-sized segment and its ACK on the idle path, µs; 0 where nobody knows it.
    pub rtt_us: u64,
    /// The largest IP packet that gets through, bytes; 0 where nobody knows it.
    pub pmtu: u64,
    /// Payload rate times RTT, bytes; 0 where nobody knows it.
    pub bdp_bytes: u64,
    /// The share of small probes that got lost; `null` where nobody probed.
    pub loss: Option<f64>,
}

impl Path {
    /// What is known of it: `RTT 40.0 ms, PMTU 1500, BDP 50000 bytes`; `None` where nothing is.
    #[must_use]
    pub fn known(&self) -> Option<String> {
        let known = |figure: u64, show: &dyn Fn(u64) -> String| (figure > 0).then(|| show(figure));
        let parts = [
            known(self.rtt_us, &|us| format!("RTT {}", words::milliseconds(us))),
            known(self.pmtu, &|bytes| format!("PMTU {bytes}")),
            known(self.bdp_bytes, &|bytes| format!("BDP {bytes} bytes")),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// One change to this host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct PlanStep {
    /// The setting.
    pub key: String,
    /// What it is to be.
    pub value: Level,
    /// Where: the address of the target, or `host`.
    pub to: String,
    /// What to type.
    pub command: String,
    /// What this host was in the transfers: `sender` or `receiver`.
    pub side: String,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ReportVerdict)]
pub struct Verdict {
    /// The answer in four lines and their figures: what to set and where, how sure, what to do, where it is kept.
    pub answer: Answer,
    /// `faster`, `no-difference` or `stopped`.
    pub kind: VerdictKind,
    /// The recommended settings in full: those shown to be faster, else the current ones.
    pub settings: Settings,
    /// The estimated ratio of goodput to the current settings: of the recommended ones, or of those that lead unproven.
    pub ratio: Option<f64>,
    /// That ratio is at least this, with probability 1 − `alpha`, however often one looked.
    pub at_least: Option<f64>,
    /// The evidence for it, to one.
    pub evidence: f64,
    /// The evidence that a claim needs.
    pub needed: Option<f64>,
    /// Everything in plain sentences.
    pub text: String,
    /// The recommended arm, 0 being the current settings.
    pub arm: usize,
    /// Its label.
    pub label: String,
    /// The first sentence of `text`.
    pub headline: String,
    /// The other sentences of `text`.
    pub details: Vec<String>,
    /// Why it ended: `claimed`, `only-current-left`, `futile`, `budget`, `user`.
    pub stop: Option<wt_experiment::StopReason>,
    /// The probability of any false "faster" in the whole experiment.
    pub alpha: f64,
    /// The share by which the recommended settings are at most slower than the best ones tested.
    pub regret: Option<f64>,
    /// The noise of one trial about its round, as a coefficient of variation.
    pub noise_cv: Option<f64>,
}

/// The smallest sufficient level of an ordered knob.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct Plateau {
    /// The knob.
    pub knob: Knob,
    /// The unit of `x`: `bytes`, `segments`, or nothing.
    pub unit: &'static str,
    /// The smallest level shown to be within `epsilon` of the anchor; the anchor's own if none smaller is.
    pub level: Level,
    /// By which share a level may lie behind.
    pub epsilon: f64,
    /// The arm with that level.
    pub arm: usize,
    /// The arm that levels were compared with.
    pub anchor: usize,
    /// Whether a level smaller than the anchor's is shown to suffice.
    pub shown: bool,
    /// Whether further rounds could still change the answer.
    pub settled: bool,
    /// Goodput by level, ascending.
    pub curve: Vec<PlateauPoint>,
}

/// Goodput at one level.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct PlateauPoint {
    /// The arm.
    pub arm: usize,
    /// Its level.
    pub level: Level,
    /// Where it stands on the axis: the level, or the largest value seen where the system chose.
    pub x: f64,
    /// Geometric mean of its trials, bit/s.
    pub goodput_bps: Option<f64>,
    /// Goodput of its trials, bit/s.
    pub trials_bps: Vec<f64>,
    /// Geometric mean of the figures of its trials: see `measured`.
    pub figure: Option<f64>,
    /// The figures of its trials.
    pub figures: Vec<f64>,
}

/// One trial of a round.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ReportTrial)]
pub struct Trial {
    /// The round, from 1.
    pub round: u32,
    /// The place within the round, from 1.
    pub order: u32,
    /// The settings in full.
    pub settings: Settings,
    /// Payload over time, bit/s.
    pub goodput_bps: f64,
    /// The figure that was compared: see `measured`.
    pub figure: Option<f64>,
    /// `completed`, `incomplete`, `failed`, `aborted` or `invalid`.
    pub status: &'static str,
    /// Its number in the journal.
    pub trial: i64,
    /// Which of `arms`.
    pub arm: usize,
    /// `round` or `plateau`; `delay` in `delay_trials`.
    pub phase: wt_trial::Phase,
    /// Payload that reached the receiver.
    pub bytes: u64,
    /// How long it took, µs.
    pub elapsed_us: u64,
    /// Retransmitted segments.
    pub retransmits: u64,
    /// The smallest RTT that the sender saw, µs.
    pub min_rtt_us: u64,
    /// What the workload measured beyond payload and time.
    #[serde(skip_serializing_if = "wt_trial::Measures::is_empty")]
    pub measures: wt_trial::Measures,
    /// The server, where a profile names several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server: Option<String>,
    /// What the tunnel noted.
    pub notes: Vec<String>,
}

/// What is shown of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ArmState {
    /// It is what all others are compared with.
    Current,
    /// Shown to be faster.
    Faster,
    /// Shown to be slower.
    Slower,
    /// Shown to be the same within what is worth pursuing.
    Same,
    /// Left out early: clearly behind by the model's estimate.
    Behind,
    /// No trial of it ever moved a byte, whether it was left out early or not.
    Failing,
    /// Nothing shown.
    Open,
    /// In most of its trials it wasn't what was asked for: it is listed, and neither ranked nor recommended.
    NotSet,
}

impl Arm {
    /// Whether its figures say something about the settings in its label.
    #[must_use]
    pub fn is_ranked(&self) -> bool {
        self.state != ArmState::NotSet
    }
}

/// One of the settings that were compared.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = ReportArm)]
pub struct Arm {
    /// What people call it.
    pub label: String,
    /// What it asks for; everything else is as it was.
    pub settings: Settings,
    /// What is shown of it.
    pub state: ArmState,
    /// Median goodput of its trials, bit/s.
    pub goodput_bps: Option<f64>,
    /// Median figure of its trials: see `measured`.
    pub figure: Option<f64>,
    /// Delay under load, µs: the median of the RTTs that its trials lived with; `null` where the sender isn't ours.
    pub delay_us: Option<f64>,
    /// Segments retransmitted in a trial, the mean; `null` where the sender isn't ours.
    pub retransmits: Option<f64>,
    /// Packets that queues of the path dropped in a trial, full or by their discipline, the mean; `null` where nobody sees them.
    pub queue_drops: Option<f64>,
    /// Packets of `queue_drops` that a discipline dropped before the queue was full, the mean; not there where nobody counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub aqm_drops: Option<f64>,
    /// Packets of a trial that arrived with a mark of congestion from the path, the mean; not there where nobody counted them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ce_marks: Option<f64>,
    /// Estimated ratio to the current settings of what was compared; larger is better.
    pub ratio: Option<f64>,
    /// The ratio is at least this; `null` while nothing can be excluded.
    pub low: Option<f64>,
    /// The ratio is at most this; `null` while nothing can be excluded.
    pub high: Option<f64>,
    /// By the model the ratio is at least this: with normal noise, for all settings together, however often one looked.
    /// There before `low` is, and claims nothing.
    pub model_low: Option<f64>,
    /// By the model the ratio is at most this.
    pub model_high: Option<f64>,
    /// The largest evidence for "faster" so far.
    pub evidence: f64,
    /// The evidence that a claim needs; `null` for the current settings.
    pub needed: Option<f64>,
    /// Whether it is recommended for less delay at the same speed.
    #[serde(skip)]
    pub is_calmer: bool,
    /// Rounds in which it could be compared.
    pub rounds: usize,
    /// Its trials.
    pub trials: usize,
    /// Of those, trials that stalled or failed.
    pub bad: usize,
    /// Round and evidence after it.
    pub series: Vec<(usize, f64)>,
}

/// One knob of one setting: asked, granted, observed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
#[schema(as = GrantedLevel)]
pub struct GrantedKnob {
    /// The arm.
    pub arm: usize,
    /// The knob.
    pub knob: Knob,
    /// What was asked for.
    pub asked: Level,
    /// What the system says it set; more than one if trials differ.
    pub granted: Vec<Level>,
    /// Where it was set: `socket`, `route`, `host`.
    pub scope: String,
    /// What was seen on the wire or in `tcp_info`.
    pub observed: Vec<String>,
    /// Whether they contradict each other in any trial.
    pub differs: bool,
    /// Trials in which something else was tested than what was asked for.
    pub differing: usize,
    /// Those of them in which that held: a window that was seen for a moment, and never used, doesn't count.
    #[serde(skip)]
    pub elsewhere: usize,
    /// Trials in which they were looked at.
    pub trials: usize,
}

/// How it was run.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct RunReport {
    /// When it began, µs since the Unix epoch.
    pub started_unix_us: i64,
    /// How long the trials took, cool-downs included, s.
    pub spent_s: f64,
    /// Seeds everything random.
    pub seed: u64,
    /// What each trial did.
    pub workload: String,
    /// The pause after each trial, s.
    pub cool_down_s: f64,
    /// What to type to run the same again.
    pub command: String,
    /// The version of the program.
    pub version: String,
    /// What the user wrote about it.
    pub comment: String,
    /// The name of the machine that it ran on; `null` where it isn't kept.
    pub host: Option<String>,
    /// The release of its kernel.
    pub kernel: Option<String>,
    /// The network device that the trials went through, with its driver; `null` in the lab.
    pub device: Option<String>,
}

/// One trial over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// The arm.
    pub arm: usize,
    /// What people call it.
    pub label: String,
    /// The trial's number in the journal.
    pub trial: i64,
    /// Seconds since the beginning, congestion window in bytes.
    pub cwnd: Vec<(f64, f64)>,
    /// Seconds since the beginning, rate of payload at the receiver in bit/s.
    pub rate: Vec<(f64, f64)>,
}

#[cfg(test)]
#[path = "../../examples/story/mod.rs"]
mod story;
#[cfg(test)]
mod tests;
