//! What the adapter's path costs: the kernel behind an adapter and the kernel itself, exchange by exchange in turn.
//!
//! Trials one after the other don't decide it: what the machine does beside them differs from trial to trial by more than an
//! adapter costs. The differences of pairs that follow each other at once have that in common.

use super::result::Row;
use crate::commands::side_by_side::Trials;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use serde_json::{Value, json};
use std::time::Duration;
use wt_experiment::classic::{MedianInterval, median_interval};
use wt_load::Finish;
use wt_stacks::StackTunnel;
use wt_trial::{Phase, Repeat, TrialSpec, Workload};

/// The adapter's path shall cost no more than this, of a transaction.
const ALLOWED: f64 = 0.03;
/// How sure the interval is.
const CONFIDENCE: f64 = 0.95;
/// So many pairs for each transaction of a trial, within bounds.
const PAIRS: u32 = 5;
const FEWEST: u32 = 100;
const MOST: u32 = 3000;

/// What pairs of transactions said.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Overhead {
    pairs: usize,
    /// The medians of both ways, µs.
    direct_us: f64,
    behind_us: f64,
    /// Of the differences of pairs, µs.
    difference: MedianInterval,
}

/// The kernel itself and the kernel behind its adapter with the same settings, if both are compared.
pub(super) fn both(rows: &[Row]) -> Option<[usize; 2]> {
    let alike = |a: &Row, b: &Row| {
        let (a, b) = (a.choice(), b.choice());
        (a.window, a.mss, &a.options) == (b.window, b.mss, &b.options) && a.mtu == b.mtu
    };
    let is = |row: &Row, name: &str| row.choice().stack.name == name;
    rows.iter().enumerate().filter(|(_, row)| is(row, wt_stacks::catalogue::DIRECT)).find_map(|(direct, one)| {
        let behind = rows.iter().position(|other| is(other, "linux") && alike(one, other))?;
        Some([direct, behind])
    })
}

/// Runs pairs of such transactions.
///
/// # Errors
/// Why nothing was measured.
pub(super) fn measure(
    trials: &mut Trials<StackTunnel>,
    arms: [usize; 2],
    workload: &Workload,
    each: Duration,
) -> Result<Overhead, String> {
    let count = match workload {
        Workload::Transactions { amount: Repeat::Count(count), .. } => count.saturating_mul(PAIRS).clamp(FEWEST, MOST),
        _ => FEWEST,
    };
    let mut coins = ChaCha12Rng::seed_from_u64(trials.seed ^ 0x7061_6972);
    let spec = TrialSpec {
        experiment: trials.notebook.id().to_owned(),
        phase: Phase::Round,
        round: 0,
        order: 0,
        arm: arms[1],
        settings: trials.tunnel.arms()[arms[1]].settings(),
        workload: workload.clone(),
        deadline: each * 2 * count * 20 + Duration::from_secs(30),
        seed: trials.seed,
    };
    trials.say(&format!("the kernel with and without its adapter in turn: {count} pairs of transactions"));
    let first = || usize::from(coins.random_range(0..2_u8));
    let done = trials.tunnel.in_pairs(&spec, arms, count, first, &trials.cancel)?;
    match done.finish {
        Finish::Done => Overhead::of(&done.times_ns).ok_or_else(|| "too few pairs".to_owned()),
        other => Err(format!("{other:?}")),
    }
}

impl Overhead {
    /// Of pairs of times, ns: direct, and behind the adapter.
    fn of(times_ns: &[[u64; 2]]) -> Option<Self> {
        let us = |ns: u64| ns as f64 / 1e3;
        // So few digits come out of the journal as they went into it.
        let rounded = |us: f64| (us * 1e3).round() / 1e3;
        let column = |at: usize| -> Vec<f64> { times_ns.iter().map(|pair| us(pair[at])).collect() };
        let differences: Vec<f64> = times_ns.iter().map(|pair| us(pair[1]) - us(pair[0])).collect();
        let middle = |at: usize| median_interval(&column(at), CONFIDENCE).map(|found| found.median);
        Some(Self {
            pairs: times_ns.len(),
            direct_us: middle(0).filter(|us| *us > 0.0).map(rounded)?,
            behind_us: middle(1).map(rounded)?,
            difference: median_interval(&differences, CONFIDENCE).map(|found| MedianInterval {
                median: rounded(found.median),
                low: rounded(found.low),
                high: rounded(found.high),
            })?,
        })
    }

