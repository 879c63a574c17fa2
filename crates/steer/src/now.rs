use crate::backend::Secrets;
use crate::own::HostAddresses;
use crate::server_cc::{ControlOrigin, ServerControl, connections};
use serde::Serialize;
use std::collections::HashSet;
use std::net::IpAddr;
use utoipa::ToSchema;
use wt_sys::diag::{DiagSocket, tcp_sockets};
use wt_sys::ns::read_net_sysctl;
use wt_traffic::{ClientPrefix, TrafficConfig, left_alone};
use wt_units::counted;

/// The connections that are open on a server's ports now: how those would be dealt with that come next.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TrafficOpenNow)]
pub struct OpenNow {
    /// The ports at which nobody listens in this network namespace.
    pub without_listener: Vec<u16>,
    /// Such as would take part.
    pub take_part: u64,
    /// The client networks that they come from: IPv4 /24, IPv6 /48.
    pub networks: u64,
    /// Left alone: from this host.
    pub this_host: u64,
    /// Left alone: from private addresses.
    pub private: u64,
    /// Left alone: from where somebody is logged in who runs this.
    pub administrator: u64,
    /// Left alone: with a congestion control of their own, where arms differ in theirs.
    pub own_cc: u64,
    /// Left alone: on other ports at which somebody listens.
    pub other_ports: u64,
}

/// Clients that are left alone by their addresses.
#[derive(Debug, Clone, Copy)]
struct KnownClients<'a> {
    administrators: &'a [IpAddr],
    own: &'a HostAddresses,
}

impl OpenNow {
    /// What is open; `None` where the kernel doesn't tell.
    pub(crate) fn look(config: &TrafficConfig, secrets: &Secrets) -> Option<Self> {
        let usual = read_net_sysctl("ipv4/tcp_congestion_control").unwrap_or_default();
        let sockets = tcp_sockets().ok()?;
        let known = KnownClients { administrators: &secrets.administrators, own: &HostAddresses::read() };
        Some(Self::of(&sockets, config, known, usual.trim()))
    }

    fn of(sockets: &[DiagSocket], config: &TrafficConfig, known: KnownClients<'_>, usual_cc: &str) -> Self {
        let listening: HashSet<u16> =
            sockets.iter().filter(|one| one.is_listener()).map(|one| one.local.port()).collect();
        let without = config.ports.iter().copied().filter(|port| !listening.contains(port));
        let mut found = Self { without_listener: without.collect(), ..Self::default() };
        let varies_cc = config.arms.iter().any(|arm| arm.settings.cc().is_some()) && !config.own_cc;
        let all = connections(sockets).map(|one| one.cookie).collect();
        let mut servers = ServerControl::all(sockets, &config.ports, usual_cc, &all);
        servers.retain(|server| server.origin == ControlOrigin::Host);
        // What only is older than the host's gets that when it comes anew.
        let is_older = |one: &DiagSocket, cc: &str| {
            servers.iter().any(|server| (server.port, server.name.as_str()) == (one.local.port(), cc))
        };
        let own_cc =
            |one: &DiagSocket| one.congestion_control.as_deref().is_some_and(|cc| cc != usual_cc && !is_older(one, cc));
        let mut networks = HashSet::new();
        for one in connections(sockets).filter(|one| listening.contains(&one.local.port())) {
            let client = one.remote.ip();
            let count = match () {
                () if !config.ports.contains(&one.local.port()) => &mut found.other_ports,
                () if client == one.local.ip() || known.own.contain(client) || left_alone(client, true).is_some() => {
                    &mut found.this_host
                }
                () if known.administrators.contains(&client) => &mut found.administrator,
                () if left_alone(client, config.private).is_some() => &mut found.private,
                () if varies_cc && own_cc(one) => &mut found.own_cc,
                () => {
                    networks.insert(ClientPrefix::of(client));
                    &mut found.take_part
                }
            };
            *count += 1;
        }
        found.networks = networks.len() as u64;
        found
    }

