//! `windtunnel watch`: the connections that pass a device, while they pass.

use super::analyse::CaptureArgs;
use crate::cli::signals::cancel_on_signals;
use crate::edge::{Exit, Outcome, Problem, say};
use clap::Args;
use serde_json::json;
use std::collections::HashMap;
use std::time::Duration;
use wt_flow::CaptureAnswer;
use wt_report::capture_text;
use wt_sys::clock::monotonic_ns;
use wt_sys::watch::{Watch, device_name};
use wt_units::parse_duration;

/// Watches TCP connections on a device, and which end limits each
///
/// What `windtunnel analyse` says of a capture, of packets as they pass; nothing is written to disk, and nothing is sent.
/// Ctrl-C ends it and tells what was seen. Needs CAP_NET_RAW.
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

/// How long to wait at most before Ctrl-C is looked for.
const TICK: Duration = Duration::from_millis(100);

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &WatchArgs) -> Outcome {
    let cancel = cancel_on_signals()?;
    let mut watch = Watch::open(&args.device).map_err(|error| refused(&args.device, &error))?;
    if !args.json {
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr().lock(), "watching {}; Ctrl-C ends it and tells what was seen", args.device);
    }
    let mut tracker = args.capture.request(args.json)?.tracker();
    let mut places: HashMap<i32, usize> = HashMap::new();
    let mut devices = Vec::new();
    let begun = monotonic_ns();
    let mut broken = None;
    loop {
        let passed = Duration::from_nanos(monotonic_ns().saturating_sub(begun));
        let left = args.time.map_or(TICK, |time| time.saturating_sub(passed));
        if args.packets.is_some_and(|most| tracker.packets() >= most) {
            break;
        }
        // What came before the end is looked at, too.
        let over = cancel.is_cancelled() || left.is_zero();
        let mut seen = 0u32;
        let mut see = |packet: &wt_sys::watch::Watched<'_>| {
            let place = *places.entry(packet.device).or_insert_with(|| {
                devices.push(packet.device);
                devices.len() - 1
            });
            match wt_wire::ip_behind_ethertype(packet.ethertype, packet.bytes) {
                Some(ip) => {
                    let before = packet.bytes.len() - ip.len().min(packet.bytes.len());
                    tracker.packet(place, packet.at_ns, ip, packet.original_len.saturating_sub(before));
                }
                None => tracker.no_ip(),
            }
        };
        // Now and then the clock and the user are looked at, however much comes.
        while seen < 4096 && watch.receive(&mut see) {
            seen += 1;
        }
        if over {
            break;
        }
        if seen == 0 {
            broken = watch.broken();
            if broken.is_some() {
                break;
            }
            let _ = wt_sys::poll::wait_readable(&[std::os::fd::AsFd::as_fd(&watch)], Some(left.min(TICK)));
        }
    }
    let names: Vec<String> = devices.iter().map(|device| device_name(*device)).collect();
    let analysis = tracker.finish(&names);
    let broken = broken.as_ref().map(|error| error as &dyn std::fmt::Display);
    let answer = CaptureAnswer::of_device(analysis, &args.device, names, watch.take_drops(), broken);
    if args.json {
        say!("{}", json!(answer));
    } else {
        say!("{}", capture_text(&answer));
    }
    Ok(if answer.has_connections() { Exit::Done } else { Exit::No })
}

fn refused(device: &str, error: &wt_sys::SysError) -> Problem {
    let told = error.to_string();
    match error.source.kind() {
        std::io::ErrorKind::PermissionDenied => Problem::environment(format!("can't watch {device}: {told}"))
            .because("listening to a device's packets needs CAP_NET_RAW")
            .hint(format!(
                "sudo windtunnel watch {device}; or sudo setcap cap_net_raw+ep $(command -v windtunnel); or analyse a capture"
            )),
        _ => Problem::usage(format!("can't watch {device}: {told}")).hint("ip link lists the devices; any means all"),
    }
}
