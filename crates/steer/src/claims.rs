//! Which experiment assigns the connections of a port, whatever its journal and user are: it holds a socket with an abstract name for
//! each, which everybody in the same network namespace reads in /proc/net/unix, and which the kernel takes away with the process.

use crate::assign::BackendChoice;
use serde::Serialize;
use std::io::ErrorKind;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use utoipa::ToSchema;
use wt_problem::Problem;

/// How the names begin that only one process can have: of a port, or of the settings that slots change.
const CLAIM: &str = "windtunnel-assigns";
/// How those begin that say which experiment it is.
const EXPERIMENT: &str = "windtunnel-traffic";
/// What experiments by slots have in common, whatever their ports.
const SETTINGS: &str = "slots";
/// The kernel's list of sockets.
const LIST: &str = "/proc/net/unix";

/// An experiment on connections that is under way in this network namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[schema(as = TrafficElsewhere)]
pub struct ClaimedPorts {
    /// Its name.
    pub id: String,
    /// The local ports.
    pub ports: Vec<u16>,
}

/// That this process alone assigns the connections of some ports, for as long as it is held.
#[derive(Debug)]
pub(crate) struct PortClaims {
    what: Vec<String>,
    held: Vec<UnixDatagram>,
}

impl PortClaims {
    /// Claims the ports, and for slots the host's settings. Where sockets can't be made nothing is claimed, and nobody refused.
    ///
    /// # Errors
    /// An environment [`Problem`] that names who has one of them.
    pub(crate) fn take(backend: BackendChoice, ports: &[u16]) -> Result<Self, Problem> {
        let what = wanted(backend, ports);
        let mut held = Vec::new();
        for one in &what {
            match address(CLAIM, one).and_then(|address| UnixDatagram::bind_addr(&address)) {
                Ok(socket) => held.push(socket),
                Err(error) if error.kind() == ErrorKind::AddrInUse => return Err(refused(one)),
                Err(_) => {}
            }
        }
        Ok(Self { what, held })
    }

    /// Lets others see which experiment it is.
    pub(crate) fn name(&mut self, id: &str) {
        let named = |what: &String| UnixDatagram::bind_addr(&address(EXPERIMENT, &format!("{what}/{id}")).ok()?).ok();
        self.held.extend(self.what.iter().filter_map(named));
    }
}

/// Refuses where an experiment has one of these ports, without claiming any.
///
/// # Errors
/// As [`PortClaims::take`].
pub(crate) fn are_free(backend: BackendChoice, ports: &[u16]) -> Result<(), Problem> {
    let is_taken = |what: &String| {
        let connected = address(CLAIM, what).and_then(|address| UnixDatagram::unbound()?.connect_addr(&address));
        connected.is_ok()
    };
    wanted(backend, ports).iter().find(|what| is_taken(what)).map_or(Ok(()), |what| Err(refused(what)))
}

/// The experiments that are under way in this network namespace, by name.
pub(crate) fn under_way() -> Vec<ClaimedPorts> {
    experiments(&std::fs::read_to_string(LIST).unwrap_or_default())
}

fn wanted(backend: BackendChoice, ports: &[u16]) -> Vec<String> {
    let mut wanted: Vec<String> = ports.iter().map(u16::to_string).collect();
    if backend == BackendChoice::Slots {
        wanted.push(SETTINGS.to_owned());
    }
    wanted
}

fn address(kind: &str, name: &str) -> std::io::Result<SocketAddr> {
    SocketAddr::from_abstract_name(format!("{kind}/{name}"))
}

fn refused(what: &str) -> Problem {
    let list = std::fs::read_to_string(LIST).unwrap_or_default();
    let who = named(&list).find(|(claim, _)| *claim == what).map_or("another experiment", |(_, id)| id);
    let does = match what {
        SETTINGS => "changes this host's settings by slots already".to_owned(),
        port => format!("assigns connections of port {port} already"),
    };
    Problem::environment(format!("{who} {does}"))
        .because("of two experiments on a connection one overrides what the other has set, and neither would be told")
        .hint("windtunnel traffic status; wait until it has ended, or end it with windtunnel traffic stop")
}

