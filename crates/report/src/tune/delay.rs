//! The same speed with less delay: delay under load is the RTT that a transfer lives with, its queue included.
//!
//! A setting is chosen by what the rounds show, and tested on trials that come after: rounds of two, it and what it is
//! compared with, in random order. Claimed is that it is within ε in goodput **and** has less delay; as both have to be shown,
//! each at the whole share of α that is kept for it, a false claim is as rare as that share.
//!
//! What this leaves out: the delay of packets that the sender's smoothed RTT doesn't see, and of other flows.

use super::TrialFigure;
use super::figures::counted_bps;
use super::granted::granted;
use crate::words;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use utoipa::ToSchema;
use wt_experiment::{EProcess, evidence_series, lower_bound};
use wt_trial::{Phase, Status, TrialRecord, Workload};
use wt_units::{counted, upper_median};

/// Less than this share of the delay isn't worth a test.
const WORTH: f64 = 0.92;
/// Rounds in which a setting must have been compared before it is chosen.
const FEWEST: usize = 2;
/// Rounds beyond the fewest that a test is given.
const SPARE: usize = 6;
/// What a trial counts as that moved nothing or wasn't completed, as the log of a ratio: far worse than any other.
const WORST: f64 = -10.0;

/// What is known of the setting that may have less delay at the same speed.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
pub struct DelayReport {
    /// The setting.
    pub arm: usize,
    /// What it was compared with.
    pub against: usize,
    /// Its delay under load, µs: the geometric mean over these rounds.
    pub delay_us: f64,
    /// That of the other.
    pub against_delay_us: f64,
    /// Its goodput, bit/s: the geometric mean over these rounds.
    pub goodput_bps: f64,
    /// That of the other.
    pub against_goodput_bps: f64,
    /// By which share its delay is at least smaller, with probability 1 − `alpha`; `null` while nothing is excluded.
    pub at_least: Option<f64>,
    /// The share by which its goodput may lie behind.
    pub epsilon: f64,
    /// The evidence for less delay.
    pub evidence: f64,
    /// The evidence for a goodput within `epsilon`.
    pub within_evidence: f64,
    /// The evidence that each of them needs.
    pub needed: f64,
    /// Rounds.
    pub rounds: usize,
    /// Whether it is shown: both have the evidence that they need.
    pub shown: bool,
}

/// How less delay is claimed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DelayRules {
    /// The probability of a false claim: a part of the experiment's.
    pub alpha: f64,
    /// The share by which the goodput may lie behind.
    pub epsilon: f64,
}

/// A test of less delay that isn't decided: of a setting that promises it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct OpenDelayTest {
    /// The setting.
    pub arm: usize,
    /// What it is compared with.
    pub against: usize,
    /// The share by which its delay looks smaller: by its own rounds, and before there are any by those of the race.
    pub less: f64,
    /// Rounds of its own so far.
    pub rounds: usize,
    /// The fewest further rounds in which it could be shown.
    pub fewest: usize,
    /// As many as it is given where there is room: enough where what is promised is so.
    pub most: usize,
}

impl DelayRules {
    /// The evidence that a claim needs.
    #[must_use]
    pub fn needed(&self) -> f64 {
        1.0 / self.alpha
    }

    /// The fewest rounds in which that can be reached.
    #[must_use]
    pub fn fewest_rounds(&self) -> usize {
        let most = |n: usize| EProcess::above(-1.0).after(&vec![0.0; n]).evidence();
        (1..100).find(|n| most(*n) >= self.needed()).unwrap_or(100)
    }

    /// The setting that is worth a test: within half of ε by the rounds so far, with the least delay of all, and clearly less
    /// than that of `against`. Nothing where delay isn't known, or something else than goodput is compared.
    #[must_use]
    pub fn candidate(&self, records: &[TrialRecord], against: usize) -> Option<usize> {
        self.promise(records, against).map(|(arm, _)| arm)
    }

