//! What held workloads back that aren't a transfer as fast as it goes.

use super::limits::{LimitedBy, LimitsReport, of_transfers};
use super::measured::TrialFigure;
use std::collections::BTreeMap;
use wt_trial::{Observed, PathFacts, Scale, Spread, Status, TrialRecord, Workload};
use wt_units::{BitsPerSecond, Knob, upper_median};

/// Below this share of the sender's first window the receiver's is the smaller one.
const FEW: f64 = 0.9;
/// From this share of retransmitted segments on, losses cost a page more than its windows do.
const LOSSY: f64 = 0.02;

/// The trials of the current settings that say something.
fn current<'a>(records: &[&'a TrialRecord]) -> Vec<&'a TrialRecord> {
    records.iter().filter(|record| record.spec.arm == 0 && counts(record)).copied().collect()
}

fn counts(record: &TrialRecord) -> bool {
    matches!(record.outcome.status, Status::Completed | Status::Incomplete) && record.outcome.bytes > 0
}

fn seen(records: &[&TrialRecord], of: impl Fn(&Observed) -> Option<u64>) -> Option<f64> {
    upper_median(records.iter().filter_map(|r| of(&r.outcome.observed)).filter(|v| *v > 0).map(|v| v as f64))
}

/// The same of what may well be none, as losses: trials without any count.
fn seen_or_none(records: &[&TrialRecord], of: impl Fn(&Observed) -> Option<u64>) -> f64 {
    upper_median(records.iter().filter_map(|r| of(&r.outcome.observed)).map(|v| v as f64)).unwrap_or(0.0)
}

/// Says what held the current settings (arm 0) back; `best` is the best goodput of any setting, `faster` what has another window and is
/// shown to be faster, `median` the figure of the current settings that tables have.
pub(super) fn limits(
    path: &PathFacts,
    records: &[&TrialRecord],
    best: Option<f64>,
    faster: Option<&str>,
    median: Option<f64>,
) -> LimitsReport {
    let mut report = of_transfers(path, records, best, faster);
    reword(&mut report, records, median, Some(path.rtt_us).filter(|us| *us > 0).map(|us| us as f64));
    report
}

/// Puts the text right for workloads that aren't judged by their goodput; `report` holds what was found for transfers.
fn reword(report: &mut LimitsReport, records: &[&TrialRecord], median: Option<f64>, rtt_us: Option<f64>) {
    let Some(workload) = records.first().map(|record| &record.spec.workload) else { return };
    let own = current(records);
    let measured = TrialFigure::of_workload(workload);
    if let Workload::Competing { .. } = workload {
        if report.by == LimitedBy::Loss {
            // Flows that share a line make room for each other by losses: what holds one of them is the others.
            let got = report.goodput_bps.map_or_else(String::new, |bps| BitsPerSecond(bps as u64).human());
            report.by = LimitedBy::Path;
            report.text = format!("Your current settings reach {got} beside rivals.");
        }
        report.text.push_str(&shares(&own));
    }
    if measured.is_goodput() || own.is_empty() {
        return;
    }
    let begin = format!("With your current settings: {} {}.", measured.name, measured.show(median));
    let (by, more) = match measured.scale {
        Scale::Time => {
            let (by, text) = first_window(&own, median, rtt_us);
            (by, format!("{text}{}", unreached(records)))
        }
        Scale::Rate => exchanges(&own, workload, rtt_us),
        Scale::Lateness => late(&own, rtt_us),
        Scale::Responsiveness => loaded(&own),
        Scale::Goodput => both_ways(&own),
    };
    report.by = by;
    report.text = format!("{begin} {more}").trim_end().to_owned();
}

