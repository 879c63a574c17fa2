//! Whether the network is there at all: a lost one is no server that refuses, and says nothing of a setting.

use crate::manners::{clock, leave_alone};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use wt_load::{EndReport, Finish, LoadError};
use wt_sys::netlink::Netlink;
use wt_trial::{Cancel, Direction, TunnelError};
use wt_units::Settings;

/// A network that is lost is waited for so long: what a reconnecting modem or a change of access point takes.
const PATIENCE: Duration = Duration::from_secs(30);
/// One attempt to connect takes no longer: two repeated SYNs are answered by then (RFC 6298: after 1 s and 3 s).
const ATTEMPT: Duration = Duration::from_secs(5);
/// Between two looks.
const STEP: Duration = Duration::from_secs(1);
/// A transfer that was silent at its end for less isn't asked about: a retransmission can take as long.
pub(crate) const SILENCE: Duration = Duration::from_secs(1);

/// How a network is lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LostNetwork {
    /// What is missing.
    pub(crate) why: String,
    /// Whether it is missing at this host, rather than somewhere on the way.
    pub(crate) here: bool,
}

/// What this host lacks to reach an address: a route, or a device that is up and has a signal.
pub(crate) fn missing_here(address: IpAddr) -> Option<LostNetwork> {
    let lost = |why: String| Some(LostNetwork { why, here: true });
    let mut netlink = Netlink::open().ok()?;
    let route = match netlink.route_to(address) {
        Ok(route) => route,
        Err(error) if is_unreachable(error.source.kind()) => {
            return lost(format!("this host has no route to {address}"));
        }
        Err(_) => return None,
    };
    if route.leads_nowhere() {
        return lost(format!("this host's route to {address} says that it can't be reached"));
    }
    let links = netlink.links().ok()?;
    let mut hops = links.iter().filter(|link| route.hops().iter().any(|hop| hop.device == link.index));
    let first = hops.clone().next()?;
    if hops.any(|link| link.up && link.carrier) {
        return None;
    }
    let what = if first.up { "has no signal" } else { "is down" };
    lost(format!("the interface {} towards {address} {what}", first.name))
}

/// What is made where this host reaches an address, or what it lacks to; a change that the kernel refuses since a route or a device has
/// gone in the same moment is no fault of the change.
pub(crate) fn unless_lost<T>(
    address: IpAddr,
    make: impl FnOnce() -> Result<T, TunnelError>,
) -> Result<Result<T, LostNetwork>, TunnelError> {
    if let Some(lost) = missing_here(address) {
        return Ok(Err(lost));
    }
    match make() {
        Err(error @ TunnelError::Environment { .. }) => missing_here(address).map(Err).ok_or(error),
        made => made.map(Ok),
    }
}

/// What is missing, with the device over which the target was reached before: a route goes with its device.
pub(crate) fn with_device(lost: &LostNetwork, before: Option<&str>) -> String {
    let links = || Netlink::open().ok()?.links().ok();
    let what = before.filter(|_| lost.here).zip(links()).and_then(|(device, links)| {
        match links.iter().find(|link| link.name == device) {
            None => Some(format!("the interface {device} is gone")),
            Some(link) if !link.up => Some(format!("the interface {device} is down")),
            Some(_) => None,
        }
    });
    what.map_or_else(|| lost.why.clone(), |what| format!("{what}, and {}", lost.why))
}

/// What the kernel says where no packet gets out.
fn is_unreachable(kind: ErrorKind) -> bool {
    use ErrorKind::{AddrNotAvailable, HostUnreachable, NetworkDown, NetworkUnreachable};
    matches!(kind, NetworkUnreachable | HostUnreachable | NetworkDown | AddrNotAvailable)
}

/// Whether an attempt to connect failed because nothing got through, rather than by the remote host's will.
pub(crate) fn got_nowhere(error: &LoadError, peer: SocketAddr) -> Option<LostNetwork> {
    let source = match error {
        LoadError::Connect(cause) => &cause.source,
        LoadError::Broken(cause) => cause,
        LoadError::Refused { .. } | LoadError::Request(_) => return None,
    };
    missing_here(peer.ip()).or_else(|| match source.kind() {
        ErrorKind::TimedOut => {
            let why = format!("{peer} doesn't answer any more: the way there is broken, or it is off");
            Some(LostNetwork { why, here: false })
        }
        kind if is_unreachable(kind) => {
            Some(LostNetwork { why: format!("{peer} can't be reached: {source}"), here: false })
        }
        _ => None,
    })
}

