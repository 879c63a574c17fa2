//! What held the current settings back.

use serde::Serialize;
use wt_trial::{PathFacts, Status, TrialRecord};
use wt_units::BitsPerSecond;

/// From this share of window over RTT on, the window is what limits. Linux' autotuning keeps the window at twice what came
/// in the last round trip, so a window that isn't in the way is used by half at most.
const NEAR_WINDOW: f64 = 0.6;
/// From this share of what the framing leaves on, the link is what limits.
const NEAR_LINK: f64 = 0.9;
/// From this share of the time on that a sender waited for something, that is what limits.
const MOSTLY: f64 = 0.5;
/// From this share of retransmitted segments on, losses are worth the name.
const LOSSY: f64 = 0.005;

/// What limits a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The receiver's window: RWIN over RTT.
    Rwnd,
    /// The sender's buffer.
    Sndbuf,
    /// The link: what its framing leaves of its rate.
    Link,
    /// Losses, which keep the congestion window small.
    Loss,
    /// The congestion window, or what else lies on the path.
    Path,
    /// There is too little to say.
    Unknown,
}

/// What held the current settings back, and the figures that say so.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LimitsReport {
    /// What it was.
    pub by: LimitedBy,
    /// What the framing leaves of the link's rate for TCP payload, bit/s; `null` where the link isn't known.
    pub physical_goodput_bps: Option<u64>,
    /// Median goodput of the current settings, bit/s.
    pub goodput_bps: Option<f64>,
    /// The best median goodput of any setting, bit/s.
    pub best_goodput_bps: Option<f64>,
    /// The largest receive window seen with the current settings, bytes.
    pub rwnd_bytes: Option<u64>,
    /// RTT, µs.
    pub rtt_us: u64,
    /// Of the time with something to send, the share that was spent waiting for the receive window; `null` where the
    /// sender isn't ours.
    pub rwnd_limited: Option<f64>,
    /// The same for the send buffer.
    pub sndbuf_limited: Option<f64>,
    /// Retransmitted segments of those sent; `null` where the sender isn't ours.
    pub retransmitted: Option<f64>,
    /// In a sentence.
    pub text: String,
}

/// Says what held the current settings (arm 0) back; `best` is the best goodput of any setting.
pub(super) fn limits(path: &PathFacts, records: &[&TrialRecord], best: Option<f64>) -> LimitsReport {
    let counts = |r: &&&TrialRecord| {
        r.spec.arm == 0 && matches!(r.outcome.status, Status::Completed | Status::Incomplete) && r.outcome.bytes > 0
    };
    let current: Vec<&TrialRecord> = records.iter().filter(counts).copied().collect();
    let median = |values: Vec<f64>| {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        values.get(values.len() / 2).copied()
    };
    let goodput = median(current.iter().map(|r| r.outcome.goodput_bps()).collect());
    let seen = |r: &TrialRecord, name: &str| r.outcome.observed.get(name).and_then(serde_json::Value::as_f64);
    let window = current.iter().filter_map(|r| seen(r, "rwin_max")).reduce(f64::max).filter(|window| *window > 0.0);
    let share = |of: fn(&wt_trial::Limits) -> u64| {
        median(
            current
                .iter()
                .filter(|r| r.outcome.limits.busy_us > 0)
                .map(|r| of(&r.outcome.limits) as f64 / r.outcome.limits.busy_us as f64)
                .collect(),
        )
    };
    let retransmitted = |r: &TrialRecord| Some(seen(r, "retransmits")? / seen(r, "segments").filter(|n| *n > 0.0)?);
    let mut report = LimitsReport {
        by: LimitedBy::Unknown,
        physical_goodput_bps: path.physical_goodput_bps.filter(|limit| *limit > 0),
        goodput_bps: goodput,
        best_goodput_bps: best,
        rwnd_bytes: window.map(|window| window as u64),
        rtt_us: path.rtt_us,
        rwnd_limited: share(|limits| limits.rwnd_limited_us),
        sndbuf_limited: share(|limits| limits.sndbuf_limited_us),
        retransmitted: median(current.iter().filter_map(|r| retransmitted(r)).collect()),
        text: String::new(),
    };
    report.by = report.judge();
    report.text = report.sentence();
    let unfinished = current.iter().filter(|r| r.outcome.status == Status::Incomplete).count();
    if report.by == LimitedBy::Path && unfinished * 2 >= current.len() {
        let all = current.len();
        report.text.push_str(&format!(
            " But {unfinished} of {all} trials of these weren't finished, which may say more of the far end: see their notes."
        ));
    }
    super::limits_work::reword(&mut report, records, path.rtt_us);
    report
}

