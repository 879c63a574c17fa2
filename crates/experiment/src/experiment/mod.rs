//! The driver of a sequential experiment: draws rounds, takes their outcomes, decides when it is enough.

/// What is known of one setting.
mod candidate;
/// What is fixed beforehand.
mod config;
/// What one trial gave.
mod observation;
/// The smallest sufficient level of an ordered knob.
mod plateau;
/// What the model decides.
mod steering;
/// The smallest level that is sufficient against all others.
mod strict;

/// What can be said now.
mod assessment;

pub use assessment::{
    ArmAssessment, Assessment, LevelAssessment, LevelVerdict, Needed, Noise, PlateauAssessment, VerdictKind,
};
pub use candidate::{DropReason, Dropped};
pub use config::{Config, PlateauConfig};
pub use observation::{Ended, Observation};

use crate::ols::{BlockedFit, BlockedOls};
use candidate::Candidate;
use plateau::Search;
use rand::seq::SliceRandom as _;
use serde::Serialize;
use steering::{ALIKE, Steering, T_RESOLVED, T_STEER};

/// Rounds before the model may drop a setting or call rivals resolved.
const ROUNDS_TO_STEER: usize = 3;
/// Rounds before the experiment may be given up.
const ROUNDS_TO_GIVE_UP: usize = 5;

/// Why no further round is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum StopReason {
    /// The leader is shown to be faster than the current setting, and no rival is worth pursuing.
    Claimed,
    /// Every candidate lies clearly behind.
    OnlyCurrentLeft,
    /// What is left of the budget would hardly show the best candidate's gain.
    Futile,
    /// The next round doesn't fit into the budget.
    Budget,
    /// The user, or the caller for them, asked for it.
    User,
}

/// What became of a round that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Recorded {
    /// It counts.
    Counted,
    /// It was cut short and doesn't count; its trials are paid for.
    Discarded,
}

/// What is wrong with a configuration or a round.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ExperimentError {
    /// Too few or too many settings.
    #[error("an experiment compares 2 to {most} settings, the current one included, not {arms}")]
    Arms {
        /// What was asked for.
        arms: usize,
        /// The most.
        most: usize,
    },
    /// A share that is none.
    #[error("{name} lies between 0 and 1, both excluded, not {value}")]
    Share {
        /// Which.
        name: &'static str,
        /// What was asked for.
        value: f64,
    },
    /// Weights that don't fit the candidates.
    #[error("there must be {candidates} weights, one for each candidate, all positive")]
    Weights {
        /// The number of candidates.
        candidates: usize,
    },
    /// A budget without room for a round.
    #[error("a budget of {most} trials has no room for one round of {arms}")]
    Budget {
        /// The budget.
        most: usize,
        /// The number of settings.
        arms: usize,
    },
    /// Levels that aren't settings of the experiment, or repeated.
    #[error("the levels of the plateau must be different settings below {arms}")]
    Levels {
        /// The number of settings.
        arms: usize,
    },
    /// Weights that don't fit the levels.
    #[error("there must be {levels} weights, one for each level (the current setting included), all positive")]
    LevelWeights {
        /// The number of levels.
        levels: usize,
    },
    /// A setting that the experiment doesn't have, or one twice in a round.
    #[error("setting {arm} of {arms} is unknown or occurs twice in the round")]
    Arm {
        /// The setting.
        arm: usize,
        /// The number of settings.
        arms: usize,
    },
    /// An outcome that is no finite number: no byte or no time. Hand such a trial in as failed or void.
    #[error("the outcome of setting {arm} is {y}; a trial without bytes is failed, one that says nothing is void")]
    Outcome {
        /// The setting.
        arm: usize,
        /// The outcome.
        y: f64,
    },
}

/// A sequential experiment. See the crate's documentation for a whole loop.
///
/// It is deterministic: the same rounds handed to a new experiment of the same configuration lead to the same state, so
/// that everything can be recomputed from a journal, and continued on another day.
#[derive(Debug, Clone)]
pub struct Experiment {
    config: Config,
    arms: Vec<Candidate>,
    ols: BlockedOls,
    rounds: usize,
    trials: usize,
    discarded: usize,
    /// Why the race for "faster" is over.
    race: Option<StopReason>,
    plateau: Option<Search>,
    stop: Option<StopReason>,
    steering: Steering,
}

impl Experiment {
    /// An experiment before its first round.
    ///
    /// # Errors
    /// [`ExperimentError`] if the configuration makes no sense.
    pub fn new(config: Config) -> Result<Self, ExperimentError> {
        let arms = config.thresholds()?.into_iter().map(Candidate::new).collect();
        Ok(Self {
            arms,
            ols: BlockedOls::new(config.arms),
            rounds: 0,
            trials: 0,
            discarded: 0,
            race: None,
            plateau: config.plateau.as_ref().map(|p| Search::new(p, config.alpha)),
            stop: None,
            steering: Steering::default(),
            config,
        })
    }

