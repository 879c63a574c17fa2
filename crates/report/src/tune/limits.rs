//! What held the current settings back.

use super::TuneInputs;
use crate::words;
use serde::Serialize;
use utoipa::ToSchema;
use wt_trial::{Observed, PathFacts, Status, TrialRecord};
use wt_units::{BitsPerSecond, Knob};

/// From this share of window over RTT on, the window is what limits. Linux' autotuning keeps the window at twice what came
/// in the last round trip, so a window that isn't in the way is used by half at most.
const NEAR_WINDOW: f64 = 0.6;
/// From this share of what the framing leaves on, the link is what limits.
const NEAR_LINK: f64 = 0.9;
/// Above this share of what the framing leaves, the link isn't what its description says.
pub(super) const OVER: f64 = 1.02;
/// From this share of the time on that a sender waited for something, that is what limits, ...
const MOSTLY: f64 = 0.5;
/// ... and from this one on where the link is known to have room: then only what is waited for can be the reason.
const LARGELY: f64 = 0.3;
/// A sender that has so many times as much window as it uses is held back by its pacing.
const PACED: f64 = 2.0;
/// From this share of retransmitted segments on, losses are worth the name.
const LOSSY: f64 = 0.005;
/// What a window allows over the idle RTT is no cap of transfers that are so many times as slow.
const FAR: f64 = 2.0;
/// A congestion window that grows by this factor in the second half of a trial, below its threshold, is in slow start.
const GROWING: f64 = 1.5;
/// The settings of windows: who is faster by one of them was held back by no path alone.
const WINDOWS: [Knob; 4] = [Knob::Rwin, Knob::Initrwnd, Knob::Initcwnd, Knob::Sndbuf];

/// What limits a transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum LimitedBy {
    /// The receiver's window: RWIN over RTT.
    Rwnd,
    /// The sender's buffer.
    Sndbuf,
    /// The link: what its framing leaves of its rate.
    Link,
    /// The sender's program: it had nothing to send.
    Application,
    /// Losses, which keep the congestion window small.
    Loss,
    /// The congestion window: without losses it is smaller than what the path holds.
    Cwnd,
    /// The pace at which the congestion control sends: it leaves its own window unused.
    Pacing,
    /// The congestion window, or what else lies on the path.
    Path,
    /// There is too little to say.
    Unknown,
}

/// What held the current settings back, and the figures that say so.
#[derive(Debug, Clone, PartialEq, Serialize, ToSchema)]
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
    /// Of the whole time, the share in which there was nothing to send; `null` where the sender isn't ours.
    pub application_limited: Option<f64>,
    /// Retransmitted segments of those sent; `null` where the sender isn't ours.
    pub retransmitted: Option<f64>,
    /// The congestion window in the second half of a trial, bytes; `null` where nobody sampled it.
    pub cwnd_bytes: Option<u64>,
    /// Payload under way in the second half of a trial, by rate and RTT, bytes.
    pub in_flight_bytes: Option<u64>,
    /// In a sentence.
    pub text: String,
}

impl TuneInputs<'_> {
    /// What a setting is called that has another window and is shown to be faster.
    pub(super) fn faster_window(&self) -> Option<String> {
        let has_window = |arm: usize| {
            let settings = self.settings.get(arm).map(|setting| &setting.settings);
            settings.is_some_and(|settings| settings.iter().any(|(knob, _)| WINDOWS.contains(&knob)))
        };
        let mut shown = self.assessment.compared().filter(|arm| arm.claimed.is_some());
        shown.find(|arm| has_window(arm.arm)).map(|arm| self.label(arm.arm))
    }
}

