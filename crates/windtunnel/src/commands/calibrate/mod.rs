//! `windtunnel calibrate`: how far the model is from this machine's kernel.

/// The paths.
mod table;
#[cfg(test)]
mod tests;

use super::lab::virtual_time::VirtualArgs;
use super::lab::{self, LabOptions};
use super::model;
use crate::edge::{Exit, Failure, Outcome, say};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::collections::BTreeMap;
use std::time::Duration;
use table::Cell;
use wt_lab::{Lab, LabTunnel};
use wt_link::StageConfig;
use wt_sim::{BufferTuning, StackConfig};
use wt_trial::{Amount, Cancel, Direction, Phase, Sample, Status, TrialOutcome, TrialSpec, Tunnel, Workload};
use wt_units::Settings;

/// Compares the model with this machine's kernel
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
    #[arg(long, value_enum, default_value_t = Which::World)]
    table: Which,
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

/// The tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Which {
    /// From a telephone line to a data centre
    World,
    /// 100 kB, 1 MB and 10 MB over twelve paths
    Grid,
    /// Both
    All,
}

/// How often a row is run at most, for each time that it should be.
const MOST_ATTEMPTS: u64 = 3;

/// How long our server takes to answer in virtual time, where nothing but reading the clock takes any.
const VIRTUAL_REACTION: Duration = Duration::from_micros(10);
/// How many times as often lossy rows are run: where time is virtual it costs little.
const LOSSY: u32 = 5;
const LOSSY_VIRTUAL: u32 = 40;
/// Points of a row's congestion window over time at most.
const POINTS: usize = 12;

/// What both said of one row.
struct Row {
    cell: Cell,
    /// Completion times, µs, sorted.
    lab_us: Vec<u64>,
    sim_us: Vec<u64>,
    /// What the lab's machinery adds to the smallest RTT, µs; the model's path has it, too.
    excess_us: u64,
    /// Retransmitted segments, and drops of queues: in the lab and in the model, each of the first run.
    retransmits: [u64; 2],
    drops: [u64; 2],
    /// The sender over time in the first run of each.
    traces: [Vec<Sample>; 2],
    invalid: u32,
    /// The model's ends.
    stack: StackConfig,
}

/// The middle of a sorted list.
fn median(sorted: &[u64]) -> Option<f64> {
    let n = sorted.len();
    let at = |index: usize| sorted.get(index).map(|value| *value as f64);
    if n % 2 == 1 { at(n / 2) } else { Some((at((n / 2).checked_sub(1)?)? + at(n / 2)?) / 2.0) }
}

impl Row {
    /// The lab's figure: of a path without chance the fastest run, which was disturbed least; else the median.
    fn lab(&self) -> Option<f64> {
        if self.cell.lossy { median(&self.lab_us) } else { self.lab_us.first().map(|us| *us as f64) }
    }

    fn sim(&self) -> Option<f64> {
        median(&self.sim_us)
    }

