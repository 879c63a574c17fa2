//! How far the model is from this machine's kernel: a table of transfers in the lab and in the model, and how far apart their
//! completion times are, by region.

/// The answer.
mod answer;
/// Several flows that share a path.
mod mixes;
/// One row in both.
mod row;
/// The paths.
mod table;
#[cfg(test)]
mod tests;

pub use answer::{CalibrateAnswer, CalibratedEnds, CalibrationRow, RegionError, Traces};
pub use mixes::{MixClass, MixRow};
pub use table::Line;
pub(crate) use table::{TablePath, table_paths, table_settings};

use mixes::MixCell;
use row::RowInBoth;
use serde::{Deserialize, Serialize};
use table::Cell;
use wt_lab::{Backend, LabOptions};
use wt_problem::Problem;
use wt_trial::Cancel;

/// Repetitions that a request may ask for.
const REPEATS: std::ops::RangeInclusive<u32> = 1..=100;

/// What is compared, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CalibrateRequest {
    /// Which table.
    pub table: CalibrationTable,
    /// Only rows whose region or name contains one of these; nothing means all.
    pub only: Vec<String>,
    /// How often the lab runs each row, 1 to 100; lossy rows run five times as often, in virtual time forty times.
    pub repeat: u32,
    /// Whether the answer has what the sender's `tcp_info` said over time, in the first run of each.
    pub traces: bool,
    /// Of everything random.
    pub seed: u64,
    /// How the lab reaches the hosts' kernels.
    pub backend: Backend,
    /// Keep this machine's processors awake while the lab is up: packets wait less; it costs all of their idle time and needs root.
    pub sharp: bool,
}

impl CalibrateRequest {
    /// As the lab takes it.
    pub(crate) fn lab_options(&self) -> LabOptions {
        LabOptions { sharp: self.sharp, ..LabOptions::seeded(self.backend, self.seed) }
    }
}

/// The tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CalibrationTable {
    /// From a telephone line to a data centre.
    #[default]
    World,
    /// 100 kB, 1 MB and 10 MB over twelve paths.
    Grid,
    /// Both.
    All,
    /// Two to ten flows that share a path: 70 mixes of congestion controls and queues.
    Mixes,
}

/// What happens meanwhile.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum CalibrateEvent {
    /// The lab runs.
    Begun {
        /// How many rows are compared.
        rows: usize,
    },
    /// One row was compared.
    Row(Box<CalibrationRow>),
    /// One mix of flows was compared.
    Mix(Box<MixRow>),
}

impl Default for CalibrateRequest {
    fn default() -> Self {
        Self {
            table: CalibrationTable::default(),
            only: Vec::new(),
            repeat: 3,
            traces: false,
            seed: 1,
            backend: Backend::default(),
            sharp: false,
        }
    }
}

impl CalibrateRequest {
    /// Whether it is in range and there is anything to compare, without running it.
    ///
    /// # Errors
    /// A usage problem that says what is wrong.
    pub fn check(&self) -> Result<(), Problem> {
        self.cells().map(|_| ())
    }

    /// Whether this name or region was chosen.
    fn wants(&self, name: &str, region: &str) -> bool {
        let contains = |text: &String| name.contains(text) || region.contains(text);
        self.only.is_empty() || self.only.iter().any(contains)
    }

    /// The mixes that are compared.
    fn mixes(&self) -> Vec<MixCell> {
        let mut cells = if self.table == CalibrationTable::Mixes { mixes::cells() } else { Vec::new() };
        cells.retain(|cell| self.wants(&cell.name, mixes::REGION));
        cells
    }

    /// The rows that are compared.
    fn cells(&self) -> Result<Vec<Cell>, Problem> {
        if !REPEATS.contains(&self.repeat) {
            let (least, most) = (REPEATS.start(), REPEATS.end());
            return Err(Problem::usage(format!("{} repetitions: allowed is {least} to {most}", self.repeat)));
        }
        let mut cells = match self.table {
            CalibrationTable::World => table::world(),
            CalibrationTable::Grid => table::grid(),
            CalibrationTable::All => [table::world(), table::grid()].concat(),
            CalibrationTable::Mixes => Vec::new(),
        };
        cells.retain(|cell| self.wants(&cell.name, cell.region));
        if cells.is_empty() && self.mixes().is_empty() {
            return Err(Problem::usage(format!("no row of the table contains \"{}\"", self.only.join("\" or \""))));
        }
        Ok(cells)
    }
}

/// Runs the rows of a request in the lab and in the model; once `cancel` is set, the answer is of those that were run.
///
/// The lab runs in real time: all rows take about half an hour per repetition. On a busy machine it is late; such runs are left
/// out, and of the others the fastest is nearest to what the kernel does. Enters a user namespace: must be called before any other
/// thread runs.
///
/// # Errors
/// A usage problem where the request is invalid; an environment problem where there can be no lab.
pub fn calibrate(
    request: &CalibrateRequest,
    sink: &mut dyn FnMut(CalibrateEvent),
    cancel: &Cancel,
) -> Result<CalibrateAnswer, Problem> {
    let cells = request.cells()?;
    wt_lab::enter().map_err(|error| wt_setup::lab::problem(&error))?;
    let mixes = request.mixes();
    sink(CalibrateEvent::Begun { rows: cells.len() + mixes.len() });
    let mut rows = Vec::new();
    for cell in cells {
        if cancel.is_cancelled() {
            break;
        }
        let row = row::compare(cell, request, cancel)?;
        if cancel.is_cancelled() && row.is_empty() {
            break;
        }
        sink(CalibrateEvent::Row(Box::new(CalibrationRow::of(&row, false))));
        rows.push(row);
    }
    let (mut mix_rows, mut mix_ends) = (Vec::new(), None);
    for cell in mixes {
        if cancel.is_cancelled() {
            break;
        }
        if let Some((row, ends)) = mixes::compare(&cell, request, cancel)? {
            mix_ends = Some(ends);
            sink(CalibrateEvent::Mix(Box::new(row.clone())));
            mix_rows.push(row);
        }
    }
    if cancel.is_cancelled() && rows.is_empty() && mix_rows.is_empty() {
        return Err(Problem::stopped("stopped before a row was measured"));
    }
    Ok(CalibrateAnswer::of(&rows, (mix_rows, mix_ends), request.traces))
}
