//! `windtunnel path`: one screen about a path.

use super::mtu::{Searched, micros, search, to_json as mtu_json, unanswered};
use super::probing::{Cost, Driver, ProbeOptions, Target};
use super::trace::{Plan, line, names, to_json as trace_json, trace};
use crate::edge::{Exit, Failure, Outcome, say};
use serde_json::{Value, json};
use std::time::Duration;
use wt_probe::{Bottleneck, Cells, Kind, LossCount, Scan, ScanConfig, SearchReport, Trace, Train, cell_sizes, cells};
use wt_units::BitsPerSecond;

/// No part takes longer.
const LIMIT: Duration = Duration::from_secs(60);
/// The length of the packets whose round trips are counted, bytes.
const SMALL: u16 = 84;
/// Faster links send a cell within the jitter of this host.
const FAST: Duration = Duration::from_micros(300);
/// Probes of each size that look for cells: the fastest counts.
const CELL_REPEATS: u32 = 4;
/// Slower lines would be filled for too long by trains of packets.
const SLOW: Duration = Duration::from_millis(50);
/// Round trips are counted for so many seconds at most.
const LONGEST: u32 = 20;
/// Linux's initial congestion window, segments (RFC 6928).
const USUAL_INITCWND: u64 = 10;

/// Shows all about the path to a host on one screen, to be forwarded to a colleague
///
/// MTU, hops, round-trip times, loss, reordering, what is tampered with, the rate of the narrowest link, the
/// bandwidth-delay product and the windows that follow.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel path example.org
  windtunnel path --pings 1000 --json example.org:443")]
pub(crate) struct PathArgs {
    /// The host, with the TCP port that TCP probes go to [default port: 80]
    #[arg(value_name = "HOST[:PORT]")]
    host: String,
    /// Packets to count round-trip times with
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(10..=100_000))]
    pings: u32,
    #[command(flatten)]
    options: ProbeOptions,
}

/// Round trips, counted.
struct Pings {
    rtts: Vec<Duration>,
    count: LossCount,
    reordered: u32,
    /// The mean difference of one round-trip time from the one before it.
    jitter: Duration,
}

/// All of it.
struct Found<'a> {
    target: &'a Target,
    report: SearchReport,
    trace: Trace,
    pings: Option<Pings>,
    bottleneck: Option<Bottleneck>,
    cells: Option<Cells>,
    train_cost: Cost,
    cost: Cost,
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &PathArgs) -> Outcome {
    let target = Target::find(&args.host, args.options.ip, 80)?;
    let targets = std::slice::from_ref(&target);
    let Searched { mut reports, cost, reverse } = search(targets, &args.options, true)?;
    let searched = cost.plus(reverse);
    let report = reports.pop().ok_or_else(|| Failure::ours("the search has no report"))?;
    let (Some(pmtu), Some(kind)) = (report.pmtu, report.method) else { return Err(unanswered(&target, &report)) };
    let (mut traces, traced) = trace(targets, Plan { flows: 1, probes: 3, size: 64 }, &args.options)?;
    let trace = traces.pop().ok_or_else(|| Failure::ours("the trace has no outcome"))?;
    let mut cost = Cost { packets: searched.packets + traced.packets, time: searched.time + traced.time };
    // UDP's answers are rationed: neither round trips nor trains can be counted with them.
    let countable = kind != Kind::Udp;
    let pings = if countable { Some(ping(&target, &report, args, &mut cost)?) } else { None };
    let mut train_cost = Cost::default();
    let fast = countable && report.pace < SLOW;
    let bottleneck = if fast { train(&target, pmtu, kind, &args.options, &mut train_cost)? } else { None };
    let mut cost = cost.plus(train_cost);
    let slow = fast && report.pace >= FAST;
    let cells = if slow { find_cells(&target, pmtu, kind, &report, &args.options, &mut cost)? } else { None };
    let found = Found { target: &target, report, trace, pings, bottleneck, cells, train_cost, cost };
    if args.options.json {
        say!("{:#}", found.to_json());
    } else {
        say!("{}", found.text());
    }
    Ok(Exit::Done)
}

