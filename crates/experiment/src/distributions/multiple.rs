//! The studentised range, Dunnett's distributions and the power of a t test, by quadrature.
//!
//! All have the form ∫ f(s) G(s) ds with s² a chi-squared over its degrees of freedom, and G an integral over a standard
//! normal. Both integrands are smooth and fall off fast in the variables used, so the trapezoid rule converges
//! geometrically; with the steps below the error is about 1e-10.
//!
//! # Source
//! Hsu, *Multiple Comparisons* (1996), appendix E.

use super::normal_cdf;

/// Step and reach of the integral over a standard normal.
const STEP: f64 = 0.125;
const REACH: i32 = 72;
/// Of the integrals over a range: they are all but certain where the range is three standard normals wide.
const RANGE_STEEPNESS: f64 = 3.0;
/// Beyond it integrals would only take time.
const MOST_STEEPNESS: f64 = 1000.0;

/// The mean of `g(s)` over s = √(χ²/df), where `g` varies by its whole size within a change of ln s by `1/steepness` at
/// least.
fn over_scale(df: f64, steepness: f64, g: impl Fn(f64) -> f64) -> f64 {
    if df.is_nan() || df <= 0.0 {
        return f64::NAN;
    }
    if df > 1e6 {
        return g(1.0);
    }
    // In t = ln s the density is exp(df·(t − e^{2t}/2)) up to a constant: about a normal of variance 1/(2·df) for large
    // df, with a longer tail to the left for small ones.
    let step = (0.2 / (2.0 * df).sqrt()).min(0.4 / steepness);
    let log_density = |t: f64| df * (t - 0.5 * (2.0 * t).exp_m1());
    let (mut sum, mut mass) = (0.0, 0.0);
    for direction in [1.0, -1.0] {
        let first = if direction > 0.0 { 0 } else { 1 };
        for j in first.. {
            let t = direction * step * f64::from(j);
            let weight = log_density(t).exp();
            if weight < 1e-14 {
                break;
            }
            mass += weight;
            sum += weight * g(t.exp());
        }
    }
    sum / mass
}

/// The mean of `h(z)` over a standard normal z.
fn over_normal(h: impl Fn(f64) -> f64) -> f64 {
    let z = |j: i32| f64::from(j) * STEP;
    let density = |z: f64| (-0.5 * z * z).exp();
    STEP / std::f64::consts::TAU.sqrt() * (-REACH..=REACH).map(|j| density(z(j)) * h(z(j))).sum::<f64>()
}

/// The probability that the studentised range of `groups` means is at most `q`.
pub(crate) fn studentised_range(q: f64, groups: usize, df: f64) -> f64 {
    if q.is_nan() || groups < 2 {
        return f64::NAN;
    }
    if q <= 0.0 {
        return 0.0;
    }
    let k = groups as f64;
    over_scale(df, RANGE_STEEPNESS, |s| {
        over_normal(|z| k * (normal_cdf(z) - normal_cdf(z - q * s)).max(0.0).powf(k - 1.0))
    })
    .clamp(0.0, 1.0)
}

/// The probability that none of `others` equally replicated means exceeds the first by more than `d` standard errors of
/// a difference.
pub(crate) fn dunnett_one_sided(d: f64, others: usize, df: f64) -> f64 {
    if d.is_nan() || others == 0 {
        return f64::NAN;
    }
    let m = others as f64;
    over_scale(df, RANGE_STEEPNESS, |s| over_normal(|z| normal_cdf(z + std::f64::consts::SQRT_2 * d * s).powf(m)))
        .clamp(0.0, 1.0)
}

/// The probability that none of `others` equally replicated means differs from the first by more than `d` standard
/// errors of a difference.
pub(crate) fn dunnett_two_sided(d: f64, others: usize, df: f64) -> f64 {
    if d.is_nan() || others == 0 {
        return f64::NAN;
    }
    let (m, d) = (others as f64, d.max(0.0) * std::f64::consts::SQRT_2);
    over_scale(df, RANGE_STEEPNESS, |s| {
        over_normal(|z| (normal_cdf(z + d * s) - normal_cdf(z - d * s)).max(0.0).powf(m))
    })
    .clamp(0.0, 1.0)
}

