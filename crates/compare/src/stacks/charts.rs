use super::figures::axis;
use super::trials::StackTrials;
use wt_report::{Axis, Chart, Series};

/// All pictures with their headings.
pub(super) fn all(stacks: &[StackTrials], workloads: impl Iterator<Item = &'static str>) -> Vec<(String, Chart)> {
    let mut pictures: Vec<(String, Chart)> =
        workloads.filter_map(|workload| Some((workload.to_owned(), figures(stacks, workload)?))).collect();
    pictures.extend(ack_delays(stacks).map(|chart| ("ACK delay".to_owned(), chart)));
    pictures
}

/// Each round's figure of each stack.
fn figures(stacks: &[StackTrials], workload: &str) -> Option<Chart> {
    let points: Vec<(f64, f64)> = stacks
        .iter()
        .enumerate()
        .flat_map(|(at, stack)| stack.scores(workload).into_iter().map(move |score| (at as f64, score)))
        .collect();
    let (name, unit, times) = axis(workload, points.iter().map(|(_, score)| *score).fold(0.0, f64::max));
    let points: Vec<(f64, f64)> = points.into_iter().map(|(at, score)| (at, score * times)).collect();
    (!points.is_empty()).then(|| Chart {
        title: format!("{workload}: each round"),
        subtitle: "more is better".to_owned(),
        y: Axis::linear(name, unit),
        categories: stacks.iter().map(StackTrials::title).collect(),
        series: vec![Series::points("rounds", points)],
        ..Chart::default()
    })
}

/// How late each acknowledged over the longest of its trials.
fn ack_delays(stacks: &[StackTrials]) -> Option<Chart> {
    let line = |stack: &StackTrials| {
        let seen = stack.longest_seen()?;
        let course = seen.ack_delay.as_ref()?.course.iter().map(|(s, us)| (*s, us / 1e3)).collect();
        Some(Series::line(stack.title(), course))
    };
    let series: Vec<Series> = stacks.iter().filter_map(line).collect();
    (!series.is_empty()).then(|| Chart {
        title: "ACK delay over time".to_owned(),
        subtitle: "of the longest trial of each".to_owned(),
        x: Axis::linear("time", "s"),
        y: Axis::linear("ACK delay", "ms"),
        series,
        ..Chart::default()
    })
}
