//! `windtunnel mtu`: the largest packet that gets through, and why larger ones don't.

/// Loss size by size.
mod scan;

use super::probing::{Cost, Driver, ProbeOptions, Target, hosts};
use super::report::write_whole;
use crate::edge::{Exit, Failure, Fault, Outcome, say};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;
use wt_probe::{Finding, Kind, Machine, PathKind, Search, SearchConfig, SearchReport};
use wt_units::BitsPerSecond;

/// With more targets at once routers are given no time to say more.
const FEW: usize = 4;
/// No search takes longer.
const LIMIT: Duration = Duration::from_secs(60);

/// Finds the largest packet that gets through to a host, and why larger ones don't
///
/// Many sizes are probed at once, by ICMP echo, TCP and UDP, whichever the path answers; what routers say is verified and
/// never believed. With CAP_NET_RAW (as root, or setcap cap_net_raw+ep) all kinds of probes are there, and without it UDP
/// and, where net.ipv4.ping_group_range allows, ICMP echo.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel mtu example.org
  windtunnel mtu --ip 6 example.org:443 --json
  windtunnel mtu --scan --from 1200 --to 1500 --step 12 example.org
  windtunnel lab run black-hole -- windtunnel mtu server")]
pub(crate) struct MtuArgs {
    /// The hosts, with the TCP port that TCP probes go to [default port: 80]
    #[arg(required_unless_present = "file", value_name = "HOST[:PORT]")]
    hosts: Vec<String>,
    /// Read hosts from a file, too, one a line
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Count losses size by size, too, and find the size that brings most data per second
    #[arg(long)]
    scan: bool,
    /// The smallest size to scan, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 576, value_parser = clap::value_parser!(u16).range(68..), requires = "scan")]
    from: u16,
    /// The largest size to scan, bytes [default: the interface's MTU]
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(68..), requires = "scan")]
    to: Option<u16>,
    /// From one size to the next, bytes
    #[arg(long, value_name = "BYTES", default_value_t = 12, value_parser = clap::value_parser!(u16).range(1..), requires = "scan")]
    step: u16,
    /// Packets at most; a scan ends sooner when the answer is clear [default: 6000, and 20000 to split a large loss by
    /// direction]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(100..=1_000_000), requires = "scan")]
    most: Option<u32>,
    /// Draw loss by size, with its intervals, into a file
    #[arg(long, value_name = "FILE", requires = "scan")]
    svg: Option<PathBuf>,
    /// The path's rate, by which gains are reckoned
    #[arg(long, value_name = "RATE", default_value = "100mbit", requires = "scan")]
    rate: BitsPerSecond,
    #[command(flatten)]
    options: ProbeOptions,
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &MtuArgs) -> Outcome {
    let hosts = hosts(&args.hosts, args.file.as_deref())?;
    let targets: Vec<Target> =
        hosts.iter().map(|host| Target::find(host, args.options.ip, 80)).collect::<Result<_, _>>()?;
    let Searched { reports, cost, reverse } = search(&targets, &args.options, !args.scan)?;
    if args.scan {
        return scan(args, &targets, &reports, cost.plus(reverse));
    }
    let json = |(target, report)| {
        let mut json = to_json(target, report, cost);
        json["reverse_packets"] = reverse.packets.into();
        json["reverse_seconds"] = reverse.time.as_secs_f64().into();
        json
    };
    let all: Vec<Value> = targets.iter().zip(&reports).map(json).collect();
    match (args.options.json, &all[..]) {
        (true, [one]) => say!("{one:#}"),
        (true, all) => say!("{:#}", json!({"schema_version": 1, "targets": all})),
        (false, _) => {
            targets.iter().zip(&reports).for_each(|(target, report)| show(target, report, cost.plus(reverse)))
        }
    }
    match reports.iter().zip(&targets).find(|(report, _)| report.pmtu.is_none()) {
        Some((report, target)) => Err(unanswered(target, report)),
        None => Ok(Exit::Done),
    }
}

/// What searches found and cost.
pub(crate) struct Searched {
    /// Target by target.
    pub(crate) reports: Vec<SearchReport>,
    /// The cost of finding what gets there.
    pub(crate) cost: Cost,
    /// The cost, on top, of finding what comes back.
    pub(crate) reverse: Cost,
}

