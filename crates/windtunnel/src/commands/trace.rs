//! `windtunnel trace`: the hops of a path, all asked at once.

use super::mtu::micros;
use super::probing::names::names_of;
use super::probing::{Cost, Driver, ProbeOptions, Target, hosts, offered};
use crate::edge::{Exit, Failure, Fault, Outcome, say};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use wt_probe::{Change, Kind, Machine, Trace, TraceConfig, TraceHop};

/// No trace takes longer.
const LIMIT: Duration = Duration::from_secs(30);
/// Names are waited for no longer.
const NAMES: Duration = Duration::from_millis(500);

/// Shows the hops to hosts: address, loss, RTT, the MTU of the next link, and what each hop changes in TCP's handshake
///
/// All hops are asked at once, so that a trace takes two round trips. Every flow keeps one way past load balancers; ask
/// for several to see the others. What hops change is read from the SYNs that they quote, which takes CAP_NET_RAW.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel trace example.org
  windtunnel trace --flows 4 --probes 5 example.org:443
  windtunnel trace --file hosts.txt --summary")]
pub(crate) struct TraceArgs {
    /// The hosts, with the TCP port that SYNs go to [default port: 80]
    #[arg(required_unless_present = "file", value_name = "HOST[:PORT]")]
    hosts: Vec<String>,
    /// Read hosts from a file, too, one a line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// One line for each host: how many hops, and the TTL of its answers
    #[arg(long)]
    summary: bool,
    /// Flows: load balancers may send each another way
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=16))]
    flows: u8,
    /// Probes of each flow to each hop
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u8).range(1..=100))]
    probes: u8,
    /// Length of the probes, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 64, value_parser = clap::value_parser!(u16).range(52..=9000))]
    size: u16,
    /// Don't look up names
    #[arg(short = 'n', long)]
    numeric: bool,
    #[command(flatten)]
    options: ProbeOptions,
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &TraceArgs) -> Outcome {
    let hosts = hosts(&args.hosts, args.file.as_deref())?;
    let targets: Vec<Target> =
        hosts.iter().map(|host| Target::find(host, args.options.ip, 80)).collect::<Result<_, _>>()?;
    let plan = Plan { flows: args.flows, probes: if args.summary { 1 } else { args.probes }, size: args.size };
    let (traces, cost) = trace(&targets, plan, &args.options)?;
    let names = if args.numeric || args.summary { HashMap::new() } else { names(&traces) };
    let pairs = || targets.iter().zip(&traces);
    if args.options.json {
        let all: Vec<Value> = pairs().map(|(target, trace)| to_json(target, trace, &names, cost)).collect();
        match &all[..] {
            [one] => say!("{one:#}"),
            all => say!("{:#}", json!({"schema_version": 1, "targets": all})),
        }
    } else if args.summary {
        say!("{:<40} {:<39} {:>4} {:>4}", "host", "address", "hops", "ttl");
        pairs().for_each(|(target, trace)| summarise(target, trace));
    } else {
        pairs().for_each(|(target, trace)| show(target, trace, &names, cost));
    }
    match pairs().find(|(_, trace)| trace.hops().is_empty()) {
        Some((target, _)) => Err(Failure::new(Fault::FarEnd, format!("nobody on the way to {} answers", target.name))
            .hint("a firewall near this host may forbid ICMP")),
        None => Ok(Exit::Done),
    }
}

/// How much is asked.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// Flows.
    pub(crate) flows: u8,
    /// Probes of each flow to each hop.
    pub(crate) probes: u8,
    /// Length of probes, bytes.
    pub(crate) size: u16,
}

/// Traces all targets at once.
pub(crate) fn trace(targets: &[Target], plan: Plan, options: &ProbeOptions) -> Result<(Vec<Trace>, Cost), Failure> {
    let mut traces: Vec<Option<Trace>> = targets.iter().map(|_| None).collect();
    let mut cost = Cost::default();
    for v6 in [false, true] {
        let of_version: Vec<usize> = (0..targets.len()).filter(|i| targets[*i].ip.is_ipv6() == v6).collect();
        if of_version.is_empty() {
            continue;
        }
        let mut driver = Driver::open(v6, of_version.len(), options)?;
        let kinds = driver.kinds();
        let config = |target: &Target| TraceConfig {
            kind: if kinds.contains(&Kind::Echo) { Kind::Echo } else { Kind::Udp },
            handshake: kinds.contains(&Kind::OldSegment),
            flows: plan.flows,
            probes: plan.probes,
            size: plan.size,
            max: target.mtu,
            offered: offered(target),
        };
        let mut machines: Vec<Trace> = of_version.iter().map(|i| Trace::new(config(&targets[*i]))).collect();
        let pairs =
            of_version.iter().zip(&mut machines).map(|(i, machine)| (&targets[*i], machine as &mut dyn Machine));
        let spent = driver.run(pairs.collect(), LIMIT)?;
        cost = Cost { packets: cost.packets + spent.packets, time: cost.time + spent.time };
        for (i, machine) in of_version.into_iter().zip(machines) {
            traces[i] = Some(machine);
        }
    }
    Ok((traces.into_iter().flatten().collect(), cost))
}

