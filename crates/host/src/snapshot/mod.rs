use crate::hex::{from_hex, to_hex};
use crate::knob::{ALL, HostKnob};
use crate::system::{Action, Details, Device, Devices, System};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use wt_bpf::ConnectionRule;
use wt_sys::SysResult;
use wt_sys::link::Link;
use wt_sys::route::{KIND_UNICAST, Route};

/// The kernel setting that choosing a restricted congestion control changes with it.
pub(crate) const ALLOWED_CC: &str = "net.ipv4.tcp_allowed_congestion_control";
/// The controls that there are.
pub(crate) const AVAILABLE_CC: &str = "net.ipv4.tcp_available_congestion_control";
/// The setting that chooses it.
pub(crate) const CC: &str = "net.ipv4.tcp_congestion_control";

/// Everything that this crate can change, as it is at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Snapshot {
    /// Kernel settings as the kernel writes them.
    pub sysctls: BTreeMap<String, String>,
    /// Devices by name.
    pub devices: BTreeMap<String, DeviceState>,
    /// All routes but those to the host itself.
    #[serde(with = "as_text")]
    pub routes: BTreeSet<Route>,
    /// What the sockets of connections with some targets get.
    #[serde(with = "as_text", default)]
    pub connections: BTreeSet<ConnectionRule>,
}

/// What can be changed of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceState {
    /// Its index.
    pub index: u32,
    /// Largest packet, bytes.
    pub mtu: u32,
    /// What IPv6 has instead, where somebody gave it one of its own: the kernel forgets that with each other MTU of the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_mtu: Option<u32>,
    /// Queue length, packets.
    pub queue_len: u32,
    /// Root qdisc.
    pub qdisc: QdiscState,
    /// Descriptors to receive and to send.
    pub rings: Option<(u32, u32)>,
    /// Offloads that can be switched, and whether they are wanted.
    pub features: BTreeMap<String, bool>,
    /// The same, and whether they work.
    pub active: BTreeMap<String, bool>,
}

impl QdiscState {
    /// Whether it holds others, or classes and filters: nothing of that can be put back.
    #[must_use]
    pub(crate) fn is_tree(&self) -> bool {
        const WITH_CLASSES: [&str; 8] = ["htb", "hfsc", "drr", "qfq", "cbq", "mqprio", "taprio", "ets"];
        self.has_children || WITH_CLASSES.contains(&self.kind.as_str())
    }
}

/// A root qdisc.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QdiscState {
    /// What it is.
    pub kind: String,
    /// Its handle; 0 if the kernel put it there.
    pub handle: u32,
    /// Its parameters as the kernel describes them, in hexadecimal digits.
    pub options: String,
    /// Whether other qdiscs are attached to it that somebody put there: those can't be put back.
    pub has_children: bool,
}

impl Snapshot {
    /// Reads everything.
    ///
    /// # Errors
    /// What the kernel said.
    pub fn read(system: &mut dyn System) -> SysResult<Self> {
        let devices = system.devices()?;
        let details = devices.links.iter().map(|link| (link.name.clone(), system.details(&link.name))).collect();
        Self::of(system, &devices, &details)
    }

    /// Reads what isn't known yet.
    ///
    /// # Errors
    /// What the kernel said.
    pub(crate) fn of(
        system: &mut dyn System,
        devices: &Devices,
        details: &BTreeMap<String, Details>,
    ) -> SysResult<Self> {
        let mut state = |link: &Link| {
            let state = device_state(devices, link, details.get(&link.name));
            (link.name.clone(), DeviceState { ipv6_mtu: own_ipv6_mtu(system, link), ..state })
        };
        let states = devices.links.iter().map(&mut state).collect();
        Ok(Self {
            sysctls: Self::read_sysctls(system)?,
            devices: states,
            routes: system.routes()?.into_iter().collect(),
            connections: system.connections().into_iter().collect(),
        })
    }

