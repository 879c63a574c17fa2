//! The driver of a sequential experiment: draws rounds, takes their outcomes, decides when it is enough.

/// What is known of one setting.
mod candidate;
/// What is fixed beforehand.
mod config;
/// What it takes to go on.
mod continuation;
/// What can be wrong.
mod error;
/// Rounds that exclude gains.
mod excluding;
/// Rounds that decisions wait for.
mod limits;
/// What one trial gave.
mod observation;
/// The smallest sufficient level of an ordered knob.
mod plateau;
/// What each setting says of all of them.
mod shares;
/// What the model decides.
mod steering;
/// The smallest level that is sufficient against all others.
mod strict;
/// What is said without settings that couldn't be set.
mod unset;

/// What can be said now.
mod assessment;

pub use assessment::{
    ArmAssessment, Assessment, LevelAssessment, LevelVerdict, NeededRounds, Noise, PlateauAssessment, VerdictKind,
    fewest_to_exclude,
};
pub use candidate::{DropReason, DroppedSetting};
pub use config::{Config, Method, PlateauConfig};
pub use error::ExperimentError;
pub use observation::{Observation, TrialEnd};

use crate::ols::{BlockedFit, BlockedOls};
use crate::regret::anytime_half_width;
use candidate::Candidate;
use limits::{ROUNDS_TO_GIVE_UP, ROUNDS_TO_STEER};
use plateau::Search;
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use serde::Serialize;
use std::sync::OnceLock;
use steering::{ALIKE, T_RESOLVED, T_STEER, futile, is_quiet, quantile, top_two};
use utoipa::ToSchema;

/// Why no further round is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
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

/// Whether a budget of so many trials is in its last part, in which bets look at its end: after two fifths of it.
fn in_end_game(trials: usize, most: usize) -> bool {
    trials.saturating_mul(5) >= most.saturating_mul(2)
}

/// After how many rounds the clearest gain could be shown within this budget, if at all: one of the setting that needs the least
/// evidence.
///
/// # Errors
/// [`ExperimentError`] if the configuration is invalid.
pub fn fewest_rounds(config: &Config) -> Result<Option<usize>, ExperimentError> {
    let max_trials = config.max_trials.or(Some(MANY));
    let mut experiment = Experiment::new(Config { max_trials, twice: false, ..config.clone() })?;
    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
    let needs = config.thresholds()?;
    let easiest = (1..needs.len()).min_by(|a, b| needs[*a].total_cmp(&needs[*b])).unwrap_or(1);
    while let Some(order) = experiment.next_round(&mut rng) {
        let clear = |arm: usize| Observation::of(arm, f64::from(u8::from(arm == easiest)));
        experiment.record(&order.into_iter().map(clear).collect::<Vec<_>>())?;
    }
    Ok(experiment.arms[easiest].claimed.map(|claim| claim.round))
}

/// The fewest rounds with all cells of a 2 × 2 after which its interaction has an interval that holds at any time.
#[must_use]
pub fn fewest_for_interval(alpha: f64) -> usize {
    let has = |rounds: &usize| anytime_half_width(1.0, 1.0 / *rounds as f64, *rounds as f64 - 1.0, alpha).is_finite();
    (2..MANY).find(has).unwrap_or(MANY)
}

/// Trials that are enough for any clear gain.
const MANY: usize = 10_000;

/// What became of a round that was handed in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RoundOutcome {
    /// It counts.
    Counted,
    /// It was empty, or was cut short and doesn't count; its trials are paid for.
    Discarded,
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
    /// What it says of the rounds so far, once somebody wants to know: a long journal is replayed without.
    fit: OnceLock<BlockedFit>,
    rounds: usize,
    trials: usize,
    discarded: usize,
    /// Why the race for "faster" is over.
    race: Option<StopReason>,
    plateau: Option<Search>,
    /// Whether what is left of the budget excludes gains, now that none will be shown.
    excluding: bool,
    /// Whether the experiment would be given up, were it not for rounds that some candidates lack to exclude gains of them.
    catching_up: bool,
    /// Whether somebody asked to go on: then nothing is given up before the budget is used.
    patient: bool,
    stop: Option<StopReason>,
    /// Rounds of a setting after which gains of it can be excluded.
    to_exclude: usize,
    /// Rounds that had all cells of a 2 × 2.
    whole: usize,
}

