use super::IPV6_LEAST_MTU;
use super::error::PlanError;
use super::finish::finish;
use super::request::{ETHERNET_QUEUE, Request, Target};
use super::risks;
use crate::boot::has_systemd;
use crate::change::{Change, Place, Plan, Risk, RouteFamily, ScopeName};
use crate::hex::to_hex;
use crate::knob::{HostKnob, Knob, LinkKnob, RouteKnob, Value, three};
use crate::read::{Survey, buffer_of_window, host_value, link_value, route_value};
use crate::route_text::{self, FEATURE_ECN, Names};
use crate::snapshot::{CHOSEN, DevicePart, QdiscState, RouteIndex, is_unicast, route_key};
use crate::system::System;
use sizes::{headers_of, too_small_for_ipv6};
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::link::Link;
use wt_sys::route::{Metric, PROTO_RA, Route, TABLE_MAIN};
use wt_units::nearest;

/// What Linux announces as MSS at least: `net.ipv4.route.min_adv_mss`.
const LEAST_MSS: u64 = 256;

/// Connections with one target.
mod connections;
/// Routes to one target.
mod narrow;
/// Bytes that follow from the MTU and the MSS.
mod sizes;
/// Devices that lie on others.
mod stacked;

/// A plan in the making.
struct Builder<'a> {
    survey: &'a Survey,
    system: &'a mut dyn System,
    request: &'a Request,
    plan: Plan,
    /// The routes that there are.
    present: RouteIndex<'a>,
    /// The routes that are wanted, by their keys.
    planned: BTreeMap<Vec<u8>, Route>,
    names: Names,
}

pub(super) fn build(system: &mut dyn System, survey: &Survey, request: &Request) -> Result<Plan, PlanError> {
    if request.pairs.is_empty() && !request.resets {
        return Err(PlanError::Nothing);
    }
    let mut plan = Plan::new(request.target.to_string(), survey.snapshot.clone());
    plan.places = request.places.iter().map(|(key, place)| ((*key).to_owned(), place.to_string())).collect();
    plan.resets = request.resets;
    let routes = &survey.snapshot.routes;
    let planned = routes.iter().map(|route| (route.key(), route.clone())).collect();
    let (present, names) = (RouteIndex::of(routes), survey.names());
    let mut builder = Builder { survey, system, request, plan, present, planned, names };
    // What is computed from the MTU and the MSS must find the new ones.
    let rank = |(knob, _): &&(&Knob, Value)| ["mtu", "mss"].iter().position(|first| *first == knob.name).unwrap_or(2);
    let mut pairs: Vec<_> = request.pairs.iter().collect();
    pairs.sort_by_key(rank);
    for (knob, value) in pairs {
        let target = request.places.get(knob.name).unwrap_or(&request.target);
        if request.resets && *value == Value::Auto && *target == Target::Host {
            builder.reset(knob)?;
        } else {
            builder.add(knob, value, target)?;
        }
    }
    let Builder { mut plan, present, system, .. } = builder;
    leave_out_idle_routes(&mut plan, &present);
    // Who may not look there learns of a confirmation what it can't keep.
    let is_held = plan.changes.iter().any(|change| change.scope == ScopeName::Connection);
    let with_systemd = is_held && has_systemd(system).unwrap_or(false);
    risks::add(&mut plan, survey, with_systemd);
    Ok(finish(plan, survey))
}

/// Takes out new routes that would differ in nothing from the ones that lead there already.
fn leave_out_idle_routes(plan: &mut Plan, present: &RouteIndex<'_>) {
    let changed = plan.changes.iter().filter(|change| !change.unchanged);
    let changed: BTreeSet<&str> = changed
        .filter_map(|change| if let Place::Route(key) = &change.place { Some(key.as_str()) } else { None })
        .collect();
    let is_idle = |key: &&String| present.get_hex(key).is_none() && !changed.contains(key.as_str());
    let idle: BTreeSet<String> = plan.scope.routes.iter().filter(is_idle).cloned().collect();
    if idle.is_empty() {
        return;
    }
    plan.wanted.routes.retain(|route| !idle.contains(&route_key(route)));
    plan.scope.routes.retain(|key| !idle.contains(key));
    plan.scope.copied.retain(|key, _| !idle.contains(key));
}

