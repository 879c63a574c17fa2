use super::anova::{BlockedAnova, FTest, blocked_anova, one_way_anova};
use super::multiple::{McbInterval, PairComparison, against_the_best, against_the_first, all_pairs};
use super::permutation::{PermutationTest, pair_sign_flip, within_block_permutation};
use super::plan::{blocks_needed, detectable};
use super::ranks::{Kruskal, friedman, friedman_exact, kruskal};
use super::table::Table;
use super::two_deviations::{TwoDeviations, two_deviations};
use crate::describe::describe;
use crate::drift::{Trend, trend};
use crate::eprocess::{EProcess, evidence_series};
use rand::Rng;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Longer series of evidence are thinned to this many points.
const MOST_POINTS: usize = 2_000;
/// The gains for which the number of blocks is given, in percent.
const GAINS: [(&str, f64); 2] = [("20", 0.20), ("5", 0.05)];

/// Whether large or small outcomes are good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Rates.
    Higher,
    /// Times.
    Lower,
}

/// A level with its description.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LevelDescription {
    /// Its name.
    pub level: String,
    /// How many outcomes.
    pub n: usize,
    /// The arithmetic mean.
    pub mean: f64,
    /// The geometric mean.
    pub geometric_mean: f64,
    /// The standard deviation of a single outcome.
    pub sd: Option<f64>,
    /// The standard deviation of the mean.
    pub sd_of_mean: Option<f64>,
}

/// The analyses of variance of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Anovas {
    /// Without regard to blocks.
    pub one_way_raw: Option<FTest>,
    /// The same on logs.
    pub one_way_log: Option<FTest>,
    /// Within blocks.
    pub blocked_raw: Option<BlockedView>,
    /// The same on logs: ratios instead of differences.
    pub blocked_log: Option<BlockedView>,
}

/// A blocked analysis with the test of the levels in front.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct BlockedView {
    /// The statistic.
    pub f: Option<f64>,
    /// Its p value.
    pub p: Option<f64>,
    /// Everything else.
    #[serde(flatten)]
    pub all: BlockedAnova,
}

/// Friedman's test with all its p values.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FriedmanView {
    /// The statistic and what belongs to it.
    #[serde(flatten)]
    pub test: super::ranks::Friedman,
    /// The exact p value; `None` with more than 10⁶ relabellings.
    pub p_exact: Option<f64>,
}

/// The tests by relabelling within blocks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Permutations {
    /// On logs.
    pub log: Option<PermutationTest>,
    /// On what was measured.
    pub raw: Option<PermutationTest>,
}

/// A pair tested by flipping the signs of its differences.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairFlip {
    /// The first level.
    pub a: String,
    /// The second.
    pub b: String,
    /// The test.
    #[serde(flatten)]
    pub test: PermutationTest,
}

/// The gains that a table of this size and noise would show with a power of 80 %.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MdeView {
    /// For a single comparison, in percent.
    pub ratio_percent: f64,
    /// For each of all pairs.
    pub all_pairs_percent: f64,
}

/// The evidence that `a` is better than `b`, block after block.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PairEvidence {
    /// The first level.
    pub a: String,
    /// The second.
    pub b: String,
    /// After each block; thinned if there are thousands.
    pub e: Vec<f64>,
    /// The same for "worse".
    pub e_worse: Vec<f64>,
}

/// Everything that a complete table in blocks allows one to say.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TableAnalysis {
    /// Whether large or small outcomes are good.
    pub better: Better,
    /// Every level.
    pub describe: Vec<LevelDescription>,
    /// Analyses of variance.
    pub anova: Anovas,
    /// Kruskal and Wallis's test, without regard to blocks.
    pub kruskal: Option<Kruskal>,
    /// Friedman's test, within blocks.
    pub friedman: Option<FriedmanView>,
    /// Tests by relabelling.
    pub permutation: Permutations,
    /// All pairs on logs, `ratio` being a/b.
    pub tukey: Vec<PairComparison>,
    /// Every other level against the first, on logs, `ratio` being a/b.
    pub dunnett: Vec<PairComparison>,
    /// Every level against the best of the others; `low` and `high` in percent.
    pub mcb: Vec<McbInterval>,
    /// Every pair by sign flips.
    pub sign_flip: Vec<PairFlip>,
    /// What the old rule of thumb would say: "two standard deviations or more".
    pub two_deviations: Option<TwoDeviations>,
    /// What the table could have shown.
    pub mde: Option<MdeView>,
    /// Blocks that a true gain of so many percent takes, for a single comparison.
    pub blocks_needed: BTreeMap<String, Option<usize>>,
    /// The same for each of all pairs.
    pub blocks_needed_all_pairs: BTreeMap<String, Option<usize>>,
    /// Evidence of every pair; it holds even if somebody looked at the table while it grew.
    pub evidence: Vec<PairEvidence>,
    /// The evidence that a claim of "better than the first level" needs.
    pub evidence_needed: f64,
    /// Whether the blocks rise or fall in their order.
    pub drift: Option<Trend>,
    /// One sentence or a few that a person can act on.
    pub verdict: String,
    /// Whether a difference is shown.
    pub difference_shown: bool,
}

