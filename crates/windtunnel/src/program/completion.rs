//! What the Tab key offers, in bash, zsh and fish: the shell asks this program, with `COMPLETE=SHELL` in its environment.

use clap::{Arg, Command};
use clap_complete::CompletionCandidate;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, PathCompleter, ValueCompleter as _};
use std::ffi::OsStr;
use wt_setup::journal::ListRequest;

/// Experiments that are offered, the newest.
const EXPERIMENTS: usize = 50;

/// The command with candidates for the values that this program knows: paths, experiments, settings, workloads.
pub(super) fn with_candidates(command: Command) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = command.mut_args(offering);
    names.into_iter().fold(command, |command, name| command.mut_subcommand(name, with_candidates))
}

fn offering(arg: Arg) -> Arg {
    match arg.get_id().as_str() {
        "lab" | "path" if arg.get_action().takes_values() => arg.add(ArgValueCompleter::new(scenarios)),
        "experiment" | "resume" | "verdict" => arg.add(ArgValueCandidates::new(experiments)),
        "knobs" => arg.add(ArgValueCandidates::new(|| knobs(CompletionCandidate::new))),
        "levels" | "hold" => arg.add(ArgValueCandidates::new(|| knobs(assigned))),
        "items" => arg.add(ArgValueCompleter::new(changes)),
        "workload" => arg.add(ArgValueCandidates::new(workloads)),
        _ => arg,
    }
}

fn knobs(candidate: fn(&'static str) -> CompletionCandidate) -> Vec<CompletionCandidate> {
    wt_units::Knob::names().into_iter().map(candidate).collect()
}

/// `name=`, to which a value is written.
fn assigned(name: &str) -> CompletionCandidate {
    CompletionCandidate::new(format!("{name}="))
}

/// Presets by name, and files.
fn scenarios(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let presets = wt_lab::presets::names().into_iter().filter(|name| name.starts_with(&*typed));
    presets.map(CompletionCandidate::new).chain(PathCompleter::file().complete(current)).collect()
}

/// Settings of the host, and files with plans.
fn changes(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let names = wt_host::KNOBS.iter().map(|knob| knob.name).filter(|name| name.starts_with(&*typed));
    names.map(assigned).chain(PathCompleter::file().complete(current)).collect()
}

/// Experiments of the usual journal; none where it can't be read.
fn experiments() -> Vec<CompletionCandidate> {
    let request = ListRequest { limit: Some(EXPERIMENTS), ..ListRequest::default() };
    let known = wt_setup::journal::list(&request).map(|answer| answer.experiments).unwrap_or_default();
    let ids = known.into_iter().map(|experiment| CompletionCandidate::new(experiment.id.to_string()));
    [CompletionCandidate::new("last")].into_iter().chain(ids).collect()
}

fn workloads() -> Vec<CompletionCandidate> {
    wt_setup::workload::names().map(CompletionCandidate::new).collect()
}
