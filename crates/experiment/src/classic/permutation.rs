use super::table::Table;
use rand::Rng;
use rand::seq::SliceRandom as _;
use serde::Serialize;

/// Up to this many relabellings all are tried.
const MOST_EXACT: u64 = 1_000_000;
/// How many cells the sampled relabellings may touch in all.
const WORK: usize = 100_000_000;

/// A test by relabelling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct PermutationTest {
    /// The p value; when sampled, the observed labelling counts as one of the sample.
    pub p: f64,
    /// Relabellings with a statistic at least as large.
    pub as_large: u64,
    /// Relabellings that were tried.
    pub of: u64,
    /// Whether those are all there are.
    pub exact: bool,
}

impl PermutationTest {
    fn exact((as_large, of): (u64, u64)) -> Self {
        Self { p: as_large as f64 / of as f64, as_large, of, exact: true }
    }

    fn sampled(as_large: u64, of: u64) -> Self {
        Self { p: (as_large + 1) as f64 / (of + 1) as f64, as_large, of, exact: false }
    }
}

/// Whether the settings differ, by relabelling within blocks: as the blocked F test, without normal noise. Exact up to
/// 10⁶ relabellings, by sampling beyond; `None` with a single block.
pub fn within_block_permutation(table: &Table, rng: &mut impl Rng) -> Option<PermutationTest> {
    let (k, b) = table.shape();
    if b < 2 {
        return None;
    }
    let blocks: Vec<Vec<f64>> = (0..b).map(|j| centred(table.column(j))).collect();
    if let Some(counts) = each_relabelling(&blocks) {
        return Some(PermutationTest::exact(counts));
    }
    let (observed, slack) = observed(&blocks);
    let samples = (WORK / (k * b)).clamp(199, 99_999) as u64;
    let mut as_large = 0;
    let mut column = Vec::with_capacity(k);
    for _ in 0..samples {
        let mut sums = vec![0.0; k];
        for block in &blocks {
            column.clone_from(block);
            column.shuffle(rng);
            sums.iter_mut().zip(&column).for_each(|(sum, y)| *sum += y);
        }
        as_large += u64::from(statistic(&sums) >= observed - slack);
    }
    Some(PermutationTest::sampled(as_large, samples))
}

/// Whether the differences of a pair lie around zero, by flipping their signs, two-sided. Exact up to 10⁶ patterns, by
/// sampling beyond; `None` without a difference.
pub fn pair_sign_flip(differences: &[f64], rng: &mut impl Rng) -> Option<PermutationTest> {
    let n = differences.len();
    if n == 0 || differences.iter().any(|d| !d.is_finite()) {
        return None;
    }
    let observed = differences.iter().sum::<f64>().abs();
    let slack = 1e-9 * differences.iter().map(|d| d.abs()).sum::<f64>();
    let flipped = |sign: &mut dyn FnMut(usize) -> bool| -> f64 {
        differences.iter().enumerate().map(|(i, d)| if sign(i) { *d } else { -d }).sum::<f64>()
    };
    if n < 20 {
        let all = 1u64 << n;
        let large = |pattern: &u64| flipped(&mut |i| pattern >> i & 1 == 1).abs() >= observed - slack;
        return Some(PermutationTest::exact(((0..all).filter(large).count() as u64, all)));
    }
    let samples = (WORK / n).clamp(199, 99_999) as u64;
    let mut bits = 0u64;
    let mut as_large = 0;
    for _ in 0..samples {
        let mut coin = |i: usize| {
            if i.is_multiple_of(64) {
                bits = rng.next_u64();
            }
            bits >> (i % 64) & 1 == 1
        };
        as_large += u64::from(flipped(&mut coin).abs() >= observed - slack);
    }
    Some(PermutationTest::sampled(as_large, samples))
}

/// How many of all relabellings within blocks have a sum of squared level sums at least as large as the observed one, and
/// how many there are; `None` if there are more than 10⁶. The first block stays as it is: only relative labels matter.
pub(super) fn each_relabelling(blocks: &[Vec<f64>]) -> Option<(u64, u64)> {
    let k = blocks.first()?.len();
    let orders = (2..=k as u64).try_fold(1u64, |n, i| n.checked_mul(i).filter(|n| *n <= MOST_EXACT))?;
    let of = (1..blocks.len()).try_fold(1u64, |n, _| n.checked_mul(orders).filter(|n| *n <= MOST_EXACT))?;
    let (observed, slack) = observed(blocks);
    let mut search = Search { permuted: blocks.to_vec(), need: observed - slack, as_large: 0 };
    let first = blocks[0].clone();
    search.block(1, &first);
    Some((search.as_large, of))
}

/// Goes through the orders of one block after another.
struct Search {
    permuted: Vec<Vec<f64>>,
    need: f64,
    as_large: u64,
}

impl Search {
    fn block(&mut self, block: usize, sums: &[f64]) {
        if block == self.permuted.len() {
            self.as_large += u64::from(statistic(sums) >= self.need);
            return;
        }
        self.order(block, 0, sums);
    }

    /// Goes through all orders of the cells from `from` on, by exchange and back.
    fn order(&mut self, block: usize, from: usize, sums: &[f64]) {
        let k = sums.len();
        if from + 1 >= k {
            let next: Vec<f64> = sums.iter().zip(&self.permuted[block]).map(|(sum, y)| sum + y).collect();
            self.block(block + 1, &next);
            return;
        }
        for i in from..k {
            self.permuted[block].swap(from, i);
            self.order(block, from + 1, sums);
            self.permuted[block].swap(from, i);
        }
    }
}

fn centred(column: Vec<f64>) -> Vec<f64> {
    let mean = column.iter().sum::<f64>() / column.len() as f64;
    column.into_iter().map(|y| y - mean).collect()
}

/// The statistic as observed, and what rounding may take from an equal one.
fn observed(blocks: &[Vec<f64>]) -> (f64, f64) {
    let k = blocks.first().map_or(0, Vec::len);
    let sums: Vec<f64> = (0..k).map(|i| blocks.iter().map(|block| block[i]).sum()).collect();
    let most: f64 = blocks.iter().flatten().map(|y| y * y).sum::<f64>() * blocks.len() as f64;
    (statistic(&sums), 1e-10 * most)
}

fn statistic(sums: &[f64]) -> f64 {
    sums.iter().map(|s| s * s).sum()
}
