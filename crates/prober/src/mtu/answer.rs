use super::scan_answer::ScanAnswer;
use super::words::{advice, findings, method, refusal, unanswered};
use crate::RefusalAnswer;
use crate::answers::micros;
use crate::driver::Cost;
use crate::target::Target;
use serde::{Serialize, Serializer};
use std::net::IpAddr;
use wt_probe::{FlowTally, Hint, Hop, LossCount, PathKind, SearchReport, SizeTally};
use wt_problem::Problem;

/// What a search found of one host, and a scan if that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MtuAnswer {
    /// What the search found.
    #[serde(flatten)]
    pub search: SearchAnswer,
    /// The shortest round-trip time, µs.
    pub rtt_us: Option<f64>,
    /// What it took to find the largest packet that comes back; not told apart in a scan.
    #[serde(flatten)]
    pub reverse: Option<ReverseCost>,
    /// What the scan found.
    #[serde(flatten)]
    pub scan: Option<ScanAnswer>,
}

/// What it took, on top, to find the largest packet that comes back.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ReverseCost {
    /// Packets that we sent.
    #[serde(rename = "reverse_packets")]
    pub packets: u32,
    /// Seconds.
    #[serde(rename = "reverse_seconds")]
    pub seconds: f64,
}

impl From<Cost> for ReverseCost {
    fn from(cost: Cost) -> Self {
        Self { packets: cost.packets, seconds: cost.time.as_secs_f64() }
    }
}

/// What is known of the sizes that get through to a host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchAnswer {
    /// The version of this contract.
    pub schema_version: u32,
    /// The host as it was written.
    pub target: String,
    /// Its address; `None` of a name that has none.
    pub address: Option<IpAddr>,
    /// The device through which packets to it leave; `None` where there is no way to it.
    pub device: Option<String>,
    /// That device's MTU, bytes.
    pub device_mtu: Option<u16>,
    /// The largest packet that gets through, bytes; `None` if nothing answered.
    pub pmtu: Option<u16>,
    /// Whether longer ones may well get through, and only this host's probes can't be longer; left out where that isn't so.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub pmtu_at_least: bool,
    /// The largest packet that comes back, bytes, where that shows.
    pub reverse_pmtu: Option<u16>,
    /// What is the matter with the path.
    #[serde(serialize_with = "word")]
    pub kind: PathKind,
    /// The last hop that packets just too long reach, where they vanish.
    pub black_hole_hop: Option<HopAnswer>,
    /// The MSS that the host named, bytes.
    pub mss: Option<u16>,
    /// A lowered MSS.
    pub mss_clamp: Option<ClampAnswer>,
    /// What became of packets on TCP connections that load balancers may send other ways; `None` where there were none.
    pub flows: Option<FlowsAnswer>,
    /// The first hop that sees IPv4's "don't fragment" cleared; `None` where none does, or where quotations can't be read.
    pub df_cleared_hop: Option<HopAnswer>,
    /// The size that brings most data a second, bytes.
    pub best_size: Option<u16>,
    /// What the path answered: `icmp-echo`, `udp`, `tcp-data` or `tcp-old-segment`.
    pub method: Option<&'static str>,
    /// What routers said of their next links.
    pub hints: Vec<HintAnswer>,
    /// What else was found, in words.
    pub findings: Vec<String>,
    /// Packets that left for the hosts of this request, this one's and others'.
    pub packets: u32,
    /// Probes to this host.
    pub probes: u32,
    /// Bursts, each followed by a verdict.
    pub rounds: u32,
    /// How long all of it took, seconds.
    pub seconds: f64,
    /// Size by size.
    pub sizes: Vec<SizeAnswer>,
    /// What to do about it, in words and commands.
    pub advice: Vec<String>,
    /// Who says that packets to the host go no further; left out where nobody does, or where some got through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<RefusalAnswer>,
    /// Loss of short and of the longest packets, if it was looked at.
    #[serde(skip)]
    pub loss: (LossCount, LossCount),
    /// Why nothing is known, if nothing answered or nothing could be sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// A hop and its address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HopAnswer {
    /// How many hops away, from 1.
    pub ttl: u8,
    /// Its address.
    pub address: IpAddr,
}

impl From<Hop> for HopAnswer {
    fn from(hop: Hop) -> Self {
        Self { ttl: hop.ttl, address: hop.address }
    }
}

/// A lowered MSS, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct ClampAnswer {
    /// What this host offers.
    pub from: u16,
    /// What it became.
    pub to: u16,
    /// The first hop that saw the lower one.
    pub hop: Option<HopAnswer>,
}

/// Packets of one length on TCP connections of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct FlowsAnswer {
    /// The length of the packets, bytes.
    pub size: u16,
    /// Connections that sent one.
    pub sent: u32,
    /// Those on which it was acknowledged.
    pub carried: u32,
    /// Those on which it vanished, however often it was retransmitted.
    pub silent: u32,
}

impl From<FlowTally> for FlowsAnswer {
    fn from(tally: FlowTally) -> Self {
        Self { size: tally.size, sent: tally.flows, carried: tally.carried, silent: tally.silent }
    }
}

