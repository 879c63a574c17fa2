//! Routes of a change that somebody else has made lead elsewhere meanwhile, or send from elsewhere, as a new lease does: of them only
//! the metrics are the change's. And routes that somebody else has removed, or added beside those of the change.

use crate::change::Checkpoint;
use crate::plan::IPV6_LEAST_MTU;
use crate::snapshot::{DevicePart, RouteIndex, Snapshot, route_key};
use std::collections::BTreeMap;
use wt_sys::route::{Metrics, Route};

/// Such routes, by their keys, as they are now.
#[derive(Debug)]
pub(crate) struct OthersRoutes(BTreeMap<Vec<u8>, Route>);

impl OthersRoutes {
    /// Looks for what is neither as it was before a change nor as that wanted it, apart from its metrics.
    ///
    /// Of routes with one key the kernel keeps the order, and no change touches those.
    pub(crate) fn of(now: &Snapshot, checkpoint: &Checkpoint) -> Self {
        let present = RouteIndex::of(&now.routes);
        let [before, wanted] = [&checkpoint.before, &checkpoint.wanted].map(|state| RouteIndex::of(&state.routes));
        let is_elsewhere = |route: &&Route| {
            let (key, bare) = (route.key(), without_metrics(route));
            let is_as_in = |state: &RouteIndex<'_>| state.get(&key).is_some_and(|other| without_metrics(other) == bare);
            let is_known = before.get(&key).is_some() || wanted.get(&key).is_some();
            let alone = [&present, &before, &wanted].iter().all(|state| state.count(&key) <= 1);
            alone && is_known && !is_as_in(&before) && !is_as_in(&wanted)
        };
        let ours = now.routes.iter().filter(|route| checkpoint.scope.routes.contains(&route_key(route)));
        Self(ours.filter(is_elsewhere).map(|route| (route.key(), route.clone())).collect())
    }

    /// The route with this key, if it is one of them.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&Route> {
        self.0.get(key)
    }

    /// What is to be told of them.
    pub(crate) fn notes(&self, to_be: &Snapshot) -> Vec<String> {
        let known = RouteIndex::of(&to_be.routes);
        let note = |(key, route): (&Vec<u8>, &Route)| {
            let name = route_name(route);
            if known.get(key).is_some() {
                format!(
                    "somebody made {name} lead elsewhere since the change: it was left so, with the metrics that it had before"
                )
            } else {
                format!("somebody made {name} anew since the change: it was left as it is")
            }
        };
        self.0.iter().map(note).collect()
    }
}

/// Whether a route is gone though the change only set metrics of it, which the kernel does in one step: so others removed it, or a link
/// that went down took it along. What the change itself made lead elsewhere comes back, and so does what goes with IPv6.
///
/// `states` are the present one and the two ends of the change.
pub(crate) fn was_removed(route: &Route, key: &[u8], checkpoint: &Checkpoint, states: [&RouteIndex<'_>; 3]) -> bool {
    let [now, from, to] = states;
    // Of several hops of IPv6 the kernel replaces one after the other, and a failure takes all of them.
    let in_one_step = !route.is_v6() || route.hops().len() < 2;
    if now.count(key) > 0 || !in_one_step || from.count(key) != 1 || to.count(key) != 1 {
        return false;
    }
    let is_named = checkpoint.scope.routes.contains(&route_key(route));
    let bare = from.get(key).map(without_metrics);
    bare == to.get(key).map(without_metrics) && (is_named || !takes_ipv6(checkpoint))
}

/// Whether a device gets an MTU with which the kernel takes IPv6 from it, and all routes of that.
fn takes_ipv6(checkpoint: &Checkpoint) -> bool {
    let mut devices = checkpoint.scope.devices.iter().filter(|(_, parts)| parts.contains(&DevicePart::Mtu));
    devices.any(|(name, _)| checkpoint.wanted.devices.get(name).is_none_or(|device| device.mtu < IPV6_LEAST_MTU))
}

/// Routes that others have added with the target and the priority of the change's own, beside others.
pub(crate) fn added_beside<'a>(now: &'a Snapshot, checkpoint: &Checkpoint) -> Vec<&'a Route> {
    let present = RouteIndex::of(&now.routes);
    let [before, wanted] = [&checkpoint.before, &checkpoint.wanted].map(|state| RouteIndex::of(&state.routes));
    let is_theirs = |route: &&Route| {
        let (key, bare) = (route.key(), without_metrics(route));
        let is_as_in = |state: &RouteIndex<'_>| state.all(&key).iter().any(|other| without_metrics(other) == bare);
        present.count(&key) > 1 && !is_as_in(&before) && !is_as_in(&wanted)
    };
    let ours = now.routes.iter().filter(|route| checkpoint.scope.routes.contains(&route_key(route)));
    ours.filter(is_theirs).collect()
}

/// A route, for people.
pub(crate) fn route_name(route: &Route) -> String {
    let (address, bits) = route.destination();
    if bits == 0 { "the default route".to_owned() } else { format!("the route to {address}/{bits}") }
}

fn without_metrics(route: &Route) -> Route {
    route.with_metrics(&Metrics::default())
}
