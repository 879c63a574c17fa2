use super::result::Comparison;
use super::{Arm, Run};
use crate::edge::Failure;
use std::path::Path;
use wt_report::{Axis, Chart, Rule, Series};
use wt_trial::Sample;
use wt_trial::bulk::{Arrivals, Disturbed, loss_events};

/// How large the pictures are, pixels.
const SIZE: (u32, u32) = (900, 420);

/// Draws all pictures into a folder.
///
/// # Errors
/// An environment failure with the file.
pub(super) fn write(folder: &Path, comparison: &Comparison, arms: &[Arm]) -> Result<(), Failure> {
    let failed = |path: &Path, error: std::io::Error| {
        Failure::environment(format!("can't write {}: {error}", path.display())).hint("a folder that one may write to")
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, chart) in all(comparison, arms) {
        let path = folder.join(format!("{name}.svg"));
        std::fs::write(&path, chart.to_svg(SIZE.0, SIZE.1)).map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// All pictures with their files' names.
pub(super) fn all(comparison: &Comparison, arms: &[Arm]) -> Vec<(String, Chart)> {
    let mut pictures = vec![("goodput".to_owned(), goodput(comparison)), ("plane".to_owned(), plane(comparison))];
    for arm in arms {
        if let Some(run) = middle(arm) {
            let name: String =
                arm.asked.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' }).collect();
            pictures.push((format!("run-{name}"), trace(&arm.label(), run, comparison.disturbed(run))));
        }
    }
    pictures
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
        y: Axis::linear("goodput", "kB/s"),
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

/// What the window allows and what arrived, of one run, against time; losses marked on the window, and between two lines what
/// was scripted.
fn trace(label: &str, run: &Run, disturbed: Option<(&'static str, Disturbed)>) -> Chart {
    let outcome = &run.outcome;
    let rtt_us = outcome.sender.iter().map(|sample| sample.min_rtt).filter(|rtt| *rtt > 0).min().unwrap_or(1);
    let seconds = |us: u64| us as f64 / 1e6;
    // kB/s: bytes per µs are MB/s.
    let allowed = |sample: &Sample| (seconds(sample.t_us), sample.snd_cwnd as f64 / rtt_us as f64 * 1e3);
    let arrivals = Arrivals::new(&outcome.receiver, outcome.elapsed_us, outcome.bytes);
    let over = (2 * rtt_us).max(200_000);
    let rate = outcome.receiver.iter().map(|s| (seconds(s.t_us), arrivals.rate(s.t_us, over) / 1e3));
    let events = loss_events(&outcome.sender, rtt_us);
    let rules = disturbed.map(|(name, when)| {
        let begins = Rule::vertical(seconds(when.at_us), name);
        let ends = Rule::vertical(seconds(when.over_us), "over");
        if when.over_us > when.at_us { vec![begins, ends] } else { vec![begins] }
    });
    let lost = outcome.sender.iter().filter(|sample| events.contains(&sample.t_us));
    Chart {
        title: format!("{label}: the window's rate and the rate of arrival"),
        subtitle: format!("the run with the median goodput; {} loss events", events.len()),
        x: Axis::linear("time", "s"),
        y: Axis::linear("", "kB/s"),
        series: vec![
            Series::line("arrived in order, over two RTTs", rate.collect()),
            Series::steps("window / shortest RTT", outcome.sender.iter().map(allowed).collect()),
            Series::points("losses", lost.map(allowed).collect()),
        ],
        rules: rules.unwrap_or_default(),
        ..Chart::default()
    }
}
