//! Noise of known truth: whole experiments on outcomes whose true differences are set, to test the method on.
//!
//! `y = τ + drift + noise`: the drift is an Ornstein–Uhlenbeck process over the trials, the noise autoregressive. What
//! this leaves out: days, other people's traffic in bursts, and settings that influence the next trial.

pub use crate::distributions::normal;
use crate::sequential::{Assessment, Config, Experiment, ExperimentError, Method, Observation};
use rand::{Rng, RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// A kind of path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum NoiseModel {
    /// SD 15 %, independent trials, slow drift.
    Calm,
    /// SD 20 %, correlation 0.3 from trial to trial, slow drift.
    Typical,
    /// SD 25 %, correlation 0.5, faster drift.
    Rough,
    /// As typical, but with the tails of Student's t with 3 degrees of freedom, and 1 trial in 20 stalls.
    Heavy,
}

impl NoiseModel {
    /// All four.
    pub const ALL: [Self; 4] = [Self::Calm, Self::Typical, Self::Rough, Self::Heavy];

    /// The word in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Typical => "typical",
            Self::Rough => "rough",
            Self::Heavy => "heavy",
        }
    }

    /// The standard deviation of a trial, its correlation with the one before, and the memory of the drift in trials.
    fn parameters(self) -> (f64, f64, f64) {
        match self {
            Self::Calm => (0.15, 0.0, 30.0),
            Self::Typical | Self::Heavy => (0.20, 0.3, 30.0),
            Self::Rough => (0.25, 0.5, 15.0),
        }
    }
}

/// The standard deviation of the drift.
const DRIFT: f64 = 0.15;

/// The state of a simulated path: each call of [`Path::outcome`] is one trial later.
#[derive(Debug, Clone)]
pub struct Path {
    model: NoiseModel,
    sigma: f64,
    drift: f64,
    noise: f64,
}

impl Path {
    /// A path of this kind at a random moment.
    pub fn new(model: NoiseModel, rng: &mut impl Rng) -> Self {
        let (sigma, ..) = model.parameters();
        Self::with_sigma(model, sigma, rng)
    }

    /// A path of this kind with another standard deviation of the noise.
    pub fn with_sigma(model: NoiseModel, sigma: f64, rng: &mut impl Rng) -> Self {
        let drift = DRIFT * normal(rng);
        let noise = sigma * shock(model, rng);
        Self { model, sigma, drift, noise }
    }

    /// The log outcome of the next trial of a setting whose effect is `effect`.
    pub fn outcome(&mut self, effect: f64, rng: &mut impl Rng) -> f64 {
        let (_, correlation, memory) = self.model.parameters();
        let keep = (-1.0 / memory).exp();
        self.drift = keep * self.drift + DRIFT * (1.0 - keep * keep).sqrt() * normal(rng);
        let fresh = (1.0 - correlation * correlation).sqrt() * self.sigma;
        self.noise = correlation * self.noise + fresh * shock(self.model, rng);
        let stalls = self.model == NoiseModel::Heavy && rng.random_bool(0.05);
        let stall = if stalls { rng.random_range(0.3..1.5) } else { 0.0 };
        effect + self.drift + self.noise - stall
    }
}

/// Runs a whole experiment on a path; `effects` are the true logs of the ratios, setting 0's first.
///
/// # Errors
/// [`ExperimentError`] if the configuration is invalid, or if there are fewer effects than settings.
pub fn run(
    config: Config,
    path: &mut Path,
    effects: &[f64],
    rng: &mut impl Rng,
) -> Result<Assessment, ExperimentError> {
    drive(config, path, effects, rng).map(|e| e.assessment())
}

/// As [`run`], and hands back the experiment as it ended.
///
/// # Errors
/// As [`run`].
pub fn drive(
    config: Config,
    path: &mut Path,
    effects: &[f64],
    rng: &mut impl Rng,
) -> Result<Experiment, ExperimentError> {
    if effects.len() < config.arms {
        return Err(ExperimentError::Arm { arm: effects.len(), arms: config.arms });
    }
    let mut experiment = Experiment::new(config)?;
    go_on(&mut experiment, rng, |arm, rng| Observation::of(arm, path.outcome(effects[arm], rng)))?;
    Ok(experiment)
}

/// Runs rounds until the experiment stops; `trial` is what a trial of a setting gives.
///
/// # Errors
/// [`ExperimentError`] if an outcome is no number.
pub fn go_on<R: Rng>(
    experiment: &mut Experiment,
    rng: &mut R,
    mut trial: impl FnMut(usize, &mut R) -> Observation,
) -> Result<(), ExperimentError> {
    while let Some(order) = experiment.next_round(rng) {
        let round: Vec<Observation> = order.into_iter().map(|arm| trial(arm, rng)).collect();
        experiment.record(&round)?;
    }
    Ok(())
}

/// An experiment of which one setting is better than the others, with independent noise.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PowerCell {
    /// Settings, the current one included.
    pub settings: usize,
    /// Trials at most.
    pub trials: usize,
    /// The coefficient of variation of a trial.
    pub cv: f64,
    /// By which share the better setting is better.
    pub gain: f64,
}

impl PowerCell {
    /// The cells of the table that the methods are compared by.
    #[must_use]
    pub fn table() -> Vec<Self> {
        /// Noise and gain.
        const USUAL: [(f64, f64); 8] = [
            (0.05, 0.05),
            (0.05, 0.10),
            (0.05, 0.20),
            (0.16, 0.05),
            (0.16, 0.10),
            (0.16, 0.20),
            (0.30, 0.10),
            (0.30, 0.20),
        ];
        let cells = |settings: usize, trials: usize, of: &[(f64, f64)]| {
            of.iter().map(move |(cv, gain)| Self { settings, trials, cv: *cv, gain: *gain }).collect::<Vec<_>>()
        };
        [
            cells(3, 120, &USUAL),
            cells(3, 240, &[(0.16, 0.10), (0.30, 0.20)]),
            cells(8, 240, &USUAL),
            cells(8, 120, &[(0.16, 0.20), (0.30, 0.20)]),
        ]
        .concat()
    }