    /// What it says to a person, each thing in a sentence.
    #[must_use]
    pub fn sentences(&self) -> Vec<String> {
        let mut said = Vec::new();
        for port in &self.without_listener {
            said.push(format!("Nobody listens on port {port} in this network namespace."));
        }
        let left = self.private + self.this_host + self.administrator + self.own_cc + self.other_ports;
        if self.take_part + left == 0 {
            said.push("No connection is open now.".to_owned());
            return said;
        }
        let alone: Vec<String> = [
            (self.private, "from private addresses"),
            (self.this_host, "from this host"),
            (self.administrator, "from where you are logged in"),
            (self.own_cc, "with a congestion control of their own"),
            (self.other_ports, "on other ports"),
        ]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
        let alone = if alone.is_empty() { "none".to_owned() } else { alone.join(", ") };
        said.push(format!(
            "Of the connections that are open now, {} from {} would take part. Left alone: {alone}.",
            self.take_part,
            counted(self.networks as usize, "client network")
        ));
        said
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wt_traffic::TrafficArm;

    #[test]
    fn connections_that_are_older_than_the_hosts_congestion_control_have_none_of_their_own() {
        let socket = |cookie: u64, state: u8, cc: &str| DiagSocket {
            cookie,
            local: "192.0.2.1:443".parse().unwrap(),
            remote: "198.51.100.1:5000".parse().unwrap(),
            state,
            congestion_control: Some(cc.to_owned()),
            info: None,
        };
        let arms = crate::arms_of_levels(&["cc=reno,bbr".to_owned()]).unwrap();
        let config = TrafficConfig { ports: vec![443], arms, ..TrafficConfig::default() };
        let own = HostAddresses::default();
        let known = KnownClients { administrators: &[], own: &own };
        let found = |all: &[DiagSocket]| {
            let found = OpenNow::of(all, &config, known, "reno");
            [found.take_part, found.own_cc]
        };
        let (listener, old, new) = (socket(1, 10, "bbr"), socket(2, 1, "bbr"), socket(3, 1, "reno"));
        assert_eq!(found(&[listener.clone(), old.clone(), new.clone()]), [2, 0]);
        assert_eq!(found(&[listener, old.clone()]), [0, 1]);
        assert_eq!(found(&[socket(1, 10, "reno"), old, new]), [1, 1], "this one was set on the connection");
    }

    #[test]
    fn each_open_connection_is_in_one_place_and_ports_without_a_listener_are_named() {
        let socket = |local: &str, remote: &str, state: u8| DiagSocket {
            cookie: 1,
            local: local.parse().unwrap(),
            remote: remote.parse().unwrap(),
            state,
            congestion_control: Some(if remote.ends_with(":7") { "bbr" } else { "cubic" }.to_owned()),
            info: None,
        };
        let server = "192.0.2.1:443";
        let mut all = vec![socket(server, "0.0.0.0:0", 10), socket("192.0.2.1:22", "0.0.0.0:0", 10)];
        for (remote, port) in [
            ("198.51.100.1:1", 443),
            ("198.51.100.2:1", 443),
            ("198.51.100.2:7", 443),
            ("10.1.1.1:1", 443),
            ("192.0.2.1:1", 443),
            ("192.0.2.77:1", 443),
            ("203.0.113.9:1", 443),
            ("203.0.113.9:1", 22),
            ("198.51.100.1:1", 50_000),
        ] {
            all.push(socket(&format!("192.0.2.1:{port}"), remote, 1));
        }
        // A handshake that isn't over.
        all.push(DiagSocket { congestion_control: None, ..socket(server, "198.51.100.8:1", 3) });
        let arm = |text: &str| TrafficArm { name: text.to_owned(), settings: text.parse().unwrap() };
        let config = TrafficConfig {
            ports: vec![443, 80],
            arms: vec![arm("cc=cubic"), arm("cc=bbr")],
            ..TrafficConfig::default()
        };
        let own: HostAddresses = ["192.0.2.1".parse().unwrap(), "192.0.2.77".parse().unwrap()].into_iter().collect();
        let known = KnownClients { administrators: &["203.0.113.9".parse().unwrap()], own: &own };
        let found = OpenNow::of(&all, &config, known, "cubic");
        let counts =
            [found.take_part, found.networks, found.private, found.this_host, found.administrator, found.own_cc];
        assert_eq!((counts, found.other_ports), ([2, 1, 1, 2, 1, 1], 1));
        let said = found.sentences().join(" ");
        assert!(said.contains("Nobody listens on port 80") && said.contains("2 from 1 client network would"), "{said}");
        assert_eq!(OpenNow::default().sentences(), ["No connection is open now."]);
        assert!(said.contains("1 from where you are logged in") && said.contains("1 on other ports"), "{said}");
    }
}
