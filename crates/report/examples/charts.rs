//! Draws charts of every kind, for the eye: `cargo run -p wt-report --example charts -- DIR`.

use std::io::Write as _;
use wt_report::{Axis, Chart, Rule, Series};

fn sawtooth() -> Chart {
    let curve = |offset: f64| {
        (1300..=1500)
            .map(f64::from)
            .map(move |mtu| (mtu, (mtu - 40.0) / (53.0 * ((mtu + offset) / 48.0).ceil()) * 100.0))
    };
    Chart {
        title: "Efficiency of every MTU on ADSL".into(),
        subtitle: "TCP payload over bytes on the wire; PPPoE, LLC, bridged with FCS".into(),
        x: Axis::linear("MTU", "bytes"),
        y: Axis::linear("efficiency", "%"),
        series: vec![
            Series::line("pppoe-llc-bridged-fcs", curve(44.0).collect()),
            Series::line("pppoa-vcmux", curve(10.0).collect()),
        ],
        rules: vec![Rule::vertical(1444.0, "best at or under 1454: MTU 1444"), Rule::horizontal(85.45, "85.45 %")],
        ..Chart::default()
    }
}

fn forest() -> Chart {
    Chart {
        title: "Goodput against the current settings".into(),
        subtitle: "95 % intervals that hold however long you watched".into(),
        y: Axis::linear("ratio to current", ""),
        categories: [
            "rwin=16384",
            "rwin=32768 mtu=1492 cc=bbr",
            "rwin=65536",
            "a setting with a name that is far too long for any column",
        ]
        .map(String::from)
        .to_vec(),
        series: vec![Series::intervals(
            "",
            &[(0.0, 0.4, 0.52, 0.66), (1.0, 0.81, 0.95, 1.1), (2.0, 1.01, 1.15, f64::INFINITY), (3.0, 0.0, 0.9, 1.2)],
        )],
        rules: vec![Rule::horizontal(1.0, "current")],
        ..Chart::default()
    }
}

fn window() -> Chart {
    let slow: Vec<(f64, f64)> =
        (0..600).map(|i| (f64::from(i) / 60.0, 30.0 + 25.0 * (f64::from(i % 97) / 97.0))).collect();
    let fast: Vec<(f64, f64)> = (0..600).map(|i| (f64::from(i) / 60.0, 16.0 + f64::from(i % 5))).collect();
    Chart {
        title: "Congestion window over time".into(),
        x: Axis::linear("time", "s"),
        y: Axis::linear("cwnd", "KiB"),
        series: vec![
            Series::line("current", slow),
            Series::steps("rwin=16384", fast),
            Series::points("loss", vec![(1.6, 55.0), (4.9, 55.0)]),
        ],
        rules: vec![Rule::horizontal(30.0, "BDP")],
        ..Chart::default()
    }
}

fn evidence() -> Chart {
    let up = |g: f64| (0..15).map(|i| (f64::from(i), g.powi(i))).collect::<Vec<_>>();
    Chart {
        title: "Evidence after each round".into(),
        x: Axis::linear("round", ""),
        y: Axis::log10("evidence", ": 1"),
        series: vec![
            Series::line("rwin=65536", up(1.4)),
            Series::line("mtu=1400", up(0.9)),
            Series::line("cc=bbr", up(1.05)),
        ],
        rules: vec![Rule::horizontal(60.0, "needed 60 : 1")],
        ..Chart::default()
    }
}

fn plateau() -> Chart {
    Chart {
        title: "Goodput against the receive window".into(),
        x: Axis::log2("receive window", "bytes"),
        y: Axis::linear("goodput", "Mbit/s"),
        series: vec![Series::intervals(
            "estimate, 95 %",
            &[
                (5840.0, 1.5, 1.56, 1.6),
                (11680.0, 3.0, 3.1, 3.2),
                (23360.0, 6.0, 6.2, 6.4),
                (46720.0, 6.5, 6.7, 6.9),
                (93440.0, 6.5, 6.71, 6.9),
            ],
        )],
        rules: vec![
            Rule::horizontal(6.83, "physical limit 6.83 Mbit/s"),
            Rule::vertical(46720.0, "smallest on the plateau"),
        ],
        ..Chart::default()
    }
}

fn main() -> std::io::Result<()> {
    let color = std::env::args().any(|arg| arg == "--color");
    let dir = std::env::args().nth(1).filter(|arg| !arg.starts_with("--"));
    let mut out = std::io::stdout().lock();
    for (name, chart) in [
        ("sawtooth", sawtooth()),
        ("forest", forest()),
        ("window", window()),
        ("evidence", evidence()),
        ("plateau", plateau()),
    ] {
        writeln!(out, "{}", chart.to_terminal(90, 20, color))?;
        if let Some(dir) = &dir {
            for width in [720, 340] {
                std::fs::write(format!("{dir}/{name}-{width}.svg"), chart.to_svg(width, 320))?;
            }
        }
    }
    Ok(())
}
