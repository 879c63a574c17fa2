//! Whether the path changed while the experiment ran. It only informs: comparisons within rounds don't suffer from it.
//!
//! What this leaves out: seasons of the day, and a step of which the place is known.

use crate::distributions;
use rand::Rng;
use rand::seq::SliceRandom as _;
use serde::Serialize;

/// Parts that [`rise`] compares as wholes, and the fewest values that it looks at.
const BLOCKS: usize = 12;
const FEWEST_FOR_RISE: usize = 6;
/// Relabellings for the p value where values are tied.
const SAMPLES: u32 = 9_999;
/// Up to this length the p value comes from relabelling, beyond it from the normal approximation.
const MOST_EXACT: usize = 40;
/// Longer series are thinned to means of so many parts for the slope.
const MOST_FOR_SLOPE: usize = 1_000;

/// A trend over rounds or trials.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Trend {
    /// Kendall's S: pairs that rise less pairs that fall.
    pub s: i64,
    /// The two-sided p value of no trend.
    pub p: f64,
    /// The median slope from one value to the next (Theil and Sen).
    pub slope: f64,
    /// The slope over the whole series; of logs, e^change is the factor.
    pub change: f64,
}

/// Mann and Kendall's test and Theil and Sen's slope of a series; `None` for fewer than four values or one that isn't
/// finite.
///
/// The values must be means of rounds, or one per trial. Never hand in the seconds of a transfer: neighbouring seconds
/// depend on each other, and the test would find a trend in 22 to 74 % of series without one.
///
/// # Source
/// Mann, Econometrica 13 (1945); Kendall, *Rank Correlation Methods*; Sen, JASA 63 (1968).
pub fn trend(series: &[f64], rng: &mut impl Rng) -> Option<Trend> {
    if series.len() < 4 || series.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let s = kendall_s(series);
    let slope = theil_sen(series);
    let p = p_value(series, s, rng);
    Some(Trend { s, p, slope, change: slope * (series.len() - 1) as f64 })
}

/// The one-sided p value of "it doesn't rise", for values of which neighbours may depend on each other, such as means of parts
/// of one transfer: what is close together is compared as one, as the mean of one of [`BLOCKS`] blocks, and of all orders of
/// the blocks those are counted that are as steady. `None` for fewer than six values or one that isn't finite.
///
/// # Source
/// Mann, Econometrica 13 (1945): the test of a trend by the number of inversions, here without its normal approximation.
#[must_use]
pub fn rise(series: &[f64]) -> Option<f64> {
    if series.len() < FEWEST_FOR_RISE || series.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let count = series.len().min(BLOCKS);
    let edge = |block: usize| block * series.len() / count;
    let mean = |part: &[f64]| part.iter().sum::<f64>() / part.len() as f64;
    let blocks: Vec<f64> = (0..count).map(|block| mean(&series[edge(block)..edge(block + 1)])).collect();
    let later = |at: usize| blocks[at + 1..].iter().filter(|later| **later <= blocks[at]).count();
    let out_of_order: usize = (0..count).map(later).sum();
    Some(random_order(count).iter().take(out_of_order + 1).sum::<f64>().min(1.0))
}

fn p_value(series: &[f64], s: i64, rng: &mut impl Rng) -> f64 {
    let n = series.len();
    let mut sorted = series.to_vec();
    sorted.sort_by(f64::total_cmp);
    let ties: Vec<usize> = sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).collect();
    if n > MOST_EXACT {
        let term = |n: usize| (n * (n - 1)) as f64 * (2 * n + 5) as f64;
        let variance = (term(n) - ties.iter().map(|t| term(*t)).sum::<f64>()) / 18.0;
        let z = (s.abs() - 1).max(0) as f64 / variance.sqrt();
        return if z.is_finite() { 2.0 * distributions::normal_cdf(-z) } else { 1.0 };
    }
    if ties.len() == n {
        return exact_p(n, s);
    }
    let mut shuffled = series.to_vec();
    let mut as_large = 0;
    for _ in 0..SAMPLES {
        shuffled.shuffle(rng);
        as_large += u32::from(kendall_s(&shuffled).abs() >= s.abs());
    }
    f64::from(as_large + 1) / f64::from(SAMPLES + 1)
}

