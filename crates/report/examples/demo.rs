//! Renders reports of synthetic experiments, for the eye: `cargo run -p wt-report --example demo -- DIR [--color]`.

mod story;

use std::io::Write as _;
use std::time::Duration;
use story::{Plan, Story, Truth, adsl, rwin};
use wt_report::{Run, RunFacts, Setting, TuneInputs, TuneReport};
use wt_trial::Status;
use wt_units::{Knob, Level};

fn report(story: &Story) -> TuneReport {
    let settings: Vec<Setting> =
        story.truths.iter().map(|t| Setting { label: t.label.clone(), settings: t.settings.clone() }).collect();
    let run = Run {
        started_unix_us: 1_795_248_900_000_000,
        spent: Duration::from_millis(3_570) * story.assessment.trials as u32,
        cool_down: Duration::from_millis(500),
        seed: 7,
        command: "windtunnel tune --lab adsl --knobs rwin,mtu,cc --seed 7".into(),
        version: "0.1.0".into(),
        comment: String::new(),
        ..Run::default()
    };
    TuneReport::assemble(&TuneInputs {
        id: "20261121-081500-adsl-3f9a",
        target: "adsl",
        tunnel: "lab",
        path: &story.path,
        current: &story.current,
        settings: &settings,
        plateau: story.plateau,
        assessment: &story.assessment,
        records: &story.records,
        run: &run,
        facts: &RunFacts::default(),
    })
}

/// Labels that want to be markup, settings that weren't granted, trials that went wrong, more arms than fit.
fn hostile() -> Story {
    let evil = "<script>alert('x')</script> & a very long label that goes on and on without any end in sight";
    let mut truths = vec![Truth::new("current", story::current(), 6.5)];
    for n in 1..16u64 {
        let label = if n == 3 { evil.to_owned() } else { format!("rwin={} ({}×1440)", n * 1_440, n) };
        truths.push(Truth::new(&label, rwin(n * 1_440), (0.33 * n as f64).min(6.5)));
    }
    let levels = (1..16).chain([0]).collect();
    let mut story = Plan { truths, levels, noise: 0.1, budget: 200, stop_after: None, seed: 3 }.run();
    for (i, record) in story.records.iter_mut().enumerate() {
        if record.spec.arm == 5 {
            record.outcome.granted.set(Knob::Rwin, Level::Number(4_608));
        }
        if i % 17 == 0 {
            record.outcome.status = Status::Invalid;
            record.outcome.notes = vec![evil.into(), "the emulator was 21 ms late".into()];
        }
        record.outcome.bytes += record.outcome.bytes * (i as u64 / 4) / 100;
    }
    story
}

fn main() -> std::io::Result<()> {
    let color = std::env::args().any(|arg| arg == "--color");
    let dir = std::env::args().nth(1).filter(|arg| !arg.starts_with("--"));
    let stories = [
        ("faster", adsl(1.06, 200).run()),
        ("none", adsl(1.0, 120).run()),
        ("stopped", Plan { stop_after: Some(3), ..adsl(1.0, 600) }.run()),
        ("hostile", hostile()),
    ];
    let mut out = std::io::stdout().lock();
    for (name, story) in stories {
        let report = report(&story);
        writeln!(out, "=== {name}\n{}", report.to_terminal(if name == "hostile" { 80 } else { 100 }, color))?;
        if let Some(dir) = &dir {
            std::fs::write(format!("{dir}/{name}.html"), report.to_html())?;
            std::fs::write(format!("{dir}/{name}.csv"), report.to_csv())?;
            std::fs::write(format!("{dir}/{name}.json"), serde_json::to_vec_pretty(&report)?)?;
        }
    }
    Ok(())
}
