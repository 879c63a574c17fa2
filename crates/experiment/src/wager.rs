//! The bets on one claim: as [`EProcess`] bets, and in the last part of a budget mostly on reaching the claim by its end.
//!
//! A budget is a horizon, and bets that know it win sooner. Once two fifths of the budget are used, 80 % of what has been won
//! bets on reaching what the claim needs when the budget ends: the stake is what a test with that horizon would stake, given
//! what it has, what it needs and the rounds that remain. The other 20 % go on as before, so that an experiment can be
//! continued beyond its budget. Stakes depend on what was before the round and on the size of its difference, never on its
//! sign, so that the evidence is a martingale as before, under any noise.
//!
//! What is left between nothing and all when the budget ends has been paid for and claims nothing. A chance of reaching the
//! claim, which is what the stakes follow, nears one and never is it; so until shortly before the end bets aim a tenth higher,
//! and in the last rounds each is rounded so that those after it can end with exactly all or nothing.
//!
//! # Source
//! Koning and van Meer, *Anytime validity is free: inducing sequential tests* (arXiv 2501.03982).

use crate::distributions::{normal_cdf, normal_quantile};
use crate::eprocess::{Difference, EProcess, log_sum};

/// The share that bets on the end of the budget.
const END_GAME: f64 = 0.8;
/// Scaled differences are clipped here where they bet on the end.
const CLIP: f64 = 2.5;
/// Bets aim at this many times what is needed until the last rounds: a chance of all nears one and never is it.
const BEYOND: f64 = 1.1;
/// In so many rounds at the end bets are rounded so that they end with all that is needed or with nothing.
const LAST_ROUNDS: usize = 12;

/// The evidence of a claim that needs so much.
#[derive(Debug, Clone)]
pub(crate) struct Wager {
    steady: EProcess,
    /// ln of what the claim needs.
    need: f64,
    /// ln of what bets on the end of the budget, once something does.
    end_game: Option<f64>,
    /// ln of the share of the steady bets in the first unit.
    kept: f64,
}

impl Wager {
    /// Bets that differences lie above `shift`; the claim needs evidence of `threshold`.
    pub(crate) fn above(shift: f64, threshold: f64) -> Self {
        Self { steady: EProcess::above(shift), need: threshold.ln(), end_game: None, kept: 0.0 }
    }

    /// Takes the next difference, of settings that were run once. `left` is how many rounds the budget had before it, once its last
    /// part has begun.
    pub(crate) fn push(&mut self, difference: f64, left: Option<usize>) {
        self.take(Difference::Once(difference), left);
    }

    /// Takes what the next round says. What bets on the end bets on the sign alone, also where settings were run twice.
    pub(crate) fn take(&mut self, difference: Difference, left: Option<usize>) {
        if self.end_game.is_none() && left.is_some() {
            self.end_game = Some(END_GAME.ln() + self.steady.log_evidence());
            self.kept = (1.0 - END_GAME).ln();
        }
        let others = self.kept + self.steady.log_evidence();
        let Some(scaled) = self.steady.take(difference) else { return };
        if let (Some(own), Some(left)) = (self.end_game.as_mut(), left) {
            // What the rest lacks when the steady bets stay where they are.
            let lacks = self.need + (-(others - self.need).exp()).max(-1.0).ln_1p() + 1e-9;
            *own += factor(scaled, (*own - lacks).exp(), left).ln();
        }
    }

    /// The natural logarithm of the evidence.
    pub(crate) fn log_evidence(&self) -> f64 {
        let steady = self.kept + self.steady.log_evidence();
        self.end_game.map_or(steady, |own| log_sum(own, steady))
    }

    /// The root mean square of the differences from the shift.
    pub(crate) fn scale(&self) -> f64 {
        self.steady.scale()
    }
}

/// By how much a stake multiplies that has `reached` of what it needs and so many rounds to go, this one included; over both
/// signs of `x` the mean is 1.
fn factor(x: f64, reached: f64, rounds: usize) -> f64 {
    if reached.is_nan() || reached >= 1.0 {
        return 1.0;
    }
    let size = x.abs().min(CLIP);
    let rest = rounds.max(2) as f64 - 1.0;
    // Not below −1: so the stake grows with the size, and a setting that is worse wins nothing on average.
    let bar = normal_quantile(1.0 - (reached / BEYOND).max(1e-12)).max(-1.0) * (size * size + rest).sqrt();
    let chance = |x: f64| normal_cdf((x - bar) / rest.sqrt());
    let (own, other) = (chance(size), chance(-size));
    let stake = if own + other > 1e-200 { (own - other) / (own + other) } else { 0.0 };
    let stake = if rounds <= LAST_ROUNDS { whole(stake, reached, rounds) } else { stake };
    // Never everything: what is lost can't win again. As much less if it wins, so that the mean is 1.
    let stake = stake.min(1.0 - 1e-12);
    1.0 + if x > 0.0 { stake } else { -stake }
}

