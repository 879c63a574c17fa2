use crate::knob::{ALL, HostKnob};
use crate::system::{Action, Details, Device, Devices, System};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::SysResult;
use wt_sys::link::Link;
use wt_sys::route::Route;

/// The kernel setting that choosing a restricted congestion control changes with it.
pub(crate) const ALLOWED_CC: &str = "net.ipv4.tcp_allowed_congestion_control";
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
    #[serde(with = "routes_as_text")]
    pub routes: BTreeSet<Route>,
}

/// What can be changed of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeviceState {
    /// Its index.
    pub index: u32,
    /// Largest packet, bytes.
    pub mtu: u32,
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

/// A root qdisc.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QdiscState {
    /// What it is.
    pub kind: String,
    /// Its handle; 0 if the kernel put it there.
    pub handle: u32,
    /// Its parameters as the kernel describes them, in hexadecimal digits.
    pub options: String,
    /// Whether others hang on it that somebody put there: those can't be put back.
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
        let state = |link: &Link| (link.name.clone(), device_state(devices, link, details.get(&link.name)));
        Ok(Self {
            sysctls: Self::read_sysctls(system)?,
            devices: devices.links.iter().map(state).collect(),
            routes: system.routes()?.into_iter().collect(),
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
        }
    }
}

fn device_state(devices: &Devices, link: &Link, details: Option<&Details>) -> DeviceState {
    let features =
        || details.into_iter().flat_map(|details| &details.features).filter(|(_, feature)| feature.changeable);
    DeviceState {
        index: link.index,
        mtu: link.mtu,
        queue_len: link.tx_queue_len,
        qdisc: root_qdisc(devices, link),
        rings: details.and_then(|details| details.rings).map(|rings| (rings.rx, rings.tx)),
        features: features().map(|(name, feature)| (name.clone(), feature.wanted)).collect(),
        active: features().map(|(name, feature)| (name.clone(), feature.active)).collect(),
    }
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
    /// All routes through these devices.
    pub routes_through: BTreeSet<u32>,
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

    /// Whether two scopes have anything in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let parts = |(name, parts): (&String, &BTreeSet<DevicePart>)| {
            other.devices.get(name).is_some_and(|others| !parts.is_disjoint(others))
        };
        !self.sysctls.is_disjoint(&other.sysctls)
            || !self.routes.is_disjoint(&other.routes)
            || self.devices.iter().any(parts)
    }

    /// What changing this can change with it.
    #[must_use]
    pub fn with_side_effects(&self) -> Self {
        let mut wide = self.clone();
        // The default becomes allowed: tcp_set_default_congestion_control of the kernel.
        if self.sysctls.contains(CC) {
            wide.sysctls.insert(ALLOWED_CC.to_owned());
        }
        wide
    }
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
    for (name, parts) in &scope.devices {
        if let (Some(now), Some(wanted)) = (now.devices.get(name), wanted.devices.get(name)) {
            let device = Device { name: name.clone(), index: now.index };
            actions.extend(parts.iter().flat_map(|part| device_steps(&device, *part, now, wanted)));
        }
    }
    actions.extend(route_steps(now, wanted, scope));
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
        DevicePart::Mtu if now.mtu != wanted.mtu => vec![Action::Mtu { device, mtu: wanted.mtu }],
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
fn same_qdisc(now: &QdiscState, wanted: &QdiscState) -> bool {
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
    let mut replaced = BTreeSet::new();
    let mut actions = Vec::new();
    let mut added = Vec::new();
    for route in missing {
        if extra.iter().any(|old| old.key() == route.key()) && replaced.insert(route.key()) {
            actions.push(Action::ReplaceRoute { route: route.clone() });
        } else {
            added.push(route);
        }
    }
    let gone = extra.into_iter().filter(|route| !replaced.contains(&route.key()));
    actions.extend(gone.map(|route| Action::DeleteRoute { route: route.clone() }));
    // A gateway must be reachable before a route can lead through it.
    added.sort_by_key(|route| route.hops().iter().any(|hop| hop.gateway.is_some()));
    actions.extend(added.into_iter().map(|route| Action::AddRoute { route: route.clone() }));
    actions
}

/// Bytes as hexadecimal digits.
#[must_use]
pub(crate) fn to_hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Hexadecimal digits as bytes; `None` if they are none.
#[must_use]
pub(crate) fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || !text.len().is_multiple_of(2) {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok()).collect()
}

mod routes_as_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};
    use std::collections::BTreeSet;
    use wt_sys::route::Route;

    pub(super) fn serialize<S: Serializer>(routes: &BTreeSet<Route>, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(routes.iter().map(ToString::to_string))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<BTreeSet<Route>, D::Error> {
        let texts = Vec::<String>::deserialize(deserializer)?;
        texts.iter().map(|text| text.parse().map_err(D::Error::custom)).collect()
    }
}

#[cfg(test)]
mod tests;
