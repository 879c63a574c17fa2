//! Loss size by size, and the size that brings most data a second.

use super::MtuEvent;
use super::answer::{MtuAnswer, SizeAnswer};
use super::scan_answer::{GainAnswer, LooseAnswer, OpenScan, RateCheckAnswer, ScanAnswer, ThresholdAnswer};
use super::words::{narrower, no_connection, unanswered};
use crate::ProbeOptions;
use crate::driver::{Cost, DEFAULT_PPS, Driver};
use crate::options::within;
use crate::target::Target;
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::time::Duration;
use wt_probe::{Goodput, Kind, PathKind, Scan, ScanConfig, SearchReport, goodput};
use wt_problem::Problem;
use wt_trial::Cancel;
use wt_units::BitsPerSecond;

/// No scan takes longer.
const LIMIT: Duration = Duration::from_secs(600);
/// Probes of all sizes together before anything is looked at, and of each at least.
const FIRST: u32 = 125;
const LEAST_OF_EACH: u32 = 4;
/// Packets with those of the search within which a frequent loss is told, and a rare one; and with those that split it
/// into both directions.
const QUICK: u32 = 1000;
/// Fewer than this are too few to go on with.
const FEW: u32 = 200;
/// At least so many of them come behind those before the first look.
const BEHIND_FIRST: u32 = 400;
const MOST: u32 = 6000;
const MOST_IN_ALL: u32 = 20_000;
/// A scan takes no more than this share of the narrowest link, where that is slow enough to be known.
const SHARE: f64 = 0.1;
/// Links that take less for a packet are measured too roughly by the search, and fast enough.
const SLOW: Duration = Duration::from_millis(1);
/// Of a line that is slower still, it takes up to this share: else a scan would never end.
const MOST_SHARE: f64 = 0.5;
/// The rate at which the larger share begins, packets a second.
const LEAST_RATE: f64 = 20.0;
/// On such a line a scan takes about so long, seconds, if nothing else is said: it sends fewer packets.
const LONGEST: f64 = 300.0;
/// At most so many leave at once.
const BURST: u32 = 8;
/// No more sizes than this.
const MOST_SIZES: usize = 500;
/// Shorter ones that go along, bytes: loss may begin below all that are asked for, and is no less for that.
const SHORTER: [u16; 5] = [68, 128, 256, 384, 512];
const LEAST_MTU_OF_IPV6: u16 = 1280;
/// The same over IPv6.
const SHORTER_6: [u16; 4] = [128, 256, 512, 1024];

/// Which sizes to scan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ScanRequest {
    /// The smallest size, bytes.
    pub from: u16,
    /// The largest size, bytes; the device's MTU if it isn't said.
    pub to: Option<u16>,
    /// From one size to the next, bytes.
    pub step: u16,
    /// Packets at most; 6000, and 20000 to split a large loss by direction, if it isn't said.
    pub most: Option<u32>,
    /// The path's rate, from which gains are computed.
    pub rate: BitsPerSecond,
}

impl Default for ScanRequest {
    fn default() -> Self {
        Self { from: 576, to: None, step: 12, most: None, rate: BitsPerSecond(100_000_000) }
    }
}

impl ScanRequest {
    /// Refuses what is out of range.
    ///
    /// # Errors
    /// A usage problem.
    pub(super) fn check(&self) -> Result<(), Problem> {
        within("bytes as the smallest size", self.from, 68, u16::MAX)?;
        within("bytes as the largest size", self.to.unwrap_or(u16::MAX), 68, u16::MAX)?;
        within("bytes from one size to the next", self.step, 1, u16::MAX)?;
        within("packets", self.most.unwrap_or(MOST), 50, 1_000_000)
    }
}

/// A scan that has ended.
pub(super) struct FinishedScan {
    scan: Scan,
    /// With what the search cost.
    cost: Cost,
    /// Without.
    own: Cost,
    /// The size that brings most with a loss-based control, and by how much more than the largest that gets through.
    best: u16,
    gain: Goodput,
    /// Packets of its own that were allowed.
    most: u32,
    rate: BitsPerSecond,
    ip: IpAddr,
}

