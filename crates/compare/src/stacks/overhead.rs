//! What the adapter's path costs: the kernel behind an adapter and the kernel itself, exchange by exchange in turn.
//!
//! Trials one after the other don't decide it: what the machine does beside them differs from trial to trial by more than an
//! adapter costs. The differences of pairs that follow each other at once have that in common.

use super::trials::StackTrials;
use crate::event::CompareEvent;
use crate::rounds::Rounds;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha12Rng;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::time::Duration;
use wt_experiment::classic::median_interval;
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
/// Pairs that follow each other depend on each other: the interval is that of the medians of so many batches, or more, each
/// of up to so many pairs.
const BATCHES: usize = 20;
const BATCH: usize = 50;

/// What pairs of transactions said, or why nothing.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PairedOverhead {
    /// What they said.
    Measured(AdapterOverhead),
    /// Nothing was measured.
    NotMeasured {
        /// Why.
        why: String,
    },
}

/// What pairs of transactions said.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AdapterOverhead {
    /// What the pairs are of.
    pub workload: &'static str,
    /// The times.
    #[serde(flatten)]
    pub times: PairedTimes,
    /// The difference as a share of the direct way.
    pub share: f64,
    /// Its lower bound.
    pub share_low: f64,
    /// Its upper bound.
    pub share_high: f64,
    /// The adapter's path shall cost no more than this share.
    pub allowed: f64,
    /// Whether it is shown to cost no more than is allowed, or to cost more; `None` where neither is.
    pub within: Option<bool>,
}

/// Times of pairs of transactions, one of each pair with the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct PairedTimes {
    /// How many pairs.
    pub pairs: usize,
    /// The median of the direct way, µs.
    pub direct_p50_us: f64,
    /// The median of the way through the adapter, µs.
    pub adapter_p50_us: f64,
    /// The median of the differences, µs.
    pub median_us: f64,
    /// The lower end of its interval, µs.
    pub low_us: f64,
    /// The upper end, µs.
    pub high_us: f64,
}

/// The kernel itself and the kernel behind its adapter with the same settings, if both are compared.
pub(super) fn both(stacks: &[StackTrials]) -> Option<[usize; 2]> {
    let alike = |a: &StackTrials, b: &StackTrials| {
        let (a, b) = (a.choice(), b.choice());
        (a.window, a.mss, &a.options) == (b.window, b.mss, &b.options) && a.mtu == b.mtu
    };
    let is = |one: &StackTrials, name: &str| one.choice().stack.name == name;
    stacks.iter().enumerate().filter(|(_, one)| is(one, wt_stacks::catalogue::DIRECT)).find_map(|(direct, one)| {
        let behind = stacks.iter().position(|other| is(other, "linux") && alike(one, other))?;
        Some([direct, behind])
    })
}

/// Runs pairs of such transactions.
pub(super) fn measure(
    rounds: &mut Rounds<'_, StackTunnel>,
    arms: [usize; 2],
    workload: &Workload,
    each: Duration,
) -> PairedOverhead {
    let count = match workload {
        Workload::Transactions { amount: Repeat::Count(count), .. } => count.saturating_mul(PAIRS).clamp(FEWEST, MOST),
        _ => FEWEST,
    };
    let mut coins = ChaCha12Rng::seed_from_u64(rounds.order_seed ^ 0x7061_6972);
    let spec = TrialSpec {
        experiment: rounds.notebook.id().to_owned(),
        phase: Phase::Round,
        round: 0,
        order: 0,
        arm: arms[1],
        settings: rounds.tunnel.arms()[arms[1]].settings(),
        workload: workload.clone(),
        deadline: each * 2 * count * 20 + Duration::from_secs(30),
        seed: rounds.seed,
    };
    rounds.tell(CompareEvent::Pairs { pairs: count });
    let first = || usize::from(coins.random_range(0..2_u8));
    let not_measured = |why: String| PairedOverhead::NotMeasured { why };
    match rounds.tunnel.in_pairs(&spec, arms, count, first, rounds.cancel) {
        Ok(done) if done.finish == Finish::Done => AdapterOverhead::of(&done.times_ns)
            .map_or_else(|| not_measured("too few pairs".to_owned()), PairedOverhead::Measured),
        Ok(done) => not_measured(format!("{:?}", done.finish)),
        Err(why) => not_measured(why),
    }
}

