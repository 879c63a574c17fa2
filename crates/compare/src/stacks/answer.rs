use super::conformance::StackConformance;
use super::overhead::PairedOverhead;
use super::verdict::StackVerdict;
use super::windows::WindowGain;
use crate::path::ComparedPath;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use wt_report::Chart;
use wt_stacks::finding::Finding;

/// What comes out of TCP/IP stacks side by side.
#[derive(Debug, Serialize)]
pub struct StacksAnswer {
    /// 1.
    pub schema_version: u32,
    /// The comparison's name in the journal.
    pub id: String,
    /// The path, as it was named.
    pub lab: String,
    /// What is known of the path.
    pub path: ComparedPath,
    /// Whether each workload of fixed size moved the same bytes with every stack.
    pub same_bytes: bool,
    /// Closer than this share is "the same".
    pub same_within: f64,
    /// The kernel behind its adapter against the kernel itself, for each workload; where both were run alike.
    pub adapter_overhead: Option<BTreeMap<&'static str, f64>>,
    /// What pairs of transactions said of the adapter's path; `None` where they weren't asked.
    pub adapter_overhead_paired: Option<PairedOverhead>,
    /// What larger windows brought.
    pub windows: Vec<WindowGain>,
    /// What came of each.
    pub stacks: Vec<StackResult>,
    /// Each pair at each workload that is ranked.
    pub verdicts: Vec<StackVerdict>,
    /// The most rounds of any.
    #[serde(skip)]
    pub rounds: usize,
    /// What is shown, and what is wrong.
    #[serde(skip)]
    pub sentences: Vec<String>,
    /// The figures, the head first.
    #[serde(skip)]
    pub table: Vec<Vec<String>>,
    /// All pictures with their headings.
    #[serde(skip)]
    pub charts: Vec<(String, Chart)>,
}

/// What the journal keeps as the verdict.
#[derive(Debug, Serialize)]
pub(super) struct StacksVerdict<'a> {
    difference_shown: bool,
    text: String,
    adapter_overhead_paired: Option<&'a PairedOverhead>,
}

/// What came of one stack.
#[derive(Debug, Serialize)]
pub struct StackResult {
    /// As it was named.
    pub name: String,
    /// The stack's own name.
    pub stack: &'static str,
    /// Its version.
    pub version: Option<String>,
    /// The receive window that it was given, bytes.
    pub rwin: Option<u32>,
    /// What was set, by the adapter's own word.
    pub settings: Value,
    /// What its adapter can't, in its own words.
    pub refused: Vec<String>,
    /// What came of each workload.
    pub workloads: BTreeMap<&'static str, WorkloadResult>,
    /// `ok`, or the worst that happened to data: `lost`, `corrupt`.
    pub integrity: &'static str,
    /// Whether data came to its end in any trial, or was found wrong; told only where it isn't so, since `ok` then says nothing.
    #[serde(skip_serializing_if = "is_true")]
    pub integrity_checked: bool,
    /// How the delay of its ACKs went on.
    pub ack_delay_trend: AckDelayTrend,
    /// The most memory that its adapter ever had, bytes.
    pub memory_bytes: Option<f64>,
    /// What it can do.
    pub conformance: StackConformance,
    /// What is wrong with it.
    pub findings: Vec<StackFinding>,
    /// Trials that weren't completed.
    pub failures: Vec<FailedTrials>,
    /// What it is called in tables and legends.
    #[serde(skip)]
    pub title: String,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde's form")]
const fn is_true(told: &bool) -> bool {
    *told
}

/// How the delay of a stack's ACKs went on over its longest trial.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct AckDelayTrend {
    /// The mean of the first third, ms.
    pub start_ms: Option<f64>,
    /// The mean of the last third, ms.
    pub end_ms: Option<f64>,
    /// The p value of "no trend".
    pub p: Option<f64>,
}

/// What is wrong with a stack.
#[derive(Debug, Serialize)]
pub struct StackFinding {
    /// What it is.
    #[serde(flatten)]
    pub finding: Finding,
    /// Where it was seen first.
    pub workload: String,
    /// In words.
    pub text: String,
}

/// Trials that weren't completed, for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailedTrials {
    /// The workload.
    pub workload: String,
    /// How they ended.
    pub status: &'static str,
    /// Why.
    pub why: String,
    /// How many.
    pub trials: u32,
}

/// What came of a stack with one workload: medians of the completed trials.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorkloadResult {
    /// All trials.
    pub trials: usize,
    /// Those that were completed.
    pub completed: usize,
    /// Payload of a trial, bytes; several numbers where it wasn't always the same.
    pub bytes: Vec<u64>,
    /// How long a trial took.
    pub seconds: Option<f64>,
    /// Payload over time, bit/s.
    pub goodput_bps: Option<f64>,
    /// Of transactions and bursts only.
    #[serde(flatten)]
    pub exchanges: Option<ExchangeFigures>,
    /// Of streams only.
    #[serde(flatten)]
    pub lateness: Option<LatenessFigures>,
    /// Of bulk transfers and soaks only.
    #[serde(flatten)]
    pub ramp_up: Option<RampUpFigures>,
    /// Of transfers both ways only.
    #[serde(flatten)]
    pub ways: Option<WayFigures>,
    /// CPU seconds of the adapter's process per 10⁹ bytes of payload.
    pub cpu_s_per_gb: Option<f64>,
    /// From the first SYN until the connection stood, µs.
    pub connect_us: Option<f64>,
    /// Segments that it retransmitted.
    pub retransmissions: Option<f64>,
    /// Segments that the server retransmitted to it.
    pub server_retransmissions: Option<f64>,
    /// The mean of the windows that it offered, bytes.
    pub window_mean_bytes: Option<f64>,
    /// What those windows allowed, bit/s.
    pub window_limit_bps: Option<f64>,
    /// The largest window that it offered, bytes.
    pub window_bytes: Option<f64>,
}

/// Figures of transactions and bursts.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct ExchangeFigures {
    /// Exchanges per second.
    pub per_second: Option<f64>,
    /// The median time of one, µs.
    pub p50_us: Option<f64>,
    /// The 99th percentile, µs.
    pub p99_us: Option<f64>,
}

/// Figures of streams.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LatenessFigures {
    /// The 99th percentile of how late messages were, µs.
    pub lateness_p99_us: Option<f64>,
}

/// Figures of bulk transfers and soaks.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct RampUpFigures {
    /// When 90 % of the rate was reached, seconds.
    pub t90_s: Option<f64>,
}

/// Figures of transfers both ways.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct WayFigures {
    /// From the server to the client, bit/s.
    pub down_bps: Option<f64>,
    /// From the client to the server, bit/s.
    pub up_bps: Option<f64>,
}

impl StacksAnswer {
    /// Whether any difference is shown that matters.
    pub fn differs(&self) -> bool {
        self.verdicts.iter().any(StackVerdict::differs)
    }

    /// Whether several were compared and no difference is shown: the answer is "no".
    pub fn is_no(&self) -> bool {
        self.stacks.len() > 1 && !self.differs()
    }

    /// What the journal keeps as the verdict.
    pub(super) fn verdict(&self) -> StacksVerdict<'_> {
        StacksVerdict {
            difference_shown: self.differs(),
            text: self.sentences.join(" "),
            adapter_overhead_paired: self.adapter_overhead_paired.as_ref(),
        }
    }
}
