//! The smallest level of an ordered knob that is within ε of the anchor.
//!
//! Levels are claimed in a fixed sequence downwards from the anchor, each at 1/α: a level counts only if every larger
//! one up to the anchor is claimed, so that the error of the whole search is α. The anchor is the current setting, fixed
//! before any data, so that every round counts; if another setting of the knob is shown to be faster, that becomes the
//! anchor and only rounds run after that count.
//!
//! What this leaves out: it speaks of the anchor, not of the best of all levels.

use super::config::PlateauConfig;
use super::limits::ROUNDS_TO_GIVE_UP;
use super::observation::{Observation, difference};
use super::steering::{T_STEER, quantile};
use super::strict::Strict;
use crate::eprocess::EProcess;
use crate::ols::BlockedFit;

/// The search in either form.
#[derive(Debug, Clone)]
pub(super) enum Search {
    /// Relative to the anchor.
    Anchored(Plateau),
    /// Relative to the best of all levels.
    Strict(Strict),
}

impl Search {
    pub(super) fn new(config: &PlateauConfig, alpha: f64) -> Self {
        let mut levels = config.levels.clone();
        if !levels.contains(&0) {
            levels.push(0);
        }
        if config.strict {
            Self::Strict(Strict::new(config, &levels, alpha))
        } else {
            Self::Anchored(Plateau::new(config, levels, alpha))
        }
    }

    pub(super) fn settled(&self) -> bool {
        match self {
            Self::Anchored(p) => p.settled(),
            Self::Strict(s) => s.settled(),
        }
    }

    /// Whether the search needs this setting in the next round.
    pub(super) fn needs(&self, arm: usize) -> bool {
        match self {
            Self::Anchored(p) => p.needs(arm),
            Self::Strict(s) => s.needs(arm),
        }
    }

    /// Takes the outcomes of a round by setting.
    pub(super) fn record(&mut self, round: usize, seen: &[Vec<&Observation>]) {
        match self {
            Self::Anchored(p) => p.record(round, seen),
            Self::Strict(s) => s.record(round, seen),
        }
    }

    pub(super) fn steer(&mut self, fit: &BlockedFit) {
        match self {
            Self::Anchored(p) => p.steer(fit),
            Self::Strict(s) => s.steer(fit),
        }
    }

    /// A setting is shown to be faster than the current one.
    pub(super) fn move_anchor(&mut self, claimed: usize, round: usize) {
        if let Self::Anchored(p) = self {
            p.move_anchor(claimed, round);
        }
    }

    /// Looks again at levels given up without being clearly below.
    pub(super) fn reopen(&mut self) {
        if let Self::Anchored(p) = self {
            p.reopen();
        }
    }

    /// Whether [`Search::reopen`] leaves a question open.
    pub(super) fn may_go_on(&self) -> bool {
        let mut again = self.clone();
        again.reopen();
        !again.settled()
    }
}

/// What holds for one level against the anchor.
#[derive(Debug, Clone)]
pub(super) struct LevelTest {
    pub(super) arm: usize,
    pub(super) within: EProcess,
    pub(super) series: Vec<(usize, f64)>,
    /// The largest ln E so far.
    pub(super) peak: f64,
    pub(super) state: LevelState,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LevelState {
    /// Still looked at.
    Open,
    /// Its own evidence suffices.
    Reached,
    /// Clearly more than ε behind the anchor.
    Below,
    /// More than ε behind by the estimate, though not clearly: further rounds would hardly show it to be within.
    Hopeless,
}

#[derive(Debug, Clone)]
pub(super) struct Plateau {
    /// All levels, ascending, setting 0 included.
    levels: Vec<usize>,
    pub(super) epsilon: f64,
    /// ln(1/α).
    pub(super) need: f64,
    pub(super) anchor: usize,
    /// Rounds after this one count.
    pub(super) since: usize,
    /// The levels below the anchor, the largest first.
    pub(super) tests: Vec<LevelTest>,
}

impl Plateau {
    fn new(config: &PlateauConfig, levels: Vec<usize>, alpha: f64) -> Self {
        let mut plateau =
            Self { levels, epsilon: config.epsilon, need: -alpha.ln(), anchor: 0, since: 0, tests: Vec::new() };
        plateau.set_anchor(0, 0);
        plateau
    }

    fn set_anchor(&mut self, anchor: usize, since: usize) {
        self.anchor = anchor;
        self.since = since;
        let below = self.levels.iter().take_while(|arm| **arm != anchor);
        let shift = (-self.epsilon).ln_1p();
        self.tests = below
            .map(|arm| LevelTest {
                arm: *arm,
                within: EProcess::above(shift),
                series: Vec::new(),
                peak: f64::NEG_INFINITY,
                state: LevelState::Open,
            })
            .collect();
        self.tests.reverse();
    }

    /// Makes a level that is shown to be faster the anchor, on fresh rounds.
    fn move_anchor(&mut self, claimed: usize, round: usize) {
        if claimed != self.anchor && self.levels.contains(&claimed) {
            self.set_anchor(claimed, round);
        }
    }

    /// How many levels from the anchor downwards are shown without a gap.
    pub(super) fn shown(&self) -> usize {
        self.tests.iter().take_while(|t| t.state == LevelState::Reached).count()
    }

    /// The levels that further rounds can still settle.
    fn open(&self) -> impl Iterator<Item = &LevelTest> {
        let blocked = |t: &LevelTest| matches!(t.state, LevelState::Below | LevelState::Hopeless);
        self.tests.iter().take_while(move |t| !blocked(t)).filter(|t| t.state == LevelState::Open)
    }

    fn settled(&self) -> bool {
        self.open().next().is_none()
    }

    fn needs(&self, arm: usize) -> bool {
        !self.settled() && (arm == self.anchor || self.open().any(|t| t.arm == arm))
    }

    fn record(&mut self, round: usize, seen: &[Vec<&Observation>]) {
        for test in &mut self.tests {
            let Some(difference) = difference(&seen[test.arm], &seen[self.anchor]) else { continue };
            test.within.take(difference);
            let log_evidence = test.within.log_evidence();
            test.series.push((round, log_evidence));
            test.peak = test.peak.max(log_evidence);
            if test.peak >= self.need {
                test.state = LevelState::Reached;
            }
        }
    }

    /// Gives up levels that are clearly below, and those of which rounds of any number would hardly show the opposite. In
    /// simulations the second rule saves a third of the trials, and the answer is as often exact.
    fn steer(&mut self, fit: &BlockedFit) {
        let shift = (-self.epsilon).ln_1p();
        for test in self.tests.iter_mut().filter(|t| t.state == LevelState::Open) {
            let (Some(own), Some(anchor)) = (fit.estimate(test.arm), fit.estimate(self.anchor)) else { continue };
            let Some(se) = fit.standard_error(test.arm, self.anchor) else { continue };
            let difference = own - anchor;
            if difference + quantile(T_STEER, fit.df) * se < shift {
                test.state = LevelState::Below;
            } else if test.within.count() >= ROUNDS_TO_GIVE_UP && difference + se < shift {
                test.state = LevelState::Hopeless;
            }
        }
    }

    fn reopen(&mut self) {
        for test in self.tests.iter_mut().filter(|t| t.state == LevelState::Hopeless) {
            test.state = LevelState::Open;
        }
    }
}
