use super::setting::{Change, Place};
use crate::route_text::{self, Names};
use crate::snapshot::{Scope, Snapshot, route_key};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use utoipa::ToSchema;
use wt_sys::route::{Metrics, Route};

/// A route that a change removes or makes, apart from those that only hold one of its settings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RouteChange {
    /// What becomes of it.
    pub done: RouteFate,
    /// The route in the words of ip-route(8): `192.0.2.0/24 via 10.9.0.2 dev eth0 proto static mtu 1300`.
    pub route: String,
}

/// What becomes of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RouteFate {
    /// It goes: packets that took it take another one, or none.
    Removed,
    /// It comes.
    Made,
}

impl RouteFate {
    /// `removed`.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Removed => "removed",
            Self::Made => "made",
        }
    }
}

impl std::fmt::Display for RouteChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "route {} {}", self.route, self.done.word())
    }
}

impl RouteChange {
    /// Those between two states within a scope. Routes of which `changes` name a setting hold it and nothing else, unless another one with
    /// the same key is in their place.
    pub(crate) fn between(before: &Snapshot, wanted: &Snapshot, scope: &Scope, changes: &[Change]) -> Vec<Self> {
        if scope.routes.is_empty() {
            return Vec::new();
        }
        let meant = |state: &Snapshot| -> BTreeSet<Route> {
            state.routes.iter().filter(|route| scope.routes.contains(&route_key(route))).cloned().collect()
        };
        let (before_routes, wanted_routes) = (meant(before), meant(wanted));
        let gone = |from: &BTreeSet<Route>, to: &BTreeSet<Route>| -> Vec<Route> {
            let there: BTreeSet<Route> = to.iter().map(without_metrics).collect();
            from.iter().filter(|route| !there.contains(&without_metrics(route))).cloned().collect()
        };
        let (removed, made) = (gone(&before_routes, &wanted_routes), gone(&wanted_routes, &before_routes));
        let is_named = |route: &Route| {
            let key = route_key(route);
            changes.iter().any(|change| matches!(&change.place, Place::Route(named) if *named == key))
        };
        let takes_place = |route: &Route, others: &[Route]| others.iter().any(|other| other.key() == route.key());
        let names = names_of(before);
        let told = |done: RouteFate, routes: &[Route], others: &[Route]| -> Vec<Self> {
            let counts = routes.iter().filter(|route| !is_named(route) || takes_place(route, others));
            counts.map(|route| Self { done, route: route_text::long(route, &names) }).collect()
        };
        let mut all = told(RouteFate::Removed, &removed, &made);
        all.extend(told(RouteFate::Made, &made, &removed));
        all
    }

    /// What takes these back, as far as it is so in this state.
    pub(crate) fn taken_back(all: &[Self], now: &Snapshot) -> Vec<Self> {
        let names = names_of(now);
        let there: BTreeSet<String> = now.routes.iter().map(|route| route_text::long(route, &names)).collect();
        let back = |change: &Self| {
            let done = if change.done == RouteFate::Made { RouteFate::Removed } else { RouteFate::Made };
            let is_so = there.contains(&change.route) == (done == RouteFate::Made);
            is_so.then(|| Self { done, route: change.route.clone() })
        };
        all.iter().filter_map(back).collect()
    }
}

fn names_of(snapshot: &Snapshot) -> Names {
    snapshot.devices.iter().map(|(name, state)| (state.index, name.clone())).collect()
}

fn without_metrics(route: &Route) -> Route {
    route.with_metrics(&Metrics::default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::ScopeName;
    use crate::knob::Value;
    use wt_sys::route::Metric;

    /// A route of IPv4 to 10.x.0.0/16 via this gateway of 10.9.0.0/24, over device 3.
    fn route(x: u8, gateway: u8) -> Route {
        format!(
            "02100000fe03000100000000080001000a{x:02x}0000080005000a0900{gateway:02x}080004000300000008000f00fe000000"
        )
        .parse()
        .unwrap()
    }

    fn state(routes: &[&Route]) -> Snapshot {
        Snapshot { routes: routes.iter().map(|route| (*route).clone()).collect(), ..Snapshot::default() }
    }

    fn between(before: &[&Route], wanted: &[&Route], changes: &[Change]) -> Vec<String> {
        let routes = before.iter().chain(wanted).map(|route| route_key(route)).collect();
        let scope = Scope { routes, ..Scope::default() };
        RouteChange::between(&state(before), &state(wanted), &scope, changes).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn routes_that_go_come_or_lead_elsewhere_are_told_and_those_with_other_metrics_are_not() {
        let (one, two, elsewhere) = (route(50, 2), route(51, 2), route(50, 3));
        let mut metrics = one.metrics();
        metrics.set(Metric::Mtu, Some(1_300), true);
        let tuned = one.with_metrics(&metrics);
        assert_eq!(between(&[&one, &two], &[&two], &[]), ["route 10.50.0.0/16 via 10.9.0.2 dev if3 removed"]);
        assert_eq!(between(&[], &[&tuned], &[]), ["route 10.50.0.0/16 via 10.9.0.2 dev if3 mtu lock 1300 made"]);
        assert_eq!(
            between(&[&one], &[&elsewhere], &[]),
            ["route 10.50.0.0/16 via 10.9.0.2 dev if3 removed", "route 10.50.0.0/16 via 10.9.0.3 dev if3 made"]
        );
        assert_eq!(between(&[&one], &[&tuned], &[]), [""; 0]);
        let change = Change {
            key: "mtu".to_owned(),
            old: Value::Auto,
            new: Value::Number(1_300),
            scope: ScopeName::Route,
            target: String::new(),
            family: None,
            why: String::new(),
            asked: None,
            unchanged: false,
            place: Place::Route(route_key(&tuned)),
        };
        assert_eq!(between(&[], &[&tuned], std::slice::from_ref(&change)), [""; 0], "it holds the setting");
        assert_eq!(between(&[&elsewhere], &[&tuned], &[change]).len(), 2, "it leads elsewhere, too");
    }

    #[test]
    fn what_takes_a_change_of_routes_back_is_told_as_far_as_it_is_so() {
        let (one, two) = (route(50, 2), route(51, 2));
        let scope = Scope { routes: [&one, &two].map(route_key).into(), ..Scope::default() };
        let all = RouteChange::between(&state(&[&one]), &state(&[&two]), &scope, &[]);
        let told = |now: &[&Route]| -> Vec<&'static str> {
            RouteChange::taken_back(&all, &state(now)).iter().map(|change| change.done.word()).collect()
        };
        assert_eq!((told(&[&one]), told(&[&two])), (vec!["made", "removed"], vec![]));
        assert_eq!(told(&[&one, &two]), ["made"], "somebody has made the other one again");
    }
}