/// A page, or bursts: which of the two first windows was reached.
fn first_window(own: &[&TrialRecord], seconds: Option<f64>, rtt_us: Option<f64>) -> (LimitedBy, String) {
    // Of a path that nobody knows no round trips can be told.
    let round_trips = seconds.zip(rtt_us).map(|(s, us)| s * 1e6 / us);
    let trips = round_trips.map_or_else(String::new, |n| format!("That is {n:.1} round trips. "));
    let cwnd = seen(own, |seen| seen.initial_cwnd);
    let rwnd = seen(own, |seen| seen.initial_rwnd_bytes);
    let mss = seen(own, |seen| seen.mss);
    let retransmits = seen_or_none(own, |seen| seen.retransmits);
    let lost = retransmits / seen(own, |seen| seen.segments).unwrap_or(f64::INFINITY);
    let (Some(cwnd), Some(rwnd), Some(mss)) = (cwnd, rwnd, mss) else { return (LimitedBy::Unknown, trips) };
    let allowed = (rwnd / mss).floor();
    if lost >= LOSSY {
        let text = format!(
            "{trips}{retransmits:.0} segments were lost and retransmitted: a larger first window fills the queue sooner."
        );
        return (LimitedBy::Loss, text);
    }
    if allowed < cwnd * FEW {
        let text = format!(
            "{trips}The server's initcwnd of {cwnd:.0} × {mss:.0} bytes was not reached: your initrwnd allows {allowed:.0} \
             segments."
        );
        return (LimitedBy::Rwnd, text);
    }
    let text = format!(
        "{trips}The server's initcwnd of {cwnd:.0} × {mss:.0} bytes bounds what comes first; your initrwnd would allow \
         {allowed:.0} segments."
    );
    (LimitedBy::Path, text)
}

/// Of the other settings that change a first window: those with which the sender's wasn't reached either.
fn unreached(records: &[&TrialRecord]) -> String {
    let mut arms: BTreeMap<usize, Vec<&TrialRecord>> = BTreeMap::new();
    for record in records.iter().filter(|record| record.spec.arm != 0 && counts(record)) {
        let windows = [Knob::Initcwnd, Knob::Initrwnd].map(|knob| record.spec.settings.number(knob));
        if windows.iter().any(Option::is_some) {
            arms.entry(record.spec.arm).or_default().push(record);
        }
    }
    let tell = |own: &Vec<&TrialRecord>| {
        let (cwnd, rwnd, mss) = (
            seen(own, |seen| seen.initial_cwnd)?,
            seen(own, |seen| seen.initial_rwnd_bytes)?,
            seen(own, |seen| seen.mss)?,
        );
        let allowed = (rwnd / mss).floor();
        (allowed < cwnd * FEW).then(|| {
            let settings = &own[0].spec.settings;
            let whose = if settings.number(Knob::Initrwnd).is_some() { "it" } else { "your initrwnd" };
            format!(
                " With {settings} the server's initcwnd of {cwnd:.0} × {mss:.0} bytes was not reached: {whose} allows \
                 {allowed:.0} segments."
            )
        })
    };
    arms.values().filter_map(tell).collect()
}

fn spread(own: &[&TrialRecord], of: impl Fn(&TrialRecord) -> Option<Spread>, at: fn(&Spread) -> u64) -> Option<f64> {
    upper_median(own.iter().filter_map(|r| of(r)).map(|s| at(&s) as f64))
}

fn ms(us: Option<f64>) -> String {
    us.map_or_else(|| "–".to_owned(), |us| format!("{:.1} ms", us / 1e3))
}

/// Transactions: round trips, or the time that the bytes take.
fn exchanges(own: &[&TrialRecord], workload: &Workload, rtt_us: Option<f64>) -> (LimitedBy, String) {
    let of = |r: &TrialRecord| r.outcome.measures.exchanges.map(|e| e.latency);
    let (p50, p95, p99) = (spread(own, of, |s| s.p50_us), spread(own, of, |s| s.p95_us), spread(own, of, |s| s.p99_us));
    let times = format!("Response time: p50 {}, p95 {}, p99 {}.", ms(p50), ms(p95), ms(p99));
    let think = match workload {
        Workload::Transactions { think, .. } if !think.is_zero() => " Thinking between them is not counted in it.",
        _ => "",
    };
    let trips = p50.zip(rtt_us).map(|(us, rtt)| us / rtt);
    let text = match trips {
        Some(n) if n < 1.3 => format!("{times} The round trip alone is what limits: one for each.{think}"),
        Some(n) => {
            format!("{times} Each takes {n:.1} round trips: more than a window's worth, or the link's rate.{think}")
        }
        None => times,
    };
    (LimitedBy::Path, text)
}

