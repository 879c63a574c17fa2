//! `windtunnel watch`: the connections that pass a device, while they pass.

use super::analyse::CaptureArgs;
use crate::cli::forms::give;
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, say};
use clap::Args;
use std::time::Duration;
use wt_report::capture_text;
use wt_setup::watch::{WatchRequest, watch};
use wt_units::parse_duration;

/// Watches TCP connections on a device, and which end limits each
///
/// What `windtunnel analyse` says of a capture, of packets as they pass; nothing is written to disk, and nothing is sent.
/// Ctrl-C ends it and reports what was seen. Needs CAP_NET_RAW.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  sudo windtunnel watch eth0
  sudo windtunnel watch eth0 --filter 'tcp and host 192.0.2.1 and not port 22' --for 1min
  sudo windtunnel watch any --packets 10000 --json
Needs CAP_NET_RAW: sudo, or sudo setcap cap_net_raw+ep on the program.")]
pub(crate) struct WatchArgs {
    /// The device, as `ip link` names it; any is all of them
    device: String,
    #[command(flatten)]
    capture: CaptureArgs,
    /// Stop after this time [default: at Ctrl-C]
    #[arg(long = "for", value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// End after so many packets
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    packets: Option<u64>,
    /// One JSON object
    #[arg(long)]
    json: bool,
}

fn time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    if time.is_zero() { Err("must be longer than 0".to_owned()) } else { Ok(time) }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`](crate::edge::Problem) that says what to try.
pub(crate) fn run(args: &WatchArgs) -> Outcome {
    let cancel = cancel_on_signals()?;
    let request = WatchRequest {
        device: args.device.clone(),
        filter: args.capture.filter(),
        connections: args.capture.connections(args.json),
        time_s: args.time.map(|time| time.as_secs_f64()),
        packets: args.packets,
    };
    let mut begun = || {
        if !args.json {
            use std::io::Write as _;
            let text = format!("watching {}; Ctrl-C ends it and reports what was seen", args.device);
            let _ = writeln!(std::io::stderr().lock(), "{}", wt_units::harmless(&text));
        }
    };
    let answer = watch(&request, &mut begun, &cancel)?;
    give(&answer, args.json, |answer| say!("{}", capture_text(answer)))?;
    Ok(if answer.has_connections() { Exit::Done } else { Exit::No })
}
