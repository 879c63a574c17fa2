use super::{Arrivals, quantile};
use crate::Sample;
use serde::Serialize;

/// When losses were noticed, µs: where the sender's count of retransmissions rises; within an RTT it is one event.
#[must_use]
pub fn loss_events(sender: &[Sample], rtt_us: u64) -> Vec<u64> {
    let mut events: Vec<u64> = Vec::new();
    let mut before = 0;
    let mut last_rise = None;
    for sample in sender {
        if sample.retransmits > before {
            if last_rise.is_none_or(|last| sample.t_us > last + rtt_us) {
                events.push(sample.t_us);
            }
            last_rise = Some(sample.t_us);
        }
        before = sample.retransmits;
    }
    events
}

/// What became of the rate after each loss event.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Recovery {
    /// How many there were.
    pub events: usize,
    /// After how many the rate was back before the next one came.
    pub recovered: usize,
    /// Median time until 95 % of the rate before held for two RTTs, s, by Kaplan and Meier's estimator: an event that was
    /// followed by another one before that counts as "at least so long". `None` where more than half took longer.
    pub median_s: Option<f64>,
    /// Bytes that each event cost: what the rate lay below the one before it, until recovery or the next event; the mean.
    pub mean_cost_bytes: Option<f64>,
    /// Smallest rate after an event over the one before it; the median.
    pub median_depth: Option<f64>,
}

/// When something disturbed a flow, on the flow's own clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DisturbanceTimes {
    /// When it began, µs.
    pub at_us: u64,
    /// When it was over, µs.
    pub over_us: u64,
}

/// One event.
struct Event {
    /// Until recovery, or until it couldn't be seen any more, s.
    time_s: f64,
    recovered: bool,
    cost: f64,
    depth: f64,
}

impl Recovery {
    /// Looks at each event.
    #[must_use]
    pub fn measure(arrivals: &Arrivals, events: &[u64], rtt_us: u64, window_us: u64) -> Self {
        let bounds = events.iter().skip(1).copied().chain([arrivals.end_us()]);
        let one = |(at, next): (&u64, u64)| Event::measure(arrivals, *at, next, rtt_us, window_us);
        Self::summarise(&events.iter().zip(bounds).filter_map(one).collect::<Vec<_>>())
    }

    /// Looks at the same disturbance in several flows, each until its end. Times count from when the disturbance was over,
    /// costs from its beginning.
    #[must_use]
    pub fn of_disturbances(flows: &[(Arrivals, DisturbanceTimes)], rtt_us: u64, window_us: u64) -> Self {
        let one =
            |(flow, what): &(Arrivals, DisturbanceTimes)| Event::of(flow, *what, flow.end_us(), rtt_us, window_us);
        Self::summarise(&flows.iter().filter_map(one).collect::<Vec<_>>())
    }

    fn summarise(measured: &[Event]) -> Self {
        let mut depths: Vec<f64> = measured.iter().map(|event| event.depth).collect();
        depths.sort_by(f64::total_cmp);
        let cost: f64 = measured.iter().map(|event| event.cost).sum();
        let times: Vec<(f64, bool)> = measured.iter().map(|event| (event.time_s, event.recovered)).collect();
        Self {
            events: measured.len(),
            recovered: measured.iter().filter(|event| event.recovered).count(),
            median_s: median_until(&times),
            mean_cost_bytes: (!measured.is_empty()).then(|| cost / measured.len() as f64),
            median_depth: quantile(&depths, 0.5),
        }
    }
}

impl Event {
    fn measure(arrivals: &Arrivals, at: u64, next: u64, rtt_us: u64, window_us: u64) -> Option<Self> {
        let event = DisturbanceTimes { at_us: at, over_us: at };
        Self::from(arrivals, event, at, next, rtt_us, window_us)
    }

    /// As [`Event::measure`], of something that is known to disturb: where the rate falls only some round trips later, being
    /// back counts from then on.
    fn of(arrivals: &Arrivals, what: DisturbanceTimes, next: u64, rtt_us: u64, window_us: u64) -> Option<Self> {
        const ROUND_TRIPS: u64 = 20;
        let DisturbanceTimes { at_us: at, over_us: over } = what;
        let before = rate_before(arrivals, at, rtt_us)?;
        let until = over + ROUND_TRIPS * rtt_us + window_us;
        let falls = |t: &u64| *t > over && *t <= until && arrivals.rate(*t, window_us) < 0.95 * before;
        let from = arrivals.times().find(falls).unwrap_or(over);
        Self::from(arrivals, what, from, next, rtt_us, window_us)
    }

    /// `None` when there was no rate before it, or the flow ended before it was over.
    fn from(
        arrivals: &Arrivals,
        what: DisturbanceTimes,
        from: u64,
        next: u64,
        rtt_us: u64,
        window_us: u64,
    ) -> Option<Self> {
        let DisturbanceTimes { at_us: at, over_us: over } = what;
        if over >= next {
            return None;
        }
        let before = rate_before(arrivals, at, rtt_us)?;
        // The sender notices a loss an RTT after the receiver missed it, so recovery may come at once.
        let back = arrivals.holds_before(from, next, 0.95 * before, window_us, 2 * rtt_us);
        let until = back.unwrap_or(next);
        let mut cost = 0.0;
        let mut depth: f64 = 1.0;
        let mut last = at;
        for t in arrivals.times().filter(|t| *t > at && *t <= until) {
            let rate = arrivals.mean(last, t).unwrap_or(before);
            cost += (before - rate).max(0.0) * (t - last) as f64 / 1e6;
            depth = depth.min(arrivals.rate(t, window_us) / before);
            last = t;
        }
        Some(Self { time_s: (until - over) as f64 / 1e6, recovered: back.is_some(), cost, depth })
    }
}

/// The mean rate over the second, or the four round trips, before a time; `None` if there was none.
fn rate_before(arrivals: &Arrivals, at: u64, rtt_us: u64) -> Option<f64> {
    arrivals.mean(at.saturating_sub(1_000_000.max(4 * rtt_us)), at).filter(|rate| *rate > 0.0)
}

/// The median of times some of which are only known to be at least so long (`false`).
///
/// # Source
/// Kaplan, Meier: Nonparametric estimation from incomplete observations, JASA 53, 1958.
#[must_use]
pub fn median_until(times: &[(f64, bool)]) -> Option<f64> {
    let mut times = times.to_vec();
    // At the same time ends come before censored observations.
    times.sort_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)));
    let mut surviving = 1.0;
    for (index, (time, ended)) in times.iter().enumerate() {
        if *ended {
            let at_risk = (times.len() - index) as f64;
            surviving *= 1.0 - 1.0 / at_risk;
            if surviving <= 0.5 + 1e-12 {
                return Some(*time);
            }
        }
    }
    None
}