/// Searches for all targets at once, those of one version of IP after those of the other.
/// Losses are counted if asked for.
pub(crate) fn search(targets: &[Target], options: &ProbeOptions, losses: bool) -> Result<Searched, Failure> {
    let mut reports: Vec<Option<SearchReport>> = targets.iter().map(|_| None).collect();
    let (mut cost, mut reverse) = (Cost::default(), Cost::default());
    for v6 in [false, true] {
        let of_version: Vec<usize> = (0..targets.len()).filter(|i| targets[*i].ip.is_ipv6() == v6).collect();
        if of_version.is_empty() {
            continue;
        }
        let mut driver = Driver::open(v6, of_version.len(), options)?;
        let kinds = driver.kinds();
        let handshake = kinds.contains(&Kind::OldSegment) || kinds.contains(&Kind::Stream);
        let patient = of_version.len() <= FEW;
        let config =
            |i: usize| SearchConfig { max: targets[i].mtu, v6, kinds: kinds.clone(), handshake, patient, losses };
        let mut machines: Vec<Search> =
            of_version.iter().map(|i| Search::new(config(*i), options.rng(*i as u64))).collect();
        let (spent, reverse_pmtu, on_top) = if let ([only], [machine]) = (&of_version[..], &mut machines[..]) {
            driver.search_both_ways(&targets[*only], machine, LIMIT)?
        } else {
            let pairs =
                of_version.iter().zip(&mut machines).map(|(i, machine)| (&targets[*i], machine as &mut dyn Machine));
            (driver.run(pairs.collect(), LIMIT)?, None, Cost::default())
        };
        (cost, reverse) = (cost.plus(spent), reverse.plus(on_top));
        for (i, machine) in of_version.iter().zip(&machines) {
            reports[*i] = Some(SearchReport { reverse_pmtu, ..machine.report() });
        }
    }
    Ok(Searched { reports: reports.into_iter().flatten().collect(), cost, reverse })
}

/// The scan, after the search has told up to where it makes sense.
fn scan(args: &MtuArgs, targets: &[Target], reports: &[SearchReport], cost: Cost) -> Outcome {
    let ([target], [report]) = (targets, reports) else {
        return Err(Failure::usage("a scan is of one host").hint("name one host only"));
    };
    let ask = scan::Ask { from: args.from, to: args.to, step: args.step, most: args.most, rate: args.rate };
    let scanned = scan::run(target, report, &ask, &args.options, cost)?;
    if args.options.json {
        let mut json = to_json(target, report, cost);
        scanned.add_to(&mut json, cost);
        say!("{json:#}");
    } else {
        show(target, report, cost);
        say!("{}", scanned.text());
    }
    // Last, so that a file that can't be written costs nothing.
    if let Some(file) = &args.svg {
        write_whole(file, &scanned.svg()).map_err(|failure| failure.hint("name another file"))?;
    }
    Ok(Exit::Done)
}

pub(crate) fn unanswered(target: &Target, report: &SearchReport) -> Failure {
    if report.findings.contains(&Finding::PathChanged) {
        let what = format!("the path to {} changed or broke while it was probed", target.name);
        return Failure::new(Fault::FarEnd, what).hint("try again");
    }
    let code = report.findings.iter().find_map(|finding| match finding {
        Finding::Unreachable { code } => *code,
        _ => None,
    });
    let cause = code.map_or("it is down, or a firewall forbids ICMP echo, the TCP port and UDP".to_owned(), |code| {
        format!("somebody on the way says that it can't be reached (ICMP code {code})")
    });
    Failure::new(Fault::FarEnd, format!("{} ({}) answers nothing", target.name, target.ip))
        .because(cause)
        .hint("name a TCP port that is open there, as HOST:PORT; TCP probes need CAP_NET_RAW (root)")
}

/// The JSON contract.
pub(crate) fn to_json(target: &Target, report: &SearchReport, cost: Cost) -> Value {
    let sizes: Vec<Value> = report
        .sizes
        .iter()
        .map(|tally| {
            let count = wt_probe::LossCount { sent: tally.sent, answered: tally.answered };
            let (low, high) = count.interval();
            json!({"size": tally.size, "sent": tally.sent, "answered": tally.answered, "loss": count.loss(),
                "loss_low": low, "loss_high": high, "rtt_us": tally.rtt.map(micros), "too_big": tally.refused})
        })
        .collect();
    let hop = |hop: wt_probe::Hop| json!({"ttl": hop.ttl, "address": hop.address.to_string()});
    json!({
        "schema_version": 1,
        "target": target.name,
        "address": target.ip.to_string(),
        "device": target.device,
        "device_mtu": target.mtu,
        "pmtu": report.pmtu,
        "reverse_pmtu": report.reverse_pmtu,
        "kind": report.kind.word(),
        "black_hole_hop": report.hole.map(hop),
        "mss": report.mss,
        "mss_clamp": report.clamp.map(|c| json!({"from": c.from, "to": c.to, "hop": c.hop.map(hop)})),
        "best_size": report.pmtu,
        "method": report.method.map(method),
        "hints": report.hints.iter().map(|hint| json!({
            "router": hint.router.map(|router| router.to_string()), "mtu": hint.mtu, "count": hint.count
        })).collect::<Vec<_>>(),
        "findings": findings(report),
        "rtt_us": report.rtt.min().map(micros),
        "packets": cost.packets,
        "probes": report.packets,
        "rounds": report.rounds,
        "seconds": cost.time.as_secs_f64(),
        "sizes": sizes,
        "advice": advice(target, report),
    })
}

pub(crate) fn micros(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

const fn method(kind: Kind) -> &'static str {
    match kind {
        Kind::Echo | Kind::LooseEcho => "icmp-echo",
        Kind::Udp => "udp",
        Kind::Stream => "tcp-data",
        Kind::OldSegment | Kind::Syn => "tcp-old-segment",
    }
}

