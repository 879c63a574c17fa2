//! Quantiles and probabilities of the distributions that everything else uses, safe for any argument.

/// Distributions of the largest of several differences, and power.
mod multiple;

pub(crate) use multiple::{dunnett_one_sided, dunnett_two_sided, noncentral_t_power, quantile_of, studentised_range};

use rand::{Rng, RngExt as _};
use statrs::distribution::{Beta, ChiSquared, Continuous, ContinuousCDF, FisherSnedecor, Normal, StudentsT};

/// The probability that Student's t with `df` degrees of freedom is at most `t`; NaN if there is no such distribution.
pub(crate) fn t_cdf(t: f64, df: f64) -> f64 {
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |d| d.cdf(t))
}

/// The two-sided p value of `t`.
pub(crate) fn t_two_sided(t: f64, df: f64) -> f64 {
    2.0 * t_cdf(-t.abs(), df)
}

/// The quantile of Student's t.
pub(crate) fn t_quantile(p: f64, df: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    StudentsT::new(0.0, 1.0, df).map_or(f64::NAN, |d| polish(d.inverse_cdf(p), p, |x| d.cdf(x), |x| d.pdf(x)))
}

/// The probability that a standard normal is at most `z`.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// A standard normal, by Box and Muller's method.
pub fn normal(rng: &mut impl Rng) -> f64 {
    let (u, v): (f64, f64) = (rng.random(), rng.random());
    (-2.0 * (1.0 - u).ln()).sqrt() * (std::f64::consts::TAU * v).cos()
}

/// The quantile of the standard normal.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let d = Normal::standard();
    if (0.0..=1.0).contains(&p) { polish(d.inverse_cdf(p), p, |x| d.cdf(x), |x| d.pdf(x)) } else { f64::NAN }
}

/// The probability that F with these degrees of freedom exceeds `f`.
pub(crate) fn f_tail(f: f64, df1: f64, df2: f64) -> f64 {
    if f.is_nan() {
        return f64::NAN;
    }
    FisherSnedecor::new(df1, df2).map_or(f64::NAN, |d| if f <= 0.0 { 1.0 } else { d.sf(f) })
}

/// The probability that chi-squared with `df` degrees of freedom exceeds `x`.
pub(crate) fn chi_squared_tail(x: f64, df: f64) -> f64 {
    if x.is_nan() {
        return f64::NAN;
    }
    ChiSquared::new(df).map_or(f64::NAN, |d| if x <= 0.0 { 1.0 } else { d.sf(x) })
}

/// The quantile of chi-squared.
#[cfg(test)]
pub(crate) fn chi_squared_quantile(p: f64, df: f64) -> f64 {
    if !(0.0..1.0).contains(&p) {
        return f64::NAN;
    }
    ChiSquared::new(df).map_or(f64::NAN, |d| polish(d.inverse_cdf(p), p, |x| d.cdf(x), |x| d.pdf(x)))
}

/// The exact 95 % interval of a proportion.
///
/// # Source
/// Clopper and Pearson, Biometrika 26 (1934).
#[must_use]
pub fn proportion_interval(count: u64, of: u64) -> (f64, f64) {
    let (k, n) = (count as f64, of as f64);
    let quantile = |p: f64, a: f64, b: f64| Beta::new(a, b).map_or(f64::NAN, |d| d.inverse_cdf(p));
    let low = if count == 0 { 0.0 } else { quantile(0.025, k, n - k + 1.0) };
    let high = if count >= of { 1.0 } else { quantile(0.975, k + 1.0, n - k) };
    (low, high)
}

/// One Newton step onto the quantile; left out where it would leave the neighbourhood.
fn polish(x: f64, p: f64, cdf: impl Fn(f64) -> f64, pdf: impl Fn(f64) -> f64) -> f64 {
    let step = (cdf(x) - p) / pdf(x);
    if step.is_finite() && step.abs() < 1e-3 * x.abs().max(1e-3) { x - step } else { x }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::assert_golden;

    #[test]
    fn quantiles_agree_with_printed_tables() {
        assert_golden(t_quantile(0.975, 9.0), 2.262);
        assert_golden(t_quantile(0.95, 1.0), 6.314);
        assert_golden(normal_quantile(0.975), 1.960);
        assert_golden(chi_squared_quantile(0.95, 3.0), 7.815);
        assert_golden(f_tail(4.2565, 2.0, 9.0), 0.05000);
        assert_golden(normal_cdf(1.6449), 0.9500);
        assert_golden(chi_squared_tail(7.8147, 3.0), 0.05000);
    }

    #[test]
    fn quantiles_invert_the_probabilities() {
        for df in [1.0, 2.0, 5.0, 30.0, 1e4] {
            for p in [0.001, 0.025, 0.5, 0.9, 0.975, 0.9995] {
                assert!((t_cdf(t_quantile(p, df), df) - p).abs() < 1e-10, "t {df} {p}");
            }
        }
    }

    #[test]
    fn proportions_have_their_exact_interval() {
        // Exact limits as printed: 1 of 20 gives 0.13 % to 24.87 %, 0 of 20 up to 16.84 %.
        let (low, high) = proportion_interval(1, 20);
        assert_golden(low, 0.001265);
        assert_golden(high, 0.2487);
        assert_golden(proportion_interval(0, 20).1, 0.1684);
        assert_eq!((proportion_interval(0, 5).0, proportion_interval(5, 5).1), (0.0, 1.0));
        assert_eq!(proportion_interval(0, 0), (0.0, 1.0));
    }

    #[test]
    fn nonsense_gives_no_number_instead_of_a_panic() {
        for df in [0.0, -1.0, f64::NAN] {
            assert!(t_cdf(1.0, df).is_nan() && t_quantile(0.5, df).is_nan());
            assert!(f_tail(1.0, df, 1.0).is_nan() && chi_squared_tail(1.0, df).is_nan());
        }
        assert!(t_quantile(f64::NAN, 3.0).is_nan() && normal_quantile(2.0).is_nan());
        assert!(f_tail(f64::NAN, 2.0, 3.0).is_nan() && chi_squared_tail(f64::NAN, 2.0).is_nan());
    }
}
