//! The link of this host over which a target is reached, as it is right now.

use serde_json::{Value, json};
use std::net::IpAddr;
use wt_sys::ethtool::Ethtool;
use wt_sys::netlink::Netlink;
use wt_sys::route::Metric;

/// The device towards an address with all that may change from trial to trial: the route's gateway, source and metrics, driver, negotiated speed and duplex, and for
/// Wi-Fi the rates of the last packets and the strength of the signal; `None` if the kernel doesn't tell even the device.
///
/// # Units
/// `route` has what the route lays down, in the words and units of ip-route(8); `speed_mbps`, `tx_rate_mbps`, `rx_rate_mbps` in Mbit/s, `signal_dbm` in dBm. What a device doesn't have is left out.
pub(crate) fn link_to(address: IpAddr) -> Option<Value> {
    let mut netlink = Netlink::open().ok()?;
    let route = netlink.route_to(address).ok()?;
    let hops = route.hops();
    let hop = hops.first()?;
    let index = hop.device;
    let link = netlink.links().ok()?.into_iter().find(|link| link.index == index)?;
    let mut told = json!({"device": link.name, "mtu": link.mtu});
    if let Some(gateway) = hop.gateway {
        told["via"] = json!(gateway);
    }
    if let Some(source) = route.source() {
        told["source"] = json!(source);
    }
    let metrics = route.metrics();
    for (name, number) in Metric::ALL.into_iter().filter_map(|metric| Some((metric.name(), metrics.get(metric)?))) {
        told["route"][name] = json!(number);
    }
    if let Some(control) = metrics.congctl() {
        told["route"]["congctl"] = json!(control);
    }
    if let Ok(ethtool) = Ethtool::open() {
        if let Ok(driver) = ethtool.driver(&link.name) {
            told["driver"] = json!(driver.name);
        }
        if let Ok(mode) = ethtool.link_mode(&link.name) {
            if let Some(speed) = mode.speed_mbps {
                told["speed_mbps"] = json!(speed);
            }
            if let Some(full) = mode.full_duplex {
                told["duplex"] = json!(if full { "full" } else { "half" });
            }
        }
    }
    if let Ok(Some(station)) = wt_sys::wireless::station(index) {
        let mbps = |units: u32| f64::from(units) / 10.0;
        for (name, value) in [
            ("signal_dbm", station.signal_dbm.map(|dbm| json!(dbm))),
            ("tx_rate_mbps", station.tx_100kbps.map(|rate| json!(mbps(rate)))),
            ("rx_rate_mbps", station.rx_100kbps.map(|rate| json!(mbps(rate)))),
        ] {
            if let Some(value) = value {
                told[name] = value;
            }
        }
    }
    Some(told)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_this_host_itself_is_the_loopback_device() {
        let link = link_to("127.0.0.1".parse().unwrap()).unwrap();
        assert_eq!(link["device"], "lo");
        assert!(link["mtu"].as_u64().unwrap() >= 1280 && link.get("signal_dbm").is_none(), "{link}");
    }
}
