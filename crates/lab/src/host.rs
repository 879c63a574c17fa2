//! The two hosts: a network namespace each, with one device towards the path.

use crate::port::Port;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicU32, Ordering};
use wt_sys::netlink::{Netlink, RouteMetrics, VethEnd};
use wt_sys::ns::{NetNs, write_net_sysctl};
use wt_sys::packet::PacketPort;
use wt_sys::tun::Tun;
use wt_sys::{SysError, SysResult};

/// The device of each host.
pub const DEVICE: &str = "wt0";

/// How the emulator reaches the hosts' kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// TUN where it can be opened, or else veth.
    #[default]
    #[serde(rename = "auto")]
    Best,
    /// TUN devices.
    Tun,
    /// veth pairs with packet sockets.
    Veth,
}

/// A host of the lab.
#[derive(Debug)]
pub struct Host {
    /// `client`, `server`, or the name of a host on the way.
    pub name: String,
    /// Where it lives.
    pub ns: NetNs,
    /// Its IPv4 address: of 198.18.0.0/15, kept for benchmarks (RFC 2544).
    pub v4: Ipv4Addr,
    /// Its IPv6 address: of 2001:2::/48, kept for benchmarks (RFC 5180).
    pub v6: Ipv6Addr,
}

/// How many veth pairs this process has made.
static PAIRS: AtomicU32 = AtomicU32::new(0);

/// The least MTU of a link with IPv6, bytes (RFC 8200 section 5).
const LEAST_MTU_V6: u32 = 1280;

/// The client's address.
pub const CLIENT_V4: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The server's address.
pub const SERVER_V4: Ipv4Addr = Ipv4Addr::new(198, 19, 0, 1);
/// The client's address.
pub const CLIENT_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x18, 0, 0, 0, 1);
/// The server's address.
pub const SERVER_V6: Ipv6Addr = Ipv6Addr::new(0x2001, 2, 0, 0x19, 0, 0, 0, 1);
/// Where our own server listens in the server host.
pub const PORT: u16 = 7411;

/// The addresses of the host with this number.
fn address_of(number: usize) -> (Ipv4Addr, Ipv6Addr) {
    match number {
        0 => (CLIENT_V4, CLIENT_V6),
        1 => (SERVER_V4, SERVER_V6),
        // Behind the server's, in the same blocks.
        _ => {
            let last = u8::try_from(number - 1).unwrap_or(u8::MAX);
            (Ipv4Addr::new(198, 19, last, 1), Ipv6Addr::new(0x2001, 2, 0, 0x19, 0, 0, u16::from(last), 1))
        }
    }
}

/// The IPv4 address of the router with this number, counted from the client.
#[must_use]
pub(crate) fn router_v4(number: usize) -> Ipv4Addr {
    Ipv4Addr::new(198, 18, 255, u8::try_from(number + 1).unwrap_or(255))
}

/// The IPv6 address of the router with this number, counted from the client.
#[must_use]
pub(crate) fn router_v6(number: usize) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 2, 0, 0xff, 0, 0, 0, u16::try_from(number + 1).unwrap_or(u16::MAX))
}

impl Host {
    /// Makes the host, its device and the emulator's port to it. The client is number 0, the server 1, hosts on the way
    /// follow.
    pub(crate) fn create(number: usize, name: &str, mtu: u32, backend: Backend) -> SysResult<(Self, Port)> {
        let (v4, v6) = address_of(number);
        let host = Self { name: name.to_owned(), ns: NetNs::create()?, v4, v6 };
        let port = match backend {
            Backend::Tun => host.tun()?,
            Backend::Veth => host.veth(number, mtu)?,
            Backend::Best => host.tun().or_else(|_| host.veth(number, mtu))?,
        };
        let arp = false;
        let queue = Some(10_000);
        host.ns.run(|| -> SysResult<()> {
            // Whatever one trial learns of the path must not help the next.
            write_net_sysctl("ipv4/tcp_no_metrics_save", "1")?;
            write_net_sysctl("ipv6/conf/all/accept_ra", "0")?;
            // Anybody in the lab may ping. Only group 0 exists in the namespace.
            write_net_sysctl("ipv4/ping_group_range", "0 0")?;
            let mut netlink = Netlink::open()?;
            netlink.start("lo", None, None, true)?;
            netlink.add_address(DEVICE, v4.into(), 32)?;
            let _ = write_net_sysctl(&format!("ipv6/conf/{DEVICE}/accept_dad"), "0");
            // Below this MTU a device has no IPv6 (RFC 8200 section 5).
            let has_v6 = mtu >= LEAST_MTU_V6 && netlink.add_address(DEVICE, v6.into(), 128).is_ok();
            netlink.start(DEVICE, Some(mtu), queue, arp)?;
            netlink.set_route(DEVICE, Ipv4Addr::UNSPECIFIED.into(), 0, &RouteMetrics::default())?;
            if has_v6 {
                netlink.set_route(DEVICE, Ipv6Addr::UNSPECIFIED.into(), 0, &RouteMetrics::default())?;
            }
            Ok(())
        })??;
        Ok((host, port))
    }

