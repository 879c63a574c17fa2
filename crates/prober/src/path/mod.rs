//! One screen about a path: what gets through, hops, round trips, the narrowest link, and the windows that follow.

/// What was found, as `--json` has it.
mod answer;
/// What the narrowest link may be.
mod link_guess;
/// Round trips, cells and trains of packets.
mod measure;

pub use answer::{PathAnswer, RttAnswer};

use crate::ProbeOptions;
use crate::answers::micros;
use crate::driver::Cost;
use crate::mtu::{SearchAnswer, SearchRun, SearchScope, search, unanswered};
use crate::options::within;
use crate::target::{find_all, reachable};
use crate::trace::{RouteAnswer, TraceRequest, names, trace_all};
use link_guess::link_guess;
use measure::{LONGEST, Prober, RoundTrips};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use wt_probe::{Bottleneck, Kind};
use wt_problem::Problem;
use wt_trial::Cancel;

/// Faster links send a cell within the jitter of this host.
const FAST: Duration = Duration::from_micros(300);
/// Slower lines would be filled for too long by trains of packets.
const SLOW: Duration = Duration::from_millis(50);
/// Linux's initial congestion window, segments (RFC 6928).
const USUAL_INITCWND: u64 = 10;

/// A host to which the path is measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PathRequest {
    /// The host, as `HOST` or `HOST:PORT` with the port that TCP probes go to, 80 if it isn't said.
    pub host: String,
    /// Packets to count round-trip times with.
    pub pings: u32,
    /// How to probe.
    pub options: ProbeOptions,
}

impl Default for PathRequest {
    fn default() -> Self {
        Self { host: String::new(), pings: 200, options: ProbeOptions::default() }
    }
}

impl PathRequest {
    fn check(&self) -> Result<(), Problem> {
        within("packets to count round-trip times with", self.pings, 10, 100_000)?;
        self.options.check()
    }
}

/// What happens meanwhile: each part as it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum PathEvent {
    /// The path MTU is searched.
    Searching,
    /// The hops are traced.
    Tracing,
    /// Round trips are counted.
    CountingRoundTrips,
    /// The narrowest link is looked for.
    FindingBottleneck,
}

