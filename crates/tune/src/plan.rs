//! What stays the same from trial to trial.

use std::time::Duration;
use wt_trial::{Phase, TrialSpec, Workload};
use wt_units::Settings;

/// What stays the same from trial to trial.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) id: String,
    /// Of what is random on the path.
    pub(crate) seed: u64,
    /// Of the order of the trials; drawn when an experiment begins.
    pub(crate) order_seed: u64,
    pub(crate) workload: Workload,
    /// How long that takes, as far as it is known.
    pub(crate) expected: Duration,
    pub(crate) cool_down: Duration,
    pub(crate) deadline: Duration,
}

/// How long a trial may take that is expected to take so long: what has no fixed time four times that, and beyond it 40 round trips,
/// or 10 s where these are shorter.
pub(crate) fn deadline_of(workload: &Workload, expected: Duration, rtt: Duration) -> Duration {
    let most = workload.time().unwrap_or(expected * 4);
    most + (rtt * 40).max(Duration::from_secs(10))
}

impl Plan {
    /// How long a trial takes with all that belongs to it, if it has a fixed time.
    pub(crate) fn per_trial(&self, rtt: Duration) -> Duration {
        self.length() + self.cool_down + rtt * 2
    }

    /// The part of [`Plan::per_trial`] in which a trial transfers.
    pub(crate) fn length_in(per_trial: Duration, cool_down: Duration, rtt: Duration) -> Duration {
        per_trial.saturating_sub(cool_down + rtt * 2)
    }

    /// How long a trial transfers.
    pub(crate) fn length(&self) -> Duration {
        self.workload.time().unwrap_or(self.expected)
    }
}

/// A trial outside of the rounds, with the current settings.
pub(crate) fn aside(plan: &Plan, phase: Phase) -> TrialSpec {
    TrialSpec {
        experiment: plan.id.clone(),
        phase,
        round: 0,
        order: 0,
        arm: 0,
        settings: Settings::new(),
        workload: plan.workload.clone(),
        deadline: plan.deadline,
        seed: plan.seed,
    }
}
