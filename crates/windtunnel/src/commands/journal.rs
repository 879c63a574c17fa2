//! `windtunnel journal`: every trial ever run.

use crate::cli::forms::give;
use crate::cli::typed;
use crate::cli::values::RateUnit;
use crate::edge::{Exit, Outcome, Problem, note, say};
use clap::{Args, Subcommand, ValueEnum};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::time::Duration;
use wt_journal::{ExperimentConfig, StoredExperiment, TrialId};
use wt_report::tune::TrialFigure;
use wt_setup::journal::{
    self, ExperimentRequest, ExportFormat, ExportRequest, ImportAnswer, ListAnswer, ListRequest, PruneAnswer,
    PruneRequest, PushAnswer, PushRequest, SamplesAnswer, SamplesRequest, ShowAnswer, StatusRequest,
};
use wt_trial::TrialRecord;
use wt_units::{counted, parse_age};

/// Manages the journal of every trial: list, export, push, prune
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel journal list
  windtunnel journal show last
  windtunnel journal export last --format csv > trials.csv
  windtunnel journal export last --format parquet > trials.parquet
  windtunnel journal export last --format flent > last.flent && flent -p totals -i last.flent
  windtunnel journal import trials.json /mnt/other/journal.sqlite3
  windtunnel journal push postgresql://me@db.example/windtunnel
  windtunnel journal list --journal postgresql://me@db.example/windtunnel
  windtunnel journal prune --older-than 90d --dry-run")]
