//! Two hosts that are made for one connection and are gone afterwards: what a route lays down for its connections shows there where
//! nobody answers on the route itself, or where it leads to no address in particular.

use super::connection;
use super::facts::ObservedConnection;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::time::Duration;
use wt_sys::netlink::{Netlink, VethEnd};
use wt_sys::ns::NetNs;
use wt_sys::route::{Metric, Metrics};
use wt_sys::{SysResult, tcp};

/// The devices of both.
const DEVICES: [&str; 2] = ["wt0", "wt1"];
/// A device of a pair takes a moment until it carries packets; what is lost meanwhile comes again after a second or more.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long that moment is waited for; what comes too early nevertheless comes again.
const UNTIL_UP: Duration = Duration::from_secs(1);
/// The MTU where the route has none.
const USUAL_MTU: u32 = 1_500;

/// A connection over a route with these metrics, of IPv6 or IPv4. Nothing of this host's network is touched.
pub(super) fn over(metrics: &Metrics, v6: bool) -> SysResult<ObservedConnection> {
    let [near, far] = [NetNs::create()?, NetNs::create()?];
    let address = |last: u8| -> IpAddr {
        let v6_of = |last: u8| Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, last.into()).into();
        if v6 { v6_of(last) } else { [192, 0, 2, last].into() }
    };
    let (addresses, nobody) = ([address(1), address(2)], address(3));
    let prefix = if v6 { 64 } else { 24 };
    let mtu = metrics.get(Metric::Mtu).unwrap_or(0).max(USUAL_MTU);
    let start = |end: usize| -> SysResult<Netlink> {
        let mut netlink = Netlink::open()?;
        netlink.start(DEVICES[end], Some(mtu), None, true)?;
        netlink.add_address(DEVICES[end], addresses[end], prefix)?;
        Ok(netlink)
    };
    let ends = [1, 2].map(|last| [2, 0, 0, 0, 0, last]);
    near.run(|| {
        let [near, peer] = [0, 1].map(|end| VethEnd { name: DEVICES[end], mac: ends[end] });
        Netlink::open()?.create_veth(&near, &peer, far.as_fd())
    })??;
    let listener = far.run(|| {
        start(1)?;
        tcp::listen(SocketAddr::new(addresses[1], 0))
    })??;
    let peer = listener.local_addr().map_err(wt_sys::SysError::io("listen on a host of a pair"))?;
    near.run(|| {
        let mut netlink = start(0)?;
        netlink.wait_until_up(DEVICES[0], UNTIL_UP)?;
        far.run(|| Netlink::open()?.wait_until_up(DEVICES[1], UNTIL_UP))??;
        let leads_there = |route: &wt_sys::route::Route| {
            let (network, bits) = route.destination();
            bits == prefix && network.is_ipv6() == v6 && !network.to_string().starts_with("fe80:")
        };
        if let Some(route) = netlink.routes()?.iter().find(|route| leads_there(route)) {
            netlink.replace_route(&route.with_metrics(metrics))?;
        }
        // What a SYN says is looked at where nobody answers.
        let begun = connection::begun_to(SocketAddr::new(nobody, peer.port()))?;
        Ok(ObservedConnection { established: connection::to(peer, PATIENCE)?.established, ..begun })
    })?
}
