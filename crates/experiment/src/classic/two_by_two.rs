//! Two factors of two levels each, every combination once in every block: both main effects and the interaction.

use super::multiple::holm;
use super::permutation::{PermutationTest, pair_sign_flip};
use crate::describe::{mean, squares};
use crate::distributions;
use crate::eprocess::{EProcess, evidence_series};
use rand::Rng;
use serde::Serialize;

/// The probability of any false claim about the three effects.
const ALPHA: f64 = 0.05;
/// The effects: two factors and their interaction.
const EFFECTS: usize = 3;

/// What a block holds: the first factor's level, then the second's.
pub type Square = [[f64; 2]; 2];

/// One of the three effects.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Effect {
    /// The ratio of the geometric mean at the second level to that at the first. For the interaction, by how much either
    /// effect is larger than in the mean when the other factor is at its second level.
    pub ratio: f64,
    /// The lower end of its interval; 95 % for all three together (Bonferroni).
    pub low: f64,
    /// The upper end.
    pub high: f64,
    /// Student's t of the log ratio with the common error of the three.
    pub t: Option<f64>,
    /// The probability of one as large without any effect, for this effect alone.
    pub p: Option<f64>,
    /// The same for all three together, by Holm's method.
    pub p_holm: Option<f64>,
    /// All signs of the blocks' contrasts; assumes no distribution.
    pub sign_flip: Option<PermutationTest>,
    /// The evidence after each block that the ratio is above 1.
    pub e: Vec<f64>,
    /// The same for below 1.
    pub e_below: Vec<f64>,
}

/// What a 2 × 2 in blocks allows one to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TwoByTwoAnalysis {
    /// The first factor, the second, and their interaction.
    pub effects: [Effect; EFFECTS],
    /// The error mean square of the logs, common to the three.
    pub mse: f64,
    /// Its degrees of freedom, 3·(blocks − 1).
    pub df: f64,
    /// The evidence that a claim about any of the three needs.
    pub evidence_needed: f64,
}

/// Analyses outcomes above zero; `None` for fewer than two blocks or an outcome that is not above zero.
///
/// # Source
/// Box, Hunter, Hunter, *Statistics for Experimenters* (2005), chapter 5: contrasts of a 2² design in randomised blocks.
#[must_use]
pub fn two_by_two_in_blocks(blocks: &[Square], rng: &mut impl Rng) -> Option<TwoByTwoAnalysis> {
    let positive = |block: &Square| block.iter().flatten().all(|y| *y > 0.0 && y.is_finite());
    if blocks.len() < 2 || !blocks.iter().all(positive) {
        return None;
    }
    let contrasts = contrasts(blocks);
    // The three contrasts of a block are orthogonal, and the sum over them of their squares about their means is the sum
    // of squares that neither blocks nor combinations explain.
    let df = (EFFECTS * (blocks.len() - 1)) as f64;
    let mse = contrasts.iter().map(|c| squares(c)).sum::<f64>() / df;
    let se = (mse / blocks.len() as f64).sqrt();
    let half = distributions::t_quantile(1.0 - ALPHA / (2 * EFFECTS) as f64, df) * se;
    let mut effects = contrasts.map(|c| {
        let estimate = mean(&c);
        let t = Some(estimate / se).filter(|t| t.is_finite());
        Effect {
            ratio: estimate.exp(),
            low: (estimate - half).exp(),
            high: (estimate + half).exp(),
            t,
            p: t.map(|t| distributions::t_two_sided(t.abs(), df)),
            p_holm: None,
            sign_flip: pair_sign_flip(&c, rng),
            e: evidence_series(EProcess::new(), &c),
            e_below: evidence_series(EProcess::below(0.0), &c),
        }
    });
    if let Some(single) = effects.iter().map(|e| e.p).collect::<Option<Vec<f64>>>() {
        for (effect, p) in effects.iter_mut().zip(holm(&single)) {
            effect.p_holm = Some(p);
        }
    }
    Some(TwoByTwoAnalysis { effects, mse, df, evidence_needed: EFFECTS as f64 / ALPHA })
}

