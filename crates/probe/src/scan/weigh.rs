//! What losses say about whether they begin at a size, and at which.
//!
//! Whether: an e-process. Within a stretch of probes whose sizes were shuffled, every size has the same chance to be among
//! the lost, however bad that moment was, if the size makes no difference. A gambler who bets on long packets being lost
//! more often wins nothing then, whatever he does; that his stake grows a thousandfold happens once in a thousand scans at
//! most, however often one looks.
//!
//! Where: how well a loss below and a loss above explain all counts, for every place at which they may meet.
//!
//! # What this leaves out
//! For the second question each loss is one number for the whole scan: where it comes and goes, the place is less sure
//! than is said.
//!
//! # Source
//! Shafer, Journal of the Royal Statistical Society A 184 (2021), 407–431, on betting; Ville's inequality for the bound.

use crate::LossCount;
use statrs::function::gamma::ln_gamma;
use std::collections::BTreeMap;

/// How many times as often as a short packet a long one is lost, in odds: the gambler spreads his stake over these, half of
/// it on the last, for mostly short packets get through.
const FACTORS: [f64; 4] = [1.6, 3.0, 10.0, 1000.0];
const SHARES: [f64; 4] = [0.15, 0.15, 0.2, 0.5];

/// Probes of one kind that left in random order.
#[derive(Debug, Clone, Default)]
pub(super) struct Stretch {
    /// How many were sent of each size.
    pub(super) sent: BTreeMap<u16, u32>,
    /// The sizes of those that were lost, in the order of their sending.
    pub(super) lost: Vec<u16>,
}

/// How much a stake of 1 has become that was laid on larger sizes being lost more often, from some size on.
pub(super) fn stake(sizes: &[u16], stretches: &[Stretch]) -> f64 {
    let places = sizes.len().saturating_sub(1);
    let mut sum = 0.0;
    for place in sizes.iter().take(places) {
        let mut logs = [0.0; FACTORS.len()];
        for stretch in stretches {
            bet(*place, stretch, &mut logs);
        }
        sum += logs.iter().zip(SHARES).map(|(log, share)| share * log.exp()).sum::<f64>();
    }
    if places == 0 { 1.0 } else { sum / places as f64 }
}

/// Bets on each lost packet of a stretch in its turn: that it is one of those above this size.
fn bet(below: u16, stretch: &Stretch, logs: &mut [f64; FACTORS.len()]) {
    let count = |sizes: std::collections::btree_map::Range<'_, u16, u32>| sizes.map(|(_, sent)| f64::from(*sent)).sum();
    let mut low: f64 = count(stretch.sent.range(..=below));
    let mut high: f64 = count(stretch.sent.range(below.saturating_add(1)..));
    if low == 0.0 || high == 0.0 {
        return;
    }
    // Products of many factors are taken together: one logarithm of each.
    let mut products = [1.0f64; FACTORS.len()];
    for (number, size) in stretch.lost.iter().enumerate() {
        let long = *size > below;
        for (product, factor) in products.iter_mut().zip(FACTORS) {
            *product *= if long { factor } else { 1.0 } * (low + high) / (low + factor * high);
        }
        if long {
            high -= 1.0;
        } else {
            low -= 1.0;
        }
        if number % 32 == 31 || number + 1 == stretch.lost.len() {
            for (log, product) in logs.iter_mut().zip(&mut products) {
                *log += product.ln();
                *product = 1.0;
            }
        }
    }
}

/// A place at which loss may begin.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    /// The largest size below it, bytes.
    pub(super) below: u16,
    /// The smallest size above it, bytes.
    pub(super) above: u16,
    /// Loss below.
    pub(super) low: LossCount,
    /// Loss above.
    pub(super) high: LossCount,
    /// How probable it is, if loss begins anywhere and all places were equally probable before.
    pub(super) weight: f64,
}

