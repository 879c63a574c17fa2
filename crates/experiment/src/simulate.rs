//! Noise of known truth: whole experiments on outcomes whose true differences are set, to test the method on.
//!
//! `y = τ + drift + noise`: the drift is an Ornstein–Uhlenbeck process over the trials, the noise autoregressive. What
//! this leaves out: days, other people's traffic in bursts, and settings that influence the next trial.

use crate::experiment::{Assessment, Config, Experiment, ExperimentError, Observation};
use rand::{Rng, RngExt as _};
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
/// [`ExperimentError`] if the configuration makes no sense, or if there are fewer effects than settings.
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
    while let Some(order) = experiment.next_round(rng) {
        let round: Vec<Observation> =
            order.into_iter().map(|arm| Observation::of(arm, path.outcome(effects[arm], rng))).collect();
        experiment.record(&round)?;
    }
    Ok(experiment)
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
/// [`ExperimentError`] if the configuration makes no sense.
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
    let (low, high) = crate::dist::proportion_interval(claims, runs);
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

/// A standard normal, by Box and Muller's method.
pub fn normal(rng: &mut impl Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}
