use super::{micros, unanswered};
use crate::commands::probing::{Cost, DEFAULT_PPS, Driver, ProbeOptions, Target};
use crate::edge::Failure;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::net::IpAddr;
use std::time::Duration;
use wt_probe::{Goodput, Kind, LossCount, Scan, ScanConfig, SearchReport, goodput};
use wt_report::{Axis, Chart, Rule, Series};
use wt_units::BitsPerSecond;

/// No scan takes longer.
const LIMIT: Duration = Duration::from_secs(600);
/// Probes of all sizes together before anything is looked at, and of each at least.
const FIRST: u32 = 125;
const LEAST_OF_EACH: u32 = 4;
/// Packets with those of the search within which a frequent loss is told, and a rare one; and with those that split it
/// into both directions.
const QUICK: u32 = 1000;
const MOST: u32 = 6000;
const MOST_IN_ALL: u32 = 20_000;
/// A scan takes no more than this share of the narrowest link, where that is slow enough to be known.
const SHARE: f64 = 0.1;
/// Links that take less for a packet are measured too roughly by the search, and fast enough.
const SLOW: Duration = Duration::from_millis(1);
/// The least rate, packets a second: else a scan would never end.
const LEAST_RATE: f64 = 20.0;
/// At most so many leave at once.
const BURST: u32 = 8;
/// With so many probes a size stands for itself in the chart.
const ENOUGH: u32 = 40;
/// No more sizes than this.
const MOST_SIZES: usize = 500;

/// What is asked.
pub(super) struct Ask {
    pub(super) from: u16,
    pub(super) to: Option<u16>,
    pub(super) step: u16,
    pub(super) most: Option<u32>,
    pub(super) rate: BitsPerSecond,
}

/// What came of it.
pub(super) struct Scanned {
    scan: Scan,
    cost: Cost,
    /// The size that brings most with a loss-based control, and by how much more than the largest that gets through.
    best: u16,
    gain: Goodput,
    rate: BitsPerSecond,
    pmtu: u16,
    ip: IpAddr,
}

/// Counts losses size by size.
pub(super) fn run(
    target: &Target,
    report: &SearchReport,
    ask: &Ask,
    options: &ProbeOptions,
    before: Cost,
) -> Result<Scanned, Failure> {
    let (Some(pmtu), Some(kind)) = (report.pmtu, report.method) else { return Err(unanswered(target, report)) };
    if kind == Kind::Udp {
        return Err(Failure::environment(format!(
            "{} answers UDP only, and that no more than once a second",
            target.name
        ))
        .hint("a scan needs ICMP echo, or an open TCP port (HOST:PORT) and CAP_NET_RAW (root)"));
    }
    let sizes = sizes(ask, target)?;
    // Slow lines are left room.
    let room = (SHARE / report.pace.as_secs_f64().max(1e-9)).max(LEAST_RATE) as u32;
    let room = if report.pace >= SLOW { room } else { u32::MAX };
    let pps = options.pps.unwrap_or(DEFAULT_PPS.min(room));
    let options = &ProbeOptions { pps: Some(pps), ..options.clone() };
    let mut driver = Driver::open_with_burst(target.ip.is_ipv6(), options, BURST)?;
    // An MSS was heard of only if the target accepts connections.
    let split = driver.kinds().contains(&Kind::OldSegment) && report.mss.is_some();
    let passing = u32::try_from(sizes.iter().filter(|size| **size <= pmtu).count()).unwrap_or(u32::MAX);
    // The acknowledgement that completes a handshake is a packet, too.
    let before = before.packets + u32::from(split || kind == Kind::OldSegment);
    let left = |most: u32| ask.most.unwrap_or(most).saturating_sub(before).max(1);
    let config = ScanConfig {
        sizes,
        pmtu,
        kind,
        split,
        loose: !target.ip.is_ipv6(),
        first: FIRST.max(passing.saturating_mul(LEAST_OF_EACH)).min(left(MOST)),
        quick: left(MOST).min(QUICK.saturating_sub(before)),
        most: left(MOST),
        most_in_all: left(MOST_IN_ALL),
    };
    let mut scan = Scan::new(config, options.rng(1));
    let cost = driver.run(vec![(target, &mut scan)], LIMIT)?;
    let headers = if target.ip.is_ipv6() { 60 } else { 40 };
    let rtt = report.rtt.min().unwrap_or(Duration::from_millis(1));
    let (best, gain) = best(&scan, pmtu, headers, rtt, ask.rate);
    Ok(Scanned { scan, cost, best, gain, rate: ask.rate, pmtu, ip: target.ip })
}

