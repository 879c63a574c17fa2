//! A look at the path to a far end, before anything is transferred.

use super::live::ASSUMED;
use super::{Progress, TuneArgs};
use crate::commands::mtu::search;
use crate::commands::probing::{self, ProbeOptions};
use crate::edge::{Failure, Fault};
use std::time::Duration;
use wt_live::{FindError, Target};
use wt_load::{Scheme, Url};
use wt_sys::ns::read_net_sysctl;
use wt_trial::PathFacts;
use wt_units::{BitsPerSecond, Bytes, Settings};
use wt_wire::{Headers, IpVersion, Transport};

/// Connections are given up after this long.
const CONNECT: Duration = Duration::from_secs(10);

/// What a look at the path gave.
pub(super) struct Inspected {
    pub(super) facts: PathFacts,
    pub(super) device_mtu: u64,
    pub(super) loss: Option<f64>,
}

/// RTT by a handshake, path MTU by probes; what the link can carry by arithmetic.
fn inspect(args: &TuneArgs, target: &Target, told: &Progress) -> Result<Inspected, Failure> {
    let nobody = |error: &dyn std::fmt::Display| {
        Failure::new(Fault::FarEnd, format!("{}: {error}", target.url))
            .because("nothing listens there, it is down, or a firewall is between")
            .hint(match target.url.scheme {
                Scheme::Wt => format!("windtunnel serve there, and windtunnel path {} here", target.url.host),
                Scheme::Iperf3 => format!("iperf3 -s there, and windtunnel path {} here", target.url.host),
                Scheme::Http | Scheme::Https | Scheme::Ftp | Scheme::Ftps => format!(
                    "curl -v {} shows what another program sees; windtunnel path {}",
                    target.url, target.url.host
                ),
            })
    };
    let connection = wt_load::Connection::open(&target.peer, &Settings::new(), CONNECT).map_err(|e| nobody(&e))?;
    let rtt = connection.connect_time;
    drop(connection);
    let to = probing::Target::of_address(&target.url.host, target.peer)?;
    let device_mtu = u64::from(to.mtu);
    let mut pmtu = device_mtu;
    let mut loss = None;
    if !args.live.no_probes && !target.peer.ip().is_loopback() {
        told.say("probing the path MTU");
        let options =
            ProbeOptions { ip: None, unprivileged: false, pps: None, seed: Some(args.options.seed), json: false };
        if let Ok(mut searched) = search(std::slice::from_ref(&to), &options, true)
            && let Some(report) = searched.reports.pop()
        {
            pmtu = report.pmtu.map_or(device_mtu, u64::from);
            // What the path lets through at all.
            let fitting = report.sizes.iter().filter(|tally| u64::from(tally.size) <= pmtu);
            let (sent, answered) =
                fitting.fold((0, 0), |(sent, back), tally| (sent + tally.sent, back + tally.answered));
            loss = (sent > 0).then(|| 1.0 - f64::from(answered.min(sent)) / f64::from(sent));
        }
    }
    let options = if read_net_sysctl("ipv4/tcp_timestamps").is_ok_and(|on| on == "0") { 0 } else { 12 };
    let ip = if target.peer.is_ipv6() { IpVersion::V6 } else { IpVersion::V4 };
    let headers = Headers { ip, transport: Transport::Tcp { options_len: options } };
    let physical = args.live.link_rate.map(|rate| {
        let goodput = args.live.encap.goodput(rate, Bytes(pmtu), headers);
        goodput.map(BitsPerSecond::get).map_err(|error| Failure::usage(error.to_string()).hint("another --encap"))
    });
    let physical = physical.transpose()?;
    let rate = physical.map_or(ASSUMED, BitsPerSecond);
    let rtt_us = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX).max(1);
    let bdp_bytes = (rate * rtt).get();
    let facts = PathFacts { rtt_us, pmtu, bdp_bytes, physical_goodput_bps: physical };
    Ok(Inspected { facts, device_mtu, loss })
}

/// The first of a name's addresses that answers, and what a look at the path to it gave: of a host with two versions of IP one may be
/// broken. What the first one said is told if none does.
pub(super) fn reached(
    args: &TuneArgs,
    url: &Url,
    v6: Option<bool>,
    told: &Progress,
) -> Result<(Target, Inspected), Failure> {
    let mut first = None;
    for target in Target::candidates(url, v6).map_err(|error| unfound(&error))? {
        match inspect(args, &target, told) {
            Ok(inspected) => return Ok((target, inspected)),
            Err(failure) => {
                told.say(&failure.what);
                first = first.or(Some(failure));
            }
        }
    }
    Err(first.unwrap_or_else(|| Failure::usage(format!("{url} has no address"))))
}

pub(super) fn unfound(error: &FindError) -> Failure {
    match error {
        FindError::Resolve { source, .. } => {
            let temporary = source.to_string().contains("Temporary");
            let fault = if temporary { Fault::Environment } else { Fault::Usage };
            Failure::new(fault, error.to_string())
                .hint("check the spelling and this machine's resolver, or give an address")
        }
        FindError::Version { .. } => Failure::usage(error.to_string()).hint("leave --ip away, or try the other one"),
    }
}
