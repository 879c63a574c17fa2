//! What the trials of an arm say in figures.

use wt_trial::{Observed, Status, TrialRecord};
use wt_units::Knob;

/// Goodput of an arm's trials that moved something and count, in their order, bit/s.
pub(super) fn goodputs(records: &[&TrialRecord], arm: usize) -> Vec<f64> {
    let counts = |r: &&&TrialRecord| {
        r.spec.arm == arm && matches!(r.outcome.status, Status::Completed | Status::Incomplete) && r.outcome.bytes > 0
    };
    records.iter().filter(counts).map(|r| r.outcome.goodput_bps()).filter(|bps| bps.is_finite() && *bps > 0.0).collect()
}

/// The goodput for which a trial counts, bit/s: of one that wasn't completed over the time that it had, for whoever is cut off
/// early isn't faster.
pub(super) fn counted_bps(record: &TrialRecord) -> f64 {
    let outcome = &record.outcome;
    if outcome.status == Status::Completed {
        return outcome.goodput_bps();
    }
    let had = record.spec.workload.time().unwrap_or(record.spec.deadline).as_secs_f64();
    outcome.bytes as f64 * 8.0 / had.max(outcome.elapsed_us as f64 / 1e6).max(1e-6)
}

/// What was counted in an arm's trials, the mean.
pub(super) fn mean_seen(records: &[&TrialRecord], arm: usize, of: impl Fn(&Observed) -> Option<u64>) -> Option<f64> {
    let seen = |r: &&TrialRecord| of(&r.outcome.observed).map(|count| count as f64);
    let own = records.iter().filter(|r| r.spec.arm == arm && r.outcome.status == Status::Completed);
    let all: Vec<f64> = own.filter_map(seen).collect();
    (!all.is_empty()).then(|| all.iter().sum::<f64>() / all.len() as f64)
}

/// The figures of an arm's trials that count, in their order.
pub(super) fn figures(records: &[&TrialRecord], arm: usize) -> Vec<f64> {
    let counts = |r: &&&TrialRecord| {
        r.spec.arm == arm && matches!(r.outcome.status, Status::Completed | Status::Incomplete) && r.outcome.bytes > 0
    };
    let own = records.iter().filter(counts);
    own.filter_map(|r| r.outcome.figure(r.spec.workload.scale())).collect()
}

pub(super) fn geometric_mean(values: &[f64]) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    Some((values.iter().map(|v| v.ln()).sum::<f64>() / values.len() as f64).exp())
}

/// What stands for a level that the system chose: the largest that was seen in an arm's trials, or Linux' own.
pub(super) fn seen_level(records: &[&TrialRecord], arm: usize, knob: Knob) -> Option<f64> {
    /// The first congestion window of Linux, segments: `TCP_INIT_CWND` of include/net/tcp.h, since 2.6.39.
    const FIRST_WINDOW: f64 = 10.0;
    /// Its first receive window in segments of 1460 bytes: 64240 bytes since 4.20 (commit a337531b942b, "tcp: up initial
    /// rmem to 128KB and SYN rwin to around 64KB"); 10 segments from 2.6.38 on, before that 4.
    const FIRST_RECEIVE_WINDOW: f64 = 44.0;
    let own = records.iter().filter(|r| r.spec.arm == arm).map(|r| &r.outcome.observed);
    let seen = |of: &dyn Fn(&Observed) -> Option<f64>| own.clone().filter_map(of).filter(|x| *x > 0.0).reduce(f64::max);
    match knob {
        Knob::Rwin => seen(&|o| o.rwin_max.map(|x| x as f64)),
        Knob::Initcwnd => seen(&|o| o.initial_cwnd.map(|x| x as f64)).or(Some(FIRST_WINDOW)),
        Knob::Initrwnd => {
            let segments =
                |o: &Observed| Some((o.initial_rwnd_bytes? as f64 / o.mss.filter(|mss| *mss > 0)? as f64).floor());
            seen(&segments).or(Some(FIRST_RECEIVE_WINDOW))
        }
        _ => None,
    }
}

/// The device of a trial on the real path: `eth0 (virtio_net)`.
pub(super) fn device(seen: &Observed) -> Option<String> {
    let link = seen.link.as_ref()?;
    let (name, driver) = (link.get("device")?.as_str()?, link.get("driver").and_then(|driver| driver.as_str()));
    Some(driver.map_or_else(|| name.to_owned(), |driver| format!("{name} ({driver})")))
}
