use super::{Change, Place, Plan, ScopeName};
use crate::knob::{ALL, Knob, Value};
use crate::read::{Survey, host_value, link_value, route_value};
use crate::route_text;
use crate::snapshot::{DevicePart, DeviceState, Snapshot, route_key, same_text};
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::route::Route;

/// Every part of a device.
const PARTS: [DevicePart; 5] =
    [DevicePart::Mtu, DevicePart::QueueLen, DevicePart::Qdisc, DevicePart::Rings, DevicePart::Features];
/// `RTPROT_BOOT` and `RTPROT_STATIC`: routes that people make. Others come and go with leases and daemons.
const BY_HAND: [u8; 2] = [3, 4];

pub(super) fn to_snapshot(survey: &Survey, stored: &Snapshot, same_network: bool) -> Plan {
    let now = &survey.snapshot;
    let mut plan = Plan::new("host".to_owned(), now.clone());
    for (name, text) in &stored.sysctls {
        if now.sysctls.get(name).is_some_and(|now| !same_text(name, now, text)) {
            plan.wanted.sysctls.insert(name.clone(), text.clone());
            plan.scope.sysctls.insert(name.clone());
        }
    }
    plan.wanted.devices = devices(now, stored);
    plan.scope.devices = plan.wanted.devices.keys().map(|name| (name.clone(), PARTS.into())).collect();
    plan.wanted.routes = routes(now, stored, same_network);
    plan.scope.routes = now.routes.symmetric_difference(&plan.wanted.routes).map(route_key).collect();
    plan.changes = changes(survey, &plan.wanted);
    plan.finish(survey)
}

/// Devices as they were, but with the indices that they have now.
fn devices(now: &Snapshot, stored: &Snapshot) -> BTreeMap<String, DeviceState> {
    let pairs = stored.devices.iter().filter_map(|(name, state)| Some((name, state, now.devices.get(name)?)));
    pairs
        .map(|(name, state, now)| (name.clone(), DeviceState { index: now.index, ..state.clone() }))
        .filter(|(_, state)| !state.qdisc.has_children)
        .collect()
}

/// Routes as they were, as far as people made them; routes of others get their metrics back.
fn routes(now: &Snapshot, stored: &Snapshot, same_network: bool) -> BTreeSet<Route> {
    let by_key: BTreeMap<String, &Route> = stored.routes.iter().map(|route| (route_key(route), route)).collect();
    let mut wanted = BTreeSet::new();
    for route in &now.routes {
        match by_key.get(&route_key(route)) {
            Some(old) if same_network => drop(wanted.insert((*old).clone())),
            Some(old) => drop(wanted.insert(route.with_metrics(&old.metrics()))),
            None if same_network && BY_HAND.contains(&route.protocol()) => {}
            None => drop(wanted.insert(route.clone())),
        }
    }
    if same_network {
        let keys: BTreeSet<String> = now.routes.iter().map(route_key).collect();
        let lost = stored.routes.iter().filter(|route| BY_HAND.contains(&route.protocol()));
        wanted.extend(lost.filter(|route| !keys.contains(&route_key(route))).cloned());
    }
    wanted
}

/// What differs, in our words.
fn changes(survey: &Survey, wanted: &Snapshot) -> Vec<Change> {
    let mut changes = Vec::new();
    for knob in ALL {
        changes.extend(on_host(knob, survey, wanted));
        changes.extend(wanted.devices.iter().filter_map(|(name, state)| on_link(knob, survey, name, state)));
        let routes = wanted.routes.difference(&survey.snapshot.routes);
        changes.extend(routes.filter_map(|route| on_route(knob, survey, route)));
    }
    changes
}

fn change(knob: &Knob, old: Value, new: Value, scope: ScopeName, target: String, place: Place) -> Option<Change> {
    let why = "as it was stored".to_owned();
    let key = knob.name.to_owned();
    (old != new).then_some(Change { key, old, new, scope, target, why, asked: None, unchanged: false, place })
}

fn on_host(knob: &Knob, survey: &Survey, wanted: &Snapshot) -> Option<Change> {
    let name = knob.host?.sysctl();
    let old = host_value(knob, &survey.snapshot, survey.kernel())?;
    let new = host_value(knob, wanted, survey.kernel())?;
    change(knob, old, new, ScopeName::Host, name.to_owned(), Place::Host)
}

fn on_link(knob: &Knob, survey: &Survey, name: &str, wanted: &DeviceState) -> Option<Change> {
    let old = link_value(knob, survey.snapshot.devices.get(name)?)?;
    let new = link_value(knob, wanted)?;
    change(knob, old, new, ScopeName::Link, name.to_owned(), Place::Link(name.to_owned()))
}

fn on_route(knob: &Knob, survey: &Survey, route: &Route) -> Option<Change> {
    let key = route_key(route);
    let before = survey.snapshot.routes.iter().find(|other| route_key(other) == key);
    let old = before.and_then(|before| route_value(knob, &before.metrics())).unwrap_or(Value::Auto);
    let new = route_value(knob, &route.metrics())?;
    let target = route_text::short(route, &survey.names());
    change(knob, old, new, ScopeName::Route, target, Place::Route(key))
}
