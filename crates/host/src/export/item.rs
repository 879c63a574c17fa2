use crate::change::{Change, Place};
use crate::knob::{ALL, Knob, Value};
use crate::read::{Survey, route_value};
use crate::route_text::{self, Names};
use crate::snapshot::{RouteIndex, Snapshot};
use crate::system::Action;
use std::collections::BTreeSet;
use std::net::IpAddr;
use wt_sys::route::{PRIORITY_V6, PROTO_RA, Route};

/// `RTPROT_DHCP`.
const PROTO_DHCP: u8 = 16;

/// One setting to be exported.
#[derive(Debug, Clone)]
pub(crate) struct Item {
    /// Its name.
    pub(crate) key: &'static str,
    /// Its value.
    pub(crate) value: Value,
    /// Where it holds.
    pub(crate) place: ItemPlace,
}

/// Where a setting holds.
#[derive(Debug, Clone)]
pub(crate) enum ItemPlace {
    /// For the whole host.
    Host {
        /// The kernel's name.
        sysctl: String,
        /// The kernel's text.
        text: String,
    },
    /// On a device.
    Link {
        /// Its name.
        device: String,
    },
    /// On a route.
    Route(Box<RouteItem>),
}

/// A route as other systems describe it.
#[derive(Debug, Clone)]
pub(crate) struct RouteItem {
    /// The device.
    pub(crate) device: String,
    /// `0.0.0.0/0`, `192.0.2.1/32`.
    pub(crate) network: String,
    /// The next router.
    pub(crate) gateway: Option<IpAddr>,
    /// Whether the next router comes with a lease or an advertisement, the next of which may bring another.
    pub(crate) is_leased: bool,
    /// Its priority, if it isn't the usual one.
    pub(crate) metric: Option<u32>,
    /// The route.
    pub(crate) route: Route,
}

impl RouteItem {
    /// Whether it is a default route.
    pub(crate) fn is_default(&self) -> bool {
        self.route.destination().1 == 0
    }

    /// All that it lays down, not only what was changed.
    pub(crate) fn settings(&self) -> Vec<Item> {
        let metrics = self.route.metrics();
        let set = |knob: &Knob| route_value(knob, &metrics).filter(|value| *value != Value::Auto);
        let item = |(key, value)| Item { key, value, place: ItemPlace::Route(Box::new(self.clone())) };
        ALL.iter().filter_map(|knob| Some((knob.name, set(knob)?))).map(item).collect()
    }
}

impl Item {
    /// The device that it concerns.
    pub(crate) fn device(&self) -> Option<&str> {
        match &self.place {
            ItemPlace::Host { .. } => None,
            ItemPlace::Link { device } => Some(device),
            ItemPlace::Route(route) => Some(&route.device),
        }
    }

    /// Whether it is a setting of the device itself.
    pub(crate) fn is_on_device(&self) -> bool {
        matches!(self.place, ItemPlace::Link { .. })
    }

    /// The route that it is on.
    pub(crate) fn route(&self) -> Option<&RouteItem> {
        if let ItemPlace::Route(route) = &self.place { Some(route) } else { None }
    }

    /// ` on eth0`, for messages.
    pub(crate) fn on(&self) -> String {
        match &self.place {
            ItemPlace::Host { .. } => String::new(),
            ItemPlace::Link { device } => format!(" on {device}"),
            ItemPlace::Route(route) if route.route.destination().1 == 0 => " on the default route".to_owned(),
            ItemPlace::Route(route) => format!(" on the route to {}", route_text::destination(&route.route)),
        }
    }

    /// The number.
    pub(crate) fn number(&self) -> Option<u64> {
        self.value.number()
    }

    /// Whether it is the word.
    pub(crate) fn is(&self, word: &str) -> bool {
        self.value == Value::word(word)
    }
}

/// The settings of a list of changes.
pub(crate) fn items<'a>(
    changes: impl IntoIterator<Item = &'a Change>,
    wanted: &Snapshot,
    survey: &Survey,
) -> Vec<Item> {
    let (routes, names) = (RouteIndex::of(&wanted.routes), survey.names());
    let mut leased = BTreeSet::new();
    for route in survey.snapshot.routes.iter().filter(|route| matches!(route.protocol(), PROTO_DHCP | PROTO_RA)) {
        leased.extend(route.hops().into_iter().filter_map(|hop| Some((hop.device, hop.gateway?))));
    }
    changes.into_iter().filter_map(|change| item(change, wanted, &routes, &names, &leased)).collect()
}

/// A congestion control of another system's whole host.
pub(super) fn congestion_control(value: &Value) -> Option<Item> {
    let knob = Knob::find("cc").ok()?;
    let place = ItemPlace::Host { sysctl: knob.host?.sysctl().to_owned(), text: value.to_string() };
    Some(Item { key: knob.name, value: value.clone(), place })
}

/// Devices and gateways over them.
type Gateways = BTreeSet<(u32, IpAddr)>;

fn item(change: &Change, wanted: &Snapshot, routes: &RouteIndex<'_>, names: &Names, leased: &Gateways) -> Option<Item> {
    let knob = Knob::find(&change.key).ok()?;
    let place = match &change.place {
        Place::Host => {
            let sysctl = knob.host?.sysctl();
            ItemPlace::Host { sysctl: sysctl.to_owned(), text: wanted.sysctls.get(sysctl)?.clone() }
        }
        Place::Link(device) => ItemPlace::Link { device: device.clone() },
        // Nobody else has anything of the kind.
        Place::Connections(_) => return None,
        Place::Route(key) => {
            let route = routes.get_hex(key)?;
            ItemPlace::Route(Box::new(route_item(route, names, leased)))
        }
    };
    Some(Item { key: knob.name, value: change.new.clone(), place })
}

fn route_item(route: &Route, names: &Names, leased: &Gateways) -> RouteItem {
    let hops = route.hops();
    let hop = hops.first();
    let (address, bits) = route.destination();
    let usual = if route.is_v6() { PRIORITY_V6 } else { 0 };
    RouteItem {
        device: hop.map_or_else(String::new, |hop| names.get(hop.device)),
        network: format!("{address}/{bits}"),
        gateway: hop.and_then(|hop| hop.gateway),
        is_leased: hop.and_then(|hop| Some((hop.device, hop.gateway?))).is_some_and(|hop| leased.contains(&hop)),
        metric: Some(route.priority()).filter(|metric| *metric != usual),
        route: route.clone(),
    }
}

/// Those of these actions that concern a device, as commands for a script that runs when the device comes up.
pub(crate) fn commands_for(actions: &[Action], before: &Snapshot, survey: &Survey, device: &str) -> Vec<String> {
    let names = survey.names();
    let index = before.devices.get(device).map(|state| state.index);
    let concerns = |action: &&Action| match action {
        Action::Sysctl { .. } | Action::AddConnections { .. } | Action::RemoveConnections { .. } => false,
        Action::Mtu { device: own, .. }
        | Action::QueueLen { device: own, .. }
        | Action::Qdisc { device: own, .. }
        | Action::DefaultQdisc { device: own }
        | Action::Feature { device: own, .. }
        | Action::Rings { device: own, .. } => own.name == device,
        Action::AddRoute { route }
        | Action::AppendRoute { route }
        | Action::ReplaceRoute { route }
        | Action::DeleteRoute { route } => index.is_some_and(|index| route.uses(index)),
    };
    let command = |action: &Action| match action {
        // It may be there already when the device comes up again.
        Action::AddRoute { route } => route_text::command("replace", route, &names),
        action => action.command(&names),
    };
    actions.iter().filter(concerns).map(command).collect()
}