    fn tun(&self) -> SysResult<Port> {
        self.ns.run(|| Tun::create(DEVICE))?.map(Port::Tun)
    }

    /// A veth pair from this host to the emulator's own namespace, in which this thread is.
    fn veth(&self, number: usize, mtu: u32) -> SysResult<Port> {
        let host_mac = [2, 0, 0, 0, 1, number as u8];
        // Each pair of this process has a name of its own: the kernel takes an earlier lab's devices away some time after its
        // namespaces are gone. A name has at most 15 characters (`IFNAMSIZ` of netdevice(7), with the zero at its end).
        let pair = PAIRS.fetch_add(1, Ordering::Relaxed);
        let mut far = format!("to{pair}-{}", self.name);
        if far.len() > 15 {
            far = format!("to{pair}-host");
        }
        // The emulator's ends must not speak by themselves.
        let _ = write_net_sysctl("ipv6/conf/default/disable_ipv6", "1");
        let emulator = NetNs::current()?;
        self.ns.run(|| -> SysResult<()> {
            let near = VethEnd { name: DEVICE, mac: host_mac };
            let far = VethEnd { name: &far, mac: [2, 0, 0, 0, 0, number as u8] };
            let ns = std::os::fd::AsFd::as_fd(&emulator);
            Netlink::open()?.create_veth(&near, &far, ns)
        })??;
        Netlink::open()?.start(&far, Some(mtu), None, false)?;
        Ok(Port::Veth { device: PacketPort::open(&far)?, host: host_mac })
    }

    /// Runs something on a thread in this host.
    ///
    /// # Errors
    /// [`SysError`] when the host is gone.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> SysResult<T> {
        self.ns.run(work)
    }

    /// Reads a setting under `/proc/sys/net` of this host.
    ///
    /// # Errors
    /// [`SysError`] when the kernel has no such setting.
    pub fn sysctl(&self, name: &str) -> SysResult<String> {
        self.run(|| wt_sys::ns::read_net_sysctl(name))?
    }

    /// Lets every connection of this host have this congestion control, whatever its program asks for: the default route
    /// carries it, locked.
    ///
    /// # Errors
    /// [`SysError`]; `EINVAL` when the kernel has none of this name.
    pub fn lock_control(&self, kernel_name: &str) -> SysResult<()> {
        let metrics = RouteMetrics { congctl: Some(kernel_name.to_owned()), ..RouteMetrics::default() };
        self.run(|| {
            let mut netlink = Netlink::open()?;
            netlink.set_route(DEVICE, Ipv4Addr::UNSPECIFIED.into(), 0, &metrics)?;
            // A host without IPv6 has no such route.
            let _ = netlink.set_route(DEVICE, Ipv6Addr::UNSPECIFIED.into(), 0, &metrics);
            Ok(())
        })?
    }

    /// Sets the metrics of the route to one address; the default metrics take the route away.
    ///
    /// # Errors
    /// [`SysError`] with what the kernel said.
    pub fn set_route(&self, target: IpAddr, metrics: &RouteMetrics) -> SysResult<()> {
        let prefix = if target.is_ipv4() { 32 } else { 128 };
        self.run(|| {
            let mut netlink = Netlink::open()?;
            if *metrics == RouteMetrics::default() {
                match netlink.remove_route(target, prefix) {
                    Err(error) if error.errno() == Some(3) => Ok(()), // ESRCH: there was none
                    other => other,
                }
            } else {
                netlink.set_route(DEVICE, target, prefix, metrics)
            }
        })?
    }
}

/// An error of setting up, with what to try.
pub(crate) fn advice(error: &SysError) -> &'static str {
    match error.errno() {
        Some(1 | 13) => "run `windtunnel doctor`: it tells which privilege or kernel setting is missing",
        Some(24) => "raise the limit of open files (ulimit -n)",
        Some(28) => "raise user.max_net_namespaces (sysctl)",
        _ => "run `windtunnel doctor`",
    }
}