/// Messages of a stream: queues, or losses that hold everything behind them back.
fn late(own: &[&TrialRecord], rtt_us: Option<f64>) -> (LimitedBy, String) {
    let of = |r: &TrialRecord| r.outcome.measures.lateness.map(|l| l.spread);
    let (p50, p95, p99) = (spread(own, of, |s| s.p50_us), spread(own, of, |s| s.p95_us), spread(own, of, |s| s.p99_us));
    let stalls: u64 = own.iter().filter_map(|r| Some(r.outcome.measures.lateness?.stalls)).sum();
    let longest = own.iter().filter_map(|r| Some(r.outcome.measures.lateness?.longest_stall_us)).max().unwrap_or(0);
    let burst = own.iter().filter_map(|r| Some(r.outcome.measures.lateness?.burst)).max().unwrap_or(0);
    let retransmits = seen_or_none(own, |seen| seen.retransmits);
    let times = format!("Lateness: p50 {}, p95 {}, p99 {}.", ms(p50), ms(p95), ms(p99));
    let stalled = match stalls {
        0 => "Nothing stalled.".to_owned(),
        n => format!(
            "{n} stalls, the longest {}; up to {burst} messages came at once after one.",
            ms(Some(longest as f64))
        ),
    };
    let exceeds = p99.zip(rtt_us).is_some_and(|(us, rtt)| us > rtt);
    let was_late = stalls > 0 || exceeds;
    if retransmits >= 1.0 && was_late {
        let text = format!(
            "{times} {stalled} Losses did that: {retransmits:.0} segments a trial were retransmitted, and what follows a lost \
             one waits for it."
        );
        return (LimitedBy::Loss, text);
    }
    let why = if exceeds { " Queues or this machine did that: hardly anything was lost." } else { "" };
    (LimitedBy::Path, format!("{times} {stalled}{why}"))
}

/// Median goodput of each flow, bit/s.
fn flows(own: &[&TrialRecord]) -> Vec<f64> {
    let count = own.iter().map(|r| r.outcome.measures.flows_bps.len()).max().unwrap_or(0);
    let flow = |n: usize| upper_median(own.iter().filter_map(|r| r.outcome.measures.flows_bps.get(n).copied()));
    (0..count).map(|n| flow(n).unwrap_or(0.0)).collect()
}

/// A download and an upload at once.
fn both_ways(own: &[&TrialRecord]) -> (LimitedBy, String) {
    let rate = |bps: &f64| BitsPerSecond(bps.max(0.0) as u64).human();
    match flows(own).as_slice() {
        [down, up] => (LimitedBy::Path, format!("At once: {} down, {} up.", rate(down), rate(up))),
        _ => (LimitedBy::Unknown, String::new()),
    }
}

/// What a flow gets beside others.
fn shares(own: &[&TrialRecord]) -> String {
    let flows = flows(own);
    let (all, count) = (flows.iter().sum::<f64>(), flows.len());
    let Some(first) = flows.first().filter(|_| all > 0.0 && count > 1) else { return String::new() };
    let jain = wt_trial::bulk::jain(&flows).unwrap_or(0.0);
    format!(
        " Of what all {count} flows carried it got {:.0} %; an equal share is {:.0} % (Jain's index {jain:.2}). A setting that \
         takes more from the others counts as faster here.",
        first / all * 100.0,
        100.0 / count as f64
    )
}

/// Round trips beside a transfer.
fn loaded(own: &[&TrialRecord]) -> (LimitedBy, String) {
    let idle = |r: &TrialRecord| r.outcome.measures.under_load.map(|l| l.idle);
    let busy = |r: &TrialRecord| r.outcome.measures.under_load.map(|l| l.loaded);
    let of = |spread_of: &dyn Fn(&TrialRecord) -> Option<Spread>| {
        let at = |at: fn(&Spread) -> u64| ms(spread(own, spread_of, at));
        format!("p50 {}, p95 {}, p99 {}", at(|s| s.p50_us), at(|s| s.p95_us), at(|s| s.p99_us))
    };
    let added = spread(own, busy, |s| s.p50_us).zip(spread(own, idle, |s| s.p50_us)).map(|(b, i)| b - i);
    let text = format!(
        "A round trip takes {} on the idle path, and {} beside the transfer: its queue adds {}.",
        of(&idle),
        of(&busy),
        added.filter(|us| *us >= 0.0).map_or_else(|| "nothing that could be measured".to_owned(), |us| ms(Some(us)))
    );
    (LimitedBy::Path, text)
}
