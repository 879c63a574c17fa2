//! The smallest level within ε of the best of all levels, not only of the anchor.
//!
//! A level is claimed when it is shown to be within ε of every other level that isn't clearly behind: an
//! intersection–union test, so that only the levels' shares of α are paid for. Takes about twice the trials of the search
//! relative to the anchor.
//!
//! What this leaves out: a level is left out of the comparison by the model's estimate, so that the claim is as good as
//! the model there (wrong in at most 0.1 % of simulated runs).

use super::config::PlateauConfig;
use super::limits::{ROUNDS_TO_GIVE_UP, ROUNDS_TO_STEER};
use super::observation::{Observation, difference};
use super::steering::{T_STEER, quantile};
use crate::eprocess::EProcess;
use crate::ols::BlockedFit;

/// One level against all others.
#[derive(Debug, Clone)]
pub(super) struct StrictLevel {
    pub(super) arm: usize,
    /// ln(1/(α·w)).
    need: f64,
    /// For each other level, by its place: "at most ε behind it", and the largest ln E of it.
    against: Vec<(EProcess, f64)>,
    /// Clearly behind the leader.
    pub(super) behind: bool,
    /// Clearly more than ε behind the leader.
    pub(super) below: bool,
    /// More than ε behind by the estimate, though not clearly.
    hopeless: bool,
    pub(super) series: Vec<(usize, f64)>,
}

impl StrictLevel {
    fn given_up(&self) -> bool {
        self.below || self.hopeless
    }
}

#[derive(Debug, Clone)]
pub(super) struct Strict {
    pub(super) epsilon: f64,
    /// Ascending.
    pub(super) levels: Vec<StrictLevel>,
    /// The level with the largest estimate.
    pub(super) leader: usize,
}

impl Strict {
    /// `levels` ascending, with the weight of each.
    pub(super) fn new(config: &PlateauConfig, levels: &[usize], alpha: f64) -> Self {
        let shift = (-config.epsilon).ln_1p();
        let weights = config.weights.clone().unwrap_or_else(|| vec![1.0; levels.len()]);
        let total: f64 = weights.iter().sum();
        let level = |(arm, weight): (&usize, &f64)| StrictLevel {
            arm: *arm,
            need: (total / (alpha * weight)).ln(),
            against: vec![(EProcess::above(shift), 0.0); levels.len()],
            behind: false,
            below: false,
            hopeless: false,
            series: Vec::new(),
        };
        let levels: Vec<StrictLevel> = levels.iter().zip(&weights).map(level).collect();
        Self { epsilon: config.epsilon, levels, leader: 0 }
    }

    /// The smallest ln E of a level against the levels that aren't clearly behind.
    pub(super) fn log_evidence(&self, level: usize) -> f64 {
        let others = self.levels.iter().enumerate().filter(|(i, other)| *i != level && !other.behind);
        others.map(|(i, _)| self.levels[level].against[i].1).fold(f64::INFINITY, f64::min)
    }

    /// The evidence that a level needs.
    pub(super) fn needed(&self, level: usize) -> f64 {
        self.levels[level].need.exp()
    }

    pub(super) fn reached(&self, level: usize) -> bool {
        let enough = self.log_evidence(level) >= self.levels[level].need;
        // With all others clearly behind there is nothing left to compare with: then it is the best itself.
        enough && !self.levels[level].below && self.levels[level].series.len() >= ROUNDS_TO_STEER
    }

    /// The place of the smallest level that is shown.
    pub(super) fn smallest(&self) -> Option<usize> {
        (0..self.levels.len()).find(|level| self.reached(*level))
    }

    pub(super) fn settled(&self) -> bool {
        let given_up = self.levels.iter().take_while(|level| level.given_up()).count();
        self.smallest().is_some_and(|smallest| smallest == given_up)
    }

    pub(super) fn needs(&self, arm: usize) -> bool {
        !self.settled() && self.levels.iter().any(|level| level.arm == arm && !level.given_up())
    }

    pub(super) fn record(&mut self, round: usize, seen: &[Vec<&Observation>]) {
        let outcomes: Vec<&[&Observation]> = self.levels.iter().map(|level| seen[level.arm].as_slice()).collect();
        for (i, level) in self.levels.iter_mut().enumerate() {
            for (j, (process, peak)) in level.against.iter_mut().enumerate().filter(|(j, _)| *j != i) {
                if let Some(difference) = difference(outcomes[i], outcomes[j]) {
                    process.take(difference);
                    *peak = peak.max(process.log_evidence());
                }
            }
        }
        let valued = |level: &usize| !outcomes[*level].is_empty() && outcomes[*level].iter().all(|o| o.counts());
        for i in (0..self.levels.len()).filter(valued) {
            let log_evidence = self.log_evidence(i);
            self.levels[i].series.push((round, log_evidence));
        }
    }

    pub(super) fn steer(&mut self, fit: &BlockedFit) {
        let estimate = |arm: usize| fit.estimate(arm).unwrap_or(f64::NEG_INFINITY);
        let leader = self.levels.iter().map(|l| l.arm).max_by(|a, b| estimate(*a).total_cmp(&estimate(*b)));
        let Some(leader) = leader else { return };
        self.leader = leader;
        let t = quantile(T_STEER, fit.df);
        let shift = (-self.epsilon).ln_1p();
        for level in self.levels.iter_mut().filter(|level| level.arm != leader) {
            let Some(se) = fit.standard_error(level.arm, leader) else { continue };
            let upper = estimate(level.arm) - estimate(leader) + t * se;
            level.behind = upper < 0.0;
            level.below = upper < shift;
            let difference = estimate(level.arm) - estimate(leader);
            level.hopeless = level.series.len() >= ROUNDS_TO_GIVE_UP && difference + se < shift;
        }
        for level in self.levels.iter_mut().filter(|level| level.arm == leader) {
            (level.behind, level.below, level.hopeless) = (false, false, false);
        }
    }
}
