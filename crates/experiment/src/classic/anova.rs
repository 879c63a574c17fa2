use super::table::Table;
use crate::describe::{mean, squares};
use crate::distributions;
use serde::Serialize;

/// An F test.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct FTest {
    /// The statistic; `None` when there is no variation at all.
    pub f: Option<f64>,
    /// The probability of one as large without any effect.
    pub p: Option<f64>,
    /// Degrees of freedom of the numerator.
    pub df1: f64,
    /// Degrees of freedom of the denominator.
    pub df2: f64,
}

impl FTest {
    /// Of sums of squares; `rounding` is what they may be where there is nothing.
    fn new((numerator, df1): (f64, f64), (denominator, df2): (f64, f64), rounding: f64) -> Self {
        let f = (numerator / df1) / (denominator / df2);
        // Rounding leaves a little where there is nothing; then neither F nor p means anything.
        let empty = denominator <= (1e-24 * (numerator + denominator)).max(rounding);
        let f = (f.is_finite() && !empty).then_some(f);
        Self { f, p: f.map(|f| distributions::f_tail(f, df1, df2)).filter(|p| p.is_finite()), df1, df2 }
    }
}

/// The largest sum of squares about means that rounding alone leaves of values that are the same: a mean of n values may be off by n
/// roundings of the largest.
fn rounding<'a>(values: impl IntoIterator<Item = &'a f64>) -> f64 {
    let (n, most) = values.into_iter().fold((0.0, 0.0f64), |(n, most), value| (n + 1.0, most.max(value.abs())));
    n * (n * f64::EPSILON * most).powi(2)
}

/// One-way analysis of variance of groups of any size; `None` with fewer than two groups or without replication.
#[must_use]
pub fn one_way_anova(groups: &[&[f64]]) -> Option<FTest> {
    let groups: Vec<&[f64]> = groups.iter().copied().filter(|g| !g.is_empty()).collect();
    let all: Vec<f64> = groups.iter().flat_map(|g| g.iter().copied()).collect();
    if groups.len() < 2 || all.len() <= groups.len() {
        return None;
    }
    let within: f64 = groups.iter().map(|g| squares(g)).sum();
    let grand = mean(&all);
    let between: f64 = groups.iter().map(|g| g.len() as f64 * (mean(g) - grand).powi(2)).sum();
    let (df1, df2) = ((groups.len() - 1) as f64, (all.len() - groups.len()) as f64);
    Some(FTest::new((between, df1), (within, df2), rounding(&all)))
}

/// The analysis of variance of a table in complete blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockedAnova {
    /// Sum of squares of the settings, k − 1 degrees of freedom.
    pub ss_levels: f64,
    /// Sum of squares of the blocks, b − 1 degrees of freedom.
    pub ss_blocks: f64,
    /// What is left, (k − 1)(b − 1) degrees of freedom.
    pub ss_error: f64,
    /// Degrees of freedom of what is left.
    pub df: usize,
    /// Mean square of what is left.
    pub mse: f64,
    /// Whether the settings differ.
    pub levels: FTest,
    /// Whether the blocks differ: whether days matter.
    pub blocks: FTest,
    /// Greenhouse and Geisser's ε and the p value corrected by it, for blocks in which settings are unevenly correlated.
    pub sphericity: Option<(f64, f64)>,
    /// The standard deviation of the blocks' own levels.
    pub block_sd: f64,
    /// How many times the trials it would have taken without blocks.
    pub relative_efficiency: Option<f64>,
    /// Whether settings act by differences on this scale in every block.
    pub non_additivity: Option<NonAdditivity>,
    /// The standard error of a difference of two settings' means.
    pub se_difference: f64,
}

/// Tukey's test of non-additivity, one degree of freedom.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct NonAdditivity {
    /// The statistic.
    pub f: f64,
    /// Its p value.
    pub p: f64,
}

