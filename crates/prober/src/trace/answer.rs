use crate::answers::micros;
use crate::driver::Cost;
use crate::refusal::RefusalAnswer;
use crate::target::{Target, no_time};
use serde::Serialize;
use std::collections::HashMap;
use std::net::IpAddr;
use wt_probe::{Change, LossCount, Machine as _, Trace, TraceHop};
use wt_problem::Problem;

/// What a trace found of one host.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceAnswer {
    /// The version of this contract.
    pub schema_version: u32,
    /// The host as it was written.
    pub target: String,
    /// Its address; `None` of a name that has none.
    pub address: Option<IpAddr>,
    /// Whether only TCP reached it.
    pub by_tcp: bool,
    /// The hops.
    #[serde(flatten)]
    pub route: RouteAnswer,
    /// Packets that left for the hosts of this request, this one's and others'.
    pub packets: u32,
    /// Probes to this host's hops.
    pub probes: u32,
    /// Bursts.
    pub rounds: u32,
    /// How long all of it took, seconds.
    pub seconds: f64,
    /// What is known of the host, if none of its answers says how far it is.
    #[serde(skip)]
    pub end: TraceEnd,
    /// Why there is no hop, if there is none, or no way to the end of them for want of time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<Problem>,
}

/// What a host is known to do that doesn't say how far it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TraceEnd {
    /// It answers nothing.
    #[default]
    Silent,
    /// It accepts TCP connections.
    Open,
    /// It refuses them.
    Refused,
    /// The time was up before all was asked.
    OutOfTime,
}

impl TraceEnd {
    fn of(trace: &Trace) -> Self {
        match () {
            () if !trace.is_done() && trace.target().is_none() => Self::OutOfTime,
            () if trace.is_open() => Self::Open,
            () if trace.is_refused() => Self::Refused,
            () => Self::Silent,
        }
    }
}

/// The hops of a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RouteAnswer {
    /// Hop by hop.
    pub hops: Vec<TraceHopAnswer>,
    /// Whether the host itself answered.
    pub reached: bool,
    /// How many hops away it is.
    pub hop_count: Option<u8>,
    /// The TTL with which its answers arrive.
    pub reply_ttl: Option<u8>,
    /// Who says that packets to the host go no further; left out where nobody does, or where it answered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unreachable: Option<RefusalAnswer>,
}

/// A hop.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TraceHopAnswer {
    /// How many hops away, from 1.
    pub ttl: u8,
    /// Who answered first.
    pub address: Option<IpAddr>,
    /// All who answered; several where load is balanced.
    pub addresses: Vec<IpAddr>,
    /// The name of the first.
    pub name: Option<String>,
    /// The shortest round-trip time, µs.
    pub rtt_us: Option<f64>,
    /// All of them, µs.
    pub rtts_us: Vec<f64>,
    /// Probes.
    pub sent: u32,
    /// Answers.
    pub answered: u32,
    /// The share that wasn't answered.
    pub loss: f64,
    /// The largest packet known to go on from here, bytes.
    pub mtu: Option<u16>,
    /// Whether the hop quoted a whole SYN, so that no change means none.
    pub quoted: bool,
    /// What middleboxes changed in a SYN before it came here.
    pub changed: Vec<String>,
    /// Whether it is the host itself.
    pub target: bool,
    /// The names of all addresses.
    #[serde(skip)]
    pub names: Vec<Option<String>>,
}

impl TraceHopAnswer {
    fn of(hop: &TraceHop, names: &HashMap<IpAddr, String>) -> Self {
        let LossCount { sent, answered } = hop.count;
        let names: Vec<Option<String>> = hop.addresses.iter().map(|address| names.get(address).cloned()).collect();
        Self {
            ttl: hop.ttl,
            address: hop.addresses.first().copied(),
            addresses: hop.addresses.clone(),
            name: names.first().cloned().flatten(),
            rtt_us: hop.rtts.iter().min().copied().map(micros),
            rtts_us: hop.rtts.iter().copied().map(micros).collect(),
            sent,
            answered,
            loss: hop.count.loss(),
            mtu: hop.mtu,
            quoted: hop.quoted,
            changed: hop.changed.iter().map(words).collect(),
            target: hop.target,
            names,
        }
    }
}