impl Experiment {
    /// An experiment before its first round.
    ///
    /// # Errors
    /// [`ExperimentError`] if the configuration is invalid.
    pub fn new(config: Config) -> Result<Self, ExperimentError> {
        let relevant = config.relevant.ln_1p();
        let arms = config.thresholds()?.into_iter().map(|need| Candidate::new(need, relevant)).collect();
        let ols = BlockedOls::new(config.arms);
        Ok(Self {
            arms,
            fit: OnceLock::new(),
            ols,
            rounds: 0,
            trials: 0,
            discarded: 0,
            race: None,
            plateau: config.plateau.as_ref().map(|p| Search::new(p, config.alpha)),
            excluding: false,
            catching_up: false,
            patient: false,
            stop: None,
            to_exclude: fewest_to_exclude(config.alpha),
            whole: 0,
            config,
        })
    }

    /// The settings of the next round in the order in which to run them: uniformly random, the current one (0) always
    /// among them; `None` once the experiment has stopped. On a quiet path each may be there twice.
    ///
    /// It depends on the rounds so far and on `rng` alone: with the generator that a journal names the same round is drawn
    /// again.
    pub fn next_round(&self, rng: &mut impl rand::Rng) -> Option<Vec<usize>> {
        if self.stop.is_some() {
            return None;
        }
        let racing = self.racing();
        let mut round = if self.is_directed() && racing.len() > 2 {
            let chosen = top_two(&racing, self.fit(), rng);
            (0..self.arms.len()).filter(|arm| chosen.contains(arm) || self.is_planned_beside(*arm)).collect()
        } else {
            self.planned()
        };
        if self.runs_twice(round.len()) {
            round.extend_from_within(..);
        }
        round.shuffle(rng);
        Some(round)
    }

    /// Whether a round of so many settings has each of them twice. Six ways to share four places say more than twice two ways, if
    /// noise doesn't part them otherwise: the rounds so far have to say that the path is quiet. What is decided by the past alone
    /// leaves bets fair.
    fn runs_twice(&self, settings: usize) -> bool {
        let races = self.race.is_none()
            && self.config.cells.is_empty()
            && self.end_game(self.config.max_trials, settings).is_none();
        if !self.config.twice || !self.is_directed() || !races {
            return false;
        }
        let Some((best, gain)) = self.leader(self.fit(), 1) else { return false };
        let worth = is_quiet(gain, self.fit()) && !self.arms[best].is_ahead();
        worth && self.trials_left().is_none_or(|left| left >= 2 * settings)
    }

    /// Takes the outcomes of a whole round, in any order.
    ///
    /// A place that says nothing, or that the tunnel gave up, is handed in as [`TrialEnd::Void`] or left out: it takes with it
    /// its own comparisons. Whoever is in the round under "no difference" doesn't decide that; where trials of one setting are
    /// spoilt more often than those of the current one, rounds in which only one of the two was spoilt count as lost. A
    /// round that somebody cut short is finished first, in its drawn order, or [`cut`](Self::cut).
    ///
    /// Rounds may be handed in after the experiment has stopped (another day's rounds, a journal): they count, and
    /// whether it is still stopped is decided anew.
    ///
    /// # Errors
    /// [`ExperimentError::Arm`], [`ExperimentError::Outcome`]; the experiment is then as before.
    pub fn record(&mut self, round: &[Observation]) -> Result<RoundOutcome, ExperimentError> {
        self.record_drawn_under(self.config.max_trials, round)
    }

