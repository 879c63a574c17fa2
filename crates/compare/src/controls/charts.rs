use super::answer::{ControlResult, Picture};
use super::control::{ControlTrials, CountedTrial};
use super::scripted::ScriptedDisturbance;
use super::units::goodput_unit;
use wt_report::{Axis, Chart, Rule, Series};
use wt_trial::Sample;
use wt_trial::bulk::{Arrivals, DisturbanceTimes, loss_events};

/// All pictures.
pub(super) fn all(
    results: &[ControlResult],
    controls: &[ControlTrials],
    scripted: Option<ScriptedDisturbance>,
) -> Vec<Picture> {
    let picture =
        |name: &str, heading: &str, chart| Picture { name: name.to_owned(), heading: heading.to_owned(), chart };
    let mut pictures = vec![
        picture("goodput", "Goodput", goodput(results)),
        picture("plane", "Goodput against delay", plane(results)),
    ];
    for control in controls {
        if let Some(trial) = middle(control) {
            let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
            let name: String = control.control.asked.chars().map(plain).collect();
            let disturbed = scripted.map(|scripted| (scripted.what.name(), scripted.when(trial)));
            let chart = trace(&control.label(), trial, disturbed);
            pictures.push(picture(&format!("run-{name}"), &format!("One run: {name}"), chart));
        }
    }
    pictures
}

/// Goodput of each with the interval of its mean.
fn goodput(results: &[ControlResult]) -> Chart {
    let (unit, times) = goodput_unit();
    let estimates: Vec<_> = results
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let (half, mean) = (half_width(&one.goodput.runs) * times, one.goodput.mean * times);
            (index as f64, mean - half, mean, mean + half)
        })
        .collect();
    let runs = results
        .iter()
        .enumerate()
        .flat_map(|(index, one)| one.goodput.runs.iter().map(move |goodput| (index as f64, *goodput * times)));
    Chart {
        title: "Goodput".to_owned(),
        subtitle: "means with twice their standard errors; single runs as marks".to_owned(),
        y: Axis::linear("goodput", unit),
        categories: results.iter().map(|one| one.label.clone()).collect(),
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
fn plane(results: &[ControlResult]) -> Chart {
    let (unit, times) = goodput_unit();
    let one = |one: &ControlResult| {
        one.p95_queue_ms.map(|queue| Series::points(one.label.clone(), vec![(queue, one.goodput.mean * times)]))
    };
    Chart {
        title: "Goodput against queueing delay".to_owned(),
        subtitle: "up and to the left is better".to_owned(),
        x: Axis::linear("queueing delay, 95th percentile", "ms"),
        y: Axis::linear("goodput", unit),
        series: results.iter().filter_map(one).collect(),
        ..Chart::default()
    }
}

/// The trial with the median goodput.
fn middle(control: &ControlTrials) -> Option<&CountedTrial> {
    let mut trials: Vec<&CountedTrial> = control.counted.iter().collect();
    trials.sort_by(|a, b| a.outcome.goodput_bps().total_cmp(&b.outcome.goodput_bps()));
    trials.get(trials.len() / 2).copied()
}

/// What the window allows and what arrived, of one trial, against time; losses marked on the window, and between two lines what
/// was scripted.
fn trace(label: &str, trial: &CountedTrial, disturbed: Option<(&'static str, DisturbanceTimes)>) -> Chart {
    let outcome = &trial.outcome;
    let rtt_us = outcome.sender.iter().map(|sample| sample.min_rtt).filter(|rtt| *rtt > 0).min().unwrap_or(1);
    let seconds = |us: u64| us as f64 / 1e6;
    let (unit, times) = goodput_unit();
    // Bytes per µs are MB/s.
    let allowed = |sample: &Sample| (seconds(sample.t_us), sample.snd_cwnd as f64 / rtt_us as f64 * 1e3 * times);
    let arrivals = Arrivals::new(&outcome.receiver, outcome.elapsed_us, outcome.bytes);
    let over = (2 * rtt_us).max(200_000);
    let rate = outcome.receiver.iter().map(|s| (seconds(s.t_us), arrivals.rate(s.t_us, over) / 1e3 * times));
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
        y: Axis::linear("", unit),
        series: vec![
            Series::line("arrived in order, over two RTTs", rate.collect()),
            Series::steps("window / shortest RTT", outcome.sender.iter().map(allowed).collect()),
            Series::points("losses", lost.map(allowed).collect()),
        ],
        rules: rules.unwrap_or_default(),
        ..Chart::default()
    }
}
