//! What effect the differences don't exclude: the evidence against each shift, inverted.

use super::{Difference, EProcess, STAKES, WEIGHTS};
use crate::describe::{Description, describe};

/// From this length on a series counts as long, and its bounds are sought near its mean, in so many steps at most.
const LONG: usize = 4_000;
const MOST_STEPS: usize = 6;
/// How many places are looked at between the smallest and the largest difference, and around how many of the first.
const GRID: u32 = 32;
const EARLY: usize = 12;
/// A bound is found where ln E exceeds what is needed by no more than this.
const CLOSE: f64 = 1e-7;

/// Each run once.
fn singly(differences: &[f64]) -> Vec<Difference> {
    differences.iter().copied().map(Difference::Once).collect()
}

fn mirrored(differences: &[Difference]) -> Vec<Difference> {
    differences.iter().map(|d| d.mirrored()).collect()
}

/// The smallest effect that the differences do not exclude at this threshold: "at least so much".
///
/// The set of shifts δ with `E(δ) < threshold` covers the true one with probability at least `1 − 1/threshold` at all
/// times together. Its infimum is returned, −∞ as long as there are too few rounds to exclude anything.
///
/// # Source
/// Ville's inequality; inversion of the tests as in Ramdas, Grünwald, Vovk, Shafer, *Game-theoretic statistics and safe
/// anytime-valid inference* (arXiv 2210.01948).
#[must_use]
pub fn lower_bound(differences: &[f64], threshold: f64) -> f64 {
    lower_bound_of(&singly(differences), threshold)
}

/// [`lower_bound`] of rounds of either kind.
pub(crate) fn lower_bound_of(differences: &[Difference], threshold: f64) -> f64 {
    smallest_not_excluded(differences, threshold, EProcess::above).unwrap_or(f64::NEG_INFINITY)
}

/// As [`upper_bound`], of bets half of which stake everything on each sign: finite from the fifth round on at 20 : 1, and
/// after a few rounds without noise much tighter.
#[must_use]
pub fn bold_upper_bound(differences: &[f64], threshold: f64) -> f64 {
    bold_upper_bound_of(&singly(differences), threshold)
}

/// [`bold_upper_bound`] of rounds of either kind.
pub(crate) fn bold_upper_bound_of(differences: &[Difference], threshold: f64) -> f64 {
    -bold_lower_bound_of(&mirrored(differences), threshold)
}

/// As [`lower_bound`], of the bets of [`bold_upper_bound`].
#[must_use]
pub fn bold_lower_bound(differences: &[f64], threshold: f64) -> f64 {
    bold_lower_bound_of(&singly(differences), threshold)
}

/// [`bold_lower_bound`] of rounds of either kind.
pub(crate) fn bold_lower_bound_of(differences: &[Difference], threshold: f64) -> f64 {
    let bound = smallest_not_excluded(differences, threshold, |shift| EProcess::above(shift).boldly());
    bound.unwrap_or(f64::NEG_INFINITY)
}

fn smallest_not_excluded(differences: &[Difference], threshold: f64, above: impl Fn(f64) -> EProcess) -> Option<f64> {
    let need = threshold.ln();
    let excess = |shift: f64| above(shift).after_all(differences).log_evidence() - need;
    let values: Vec<f64> = differences.iter().map(|d| d.value()).collect();
    let singly = || differences.iter().all(|d| matches!(d, Difference::Once(d) if d.is_finite()));
    if differences.len() > LONG && singly() {
        let excess = |shift: f64| above(shift).after_many(&values).log_evidence() - need;
        if let Some(found) = bound_of_long(&values, need, excess) {
            return Some(found);
        }
    }
    let (smallest, largest) = range(&values)?;
    let width = (largest - smallest).max(largest.abs().max(1.0) * 1e-9);
    // Far below all data every scaled difference is 1: the most that so few rounds can say.
    let clear: Vec<Difference> = differences.iter().map(|d| d.none()).collect();
    if above(-1.0).after_all(&clear).log_evidence() <= need {
        return None;
    }
    let mut low = (0..60).map(|j| smallest - width * f64::from(j).exp2()).find(|s| excess(*s) >= 0.0)?;
    // At the largest difference no scaled difference is positive, so the evidence is at most 1.
    let mut high = largest;
    // The evidence need not fall steadily between the two: take the first place where it is too small.
    if differences.len() <= LONG {
        for shift in places_to_look(&values, low, high, width) {
            if excess(shift) < 0.0 {
                high = shift;
                break;
            }
            low = shift;
        }
    }
    Some(root((low, excess(low)), (high, excess(high)), 1e-9 * width, excess))
}

