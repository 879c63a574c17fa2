//! `windtunnel stacks`: TCP/IP stacks side by side.

/// Rounds over stacks, windows and workloads.
pub(crate) mod compare;
/// Which there are.
mod list;
/// Programs through one.
mod run;

use crate::edge::Outcome;
use clap::{Args, Subcommand};

/// Compares TCP/IP stacks on one path, with the same workloads
///
/// Each stack runs behind a small program, its adapter, in the client of a lab. Path, server, workloads, clocks and the check of
/// every byte are the same for all.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel stacks list
  windtunnel stacks compare --lab ethernet-hub --stacks linux,smoltcp --workloads transactions,bursts,download-12mb
  windtunnel stacks compare --stacks smoltcp --rwin 8KiB,20KiB --workloads download-12mb --html stacks.html")]
pub(crate) struct StacksArgs {
    #[command(subcommand)]
    command: StacksCommand,
}

#[derive(Debug, Subcommand)]
enum StacksCommand {
    List(list::ListArgs),
    Compare(Box<compare::CompareArgs>),
    Run(run::RunArgs),
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &StacksArgs) -> Outcome {
    match &args.command {
        StacksCommand::List(args) => list::run(args),
        StacksCommand::Compare(args) => compare::run(args),
        StacksCommand::Run(args) => run::run(args),
    }
}
