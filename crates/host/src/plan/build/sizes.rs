//! Bytes that follow from the MTU and the MSS of routes and devices, the plan included.

use super::Builder;
use crate::knob::{Knob, Value};
use crate::plan::IPV6_LEAST_MTU;
use crate::snapshot::route_key;
use wt_sys::route::{Metric, Route};
use wt_units::FullPacket;

/// Headers that the MSS leaves room for: IPv4 or IPv6, and TCP, without options (RFC 6691).
const HEADERS: [(bool, u64); 2] = [(false, 40), (true, 60)];

/// Why a route can't have this MTU, if IPv6 has none so small: the kernel takes it, and what comes in and other programs don't keep to it.
pub(super) fn too_small_for_ipv6(knob: &Knob, is_v6: bool, asked: &Value) -> Option<String> {
    let small = asked.number().is_some_and(|mtu| mtu < u64::from(IPV6_LEAST_MTU));
    (knob.name == "mtu" && is_v6 && small).then(|| "IPv6 has no MTU below 1280 (RFC 8200)".to_owned())
}

impl Builder<'_> {
    /// The largest payload of segments that come in over a route, the plan included.
    pub(super) fn mss_of(&self, route: &Route) -> u64 {
        let from_mtu = self.mtu_of(route).saturating_sub(headers_of(route));
        let key = route_key(route);
        let planned = self.plan.wanted.routes.iter().find(|other| route_key(other) == key).unwrap_or(route);
        planned.metrics().get(Metric::Advmss).map_or(from_mtu, |mss| u64::from(mss).min(from_mtu))
    }

    /// What multiples are multiplied with on a route, the plan included.
    pub(super) fn full_packet(&self, route: &Route) -> FullPacket {
        FullPacket { mtu: self.mtu_of(route), mss: self.mss_of(route) }
    }

    /// The MTU that packets over a route will have, the plan included.
    pub(super) fn mtu_of(&self, route: &Route) -> u64 {
        let planned = self.planned.get(&route.key()).unwrap_or(route);
        let index = route.hops().first().map_or(0, |hop| hop.device);
        let device =
            self.plan.wanted.devices.values().find(|device| device.index == index).map_or(1_500, |device| device.mtu);
        u64::from(planned.metrics().get(Metric::Mtu).map_or(device, |mtu| mtu.min(device)))
    }

    /// Bytes for the whole host: multiples are of the MSS or MTU of the default route, or else of the main device.
    pub(super) fn bytes(&self, asked: &Value) -> Option<u64> {
        let of_device = || {
            let device = self.survey.main_link().and_then(|link| self.plan.wanted.devices.get(&link.name));
            let mtu = u64::from(device.map_or(1_500, |device| device.mtu));
            FullPacket { mtu, mss: mtu.saturating_sub(HEADERS[0].1) }
        };
        let full = || self.survey.default_routes().first().map_or_else(of_device, |route| self.full_packet(route));
        in_bytes(asked, full)
    }
}

/// The bytes that are asked for, if they are.
pub(super) fn in_bytes(asked: &Value, full: impl FnOnce() -> FullPacket) -> Option<u64> {
    match asked {
        Value::TimesMss(times) => Some(full().mss * u64::from(*times)),
        Value::TimesMtu(times) => Some(full().mtu * u64::from(*times)),
        other => other.number(),
    }
}

pub(super) fn headers_of(route: &Route) -> u64 {
    HEADERS[usize::from(route.is_v6())].1
}
