//! What a connection shows of a change, beside what the kernel says it has set.

use super::outcome::AppliedRow;
use crate::change::{Change, Place};
use crate::knob::{Knob, Value};
use crate::snapshot::{RouteIndex, Snapshot, route_key};
use crate::system::{ObservedConnection, ObservedPlace, System};
use std::net::IpAddr;
use wt_sys::route::{Metric, Metrics, Route};

/// Makes a connection for each place of the changes, and writes into their rows what it had; what differs from what was asked,
/// in words. A place to which no connection can be made is passed over: there is nothing to compare.
pub(super) fn observe(
    system: &mut dyn System,
    changes: &[Change],
    wanted: &Snapshot,
    rows: &mut [AppliedRow],
) -> Result<(), String> {
    let mut seen = ConnectionObserver { system, places: Vec::new() };
    let mut wrong = Vec::new();
    let routes = RouteIndex::of(&wanted.routes);
    for (change, row) in changes.iter().zip(rows).filter(|(change, _)| !change.unchanged) {
        let mut places = places_of(change, wanted, &routes);
        if is_passed_by(change, seen.system, &routes) {
            places.retain(|place| !matches!(place, ObservedPlace::Pair { .. }));
        }
        let Some((value, fits)) = places.into_iter().find_map(|place| compare(change, seen.at(place)?)) else {
            continue;
        };
        if !fits {
            wrong.push(format!("{} on {}: asked {}, but a connection has {value}", row.key, row.target, row.asked));
        }
        row.observed = Some(value);
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("; ")) }
}

/// Whether packets to a target follow another route than the one that was changed for it, as rules may have it: then nobody
/// stands in for the target.
fn is_passed_by(change: &Change, system: &mut dyn System, routes: &RouteIndex<'_>) -> bool {
    let Place::Route(key) = &change.place else { return false };
    let target = routes.get_hex(key).map(Route::destination).and_then(|(address, bits)| whole(address, bits));
    target.and_then(|target| system.route_to(target).ok()).is_some_and(|followed| route_key(&followed) != *key)
}

/// The address, if it isn't that of a whole network.
fn whole(address: IpAddr, bits: u8) -> Option<IpAddr> {
    (bits == if address.is_ipv4() { 32 } else { 128 }).then_some(address)
}

/// Connections that were made, each once.
struct ConnectionObserver<'a> {
    system: &'a mut dyn System,
    places: Vec<(ObservedPlace, Option<ObservedConnection>)>,
}

impl ConnectionObserver<'_> {
    /// What the connection at a place had; `None` where none can be made, or where there were enough.
    fn at(&mut self, place: ObservedPlace) -> Option<&ObservedConnection> {
        let known = self.places.iter().position(|(at, _)| *at == place);
        if known.is_none() && self.places.len() >= MOST_PLACES {
            return None;
        }
        let at = known.unwrap_or_else(|| {
            let observed = self.system.observe(&place).ok();
            self.places.push((place, observed));
            self.places.len() - 1
        });
        self.places[at].1.as_ref()
    }
}

/// Thousands of routes can change at once, and each connection takes its time.
const MOST_PLACES: usize = 8;

/// Where a connection shows a change: the first that can be made and tells.
fn places_of(change: &Change, wanted: &Snapshot, routes: &RouteIndex<'_>) -> Vec<ObservedPlace> {
    let Ok(knob) = Knob::find(&change.key) else { return Vec::new() };
    match &change.place {
        Place::Host if ON_LOOPBACK.contains(&knob.name) => vec![ObservedPlace::ThisHost],
        Place::Link(name) if ON_DEVICE.contains(&knob.name) => {
            let Some(device) = wanted.devices.get(name) else { return Vec::new() };
            let asked = change.new.number().and_then(|number| u32::try_from(number).ok());
            neighbours(wanted, device.index).chain(asked.map(pair_with_mtu)).collect()
        }
        Place::Host | Place::Link(_) => Vec::new(),
        Place::Route(key) if ON_ROUTE.contains(&knob.name) => {
            let Some(route) = routes.get_hex(key) else { return Vec::new() };
            let (address, bits) = route.destination();
            // Who doesn't answer, or is a whole network, is stood in for.
            let pair = ObservedPlace::Pair { metrics: route.metrics(), v6: route.is_v6() };
            whole(address, bits).map(ObservedPlace::Target).into_iter().chain([pair]).collect()
        }
        Place::Route(_) => Vec::new(),
        Place::Connections(target) => {
            let rule = wanted.connections_with(target);
            rule.and_then(|rule| whole(rule.address, rule.bits)).map(ObservedPlace::Target).into_iter().collect()
        }
    }
}