/// What a router said of its next link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct HintAnswer {
    /// Whose address it bears.
    pub router: Option<IpAddr>,
    /// The MTU that it names, bytes.
    pub mtu: u16,
    /// How often.
    pub count: u32,
}

impl From<&Hint> for HintAnswer {
    fn from(hint: &Hint) -> Self {
        Self { router: hint.router, mtu: hint.mtu, count: hint.count }
    }
}

/// The probes of one size.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct SizeAnswer {
    /// The length of the IP packet, bytes.
    pub size: u16,
    /// How many were sent.
    pub sent: u32,
    /// How many of them were answered.
    pub answered: u32,
    /// The share that was lost.
    pub loss: f64,
    /// Between this and [`loss_high`](Self::loss_high) lies the true loss with 95 % confidence.
    pub loss_low: f64,
    /// See [`loss_low`](Self::loss_low).
    pub loss_high: f64,
    /// The round-trip time, µs: of a search the shortest, of a scan the median.
    pub rtt_us: Option<f64>,
    /// How many somebody called too long; not counted in a scan.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_big: Option<u32>,
}

impl SizeAnswer {
    pub(super) fn new(size: u16, count: LossCount, rtt: Option<wt_probe::Time>) -> Self {
        let (loss_low, loss_high) = count.interval();
        let LossCount { sent, answered } = count;
        Self { size, sent, answered, loss: count.loss(), loss_low, loss_high, rtt_us: rtt.map(micros), too_big: None }
    }

    /// Sent and answered.
    #[must_use]
    pub const fn count(&self) -> LossCount {
        LossCount { sent: self.sent, answered: self.answered }
    }
}

impl From<&SizeTally> for SizeAnswer {
    fn from(tally: &SizeTally) -> Self {
        let count = LossCount { sent: tally.sent, answered: tally.answered };
        Self { too_big: Some(tally.refused), ..Self::new(tally.size, count, tally.rtt) }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's signature")]
fn word<S: Serializer>(kind: &PathKind, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(kind.word())
}

impl SearchAnswer {
    pub(crate) fn of(target: &Target, report: &SearchReport, cost: Cost) -> Self {
        let clamp = |clamp: wt_probe::Clamp| ClampAnswer {
            from: clamp.from,
            to: clamp.to,
            hop: clamp.hop.map(HopAnswer::from),
        };
        Self {
            schema_version: 1,
            target: target.name.clone(),
            address: Some(target.ip),
            device: Some(target.device.clone()),
            device_mtu: Some(target.mtu),
            pmtu: report.pmtu,
            pmtu_at_least: report.is_lower_bound(),
            reverse_pmtu: report.reverse_pmtu,
            kind: report.kind,
            black_hole_hop: report.hole.map(HopAnswer::from),
            mss: report.mss,
            mss_clamp: report.clamp.map(clamp),
            flows: report.flows.map(FlowsAnswer::from),
            df_cleared_hop: report.df_cleared.map(HopAnswer::from),
            best_size: report.pmtu,
            method: report.method.map(method),
            hints: report.hints.iter().map(HintAnswer::from).collect(),
            findings: findings(target, report),
            packets: cost.packets,
            probes: report.packets,
            rounds: report.rounds,
            seconds: cost.time.as_secs_f64(),
            sizes: report.sizes.iter().map(SizeAnswer::from).collect(),
            advice: advice(target, report),
            unreachable: refusal(target, report),
            loss: (report.short_loss, report.long_loss),
            problem: report.pmtu.is_none().then(|| unanswered(target, report)),
        }
    }

    /// Of a host that couldn't be probed.
    fn unreached((name, address): (&str, Option<IpAddr>), problem: &Problem, cost: Cost) -> Self {
        Self {
            schema_version: 1,
            target: name.to_owned(),
            address,
            device: None,
            device_mtu: None,
            pmtu: None,
            pmtu_at_least: false,
            reverse_pmtu: None,
            kind: PathKind::Inconclusive,
            black_hole_hop: None,
            mss: None,
            mss_clamp: None,
            flows: None,
            df_cleared_hop: None,
            best_size: None,
            method: None,
            hints: Vec::new(),
            findings: Vec::new(),
            packets: cost.packets,
            probes: 0,
            rounds: 0,
            seconds: cost.time.as_secs_f64(),
            sizes: Vec::new(),
            advice: Vec::new(),
            unreachable: None,
            loss: (LossCount::default(), LossCount::default()),
            problem: Some(problem.clone()),
        }
    }
}

impl MtuAnswer {
    pub(super) fn of(target: &Target, report: &SearchReport, cost: Cost) -> Self {
        let rtt_us = report.rtt.min().map(micros);
        Self { search: SearchAnswer::of(target, report, cost), rtt_us, reverse: None, scan: None }
    }

    pub(super) fn unreached((name, address): (&str, Option<IpAddr>), problem: &Problem, cost: Cost) -> Self {
        Self {
            search: SearchAnswer::unreached((name, address), problem, cost),
            rtt_us: None,
            reverse: None,
            scan: None,
        }
    }

    /// Why nothing is known of the host, if it answered nothing or couldn't be reached.
    #[must_use]
    pub const fn problem(&self) -> Option<&Problem> {
        self.search.problem.as_ref()
    }
}