    /// The model's completion time over the lab's, minus one.
    fn error(&self) -> Option<f64> {
        Some(self.sim()? / self.lab()? - 1.0)
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &CalibrateArgs) -> Outcome {
    let mut cells = match args.table {
        Which::World => table::world(),
        Which::Grid => table::grid(),
        Which::All => [table::world(), table::grid()].concat(),
    };
    let wanted = |cell: &Cell| {
        args.only.is_empty() || args.only.iter().any(|text| cell.name.contains(text) || cell.region.contains(text))
    };
    cells.retain(wanted);
    if cells.is_empty() {
        return Err(Failure::usage(format!("no row of the table contains \"{}\"", args.only.join("\" or \""))));
    }
    if let Some(exit) = args.time.instead()? {
        return Ok(exit);
    }
    wt_lab::enter().map_err(|error| lab::failure(&error))?;
    let cancel = Cancel::new();
    let _ = signal_hook::flag::register(signal_hook::consts::SIGINT, cancel.flag());
    let mut rows = Vec::new();
    if !args.json {
        say!(
            "{:<34} {:>11} {:>11} {:>8} {:>9} {:>11}  lab's spread",
            "row",
            "lab",
            "model",
            "error",
            "RTT +",
            "sent again"
        );
    }
    for cell in cells {
        if cancel.is_cancelled() {
            break;
        }
        let row = compare(cell, args, &cancel)?;
        if !args.json {
            print_row(&row);
        }
        rows.push(row);
    }
    if args.json {
        say!("{}", answer(&rows, args.traces));
    } else {
        print_regions(&rows);
    }
    Ok(Exit::Done)
}

fn spec(settings: &Settings, cell: &Cell, seed: u64) -> TrialSpec {
    TrialSpec {
        experiment: "calibrate".to_owned(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings: settings.clone(),
        workload: Workload::Bulk { direction: Direction::Down, amount: Amount::Size(cell.size) },
        deadline: Duration::from_secs(120),
        seed,
    }
}

/// One row in both.
fn compare(cell: Cell, args: &CalibrateArgs, cancel: &Cancel) -> Result<Row, Failure> {
    let scenario = cell.scenario().map_err(Failure::ours)?;
    let started = Lab::start(scenario.clone(), args.options.backend.into(), args.options.seed);
    let mut in_lab = started.and_then(LabTunnel::new).map_err(|error| lab::failure(&error))?;
    let stack = kernel_stack(&in_lab);
    let often = if wt_lab::is_guest() { LOSSY_VIRTUAL } else { LOSSY };
    let repeat = if cell.lossy { args.repeat * often } else { args.repeat };
    let mut row = Row {
        cell,
        lab_us: Vec::new(),
        sim_us: Vec::new(),
        excess_us: 0,
        retransmits: [0; 2],
        drops: [0; 2],
        traces: [Vec::new(), Vec::new()],
        invalid: 0,
        stack: stack.clone(),
    };
    let observed = |outcome: &TrialOutcome, name: &str| outcome.observed.get(name).and_then(|value| value.as_u64());
    let mut lab_rtt = u64::MAX;
    // Runs in which the lab was late say nothing of the model: others take their place, as far as that goes.
    for attempt in 0..u64::from(repeat) * MOST_ATTEMPTS {
        if cancel.is_cancelled() || row.lab_us.len() >= repeat as usize {
            break;
        }
        let spec = spec(&row.cell.settings, &row.cell, args.options.seed + attempt);
        let outcome = in_lab.run(&spec, cancel).map_err(|error| Failure::environment(error.to_string()))?;
        if outcome.status != Status::Completed || outcome.bytes != row.cell.size.get() {
            row.invalid += 1;
            continue;
        }
        lab_rtt = lab_rtt.min(observed(&outcome, "min_rtt_us").filter(|us| *us > 0).unwrap_or(u64::MAX));
        if row.lab_us.is_empty() {
            row.retransmits[0] = observed(&outcome, "retransmits").unwrap_or(0);
            row.drops[0] = observed(&outcome, "queue_drops").unwrap_or(0);
            row.traces[0].clone_from(&outcome.sender);
        }
        row.lab_us.push(outcome.elapsed_us);
    }
    // The model costs little: of chance it sees more.
    let seeds = if row.cell.lossy { 200 } else { 1 };
    let mut path = model::sim_path(&scenario);
    let probe = spec(&row.cell.settings, &row.cell, args.options.seed);
    let mut in_model = model::tunnel_of(path.clone(), stack.clone())?;
    let ideal = in_model.run(&probe, cancel).map_err(|error| Failure::ours(error.to_string()))?;
    let model_rtt = observed(&ideal, "min_rtt_us").unwrap_or(u64::MAX);
    if lab_rtt < u64::MAX {
        row.excess_us = lab_rtt.saturating_sub(model_rtt);
        let delay = Duration::from_micros(row.excess_us);
        path.config.links[0].backward.push(StageConfig::Delay { delay });
        in_model = model::tunnel_of(path, stack)?;
    }
    for seed in 0..seeds {
        let spec = spec(&row.cell.settings, &row.cell, args.options.seed + seed);
        let outcome = in_model.run(&spec, cancel).map_err(|error| Failure::ours(error.to_string()))?;
        if seed == 0 {
            row.retransmits[1] = observed(&outcome, "retransmits").unwrap_or(0);
            row.drops[1] = observed(&outcome, "queue_drops").unwrap_or(0);
            row.traces[1].clone_from(&outcome.sender);
        }
        if outcome.status == Status::Completed {
            row.sim_us.push(outcome.elapsed_us);
        }
    }
    row.lab_us.sort_unstable();
    row.sim_us.sort_unstable();
    Ok(row)
}

/// This kernel.
fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
}

/// The model's ends set up as this kernel's.
pub(crate) fn kernel_stack(lab: &LabTunnel) -> StackConfig {
    stack_of(&|name| lab.lab().server.sysctl(name).unwrap_or_default())
}

/// The ends as this host has them, for the model.
pub(crate) fn host_stack() -> StackConfig {
    stack_of(&|name| wt_sys::ns::read_net_sysctl(name).unwrap_or_default())
}

fn stack_of(sysctl: &dyn Fn(&str) -> String) -> StackConfig {
    let numbers = |name: &str| -> Vec<u64> {
        let text = sysctl(name);
        text.split_whitespace().filter_map(|word| word.parse().ok()).collect()
    };
    let usual = StackConfig::default();
    let (rmem, wmem) = (numbers("ipv4/tcp_rmem"), numbers("ipv4/tcp_wmem"));
    let default_cc = sysctl("ipv4/tcp_congestion_control");
    let default_cc = default_cc.trim();
    let known_cc = wt_sim::cc::by_name(default_cc, 0).is_some();
    StackConfig {
        congestion_control: if known_cc { default_cc.to_owned() } else { usual.congestion_control.clone() },
        rmem: (*rmem.get(1).unwrap_or(&usual.rmem.0), *rmem.get(2).unwrap_or(&usual.rmem.1)),
        wmem_max: *wmem.get(2).unwrap_or(&usual.wmem_max),
        tuning: BufferTuning::of_release(&release()),
        // A socket that began with BBR keeps its pacing when it is switched to another congestion control.
        pacing: default_cc == "bbr",
        // That kernel has neither tunnels nor wireless devices.
        header_room: if wt_lab::is_guest() { 192 } else { usual.header_room },
        reaction: if wt_lab::is_guest() { VIRTUAL_REACTION } else { usual.reaction },
        ..usual
    }
}

fn print_row(row: &Row) {
    let seconds = |us: Option<f64>| us.map_or_else(|| "–".to_owned(), |us| format!("{:.4} s", us / 1e6));
    let error = row.error().map_or_else(|| "–".to_owned(), |error| format!("{:+.2} %", error * 100.0));
    let spread = match (row.lab_us.first(), row.lab_us.last()) {
        (Some(first), Some(last)) => format!("{:+.1} %", (*last as f64 / *first as f64 - 1.0) * 100.0),
        _ => String::new(),
    };
    let late = if row.invalid > 0 { format!(", late in {}", row.invalid) } else { String::new() };
    let again = format!("{}/{}", row.retransmits[0], row.retransmits[1]);
    let excess = format!("{} µs", row.excess_us);
    let (lab, sim) = (seconds(row.lab()), seconds(row.sim()));
    say!("{:<34} {lab:>11} {sim:>11} {error:>8} {excess:>9} {again:>11}  {spread}{late}", row.cell.name);
}

/// The errors of each region, without their sign, sorted.
fn regions(rows: &[Row]) -> BTreeMap<&'static str, Vec<f64>> {
    let mut regions: BTreeMap<&'static str, Vec<f64>> = BTreeMap::new();
    for row in rows {
        if let Some(error) = row.error() {
            regions.entry(row.cell.region).or_default().push(error.abs());
            regions.entry("all").or_default().push(error.abs());
        }
    }
    for errors in regions.values_mut() {
        errors.sort_by(f64::total_cmp);
    }
    regions
}

