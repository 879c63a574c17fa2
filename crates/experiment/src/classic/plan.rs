use crate::distributions;
use serde::Serialize;

/// The power and the level for which experiments are planned here.
const POWER: f64 = 0.80;
const ALPHA: f64 = 0.05;
/// Beyond this many blocks nobody plans.
const MOST_BLOCKS: usize = 1_000_000;

/// The smallest true gain of one setting over another that a table would show with a power of 80 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Detectable {
    /// For a single comparison, as a share: 0.31 is +31 %.
    pub single: f64,
    /// For each of all pairs, by Bonferroni's correction.
    pub all_pairs: f64,
}

/// What a table of `levels` in `blocks` with the blocked mean square `mse` of the logs would show.
#[must_use]
pub fn detectable(levels: usize, blocks: usize, mse: f64) -> Detectable {
    let df = (levels.saturating_sub(1) * blocks.saturating_sub(1)) as f64;
    let se = (2.0 * mse / blocks as f64).sqrt();
    let gain = |alpha: f64| {
        let critical = distributions::t_quantile(1.0 - alpha / 2.0, df);
        let effect =
            distributions::quantile_of(POWER, |effect| distributions::noncentral_t_power(effect, critical, df));
        (effect * se).exp_m1()
    };
    Detectable { single: gain(ALPHA), all_pairs: gain(ALPHA / pairs(levels)) }
}

/// How many blocks it takes to show a true `gain` with a power of 80 %: for a single comparison, and for each of all pairs
/// by Bonferroni's correction. `None` beyond a million.
#[must_use]
pub fn blocks_needed(levels: usize, mse: f64, gain: f64) -> (Option<usize>, Option<usize>) {
    (search(levels, mse, gain, ALPHA), search(levels, mse, gain, ALPHA / pairs(levels)))
}

/// The same by the normal approximation 2σ²(z.975 + z.8)²/ln²(1 + gain), for a single comparison.
#[must_use]
pub fn rough_blocks_needed(mse: f64, gain: f64) -> f64 {
    let z = distributions::normal_quantile(1.0 - ALPHA / 2.0) + distributions::normal_quantile(POWER);
    2.0 * mse * z * z / gain.ln_1p().powi(2)
}

fn pairs(levels: usize) -> f64 {
    (levels * levels.saturating_sub(1)) as f64 / 2.0
}

fn search(levels: usize, mse: f64, gain: f64, alpha: f64) -> Option<usize> {
    let enough = |blocks: usize| {
        let df = (levels.saturating_sub(1) * (blocks - 1)) as f64;
        let effect = gain.ln_1p() / (2.0 * mse / blocks as f64).sqrt();
        distributions::noncentral_t_power(effect, distributions::t_quantile(1.0 - alpha / 2.0, df), df) >= POWER
    };
    let mut high = 2;
    while !enough(high) {
        high *= 2;
        if high > MOST_BLOCKS {
            return None;
        }
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if enough(middle) { high = middle } else { low = middle }
    }
    Some(high)
}
