use super::beside;
use super::control::CountedTrial;
use std::time::Duration;
use wt_journal::DisturbanceConfig;
use wt_lab::scenario::Disturbance;
use wt_trial::bulk::DisturbanceTimes;

/// What is made to happen in each trial, and when.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScriptedDisturbance {
    pub(super) what: Disturbance,
    /// After the path began.
    pub(super) at: Duration,
}

impl ScriptedDisturbance {
    /// After four tenths of a trial of that length.
    pub(super) fn new(what: Disturbance, length: Duration) -> Self {
        Self { what, at: length * 2 / 5 }
    }

    /// When it happened, on the clock of the trial's transfer: the path's began before the connection was made.
    pub(super) fn when(&self, trial: &CountedTrial) -> DisturbanceTimes {
        if let Some(seen) = beside::when(trial) {
            return seen;
        }
        let connect_us = trial.outcome.observed.connect_us.unwrap_or(0);
        let at_us = micros(self.at).saturating_sub(connect_us);
        DisturbanceTimes { at_us, over_us: at_us.saturating_add(micros(self.what.lasts())) }
    }

    /// As the journal keeps it.
    pub(super) fn to_config(self) -> DisturbanceConfig {
        DisturbanceConfig {
            kind: Some(self.what.name().to_owned()),
            at_us: Some(micros(self.at)),
            lasts_us: Some(micros(self.what.lasts())),
            ..DisturbanceConfig::default()
        }
    }

    /// As the journal has it.
    pub(super) fn from_config(kept: &DisturbanceConfig) -> Option<Self> {
        let lasts = Duration::from_micros(kept.lasts_us?);
        let what = match kept.kind.as_deref()? {
            "loss" => Disturbance::Loss,
            "burst" => Disturbance::Burst,
            "outage" => Disturbance::Outage,
            "half-rate" => Disturbance::HalfRate { lasts },
            "rtt-step" => Disturbance::RttStep,
            "flow" => Disturbance::Flow { lasts },
            _ => return None,
        };
        Some(Self { what, at: Duration::from_micros(kept.at_us?) })
    }
}

/// Whole microseconds.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}
