//! Which pairs of a fleet disturb one another: links that they share and that nobody named.
//!
//! Hosts of a mesh begin each run at a random time of its period. Where two pairs share a link, one is slower in those runs whose time
//! the other one's happened to cover. For each pair, `y` of a run is its mean log rate against that of the same settings in all its
//! runs, and `x` the share of its time that the other one's runs cover; that `y` falls with `x` is tested by permuting `x` among the
//! runs, which is exact where `x` came about by the random starts alone. Therefore only runs count in whose period the other one ran, too: a
//! pair that joins later, or is away for days, covers nothing before, and what drifted meanwhile isn't its work. And `x` counts every run of a pair as equally long, as the median one:
//! how long a run really took may depend on what slowed both, the hour or a third one. Holm's procedure bounds the
//! chance of a single wrong claim among all pairs, whatever depends on whatever.
//!
//! What this leaves out: pairs that a turn keeps apart, since they never overlap.
//!
//! # Source
//! Besag and Clifford, "Sequential Monte Carlo p-values", Biometrika 78 (1991). Holm, "A simple sequentially rejective multiple test
//! procedure", Scandinavian Journal of Statistics 6 (1979).

use rand::{Rng, RngExt as _};
use std::collections::BTreeMap;

/// Fewer runs say nothing: 720 orders of six.
const FEWEST_RUNS: usize = 6;
/// So many permutations at least as extreme end the drawing (Besag and Clifford).
const ENOUGH: usize = 20;

/// A trial of a run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunTrial {
    /// Its settings, by a number that is the same in all runs of its pair.
    pub arm: usize,
    /// The natural logarithm of its rate.
    pub log_rate: f64,
}

/// One run of a pair.
#[derive(Debug, Clone, PartialEq)]
pub struct PairRun {
    /// Which pair, by its number.
    pub pair: usize,
    /// When its first trial began, µs on a clock that all have in common.
    pub began_us: i64,
    /// When its last one ended.
    pub ended_us: i64,
    /// What it measured.
    pub trials: Vec<RunTrial>,
}

/// That one pair is slower while another one measures.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PairDisturbance {
    /// The pair that is slower.
    pub pair: usize,
    /// The one that slows it.
    pub by: usize,
    /// Its rate with the other one all the time over that without it; an estimate.
    pub ratio: f64,
    /// The chance of as much by random starts alone.
    pub p: f64,
    /// Runs of the pair in whose period the other one ran, too.
    pub runs: usize,
    /// Runs of it that the other one overlapped.
    pub overlapped: usize,
}

/// What was tested, and what is shown.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Disturbances {
    /// How many directions of pairs could be tested: enough runs, and some of them overlapped more than others.
    pub tested: usize,
    /// Those that are shown, the surest first; the chance that any of them is wrong is `alpha` at most.
    pub shown: Vec<PairDisturbance>,
}