/// The names of all hops.
pub(crate) fn names(traces: &[Trace]) -> HashMap<IpAddr, String> {
    let hops = traces.iter().flat_map(Trace::hops);
    let mut addresses: Vec<IpAddr> = hops.flat_map(|hop| hop.addresses).collect();
    addresses.sort_unstable();
    addresses.dedup();
    names_of(&addresses, NAMES)
}

/// The JSON contract.
pub(crate) fn to_json(target: &Target, trace: &Trace, names: &HashMap<IpAddr, String>, cost: Cost) -> Value {
    let (probes, rounds) = trace.cost();
    json!({
        "schema_version": 1,
        "target": target.name,
        "address": target.ip.to_string(),
        "reached": trace.target().is_some(),
        "by_tcp": trace.by_tcp(),
        "hop_count": trace.target(),
        "reply_ttl": trace.reply_ttl(),
        "hops": trace.hops().iter().map(|hop| hop_json(hop, names)).collect::<Vec<_>>(),
        "packets": cost.packets,
        "probes": probes,
        "rounds": rounds,
        "seconds": cost.time.as_secs_f64(),
    })
}

fn hop_json(hop: &TraceHop, names: &HashMap<IpAddr, String>) -> Value {
    let first = hop.addresses.first();
    json!({
        "ttl": hop.ttl,
        "address": first.map(ToString::to_string),
        "addresses": hop.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
        "name": first.and_then(|address| names.get(address)),
        "rtt_us": hop.rtts.iter().min().map(|rtt| micros(*rtt)),
        "rtts_us": hop.rtts.iter().map(|rtt| micros(*rtt)).collect::<Vec<_>>(),
        "sent": hop.count.sent,
        "answered": hop.count.answered,
        "loss": hop.count.loss(),
        "mtu": hop.mtu,
        "quoted": hop.quoted,
        "changed": hop.changed.iter().map(words).collect::<Vec<_>>(),
        "target": hop.target,
    })
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
    }
}

/// A change of the type-of-service byte: its two parts have nothing to do with each other (RFC 2474, RFC 3168).
fn type_of_service(from: u8, to: u8) -> String {
    let name = |tos: u8| ["not-ECT", "ECT(1)", "ECT(0)", "CE"][usize::from(tos & 3)];
    let ecn = (from & 3 != to & 3).then(|| format!("ecn {} -> {}", name(from), name(to)));
    let dscp = (from >> 2 != to >> 2).then(|| format!("dscp {} -> {}", from >> 2, to >> 2));
    ecn.into_iter().chain(dscp).collect::<Vec<_>>().join(", ")
}

fn show(target: &Target, trace: &Trace, names: &HashMap<IpAddr, String>, cost: Cost) {
    say!("{} ({})", target.name, target.ip);
    for hop in trace.hops() {
        say!("{}", line(&hop, names));
    }
    let end = match (trace.target(), trace.by_tcp()) {
        (Some(1), false) => "1 hop".to_owned(),
        (Some(hops), false) => format!("{hops} hops"),
        (Some(hops), true) => format!("{hops} hops; the target answers TCP only"),
        (None, _) if trace.is_open() => "the target accepts TCP, but doesn't say how far it is".to_owned(),
        (None, _) => "the target doesn't answer".to_owned(),
    };
    say!("{end}; {} packets, {:.2} s", cost.packets, cost.time.as_secs_f64());
}

/// One hop as a line.
pub(crate) fn line(hop: &TraceHop, names: &HashMap<IpAddr, String>) -> String {
    let who: Vec<String> = hop
        .addresses
        .iter()
        .map(|address| names.get(address).map_or(address.to_string(), |name| format!("{name} ({address})")))
        .collect();
    let who = if who.is_empty() { "*".to_owned() } else { who.join(" | ") };
    let rtt = hop.rtts.iter().min().map_or(String::new(), |rtt| format!("{:.2} ms", rtt.as_secs_f64() * 1e3));
    let loss = if hop.count.lost() == 0 { String::new() } else { format!("  {:.0} % lost", hop.count.loss() * 100.0) };
    let mtu = hop.mtu.map_or(String::new(), |mtu| format!("  mtu {mtu}"));
    let changed: Vec<String> = hop.changed.iter().map(words).collect();
    let changed = if changed.is_empty() { String::new() } else { format!("  changed: {}", changed.join(", ")) };
    format!("{:>3}  {who:<40} {rtt:>10}{loss}{mtu}{changed}", hop.ttl).trim_end().to_owned()
}

fn summarise(target: &Target, trace: &Trace) {
    let text = |number: Option<u8>| number.map_or("-".to_owned(), |number| number.to_string());
    let (hops, ttl) = (text(trace.target()), text(trace.reply_ttl()));
    say!("{:<40} {:<39} {hops:>4} {ttl:>4}", target.name, target.ip);
}
