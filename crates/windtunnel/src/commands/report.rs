//! `windtunnel report`: an experiment assessed again from the journal, in any form. `tune` ends with the same code.

use crate::cli::forms::{Forms, REPORT, write_measured};
use crate::cli::typed::retyped;
use crate::commands::{cc, settings, stacks, traffic};
use crate::edge::{Exit, Outcome, Problem, emit, say};
use crate::screen::Screen;
use clap::Args;
use std::path::PathBuf;
use wt_api::{Answer, Request, Services};
use wt_experiment::VerdictKind;
use wt_report::tune::AnswerAction;
use wt_report::{RetypedOptions, TuneReport};
use wt_setup::journal::{self, ExperimentRequest};
use wt_trial::Cancel;
use wt_tune::{ScreenReport, TuneAnswer};

/// Reports an experiment of the journal, as text, JSON, HTML or CSV
///
/// The journal and the seed are enough: the same rounds give the same verdict.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel report
  windtunnel report --full
  windtunnel report last --html report.html --csv trials.csv
  windtunnel report last --units kB
  windtunnel report 20261121-0815 --json")]
pub(crate) struct ReportArgs {
    /// Its name, the beginning of it, or "last"
    #[arg(default_value = "last")]
    experiment: String,
    #[command(flatten)]
    forms: Forms,
    /// The journal, a file or postgresql://... [default: $XDG_DATA_HOME/windtunnel/journal.sqlite3]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &ReportArgs) -> Outcome {
    args.forms.units.choose();
    journal::must_exist(args.journal.as_deref())?;
    let request = ExperimentRequest { experiment: args.experiment.clone(), journal: args.journal.clone() };
    let request = Request::Report(request);
    let (html, json) = (args.forms.html.as_deref(), args.forms.json);
    match wt_api::run(request, &Services::default(), &mut |_| {}, &Cancel::new())? {
        Answer::SettingsProve(proof) => {
            no_table(args, "a proof of a change")?;
            settings::give_proof(&proof, html, json)
        }
        Answer::Controls(answer) => {
            no_table(args, "a comparison of congestion controls")?;
            cc::compare::give(&answer, html, json)
        }
        Answer::Stacks(answer) => {
            no_table(args, "a comparison of stacks")?;
            stacks::compare::give(&answer, html, json)
        }
        Answer::TrafficReport(report) => {
            no_table(args, "a comparison of a server's connections")?;
            traffic::give_report(&report, html, json, args.journal.as_deref())
        }
        Answer::Tune(TuneAnswer::Screen(screen)) => give_screen(&screen, &args.forms, args.forms.json, &[]),
        Answer::Tune(TuneAnswer::Report(report)) => {
            give(*report, &args.forms, args.forms.json, &retyped(args.journal.as_deref(), None))
        }
        _ => Err(Problem::internal("a report is none of these")),
    }
}

/// Whether no table of settings was asked for of an experiment that has none.
fn no_table(args: &ReportArgs, what: &str) -> Result<(), Problem> {
    if args.forms.csv.is_none() {
        return Ok(());
    }
    Err(Problem::usage(format!("{what} has no table of settings"))
        .hint(format!("windtunnel journal export {} --format csv writes every trial", args.experiment)))
}

/// Prints a report, writes the files that were asked for, and says with the exit code what it is. What people are told to type has
/// the options that `retyped` names; for programs it is the same whatever journal it stands in.
///
/// # Errors
/// A [`Problem`] that names the file.
pub(crate) fn give(mut report: TuneReport, forms: &Forms, json: bool, retyped: &RetypedOptions) -> Outcome {
    forms.check()?;
    if json {
        let text = serde_json::to_string(&report).map_err(|error| Problem::internal(error.to_string()))?;
        emit!("{text}");
    }
    report.retype(retyped);
    if !json {
        let Screen { width, color, .. } = Screen::stdout();
        let text = if forms.full { report.to_terminal(width, color) } else { report.answer_to_terminal(width, color) };
        say!("{}", text.trim_end());
    }
    // Last, so that a file that can't be written costs nothing.
    let files: [(_, &dyn Fn() -> String); 2] = [(&forms.html, &|| report.to_html()), (&forms.csv, &|| report.to_csv())];
    for (path, text) in files {
        let Some(path) = path else { continue };
        write_measured(path, &text(), REPORT)?;
        if !json {
            say!("Written: {}", path.display());
        }
    }
    // What has less delay at the same speed is a difference, too.
    Ok(if report.verdict.answer.action == AnswerAction::Set { Exit::Done } else { Exit::No })
}

/// The same for the report of a screen, and what to type next.
///
/// # Errors
/// A [`Problem`] that names the file.
pub(crate) fn give_screen(screen: &ScreenReport, forms: &Forms, json: bool, next: &[String]) -> Outcome {
    if json {
        emit!("{}", screen.json());
    } else {
        say!("{}", screen.text());
        if !next.is_empty() {
            say!("\n{}", next.join("\n"));
        }
    }
    if let Some(path) = &forms.html {
        write_measured(path, &screen.html(), REPORT)?;
        if !json {
            say!("Written: {}", path.display());
        }
    }
    // Last: what can't be had takes nothing from what was measured.
    if forms.csv.is_some() {
        return Err(Problem::usage("a screen has no table of settings")
            .hint("windtunnel journal export last --format csv writes every trial"));
    }
    Ok(if screen.kind() == VerdictKind::Faster { Exit::Done } else { Exit::No })
}