impl Disturbances {
    /// Looks for them. Of each direction so many permutations are drawn at most as the number of directions takes.
    pub fn find(runs: &[PairRun], alpha: f64, rng: &mut impl Rng) -> Self {
        let mut of_pair: BTreeMap<usize, Vec<&PairRun>> = BTreeMap::new();
        for run in runs.iter().filter(|run| !run.trials.is_empty()) {
            of_pair.entry(run.pair).or_default().push(run);
        }
        let mut candidates = Vec::new();
        for (pair, own) in of_pair.iter().filter(|(_, own)| own.len() >= FEWEST_RUNS) {
            let slowness = slowness(own);
            let own_length = typical_length(own);
            for (by, others) in of_pair.iter().filter(|(by, _)| *by != pair) {
                let other_length = typical_length(others);
                let near = period(own).min(period(others)) / 2;
                let both = own.iter().zip(&slowness).filter(|(run, _)| ran_near(run.began_us, others, near));
                let covered = |run: &PairRun| covered(run.began_us, own_length, others, other_length);
                let (x, y): (Vec<f64>, Vec<f64>) = both.map(|(run, y)| (covered(run), *y)).unzip();
                if x.len() < FEWEST_RUNS {
                    continue;
                }
                let y = centred(y);
                let overlapped = x.iter().filter(|share| **share > 0.0).count();
                if x.iter().any(|share| (share - x[0]).abs() > 1e-9) && y.iter().any(|y| y.abs() > 0.0) {
                    candidates.push((*pair, *by, x, y, overlapped));
                }
            }
        }
        let tested = candidates.len();
        // Twice what the strictest step of Holm's procedure has to tell apart.
        let draws = ((2.0 * tested as f64 / alpha) as usize).clamp(999, 1_000_000);
        let mut found: Vec<PairDisturbance> = Vec::new();
        for (pair, by, x, y, overlapped) in candidates {
            let p = probability(&x, &y, draws, rng);
            found.push(PairDisturbance { pair, by, ratio: slope(&x, &y).exp(), p, runs: x.len(), overlapped });
        }
        found.sort_by(|a, b| a.p.total_cmp(&b.p));
        let is_shown = |(place, one): (usize, &PairDisturbance)| one.p * (tested - place) as f64 <= alpha;
        let shown = found.iter().enumerate().take_while(|(place, one)| is_shown((*place, one))).count();
        found.truncate(shown);
        Self { tested, shown: found }
    }

    /// Pairs that hang together by what is shown, each group sorted: who of them share something.
    #[must_use]
    pub fn groups(&self) -> Vec<Vec<usize>> {
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for PairDisturbance { pair, by, .. } in &self.shown {
            let (mut joined, rest): (Vec<_>, Vec<_>) =
                groups.into_iter().partition(|group| group.contains(pair) || group.contains(by));
            let mut group: Vec<usize> = joined.drain(..).flatten().chain([*pair, *by]).collect();
            group.sort_unstable();
            group.dedup();
            groups = rest;
            groups.push(group);
        }
        groups.sort();
        groups
    }
}

/// Each run's mean log rate against the mean of the same settings in all runs.
fn slowness(runs: &[&PairRun]) -> Vec<f64> {
    let mut arms: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
    for trial in runs.iter().flat_map(|run| &run.trials) {
        let (sum, count) = arms.entry(trial.arm).or_default();
        (*sum, *count) = (*sum + trial.log_rate, *count + 1.0);
    }
    let usual = |arm: usize| arms.get(&arm).map_or(0.0, |(sum, count)| sum / count);
    let of = |run: &&PairRun| {
        let sum: f64 = run.trials.iter().map(|trial| trial.log_rate - usual(trial.arm)).sum();
        sum / run.trials.len() as f64
    };
    runs.iter().map(of).collect()
}

fn typical_length(runs: &[&PairRun]) -> i64 {
    let mut lengths: Vec<i64> = runs.iter().map(|run| run.ended_us.saturating_sub(run.began_us).max(1)).collect();
    lengths.sort_unstable();
    lengths.get(lengths.len() / 2).copied().unwrap_or(1)
}

/// The time from one run to the next: that of which a quarter are shorter, since who stays away misses some.
fn period(runs: &[&PairRun]) -> i64 {
    let mut starts: Vec<i64> = runs.iter().map(|run| run.began_us).collect();
    starts.sort_unstable();
    let mut gaps: Vec<i64> = starts.windows(2).map(|two| two[1].saturating_sub(two[0])).collect();
    gaps.sort_unstable();
    gaps.get(gaps.len() / 4).copied().unwrap_or(i64::MAX)
}

/// Whether others began a run so near to this time that it was in the same period. What is left out by that is the same in all periods, so
/// that `x` stays a matter of the random starts.
fn ran_near(began: i64, others: &[&PairRun], near: i64) -> bool {
    others.iter().any(|other| other.began_us.abs_diff(began) <= near.unsigned_abs())
}