fn sizes(ask: &Ask, target: &Target) -> Result<Vec<u16>, Failure> {
    let least = if target.ip.is_ipv6() { 1280 } else { 68 };
    let (from, to) = (ask.from.max(least), ask.to.unwrap_or(target.mtu).min(target.mtu));
    if from > to {
        return Err(Failure::usage(format!("from {from} to {to} bytes there is no size to scan")));
    }
    let sizes: Vec<u16> = (from..=to).step_by(usize::from(ask.step)).collect();
    if sizes.len() > MOST_SIZES {
        return Err(Failure::usage(format!("{} sizes are too many: at most {MOST_SIZES}", sizes.len()))
            .hint("choose a larger --step"));
    }
    Ok(sizes)
}

/// The size that brings most data per second: the largest that gets through, or the largest that is surely below the
/// threshold.
fn best(scan: &Scan, pmtu: u16, headers: u16, rtt: Duration, rate: BitsPerSecond) -> (u16, Goodput) {
    let Some(threshold) = scan.threshold() else { return (pmtu, Goodput { loss_based: 1.0, rate_based: 1.0 }) };
    let capacity = rate.get() as f64 / 8.0;
    // What hasn't been lost below may well be lost once in the number sent.
    let low = threshold.low.loss();
    let at = |size: u16, loss| goodput(size.saturating_sub(headers), headers, loss, rtt, capacity);
    let (large, small) = (at(pmtu, threshold.high.loss()), at(threshold.safe, low));
    if small.loss_based <= large.loss_based {
        return (pmtu, Goodput { loss_based: 1.0, rate_based: 1.0 });
    }
    let gain =
        Goodput { loss_based: small.loss_based / large.loss_based, rate_based: small.rate_based / large.rate_based };
    (threshold.safe, gain)
}

impl Scanned {
    /// Puts the scan into the JSON of the search.
    pub(super) fn add_to(&self, json: &mut Value, before: Cost) {
        let sizes: Vec<Value> = self.scan.sizes().iter().map(|row| {
            let (low, high) = row.count.interval();
            json!({"size": row.size, "sent": row.count.sent, "answered": row.count.answered, "loss": row.count.loss(),
                "loss_low": low, "loss_high": high, "rtt_us": row.rtt.map(micros)})
        }).collect();
        let threshold = self.scan.threshold();
        json["sizes"] = sizes.into();
        json["best_size"] = self.best.into();
        json["packets"] = (before.packets + self.cost.packets).into();
        json["seconds"] = (before.time + self.cost.time).as_secs_f64().into();
        json["threshold"] = threshold.map_or(Value::Null, |found| json!({
            "below": found.below, "above": found.above, "loss_below": found.low.loss(), "loss_above": found.high.loss(),
            "evidence": found.evidence, "safe": found.safe,
        }));
        json["without_df"] = self.scan.loose().map_or(Value::Null, |loose| {
            json!({
                "size": loose.size, "sent": loose.count.sent, "answered": loose.count.answered,
            })
        });
        json["rate_check"] = self.scan.rate_check().map_or(Value::Null, |check| {
            json!({
                "loss_full": check.full.loss(), "loss_half": check.half.loss(), "halvings": check.halvings,
                "caused_by_rate": check.persists || check.halvings > 0,
            })
        });
        json["loss_forward"] = self.scan.directions().map(|found| found.forward).into();
        json["loss_reverse"] = self.scan.directions().map(|found| found.reverse).into();
        json["gain"] = json!({"loss_based": self.gain.loss_based, "rate_based": self.gain.rate_based,
            "assumed_rate_bps": self.rate.get()});
        if threshold.is_some() {
            json["kind"] = "size-dependent-loss".into();
            json["advice"] = json!(self.advice());
        }
    }

    fn advice(&self) -> Vec<String> {
        if self.scan.threshold().is_none() {
            return Vec::new();
        }
        vec![super::narrower(self.ip, u64::from(self.best))]
    }

