//! Two published means with their standard deviations against each other.

use crate::dist;
use serde::Serialize;

/// A mean with the standard deviation of the mean: "1602 ± 100".
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
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

/// Compares two means; `None` unless both are positive and have finite, not both zero, standard deviations.
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
    let half = dist::normal_quantile(0.975) * (a.sd_of_mean / a.mean).hypot(b.sd_of_mean / b.mean);
    Some(MeansComparison {
        difference,
        standard_error,
        z,
        p: 2.0 * dist::normal_cdf(-z.abs()),
        ratio,
        low: ratio * (-half).exp(),
        high: ratio * half.exp(),
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
}
