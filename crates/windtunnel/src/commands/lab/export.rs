use crate::cli::forms::write_whole;
use crate::edge::{Exit, Outcome, Problem, emit};
use clap::{Args, ValueEnum};
use serde_json::json;
use std::path::PathBuf;
use wt_lab::{Emulator, ExportedPath};
use wt_setup::lab::load;

/// Writes a path as commands of another emulator; what that can't express is listed
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab export transatlantic --to netem
  windtunnel lab export lte --to mahimahi --dir lte")]
pub(super) struct ExportArgs {
    /// A preset's name or a TOML file
    path: String,
    /// The other emulator
    #[arg(long, value_enum)]
    to: Target,
    /// Where mahimahi's trace files go
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    dir: PathBuf,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Target {
    /// tc-netem(8), on a router with a device on each side
    Netem,
    /// mm-delay, mm-loss and mm-link
    Mahimahi,
}

/// Runs the command.
pub(super) fn export(args: &ExportArgs) -> Outcome {
    let scenario = load(&args.path)?;
    let emulator = match args.to {
        Target::Netem => Emulator::Netem,
        Target::Mahimahi => Emulator::Mahimahi,
    };
    let exported = ExportedPath::new(&scenario, emulator, &args.dir);
    for (name, text) in &exported.files {
        std::fs::create_dir_all(&args.dir)
            .map_err(|error| Problem::environment(format!("can't make {}: {error}", args.dir.display())))?;
        write_whole(&args.dir.join(name), text).map_err(|problem| problem.hint("name another folder"))?;
    }
    if args.json {
        emit!("{}", json!(exported.answer(&scenario, &args.dir)));
    } else {
        // A shell runs it: lines that were folded would be commands of their own.
        emit!("{}", exported.to_text());
    }
    Ok(Exit::Done)
}