fn ping(target: &Target, report: &SearchReport, args: &PathArgs, cost: &mut Cost) -> Result<Pings, Failure> {
    let (Some(pmtu), Some(kind)) = (report.pmtu, report.method) else { return Err(unanswered(target, report)) };
    let most = (1.5 / report.pace.as_secs_f64().max(1e-3)).min(500.0) as u32;
    let pps = args.options.pps.unwrap_or(most).min(most).max(1);
    let pings = args.pings.min(pps.saturating_mul(LONGEST));
    let least = if target.ip.is_ipv6() { SMALL + 20 } else { SMALL };
    let sizes = vec![least.min(pmtu)];
    let (first, quick, most, most_in_all) = (pings, pings, pings, pings);
    let config = ScanConfig { sizes, pmtu, kind, split: false, loose: false, first, quick, most, most_in_all };
    let mut scan = Scan::new(config, args.options.rng(2));
    // A tenth of the narrowest link's rate, so that none waits for another.
    let options = ProbeOptions { pps: Some(pps), ..args.options.clone() };
    let mut driver = Driver::open_with_burst(target.ip.is_ipv6(), &options, 1)?;
    let spent = driver.run(vec![(target, &mut scan)], LIMIT)?;
    *cost = Cost { packets: cost.packets + spent.packets, time: cost.time + spent.time };
    let mut rtts: Vec<Duration> = scan.rtts().collect();
    let steps: Duration = rtts.windows(2).map(|pair| pair[0].abs_diff(pair[1])).sum();
    let jitter = steps / u32::try_from(rtts.len().saturating_sub(1).max(1)).unwrap_or(1);
    rtts.sort_unstable();
    let count = scan.sizes().iter().fold(LossCount::default(), |sum, row| sum.plus(row.count));
    Ok(Pings { rtts, count, reordered: scan.reordered(), jitter })
}

/// Asks at many sizes close to each other, slowly enough that none waits for another.
fn find_cells(
    target: &Target,
    pmtu: u16,
    kind: Kind,
    report: &SearchReport,
    options: &ProbeOptions,
    cost: &mut Cost,
) -> Result<Option<Cells>, Failure> {
    let sizes = cell_sizes(pmtu);
    let all = CELL_REPEATS * u32::try_from(sizes.len()).unwrap_or(0);
    let config = ScanConfig {
        sizes,
        pmtu,
        kind,
        split: false,
        loose: false,
        first: all,
        quick: all,
        most: all,
        most_in_all: all,
    };
    let mut scan = Scan::new(config, options.rng(3));
    let pps = (0.5 / report.pace.as_secs_f64().max(1e-3)).max(1.0) as u32;
    let options = ProbeOptions { pps: Some(options.pps.unwrap_or(pps).min(pps)), ..options.clone() };
    let mut driver = Driver::open_with_burst(target.ip.is_ipv6(), &options, 1)?;
    *cost = cost.plus(driver.run(vec![(target, &mut scan)], LIMIT)?);
    let rtts: Vec<_> = scan.sizes().iter().filter_map(|row| Some((row.size, row.least_rtt?))).collect();
    Ok(cells(&rtts))
}

fn train(
    target: &Target,
    pmtu: u16,
    kind: Kind,
    options: &ProbeOptions,
    cost: &mut Cost,
) -> Result<Option<Bottleneck>, Failure> {
    let mut driver = Driver::open(target.ip.is_ipv6(), 1, options)?;
    // Old segments come back as short acknowledgements, so that only the way there counts.
    let kinds = if driver.kinds().contains(&Kind::OldSegment) { vec![Kind::OldSegment, kind] } else { vec![kind] };
    for kind in kinds {
        let mut train = Train::new(kind, pmtu);
        let spent = driver.run(vec![(target, &mut train)], LIMIT)?;
        *cost = Cost { packets: cost.packets + spent.packets, time: cost.time + spent.time };
        if let Some(bottleneck) = train.bottleneck() {
            return Ok(Some(bottleneck));
        }
    }
    Ok(None)
}

impl Pings {
    /// The round-trip time that this share doesn't exceed.
    fn quantile(&self, share: f64) -> Option<Duration> {
        let last = self.rtts.len().checked_sub(1)?;
        self.rtts.get((last as f64 * share).ceil() as usize).copied()
    }
}

