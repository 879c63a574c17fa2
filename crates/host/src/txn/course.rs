//! Which way a change goes, out of the kernel or into it, and what others have set since, which stays: of a route each metric, of a device
//! each offload, of a kernel setting with three numbers each number is looked at on its own.

use super::others::{OthersRoutes, added_beside, route_name, was_removed};
use super::relocation::Relocation;
use crate::change::{Checkpoint, Phase, State};
use crate::knob::three;
use crate::snapshot::{
    ALLOWED_CC, DevicePart, DeviceState, QdiscState, RouteIndex, Scope, Snapshot, route_key, same_qdisc, target_of,
};
use std::collections::{BTreeMap, BTreeSet};
use wt_bpf::ConnectionRule;
use wt_sys::route::{Metric, Metrics, Route};

/// From where to where the settings of a change go.
pub(crate) struct Course<'a> {
    checkpoint: &'a Checkpoint,
    state: &'a State,
    now: &'a Snapshot,
    from: &'a Snapshot,
    to: &'a Snapshot,
    /// What others have set, for people.
    notes: Vec<String>,
}

impl<'a> Course<'a> {
    /// Out of the kernel.
    pub(crate) fn back(checkpoint: &'a Checkpoint, state: &'a State, now: &'a Snapshot) -> Self {
        Self { checkpoint, state, now, from: &checkpoint.wanted, to: &checkpoint.before, notes: Vec::new() }
    }

    /// Into the kernel.
    pub(crate) fn forward(checkpoint: &'a Checkpoint, state: &'a State, now: &'a Snapshot) -> Self {
        Self { checkpoint, state, now, from: &checkpoint.before, to: &checkpoint.wanted, notes: Vec::new() }
    }

    /// What is to be told.
    pub(crate) fn into_notes(self) -> Vec<String> {
        self.notes
    }

    /// Whether the change was once in force as a whole: until then, what differs may be half of it, or come along with it.
    fn was_whole(&self) -> bool {
        self.state.along.is_some()
    }

    /// One value, and whether others have set it. Of those that the change set, only what was to stay leaves theirs be: whoever was cut
    /// off wants all of the change back, whatever came meanwhile.
    fn merged<T: Clone>(&self, from: &T, to: &T, now: &T, same: impl Fn(&T, &T) -> bool) -> (T, bool) {
        let is_theirs = !same(now, from) && !same(now, to);
        let stays = matches!(self.state.phase, Phase::Confirmed | Phase::Undoing);
        if !self.was_whole() || !is_theirs || !(stays || same(from, to)) {
            return (to.clone(), false);
        }
        (now.clone(), true)
    }

    /// Kernel settings.
    pub(crate) fn sysctls(&mut self) -> BTreeMap<String, String> {
        let mut all = self.to.sysctls.clone();
        // What is allowed has rules of its own.
        for name in self.checkpoint.scope.sysctls.iter().filter(|name| *name != ALLOWED_CC) {
            let [from, to, now] = [self.from, self.to, self.now].map(|state| state.sysctls.get(name));
            let (Some(from), Some(to), Some(now)) = (from, to, now) else { continue };
            let (text, is_theirs) = match (three(from), three(to), three(now)) {
                (Some(from), Some(to), Some(now)) => {
                    let sizes = [0, 1, 2].map(|n| self.merged(&from[n], &to[n], &now[n], PartialEq::eq));
                    let is_theirs = sizes.iter().any(|(_, is_theirs)| *is_theirs);
                    (sizes.map(|(size, _)| size.to_string()).join("\t"), is_theirs)
                }
                _ => self.merged(from, to, now, |a, b| a.split_whitespace().eq(b.split_whitespace())),
            };
            if is_theirs {
                self.notes.push(format!("somebody set {name} since the change: it stays {}", text.replace('\t', " ")));
                all.insert(name.clone(), text);
            }
        }
        all
    }