/// Whether the network was lost in the middle of a transfer: either this host says so, or it was silent at its end for long and a
/// new connection gets no answer.
pub(crate) fn lost_meanwhile(report: &EndReport, direction: Direction, peer: SocketAddr) -> Option<LostNetwork> {
    if report.finish == Finish::Cancelled {
        return None;
    }
    if let Some(lost) = missing_here(peer.ip()) {
        return Some(lost);
    }
    let silent = match direction {
        Direction::Down => report.info.last_data_recv,
        Direction::Up => report.info.last_ack_recv,
    };
    let silent = Duration::from_millis(silent.into());
    // Of several connections it isn't known when the last byte came.
    let unknown = report.info.bytes_received == 0 && report.info.bytes_acked == 0;
    let gave_up = unknown && matches!(report.finish, Finish::Deadline | Finish::Lost(_));
    (gave_up || (silent >= SILENCE && silent >= report.elapsed / 4)).then(|| lost_at(peer))?
}

/// Looks whether the network is there: at this host, then by a connection on which nothing is sent. A refusal is an answer, too.
pub(crate) fn lost_at(peer: SocketAddr) -> Option<LostNetwork> {
    missing_here(peer.ip()).or_else(|| {
        let attempt = wt_load::Connection::open(&peer, &Settings::new(), ATTEMPT);
        attempt.err().and_then(|error| got_nowhere(&error, peer))
    })
}

/// Waits until the network is back; for how long that was, or how it is still lost. `None`: the user wants to stop.
pub(crate) fn wait_for_return(
    peer: SocketAddr,
    lost: LostNetwork,
    cancel: &Cancel,
) -> Option<Result<Duration, LostNetwork>> {
    let begun = clock();
    let mut lost = lost;
    while clock().saturating_sub(begun) < PATIENCE {
        if !leave_alone(STEP, cancel) {
            return None;
        }
        match lost_at(peer) {
            Some(still) => lost = still,
            None => return Some(Ok(clock().saturating_sub(begun))),
        }
    }
    Some(Err(lost))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_itself_is_never_lost_and_a_server_that_refuses_has_answered() {
        assert_eq!(missing_here("127.0.0.1".parse().unwrap()), None);
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        assert_eq!(lost_at(port), None);
    }

    #[test]
    fn a_change_that_fails_while_the_network_is_there_is_no_loss() {
        let own: IpAddr = "127.0.0.1".parse().unwrap();
        let fault = || TunnelError::Environment { why: "add a route: Network is down".to_owned(), remedy: None };
        assert!(matches!(unless_lost(own, || Err::<(), _>(fault())), Err(TunnelError::Environment { .. })));
        assert!(matches!(unless_lost(own, || Ok(7)), Ok(Ok(7))));
        // Where nothing is to be reached, nothing is made.
        let nowhere: IpAddr = "0.0.0.1".parse().unwrap();
        if missing_here(nowhere).is_some() {
            assert!(unless_lost(nowhere, || -> Result<(), TunnelError> { panic!("it was made") }).unwrap().is_err());
        }
    }

    #[test]
    fn what_the_kernel_says_of_a_connection_tells_a_lost_network_from_a_refusal() {
        let peer: SocketAddr = "127.0.0.1:9".parse().unwrap();
        let of = |kind: ErrorKind| {
            let source = std::io::Error::from(kind);
            got_nowhere(&LoadError::Connect(wt_sys::SysError { doing: "connect".to_owned(), source }), peer)
        };
        assert!(of(ErrorKind::TimedOut).is_some_and(|lost| !lost.here && lost.why.contains("doesn't answer")));
        assert!(of(ErrorKind::HostUnreachable).is_some() && of(ErrorKind::NetworkUnreachable).is_some());
        assert_eq!((of(ErrorKind::ConnectionRefused), of(ErrorKind::ConnectionReset)), (None, None));
    }
}
