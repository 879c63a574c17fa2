//! `windtunnel schedule`: a timer that measures again.

use crate::cli::forms::{give, write_whole};
use crate::edge::{Exit, Outcome, emit, say};
use clap::Args;
use std::path::PathBuf;
use wt_setup::schedule::{ScheduleAnswer, ScheduleRequest, TimeWindow, Weekday};
use wt_setup::settings::HostAccess;

/// Prints a systemd timer that measures a change again
///
/// At a random time of each window the service runs `settings prove`, which takes the change out of the kernel and puts it back
/// in random order, and `settings check`. It fails when the gain isn't shown any more, when a setting has drifted, or when the
/// path, kernel or device is another one: `systemctl --failed`, --on-failure and the metrics say so. No program stays running.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo windtunnel schedule --url https://192.0.2.80/file.iso
  sudo windtunnel schedule --between 22:00-06:00 --days Mon,Thu --to /etc/systemd/system
  windtunnel schedule --change 3 --by 'scp server:big.bin /dev/null'")]
pub(crate) struct ScheduleArgs {
    /// The change [default: the latest in force]
    #[arg(long, value_name = "ID")]
    change: Option<String>,
    /// Fetch this with curl [default: what the experiment behind the change fetched]
    #[arg(long, value_name = "URL", conflicts_with = "by")]
    url: Option<String>,
    /// Run this command in a shell; its time counts
    #[arg(long, value_name = "CMD")]
    by: Option<String>,
    /// Within these hours
    #[arg(long, value_name = "HH:MM-HH:MM", default_value_t = TimeWindow::default())]
    between: TimeWindow,
    /// On these days: Mon,Thu [default: every day]
    #[arg(long, value_name = "DAYS", value_delimiter = ',')]
    days: Vec<Weekday>,
    /// Rounds at most, of two runs each
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u16).range(7..=1000))]
    rounds: u16,
    /// The journal [default: root's]
    #[arg(long, value_name = "FILE")]
    journal: Option<PathBuf>,
    /// Also bring this file for Prometheus up to date: `windtunnel metrics`
    #[arg(long, value_name = "FILE")]
    textfile: Option<PathBuf>,
    /// Start this unit when the service fails
    #[arg(long, value_name = "UNIT")]
    on_failure: Option<String>,
    /// Write the two files there instead of printing them
    #[arg(long, value_name = "FOLDER", conflicts_with = "json")]
    to: Option<PathBuf>,
    /// Where changes of settings are kept [default: as `windtunnel settings` has it]
    #[arg(long, value_name = "FOLDER")]
    state_dir: Option<PathBuf>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &ScheduleArgs) -> Outcome {
    let request = ScheduleRequest {
        change: args.change.clone(),
        url: args.url.clone(),
        by: args.by.clone(),
        between: args.between,
        days: args.days.clone(),
        rounds: args.rounds,
        journal: args.journal.clone(),
        state_dir: args.state_dir.clone(),
        textfile: args.textfile.clone(),
        only_in_force: true,
        on_failure: args.on_failure.clone(),
        program: None,
    };
    let answer = HostAccess::open(args.state_dir.as_deref(), None)?.schedule(&request)?;
    let timer = answer.units.last().map_or("", |unit| unit.name.as_str());
    let Some(folder) = &args.to else { return give(&answer, args.json, print) };
    for unit in &answer.units {
        write_whole(&folder.join(&unit.name), &unit.content)?;
        say!("wrote {}", folder.join(&unit.name).display());
    }
    say!("To start it: sudo systemctl daemon-reload && sudo systemctl enable --now {timer}");
    Ok(Exit::Done)
}

fn print(answer: &ScheduleAnswer) {
    for unit in &answer.units {
        emit!("### /etc/systemd/system/{}\n{}", unit.name, unit.content);
    }
}
