use crate::census::BETWEEN_LOOKS;
use std::collections::HashSet;
use wt_sys::diag::{DiagSocket, tcp_sockets};
use wt_sys::ns::read_net_sysctl;
use wt_sys::{clock, poll};

/// How long connections are waited for that show which congestion control a server's have.
const WITHIN_NS: u64 = 2_000_000_000;

/// Where the congestion control of a server's connections comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ControlOrigin {
    /// From the host: a connection has the host's.
    Host,
    /// From the server's program, which has set it: a connection that came after the first look has the listener's.
    Server,
    /// Nobody has come who shows it; connections of before may be older than the host's present one.
    Unknown,
}

/// A server that listens with another congestion control than the host has: its program has set that, or it was usual when the listener
/// was made.
///
/// # Source
/// `tcp_ca_openreq_child()` in net/ipv4/tcp_minisocks.c of Linux: a connection gets its listener's only if that was set, and otherwise
/// what is usual when it begins. The kernel doesn't tell which of both holds for a listener.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerControl {
    pub(crate) port: u16,
    /// What it listens with.
    pub(crate) name: String,
    /// What the host has.
    pub(crate) usual: String,
    pub(crate) origin: ControlOrigin,
}

impl ServerControl {
    /// What sockets show of such servers; connections in `older` may have begun before the host had what is usual now.
    pub(crate) fn all(sockets: &[DiagSocket], ports: &[u16], usual: &str, older: &HashSet<u64>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        for &port in ports {
            let listeners: Vec<&DiagSocket> =
                sockets.iter().filter(|one| one.is_listener() && one.local.port() == port).collect();
            for name in listeners.iter().filter_map(|one| one.congestion_control.as_deref()) {
                if name != usual && !found.iter().any(|one| (one.port, one.name.as_str()) == (port, name)) {
                    let origin = origin(sockets, &listeners, [name, usual], older);
                    found.push(Self { port, name: name.to_owned(), usual: usual.to_owned(), origin });
                }
            }
        }
        found
    }

    /// The same by looks for up to two seconds, as long as something isn't known; none where the kernel doesn't tell.
    pub(crate) fn watch(ports: &[u16]) -> Vec<Self> {
        let Ok(usual) = read_net_sysctl("ipv4/tcp_congestion_control") else { return Vec::new() };
        let until = clock::monotonic_ns() + WITHIN_NS;
        let (mut known, mut older): (Vec<Self>, Option<HashSet<u64>>) = (Vec::new(), None);
        while let Ok(sockets) = tcp_sockets() {
            let older = older.get_or_insert_with(|| connections(&sockets).map(|one| one.cookie).collect());
            let now = Self::all(&sockets, ports, usual.trim(), older);
            known.retain(|one| one.origin != ControlOrigin::Unknown);
            for one in now {
                if !known.iter().any(|known| (known.port, &known.name) == (one.port, &one.name)) {
                    known.push(one);
                }
            }
            let is_known = known.iter().all(|one| one.origin != ControlOrigin::Unknown);
            if is_known || clock::monotonic_ns() >= until || poll::wait_readable(&[], Some(BETWEEN_LOOKS)).is_err() {
                break;
            }
        }
        known
    }
}

/// All but listeners and requests.
pub(crate) fn connections(sockets: &[DiagSocket]) -> impl Iterator<Item = &DiagSocket> {
    sockets.iter().filter(|one| !one.is_listener() && !one.is_request())
}

/// Where the connections of a port's listeners with the first of two congestion controls have theirs from; the second is the host's.
fn origin(
    sockets: &[DiagSocket],
    listeners: &[&DiagSocket],
    [name, usual]: [&str; 2],
    older: &HashSet<u64>,
) -> ControlOrigin {
    let mut origin = ControlOrigin::Unknown;
    for one in connections(sockets).filter(|one| listeners.iter().any(|heard| heard.local.port() == one.local.port())) {
        let heard = heard_by(one, listeners);
        let listens = |listener: &&&DiagSocket| listener.congestion_control.as_deref() == Some(name);
        match one.congestion_control.as_deref() {
            Some(has) if has == usual && !heard.is_empty() && heard.iter().all(|one| listens(&one)) => {
                return ControlOrigin::Host;
            }
            Some(has) if has == name && !older.contains(&one.cookie) && heard.iter().any(|one| listens(&one)) => {
                origin = ControlOrigin::Server;
            }
            _ => {}
        }
    }
    origin
}

