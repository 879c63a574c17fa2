//! `analyse` as one question: what a file holds, a table or a capture, is told by its content.

use crate::capture::capture_text;
use crate::chart::Chart;
use crate::tables::{table_charts, table_text};
use serde::Serialize;
use std::io::{self, Cursor, Read};
use wt_experiment::means::SummaryMean;
use wt_experiment::tables::{self, NamedColumns, SheetError, TableAnswer, TableRequest};
use wt_flow::{CaptureAnswer, CaptureRequest, analyse_capture};
use wt_wire::{CaptureError, is_capture};

/// As many bytes tell a capture from a table.
const HEAD: u64 = 8;

/// What is asked of measurements.
#[derive(Debug, Clone, PartialEq)]
pub struct AnalyseRequest {
    /// What the file is called in messages.
    pub file: String,
    /// Of a table: the columns that somebody named.
    pub columns: NamedColumns,
    /// Of a table: seeds what is sampled where there are too many relabellings to try all.
    pub seed: u64,
    /// Of a capture: which packets, and how many connections.
    pub capture: CaptureRequest,
}

/// What measurements allow one to say. Its JSON is the contract of `windtunnel analyse --json`.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum AnalyseAnswer {
    /// Of a table, or of two published means.
    Table(Box<TableAnswer>),
    /// Of a capture.
    Capture(Box<CaptureAnswer>),
}

impl AnalyseAnswer {
    /// Whether the answer is "yes": a difference is shown, or the capture holds connections.
    #[must_use]
    pub fn is_yes(&self) -> bool {
        match self {
            Self::Table(answer) => answer.difference_shown(),
            Self::Capture(answer) => answer.has_connections(),
        }
    }

    /// As a person reads it.
    #[must_use]
    pub fn to_text(&self) -> String {
        match self {
            Self::Table(answer) => table_text(answer),
            Self::Capture(answer) => capture_text(answer),
        }
    }

    /// Its plots, by the names that their files may have; a capture has none.
    #[must_use]
    pub fn charts(&self) -> Vec<(&'static str, Chart)> {
        match self {
            Self::Table(answer) => table_charts(answer),
            Self::Capture(_) => Vec::new(),
        }
    }
}

/// Why measurements can't be analysed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnalyseError {
    /// Not even the file's beginning can be read.
    #[error("cannot read {file}")]
    Unreadable {
        /// What it is called.
        file: String,
        /// Why.
        source: io::Error,
    },
    /// The table is at fault.
    #[error(transparent)]
    Sheet(#[from] SheetError),
    /// The capture is at fault.
    #[error("cannot read the capture {file}")]
    Capture {
        /// What it is called.
        file: String,
        /// Why.
        source: CaptureError,
    },
    /// A filter was given for a table.
    #[error("a filter is for captures, and this is none")]
    FilterOfTable,
    /// Columns of a table were named for a capture.
    #[error("a capture has no columns: --value, --factor, --block and which outcomes are good are for tables")]
    ColumnsOfCapture,
    /// The two means can't be compared.
    #[error("the two means cannot be compared")]
    Means,
}

/// Analyses a file: a table of measurements, or captured packets.
///
/// # Errors
/// [`AnalyseError`], which names line and column of what is wrong with a table.
pub fn analyse(mut input: impl Read, request: &AnalyseRequest) -> Result<AnalyseAnswer, AnalyseError> {
    let mut head = Vec::new();
    let read = input.by_ref().take(HEAD).read_to_end(&mut head);
    read.map_err(|source| AnalyseError::Unreadable { file: request.file.clone(), source })?;
    let is_capture = is_capture(&head);
    let whole = Cursor::new(head).chain(input);
    if is_capture && request.columns != NamedColumns::default() {
        return Err(AnalyseError::ColumnsOfCapture);
    }
    if is_capture {
        let answer = analyse_capture(whole, &request.file, &request.capture);
        let answer = answer.map_err(|source| AnalyseError::Capture { file: request.file.clone(), source })?;
        return Ok(AnalyseAnswer::Capture(Box::new(answer)));
    }
    if request.capture.filter.is_some() {
        return Err(AnalyseError::FilterOfTable);
    }
    let AnalyseRequest { file, columns, seed, .. } = request.clone();
    Ok(AnalyseAnswer::Table(Box::new(tables::analyse_table(whole, &TableRequest { file, columns, seed })?)))
}

