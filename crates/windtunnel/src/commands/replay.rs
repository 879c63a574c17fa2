//! `windtunnel replay`: an old study's table, with what the model says of the same settings beside it.

use crate::edge::{Exit, Outcome, emit, say, say_table};
use clap::Args;
use std::path::PathBuf;
use wt_forecast::replay::{ReplayRow, StudyReplay};
use wt_forecast::{ReplayRequest, replay};
use wt_trial::Cancel;

/// Replays old studies in the model, beside their own figures
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

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &ReplayArgs) -> Outcome {
    let answer = replay(&ReplayRequest { tables: args.tables.clone() }, &Cancel::new())?;
    if args.json {
        emit!("{}", serde_json::json!(answer));
    } else {
        answer.studies.iter().for_each(print);
        if !answer.skipped.is_empty() {
            say!("Not replayed, for want of something to model: {}", answer.skipped.join(", "));
        }
        answer.problems.iter().for_each(|problem| say!("Not replayed: {problem}."));
    }
    Ok(if answer.problems.is_empty() { Exit::Done } else { Exit::No })
}

/// A figure with at most eight characters.
fn figure(value: Option<f64>) -> String {
    value.map_or_else(
        || "–".to_owned(),
        |value| format!("{value:.4}").trim_end_matches('0').trim_end_matches('.').chars().take(8).collect(),
    )
}

/// From the smallest to the largest figure of the study, where there are several.
fn range(row: &ReplayRow) -> String {
    let figures = || row.measured.iter().copied();
    match (figures().reduce(f64::min), figures().reduce(f64::max)) {
        (Some(low), Some(high)) if low < high => format!("{low}–{high}"),
        _ => String::new(),
    }
}

fn print(study: &StudyReplay) {
    say!("{}: {}", study.name, study.path);
    let head = ["setting", "study, mean", "study, from–to", "model", "model/study"].map(str::to_owned).to_vec();
    let rows = study.rows.iter().map(|row| {
        let mean = row.measured_mean();
        let ratio = match (row.modelled, mean) {
            (Some(model), Some(study)) if study > 0.0 => format!("{:.2}", model / study),
            _ => "–".to_owned(),
        };
        vec![row.label.clone(), figure(mean), range(row), figure(row.modelled), ratio]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    say_table(&rows, &[1, 2, 3, 4]);
    say!("({})", study.unit);
    for note in &study.notes {
        say!("· {note}");
    }
    say!("");
}