    fn read_sysctls(system: &mut dyn System) -> SysResult<BTreeMap<String, String>> {
        let names: BTreeSet<&str> = ALL.iter().filter_map(|knob| knob.host).map(HostKnob::sysctl).collect();
        let mut sysctls = BTreeMap::new();
        for name in names {
            if let Some(text) = system.sysctl(name)? {
                sysctls.insert(name.to_owned(), text);
            }
        }
        Ok(sysctls)
    }

    /// The device of this name.
    #[must_use]
    pub fn device(&self, name: &str) -> Option<Device> {
        self.devices.get(name).map(|state| Device { name: name.to_owned(), index: state.index })
    }

    /// What lies within a scope, so that two moments can be compared there.
    #[must_use]
    pub fn within(&self, scope: &Scope) -> Self {
        let device = |(name, state): (&String, &DeviceState)| {
            scope.devices.contains_key(name).then(|| (name.clone(), state.clone()))
        };
        Self {
            sysctls: self
                .sysctls
                .iter()
                .filter(|(name, _)| scope.sysctls.contains(*name))
                .map(|(n, v)| (n.clone(), v.clone()))
                .collect(),
            devices: self.devices.iter().filter_map(device).collect(),
            routes: self.routes.iter().filter(|route| scope.has_route(route)).cloned().collect(),
            connections: self.connections_in(scope).cloned().collect(),
        }
    }

    /// The rules for connections that a scope means.
    fn connections_in(&self, scope: &Scope) -> impl Iterator<Item = &ConnectionRule> {
        self.connections.iter().filter(|rule| scope.connections.contains(&target_of(rule)))
    }

    /// The rule for connections with a target, as [`target_of`] writes it.
    pub(crate) fn connections_with(&self, target: &str) -> Option<&ConnectionRule> {
        self.connections.iter().find(|rule| target_of(rule) == target)
    }
}

/// Whom a rule for connections concerns: `192.0.2.1`, `192.0.2.0/24`.
#[must_use]
pub(crate) fn target_of(rule: &ConnectionRule) -> String {
    crate::route_text::network(rule.address, rule.bits)
}

fn device_state(devices: &Devices, link: &Link, details: Option<&Details>) -> DeviceState {
    let features =
        || details.into_iter().flat_map(|details| &details.features).filter(|(_, feature)| feature.changeable);
    DeviceState {
        index: link.index,
        mtu: link.mtu,
        ipv6_mtu: None,
        queue_len: link.tx_queue_len,
        qdisc: root_qdisc(devices, link),
        rings: details.and_then(|details| details.rings).map(|rings| (rings.rx, rings.tx)),
        features: features().map(|(name, feature)| (name.clone(), feature.wanted)).collect(),
        active: features().map(|(name, feature)| (name.clone(), feature.active)).collect(),
    }
}

/// The setting with the MTU of IPv6 on a device. With slashes, for names have dots.
fn ipv6_mtu_name(device: &str) -> String {
    format!("net/ipv6/conf/{device}/mtu")
}

fn own_ipv6_mtu(system: &mut dyn System, link: &Link) -> Option<u32> {
    let text = system.sysctl(&ipv6_mtu_name(&link.name)).ok()??;
    text.trim().parse().ok().filter(|mtu| *mtu != link.mtu)
}

fn root_qdisc(devices: &Devices, link: &Link) -> QdiscState {
    let own = || devices.qdiscs.iter().filter(|qdisc| qdisc.device == link.index);
    let root = own().find(|qdisc| qdisc.is_root());
    QdiscState {
        kind: root.map_or_else(|| link.qdisc.clone(), |root| root.kind.clone()),
        handle: root.map_or(0, |root| root.handle),
        options: root.map(|root| to_hex(&root.options)).unwrap_or_default(),
        // The children that mq makes for each queue have no handle of their own until somebody replaces them.
        has_children: own().any(|qdisc| !qdisc.is_root() && qdisc.handle != 0 && !is_ingress(qdisc.parent)),
    }
}

/// `TC_H_INGRESS`: beside the root, not below it.
fn is_ingress(parent: u32) -> bool {
    parent == 0xffff_fff1
}