/// Says what held transfers with the current settings (arm 0) back; `best` is the best goodput of any setting, `faster` what has another
/// window and is shown to be faster.
pub(super) fn of_transfers(
    path: &PathFacts,
    records: &[&TrialRecord],
    best: Option<f64>,
    faster: Option<&str>,
) -> LimitsReport {
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
    let window = current.iter().filter_map(|r| r.outcome.observed.rwin_max).max().filter(|window| *window > 0);
    let share = |of: fn(&wt_trial::Limits) -> u64| {
        median(
            current
                .iter()
                .filter(|r| r.outcome.limits.busy_us > 0)
                .map(|r| of(&r.outcome.limits) as f64 / r.outcome.limits.busy_us as f64)
                .collect(),
        )
    };
    let retransmitted = |r: &TrialRecord| {
        let Observed { retransmits, segments, .. } = &r.outcome.observed;
        Some((*retransmits)? as f64 / segments.filter(|n| *n > 0)? as f64)
    };
    let idle = |r: &&&TrialRecord| {
        let busy = r.outcome.limits.busy_us;
        (busy > 0 && r.outcome.elapsed_us > 0).then(|| 1.0 - (busy as f64 / r.outcome.elapsed_us as f64).min(1.0))
    };
    let (cwnd, in_flight): (Vec<f64>, Vec<f64>) = current.iter().filter_map(|r| windows(r)).unzip();
    let whole = |bytes: f64| bytes as u64;
    let mut report = LimitsReport {
        by: LimitedBy::Unknown,
        physical_goodput_bps: path.physical_goodput_bps.filter(|limit| *limit > 0),
        goodput_bps: goodput,
        best_goodput_bps: best,
        rwnd_bytes: window,
        rtt_us: path.rtt_us,
        rwnd_limited: share(|limits| limits.rwnd_limited_us),
        sndbuf_limited: share(|limits| limits.sndbuf_limited_us),
        application_limited: median(current.iter().filter_map(|r| idle(&r)).collect()),
        retransmitted: median(current.iter().filter_map(|r| retransmitted(r)).collect()),
        cwnd_bytes: median(cwnd).map(whole),
        in_flight_bytes: median(in_flight).map(whole),
        text: String::new(),
    };
    report.by = match report.judge() {
        LimitedBy::Path if faster.is_some() => LimitedBy::Unknown,
        by => by,
    };
    let growing = current.iter().filter(|r| is_in_slow_start(r)).count() * 2 > current.len();
    report.text = report.sentence(faster, growing);
    let unfinished = current.iter().filter(|r| r.outcome.status == Status::Incomplete).count();
    let unsure = matches!(report.by, LimitedBy::Path | LimitedBy::Application | LimitedBy::Cwnd | LimitedBy::Pacing);
    if unsure && unfinished * 2 >= current.len() {
        let all = current.len();
        report.text.push_str(&format!(
            " But {unfinished} of {all} trials of these weren't finished, which may say more of the server: see their notes."
        ));
    }
    report
}

/// The mean congestion window over the second half of a trial, and the payload that was under way, bytes.
fn windows(record: &TrialRecord) -> Option<(f64, f64)> {
    let half = record.outcome.sender.get(record.outcome.sender.len() / 2..).filter(|half| half.len() >= 2)?;
    let (first, last) = half.first().zip(half.last()).filter(|(first, last)| last.t_us > first.t_us)?;
    let mean = |of: fn(&wt_trial::Sample) -> u64| half.iter().map(of).sum::<u64>() as f64 / half.len() as f64;
    let rate = last.bytes.saturating_sub(first.bytes) as f64 / (last.t_us - first.t_us) as f64;
    Some((mean(|sample| sample.snd_cwnd), rate * mean(|sample| sample.rtt))).filter(|(cwnd, _)| *cwnd > 0.0)
}

/// Whether a trial ended before its congestion window had found its size.
fn is_in_slow_start(record: &TrialRecord) -> bool {
    let samples = &record.outcome.sender;
    samples.get(samples.len() / 2).zip(samples.last()).is_some_and(|(half, last)| {
        let below = last.ssthresh == 0 || last.snd_cwnd < last.ssthresh;
        below && half.snd_cwnd > 0 && last.snd_cwnd as f64 >= GROWING * half.snd_cwnd as f64
    })
}

impl LimitsReport {
    /// Of what the link can carry at most, the share that the current settings reach; `None` where the link isn't known. It isn't
    /// where more came over it than it is said to carry.
    #[must_use]
    pub fn reached(&self) -> Option<f64> {
        let share = self.goodput_bps? / self.physical_goodput_bps.filter(|limit| *limit > 0)? as f64;
        Some(share).filter(|share| *share <= OVER)
    }

