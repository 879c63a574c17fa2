use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use wt_sys::ethtool::{Driver, Feature, LinkMode, Rings};
use wt_sys::link::{Link, LinkAddress, Qdisc};
use wt_sys::route::Metrics;

/// Devices, addresses, qdiscs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Devices {
    /// The devices.
    pub links: Vec<Link>,
    /// Their addresses.
    pub addresses: Vec<LinkAddress>,
    /// Their queueing disciplines.
    pub qdiscs: Vec<Qdisc>,
}

/// What the driver of a device says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Details {
    /// Which driver it is.
    pub driver: Option<Driver>,
    /// Speed and duplex.
    pub mode: Option<LinkMode>,
    /// Ring sizes.
    pub rings: Option<Rings>,
    /// Offloads by the kernel's names.
    pub features: std::collections::BTreeMap<String, Feature>,
}

/// Where a connection is made that shows what is in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObservedPlace {
    /// From this host to an address, with one SYN.
    Target(IpAddr),
    /// From this host to an address that a device of it leads to, with one SYN.
    Neighbour {
        /// Whom a route over the device goes through.
        address: IpAddr,
        /// The device's index.
        device: u32,
    },
    /// From this host to itself; some data go over it.
    ThisHost,
    /// Between two hosts that are made for it, over a route with these metrics.
    Pair {
        /// What the route lays down.
        metrics: Metrics,
        /// Whether it is one of IPv6.
        v6: bool,
    },
}

/// What a connection of this host had: asked of its socket, not of the settings that led to it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ObservedConnection {
    /// The congestion control.
    pub congestion_control: String,
    /// The MSS that was announced, bytes.
    pub advertised_mss: u64,
    /// The largest packet, bytes.
    pub path_mtu: u64,
    /// The window of the SYN, bytes, if it was looked at before an answer came.
    pub first_window: Option<u64>,
    /// The bound of the window, bytes, if the receive buffer can't grow past it; else the buffer may.
    pub window_clamp: Option<u64>,
    /// The send buffer, bytes, with the kernel's share.
    pub send_buffer: u64,
    /// What only an established connection has.
    pub established: Option<EstablishedConnection>,
}

/// What only an established connection has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct EstablishedConnection {
    /// The congestion window before the first byte, segments.
    pub first_cwnd: u64,
    /// The greatest window that the other end was offered, bytes.
    pub greatest_window: u64,
    /// Selective acknowledgements.
    pub sack: bool,
    /// Timestamps.
    pub timestamps: bool,
    /// Window scaling.
    pub window_scaling: bool,
    /// Explicit congestion notification.
    pub ecn: bool,
}

/// Who may change a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ownership {
    /// The owner's user id.
    pub uid: u32,
    /// Permission bits.
    pub mode: u32,
    /// Whether it is an ordinary file, rather than a link or a device.
    pub is_file: bool,
    /// Whether it is a directory.
    pub is_directory: bool,
}

/// What time it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// Nanoseconds since boot, sleep included. Deadlines count in these, so that setting the clock moves none.
    pub boottime_ns: u64,
    /// Seconds since 1970, for people.
    pub unix_s: u64,
}

/// What tells machine, boot, network namespace and user apart.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The boot.
    pub boot_id: String,
    /// The network namespace: a number that the kernel gives again once the namespace is gone.
    pub network: String,
    /// The cookie of the network namespace, which no other one gets until the next boot; `None` before Linux 5.14.
    #[serde(default)]
    pub network_cookie: Option<u64>,
    /// Whether it is the one that process 1 lives in; `None` if that can't be told.
    pub network_of_init: Option<bool>,
    /// Whether what is under /etc is done for this network namespace at boot.
    pub owns_etc: bool,
    /// The effective user.
    pub uid: u32,
    /// The kernel's release, such as `6.1.0-13-amd64`.
    pub kernel: String,
    /// Whether this process has `CAP_NET_ADMIN`.
    pub net_admin: bool,
}

impl Identity {
    /// Whether it is the same network namespace, provided that it is the same boot.
    #[must_use]
    pub(crate) fn is_same_network(&self, other: &Self) -> bool {
        let cookies = self.network_cookie.zip(other.network_cookie);
        self.network == other.network && cookies.is_none_or(|(own, others)| own == others)
    }
}
