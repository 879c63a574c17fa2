/// A median, and an interval for that of the population.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MedianInterval {
    /// The sample's.
    pub median: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// The median of these values, and the interval between two of them that covers the population's with at least this
/// probability; `None` if there are too few for that, or one isn't a number.
///
/// Whatever the distribution, the number of values below its median is binomial with a half: the interval ends at the values
/// between which that number lies with the wanted probability. A few very large values move none of its ends.
///
/// # Example
/// ```
/// use wt_experiment::classic::median_interval;
/// let values: Vec<f64> = (1..=10).map(f64::from).collect();
/// let found = median_interval(&values, 0.95).unwrap();
/// assert_eq!((found.median, found.low, found.high), (5.5, 2.0, 9.0));
/// ```
#[must_use]
pub fn median_interval(values: &[f64], confidence: f64) -> Option<MedianInterval> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let n = values.len();
    let rank = rank(n, (1.0 - confidence) / 2.0)?;
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let median = f64::midpoint(sorted[(n - 1) / 2], sorted[n / 2]);
    Some(MedianInterval { median, low: sorted[rank - 1], high: sorted[n - rank] })
}

/// The largest rank, from 1, below which the number of values below the median lies with at most this probability.
fn rank(n: usize, tail: f64) -> Option<usize> {
    let mut log_of_one = -(n as f64) * std::f64::consts::LN_2;
    let mut below = 0.0;
    for number in 0..n.div_ceil(2) {
        below += log_of_one.exp();
        if below > tail {
            return (number > 0).then_some(number);
        }
        log_of_one += ((n - number) as f64 / (number + 1) as f64).ln();
    }
    // Only where the wanted probability is so small that the middle itself will do.
    (n > 0).then_some(n.div_ceil(2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngExt as _, SeedableRng as _};
    use rand_chacha::ChaCha12Rng;

    #[test]
    fn ranks_are_those_of_the_binomial_distribution() {
        // P(X ≤ 1) of ten is 11/1024, P(X ≤ 2) 56/1024.
        for (n, wanted) in [(5, None), (6, Some(1)), (10, Some(2)), (20, Some(6)), (100, Some(40))] {
            assert_eq!(rank(n, 0.025), wanted, "{n}");
        }
        assert_eq!(rank(0, 0.025), None);
        // By the normal distribution n/2 − 0.98·√n.
        assert!(rank(10_000, 0.025).unwrap().abs_diff(4_902) <= 1);
    }

    #[test]
    fn the_interval_covers_the_median_about_as_often_as_it_says_whatever_the_tails() {
        let mut rng = ChaCha12Rng::seed_from_u64(7);
        let mut covered = 0;
        for _ in 0..1000 {
            // The median of 1/u is 2, and there is no mean.
            let values: Vec<f64> = (0..60).map(|_| 1.0 / rng.random_range(f64::EPSILON..1.0)).collect();
            let found = median_interval(&values, 0.95).unwrap();
            assert!(found.low <= found.median && found.median <= found.high);
            covered += u32::from(found.low <= 2.0 && 2.0 <= found.high);
        }
        assert!((935..=985).contains(&covered), "{covered}");
    }

    #[test]
    fn what_is_no_number_has_no_median() {
        assert_eq!(median_interval(&[f64::NAN; 20], 0.95), None);
    }
}