    /// Why it isn't more, as a clause: `the receive window caps it: …`.
    #[must_use]
    pub fn reason(&self) -> String {
        let share = |share: Option<f64>| words::whole_percent(share.unwrap_or(0.0) * 100.0);
        let waits = |of: Option<f64>| of.map_or_else(String::new, |_| format!(", {} of the time", share(of)));
        match self.by {
            LimitedBy::Rwnd => format!("the receive window caps it{}", waits(self.rwnd_limited)),
            LimitedBy::Sndbuf => format!("the send buffer caps it{}", waits(self.sndbuf_limited)),
            LimitedBy::Application => {
                format!("the sending program has nothing to send {} of the time", share(self.application_limited))
            }
            LimitedBy::Loss => {
                let lost = self.retransmitted.unwrap_or(0.0) * 100.0;
                format!("losses cap it, {} of the segments are retransmitted", words::percent(lost))
            }
            LimitedBy::Cwnd => format!(
                "the congestion window stays at {} bytes, and the path holds {}",
                self.cwnd_bytes.unwrap_or(0),
                self.path_holds().unwrap_or(0)
            ),
            LimitedBy::Pacing => "the congestion control sends more slowly than its window allows".to_owned(),
            LimitedBy::Link => "the link is full".to_owned(),
            LimitedBy::Path | LimitedBy::Unknown => "what caps it isn't known".to_owned(),
        }
    }