/// Counts losses size by size, the search having found what gets through.
pub(super) fn scan(
    target: &Target,
    report: &SearchReport,
    request: &ScanRequest,
    options: &ProbeOptions,
    before_cost: Cost,
    cancel: &Cancel,
    events: &mut dyn FnMut(MtuEvent),
) -> Result<FinishedScan, Problem> {
    let (Some(pmtu), Some(kind)) = (report.pmtu, report.method) else { return Err(unanswered(target, report)) };
    if kind == Kind::Udp {
        return Err(Problem::environment(format!(
            "{} answers UDP only, and that no more than once a second",
            target.name
        ))
        .hint("a scan needs ICMP echo, or an open TCP port (HOST:PORT) and CAP_NET_RAW (root)"));
    }
    let sizes = sizes(request, target)?;
    // Slow lines are left room.
    let room = if report.pace >= SLOW { room(report.pace.as_secs_f64()) } else { u32::MAX };
    let pps = options.pps.unwrap_or(DEFAULT_PPS.min(room));
    let options = &ProbeOptions { pps: Some(pps), ..options.clone() };
    let mut driver = Driver::open_with_burst(target.ip.is_ipv6(), options, BURST.min(pps), cancel)?;
    // An MSS was heard of only if the target accepts connections.
    let split = driver.kinds().contains(&Kind::OldSegment) && report.mss.is_some();
    let passing = u32::try_from(sizes.iter().filter(|size| **size <= pmtu).count()).unwrap_or(u32::MAX);
    // The acknowledgement that completes a handshake is a packet, too, and of few the segment that shows that it did.
    let handshake = 1 + u32::from(request.most.is_some());
    let before = before_cost.packets + if split || kind == Kind::OldSegment { handshake } else { 0 };
    let bearable = (f64::from(pps) * LONGEST) as u32;
    let left = |most: u32| request.most.unwrap_or(most.min(bearable)).saturating_sub(before).max(1);
    events(MtuEvent::Scanning { packets: left(MOST), per_second: pps });
    let first = FIRST.max(passing.saturating_mul(LEAST_OF_EACH)).min(left(MOST));
    let config = ScanConfig {
        sizes,
        pmtu,
        kind,
        split,
        loose: !target.ip.is_ipv6(),
        first,
        // However much the search took: a scan that ends behind its first look says nothing.
        quick: left(MOST).min(QUICK.saturating_sub(before).max(first + BEHIND_FIRST)),
        most: left(MOST),
        most_in_all: left(MOST_IN_ALL),
    };
    let mut scan = Scan::new(config, options.rng(1)).with_rtt(report.rtt.min());
    let cost = driver.run_watched(target, &mut scan, LIMIT, &mut |packets| events(MtuEvent::Scanned { packets }))?;
    if scan.lacks_connection() {
        return Err(no_connection(target));
    }
    let headers = if target.ip.is_ipv6() { 60 } else { 40 };
    let rtt = report.rtt.min().unwrap_or(Duration::from_millis(1));
    let (best, gain) = best(&scan, kind, pmtu, headers, rtt, request.rate);
    Ok(FinishedScan {
        scan,
        cost: before_cost.plus(cost),
        own: cost,
        best,
        gain,
        most: left(MOST),
        rate: request.rate,
        ip: target.ip,
    })
}

/// Packets a second that leave a slow line room, by how long it takes for one, seconds.
fn room(pace: f64) -> u32 {
    ((SHARE / pace).max(LEAST_RATE.min(MOST_SHARE / pace)) as u32).max(1)
}

fn sizes(request: &ScanRequest, target: &Target) -> Result<Vec<u16>, Problem> {
    let (usual, v6) = (ScanRequest::default(), target.ip.is_ipv6());
    // Every path of IPv6 carries 1280 bytes (RFC 8200): below that only who asks for it looks.
    let asked = request.from != usual.from || request.to.is_some_and(|to| to < LEAST_MTU_OF_IPV6);
    let least = match (v6, asked) {
        (true, false) => LEAST_MTU_OF_IPV6,
        (true, true) => SHORTER_6[0],
        (false, _) => 68,
    };
    let (from, to) = (request.from.max(least), request.to.unwrap_or(target.mtu).min(target.mtu));
    if from > to {
        return Err(Problem::usage(format!("from {from} to {to} bytes there is no size to scan")));
    }
    let sizes: Vec<u16> = (from..=to).step_by(usize::from(request.step)).collect();
    if sizes.len() > MOST_SIZES {
        return Err(Problem::usage(format!("{} sizes are too many: at most {MOST_SIZES}", sizes.len()))
            .hint("choose a larger --step"));
    }
    let shorter = if v6 { &SHORTER_6[..] } else { &SHORTER[..] };
    Ok(shorter.iter().copied().filter(|size| *size < from).chain(sizes).collect())
}

/// The size that brings most data per second: the largest that gets through, or the largest that is surely below the
/// threshold.
fn best(scan: &Scan, kind: Kind, pmtu: u16, headers: u16, rtt: Duration, rate: BitsPerSecond) -> (u16, Goodput) {
    let Some(threshold) = scan.threshold() else { return (pmtu, Goodput { loss_based: 1.0, rate_based: 1.0 }) };
    let capacity = rate.get() as f64 / 8.0;
    let (low, high) = there(scan, kind, threshold.low.loss(), threshold.high.loss());
    let at = |size: u16, loss| goodput(size.saturating_sub(headers), headers, loss, rtt, capacity);
    let (large, small) = (at(pmtu, high), at(threshold.safe, low));
    if small.loss_based <= large.loss_based {
        return (pmtu, Goodput { loss_based: 1.0, rate_based: 1.0 });
    }
    let gain =
        Goodput { loss_based: small.loss_based / large.loss_based, rate_based: small.rate_based / large.rate_based };
    (threshold.safe, gain)
}