/// Compares two published means.
///
/// # Errors
/// [`AnalyseError::Means`]: means must be above zero, standard deviations at least zero and not both zero.
pub fn analyse_means(a: SummaryMean, b: SummaryMean) -> Result<AnalyseAnswer, AnalyseError> {
    tables::analyse_means(a, b).map(|answer| AnalyseAnswer::Table(Box::new(answer))).ok_or(AnalyseError::Means)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes: &[u8], filter: Option<&str>) -> Result<AnalyseAnswer, AnalyseError> {
        let filter = filter.map(|text| text.parse().unwrap());
        let capture = CaptureRequest { filter, connections: 10 };
        let request = AnalyseRequest { file: "f".into(), columns: NamedColumns::default(), seed: 1, capture };
        analyse(bytes, &request)
    }

    #[test]
    fn the_content_tells_a_capture_from_a_table() {
        let table = b"mtu,s1,s2\n1400,10,11\n1500,15,16\n";
        let answer = of(table, None).unwrap();
        assert!(matches!(&answer, AnalyseAnswer::Table(table) if matches!(**table, TableAnswer::Blocked(_))));
        assert!(answer.to_text().starts_with(answer_verdict(&answer)));
        assert_eq!(answer.charts().iter().map(|(name, _)| *name).collect::<Vec<_>>(), ["ratios", "evidence"]);
        assert!(matches!(of(table, Some("tcp")), Err(AnalyseError::FilterOfTable)));
        // The head of a classic capture of Ethernet, and no packet.
        let empty = [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
        let answer = of(&empty, Some("tcp")).unwrap();
        assert!(matches!(&answer, AnalyseAnswer::Capture(capture) if !capture.has_connections()));
        assert_eq!(serde_json::to_value(&answer).unwrap()["kind"], "capture");
        assert!(!answer.is_yes());
        assert!(answer.to_text().starts_with("0 packets in"), "{}", answer.to_text());
        let columns = NamedColumns { factor: Some("mtu".to_owned()), ..NamedColumns::default() };
        let capture = CaptureRequest { filter: None, connections: 10 };
        let request = AnalyseRequest { file: "f".into(), columns, seed: 1, capture };
        assert!(matches!(analyse(&empty[..], &request), Err(AnalyseError::ColumnsOfCapture)));
    }

    fn answer_verdict(answer: &AnalyseAnswer) -> &str {
        match answer {
            AnalyseAnswer::Table(table) => table.verdict(),
            AnalyseAnswer::Capture(_) => "",
        }
    }

    #[test]
    fn levels_with_names_stand_at_their_names_and_numbers_at_their_values() {
        let ticks = |levels: [&str; 2]| {
            let [low, high] = levels;
            let table = format!("cc,mtu,rate\n{low},1500,5.7\n{low},1400,6.1\n{high},1500,9.3\n{high},1400,8\n");
            let charts = of(table.as_bytes(), None).unwrap().charts();
            let (_, chart) = charts.into_iter().find(|(name, _)| *name == "interaction").unwrap();
            let xs: Vec<f64> = chart.series[0].points.iter().map(|point| point.0).collect();
            (chart.x.names, xs)
        };
        // One number between names is a name.
        let names = |levels: [&str; 2]| (levels.map(str::to_owned).to_vec(), vec![0.0, 1.0]);
        assert_eq!(ticks(["reno", "cubic"]), names(["reno", "cubic"]));
        assert_eq!(ticks(["auto", "16"]), names(["auto", "16"]));
        assert_eq!(ticks(["4", "16"]), (vec![], vec![4.0, 16.0]));
    }
}
