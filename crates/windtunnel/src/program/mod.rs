//! The command line as a whole: which commands there are, and which is run.

/// What the Tab key offers.
mod completion;
/// The commands by what they are for, in the program's help.
mod groups;
/// Examples and footnotes behind the options in a command's help.
mod help;

use crate::cli::bash::BashCompletion;
use crate::cli::typed::{wants_json, words};
use crate::commands;
use crate::edge::{Outcome, Problem, print_file, say};
use crate::screen;
use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};
use clap_complete::CompleteEnv;
use clap_complete::env::{Elvish, EnvCompleter, Fish, Powershell, Shells, Zsh};

/// Finds the TCP/IP settings that make a connection fastest, shows whether the
/// difference is real, and applies them so that they can be undone.
#[derive(Debug, Parser)]
#[command(name = "windtunnel", version, propagate_version = true, verbatim_doc_comment)]
pub(crate) struct Cli {
    /// When to colour: auto, always or never
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t, hide_possible_values = true)]
    color: screen::ColorMode,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tune(Box<commands::tune::TuneArgs>),
    Test(Box<commands::test::TestArgs>),
    Lab(commands::lab::LabArgs),
    Serve(commands::serve::ServeArgs),
    Report(commands::report::ReportArgs),
    Compare(commands::compare::CompareArgs),
    Journal(commands::journal::JournalArgs),
    Fleet(commands::fleet::FleetArgs),
    Mtu(commands::mtu::MtuArgs),
    Page(commands::page::PageArgs),
    Path(commands::path::PathArgs),
    Trace(commands::trace::TraceArgs),
    FirstWindow(commands::first_window::FirstWindowArgs),
    Settings(commands::settings::SettingsArgs),
    Cdn(commands::cdn::CdnArgs),
    Traffic(commands::traffic::TrafficArgs),
    Cc(commands::cc::CcArgs),
    Stacks(commands::stacks::StacksArgs),
    Overhead(commands::overhead::OverheadArgs),
    Analyse(commands::analyse::AnalyseArgs),
    SelfTest(commands::self_test::SelfTestArgs),
    Predict(Box<commands::predict::PredictArgs>),
    Replay(commands::replay::ReplayArgs),
    Calibrate(commands::calibrate::CalibrateArgs),
    Doctor(commands::doctor::DoctorArgs),
    Watch(commands::watch::WatchArgs),
    Metrics(commands::metrics::MetricsArgs),
    Schedule(commands::schedule::ScheduleArgs),
    Web(commands::web::WebArgs),
    #[command(name = "self", hide = true)]
    Own(commands::own::OwnArgs),
    #[command(hide = true)]
    Worker(commands::worker::WorkerArgs),
}

impl Cli {
    /// Answers the shell, where it is the shell that asks, and ends; does nothing otherwise.
    pub(crate) fn complete() {
        let shells: [&dyn EnvCompleter; 5] = [&BashCompletion, &Elvish, &Fish, &Powershell, &Zsh];
        let asked = CompleteEnv::with_factory(|| completion::with_candidates(Self::command()));
        asked.shells(Shells(&shells)).complete();
    }

    /// Takes the command line; prints help and the version by itself.
    ///
    /// # Errors
    /// A usage [`Problem`](crate::edge::Problem) where programs read the answer; people get clap's own words.
    pub(crate) fn of_process() -> Result<Self, Problem> {
        let mut program = groups::grouped(Self::command());
        screen::choose(color_typed());
        let screen = screen::Screen::stdout();
        program = help::fitted(program, screen.width);
        if !screen.color {
            program = program.color(clap::ColorChoice::Never);
        }
        let read = program.try_get_matches_from_mut(std::env::args_os());
        let read =
            read.and_then(|matches| Self::from_arg_matches(&matches).map_err(|error| error.format(&mut program)));
        read.map_err(|error| {
            if asks_for_workloads(&error) {
                say!("{}", wt_setup::workload::list());
                std::process::exit(0);
            }
            let error = with_hint(error);
            if !error.use_stderr() || !wants_json() {
                told_by_clap(&error);
            }
            let text = error.render().to_string();
            // Which arguments it is about may stand below.
            let first: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
            let what = first.join(" ");
            let what = what.trim_start_matches("error: ");
            Problem::usage(what).hint("windtunnel --help, or --help after the command's name")
        })
    }