    /// Devices under their present names.
    pub(crate) fn devices(&mut self, places: &Relocation) -> BTreeMap<String, DeviceState> {
        let from = places.states(&self.from.devices, self.now);
        let mut all = places.states(&self.to.devices, self.now);
        for (name, parts) in &places.scope(&self.checkpoint.scope).devices {
            let states = (from.get(name), all.get_mut(name), self.now.devices.get(name));
            let (Some(from), Some(to), Some(now)) = states else { continue };
            let mut theirs: Vec<String> = Vec::new();
            for part in parts {
                let (goal, others) = self.part(*part, from, to, now);
                *to = goal;
                theirs.extend(others);
            }
            if parts.contains(&DevicePart::Features) {
                theirs.extend(self.features(from, to, now));
            }
            if !theirs.is_empty() {
                self.notes.push(format!("somebody set {} of {name} since the change: it stays so", theirs.join(", ")));
            }
        }
        all
    }

    /// A device with one part where it goes, and what of it others have set.
    fn part(
        &self,
        part: DevicePart,
        from: &DeviceState,
        to: &DeviceState,
        now: &DeviceState,
    ) -> (DeviceState, Option<String>) {
        let mut goal = to.clone();
        let (is_theirs, what) = match part {
            DevicePart::Mtu => {
                let (mtu, is_theirs) = self.merged(&from.mtu, &to.mtu, &now.mtu, PartialEq::eq);
                goal.mtu = mtu;
                goal.ipv6_mtu = now.ipv6_mtu.or(to.ipv6_mtu);
                (is_theirs, "the MTU")
            }
            DevicePart::QueueLen => {
                let (packets, is_theirs) = self.merged(&from.queue_len, &to.queue_len, &now.queue_len, PartialEq::eq);
                goal.queue_len = packets;
                (is_theirs, "the queue length")
            }
            DevicePart::Qdisc => {
                let same = |a: &QdiscState, b: &QdiscState| same_qdisc(a, b) || same_qdisc(b, a);
                let (qdisc, is_theirs) = self.merged(&from.qdisc, &to.qdisc, &now.qdisc, same);
                goal.qdisc = qdisc;
                (is_theirs, "the qdisc")
            }
            DevicePart::Rings => {
                let (Some(from), Some(to), Some(now)) = (from.rings, to.rings, now.rings) else { return (goal, None) };
                let rx = self.merged(&from.0, &to.0, &now.0, PartialEq::eq);
                let tx = self.merged(&from.1, &to.1, &now.1, PartialEq::eq);
                goal.rings = Some((rx.0, tx.0));
                (rx.1 || tx.1, "the rings")
            }
            DevicePart::Features => return (goal, None),
        };
        (goal, is_theirs.then(|| what.to_owned()))
    }

    /// Leaves offloads that others have switched; which.
    fn features(&self, from: &DeviceState, to: &mut DeviceState, now: &DeviceState) -> Vec<String> {
        let mut theirs = Vec::new();
        for (feature, on) in &mut to.features {
            let (Some(from), Some(now)) = (from.features.get(feature), now.features.get(feature)) else { continue };
            let (value, is_theirs) = self.merged(from, on, now, PartialEq::eq);
            *on = value;
            theirs.extend(is_theirs.then(|| feature.clone()));
        }
        theirs
    }

    /// What the sockets of connections are to get.
    pub(crate) fn connections(&mut self) -> BTreeSet<ConnectionRule> {
        let mut all = self.to.connections.clone();
        for target in &self.checkpoint.scope.connections {
            let is_meant = |rule: &&ConnectionRule| target_of(rule) == *target;
            let of = |state: &Snapshot| state.connections.iter().filter(is_meant).cloned().collect::<BTreeSet<_>>();
            let [from, to, now] = [self.from, self.to, self.now].map(of);
            // The new one comes before the old one goes: both are there where somebody was stopped in between.
            if now.len() > 1 && now.iter().all(|rule| from.contains(rule) || to.contains(rule)) {
                continue;
            }
            let (goal, is_theirs) = self.merged(&from, &to, &now, PartialEq::eq);
            if is_theirs {
                self.notes
                    .push(format!("somebody set what connections with {target} get since the change: it stays so"));
                all.retain(|rule| !is_meant(&rule));
                all.extend(goal);
            }
        }
        all
    }