fn findings(report: &SearchReport) -> Vec<String> {
    let words = report.findings.iter().map(|finding| match finding {
        Finding::EchoBlocked => "the target answers no ICMP echo".to_owned(),
        Finding::AbsurdHints { count } => format!("{count} ICMP messages named an impossible MTU; they were ignored"),
        Finding::RandomLoss => "packets of every size get lost".to_owned(),
        Finding::PathChanged => "what had got through before didn't any more: the path changed or broke".to_owned(),
        Finding::Unreachable { code: Some(code) } => format!("unreachable, says ICMP (code {code})"),
        Finding::Unreachable { code: None } => "nothing answered".to_owned(),
        Finding::GaveUp => "no clear answer within the bounds of packets and rounds".to_owned(),
    });
    words.collect()
}

/// What to do about it.
fn advice(target: &Target, report: &SearchReport) -> Vec<String> {
    let Some(pmtu) = report.pmtu else { return Vec::new() };
    let narrow = narrower(target.ip, u64::from(pmtu));
    let probing = "windtunnel settings plan mtu-probing=on  # TCP then finds the size itself, after a stall".to_owned();
    match report.kind {
        PathKind::BlackHole | PathKind::LyingRouter => vec![narrow, probing],
        PathKind::SizeDependentLoss => vec![
            format!("windtunnel mtu --scan {}  # finds the size from which packets get lost", target.name),
            "lower the MSS to that size: a loss-based congestion control gains most".to_owned(),
        ],
        PathKind::RateLimited => vec![probing],
        _ => Vec::new(),
    }
}

/// The command that shows how to keep packets to a target, and those from it, at a size. `settings apply` does it.
fn narrower(target: IpAddr, mtu: u64) -> String {
    const LEAST_OF_IPV6: u64 = 1_280;
    let mss = mtu.saturating_sub(if target.is_ipv6() { 60 } else { 40 });
    // The kernel has no smaller MTU on routes of IPv6; the MSS still keeps TCP below.
    let mtu = if target.is_ipv6() && mtu < LEAST_OF_IPV6 { String::new() } else { format!("mtu={mtu} ") };
    format!("windtunnel settings plan {mtu}mss={mss} --to {target}")
}

fn show(target: &Target, report: &SearchReport, cost: Cost) {
    let Some(pmtu) = report.pmtu else { return };
    say!("{} ({}): packets of up to {pmtu} bytes get through", target.name, target.ip);
    say!("  {}", sentence(report, pmtu, target));
    match report.reverse_pmtu {
        Some(reverse) if reverse == pmtu => say!("  and as large ones come back"),
        Some(reverse) => say!("  packets of up to {reverse} bytes come back"),
        None => {}
    }
    if let Some(clamp) = report.clamp {
        let place = clamp.hop.map_or("on the way or by the target's choice".to_owned(), |hop| {
            format!("before hop {} ({})", hop.ttl, hop.address)
        });
        say!("  TCP's MSS is lowered from {} to {}, {place}", clamp.from, clamp.to);
    }
    for finding in findings(report) {
        say!("  {finding}");
    }
    let rtt = report.rtt.min().map_or(String::new(), |rtt| format!(", RTT {:.1} ms", rtt.as_secs_f64() * 1e3));
    let by = report.method.map_or("", method);
    say!("  {} packets, {:.2} s, by {by}{rtt}", cost.packets, cost.time.as_secs_f64());
    for line in advice(target, report) {
        say!("  to do: {line}");
    }
}

fn sentence(report: &SearchReport, pmtu: u16, target: &Target) -> String {
    let hop = report.hole.map_or(String::new(), |hop| format!(" behind hop {} ({})", hop.ttl, hop.address));
    match report.kind {
        PathKind::BlackHole => format!("black hole{hop}: longer ones vanish there, and nobody says so"),
        PathKind::LyingRouter => {
            let says = report.hints.iter().find(|hint| hint.router == report.hole.map(|hop| hop.address));
            let says = says.map_or(String::new(), |hint| format!(": it says that {} do", hint.mtu));
            format!("lying router{hop}{says}")
        }
        PathKind::SizeDependentLoss => format!(
            "size-dependent loss: {:.0} % of {pmtu} bytes get lost, {:.0} % of short ones",
            report.long_loss.loss() * 100.0,
            report.short_loss.loss() * 100.0
        ),
        PathKind::RateLimited => "rate-limited: routers say so, but not every time".to_owned(),
        PathKind::IcmpBlocked => "clean, though the target answers no ICMP".to_owned(),
        PathKind::Clean | PathKind::Clamped if pmtu >= target.mtu => {
            format!("clean: all that {} takes gets through", target.device)
        }
        PathKind::Clean | PathKind::Clamped => "clean: routers say so when packets are longer".to_owned(),
        PathKind::Inconclusive => "it can't be said why".to_owned(),
    }
}