/// All places between sizes; those with no more loss above than below have no weight.
pub(super) fn places(counts: &[(u16, LossCount)]) -> Vec<Place> {
    let all = counts.iter().fold(LossCount::default(), |sum, (_, count)| sum.plus(*count));
    let mut low = LossCount::default();
    let mut places = Vec::with_capacity(counts.len());
    for pair in counts.windows(2) {
        low = low.plus(pair[0].1);
        let high = LossCount { sent: all.sent - low.sent, answered: all.answered - low.answered };
        let weight = if high.loss() > low.loss() { explained(low) + explained(high) } else { f64::NEG_INFINITY };
        places.push(Place { below: pair[0].0, above: pair[1].0, low, high, weight });
    }
    let most = places.iter().map(|place| place.weight).fold(f64::NEG_INFINITY, f64::max);
    places.iter_mut().for_each(|place| place.weight = (place.weight - most).exp());
    let sum: f64 = places.iter().map(|place| place.weight).filter(|weight| weight.is_finite()).sum();
    places.iter_mut().for_each(|place| place.weight = if sum > 0.0 { place.weight / sum } else { 0.0 });
    places
}

/// The logarithm of the probability of such a count in this order, if nothing is known of the loss.
///
/// # Source
/// Jeffreys, Theory of Probability (1961), section 3.1, for the prior.
fn explained(count: LossCount) -> f64 {
    let beta = |a: f64, b: f64| ln_gamma(a) + ln_gamma(b) - ln_gamma(a + b);
    beta(f64::from(count.lost()) + 0.5, f64::from(count.answered) + 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(sent: &[(u16, u32)], lost: &[u16]) -> Stretch {
        Stretch { sent: sent.iter().copied().collect(), lost: lost.to_vec() }
    }

    #[test]
    fn the_gambler_doubles_his_stake_with_each_loss_of_one_of_two_equal_arms() {
        let even = [(500, 10_000), (1400, 10_000)];
        let won = |lost: usize| stake(&[500, 1400], &[stretch(&even, &vec![1400; lost])]);
        assert!((won(0) - 1.0).abs() < 1e-12);
        // With the largest factor nearly twice each time; that is half of the stake.
        for lost in [5, 10, 15] {
            let best = 2f64.powi(lost);
            assert!((0.4..1.0).contains(&(won(lost as usize) / best)), "{lost}: {}", won(lost as usize));
        }
    }

    #[test]
    fn a_fair_game_is_worth_its_stake() {
        // Every way in which two of five can be lost, each equally probable: the mean is 1.
        let labels = [500u16, 500, 700, 1400, 1400];
        let sent = [(500, 2), (700, 1), (1400, 2)];
        let mut sum = 0.0;
        let mut ways = 0;
        for first in 0..5 {
            for second in 0..5 {
                if first != second {
                    sum += stake(&[500, 700, 1400], &[stretch(&sent, &[labels[first], labels[second]])]);
                    ways += 1;
                }
            }
        }
        assert!((sum / f64::from(ways) - 1.0).abs() < 1e-12, "{}", sum / f64::from(ways));
    }

    #[test]
    fn one_size_alone_says_nothing() {
        assert!((stake(&[1400], &[stretch(&[(1400, 100)], &[1400; 50])]) - 1.0).abs() < 1e-12);
        assert!((stake(&[500, 1400], &[stretch(&[(1400, 100)], &[1400; 50])]) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn the_place_is_where_loss_begins_and_weights_sum_to_one() {
        let count = |sent, answered| LossCount { sent, answered };
        let counts = [(1, count(100, 100)), (2, count(100, 100)), (3, count(100, 90)), (4, count(100, 88))];
        let places = places(&counts);
        assert!((places.iter().map(|place| place.weight).sum::<f64>() - 1.0).abs() < 1e-9);
        assert!(places[1].weight > 0.95, "{places:?}");
        assert_eq!((places[1].below, places[1].above, places[1].high), (2, 3, count(200, 178)));
    }

    #[test]
    fn equal_counts_give_no_place_any_weight() {
        let even = [(1, LossCount { sent: 10, answered: 9 }), (2, LossCount { sent: 10, answered: 9 })];
        assert!(places(&even).iter().all(|place| place.weight == 0.0));
    }
}