/// The power of a two-sided t test with critical value `critical` when the true effect is `effect` standard errors.
pub(crate) fn noncentral_t_power(effect: f64, critical: f64, df: f64) -> f64 {
    // The step from nothing to certainty is one standard normal wide and stands where critical·s = effect. Far out it need
    // not be resolved: nothing is left there to weigh.
    over_scale(df, (1.0 + effect.abs()).min(MOST_STEEPNESS), |s| {
        normal_cdf(effect - critical * s) + normal_cdf(-effect - critical * s)
    })
    .clamp(0.0, 1.0)
}

/// Where an increasing probability reaches `p`, from zero upwards; NaN if it does not below a million.
pub(crate) fn quantile_of(p: f64, cdf: impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0);
    while cdf(high) < p {
        low = high;
        high *= 2.0;
        if high > 1e6 {
            return f64::NAN;
        }
    }
    while high - low > 1e-9 * high {
        let middle = 0.5 * (low + high);
        // A probability that is no number ends the search at once.
        match cdf(middle).partial_cmp(&p) {
            Some(std::cmp::Ordering::Less) => low = middle,
            Some(_) => high = middle,
            None => return f64::NAN,
        }
    }
    0.5 * (low + high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::distributions::{t_cdf, t_quantile, t_two_sided};
    use crate::golden::assert_golden;

    #[test]
    fn critical_values_agree_with_printed_tables() {
        assert_golden(quantile_of(0.95, |q| studentised_range(q, 4, 9.0)), 4.415);
        assert_golden(quantile_of(0.95, |q| studentised_range(q, 3, 6.0)), 4.339);
        assert_golden(quantile_of(0.95, |d| dunnett_two_sided(d, 3, 9.0)), 2.812);
        assert_golden(quantile_of(0.95, |d| dunnett_one_sided(d, 3, 9.0)), 2.372);
    }

    #[test]
    fn with_two_means_all_of_them_are_students_t() {
        for df in [1.0, 2.0, 3.0, 9.0, 60.0, 1e5] {
            for t in [0.3, 1.0, 2.5, 5.0] {
                let two_sided = 1.0 - t_two_sided(t, df);
                let range = studentised_range(t * std::f64::consts::SQRT_2, 2, df);
                assert!((range - two_sided).abs() < 1e-8, "range {df} {t}: {range} {two_sided}");
                assert!((dunnett_two_sided(t, 1, df) - two_sided).abs() < 1e-8, "two-sided {df} {t}");
                assert!((dunnett_one_sided(t, 1, df) - t_cdf(t, df)).abs() < 1e-8, "one-sided {df} {t}");
                assert!((dunnett_one_sided(-t, 1, df) - t_cdf(-t, df)).abs() < 1e-8, "below {df} {t}");
            }
        }
    }

    #[test]
    fn the_power_without_an_effect_is_the_level_and_with_one_the_published_figure() {
        for df in [2.0, 9.0, 100.0] {
            assert!((noncentral_t_power(0.0, t_quantile(0.975, df), df) - 0.05).abs() < 1e-8);
        }
        for effect in [50.0, 1e6, 1e300, f64::INFINITY] {
            assert!(noncentral_t_power(effect, 2.0, 9.0) > 1.0 - 1e-9, "{effect}");
        }
    }

    #[test]
    fn the_power_with_one_degree_of_freedom_is_that_of_the_noncentral_t() {
        // scipy.stats.nct.sf(t, 1, effect) + nct.cdf(-t, 1, effect) with t = t.ppf(0.975, 1).
        let critical = t_quantile(0.975, 1.0);
        let published = [(3.0, 0.186132061606), (10.0, 0.567306566402), (20.0, 0.883394442933), (40.0, 0.998301061467)];
        for (effect, power) in published {
            let ours = noncentral_t_power(effect, critical, 1.0);
            assert!((ours - power).abs() < 1e-9, "{effect}: {ours} against {power}");
        }
    }

    #[test]
    fn nonsense_gives_no_number_and_an_end() {
        assert!(studentised_range(f64::NAN, 3, 5.0).is_nan() && studentised_range(1.0, 1, 5.0).is_nan());
        assert!(studentised_range(1.0, 3, 0.0).is_nan() && dunnett_one_sided(1.0, 0, 5.0).is_nan());
        assert!(quantile_of(0.95, |_| f64::NAN).is_nan() && quantile_of(2.0, |_| 1.0).is_nan());
        assert_eq!(studentised_range(-1.0, 3, 5.0), 0.0);
    }
}
