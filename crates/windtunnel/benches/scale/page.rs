//! The page: a table of exponents, and the curves, drawn by the project's own charts.

use super::growth::{Curve, Point};
use std::fmt::Write as _;
use wt_report::{Axis, Chart, Series};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:62rem;margin:2rem auto;padding:0 1rem;color:#1b1f24;\
    background:#fff}table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.25rem .6rem;\
    border-bottom:1px solid #d0d7de}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}svg{width:100%;height:auto}\
    @media(prefers-color-scheme:dark){body{color:#e6edf3;background:#0d1117}svg text{fill:#e6edf3}}";

/// The whole page, with nothing to be fetched.
pub(crate) fn html(curves: &[Curve]) -> String {
    let build = if cfg!(debug_assertions) { "an unoptimised build" } else { "an optimised build" };
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut rows = String::new();
    for curve in curves {
        let Some((first, last)) = curve.points.first().zip(curve.points.last()) else { continue };
        let exponent = curve.exponent().map_or_else(|| "–".to_owned(), |exponent| format!("{exponent:.2}"));
        let _ = write!(
            rows,
            "<tr><td>{}<td>{}<td class=n>{}…{}<td class=n>{exponent}<td class=n>{:.4}…{:.3}<td class=n>{:.0}…{:.0}<td>{}",
            curve.name,
            curve.of,
            first.size,
            last.size,
            first.cpu_s,
            last.cpu_s,
            first.peak_mib,
            last.peak_mib,
            curve.remark()
        );
    }
    let charts = [
        ("Time of processors", "s", (|point| point.cpu_s) as fn(&Point) -> f64),
        ("The most memory", "MiB", |point| point.peak_mib),
    ]
    .map(|(title, unit, of)| chart(title, unit, of, curves).to_svg(960, 560));
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content=\"width=device-width\">\
         <title>How cost grows</title><style>{STYLE}</style><h1>How cost grows</h1>\
         <p>Each main job of Windtunnel over several decades of its size. The exponent is the slope over the last decade: 1 is \
         in proportion. Nothing may grow faster than n log n unless the reason stands beside it. Time is that of processors, so \
         that other work on the machine changes no exponent; each point is a process of its own.\
         <p>Measured by <code>make scale</code>, here with {build}, on {} processors, Linux {}. Absolute times are context.\
         <table><tr><th>job<th>of<th class=n>sizes<th class=n>exponent<th class=n>processor time, s<th class=n>memory, MiB\
         <th>growth{rows}</table>{}</html>\n",
        std::thread::available_parallelism().map_or(1, usize::from),
        kernel.trim(),
        charts.concat()
    )
}

fn chart(title: &str, unit: &str, of: fn(&Point) -> f64, curves: &[Curve]) -> Chart {
    let series = |curve: &Curve| {
        let points = curve.points.iter().map(|point| (point.size, of(point).max(1e-6))).collect();
        Series::line(curve.name, points)
    };
    Chart {
        title: title.to_owned(),
        subtitle: "by the size of the job; both axes logarithmic".to_owned(),
        x: Axis::log10("size", ""),
        y: Axis::log10(title.to_lowercase(), unit),
        series: curves.iter().map(series).collect(),
        ..Chart::default()
    }
}
