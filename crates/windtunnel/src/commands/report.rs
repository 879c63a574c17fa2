//! `windtunnel report`: an experiment assessed again from the journal, in any form. `tune` ends with the same code.

/// What the journal holds of an experiment.
mod history;
/// The link under an experiment.
mod link;
/// What a screen came to.
mod screen;

use crate::commands::cc::compare;
use crate::commands::journal;
use crate::commands::stacks;
use crate::edge::{Exit, Failure, Outcome, say};
use clap::Args;
use std::io::{IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;
use wt_experiment::{Assessment, Experiment, VerdictKind};
use wt_journal::{Journal, State, StoredExperiment};
use wt_report::{PlanStep, Run, Setting, TuneInputs, TuneReport};
use wt_trial::{Direction, STOPPED, Status, TrialRecord};
use wt_units::Knob;

pub(crate) use history::{History, Judged, observation};
pub(crate) use screen::{Factor, ScreenReport, Screened, settings_of};

/// Columns of the terminal report: what fits everywhere.
const WIDTH: usize = 90;

/// An experiment from the journal, assessed again: as text, JSON, HTML or CSV
///
/// The journal and the seed are enough: the same rounds give the same verdict.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel report
  windtunnel report last --html report.html --csv trials.csv
  windtunnel report 20261121-0815 --json")]
pub(crate) struct ReportArgs {
    /// Its name, the beginning of it, or "last"
    #[arg(default_value = "last")]
    experiment: String,
    #[command(flatten)]
    forms: Forms,
    /// The journal [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

/// In which forms a report is given.
#[derive(Debug, Args, Clone)]
pub(crate) struct Forms {
    /// One JSON object
    #[arg(long)]
    pub(crate) json: bool,
    /// Also write a self-contained page
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// Also write the table of trials
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &ReportArgs) -> Outcome {
    let journal = journal::open(args.journal.as_deref())?;
    let stored = journal.load(&args.experiment).map_err(|error| journal::failure(&error))?;
    if stored.config["compare"].is_object() {
        return compare::again(&journal, &stored, &args.forms);
    }
    if stored.config["stacks"].is_object() {
        return stacks::again(&journal, &stored, &args.forms);
    }
    if let Some(screened) = Screened::read(&journal, &stored)? {
        let stopped = stored.state != State::Finished;
        let confirmed = screen::confirmation(&journal, &stored)?;
        let confirmation = confirmed.map(|stored| again(&journal, &stored, |told| told.report())).transpose()?;
        let report =
            ScreenReport { stored: &stored, screened: &screened, confirmation: confirmation.as_ref(), stopped };
        return report.give(&args.forms, args.forms.json);
    }
    again(&journal, &stored, |told| told.give(&args.forms, args.forms.json))?
}

/// Assesses an experiment again from what the journal holds.
fn again<R>(journal: &dyn Journal, stored: &StoredExperiment, tell: impl FnOnce(&Told<'_>) -> R) -> Result<R, Failure> {
    let history = History::read(journal, stored)?;
    let experiment = history.replay()?;
    let records = history.records(journal)?;
    Ok(tell(&Told { stored, records: &records, experiment: &experiment, history: Some(&history) }))
}

/// An experiment with all that is told of it.
pub(crate) struct Told<'a> {
    pub(crate) stored: &'a StoredExperiment,
    pub(crate) records: &'a [TrialRecord],
    pub(crate) experiment: &'a Experiment,
    /// What the records were taken from, if they may be less than everything.
    pub(crate) history: Option<&'a History>,
}

impl Told<'_> {
    /// Puts the report together.
    pub(crate) fn report(&self) -> TuneReport {
        let StoredExperiment { config, .. } = self.stored;
        let micros = |name: &str| Duration::from_micros(config[name].as_u64().unwrap_or(0));
        let trials = u32::try_from(self.experiment.trials()).unwrap_or(u32::MAX);
        let run = Run {
            started_unix_us: self.stored.started_unix_us,
            spent: micros("per_trial_us") * trials,
            cool_down: micros("cool_down_us"),
            seed: self.stored.seed,
            command: config["command"].as_str().unwrap_or("").to_owned(),
            version: self.stored.version.clone(),
            comment: self.stored.comment.clone(),
        };
        let setting = |arm: &wt_journal::Arm| Setting { label: arm.label.clone(), settings: arm.settings.clone() };
        let settings: Vec<Setting> = self.stored.arms.iter().map(setting).collect();
        let assessment = self.experiment.assessment();
        let mut report = TuneReport::assemble(&TuneInputs {
            id: &self.stored.id,
            target: &self.stored.target,
            tunnel: &self.stored.tunnel,
            path: &self.stored.path,
            current: &self.stored.current,
            settings: &settings,
            plateau: config["plateau"]["knob"].as_str().and_then(|name| name.parse::<Knob>().ok()),
            assessment: &assessment,
            records: self.records,
            run: &run,
        });
        let by_knob = self.by_knob(&assessment);
        report.verdict.text = by_knob.iter().fold(report.verdict.text, |text, line| format!("{text}\n{line}"));
        report.verdict.details.extend(by_knob);
        report.model = Some(config["model"].clone()).filter(|model| !model.is_null());
        let live = &config["live"];
        report.path.loss = live["loss"].as_f64();
        if let Some(address) = live["address"].as_str()
            && report.verdict.kind == VerdictKind::Faster
        {
            self.plan(&mut report, address);
        }
        report.warnings.extend(link::warnings(self.records, self.direction(), self.stored.arms.len()));
        report.warnings.splice(0..0, self.cut_short());
        if let Some(history) = self.history {
            history.complete(&mut report);
        }
        report
    }

    /// What ended it before its time, if that wasn't the user.
    fn cut_short(&self) -> Option<String> {
        let last = self.records.last().filter(|record| record.outcome.status == Status::Aborted)?;
        let why = last.outcome.notes.first().filter(|note| note.as_str() != STOPPED)?;
        Some(format!("It ended before its time: {why}. windtunnel tune --resume {} goes on with it.", self.stored.id))
    }

    /// Which way the payload went.
    fn direction(&self) -> Direction {
        let up = self.stored.config["workload"]["direction"] == "up";
        if up { Direction::Up } else { Direction::Down }
    }

    /// What makes the recommended settings hold on this host, and the one command that does it.
    fn plan(&self, report: &mut TuneReport, address: &str) {
        let Some(arm) = self.stored.arms.get(report.verdict.arm) else { return };
        // What a route to the target can carry goes there and touches nobody else.
        let on_route = |knob: Knob| {
            let known = wt_host::KNOBS.iter().find(|known| known.name == knob.name());
            known.is_some_and(|known| known.route.is_some())
        };
        let place = |knob: Knob| if on_route(knob) { address.to_owned() } else { "host".to_owned() };
        let command = |pairs: &str, to: &str| format!("sudo windtunnel settings apply {pairs} --to {to}");
        let mut by_place: std::collections::BTreeMap<String, Vec<String>> = std::collections::BTreeMap::new();
        for (knob, level) in arm.settings.iter() {
            let (pair, to) = (format!("{knob}={level}"), place(knob));
            report.plan.push(PlanStep {
                key: knob.name().to_owned(),
                value: level.clone(),
                command: command(&pair, &to),
                to: to.clone(),
            });
            by_place.entry(to).or_default().push(pair);
        }
        let commands: Vec<String> = by_place.iter().map(|(to, pairs)| command(&pairs.join(" "), to)).collect();
        if !commands.is_empty() {
            let told = format!("Apply it (it is put back unless you confirm it): {}", commands.join(" && "));
            report.next.insert(0, told);
        }
    }

    /// For each knob whose plateau isn't sought: which level leads, and by how much.
    fn by_knob(&self, assessment: &Assessment) -> Vec<String> {
        let plateau = self.stored.config["plateau"]["knob"].as_str();
        let knobs = Knob::all().into_iter().filter(|knob| plateau != Some(knob.name()));
        knobs.filter_map(|knob| self.of_knob(knob, assessment)).collect()
    }

    fn of_knob(&self, knob: Knob, assessment: &Assessment) -> Option<String> {
        let mut levels: Vec<(f64, String, bool)> = Vec::new();
        for arm in assessment.arms.iter().skip(1) {
            let settings = &self.stored.arms.get(arm.arm)?.settings;
            let Some(level) = settings.get(knob).filter(|_| settings.iter().count() == 1) else { continue };
            levels.push((arm.ratio?, level.to_string(), arm.claimed.is_some() || arm.slower));
        }
        if levels.is_empty() {
            return None;
        }
        let current = self.stored.current.get(knob).map_or_else(|| "auto".to_owned(), ToString::to_string);
        levels.push((1.0, format!("{current} (current)"), true));
        levels.sort_by(|a, b| b.0.total_cmp(&a.0));
        let told = |(ratio, level, shown): &(f64, String, bool)| {
            format!("{level} ×{ratio:.3}{}", if *shown { "" } else { " (not proven)" })
        };
        let list: Vec<String> = levels.iter().map(told).collect();
        Some(format!("By estimate, {knob}: {}.", list.join(", ")))
    }

    /// Writes the files that were asked for, prints the answer, and says with the exit code what it is.
    ///
    /// # Errors
    /// A [`Failure`] that names the file.
    pub(crate) fn give(&self, forms: &Forms, json: bool) -> Outcome {
        let report = self.report();
        if let Some(path) = &forms.html {
            write_whole(path, &report.to_html())?;
        }
        if let Some(path) = &forms.csv {
            write_whole(path, &report.to_csv())?;
        }
        if json {
            let text = serde_json::to_string(&report).map_err(|error| Failure::ours(error.to_string()))?;
            say!("{text}");
        } else {
            let stdout = std::io::stdout();
            let colour = stdout.is_terminal() && std::env::var_os("NO_COLOR").is_none();
            say!("{}", report.to_terminal(WIDTH, colour));
            for path in [&forms.html, &forms.csv].into_iter().flatten() {
                say!("Written: {}", path.display());
            }
        }
        Ok(if report.verdict.kind == VerdictKind::Faster { Exit::Done } else { Exit::No })
    }
}

impl ScreenReport<'_> {
    /// Writes the files that were asked for, prints the answer, and says with the exit code what it is.
    ///
    /// # Errors
    /// A [`Failure`] that names the file.
    pub(crate) fn give(&self, forms: &Forms, json: bool) -> Outcome {
        if forms.csv.is_some() {
            return Err(Failure::usage("a screen has no table of settings")
                .hint("windtunnel journal export last --format csv writes every trial"));
        }
        if let Some(path) = &forms.html {
            write_whole(path, &self.html())?;
        }
        if json {
            say!("{}", self.json());
        } else {
            say!("{}", self.text());
        }
        Ok(if self.kind() == VerdictKind::Faster { Exit::Done } else { Exit::No })
    }
}

/// Writes a file as a whole or not at all: beside it first, then under its name.
pub(crate) fn write_whole(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::environment(format!("can't write {}: {error}", path.display()))
            .hint("name another file; everything that was measured is in the journal: windtunnel report")
    };
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let part = path.with_file_name(name);
    let written = std::fs::File::create(&part).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&part, path)
    });
    written.map_err(|error| {
        let _ = std::fs::remove_file(&part);
        failed(error)
    })
}
