use crate::distributions;
use serde::Serialize;

/// Of a level with fewer measurements nothing is claimed: with four and four, 70 relabellings are the first of which the most
/// extreme two are clearly fewer than 5 %, and a spread that is known from two or three measurements is hardly known.
pub const FEWEST_OF_A_LEVEL: usize = 4;

/// The error of all intervals together.
const ALPHA: f64 = 0.05;

/// Two levels that share no blocks against each other, on logs: `ratio` is a/b. Each level has a noise and a number of
/// measurements of its own; what else differed between the times at which they were measured is part of the difference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WelchComparison {
    /// The first level.
    pub a: String,
    /// The second.
    pub b: String,
    /// The estimated ratio of the first to the second.
    pub ratio: f64,
    /// Lower end of the 95 % interval of all pairs together; `None` where no measurement of either level differs from the others:
    /// then there is no noise to compute one from.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The p value, corrected for all pairs (Bonferroni). Without noise it is that of relabelling.
    pub p: f64,
    /// Welch's t; `None` without noise.
    pub t: Option<f64>,
    /// Its degrees of freedom.
    pub df: Option<f64>,
}

/// The logs of a level's measurements: how many, their mean, and the variance of that mean.
#[derive(Debug, Clone, Copy)]
struct LogMean {
    n: f64,
    mean: f64,
    variance: f64,
    /// By so much rounding alone may have moved the mean.
    rounding: f64,
}

impl LogMean {
    fn of(values: &[f64]) -> Self {
        let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
        let n = logs.len() as f64;
        let mean = logs.iter().sum::<f64>() / n;
        let squares: f64 = logs.iter().map(|log| (log - mean).powi(2)).sum();
        let most = logs.iter().fold(1.0f64, |most, log| most.max(log.abs()));
        let rounding = n * f64::EPSILON * most;
        let variance = if squares <= n * rounding.powi(2) { 0.0 } else { squares / (n - 1.0) / n };
        Self { n, mean, variance, rounding }
    }
}

/// All pairs of those levels that have at least [`FEWEST_OF_A_LEVEL`] measurements, by Welch's t on logs with Bonferroni's correction; in
/// the order (0,1), (0,2), …. The measurements are positive.
///
/// # Source
/// Welch, "The generalization of \"Student's\" problem when several different population variances are involved", Biometrika 34
/// (1947).
#[must_use]
pub fn unlike_pairs(levels: &[(String, Vec<f64>)]) -> Vec<WelchComparison> {
    let enough: Vec<(&str, LogMean)> = levels
        .iter()
        .filter(|(_, values)| values.len() >= FEWEST_OF_A_LEVEL)
        .map(|(level, values)| (level.as_str(), LogMean::of(values)))
        .collect();
    let pairs = enough.iter().enumerate().flat_map(|(i, a)| enough[i + 1..].iter().map(move |b| (a, b)));
    let of = (enough.len() * enough.len().saturating_sub(1) / 2) as f64;
    pairs.map(|(a, b)| compare(*a, *b, of)).collect()
}

/// One of `of` pairs.
fn compare((a, x): (&str, LogMean), (b, y): (&str, LogMean), of: f64) -> WelchComparison {
    let difference = x.mean - y.mean;
    // Neither are the same figures different, nor is what only rounding made of them.
    let same = difference.abs() <= x.rounding + y.rounding;
    let variance = x.variance + y.variance;
    let (a, b, ratio) = (a.to_owned(), b.to_owned(), difference.exp());
    if variance <= 0.0 {
        let p = if same { 1.0 } else { (of * most_extreme(x.n, y.n)).min(1.0) };
        return WelchComparison { a, b, ratio, low: None, high: None, p, t: None, df: None };
    }
    let df = variance.powi(2) / (x.variance.powi(2) / (x.n - 1.0) + y.variance.powi(2) / (y.n - 1.0));
    let t = difference / variance.sqrt();
    let half = distributions::t_quantile(1.0 - ALPHA / (2.0 * of), df) * variance.sqrt();
    let p = if same { 1.0 } else { (of * distributions::t_two_sided(t, df)).min(1.0) };
    WelchComparison {
        a,
        b,
        ratio,
        low: Some((difference - half).exp()),
        high: Some((difference + half).exp()),
        p,
        t: Some(t),
        df: Some(df),
    }
}

