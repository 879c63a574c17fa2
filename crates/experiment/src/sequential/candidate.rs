use super::limits::ROUNDS_TO_STEER;
use super::observation::{Observation, TrialEnd, difference};
use crate::describe::{mean, squares};
use crate::eprocess::{Difference, EProcess, lower_bound_of};
use crate::wager::Wager;
use serde::Serialize;
use std::cmp::Ordering;

/// What a round counts that somebody interrupted, in typical differences: nothing loses more.
const LOST: f64 = -2.0;
/// What a round counts that was spoilt, in standard deviations of differences from their mean: what is lost where it would have been bad
/// is the worst of many.
const WORST_OF_MANY: f64 = -3.0;
/// So many differences are needed to know how far they lie apart.
const FEWEST: usize = 3;

/// Why a setting is no longer run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum DropReason {
    /// It lies clearly behind the leader.
    Behind,
    /// No trial of it ever moved a byte, or more than half of them aren't completed and those of the current setting are.
    Failing,
}

/// When and why a setting left the race for "faster".
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DroppedSetting {
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
    /// ln of the ratio below which a gain isn't worth a change.
    relevant: f64,
    faster: Wager,
    /// The same with as many rounds lost as one of the two was spoilt more often than the other at the worst, and with those in
    /// which a trial of one of the two was interrupted.
    doubted: Wager,
    /// The largest ln E of `doubted`.
    doubted_peak: f64,
    pub(super) slower: EProcess,
    pub(super) fails_more: EProcess,
    pub(super) spoilt_more: EProcess,
    /// Rounds in which only its trial was spoilt, and only that of the current setting.
    spoilt_alone: [usize; 2],
    /// By how many rounds at most each of the two was spoilt more often than the other.
    most_alone: [usize; 2],
    /// Of those, rounds of which isn't known yet what they count.
    owed: usize,
    /// y_i − y_0 of every round in which both have a value.
    pub(super) differences: Vec<f64>,
    /// The same with both outcomes of each, where each was run twice.
    pub(super) compared: Vec<Difference>,
    /// Round and ln E after it.
    pub(super) series: Vec<(usize, f64)>,
    pub(super) claimed: Option<Claim>,
    pub(super) dropped: Option<DroppedSetting>,
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
    /// Attempts that said nothing.
    pub(super) spoilt: usize,
    /// Attempts that somebody ended.
    pub(super) interrupted: usize,
    /// Trials of it and of the current setting in rounds that both share, and how many of each moved nothing.
    pairs: usize,
    own_empty: usize,
    current_empty: usize,
    /// Those that have a score, and those that moved something and have none: amounts of the two can't be added.
    scored: usize,
    unscored: usize,
    own_amount: f64,
    own_seconds: f64,
    current_amount: f64,
    current_seconds: f64,
}

impl Candidate {
    /// A claim needs evidence of `threshold`, and is worth a change if the log of the ratio isn't below `relevant`.
    pub(super) fn new(threshold: f64, relevant: f64) -> Self {
        Self {
            threshold,
            relevant,
            faster: Wager::above(0.0, threshold),
            doubted: Wager::above(0.0, threshold),
            doubted_peak: f64::NEG_INFINITY,
            slower: EProcess::below(0.0),
            fails_more: EProcess::new(),
            spoilt_more: EProcess::new(),
            spoilt_alone: [0; 2],
            most_alone: [0; 2],
            owed: 0,
            differences: Vec::new(),
            compared: Vec::new(),
            series: Vec::new(),
            claimed: None,
            dropped: None,
            counts: Counts::default(),
        }
    }

    pub(super) fn active(&self) -> bool {
        self.dropped.is_none()
    }

    /// The bets on it so far that a claim depends on.
    pub(super) fn bets(&self) -> Wager {
        self.doubted.clone()
    }

    /// What a claim may rest on by now.
    pub(super) fn evidence_together(&self) -> f64 {
        let most = if self.counts.mostly_bad() { 0.0 } else { 690.0 };
        self.doubted.log_evidence().min(most).exp()
    }

    /// Whether it is shown to be faster, and worth a change: by evidence, not by trials that were left out of it, nor with more
    /// than half of its trials not completed, nor by less than is relevant.
    pub(super) fn is_shown(&self) -> bool {
        self.is_ahead() && !self.is_ahead_by_little()
    }

    /// Whether it is shown to be faster by anything.
    pub(super) fn is_ahead(&self) -> bool {
        self.claimed.is_some() && !self.counts.mostly_bad() && !self.is_doubtful()
    }

    /// Whether it is shown to be slower.
    pub(super) fn is_slower(&self) -> bool {
        self.slower.log_evidence() >= self.threshold.ln()
    }

    /// Whether it is shown to be faster, and by so little that it isn't worth a change.
    pub(super) fn is_ahead_by_little(&self) -> bool {
        let mean = self.differences.iter().sum::<f64>() / self.differences.len().max(1) as f64;
        self.is_ahead() && mean < self.relevant
    }

    /// Whether it owes its evidence to rounds that were left out or run anew: trials of one of the two were spoilt more often, or
    /// somebody ended some, so what is left may be a selection, and with those rounds counted as lost the evidence doesn't suffice.
    pub(super) fn is_doubtful(&self) -> bool {
        self.doubted_peak < self.threshold.ln()
    }

    /// Counts a round in which only one of the two was spoilt, its own trial (0) or that of the current setting (1); whether that one is
    /// now spoilt more often than the other by more than it ever was.
    fn is_spoilt_more_than_ever(&mut self, who: usize) -> bool {
        self.spoilt_alone[who] += 1;
        let more = self.spoilt_alone[who].saturating_sub(self.spoilt_alone[1 - who]);
        let grew = more > self.most_alone[who];
        self.most_alone[who] = self.most_alone[who].max(more);
        grew
    }