pub(crate) struct JournalArgs {
    #[command(subcommand)]
    command: JournalCommand,
    /// The journal, a file or postgresql://... [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE", global = true)]
    journal: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum JournalCommand {
    /// Lists the experiments, the newest first
    List {
        /// At most so many
        #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
        limit: u32,
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
        /// Of Parquet: a row for each sample instead of each trial
        #[arg(long)]
        samples: bool,
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
    /// Writes what isn't there yet to the journal of many hosts, in PostgreSQL; nothing comes twice
    ///
    /// Trials go as wholes, in batches that are each there or not: whatever interrupts it, pushing again goes on. An experiment
    /// that is under way goes as far as it has come. Ends with code 1 if something was refused: another experiment of that
    /// name is there. The password is PGPASSWORD's or that of ~/.pgpass; over a network TLS is a must, with the certificates that
    /// this system believes, or those of ?sslrootcert=FILE.
    #[command(after_help = "Examples:
  windtunnel journal push postgresql://me@db.example/windtunnel
  windtunnel journal push 'postgresql://me@db.example/windtunnel?sslrootcert=/etc/ssl/our-ca.pem' last
  windtunnel journal push postgresql:///windtunnel --site berlin")]
    Push {
        /// Where to: postgresql://USER@HOST/DATABASE
        #[arg(value_name = "URL")]
        store: String,
        /// Only these: names, or beginnings of them, or "last"
        #[arg(value_name = "EXPERIMENT")]
        experiments: Vec<String>,
        /// What the host that measured is called there [default: its own name]
        #[arg(long, value_name = "NAME")]
        site: Option<String>,
        /// One JSON object
        #[arg(long)]
        json: bool,
    },
    /// Says what the journal of many hosts doesn't have yet; ends with code 1 if it lacks something
    #[command(after_help = "Examples:
  windtunnel journal status
  windtunnel journal status postgresql://me@db.example/windtunnel --json")]
    Status {
        /// Which: postgresql://USER@HOST/DATABASE [default: the one that was pushed to last]
        #[arg(value_name = "URL")]
        store: Option<String>,
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
    parse_age(text).map_err(|error| format!("{error}, or days: 90d, or weeks: 12w"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Form {
    /// One JSON object with every sample
    Json,
    /// A line for each trial
    Csv,
    /// A data file of flent: rate and RTT over time
    Flent,
    /// A table for pandas, polars, R and DuckDB: a row for each trial
    Parquet,
}

impl From<Form> for ExportFormat {
    fn from(form: Form) -> Self {
        match form {
            Form::Json => Self::Json,
            Form::Csv => Self::Csv,
            Form::Flent => Self::Flent,
            Form::Parquet => Self::Parquet,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &JournalArgs) -> Outcome {
    let file = || args.journal.clone();
    if !matches!(args.command, JournalCommand::Import { .. }) {
        journal::must_exist(args.journal.as_deref())?;
    }
    match &args.command {
        JournalCommand::List { limit, json } => give(
            &journal::list(&ListRequest { limit: Some(*limit as usize), kind: None, journal: file() })?,
            *json,
            list,
        ),
        JournalCommand::Show { experiment, json } => {
            let request = ExperimentRequest { experiment: experiment.clone(), journal: file() };
            give(&journal::show(&request)?, *json, show)
        }
        JournalCommand::Samples { experiment, trial, json } => {
            let request = SamplesRequest { experiment: experiment.clone(), trial: *trial, journal: file() };
            give(&journal::samples(&request)?, *json, samples)
        }
        JournalCommand::Export { experiment, form, samples } => export(file(), experiment.clone(), *form, *samples),
        JournalCommand::Import { files, json } => {
            let answer = journal::import(args.journal.as_deref(), files)?;
            give(&answer, *json, imported)?;
            Ok(if answer.refused.is_empty() { Exit::Done } else { Exit::No })
        }
        JournalCommand::Push { store, experiments, site, json } => {
            let (store, experiments, site) = (store.clone(), experiments.clone(), site.clone());
            let answer = journal::push(&PushRequest { store, experiments, site, journal: file() })?;
            give(&answer, *json, pushed)?;
            Ok(if answer.refused == 0 { Exit::Done } else { Exit::No })
        }
        JournalCommand::Status { store, json } => {
            let answer = journal::status(&StatusRequest { store: store.clone(), journal: file() })?;
            give(&answer, *json, status)?;
            Ok(if answer.incomplete == 0 && answer.refused == 0 { Exit::Done } else { Exit::No })
        }
        JournalCommand::Prune { experiments, older_than, keep, samples_only, dry_run, json } => {
            let request = PruneRequest {
                experiments: experiments.clone(),
                whole_names: false,
                older_than: *older_than,
                keep: *keep,
                samples_only: *samples_only,
                dry_run: *dry_run,
                journal: file(),
            };
            give(&journal::prune(&request)?, *json, pruned)
        }
    }
}

fn list(answer: &ListAnswer) {
    if answer.experiments.is_empty() {
        say!("The journal is empty. windtunnel tune --lab adsl runs a first experiment.");
        return;
    }
    let head = ["experiment", "kind", "tunnel", "state", "trials"].map(str::to_owned).to_vec();
    let rows = answer.experiments.iter().map(|one| {
        let state = one.state.name().to_owned();
        vec![one.id.clone(), one.kind.clone(), one.tunnel.clone(), state, one.trials.to_string()]
    });
    let rows: Vec<Vec<String>> = std::iter::once(head).chain(rows).collect();
    let lines = wt_report::table(&rows, &[4]);
    say!("{}", lines[0]);
    for (line, one) in lines.iter().skip(1).zip(&answer.experiments) {
        say!("{line}");
        one.answer.iter().for_each(|answer| say!("    {answer}"));
        Some(&one.comment)
            .filter(|comment| !comment.is_empty())
            .into_iter()
            .for_each(|comment| say!("    “{}”", comment.replace('\n', "\n     ")));
    }
}

fn show(answer: &ShowAnswer) {
    let ShowAnswer { experiment: found, trials_left_out: left_out, trials, .. } = answer;
    // One that was taken in may have any text as its target: it stays on its line.
    let target = found.target.replace('\n', " ");
    say!("{}  {} {target}  {}", found.id, found.tunnel, found.state.name());
    if !found.comment.is_empty() {
        say!("{}", found.comment);
    }
    if let Some(before) = &found.config.tune().continues {
        say!("continues {before}");
    }
    say!("current: {}   seed {}", found.current, found.seed);
    if let ExperimentConfig::Tests(tests) = &found.config {
        let force = tests.test.iter().flatten();
        let all: Vec<String> =
            force.map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default())).collect();
        say!("in force: {}", all.join(", "));
        let known = tests.covariates.iter().flatten().map(|(name, value)| format!("{name}={value}"));
        known.for_each(|covariate| say!("covariate: {covariate}"));
    }
    if let Some(text) = found.verdict.as_ref().and_then(|verdict| verdict["text"].as_str()) {
        say!("\n{text}");
    }
    if *left_out > 0 {
        let all = left_out + trials.len();
        say!("\nThe last {} of {all} trials; windtunnel journal export has them all.", trials.len());
    }
    if matches!(found.config, ExperimentConfig::Tests(_)) {
        say!("");
        return super::test::log_lines(&wt_tune::logged_lines(found, trials), RateUnit::Auto);
    }
    // The pilot is a transfer, whatever the trials do.
    let of_rounds = trials.iter().find(|trial| trial.spec.round > 0).or(trials.last());
    let measured = of_rounds.map_or("goodput", |trial| TrialFigure::of_workload(&trial.spec.workload).head());
    let labels: Vec<String> = trials.iter().map(|trial| trial_label(found, trial)).collect();
    // Of a pilot it may be any number of settings: such a line sticks out.
    let longest = found.arms.iter().map(|arm| arm.label.chars().count()).max().unwrap_or(0);
    let width = longest.clamp(34, 48);
    say!("\n{:>5} {:>5}  {:<width$}  {:>12}  status", "round", "order", "settings", measured);
    for (trial, label) in trials.iter().zip(&labels) {
        show_trial(trial, label, width);
    }
}

/// What the settings of a trial are called.
fn trial_label(found: &StoredExperiment, trial: &TrialRecord) -> String {
    let label = found.arms.get(trial.spec.arm).map_or("?", |arm| arm.label.as_str());
    let outside = format!("{:?}", trial.spec.phase).to_lowercase();
    if trial.spec.round == 0 {
        format!("({outside}) {}", trial.spec.settings)
    } else if found.config.screen().is_some() {
        trial.spec.settings.to_string()
    } else {
        label.to_owned()
    }
}

fn show_trial(trial: &TrialRecord, label: &str, width: usize) {
    let (round, order, status) = (trial.spec.round, trial.spec.order, trial.outcome.status.name());
    let workload = &trial.spec.workload;
    let figure = TrialFigure::of_workload(workload).show(trial.outcome.figure(workload.scale()));
    say!("{round:>5} {order:>5}  {label:<width$}  {figure:>12}  {status}");
    let server = trial.outcome.observed.target.iter().map(|server| server.replace('\n', " "));
    server.for_each(|server| say!("{:>13}{server}", ""));
    trial.outcome.notes.iter().for_each(|note| say!("{:>13}{note}", ""));
}

fn samples(answer: &SamplesAnswer) {
    let trials = counted(answer.trials.len(), "trial");
    say!("{}: {trials} with {}", answer.id, counted(answer.samples.t_us.len(), "sample"));
    say!("{:>8} {:>6} {:>8} {:>9} {:>12}  settings", "trial", "round", "samples", "begin", "Mbit/s");
    for trial in &answer.trials {
        let settings: Vec<String> = trial.settings.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
        let (begin, rate) = (trial.begin_us as f64 / 1e6, trial.goodput_bps / 1e6);
        say!(
            "{:>8} {:>6} {:>8} {begin:>7.1} s {rate:>12.3}  {}",
            trial.id,
            trial.round,
            trial.count,
            settings.join(" ")
        );
    }
    if answer.trials_left_out > 0 {
        say!("{} trials more are left out; name one with --trial", answer.trials_left_out);
    }
}

fn export(journal: Option<PathBuf>, experiment: String, form: Form, samples: bool) -> Outcome {
    if form == Form::Parquet && std::io::stdout().is_terminal() {
        return Err(Problem::usage("Parquet isn't text, and standard output is a terminal")
            .hint(format!("windtunnel journal export {experiment} --format parquet > trials.parquet")));
    }
    let request = ExportRequest { experiment, format: form.into(), samples, journal };
    journal::export(&request, std::io::stdout())?;
    if let Some(before) = journal::continued(&request)? {
        let command = format!("windtunnel journal export {before}");
        let command = typed::naming_journal(&command, &before, request.journal.as_deref());
        note(&format!("it continues {before}, whose trials aren't in it: {command} writes those"));
    }
    Ok(Exit::Done)
}

fn imported(answer: &ImportAnswer) {
    say!(
        "{} with {} taken in, {} here already.",
        counted(answer.imported.len(), "experiment"),
        counted(answer.trials as usize, "trial"),
        if answer.known.len() == 1 { "1 was".to_owned() } else { format!("{} were", answer.known.len()) }
    );
    answer.imported.iter().for_each(|id| say!("  {id}"));
    answer.refused.iter().for_each(|refused| say!("  {} wasn't taken: {}", refused.id, refused.why));
    for one in &answer.incomplete {
        say!("  {} continues {}, which isn't here: import it, too, for a report", one.id, one.continues);
    }
}

fn pushed(answer: &PushAnswer) {
    say!(
        "{} of {} pushed to {}; {} there already.",
        counted(answer.trials as usize, "trial"),
        counted(answer.incomplete, "experiment"),
        answer.store,
        if answer.complete == 1 {
            "1 experiment was".to_owned()
        } else {
            format!("{} experiments were", answer.complete)
        }
    );
    for one in &answer.experiments {
        match &one.refused {
            Some(why) => say!("  {} wasn't pushed: {why}", one.id),
            None => say!("  {}  {} of {}", one.id, one.new, counted(one.trials as usize, "trial")),
        }
    }
}

fn status(answer: &PushAnswer) {
    if answer.incomplete == 0 && answer.refused == 0 {
        match answer.complete {
            1 => say!("The 1 experiment is in {}.", answer.store),
            all => say!("All {all} experiments are in {}.", answer.store),
        }
        return;
    }
    say!(
        "{} of {} not yet in {}; {} complete there.",
        counted(answer.trials as usize, "trial"),
        counted(answer.incomplete, "experiment"),
        answer.store,
        answer.complete
    );
    for one in &answer.experiments {
        match &one.refused {
            Some(why) => say!("  {} can't go there: {why}", one.id),
            None => say!("  {}  {} of {}", one.id, one.new, counted(one.trials as usize, "trial")),
        }
    }
    if answer.incomplete > 0 {
        say!("windtunnel journal push {} pushes them.", wt_units::shell_word(&answer.store));
    }
}

fn pruned(answer: &PruneAnswer) {
    let what = if answer.samples_only { "the samples of " } else { "" };
    let verb = if answer.dry_run { "would be thrown away" } else { "thrown away" };
    say!(
        "{what}{} with {} {verb}.",
        counted(answer.experiments as usize, "experiment"),
        counted(answer.trials as usize, "trial")
    );
    answer.pruned.iter().for_each(|id| say!("  {id}"));
    for id in &answer.kept {
        say!("  {id} stays: it is under way, or another experiment that stays continues it");
    }
}
