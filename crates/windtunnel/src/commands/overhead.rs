//! `windtunnel overhead`: what the layers below TCP cost.

/// From arguments to figures.
mod answer;
/// Numbers, ranges and options as they are written on the command line.
mod ask;
/// The frame as boxes.
mod draw;
/// What a person reads.
mod show;

use crate::edge::{Exit, Failure, Fault, Outcome, say};
use answer::Answer;
use ask::Sweep;
use clap::ValueEnum;
use std::path::{Path, PathBuf};
use wt_units::{BitsPerSecond, Bytes};
use wt_wire::{Framing, Headers, IpVersion, Transport};

/// What the layers below TCP cost: bytes on the wire, efficiency, goodput ceiling
///
/// The MTU is the one that TCP sees: inside a tunnel, that of the tunnel's interface.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  windtunnel overhead --encap ethernet --proto udp --payload 64
  windtunnel overhead --encap pppoe-llc-bridged-fcs-atm --mtu 1492 --link-rate 8mbit
  windtunnel overhead --encap pppoe-llc-bridged-fcs-atm --sweep 1400..1500 --svg sawtooth.svg
  windtunnel overhead --encap wireguard+ip6+pppoe-ptm --tcp-options timestamps
  windtunnel overhead --list")]
pub(crate) struct OverheadArgs {
    /// What carries the packet: words joined by + from the packet outwards; tc-cake's keywords are among them (see
    /// --list)
    #[arg(long, value_name = "STACK", default_value = "ethernet")]
    encap: Framing,
    /// Bytes of payload to send, in as many packets as it takes [default: what fits into one]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = ask::payload, conflicts_with = "sweep")]
    payload: Option<Bytes>,
    /// The transport
    #[arg(long, value_enum, default_value_t = Proto::Tcp)]
    proto: Proto,
    /// The version of IP
    #[arg(long, value_enum, default_value_t = Ip::V4)]
    ip: Ip,
    /// The largest IP packet that TCP or UDP makes [default: 1500; in a tunnel what the link leaves]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = ask::mtu)]
    mtu: Option<Bytes>,
    /// Compare every MTU of a range: 1400..1500, both ends included
    #[arg(long, value_name = "A..B", allow_negative_numbers = true, conflicts_with = "mtu")]
    sweep: Option<Sweep>,
    /// Seek the best MTU at or under this one [default: the MTU, or the end of the sweep]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, value_parser = ask::mtu)]
    max_mtu: Option<Bytes>,
    /// Options on each data segment: none, timestamps, sack1 to sack4 (joined by commas), or their bytes
    #[arg(long, value_name = "OPTIONS", allow_negative_numbers = true, default_value = "none", value_parser = ask::tcp_options)]
    tcp_options: u8,
    /// The rate of the wire, for the goodput ceiling
    #[arg(long, value_name = "RATE", allow_negative_numbers = true, value_parser = ask::rate)]
    link_rate: Option<BitsPerSecond>,
    /// The payload per second that is wanted, for the rate that the wire must have: 64mbit or 8MiB/s
    #[arg(long, value_name = "RATE", allow_negative_numbers = true, value_parser = ask::goodput)]
    goodput: Option<BitsPerSecond>,
    /// The largest packet that the link carries, tunnels, PPPoE and MPLS included
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, default_value = "1500", value_parser = ask::mtu)]
    link_mtu: Bytes,
    /// List the words of which stacks are made
    #[arg(long)]
    list: bool,
    /// One JSON object
    #[arg(long)]
    json: bool,
    /// Also draw the sweep as SVG
    #[arg(long, value_name = "FILE", requires = "sweep")]
    svg: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Proto {
    /// TCP
    Tcp,
    /// UDP
    Udp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Ip {
    /// IPv4
    #[value(name = "4", aliases = ["v4", "ipv4"])]
    V4,
    /// IPv6
    #[value(name = "6", aliases = ["v6", "ipv6"])]
    V6,
}

impl OverheadArgs {
    /// The headers between the MTU and the payload.
    fn headers(&self) -> Result<Headers, Failure> {
        let ip = match self.ip {
            Ip::V4 => IpVersion::V4,
            Ip::V6 => IpVersion::V6,
        };
        let transport = match self.proto {
            Proto::Tcp => Transport::Tcp { options_len: self.tcp_options },
            Proto::Udp if self.tcp_options > 0 => {
                return Err(Failure::usage("UDP has no TCP options").hint("leave out --tcp-options or --proto udp"));
            }
            Proto::Udp => Transport::Udp,
        };
        Ok(Headers { ip, transport })
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(args: &OverheadArgs) -> Outcome {
    if args.list {
        show::list(args.json);
        return Ok(Exit::Done);
    }
    let answer = Answer::of(args)?;
    if let Some(file) = &args.svg {
        write_whole(file, &show::chart(&answer).to_svg(960, 480))?;
    }
    if args.json {
        say!("{:#}", answer.to_json());
    } else {
        say!("{}", show::report(&answer));
    }
    Ok(Exit::Done)
}

/// Writes a file whole or not at all: beside it first, then in its place. What isn't a regular file is written to.
fn write_whole(file: &Path, text: &str) -> Result<(), Failure> {
    let special = std::fs::metadata(file).is_ok_and(|at| !at.is_file());
    let beside = if special { file.to_owned() } else { beside(file) };
    let written = std::fs::write(&beside, text)
        .and_then(|()| if beside == file { Ok(()) } else { std::fs::rename(&beside, file) });
    written.map_err(|error| {
        if beside != file {
            // It may not even have come into being.
            let _ = std::fs::remove_file(&beside);
        }
        Failure::new(Fault::Environment, format!("can't write {}", file.display()))
            .because(error.to_string())
            .hint("name a file in a directory that you may write to")
    })
}

fn beside(file: &Path) -> PathBuf {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    file.with_file_name(name)
}