    /// Takes what a round counts at least.
    fn doubt(&mut self, difference: Difference, left: Option<usize>) {
        self.doubted.take(difference, left);
        self.doubted_peak = self.doubted_peak.max(self.doubted.log_evidence());
    }

    /// Counts rounds as lost that were spoilt, once it is known what that is.
    fn settle(&mut self, left: Option<usize>) {
        if self.differences.len() < FEWEST {
            return;
        }
        for _ in 0..std::mem::take(&mut self.owed) {
            let spread = (squares(&self.differences) / (self.differences.len() - 1) as f64).sqrt();
            self.doubt(Difference::Once(mean(&self.differences) + WORST_OF_MANY * spread), left);
        }
    }

    /// Takes what a round has of it and of the current setting, once each or twice, where both were run. `left` is how many
    /// rounds the budget had before this one, if its last part has begun.
    pub(super) fn compare(
        &mut self,
        round: usize,
        own: &[&Observation],
        current: &[&Observation],
        left: Option<usize>,
    ) {
        let spoilt = [own, current].map(|side| side.iter().any(|o| o.spoilt > 0));
        let alone = spoilt[0] != spoilt[1];
        if alone {
            self.spoilt_more.push(if spoilt[0] { 1.0 } else { -1.0 });
        }
        let difference = difference(own, current);
        // Whoever ends a trial that goes badly, and has it run anew, chooses among trials of both.
        let interrupted = own.iter().chain(current).any(|o| o.interrupted > 0);
        let lost = alone && self.is_spoilt_more_than_ever(usize::from(spoilt[1])) && !interrupted;
        self.owed += usize::from(lost);
        if interrupted {
            let lost = LOST * self.faster.scale().max(self.doubted.scale()).max(f64::MIN_POSITIVE);
            self.doubt(if own.len() > 1 { Difference::lost(lost) } else { Difference::Once(lost) }, left);
        } else if let Some(difference) = difference.filter(|_| !lost) {
            self.doubt(difference, left);
        }
        self.settle(left);
        let Some(difference) = difference else { return };
        self.differences.push(difference.value());
        self.compared.push(difference);
        self.faster.take(difference, left);
        self.slower.take(difference);
        // Only rounds in which one of the two was completed less often say anything about failing.
        let bad = |side: &[&Observation]| side.iter().filter(|o| o.is_bad()).count();
        match bad(own).cmp(&bad(current)) {
            Ordering::Greater => self.fails_more.push(1.0),
            Ordering::Less => self.fails_more.push(-1.0),
            Ordering::Equal => {}
        }
        for (own, current) in own.iter().zip(current) {
            self.counts.add_pair(own, current);
        }
        let log_evidence = self.faster.log_evidence();
        self.series.push((round, log_evidence));
        if self.claimed.is_none() && log_evidence >= self.threshold.ln() {
            // A claim stands however the evidence moves later, and so does the bound that came with it.
            let bound = || lower_bound_of(&self.compared, self.threshold).max(0.0);
            let lower_bound = if self.counts.has_ratio() { bound() } else { 0.0 };
            self.claimed = Some(Claim { round, log_evidence, lower_bound });
        }
    }
}

impl Counts {
    pub(super) fn add(&mut self, observation: &Observation) {
        self.trials += 1;
        self.spoilt += observation.spoilt as usize;
        self.interrupted += observation.interrupted as usize;
        match observation.ended {
            TrialEnd::Completed => self.completed += 1,
            TrialEnd::Incomplete => self.incomplete += 1,
            TrialEnd::Failed => self.failed += 1,
            TrialEnd::Void => self.void += 1,
        }
    }

    /// Whether more than half of the trials that say something weren't completed.
    pub(super) fn mostly_bad(&self) -> bool {
        self.incomplete + self.failed > self.completed
    }

    /// Whether no trial moved a byte, and there were some.
    pub(super) fn deliver_nothing(&self) -> bool {
        self.failed >= ROUNDS_TO_STEER && self.completed + self.incomplete == 0
    }

    /// Whether a ratio to the current setting can be bounded: where more than half of the trials of one of the two moved nothing, the
    /// differences are of what such a trial counts as, which says who is better and not by how much.
    pub(super) fn has_ratio(&self) -> bool {
        2 * self.own_empty.max(self.current_empty) <= self.pairs
    }

    /// Whether any trial of the two moved nothing, in the rounds that they share.
    pub(super) fn has_empty(&self) -> bool {
        self.own_empty + self.current_empty > 0
    }

    fn add_pair(&mut self, own: &Observation, current: &Observation) {
        self.pairs += 1;
        self.own_empty += usize::from(own.ended == TrialEnd::Failed);
        self.current_empty += usize::from(current.ended == TrialEnd::Failed);
        for trial in [own, current] {
            self.scored += usize::from(trial.scored);
            self.unscored += usize::from(!trial.scored && trial.bytes.get() > 0);
        }
        self.own_amount += own.amount();
        self.own_seconds += own.elapsed.as_secs_f64();
        self.current_amount += current.amount();
        self.current_seconds += current.elapsed.as_secs_f64();
    }

    /// Σbytes/Σtime of this setting over that of the current one, in the rounds that both share; of trials that are judged by a score
    /// the mean score over time.
    pub(super) fn total_ratio(&self) -> Option<f64> {
        let ratio = (self.own_amount / self.own_seconds) / (self.current_amount / self.current_seconds);
        (ratio.is_finite() && self.scored.min(self.unscored) == 0).then_some(ratio)
    }
}