    /// Runs the command that was asked for.
    ///
    /// # Errors
    /// A [`Problem`](crate::edge::Problem) that says what to try.
    pub(crate) fn run(&self) -> Outcome {
        match &self.command {
            Command::Tune(args) => commands::tune::run(args),
            Command::Test(args) => commands::test::run(args),
            Command::Serve(args) => commands::serve::run(args),
            Command::Report(args) => commands::report::run(args),
            Command::Compare(args) => commands::compare::run(args),
            Command::Journal(args) => commands::journal::run(args),
            Command::Fleet(args) => commands::fleet::run(args),
            Command::Lab(args) => commands::lab::run(args),
            Command::Predict(args) => commands::predict::run(args),
            Command::Replay(args) => commands::replay::run(args),
            Command::Calibrate(args) => commands::calibrate::run(args),
            Command::Doctor(args) => commands::doctor::run(args),
            Command::Watch(args) => commands::watch::run(args),
            Command::Metrics(args) => commands::metrics::run(args),
            Command::Schedule(args) => commands::schedule::run(args),
            Command::Web(args) => commands::web::run(args),
            Command::Own(args) => commands::own::run(args, groups::grouped(Self::command())),
            Command::Worker(_) => commands::worker::run(),
            Command::Mtu(args) => commands::mtu::run(args),
            Command::Page(args) => commands::page::run(args),
            Command::Path(args) => commands::path::run(args),
            Command::Trace(args) => commands::trace::run(args),
            Command::FirstWindow(args) => commands::first_window::run(args),
            Command::Settings(args) => commands::settings::run(args),
            Command::Cdn(args) => commands::cdn::run(args),
            Command::Traffic(args) => commands::traffic::run(args),
            Command::Cc(args) => commands::cc::run(args),
            Command::Stacks(args) => commands::stacks::run(args),
            Command::Overhead(args) => commands::overhead::run(args),
            Command::Analyse(args) => commands::analyse::run(args),
            Command::SelfTest(args) => commands::self_test::run(args),
        }
    }
}

/// What `--color` says, before anything else is understood: errors of the command line are coloured, too.
fn color_typed() -> screen::ColorMode {
    let words: Vec<String> = words().take_while(|word| word != "--").collect();
    let after = words.iter().position(|word| word == "--color").and_then(|at| words.get(at + 1));
    let joined = words.iter().find_map(|word| word.strip_prefix("--color="));
    let said = joined.or(after.map(String::as_str)).unwrap_or_default();
    <screen::ColorMode as clap::ValueEnum>::from_str(said, false).unwrap_or_default()
}

/// Prints help, the version or what is mistyped, and ends; in ASCII where the terminal shows nothing else, and in lines that fit.
fn told_by_clap(error: &clap::Error) -> ! {
    let screen = if error.use_stderr() { screen::Screen::stderr() } else { screen::Screen::stdout() };
    let text = error.render();
    // These colours are those of clap, and not among ours.
    let text = if screen.color { text.ansi().to_string() } else { text.to_string() };
    let text = text.trim_end();
    if error.use_stderr() {
        use std::io::Write as _;
        let text = screen.fitted(text);
        let text = if screen.color { text.into() } else { screen.harmless(&text) };
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    } else {
        print_file(&format!("{}\n", screen.shown(&help::printed(text))));
    }
    std::process::exit(error.exit_code());
}

/// Whether the list of workloads is asked for, `--workload help`.
fn asks_for_workloads(error: &clap::Error) -> bool {
    use clap::error::{ContextKind, ContextValue};
    let is =
        |kind, wanted: fn(&str) -> bool| matches!(error.get(kind), Some(ContextValue::String(text)) if wanted(text));
    is(ContextKind::InvalidArg, |arg| arg.starts_with("--workload"))
        && is(ContextKind::InvalidValue, |value| value == "help")
}

/// The error with what is likely to help, where clap doesn't know: the program of `lab run` stands behind `--`.
fn with_hint(mut error: clap::Error) -> clap::Error {
    use clap::error::{ContextKind, ContextValue, ErrorKind};
    let mut words = words().filter(|word| !word.starts_with('-'));
    let runs = words.next().as_deref() == Some("lab") && words.next().as_deref() == Some("run");
    if runs && error.kind() == ErrorKind::UnknownArgument {
        let tip = "put -- before the program: windtunnel lab run PATH -- PROGRAM ARGUMENTS";
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}