/// The three contrasts of the logs of each block, each with the variance of one measurement.
fn contrasts(blocks: &[Square]) -> [Vec<f64>; EFFECTS] {
    let signs: [fn(usize, usize) -> bool; EFFECTS] = [|i, _| i == 1, |_, j| j == 1, |i, j| i == j];
    signs.map(|plus| {
        let term = |block: &Square, i: usize, j: usize| if plus(i, j) { block[i][j].ln() } else { -block[i][j].ln() };
        let of = |block: &Square| [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| term(block, i, j)).iter().sum::<f64>();
        blocks.iter().map(|block| of(block) / 2.0).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::{Table, blocked_anova};
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha12Rng;

    fn noisy(blocks: usize, seed: u64, effect: impl Fn(usize, usize) -> f64) -> Vec<Square> {
        let mut rng = ChaCha12Rng::seed_from_u64(seed);
        let mut one = |i: usize, j: usize| 1000.0 * (effect(i, j) + 0.1 * (rng.random::<f64>() - 0.5)).exp();
        (0..blocks).map(|_| [[one(0, 0), one(0, 1)], [one(1, 0), one(1, 1)]]).collect()
    }

    fn analysis(blocks: &[Square]) -> TwoByTwoAnalysis {
        two_by_two_in_blocks(blocks, &mut ChaCha12Rng::seed_from_u64(1)).unwrap()
    }

    #[test]
    fn the_three_sums_of_squares_are_those_of_the_four_combinations() {
        let blocks = noisy(7, 3, |i, j| 0.2 * i as f64 - 0.1 * j as f64);
        let a = analysis(&blocks);
        let cells = (0..4).flat_map(|c| blocks.iter().map(move |b| b[c / 2][c % 2].ln())).collect();
        let names = |n: usize| (0..n).map(|i| i.to_string()).collect();
        let whole = blocked_anova(&Table::new(names(4), names(7), cells).unwrap()).unwrap();
        assert!((a.mse - whole.mse).abs() < 1e-12 && a.df == 18.0);
        let sum: f64 = a.effects.iter().map(|e| e.t.unwrap().powi(2)).sum();
        assert!((sum / 3.0 - whole.levels.f.unwrap()).abs() < 1e-9);
    }

    #[test]
    fn true_effects_are_shown_and_absent_ones_are_not() {
        let a = analysis(&noisy(12, 4, |i, j| 0.2 * i as f64 + if i == j { 0.1 } else { 0.0 }));
        let [first, second, both] = &a.effects;
        assert!(first.p_holm.unwrap() < 0.001 && both.p_holm.unwrap() < 0.001, "{a:?}");
        assert!(second.p_holm.unwrap() > 0.05 && second.low < 1.0 && second.high > 1.0);
        assert!(first.low < 0.2f64.exp() && 0.2f64.exp() < first.high);
        assert!(first.e.last().unwrap() > &20.0 && first.e_below.last().unwrap() < &1.0);
    }

    #[test]
    fn what_no_interaction_is_multiplies() {
        let blocks: Vec<Square> = (1..=4).map(f64::from).map(|d| [[d, 2.0 * d], [3.0 * d, 6.0 * d]]).collect();
        let a = analysis(&blocks);
        assert!((a.effects[0].ratio - 3.0).abs() < 1e-12 && (a.effects[1].ratio - 2.0).abs() < 1e-12);
        assert!((a.effects[2].ratio - 1.0).abs() < 1e-12);
    }

    #[test]
    fn too_little_or_nonsense_gives_nothing() {
        let mut rng = ChaCha12Rng::seed_from_u64(1);
        let good = [[1.0, 2.0], [3.0, 4.0]];
        assert!(two_by_two_in_blocks(&[good], &mut rng).is_none());
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(two_by_two_in_blocks(&[good, [[1.0, bad], [1.0, 1.0]]], &mut rng).is_none(), "{bad}");
        }
        let same = analysis(&[good, good]);
        assert!(same.effects.iter().all(|e| e.t.is_none_or(f64::is_finite)));
    }
}
