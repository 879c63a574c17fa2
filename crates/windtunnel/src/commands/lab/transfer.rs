//! `windtunnel lab transfer`: one transfer by our own client, from within a lab.

use crate::cli::forms::give;
use crate::cli::signals::cancel_on_signals;
use crate::cli::values::{Way, trial_time};
use crate::commands::samples::stream;
use crate::edge::{Exit, Outcome, say};
use clap::Args;
use std::time::Duration;
use wt_setup::lab::{TransferAnswer, TransferRequest};
use wt_units::{Assignment, Bytes, format_duration};

/// Moves payload between the client and the server, from within a lab (`lab run`, `lab up`)
///
/// It is one trial's transfer, by the same client and server, checked byte by byte: to look at what TCP does on a path.
/// Settings of routes and of the host (mtu, initcwnd, …) can be set in the lab by its own means before.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab run adsl -- windtunnel lab transfer --size 2MB
  windtunnel lab run transatlantic -- windtunnel lab transfer --trial 10s --set cc=bbr --json")]
pub(super) struct TransferArgs {
    #[command(flatten)]
    way: Way,
    /// So many bytes of payload
    #[arg(long, value_name = "SIZE", conflicts_with = "trial")]
    size: Option<Bytes>,
    /// As much as goes in so long [default: 5s]
    #[arg(long, alias = "time", value_name = "TIME", value_parser = trial_time)]
    trial: Option<Duration>,
    /// What the connection is set to: rwin, mss, ttl, cc, sndbuf
    #[arg(long, value_name = "KNOB=LEVEL,…", value_delimiter = ',')]
    set: Vec<Assignment>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// A line of JSON for samples as they are taken, the result last
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(super) fn transfer(args: &TransferArgs) -> Outcome {
    let direction = args.way.direction();
    let request = TransferRequest { direction, size: args.size, time: args.trial, set: args.set.clone() };
    let cancel = cancel_on_signals()?;
    if args.json_stream {
        stream();
    }
    let answer = wt_setup::lab::transfer(&request, &cancel)?;
    give(&answer, args.json || args.json_stream, print)?;
    answer.problem.map_or(Ok(Exit::Done), Err)
}

fn print(answer: &TransferAnswer) {
    let time = |us| format_duration(Duration::from_micros(us));
    let (bytes, rate) = (Bytes(answer.bytes), answer.goodput_bps / 1e6);
    say!("{bytes} in {}: {rate:.3} Mbit/s, {}", time(answer.elapsed_us), answer.finish);
    say!("connected in {}", time(answer.connect_us));
    answer.notes.iter().for_each(|note| say!("{note}"));
    answer.refused.iter().for_each(|refused| say!("refused: {refused}"));
}
