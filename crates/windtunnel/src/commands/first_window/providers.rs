use crate::edge::say;
use wt_prober::first_window::{ProviderTally, Providers};
use wt_report::{Axis, Chart, Series};
use wt_units::counted;

/// How wide the chart in the terminal is.
const COLUMNS: usize = 80;

/// A bar for each that showed something.
pub(super) fn chart(providers: &Providers) -> Chart {
    let shown: Vec<(&str, ProviderTally)> =
        providers.sorted().into_iter().filter(|(_, tally)| tally.largest().is_some()).collect();
    let bars = |of: fn(&ProviderTally) -> Option<u32>| {
        let point = |(row, (_, tally)): (usize, &(&str, ProviderTally))| Some((row as f64, f64::from(of(tally)?)));
        shown.iter().enumerate().filter_map(point).collect::<Vec<_>>()
    };
    let least = bars(|tally| if tally.usual().is_none() { tally.at_least } else { None });
    let mut series = vec![Series::bars("exact: what most hosts have", bars(ProviderTally::usual))];
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
pub(super) fn print(providers: &Providers, color: bool) {
    let sorted = providers.sorted();
    if sorted.len() < 2 {
        return;
    }
    say!("\n{:<30} {:>6}  first window, segments", "provider", "hosts");
    for (name, tally) in &sorted {
        say!("{name:<30} {:>6}  {}", tally.hosts, windows(tally));
    }
    say!("\n{}", chart(providers).to_terminal(COLUMNS, 20, color).trim_end());
}

/// All windows that were seen, as people read them.
fn windows(tally: &ProviderTally) -> String {
    let exact = tally.exact.iter().map(|(segments, hosts)| match hosts {
        1 => segments.to_string(),
        hosts => format!("{segments} ({hosts} hosts)"),
    });
    let least = tally.at_least.map(|most| {
        // Of different bounds the largest is that of one host alone.
        let smallest = tally.at_least_each.filter(|each| *each < most);
        let from = smallest.map_or(String::new(), |each| format!("≥ {each} to "));
        format!("{from}≥ {most} ({})", counted(tally.bounded, "host"))
    });
    let all: Vec<String> = exact.chain(least).collect();
    if all.is_empty() { "?".to_owned() } else { all.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_probe::first_window::Verdict;
    use wt_prober::first_window::HostFinding;

    #[test]
    fn windows_are_told_with_their_hosts_and_drawn_by_kind() {
        let mut all = Providers::default();
        for (host, provider, verdict, segments) in [
            (1, "a", Verdict::Exact, Some(10)),
            (2, "a", Verdict::Exact, Some(10)),
            (3, "a", Verdict::Exact, Some(32)),
            (4, "b", Verdict::AtLeast, Some(40)),
            (5, "c", Verdict::Unknown, None),
            (6, "d", Verdict::AtLeast, Some(1)),
            (7, "d", Verdict::AtLeast, Some(5)),
            (8, "d", Verdict::AtLeast, Some(2)),
        ] {
            let address = Some([192, 0, 2, host].into());
            all.count(&HostFinding { provider: provider.into(), address, verdict, segments, ..HostFinding::default() });
        }
        let rows: Vec<_> = all.sorted().into_iter().map(|(name, tally)| (name, windows(&tally))).collect();
        let row = |name, text: &str| (name, text.to_owned());
        assert_eq!(
            rows,
            [row("b", "≥ 40 (1 host)"), row("a", "10 (2 hosts), 32"), row("d", "≥ 1 to ≥ 5 (3 hosts)"), row("c", "?")]
        );
        let chart = chart(&all);
        assert_eq!(chart.categories, ["b", "a", "d"]);
        assert_eq!(chart.series[0].points, [(1.0, 10.0)]);
        assert_eq!(chart.series[1].points, [(0.0, 40.0), (2.0, 5.0)]);
    }
}