/// Which part of a snapshot is meant.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Scope {
    /// Kernel settings.
    pub sysctls: BTreeSet<String>,
    /// Devices, and what of them.
    pub devices: BTreeMap<String, BTreeSet<DevicePart>>,
    /// Routes by their keys, in hexadecimal digits.
    pub routes: BTreeSet<String>,
    /// Routes that are made as copies of others, by their keys, with the keys of those.
    #[serde(default)]
    pub copied: BTreeMap<String, String>,
    /// All routes through these devices.
    pub routes_through: BTreeSet<u32>,
    /// Connections with these targets, as [`target_of`] writes them.
    #[serde(default)]
    pub connections: BTreeSet<String>,
}

/// A part of what can be changed of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DevicePart {
    /// Largest packet.
    Mtu,
    /// Queue length.
    QueueLen,
    /// Root qdisc.
    Qdisc,
    /// Ring sizes.
    Rings,
    /// Offloads, all of them: switching one can switch others.
    Features,
}

impl Scope {
    /// Whether a route is meant.
    #[must_use]
    pub fn has_route(&self, route: &Route) -> bool {
        self.routes.contains(&route_key(route)) || self.routes_through.iter().any(|device| route.uses(*device))
    }

    /// Whether what was changed here would be another if what `earlier` means were put back: it is the same, or a copy of it.
    #[must_use]
    pub fn builds_on(&self, earlier: &Self) -> bool {
        self.overlaps(earlier) || self.copied.values().any(|origin| earlier.routes.contains(origin))
    }

    /// Whether two scopes have anything in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let parts = |(name, parts): (&String, &BTreeSet<DevicePart>)| {
            other.devices.get(name).is_some_and(|others| !parts.is_disjoint(others))
        };
        !self.sysctls.is_disjoint(&other.sysctls)
            || !self.routes.is_disjoint(&other.routes)
            || !self.connections.is_disjoint(&other.connections)
            || self.devices.iter().any(parts)
    }
}

/// Whether a route is an ordinary way to somewhere.
#[must_use]
pub(crate) fn is_unicast(route: &Route) -> bool {
    route.kind() == KIND_UNICAST
}

/// The key of a route, in hexadecimal digits.
#[must_use]
pub(crate) fn route_key(route: &Route) -> String {
    to_hex(&route.key())
}

/// The steps that lead from one state to another within a scope, in an order that works; none if they are alike there.
#[must_use]
pub(crate) fn steps(now: &Snapshot, wanted: &Snapshot, scope: &Scope) -> Vec<Action> {
    let mut actions = sysctl_steps(now, wanted, scope);
    let mut of_devices = Vec::new();
    for (name, parts) in &scope.devices {
        if let (Some(now), Some(wanted)) = (now.devices.get(name), wanted.devices.get(name)) {
            let device = Device { name: name.clone(), index: now.index };
            of_devices.extend(parts.iter().flat_map(|part| device_steps(&device, *part, now, wanted)));
        }
    }
    // Devices lie on older ones, which have lower indices, and have no larger MTU: what shrinks does so from above, what grows from below.
    of_devices.sort_by_key(|action| match action {
        Action::Mtu { device, mtu } => {
            let grows = now.devices.get(&device.name).is_some_and(|now| now.mtu < *mtu);
            (u8::from(grows), if grows { device.index } else { u32::MAX - device.index })
        }
        _ => (2, 0),
    });
    actions.extend(of_devices);
    actions.extend(route_steps(now, wanted, scope));
    let (now, wanted): (BTreeSet<_>, BTreeSet<_>) =
        (now.connections_in(scope).collect(), wanted.connections_in(scope).collect());
    // The new one first: at no moment is there none.
    actions.extend(wanted.difference(&now).map(|rule| Action::AddConnections { rule: (*rule).clone() }));
    actions.extend(now.difference(&wanted).map(|rule| Action::RemoveConnections { rule: (*rule).clone() }));
    actions
}