/// The stake next to this one that brings what was `reached`, if it wins, to a multiple of what so many rounds less one can
/// double to the whole: bets that end between nothing and what is needed have won nothing.
fn whole(stake: f64, reached: f64, rounds: usize) -> f64 {
    let places = 0.5f64.powi(i32::try_from(rounds).unwrap_or(i32::MAX) - 1);
    let least = (reached / places - 1e-9).ceil();
    let most = ((2.0 * reached).min(1.0) / places + 1e-9).floor();
    let aim = (reached * (1.0 + stake) / places).round();
    if most < least { 0.0 } else { (aim.clamp(least, most) * places / reached - 1.0).clamp(0.0, 1.0) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::normal;
    use proptest::prelude::*;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha8Rng;

    proptest! {
        #[test]
        fn over_all_sign_patterns_the_evidence_averages_one(
            sizes in prop::collection::vec(0.01f64..3.0, 1..11), begins in 0usize..8, extra in 0usize..5,
        ) {
            let rounds = sizes.len();
            let patterns = 1u32 << rounds;
            let sum: f64 = (0..patterns)
                .map(|p| {
                    let mut wager = Wager::above(0.0, 20.0);
                    for (i, size) in sizes.iter().enumerate() {
                        let d = if p >> i & 1 == 1 { *size } else { -size };
                        wager.push(d, (i >= begins).then(|| rounds + extra - i));
                    }
                    wager.log_evidence().exp()
                })
                .sum();
            prop_assert!((sum / f64::from(patterns) - 1.0).abs() < 1e-9, "{}", sum / f64::from(patterns));
        }

        #[test]
        fn what_a_stake_wins_grows_with_the_difference(
            a in -3.0f64..3.0, b in -3.0f64..3.0, reached in 0.0f64..1.0, rounds in 1usize..60,
        ) {
            prop_assert!(factor(a.min(b), reached, rounds) <= factor(a.max(b), reached, rounds) + 1e-9);
        }
    }

    /// What a stake that bets on its end has after these differences, as a share of what it needs.
    fn ends(reached: f64, differences: &[f64]) -> f64 {
        let rounds = differences.len();
        let push = |reached: f64, (i, d): (usize, &f64)| (reached * factor(*d, reached, rounds - i)).min(1.0);
        differences.iter().enumerate().fold(reached, push)
    }

    proptest! {
        #[test]
        fn whatever_remains_a_stake_neither_exceeds_what_is_there_nor_shrinks_where_the_difference_is_larger(
            size in 0.0f64..3.0, more in 0.0f64..1.0, reached in 1e-6f64..0.999_999, rounds in 1usize..60,
        ) {
            let stake = |size: f64| factor(size, reached, rounds) - 1.0;
            prop_assert!((0.0..=1.0).contains(&stake(size)) && stake(size) <= stake(size + more) + 1e-9);
            // A composite null: whoever is worse by something loses at least as much as it wins.
            prop_assert!(factor(size, reached, rounds) + factor(-size - more, reached, rounds) <= 2.0 + 1e-9);
        }
    }

    #[test]
    fn bets_on_the_end_end_with_all_or_next_to_nothing() {
        let mut rng = ChaCha8Rng::seed_from_u64(5);
        let runs = 20_000;
        // Who loses half of the last rounds in a row may keep a little that can't become the whole any more.
        let mut kept = 0;
        for run in 0..runs {
            let differences: Vec<f64> = (0..12 + run % 28).map(|_| rng.random_range(-3.0..3.0)).collect();
            let end = ends(rng.random_range(0.01..0.99), &differences);
            assert!(!(0.125..1.0 - 1e-6).contains(&end), "{end} {differences:?}");
            kept += usize::from((0.01..0.125).contains(&end));
        }
        assert!(kept * 1_000 < runs, "{kept}");
    }

    #[test]
    fn a_stake_with_a_horizon_finds_nearly_as_much_as_a_test_that_looks_once() {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let (runs, rounds, need) = (2_000, 40, 20.0);
        let mut found = [0, 0];
        for _ in 0..runs {
            let differences: Vec<f64> = (0..rounds).map(|_| 0.424 + normal(&mut rng)).collect();
            let mut wager = Wager::above(0.0, need);
            let mut peak = f64::NEG_INFINITY;
            for (i, d) in differences.iter().enumerate() {
                wager.push(*d, Some(rounds - i));
                peak = peak.max(wager.log_evidence());
            }
            found[0] += usize::from(peak >= need.ln());
            let size = differences.iter().map(|d| d * d).sum::<f64>().sqrt();
            found[1] += usize::from(differences.iter().sum::<f64>() / size >= normal_quantile(1.0 - 1.0 / need));
        }
        let [bets, once] = found.map(|n| n as f64 / runs as f64);
        assert!(bets > 0.74 && once > 0.82 && bets > once - 0.11, "{bets} {once}");
    }

    #[test]
    fn a_stake_that_has_what_it_needs_rests_and_nothing_is_ever_lost_whole() {
        assert_eq!([factor(2.0, 1.0, 5), factor(-2.0, 3.0, 5), factor(1.0, f64::NAN, 5)], [1.0; 3]);
        assert!(factor(-2.5, 0.9, 1) > 0.0 && factor(2.5, 0.9, 1) < 2.0);
    }

    #[test]
    fn without_an_end_in_sight_the_bets_are_the_steady_ones() {
        let differences = [0.20, -0.05, 0.31, 0.12, 0.08, 0.27, 0.15, 0.22, -0.02, 0.18, 0.25, 0.11];
        let mut wager = Wager::above(0.0, 60.0);
        differences.iter().for_each(|d| wager.push(*d, None));
        assert_eq!(wager.log_evidence(), EProcess::new().after(&differences).log_evidence());
    }
}