    /// That setting, and the share by which its delay looks smaller.
    fn promise(&self, records: &[TrialRecord], against: usize) -> Option<(usize, f64)> {
        let rounds: Vec<&TrialRecord> = records.iter().filter(|r| r.spec.phase == Phase::Round).collect();
        let bulk = rounds.first().is_some_and(|r| matches!(r.spec.workload, Workload::Bulk { .. }));
        if !bulk || !TrialFigure::of(&rounds).is_goodput() {
            return None;
        }
        let not_set: Vec<usize> = granted(&rounds).iter().filter(|g| g.mostly_differs()).map(|g| g.arm).collect();
        let valid: Vec<&TrialRecord> = rounds.iter().filter(|r| r.outcome.status != Status::Invalid).copied().collect();
        let arms = rounds.iter().map(|r| r.spec.arm).max().unwrap_or(0) + 1;
        let found = (1..arms).filter(|arm| *arm != against && !not_set.contains(arm)).filter_map(|arm| {
            let pairs = Pairs::of(&valid, against, arm);
            let (goodput, delay) = (pairs.mean(&pairs.goodput)?, pairs.mean(&pairs.delay)?);
            let worth = pairs.goodput.len() >= FEWEST && goodput >= (1.0 - self.epsilon / 2.0).ln();
            Some((arm, delay)).filter(|_| worth && delay >= -WORTH.ln())
        });
        found.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(arm, delay)| (arm, -(-delay).exp_m1()))
    }

    /// The test of less delay that these trials leave open; `None` where no setting promises that, or it is shown or can hardly be.
    #[must_use]
    pub fn open_test(&self, records: &[TrialRecord], against: usize) -> Option<OpenDelayTest> {
        let arm = self.next_test(records, against)?;
        let begun = self.report(records, against);
        if begun.as_ref().is_some_and(|delay| delay.shown || delay.is_futile()) {
            return None;
        }
        let rounds = begun.as_ref().map_or(0, |delay| delay.rounds);
        let less = begun.map_or_else(|| self.promise(records, against).map_or(0.0, |(_, less)| less), |it| it.less());
        let whole = self.whole_test();
        let fewest = whole.fewest.saturating_sub(rounds).max(1);
        Some(OpenDelayTest { arm, against, less, rounds, fewest, most: fewest + SPARE })
    }

    /// A test that has no round yet, of whichever setting.
    #[must_use]
    pub fn whole_test(&self) -> OpenDelayTest {
        let fewest = self.fewest_rounds();
        OpenDelayTest { arm: 0, against: 0, less: 0.0, rounds: 0, fewest, most: fewest + SPARE }
    }

    /// The setting that is tested against `against` next: the one whose rounds have begun, else the [candidate](Self::candidate).
    /// Nothing where other settings were tested: a second test would run the whole risk once more.
    #[must_use]
    pub fn next_test(&self, records: &[TrialRecord], against: usize) -> Option<usize> {
        match tested(records, against) {
            Some((arm, other)) => Some(arm).filter(|_| other == against),
            None => self.candidate(records, against),
        }
    }

    /// What the trials that were run for it show, whichever setting is recommended by now; `None` without a whole round.
    #[must_use]
    pub fn report(&self, records: &[TrialRecord], against: usize) -> Option<DelayReport> {
        let own: Vec<&TrialRecord> = records.iter().filter(|r| r.spec.phase == Phase::Delay).collect();
        let (arm, against) = tested(records, against)?;
        let pairs = Pairs::of(&own, against, arm);
        let typical = |of: usize, figure: fn(&TrialRecord) -> Option<f64>| {
            let logs: Vec<f64> =
                own.iter().filter(|r| r.spec.arm == of).filter_map(|r| figure(r)).map(f64::ln).collect();
            (!logs.is_empty()).then(|| (logs.iter().sum::<f64>() / logs.len() as f64).exp())
        };
        let peak = |process, differences: &[f64]| evidence_series(process, differences).into_iter().fold(1.0, f64::max);
        let evidence = peak(EProcess::new(), &pairs.delay);
        let within_evidence = peak(EProcess::above((1.0 - self.epsilon).ln()), &pairs.goodput);
        let least = lower_bound(&pairs.delay, self.needed());
        Some(DelayReport {
            arm,
            against,
            delay_us: typical(arm, delay_us)?,
            against_delay_us: typical(against, delay_us)?,
            goodput_bps: typical(arm, goodput_bps)?,
            against_goodput_bps: typical(against, goodput_bps)?,
            at_least: Some(-(-least).exp_m1()).filter(|share| share.is_finite() && *share > 0.0),
            epsilon: self.epsilon,
            evidence: evidence.min(1e300),
            within_evidence: within_evidence.min(1e300),
            needed: self.needed(),
            rounds: pairs.delay.len(),
            shown: evidence >= self.needed() && within_evidence >= self.needed(),
        })
    }
}

impl DelayReport {
    /// Whether further rounds can hardly show it.
    #[must_use]
    pub fn is_futile(&self) -> bool {
        self.rounds >= 6 && (self.evidence < 2.0 || self.within_evidence < 2.0)
    }