/// The analysis of variance of a table in complete blocks; `None` with a single block.
///
/// # Source
/// Montgomery, *Design and Analysis of Experiments*, chapter 4; Greenhouse and Geisser, Psychometrika 24 (1959).
#[must_use]
pub fn blocked_anova(table: &Table) -> Option<BlockedAnova> {
    let (k, b) = table.shape();
    if b < 2 {
        return None;
    }
    let (kf, bf) = (k as f64, b as f64);
    let rows = table.row_means();
    let columns: Vec<f64> = (0..b).map(|j| mean(&table.column(j))).collect();
    let grand = mean(&rows);
    let ss_levels = bf * squares(&rows);
    let ss_blocks = kf * squares(&columns);
    // From the residuals themselves: the total less the parts would lose digits.
    let residual = |i: usize, j: usize| table.row(i)[j] - rows[i] - columns[j] + grand;
    let ss_error: f64 = (0..k).flat_map(|i| (0..b).map(move |j| (i, j))).map(|(i, j)| residual(i, j).powi(2)).sum();
    let df = (k - 1) * (b - 1);
    let mse = ss_error / df as f64;
    let ms_blocks = ss_blocks / (bf - 1.0);
    let rounding = rounding(table.rows().flatten());
    let test = |ss: f64, count: f64| FTest::new((ss, count - 1.0), (ss_error, df as f64), rounding);
    let levels = test(ss_levels, kf);
    let efficiency = ((bf - 1.0) * ms_blocks + bf * (kf - 1.0) * mse) / ((kf * bf - 1.0) * mse);
    Some(BlockedAnova {
        ss_levels,
        ss_blocks,
        ss_error,
        df,
        mse,
        levels,
        blocks: test(ss_blocks, bf),
        sphericity: sphericity(table, &levels),
        block_sd: ((ms_blocks - mse) / kf).max(0.0).sqrt(),
        relative_efficiency: efficiency.is_finite().then_some(efficiency),
        non_additivity: if ss_error > rounding { non_additivity(table, &rows, &columns, ss_error) } else { None },
        se_difference: (2.0 * mse / bf).sqrt(),
    })
}

fn non_additivity(table: &Table, rows: &[f64], columns: &[f64], ss_error: f64) -> Option<NonAdditivity> {
    let df = (rows.len() - 1) * (columns.len() - 1);
    if df < 2 {
        return None;
    }
    let grand = mean(rows);
    let mut product = 0.0;
    for (i, row) in table.rows().enumerate() {
        for (j, y) in row.iter().enumerate() {
            product += y * (rows[i] - grand) * (columns[j] - grand);
        }
    }
    let ss = product * product / (squares(rows) * squares(columns));
    let f = ss / ((ss_error - ss) / (df - 1) as f64);
    let p = distributions::f_tail(f, 1.0, (df - 1) as f64);
    (f.is_finite() && p.is_finite()).then_some(NonAdditivity { f, p })
}

/// Greenhouse and Geisser's ε and p.
fn sphericity(table: &Table, levels: &FTest) -> Option<(f64, f64)> {
    let (k, b) = table.shape();
    // The covariance of the settings over the blocks, less the means of its rows and columns.
    let means = table.row_means();
    let covariance = |i: usize, j: usize| {
        let pairs = table.row(i).iter().zip(table.row(j));
        pairs.map(|(x, y)| (x - means[i]) * (y - means[j])).sum::<f64>() / (b - 1) as f64
    };
    let matrix: Vec<Vec<f64>> = (0..k).map(|i| (0..k).map(|j| covariance(i, j)).collect()).collect();
    let row_means: Vec<f64> = matrix.iter().map(|row| mean(row)).collect();
    let grand = mean(&row_means);
    let centred = |i: usize, j: usize| matrix[i][j] - row_means[i] - row_means[j] + grand;
    let trace: f64 = (0..k).map(|i| centred(i, i)).sum();
    let square: f64 = (0..k).flat_map(|i| (0..k).map(move |j| (i, j))).map(|(i, j)| centred(i, j).powi(2)).sum();
    let epsilon = trace * trace / ((k - 1) as f64 * square);
    let f = levels.f?;
    let p = distributions::f_tail(f, epsilon * levels.df1, epsilon * levels.df2);
    (epsilon.is_finite() && p.is_finite()).then_some((epsilon, p))
}