/// How likely each number of inversions is in a random order of so many things.
fn random_order(n: usize) -> Vec<f64> {
    let mut distribution = vec![1.0f64];
    for i in 2..=n {
        let mut next = vec![0.0; distribution.len() + i - 1];
        for (inversions, p) in distribution.iter().enumerate() {
            for extra in 0..i {
                next[inversions + extra] += p / i as f64;
            }
        }
        distribution = next;
    }
    distribution
}

/// The exact two-sided p value without ties.
fn exact_p(n: usize, s: i64) -> f64 {
    let pairs = (n * (n - 1) / 2) as i64;
    let extreme = |(inversions, _): &(usize, &f64)| (pairs - 2 * *inversions as i64).abs() >= s.abs();
    random_order(n).iter().enumerate().filter(extreme).map(|(_, p)| p).sum::<f64>().min(1.0)
}

/// Pairs that rise less pairs that fall, in n log n steps by merging.
fn kendall_s(series: &[f64]) -> i64 {
    // Pairs that fall are the inversions of the series; pairs that rise are those of its mirror image.
    let falls = inversions(series.to_vec());
    let rises = inversions(series.iter().map(|v| -v).collect());
    rises - falls
}

/// The number of pairs of which the earlier is strictly larger.
fn inversions(mut values: Vec<f64>) -> i64 {
    let mut count = 0;
    let mut merged = Vec::with_capacity(values.len());
    let mut width = 1;
    while width < values.len() {
        for block in values.chunks_mut(2 * width) {
            if block.len() <= width {
                continue;
            }
            let (left, right) = block.split_at(width);
            let (mut i, mut j) = (0, 0);
            merged.clear();
            while i < left.len() || j < right.len() {
                if j == right.len() || (i < left.len() && left[i] <= right[j]) {
                    merged.push(left[i]);
                    i += 1;
                } else {
                    count += (left.len() - i) as i64;
                    merged.push(right[j]);
                    j += 1;
                }
            }
            block.copy_from_slice(&merged);
        }
        width *= 2;
    }
    count
}

/// The median of the slopes of all pairs; of the means of parts if the series is long.
fn theil_sen(series: &[f64]) -> f64 {
    let part = series.len().div_ceil(MOST_FOR_SLOPE);
    let means: Vec<f64> = series.chunks_exact(part).map(crate::describe::mean).collect();
    let mut slopes: Vec<f64> = (0..means.len())
        .flat_map(|i| (i + 1..means.len()).map(move |j| (i, j)))
        .map(|(i, j)| (means[j] - means[i]) / ((j - i) * part) as f64)
        .collect();
    median(&mut slopes)
}