/// Whom routes over a device go through: who is sure to be behind it.
fn neighbours(wanted: &Snapshot, device: u32) -> impl Iterator<Item = ObservedPlace> {
    let hops = wanted.routes.iter().flat_map(Route::hops).filter(move |hop| hop.device == device);
    // An address of the link alone says nothing without the link.
    let named = hops.filter_map(|hop| hop.gateway).filter(|address| match address {
        IpAddr::V4(v4) => !v4.is_link_local(),
        IpAddr::V6(v6) => !v6.is_unicast_link_local(),
    });
    named.take(MOST_NEIGHBOURS).map(move |address| ObservedPlace::Neighbour { address, device })
}

/// Thousands of routes can go through one device.
const MOST_NEIGHBOURS: usize = 2;

/// Two hosts whose packets have so many bytes at most.
fn pair_with_mtu(mtu: u32) -> ObservedPlace {
    let mut metrics = Metrics::default();
    metrics.set(Metric::Mtu, Some(mtu), false);
    ObservedPlace::Pair { metrics, v6: false }
}

/// Settings of a device that a connection shows.
const ON_DEVICE: [&str; 1] = ["mtu"];
/// Settings of the host that a connection to itself shows.
const ON_LOOPBACK: [&str; 6] = ["rwin", "cc", "sack", "timestamps", "window-scaling", "ecn"];
/// Settings of a route that a connection shows.
const ON_ROUTE: [&str; 5] = ["mtu", "mss", "cc", "initcwnd", "initrwnd"];

/// What a connection had of a setting, and whether that is what was asked; `None` where it can't tell.
fn compare(change: &Change, observed: &ObservedConnection) -> Option<(Value, bool)> {
    let asked = &change.new;
    let number = asked.number();
    let exact = |found: u64| Some((Value::Number(found), Some(found) == number));
    let held = matches!(change.place, Place::Connections(_));
    let switch = |on: bool| {
        let word = Value::word(if on { "on" } else { "off" });
        let fits = if on { *asked != Value::word("off") } else { *asked != Value::word("on") };
        Some((word, fits))
    };
    let established = observed.established;
    match change.key.as_str() {
        _ if *asked == Value::Auto => None,
        "rwin" if held => {
            let found = observed.window_clamp.unwrap_or(u64::MAX);
            Some((Value::Number(found), Some(found) <= number))
        }
        // The window is a share of the buffer that grows with how well segments fill their memory: at most all of it.
        "rwin" => established
            .map(|has| (Value::Number(has.greatest_window), Some(has.greatest_window) <= number.map(|n| n * 2))),
        "sndbuf" if held => exact(observed.send_buffer / 2),
        "cc" => Some((Value::word(&observed.congestion_control), *asked == Value::word(&observed.congestion_control))),
        "mtu" => Some((Value::Number(observed.path_mtu), Some(observed.path_mtu) <= number)),
        "mss" => Some((Value::Number(observed.advertised_mss), Some(observed.advertised_mss) <= number)),
        "initcwnd" => established.and_then(|has| exact(has.first_cwnd)),
        "initrwnd" => {
            // In whole segments, as far as the buffer goes.
            let segments = observed.first_window? / observed.advertised_mss.max(1);
            Some((Value::Number(segments), Some(segments) <= number))
        }
        "sack" => switch(established?.sack),
        "timestamps" => switch(established?.timestamps),
        "window-scaling" => switch(established?.window_scaling),
        "ecn" => switch(established?.ecn),
        _ => None,
    }
}