fn sysctl_steps(now: &Snapshot, wanted: &Snapshot, scope: &Scope) -> Vec<Action> {
    let differs = |name: &&String| match (now.sysctls.get(*name), wanted.sysctls.get(*name)) {
        (Some(now), Some(wanted)) => !same_text(name, now, wanted),
        _ => false,
    };
    let mut names: Vec<&String> = scope.sysctls.iter().filter(differs).collect();
    // The list of allowed controls must come after the default, which makes itself allowed.
    names.sort_by_key(|name| *name == ALLOWED_CC);
    let mut actions: Vec<Action> = names
        .iter()
        .map(|name| Action::Sysctl { name: (*name).clone(), value: wanted.sysctls[*name].clone() })
        .collect();
    // Setting the default changes the list even if the list is right now.
    let sets_cc = names.iter().any(|name| *name == CC);
    let comes_anyway = names.iter().any(|name| *name == ALLOWED_CC) || !scope.sysctls.contains(ALLOWED_CC);
    if let (true, false, Some(value)) = (sets_cc, comes_anyway, wanted.sysctls.get(ALLOWED_CC)) {
        let keeps = wanted.sysctls.get(CC).is_some_and(|cc| value.split_whitespace().any(|word| word == cc));
        if !keeps {
            actions.push(Action::Sysctl { name: ALLOWED_CC.to_owned(), value: value.clone() });
        }
    }
    actions
}

/// Whether the kernel's texts mean the same: white space doesn't count, nor does the order of a list of names.
#[must_use]
pub(crate) fn same_text(name: &str, a: &str, b: &str) -> bool {
    if name == ALLOWED_CC {
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        return words(a) == words(b);
    }
    a.split_whitespace().eq(b.split_whitespace())
}

fn device_steps(device: &Device, part: DevicePart, now: &DeviceState, wanted: &DeviceState) -> Vec<Action> {
    let device = device.clone();
    match part {
        DevicePart::Mtu => {
            let name = ipv6_mtu_name(&device.name);
            let is_lost = now.mtu != wanted.mtu || now.ipv6_mtu != wanted.ipv6_mtu;
            let own = wanted.ipv6_mtu.filter(|mtu| is_lost && *mtu < wanted.mtu);
            let all = (now.mtu != wanted.mtu).then_some(Action::Mtu { device, mtu: wanted.mtu });
            // After that of the device, with which it goes.
            let own = own.map(|mtu| Action::Sysctl { name, value: mtu.to_string() });
            all.into_iter().chain(own).collect()
        }
        DevicePart::QueueLen if now.queue_len != wanted.queue_len => {
            vec![Action::QueueLen { device, packets: wanted.queue_len }]
        }
        DevicePart::Qdisc if !same_qdisc(&now.qdisc, &wanted.qdisc) => vec![qdisc_step(device, &wanted.qdisc)],
        DevicePart::Rings if now.rings != wanted.rings => {
            wanted.rings.map(|(rx, tx)| Action::Rings { device, rx, tx }).into_iter().collect()
        }
        DevicePart::Features => {
            let differs = |(name, on): &(&String, &bool)| now.features.get(*name).is_some_and(|now| now != *on);
            let step = |(name, on): (&String, &bool)| Action::Feature {
                device: device.clone(),
                feature: name.clone(),
                on: *on,
            };
            wanted.features.iter().filter(differs).map(step).collect()
        }
        _ => Vec::new(),
    }
}

/// Whether a qdisc is what is wanted. A handle that nobody has chosen may be any, and so may its parameters.
pub(crate) fn same_qdisc(now: &QdiscState, wanted: &QdiscState) -> bool {
    let chosen = wanted.handle == CHOSEN;
    now.kind == wanted.kind && (chosen || (now.handle == wanted.handle && now.options == wanted.options))
}

/// The handle of a qdisc that is asked for by name only.
pub(crate) const CHOSEN: u32 = u32::MAX;

fn qdisc_step(device: Device, wanted: &QdiscState) -> Action {
    if wanted.handle == 0 {
        return Action::DefaultQdisc { device };
    }
    let handle = if wanted.handle == CHOSEN { 0 } else { wanted.handle };
    Action::Qdisc { device, kind: wanted.kind.clone(), handle, options: wanted.options.clone() }
}

