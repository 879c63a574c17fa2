use super::IPV6_LEAST_MTU;
use super::finish::finish;
use crate::change::{Change, Place, Plan, Risk, RouteFamily, ScopeName};
use crate::hex::to_hex;
use crate::knob::{ALL, Knob, Value};
use crate::read::{Survey, connection_value, host_value, link_value, route_value};
use crate::route_text::{self, Names};
use crate::snapshot::{
    ALLOWED_CC, CC, DevicePart, DeviceState, RouteIndex, Snapshot, route_key, same_qdisc, same_text, target_of,
};
use crate::surroundings::Surroundings;
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::route::Route;

/// Routes as they were.
mod routes;
/// What no change of ours makes, and isn't as it was.
mod surroundings;

/// Every part of a device.
const PARTS: [DevicePart; 5] =
    [DevicePart::Mtu, DevicePart::QueueLen, DevicePart::Qdisc, DevicePart::Rings, DevicePart::Features];
/// Congestion controls that come and go with programs of ours.
const OURS: &str = "wt_";

/// How it was and how it is, and what is said of the difference.
struct Restoration<'a> {
    survey: &'a Survey,
    stored: &'a Snapshot,
    /// What lay around it, if the backup says.
    before: Option<&'a Surroundings>,
    around: Surroundings,
    /// Whether indices mean the same devices.
    same_network: bool,
    left_out: Vec<Risk>,
}

pub(super) fn to_snapshot(
    survey: &Survey,
    stored: &Snapshot,
    before: Option<&Surroundings>,
    same_network: bool,
) -> Plan {
    let mut restoration =
        Restoration { survey, stored, before, around: Surroundings::of(survey), same_network, left_out: Vec::new() };
    let now = &survey.snapshot;
    let mut plan = Plan::new("host".to_owned(), now.clone());
    plan.wanted.sysctls.extend(restoration.sysctls());
    plan.scope.sysctls = plan
        .wanted
        .sysctls
        .iter()
        .filter(|(name, text)| now.sysctls.get(*name) != Some(*text))
        .map(|(n, _)| n.clone())
        .collect();
    plan.wanted.devices = restoration.devices();
    plan.scope.devices = plan.wanted.devices.keys().map(|name| (name.clone(), PARTS.into())).collect();
    restoration.tell_surroundings();
    plan.wanted.routes = restoration.routes();
    plan.scope.routes = now.routes.symmetric_difference(&plan.wanted.routes).map(route_key).collect();
    if same_network {
        plan.wanted.connections.clone_from(&stored.connections);
        plan.scope.connections = now.connections.symmetric_difference(&stored.connections).map(target_of).collect();
    }
    plan.changes = changes(survey, &plan.wanted);
    plan.skipped = restoration.left_out;
    finish(plan, survey)
}

