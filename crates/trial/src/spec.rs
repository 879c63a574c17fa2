use crate::workload::Workload;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use utoipa::ToSchema;
use wt_units::Settings;

/// Why a trial is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TrialPhase)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// To learn RTT, rate and noise before the design is fixed. Never evidence.
    Pilot,
    /// To warm the path up after a pause; discarded by the clock, never by its value.
    WarmUp,
    /// One of a round: evidence.
    Round,
    /// One of a round on fresh data for the plateau of an ordered knob.
    Plateau,
    /// One of a round of two, after the race: evidence for less delay at the same speed, and for nothing else.
    Delay,
}

/// One fresh execution of a workload with one set of settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TrialSpec {
    /// The experiment that it belongs to.
    pub experiment: String,
    /// Why it is run.
    pub phase: Phase,
    /// The round, from 1; 0 outside of rounds.
    pub round: u32,
    /// The place within the round, from 1.
    pub order: u32,
    /// Which of the experiment's arms, 0 being the current settings.
    pub arm: usize,
    /// What is asked for.
    pub settings: Settings,
    /// What the connection is to do.
    pub workload: Workload,
    /// After this long the trial counts as incomplete.
    #[serde(with = "wt_units::serde_duration")]
    #[schema(value_type = String)]
    pub deadline: Duration,
    /// Seeds everything random in the trial.
    pub seed: u64,
}
