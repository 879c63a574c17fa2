//! Round trips, cells and trains of packets, once the search has told what gets through.

use crate::ProbeOptions;
use crate::driver::{Cost, Driver};
use crate::mtu::no_connection;
use crate::target::Target;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_probe::{
    Bottleneck, Cells, Kind, LossCount, Scan, ScanConfig, SearchReport, Train, cell_sizes, cells, cells_may_hide,
    likelihood_ratio,
};
use wt_problem::Problem;
use wt_trial::Cancel;

/// No part takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// The length of the packets whose round trips are counted, bytes.
const SMALL: u16 = 84;
/// Probes of each size that look for cells: the fastest counts.
const CELL_REPEATS: u32 = 4;
/// So many times at most, where a host answers too unevenly to say that there are none.
const CELL_BATCHES: u64 = 3;
/// The first stream of random numbers of those.
const CELL_STREAM: u64 = 3;
/// Where more than this share of packets surely gets lost, or half of them wait for longer than the round trip takes and this, it is asked
/// whether their rate is the cause.
const SURELY_LOST: f64 = 0.01;
const STANDING: Duration = Duration::from_millis(10);
/// Losses at two rates differ from this likelihood ratio on (once in a thousand times by chance).
const DIFFER: f64 = 10.83;
/// The rate is quartered so often at most, and so many packets are sent at least to see whether that helps.
const MOST_QUARTERS: u32 = 4;
const FEWEST_TRIPS: u32 = 20;
/// Round trips are counted for so many seconds at most.
pub(super) const LONGEST: u32 = 20;

/// Round trips, counted.
pub(super) struct RoundTrips {
    /// Their times, the shortest first.
    rtts: Vec<Duration>,
    pub(super) count: LossCount,
    pub(super) reordered: u32,
    /// The mean difference of one round-trip time from the one before it; `None` of fewer than two.
    pub(super) jitter: Option<Duration>,
}

impl RoundTrips {
    /// The round-trip time that this share doesn't exceed.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        let last = self.rtts.len().checked_sub(1)?;
        self.rtts.get((last as f64 * share).ceil() as usize).copied()
    }

    fn median(&self) -> Duration {
        self.quantile(0.5).unwrap_or_default()
    }

    /// Whether so many got lost, or waited, that their own rate may be the cause.
    fn is_doubtful(&self) -> bool {
        let least = self.quantile(0.0).unwrap_or_default();
        self.count.interval().0 > SURELY_LOST || self.median() > least * 2 + STANDING
    }

    /// Whether fewer got lost at this other rate, or they waited far less.
    fn is_worse_than(&self, slower: &Self) -> bool {
        let lost = self.count.loss() > slower.count.loss() && likelihood_ratio(self.count, slower.count) >= DIFFER;
        lost || slower.count.answered > 0 && self.median() > slower.median() * 2
    }
}

/// Round trips of so many packets, counted at this rate or, where it is itself what loses or delays them, at a quarter of it, and so on:
/// the search may have taken a slow line for a fast one.
fn at_a_rate_that_costs_nothing(
    most: u32,
    mut pps: u32,
    mut count: impl FnMut(u32, u32) -> Result<RoundTrips, Problem>,
) -> Result<RoundTrips, Problem> {
    let mut found = count(most, pps)?;
    let mut quarters = 0;
    while quarters < MOST_QUARTERS && pps > 1 && found.is_doubtful() {
        let slower = (pps / 4).max(1);
        let few = count((most / 4).max(FEWEST_TRIPS), slower)?;
        if !found.is_worse_than(&few) {
            break;
        }
        (found, pps, quarters) = (few, slower, quarters + 1);
    }
    if quarters > 0 { count(most, pps) } else { Ok(found) }
}

/// A path whose largest packet is known.
pub(super) struct Prober<'a> {
    pub(super) target: &'a Target,
    pub(super) report: &'a SearchReport,
    /// The largest packet that gets through, bytes.
    pub(super) pmtu: u16,
    /// What is answered.
    pub(super) kind: Kind,
    pub(super) options: &'a ProbeOptions,
    pub(super) cancel: &'a Cancel,
}

