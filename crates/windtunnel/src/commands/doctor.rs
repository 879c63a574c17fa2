//! `windtunnel doctor`: what works on this machine, and why not.

use crate::cli::forms::give;
use crate::edge::{Exit, Outcome, Problem, emit, say};
use wt_setup::doctor::{Check, DoctorAnswer, apparmor_profile, examine};

/// Reports what works on this machine, and why something doesn't
///
/// Tries things rather than looking them up: it takes a second or two, and leaves nothing behind.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel doctor
  windtunnel doctor --json")]
pub(crate) struct DoctorArgs {
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Prints an AppArmor profile that lets this program make user namespaces, and how to install it
    #[arg(long, conflicts_with = "json")]
    apparmor_profile: bool,
}

/// Runs the command.
///
/// # Errors
/// An environment [`Problem`] if the profile was asked for and this program's path is unknown; what doesn't work is the
/// answer.
pub(crate) fn run(args: &DoctorArgs) -> Outcome {
    if args.apparmor_profile {
        let program = std::env::current_exe().ok().and_then(|path| path.to_str().map(str::to_owned));
        let program = program.ok_or_else(|| Problem::environment("this program's own path can't be told"))?;
        emit!("{}", apparmor_profile(&program));
        return Ok(Exit::Done);
    }
    let answer = examine();
    give(&answer, args.json, show)?;
    Ok(if answer.works { Exit::Done } else { Exit::No })
}

fn show(answer: &DoctorAnswer) {
    for check in &answer.checks {
        say!("{} {:<26} {}", mark(check), check.name, check.found);
        if let (false, Some(advice)) = (check.ok, check.advice) {
            say!("     {:<26} {advice}", "");
        }
    }
    say!("\n{}", if answer.works { "The lab works here." } else { "The lab does not work here; see FAIL above." });
}

const fn mark(check: &Check) -> &'static str {
    match (check.ok, check.needed) {
        (true, _) => "ok  ",
        (false, true) => "FAIL",
        (false, false) => "-   ",
    }
}
