//! What the samples of one bulk trial say: how fast it got going, how it came back after losses, what it cost.
//!
//! Rates come from bytes that **arrived at the receiver**, never from what the sender's program wrote: a send buffer takes
//! megabytes at once.
//!
//! What this leaves out: one-way delays of single packets (the queue is judged by the sender's smoothed RTT), and losses
//! that nobody retransmitted.
//!
//! # Source
//! The measures follow RFC 5166 (response to sudden changes, oscillation, fairness, convergence).

/// Several flows side by side.
mod fairness;
/// Rates in sliding windows.
mod rate;
/// Loss events and what became of the rate after each.
mod recovery;

pub use fairness::{convergence, jain, smallest_share};
pub use rate::Arrivals;
pub use recovery::{DisturbanceTimes, Recovery, loss_events, median_until};

use crate::TrialOutcome;
use serde::Serialize;
pub use wt_units::quantile;

/// What is known of the path.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathNow {
    /// RTT without a queue, µs.
    pub base_rtt_us: u64,
    /// The most payload that the path carries, bit/s, where known.
    pub capacity_bps: Option<u64>,
}

/// The measures of one bulk trial. A measure that the samples don't give is `None`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct BulkMetrics {
    /// Mean rate over the last half, bytes/s.
    pub steady_bps: Option<f64>,
    /// Whether that half holds 100 RTTs and 20 loss events, so that its mean says something about the long run.
    pub steady: bool,
    /// Until 90 % of the steady rate held for two RTTs, s.
    pub t90_s: Option<f64>,
    /// The same in RTTs.
    pub t90_rtts: Option<f64>,
    /// Until 80 % of the path's capacity held for two RTTs, s.
    pub t80_capacity_s: Option<f64>,
    /// Until 90 % of the path's capacity held for two RTTs, s: the same rate for every congestion control.
    pub t90_capacity_s: Option<f64>,
    /// Until the first 100 kB and the first 1 MB had arrived, s.
    pub first_100kb_s: Option<f64>,
    /// See `first_100kb_s`.
    pub first_1mb_s: Option<f64>,
    /// Retransmissions until two RTTs after T90: what slow start overshot, segments.
    pub overshoot_segments: Option<u64>,
    /// The longest queue, by the smoothed RTT, ms.
    pub peak_queue_ms: Option<f64>,
    /// Queueing delay, median, ms.
    pub p50_queue_ms: Option<f64>,
    /// Queueing delay, 95th percentile, ms.
    pub p95_queue_ms: Option<f64>,
    /// The smallest rate after a loss event over the rate before it: 1 is perfectly smooth; the median over events.
    pub depth: Option<f64>,
    /// Coefficient of variation of the rate in steps of one second.
    pub cov_1s: Option<f64>,
    /// Steady rate over the path's capacity.
    pub utilisation: Option<f64>,
    /// Retransmitted over sent segments.
    pub retransmit_share: Option<f64>,
    /// Drops of queues, full or by their discipline: those that the flow caused itself.
    pub self_inflicted: Option<u64>,
    /// Loss events.
    pub recovery: Recovery,
}

impl BulkMetrics {
    /// Measures a trial.
    #[must_use]
    pub fn of(outcome: &TrialOutcome, path: &PathNow) -> Self {
        let arrivals = Arrivals::new(&outcome.receiver, outcome.elapsed_us, outcome.bytes);
        let rtt_us = path.base_rtt_us.max(1);
        let window_us = (2 * rtt_us).max(200_000);
        let hold_us = 2 * rtt_us;
        let events = loss_events(&outcome.sender, rtt_us);
        let half = arrivals.end_us() / 2;
        let steady_bps = arrivals.mean(half, arrivals.end_us());
        let t90_us = steady_bps.and_then(|steady| arrivals.holds(0, 0.9 * steady, window_us, hold_us));
        let capacity = path.capacity_bps.map(|bps| bps as f64 / 8.0);
        let queues = queues(outcome, rtt_us);
        let seconds = |us: u64| us as f64 / 1e6;
        let of_capacity =
            |share: f64| capacity.and_then(|c| arrivals.holds(0, share * c, window_us, hold_us)).map(seconds);
        let late_events = events.iter().filter(|at| **at >= half).count();
        Self {
            steady_bps,
            steady: arrivals.end_us() - half >= 100 * rtt_us && late_events >= 20,
            t90_s: t90_us.map(seconds),
            t90_rtts: t90_us.map(|us| us as f64 / rtt_us as f64),
            t80_capacity_s: of_capacity(0.8),
            t90_capacity_s: of_capacity(0.9),
            first_100kb_s: arrivals.reaches(100_000).map(seconds),
            first_1mb_s: arrivals.reaches(1_000_000).map(seconds),
            overshoot_segments: t90_us.map(|us| retransmits_until(outcome, us + hold_us)),
            peak_queue_ms: queues.last().copied(),
            p50_queue_ms: quantile(&queues, 0.5),
            p95_queue_ms: quantile(&queues, 0.95),
            depth: None,
            cov_1s: arrivals.variation(1_000_000),
            utilisation: steady_bps.zip(capacity).map(|(rate, capacity)| rate / capacity),
            retransmit_share: share_retransmitted(outcome),
            self_inflicted: outcome.observed.queue_drops,
            recovery: Recovery::default(),
        }
        .with_recovery(&arrivals, &events, rtt_us, window_us)
    }

    fn with_recovery(self, arrivals: &Arrivals, events: &[u64], rtt_us: u64, window_us: u64) -> Self {
        let recovery = Recovery::measure(arrivals, events, rtt_us, window_us);
        Self { depth: recovery.median_depth, recovery, ..self }
    }
}

/// Queueing delays of the samples, ascending, ms.
fn queues(outcome: &TrialOutcome, base_rtt_us: u64) -> Vec<f64> {
    let samples = outcome.sender.iter().filter(|sample| sample.rtt > 0);
    let mut queues: Vec<f64> = samples.map(|sample| sample.rtt.saturating_sub(base_rtt_us) as f64 / 1e3).collect();
    queues.sort_by(f64::total_cmp);
    queues
}

fn retransmits_until(outcome: &TrialOutcome, until_us: u64) -> u64 {
    outcome.sender.iter().take_while(|sample| sample.t_us <= until_us).last().map_or(0, |sample| sample.retransmits)
}

fn share_retransmitted(outcome: &TrialOutcome) -> Option<f64> {
    let mss = outcome.observed.mss.filter(|mss| *mss > 0)? as f64;
    let last = outcome.sender.last()?;
    let again = last.retransmits as f64;
    let sent = last.bytes as f64 / mss + again;
    (sent > 0.0).then(|| again / sent)
}

#[cfg(test)]
mod tests;
