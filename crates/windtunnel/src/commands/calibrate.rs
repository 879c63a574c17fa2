//! `windtunnel calibrate`: how far the model is from this machine's kernel.

use super::lab::LabOptions;
use super::lab::virtual_time::VirtualArgs;
use crate::edge::{Exit, Outcome, emit, say};
use clap::{Args, ValueEnum};
use wt_forecast::calibrate::{CalibrationRow, CalibrationTable, MixRow, RegionError};
use wt_forecast::{CalibrateEvent, CalibrateRequest, calibrate};
use wt_trial::Cancel;

/// Checks the model against this machine's kernel
///
/// Runs a table of transfers in the lab and in the model, and prints how far apart their completion times are, by region. The
/// lab runs in real time: the whole takes about half an hour per repetition, so choose with --only. On a busy machine the lab
/// is late; such runs are left out, and of the others the fastest is nearest to what the kernel does.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel calibrate --only dsl --repeat 1
  windtunnel calibrate --table world --json > calibration.json")]
pub(crate) struct CalibrateArgs {
    /// Which table
    #[arg(long, value_enum, default_value_t = TableName::World)]
    table: TableName,
    /// Only rows whose region or name contains this
    #[arg(long, value_name = "TEXT")]
    only: Vec<String>,
    /// How often the lab runs each row; lossy rows run five times as often, in virtual time forty times
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    repeat: u32,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// With --json: what the sender's tcp_info said over time, in the first run of each
    #[arg(long, requires = "json")]
    traces: bool,
    #[command(flatten)]
    options: LabOptions,
    #[command(flatten)]
    time: VirtualArgs,
}

/// The tables by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum TableName {
    /// From a telephone line to a data centre
    World,
    /// 100 kB, 1 MB and 10 MB over twelve paths
    Grid,
    /// Both
    All,
    /// 2 to 10 flows that share a path: 70 mixes of cubic, reno and bbr under four queues
    Mixes,
}

impl CalibrateArgs {
    fn request(&self) -> CalibrateRequest {
        CalibrateRequest {
            table: match self.table {
                TableName::World => CalibrationTable::World,
                TableName::Grid => CalibrationTable::Grid,
                TableName::All => CalibrationTable::All,
                TableName::Mixes => CalibrationTable::Mixes,
            },
            only: self.only.clone(),
            repeat: self.repeat,
            traces: self.traces,
            seed: self.options.seed,
            backend: self.options.backend.into(),
            sharp: self.options.sharp,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &CalibrateArgs) -> Outcome {
    let request = args.request();
    request.check()?;
    if let Some(exit) = args.time.instead()? {
        return Ok(exit);
    }
    let cancel = Cancel::new();
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, cancel.flag());
    let mut show = |event: CalibrateEvent| match event {
        _ if args.json => {}
        CalibrateEvent::Begun { .. } if args.table == TableName::Mixes => {
            say!("{:<48} {:>14} {:>14}", "mix", "time", "share");
        }
        CalibrateEvent::Mix(row) => print_mix(&row),
        CalibrateEvent::Begun { .. } => say!(
            "{:<34} {:>11} {:>11} {:>8} {:>9} {:>11}  lab's spread",
            "row",
            "lab",
            "model",
            "error",
            "RTT +",
            "retransmits"
        ),
        CalibrateEvent::Row(row) => print_row(&row),
    };
    let answer = calibrate(&request, &mut show, &cancel)?;
    if args.json {
        emit!("{}", serde_json::json!(answer));
    } else {
        print_regions(&answer.regions);
    }
    Ok(Exit::Done)
}

fn print_row(row: &CalibrationRow) {
    let seconds = |us: Option<f64>| us.map_or_else(|| "–".to_owned(), |us| format!("{:.4} s", us / 1e6));
    let error = row.error.map_or_else(|| "–".to_owned(), |error| format!("{:+.2} %", error * 100.0));
    let spread = match (row.lab_us.first(), row.lab_us.last()) {
        (Some(first), Some(last)) => format!("{:+.1} %", (*last as f64 / *first as f64 - 1.0) * 100.0),
        _ => String::new(),
    };
    let late = if row.late > 0 { format!(", late in {}", row.late) } else { String::new() };
    let retransmits = format!("{}/{}", row.retransmits[0], row.retransmits[1]);
    let excess = format!("{} µs", row.rtt_excess_us);
    let (lab, model) = (seconds(row.lab_figure_us), seconds(row.model_us));
    say!("{:<34} {lab:>11} {model:>11} {error:>8} {excess:>9} {retransmits:>11}  {spread}{late}", row.name);
}

fn print_mix(row: &MixRow) {
    let [time, share] = [row.worst_class_time_error(), row.share_error()].map(|error| error * 100.0);
    say!("{:<48} {time:>+12.2} % {share:>+7.2} points", row.name);
}

fn print_regions(regions: &[RegionError]) {
    say!("");
    say!("{:<10} {:>5} {:>9} {:>9} {:>9} {:>12}", "region", "rows", "median", "90 %", "worst", "within 2 %");
    for RegionError { region, rows, median, p90, worst, within_2_percent: within } in regions {
        let [median, p90, worst] = [median, p90, worst].map(|share| format!("{:.2} %", share * 100.0));
        say!("{region:<10} {rows:>5} {median:>9} {p90:>9} {worst:>9} {within:>9} of {rows}");
    }
}
