//! Routes of a change that somebody else has made lead elsewhere meanwhile, or send from elsewhere, as a new lease does: of them only
//! the metrics are the change's.

use crate::change::Checkpoint;
use crate::snapshot::{RouteIndex, Snapshot, route_key};
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

/// A route, for people.
pub(crate) fn route_name(route: &Route) -> String {
    let (address, bits) = route.destination();
    if bits == 0 { "the default route".to_owned() } else { format!("the route to {address}/{bits}") }
}

fn without_metrics(route: &Route) -> Route {
    route.with_metrics(&Metrics::default())
}
