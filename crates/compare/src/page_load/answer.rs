use super::load::PageLoad;
use super::waterfall::waterfall;
use serde::Serialize;
use wt_report::Chart;

/// How long a real browser took for a page.
#[derive(Debug, Serialize)]
pub struct PageAnswer {
    /// 1.
    pub schema_version: u32,
    /// The page.
    pub url: String,
    /// The browser with its version.
    pub browser: String,
    /// The figures in the middle.
    pub median: MedianLoad,
    /// Each load, in order.
    pub runs: Vec<PageLoad>,
}

/// Medians of the loads' times, ms after the first request.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct MedianLoad {
    /// The first byte.
    pub first_byte_ms: Option<f64>,
    /// The event DOMContentLoaded.
    pub dom_content_loaded_ms: Option<f64>,
    /// The event load.
    pub load_ms: Option<f64>,
}

impl PageAnswer {
    /// The answer of these loads.
    pub(super) fn new(url: &str, browser: String, runs: Vec<PageLoad>) -> Self {
        let median = MedianLoad {
            first_byte_ms: median(&runs, |load| load.first_byte_ms),
            dom_content_loaded_ms: median(&runs, |load| load.dom_content_loaded_ms),
            load_ms: median(&runs, |load| Some(load.load_ms)),
        };
        Self { schema_version: 1, url: url.to_owned(), browser, median, runs }
    }

    /// The median of one of the figures.
    pub fn median_of(&self, of: impl Fn(&PageLoad) -> Option<f64>) -> Option<f64> {
        median(&self.runs, of)
    }

    /// The requests of the load with the median time, drawn.
    pub fn waterfall(&self) -> Option<Chart> {
        let mut sorted: Vec<&PageLoad> = self.runs.iter().collect();
        sorted.sort_by(|a, b| a.load_ms.total_cmp(&b.load_ms));
        let middle = sorted.get(sorted.len().saturating_sub(1) / 2)?;
        Some(waterfall(&self.url, middle))
    }
}

fn median(loads: &[PageLoad], of: impl Fn(&PageLoad) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = loads.iter().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied();
    Some((at(values.len().saturating_sub(1) / 2)? + at(values.len() / 2)?) / 2.0)
}
