use super::{Ended, Observation};
use crate::eprocess::{EProcess, lower_bound};
use serde::Serialize;

/// Why a setting is no longer run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// It lies clearly behind the leader.
    Behind,
    /// No trial of it ever moved a byte.
    Failing,
}

/// When and why a setting left the race for "faster".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Dropped {
    /// The last round that was counted before.
    pub round: usize,
    /// Why.
    pub reason: DropReason,
}

/// What is known of one setting against the current one. For the current one itself only the counts matter.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// 1/(α·w).
    pub(super) threshold: f64,
    pub(super) faster: EProcess,
    pub(super) slower: EProcess,
    pub(super) fails_more: EProcess,
    /// y_i − y_0 of every round in which both have a value.
    pub(super) differences: Vec<f64>,
    /// Round and ln E after it.
    pub(super) series: Vec<(usize, f64)>,
    pub(super) claimed: Option<Claim>,
    pub(super) dropped: Option<Dropped>,
    pub(super) counts: Counts,
}

/// The moment at which the evidence first sufficed.
#[derive(Debug, Clone, Copy)]
pub(super) struct Claim {
    pub(super) round: usize,
    pub(super) log_evidence: f64,
    pub(super) lower_bound: f64,
}

/// Trials of one setting, and the sums over the rounds that it shares with the current one.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) trials: usize,
    pub(super) completed: usize,
    pub(super) incomplete: usize,
    pub(super) failed: usize,
    pub(super) void: usize,
    own_bytes: f64,
    own_seconds: f64,
    current_bytes: f64,
    current_seconds: f64,
}

impl Candidate {
    pub(super) fn new(threshold: f64) -> Self {
        Self {
            threshold,
            faster: EProcess::new(),
            slower: EProcess::below(0.0),
            fails_more: EProcess::new(),
            differences: Vec::new(),
            series: Vec::new(),
            claimed: None,
            dropped: None,
            counts: Counts::default(),
        }
    }

    pub(super) fn active(&self) -> bool {
        self.dropped.is_none()
    }

    /// Takes the pair of a round, both of which have a value.
    pub(super) fn compare(&mut self, round: usize, own: &Observation, current: &Observation) {
        let difference = own.y - current.y;
        self.differences.push(difference);
        self.faster.push(difference);
        self.slower.push(difference);
        // Only rounds in which one of the two failed say anything about failing.
        match (own.ended == Ended::Failed, current.ended == Ended::Failed) {
            (true, false) => self.fails_more.push(1.0),
            (false, true) => self.fails_more.push(-1.0),
            _ => {}
        }
        self.counts.add_pair(own, current);
        let log_evidence = self.faster.log_evidence();
        self.series.push((round, log_evidence));
        if self.claimed.is_none() && log_evidence >= self.threshold.ln() {
            // A claim stands however the evidence moves later, and so does the bound that came with it.
            let lower_bound = lower_bound(&self.differences, self.threshold).max(0.0);
            self.claimed = Some(Claim { round, log_evidence, lower_bound });
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, observation: &Observation) {
        self.trials += 1;
        match observation.ended {
            Ended::Completed => self.completed += 1,
            Ended::Incomplete => self.incomplete += 1,
            Ended::Failed => self.failed += 1,
            Ended::Void => self.void += 1,
        }
    }

    fn add_pair(&mut self, own: &Observation, current: &Observation) {
        self.own_bytes += own.bytes.get() as f64;
        self.own_seconds += own.elapsed.as_secs_f64();
        self.current_bytes += current.bytes.get() as f64;
        self.current_seconds += current.elapsed.as_secs_f64();
    }

    /// Σbytes/Σtime of this setting over that of the current one, in the rounds that both share.
    pub(super) fn total_ratio(&self) -> Option<f64> {
        let ratio = (self.own_bytes / self.own_seconds) / (self.current_bytes / self.current_seconds);
        ratio.is_finite().then_some(ratio)
    }
}
