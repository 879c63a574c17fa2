//! Two published means with their standard deviations against each other.

use crate::distributions;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A mean with the standard deviation of the mean: "1602 ± 100".
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SummaryMean {
    /// The mean.
    pub mean: f64,
    /// The standard deviation of the mean.
    pub sd_of_mean: f64,
}

/// What two such figures say about each other. They share no blocks, so that this is no controlled comparison: whatever
/// differed between the two campaigns is part of the difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MeansComparison {
    /// First less second.
    pub difference: f64,
    /// Its standard error.
    pub standard_error: f64,
    /// Their quotient.
    pub z: f64,
    /// The two-sided p value, taking both standard deviations as known.
    pub p: f64,
    /// First over second.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

/// Compares two means; `None` unless both are positive and have finite, not both zero, standard deviations, and their ratio has an
/// interval: where one deviates by hundreds of times itself it hasn't.
#[must_use]
pub fn compare_means(a: SummaryMean, b: SummaryMean) -> Option<MeansComparison> {
    let standard_error = a.sd_of_mean.hypot(b.sd_of_mean);
    let usable = |m: SummaryMean| m.mean > 0.0 && m.mean.is_finite() && m.sd_of_mean >= 0.0;
    if !usable(a) || !usable(b) || standard_error.is_nan() || standard_error <= 0.0 || standard_error.is_infinite() {
        return None;
    }
    let difference = a.mean - b.mean;
    let z = difference / standard_error;
    let ratio = a.mean / b.mean;
    // By the delta method, on the scale of logs.
    let half = distributions::normal_quantile(0.975) * (a.sd_of_mean / a.mean).hypot(b.sd_of_mean / b.mean);
    let (low, high) = (ratio * (-half).exp(), ratio * half.exp());
    let p = 2.0 * distributions::normal_cdf(-z.abs());
    (low > 0.0 && high.is_finite()).then_some(MeansComparison { difference, standard_error, z, p, ratio, low, high })
}

/// The ratio of the typical values of two groups that share no blocks. No randomisation stands behind it: whatever else
/// differed between the groups is part of the difference.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, ToSchema)]
pub struct GroupComparison {
    /// First over second.
    pub ratio: f64,
    /// Lower end of its 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The two-sided p value of "no difference".
    pub p: f64,
    /// Degrees of freedom.
    pub df: f64,
}

/// Welch's comparison of the logs of two groups of positive values; `None` unless each has two values and one of them varies.
///
/// # Source
/// Welch, "The generalization of \"Student's\" problem when several different population variances are involved", Biometrika 34
/// (1947).
#[must_use]
pub fn compare_groups(a: &[f64], b: &[f64]) -> Option<GroupComparison> {
    let logs = |values: &[f64]| -> Option<(f64, f64, f64)> {
        let n = values.len() as f64;
        if values.len() < 2 || values.iter().any(|v| !v.is_finite() || *v <= 0.0) {
            return None;
        }
        let mean = values.iter().map(|v| v.ln()).sum::<f64>() / n;
        let variance = values.iter().map(|v| (v.ln() - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some((mean, variance / n, n))
    };
    let ((mean_a, part_a, n_a), (mean_b, part_b, n_b)) = (logs(a)?, logs(b)?);
    let standard_error = (part_a + part_b).sqrt();
    if standard_error <= 0.0 {
        return None;
    }
    let df = (part_a + part_b).powi(2) / (part_a.powi(2) / (n_a - 1.0) + part_b.powi(2) / (n_b - 1.0));
    let difference = mean_a - mean_b;
    let half = distributions::t_quantile(0.975, df) * standard_error;
    Some(GroupComparison {
        ratio: difference.exp(),
        low: (difference - half).exp(),
        high: (difference + half).exp(),
        p: distributions::t_two_sided(difference / standard_error, df),
        df,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::golden::assert_golden;

    #[test]
    fn the_tuned_host_against_the_servers_gives_the_golden_figures() {
        let tuned = SummaryMean { mean: 1602.0, sd_of_mean: 100.0 };
        let servers = SummaryMean { mean: 1548.0, sd_of_mean: 89.0 };
        let c = compare_means(tuned, servers).unwrap();
        for (got, want) in [
            (c.difference, 54.0),
            (c.standard_error, 133.9),
            (c.z, 0.4034),
            (c.p, 0.6867),
            (c.ratio, 1.035),
            (c.low, 0.8763),
            (c.high, 1.222),
        ] {
            assert_golden(got, want);
        }
        let swapped = compare_means(servers, tuned).unwrap();
        assert!((swapped.low * c.high - 1.0).abs() < 1e-12 && swapped.p == c.p);
    }

    #[test]
    fn figures_that_say_nothing_are_not_compared() {
        let mean = |mean, sd_of_mean| SummaryMean { mean, sd_of_mean };
        for (a, b) in [
            (mean(0.0, 1.0), mean(1.0, 1.0)),
            (mean(1.0, 0.0), mean(1.0, 0.0)),
            (mean(1.0, f64::NAN), mean(1.0, 1.0)),
            (mean(1.0, -1.0), mean(1.0, 1.0)),
        ] {
            assert_eq!(compare_means(a, b), None);
        }
    }

    #[test]
    fn two_groups_of_logs_give_welchs_golden_figures() {
        let (a, b) = ([1.0f64, 2.0, 3.0, 4.0].map(f64::exp), [2.0f64, 4.0, 6.0].map(f64::exp));
        let c = compare_groups(&a, &b).unwrap();
        // Means 2.5 and 4; variances of the means 5/12 and 4/3; t = −1.5/√1.75, df = 1.75²/((5/12)²/3 + (4/3)²/2).
        let df = 1.75f64.powi(2) / ((5.0f64 / 12.0).powi(2) / 3.0 + (4.0f64 / 3.0).powi(2) / 2.0);
        assert!((c.df - df).abs() < 1e-12 && (c.ratio - (-1.5f64).exp()).abs() < 1e-12);
        assert!(
            (distributions::t_two_sided(-1.5 / 1.75f64.sqrt(), df) - c.p).abs() < 1e-12 && (0.2..0.5).contains(&c.p)
        );
        // An interval that ends at 1 has p = 0.05.
        assert_eq!(c.low < 1.0 && c.high > 1.0, c.p > 0.05);
        let swapped = compare_groups(&b, &a).unwrap();
        assert!((swapped.low * c.high - 1.0).abs() < 1e-12 && swapped.p == c.p);
        assert!(compare_groups(&[1.0], &[1.0, 2.0]).is_none() && compare_groups(&[1.0, 0.0], &[1.0, 2.0]).is_none());
        assert!(compare_groups(&[2.0, 2.0], &[3.0, 3.0]).is_none());
    }
}