/// Finds all about the path to a host.
///
/// # Errors
/// A usage problem for an invalid request, an environment problem where this host can't probe, a remote one where the host
/// answers nothing, and a stopped one after a cancel.
pub fn path(request: &PathRequest, cancel: &Cancel, events: &mut dyn FnMut(PathEvent)) -> Result<PathAnswer, Problem> {
    request.check()?;
    let targets = reachable(&find_all(std::slice::from_ref(&request.host), request.options.ip, cancel)?);
    let options = &request.options;
    events(PathEvent::Searching);
    let scope = SearchScope { losses: true, flows: None };
    let SearchRun { reports, cost, reverse } = search(&targets, options, scope, cancel)?;
    let (Some(target), Some(report)) = (targets.first(), reports.into_iter().next()) else {
        return Err(Problem::internal("the search has no report"));
    };
    let report = &report?;
    let (Some(pmtu), Some(kind)) = (report.pmtu, report.method) else { return Err(unanswered(target, report)) };
    events(PathEvent::Tracing);
    let trace_request = TraceRequest { options: options.clone(), ..TraceRequest::default() };
    let (traces, traced) = trace_all(&targets, &trace_request, cancel)?;
    let trace = traces.into_iter().next().ok_or_else(|| Problem::internal("the trace has no outcome"))??;
    let prober = Prober { target, report, pmtu, kind, options, cancel };
    // UDP's answers are rationed: neither round trips nor trains can be counted with them.
    let countable = kind != Kind::Udp;
    events(PathEvent::CountingRoundTrips);
    let (trips, trips_cost) = spent(countable.then(|| prober.round_trips(request.pings)))?;
    events(PathEvent::FindingBottleneck);
    let fast = countable && report.pace < SLOW;
    let least_rtt = trips.as_ref().and_then(|trips: &RoundTrips| trips.quantile(0.0));
    let (bottleneck, train_cost) = spent(fast.then(|| prober.bottleneck(least_rtt)))?;
    let slow = fast && report.pace >= FAST;
    let (cells, cells_cost) = spent(slow.then(|| prober.cells()))?;
    let (bottleneck, cells) = (bottleneck.flatten(), cells.flatten());
    let cost = [reverse, traced, trips_cost, train_cost, cells_cost].into_iter().fold(cost, Cost::plus);
    let windows = Windows::of(bottleneck, trips.as_ref(), pmtu, target.ip.is_ipv6());
    let quantile = |share| trips.as_ref().and_then(|trips: &RoundTrips| trips.quantile(share)).map(micros);
    Ok(PathAnswer {
        search: SearchAnswer::of(target, report, cost),
        route: RouteAnswer::of(&trace, target.ip, &names(std::iter::once(&trace))),
        rtt_us: RttAnswer { min: quantile(0.0), median: quantile(0.5), p99: quantile(0.99) },
        jitter_us: trips.as_ref().and_then(|trips| trips.jitter).map(micros),
        loss: trips.as_ref().map(|trips| trips.count.loss()),
        reordered: trips.as_ref().map(|trips| trips.reordered),
        bottleneck_bps: bottleneck.map(|found| found.bps),
        bottleneck_low_bps: bottleneck.map(|found| found.low),
        bottleneck_high_bps: bottleneck.and_then(|found| found.high),
        bottleneck_packets: train_cost.packets,
        bottleneck_seconds: train_cost.time.as_secs_f64(),
        bottleneck_sender_limited: bottleneck.map(|found| found.sender_limited),
        bottleneck_answers_limited: bottleneck.map(|found| found.answers_limited),
        bdp_bytes: windows.map(|windows| windows.bdp),
        rwin_bytes: None,
        initcwnd: windows.map(|windows| windows.initcwnd),
        cell_us: cells.map(|cells| micros(cells.each)),
        link_guess: link_guess(report.pmtu.filter(|_| !report.is_lower_bound()), cells, target),
        source: target.source,
        count: trips.as_ref().map(|trips| trips.count),
        cut_after: trips.is_some_and(|trips| trips.count.sent < request.pings).then_some(LONGEST),
    })
}

/// What a part gave and cost; nothing of one that wasn't run.
fn spent<T>(part: Option<Result<(T, Cost), Problem>>) -> Result<(Option<T>, Cost), Problem> {
    Ok(part.transpose()?.map_or((None, Cost::default()), |(found, cost)| (Some(found), cost)))
}

/// Windows that follow from the bandwidth-delay product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Windows {
    bdp: u64,
    initcwnd: u64,
}

impl Windows {
    fn of(bottleneck: Option<Bottleneck>, trips: Option<&RoundTrips>, pmtu: u16, v6: bool) -> Option<Self> {
        let (rtt, bottleneck) = (trips?.quantile(0.0)?, bottleneck.filter(|found| !found.answers_limited)?);
        Some(Self::from_bdp((bottleneck.bps / 8.0 * rtt.as_secs_f64()) as u64, pmtu, v6))
    }

    fn from_bdp(bdp: u64, pmtu: u16, v6: bool) -> Self {
        let mss = u64::from(pmtu).saturating_sub(if v6 { 60 } else { 40 }).max(1);
        Self { bdp, initcwnd: bdp.div_ceil(mss).clamp(2, USUAL_INITCWND) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_whole_segments_that_fill_the_path() {
        for (bdp, pmtu, v6, initcwnd) in [(0, 1500, false, 2), (2921, 1500, false, 3), (100_000, 1280, true, 10)] {
            assert_eq!(Windows::from_bdp(bdp, pmtu, v6), Windows { bdp, initcwnd }, "{bdp}");
        }
    }
}
