//! `windtunnel journal`: every trial ever run.

/// What TCP said over time.
mod samples;

use crate::edge::{Exit, Failure, Outcome, say};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::json;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_journal::{
    Claim, Filter, Imported, Journal as _, JournalError, Owner, Prune, SqliteJournal, StoredExperiment, TrialId,
    WithSamples,
};
use wt_report::tune::Measured;
use wt_sys::clock::unix_us;
use wt_sys::process::ProcessIdentity;
use wt_trial::TrialRecord;
use wt_units::counted;

/// Every trial ever run, with all that was in force
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel journal list
  windtunnel journal show last
  windtunnel journal export last --format csv > trials.csv
  windtunnel journal export last --format flent > last.flent && flent -p totals -i last.flent
  windtunnel journal import trials.json /mnt/other/journal.sqlite3
  windtunnel journal prune --older-than 90d --dry-run")]
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
    #[command(after_help = "Examples:
  windtunnel journal samples
  windtunnel journal samples last --trial 42 --json")]
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
        #[arg(long = "format", alias = "form", value_enum, default_value_t = Form::Json)]
        form: Form,
    },
    /// Takes in what `export` wrote as JSON or for flent, data files of flent itself, or all of another journal; nothing comes twice
    ///
    /// Of flent's own tests the rates of TCP and the round trips become an experiment of one trial. Each experiment is taken as a whole or not at all; one that is here already stays as it is. The files are left as they
    /// are. Ends with code 1 if something was refused.
    #[command(after_help = "Examples:
  windtunnel journal import trials.json /mnt/other/journal.sqlite3
  ssh far windtunnel journal export last | windtunnel journal import -
  zcat tcp_download.flent.gz | windtunnel journal import -")]
    Import {
        /// Exported JSON or flent's data, one object or several after each other, or journals; - is standard input
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Throws experiments away; never one that is under way, nor one that another continues
    #[command(after_help = "Examples:
  windtunnel journal prune --older-than 90d --dry-run
  windtunnel journal prune --keep 50 --samples-only")]
    Prune {
        /// Only these: names, or beginnings of them
        #[arg(value_name = "EXPERIMENT", required_unless_present_any = ["older_than", "keep"])]
        experiments: Vec<String>,
        /// Only those that began so long ago: 90d, 12h
        #[arg(long, value_name = "TIME", value_parser = age)]
        older_than: Option<Duration>,
        /// All but so many of the newest
        #[arg(long, value_name = "N")]
        keep: Option<usize>,
        /// Only the samples: the figures of each trial stay
        #[arg(long)]
        samples_only: bool,
        /// Say what would go, and throw nothing away
        #[arg(long)]
        dry_run: bool,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
}

/// A time that may have days and weeks.
fn age(text: &str) -> Result<Duration, String> {
    let long = [("d", 86_400.0), ("w", 604_800.0)].into_iter().find_map(|(unit, seconds)| {
        let number: f64 = text.strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * seconds)
    });
    match long {
        Some(seconds) => Duration::try_from_secs_f64(seconds).map_err(|_| format!("'{text}' is no time")),
        None => wt_units::parse_duration(text).map_err(|error| format!("{error}, or days: 90d, or weeks: 12w")),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One JSON object with every sample
    Json,
    /// A line for each trial
    Csv,
    /// A data file of flent: rate and RTT over time
    Flent,
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
    let alive = |id: &str, owner: &Owner| {
        let Owner { pid, start_ticks, boot_id } = owner.clone();
        let same_process = || ProcessIdentity { pid, start_ticks, boot_id }.is_alive();
        Claim::is_held(&path, id).unwrap_or_else(same_process)
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
        JournalError::NotAnExport { .. } => Failure::usage(text).hint(
            "windtunnel journal export writes what import reads (json, flent); or name a journal, an SQLite file",
        ),
        JournalError::Busy { .. } => Failure::environment(text).hint("wait until the other program has ended"),
        _ => Failure::ours(text),
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &JournalArgs) -> Outcome {
    let mut journal = open(args.journal.as_deref())?;
    match &args.command {
        JournalCommand::List { limit, json } => list(&journal, *limit, *json),
        JournalCommand::Show { experiment, json } => show(&journal, experiment, *json),
        JournalCommand::Samples { experiment, trial, json } => samples::samples(&journal, experiment, *trial, *json),
        JournalCommand::Export { experiment, form } => export(&journal, experiment, *form),
        JournalCommand::Import { files, json } => import(&mut journal, files, *json),
        JournalCommand::Prune { experiments, older_than, keep, samples_only, dry_run, json } => {
            let ids = experiments.iter().map(|key| journal.load(key).map(|found| found.id));
            let ids: Vec<String> = ids.collect::<Result<_, _>>().map_err(|error| failure(&error))?;
            let before =
                older_than.map(|age| unix_us().saturating_sub(i64::try_from(age.as_micros()).unwrap_or(i64::MAX)));
            let what = Prune {
                ids: (!ids.is_empty()).then_some(ids),
                before_unix_us: before,
                keep_newest: *keep,
                samples_only: *samples_only,
                dry_run: *dry_run,
            };
            prune(&mut journal, what, *json)
        }
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
    // The pilot is a transfer, whatever the trials do.
    let of_rounds = trials.iter().find(|trial| trial.spec.round > 0).or(trials.last());
    let measured = of_rounds.map_or("goodput", |trial| Measured::of_workload(&trial.spec.workload).head());
    say!("\n{:>5} {:>5}  {:<40} {:>12}  status", "round", "order", "settings", measured);
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
    let workload = &trial.spec.workload;
    let figure = Measured::of_workload(workload).show(trial.outcome.figure(workload.scale()));
    say!("{round:>5} {order:>5}  {label:<40} {figure:>12}  {status}");
    for note in &trial.outcome.notes {
        say!("{:>13}{note}", "");
    }
}

fn export(journal: &SqliteJournal, key: &str, form: Form) -> Outcome {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let written = match form {
        Form::Json => wt_journal::export_json(journal, key, WithSamples::Yes, &mut out),
        Form::Csv => wt_journal::export_csv(journal, key, &mut out),
        Form::Flent => wt_journal::export_flent(journal, key, &mut out),
    };
    written.map_err(|error| failure(&error))?;
    std::io::Write::flush(&mut out).map_err(|error| Failure::environment(format!("can't write: {error}")))?;
    Ok(Exit::Done)
}

/// What a file of SQLite begins with.
const SQLITE: &[u8] = b"SQLite format 3\0";

fn import(journal: &mut SqliteJournal, files: &[PathBuf], json: bool) -> Outcome {
    let mut all = Imported::default();
    for file in files {
        let imported = import_one(journal, file)?;
        all.trials += imported.trials;
        all.taken.extend(imported.taken);
        all.known.extend(imported.known);
        all.refused.extend(imported.refused);
    }
    if json {
        let refused: Vec<_> = all.refused.iter().map(|(id, why)| json!({"id": id, "why": why})).collect();
        say!(
            "{}",
            json!({"schema_version": 1, "imported": all.taken, "trials": all.trials, "known": all.known, "refused": refused})
        );
    } else {
        say!(
            "{} with {} taken in, {} here already.",
            counted(all.taken.len(), "experiment"),
            counted(all.trials as usize, "trial"),
            if all.known.len() == 1 { "1 was".to_owned() } else { format!("{} were", all.known.len()) }
        );
        all.taken.iter().for_each(|id| say!("  {id}"));
        all.refused.iter().for_each(|(id, why)| say!("  {id} wasn't taken: {why}"));
    }
    Ok(if all.refused.is_empty() { Exit::Done } else { Exit::No })
}

fn import_one(journal: &mut SqliteJournal, file: &Path) -> Result<Imported, Failure> {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("cannot read {}", file.display())).because(error.to_string()).hint("name a file, or -")
    };
    let mut input: Box<dyn std::io::Read> = if file.as_os_str() == "-" {
        Box::new(std::io::stdin())
    } else {
        Box::new(std::fs::File::open(file).map_err(failed)?)
    };
    let mut head = Vec::new();
    input.by_ref().take(SQLITE.len() as u64).read_to_end(&mut head).map_err(failed)?;
    if head.starts_with(&[0x1f, 0x8b]) {
        return Err(Failure::usage(format!("{} is compressed", file.display()))
            .hint(format!("zcat {} | windtunnel journal import -", file.display())));
    }
    if head == SQLITE {
        let other = SqliteJournal::open_to_read(file).map_err(|error| failure(&error))?;
        return wt_journal::import_journal(journal, &other).map_err(|error| failure(&error));
    }
    let whole = std::io::BufReader::new(std::io::Cursor::new(head).chain(input));
    wt_journal::import_json(journal, whole).map_err(|error| match failure(&error) {
        told if matches!(error, JournalError::NotAnExport { .. }) => {
            Failure { what: format!("{}: {}", file.display(), told.what), ..told }
        }
        told => told,
    })
}

fn prune(journal: &mut SqliteJournal, what: Prune, json: bool) -> Outcome {
    let (dry_run, samples_only) = (what.dry_run, what.samples_only);
    let pruned = journal.prune(what).map_err(|error| failure(&error))?;
    if json {
        say!(
            "{}",
            json!({"schema_version": 1, "dry_run": dry_run, "samples_only": samples_only, "pruned": pruned.ids,
                   "experiments": pruned.experiments, "trials": pruned.trials, "kept": pruned.kept})
        );
        return Ok(Exit::Done);
    }
    let what = if samples_only { "the samples of " } else { "" };
    let verb = if dry_run { "would be thrown away" } else { "thrown away" };
    say!(
        "{what}{} with {} {verb}.",
        counted(pruned.experiments as usize, "experiment"),
        counted(pruned.trials as usize, "trial")
    );
    pruned.ids.iter().for_each(|id| say!("  {id}"));
    for id in &pruned.kept {
        say!("  {id} stays: it is under way, or another experiment that stays continues it");
    }
    Ok(Exit::Done)
}
