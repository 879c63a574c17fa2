use crate::{Measures, Observed, Scale, TrialSpec};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Duration;
use utoipa::ToSchema;
use wt_units::{Knob, Settings};

/// The note of a trial that the user's wish to stop cut short.
pub const STOPPED: &str = "stopped by the user";

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[schema(as = TrialStatus)]
#[serde(rename_all = "kebab-case")]
pub enum Status {
    /// It is under way, or was when the program died.
    Running,
    /// The workload was done.
    Completed,
    /// The deadline came first; what was moved until then counts.
    Incomplete,
    /// No connection, or no byte at all.
    Failed,
    /// It was interrupted; it says nothing.
    Aborted,
    /// The tunnel itself misbehaved (late emulator, stolen CPU); it says nothing.
    Invalid,
}

impl Status {
    /// The word in tables and JSON.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Failed => "failed",
            Self::Aborted => "aborted",
            Self::Invalid => "invalid",
        }
    }
}

/// What one side's kernel said of the connection at one moment.
///
/// Field names that iperf3 has keep its spelling and unit: `rtt` in µs, `snd_cwnd` in bytes.
///
/// # Source
/// `struct tcp_info` of linux/tcp.h; tcp(7).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct Sample {
    /// Since the beginning of the trial, µs.
    pub t_us: u64,
    /// Payload that had arrived at the receiver (receiver's samples) or was acknowledged (sender's), bytes.
    pub bytes: u64,
    /// Congestion window, bytes.
    pub snd_cwnd: u64,
    /// Slow start threshold, bytes; 0 while the kernel has none.
    pub ssthresh: u64,
    /// Smoothed RTT, µs.
    pub rtt: u64,
    /// Smallest RTT so far, µs.
    pub min_rtt: u64,
    /// Retransmitted segments so far.
    pub retransmits: u64,
    /// The peer's window as the sender sees it, bytes.
    pub snd_wnd: u64,
    /// The kernel's delivery rate estimate, bit/s.
    pub delivery_rate_bps: u64,
}

impl Sample {
    /// The mean of the smoothed RTT over the second half of the samples, µs: the RTT that the transfer lived with. `last` is
    /// what is known without any.
    #[must_use]
    pub fn mean_rtt_us(samples: &[Self], last: u64) -> u64 {
        let half = &samples[samples.len() / 2..];
        if half.is_empty() { last } else { half.iter().map(|sample| sample.rtt).sum::<u64>() / half.len() as u64 }
    }
}

/// What held the transfer back, as shares of its time. From the sender's `tcp_info`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = TrialLimits)]
pub struct Limits {
    /// Time in which there was something to send, µs.
    pub busy_us: u64,
    /// Of that, waiting for the receive window, µs.
    pub rwnd_limited_us: u64,
    /// Of that, waiting for the send buffer, µs.
    pub sndbuf_limited_us: u64,
}

/// What came of a trial. Asked and granted settings side by side: a difference is shown, never hidden.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrialOutcome {
    /// How it ended.
    pub status: Status,
    /// Payload that reached the receiver, checked byte by byte.
    pub bytes: u64,
    /// From the request to the last byte, µs; for an incomplete trial, the deadline.
    pub elapsed_us: u64,
    /// What the system says it set.
    pub granted: Settings,
    /// The scope that was used for each knob: `socket`, `route` or `host`.
    pub scopes: BTreeMap<String, String>,
    /// What was seen on the wire or in `tcp_info`.
    #[schema(value_type = Object)]
    pub observed: Observed,
    /// From the sender's side, in time order.
    pub sender: Vec<Sample>,
    /// From the receiver's side, in time order.
    pub receiver: Vec<Sample>,
    /// What held the transfer back.
    pub limits: Limits,
    /// What a person should know: a refused setting, a failure's reason, what the tunnel did wrong.
    pub notes: Vec<String>,
    /// What the workload measured beyond bytes and time.
    #[serde(default, skip_serializing_if = "Measures::is_empty")]
    pub measures: Measures,
}

impl TrialOutcome {
    /// An outcome without a single byte.
    #[must_use]
    pub fn empty(status: Status, elapsed: Duration, note: impl Into<String>) -> Self {
        Self {
            status,
            bytes: 0,
            elapsed_us: u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
            granted: Settings::new(),
            scopes: BTreeMap::new(),
            observed: Observed::default(),
            sender: Vec::new(),
            receiver: Vec::new(),
            limits: Limits::default(),
            notes: vec![note.into()],
            measures: Measures::default(),
        }
    }

