//! `windtunnel overhead`: what the layers below TCP cost.

use crate::cli::forms::write_whole;
use crate::cli::values::rate_with_unit;
use crate::edge::{Exit, Outcome, Problem, emit, say};
use clap::ValueEnum;
use serde_json::json;
use std::path::PathBuf;
use wt_report::{overhead_chart, overhead_text, overhead_words_text};
use wt_wire::{
    Framing, GoodputRate, IpVersion, MtuRange, OptionsLen, OverheadError, OverheadProto, OverheadRequest, PacketLen,
    PayloadLen, WireRate, overhead, overhead_words,
};

/// Computes what the layers below TCP cost, to the byte
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
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, conflicts_with = "sweep")]
    payload: Option<PayloadLen>,
    /// The transport
    #[arg(long, value_enum, default_value_t = Proto::Tcp)]
    proto: Proto,
    /// The version of IP
    #[arg(long, value_enum, default_value_t = Ip::V4)]
    ip: Ip,
    /// The largest IP packet that TCP or UDP makes [default: 1500; in a tunnel or PPPoE what the link leaves,
    /// but 1500 for PPPoE in ATM cells: 1492 if the modem takes no more]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    mtu: Option<PacketLen>,
    /// Compare every MTU of a range: 1400..1500, both ends included
    #[arg(long, value_name = "A..B", allow_negative_numbers = true, conflicts_with = "mtu")]
    sweep: Option<MtuRange>,
    /// Seek the best MTU at or under this one [default: the MTU, the end of the sweep, or what the link leaves]
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    max_mtu: Option<PacketLen>,
    /// Options on each data segment: none, timestamps, sack1 to sack4 (joined by commas), or their bytes
    #[arg(long, value_name = "OPTIONS", allow_negative_numbers = true, default_value = "none")]
    tcp_options: OptionsLen,
    /// The rate of the wire, for the goodput ceiling
    #[arg(long, value_name = "RATE", allow_negative_numbers = true, value_parser = rate_with_unit::<WireRate>)]
    link_rate: Option<WireRate>,
    /// The payload per second that is wanted, for the rate that the wire must have: 64mbit or 8MiB/s
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    goodput: Option<GoodputRate>,
    /// The largest packet that the link carries, tunnels, PPPoE and MPLS included
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true, default_value = "1500")]
    link_mtu: PacketLen,
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
    /// The question that was asked.
    fn request(&self) -> OverheadRequest {
        OverheadRequest {
            encap: self.encap.clone(),
            payload: self.payload,
            proto: match self.proto {
                Proto::Tcp => OverheadProto::Tcp,
                Proto::Udp => OverheadProto::Udp,
            },
            ip: match self.ip {
                Ip::V4 => IpVersion::V4,
                Ip::V6 => IpVersion::V6,
            },
            mtu: self.mtu,
            sweep: self.sweep,
            max_mtu: self.max_mtu,
            tcp_options: self.tcp_options,
            link_rate: self.link_rate,
            goodput: self.goodput,
            link_mtu: self.link_mtu,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(args: &OverheadArgs) -> Outcome {
    if args.list {
        let words = overhead_words();
        if args.json {
            emit!("{:#}", json!(words));
        } else {
            say!("{}", overhead_words_text(&words));
        }
        return Ok(Exit::Done);
    }
    let answer = overhead(&args.request()).map_err(|error| problem(&error))?;
    if args.json {
        emit!("{:#}", json!(answer));
    } else {
        say!("{}", overhead_text(&answer));
    }
    if let Some(file) = &args.svg {
        let written = write_whole(file, &overhead_chart(&answer).to_svg(960, 480));
        written.map_err(|problem| problem.hint("name a file in a directory that you may write to"))?;
    }
    Ok(Exit::Done)
}

fn problem(error: &OverheadError) -> Problem {
    let problem = Problem::usage(error.to_string());
    match error {
        OverheadError::OptionsOfUdp => problem.hint("leave out --tcp-options or --proto udp"),
        OverheadError::TooSmall(_) => {
            problem.hint("a larger MTU (--mtu, or --link-mtu beneath encapsulations), or fewer bytes of options")
        }
        _ => problem,
    }
}
