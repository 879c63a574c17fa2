//! The model against a real kernel: Linux as a program, in virtual time, whose completion times repeat to a ten-thousandth.
//!
//! `golden/*.json` is what `windtunnel calibrate --table grid --virtual --kernel FILE --json` wrote, without the model's own
//! figures; `scripts/build-uml.sh` builds the kernel. No kernel runs here.

use crate::common::{Line, download, flow};
use serde_json::Value;
use std::time::Duration;
use wt_link::StageConfig;
use wt_sim::{BufferTuning, Report, Simulation, StackConfig};

const GRID: &str = include_str!("golden/grid.json");
/// The same with `--only "100Mbit 50ms" --repeat 40` instead of the table: 200 fates each.
const LOSSY: &str = include_str!("golden/lossy.json");

/// The error of one cell.
struct CellError {
    name: String,
    kernel_us: f64,
    model_us: f64,
    drops: [u64; 2],
}

impl CellError {
    fn error(&self) -> f64 {
        self.model_us / self.kernel_us - 1.0
    }
}

fn number(value: &Value, name: &str) -> u64 {
    value[name].as_u64().unwrap_or_else(|| panic!("{name} in {value}"))
}

fn stack(golden: &Value, cc: &str) -> StackConfig {
    let ends = &golden["ends"];
    StackConfig {
        congestion_control: cc.to_owned(),
        rmem: (ends["rmem"][0].as_u64().unwrap(), ends["rmem"][1].as_u64().unwrap()),
        wmem_max: number(ends, "wmem_max"),
        pacing: ends["pacing"].as_bool().unwrap(),
        // Where time is virtual only reading the clock takes any: as measured on the first answer.
        reaction: Duration::from_micros(10),
        header_room: 192,
        tuning: BufferTuning::of_release(golden["kernel"].as_str().unwrap()),
        ..StackConfig::default()
    }
}

fn simulate(golden: &Value, row: &Value, seed: u64) -> Report {
    let line = &row["line"];
    let line = Line {
        bps: number(line, "rate_bps"),
        rtt: Duration::from_micros(number(line, "rtt_us")),
        queue: number(line, "queue_packets") as u32,
        loss: line["loss"].as_f64().unwrap(),
        mtu: number(line, "mtu"),
    };
    let mut path = line.path();
    // What the lab's own machinery adds to the RTT, as it was measured.
    let delay = Duration::from_micros(number(row, "rtt_excess_us"));
    path.links[0].backward.push(StageConfig::Delay { delay });
    let mut simulation = Simulation::new(&path, Vec::new(), seed).unwrap();
    let spec = flow(&stack(golden, row["settings"]["cc"].as_str().unwrap()), download(number(row, "bytes")));
    simulation.add_flow(spec).unwrap();
    simulation.run(Duration::from_secs(600))
}

fn judge(golden: &Value, row: &Value) -> CellError {
    let report = simulate(golden, row, 1);
    let kernel: Vec<u64> = row["lab_us"].as_array().unwrap().iter().filter_map(Value::as_u64).collect();
    CellError {
        name: row["name"].as_str().unwrap().to_owned(),
        kernel_us: *kernel.iter().min().unwrap() as f64,
        model_us: report.flows[0].elapsed.unwrap().as_secs_f64() * 1e6,
        drops: [number(row, "queue_drops"), report.queue_drops],
    }
}

/// The share of a sorted list that isn't exceeded.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((share * (sorted.len() - 1) as f64).ceil() as usize).min(sorted.len() - 1)]
}

#[expect(clippy::print_stdout, reason = "what misses is to be read, with --nocapture where nothing fails")]
fn print(rows: &[CellError]) -> (f64, f64, f64, usize) {
    for row in rows.iter().filter(|row| row.error().abs() > 0.02) {
        println!(
            "misses: {:<32} kernel {:>9.0} µs, model {:>9.0} µs, {:+.2} %; drops {} and {}",
            row.name,
            row.kernel_us,
            row.model_us,
            row.error() * 100.0,
            row.drops[0],
            row.drops[1]
        );
    }
    let mut errors: Vec<f64> = rows.iter().map(|row| row.error().abs()).collect();
    errors.sort_by(f64::total_cmp);
    let within = errors.iter().filter(|error| **error <= 0.02).count();
    let (median, p90, worst) = (quantile(&errors, 0.5), quantile(&errors, 0.9), quantile(&errors, 1.0));
    let percent = |share: f64| share * 100.0;
    println!(
        "median {:.3} %, 90th percentile {:.2} %, worst {:.2} %, {within} of {} within 2 %",
        percent(median),
        percent(p90),
        percent(worst),
        rows.len()
    );
    (median, p90, worst, within)
}

#[test]
fn completion_times_are_those_of_a_real_kernel() {
    let golden: Value = serde_json::from_str(GRID).unwrap();
    let rows: Vec<CellError> = golden["rows"].as_array().unwrap().iter().map(|row| judge(&golden, row)).collect();
    assert_eq!(rows.len(), 72);
    let (median, p90, worst, within) = print(&rows);
    assert!(median <= 0.001 && p90 <= 0.02 && worst <= 0.06 && within >= 66, "what misses is printed above");
}

#[test]
fn under_random_loss_times_are_spread_as_a_real_kernels() {
    let golden: Value = serde_json::from_str(LOSSY).unwrap();
    for row in golden["rows"].as_array().unwrap() {
        let mut kernel: Vec<f64> = row["lab_us"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        let elapsed = |seed| simulate(&golden, row, seed).flows[0].elapsed.unwrap().as_secs_f64() * 1e6;
        let mut model: Vec<f64> = (1..=200).map(elapsed).collect();
        kernel.sort_by(f64::total_cmp);
        model.sort_by(f64::total_cmp);
        let ratio = |share| quantile(&model, share) / quantile(&kernel, share);
        let (name, half, most, worst) = (&row["name"], ratio(0.5), ratio(0.9), ratio(1.0));
        println!("{name}: model over kernel {half:.3} in the median, {most:.3} at 90 %, {worst:.3} at most");
        assert_eq!(kernel.len(), 200);
        assert!((0.9..=1.1).contains(&half) && (0.9..=1.1).contains(&most) && worst <= 1.5, "{name}");
    }
}
