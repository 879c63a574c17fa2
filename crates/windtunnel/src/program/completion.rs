//! What the Tab key offers, in bash, zsh and fish: the shell asks this program, with `COMPLETE=SHELL` in its environment.

use clap::{Arg, Command};
use clap_complete::CompletionCandidate;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, PathCompleter, ValueCompleter as _};
use std::ffi::OsStr;
use wt_host::Kind;
use wt_setup::journal::ListRequest;
use wt_setup::settings::HostAccess;
use wt_units::Knob;

/// Experiments that are offered, the newest.
const EXPERIMENTS: usize = 50;

/// Experiments that `report` tells, that compare settings, and that recommend some, by their kinds.
const REPORTED: &[&str] = &["tune", "screen", "cc", "stacks", "traffic", "proof"];
const COMPARED: &[&str] = &["tune"];
const RECOMMENDING: &[&str] = &["tune", "screen", "traffic"];
const ON_TRAFFIC: &[&str] = &["traffic"];

/// The command with candidates for the values that this program knows: paths, experiments, settings, workloads …
pub(super) fn with_candidates(command: Command) -> Command {
    below(command, "")
}

/// The same of the command that is called `name` behind the program's.
fn below(command: Command, name: &str) -> Command {
    let names: Vec<String> = command.get_subcommands().map(|command| command.get_name().to_owned()).collect();
    let command = command.mut_args(|arg| offering(name, arg));
    names.into_iter().fold(command, |command, below_it| {
        let name = format!("{name} {below_it}");
        command.mut_subcommand(below_it, |command| below(command, name.trim_start()))
    })
}

fn offering(command: &str, arg: Arg) -> Arg {
    let candidates = |arg: Arg, all: fn() -> Vec<CompletionCandidate>| arg.add(ArgValueCandidates::new(all));
    let completer = |arg: Arg, found: fn(&OsStr) -> Vec<CompletionCandidate>| arg.add(ArgValueCompleter::new(found));
    match (command, arg.get_id().as_str()) {
        (_, "lab" | "path") if arg.get_action().takes_values() => completer(arg, scenarios),
        ("report", "experiment") => candidates(arg, || experiments(REPORTED)),
        ("compare", "experiments") | (_, "resume") => candidates(arg, || experiments(COMPARED)),
        ("traffic report" | "traffic stop", "experiment") | ("traffic combine", "experiments") | (_, "holdback") => {
            candidates(arg, || experiments(ON_TRAFFIC))
        }
        (_, "verdict") => candidates(arg, || experiments(RECOMMENDING)),
        (_, "experiment") => candidates(arg, || experiments(&[])),
        (_, "knobs") => candidates(arg, || Knob::names().into_iter().map(CompletionCandidate::new).collect()),
        (_, "levels" | "hold") => completer(arg, levels),
        ("tune", "baseline") => completer(arg, baseline),
        ("predict" | "lab transfer", "set") => completer(arg, several_levels),
        (_, "items") => completer(arg, changes),
        (_, "workload") => candidates(arg, || wt_setup::workload::names().map(CompletionCandidate::new).collect()),
        ("cc load", "name") => candidates(arg, || of_texts(own_controls())),
        ("cc unload", "name") => candidates(arg, loaded_controls),
        ("cc show", "name") | ("cc compare", "algorithms") | (_, "cc") => candidates(arg, || of_texts(controls())),
        ("stacks run", "stack") | ("stacks compare", "stacks") => candidates(arg, stacks),
        (_, "encap") => completer(arg, framings),
        ("settings confirm", "id") => candidates(arg, || changes_made(true)),
        (_, "id") if command.starts_with("settings ") => candidates(arg, || changes_made(false)),
        ("schedule", "change") => candidates(arg, || changes_made(false)),
        _ => arg,
    }
}

fn of_texts(texts: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    texts.into_iter().map(CompletionCandidate::new).collect()
}

/// Those of the texts that go on what is typed behind the last of the separators.
fn going_on(typed: &str, separators: &[char], texts: impl IntoIterator<Item = String>) -> Vec<CompletionCandidate> {
    let (before, begun) = typed.split_at(typed.rfind(separators).map_or(0, |at| at + 1));
    let fitting = texts.into_iter().filter(|text| text.starts_with(begun));
    of_texts(fitting.map(|text| format!("{before}{text}")))
}

/// Presets by name, and files.
fn scenarios(current: &OsStr) -> Vec<CompletionCandidate> {
    let presets = wt_lab::presets::names().into_iter().map(str::to_owned);
    going_on(&current.to_string_lossy(), &[], presets)
        .into_iter()
        .chain(PathCompleter::file().complete(current))
        .collect()
}

/// A knob with its levels: `cc=`, and behind that what there is.
fn levels(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    match typed.split_once('=') {
        Some((knob, _)) => going_on(&typed, &['=', ','], levels_of(knob)),
        None => going_on(&typed, &[], knobs()),
    }
}

