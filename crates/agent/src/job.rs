use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_setup::{Baseline, Budget, Levels, NamedArm, WorkloadRequest, duration_or_none};
use wt_tune::{TrialDirection, TuneRequest};
use wt_units::{Assignment, Knob};

/// How an agent is to measure: what of an experiment a fleet's owner may say. Files, keys and who is believed are the agent's own.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct JobSpec {
    /// What is varied; nothing means what usually matters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub knobs: Option<Vec<Knob>>,
    /// Levels of knobs, instead of those chosen from the path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub levels: Vec<Levels>,
    /// Candidates of several settings that belong together.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arms: Vec<NamedArm>,
    /// What every candidate is compared with; nothing means the current settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline: Option<Baseline>,
    /// Settings fixed in every trial.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub hold: Vec<Assignment>,
    /// What it may cost at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// How long each trial transfers.
    #[serde(with = "duration_or_none", skip_serializing_if = "Option::is_none")]
    pub trial: Option<Duration>,
    /// What each trial does.
    pub workload: WorkloadRequest,
    /// Which way the payload goes, seen from the agent.
    pub direction: TrialDirection,
    /// Whether trials may change settings of the whole host; the agent has to allow it, too.
    pub host_wide: bool,
    /// Hours of the day in which it may begin, in UTC: `22:00-06:00`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hours: Option<String>,
}

impl JobSpec {
    /// The knobs that it names; `None` where it leaves some to the program.
    pub(crate) fn named_knobs(&self) -> Option<Vec<Knob>> {
        let assignments = self.arms.iter().flat_map(|arm| &arm.settings).chain(&self.hold);
        let mut named: Vec<Knob> = assignments.map(|one| one.knob).collect();
        named.extend(self.levels.iter().map(|levels| levels.knob));
        named.extend(self.knobs.iter().flatten());
        match &self.baseline {
            Some(Baseline::Settings(settings)) => named.extend(settings.iter().map(|one| one.knob)),
            // Which knobs those are changes with the program.
            Some(Baseline::System(_)) => return None,
            None => {}
        }
        let varies = self.knobs.is_some() || !self.levels.is_empty() || !self.arms.is_empty();
        varies.then_some(named)
    }

    /// The experiment that it asks for, without what is the agent's own.
    pub(crate) fn experiment(&self) -> TuneRequest {
        let mut request = TuneRequest {
            knobs: self.knobs.clone(),
            levels: self.levels.clone(),
            arms: self.arms.clone(),
            baseline: self.baseline.clone(),
            hold: self.hold.clone(),
            budget: self.budget,
            trial: self.trial,
            workload: self.workload.clone(),
            direction: self.direction,
            ..TuneRequest::default()
        };
        request.live.allow_host_wide = self.host_wide;
        request
    }
}