    /// What a person reads.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        let rows: Vec<_> = self.scan.sizes();
        let _ = writeln!(
            text,
            "\n{:>6} {:>6} {:>8} {:>7}  {:<17} {:>9}",
            "size", "sent", "answered", "loss", "95 % interval", "RTT"
        );
        for row in &rows {
            let (low, high) = row.count.interval();
            let rtt = row.rtt.map_or("-".to_owned(), |rtt| format!("{:.2} ms", rtt.as_secs_f64() * 1e3));
            let interval = format!("{:.1} to {:.1} %", low * 100.0, high * 100.0);
            let (sent, answered, loss) = (row.count.sent, row.count.answered, row.count.loss() * 100.0);
            let _ = writeln!(text, "{:>6} {sent:>6} {answered:>8} {loss:>5.1} %  {interval:<17} {rtt:>9}", row.size);
        }
        if rows.len() > 2 {
            let _ = writeln!(text, "\n{}", self.chart().to_terminal(90, 16, false));
        }
        let _ = write!(text, "{}", self.verdict());
        text
    }

    /// Loss by size, with its intervals; neighbours that few packets were sent of are taken together.
    fn chart(&self) -> Chart {
        let threshold = self.scan.threshold();
        let rows = self.scan.sizes();
        let side = |size: u16| threshold.is_some_and(|found| size > found.below);
        let mut groups: Vec<(u16, u16, LossCount)> = Vec::new();
        for row in rows.iter().filter(|row| row.size <= self.pmtu) {
            match groups.last_mut() {
                Some(group) if group.2.sent < ENOUGH && side(group.1) == side(row.size) => {
                    (group.1, group.2) = (row.size, group.2.plus(row.count));
                }
                _ => groups.push((row.size, row.size, row.count)),
            }
        }
        let points: Vec<_> = groups
            .iter()
            .map(|(from, to, count)| {
                let (low, high) = count.interval();
                ((f64::from(*from) + f64::from(*to)) / 2.0, low * 100.0, count.loss() * 100.0, high * 100.0)
            })
            .collect();
        let rules = threshold.map(|found| {
            let middle = (f64::from(found.below) + f64::from(found.above)) / 2.0;
            Rule::vertical(middle, format!("loss begins: {} to {} bytes", found.below, found.above))
        });
        Chart {
            title: "Loss by packet size".to_owned(),
            subtitle: "estimates with 95 % intervals; sizes of few packets are taken together".to_owned(),
            x: Axis::linear("size", "bytes"),
            y: Axis::linear("loss", "%"),
            series: vec![Series::intervals("loss", &points)],
            rules: rules.into_iter().collect(),
            ..Chart::default()
        }
    }

    /// The chart as a picture.
    pub(super) fn svg(&self) -> String {
        self.chart().to_svg(720, 400)
    }

    fn verdict(&self) -> String {
        let cost = format!("  scan: {} packets, {:.2} s", self.cost.packets, self.cost.time.as_secs_f64());
        let more = self.asides();
        let Some(found) = self.scan.threshold() else {
            return format!("no loss that depends on the size was found; best size {} bytes\n{more}{cost}", self.best);
        };
        let mut text = format!(
            "loss begins between {} and {} bytes: {:.1} % above, {:.1} % below (evidence {} to 1)\n",
            found.below,
            found.above,
            found.high.loss() * 100.0,
            found.low.loss() * 100.0,
            odds(found.evidence)
        );
        if let Some(ways) = self.scan.directions() {
            let (there, back) = (ways.forward * 100.0, ways.reverse * 100.0);
            let _ = writeln!(
                text,
                "  of the longest, {there:.0} % get lost on the way there and {back:.0} % on the way back"
            );
        }
        let _ = writeln!(
            text,
            "best size {} bytes: predicted {:.0} times the goodput with CUBIC, {:.1} times with BBR, at {}",
            self.best,
            self.gain.loss_based,
            self.gain.rate_based,
            self.rate.human()
        );
        for line in self.advice() {
            let _ = writeln!(text, "  to do: {line}");
        }
        text + &more + &cost
    }

    /// What was asked beside.
    fn asides(&self) -> String {
        let mut text = String::new();
        if let Some(check) = self.scan.rate_check() {
            let (full, half) = (check.full.loss() * 100.0, check.half.loss() * 100.0);
            let what = match (check.persists, check.halvings) {
                (true, _) => "the scan's own rate causes loss, even after it was halved: ask for fewer with --pps",
                (false, 0) => "short packets get lost too, and not because of the scan's rate",
                (false, _) => "the scan's own rate caused loss; it began anew at a lower one",
            };
            let _ = writeln!(text, "  {what} ({full:.1} % lost at full rate, {half:.1} % at half)");
        }
        if let Some(loose) = self.scan.loose() {
            let (size, answered, sent) = (loose.size, loose.count.answered, loose.count.sent);
            let high = self.scan.threshold().map_or(0.0, |found| found.high.loss());
            let what = match loose.size > self.pmtu {
                true if answered * 2 > sent => "routers cut them up",
                true => "they don't get through either",
                false if loose.count.loss() * 3.0 < high => "routers cut them up, and fewer get lost",
                false => "they get lost as well",
            };
            let _ = writeln!(text, "  without DF, of {sent} packets of {size} bytes {answered} were answered: {what}");
        }
        text
    }
}

/// Large odds in few digits.
fn odds(evidence: f64) -> String {
    if evidence < 1e6 { format!("{evidence:.0}") } else { format!("{evidence:.0e}") }
}
