use super::figures::is_soak;
use super::request::StacksRequest;
use crate::request::check_different;
use crate::rounds::key;
use std::time::Duration;
use wt_problem::Problem;
use wt_setup::{Controls, WorkloadRequest};
use wt_stacks::{Availability, Choice, ChoiceError};
use wt_trial::bulk::PathNow;
use wt_trial::{Direction, Workload};
use wt_tune::TrialDirection;

/// Transactions of a trial are as many as fit into this time on an idle path, within bounds.
const TALK: Duration = Duration::from_secs(3);
/// Where to look for what can be chosen.
const LIST: &str = "windtunnel stacks list shows what there is";
/// How long a soak takes if nobody says it.
const SOAK: Duration = Duration::from_secs(300);

/// Each stack with each window.
///
/// # Errors
/// A usage [`Problem`] that says what there is.
pub(super) fn choices(request: &StacksRequest) -> Result<Vec<Choice>, Problem> {
    let mut all: Vec<Choice> = Vec::new();
    for text in &request.stacks {
        let choice: Choice = text.parse().map_err(|error: ChoiceError| Problem::usage(error.to_string()).hint(LIST))?;
        if request.rwin.is_empty() {
            all.push(choice.clone());
        }
        if choice.names_window && !request.rwin.is_empty() {
            return Err(Problem::usage(format!("{text} names a window, and so does --rwin"))
                .hint(format!("leave --rwin out, or write {}", choice.stack.name)));
        }
        if let Some(profile) = choice.profile.filter(|profile| profile.has_fixed_window())
            && (choice.names_window || !request.rwin.is_empty())
        {
            return Err(Problem::usage(format!(
                "{}'s window can't be set: its was 8 KB, whatever one wanted",
                profile.title
            ))
            .hint("leave its window out; windtunnel stacks list says what is known of each and from where"));
        }
        for bytes in &request.rwin {
            let window = u32::try_from(bytes.get()).ok().filter(|bytes| (256..=1 << 30).contains(bytes));
            let window = window.ok_or_else(|| Problem::usage(format!("--rwin {bytes}: allowed is 256B to 1GiB")))?;
            all.push(choice.with_window(window));
        }
    }
    check_different(&all.iter().map(Choice::title).collect::<Vec<_>>())?;
    if all.len() > 64 {
        return Err(Problem::usage("more than 64 stacks and windows at once"));
    }
    Ok(all)
}

/// Whether all can be run here.
///
/// # Errors
/// A [`Problem`] that says what to install, or which setting there isn't.
pub(super) fn check(choices: &[Choice]) -> Result<(), Problem> {
    for choice in choices {
        if let Availability::No(how) = choice.stack.built() {
            return Err(not_built(choice.stack.name, how));
        }
        choice.check().map_err(|error| Problem::usage(error.to_string()).hint(LIST))?;
    }
    Ok(())
}

/// What to say where an adapter isn't built.
pub(super) fn not_built(name: &str, how: &str) -> Problem {
    Problem::environment(format!("the adapter of {name} isn't built")).hint(how.to_owned())
}

/// Loads those congestion controls of ours that this machine's kernel shall use, and writes down what it calls them.
///
/// # Errors
/// A [`Problem`] that says what is missing.
pub(super) fn controls(choices: &mut [Choice]) -> Result<Controls, Problem> {
    let on_this_kernel = |choice: &&mut Choice| ["linux", wt_stacks::catalogue::DIRECT].contains(&choice.stack.name);
    let names = |choices: &mut [Choice]| -> Vec<String> {
        choices.iter_mut().filter(on_this_kernel).filter_map(|choice| choice.options.get("cc").cloned()).collect()
    };
    let loaded = Controls::load(names(choices).iter().map(String::as_str))?;
    for choice in choices.iter_mut().filter(on_this_kernel) {
        if let Some(name) = choice.options.get_mut("cc") {
            *name = loaded.kernel_name(name)?;
        }
    }
    Ok(loaded)
}

/// The workloads that are named, each way that is asked for.
///
/// # Errors
/// A usage [`Problem`] that says what can't be compared.
pub(super) fn workloads(request: &StacksRequest, path: PathNow) -> Result<Vec<Workload>, Problem> {
    let rtt = Duration::from_micros(path.base_rtt_us).max(Duration::from_millis(1));
    let count = (TALK.as_micros() / rtt.as_micros()).clamp(20, 500);
    let mut all: Vec<Workload> = Vec::new();
    for wanted in &request.workloads {
        let wanted = counted(wanted, count)?;
        let is_plain_soak = wanted.to_string() == "soak";
        let time = if is_plain_soak { request.soak.unwrap_or(SOAK) } else { SOAK / 30 };
        for workload in each_way(&wanted, &request.directions, time)? {
            if matches!(workload, Workload::Competing { .. } | Workload::Load { .. }) {
                return Err(Problem::usage(format!("{} isn't compared between stacks", workload.name()))
                    .hint("transactions, bursts, bulk, download-12mb, stream, page, soak"));
            }
            if all.iter().any(|other| key(other) == key(&workload)) {
                return Err(Problem::usage(format!("the workload {} is named twice", key(&workload))));
            }
            all.push(workload);
        }
    }
    Ok(all)
}

/// Transactions so many rather than so long: the same bytes for every stack.
fn counted(wanted: &WorkloadRequest, count: u128) -> Result<WorkloadRequest, Problem> {
    let text = wanted.to_string();
    let text = match text.split_once(':') {
        None if text == "transactions" => format!("{text}:count={count}"),
        Some(("transactions", rest)) if !rest.contains("count=") => format!("{text},count={count}"),
        _ => return Ok(wanted.clone()),
    };
    text.parse().map_err(Problem::usage)
}

/// A workload in each direction; what has none is the same each time.
fn each_way(wanted: &WorkloadRequest, ways: &[TrialDirection], time: Duration) -> Result<Vec<Workload>, Problem> {
    let (down, up) = (wanted.workload(Direction::Down, time), wanted.workload(Direction::Up, time));
    let bulk = matches!(down, Workload::Bulk { .. });
    let mut each_way = Vec::new();
    for way in ways {
        let workload = match way {
            TrialDirection::Down => down.clone(),
            TrialDirection::Up => up.clone(),
            TrialDirection::Both if down == up => down.clone(),
            // Beside other ways, what can't go both ways at once goes those.
            TrialDirection::Both if !bulk && ways.len() > 1 => continue,
            TrialDirection::Both => wanted.both(time).map_err(Problem::usage)?,
        };
        if !each_way.contains(&workload) {
            each_way.push(workload);
        }
    }
    Ok(each_way)
}

/// How many of the workloads are ranked: soaks aren't.
pub(super) fn ranked(workloads: &[Workload]) -> usize {
    workloads.iter().filter(|workload| !is_soak(workload)).count()
}