    /// The same, if it was stopped: it lasted no longer than until then, whatever it was given.
    #[must_use]
    pub fn ended_after(mut self, took: Duration) -> Self {
        if self.status == Status::Aborted {
            let took = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
            self.elapsed_us = if self.elapsed_us == 0 { took } else { self.elapsed_us.min(took) };
        }
        self
    }

    /// The same with something to compare, whatever happened: a workload that isn't judged by payload over time counts as
    /// bad as the deadline allows where it measured nothing.
    #[must_use]
    pub fn comparable(mut self, spec: &TrialSpec) -> Self {
        let counts = matches!(self.status, Status::Completed | Status::Incomplete | Status::Failed);
        let worst = 1.0 / spec.deadline.as_secs_f64().max(1e-3);
        // Whoever is cut off early didn't do well until then.
        if counts && (self.measures.score.is_none() || self.status != Status::Completed) {
            self.measures.score = match spec.workload.scale() {
                Scale::Lateness => Some(worst),
                Scale::Responsiveness => Some(60.0 * worst),
                Scale::Goodput | Scale::Time | Scale::Rate => None,
            };
        }
        self
    }

    /// A receive window that stayed below half of what was granted, though the payload was 32 of what was granted: both in
    /// bytes, first what was granted. The kernel widens a window with what arrives, so something else held it down.
    #[must_use]
    pub fn narrow_window(&self) -> Option<(u64, u64)> {
        const TELLING: u64 = 32;
        /// What can be advertised where window scaling wasn't agreed to (RFC 7323, section 2.1), which is the path's doing.
        const UNSCALED: u64 = 65_535;
        let most = if self.observed.window_scale.is_some() { u64::MAX } else { UNSCALED };
        let (granted, seen) = (self.granted.number(Knob::Rwin)?.min(most), self.observed.rwin_max?);
        let had_time = self.bytes >= granted.saturating_mul(TELLING);
        (had_time && seen.saturating_mul(2) < granted).then_some((granted, seen))
    }

    /// The trial says nothing, for this reason.
    pub fn mark_invalid(&mut self, why: String) {
        if self.status == Status::Completed {
            self.status = Status::Invalid;
        }
        self.notes.push(why);
    }

    /// Calls a congestion control of ours that was granted under the kernel's name of it what it was called when it was asked for.
    pub fn name_control_as_asked(&mut self, spec: &TrialSpec, kernel_name: &str) {
        if let Some(asked) = spec.settings.get(Knob::Cc)
            && self.granted.name(Knob::Cc) == Some(kernel_name)
        {
            self.granted.set(Knob::Cc, asked.clone());
        }
    }

    /// The figure by which people know a trial: bit/s of goodput, s, exchanges a second, s of lateness, round trips a
    /// minute. `None` where nothing was measured.
    #[must_use]
    pub fn figure(&self, scale: Scale) -> Option<f64> {
        let figure = match scale {
            Scale::Goodput => self.measures.score.map_or_else(|| self.goodput_bps(), |score| score * 8.0),
            Scale::Time => self.elapsed_us as f64 / 1e6,
            Scale::Rate => self.measures.exchanges.map_or(0.0, |exchanges| exchanges.per_second),
            Scale::Lateness => self.measures.lateness.map(|l| l.spread.p99_us as f64 / 1e6)?,
            Scale::Responsiveness => self.measures.under_load.map(|load| load.rpm)?,
        };
        (figure.is_finite() && (figure > 0.0 || scale == Scale::Lateness)).then_some(figure)
    }

    /// Payload over elapsed time, bit/s; 0 if nothing moved.
    #[must_use]
    pub fn goodput_bps(&self) -> f64 {
        if self.elapsed_us == 0 { 0.0 } else { self.bytes as f64 * 8e6 / self.elapsed_us as f64 }
    }
}

/// A trial as the journal keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct TrialRecord {
    /// Number within the journal.
    pub id: i64,
    /// What was asked.
    pub spec: TrialSpec,
    /// When it began, µs since the Unix epoch.
    pub started_unix_us: i64,
    /// What came of it.
    pub outcome: TrialOutcome,
}

/// What is known of the path before any setting is varied.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
pub struct PathFacts {
    /// RTT of a full-sized segment and its ACK on the idle path, µs.
    pub rtt_us: u64,
    /// Largest IP packet that gets through, bytes.
    pub pmtu: u64,
    /// The rate of the payload that the path can carry at most, times the RTT, bytes.
    pub bdp_bytes: u64,
    /// What the framing leaves of the link's rate for TCP payload, bit/s; `None` where the link isn't known.
    pub physical_goodput_bps: Option<u64>,
}