impl RouteAnswer {
    pub(crate) fn of(trace: &Trace, target: IpAddr, names: &HashMap<IpAddr, String>) -> Self {
        let at = |from: IpAddr| trace.hops().iter().find(|hop| hop.addresses.contains(&from)).map(|hop| hop.ttl);
        let refusal = trace.refusal();
        Self {
            unreachable: refusal.map(|said| RefusalAnswer::of(said, target.is_ipv6(), said.from.and_then(at))),
            hops: trace.hops().iter().map(|hop| TraceHopAnswer::of(hop, names)).collect(),
            reached: trace.target().is_some(),
            hop_count: trace.target(),
            reply_ttl: trace.reply_ttl(),
        }
    }
}

impl TraceAnswer {
    pub(crate) fn of(target: &Target, trace: &Trace, names: &HashMap<IpAddr, String>, cost: Cost) -> Self {
        let (probes, rounds) = trace.cost();
        let route = RouteAnswer::of(trace, target.ip, names);
        let silent = || {
            let problem = Problem::remote(format!("nobody on the way to {} answers", target.name));
            match &route.unreachable {
                Some(refusal) => problem.because(refusal.text()).hint(refusal.hint(&target.name)),
                None => problem.hint("a firewall near this host may forbid ICMP"),
            }
        };
        let end = TraceEnd::of(trace);
        let problem = match end {
            TraceEnd::OutOfTime => Some(no_time(target)),
            _ => route.hops.is_empty().then(silent),
        };
        Self {
            schema_version: 1,
            target: target.name.clone(),
            address: Some(target.ip),
            by_tcp: trace.by_tcp(),
            problem,
            route,
            packets: cost.packets,
            probes,
            rounds,
            seconds: cost.time.as_secs_f64(),
            end,
        }
    }

    /// Of a host that couldn't be probed.
    pub(super) fn unreached((name, address): (&str, Option<IpAddr>), problem: &Problem, cost: Cost) -> Self {
        Self {
            schema_version: 1,
            target: name.to_owned(),
            address,
            by_tcp: false,
            route: RouteAnswer {
                hops: Vec::new(),
                reached: false,
                hop_count: None,
                reply_ttl: None,
                unreachable: None,
            },
            packets: cost.packets,
            probes: 0,
            rounds: 0,
            seconds: cost.time.as_secs_f64(),
            end: TraceEnd::Silent,
            problem: Some(problem.clone()),
        }
    }

    /// Why there is no hop, if there is none.
    #[must_use]
    pub const fn problem(&self) -> Option<&Problem> {
        self.problem.as_ref()
    }
}

/// A change in words.
fn words(change: &Change) -> String {
    let number = |value: Option<u32>| value.map_or("none".to_owned(), |value| value.to_string());
    match *change {
        Change::Mss(from, to) => format!("mss {} -> {}", number(from.map(u32::from)), number(to.map(u32::from))),
        Change::WindowScale(from, to) => {
            format!("window-scale {} -> {}", number(from.map(u32::from)), number(to.map(u32::from)))
        }
        Change::Sack => "sack removed".to_owned(),
        Change::Timestamps => "timestamps removed".to_owned(),
        Change::Ecn => "ecn offer removed".to_owned(),
        Change::FastOpen => "fast-open removed".to_owned(),
        Change::Tos(from, to) => type_of_service(from, to),
        Change::DontFragment => "df cleared: routers behind fragment what is too long".to_owned(),
    }
}

/// A change of the type-of-service byte: its two parts have nothing to do with each other (RFC 2474, RFC 3168).
fn type_of_service(from: u8, to: u8) -> String {
    let name = |tos: u8| ["not-ECT", "ECT(1)", "ECT(0)", "CE"][usize::from(tos & 3)];
    let ecn = (from & 3 != to & 3).then(|| format!("ecn {} -> {}", name(from), name(to)));
    let dscp = (from >> 2 != to >> 2).then(|| format!("dscp {} -> {}", from >> 2, to >> 2));
    ecn.into_iter().chain(dscp).collect::<Vec<_>>().join(", ")
}