impl Found<'_> {
    fn bdp(&self) -> Option<u64> {
        let rtt = self.pings.as_ref()?.rtts.first()?;
        Some((self.bottleneck?.bps / 8.0 * rtt.as_secs_f64()) as u64)
    }

    fn mss(&self) -> u64 {
        let headers = if self.target.ip.is_ipv6() { 60 } else { 40 };
        u64::from(self.report.pmtu.unwrap_or(0)).saturating_sub(headers).max(1)
    }

    /// The receive window that lets the path fill up: the product in whole pairs of segments.
    fn rwin(&self) -> Option<u64> {
        self.bdp().map(|bdp| bdp.div_ceil(2 * self.mss()).max(1) * 2 * self.mss())
    }

    /// The first window that fills the path at once, and no more than is usual on slower ones.
    fn initcwnd(&self) -> Option<u64> {
        self.bdp().map(|bdp| bdp.div_ceil(self.mss()).clamp(2, USUAL_INITCWND))
    }

    fn to_json(&self) -> Value {
        let all = mtu_json(self.target, &self.report, self.cost);
        let hops = trace_json(self.target, &self.trace, &names(std::slice::from_ref(&self.trace)), self.cost);
        let mut all = all;
        for key in ["hops", "reached", "hop_count", "reply_ttl"] {
            all[key] = hops[key].clone();
        }
        let quantile = |share| self.pings.as_ref().and_then(|pings| pings.quantile(share)).map(micros);
        let pings = self.pings.as_ref();
        all["rtt_us"] = json!({"min": quantile(0.0), "median": quantile(0.5), "p99": quantile(0.99)});
        all["jitter_us"] = json!(pings.map(|pings| micros(pings.jitter)));
        all["loss"] = json!(pings.map(|pings| pings.count.loss()));
        all["reordered"] = json!(pings.map(|pings| pings.reordered));
        all["bottleneck_bps"] = json!(self.bottleneck.map(|found| found.bps));
        all["bottleneck_packets"] = json!(self.train_cost.packets);
        all["bottleneck_seconds"] = json!(self.train_cost.time.as_secs_f64());
        all["bottleneck_sender_limited"] = json!(self.bottleneck.map(|found| found.sender_limited));
        all["bdp_bytes"] = json!(self.bdp());
        all["rwin_bytes"] = json!(self.rwin());
        all["initcwnd"] = json!(self.initcwnd());
        all["cell_us"] = json!(self.cells.map(|cells| micros(cells.each)));
        all["link_guess"] = json!(link_guess(self.report.pmtu, self.cells, self.target));
        all
    }

    fn text(&self) -> String {
        let target = self.target;
        let mut rows: Vec<(&str, String)> = vec![
            ("path to", format!("{} ({})", target.name, target.ip)),
            ("adapter", format!("{}, MTU {}, address {}", target.device, target.mtu, target.source)),
        ];
        let pmtu = self.report.pmtu.map_or("?".to_owned(), |pmtu| pmtu.to_string());
        rows.push(("path MTU there", format!("{pmtu} bytes, {}", self.report.kind.word())));
        if let Some(reverse) = self.report.reverse_pmtu {
            rows.push(("path MTU back", format!("{reverse} bytes")));
        }
        if let Some(mss) = self.report.mss {
            rows.push(("MSS of the target", format!("{mss} bytes")));
        }
        rows.push(("link, probably", link_guess(self.report.pmtu, self.cells, target).to_owned()));
        if let Some(pings) = &self.pings {
            let ms = |share| pings.quantile(share).map_or(0.0, |rtt| rtt.as_secs_f64() * 1e3);
            let jitter = pings.jitter.as_secs_f64() * 1e3;
            rows.push((
                "RTT",
                format!(
                    "min {:.2} ms, median {:.2} ms, 99 % {:.2} ms; jitter {jitter:.2} ms",
                    ms(0.0),
                    ms(0.5),
                    ms(0.99)
                ),
            ));
            let (low, high) = pings.count.interval();
            let loss = format!("{:.1} % ({:.1} to {:.1} %)", pings.count.loss() * 100.0, low * 100.0, high * 100.0);
            rows.push(("loss", format!("{loss}, {} of {} reordered", pings.reordered, pings.count.answered)));
        }
        if let Some(found) = self.bottleneck {
            let least = if found.sender_limited { "at least " } else { "" };
            let cause = if found.sender_limited { " (this host sends no faster)" } else { "" };
            rows.push(("narrowest link", format!("{least}{}{cause}", BitsPerSecond(found.bps as u64).human())));
        }
        if let (Some(bdp), Some(rwin), Some(initcwnd)) = (self.bdp(), self.rwin(), self.initcwnd()) {
            rows.push(("bandwidth-delay", format!("{bdp} bytes: RWIN {rwin}, initcwnd {initcwnd} segments")));
        }
        let mut text: String = rows.iter().map(|(name, value)| format!("{name:<18} {value}\n")).collect();
        text.push_str("hops\n");
        let names = names(std::slice::from_ref(&self.trace));
        for hop in self.trace.hops() {
            text.push_str(&line(&hop, &names));
            text.push('\n');
        }
        text + &format!("{} packets, {:.1} s", self.cost.packets, self.cost.time.as_secs_f64())
    }
}

/// What the narrowest link may be, from the MTU, and from whether packets take time by the cell.
///
/// # Source
/// 1492: RFC 2516 section 7; 1480: RFC 2003 and RFC 4213 (IP in IP); 1476: RFC 2784 (GRE); 1420: wg-quick(8); 1280: RFC
/// 8200 section 5; ATM: RFC 2364 (PPPoA), RFC 2684 (bridged).
fn link_guess(pmtu: Option<u16>, cells: Option<Cells>, target: &Target) -> &'static str {
    match (pmtu, cells) {
        _ if target.ip.is_loopback() => "this host itself",
        (None, _) => "unknown",
        (Some(1492), Some(_)) => "PPPoE over ATM (DSL)",
        (Some(1500), Some(_)) => "PPPoA or bridged Ethernet over ATM (DSL)",
        (Some(_), Some(_)) => "tunnel or VPN over ATM (DSL)",
        (Some(9000..), None) => "Ethernet with jumbo frames",
        (Some(1500..), None) => "Ethernet",
        (Some(1492), None) => "PPPoE",
        (Some(1480), None) => "IP in IP",
        (Some(1476), None) => "GRE",
        (Some(1420 | 1440), None) => "WireGuard",
        (Some(1280), None) => "tunnel at IPv6's least MTU",
        (Some(_), None) => "tunnel or VPN",
    }
}
