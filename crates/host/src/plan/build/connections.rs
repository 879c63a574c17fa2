//! What the sockets of connections with one target get, and back to what the system does by itself.

use super::super::error::PlanError;
use super::super::request::{has_other_mtu, has_other_queue, is_settable, keeps_its_mtu, masked};
use super::Builder;
use super::sizes::in_bytes;
use crate::change::{Change, Place, Risk, ScopeName};
use crate::knob::{ConnectionKnob, HostKnob, Knob, LinkKnob, Value};
use crate::read::{connection_value, host_value, route_value};
use crate::route_text;
use crate::snapshot::target_of;
use std::net::IpAddr;
use wt_bpf::ConnectionRule;
use wt_sys::link::Link;
use wt_sys::route::{Route, TABLE_MAIN};
use wt_units::FullPacket;

impl Builder<'_> {
    pub(super) fn on_connections(
        &mut self,
        knob: &'static Knob,
        address: IpAddr,
        bits: Option<u8>,
        asked: &Value,
    ) -> Result<(), PlanError> {
        let bits = bits.unwrap_or(if address.is_ipv4() { 32 } else { 128 });
        let address = masked(address, bits);
        let no_place = |why: String| PlanError::NotPerTarget {
            key: knob.name,
            target: route_text::network(address, bits),
            why,
            nearest: knob.host.map_or("", HostKnob::sysctl),
        };
        let namespace = self.survey.connections_here.clone().map_err(no_place)?;
        let fresh = ConnectionRule::new(namespace, address, bits);
        let target = target_of(&fresh);
        let value = match asked {
            Value::TimesMss(_) | Value::TimesMtu(_) => {
                let full = self.full_packet_to(address)?;
                in_bytes(asked, || full).map_or(Value::Auto, Value::Number)
            }
            other => other.clone(),
        };
        let number = value.number().map(|number| u32::try_from(number).unwrap_or(u32::MAX));
        let old = connection_value(knob, self.survey.snapshot.connections_with(&target)).unwrap_or(Value::Auto);
        let planned = self.plan.wanted.connections_with(&target).cloned();
        let mut rule = planned.clone().unwrap_or(fresh);
        let option = match knob.connection {
            Some(ConnectionKnob::Window) => &mut rule.window,
            Some(ConnectionKnob::SendBuffer) => &mut rule.send_buffer,
            _ => &mut rule.unsent_low_water,
        };
        *option = number;
        if let Some(planned) = planned {
            self.plan.wanted.connections.remove(&planned);
        }
        if !rule.is_empty() {
            self.plan.wanted.connections.insert(rule);
        }
        self.plan.scope.connections.insert(target.clone());
        let change = Change {
            key: knob.name.to_owned(),
            old,
            new: value,
            scope: ScopeName::Connection,
            target: target.clone(),
            family: None,
            why: format!(
                "on the sockets of new connections with {target}, by a BPF program, as in trials ({}); other traffic isn't touched",
                knob.socket.unwrap_or_default()
            ),
            asked: None,
            unchanged: false,
            place: Place::Connections(target),
        };
        self.push(knob, asked, change);
        self.raise_socket_limit(knob, number);
        Ok(())
    }

    /// The program sets a buffer as applications do, so that a limit bounds it.
    fn raise_socket_limit(&mut self, knob: &'static Knob, asked: Option<u32>) {
        let (limit, needed) = match (knob.connection, asked) {
            (Some(ConnectionKnob::Window), Some(window)) => ("rmem-max", u64::from(window).saturating_mul(2)),
            (Some(ConnectionKnob::SendBuffer), Some(bytes)) => ("wmem-max", u64::from(bytes)),
            _ => return,
        };
        self.raise(knob, limit, needed);
    }

    /// Raises the limit of what programs may ask for, where it can be.
    pub(super) fn raise(&mut self, knob: &'static Knob, limit: &str, greatest: u64) {
        let Ok(limit) = Knob::find(limit) else { return };
        let asked_for = self.request.pairs.iter().any(|(other, _)| other.name == limit.name);
        let Some(old) = host_value(limit, &self.survey.snapshot, self.survey.kernel()) else { return };
        if asked_for || old.number() >= Some(greatest) {
            return;
        }
        let name = limit.host.map_or("", HostKnob::sysctl);
        // Other network namespaces than the first can read it only.
        if self.survey.identity.network_of_init != Some(true) {
            let text = format!(
                "programs that ask for a buffer themselves still get {old} bytes at most: {name} belongs to the first network namespace"
            );
            self.plan.risks.push(Risk { key: knob.name.to_owned(), text });
            return;
        }
        self.plan.wanted.sysctls.insert(name.to_owned(), greatest.to_string());
        self.plan.scope.sysctls.insert(name.to_owned());
        let change = Change {
            key: limit.name.to_owned(),
            old,
            new: Value::Number(greatest),
            scope: ScopeName::Host,
            target: name.to_owned(),
            family: None,
            why: format!("follows {}: programs that ask for a buffer themselves get no more than this", knob.name),
            asked: None,
            unchanged: false,
            place: Place::Host,
        };
        self.plan.changes.push(change);
    }

    /// What multiples are multiplied with for a target, with what the plan changes of its route.
    fn full_packet_to(&mut self, address: IpAddr) -> Result<FullPacket, PlanError> {
        let host_bits = if address.is_ipv4() { 32 } else { 128 };
        let own = |route: &&Route| route.destination() == (address, host_bits) && route.table() == TABLE_MAIN;
        let planned = self.plan.wanted.routes.iter().find(own).cloned();
        let route = match planned {
            Some(route) => route,
            None => self
                .system
                .route_to(address)
                .map_err(|source| PlanError::NoRoute { target: address.to_string(), source })?,
        };
        Ok(self.full_packet(&route))
    }

    /// Back to what the system does by itself, wherever the setting holds.
    pub(super) fn reset(&mut self, knob: &'static Knob) -> Result<(), PlanError> {
        if let (Some(host @ HostKnob::Sysctl(_)), false) = (knob.host, self.survey.is_own(knob)) {
            self.on_host(knob, host, &Value::Auto)?;
        }
        let other: fn(&Link) -> bool = match knob.link {
            Some(LinkKnob::Mtu) => has_other_mtu,
            Some(LinkKnob::QueueLen) => has_other_queue,
            _ => |_| false,
        };
        for link in self.survey.devices.links.iter().filter(|link| other(link)) {
            self.on_link(knob, link, &Value::Auto)?;
        }
        let left_out = |link: &&Link| knob.link == Some(LinkKnob::Mtu) && keeps_its_mtu(link);
        for link in self.survey.devices.links.iter().filter(left_out) {
            let kind = link.kind.as_deref().unwrap_or("device");
            let text =
                format!("{} keeps its MTU of {}: what a {kind} begins with follows from others", link.name, link.mtu);
            self.skip(knob, &text);
        }
        let holds = |route: &&Route| {
            is_settable(route) && route_value(knob, &route.metrics()).is_some_and(|value| value != Value::Auto)
        };
        let routes: Vec<Route> = self.plan.wanted.routes.iter().filter(holds).cloned().collect();
        for route in routes {
            self.on_route(knob, &route, &route, &Value::Auto, "so that the host's own value holds")?;
        }
        let held =
            |rule: &&ConnectionRule| connection_value(knob, Some(rule)).is_some_and(|value| value != Value::Auto);
        let rules: Vec<ConnectionRule> = self.plan.wanted.connections.iter().filter(held).cloned().collect();
        for rule in rules {
            self.on_connections(knob, rule.address, Some(rule.bits), &Value::Auto)?;
        }
        Ok(())
    }
}