    /// As [`record`](Self::record), of a round that was drawn when this was the budget: whoever has seen a part of a round and sets
    /// another one doesn't choose what is staked on it.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn record_drawn_under(
        &mut self,
        max_trials: Option<usize>,
        round: &[Observation],
    ) -> Result<RoundOutcome, ExperimentError> {
        let by_arm = self.sort(round)?;
        let left = self.end_game(max_trials, round.len());
        if by_arm.iter().filter(|seen| seen.iter().any(|o| o.counts())).count() < 2 {
            // Nothing is compared; whose trial was spoilt is told nonetheless.
            self.compare(&by_arm, left);
            return self.cut(round);
        }
        self.count(round);
        self.rounds += 1;
        self.take(&by_arm, left);
        self.steer();
        self.decide();
        Ok(RoundOutcome::Counted)
    }

    /// Takes what was run of a round that was cut short and can't be finished: its trials are paid for and don't count, so
    /// that no one can choose, while a round is under way, which half of it to keep.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub fn cut(&mut self, round: &[Observation]) -> Result<RoundOutcome, ExperimentError> {
        self.sort(round)?;
        self.count(round);
        self.discarded += usize::from(!round.is_empty());
        if self.stop.is_none() {
            self.decide();
        }
        Ok(RoundOutcome::Discarded)
    }

    fn count(&mut self, round: &[Observation]) {
        self.trials += round.len();
        for o in round {
            self.arms[o.arm].counts.add(o);
        }
    }

    /// How many rounds of this length a budget has left, once its last part has begun.
    fn end_game(&self, max_trials: Option<usize>, length: usize) -> Option<usize> {
        let most = max_trials.filter(|most| in_end_game(self.trials, *most))?;
        let left = most.saturating_sub(self.trials) / length.max(1);
        (self.config.method == Method::Directed).then_some(left.max(1))
    }

    /// Stops the experiment for a reason of the caller's: [`StopReason::User`], or [`StopReason::Budget`] when a limit
    /// of time is reached. Never affects what may be claimed.
    pub fn stop(&mut self, reason: StopReason) {
        self.stop = self.stop.or(Some(reason));
    }

    /// Goes on after a stop with this budget of trials, those already run included. Where every candidate had left the race by estimate,
    /// further rounds rule out gains of them, or show one: who goes on asks for evidence.
    pub fn resume(&mut self, max_trials: Option<usize>) {
        self.race_on(max_trials);
        if self.stop == Some(StopReason::OnlyCurrentLeft) {
            self.excluding = true;
            self.decide();
        }
    }

    /// Goes on with what races, and with a plateau.
    fn race_on(&mut self, max_trials: Option<usize>) {
        self.config.max_trials = max_trials;
        self.patient = self.config.method == Method::Directed;
        (self.excluding, self.catching_up) = (false, false);
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
        self.best_claimed(self.fit()).unwrap_or(0)
    }

    /// Whether a setting is shown to be faster than the current one.
    #[must_use]
    pub fn is_shown(&self, arm: usize) -> bool {
        self.arms.get(arm).is_some_and(Candidate::is_shown)
    }

    /// The settings of which the next round is drawn, ascending.
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
        (self.race.is_none() && self.arms[arm].active()) || self.is_planned_beside(arm)
    }

    /// Whether a setting is run whoever races.
    fn is_planned_beside(&self, arm: usize) -> bool {
        arm == 0
            || self.plateau.as_ref().is_some_and(|p| p.needs(arm))
            || (self.excluding && self.may_gain(arm))
            || (self.catching_up && self.lacks(arm) > 0)
    }

    /// The candidates that race.
    fn racing(&self) -> Vec<usize> {
        let racing = |arm: &usize| self.race.is_none() && self.arms[*arm].active();
        (1..self.arms.len()).filter(racing).collect()
    }

    /// Whether rounds are drawn by what is known.
    fn is_directed(&self) -> bool {
        self.config.method == Method::Directed && self.rounds >= ROUNDS_TO_STEER
    }

    /// How many trials the next round has.
    fn round_length(&self) -> usize {
        let racing = self.racing();
        // Whoever catches up is in every round.
        let catching_up = racing.iter().filter(|arm| self.catching_up && self.lacks(**arm) > 0).count();
        let spared = if self.is_directed() { (racing.len() - catching_up).saturating_sub(2) } else { 0 };
        self.planned().len().saturating_sub(spared).max(1)
    }

    /// The outcomes of a round by setting, at most two of each.
    fn sort<'a>(&self, round: &'a [Observation]) -> Result<Vec<Vec<&'a Observation>>, ExperimentError> {
        let mut by_arm: Vec<Vec<&Observation>> = vec![Vec::new(); self.arms.len()];
        for o in round {
            let places = by_arm.get_mut(o.arm).filter(|places| places.len() < 2);
            let places = places.ok_or(ExperimentError::Arm { arm: o.arm, arms: self.arms.len() })?;
            if o.counts() && !o.y.is_finite() {
                return Err(ExperimentError::Outcome { arm: o.arm, y: o.y });
            }
            places.push(o);
        }
        Ok(by_arm)
    }

    /// Compares each setting of a round with the current one.
    fn compare(&mut self, by_arm: &[Vec<&Observation>], left: Option<usize>) {
        if by_arm[0].is_empty() {
            return;
        }
        for (arm, candidate) in self.arms.iter_mut().enumerate().skip(1) {
            if !by_arm[arm].is_empty() {
                candidate.compare(self.rounds, &by_arm[arm], &by_arm[0], left);
            }
        }
    }

    /// Adds a whole round to the evidence and to the estimates.
    fn take(&mut self, by_arm: &[Vec<&Observation>], left: Option<usize>) {
        self.compare(by_arm, left);
        if let Some(plateau) = &mut self.plateau {
            plateau.record(self.rounds, by_arm);
        }
        let round: Vec<(usize, f64)> =
            by_arm.iter().flatten().filter(|o| o.estimates()).map(|o| (o.arm, o.y)).collect();
        self.ols.push(&round);
        self.fit = OnceLock::new();
        let has = |arm: &usize| round.iter().any(|(other, _)| other == arm);
        self.whole += usize::from(self.config.cells.iter().all(has));
    }

    /// Lets the model drop settings and close questions.
    fn steer(&mut self) {
        let settled = self.race.is_some() && self.plateau.as_ref().is_none_or(Search::settled);
        if self.rounds < ROUNDS_TO_STEER || settled {
            return;
        }
        let fit = self.fit().clone();
        if self.race.is_none() {
            self.drop_failing();
            self.drop_behind(&fit);
            self.catching_up = false;
            self.race = self.race_over(&fit).filter(|_| self.has_interaction());
            self.catching_up = self.race == Some(StopReason::Futile) && !self.can_exclude(&fit) && self.can_catch_up();
            self.race = self.race.filter(|_| !self.catching_up);
            self.excluding =
                matches!(self.race, Some(StopReason::Futile | StopReason::OnlyCurrentLeft)) && self.can_exclude(&fit);
            // Once moved, the anchor stays: a search that starts anew with every new leader need not end.
            if self.race == Some(StopReason::Claimed)
                && let Some(best) = self.best_claimed(&fit)
                && let Some(plateau) = &mut self.plateau
            {
                plateau.move_anchor(best, self.rounds);
            }
        }
        if let Some(plateau) = &mut self.plateau {
            plateau.steer(&fit);
        }
    }

    fn drop_failing(&mut self) {
        let current_is_bad = self.arms[0].counts.mostly_bad();
        for candidate in self.arms.iter_mut().skip(1).filter(|c| c.active()) {
            let counts = &candidate.counts;
            let mostly = counts.trials >= ROUNDS_TO_GIVE_UP && counts.mostly_bad() && !current_is_bad;
            if counts.deliver_nothing() || mostly {
                candidate.dropped = Some(DroppedSetting { round: self.rounds, reason: DropReason::Failing });
            }
        }
    }

    fn drop_behind(&mut self, fit: &BlockedFit) {
        let Some((lead, best)) = self.leader(fit, 0) else { return };
        for arm in 1..self.arms.len() {
            let (Some(own), Some(se)) = (fit.estimate(arm), fit.standard_error(lead, arm)) else { continue };
            let behind = (quantile(T_STEER, fit.df) * se).max(ALIKE);
            let open = self.config.both_ways && !self.arms[arm].is_slower();
            let kept = open || self.config.cells.contains(&arm);
            if arm != lead && !kept && self.arms[arm].active() && best - own > behind {
                self.arms[arm].dropped = Some(DroppedSetting { round: self.rounds, reason: DropReason::Behind });
            }
        }
    }

    /// Whether what is asked of a 2 × 2 has its interval, or can't get one since one of the four fails.
    fn has_interaction(&self) -> bool {
        let cells = &self.config.cells;
        cells.is_empty()
            || self.whole >= fewest_for_interval(self.config.alpha)
            || cells.iter().any(|arm| !self.arms[*arm].active() || self.arms[*arm].counts.deliver_nothing())
    }

    /// The setting with the largest estimate among those still in the race, from `first` on.
    fn leader(&self, fit: &BlockedFit, first: usize) -> Option<(usize, f64)> {
        let racing = (first..self.arms.len()).filter(|arm| self.arms[*arm].active());
        racing.filter_map(|arm| Some((arm, fit.estimate(arm)?))).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// What all rounds so far say.
    fn fit(&self) -> &BlockedFit {
        self.fit.get_or_init(|| self.ols.fit())
    }

    /// The candidate with the largest estimate, whether or not it still races.
    fn candidate_ahead(&self) -> usize {
        let fit = self.fit();
        let estimated = (1..self.arms.len()).filter_map(|arm| Some((arm, fit.estimate(arm)?)));
        estimated.max_by(|a, b| a.1.total_cmp(&b.1)).map_or(1, |(arm, _)| arm)
    }

    /// The setting with the largest estimate among those shown to be faster.
    fn best_claimed(&self, fit: &BlockedFit) -> Option<usize> {
        let claimed: Vec<usize> = (1..self.arms.len()).filter(|arm| self.arms[*arm].is_shown()).collect();
        let base = fit.base(&claimed);
        let estimated = claimed.into_iter().map(|arm| (arm, fit.difference(arm, base).unwrap_or(f64::NEG_INFINITY)));
        estimated.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(arm, _)| arm)
    }

    fn race_over(&self, fit: &BlockedFit) -> Option<StopReason> {
        if !self.arms.iter().skip(1).any(Candidate::active) {
            return Some(StopReason::OnlyCurrentLeft);
        }
        let Some((best, gain)) = self.leader(fit, 1) else {
            // The current setting delivers nothing: of that there is no estimate, but there is a proof.
            return self.best_claimed(fit).filter(|best| self.rivals_resolved(fit, *best)).map(|_| StopReason::Claimed);
        };
        let se = fit.standard_error(best, 0)?;
        if self.arms[best].is_ahead() && self.rivals_resolved(fit, best) {
            return Some(StopReason::Claimed);
        }
        let left = self.rounds_left()?;
        let last = match self.config.method {
            Method::Uniform => self.rounds,
            Method::Directed => self.arms[best].differences.len(),
        } + left;
        let early = if self.can_exclude(fit) { ROUNDS_TO_STEER } else { ROUNDS_TO_GIVE_UP };
        let hopeless = |gain: f64, se: f64| {
            // What isn't worth a change needs no evidence.
            let little = self.config.method == Method::Directed && gain + 2.0 * se < self.config.relevant.ln_1p();
            little || futile(self.config.method, gain, se, fit, last.max(1))
        };
        // Where a loss is asked for, too, one is hoped for as a gain is.
        let loss = |arm: usize| {
            let hope = fit.estimate(arm).zip(fit.standard_error(arm, 0));
            self.arms[arm].active() && hope.is_some_and(|(estimate, se)| !hopeless(-estimate, se))
        };
        let futile = self.rounds >= early
            && !self.patient
            && self.arms[best].claimed.is_none()
            && self.arms[best].counts.has_ratio()
            && hopeless(gain, se)
            && !(self.config.both_ways && (1..self.arms.len()).any(loss));
        futile.then_some(StopReason::Futile)
    }

    /// Whether no rival can be ahead of the best by more than what is worth pursuing.
    fn rivals_resolved(&self, fit: &BlockedFit, best: usize) -> bool {
        let worth = self.config.indifference.ln_1p();
        (1..self.arms.len()).filter(|arm| *arm != best && self.arms[*arm].active()).all(|arm| {
            match (fit.difference(arm, best), fit.standard_error(arm, best)) {
                (Some(ahead), Some(se)) => ahead + quantile(T_RESOLVED, fit.df) * se <= worth,
                _ => true,
            }
        })
    }

    /// How many more rounds like the next one the budget has room for.
    fn rounds_left(&self) -> Option<usize> {
        self.trials_left().map(|left| left / self.round_length())
    }

    /// Decides whether there is a next round.
    fn decide(&mut self) {
        let settled = self.plateau.as_ref().is_none_or(Search::settled);
        let excluding = self.excluding && (1..self.arms.len()).any(|arm| self.may_gain(arm));
        self.stop = self.race.filter(|_| settled && !excluding);
        if self.stop.is_none() && self.rounds_left() == Some(0) {
            self.stop = Some(StopReason::Budget);
        }
    }
}
#[cfg(test)]
mod tests;
