use super::surface::Answer;
use super::{Prediction, say};
use serde_json::{Value, json};
use wt_report::{Axis, Chart, Rule, Series};
use wt_trial::{Amount, Direction, Workload};
use wt_units::{Bytes, Knob, format_duration};

/// `6.68 Mbit/s`.
fn rate(bps: f64) -> String {
    match bps {
        bps if bps >= 1e9 => format!("{:.3} Gbit/s", bps / 1e9),
        bps if bps >= 1e6 => format!("{:.2} Mbit/s", bps / 1e6),
        bps => format!("{:.2} kbit/s", bps / 1e3),
    }
}

fn percent(share: f64) -> String {
    format!("{:+.1} %", share * 100.0)
}

/// What is known of the model's error here, in a sentence.
fn error_sentence(prediction: &Prediction) -> String {
    match &prediction.error {
        Some(error) => format!(
            "Known error on {} paths, against Linux {} ({} transfers): median {:.1} %, nine in ten within {:.1} %, worst {:.1} %.",
            error.paths(),
            error.kernel,
            error.rows,
            error.median * 100.0,
            error.p90 * 100.0,
            error.worst * 100.0
        ),
        None => "The model was never compared with a kernel on such a path.".to_owned(),
    }
}

/// The table, the chart and what to do next.
pub(super) fn terminal(prediction: &Prediction) {
    let scenario = &prediction.scenario;
    let way = if prediction.direction == Direction::Down { "to the client" } else { "to the server" };
    let what = match &prediction.workload {
        Workload::Bulk { amount: Amount::Size(size), .. } => format!("{size} {way}"),
        Workload::Bulk { amount: Amount::Time(time), .. } => format!("{} of payload {way}", format_duration(*time)),
        other => other.to_string(),
    };
    let measured = prediction.measured();
    say!("model of {}: {}", scenario.name, scenario.title);
    let fates = if prediction.seeds == 1 {
        "nothing is left to chance".to_owned()
    } else {
        format!("median of {} fates", prediction.seeds)
    };
    say!("{what}; {fates}");
    say!("");
    let head = if measured.is_goodput() { "" } else { measured.head() };
    say!("{:<34} {:>13} {:>9} {head:>15} {:>9} {:>7}", "setting", "goodput", "gain", "queueing", "again");
    for answer in &prediction.answers {
        let label = &prediction.design.arms[answer.arm].label;
        let label: String = label.chars().take(34).collect();
        let gain = prediction.gain(answer).filter(|_| answer.arm > 0).map_or_else(String::new, percent);
        let mark = if prediction.is_worth_measuring(answer) { " *" } else { "" };
        let figure = answer.figure.filter(|figure| figure.is_finite());
        let figure = if measured.is_goodput() { String::new() } else { measured.show(figure) };
        let queueing = format!("{:.1} ms", answer.queueing_us / 1e3);
        let again = format!("{:.2} %", answer.retransmitted * 100.0);
        let goodput = rate(answer.goodput_bps);
        say!("{label:<34} {goodput:>13} {gain:>9} {figure:>15} {queueing:>9} {again:>7}{mark}");
    }
    say!("");
    let chart = chart(prediction);
    if chart.series.iter().any(|series| series.points.len() > 2) {
        say!("{}", chart.to_terminal(80, 16, false));
    }
    if prediction.answers.iter().any(|answer| answer.cut_short > 0) {
        say!(
            "The model stopped early, so that it ends in time: figures are of what was done until then. A shorter --time, or fewer --seeds."
        );
    }
    say!("{}", error_sentence(prediction));
    advise(prediction);
}

fn advise(prediction: &Prediction) {
    let candidates = prediction.candidates();
    if candidates.is_empty() {
        say!("No setting gains more than that: nothing here is worth measuring.");
        return;
    }
    say!("* gains more than that. What to measure:");
    let levels: Vec<String> = candidates
        .iter()
        .take(4)
        .filter_map(|answer| prediction.varied(answer.arm))
        .map(|(knob, level)| format!("--levels {knob}={level}"))
        .collect();
    let name = &prediction.scenario.name;
    let path = if wt_lab::presets::names().contains(&name.as_str()) { name.clone() } else { "PATH.toml".to_owned() };
    say!("  windtunnel tune --lab {path} {}", levels.join(" "));
}

/// What is compared, and as what it is drawn: its name, unit, and the figure of an answer in it.
fn drawn(prediction: &Prediction) -> (&'static str, &'static str, impl Fn(&Answer) -> Option<f64> + use<>) {
    let measured = prediction.measured();
    let is_time = matches!(prediction.workload, Workload::Bulk { .. });
    let goodput = measured.is_goodput() || is_time;
    let (name, unit) = if goodput { ("goodput", "Mbit/s") } else { (measured.name, measured.unit) };
    // Goodput both ways is a figure in bit/s, too.
    let scale = if measured.unit == "bit/s" { 1e-6 } else { 1.0 };
    let unit = if measured.unit == "bit/s" { "Mbit/s" } else { unit };
    (name, unit, move |answer: &Answer| {
        if goodput {
            Some(answer.goodput_bps / 1e6)
        } else {
            answer.figure.filter(|f| f.is_finite()).map(|f| f * scale)
        }
    })
}

