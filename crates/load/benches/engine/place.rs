//! Where both ends are, and the states of the machine in which they are compared.

use std::net::{IpAddr, Ipv4Addr};
use std::process::Command;
use wt_sys::ethtool::Ethtool;
use wt_sys::netlink::{Netlink, RouteMetrics, VethEnd};
use wt_sys::ns::{self, NetNs};
use wt_sys::process::allow_huge_pages;

const CLIENT: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const SERVER: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
const DEVICE: &str = "b0";

/// A state that a bench can set without reaching beyond its own namespaces and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct State {
    /// The word that asks for it.
    pub(crate) name: &'static str,
    /// What it is.
    pub(crate) what: &'static str,
    congestion_control: &'static str,
    mtu: u32,
    offloads: bool,
    huge_pages: bool,
    loopback: bool,
    /// The processors of the client and of the server, as taskset(1) takes them.
    processors: Option<[&'static str; 2]>,
}

/// As most hosts are.
const USUAL: State = State {
    name: "usual",
    what: "a veth pair, Reno",
    congestion_control: "reno",
    mtu: 1500,
    offloads: true,
    huge_pages: true,
    loopback: false,
    processors: None,
};

/// All of them.
pub(crate) const STATES: [State; 9] = [
    USUAL,
    State { name: "cubic", what: "CUBIC", congestion_control: "cubic", ..USUAL },
    State { name: "bbr", what: "BBR, which paces with timers", congestion_control: "bbr", ..USUAL },
    State { name: "jumbo", what: "an MTU of 9000", mtu: 9000, ..USUAL },
    State { name: "no-offloads", what: "without TSO, GSO and GRO", offloads: false, ..USUAL },
    State { name: "no-huge-pages", what: "without huge pages", huge_pages: false, ..USUAL },
    State { name: "pinned", what: "each end on its own processor", processors: Some(["0", "1"]), ..USUAL },
    State { name: "one-core", what: "both ends on one processor", processors: Some(["0", "0"]), ..USUAL },
    State { name: "loopback", what: "the loopback", loopback: true, ..USUAL },
];

/// Where both ends are.
pub(crate) struct Place {
    pub(crate) client: NetNs,
    pub(crate) server: NetNs,
    pub(crate) address: IpAddr,
    processors: Option<[&'static str; 2]>,
}

impl Place {
    /// Of a state, which also holds for what this process starts from now on.
    pub(crate) fn of(state: &State) -> Self {
        allow_huge_pages(state.huge_pages).unwrap();
        let processors = state.processors;
        if state.loopback {
            let here = || NetNs::current().unwrap();
            ns::write_net_sysctl("ipv4/tcp_congestion_control", state.congestion_control).unwrap();
            Netlink::open().unwrap().start("lo", None, None, true).unwrap();
            return Self { client: here(), server: here(), address: Ipv4Addr::LOCALHOST.into(), processors };
        }
        // Two namespaces joined by a veth pair.
        let (client, server) = (NetNs::create().unwrap(), NetNs::create().unwrap());
        let end = |last| VethEnd { name: DEVICE, mac: [2, 0, 0, 0, 2, last] };
        let far = std::os::fd::AsFd::as_fd(&server);
        client.run(|| Netlink::open().unwrap().create_veth(&end(1), &end(2), far)).unwrap().unwrap();
        for (ns, own) in [(&client, CLIENT), (&server, SERVER)] {
            ns.run(|| set_up(own, state)).unwrap();
        }
        Self { client, server, address: SERVER.into(), processors }
    }

    /// A command of the client's end, on its processors.
    pub(crate) fn client_command(&self, program: &str) -> Command {
        self.command(program, 0)
    }

    /// One of the server's.
    pub(crate) fn server_command(&self, program: &str) -> Command {
        self.command(program, 1)
    }

    fn command(&self, program: &str, end: usize) -> Command {
        let Some(processors) = self.processors else { return Command::new(program) };
        // It becomes the program, so that the process that was started is the one whose time is read.
        let mut command = Command::new("taskset");
        command.args(["-c", processors[end], program]);
        command
    }
}

/// One end of the pair.
fn set_up(own: Ipv4Addr, state: &State) {
    // What the host's administrator chose shall not decide this. A route may name any that the kernel has, a namespace's default may not.
    let metrics = RouteMetrics { congctl: Some(state.congestion_control.to_owned()), ..RouteMetrics::default() };
    let mut netlink = Netlink::open().unwrap();
    netlink.add_address(DEVICE, own.into(), 32).unwrap();
    netlink.start(DEVICE, Some(state.mtu), None, true).unwrap();
    netlink.set_route(DEVICE, Ipv4Addr::UNSPECIFIED.into(), 0, &metrics).unwrap();
    if !state.offloads {
        let ethtool = Ethtool::open().unwrap();
        for feature in ["tx-tcp-segmentation", "tx-generic-segmentation", "rx-gro"] {
            ethtool.set_feature(DEVICE, feature, false).unwrap();
        }
        assert!(!ethtool.features(DEVICE).unwrap()["tx-tcp-segmentation"].active, "TSO stays on");
    }
}