impl Builder<'_> {
    fn add(&mut self, knob: &'static Knob, value: &Value, target: &Target) -> Result<(), PlanError> {
        match target {
            Target::Host => match (knob.host, knob.link, knob.route) {
                (Some(host), ..) => self.on_host(knob, host, value),
                (None, Some(_), _) => {
                    let link = self.survey.main_link().cloned().ok_or(PlanError::WhichDevice { key: knob.name })?;
                    self.on_link(knob, &link, value)
                }
                (None, None, Some(_)) => self.on_default_routes(knob, value),
                (None, None, None) => Err(self.wrong_place(knob, "the host")),
            },
            Target::DefaultRoutes if knob.route.is_some() => self.on_default_routes(knob, value),
            Target::Route(address, bits) if knob.connection.is_some() => {
                self.on_connections(knob, *address, *bits, value)
            }
            Target::Route(address, bits) if knob.route.is_some() => self.on_target(knob, *address, *bits, value),
            Target::DefaultRoutes | Target::Route(..) => Err(self.wrong_place(knob, "a route")),
            Target::Device(name) => {
                let link = self.survey.link(name).cloned().ok_or_else(|| self.no_device(name))?;
                if knob.link.is_some() {
                    self.on_link(knob, &link, value)
                } else if knob.route.is_some() {
                    self.on_routes_through(knob, &link, value)
                } else {
                    Err(self.wrong_place(knob, "a device"))
                }
            }
        }
    }

    fn no_device(&self, name: &str) -> PlanError {
        // No device has a slash or a colon in its name, nor is called like an address.
        let numeric = name.contains('.') && name.chars().all(|c| c.is_ascii_digit() || c == '.');
        if name.contains(['/', ':']) || numeric {
            return PlanError::BadTarget { text: name.to_owned() };
        }
        let names = || self.survey.devices.links.iter().map(|link| link.name.as_str());
        let mut near = nearest(name, names());
        near.truncate(1);
        if near.is_empty() && name.contains('.') {
            return PlanError::HostName { text: name.to_owned() };
        }
        if near.is_empty() {
            near = names().map(str::to_owned).collect();
        }
        PlanError::NoDevice { name: name.to_owned(), nearest: near }
    }

    fn wrong_place(&self, knob: &'static Knob, place: &str) -> PlanError {
        let mut places = Vec::new();
        if knob.host.is_some() {
            places.push("for the whole host (--to host)".to_owned());
        }
        if knob.link.is_some() {
            places.push("on a device (--to eth0)".to_owned());
        }
        if knob.route.is_some() {
            places.push("on a route (--to default, --to 192.0.2.1)".to_owned());
        }
        if knob.connection.is_some() {
            places.push("on connections with a target (--to 192.0.2.1)".to_owned());
        }
        if let (true, Some(option)) = (places.is_empty(), knob.socket) {
            places.push(format!("by each program for its own connections ({option})"));
        }
        PlanError::WrongPlace {
            key: knob.name,
            place: place.to_owned(),
            instead: format!("it can be set {}", places.join(" or ")),
        }
    }

    fn push(&mut self, knob: &'static Knob, asked: &Value, change: Change) {
        let reason = self.request.reasons.get(knob.name);
        let why = reason.map_or_else(|| change.why.clone(), |reason| format!("{reason}; {}", change.why));
        let asked = Some(asked.clone()).filter(|asked| *asked != change.new);
        self.plan.changes.push(Change { why, asked, unchanged: change.old == change.new, ..change });
    }

    // For the whole host.

    fn on_host(&mut self, knob: &'static Knob, host: HostKnob, asked: &Value) -> Result<(), PlanError> {
        let name = host.sysctl();
        let kernel = self.survey.kernel();
        let missing = || PlanError::Missing { key: knob.name, kernel: name.to_owned() };
        let now = self.survey.snapshot.sysctls.get(name).ok_or_else(missing)?.clone();
        let old = host_value(knob, &self.survey.snapshot, kernel).ok_or_else(missing)?;
        let current = self.plan.wanted.sysctls.get(name).unwrap_or(&now).clone();
        let text = self.host_text(knob, host, asked, &current)?;
        self.plan.wanted.sysctls.insert(name.to_owned(), text);
        self.plan.scope.sysctls.insert(name.to_owned());
        let new = host_value(knob, &self.plan.wanted, kernel).ok_or_else(missing)?;
        let mut why = if knob.route.is_some() || knob.connection.is_some() {
            "for every new connection of the host; --to TARGET would touch one target only".to_owned()
        } else {
            "Linux has it for the whole host only".to_owned()
        };
        if let (HostKnob::Window | HostKnob::Greatest(_), Some(sizes)) = (host, three(&self.plan.wanted.sysctls[name]))
        {
            let share = if host == HostKnob::Window { ", of which the window is a part" } else { "" };
            why = format!("{why}; {name} may be up to {} bytes{share}", sizes[2]);
        }
        let place = Change {
            key: knob.name.to_owned(),
            old,
            new,
            scope: ScopeName::Host,
            target: name.to_owned(),
            family: None,
            why,
            asked: None,
            unchanged: false,
            place: Place::Host,
        };
        self.push(knob, asked, place);
        self.raise_limit(knob, host);
        Ok(())
    }

    fn host_text(&self, knob: &'static Knob, host: HostKnob, asked: &Value, now: &str) -> Result<String, PlanError> {
        let no_default = || PlanError::NoDefault { key: knob.name };
        let whole = |value: &Value| match value {
            Value::Auto => self.survey.default_of(knob).ok_or_else(no_default),
            value => knob.encode(value).ok_or_else(no_default),
        };
        let greatest = match host {
            HostKnob::Sysctl(_) => {
                self.check_cc(knob, asked)?;
                return whole(asked);
            }
            HostKnob::Greatest(_) => asked.number().ok_or_else(no_default)?,
            HostKnob::Window => {
                let window = self.bytes(asked).ok_or_else(no_default)?;
                buffer_of_window(window, &self.survey.snapshot, self.survey.kernel())
            }
        };
        let mut old = three(now).ok_or_else(no_default)?;
        // A size that was once cut to a smaller greatest one says nothing of what it is without: what comes now must not
        // depend on what was tried before.
        if let (true, Some(usual)) = (old[1] == old[2], self.survey.usual_sizes(host.sysctl())) {
            old = usual;
        }
        let [least, first, _] = old;
        let sizes = Value::Three([least.min(greatest), first.min(greatest), greatest]);
        Ok(sizes.to_string().replace(' ', "\t"))
    }

    /// Programs that ask for a buffer themselves get no more than a limit, which has to follow where it can.
    fn raise_limit(&mut self, knob: &'static Knob, host: HostKnob) {
        let limit = match host {
            HostKnob::Window => "rmem-max",
            HostKnob::Greatest("net.ipv4.tcp_wmem") => "wmem-max",
            _ => return,
        };
        let greatest =
            self.plan.wanted.sysctls.get(host.sysctl()).and_then(|text| three(text)).map_or(0, |sizes| sizes[2]);
        self.raise(knob, limit, greatest);
    }

    fn check_cc(&self, knob: &'static Knob, asked: &Value) -> Result<(), PlanError> {
        let (Value::Word(name), "cc") = (asked, knob.name) else { return Ok(()) };
        let known: Vec<String> = self
            .survey
            .available_cc
            .iter()
            .chain(&self.survey.loadable_cc)
            .cloned()
            .collect::<BTreeSet<_>>()
            .into_iter()
            .collect();
        // Without a list of modules, only the kernel can tell.
        if known.contains(name) || (self.survey.loadable_cc.is_empty() && self.survey.available_cc.is_empty()) {
            return Ok(());
        }
        Err(PlanError::NoCongestionControl { name: name.clone(), known })
    }

    // On routes.

    fn on_default_routes(&mut self, knob: &'static Knob, asked: &Value) -> Result<(), PlanError> {
        let routes: Vec<Route> = self.survey.default_routes().into_iter().cloned().collect();
        if routes.is_empty() {
            return Err(PlanError::NoDefaultRoute { key: knob.name });
        }
        let why = "on the default route: Linux has it per route; what other routes lead to isn't touched";
        self.on_several(knob, asked, &routes, why)
    }

    fn on_routes_through(&mut self, knob: &'static Knob, link: &Link, asked: &Value) -> Result<(), PlanError> {
        let through = |route: &&Route| {
            let link_local = route.is_v6() && route.destination().0.to_string().starts_with("fe80:");
            is_unicast(route) && route.table() == TABLE_MAIN && route.uses(link.index) && !link_local
        };
        let routes: Vec<Route> = self.survey.snapshot.routes.iter().filter(through).cloned().collect();
        if routes.is_empty() {
            return Err(PlanError::WrongPlace {
                key: knob.name,
                place: format!("the device {}", link.name),
                instead: "no route leads through it".to_owned(),
            });
        }
        self.on_several(knob, asked, &routes, &format!("on the routes through {}: Linux has it per route", link.name))
    }

    /// Sets it on several routes; those that the kernel rewrites itself, or that can't have it, are left out with a note.
    fn on_several(&mut self, knob: &'static Knob, asked: &Value, routes: &[Route], why: &str) -> Result<(), PlanError> {
        let (mut done, mut left_out) = (false, String::new());
        for route in routes {
            let name = route_text::short(route, &self.names);
            if route.protocol() == PROTO_RA {
                left_out = format!("{name} comes from router advertisements, and the kernel rewrites it with each");
                self.skip(knob, &left_out);
            } else if let Some(text) = too_small_for_ipv6(knob, route.is_v6(), asked) {
                left_out = format!("{name}: {text}");
                self.skip(knob, &left_out);
            } else {
                self.on_route(knob, route, route, asked, why)?;
                done = true;
            }
        }
        if done { Ok(()) } else { Err(PlanError::Irreversible { what: knob.name.to_owned(), why: left_out }) }
    }

    fn skip(&mut self, knob: &Knob, text: &str) {
        self.plan.skipped.push(Risk { key: knob.name.to_owned(), text: text.to_owned() });
    }

    /// `old` is the route that holds now, `new` the one that is to have the setting.
    fn on_route(
        &mut self,
        knob: &'static Knob,
        old: &Route,
        new: &Route,
        asked: &Value,
        why: &str,
    ) -> Result<(), PlanError> {
        self.check_cc(knob, asked)?;
        let key = new.key();
        if self.present.count(&key) > 1 {
            return Err(PlanError::Irreversible {
                what: route_text::short(new, &self.names),
                why: "several routes have this target and priority, and the kernel keeps them in an order that can't be put back".to_owned(),
            });
        }
        let planned = self.planned.get(&key).cloned();
        let base = planned.clone().unwrap_or_else(|| new.clone());
        let value = self.resolve(knob, asked, new);
        let changed = with_metric(knob, &base, &value);
        let before = self.present.get(&key).unwrap_or(old);
        let change = Change {
            key: knob.name.to_owned(),
            old: route_value(knob, &before.metrics()).unwrap_or(Value::Auto),
            new: route_value(knob, &changed.metrics()).unwrap_or(Value::Auto),
            scope: ScopeName::Route,
            target: route_text::short(new, &self.names),
            family: Some(RouteFamily::of(new)),
            why: why.to_owned(),
            asked: None,
            unchanged: false,
            place: Place::Route(to_hex(&key)),
        };
        if let Some(planned) = planned {
            self.plan.wanted.routes.remove(&planned);
        }
        self.plan.wanted.routes.insert(changed.clone());
        self.plan.scope.routes.insert(to_hex(&key));
        self.planned.insert(key, changed);
        self.push(knob, asked, change);
        self.announce_no_more_than(knob, old, new, &value)
    }

    /// Linux announces an MSS of 256 at least, unless the route says otherwise: beside a smaller MTU the peer would send more than it.
    ///
    /// # Source
    /// ip-sysctl.rst, `min_adv_mss`; `ipv4_default_advmss()` of net/ipv4/route.c.
    fn announce_no_more_than(
        &mut self,
        knob: &'static Knob,
        old: &Route,
        new: &Route,
        mtu: &Value,
    ) -> Result<(), PlanError> {
        let least = LEAST_MSS + headers_of(new);
        let small = knob.name == "mtu" && !new.is_v6() && mtu.number().is_some_and(|mtu| mtu < least);
        if !small || self.request.pairs.iter().any(|(other, _)| other.name == "mss") {
            return Ok(());
        }
        let why = "goes with the MTU: Linux announces an MSS of 256 at least (net.ipv4.route.min_adv_mss)";
        let mss = Knob::find("mss").map_err(|_| PlanError::Nothing)?;
        self.on_route(mss, old, new, &Value::FromMtu, why)
    }

    /// What follows from the MTU, in bytes.
    fn resolve(&self, knob: &Knob, asked: &Value, route: &Route) -> Value {
        match asked {
            Value::FromMtu => Value::Number(self.mtu_of(route).saturating_sub(headers_of(route))),
            Value::Word(word) if knob.name == "quickack" => Value::Number(u64::from(word == "on")),
            other => other.clone(),
        }
    }

    // On devices.

    fn on_link(&mut self, knob: &'static Knob, link: &Link, asked: &Value) -> Result<(), PlanError> {
        let Some(kind) = knob.link else { return Err(self.wrong_place(knob, "a device")) };
        let below_ipv6 = kind == LinkKnob::Mtu && asked.number().is_some_and(|mtu| mtu < u64::from(IPV6_LEAST_MTU));
        if below_ipv6 && self.survey.has_ipv6(link.index) {
            return self.mtu_below_ipv6(knob, link, asked);
        }
        let missing = || PlanError::WrongPlace {
            key: knob.name,
            place: format!("the device {}", link.name),
            instead: "its driver doesn't have it".to_owned(),
        };
        let state = self.survey.snapshot.devices.get(&link.name).ok_or_else(missing)?;
        let old = link_value(knob, state).ok_or_else(missing)?;
        self.check_link(knob, kind, link, asked)?;
        let (part, new) = self.change_device(knob, kind, &link.name, asked)?;
        self.plan.scope.devices.entry(link.name.clone()).or_default().insert(part);
        if part == DevicePart::Mtu {
            // The kernel changes the MTU of routes of IPv6 along with that of their device.
            self.plan.scope.routes_through.insert(link.index);
            self.lower_those_above(link);
            self.tell_of_bridge(link);
        }
        let change = Change {
            key: knob.name.to_owned(),
            old,
            new,
            scope: ScopeName::Link,
            target: link.name.clone(),
            family: None,
            why: format!("on the device {}: everything that it sends", link.name),
            asked: None,
            unchanged: false,
            place: Place::Link(link.name.clone()),
        };
        self.push(knob, asked, change);
        Ok(())
    }

    /// A device whose MTU goes below 1280 loses its addresses of IPv6. Routes of IPv4 can have it without harm.
    fn mtu_below_ipv6(&mut self, knob: &'static Knob, link: &Link, asked: &Value) -> Result<(), PlanError> {
        let through: Vec<Route> = self
            .survey
            .snapshot
            .routes
            .iter()
            .filter(|route| {
                !route.is_v6() && is_unicast(route) && route.table() == TABLE_MAIN && route.uses(link.index)
            })
            .cloned()
            .collect();
        if through.is_empty() {
            return Err(PlanError::Irreversible {
                what: format!("the MTU of {}", link.name),
                why: "below 1280 it loses its addresses of IPv6, and no route of IPv4 leads through it that could have the MTU instead".to_owned(),
            });
        }
        let why = format!("on the routes of IPv4 through {}: the device itself would lose IPv6 below 1280", link.name);
        self.on_several(knob, asked, &through, &why)
    }

    fn check_link(&self, knob: &'static Knob, kind: LinkKnob, link: &Link, asked: &Value) -> Result<(), PlanError> {
        let rings = self.survey.details.get(&link.name).and_then(|details| details.rings);
        let limits = match kind {
            LinkKnob::Mtu => Some((u64::from(link.min_mtu.unwrap_or(68)), u64::from(link.max_mtu.unwrap_or(65_535)))),
            LinkKnob::RxRing => rings.map(|rings| (1, u64::from(rings.rx_max))),
            LinkKnob::TxRing => rings.map(|rings| (1, u64::from(rings.tx_max))),
            _ => None,
        };
        if let (Some((least, most)), Some(value)) = (limits, asked.number())
            && !(least..=most).contains(&value)
        {
            return Err(PlanError::OutOfRange {
                key: knob.name,
                value: value.to_string(),
                device: link.name.clone(),
                allowed: format!("{least} to {most}"),
            });
        }
        let qdisc = self.survey.snapshot.devices.get(&link.name).map(|state| &state.qdisc);
        if let (LinkKnob::Qdisc, Some(qdisc)) = (kind, qdisc.filter(|qdisc| qdisc.is_tree())) {
            return Err(PlanError::Irreversible {
                what: format!("the qdisc {} of {}", qdisc.kind, link.name),
                why: "other qdiscs are attached to it, with classes and filters".to_owned(),
            });
        }
        Ok(())
    }

    fn change_device(
        &mut self,
        knob: &'static Knob,
        kind: LinkKnob,
        name: &str,
        asked: &Value,
    ) -> Result<(DevicePart, Value), PlanError> {
        let no_default = || PlanError::NoDefault { key: knob.name };
        let number = || asked.number().and_then(|number| u32::try_from(number).ok()).ok_or_else(no_default);
        let own_mtu = self.survey.link(name).and_then(Survey::own_mtu);
        let device = self.plan.wanted.devices.get_mut(name).ok_or_else(no_default)?;
        Ok(match kind {
            LinkKnob::Mtu => {
                device.mtu = match asked {
                    Value::Auto => own_mtu.ok_or_else(no_default)?,
                    _ => number()?,
                };
                // The kernel gives IPv6 the same, unless that is to have less.
                device.ipv6_mtu = device.ipv6_mtu.filter(|own| *own < device.mtu);
                (DevicePart::Mtu, Value::Number(u64::from(device.mtu)))
            }
            LinkKnob::QueueLen => {
                device.queue_len = if *asked == Value::Auto { ETHERNET_QUEUE } else { number()? };
                (DevicePart::QueueLen, Value::Number(u64::from(device.queue_len)))
            }
            LinkKnob::Qdisc => {
                let Value::Word(kind) = asked else { return Err(no_default()) };
                if device.qdisc.kind != *kind {
                    device.qdisc =
                        QdiscState { kind: kind.clone(), handle: CHOSEN, options: String::new(), has_children: false };
                }
                (DevicePart::Qdisc, asked.clone())
            }
            LinkKnob::RxRing | LinkKnob::TxRing => {
                let size = number()?;
                let rings = device.rings.get_or_insert((size, size));
                *(if kind == LinkKnob::RxRing { &mut rings.0 } else { &mut rings.1 }) = size;
                (DevicePart::Rings, asked.clone())
            }
            LinkKnob::Features(names) => {
                let Value::Word(word) = asked else { return Err(no_default()) };
                for feature in names {
                    for all in [&mut device.features, &mut device.active] {
                        if let Some(on) = all.get_mut(*feature) {
                            *on = word == "on";
                        }
                    }
                }
                (DevicePart::Features, asked.clone())
            }
        })
    }
}

/// Headers between the MTU and the MSS, bytes.
/// The route with the setting on it.
fn with_metric(knob: &Knob, route: &Route, value: &Value) -> Route {
    let mut metrics = route.metrics();
    let number = value.number().map(|number| u32::try_from(number).unwrap_or(u32::MAX));
    match knob.route {
        Some(RouteKnob::Number(metric)) => metrics.set(metric, number, metrics.is_locked(metric) && number.is_some()),
        Some(RouteKnob::Locked(metric)) => metrics.set(metric, number, true),
        Some(RouteKnob::Congctl) => {
            metrics.set_congctl(if let Value::Word(name) = value { Some(name.clone()) } else { None })
        }
        Some(RouteKnob::Ecn) => {
            let others = metrics.get(Metric::Features).unwrap_or(0) & !FEATURE_ECN;
            let bits = if *value == Value::word("on") { others | FEATURE_ECN } else { others };
            metrics.set(Metric::Features, Some(bits).filter(|bits| *bits != 0), metrics.is_locked(Metric::Features));
        }
        None => {}
    }
    route.with_metrics(&metrics)
}
