//! `windtunnel journal`: every trial ever run.

/// What TCP said over time.
mod samples;

use crate::edge::{Exit, Failure, Outcome, say};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use std::path::{Path, PathBuf};
use wt_journal::{Filter, Journal as _, JournalError, Owner, SqliteJournal, StoredExperiment, TrialId, WithSamples};
use wt_sys::process::ProcessIdentity;
use wt_trial::TrialRecord;

/// Every trial ever run, with all that was in force
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel journal list
  windtunnel journal show last
  windtunnel journal export last --form csv > trials.csv")]
pub(crate) struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
    /// The journal [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE", global = true)]
    journal: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum JournalCommand {
    /// Lists the experiments, the newest first
    List {
        /// At most so many
        #[arg(long, default_value_t = 20)]
        limit: usize,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Shows an experiment: its name, the beginning of it, or "last"
    Show {
        #[arg(default_value = "last")]
        experiment: String,
        /// One JSON object, without samples
        #[arg(long)]
        json: bool,
    },
    /// Shows what TCP said over time: congestion window, RTT, bytes; of all trials or of one
    Samples {
        #[arg(default_value = "last")]
        experiment: String,
        /// Only this trial, by its number in the journal
        #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
        trial: Option<TrialId>,
        /// One JSON object, with the samples as columns
        #[arg(long)]
        json: bool,
    },
    /// Writes an experiment with all its trials to standard output
    Export {
        #[arg(default_value = "last")]
        experiment: String,
        /// As what
        #[arg(long, value_enum, default_value_t = Form::Json)]
        form: Form,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One JSON object with every sample
    Json,
    /// A line for each trial
    Csv,
}

/// Who we are, for the journal.
pub(crate) fn own_identity() -> Owner {
    let ProcessIdentity { pid, start_ticks, boot_id } = ProcessIdentity::own();
    Owner { pid, start_ticks, boot_id }
}

/// Opens the journal, and says of trials whose program died that they were aborted.
///
/// # Errors
/// A [`Failure`] that names the file and what to try.
pub(crate) fn open(path: Option<&Path>) -> Result<SqliteJournal, Failure> {
    let path = match path {
        Some(path) => path.to_owned(),
        None => wt_journal::default_path(|name| std::env::var_os(name)).ok_or_else(|| {
            Failure::environment(
                "there is no place for the journal: neither XDG_DATA_HOME nor HOME is an absolute path",
            )
            .hint("name a file with --journal")
        })?,
    };
    let mut journal = SqliteJournal::open(&path).map_err(|error| failure(&error))?;
    let alive = |owner: &Owner| {
        let Owner { pid, start_ticks, boot_id } = owner.clone();
        ProcessIdentity { pid, start_ticks, boot_id }.is_alive()
    };
    journal.mark_orphans(&alive).map_err(|error| failure(&error))?;
    Ok(journal)
}

/// What to say when the journal fails.
pub(crate) fn failure(error: &JournalError) -> Failure {
    let text = error.to_string();
    match error {
        JournalError::NoSuchExperiment { .. } | JournalError::Ambiguous { .. } | JournalError::Empty { .. } => {
            Failure::usage(text).hint("windtunnel journal list shows what there is")
        }
        JournalError::Full { .. } => {
            Failure::environment(text).hint("free some space, or choose another file with --journal")
        }
        JournalError::Open { .. } | JournalError::ReadOnly { .. } | JournalError::NotAJournal { .. } => {
            Failure::environment(text).hint("choose another file with --journal")
        }
        JournalError::Newer { .. } => Failure::environment(text).hint("use the newer Windtunnel, or another --journal"),
        JournalError::Busy { .. } => Failure::environment(text).hint("wait until the other program has ended"),
        _ => Failure::ours(text),
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &JournalArgs) -> Outcome {
    let journal = open(args.journal.as_deref())?;
    match &args.command {
        JournalCommand::List { limit, json } => list(&journal, *limit, *json),
        JournalCommand::Show { experiment, json } => show(&journal, experiment, *json),
        JournalCommand::Samples { experiment, trial, json } => samples::samples(&journal, experiment, *trial, *json),
        JournalCommand::Export { experiment, form } => export(&journal, experiment, *form),
    }
}

fn list(journal: &SqliteJournal, limit: usize, json: bool) -> Outcome {
    let filter = Filter { limit: Some(limit), ..Filter::default() };
    let found = journal.list(&filter).map_err(|error| failure(&error))?;
    if json {
        say!("{}", json!({"schema_version": 1, "experiments": found}));
    } else if found.is_empty() {
        say!("The journal is empty. windtunnel tune --lab adsl runs a first experiment.");
    } else {
        say!("{:<36} {:<6} {:<10} {:>7}  comment", "experiment", "tunnel", "state", "trials");
        for one in found {
            say!("{:<36} {:<6} {:<10} {:>7}  {}", one.id, one.tunnel, one.state.name(), one.trials, one.comment);
        }
    }
    Ok(Exit::Done)
}

/// The trials of a very long experiment are listed from here on.
const MOST_SHOWN: usize = 2_000;

fn show(journal: &SqliteJournal, key: &str, json: bool) -> Outcome {
    let found = journal.load(key).map_err(|error| failure(&error))?;
    let rows = journal.rows(&found.id).map_err(|error| failure(&error))?;
    let left_out = rows.len().saturating_sub(MOST_SHOWN);
    let from = rows.get(left_out).map_or(TrialId::MIN, |row| row.id);
    drop(rows);
    let mut trials = Vec::new();
    let mut keep = |trial| {
        trials.push(trial);
        Ok(())
    };
    let read = journal.for_each_trial_from(&found.id, from, WithSamples::No, &mut keep);
    read.map_err(|error| failure(&error))?;
    if json {
        say!("{}", json!({"schema_version": 1, "experiment": found, "trials_left_out": left_out, "trials": trials}));
        return Ok(Exit::Done);
    }
    say!("{}  {} {}  {}", found.id, found.tunnel, found.target, found.state.name());
    if !found.comment.is_empty() {
        say!("{}", found.comment);
    }
    if let Some(before) = found.config["continues"].as_str() {
        say!("continues {before}");
    }
    say!("current: {}   seed {}", found.current, found.seed);
    if let Some(text) = found.verdict.as_ref().and_then(|verdict| verdict["text"].as_str()) {
        say!("\n{text}");
    }
    if left_out > 0 {
        let all = left_out + trials.len();
        say!("\nThe last {} of {all} trials; windtunnel journal export has them all.", trials.len());
    }
    say!("\n{:>5} {:>5}  {:<40} {:>12}  status", "round", "order", "settings", "Mbit/s");
    for trial in &trials {
        show_trial(&found, trial);
    }
    Ok(Exit::Done)
}

fn show_trial(found: &StoredExperiment, trial: &TrialRecord) {
    let label = found.arms.get(trial.spec.arm).map_or("?", |arm| arm.label.as_str());
    let outside = format!("{:?}", trial.spec.phase).to_lowercase();
    let label = if trial.spec.round == 0 {
        format!("({outside}) {}", trial.spec.settings)
    } else if found.config["screen"].is_object() {
        trial.spec.settings.to_string()
    } else {
        label.to_owned()
    };
    let (round, order, status) = (trial.spec.round, trial.spec.order, trial.outcome.status.name());
    say!("{round:>5} {order:>5}  {label:<40} {:>12.3}  {status}", trial.outcome.goodput_bps() / 1e6);
    for note in &trial.outcome.notes {
        say!("{:>13}{note}", "");
    }
}

fn export(journal: &SqliteJournal, key: &str, form: Form) -> Outcome {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let written = match form {
        Form::Json => wt_journal::export_json(journal, key, WithSamples::Yes, &mut out),
        Form::Csv => wt_journal::export_csv(journal, key, &mut out),
    };
    written.map_err(|error| failure(&error))?;
    std::io::Write::flush(&mut out).map_err(|error| Failure::environment(format!("can't write: {error}")))?;
    Ok(Exit::Done)
}