impl PairedOverhead {
    /// As it stands in the journal; `None` where nothing does.
    pub(super) fn from_json(kept: &Value) -> Option<Self> {
        let why = || Some(Self::NotMeasured { why: kept["why"].as_str()?.to_owned() });
        PairedTimes::deserialize(kept).ok().map(|times| Self::Measured(times.into())).or_else(why)
    }

    /// In words.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Measured(overhead) => overhead.text(),
            Self::NotMeasured { why } => format!("What the adapter's path costs was not measured: {why}."),
        }
    }
}

impl From<PairedTimes> for AdapterOverhead {
    fn from(times: PairedTimes) -> Self {
        let share = |us: f64| us / times.direct_p50_us;
        let (low, high) = (share(times.low_us), share(times.high_us));
        let within = if low >= -ALLOWED && high <= ALLOWED {
            Some(true)
        } else {
            (low > ALLOWED || high < -ALLOWED).then_some(false)
        };
        Self {
            workload: "transactions",
            times,
            share: share(times.median_us),
            share_low: low,
            share_high: high,
            allowed: ALLOWED,
            within,
        }
    }
}

impl AdapterOverhead {
    /// Of pairs of times, ns: direct, and behind the adapter.
    fn of(times_ns: &[[u64; 2]]) -> Option<Self> {
        let us = |ns: u64| ns as f64 / 1e3;
        // So few digits come out of the journal as they went into it.
        let rounded = |us: f64| (us * 1e3).round() / 1e3;
        let column = |at: usize| -> Vec<f64> { times_ns.iter().map(|pair| us(pair[at])).collect() };
        let differences: Vec<f64> = times_ns.iter().map(|pair| us(pair[1]) - us(pair[0])).collect();
        let middle = |at: usize| median_interval(&column(at), CONFIDENCE).map(|found| found.median);
        let direct_p50_us = middle(0).filter(|us| *us > 0.0).map(rounded)?;
        let adapter_p50_us = middle(1).map(rounded)?;
        let length = (differences.len() / BATCHES).clamp(1, BATCH);
        let batches: Vec<f64> =
            differences.chunks_exact(length).filter_map(|batch| super::figures::median(batch.to_vec())).collect();
        let found = median_interval(&batches, CONFIDENCE)?;
        let times = PairedTimes {
            pairs: times_ns.len(),
            direct_p50_us,
            adapter_p50_us,
            median_us: rounded(found.median),
            low_us: rounded(found.low),
            high_us: rounded(found.high),
        };
        Some(times.into())
    }

    /// In words.
    fn text(&self) -> String {
        let PairedTimes { pairs, direct_p50_us, median_us, .. } = self.times;
        let verdict = match self.within {
            Some(true) => "within",
            Some(false) => "more than",
            None => "not decided against",
        };
        format!(
            "The adapter's path costs the kernel {median_us:+.1} µs of a transaction's {direct_p50_us:.0} µs ({:+.2} %, with 95 % \
             between {:+.2} and {:+.2} %; {pairs} pairs in turn): {verdict} {:.0} %.",
            self.share * 100.0,
            self.share_low * 100.0,
            self.share_high * 100.0,
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
            let found = AdapterOverhead::of(&pairs(cost, 100)).unwrap();
            assert_eq!(found.within, within, "{}", found.text());
            assert!((found.times.median_us - cost as f64 / 1e3).abs() < 1.0, "{}", found.text());
            let found = PairedOverhead::Measured(found);
            let kept = serde_json::to_value(&found).unwrap();
            assert_eq!(PairedOverhead::from_json(&kept), Some(found), "the journal gives it back");
        }
        let failed = PairedOverhead::NotMeasured { why: "stopped".to_owned() };
        assert_eq!(PairedOverhead::from_json(&serde_json::to_value(&failed).unwrap()), Some(failed));
        assert_eq!(PairedOverhead::from_json(&Value::Null), None);
        // Noise of each way's own that is as large as what is asked leaves it open.
        let wide = |n: u64| 3_000_000 + n * 31 % 13 * 300_000;
        let noisy: Vec<[u64; 2]> = (0..20).map(|n| [wide(n), wide(n * 5 + 3)]).collect();
        let found = AdapterOverhead::of(&noisy).unwrap();
        assert!(found.within.is_none() && found.text().contains("not decided"), "{}", found.text());
        assert_eq!(AdapterOverhead::of(&pairs(0, 0)[..3]), None);
    }
}
