//! The command line as a whole: which commands there are, and what they share.

use crate::commands;
use crate::edge::Outcome;
use clap::{Parser, Subcommand};

/// Finds the TCP/IP settings that make a connection fastest, shows whether the difference is real, and applies them so
/// that they can be undone.
#[derive(Debug, Parser)]
#[command(name = "windtunnel", version, propagate_version = true, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    Tune(Box<commands::tune::TuneArgs>),
    Lab(commands::lab::LabArgs),
    Serve(commands::serve::ServeArgs),
    Report(commands::report::ReportArgs),
    Compare(commands::compare::CompareArgs),
    Journal(commands::journal::JournalArgs),
    Mtu(commands::mtu::MtuArgs),
    Page(commands::page::PageArgs),
    Path(commands::path::PathArgs),
    Trace(commands::trace::TraceArgs),
    FirstWindow(commands::first_window::FirstWindowArgs),
    Settings(commands::settings::SettingsArgs),
    Cdn(commands::cdn::CdnArgs),
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
    Web(commands::web::WebArgs),
}

impl Cli {
    /// Runs the command that was asked for.
    ///
    /// # Errors
    /// A [`Failure`](crate::edge::Failure) that says what to try.
    pub(crate) fn run(&self) -> Outcome {
        match &self.command {
            Command::Tune(args) => commands::tune::run(args),
            Command::Serve(args) => commands::serve::run(args),
            Command::Report(args) => commands::report::run(args),
            Command::Compare(args) => commands::compare::run(args),
            Command::Journal(args) => commands::journal::run(args),
            Command::Lab(args) => commands::lab::run(args),
            Command::Predict(args) => commands::predict::run(args),
            Command::Replay(args) => commands::replay::run(args),
            Command::Calibrate(args) => commands::calibrate::run(args),
            Command::Doctor(args) => commands::doctor::run(args),
            Command::Watch(args) => commands::watch::run(args),
            Command::Web(args) => commands::web::run(args),
            Command::Mtu(args) => commands::mtu::run(args),
            Command::Page(args) => commands::page::run(args),
            Command::Path(args) => commands::path::run(args),
            Command::Trace(args) => commands::trace::run(args),
            Command::FirstWindow(args) => commands::first_window::run(args),
            Command::Settings(args) => commands::settings::run(args),
            Command::Cdn(args) => commands::cdn::run(args),
            Command::Cc(args) => commands::cc::run(args),
            Command::Stacks(args) => commands::stacks::run(args),
            Command::Overhead(args) => commands::overhead::run(args),
            Command::Analyse(args) => commands::analyse::run(args),
            Command::SelfTest(args) => commands::self_test::run(args),
        }
    }
}
