use super::RowInBoth;
use super::mixes::MixRow;
use super::table::Line;
use crate::stack::release;
use serde::Serialize;
use std::collections::BTreeMap;
use wt_sim::StackConfig;
use wt_trial::Sample;
use wt_units::Settings;

/// Points of a row's congestion window over time at most.
const POINTS: usize = 12;
/// Rows this near are counted.
const NEAR: f64 = 0.02;

/// How far the model is from this machine's kernel.
#[derive(Debug, Clone, Serialize)]
pub struct CalibrateAnswer {
    /// 1.
    pub schema_version: u32,
    /// The kernel.
    pub kernel: String,
    /// Whether it ran in virtual time.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// The ends, as the kernel has them; nothing where no row was run.
    pub ends: Option<CalibratedEnds>,
    /// The errors of each region, and of all.
    pub regions: Vec<RegionError>,
    /// Each row.
    pub rows: Vec<CalibrationRow>,
    /// Each mix of flows that share a path, if that table was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mixes: Vec<MixRow>,
}

/// The ends' settings that the model took over.
#[derive(Debug, Clone, Serialize)]
pub struct CalibratedEnds {
    /// Receive buffer, usual and largest, bytes.
    pub rmem: (u64, u64),
    /// Largest send buffer, bytes.
    pub wmem_max: u64,
    /// Whether sockets pace.
    pub pacing: bool,
}

/// The model's error in one part of the world, as shares of the completion time.
#[derive(Debug, Clone, Serialize)]
pub struct RegionError {
    /// The part of the world.
    pub region: &'static str,
    /// Rows that were compared.
    pub rows: usize,
    /// Half of the rows are nearer than this.
    pub median: f64,
    /// Nine in ten are nearer than this.
    pub p90: f64,
    /// None is farther away.
    pub worst: f64,
    /// So many rows are within 2 %.
    pub within_2_percent: usize,
}

/// One row: a transfer in the lab and in the model.
#[derive(Debug, Clone, Serialize)]
pub struct CalibrationRow {
    /// The part of the world.
    pub region: &'static str,
    /// What it varies.
    pub name: String,
    /// What was set.
    pub settings: Settings,
    /// Payload, bytes.
    pub bytes: u64,
    /// The path.
    pub line: Line,
    /// Completion times in the lab, µs, sorted.
    pub lab_us: Vec<u64>,
    /// The one that is compared: of a path without chance the fastest, else the median, µs.
    #[serde(skip)]
    pub lab_figure_us: Option<f64>,
    /// The model's completion time, µs: the median.
    pub model_us: Option<f64>,
    /// The model's completion time over the lab's, minus one.
    pub error: Option<f64>,
    /// What the lab's machinery adds to the smallest RTT, µs; the model's path has it, too.
    pub rtt_excess_us: u64,
    /// Retransmitted segments in the first run, in the lab and in the model.
    pub retransmits: [u64; 2],
    /// Packets that queues dropped in the first run, in the lab and in the model.
    pub queue_drops: [u64; 2],
    /// Runs that were left out because the lab was late.
    pub late: u32,
    /// The lab's congestion window over time: pairs of µs and bytes, of the first run.
    pub cwnd: Vec<[u64; 2]>,
    /// The sender over time, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traces: Option<Traces>,
}

/// The sender over time in the first run of each.
#[derive(Debug, Clone, Serialize)]
pub struct Traces {
    /// In the lab.
    pub lab: Vec<Sample>,
    /// In the model.
    pub model: Vec<Sample>,
}

impl CalibrateAnswer {
    pub(super) fn of(
        rows: &[RowInBoth],
        (mixes, mix_ends): (Vec<MixRow>, Option<CalibratedEnds>),
        traces: bool,
    ) -> Self {
        let ends = rows.first().map(|row| CalibratedEnds::of(&row.stack)).or(mix_ends);
        Self {
            schema_version: 1,
            kernel: release(),
            is_virtual: wt_lab::is_guest(),
            ends,
            regions: (regions(rows).iter().chain(&mix_regions(&mixes)))
                .map(|(region, errors)| RegionError::of(region, errors))
                .collect(),
            mixes,
            rows: rows.iter().map(|row| CalibrationRow::of(row, traces)).collect(),
        }
    }
}

impl CalibratedEnds {
    pub(super) fn of(stack: &StackConfig) -> Self {
        let StackConfig { rmem, wmem_max, pacing, .. } = *stack;
        Self { rmem, wmem_max, pacing }
    }
}

impl RegionError {
    /// Of these errors, sorted.
    fn of(region: &'static str, errors: &[f64]) -> Self {
        Self {
            region,
            rows: errors.len(),
            median: quantile(errors, 0.5),
            p90: quantile(errors, 0.9),
            worst: quantile(errors, 1.0),
            within_2_percent: errors.iter().filter(|error| **error <= NEAR).count(),
        }
    }
}

impl CalibrationRow {
    pub(super) fn of(row: &RowInBoth, traces: bool) -> Self {
        let [lab, model] = &row.traces;
        Self {
            region: row.cell.region,
            name: row.cell.name.clone(),
            settings: row.cell.settings.clone(),
            bytes: row.cell.size.get(),
            line: row.cell.line.clone(),
            lab_us: row.lab_us.clone(),
            lab_figure_us: row.lab(),
            model_us: row.model(),
            error: row.error(),
            rtt_excess_us: row.excess_us,
            retransmits: row.retransmits,
            queue_drops: row.drops,
            late: row.invalid,
            cwnd: thinned(lab),
            traces: traces.then(|| Traces { lab: lab.clone(), model: model.clone() }),
        }
    }
}

/// The errors of each region, without their sign, sorted.
fn regions(rows: &[RowInBoth]) -> BTreeMap<&'static str, Vec<f64>> {
    let mut regions: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for row in rows {
        if let Some(error) = row.error() {
            regions.entry(row.cell.region).or_default().push(error.abs());
            regions.entry("all").or_default().push(error.abs());
        }
    }
    for errors in regions.values_mut() {
        errors.sort_by(f64::total_cmp);
    }
    regions
}

/// The errors of mixes, without their sign, sorted: of completion times as shares of them, of shares in shares of the path.
fn mix_regions(rows: &[MixRow]) -> BTreeMap<&'static str, Vec<f64>> {
    let mut regions: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for row in rows {
        regions.entry("mix times").or_default().push(row.worst_class_time_error().abs());
        // One congestion control alone has all of the path, whoever asks.
        if row.classes.len() > 1 {
            regions.entry("mix shares").or_default().push(row.share_error().abs());
        }
    }
    for errors in regions.values_mut() {
        errors.sort_by(f64::total_cmp);
    }
    regions
}

/// The value that this share of a sorted list doesn't exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((share * last as f64).ceil() as usize).copied().unwrap_or(f64::NAN)
}

/// The lab's congestion window over time: pairs of µs and bytes, of the first run.
fn thinned(samples: &[Sample]) -> Vec<[u64; 2]> {
    let step = samples.len().div_ceil(POINTS).max(1);
    samples.iter().step_by(step).map(|sample| [sample.t_us, sample.snd_cwnd]).collect()
}
