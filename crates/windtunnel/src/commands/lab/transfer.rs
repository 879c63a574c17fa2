//! `windtunnel lab transfer`: one transfer by our own client, from within a lab.

use crate::commands::predict::asked;
use crate::commands::samples::{columns, stream};
use crate::commands::tune::{cancel_on_signals, trial_time};
use crate::edge::{Exit, Failure, Fault, Outcome, say};
use clap::Args;
use serde_json::json;
use std::net::SocketAddr;
use std::time::Duration;
use wt_lab::{PORT, SERVER_V4};
use wt_load::{Connection, EndReport, Finish, LoadError, Request, SenderOptions, download, upload};
use wt_trial::{Amount, Direction};
use wt_units::{Bytes, Knob, Settings, format_duration};

/// Moves payload between the client and the server, from within a lab (`lab run`, `lab up`)
///
/// It is one trial's transfer, by the same client and server, checked byte by byte: to look at what TCP does on a path.
/// Settings of routes and of the host (mtu, initcwnd, …) can be set in the lab by its own means before.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  windtunnel lab run adsl -- windtunnel lab transfer --size 2MB
  windtunnel lab run transatlantic -- windtunnel lab transfer --time 10s --set cc=bbr --json")]
pub(super) struct TransferArgs {
    /// From the client to the server
    #[arg(long)]
    up: bool,
    /// So many bytes of payload
    #[arg(long, value_name = "SIZE", conflicts_with = "time")]
    size: Option<Bytes>,
    /// As much as goes in so long [default: 5s]
    #[arg(long, value_parser = trial_time)]
    time: Option<Duration>,
    /// What the connection is set to: rwin, mss, ttl, cc, sndbuf
    #[arg(long, value_name = "KNOB=LEVEL,…", value_delimiter = ',')]
    set: Vec<asked::One>,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// A line of JSON for samples as they are taken, the result last
    #[arg(long, conflicts_with = "json")]
    json_stream: bool,
}

/// The knobs that one connection takes.
const KNOBS: [Knob; 5] = [Knob::Rwin, Knob::Mss, Knob::Ttl, Knob::Cc, Knob::Sndbuf];
/// Payload of a full segment where nothing is known of the path, bytes.
const USUAL_MSS: u64 = 1448;
/// A transfer of a size is given up after this long.
const LONGEST: Duration = Duration::from_secs(600);
/// How long the server may take to accept.
const CONNECT: Duration = Duration::from_secs(20);

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(super) fn transfer(args: &TransferArgs) -> Outcome {
    let settings = asked::settings(&args.set, USUAL_MSS)?;
    if let Some((knob, _)) = settings.iter().find(|(knob, _)| !KNOBS.contains(knob)) {
        return Err(Failure::usage(format!("{knob} belongs to no single connection"))
            .hint("set here: rwin, mss, ttl, cc, sndbuf; windtunnel tune --lab varies the others"));
    }
    let (amount, deadline) = match (args.size, args.time.unwrap_or(Duration::from_secs(5))) {
        (Some(size), _) if size.get() == 0 => return Err(Failure::usage("--size 0: there is nothing to transfer")),
        (Some(size), _) => (Amount::Size(size), LONGEST),
        (None, time) => (Amount::Time(time), time + CONNECT),
    };
    let cancel = cancel_on_signals()?;
    if args.json_stream {
        stream();
    }
    let direction = if args.up { Direction::Up } else { Direction::Down };
    let request = request(direction, amount, &settings);
    // What the sender sets, the server is told; this end sets its own.
    let mut own = settings.clone();
    let not_ours: &[Knob] = if args.up { &[Knob::Rwin] } else { &[Knob::Cc, Knob::Sndbuf] };
    own = own.iter().filter(|(knob, _)| !not_ours.contains(knob)).map(|(knob, level)| (knob, level.clone())).collect();
    let peer = SocketAddr::new(SERVER_V4.into(), PORT);
    let connection = Connection::open_with_all(&peer, &own, CONNECT).map_err(|error| failure(&error))?;
    let (connect_time, granted) = (connection.connect_time, connection.granted.clone());
    let moved = match direction {
        Direction::Down => download(connection, &request, deadline, &cancel),
        Direction::Up => upload(connection, &request, deadline, &cancel),
    };
    let report = moved.map_err(|error| failure(&error))?;
    tell(args, &report, connect_time, &granted);
    Ok(Exit::Done)
}

fn request(direction: Direction, amount: Amount, settings: &Settings) -> Request {
    let small = |knob| settings.number(knob).map(|n| u32::try_from(n).unwrap_or(u32::MAX));
    Request {
        direction,
        amount,
        token: wt_sys::clock::monotonic_ns(),
        sender: SenderOptions {
            congestion_control: settings.name(Knob::Cc).map(str::to_owned),
            send_buffer: small(Knob::Sndbuf),
            ..SenderOptions::default()
        },
        window: if direction == Direction::Up { small(Knob::Rwin) } else { None },
    }
}

fn failure(error: &LoadError) -> Failure {
    match error {
        LoadError::Refused { .. } | LoadError::Request(_) => Failure::usage(error.to_string()),
        LoadError::Connect(_) => Failure::new(Fault::FarEnd, error.to_string())
            .because("this isn't within a lab, or the path lets nothing through")
            .hint("windtunnel lab run adsl -- windtunnel lab transfer"),
        LoadError::Broken(_) => Failure::new(Fault::FarEnd, error.to_string()),
    }
}

fn tell(args: &TransferArgs, report: &EndReport, connect_time: Duration, granted: &Settings) {
    let seconds = report.elapsed.as_secs_f64();
    let goodput = if seconds > 0.0 { report.bytes as f64 * 8.0 / seconds } else { 0.0 };
    let finish = match &report.finish {
        Finish::Done => "done".to_owned(),
        Finish::Deadline => "the deadline came first".to_owned(),
        Finish::Cancelled => "stopped".to_owned(),
        Finish::PeerLeft(why) | Finish::Garbage(why) | Finish::Lost(why) => why.clone(),
        Finish::Corrupt(at) => format!("the byte at {at} isn't what was sent"),
    };
    if args.json || args.json_stream {
        let result = json!({
            "schema_version": 1,
            "direction": if args.up { "up" } else { "down" },
            "finish": finish,
            "bytes": report.bytes,
            "elapsed_us": report.elapsed.as_micros() as u64,
            "connect_us": connect_time.as_micros() as u64,
            "goodput_bps": goodput,
            "granted": granted,
            "refused": report.refused,
            "end": if args.up { "sender" } else { "receiver" },
            "samples": columns(&report.samples),
        });
        say!("{result}");
        return;
    }
    say!("{} in {}: {:.3} Mbit/s, {finish}", Bytes(report.bytes), format_duration(report.elapsed), goodput / 1e6);
    say!("connected in {}", format_duration(connect_time));
    report.refused.iter().for_each(|refused| say!("refused: {refused}"));
}