    /// What is shown of the setting of this label, and from what: a sentence.
    pub(super) fn sentence(&self, label: &str) -> String {
        format!(
            "{label} has less delay at the same speed: evidence {} for less delay, {} for a goodput within {}, each of {} that are \
             needed, from {} of their own.",
            words::odds(self.evidence),
            words::odds(self.within_evidence),
            words::percent(self.epsilon * 100.0),
            // One over a share of 5 %, which no fraction of two has exactly.
            words::odds((self.needed * 1e6).round() / 1e6),
            counted(self.rounds, "round")
        )
    }

    /// The share by which the delay is smaller.
    #[must_use]
    pub fn less(&self) -> f64 {
        1.0 - self.delay_us / self.against_delay_us
    }
}

/// The setting whose rounds have been run, and the one that it was compared with: the current settings where they are one of the
/// two, else `against`.
fn tested(records: &[TrialRecord], against: usize) -> Option<(usize, usize)> {
    let mut rounds: BTreeMap<u32, BTreeSet<usize>> = BTreeMap::new();
    for record in records.iter().filter(|r| r.spec.phase == Phase::Delay) {
        rounds.entry(record.spec.round).or_default().insert(record.spec.arm);
    }
    // A round that was interrupted may have one of them.
    let pair: Vec<usize> = rounds.into_values().find(|arms| arms.len() > 1)?.into_iter().collect();
    match pair.as_slice() {
        [0, arm] => Some((*arm, 0)),
        [arm, other] | [other, arm] if *other == against => Some((*arm, *other)),
        _ => None,
    }
}

/// The median delay under load of an arm's trials, µs; `None` where the sender isn't ours.
pub(super) fn delay_of(records: &[&TrialRecord], arm: usize) -> Option<f64> {
    upper_median(records.iter().filter(|r| r.spec.arm == arm).filter_map(|r| delay_us(r)))
}

/// Logs of ratios of a setting to another, of each round in which both have been run; larger is better.
struct Pairs {
    goodput: Vec<f64>,
    delay: Vec<f64>,
}

impl Pairs {
    fn of(records: &[&TrialRecord], against: usize, arm: usize) -> Self {
        // By place: on a quiet path a round may have each of them twice.
        let mut rounds: BTreeMap<u32, [BTreeMap<u32, &TrialRecord>; 2]> = BTreeMap::new();
        for record in records.iter().filter(|r| !matches!(r.outcome.status, Status::Aborted | Status::Running)) {
            // Of a trial that was repeated the last one counts.
            if let Some(place) = [against, arm].iter().position(|of| *of == record.spec.arm) {
                rounds.entry(record.spec.round).or_default()[place].insert(record.spec.order, record);
            }
        }
        let mut pairs = Self { goodput: Vec::new(), delay: Vec::new() };
        for (other, own) in rounds.values().flat_map(|[other, own]| other.values().zip(own.values())) {
            let spoilt = [other, own].map(|record| record.outcome.status == Status::Invalid);
            match spoilt {
                // Nobody knows what spoilt it: a round in which only one of the two was is lost for the setting.
                [true, false] | [false, true] => {
                    pairs.goodput.push(WORST);
                    pairs.delay.push(WORST);
                    continue;
                }
                [true, true] => continue,
                [false, false] => {}
            }
            let (Some(rate), Some(delay)) = (goodput_bps(other), delay_us(other)) else { continue };
            pairs.goodput.push(goodput_bps(own).map_or(WORST, |own| (own / rate).ln()));
            // What was cut off early has had no time to fill a queue.
            let whole = own.outcome.status == Status::Completed;
            pairs.delay.push(delay_us(own).filter(|_| whole).map_or(WORST, |own| (delay / own).ln()));
        }
        pairs
    }

    fn mean(&self, logs: &[f64]) -> Option<f64> {
        (!logs.is_empty()).then(|| logs.iter().sum::<f64>() / logs.len() as f64)
    }
}

fn goodput_bps(record: &TrialRecord) -> Option<f64> {
    Some(counted_bps(record)).filter(|bps| bps.is_finite() && *bps > 0.0)
}

fn delay_us(record: &TrialRecord) -> Option<f64> {
    let counts = matches!(record.outcome.status, Status::Completed | Status::Incomplete) && record.outcome.bytes > 0;
    record.outcome.observed.rtt_us.filter(|us| counts && *us > 0).map(|us| us as f64)
}

#[cfg(test)]
#[path = "delay_tests.rs"]
mod tests;
