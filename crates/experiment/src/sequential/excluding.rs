//! Rounds that exclude gains: an experiment that shows none says at least how large one can still be.

use super::{Candidate, DropReason, Experiment, Method};
use crate::eprocess::bold_upper_bound_of;
use crate::ols::BlockedFit;

impl Experiment {
    /// Whether a gain of this setting that is worth pursuing isn't excluded yet.
    pub(super) fn may_gain(&self, arm: usize) -> bool {
        let candidate = &self.arms[arm];
        let failing = candidate.dropped.is_some_and(|dropped| dropped.reason == DropReason::Failing);
        let excluded =
            || bold_upper_bound_of(&candidate.compared, 1.0 / self.config.alpha) < self.config.indifference.ln_1p();
        arm != 0 && !failing && (candidate.differences.len() < self.to_exclude || !excluded())
    }

    /// How many rounds a candidate in the race lacks until gains of it can be excluded; none where most of its trials, or of the current
    /// setting's, say nothing: more of them needn't say more.
    pub(super) fn lacks(&self, arm: usize) -> usize {
        let candidate = &self.arms[arm];
        let says_something = |arm: &Candidate| 2 * arm.counts.void <= arm.counts.trials;
        let compared = candidate.active() && says_something(candidate) && says_something(&self.arms[0]);
        if compared { self.to_exclude.saturating_sub(candidate.differences.len()) } else { 0 }
    }

    /// Whether candidates in the race lack rounds to exclude gains of them, and the budget has room for those.
    pub(super) fn can_catch_up(&self) -> bool {
        if !self.config.excludes || self.config.method != Method::Directed {
            return false;
        }
        let rounds = (1..self.arms.len()).map(|arm| self.lacks(arm)).max().unwrap_or(0);
        // As many rounds as the last of them lacks, of all that race: rounds get shorter meanwhile.
        rounds > 0 && self.trials_left().is_none_or(|left| rounds * (self.racing().len() + 1) <= left)
    }

    /// Whether the noise is so small that a few more rounds of every setting exclude gains, and they can be afforded.
    pub(super) fn can_exclude(&self, fit: &BlockedFit) -> bool {
        let quiet = |variance: f64| (2.0 * variance).sqrt() * 4.0 < self.config.indifference.ln_1p();
        if self.config.method != Method::Directed || !fit.variance.is_some_and(quiet) {
            return false;
        }
        let open: Vec<usize> = (1..self.arms.len()).filter(|arm| self.may_gain(*arm)).collect();
        let lacks = |arm: &usize| self.to_exclude.saturating_sub(self.arms[*arm].differences.len());
        let rounds = open.iter().map(lacks).max().unwrap_or(0);
        let trials = rounds + open.iter().map(lacks).sum::<usize>();
        rounds > 0 && self.trials_left().is_none_or(|left| trials <= left)
    }

    /// Whether a candidate that races and isn't shown to be faster looks so by more than the standard error of its estimate, and by enough
    /// to be worth a change.
    #[must_use]
    pub fn is_hopeful(&self) -> bool {
        let fit = self.fit();
        let looks_faster = |arm: &usize| {
            let gain = fit.estimate(*arm).zip(fit.standard_error(*arm, 0));
            gain.is_some_and(|(gain, se)| gain > se.max(self.config.relevant.ln_1p()))
        };
        self.racing().iter().filter(|arm| !self.arms[**arm].is_shown()).any(looks_faster)
    }
}