/// What is compared against the knob with most levels.
pub(super) fn chart(prediction: &Prediction) -> Chart {
    let (name, unit_of, figure) = drawn(prediction);
    let count = |knob: Knob| {
        prediction
            .answers
            .iter()
            .filter(|answer| prediction.varied(answer.arm).is_some_and(|(known, _)| known == knob))
            .count()
    };
    let ordered = Knob::all().into_iter().filter(|knob| knob.is_ordered());
    let Some(knob) = ordered.max_by_key(|knob| (count(*knob), *knob == Knob::Rwin)).filter(|knob| count(*knob) > 1)
    else {
        return by_name(prediction);
    };
    let mut points: Vec<(f64, f64)> = prediction
        .answers
        .iter()
        .filter_map(|answer| match prediction.varied(answer.arm) {
            Some((known, level)) if known == knob => Some((level.number()? as f64, figure(answer)?)),
            _ => None,
        })
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    let unit = if matches!(knob, Knob::Initcwnd | Knob::Initrwnd) { "segments" } else { "bytes" };
    let mut rules = Vec::new();
    if let Some(current) = prediction.answers.first().and_then(&figure) {
        rules.push(Rule::horizontal(current, "current"));
    }
    let ceiling = prediction.scenario.facts(prediction.direction).physical_goodput_bps;
    // What takes turns, or shares, doesn't come near the link's limit.
    let alone = matches!(prediction.workload, Workload::Bulk { .. } | Workload::Soak { .. });
    if let Some(bps) = ceiling.filter(|_| alone) {
        rules.push(Rule::horizontal(bps as f64 / 1e6, "the link's limit"));
    }
    Chart {
        title: format!("{} against {knob} on {}", title(name), prediction.scenario.name),
        subtitle: "a model's answer, not a measurement".to_owned(),
        x: Axis::log2(knob.name(), unit),
        y: Axis::linear(name, unit_of),
        series: vec![Series::line("model", points)],
        rules,
        ..Chart::default()
    }
}

/// A name as the beginning of a title.
fn title(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + letters.as_str())
}

/// Each setting, one row each; goodput with the range of nine in ten fates.
fn by_name(prediction: &Prediction) -> Chart {
    let (name, unit, figure) = drawn(prediction);
    let goodput = name == "goodput";
    let points = prediction.answers.iter().filter_map(|answer| {
        let middle = figure(answer)?;
        let (low, high) = if goodput { (answer.range_bps.0 / 1e6, answer.range_bps.1 / 1e6) } else { (middle, middle) };
        Some((answer.arm as f64, low, middle, high))
    });
    Chart {
        title: format!("{} on {}", title(name), prediction.scenario.name),
        subtitle: "a model's answer, not a measurement".to_owned(),
        y: Axis::linear(name, unit),
        series: vec![Series::intervals("model", &points.collect::<Vec<_>>())],
        categories: prediction.design.arms.iter().map(|arm| arm.label.clone()).collect(),
        ..Chart::default()
    }
}

/// The same as an object.
pub(super) fn json(prediction: &Prediction) -> Value {
    let facts = prediction.scenario.facts(prediction.direction);
    let arms: Vec<Value> = prediction
        .answers
        .iter()
        .map(|answer| {
            let arm = &prediction.design.arms[answer.arm];
            let samples = (!answer.samples.is_empty()).then(|| super::super::samples::columns(&answer.samples));
            json!({
                "settings": arm.settings,
                "why": arm.why,
                "goodput_bps": answer.goodput_bps,
                "goodput_p5_bps": answer.range_bps.0,
                "goodput_p95_bps": answer.range_bps.1,
                "figure": answer.figure.filter(|figure| figure.is_finite()),
                "completion_us": answer.completion.map(|time| time.as_micros() as u64),
                "queueing_delay_us": answer.queueing_us,
                "retransmitted_share": answer.retransmitted,
                "failures": answer.failures,
                "cut_short": answer.cut_short,
                "gain": prediction.gain(answer).filter(|_| answer.arm > 0),
                "worth_measuring": prediction.is_worth_measuring(answer),
                "samples": samples,
            })
        })
        .collect();
    let candidates: Vec<Value> =
        prediction.candidates().iter().map(|answer| json!(prediction.design.arms[answer.arm].settings)).collect();
    let error = prediction.error.as_ref().map(|error| {
        json!({
            "region": error.region,
            "kernel": error.kernel,
            "transfers": error.rows,
            "median": error.median,
            "p90": error.p90,
            "worst": error.worst,
        })
    });
    let bytes = prediction.workload.size().map(Bytes::get);
    let time_us = prediction.workload.time().map(|time| time.as_micros() as u64);
    json!({
        "schema_version": 1,
        "tunnel": "sim",
        "path": prediction.scenario.name,
        "direction": prediction.direction,
        "workload": prediction.workload,
        "measured": prediction.measured(),
        "bytes": bytes,
        "time_us": time_us,
        "seeds": prediction.seeds,
        "path_facts": facts,
        "arms": arms,
        "candidates": candidates,
        "model_error": error,
    })
}
