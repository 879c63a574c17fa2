use super::compare::{ComparedLoads, WindowPair, waterfalls};
use super::load::PageLoad;
use super::waterfall::{name, waterfall};
use serde::Serialize;
use wt_report::{Chart, Filmstrip, Page};

/// Of the requests of a load that failed so many are named.
const NAMED: usize = 3;

/// How long a real browser took for a page.
#[derive(Debug, Serialize)]
pub struct PageAnswer {
    /// 1.
    pub schema_version: u32,
    /// The name of a comparison in the journal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The page.
    pub url: String,
    /// The browser with its version.
    pub browser: String,
    /// The figures in the middle.
    pub median: MedianLoad,
    /// Each load, in order; of a comparison first all with the first window, then all with the second, each in the order of
    /// the rounds.
    pub runs: Vec<PageLoad>,
    /// The verdict on two first windows; there only where they were compared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compare: Option<ComparedLoads>,
    /// What loads that don't count looked like, if they were filmed.
    #[serde(skip)]
    pub film: Option<Filmstrip>,
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
        Self { schema_version: 1, id: None, url: url.to_owned(), browser, median, runs, compare: None, film: None }
    }

    /// The answer of loads with both, in the order of their rounds.
    pub(super) fn compared(url: &str, browser: String, pair: WindowPair, arms: [Vec<PageLoad>; 2]) -> Self {
        let compare = ComparedLoads::of(pair, [&arms[0], &arms[1]]);
        Self { compare, ..Self::new(url, browser, arms.into_iter().flatten().collect()) }
    }

    /// Whether two windows were compared and no difference is shown: the answer is "no".
    pub fn is_no(&self) -> bool {
        self.compare.as_ref().is_some_and(|compare| !compare.difference_shown)
    }

    /// The median of one of the figures.
    pub fn median_of(&self, of: impl Fn(&PageLoad) -> Option<f64>) -> Option<f64> {
        median(&self.runs, of)
    }

    /// The requests of the load with the median time, drawn.
    pub fn waterfall(&self) -> Option<Chart> {
        let Some(compare) = &self.compare else { return Some(waterfall(&self.url, middle(&self.runs)?)) };
        let (before, after) = self.runs.split_at_checked(compare.rounds)?;
        let labels = [0, 1].map(|arm: usize| compare.arms[arm].label.as_str());
        Some(waterfalls(&self.url, labels, [middle(before)?, middle(after)?]))
    }

    /// All of it as a page with its picture.
    pub fn html(&self) -> String {
        let ms = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.0}"));
        let head = ["load", "first byte, ms", "DOMContentLoaded, ms", "load, ms", "requests", "kB"];
        let mut table = vec![head.map(str::to_owned).to_vec()];
        table.extend(self.runs.iter().enumerate().map(|(number, load)| {
            vec![
                self.label(number),
                ms(load.first_byte_ms),
                ms(load.dom_content_loaded_ms),
                ms(Some(load.load_ms)),
                load.requests.to_string(),
                format!("{:.1}", load.bytes / 1e3),
            ]
        }));
        let page = Page {
            title: format!("{} in a browser", self.url),
            about: format!("{}, cold caches", self.browser),
            text: self.compare.iter().map(|compare| compare.text.clone()).chain(self.failures()).collect(),
            table,
            more: Vec::new(),
            charts: self.waterfall().map(|chart| ("Waterfall".to_owned(), chart)).into_iter().collect(),
            film: self.film.clone(),
            footer: format!("Windtunnel {}", env!("CARGO_PKG_VERSION")),
        };
        page.to_html()
    }

    /// What to know of requests that failed: a page that lacks some of its objects may be faster for it. A line where each load lacks the
    /// same, else one for each that lacks some.
    pub fn failures(&self) -> Vec<String> {
        let told: Vec<Option<String>> = self.runs.iter().map(failed).collect();
        match told.first() {
            Some(Some(first)) if told.len() > 1 && told.iter().all(|one| one.as_ref() == Some(first)) => {
                vec![format!("In each load {first}.")]
            }
            _ => {
                let each = told.into_iter().enumerate();
                each.filter_map(|(number, one)| Some(format!("In load {} {}.", self.label(number), one?))).collect()
            }
        }
    }

    /// What a load is called: its number, and of a comparison its window.
    pub fn label(&self, number: usize) -> String {
        match &self.compare {
            Some(compare) => {
                let arm = usize::from(number >= compare.rounds);
                format!("{} {}", compare.arms[arm].label, number - arm * compare.rounds + 1)
            }
            None => (number + 1).to_string(),
        }
    }
}

/// `2 of 5 requests failed: a.png (net::ERR_EMPTY_RESPONSE), b.png (HTTP status 404)`; nothing where none did.
fn failed(load: &PageLoad) -> Option<String> {
    if load.failed == 0 {
        return None;
    }
    let of_the_load = load.resources.iter().filter(|one| one.start_ms <= load.load_ms);
    let why =
        of_the_load.filter_map(|one| Some(format!("{} ({})", wt_units::harmless(name(&one.url)), one.failure()?)));
    let named: Vec<String> = why.take(NAMED).collect();
    let more = load.failed.saturating_sub(named.len());
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let of = wt_units::counted(load.requests, "request");
    Some(format!("{} of {of} failed: {}{more}", load.failed, named.join(", ")))
}

/// The load with the median time.
fn middle(loads: &[PageLoad]) -> Option<&PageLoad> {
    let mut sorted: Vec<&PageLoad> = loads.iter().collect();
    sorted.sort_by(|a, b| a.load_ms.total_cmp(&b.load_ms));
    sorted.get(sorted.len().saturating_sub(1) / 2).copied()
}

fn median(loads: &[PageLoad], of: impl Fn(&PageLoad) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = loads.iter().filter_map(of).collect();
    values.sort_by(f64::total_cmp);
    let at = |index: usize| values.get(index).copied();
    Some((at(values.len().saturating_sub(1) / 2)? + at(values.len() / 2)?) / 2.0)
}