/// What is claimed, and the experiment that has it, in a list of sockets.
fn named(sockets: &str) -> impl Iterator<Item = (&str, &str)> {
    let one = |line| {
        let name = str::split_whitespace(line).next_back()?.strip_prefix('@')?.strip_prefix(EXPERIMENT)?;
        let (claim, id) = name.strip_prefix('/')?.split_once('/')?;
        // Others may call their sockets as they like.
        let is_plain = id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        (is_plain && !id.is_empty()).then_some((claim, id))
    };
    sockets.lines().filter_map(one)
}

fn experiments(sockets: &str) -> Vec<ClaimedPorts> {
    let mut found: Vec<ClaimedPorts> = Vec::new();
    for (claim, id) in named(sockets) {
        let Ok(port) = claim.parse() else { continue };
        match found.iter_mut().find(|one| one.id == id) {
            Some(one) => one.ports.push(port),
            None => found.push(ClaimedPorts { id: id.to_owned(), ports: vec![port] }),
        }
    }
    found.iter_mut().for_each(|one| one.ports.sort_unstable());
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ports of this process alone: names are those of the machine's.
    fn ports() -> [u16; 3] {
        let first = 1 + 3 * (std::process::id() % 20_000) as u16;
        [first, first + 1, first + 2]
    }

    #[test]
    fn a_port_has_one_experiment_and_is_free_again_when_that_has_ended() {
        let [first, both, other] = ports();
        let (auto, slots) = (BackendChoice::Auto, BackendChoice::Slots);
        let mut held = PortClaims::take(auto, &[first, both]).unwrap();
        let unnamed = PortClaims::take(auto, &[both]).unwrap_err();
        assert_eq!(unnamed.what, format!("another experiment assigns connections of port {both} already"));
        held.name("20261129-084500-port-443-abcd");
        for problem in [PortClaims::take(slots, &[other, both]).unwrap_err(), are_free(auto, &[both]).unwrap_err()] {
            let said = format!("20261129-084500-port-443-abcd assigns connections of port {both} already");
            assert_eq!((problem.what, problem.fault), (said, wt_problem::Fault::Environment));
        }
        assert!(are_free(auto, &[other]).is_ok() && PortClaims::take(auto, &[other]).is_ok());
        let seen = under_way().into_iter().find(|one| one.ports.contains(&first)).unwrap();
        assert_eq!((seen.id.as_str(), seen.ports), ("20261129-084500-port-443-abcd", vec![first, both]));
        drop(held);
        assert!(are_free(auto, &[first, both]).is_ok() && PortClaims::take(auto, &[both]).is_ok());
    }

    #[test]
    fn experiments_are_read_from_a_list_of_sockets_and_nothing_else() {
        let line = |name: &str| format!("0000000000000000: 00000002 00000000 00000000 0002 01 12345 {name}\n");
        let mut list = "Num       RefCount Protocol Flags    Type St Inode Path\n".to_owned();
        for name in ["@windtunnel-traffic/443/b", "@windtunnel-traffic/80/b", "@windtunnel-traffic/slots/a", "/run/x"] {
            list.push_str(&line(name));
        }
        list.push_str(&line("@windtunnel-traffic/81/\u{1b}[2J"));
        list.push_str(&line("@windtunnel-traffic/82/"));
        list.push_str(&line("@windtunnel-assigns/83"));
        assert_eq!(experiments(&list), [ClaimedPorts { id: "b".to_owned(), ports: vec![80, 443] }]);
        assert_eq!(named(&list).find(|(claim, _)| *claim == SETTINGS), Some((SETTINGS, "a")));
    }
}