fn route_steps(now: &Snapshot, wanted: &Snapshot, scope: &Scope) -> Vec<Action> {
    let extra: Vec<&Route> = now.routes.difference(&wanted.routes).filter(|route| scope.has_route(route)).collect();
    let missing: Vec<&Route> = wanted.routes.difference(&now.routes).filter(|route| scope.has_route(route)).collect();
    // Where several have one key (fe80::/64 on every device), the kernel would replace any of them.
    let (present, later) = (RouteIndex::of(&now.routes), RouteIndex::of(&wanted.routes));
    let alone = |key: &[u8]| present.count(key).max(later.count(key)) == 1;
    let alone_now = extra.iter().map(|route| (route.key(), *route)).filter(|(key, _)| alone(key));
    let mut replaceable: BTreeMap<Vec<u8>, &Route> = alone_now.collect();
    let mut replaced = BTreeSet::new();
    let mut actions = Vec::new();
    let mut added = Vec::new();
    for route in missing {
        let key = route.key();
        if let Some(present) = replaceable.remove(&key) {
            replaced.insert(key);
            actions.push(Action::ReplaceRoute { route: route.lasting_as(present) });
        } else {
            added.push(route);
        }
    }
    let gone = extra.into_iter().filter(|route| !replaced.contains(&route.key()));
    actions.extend(gone.map(|route| Action::DeleteRoute { route: route.clone() }));
    // A gateway must be reachable before a route can lead through it.
    added.sort_by_key(|route| route.hops().iter().any(|hop| hop.gateway.is_some()));
    actions.extend(added.into_iter().map(|route| {
        let alone = alone(&route.key());
        let route = route.clone();
        if alone { Action::AddRoute { route } } else { Action::AppendRoute { route } }
    }));
    actions
}

/// Routes by their keys, so that many can be looked for. Of several with one key, the first counts.
#[derive(Debug)]
pub(crate) struct RouteIndex<'a>(BTreeMap<Vec<u8>, Vec<&'a Route>>);

impl<'a> RouteIndex<'a> {
    /// The routes of a snapshot.
    pub(crate) fn of(routes: &'a BTreeSet<Route>) -> Self {
        let mut index = BTreeMap::<_, Vec<_>>::new();
        for route in routes {
            index.entry(route.key()).or_default().push(route);
        }
        Self(index)
    }

    /// The route with this key, as [`Route::key`] makes it.
    pub(crate) fn get(&self, key: &[u8]) -> Option<&'a Route> {
        self.0.get(key)?.first().copied()
    }

    /// All routes with this key.
    pub(crate) fn all(&self, key: &[u8]) -> &[&'a Route] {
        self.0.get(key).map_or(&[], Vec::as_slice)
    }

    /// The same route, perhaps with other metrics: with its key, over the same hops.
    pub(crate) fn same(&self, route: &Route) -> Option<&'a Route> {
        self.0.get(&route.key())?.iter().find(|other| other.hops() == route.hops()).copied()
    }

    /// The route with this key in hexadecimal digits, as [`route_key`] makes it.
    pub(crate) fn get_hex(&self, key: &str) -> Option<&'a Route> {
        self.get(&from_hex(key)?)
    }

    /// Routes with this key in hexadecimal digits.
    pub(crate) fn count_hex(&self, key: &str) -> usize {
        from_hex(key).map_or(0, |key| self.count(&key))
    }

    /// Routes with this key.
    pub(crate) fn count(&self, key: &[u8]) -> usize {
        self.0.get(key).map_or(0, Vec::len)
    }
}

/// Sets whose members have a text that is read again.
mod as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::collections::BTreeSet;
    use std::fmt::Display;
    use std::str::FromStr;

    pub(super) fn serialize<T: Display, S: Serializer>(set: &BTreeSet<T>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(set.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, T, D>(deserializer: D) -> Result<BTreeSet<T>, D::Error>
    where
        T: FromStr<Err: Display> + Ord,
        D: Deserializer<'de>,
    {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests;
