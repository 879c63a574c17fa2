use crate::cli::forms::write_whole;
use crate::edge::{Exit, Outcome, emit, say};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;
use wt_lab::{ImportRequest, import_mahimahi};
use wt_units::parse_duration;

/// Makes a scenario of mahimahi's traces of delivery opportunities
///
/// A trace has a line for each opportunity to send 1504 bytes: its time in milliseconds. At its end it begins anew.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab import --down Verizon-LTE-short.down --up Verizon-LTE-short.up --delay 20ms -o verizon.toml
  windtunnel lab run ./verizon.toml -- curl -o /dev/null http://server/bytes/3MB")]
pub(super) struct ImportArgs {
    /// Trace towards the client
    #[arg(long, value_name = "FILE")]
    down: PathBuf,
    /// Trace towards the server
    #[arg(long, value_name = "FILE")]
    up: PathBuf,
    /// Propagation, one way, as mm-delay has it
    #[arg(long, default_value = "20ms", value_parser = parse_duration)]
    delay: Duration,
    /// Bound of each queue, in packets
    #[arg(long, default_value_t = 1000, value_name = "PACKETS", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    queue: u32,
    /// The file to write; without it the scenario is printed
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn import(args: &ImportArgs) -> Outcome {
    let request = ImportRequest {
        down: args.down.clone(),
        up: args.up.clone(),
        delay: args.delay,
        queue_packets: args.queue,
        output: args.output.clone(),
    };
    let made = import_mahimahi(&request).map_err(|error| wt_setup::lab::import_problem(&error))?;
    match &args.output {
        None => emit!("{}", made.text.trim_end()),
        Some(file) => {
            write_whole(file, &made.text)?;
            say!("{}: {} and {} opportunities", file.display(), made.down, made.up);
        }
    }
    Ok(Exit::Done)
}
