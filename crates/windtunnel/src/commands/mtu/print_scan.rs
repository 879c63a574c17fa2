use std::fmt::Write as _;
use wt_probe::LossCount;
use wt_prober::mtu::{OpenScan, ScanAnswer, SearchAnswer};
use wt_report::{Axis, Chart, Rule, Series};
use wt_units::BitsPerSecond;

/// With so many probes a size stands for itself in the chart.
const ENOUGH: u32 = 40;

/// The table, the chart and the verdict.
pub(super) fn text(search: &SearchAnswer, scan: &ScanAnswer) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "\n{:>6} {:>6} {:>8} {:>7}  {:<17} {:>9}",
        "size", "sent", "answered", "loss", "95 % interval", "RTT"
    );
    for row in &search.sizes {
        let rtt = row.rtt_us.map_or("-".to_owned(), |rtt| format!("{:.2} ms", rtt / 1e3));
        let interval = format!("{:.1} to {:.1} %", row.loss_low * 100.0, row.loss_high * 100.0);
        let (sent, answered, loss) = (row.sent, row.answered, row.loss * 100.0);
        let _ = writeln!(text, "{:>6} {sent:>6} {answered:>8} {loss:>5.1} %  {interval:<17} {rtt:>9}", row.size);
    }
    if search.sizes.len() > 2 {
        let _ = writeln!(text, "\n{}", chart(search, scan).to_terminal(80, 16, false));
    }
    text + &verdict(search, scan)
}

/// Loss by size, with its intervals; neighbours that few packets were sent of are taken together.
pub(super) fn chart(search: &SearchAnswer, scan: &ScanAnswer) -> Chart {
    let threshold = scan.threshold;
    let side = |size: u16| threshold.is_some_and(|found| size > found.below);
    let mut groups: Vec<(u16, u16, LossCount)> = Vec::new();
    for row in search.sizes.iter().filter(|row| Some(row.size) <= search.pmtu) {
        match groups.last_mut() {
            Some(group) if group.2.sent < ENOUGH && side(group.1) == side(row.size) => {
                (group.1, group.2) = (row.size, group.2.plus(row.count()));
            }
            _ => groups.push((row.size, row.size, row.count())),
        }
    }
    let points: Vec<_> = groups
        .iter()
        .map(|(from, to, count)| {
            let (low, high) = count.interval();
            ((f64::from(*from) + f64::from(*to)) / 2.0, low * 100.0, count.loss() * 100.0, high * 100.0)
        })
        .collect();
    let dead = search.pmtu.filter(|pmtu| search.sizes.iter().any(|row| row.size > *pmtu));
    // Where nothing gets through a lost packet says no more than another, so that these have no interval.
    let none = search.sizes.iter().filter(|row| row.sent > 0 && dead.is_some_and(|pmtu| row.size > pmtu));
    let none: Vec<(f64, f64)> = none.map(|row| (f64::from(row.size), 100.0)).collect();
    let lost = (!none.is_empty()).then(|| Series::points("none got through", none));
    let beyond = dead.map(|pmtu| Rule::vertical(f64::from(pmtu), "nothing longer gets through"));
    let begins = threshold.map(|found| {
        let middle = (f64::from(found.below) + f64::from(found.above)) / 2.0;
        Rule::vertical(middle, format!("loss begins: {} to {} bytes", found.below, found.above))
    });
    Chart {
        title: "Loss by packet size".to_owned(),
        subtitle: "estimates with 95 % intervals; sizes of few packets are taken together".to_owned(),
        x: Axis::linear("size", "bytes"),
        y: Axis::linear("loss", "%"),
        series: std::iter::once(Series::intervals("loss", &points)).chain(lost).collect(),
        rules: begins.into_iter().chain(beyond).collect(),
        ..Chart::default()
    }
}

fn verdict(search: &SearchAnswer, scan: &ScanAnswer) -> String {
    let cost = format!("  scan: {} packets, {:.2} s", scan.packets, scan.seconds);
    let more = asides(search, scan);
    let best = search.best_size.unwrap_or_default();
    let Some(found) = scan.threshold else {
        let dead = search.sizes.iter().any(|row| Some(row.size) > search.pmtu);
        let beyond = if dead { ", and longer packets don't get through" } else { "" };
        let from = search.sizes.iter().map(|row| row.size).min().unwrap_or_default();
        let could = unseen(search);
        let what = match scan.open {
            Some(OpenScan::LongLoseMore) => "longer packets get lost more often, perhaps by the scan's own rate",
            Some(OpenScan::Unanswered) => "nothing was answered: what gets lost can't be told",
            None => "no loss that depends on the size was found",
        };
        return format!("from {from} to {best} bytes {what}{beyond}\n{could}{more}{cost}");
    };
    let mut text = format!(
        "loss begins between {} and {} bytes: {:.1} % above, {:.1} % below (evidence {} to 1)\n",
        found.below,
        found.above,
        found.loss_above * 100.0,
        found.loss_below * 100.0,
        odds(found.evidence)
    );
    if let (Some(there), Some(back)) = (scan.loss_forward, scan.loss_reverse) {
        let (there, back) = (there * 100.0, back * 100.0);
        let _ =
            writeln!(text, "  of the longest, {there:.0} % get lost on the way there and {back:.0} % on the way back");
    }
    let _ = writeln!(
        text,
        "best size {best} bytes: predicted {} the goodput with CUBIC, {} with BBR, at {}",
        times(scan.gain.loss_based),
        times(scan.gain.rate_based),
        BitsPerSecond(scan.gain.assumed_rate_bps).human()
    );
    for line in &search.advice {
        let _ = writeln!(text, "  to do: {line}");
    }
    text + &more + &cost
}