    /// The settings of the next round in the order in which to run them: uniformly random, the current one (0) always
    /// among them; `None` once the experiment has stopped.
    pub fn next_round(&self, rng: &mut impl rand::Rng) -> Option<Vec<usize>> {
        if self.stop.is_some() {
            return None;
        }
        let mut round = self.planned();
        round.shuffle(rng);
        Some(round)
    }

    /// Takes the outcomes of a round, in any order.
    ///
    /// A round that lacks a planned setting was cut short: it is discarded as a whole, so that no one can choose, while
    /// a round is under way, which half of it to keep. A trial that says nothing ([`Ended::Void`]) takes with it only
    /// its own comparisons: whether our machinery misbehaved doesn't depend on the setting under the null, so the
    /// comparisons that remain are still fair.
    ///
    /// Rounds may be handed in after the experiment has stopped (another day's rounds, a journal): they count, and
    /// whether it is still stopped is decided anew.
    ///
    /// # Errors
    /// [`ExperimentError::Arm`], [`ExperimentError::Outcome`]; the experiment is then as before.
    pub fn record(&mut self, round: &[Observation]) -> Result<Recorded, ExperimentError> {
        let by_arm = self.sort(round)?;
        self.trials += round.len();
        for o in round {
            self.arms[o.arm].counts.add(o);
        }
        if self.planned().iter().any(|arm| by_arm[*arm].is_none()) {
            self.discarded += 1;
            if self.stop.is_none() {
                self.decide();
            }
            return Ok(Recorded::Discarded);
        }
        self.rounds += 1;
        self.take(&by_arm);
        self.steer();
        self.decide();
        Ok(Recorded::Counted)
    }

    /// Stops the experiment for a reason of the caller's: [`StopReason::User`], or [`StopReason::Budget`] when a limit
    /// of time is reached. Never affects what may be claimed.
    pub fn stop(&mut self, reason: StopReason) {
        self.stop = self.stop.or(Some(reason));
    }

    /// Goes on after a stop with this budget of trials, those already run included.
    pub fn resume(&mut self, max_trials: Option<usize>) {
        self.config.max_trials = max_trials;
        if self.race == Some(StopReason::Futile) {
            self.race = None;
        }
        if let Some(plateau) = &mut self.plateau {
            plateau.reopen();
        }
        self.decide();
    }

    /// Why no further round is drawn; `None` while the experiment goes on.
    #[must_use]
    pub fn stop_reason(&self) -> Option<StopReason> {
        self.stop
    }

    /// What was fixed beforehand.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The rounds that count.
    #[must_use]
    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// The trials handed in, those of discarded rounds included.
    #[must_use]
    pub fn trials(&self) -> usize {
        self.trials
    }

    /// The recommended setting so far: of those shown to be faster the one with the largest estimate, else 0. Cheaper than
    /// [`Experiment::assessment`].
    #[must_use]
    pub fn pick(&self) -> usize {
        self.best_claimed(&self.ols.fit()).unwrap_or(0)
    }

    /// The settings of the next round, ascending.
    #[must_use]
    pub fn planned(&self) -> Vec<usize> {
        (0..self.arms.len()).filter(|arm| self.is_planned(*arm)).collect()
    }

    /// How many further trials the experiment can take at most; `None` without a budget.
    #[must_use]
    pub fn trials_left(&self) -> Option<usize> {
        self.config.max_trials.map(|most| most.saturating_sub(self.trials))
    }

    /// What can be said now.
    #[must_use]
    pub fn assessment(&self) -> Assessment {
        assessment::assess(self)
    }

    fn is_planned(&self, arm: usize) -> bool {
        let races = self.race.is_none() && self.arms[arm].active();
        arm == 0 || races || self.plateau.as_ref().is_some_and(|p| p.needs(arm))
    }

