use super::permutation::each_relabelling;
use super::table::Table;
use crate::distributions;
use serde::Serialize;

/// Kruskal and Wallis's test: one-way analysis of variance on ranks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Kruskal {
    /// The statistic, corrected for ties.
    pub h: f64,
    /// Its p value by chi-squared.
    pub p: f64,
}

/// Friedman's test: ranks within blocks.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Friedman {
    /// The sum of each level's ranks.
    pub rank_sums: Vec<f64>,
    /// The statistic, corrected for ties.
    pub q: f64,
    /// Its p value by chi-squared.
    pub p: f64,
    /// Kendall's W: 0 where the blocks disagree, 1 where all rank alike.
    pub w: f64,
    /// Iman and Davenport's F; `None` where all blocks rank alike.
    pub iman_davenport: Option<f64>,
    /// Its p value.
    pub iman_davenport_p: Option<f64>,
}

/// The exact p value of Friedman's test over all relabellings within blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FriedmanExact {
    /// Relabellings with a statistic at least as large.
    pub as_large: u64,
    /// All relabellings.
    pub of: u64,
}

/// Average ranks from 1.
pub(crate) fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
    let mut ranks = vec![0.0; values.len()];
    let mut from = 0;
    while from < order.len() {
        let tied = order[from..].iter().take_while(|i| values[**i] == values[order[from]]).count();
        let rank = from as f64 + (tied + 1) as f64 / 2.0;
        for i in &order[from..from + tied] {
            ranks[*i] = rank;
        }
        from += tied;
    }
    ranks
}

/// Kruskal and Wallis's test of groups of any size; `None` with fewer than two groups, or if all is tied.
#[must_use]
pub fn kruskal(groups: &[&[f64]]) -> Option<Kruskal> {
    let all: Vec<f64> = groups.iter().flat_map(|g| g.iter().copied()).collect();
    let ranks = ranks(&all);
    let n = all.len() as f64;
    let mut from = 0;
    let mut between = 0.0;
    for group in groups.iter().filter(|g| !g.is_empty()) {
        let sum: f64 = ranks[from..from + group.len()].iter().sum();
        between += sum * sum / group.len() as f64;
        from += group.len();
    }
    let centre = n * (n + 1.0) * (n + 1.0) / 4.0;
    let spread = (ranks.iter().map(|r| r * r).sum::<f64>() - centre) / (n - 1.0);
    let h = (between - centre) / spread;
    let filled = groups.iter().filter(|g| !g.is_empty()).count();
    let p = distributions::chi_squared_tail(h, filled.saturating_sub(1) as f64);
    (filled > 1 && h.is_finite() && p.is_finite()).then_some(Kruskal { h, p })
}

/// The ranks within each block: one row for each block.
fn block_ranks(table: &Table) -> Vec<Vec<f64>> {
    (0..table.shape().1).map(|j| ranks(&table.column(j))).collect()
}

/// Friedman's test; `None` with a single block or if all is tied.
#[must_use]
pub fn friedman(table: &Table) -> Option<Friedman> {
    let (k, b) = table.shape();
    if b < 2 {
        return None;
    }
    let ranks = block_ranks(table);
    let rank_sums: Vec<f64> = (0..k).map(|i| ranks.iter().map(|block| block[i]).sum()).collect();
    let (kf, bf) = (k as f64, b as f64);
    let centre = bf * kf * (kf + 1.0).powi(2) / 4.0;
    let squares: f64 = ranks.iter().flatten().map(|r| r * r).sum();
    let sums: f64 = rank_sums.iter().map(|r| r * r).sum();
    let q = (kf - 1.0) * (sums - bf * centre) / (squares - centre);
    if !q.is_finite() {
        return None;
    }
    let f = (bf - 1.0) * q / (bf * (kf - 1.0) - q);
    let iman_davenport = (f.is_finite() && bf * (kf - 1.0) - q > 1e-9).then_some(f);
    Some(Friedman {
        rank_sums,
        q,
        p: distributions::chi_squared_tail(q, kf - 1.0),
        w: q / (bf * (kf - 1.0)),
        iman_davenport,
        iman_davenport_p: iman_davenport.map(|f| distributions::f_tail(f, kf - 1.0, (kf - 1.0) * (bf - 1.0))),
    })
}

/// The exact p value of Friedman's test; `None` with more than 10⁶ relabellings.
#[must_use]
pub fn friedman_exact(table: &Table) -> Option<FriedmanExact> {
    let (as_large, of) = each_relabelling(&block_ranks(table))?;
    Some(FriedmanExact { as_large, of })
}