/// The figures of a complete table of positive outcomes, without a verdict; `None` if an outcome isn't positive.
pub(super) fn figures(table: &Table, better: Better, rng: &mut impl Rng) -> Option<TableAnalysis> {
    let log = table.log()?;
    let (k, b) = table.shape();
    let rows: Vec<&[f64]> = table.rows().collect();
    let log_rows: Vec<&[f64]> = log.rows().collect();
    let raw_anova = blocked_anova(table);
    let log_anova = blocked_anova(&log);
    // Without noise there is no scale to compare by.
    let scaled = log_anova.filter(|a| a.levels.f.is_some());
    let planned = |all_pairs: bool| {
        let row = |(name, gain): (&str, f64)| {
            let needed = scaled.map(|a| blocks_needed(k, a.mse, gain));
            (name.to_owned(), needed.and_then(|(single, all)| if all_pairs { all } else { single }))
        };
        GAINS.map(row).into_iter().collect()
    };
    Some(TableAnalysis {
        better,
        describe: describe_levels(table),
        anova: Anovas {
            one_way_raw: one_way_anova(&rows),
            one_way_log: one_way_anova(&log_rows),
            blocked_raw: raw_anova.map(view),
            blocked_log: log_anova.map(view),
        },
        kruskal: kruskal(&rows),
        friedman: friedman(table).map(|test| FriedmanView {
            test,
            p_exact: friedman_exact(table).map(|exact| exact.as_large as f64 / exact.of as f64),
        }),
        permutation: Permutations {
            log: within_block_permutation(&log, rng),
            raw: within_block_permutation(table, rng),
        },
        tukey: scaled.map(|a| all_pairs(&log, &a)).unwrap_or_default(),
        dunnett: scaled.map(|a| against_the_first(&log, &a)).unwrap_or_default(),
        mcb: scaled.map(|a| best_in_percent(&log, &a, better)).unwrap_or_default(),
        sign_flip: if b > 1 { sign_flips(&log, rng) } else { Vec::new() },
        two_deviations: (b > 1).then(|| two_deviations(table)),
        mde: scaled
            .map(|a| detectable(k, b, a.mse))
            .map(|d| MdeView { ratio_percent: d.single * 100.0, all_pairs_percent: d.all_pairs * 100.0 }),
        blocks_needed: planned(false),
        blocks_needed_all_pairs: planned(true),
        evidence: evidence(&log, better),
        evidence_needed: (k - 1) as f64 / 0.05,
        drift: trend(&(0..b).map(|j| crate::describe::mean(&log.column(j))).collect::<Vec<_>>(), rng),
        verdict: String::new(),
        difference_shown: false,
    })
}

fn view(all: BlockedAnova) -> BlockedView {
    BlockedView { f: all.levels.f, p: all.levels.p, all }
}

fn describe_levels(table: &Table) -> Vec<LevelDescription> {
    let row = |(i, level): (usize, &String)| {
        let d = describe(table.row(i))?;
        let geometric_mean = d.geometric_mean?;
        Some(LevelDescription {
            level: level.clone(),
            n: d.n,
            mean: d.mean,
            geometric_mean,
            sd: d.sd,
            sd_of_mean: d.sd_of_mean,
        })
    };
    table.levels().iter().enumerate().filter_map(row).collect()
}

/// Hsu's intervals in percent; where less is better, of the reciprocals.
fn best_in_percent(log: &Table, anova: &BlockedAnova, better: Better) -> Vec<McbInterval> {
    let oriented = match better {
        Better::Higher => log.clone(),
        Better::Lower => log.negated(),
    };
    let percent = |ratio: f64| (ratio - 1.0) * 100.0;
    against_the_best(&oriented, anova)
        .into_iter()
        .map(|row| McbInterval { low: percent(row.low), high: percent(row.high), ..row })
        .collect()
}

fn pairs(table: &Table) -> impl Iterator<Item = (usize, usize)> {
    let k = table.shape().0;
    (0..k).flat_map(move |a| (a + 1..k).map(move |b| (a, b)))
}

fn differences(log: &Table, a: usize, b: usize) -> Vec<f64> {
    log.row(a).iter().zip(log.row(b)).map(|(a, b)| a - b).collect()
}

fn sign_flips(log: &Table, rng: &mut impl Rng) -> Vec<PairFlip> {
    let name = |i: usize| log.levels()[i].clone();
    let flip = |(a, b): (usize, usize)| {
        let test = pair_sign_flip(&differences(log, a, b), rng)?;
        Some(PairFlip { a: name(a), b: name(b), test })
    };
    pairs(log).filter_map(flip).collect()
}

fn evidence(log: &Table, better: Better) -> Vec<PairEvidence> {
    let sign = if better == Better::Higher { 1.0 } else { -1.0 };
    let row = |(a, b): (usize, usize)| {
        let d: Vec<f64> = differences(log, a, b).iter().map(|d| sign * d).collect();
        PairEvidence {
            a: log.levels()[a].clone(),
            b: log.levels()[b].clone(),
            e: thinned(evidence_series(EProcess::new(), &d)),
            e_worse: thinned(evidence_series(EProcess::below(0.0), &d)),
        }
    };
    pairs(log).map(row).collect()
}

/// At most [`MOST_POINTS`] of them, the last one among them.
fn thinned(series: Vec<f64>) -> Vec<f64> {
    let step = series.len().div_ceil(MOST_POINTS).max(1);
    let last = series.len().saturating_sub(1);
    series.into_iter().enumerate().filter(|(i, _)| (last - i).is_multiple_of(step)).map(|(_, e)| e).collect()
}