    /// Routes that are to be, of those that a scope means and whose devices are there.
    pub(crate) fn routes(&mut self, scope: &Scope, places: &Relocation) -> Vec<Route> {
        let elsewhere = OthersRoutes::of(self.now, self.checkpoint);
        let present = RouteIndex::of(&self.now.routes);
        let [from, to] = [self.from, self.to].map(|state| RouteIndex::of(&state.routes));
        let alone = |key: &[u8]| [&present, &from, &to].iter().all(|state| state.count(key) <= 1);
        let mut all = Vec::new();
        for route in self.to.routes.iter().filter(|route| places.carries(route)) {
            let (key, mut goal) = (route.key(), route.metrics());
            let may_be_gone = self.was_whole() && scope.has_route(route);
            if may_be_gone && was_removed(route, &key, self.checkpoint, [&present, &from, &to]) {
                self.notes.push(format!("somebody removed {} since the change: it stays so", route_name(route)));
                continue;
            }
            if let Some(now) = present.get(&key).filter(|_| alone(&key) && scope.has_route(route)) {
                let base = from.get(&key).map_or_else(|| self.inherited(route, self.from), Route::metrics);
                goal = self.metrics(&base, &goal, now);
            }
            let frame = elsewhere.get(&key).unwrap_or(route);
            // As it was stored, where it is to be just so.
            all.push(if frame.metrics() == goal { frame.clone() } else { frame.with_metrics(&goal) });
        }
        let is_ours = |route: &&Route| {
            let key = route.key();
            to.get(&key).is_none() && alone(&key) && self.checkpoint.scope.routes.contains(&route_key(route))
        };
        for now in self.now.routes.iter().filter(is_ours) {
            let Some(made) = from.get(&now.key()) else { continue };
            if elsewhere.get(&now.key()).is_some() {
                all.push(now.clone());
                continue;
            }
            // The change made it, and it goes with that unless others have set something there.
            let told = self.notes.len();
            let goal = self.metrics(&made.metrics(), &self.inherited(now, self.to), now);
            if self.notes.len() > told {
                all.push(now.with_metrics(&goal));
            }
        }
        if self.was_whole() {
            all.extend(added_beside(self.now, self.checkpoint).into_iter().cloned());
        }
        self.notes.extend(elsewhere.notes(self.to));
        all
    }

    /// What a route that the change made took over from the one that led there.
    fn inherited(&self, made: &Route, state: &Snapshot) -> Metrics {
        let covering = self.checkpoint.scope.copied.get(&route_key(made));
        let covering = covering.and_then(|key| RouteIndex::of(&state.routes).get_hex(key).map(Route::metrics));
        covering.unwrap_or_default()
    }

    /// What a route is to lay down.
    pub(crate) fn metrics(&mut self, from: &Metrics, to: &Metrics, now: &Route) -> Metrics {
        let (mut goal, present) = (to.clone(), now.metrics());
        let mut theirs = Vec::new();
        // The kernel changes the MTU of routes of IPv6 along with that of their device.
        let follows = now.is_v6() && self.checkpoint.scope.routes_through.iter().any(|device| now.uses(*device));
        for metric in Metric::ALL.into_iter().filter(|metric| !(follows && *metric == Metric::Mtu)) {
            let at = |metrics: &Metrics| (metrics.get(metric), metrics.is_locked(metric));
            let ((number, is_locked), is_theirs) = self.merged(&at(from), &at(to), &at(&present), PartialEq::eq);
            if is_theirs {
                goal.set(metric, number, is_locked);
                theirs.push(metric.name());
            }
        }
        let control = |metrics: &Metrics| metrics.congctl().map(str::to_owned);
        let (name, is_theirs) = self.merged(&control(from), &control(to), &control(&present), PartialEq::eq);
        if is_theirs {
            goal.set_congctl(name);
            theirs.push("congctl");
        }
        if !theirs.is_empty() {
            let name = route_name(now);
            self.notes.push(format!("somebody set {} of {name} since the change: it stays so", theirs.join(", ")));
        }
        goal
    }
}

#[cfg(test)]
mod tests;