/// The value that this share of a sorted list doesn't exceed.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let last = sorted.len().saturating_sub(1);
    sorted.get((share * last as f64).ceil() as usize).copied().unwrap_or(f64::NAN)
}

fn print_regions(rows: &[Row]) {
    say!("");
    say!("{:<10} {:>5} {:>9} {:>9} {:>9} {:>12}", "region", "rows", "median", "90 %", "worst", "within 2 %");
    for (region, errors) in regions(rows) {
        let percent = |share| format!("{:.2} %", quantile(&errors, share) * 100.0);
        let within = errors.iter().filter(|error| **error <= 0.02).count();
        say!(
            "{region:<10} {:>5} {:>9} {:>9} {:>9} {within:>9} of {}",
            errors.len(),
            percent(0.5),
            percent(0.9),
            percent(1.0),
            errors.len()
        );
    }
}

/// The lab's congestion window over time: pairs of µs and bytes, of the first run.
fn thinned(samples: &[Sample]) -> Vec<[u64; 2]> {
    let step = samples.len().div_ceil(POINTS).max(1);
    samples.iter().step_by(step).map(|sample| [sample.t_us, sample.snd_cwnd]).collect()
}

fn answer(rows: &[Row], traces: bool) -> serde_json::Value {
    let ends = rows.first().map(|row| {
        let StackConfig { rmem, wmem_max, pacing, .. } = &row.stack;
        json!({ "rmem": rmem, "wmem_max": wmem_max, "pacing": pacing })
    });
    let row = |row: &Row| {
        let mut object = json!({
            "region": row.cell.region,
            "name": row.cell.name,
            "settings": row.cell.settings,
            "bytes": row.cell.size.get(),
            "line": row.cell.line,
            "lab_us": row.lab_us,
            "model_us": row.sim(),
            "error": row.error(),
            "rtt_excess_us": row.excess_us,
            "retransmits": row.retransmits,
            "queue_drops": row.drops,
            "late": row.invalid,
            "cwnd": thinned(&row.traces[0]),
        });
        if traces {
            object["traces"] = json!({ "lab": row.traces[0], "model": row.traces[1] });
        }
        object
    };
    let region = |(region, errors): (&'static str, Vec<f64>)| {
        let within = errors.iter().filter(|error| **error <= 0.02).count();
        json!({
            "region": region,
            "rows": errors.len(),
            "median": quantile(&errors, 0.5),
            "p90": quantile(&errors, 0.9),
            "worst": quantile(&errors, 1.0),
            "within_2_percent": within,
        })
    };
    json!({
        "schema_version": 1,
        "kernel": release(),
        "virtual": wt_lab::is_guest(),
        "ends": ends,
        "regions": regions(rows).into_iter().map(region).collect::<Vec<_>>(),
        "rows": rows.iter().map(row).collect::<Vec<_>>(),
    })
}
