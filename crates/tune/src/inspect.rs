//! A look at the path to a remote host, before anything is transferred.

use super::event::{Sink, TuneEvent};
use super::live::ASSUMED;
use super::request::TuneRequest;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use wt_live::{FindError, Target};
use wt_load::{LoadError, Scheme, Url};
use wt_prober::ProbeOptions;
use wt_problem::{Fault, Problem};
use wt_sys::ns::read_net_sysctl;
use wt_sys::resolve::ResolveError;
use wt_trial::{Cancel, PathFacts};
use wt_units::{BitsPerSecond, Bytes, Settings};
use wt_wire::{Headers, IpVersion, Transport};

/// Connections are given up after this long.
const CONNECT: Duration = Duration::from_secs(10);

/// What a look at the path gave.
pub(crate) struct InspectedPath {
    pub(crate) facts: PathFacts,
    pub(crate) device_mtu: u64,
    pub(crate) loss: Option<f64>,
}

/// RTT by a handshake, path MTU by probes; what the link can carry by arithmetic.
pub(crate) fn inspect(
    request: &TuneRequest,
    url: &Url,
    peer: SocketAddr,
    cancel: &Cancel,
    events: Sink<'_>,
) -> Result<InspectedPath, Problem> {
    let nobody = |error: &LoadError| {
        if let LoadError::Connect(cause) = error
            && matches!(cause.source.kind(), ErrorKind::NetworkUnreachable | ErrorKind::HostUnreachable)
        {
            return Problem::environment(format!("{}: {error}", url))
                .because("this host has no route there, or the last router before it doesn't find it")
                .hint(format!("ip route get {} shows the way that packets would take", peer.ip()));
        }
        Problem::new(Fault::Remote, format!("{}: {error}", url))
            .because("nothing listens there, it is down, or a firewall is between")
            .hint(match url.scheme {
                Scheme::Wt => format!("windtunnel serve there, and windtunnel path {} here", url.host),
                Scheme::Iperf3 => format!("iperf3 -s there, and windtunnel path {} here", url.host),
                Scheme::Http | Scheme::Https | Scheme::Ftp | Scheme::Ftps => {
                    format!("curl -v {} shows what another program sees; windtunnel path {}", url, url.host)
                }
            })
    };
    let connection = wt_load::Connection::open(&peer, &Settings::new(), CONNECT).map_err(|e| nobody(&e))?;
    let rtt = connection.connect_time;
    drop(connection);
    let to = wt_prober::Target::of_address(&url.host, peer)?;
    let device_mtu = u64::from(to.mtu);
    let mut pmtu = device_mtu;
    let mut loss = None;
    if !request.live.no_probes && !peer.ip().is_loopback() {
        events(TuneEvent::note("probing the path MTU"));
        let options = ProbeOptions { seed: Some(request.seed), ..ProbeOptions::default() };
        // A server under test isn't asked for a dozen connections more.
        let scope = wt_prober::mtu::SearchScope { losses: true, flows: Some(1) };
        if let Ok(mut searched) = wt_prober::mtu::search(std::slice::from_ref(&to), &options, scope, cancel)
            && let Some(Ok(report)) = searched.reports.pop()
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
    let ip = if peer.is_ipv6() { IpVersion::V6 } else { IpVersion::V4 };
    let headers = Headers { ip, transport: Transport::Tcp { options_len: options } };
    let physical = request.live.link_rate.map(|rate| {
        let goodput = request.live.encap.goodput(rate, Bytes(pmtu), headers);
        goodput.map(BitsPerSecond::get).map_err(|error| Problem::usage(error.to_string()).hint("another --encap"))
    });
    let physical = physical.transpose()?;
    let rate = physical.map_or(ASSUMED, BitsPerSecond);
    let rtt_us = u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX).max(1);
    let bdp_bytes = (rate * rtt).get();
    let facts = PathFacts { rtt_us, pmtu, bdp_bytes, physical_goodput_bps: physical };
    Ok(InspectedPath { facts, device_mtu, loss })
}

/// The first of a name's addresses that answers, and what a look at the path to it gave: of a host with two versions of IP one may be
/// broken. What the first one said is told if none does.
pub(crate) fn reached(
    request: &TuneRequest,
    url: &Url,
    v6: Option<bool>,
    cancel: &Cancel,
    events: Sink<'_>,
) -> Result<(Target, InspectedPath), Problem> {
    let mut first = None;
    let mut candidates = Target::candidates(url, v6, cancel).map_err(|error| unfound(&error))?.into_iter().peekable();
    while let Some(target) = candidates.next() {
        match inspect(request, url, target.peer, cancel, events) {
            Ok(inspected) => return Ok((target, inspected)),
            Err(failure) => {
                // The last one's is told by whoever asked.
                if candidates.peek().is_some() {
                    events(TuneEvent::note(&failure.what));
                }
                first = first.or(Some(failure));
            }
        }
    }
    Err(first.unwrap_or_else(|| Problem::usage(format!("{url} has no address"))))
}

pub(crate) fn unfound(error: &FindError) -> Problem {
    match error {
        FindError::Resolve { source: ResolveError::Stopped, .. } => {
            Problem::stopped("stopped before anything was measured; nothing was journaled")
        }
        FindError::Resolve { source, .. } => {
            let fault = if source.is_temporary() { Fault::Environment } else { Fault::Usage };
            Problem::new(fault, error.to_string())
                .hint("check the spelling and this machine's resolver, or give an address")
        }
        FindError::Version { .. } => Problem::usage(error.to_string()).hint("leave --ip away, or try the other one"),
    }
}