    /// What the idle path holds at the link's rate, bytes.
    fn path_holds(&self) -> Option<u64> {
        Some((self.physical_goodput_bps? as f64 * self.rtt_us as f64 / 8e6) as u64).filter(|bytes| *bytes > 0)
    }

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
        let waits = [
            (self.rwnd_limited, LimitedBy::Rwnd),
            (self.sndbuf_limited, LimitedBy::Sndbuf),
            (self.application_limited, LimitedBy::Application),
        ];
        let most = waits.into_iter().filter_map(|(share, by)| Some((share?, by))).max_by(|a, b| a.0.total_cmp(&b.0));
        let enough = if self.physical_goodput_bps.is_some() { LARGELY } else { MOSTLY };
        if let Some((_, by)) = most.filter(|(share, _)| *share >= enough) {
            return by;
        }
        // A window that grows by itself is as large as it had to be; only one that a transfer uses up limits it.
        if self.rwnd_limited.is_none() && self.window_allows().is_some_and(|allows| goodput >= NEAR_WINDOW * allows) {
            return LimitedBy::Rwnd;
        }
        if self.retransmitted.is_some_and(|share| share >= LOSSY) {
            return LimitedBy::Loss;
        }
        if let (Some(cwnd), Some(in_flight), Some(holds)) = (self.cwnd_bytes, self.in_flight_bytes, self.path_holds()) {
            if cwnd < holds {
                return LimitedBy::Cwnd;
            }
            if cwnd as f64 >= PACED * in_flight as f64 {
                return LimitedBy::Pacing;
            }
        }
        LimitedBy::Path
    }

    fn sentence(&self, faster: Option<&str>, growing: bool) -> String {
        let rate = |bps: f64| BitsPerSecond(bps as u64).human();
        let Some(goodput) = self.goodput_bps else { return "Nothing that counts was measured.".to_owned() };
        let mut text = match self.by {
            LimitedBy::Rwnd => match self.rwnd_bytes.zip(self.window_allows()) {
                // With a queue of the path before it the RTT of the idle path isn't the one that a window lasts for.
                Some((window, allows)) if allows > FAR * goodput => format!(
                    "The receive window of {window} bytes capped your current settings at {}; over the idle RTT of {:.1} ms it \
                     would allow {}.",
                    rate(goodput),
                    self.rtt_us as f64 / 1e3,
                    rate(allows)
                ),
                Some((window, allows)) => format!(
                    "The receive window capped your current settings at {} = {window} bytes / {:.1} ms.",
                    rate(allows),
                    self.rtt_us as f64 / 1e3
                ),
                None => format!("The receive window capped your current settings at {}.", rate(goodput)),
            },
            LimitedBy::Sndbuf => format!("The send buffer capped your current settings at {}.", rate(goodput)),
            LimitedBy::Application | LimitedBy::Cwnd | LimitedBy::Pacing => {
                format!("Your current settings reach {}: {}.", rate(goodput), self.reason())
            }
            LimitedBy::Link => format!("Your current settings fill the link: {}.", rate(goodput)),
            LimitedBy::Loss => format!(
                "Losses ({:.1} % of all segments) held your current settings at {}.",
                self.retransmitted.unwrap_or(0.0) * 100.0,
                rate(goodput)
            ),
            // The congestion window was large enough for all that the path holds.
            LimitedBy::Path if self.cwnd_bytes.zip(self.path_holds()).is_some_and(|(cwnd, holds)| cwnd >= holds) => {
                format!("The path held your current settings at {}, not the window.", rate(goodput))
            }
            LimitedBy::Path | LimitedBy::Unknown => {
                let known = match faster {
                    Some(faster) => format!("wasn't the path alone, since {faster} is faster"),
                    None => "isn't known".to_owned(),
                };
                let slow_start = if growing {
                    " Most of their trials ended in slow start: longer ones (--trial) tell more."
                } else {
                    ""
                };
                format!("What held your current settings at {} {known}.{slow_start}", rate(goodput))
            }
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
            application_limited: None,
            retransmitted: None,
            cwnd_bytes: None,
            in_flight_bytes: None,
            text: String::new(),
        };
        report.by = report.judge();
        report.text = report.sentence(None, false);
        report
    }

    #[test]
    fn the_path_is_named_only_where_the_congestion_window_had_room_for_it() {
        // 10 Mbit/s over 100 ms hold 125 kB.
        let filled = LimitsReport {
            cwnd_bytes: Some(130_000),
            in_flight_bytes: Some(125_000),
            ..report(1.0e6, None, Some(10_000_000))
        };
        assert!(
            filled
                .sentence(None, false)
                .starts_with("The path held your current settings at 1.00 Mbit/s, not the window.")
        );
        let unknown = report(1.0e6, Some(64_000_000), None);
        assert_eq!(
            (unknown.by, &*unknown.text),
            (LimitedBy::Path, "What held your current settings at 1.00 Mbit/s isn't known.")
        );
        let slow = unknown.sentence(None, true);
        assert_eq!(
            slow,
            format!("{} Most of their trials ended in slow start: longer ones (--trial) tell more.", unknown.text)
        );
        let window = unknown.sentence(Some("rwin=1048576"), false);
        assert_eq!(
            window,
            "What held your current settings at 1.00 Mbit/s wasn't the path alone, since rwin=1048576 is faster."
        );
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
        let idle = LimitsReport {
            application_limited: Some(0.4),
            rwnd_limited: Some(0.1),
            ..report(1.0e6, None, Some(10_000_000))
        };
        assert_eq!(idle.judge(), LimitedBy::Application);
        let window = LimitsReport { rwnd_limited: Some(0.48), ..report(1.48e6, Some(65_536), Some(6_790_000)) };
        assert_eq!(
            (window.judge(), window.reached().map(|share| (share * 100.0).round())),
            (LimitedBy::Rwnd, Some(22.0))
        );
        assert_eq!(
            LimitsReport { by: LimitedBy::Rwnd, ..window }.reason(),
            "the receive window caps it, 48 % of the time"
        );
        // 3 kB last for 1.2 ms at 19.3 Mbit/s: nearly all of that is a queue.
        let queued = LimitsReport {
            rwnd_limited: Some(0.9),
            rtt_us: 15,
            by: LimitedBy::Rwnd,
            ..report(1.93e7, Some(2896), None)
        };
        let text = queued.sentence(None, false);
        assert!(
            text.starts_with("The receive window of 2896 bytes capped your current settings at 19.3 Mbit/s; "),
            "{text}"
        );
        // 10 Mbit/s over 100 ms hold 125 kB.
        let windows = |cwnd, in_flight| {
            LimitsReport {
                cwnd_bytes: Some(cwnd),
                in_flight_bytes: Some(in_flight),
                ..report(1.0e6, None, Some(10_000_000))
            }
            .judge()
        };
        assert_eq!(windows(14_000, 13_000), LimitedBy::Cwnd);
        assert_eq!(windows(250_000, 13_000), LimitedBy::Pacing);
        assert_eq!(windows(130_000, 125_000), LimitedBy::Path);
        let nothing = LimitsReport { goodput_bps: None, ..report(1.0, None, None) };
        assert_eq!(nothing.judge(), LimitedBy::Unknown);
    }
}