/// The listeners of one port from which a connection may have come: those at its address, or else those at any.
fn heard_by<'a>(connection: &DiagSocket, listeners: &[&'a DiagSocket]) -> Vec<&'a DiagSocket> {
    let to = connection.local.ip();
    let at = |fits: &dyn Fn(&DiagSocket) -> bool| -> Vec<&'a DiagSocket> {
        listeners.iter().copied().filter(|listener| fits(listener)).collect()
    };
    let exact = at(&|listener| listener.local.ip() == to);
    if !exact.is_empty() {
        return exact;
    }
    let any = |listener: &DiagSocket| listener.local.ip().is_unspecified();
    let same = at(&|listener| any(listener) && listener.local.is_ipv4() == to.is_ipv4());
    // A socket of IPv6 takes IPv4, too.
    if same.is_empty() { at(&any) } else { same }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket(cookie: u64, local: &str, state: u8, cc: &str) -> DiagSocket {
        let (local, remote) = (local.parse().unwrap(), "198.51.100.1:5000".parse().unwrap());
        DiagSocket { cookie, local, remote, state, congestion_control: Some(cc.to_owned()), info: None }
    }

    fn origins(sockets: &[DiagSocket], older: &[u64]) -> Vec<(String, ControlOrigin)> {
        let all = ServerControl::all(sockets, &[443], "reno", &older.iter().copied().collect());
        all.into_iter().map(|one| (one.name, one.origin)).collect()
    }

    #[test]
    fn a_listener_that_is_older_than_the_hosts_congestion_control_is_told_from_one_that_has_set_its_own() {
        let [any, any6] = ["0.0.0.0:443", "[::]:443"].map(|local| socket(1, local, 10, "bbr"));
        let here = |cookie, cc| socket(cookie, "192.0.2.1:443", 1, cc);
        let bbr = |origin| vec![("bbr".to_owned(), origin)];
        let (host, server, unknown) =
            (bbr(ControlOrigin::Host), bbr(ControlOrigin::Server), bbr(ControlOrigin::Unknown));
        assert_eq!(origins(&[any.clone(), any6.clone()], &[]), unknown, "nobody is there");
        assert_eq!(origins(&[any.clone(), here(7, "bbr")], &[7]), unknown, "it may be as old");
        assert_eq!(origins(&[any.clone(), here(7, "bbr"), here(8, "bbr")], &[7]), server);
        assert_eq!(origins(&[any.clone(), any6.clone(), here(7, "bbr"), here(8, "reno")], &[7, 8]), host);
        assert_eq!(origins(&[any6.clone(), here(8, "reno")], &[]), host, "IPv4 at a socket of IPv6");
        assert_eq!(origins(&[socket(1, "0.0.0.0:443", 10, "reno"), here(7, "bbr")], &[]), [], "as the host");
        assert_eq!(origins(&[any.clone(), socket(7, "192.0.2.1:80", 1, "reno")], &[]), unknown, "of another port");
        let request = DiagSocket { congestion_control: None, ..socket(7, "192.0.2.1:443", 3, "") };
        assert_eq!(origins(&[any, request], &[]), unknown);
    }

    #[test]
    fn a_connection_speaks_for_the_listeners_from_which_it_may_have_come_and_for_no_others() {
        let at = |local: &str, cc| socket(1, local, 10, cc);
        let [own, plain] = [at("192.0.2.9:443", "bbr"), at("0.0.0.0:443", "reno")];
        let come = |local: &str, cc| socket(9, local, 1, cc);
        let bbr = |origin| vec![("bbr".to_owned(), origin)];
        let both = |one| origins(&[own.clone(), plain.clone(), one], &[]);
        assert_eq!(both(come("192.0.2.1:443", "reno")), bbr(ControlOrigin::Unknown), "that came to the other");
        assert_eq!(both(come("192.0.2.9:443", "bbr")), bbr(ControlOrigin::Server));
        assert_eq!(both(come("192.0.2.9:443", "reno")), bbr(ControlOrigin::Host));
        // Two share an address.
        let shared = |cc| origins(&[at("0.0.0.0:443", "bbr"), plain.clone(), come("192.0.2.1:443", cc)], &[]);
        assert_eq!(shared("reno"), bbr(ControlOrigin::Unknown));
        assert_eq!(shared("bbr"), bbr(ControlOrigin::Server));
    }
}
