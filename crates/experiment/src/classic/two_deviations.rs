use super::table::Table;
use crate::describe::{mean, squares};
use crate::distributions::t_two_sided;
use serde::Serialize;

/// The rule of thumb that two means differ if they are two standard deviations of a mean apart, and how often it errs: told beside
/// the tests, since older studies judged by it.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct TwoDeviations {
    /// Standard deviation of one outcome within its level, pooled over the levels; in the outcome's unit.
    pub of_one: f64,
    /// The same of a level's mean.
    pub of_mean: f64,
    /// Pairs of levels.
    pub pairs: usize,
    /// Pairs whose means are at least two of the latter apart.
    pub beyond: usize,
    /// How many would be if no level differed, in the mean of many such tables.
    pub by_chance: f64,
}

/// Counts a table's pairs by that rule; it has two blocks at least. As the rule does, it knows nothing of blocks.
///
/// Under no difference two means are apart by t times √2 standard deviations of a mean, with k (b - 1) degrees of freedom.
pub(super) fn two_deviations(table: &Table) -> TwoDeviations {
    let (k, b) = table.shape();
    let rows: Vec<&[f64]> = table.rows().collect();
    let of_one = (rows.iter().map(|row| squares(row)).sum::<f64>() / (k * (b - 1)) as f64).sqrt();
    let of_mean = of_one / (b as f64).sqrt();
    let means: Vec<f64> = rows.iter().map(|row| mean(row)).collect();
    let apart = |i: usize| means[i + 1..].iter().filter(|other| (means[i] - **other).abs() >= 2.0 * of_mean).count();
    let beyond = if of_mean > 0.0 { (0..k).map(apart).sum() } else { 0 };
    let pairs = k * (k - 1) / 2;
    let by_chance = pairs as f64 * t_two_sided(2.0 / 2.0_f64.sqrt(), (k * (b - 1)) as f64);
    TwoDeviations { of_one, of_mean, pairs, beyond, by_chance }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_studys_own_figures_come_out_and_chance_is_told() {
        // Four runs at each of two levels, whose means are 11 apart.
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let cells = vec![90.0, 110.0, 100.0, 100.0, 101.0, 121.0, 111.0, 111.0];
        let table = Table::new(names(&["a", "b"]), names(&["1", "2", "3", "4"]), cells).unwrap();
        let found = two_deviations(&table);
        // Squares 200 at each level, with 3 degrees of freedom.
        let deviation = (200.0_f64 / 3.0).sqrt();
        assert!((found.of_one - deviation).abs() < 1e-9 && (found.of_mean - deviation / 2.0).abs() < 1e-9);
        assert_eq!((found.pairs, found.beyond), (1, 1));
        // P(|t| >= 1.4142) with 6 degrees of freedom.
        assert!((found.by_chance - 0.2070).abs() < 5e-4, "{}", found.by_chance);
    }
}
