use super::row::{Header, TableRow};
use crate::predict::{PredictAnswer, PredictedArm};
use std::io::{Read, Seek, Write};
use wt_parquet::ColumnKind;
use wt_problem::Problem;

/// The columns that an answer adds to a row's own; one line for each setting, the current one first.
pub(super) const COLUMNS: [&str; 15] = [
    "row",
    "arm",
    "setting",
    "goodput_bps",
    "goodput_p5_bps",
    "goodput_p95_bps",
    "figure",
    "figure_unit",
    "completion_us",
    "queueing_delay_us",
    "retransmitted_share",
    "gain",
    "worth_measuring",
    "model_error_p90",
    "problem",
];

/// Their kinds, which the cells of one shard alone may not say: it may have none, or whole numbers only.
const KINDS: [(&str, ColumnKind); 15] = [
    ("row", ColumnKind::Integer),
    ("arm", ColumnKind::Integer),
    ("setting", ColumnKind::Text),
    ("goodput_bps", ColumnKind::Real),
    ("goodput_p5_bps", ColumnKind::Real),
    ("goodput_p95_bps", ColumnKind::Real),
    ("figure", ColumnKind::Real),
    ("figure_unit", ColumnKind::Text),
    ("completion_us", ColumnKind::Integer),
    ("queueing_delay_us", ColumnKind::Real),
    ("retransmitted_share", ColumnKind::Real),
    ("gain", ColumnKind::Real),
    ("worth_measuring", ColumnKind::Switch),
    ("model_error_p90", ColumnKind::Real),
    ("problem", ColumnKind::Text),
];

/// Writes the answer of [`sweep`](super::sweep), which is CSV, as Parquet: the same rows and columns. Columns of the table's own
/// are numbers where all their cells are.
///
/// # Errors
/// An environment [`Problem`] where it can't be read or written.
pub fn sweep_parquet<W: Write + Send>(answer: impl Read + Seek, out: W) -> Result<W, Problem> {
    wt_parquet::from_csv(answer, out, &KINDS)
        .map_err(|error| Problem::environment(format!("can't write the answer: {error}")))
}

/// The line with the columns' names.
pub(super) fn head(header: &Header) -> Vec<u8> {
    let own = header.names.iter().map(String::as_str);
    let mut lines = Lines::new();
    lines.line(&[&COLUMNS[..1], &own.collect::<Vec<_>>(), &COLUMNS[1..]].concat());
    lines.done()
}

/// Lines of the answer.
pub(super) struct Lines(csv::Writer<Vec<u8>>);

impl Lines {
    pub(super) fn new() -> Self {
        Self(csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new()))
    }

    /// Those of a row: one for each setting, or one that says why there is no answer.
    pub(super) fn add(&mut self, row: &TableRow, answered: Result<&PredictAnswer, &Problem>) {
        let number = row.0.to_string();
        let mut of = |cells: &[String]| {
            let own = row.1.iter().chain(cells.iter().map(String::as_str));
            self.line(&std::iter::once(number.as_str()).chain(own).collect::<Vec<_>>());
        };
        match answered {
            Ok(answer) => answer.arms.iter().enumerate().for_each(|(at, arm)| of(&cells(answer, at, arm))),
            Err(problem) => {
                let mut cells = vec![String::new(); COLUMNS.len() - 2];
                cells.push(problem.to_string());
                of(&cells);
            }
        }
    }

    fn line(&mut self, cells: &[&str]) {
        // Memory takes every line.
        let _ = self.0.write_record(cells);
    }

    pub(super) fn done(self) -> Vec<u8> {
        self.0.into_inner().unwrap_or_default()
    }
}

fn cells(answer: &PredictAnswer, at: usize, arm: &PredictedArm) -> Vec<String> {
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    vec![
        at.to_string(),
        arm.label.clone(),
        arm.goodput_bps.to_string(),
        arm.goodput_p5_bps.to_string(),
        arm.goodput_p95_bps.to_string(),
        number(arm.figure),
        answer.measured.unit.to_owned(),
        arm.completion_us.map_or_else(String::new, |us| us.to_string()),
        arm.queueing_delay_us.to_string(),
        arm.retransmitted_share.to_string(),
        number(arm.gain),
        arm.worth_measuring.to_string(),
        number(answer.model_error.as_ref().filter(|_| arm.least_gain.is_none()).map(|error| error.p90)),
        String::new(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_of_the_answer_has_a_kind() {
        assert_eq!(KINDS.map(|(name, _)| name), COLUMNS);
    }
}