impl Restoration<'_> {
    fn leave_out(&mut self, key: &str, text: impl Into<String>) {
        self.left_out.push(Risk::new(key, text));
    }

    /// Kernel settings that differ, as they were.
    fn sysctls(&mut self) -> BTreeMap<String, String> {
        let now = &self.survey.snapshot.sysctls;
        let mut wanted = BTreeMap::new();
        for (name, text) in &self.stored.sysctls {
            match now.get(name) {
                None => self.leave_out(name, format!("this kernel has no {name} now; it was {}", text.trim())),
                Some(now) if same_text(name, now, text) => {}
                Some(now) if name == ALLOWED_CC => wanted.extend(self.allowed(now, text)),
                Some(_) if name == CC && !self.has_control(text.trim()) => {
                    let hint = match text.trim().strip_prefix(OURS) {
                        Some(own) => format!("windtunnel cc load {own} --pin brings it"),
                        None => format!("modprobe tcp_{} may bring it", text.trim()),
                    };
                    self.leave_out("cc", format!("it was {}, which the kernel hasn't loaded now: {hint}", text.trim()));
                }
                Some(_) => drop(wanted.insert(name.clone(), text.clone())),
            }
        }
        wanted
    }

    fn has_control(&self, name: &str) -> bool {
        let all = self.survey.available_cc.iter().chain(&self.survey.loadable_cc);
        all.into_iter().any(|known| known == name)
    }

    /// The list of allowed congestion controls: of the whole machine, and without those that come and go with programs of ours.
    fn allowed(&mut self, now: &str, stored: &str) -> Option<(String, String)> {
        let ours = |word: &&str| word.starts_with(OURS);
        let own: Vec<&str> = now.split_whitespace().filter(ours).collect();
        let others: Vec<&str> = stored.split_whitespace().filter(|word| !ours(word)).collect();
        let (there, gone): (Vec<&str>, Vec<&str>) = others.into_iter().partition(|name| self.has_control(name));
        if !gone.is_empty() {
            self.leave_out(
                "cc",
                format!("the kernel hasn't loaded {} now, which everybody could choose", gone.join(", ")),
            );
        }
        let wanted = [there, own].concat().join(" ");
        if same_text(ALLOWED_CC, now, &wanted) {
            return None;
        }
        if self.survey.identity.network_of_init != Some(true) {
            let text = format!(
                "{ALLOWED_CC} was {} and is {}: it can be set in the first network namespace only",
                stored.trim(),
                now.trim()
            );
            self.leave_out("cc", text);
            return None;
        }
        Some((ALLOWED_CC.to_owned(), wanted))
    }

    /// Devices as they were, by the names and with the indices that they have now.
    fn devices(&mut self) -> BTreeMap<String, DeviceState> {
        let now = &self.survey.snapshot.devices;
        let mut wanted = BTreeMap::new();
        for (name, state) in &self.stored.devices {
            let same = now.iter().find(|(_, now)| self.same_network && now.index == state.index);
            let Some((now_name, now)) = same.or_else(|| now.get_key_value(name)) else {
                self.leave_out(name, format!("the device {name} is gone, and its settings with it"));
                continue;
            };
            if now_name != name {
                self.leave_out(now_name, format!("this device was called {name}: it keeps its name"));
            }
            let mut state = DeviceState { index: now.index, ..state.clone() };
            let trees = state.qdisc.is_tree() || now.qdisc.is_tree();
            if trees && !same_qdisc(&now.qdisc, &state.qdisc) {
                let text = format!(
                    "the qdisc of {now_name} was {} and is {}: one with classes, filters or other qdiscs on it can't be put back",
                    state.qdisc.kind, now.qdisc.kind
                );
                self.leave_out("qdisc", text);
                state.qdisc = now.qdisc.clone();
            }
            if state.mtu < IPV6_LEAST_MTU && now.mtu >= IPV6_LEAST_MTU && self.survey.has_ipv6(now.index) {
                let text = format!(
                    "the MTU of {now_name} was {} and is {}: below {IPV6_LEAST_MTU} it would lose the addresses of IPv6 that it has now; \
                     settings apply mtu={} --to {now_name} gives it to routes of IPv4",
                    state.mtu, now.mtu, state.mtu
                );
                self.leave_out("mtu", text);
                state.mtu = now.mtu;
            }
            wanted.insert(now_name.clone(), state);
        }
        wanted
    }
}

/// What differs, in our words.
fn changes(survey: &Survey, wanted: &Snapshot) -> Vec<Change> {
    let mut changes = Vec::new();
    let (present, names) = (RouteIndex::of(&survey.snapshot.routes), survey.names());
    for knob in ALL {
        changes.extend(on_host(knob, survey, wanted));
        changes.extend(wanted.devices.iter().filter_map(|(name, state)| on_link(knob, survey, name, state)));
        let routes = wanted.routes.difference(&survey.snapshot.routes);
        changes.extend(routes.filter_map(|route| on_route(knob, &present, &names, route)));
        let differ = survey.snapshot.connections.symmetric_difference(&wanted.connections).map(target_of);
        let targets: BTreeSet<String> = differ.collect();
        changes.extend(targets.into_iter().filter_map(|target| on_connections(knob, survey, wanted, target)));
    }
    changes
}

fn change(knob: &Knob, old: Value, new: Value, scope: ScopeName, target: String, place: Place) -> Option<Change> {
    let why = "as it was stored".to_owned();
    let key = knob.name.to_owned();
    (old != new).then_some(Change {
        key,
        old,
        new,
        scope,
        target,
        family: None,
        why,
        asked: None,
        unchanged: false,
        place,
    })
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

fn on_connections(knob: &Knob, survey: &Survey, wanted: &Snapshot, target: String) -> Option<Change> {
    let old = connection_value(knob, survey.snapshot.connections_with(&target))?;
    let new = connection_value(knob, wanted.connections_with(&target))?;
    change(knob, old, new, ScopeName::Connection, target.clone(), Place::Connections(target))
}

fn on_route(knob: &Knob, present: &RouteIndex<'_>, names: &Names, route: &Route) -> Option<Change> {
    let key = route.key();
    let before = present.same(route);
    let old = before.and_then(|before| route_value(knob, &before.metrics())).unwrap_or(Value::Auto);
    let new = route_value(knob, &route.metrics())?;
    let target = route_text::short(route, names);
    let change = change(knob, old, new, ScopeName::Route, target, Place::Route(to_hex(&key)))?;
    Some(Change { family: Some(RouteFamily::of(route)), ..change })
}
