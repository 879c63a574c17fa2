use super::result::{Comparison, Row};
use wt_report::{Axis, Chart, Series};

/// All pictures with their headings.
pub(super) fn all(comparison: &Comparison) -> Vec<(String, Chart)> {
    let mut pictures = Vec::new();
    for workload in comparison.workloads() {
        if let Some(chart) = figures(comparison, workload) {
            pictures.push((workload.to_owned(), chart));
        }
    }
    pictures.extend(ack_delays(&comparison.rows).map(|chart| ("ACK delay".to_owned(), chart)));
    pictures
}

/// Each round's figure of each stack.
fn figures(comparison: &Comparison, workload: &str) -> Option<Chart> {
    let rows = &comparison.rows;
    let points: Vec<(f64, f64)> = rows
        .iter()
        .enumerate()
        .flat_map(|(at, row)| row.scores(workload).into_iter().map(move |score| (at as f64, score)))
        .collect();
    let (name, unit) = super::result::axis(workload);
    (!points.is_empty()).then(|| Chart {
        title: format!("{workload}: each round"),
        subtitle: "more is better".to_owned(),
        y: Axis::linear(name, unit),
        categories: rows.iter().map(Row::title).collect(),
        series: vec![Series::points("rounds", points)],
        ..Chart::default()
    })
}

/// How late each acknowledged over the longest of its trials.
fn ack_delays(rows: &[Row]) -> Option<Chart> {
    let line = |row: &Row| {
        let seen = row.longest_seen()?;
        let course = seen.ack_delay.as_ref()?.course.iter().map(|(s, us)| (*s, us / 1e3)).collect();
        Some(Series::line(row.title(), course))
    };
    let series: Vec<Series> = rows.iter().filter_map(line).collect();
    (!series.is_empty()).then(|| Chart {
        title: "ACK delay over time".to_owned(),
        subtitle: "of the longest trial of each".to_owned(),
        x: Axis::linear("time", "s"),
        y: Axis::linear("ACK delay", "ms"),
        series,
        ..Chart::default()
    })
}
