use crate::cli::forms::{self, REPORT, write_measured};
use crate::cli::signals::cancel_on_signals;
use crate::cli::values::{DirectionName, trial_time};
use crate::commands::comparison::{ComparisonArgs, ends, progress};
use crate::edge::{Outcome, Problem, say, say_table};
use clap::Args;
use std::path::Path;
use std::time::Duration;
use wt_compare::stacks::{self, StacksAnswer, StacksRequest};
use wt_setup::WorkloadRequest;
use wt_units::{Bytes, counted};

/// Compares TCP/IP stacks on an emulated path
///
/// Every round runs each stack once with each workload, in random order. Soaks are run once: they are judged by how they go on, not
/// by how fast they are. What a stack does wrong is told, and never ends the comparison.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel stacks compare --lab ethernet-hub --stacks linux,smoltcp --workloads transactions,bursts,download-12mb
  windtunnel stacks compare --stacks linux,smoltcp,windows-95 --rwin 8KiB,20KiB --workloads transactions
  windtunnel stacks compare --stacks smoltcp:cc=reno,smoltcp:cc=cubic --workloads bulk --direction up,both
  windtunnel stacks compare --stacks smoltcp:late-acks=6s --workloads soak --soak 40s")]
pub(super) struct CompareArgs {
    /// The path: a preset's name or a TOML file
    #[arg(long, value_name = "PATH", default_value = "ethernet-hub")]
    lab: String,
    /// Which: names of windtunnel stacks list, each with settings of its own: smoltcp:rwin=8KiB:cc=reno
    #[arg(long, value_delimiter = ',', default_value = "linux,smoltcp")]
    stacks: Vec<String>,
    /// What they do: names of windtunnel tune --workload help, with their parameters
    #[arg(long, default_value = "transactions,bursts,download-12mb,page,soak")]
    workloads: String,
    /// Which way bulk transfers, soaks and streams go; several run each of them each way
    #[arg(long, value_enum, value_delimiter = ',', default_value = "down")]
    direction: Vec<DirectionName>,
    /// Run each stack with each of these receive windows
    #[arg(long, value_delimiter = ',', value_name = "BYTES")]
    rwin: Vec<Bytes>,
    /// Rounds [default: two more than a ranking needs at least]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=1000))]
    rounds: Option<u32>,
    /// How long a soak takes
    #[arg(long, value_name = "TIME", default_value = "5min", value_parser = trial_time)]
    soak: Duration,
    /// Give a trial up after this time [default: 30 s and twenty times what it takes on the idle path]
    #[arg(long, value_name = "TIME", value_parser = trial_time)]
    give_up: Option<Duration>,
    /// Don't ask by packet scripts what each stack can do
    #[arg(long)]
    no_conformance: bool,
    #[command(flatten)]
    common: ComparisonArgs,
}

impl CompareArgs {
    /// What is asked for.
    fn request(&self) -> Result<StacksRequest, Problem> {
        Ok(StacksRequest {
            lab: self.common.lab(&self.lab),
            stacks: self.stacks.clone(),
            workloads: workloads(&self.workloads)?,
            directions: self.direction.iter().map(|direction| (*direction).into()).collect(),
            rwin: self.rwin.clone(),
            rounds: self.rounds,
            soak: Some(self.soak),
            give_up: self.give_up,
            no_conformance: self.no_conformance,
        })
    }
}

/// The workloads that are named; a parameter after a comma belongs to the one before it.
fn workloads(text: &str) -> Result<Vec<WorkloadRequest>, Problem> {
    let mut names: Vec<String> = Vec::new();
    for piece in text.split(',').map(str::trim).filter(|piece| !piece.is_empty()) {
        match names.last_mut() {
            Some(last) if piece.contains('=') && !piece.contains(':') => *last = format!("{last},{piece}"),
            _ => names.push(piece.to_owned()),
        }
    }
    names.iter().map(|name| name.parse().map_err(Problem::usage)).collect()
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(super) fn run(args: &CompareArgs) -> Outcome {
    args.common.units.choose();
    let request = args.request()?;
    let cancel = cancel_on_signals()?;
    let answer = stacks::run(&request, &cancel, &mut progress(args.common.quiet))?;
    give(&answer, args.common.html.as_deref(), args.common.json)
}

/// Prints the answer, writes the page that was asked for, and says with the exit code whether a difference is shown.
///
/// # Errors
/// A [`Problem`] that names the file.
pub(crate) fn give(answer: &StacksAnswer, html: Option<&Path>, json: bool) -> Outcome {
    forms::give(answer, json, |answer| {
        print(answer);
        say!("In the journal: {}", answer.id);
    })?;
    // Last, so that a file that can't be written costs nothing.
    if let Some(file) = html {
        write_measured(file, &answer.html(), REPORT)?;
    }
    Ok(ends(answer.is_no()))
}

fn print(answer: &StacksAnswer) {
    let medians = if answer.rounds > 1 { "; medians" } else { "" };
    say!("{}: {}{medians}\n", answer.lab, counted(answer.rounds, "round"));
    say_table(&answer.table, &(1..answer.table.first().map_or(0, Vec::len)).collect::<Vec<_>>());
    say!("");
    answer.sentences.iter().for_each(|sentence| say!("{sentence}"));
    for (workload, ratio) in answer.adapter_overhead.iter().flatten() {
        let percent = (ratio - 1.0) * 100.0;
        say!("{workload}: behind the adapter's path the kernel makes {percent:+.1} % of itself.");
    }
}

#[cfg(test)]
mod tests {
    use super::workloads;

    #[test]
    fn parameters_behind_a_comma_belong_to_the_workload_before_it() {
        let texts = |text: &str| -> Vec<String> { workloads(text).unwrap().iter().map(ToString::to_string).collect() };
        assert_eq!(texts("page:size=10kB,connections=2, soak"), ["page:size=10kB,connections=2", "soak"]);
        assert!(texts(",").is_empty() && workloads("sok").is_err());
    }
}