impl LimitsReport {
    /// What RWIN over RTT allows, bit/s.
    fn window_allows(&self) -> Option<f64> {
        (self.rtt_us > 0).then_some(())?;
        Some(self.rwnd_bytes? as f64 * 8e6 / self.rtt_us as f64)
    }

    fn judge(&self) -> LimitedBy {
        let Some(goodput) = self.goodput_bps else { return LimitedBy::Unknown };
        if self.physical_goodput_bps.is_some_and(|limit| goodput >= NEAR_LINK * limit as f64) {
            return LimitedBy::Link;
        }
        if self.rwnd_limited.is_some_and(|share| share >= MOSTLY) {
            return LimitedBy::Rwnd;
        }
        if self.sndbuf_limited.is_some_and(|share| share >= MOSTLY) {
            return LimitedBy::Sndbuf;
        }
        // A window that grows by itself is as large as it had to be; only one that a transfer uses up limits it.
        if self.rwnd_limited.is_none() && self.window_allows().is_some_and(|allows| goodput >= NEAR_WINDOW * allows) {
            return LimitedBy::Rwnd;
        }
        if self.retransmitted.is_some_and(|share| share >= LOSSY) {
            return LimitedBy::Loss;
        }
        LimitedBy::Path
    }

    fn sentence(&self) -> String {
        let rate = |bps: f64| BitsPerSecond(bps as u64).human();
        let Some(goodput) = self.goodput_bps else { return "Nothing that counts was measured.".to_owned() };
        let mut text = match self.by {
            LimitedBy::Rwnd => match self.rwnd_bytes.zip(self.window_allows()) {
                Some((window, allows)) => format!(
                    "The receive window capped your current settings at {} = {window} bytes / {:.1} ms.",
                    rate(allows),
                    self.rtt_us as f64 / 1e3
                ),
                None => format!("The receive window capped your current settings at {}.", rate(goodput)),
            },
            LimitedBy::Sndbuf => format!("The send buffer capped your current settings at {}.", rate(goodput)),
            LimitedBy::Link => format!("Your current settings fill the link: {}.", rate(goodput)),
            LimitedBy::Loss => format!(
                "Losses ({:.1} % of all segments) held your current settings at {}.",
                self.retransmitted.unwrap_or(0.0) * 100.0,
                rate(goodput)
            ),
            _ => format!("The path held your current settings at {}, not the window.", rate(goodput)),
        };
        if let Some(best) = self.best_goodput_bps.filter(|best| *best > goodput * 1.02) {
            text.push_str(&format!(" The best setting tested reached {}.", rate(best)));
        }
        if let Some(limit) = self.physical_goodput_bps {
            text.push_str(&format!(" The link's physical limit for goodput is {}.", rate(limit as f64)));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(goodput: f64, window: Option<u64>, physical: Option<u64>) -> LimitsReport {
        let mut report = LimitsReport {
            by: LimitedBy::Unknown,
            physical_goodput_bps: physical,
            goodput_bps: Some(goodput),
            best_goodput_bps: None,
            rwnd_bytes: window,
            rtt_us: 100_000,
            rwnd_limited: None,
            sndbuf_limited: None,
            retransmitted: None,
            text: String::new(),
        };
        report.by = report.judge();
        report.text = report.sentence();
        report
    }

    #[test]
    fn a_window_that_is_used_up_is_named_with_its_arithmetic() {
        // 64 kB in 100 ms: 5.12 Mbit/s.
        let found = report(5.0e6, Some(64_000), Some(36_800_000));
        assert_eq!(found.by, LimitedBy::Rwnd);
        assert!(found.text.contains("5.12 Mbit/s = 64000 bytes / 100.0 ms"), "{}", found.text);
        assert!(found.text.contains("36.8 Mbit/s"), "{}", found.text);
    }

    #[test]
    fn link_loss_and_path_are_told_apart() {
        assert_eq!(report(9.5e6, Some(64_000_000), Some(10_000_000)).by, LimitedBy::Link);
        assert_eq!(report(1.0e6, Some(64_000_000), Some(10_000_000)).by, LimitedBy::Path);
        let lossy = LimitsReport { retransmitted: Some(0.02), ..report(1.0e6, None, None) };
        assert_eq!(lossy.judge(), LimitedBy::Loss);
        let sender = LimitsReport { sndbuf_limited: Some(0.9), ..report(1.0e6, None, None) };
        assert_eq!(sender.judge(), LimitedBy::Sndbuf);
        let nothing = LimitsReport { goodput_bps: None, ..report(1.0, None, None) };
        assert_eq!(nothing.judge(), LimitedBy::Unknown);
    }
}
