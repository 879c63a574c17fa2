use super::error::ExperimentError;

/// The most settings in one experiment; beyond about eight, screen first.
const MOST_ARMS: usize = 64;

/// How rounds are drawn, what is bet on them, and when an experiment is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Method {
    /// After three rounds those candidates are run that two draws from what is known of them put first; once two fifths of
    /// the budget are used most of the bets look at its end; an experiment is given up when the estimate and two standard errors
    /// are too little.
    #[default]
    Directed,
    /// Every candidate that isn't far behind is run in every round, the bets know no budget, and one standard error counts:
    /// experiments of journals from before there was another method.
    Uniform,
}

/// What is fixed before the first round.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// The number of settings, the current one (number 0) included: 2 to 64.
    pub arms: usize,
    /// The probability of any false "faster", ever, in the whole experiment. Default 0.05.
    pub alpha: f64,
    /// How α is shared among the candidates 1, 2, …; any positive numbers, of which only the ratios count. Equal parts
    /// if not given. Prior knowledge belongs here: it moves trials, never the error.
    pub weights: Option<Vec<f64>>,
    /// No round begins that would bring the trials above this number. Counts every trial that was run, discarded ones
    /// too. Default: no limit.
    pub max_trials: Option<usize>,
    /// Differences of less than this share are not worth pursuing. Default 0.05.
    pub indifference: f64,
    /// A gain of less than this share isn't worth a change: who is faster by less isn't picked. Default 0.01.
    pub relevant: f64,
    /// How rounds are drawn and what is bet on them.
    pub method: Method,
    /// Whether a round on a path that has been quiet so far may have each of its settings twice, which shows a clear gain in
    /// fewer trials. Only of directed rounds, while settings race, where no interaction is sought. Default yes.
    pub twice: bool,
    /// Whether an experiment is given up as futile only after as many rounds of every candidate in the race as can exclude gains of it,
    /// where the budget has them. Only of directed rounds. Default yes; journals from before did without.
    pub excludes: bool,
    /// The search for the smallest sufficient level of an ordered knob.
    pub plateau: Option<PlateauConfig>,
    /// The settings of a 2 × 2, if its interaction is asked for: rounds count for it that have all of them, so none is
    /// dropped for lying behind, and the race isn't over before there are rounds enough for an interval.
    pub cells: Vec<usize>,
    /// Whether it is asked, too, if a setting is slower: then it isn't dropped for lying behind before that is shown, and an
    /// experiment isn't given up while it may be. Default no.
    pub both_ways: bool,
}

/// The search for the smallest level of an ordered knob that is still within ε of the anchor.
#[derive(Debug, Clone, PartialEq)]
pub struct PlateauConfig {
    /// The settings that are levels of this knob, ascending. Setting 0 stands where it belongs; if it isn't listed, it
    /// counts as the largest (the system's own choice without a limit).
    pub levels: Vec<usize>,
    /// ε: by which share a level may lie behind and still count as on the plateau. Must fit the noise: at least about
    /// half its coefficient of variation. Default 0.10.
    pub epsilon: f64,
    /// Whether "within ε" is meant of the best of all levels instead of the anchor. Takes about twice the trials. Default
    /// no.
    pub strict: bool,
    /// For the strict search: how α is shared among the levels, in their order; equal parts if not given. Give more to
    /// those at one to two times the bandwidth-delay product.
    pub weights: Option<Vec<f64>>,
}

impl PlateauConfig {
    /// A search among these settings, ascending by level, with ε = 10 %.
    #[must_use]
    pub fn new(levels: Vec<usize>) -> Self {
        Self { levels, epsilon: 0.10, strict: false, weights: None }
    }
}

impl Config {
    /// An experiment of this many settings with the default of everything else.
    #[must_use]
    pub fn new(arms: usize) -> Self {
        Self {
            arms,
            alpha: 0.05,
            weights: None,
            max_trials: None,
            indifference: 0.05,
            relevant: 0.01,
            method: Method::default(),
            twice: true,
            excludes: true,
            plateau: None,
            cells: Vec::new(),
            both_ways: false,
        }
    }

    /// The evidence that a claim needs, for each setting: 1/(α·w). Infinite for the current one.
    pub(super) fn thresholds(&self) -> Result<Vec<f64>, ExperimentError> {
        self.check()?;
        let candidates = self.arms - 1;
        let weights = self.weights.clone().unwrap_or_else(|| vec![1.0; candidates]);
        let total: f64 = weights.iter().sum();
        let ok = weights.len() == candidates && total.is_finite() && weights.iter().all(|w| *w > 0.0);
        if !ok {
            return Err(ExperimentError::Weights { candidates });
        }
        Ok(std::iter::once(f64::INFINITY).chain(weights.iter().map(|w| total / (self.alpha * w))).collect())
    }

    fn check(&self) -> Result<(), ExperimentError> {
        if !(2..=MOST_ARMS).contains(&self.arms) {
            return Err(ExperimentError::Arms { arms: self.arms, most: MOST_ARMS });
        }
        let shares = [("alpha", self.alpha), ("indifference", self.indifference)];
        let epsilon = self.plateau.as_ref().map(|p| ("epsilon", p.epsilon));
        if !(0.0..1.0).contains(&self.relevant) {
            return Err(ExperimentError::Share { name: "relevant", value: self.relevant });
        }
        for (name, value) in shares.into_iter().chain(epsilon) {
            if !(value > 0.0 && value < 1.0) {
                return Err(ExperimentError::Share { name, value });
            }
        }
        if let Some(most) = self.max_trials.filter(|most| *most < self.arms) {
            return Err(ExperimentError::Budget { most, arms: self.arms });
        }
        if let Some(arm) = self.cells.iter().find(|arm| **arm >= self.arms) {
            return Err(ExperimentError::Arm { arm: *arm, arms: self.arms });
        }
        let Some(plateau) = &self.plateau else { return Ok(()) };
        let mut sorted = plateau.levels.clone();
        sorted.sort_unstable();
        sorted.dedup();
        let repeated = sorted.len() != plateau.levels.len();
        if repeated || sorted.last().is_none_or(|arm| *arm >= self.arms) {
            return Err(ExperimentError::Levels { arms: self.arms });
        }
        let levels = plateau.levels.len() + usize::from(!plateau.levels.contains(&0));
        let proper = |w: &Vec<f64>| w.len() == levels && w.iter().all(|w| *w > 0.0 && w.is_finite());
        if !plateau.weights.as_ref().is_none_or(proper) {
            return Err(ExperimentError::LevelWeights { levels });
        }
        Ok(())
    }
}