impl Prober<'_> {
    /// Counts round-trip times with so many packets at most.
    pub(super) fn round_trips(&self, most: u32) -> Result<(RoundTrips, Cost), Problem> {
        // A tenth of the narrowest link's rate, so that none waits for another.
        let pps = (1.5 / self.report.pace.as_secs_f64().max(1e-3)).min(500.0) as u32;
        let pps = self.options.pps.unwrap_or(pps).min(pps).max(1);
        let mut cost = Cost::default();
        let trips = at_a_rate_that_costs_nothing(most, pps, |most, pps| {
            let (trips, of_these) = self.count_round_trips(most, pps)?;
            cost = cost.plus(of_these);
            Ok(trips)
        })?;
        Ok((trips, cost))
    }

    fn count_round_trips(&self, most: u32, pps: u32) -> Result<(RoundTrips, Cost), Problem> {
        let least = if self.target.ip.is_ipv6() { SMALL + 20 } else { SMALL };
        let (scan, cost) = self.scan(vec![least.min(self.pmtu)], most.min(pps.saturating_mul(LONGEST)), pps, 2)?;
        let mut rtts: Vec<Duration> = scan.rtts().collect();
        let steps: Duration = rtts.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
        let pairs = u32::try_from(rtts.len().saturating_sub(1)).unwrap_or(u32::MAX);
        let jitter = (pairs > 0).then(|| steps / pairs);
        rtts.sort_unstable();
        let count = scan.sizes().iter().fold(LossCount::default(), |sum, row| sum.plus(row.count));
        Ok((RoundTrips { rtts, count, reordered: scan.reordered(), jitter }, cost))
    }

    /// Asks at many sizes close to each other, slowly enough that none waits for another.
    pub(super) fn cells(&self) -> Result<(Option<Cells>, Cost), Problem> {
        let sizes = cell_sizes(self.pmtu);
        let all = CELL_REPEATS * u32::try_from(sizes.len()).unwrap_or(0);
        let pps = (0.5 / self.report.pace.as_secs_f64().max(1e-3)).max(1.0) as u32;
        let pps = self.options.pps.unwrap_or(pps).min(pps);
        // A cell of 48 bytes takes its share of what the largest packet takes.
        let cell = self.report.pace * 48 / u32::from(self.pmtu.max(48));
        let (mut least, mut cost) = (BTreeMap::new(), Cost::default());
        for batch in 0..CELL_BATCHES {
            let (scan, of_batch) = self.scan(sizes.clone(), all, pps, CELL_STREAM + batch)?;
            cost = cost.plus(of_batch);
            for row in scan.sizes() {
                if let Some(rtt) = row.least_rtt {
                    least.entry(row.size).and_modify(|least: &mut Duration| *least = rtt.min(*least)).or_insert(rtt);
                }
            }
            let rtts: Vec<_> = least.iter().map(|(size, rtt)| (*size, *rtt)).collect();
            let found = cells(&rtts);
            if found.is_some() || !cells_may_hide(&rtts, cell) {
                return Ok((found, cost));
            }
        }
        Ok((None, cost))
    }

    /// So many probes of these sizes, one at a time; `stream` is that of the random generator.
    fn scan(&self, sizes: Vec<u16>, probes: u32, pps: u32, stream: u64) -> Result<(Scan, Cost), Problem> {
        let config = ScanConfig {
            sizes,
            pmtu: self.pmtu,
            kind: self.kind,
            split: false,
            loose: false,
            first: probes,
            quick: probes,
            most: probes,
            most_in_all: probes,
        };
        let mut scan = Scan::new(config, self.options.rng(stream)).with_rtt(self.report.rtt.min());
        let options = ProbeOptions { pps: Some(pps), ..self.options.clone() };
        let mut driver = Driver::open_with_burst(self.target.ip.is_ipv6(), &options, 1, self.cancel)?;
        let cost = driver.run(self.target, &mut scan, LIMIT)?;
        if scan.lacks_connection() {
            return Err(no_connection(self.target));
        }
        Ok((scan, cost))
    }

    /// The rate of the narrowest link, by trains of packets; an idle path answers after `least_rtt`.
    pub(super) fn bottleneck(&self, least_rtt: Option<Duration>) -> Result<(Option<Bottleneck>, Cost), Problem> {
        let mut driver = Driver::open(self.target.ip.is_ipv6(), 1, self.options, self.cancel)?;
        // Old segments come back as short acknowledgements, so that only the way there counts, unless the way back is slower by far.
        let old = driver.kinds().contains(&Kind::OldSegment).then_some(Kind::OldSegment);
        let mut cost = Cost::default();
        for kind in old.into_iter().chain([self.kind]) {
            let mut train = Train::new(kind, self.pmtu, least_rtt);
            cost = cost.plus(driver.run(self.target, &mut train, LIMIT)?);
            let Some(mut shorter) = train.shorter() else {
                if train.is_answered() {
                    return Ok((train.bottleneck(), cost));
                }
                continue;
            };
            cost = cost.plus(driver.run(self.target, &mut shorter, LIMIT)?);
            return Ok((train.with_shorter(&shorter), cost));
        }
        Ok((None, cost))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line that carries so many packets a second, loses this share of them anyway, and keeps others waiting where more come.
    fn line(carries: u32, loss: f64) -> impl FnMut(u32, u32) -> Result<RoundTrips, Problem> {
        move |most, pps| {
            let passed = (f64::from(carries) / f64::from(pps)).min(1.0) * (1.0 - loss);
            let answered = (f64::from(most) * passed).round() as u32;
            let rtts =
                (0..answered).map(|n| Duration::from_millis(40 + if pps > carries { 5 * u64::from(n) } else { 0 }));
            let count = LossCount { sent: most, answered };
            Ok(RoundTrips { rtts: rtts.collect(), count, reordered: 0, jitter: None })
        }
    }

    #[test]
    fn loss_by_the_rate_of_the_count_itself_is_not_told_as_the_paths() {
        let trips = at_a_rate_that_costs_nothing(200, 500, line(95, 0.0)).unwrap();
        assert_eq!((trips.count, trips.median()), (LossCount { sent: 200, answered: 200 }, Duration::from_millis(40)));
    }

    #[test]
    fn loss_of_the_path_is_counted_once_and_asked_about_once() {
        for (loss, asked) in [(0.0, vec![(200, 500)]), (0.1, vec![(200, 500), (50, 125)])] {
            let (mut path, mut calls) = (line(1000, loss), Vec::new());
            let trips = at_a_rate_that_costs_nothing(200, 500, |most, pps| {
                calls.push((most, pps));
                path(most, pps)
            });
            assert_eq!((trips.unwrap().count.loss(), calls), (loss, asked));
        }
    }
}
