//! Kinds of paths that treat all settings alike.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use wt_experiment::simulate::{NoiseModel, Path, normal};

/// How the outcomes of trials of equal settings follow one another.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Noise {
    /// Lognormal with a CV of 16 %.
    Independent,
    /// Goodput with a Pareto tail of index 1.5.
    Pareto,
    /// The log has Pareto tails of index 1.5 on both sides.
    BothTails,
    /// Stalls whose length in logs has a Pareto tail of index 1.5.
    LongStalls,
    Cauchy,
    /// Each trial's correlation with the one before.
    Correlated(f64),
    Walk,
    /// The level steps at any trial, also in mid-round.
    Steps,
    /// Two rates, each of which stays for some twenty trials.
    TwoStickyRates,
    /// Two rates by a coin.
    TwoRates,
    Trend,
    /// Later places in a round are better.
    Place,
    /// A cycle of so many trials.
    Sine(f64),
    /// Many outcomes are equal.
    Ties,
    /// One of `windtunnel self-test statistics`.
    Model(NoiseModel),
}

pub(crate) const NOISES: [Noise; 20] = [
    Noise::Independent,
    Noise::Pareto,
    Noise::BothTails,
    Noise::LongStalls,
    Noise::Cauchy,
    Noise::Correlated(0.5),
    Noise::Correlated(0.95),
    Noise::Walk,
    Noise::Steps,
    Noise::TwoStickyRates,
    Noise::TwoRates,
    Noise::Trend,
    Noise::Place,
    Noise::Sine(7.0),
    Noise::Sine(8.0),
    Noise::Ties,
    Noise::Model(NoiseModel::Calm),
    Noise::Model(NoiseModel::Typical),
    Noise::Model(NoiseModel::Rough),
    Noise::Model(NoiseModel::Heavy),
];

impl Noise {
    /// The word for it in tables.
    pub(crate) fn name(self) -> String {
        match self {
            Self::Model(model) => model.name().to_owned(),
            other => format!("{other:?}"),
        }
    }
}

/// A path under way: each outcome is one trial later.
pub(crate) struct World {
    noise: Noise,
    trial: f64,
    level: f64,
    path: Option<Path>,
}

impl World {
    pub(crate) fn new(noise: Noise, rng: &mut ChaCha8Rng) -> Self {
        let path = if let Noise::Model(model) = noise { Some(Path::new(model, rng)) } else { None };
        Self { noise, trial: 0.0, level: normal(rng), path }
    }

    /// The log outcome of the next trial, at this place of its round.
    pub(crate) fn outcome(&mut self, place: usize, rng: &mut ChaCha8Rng) -> f64 {
        self.trial += 1.0;
        if let Some(path) = &mut self.path {
            return path.outcome(0.0, rng);
        }
        let independent = 0.16 * normal(rng);
        let mut uniform = || 1.0 - rng.random::<f64>();
        // ln of a Pareto variable is exponential; so is the tail of what is already a log taken from a Pareto variable itself.
        match self.noise {
            Noise::Independent | Noise::Model(_) => independent,
            Noise::Pareto => -uniform().ln() / 1.5,
            Noise::BothTails => {
                let size = uniform().powf(-1.0 / 1.5) - 1.0;
                if uniform() < 0.5 { -size } else { size }
            }
            Noise::LongStalls => 0.1 * independent - 0.1 * (uniform().powf(-1.0 / 1.5) - 1.0),
            Noise::Cauchy => (std::f64::consts::PI * (uniform() - 0.5)).tan(),
            Noise::Correlated(rho) => {
                self.level = rho * self.level + (1.0 - rho * rho).sqrt() * independent;
                self.level
            }
            Noise::Walk => {
                self.level += independent;
                self.level
            }
            Noise::Steps => {
                if uniform() < 0.03 {
                    self.level = uniform();
                }
                self.level + 0.02 * independent
            }
            Noise::TwoStickyRates => {
                if uniform() < 0.05 {
                    self.level = if self.level > 0.0 { -0.25 } else { 0.25 };
                }
                self.level.signum() * 0.25 + 0.1 * independent
            }
            Noise::TwoRates => (if uniform() < 0.5 { 0.0 } else { 0.5 }) + 0.02 * independent,
            Noise::Trend => self.trial * 0.01 + independent,
            Noise::Place => 0.1 * place as f64 + independent,
            Noise::Sine(period) => (std::f64::consts::TAU * self.trial / period).sin() + 0.1 * independent,
            Noise::Ties => (independent * 5.0).round() / 5.0,
        }
    }
}