    /// As it stands in the journal.
    pub(super) fn from_json(told: &Value) -> Option<Self> {
        let number = |name: &str| told[name].as_f64();
        Some(Self {
            pairs: usize::try_from(told["pairs"].as_u64()?).ok()?,
            direct_us: number("direct_p50_us")?,
            behind_us: number("adapter_p50_us")?,
            difference: MedianInterval {
                median: number("median_us")?,
                low: number("low_us")?,
                high: number("high_us")?,
            },
        })
    }

    /// Whether it is shown to cost no more than is allowed, or to cost more; `None` where neither is.
    fn within(&self) -> Option<bool> {
        let [low, high] = [self.difference.low, self.difference.high].map(|us| us / self.direct_us);
        if low >= -ALLOWED && high <= ALLOWED {
            Some(true)
        } else {
            (low > ALLOWED || high < -ALLOWED).then_some(false)
        }
    }

    pub(super) fn json(&self) -> Value {
        let MedianInterval { median, low, high } = self.difference;
        let share = |us: f64| us / self.direct_us;
        json!({
            "workload": "transactions", "pairs": self.pairs,
            "direct_p50_us": self.direct_us, "adapter_p50_us": self.behind_us,
            "median_us": median, "low_us": low, "high_us": high,
            "share": share(median), "share_low": share(low), "share_high": share(high),
            "allowed": ALLOWED, "within": self.within(),
        })
    }

    pub(super) fn text(&self) -> String {
        let MedianInterval { median, low, high } = self.difference;
        let percent = |us: f64| us / self.direct_us * 100.0;
        let verdict = match self.within() {
            Some(true) => "within",
            Some(false) => "more than",
            None => "not decided against",
        };
        format!(
            "The adapter's path costs the kernel {median:+.1} µs of a transaction's {:.0} µs ({:+.2} %, with 95 % between {:+.2} and \
             {:+.2} %; {} pairs in turn): {verdict} {:.0} %.",
            self.direct_us,
            percent(median),
            percent(low),
            percent(high),
            self.pairs,
            ALLOWED * 100.0
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ways with the same noise, and what the adapter's path costs beyond, ns.
    fn pairs(cost: u64, own: u64) -> Vec<[u64; 2]> {
        let common = |n: u64| 2_000_000 + (n * 7919 % 97) * 20_000;
        (0..500).map(|n| [common(n), common(n) + cost + n * 31 % 11 * own]).collect()
    }

    #[test]
    fn what_an_adapter_costs_is_decided_where_noise_that_both_have_is_far_larger() {
        for (cost, within) in [(0, Some(true)), (50_000, Some(true)), (200_000, Some(false))] {
            let found = Overhead::of(&pairs(cost, 100)).unwrap();
            assert_eq!(found.within(), within, "{}", found.text());
            assert!((found.difference.median - cost as f64 / 1e3).abs() < 1.0, "{}", found.text());
            assert_eq!(Overhead::from_json(&found.json()), Some(found), "the journal gives it back");
        }
        // Noise of each way's own that is as large as what is asked leaves it open.
        let wide = |n: u64| 3_000_000 + n * 31 % 13 * 300_000;
        let noisy: Vec<[u64; 2]> = (0..20).map(|n| [wide(n), wide(n * 5 + 3)]).collect();
        let found = Overhead::of(&noisy).unwrap();
        assert!(found.within().is_none() && found.text().contains("not decided"), "{}", found.text());
        assert_eq!(Overhead::of(&pairs(0, 0)[..3]), None);
    }
}