/// The share of a time from `began` that others' runs cover, each from its own beginning.
fn covered(began: i64, length: i64, others: &[&PairRun], other_length: i64) -> f64 {
    let mut spans: Vec<(i64, i64)> = others
        .iter()
        .map(|other| (other.began_us.max(began), (other.began_us + other_length).min(began + length)))
        .filter(|(from, until)| from < until)
        .collect();
    spans.sort_unstable();
    let (mut sum, mut last) = (0, i64::MIN);
    for (from, until) in spans {
        sum += (until - from.max(last)).max(0);
        last = last.max(until);
    }
    sum as f64 / length as f64
}

fn centred(mut values: Vec<f64>) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter_mut().for_each(|value| *value -= mean);
    values
}

fn product(x: &[f64], y: &[f64]) -> f64 {
    x.iter().zip(y).map(|(x, y)| x * y).sum()
}

fn slope(x: &[f64], y: &[f64]) -> f64 {
    let x = centred(x.to_vec());
    product(&x, y) / product(&x, &x)
}

/// The chance of so low a product under a random order of `x`.
fn probability(x: &[f64], y: &[f64], draws: usize, rng: &mut impl Rng) -> f64 {
    // Sums in another order differ in their last bits.
    let seen = product(x, y) + 1e-9;
    let mut order = x.to_vec();
    let mut as_low = 0;
    for drawn in 1..=draws {
        for last in (1..order.len()).rev() {
            order.swap(last, rng.random_range(0..=last));
        }
        as_low += usize::from(product(&order, y) <= seen);
        if as_low == ENOUGH {
            return ENOUGH as f64 / drawn as f64;
        }
    }
    (as_low + 1) as f64 / (draws + 1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    fn run(pair: usize, began_us: i64, log_rate: f64) -> PairRun {
        PairRun { pair, began_us, ended_us: began_us + 100, trials: vec![RunTrial { arm: 0, log_rate }] }
    }

    #[test]
    fn time_is_covered_once_however_many_runs_cover_it() {
        let others = [run(1, 50, 0.0), run(1, 60, 0.0), run(1, 400, 0.0)];
        let others: Vec<&PairRun> = others.iter().collect();
        assert!((covered(0, 100, &others, 100) - 0.5).abs() < 1e-12);
        assert!((covered(55, 100, &others, 100) - 1.0).abs() < 1e-12);
        assert!(covered(200, 100, &others, 100).abs() < 1e-12);
    }

    #[test]
    fn a_pair_that_is_always_slower_beside_another_is_named_and_the_other_isnt() {
        // Every second run of 0 has one of 1 beside it; 1 doesn't mind.
        let mut runs = Vec::new();
        for n in 0..20 {
            let at = n * 1000;
            runs.push(run(0, at, if n % 2 == 0 { -0.5 } else { 0.0 } + (n % 3) as f64 * 0.01));
            runs.push(run(1, at + if n % 2 == 0 { 0 } else { 300 }, (n * 7 % 5) as f64 * 0.1));
        }
        let mut rng = rand_chacha::ChaCha12Rng::seed_from_u64(1);
        let found = Disturbances::find(&runs, 0.05, &mut rng);
        assert_eq!((found.tested, found.shown.len()), (2, 1), "{found:?}");
        let one = found.shown[0];
        assert_eq!((one.pair, one.by, one.runs, one.overlapped), (0, 1, 20, 10));
        assert!((one.ratio.ln() + 0.5).abs() < 0.02, "{one:?}");
        assert_eq!(found.groups(), [[0, 1]]);
        // What never overlaps, or always, can't be tested; nor can five runs.
        let apart: Vec<PairRun> =
            runs.iter().filter(|run| run.began_us % 1000 == 0 || run.pair == 1).cloned().collect();
        assert_eq!(Disturbances::find(&apart[..10], 0.05, &mut rng), Disturbances::default());
    }
}
