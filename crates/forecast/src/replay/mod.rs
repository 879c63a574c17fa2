//! Old studies in the model: a study's table, with what the model says of the same settings beside it.
//!
//! The tables in `studies/` are known by their columns: receive window, MTU, TTL and options over a telephone line, windows and
//! MTU over ADSL, first windows of a web page, a far copy by scp. The model knows the line that a study names and nothing of the
//! hosts and routers beyond, so where a study measured those the two differ.

/// Tables as they are read.
mod sheet;
/// The studies, one function each.
mod studies;
#[cfg(test)]
mod tests;

use crate::model;
use serde::{Deserialize, Serialize};
use sheet::Sheet;
use std::path::PathBuf;
use std::time::Duration;
use wt_lab::scenario::{LinkBuilder, Scenario};
use wt_problem::{Fault, Problem};
use wt_sim::{SimTunnel, StackConfig};
use wt_trial::{Amount, Cancel, Direction, Phase, TrialSpec, Workload};
use wt_units::Settings;

/// Which studies are replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplayRequest {
    /// Tables as CSV, or folders of them.
    pub tables: Vec<PathBuf>,
}

/// The studies that could be replayed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayAnswer {
    /// 1.
    pub schema_version: u32,
    /// Each study with its replay, by its file's name.
    pub studies: Vec<StudyReplay>,
    /// Tables with nothing to model.
    pub skipped: Vec<String>,
    /// What is wrong with tables that can't be replayed, where others can.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// A study with its replay.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StudyReplay {
    /// The table's name.
    #[serde(rename = "study")]
    pub name: String,
    /// What the model was given.
    pub path: String,
    /// Of the figures.
    pub unit: &'static str,
    /// Each setting of the study.
    pub rows: Vec<ReplayRow>,
    /// What follows.
    pub notes: Vec<String>,
}

/// One setting: what the study measured and what the model says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReplayRow {
    /// The setting.
    #[serde(rename = "setting")]
    pub label: String,
    /// The study's figures.
    #[serde(rename = "study")]
    pub measured: Vec<f64>,
    /// The model's.
    #[serde(rename = "model")]
    pub modelled: Option<f64>,
}

/// Runs the studies of a request anew in the model.
///
/// # Errors
/// A usage problem where no table can be replayed, the first one's; a stopped one once `cancel` is set.
pub fn replay(request: &ReplayRequest, cancel: &Cancel) -> Result<ReplayAnswer, Problem> {
    let mut answer = ReplayAnswer { schema_version: 1, studies: Vec::new(), skipped: Vec::new(), problems: Vec::new() };
    let files = files(request)?;
    let mut first_problem = None;
    for file in &files {
        let study = Sheet::read(file).and_then(|sheet| studies::replay(&sheet));
        if cancel.is_cancelled() {
            return Err(Problem::stopped("stopped before all studies were replayed"));
        }
        match study {
            Ok(Some(study)) => answer.studies.push(study),
            Ok(None) => answer.skipped.push(file.display().to_string()),
            Err(problem) if problem.fault != Fault::Usage => return Err(problem),
            Err(problem) => {
                answer.problems.push(problem.what.clone());
                first_problem.get_or_insert(problem);
            }
        }
    }
    if answer.studies.is_empty() {
        if let Some(problem) = first_problem {
            return Err(problem);
        }
        let all: Vec<String> = request.tables.iter().map(|path| path.display().to_string()).collect();
        let none = match &answer.skipped[..] {
            [] => format!("no study that can be replayed: there is no CSV file in {}", all.join(", ")),
            skipped => format!("no study that can be replayed: {}", skipped.join(", ")),
        };
        return Err(Problem::usage(none)
            .hint("the tables in studies/ are known by their columns; `windtunnel analyse` reads any other table"));
    }
    Ok(answer)
}

/// The tables of a request, those of folders among them, by name.
fn files(request: &ReplayRequest) -> Result<Vec<PathBuf>, Problem> {
    let mut files = Vec::new();
    for path in &request.tables {
        if path.is_dir() {
            let entries = std::fs::read_dir(path);
            let entries = entries.map_err(|error| Problem::usage(format!("can't read {}: {error}", path.display())))?;
            let tables = entries.filter_map(Result::ok).map(|entry| entry.path());
            files.extend(tables.filter(|file| file.extension().is_some_and(|ending| ending == "csv")));
        } else {
            files.push(path.clone());
        }
    }
    files.sort();
    Ok(files)
}

impl ReplayRow {
    /// The mean of the study's figures.
    #[must_use]
    pub fn measured_mean(&self) -> Option<f64> {
        let Self { measured, .. } = self;
        (!measured.is_empty()).then(|| measured.iter().sum::<f64>() / measured.len() as f64)
    }
}

/// A path of one link, with ends set up like `stack`.
fn line(title: &str, link: LinkBuilder, stack: StackConfig) -> Result<SimTunnel, Problem> {
    let scenario = Scenario::builder("study").title(title).source("the study").link(link).build();
    let scenario = scenario.map_err(|error| Problem::internal(error.to_string()))?;
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
fn goodput(tunnel: &SimTunnel, settings: &Settings, amount: Amount, seeds: u64) -> Result<f64, Problem> {
    let mut sum = 0.0;
    for seed in 1..=seeds {
        let spec = trial(settings, Workload::Bulk { direction: Direction::Down, amount }, seed);
        let report = tunnel.simulate(&spec, None).map_err(|error| model::problem(&error))?;
        let Some(flow) = report.flows.first() else { continue };
        let elapsed = flow.elapsed.unwrap_or(report.ended).as_secs_f64();
        sum += if elapsed > 0.0 { flow.bytes as f64 / elapsed } else { 0.0 };
    }
    Ok(sum / seeds as f64)
}