/// The median; 0 of nothing.
pub(crate) fn median(values: &mut [f64]) -> f64 {
    if values.is_empty() {
        return 0.0;
    }
    let (half, odd) = (values.len() / 2, values.len() % 2 == 1);
    let (below, upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    let upper = *upper;
    if odd {
        return upper;
    }
    let below = below.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    0.5 * (below + upper)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha12Rng;

    fn rng() -> ChaCha12Rng {
        ChaCha12Rng::seed_from_u64(1)
    }

    #[test]
    fn a_straight_line_is_found_with_its_slope_and_the_smallest_p_that_there_is() {
        let line: Vec<f64> = (0..6).map(|i| 3.0 - 0.25 * f64::from(i)).collect();
        let t = trend(&line, &mut rng()).unwrap();
        assert_eq!((t.s, t.slope, t.change), (-15, -0.25, -1.25));
        assert!((t.p - 2.0 / 720.0).abs() < 1e-12);
    }

    #[test]
    fn exact_p_values_agree_with_the_printed_table() {
        // Kendall's table of one-sided probabilities: n = 5, S ≥ 8: 0.042; n = 8, S ≥ 16: 0.031; n = 10, S ≥ 23: 0.023.
        for (n, s, one_sided) in [(5, 8, 0.042), (8, 16, 0.031), (10, 23, 0.023)] {
            assert!((exact_p(n, s) / 2.0 - one_sided).abs() < 5e-4, "{n} {s}: {}", exact_p(n, s) / 2.0);
        }
        assert!((exact_p(7, 0) - 1.0).abs() < 1e-12);
    }

    #[test]
    fn sampling_with_ties_and_the_normal_approximation_agree_with_the_exact_one() {
        let scrambled = |n: u32| -> Vec<f64> { (0..n).map(|i| f64::from(i * 17 % 43) + f64::from(i) * 0.3).collect() };
        // 41 values without ties: beyond the limit of the exact p value.
        let t = trend(&scrambled(41), &mut rng()).unwrap();
        assert!((t.p - exact_p(41, t.s)).abs() < 0.005, "{t:?} {}", exact_p(41, t.s));
        // One pair of neighbours tied: S moves by at most one.
        let mut tied = scrambled(30);
        tied[12] = tied[11];
        let t = trend(&tied, &mut rng()).unwrap();
        assert!((t.p - exact_p(30, t.s)).abs() < 0.03, "{t:?} {}", exact_p(30, t.s));
    }

    #[test]
    fn what_has_no_trend_to_tell_gives_none() {
        assert_eq!(trend(&[1.0, 2.0, 3.0], &mut rng()), None);
        assert_eq!(trend(&[1.0, f64::NAN, 3.0, 4.0], &mut rng()), None);
        assert_eq!(trend(&[1.0; 50], &mut rng()).unwrap().p, 1.0);
        assert_eq!(trend(&[1.0; 5], &mut rng()).unwrap().p, 1.0);
    }

    #[test]
    fn a_million_values_are_no_trouble() {
        let long: Vec<f64> = (0..1_000_000u32).map(|i| f64::from(i.wrapping_mul(2_654_435_761) >> 8)).collect();
        let t = trend(&long, &mut rng()).unwrap();
        assert!(t.p > 1e-4 && t.slope.abs() < 1e3);
    }

    proptest! {
        #[test]
        fn the_fast_count_is_the_slow_one(series in prop::collection::vec(-5i8..5, 1..40)) {
            let series: Vec<f64> = series.into_iter().map(f64::from).collect();
            let mut slow = 0;
            for i in 0..series.len() {
                for j in i + 1..series.len() {
                    slow += i64::from(series[j] > series[i]) - i64::from(series[j] < series[i]);
                }
            }
            prop_assert_eq!(kendall_s(&series), slow);
        }

        #[test]
        fn reversing_time_reverses_the_trend(series in prop::collection::vec(-5.0f64..5.0, 4..30)) {
            let forward = trend(&series, &mut rng()).unwrap();
            let backward = trend(&series.iter().rev().copied().collect::<Vec<_>>(), &mut rng()).unwrap();
            prop_assert_eq!((forward.s, forward.p), (-backward.s, backward.p));
            prop_assert!((forward.slope + backward.slope).abs() < 1e-12);
        }
    }

    #[test]
    fn the_chance_of_a_rise_is_exact_and_needs_values() {
        let of = |values: &[f64]| rise(values).unwrap();
        let rising: Vec<f64> = (0..12).map(f64::from).collect();
        // One order in 12!.
        assert!((of(&rising) * 479_001_600.0 - 1.0).abs() < 1e-6);
        assert!((of(&rising.iter().rev().copied().collect::<Vec<_>>()) - 1.0).abs() < 1e-12);
        // Many values are as few as there are blocks, and what is level doesn't rise.
        let many: Vec<f64> = (0..600).map(f64::from).collect();
        assert!((of(&many) * 479_001_600.0 - 1.0).abs() < 1e-6);
        assert!((of(&[1.0; 40]) - 1.0).abs() < 1e-12);
        assert!((of(&rising[..6]) * 720.0 - 1.0).abs() < 1e-9);
        assert_eq!((rise(&rising[..5]), rise(&[f64::NAN; 20])), (None, None));
    }

    #[test]
    fn neighbours_that_depend_on_each_other_make_no_rise_and_a_rise_among_them_is_found() {
        let mut rng = ChaCha12Rng::seed_from_u64(11);
        let mut found = [0; 2];
        for _ in 0..500 {
            for (kind, step) in [0.0, 0.3].into_iter().enumerate() {
                let mut noise = 0.0;
                let series: Vec<f64> = (0..20)
                    .map(|at| {
                        noise = 0.6 * noise + rng.random_range(-1.0..1.0f64);
                        noise + step * f64::from(at)
                    })
                    .collect();
                found[kind] += usize::from(rise(&series).unwrap() < 0.001);
            }
        }
        // The plain test finds 15 % and more in the first kind at 0.01.
        assert!(found[0] <= 25 && found[1] >= 300, "{found:?} of 500");
    }
}