    fn sort<'a>(&self, round: &'a [Observation]) -> Result<Vec<Option<&'a Observation>>, ExperimentError> {
        let mut by_arm: Vec<Option<&Observation>> = vec![None; self.arms.len()];
        for o in round {
            let slot = by_arm.get_mut(o.arm).filter(|slot| slot.is_none());
            let slot = slot.ok_or(ExperimentError::Arm { arm: o.arm, arms: self.arms.len() })?;
            if o.counts() && !o.y.is_finite() {
                return Err(ExperimentError::Outcome { arm: o.arm, y: o.y });
            }
            *slot = Some(o);
        }
        Ok(by_arm)
    }

    /// Adds a whole round to the evidence and to the estimates.
    fn take(&mut self, by_arm: &[Option<&Observation>]) {
        let valued = |arm: usize| by_arm[arm].filter(|o| o.counts());
        if let Some(current) = valued(0) {
            for arm in 1..self.arms.len() {
                if let Some(own) = valued(arm) {
                    self.arms[arm].compare(self.rounds, own, current);
                }
            }
        }
        if let Some(plateau) = &mut self.plateau {
            plateau.record(self.rounds, |arm| valued(arm).map(|o| o.y));
        }
        let round: Vec<(usize, f64)> =
            by_arm.iter().flatten().filter(|o| o.estimates()).map(|o| (o.arm, o.y)).collect();
        self.ols.push(&round);
    }

    /// Lets the model drop settings and close questions.
    fn steer(&mut self) {
        let settled = self.race.is_some() && self.plateau.as_ref().is_none_or(Search::settled);
        if self.rounds < ROUNDS_TO_STEER || settled {
            return;
        }
        let fit = self.ols.fit();
        if self.race.is_none() {
            self.drop_failing();
            self.drop_behind(&fit);
            self.race = self.race_over(&fit);
            // Once moved, the anchor stays: a search that starts anew with every new leader need not end.
            if self.race == Some(StopReason::Claimed)
                && let Some(best) = self.best_claimed(&fit)
                && let Some(plateau) = &mut self.plateau
            {
                plateau.move_anchor(best, self.rounds);
            }
        }
        if let Some(plateau) = &mut self.plateau {
            plateau.steer(&fit, &mut self.steering);
        }
    }

    fn drop_failing(&mut self) {
        for candidate in self.arms.iter_mut().skip(1).filter(|c| c.active()) {
            let counts = &candidate.counts;
            if counts.failed >= ROUNDS_TO_STEER && counts.completed + counts.incomplete == 0 {
                candidate.dropped = Some(Dropped { round: self.rounds, reason: DropReason::Failing });
            }
        }
    }

    fn drop_behind(&mut self, fit: &BlockedFit) {
        let Some((lead, best)) = self.leader(fit, 0) else { return };
        for arm in 1..self.arms.len() {
            let (Some(own), Some(se)) = (fit.estimate(arm), fit.standard_error(lead, arm)) else { continue };
            let behind = (self.steering.quantile(T_STEER, fit.df) * se).max(ALIKE);
            if arm != lead && self.arms[arm].active() && best - own > behind {
                self.arms[arm].dropped = Some(Dropped { round: self.rounds, reason: DropReason::Behind });
            }
        }
    }

    /// The setting with the largest estimate among those still in the race, from `first` on.
    fn leader(&self, fit: &BlockedFit, first: usize) -> Option<(usize, f64)> {
        let racing = (first..self.arms.len()).filter(|arm| self.arms[*arm].active());
        racing.filter_map(|arm| Some((arm, fit.estimate(arm)?))).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The setting with the largest estimate among those shown to be faster.
    fn best_claimed(&self, fit: &BlockedFit) -> Option<usize> {
        let claimed = (1..self.arms.len()).filter(|arm| self.arms[*arm].claimed.is_some());
        let estimated = claimed.map(|arm| (arm, fit.estimate(arm).unwrap_or(f64::NEG_INFINITY)));
        estimated.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(arm, _)| arm)
    }

    fn race_over(&mut self, fit: &BlockedFit) -> Option<StopReason> {
        if !self.arms.iter().skip(1).any(Candidate::active) {
            return Some(StopReason::OnlyCurrentLeft);
        }
        let (best, gain) = self.leader(fit, 1)?;
        let se = fit.standard_error(best, 0)?;
        if self.arms[best].claimed.is_some() && self.rivals_resolved(fit, best, gain) {
            return Some(StopReason::Claimed);
        }
        let left = self.rounds_left()?;
        let futile = self.rounds >= ROUNDS_TO_GIVE_UP
            && self.arms[best].claimed.is_none()
            && self.steering.futile(gain, se, fit, self.rounds + left);
        futile.then_some(StopReason::Futile)
    }

    /// Whether no rival can be ahead of the best by more than what is worth pursuing.
    fn rivals_resolved(&mut self, fit: &BlockedFit, best: usize, gain: f64) -> bool {
        let t = self.steering.quantile(T_RESOLVED, fit.df);
        let worth = self.config.indifference.ln_1p();
        (1..self.arms.len()).filter(|arm| *arm != best && self.arms[*arm].active()).all(|arm| {
            match (fit.estimate(arm), fit.standard_error(arm, best)) {
                (Some(own), Some(se)) => own - gain + t * se <= worth,
                _ => true,
            }
        })
    }

    /// How many more rounds like the next one the budget has room for.
    fn rounds_left(&self) -> Option<usize> {
        self.trials_left().map(|left| left / self.planned().len().max(1))
    }

    /// Decides whether there is a next round.
    fn decide(&mut self) {
        let settled = self.plateau.as_ref().is_none_or(Search::settled);
        self.stop = self.race.filter(|_| settled);
        if self.stop.is_none() && self.rounds_left() == Some(0) {
            self.stop = Some(StopReason::Budget);
        }
    }
}

#[cfg(test)]
mod tests;