    /// How often the better setting is found in so many experiments, and after how many trials.
    ///
    /// # Errors
    /// [`ExperimentError`] if the budget has no room for a round.
    pub fn power(&self, method: Method, runs: u64, rng: &mut impl Rng) -> Result<Power, ExperimentError> {
        let better = self.settings - 1;
        let sigma = (self.cv * self.cv).ln_1p().sqrt();
        // As it was: any gain counted.
        let relevant = if method == Method::Uniform { 0.0 } else { Config::new(2).relevant };
        let mut took = Vec::new();
        let mut false_claims = 0;
        for _ in 0..runs {
            let config = Config { max_trials: Some(self.trials), method, relevant, ..Config::new(self.settings) };
            let mut experiment = Experiment::new(config)?;
            let mut claimed_after = None;
            while let Some(order) = experiment.next_round(rng) {
                let effect = |arm: usize| if arm == better { self.gain.ln_1p() } else { 0.0 };
                let round: Vec<Observation> =
                    order.into_iter().map(|arm| Observation::of(arm, effect(arm) + sigma * normal(rng))).collect();
                experiment.record(&round)?;
                if experiment.is_shown(better) && claimed_after.is_none() {
                    claimed_after = Some(experiment.trials());
                }
            }
            false_claims += u64::from((1..better).any(|arm| experiment.is_shown(arm)));
            took.push(claimed_after.unwrap_or(usize::MAX));
        }
        took.sort_unstable();
        let found = took.iter().filter(|trials| **trials < usize::MAX).count() as f64 / runs.max(1) as f64;
        let median_trials = took.get(took.len() / 2).copied().filter(|trials| *trials < usize::MAX);
        Ok(Power { found, median_trials, others: false_claims as f64 / runs.max(1) as f64 })
    }
}

/// What came of the experiments of a cell.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Power {
    /// The share in which the better setting is shown to be faster.
    pub found: f64,
    /// Trials until then, the median of all experiments; `None` if that is in fewer than half of them.
    pub median_trials: Option<usize>,
    /// The share in which another one is.
    pub others: f64,
}

/// What came of going on for as many rounds as an experiment without a claim said it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContinuedRun {
    /// The rounds that were said, and run.
    pub more_rounds: usize,
    /// Whether the gain was shown by their end.
    pub shown: bool,
}

/// An experiment in which setting 1 gains 20 %, with independent noise of this coefficient of variation; `None` if it shows that
/// within its budget, where nothing is said of more rounds, or if another setting leads.
///
/// # Panics
/// If the budget has no room for a round.
#[must_use]
pub fn continued(settings: usize, trials: usize, cv: f64, seed: u64) -> Option<ContinuedRun> {
    const GAIN: f64 = 0.20;
    let (sigma, mut rng) = ((cv * cv).ln_1p().sqrt(), ChaCha8Rng::seed_from_u64(seed));
    let effect = |arm: usize| if arm == 1 { GAIN.ln_1p() } else { 0.0 };
    let trial = |arm: usize, rng: &mut ChaCha8Rng| Observation::of(arm, effect(arm) + sigma * normal(rng));
    let config = Config { max_trials: Some(trials), ..Config::new(settings) };
    let mut experiment = Experiment::new(config).expect("a budget with room for a round");
    go_on(&mut experiment, &mut rng, trial).expect("finite outcomes");
    let said = experiment.assessment();
    let needed = said.needed.iter().find(|needed| needed.gain == GAIN).filter(|_| said.leader == 1)?;
    experiment.resume(Some(experiment.trials() + needed.more_trials));
    go_on(&mut experiment, &mut rng, trial).expect("finite outcomes");
    Some(ContinuedRun { more_rounds: needed.more_rounds, shown: experiment.pick() == 1 })
}

/// How often experiments with nothing to find claim something.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ClaimRate {
    /// The kind of path.
    pub noise: NoiseModel,
    /// Experiments.
    pub runs: u64,
    /// Of those, with a false claim.
    pub claims: u64,
    /// The share.
    pub rate: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Runs experiments in which all settings are the same, and counts the claims.
///
/// # Errors
/// [`ExperimentError`] if the configuration is invalid.
pub fn claim_rate(
    noise: NoiseModel,
    config: &Config,
    runs: u64,
    rng: &mut impl Rng,
) -> Result<ClaimRate, ExperimentError> {
    let effects = vec![0.0; config.arms];
    let mut claims = 0;
    for _ in 0..runs {
        let mut path = Path::new(noise, rng);
        claims += u64::from(drive(config.clone(), &mut path, &effects, rng)?.pick() != 0);
    }
    let (low, high) = crate::distributions::proportion_interval(claims, runs);
    Ok(ClaimRate { noise, runs, claims, rate: claims as f64 / runs.max(1) as f64, low, high })
}

/// A unit shock: normal, or Student's t with 3 degrees of freedom scaled to variance 1.
fn shock(model: NoiseModel, rng: &mut impl Rng) -> f64 {
    if model != NoiseModel::Heavy {
        return normal(rng);
    }
    let chi_squared: f64 = (0..3).map(|_| normal(rng).powi(2)).sum();
    normal(rng) / chi_squared.max(1e-300).sqrt()
}