/// The share of all relabellings of `n` and `m` measurements that set them apart as far as possible: the observed one, and its mirror
/// image where both have as many.
fn most_extreme(n: f64, m: f64) -> f64 {
    let (few, all) = (n.min(m), n + m);
    let relabellings = (1..=few as u64).fold(1.0, |product, i| product * (all - few + i as f64) / i as f64);
    // Two-sided in any case: with unlike numbers it is the observed one alone, counted for both directions.
    (2.0 / relabellings).min(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classic::one_way_anova;
    use crate::golden::assert_golden;
    use rand::SeedableRng as _;
    use rand_chacha::ChaCha12Rng;

    fn levels(values: &[&[f64]]) -> Vec<(String, Vec<f64>)> {
        values.iter().enumerate().map(|(i, values)| (i.to_string(), values.to_vec())).collect()
    }

    /// A level: how often it is measured, the standard deviation of a measurement's log, and the mean of that log.
    type Level = (usize, f64, f64);

    /// How many of a thousand tables, each of a seed of its own, have a pair that differs, and in how many one error for all levels
    /// would have claimed that.
    fn claims(design: &[Level]) -> (usize, usize) {
        let found = |seed: u64| {
            let mut rng = ChaCha12Rng::seed_from_u64(seed);
            let mut logs = |&(n, noise, log): &Level| -> Vec<f64> {
                (0..n).map(|_| log + noise * distributions::normal(&mut rng)).collect()
            };
            let logs: Vec<Vec<f64>> = design.iter().map(&mut logs).collect();
            let level = |(i, logs): (usize, &Vec<f64>)| (i.to_string(), logs.iter().map(|log| log.exp()).collect());
            let table: Vec<(String, Vec<f64>)> = logs.iter().enumerate().map(level).collect();
            let rows: Vec<&[f64]> = logs.iter().map(Vec::as_slice).collect();
            let pooled = one_way_anova(&rows).and_then(|test| test.p).is_some_and(|p| p < ALPHA);
            (unlike_pairs(&table).iter().any(|pair| pair.p < ALPHA), pooled)
        };
        (0..1000)
            .map(found)
            .fold((0, 0), |(own, all), (is_own, is_all)| (own + usize::from(is_own), all + usize::from(is_all)))
    }

    #[test]
    fn equal_levels_of_unlike_noise_and_number_are_claimed_to_differ_in_about_one_of_twenty_tables() {
        // Over 40,000 tables of each kind Welch's t claims 2.5 to 6.4 %; two standard deviations of a thousand are 1.5 %.
        for (design, fewest_pooled) in [
            (&[(4, 0.3), (30, 0.03)][..], 500),
            (&[(4, 0.25), (12, 0.1)], 150),
            (&[(5, 0.3), (15, 0.1)], 200),
            (&[(6, 0.2), (20, 0.07)], 200),
            (&[(10, 0.3), (10, 0.1)], 0),
            (&[(6, 0.1); 4], 0),
            (&[(4, 0.3), (20, 0.05), (12, 0.1)], 0),
        ] {
            let equal: Vec<Level> = design.iter().map(|(n, noise)| (*n, *noise, 0.0)).collect();
            let (own, pooled) = claims(&equal);
            println!("{design:?}: {own} of 1000, and {pooled} with one error for all");
            assert!((10..=75).contains(&own) && pooled >= fewest_pooled, "{design:?}: {own} and {pooled}");
        }
    }

    #[test]
    fn clear_differences_are_claimed_whatever_the_noise() {
        for design in [
            &[(4, 0.03, 0.0), (4, 0.03, 0.2)][..],
            &[(6, 0.1, 0.0), (30, 0.03, 0.3)],
            &[(12, 0.1, 0.0), (12, 0.1, 0.2)],
            &[(10, 0.02, 0.0), (10, 0.1, 0.0), (10, 0.05, 0.2)],
        ] {
            let (own, _) = claims(design);
            assert!(own >= 950, "{design:?}: {own}");
        }
    }

    #[test]
    fn two_levels_have_welchs_golden_figures_and_each_of_more_is_compared_for_all_pairs() {
        let (a, b) = ([1.0f64, 2.0, 3.0, 4.0].map(f64::exp), [2.0f64, 4.0, 6.0, 8.0].map(f64::exp));
        // Means 2.5 and 5; variances of the means 5/12 and 5/3; t = −2.5/√(25/12), df = (25/12)²/((5/12)²/3 + (5/3)²/3) = 75/17.
        let pair = &unlike_pairs(&levels(&[&a, &b]))[0];
        let (t, df) = (pair.t.unwrap(), pair.df.unwrap());
        assert!((t + 3.0f64.sqrt()).abs() < 1e-12 && (df - 75.0 / 17.0).abs() < 1e-12 && pair.ratio < 1.0, "{pair:?}");
        assert!((pair.p - distributions::t_two_sided(t, df)).abs() < 1e-12);
        assert_golden(pair.p, 0.1516);
        assert!(pair.low.unwrap() < 1.0 && pair.high.unwrap() > 1.0);
        let three = unlike_pairs(&levels(&[&a, &b, &[3.0, 4.0, 5.0, 6.0, 7.0]]));
        assert_eq!(three.len(), 3);
        assert!((three[0].p - 3.0 * pair.p).abs() < 1e-12 && three[0].low.unwrap() < pair.low.unwrap());
    }

    #[test]
    fn nothing_is_compared_with_a_level_that_was_measured_less_than_four_times() {
        let (old, new) = ([1.0; 30], [2.0, 2.1, 2.2]);
        assert!(unlike_pairs(&levels(&[&old, &new])).is_empty());
        let found = unlike_pairs(&levels(&[&old, &new, &[3.0, 3.1, 3.2, 3.3]]));
        assert_eq!(found.iter().map(|pair| (pair.a.as_str(), pair.b.as_str())).collect::<Vec<_>>(), [("0", "2")]);
    }

    #[test]
    fn levels_without_noise_differ_if_they_do_and_relabelling_says_how_surely() {
        for value in [10.0, 0.1, 3.3, 1e-9, 1e90] {
            let same = &unlike_pairs(&levels(&[&[value; 7], &[value; 12]]))[0];
            assert_eq!((same.p, same.low, same.t), (1.0, None, None), "{value}");
        }
        let apart = &unlike_pairs(&levels(&[&[3.0; 4], &[3.3; 4]]))[0];
        assert!((apart.p - 2.0 / 70.0).abs() < 1e-12 && apart.low.is_none(), "{apart:?}");
        // What rounding made of the same figure is the same figure.
        let rounded = &unlike_pairs(&levels(&[&[0.1 + 0.2; 9], &[0.3; 9]]))[0];
        assert_eq!(rounded.p, 1.0);
    }
}