/// A predicted gain in as many digits as it is good for.
fn times(gain: f64) -> String {
    match gain {
        _ if gain > 20.0 => "more than 20 times".to_owned(),
        _ if gain >= 9.95 => format!("{gain:.0} times"),
        _ => format!("{gain:.1} times"),
    }
}

/// What loss of long packets so few may have missed: two were sent of a size, say, and both came.
fn unseen(search: &SearchAnswer) -> String {
    let passing: Vec<_> = search.sizes.iter().filter(|row| Some(row.size) <= search.pmtu && row.sent > 0).collect();
    let Some(last) = passing.last() else { return String::new() };
    let half = &passing[passing.len() / 2..];
    let together = half.iter().fold(LossCount::default(), |sum, row| sum.plus(row.count()));
    let fewest = half.iter().map(|row| row.count()).min_by_key(|count| count.sent).unwrap_or_default();
    let [all, one] = [together, fewest].map(|count| count.interval().1 * 100.0);
    format!(
        "  what loss that may hide: up to {all:.1} % from {} to {} bytes ({} sent), up to {one:.0} % at a single size ({} sent)\n",
        half.first().map_or(last.size, |row| row.size),
        last.size,
        together.sent,
        fewest.sent
    )
}

/// What was looked at beside.
fn asides(search: &SearchAnswer, scan: &ScanAnswer) -> String {
    let mut text = String::new();
    if scan.sizes_left_out > 0 {
        let all = search.sizes.len() + scan.sizes_left_out;
        let _ = writeln!(
            text,
            "  {} of {all} sizes weren't tried: ask for more packets (--most), or for fewer sizes (--step)",
            scan.sizes_left_out
        );
    }
    if let Some(check) = scan.rate_check {
        let (full, half) = (check.loss_full * 100.0, check.loss_half * 100.0);
        let what = match (check.persists, check.halvings, check.ruled_out) {
            (false, _, true) if check.of_long_packets => {
                "long packets get lost at half the rate, too: it isn't the scan's"
            }
            (false, 0, false) if check.of_long_packets && !scan.spent => {
                "long packets get lost more often than short ones; whether that is the scan's own rate is open: a policer would do the same"
            }
            (false, 0, false) if check.of_long_packets => {
                "long packets get lost more often than short ones; whether that is the scan's own rate is open, for want of packets"
            }
            (true, ..) => "the scan's own rate causes loss, even after it was halved: ask for fewer with --pps",
            (false, 0, true) => "short packets get lost too, and not because of the scan's rate",
            (false, 0, false) => {
                "short packets get lost too; no difference by the scan's rate is shown, and none ruled out: the target may \
                 ration its answers"
            }
            (false, ..) => "the scan's own rate caused loss; it began anew at a lower one",
        };
        let _ = writeln!(text, "  {what} ({full:.1} % lost at full rate, {half:.1} % at half)");
        if scan.threshold.is_none() && !check.persists && check.halvings == 0 && !check.of_long_packets {
            let _ = writeln!(text, "  all sizes get lost alike, those below the scanned ones too");
        }
    }
    if let Some(loose) = scan.without_df {
        let (size, answered, sent) = (loose.size, loose.answered, loose.sent);
        let loss = LossCount { sent, answered }.loss();
        let high = scan.threshold.map_or(0.0, |found| found.loss_above);
        let what = match Some(size) > search.pmtu {
            true if answered * 2 > sent => "routers cut them up",
            true => "they don't get through either",
            false if loss * 3.0 < high => "routers cut them up, and fewer get lost",
            false => "they get lost as well",
        };
        let _ = writeln!(text, "  without DF, of {sent} packets of {size} bytes {answered} were answered: {what}");
    }
    text
}

/// Large odds in few digits.
fn odds(evidence: f64) -> String {
    if evidence < 1e6 { format!("{evidence:.0}") } else { format!("{evidence:.0e}") }
}
