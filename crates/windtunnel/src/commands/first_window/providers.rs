//! Who sends how much: hosts by their providers, as a table and as a chart.

use super::finding::Finding;
use crate::edge::say;
use std::collections::BTreeMap;
use wt_probe::first_window::Verdict;
use wt_report::{Axis, Chart, Series};
use wt_units::counted;

/// How wide the chart in the terminal is.
const COLUMNS: usize = 100;

/// What the hosts of one provider have shown.
#[derive(Debug, Clone, Default)]
struct Tally {
    hosts: usize,
    /// How many hosts have exactly so many segments.
    exact: BTreeMap<u32, usize>,
    /// The largest lower bound, and how many hosts showed one.
    at_least: Option<u32>,
    bounded: usize,
}

impl Tally {
    /// What most of them have; of several the larger.
    fn usual(&self) -> Option<u32> {
        self.exact.iter().max_by_key(|(segments, hosts)| (**hosts, **segments)).map(|(segments, _)| *segments)
    }

    /// All windows that were seen, as people read them.
    fn windows(&self) -> String {
        let exact = self.exact.iter().map(|(segments, hosts)| match hosts {
            1 => segments.to_string(),
            hosts => format!("{segments} ({hosts} hosts)"),
        });
        let least = self.at_least.map(|segments| format!("≥ {segments} ({})", counted(self.bounded, "host")));
        let all: Vec<String> = exact.chain(least).collect();
        if all.is_empty() { "?".to_owned() } else { all.join(", ") }
    }
}

/// All providers.
#[derive(Debug, Clone, Default)]
pub(super) struct Providers(BTreeMap<String, Tally>);

impl Providers {
    /// Counts a host.
    pub(super) fn count(&mut self, finding: &Finding) {
        let tally = self.0.entry(finding.provider.clone()).or_default();
        tally.hosts += 1;
        match finding.verdict {
            Verdict::Exact => *tally.exact.entry(finding.segments).or_default() += 1,
            Verdict::AtLeast => {
                tally.at_least = tally.at_least.max(Some(finding.segments));
                tally.bounded += 1;
            }
            Verdict::Unknown => {}
        }
    }

    /// The largest window first.
    fn sorted(&self) -> Vec<(&str, &Tally)> {
        let mut all: Vec<(&str, &Tally)> = self.0.iter().map(|(name, tally)| (name.as_str(), tally)).collect();
        all.sort_by_key(|(_, tally)| std::cmp::Reverse(tally.usual().max(tally.at_least)));
        all
    }

    /// A bar for each that showed something.
    pub(super) fn chart(&self) -> Chart {
        let shown: Vec<(&str, &Tally)> =
            self.sorted().into_iter().filter(|(_, tally)| tally.usual().max(tally.at_least).is_some()).collect();
        let bars = |of: fn(&Tally) -> Option<u32>| {
            let point = |(row, (_, tally)): (usize, &(&str, &Tally))| Some((row as f64, f64::from(of(tally)?)));
            shown.iter().enumerate().filter_map(point).collect::<Vec<_>>()
        };
        let least = bars(|tally| if tally.usual().is_none() { tally.at_least } else { None });
        let mut series = vec![Series::bars("exact: what most hosts have", bars(Tally::usual))];
        if !least.is_empty() {
            series.push(Series::bars("at least", least));
        }
        Chart {
            title: "First windows".to_owned(),
            subtitle: "what servers send before anything is acknowledged; 10 segments by RFC 6928".to_owned(),
            y: Axis::linear("first window", "segments"),
            categories: shown.iter().map(|(name, _)| (*name).to_owned()).collect(),
            series,
            ..Chart::default()
        }
    }

    /// Prints table and chart, if there is more than one to compare.
    pub(super) fn print(&self, color: bool) {
        if self.0.len() < 2 {
            return;
        }
        say!("\n{:<30} {:>6}  first window, segments", "provider", "hosts");
        for (name, tally) in self.sorted() {
            say!("{name:<30} {:>6}  {}", tally.hosts, tally.windows());
        }
        say!("\n{}", self.chart().to_terminal(COLUMNS, 20, color).trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn finding(provider: &str, verdict: Verdict, segments: u32) -> Finding {
        Finding { provider: provider.into(), verdict, segments, ..Finding::default() }
    }

    #[test]
    fn providers_are_counted_and_the_largest_window_comes_first() {
        let mut all = Providers::default();
        for one in [
            finding("a", Verdict::Exact, 10),
            finding("a", Verdict::Exact, 10),
            finding("a", Verdict::Exact, 32),
            finding("b", Verdict::AtLeast, 40),
            finding("c", Verdict::Unknown, 0),
        ] {
            all.count(&one);
        }
        let rows: Vec<_> = all.sorted().into_iter().map(|(name, t)| (name, t.hosts, t.windows())).collect();
        let row = |name, hosts, text: &str| (name, hosts, text.to_owned());
        assert_eq!(rows, [row("b", 1, "≥ 40 (1 host)"), row("a", 3, "10 (2 hosts), 32"), row("c", 1, "?")]);
        let chart = all.chart();
        assert_eq!(chart.categories, ["b", "a"]);
        assert_eq!(chart.series[0].points, [(1.0, 10.0)]);
        assert_eq!(chart.series[1].points, [(0.0, 40.0)]);
    }
}