/// Losses of short and of long packets on the way there, from those of packets with their answers: an answer to a short packet is
/// lost as often as the packet; of an echo's long one the same is taken where nothing tells it, and others have short answers.
fn there(scan: &Scan, kind: Kind, low: f64, high: f64) -> (f64, f64) {
    let short = 1.0 - (1.0 - low).max(0.0).sqrt();
    let long = match (scan.directions(), kind) {
        (Some(found), _) => found.forward,
        (None, Kind::Echo) => 1.0 - (1.0 - high).max(0.0).sqrt(),
        (None, _) => 1.0 - (1.0 - high) / (1.0 - short).max(1e-9),
    };
    (short, long.clamp(short, 1.0))
}

impl FinishedScan {
    /// The answer of the search with this one's.
    pub(super) fn added_to(&self, searched: MtuAnswer) -> MtuAnswer {
        let mut answer = MtuAnswer { scan: Some(self.answer()), ..searched };
        let rows = self.scan.sizes();
        answer.search.sizes = rows.iter().map(|row| SizeAnswer::new(row.size, row.count, row.rtt)).collect();
        answer.search.best_size = Some(self.best);
        answer.search.packets = self.cost.packets;
        answer.search.seconds = self.cost.time.as_secs_f64();
        if self.scan.threshold().is_some() {
            answer.search.kind = PathKind::SizeDependentLoss;
            answer.search.advice = vec![narrower(self.ip, u64::from(self.best))];
        } else if self.open().is_some() && matches!(answer.search.kind, PathKind::Clean | PathKind::IcmpBlocked) {
            answer.search.kind = PathKind::Inconclusive;
        }
        answer
    }

    /// Why the path can't be called clean.
    fn open(&self) -> Option<OpenScan> {
        let silent = self.scan.sizes().iter().all(|row| row.count.answered == 0);
        match silent {
            true => Some(OpenScan::Unanswered),
            false => self.scan.leaves_open().then_some(OpenScan::LongLoseMore),
        }
    }

    fn answer(&self) -> ScanAnswer {
        let threshold = |found: wt_probe::Threshold| ThresholdAnswer {
            below: found.below,
            above: found.above,
            loss_below: found.low.loss(),
            loss_above: found.high.loss(),
            evidence: found.evidence,
            safe: found.safe,
        };
        let loose = |loose: wt_probe::Loose| LooseAnswer {
            size: loose.size,
            sent: loose.count.sent,
            answered: loose.count.answered,
        };
        let rate_check = |check: wt_probe::RateCheck| RateCheckAnswer {
            loss_full: check.full.loss(),
            loss_half: check.half.loss(),
            halvings: check.halvings,
            caused_by_rate: check.persists || check.halvings > 0,
            ruled_out: check.is_ruled_out(),
            of_long_packets: check.long,
            persists: check.persists,
        };
        let Goodput { loss_based, rate_based } = self.gain;
        ScanAnswer {
            threshold: self.scan.threshold().map(threshold),
            evidence: self.scan.evidence(),
            without_df: self.scan.loose().map(loose),
            rate_check: self.scan.rate_check().map(rate_check),
            loss_forward: self.scan.directions().map(|found| found.forward),
            loss_reverse: self.scan.directions().map(|found| found.reverse),
            gain: GainAnswer { loss_based, rate_based, assumed_rate_bps: self.rate.get() },
            sizes_left_out: self.scan.left_out(),
            open: self.open(),
            spent: self.scan.packets() + FEW >= self.most,
            packets: self.own.packets,
            seconds: self.own.time.as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_ipv6_sizes_below_its_least_mtu_are_scanned_for_who_asks() {
        let loopback = Target::find("127.0.0.1", None, 80).unwrap();
        let target = |text: &str| Target { mtu: 1500, ip: text.parse().unwrap(), ..loopback.clone() };
        let v6 = target("fd00::1");
        let own = |from, to| sizes(&ScanRequest { from, to, step: 100, ..ScanRequest::default() }, &v6);
        let ends = |sizes: Vec<u16>| {
            let own: Vec<u16> = sizes.into_iter().filter(|size| !SHORTER_6.contains(size)).collect();
            (own[0], own[own.len() - 1])
        };
        assert_eq!(ends(own(576, None).unwrap()), (1280, 1480));
        assert_eq!(ends(own(600, Some(1000)).unwrap()), (600, 1000));
        assert_eq!(ends(own(576, Some(1000)).unwrap()), (576, 976));
        assert_eq!(ends(own(700, None).unwrap()), (700, 1500));
        assert_eq!(sizes(&ScanRequest::default(), &target("192.0.2.1")).unwrap()[5], 576);
        assert!(own(2000, Some(3000)).is_err());
    }
}