/// Levels of several knobs, with commas between them: `cc=bbr,sack=`.
fn several_levels(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let last = typed.rsplit(',').next().unwrap_or_default();
    match last.split_once('=') {
        Some((knob, _)) => going_on(&typed, &['='], levels_of(knob)),
        None => going_on(&typed, &[','], knobs()),
    }
}

/// The same, or the name of a system.
fn baseline(current: &OsStr) -> Vec<CompletionCandidate> {
    let systems = going_on(&current.to_string_lossy(), &[], wt_setup::systems());
    systems.into_iter().chain(several_levels(current)).collect()
}

/// `name=`, to which a level is written.
fn knobs() -> impl Iterator<Item = String> {
    Knob::names().into_iter().map(|name| format!("{name}="))
}

fn levels_of(knob: &str) -> Vec<String> {
    match knob.parse::<Knob>() {
        Ok(Knob::Cc) => controls(),
        Ok(knob) if knob.parse_level("on").is_ok() => ["on", "off"].map(str::to_owned).into(),
        _ => Vec::new(),
    }
}

/// Settings of the host with their values, and files with plans.
fn changes(current: &OsStr) -> Vec<CompletionCandidate> {
    let typed = current.to_string_lossy();
    let Some((name, _)) = typed.split_once('=') else {
        let names = wt_host::KNOBS.iter().map(|knob| format!("{}=", knob.name));
        return going_on(&typed, &[], names).into_iter().chain(PathCompleter::file().complete(current)).collect();
    };
    let values = match wt_host::Knob::find(name).map(|knob| (knob.name, knob.kind)) {
        Ok(("cc", _)) => controls(),
        Ok((_, Kind::Choice(words))) => words.iter().map(|(word, _)| (*word).to_owned()).collect(),
        _ => Vec::new(),
    };
    going_on(&typed, &['='], values)
}

/// Experiments of the usual journal that are of one of these kinds, or of any; none where it can't be read.
fn experiments(kinds: &[&str]) -> Vec<CompletionCandidate> {
    let of = |kind: Option<&str>| {
        let kind = kind.map(str::to_owned);
        let request = ListRequest { limit: Some(EXPERIMENTS), kind, ..ListRequest::default() };
        wt_setup::journal::list(&request).map(|answer| answer.experiments).unwrap_or_default()
    };
    let mut known = if kinds.is_empty() { of(None) } else { kinds.iter().flat_map(|kind| of(Some(kind))).collect() };
    known.sort_by_key(|experiment| std::cmp::Reverse(experiment.started_unix_us));
    let ids = known.into_iter().take(EXPERIMENTS).map(|experiment| experiment.id);
    of_texts(std::iter::once("last".to_owned()).chain(ids))
}

/// Congestion controls of ours, each also with its variants.
fn own_controls() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for own in wt_setup::controls::list().ours {
        names.extend([own.name.to_owned(), format!("{}@{}", own.name, own.variant)]);
    }
    names.sort();
    names.dedup();
    names
}

/// Congestion controls of this kernel, and ours.
fn controls() -> Vec<String> {
    let mut names = wt_setup::controls::available();
    names.extend(own_controls());
    names.sort();
    names.dedup();
    names
}

fn loaded_controls() -> Vec<CompletionCandidate> {
    let ours = wt_setup::controls::list().ours;
    of_texts(ours.into_iter().filter(|own| own.loaded || own.pinned).map(|own| own.kernel_name))
}

/// TCP/IP stacks, and old ones for which one of them stands in.
fn stacks() -> Vec<CompletionCandidate> {
    let known = wt_compare::stacks::list();
    let names = known.stacks.iter().map(|stack| stack.name).chain(known.profiles.iter().map(|profile| profile.name));
    names.map(CompletionCandidate::new).collect()
}

/// Words of a framing, with `+` between them; those with a number of one's own aren't words yet.
fn framings(current: &OsStr) -> Vec<CompletionCandidate> {
    let words = wt_wire::overhead_words().words.into_iter().map(|word| word.name);
    let words = words.filter(|word| !word.contains('N')).map(str::to_owned);
    going_on(&current.to_string_lossy(), &['+'], words)
}

/// Changes of this host in force, or only those that wait; each with what it makes, where the shell shows that.
fn changes_made(only_waiting: bool) -> Vec<CompletionCandidate> {
    let standing = HostAccess::open(None, None).map(|mut host| host.standing()).unwrap_or_default();
    let wanted = standing.into_iter().filter(|row| !only_waiting || row.phase == Some(wt_host::Phase::Applied.name()));
    wanted.map(|row| CompletionCandidate::new(row.id.to_string()).help(Some(row.changes.join(", ").into()))).collect()
}
