use super::result::Comparison;
use super::{Arm, Run};
use crate::edge::Failure;
use std::path::Path;
use wt_report::{Axis, Chart, Rule, Series};
use wt_trial::bulk::{Arrivals, loss_events};

/// How large the pictures are, pixels.
const SIZE: (u32, u32) = (900, 420);
/// Marks of losses at most, so that a lossy path leaves something of the picture.
const MOST_MARKS: usize = 60;

/// Draws all pictures into a folder.
///
/// # Errors
/// An environment failure with the file.
pub(super) fn write(folder: &Path, comparison: &Comparison, arms: &[Arm]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::environment(format!("can't write {}: {error}", path.display())).hint("a folder that one may write to")
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    let mut pictures = vec![("goodput".to_owned(), goodput(comparison)), ("plane".to_owned(), plane(comparison))];
    for arm in arms {
        if let Some(run) = middle(arm) {
            let name: String =
                arm.asked.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
            pictures.push((format!("run-{name}"), trace(&arm.label(), run)));
        }
    }
    for (name, chart) in pictures {
        let path = folder.join(format!("{name}.svg"));
        std::fs::write(&path, chart.to_svg(SIZE.0, SIZE.1)).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Goodput of each with the interval of its mean.
fn goodput(comparison: &Comparison) -> Chart {
    let rows = &comparison.rows;
    let estimates: Vec<_> = rows
        .iter()
        .enumerate()
        .map(|(index, row)| {
            let half = half_width(&row.goodput);
            (index as f64, row.mean - half, row.mean, row.mean + half)
        })
        .collect();
    let runs = rows.iter().enumerate().flat_map(|(index, row)| row.goodput.iter().map(move |g| (index as f64, *g)));
    Chart {
        title: "Goodput".to_owned(),
        subtitle: "means with twice their standard errors; single runs as marks".to_owned(),
        x: Axis::linear("goodput", "kB/s"),
        categories: rows.iter().map(|row| row.label.clone()).collect(),
        series: vec![Series::points("single runs", runs.collect()), Series::intervals("mean", &estimates)],
        ..Chart::default()
    }
}

/// Twice the standard error.
fn half_width(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    if n < 2.0 {
        return 0.0;
    }
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    2.0 * (variance / n).sqrt()
}

/// Goodput against the 95th percentile of the queueing delay.
fn plane(comparison: &Comparison) -> Chart {
    let one = |row: &super::result::Row| {
        row.p95_queue_ms.map(|queue| Series::points(row.label.clone(), vec![(queue, row.mean)]))
    };
    Chart {
        title: "Goodput against queueing delay".to_owned(),
        subtitle: "up and to the left is better".to_owned(),
        x: Axis::linear("queueing delay, 95th percentile", "ms"),
        y: Axis::linear("goodput", "kB/s"),
        series: comparison.rows.iter().filter_map(one).collect(),
        ..Chart::default()
    }
}

/// The run with the median goodput.
fn middle(arm: &Arm) -> Option<&Run> {
    let mut runs: Vec<&Run> = arm.runs.iter().collect();
    runs.sort_by(|a, b| a.outcome.goodput_bps().total_cmp(&b.outcome.goodput_bps()));
    runs.get(runs.len() / 2).copied()
}

/// Window and delivery rate of one run against time, losses marked.
fn trace(label: &str, run: &Run) -> Chart {
    let outcome = &run.outcome;
    let rtt_us = outcome.sender.first().map_or(1, |sample| sample.min_rtt.max(1));
    let seconds = |us: u64| us as f64 / 1e6;
    let window: Vec<_> = outcome.sender.iter().map(|s| (seconds(s.t_us), s.snd_cwnd as f64 / 1e3)).collect();
    let arrivals = Arrivals::new(&outcome.receiver, outcome.elapsed_us, outcome.bytes);
    let times = outcome.receiver.iter().map(|sample| sample.t_us);
    let over = (2 * rtt_us).max(200_000);
    let rate: Vec<_> = times.map(|t| (seconds(t), arrivals.rate(t, over) / 1e3)).collect();
    let events = loss_events(&outcome.sender, rtt_us);
    let marks = events.iter().take(MOST_MARKS).map(|at| Rule::vertical(seconds(*at), ""));
    Chart {
        title: format!("{label}: congestion window and rate of arrival"),
        subtitle: format!("the run with the median goodput; {} losses, marked", events.len()),
        x: Axis::linear("time", "s"),
        y: Axis::linear("window, kB; rate, kB/s", ""),
        series: vec![Series::steps("congestion window, kB", window), Series::line("rate, kB/s", rate)],
        rules: marks.collect(),
        ..Chart::default()
    }
}
