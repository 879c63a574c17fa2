use super::anova::BlockedAnova;
use super::table::Table;
use crate::distributions;
use serde::Serialize;

/// Two settings against each other, on the logs of a table: `ratio` is a/b.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairComparison {
    /// The first level.
    pub a: String,
    /// The second.
    pub b: String,
    /// The estimated ratio of the first to the second.
    pub ratio: f64,
    /// Lower end of the simultaneous 95 % interval.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// The p value, corrected for all comparisons of the family.
    pub p: f64,
    /// Student's t.
    pub t: f64,
    /// Its p value as if this were the only comparison.
    pub p_single: f64,
    /// The same by Holm's correction.
    pub p_holm: f64,
}

/// A level against the best of the others (Hsu's multiple comparisons with the best).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct McbInterval {
    /// The level.
    pub level: String,
    /// Lower end of its ratio to the best other; 1 if it is shown to be the best.
    pub low: f64,
    /// Upper end; 1 if it is shown not to be the best.
    pub high: f64,
    /// The p value of "this level is the best".
    pub p: f64,
}

/// The family error of all intervals.
const ALPHA: f64 = 0.05;

/// All pairs by Tukey's method, which has one error for all of them and holds where all levels are equally noisy; in the order (0,1), (0,2), …; `log` is the table of logs, `anova` its analysis.
#[must_use]
pub fn all_pairs(log: &Table, anova: &BlockedAnova) -> Vec<PairComparison> {
    let k = log.levels().len();
    let df = anova.df as f64;
    let quantile = distributions::quantile_of(1.0 - ALPHA, |q| distributions::studentised_range(q, k, df));
    let width = quantile / std::f64::consts::SQRT_2 * anova.se_difference;
    let p = |t: f64| 1.0 - distributions::studentised_range(t.abs() * std::f64::consts::SQRT_2, k, df);
    let pairs = (0..k).flat_map(|a| (a + 1..k).map(move |b| (a, b)));
    compare(log, anova, pairs.collect(), width, p)
}

/// Every level against the first by Dunnett's method, two-sided, where all levels are equally noisy; `ratio` is level/first.
#[must_use]
pub fn against_the_first(log: &Table, anova: &BlockedAnova) -> Vec<PairComparison> {
    let others = log.levels().len() - 1;
    let df = anova.df as f64;
    let quantile = distributions::quantile_of(1.0 - ALPHA, |d| distributions::dunnett_two_sided(d, others, df));
    let p = |t: f64| 1.0 - distributions::dunnett_two_sided(t.abs(), others, df);
    compare(log, anova, (1..=others).map(|a| (a, 0)).collect(), quantile * anova.se_difference, p)
}

fn compare(
    log: &Table,
    anova: &BlockedAnova,
    pairs: Vec<(usize, usize)>,
    width: f64,
    p: impl Fn(f64) -> f64,
) -> Vec<PairComparison> {
    let means = log.row_means();
    let t = |(a, b): &(usize, usize)| (means[*a] - means[*b]) / anova.se_difference;
    let single: Vec<f64> = pairs.iter().map(|pair| distributions::t_two_sided(t(pair), anova.df as f64)).collect();
    let holm = holm(&single);
    let row = |(i, (a, b)): (usize, &(usize, usize))| {
        let difference = means[*a] - means[*b];
        PairComparison {
            a: log.levels()[*a].clone(),
            b: log.levels()[*b].clone(),
            ratio: difference.exp(),
            low: (difference - width).exp(),
            high: (difference + width).exp(),
            p: p(t(&(*a, *b))).clamp(0.0, 1.0),
            t: t(&(*a, *b)),
            p_single: single[i],
            p_holm: holm[i],
        }
    };
    pairs.iter().enumerate().map(row).collect()
}

/// Holm's corrected p values, in the order given.
pub(crate) fn holm(p: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p.len()).collect();
    order.sort_by(|a, b| p[*a].total_cmp(&p[*b]));
    let mut corrected = vec![1.0; p.len()];
    let mut so_far = 0.0f64;
    for (rank, i) in order.into_iter().enumerate() {
        so_far = so_far.max((p.len() - rank) as f64 * p[i]).min(1.0);
        corrected[i] = so_far;
    }
    corrected
}

/// Every level against the best of the others, where larger is better; on the logs of a table.
///
/// # Source
/// Hsu, *Multiple Comparisons* (1996), chapter 4: constrained intervals.
#[must_use]
pub fn against_the_best(log: &Table, anova: &BlockedAnova) -> Vec<McbInterval> {
    let means = log.row_means();
    let k = means.len();
    let df = anova.df as f64;
    let width = distributions::quantile_of(1.0 - ALPHA, |d| distributions::dunnett_one_sided(d, k - 1, df))
        * anova.se_difference;
    let best_other = |i: usize| (0..k).filter(|j| *j != i).map(|j| means[j]).fold(f64::NEG_INFINITY, f64::max);
    let high: Vec<f64> = (0..k).map(|i| (means[i] - best_other(i) + width).max(0.0)).collect();
    let low = |i: usize| {
        let contenders = (0..k).filter(|j| *j != i && high[*j] > 0.0);
        contenders.map(|j| means[i] - means[j] - width).fold(0.0, f64::min)
    };
    let p =
        |i: usize| 1.0 - distributions::dunnett_one_sided((best_other(i) - means[i]) / anova.se_difference, k - 1, df);
    (0..k)
        .map(|i| McbInterval { level: log.levels()[i].clone(), low: low(i).exp(), high: high[i].exp(), p: p(i) })
        .collect()
}
