//! Devices that were renamed, removed or replaced since a change: told by their index, which no other device of the
//! network namespace gets as long as this one lives, and never by their name alone.

use crate::snapshot::{DeviceState, Scope, Snapshot};
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::route::Route;

/// Where the devices of a checkpoint are now.
#[derive(Debug)]
pub(crate) struct Relocation {
    /// Their present names by those that they had; what is gone isn't here.
    names: BTreeMap<String, String>,
    /// The indices that there are.
    present: BTreeSet<u32>,
    /// Whether indices mean the same devices as then.
    same_boot: bool,
}

impl Relocation {
    /// Looks for the devices. Those of another boot are known by their names only.
    pub(crate) fn of(then: &BTreeMap<String, DeviceState>, now: &Snapshot, same_boot: bool) -> Self {
        let by_index: BTreeMap<u32, &String> = now.devices.iter().map(|(name, state)| (state.index, name)).collect();
        let find = |(name, state): (&String, &DeviceState)| {
            let place = if same_boot {
                by_index.get(&state.index).copied()
            } else {
                now.devices.get_key_value(name).map(|(name, _)| name)
            };
            Some((name.clone(), place?.clone()))
        };
        let names = then.iter().filter_map(find).collect();
        Self { names, present: by_index.into_keys().collect(), same_boot }
    }

    /// The same scope with the present names; devices that are gone aren't in it.
    pub(crate) fn scope(&self, scope: &Scope) -> Scope {
        let device = |(name, parts): (&String, &BTreeSet<_>)| Some((self.names.get(name)?.clone(), parts.clone()));
        Scope { devices: scope.devices.iter().filter_map(device).collect(), ..scope.clone() }
    }

    /// States that were stored, under the present names and indices.
    pub(crate) fn states(&self, then: &BTreeMap<String, DeviceState>, now: &Snapshot) -> BTreeMap<String, DeviceState> {
        let state = |(name, state): (&String, &DeviceState)| {
            let place = self.names.get(name)?;
            Some((place.clone(), DeviceState { index: now.devices.get(place)?.index, ..state.clone() }))
        };
        then.iter().filter_map(state).collect()
    }

    /// What has become of the devices and routes of a scope, as far as they aren't where they were.
    pub(crate) fn notes(&self, scope: &Scope, before: &Snapshot, now: &Snapshot) -> Vec<String> {
        let mut notes: Vec<String> = scope.devices.keys().filter_map(|name| self.whereabouts(name, now)).collect();
        let is_lost = |route: &&Route| scope.has_route(route) && !self.carries(route);
        let lost = if self.same_boot { before.routes.iter().filter(is_lost).count() } else { 0 };
        if lost > 0 {
            notes.push(format!("{lost} route(s) of the change are gone with their devices, and weren't put back"));
        }
        notes
    }

    /// What has become of a device that isn't where it was.
    pub(crate) fn whereabouts(&self, name: &str, now: &Snapshot) -> Option<String> {
        match self.names.get(name) {
            Some(place) if place == name => None,
            Some(place) => Some(format!("the device {name} is called {place} now")),
            None if now.devices.contains_key(name) => Some(format!(
                "the device {name} is another one now: the old one is gone, and the new one wasn't touched"
            )),
            None => Some(format!("the device {name} is gone, and what was set on it with it")),
        }
    }

    /// Whether the devices that a route leads through are there. What leads through one that is gone is gone with it.
    pub(crate) fn carries(&self, route: &Route) -> bool {
        route.hops().iter().all(|hop| hop.device == 0 || self.present.contains(&hop.device))
    }
}
