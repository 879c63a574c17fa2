//! `windtunnel replay`: an old study's table, with what the model says of the same settings beside it.

/// The studies, one function each.
mod studies;

use super::model;
use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_lab::Scenario;
use wt_sim::{SimTunnel, StackConfig};
use wt_trial::{Amount, Direction, Phase, TrialSpec, Workload};
use wt_units::Settings;

/// Runs old studies anew in the model, with the studies' own figures beside it
///
/// Knows the tables in `studies/` by their columns: receive window, MTU, TTL and options over a telephone line, windows and MTU
/// over ADSL, first windows of a web page, a far copy by scp. The model knows the line that a study names and nothing of the
/// hosts and routers beyond, so where a study measured those the two differ.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel replay studies/dialup-rwin.csv
  windtunnel replay studies/*.csv --json")]
pub(crate) struct ReplayArgs {
    /// Tables, or folders of them
    #[arg(required = true)]
    tables: Vec<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// One row: what the study measured and what the model says.
pub(crate) struct Row {
    /// The setting.
    label: String,
    /// The study's figures.
    measured: Vec<f64>,
    /// The model's.
    modelled: Option<f64>,
}

/// A study with its replay.
pub(crate) struct Replay {
    /// The table's name.
    name: String,
    unit: &'static str,
    /// What the model was given.
    path: String,
    rows: Vec<Row>,
    /// What follows.
    notes: Vec<String>,
}

/// A table as it was read.
pub(crate) struct Sheet {
    pub(crate) name: String,
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

/// No table is larger.
const LARGEST: u64 = 1 << 20;

impl Sheet {
    fn read(path: &Path) -> Result<Self, Failure> {
        let name = path.file_stem().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let cannot = |why: String| Failure::usage(format!("can't read {}: {why}", path.display()));
        let length = std::fs::metadata(path).map_err(|error| cannot(error.to_string()))?.len();
        if length > LARGEST {
            return Err(cannot(format!("{length} bytes are too many for a study's table; at most {LARGEST}")));
        }
        let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).trim(csv::Trim::All).from_path(path);
        let reader = reader.as_mut().map_err(|error| cannot(error.to_string()))?;
        let columns = reader.headers().map_err(|error| cannot(error.to_string()))?.iter().map(str::to_owned).collect();
        let mut rows = Vec::new();
        for record in reader.records() {
            rows.push(record.map_err(|error| cannot(error.to_string()))?.iter().map(str::to_owned).collect());
        }
        Ok(Self { name, columns, rows })
    }

    /// The numbers of a row from a column on.
    pub(crate) fn numbers(&self, row: usize, from: usize) -> Vec<f64> {
        self.rows[row].iter().skip(from).filter_map(|cell| cell.parse().ok()).collect()
    }

    /// One number of a row.
    pub(crate) fn number(&self, row: usize, column: usize) -> Option<f64> {
        self.rows.get(row)?.get(column)?.parse().ok()
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &ReplayArgs) -> Outcome {
    let mut files = Vec::new();
    for path in &args.tables {
        if path.is_dir() {
            let entries = std::fs::read_dir(path);
            let entries = entries.map_err(|error| Failure::usage(format!("can't read {}: {error}", path.display())))?;
            let tables = entries.filter_map(Result::ok).map(|entry| entry.path());
            files.extend(tables.filter(|file| file.extension().is_some_and(|ending| ending == "csv")));
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    let mut replays = Vec::new();
    let mut unknown = Vec::new();
    for file in &files {
        let sheet = Sheet::read(file)?;
        match studies::replay(&sheet)? {
            Some(replay) => replays.push(replay),
            None => unknown.push(file.display().to_string()),
        }
    }
    if replays.is_empty() {
        return Err(Failure::usage(format!("no study that can be replayed: {}", unknown.join(", ")))
            .hint("the tables in studies/ are known by their columns; `windtunnel analyse` reads any other table"));
    }
    if args.json {
        say!(
            "{}",
            json!({ "schema_version": 1, "studies": replays.iter().map(object).collect::<Vec<_>>(), "skipped": unknown })
        );
    } else {
        replays.iter().for_each(print);
        if !unknown.is_empty() {
            say!("Not replayed, for want of something to model: {}", unknown.join(", "));
        }
    }
    Ok(Exit::Done)
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn print(replay: &Replay) {
    say!("{}: {}", replay.name, replay.path);
    say!("{:<34} {:>12} {:>22} {:>12} {:>9}", "setting", "study, mean", "study, from–to", "model", "model/study");
    for row in &replay.rows {
        let value = |value: Option<f64>| {
            value.map_or_else(
                || "–".to_owned(),
                |value| {
                    format!("{value:.4}")
                        .trim_end_matches('0')
                        .trim_end_matches('.')
                        .chars()
                        .take(8)
                        .collect::<String>()
                },
            )
        };
        let range = match (row.measured.iter().copied().reduce(f64::min), row.measured.iter().copied().reduce(f64::max))
        {
            (Some(low), Some(high)) if low < high => format!("{low}–{high}"),
            _ => String::new(),
        };
        let ratio = match (row.modelled, mean(&row.measured)) {
            (Some(model), Some(study)) if study > 0.0 => format!("{:.2}", model / study),
            _ => "–".to_owned(),
        };
        say!("{:<34} {:>12} {range:>22} {:>12} {ratio:>9}", row.label, value(mean(&row.measured)), value(row.modelled));
    }
    say!("({})", replay.unit);
    for note in &replay.notes {
        say!("· {note}");
    }
    say!("");
}

fn object(replay: &Replay) -> serde_json::Value {
    let row = |row: &Row| json!({ "setting": row.label, "study": row.measured, "model": row.modelled });
    json!({
        "study": replay.name,
        "path": replay.path,
        "unit": replay.unit,
        "rows": replay.rows.iter().map(row).collect::<Vec<_>>(),
        "notes": replay.notes,
    })
}

/// A path of one link, with ends set up like `stack`.
fn line(toml: &str, stack: StackConfig) -> Result<SimTunnel, Failure> {
    let scenario = Scenario::parse("study.toml", toml).map_err(|error| Failure::ours(error.to_string()))?;
    model::tunnel(&scenario, stack)
}

/// One trial of a replay.
fn trial(settings: &Settings, workload: Workload, seed: u64) -> TrialSpec {
    TrialSpec {
        experiment: "replay".to_owned(),
        phase: Phase::Round,
        round: 1,
        order: 1,
        arm: 0,
        settings: settings.clone(),
        workload,
        deadline: Duration::from_secs(3_600),
        seed,
    }
}

/// Goodput of a download, bytes per second; the mean over seeds.
fn goodput(tunnel: &SimTunnel, settings: &Settings, amount: Amount, seeds: u64) -> Result<f64, Failure> {
    let mut sum = 0.0;
    for seed in 1..=seeds {
        let spec = trial(settings, Workload::Bulk { direction: Direction::Down, amount }, seed);
        let report = tunnel.simulate(&spec, None).map_err(|error| model::failure(&error))?;
        let Some(flow) = report.flows.first() else { continue };
        let elapsed = flow.elapsed.unwrap_or(report.ended).as_secs_f64();
        sum += if elapsed > 0.0 { flow.bytes as f64 / elapsed } else { 0.0 };
    }
    Ok(sum / seeds as f64)
}