/// The bound of a long series, sought from where it should lie: with stake g the evidence of many small differences of standard
/// deviation s grows by g·d/s − g²/2 with each, which a line through two places near there follows closely. Nothing where two such places
/// with the bound between them aren't found.
fn bound_of_long(values: &[f64], need: f64, excess: impl Fn(f64) -> f64) -> Option<f64> {
    let Description { mean, sd_of_mean, .. } = describe(values)?;
    let (n, error) = (values.len() as f64, sd_of_mean.filter(|error| *error > 0.0)?);
    let sd = error * n.sqrt();
    let below = |(stake, weight): (f64, f64)| (stake / 2.0 + (need - weight.ln()) / (n * stake), stake);
    let (below, stake) = STAKES.into_iter().zip(WEIGHTS).map(below).min_by(|one, other| one.0.total_cmp(&other.0))?;
    // A little further than the line says, so that the bound lies between.
    let step = |value: f64| (value * sd / (n * stake)) * 1.1 + 0.01 * error * value.signum();
    let mut at = mean - sd * below;
    let mut value = excess(at);
    for _ in 0..MOST_STEPS {
        let next = at + step(value);
        let beyond = excess(next);
        if (value >= 0.0) != (beyond >= 0.0) {
            let (low, high) = if value >= 0.0 { ((at, value), (next, beyond)) } else { ((next, beyond), (at, value)) };
            return Some(root(low, high, 1e-6 * error, excess));
        }
        (at, value) = (next, beyond);
    }
    None
}

/// The largest effect that the differences do not exclude at this threshold: "at most so much"; +∞ if there is none.
#[must_use]
pub fn upper_bound(differences: &[f64], threshold: f64) -> f64 {
    upper_bound_of(&singly(differences), threshold)
}

/// [`upper_bound`] of rounds of either kind.
pub(crate) fn upper_bound_of(differences: &[Difference], threshold: f64) -> f64 {
    -lower_bound_of(&mirrored(differences), threshold)
}

/// Shifts between `low` and `high`, ascending: a grid, and the places around the first differences, where the scale is still
/// that of a few and a change of sign makes the evidence jump.
fn places_to_look(differences: &[f64], low: f64, high: f64, width: f64) -> Vec<f64> {
    let grid = (1..=GRID).map(|j| low + (high - low) * f64::from(j) / f64::from(GRID));
    let around = [-1e-2, -1e-9, 1e-9, 1e-2].map(|share| share * width);
    let early = differences.iter().take(EARLY).flat_map(|d| around.map(|a| d + a));
    let mut places: Vec<f64> = grid.chain(early.filter(|s| low < *s && *s < high)).collect();
    places.sort_by(f64::total_cmp);
    places
}

fn range(values: &[f64]) -> Option<(f64, f64)> {
    let finite = values.iter().copied().filter(|v| v.is_finite());
    finite.fold(None, |range, v| Some(range.map_or((v, v), |(low, high): (f64, f64)| (low.min(v), high.max(v)))))
}

/// Where `f` falls through zero between `low` (f ≥ 0) and `high` (f < 0), on the side where it is still ≥ 0.
fn root(
    (mut low, mut f_low): (f64, f64),
    (mut high, mut f_high): (f64, f64),
    tolerance: f64,
    f: impl Fn(f64) -> f64,
) -> f64 {
    let mut raised_low = None;
    for step in 0..200 {
        if high - low <= tolerance {
            break;
        }
        // Regula falsi (Illinois) with every fifth step a bisection: few evaluations, and a certain end.
        let secant = low + (high - low) * f_low / (f_low - f_high);
        let bisect = step % 5 == 4 || !(low < secant && secant < high);
        let middle = if bisect { 0.5 * (low + high) } else { secant };
        let value = f(middle);
        let raises_low = value >= 0.0;
        if raises_low && value <= CLOSE {
            return middle;
        }
        let again = raised_low == Some(raises_low);
        if raises_low {
            (low, f_low) = (middle, value);
            f_high *= if again { 0.5 } else { 1.0 };
        } else {
            (high, f_high) = (middle, value);
            f_low *= if again { 0.5 } else { 1.0 };
        }
        raised_low = Some(raises_low);
    }
    low
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bound by the whole way from below all to above all, one difference after the other.
    fn bound_by_bisection(differences: &[f64], threshold: f64) -> f64 {
        let excess = |shift: f64| EProcess::above(shift).after(differences).log_evidence() - threshold.ln();
        let (smallest, largest) = range(differences).unwrap();
        let (mut low, mut high) = (smallest - 10.0 * (largest - smallest).max(1e-9), largest);
        assert!(excess(low) >= 0.0);
        for _ in 0..80 {
            let middle = f64::midpoint(low, high);
            if excess(middle) >= 0.0 { low = middle } else { high = middle }
        }
        low
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_long_series_has_the_bound_that_bisection_finds(
            seed in 0u64..1000, effect in -0.5..0.5f64, tails in 0.3..3.0f64, drift in 0.0..1.0f64, threshold in 5.0..500.0f64
        ) {
            let mut state = seed.wrapping_mul(2).wrapping_add(88_172_645_463_325_252);
            let mut uniform = || {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                (state >> 11) as f64 / (1u64 << 53) as f64 - 0.5
            };
            let n = LONG + 1 + (seed as usize * 7) % 3000;
            let one = |place: usize| {
                let noise = uniform();
                effect + drift * place as f64 / n as f64 + noise.signum() * noise.abs().powf(tails)
            };
            let differences: Vec<f64> = (0..n).map(one).collect();
            let (found, slow) = (lower_bound(&differences, threshold), bound_by_bisection(&differences, threshold));
            let error = describe(&differences).unwrap().sd_of_mean.unwrap();
            prop_assert!((found - slow).abs() <= 1e-4 * error, "{found} and {slow}, {error}");
        }
    }
}
