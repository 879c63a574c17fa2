//! What is said where some of the settings weren't there: they couldn't be set, and their trials say nothing of them.

use super::StopReason;
use super::assessment::{ArmAssessment, Assessment, LevelVerdict, PlateauAssessment, VerdictKind};
use super::shares::{all_same, gain_at_most};
use std::collections::BTreeSet;

impl Assessment {
    /// The same where these settings couldn't be set in most of their trials, which so were trials of something else: nothing is claimed,
    /// excluded or recommended of them, and what is said of all settings is said of the others. If the first one is among them, what all
    /// others were compared with wasn't there, and nothing is said of any.
    #[must_use]
    pub fn without(&self, unset: &BTreeSet<usize>) -> Self {
        let mut a = Self { unset: unset.clone(), ..self.clone() };
        if unset.is_empty() {
            return a;
        }
        let is_one_left = a.compared().next().is_some();
        if unset.contains(&a.leader) || !is_one_left {
            a.leader = 0;
        }
        if unset.contains(&a.pick) || !is_one_left {
            let claimed = a.compared().filter(|arm| arm.claimed.is_some());
            let ratio = |arm: &&ArmAssessment| arm.ratio.unwrap_or(0.0);
            a.pick = claimed.max_by(|a, b| ratio(a).total_cmp(&ratio(b))).map_or(0, |arm| arm.arm);
            a.regret = None;
            if a.pick == 0 {
                let ended = a.stop.is_some_and(|stop| stop != StopReason::User);
                a.kind = if ended { VerdictKind::NoDifference } else { VerdictKind::Stopped };
            }
        }
        // Where nothing is comparable for other reasons, it isn't without some of them.
        let left = a.compared().map(|arm| &arm.share).collect::<Vec<_>>();
        let comparable = a.pick != 0 || a.arms.first().is_some_and(|current| !current.mostly_bad);
        let most = gain_at_most(left.iter().copied()).filter(|_| comparable);
        let is_bad = a.arms.iter().any(|arm| arm.mostly_bad && !unset.contains(&arm.arm));
        let same = is_one_left && !is_bad && all_same(left.into_iter(), a.indifference);
        (a.gain_at_most, a.all_same) = (most, same);
        if same {
            a.arms.iter_mut().skip(1).filter(|arm| !unset.contains(&arm.arm)).for_each(|arm| arm.equivalent = true);
        }
        if !is_one_left {
            (a.needed, a.regret) = (Vec::new(), None);
        }
        a.plateau = a.plateau.and_then(|found| found.without(unset));
        a
    }

    /// The candidates of which something is said: those that could be set, if what they were compared with could.
    pub fn compared(&self) -> impl Iterator<Item = &ArmAssessment> {
        let candidates = self.arms.iter().skip(1).filter(|_| !self.unset.contains(&0));
        candidates.filter(|arm| !self.unset.contains(&arm.arm))
    }

    /// Whether nothing was compared at all, since none of the candidates could be set, or what they were to be compared with couldn't.
    #[must_use]
    pub fn lacks_candidates(&self) -> bool {
        !self.unset.is_empty() && self.compared().next().is_none()
    }
}

impl PlateauAssessment {
    /// The same without these levels; nothing where the one that all are compared with is among them.
    fn without(mut self, unset: &BTreeSet<usize>) -> Option<Self> {
        if unset.contains(&self.anchor) {
            return None;
        }
        self.levels.retain(|level| !unset.contains(&level.arm));
        if unset.contains(&self.smallest) {
            let within = self.levels.iter().find(|level| level.verdict == LevelVerdict::Within);
            self.smallest = within.map_or(self.anchor, |level| level.arm);
        }
        Some(self)
    }
}
