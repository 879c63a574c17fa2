use crate::eprocess::Difference;
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_units::Bytes;

/// How the trial of an observation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TrialEnd {
    /// The workload was done.
    Completed,
    /// The deadline came first; what was moved until then counts.
    Incomplete,
    /// No connection, or no byte at all. Counts in the evidence, not in the estimates.
    Failed,
    /// The trial says nothing: our own machinery misbehaved, or it was interrupted.
    Void,
}

/// What one trial of a round gave.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observation {
    /// Which setting.
    pub arm: usize,
    /// The outcome, larger is better: ln(payload / elapsed), payload in bytes and elapsed in seconds.
    pub y: f64,
    /// How it ended.
    pub ended: TrialEnd,
    /// The payload that arrived.
    pub bytes: Bytes,
    /// From the request to the last byte, stalls included; for a trial that didn't end, the deadline.
    pub elapsed: Duration,
    /// Attempts before it that said nothing: refused, or spoilt by our own machinery.
    pub spoilt: u32,
    /// Attempts before it that somebody ended who may have seen how they went.
    pub interrupted: u32,
    /// Whether it is judged by a score, and not by payload over time: then its payload isn't what is compared.
    pub scored: bool,
}

/// What came of no attempt.
const NO_ATTEMPT: Observation = Observation {
    arm: 0,
    y: f64::NAN,
    ended: TrialEnd::Void,
    bytes: Bytes(0),
    elapsed: Duration::ZERO,
    spoilt: 0,
    interrupted: 0,
    scored: false,
};

impl Observation {
    /// A trial whose workload was done.
    #[must_use]
    pub fn completed(arm: usize, bytes: Bytes, elapsed: Duration) -> Self {
        Self { arm, y: log_rate(bytes, elapsed), ended: TrialEnd::Completed, bytes, elapsed, ..NO_ATTEMPT }
    }

    /// A trial that the deadline cut off after `bytes`, counted as at least one segment.
    #[must_use]
    pub fn incomplete(arm: usize, bytes: Bytes, deadline: Duration, mss: Bytes) -> Self {
        let y = log_rate(bytes.max(mss), deadline);
        Self { arm, y, ended: TrialEnd::Incomplete, bytes, elapsed: deadline, ..NO_ATTEMPT }
    }

    /// A trial without a connection or a byte; its slot counts as one segment in the whole deadline, and clipping
    /// bounds the pull of that.
    #[must_use]
    pub fn failed(arm: usize, deadline: Duration, mss: Bytes) -> Self {
        Self { arm, y: log_rate(mss, deadline), ended: TrialEnd::Failed, elapsed: deadline, ..NO_ATTEMPT }
    }

    /// A trial of a workload that isn't judged by payload over time: by a score that is the larger the better. What such a
    /// trial counts as if it failed, the workload knows; `ended` only says whether it may enter the estimates.
    #[must_use]
    pub fn scored(arm: usize, score: f64, ended: TrialEnd, bytes: Bytes, elapsed: Duration) -> Self {
        let known = score.is_finite() && score > 0.0;
        let seen = Self { arm, y: score.ln(), ended, bytes, elapsed, scored: true, ..NO_ATTEMPT };
        if known { seen } else { Self::void(arm) }
    }

    /// A place of a round of which no trial says anything, or that wasn't run.
    #[must_use]
    pub fn void(arm: usize) -> Self {
        Self { arm, ..NO_ATTEMPT }
    }

    /// A completed trial of which only the log outcome is known: a model's, or one column of a table.
    #[must_use]
    pub fn of(arm: usize, y: f64) -> Self {
        Self { arm, y, ended: TrialEnd::Completed, ..NO_ATTEMPT }
    }

    /// The same after so many more attempts that said nothing.
    #[must_use]
    pub fn after(self, spoilt: u32) -> Self {
        Self { spoilt: self.spoilt.saturating_add(spoilt), ..self }
    }

    /// The same after so many more attempts that somebody ended who may have seen how they went.
    #[must_use]
    pub fn interrupted(self, times: u32) -> Self {
        Self { interrupted: self.interrupted.saturating_add(times), ..self }
    }

    /// Whether it has a value.
    pub(super) fn counts(&self) -> bool {
        self.ended != TrialEnd::Void
    }

    /// Whether it was run and not completed.
    pub(super) fn is_bad(&self) -> bool {
        matches!(self.ended, TrialEnd::Incomplete | TrialEnd::Failed)
    }

    /// What it adds to the total of its setting, which is taken over the sum of `elapsed`: its payload in bytes, or its score over all of
    /// its seconds.
    pub(super) fn amount(&self) -> f64 {
        if self.scored { self.y.exp() * self.elapsed.as_secs_f64() } else { self.bytes.get() as f64 }
    }

    /// Whether it may enter the estimates.
    pub(super) fn estimates(&self) -> bool {
        matches!(self.ended, TrialEnd::Completed | TrialEnd::Incomplete)
    }
}

fn log_rate(bytes: Bytes, elapsed: Duration) -> f64 {
    (bytes.get() as f64 / elapsed.as_secs_f64()).ln()
}

/// What these outcomes of two settings say, if each has a value, and both were run as often.
pub(super) fn difference(own: &[&Observation], other: &[&Observation]) -> Option<Difference> {
    if !own.iter().chain(other).all(|o| o.counts()) {
        return None;
    }
    match (own, other) {
        ([own], [other]) => Some(Difference::Once(own.y - other.y)),
        ([a, b], [c, d]) => Some(Difference::Twice { own: [a.y, b.y], other: [c.y, d.y] }),
        _ => None,
    }
}
