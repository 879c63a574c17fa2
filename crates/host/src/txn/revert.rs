use super::checkpoint::{Checkpoint, Phase, State};
use super::store::Store;
use crate::persist;
use crate::snapshot::{DevicePart, DeviceState, Scope, Snapshot, route_key, steps};
use crate::system::{Identity, System};
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::route::Route;

/// Times that putting everything back is tried: one step can make another one necessary, and drivers can be busy.
const TRIES: usize = 4;

/// Puts everything back that a change has changed, and says so in its state.
///
/// What can't be put back is tried again; what then still can't is in the errors, and the state says so. Files come
/// last: if the kernel can't be brought back, they stay as they are.
pub(crate) fn revert(
    system: &mut dyn System,
    store: &Store,
    checkpoint: &Checkpoint,
    state: &mut State,
    by_guard: bool,
) -> Result<(), Vec<String>> {
    let was_confirmed = matches!(state.phase, Phase::Confirmed | Phase::Undoing);
    let (during, done, failed) = if was_confirmed {
        (Phase::Undoing, Phase::Undone, Phase::Undoing)
    } else {
        (Phase::Reverting, Phase::Reverted, Phase::RevertFailed)
    };
    // If a state can't be stored, the one that is stored leads whoever comes next here again.
    let _ = enter(system, store, checkpoint, state, during);
    let mut errors = put_back(system, checkpoint, state);
    if errors.is_empty() || !was_confirmed {
        errors.extend(persist::put_back(system, &state.files).err().map(|error| error.to_string()));
    }
    state.by_guard = by_guard;
    state.errors.clone_from(&errors);
    if errors.is_empty() {
        state.files.clear();
    }
    let stored = enter(system, store, checkpoint, state, if errors.is_empty() { done } else { failed });
    if errors.is_empty() {
        if stored.is_err() {
            let _ = store.use_last_state(system, checkpoint.id);
        }
        return Ok(());
    }
    Err(errors)
}

/// Stores a new phase.
pub(crate) fn enter(
    system: &mut dyn System,
    store: &Store,
    checkpoint: &Checkpoint,
    state: &mut State,
    phase: Phase,
) -> Result<(), String> {
    state.phase = phase;
    state.since_unix_s = system.now().unix_s;
    store.write_state(system, checkpoint.id, state).map_err(|error| error.to_string())
}

/// Brings the kernel back to where it was; returns what couldn't be.
pub(crate) fn put_back(system: &mut dyn System, checkpoint: &Checkpoint, state: &State) -> Vec<String> {
    let here = system.identity();
    converge(system, &back_scope(checkpoint, state), |now| target(now, checkpoint, &here))
}

/// Brings the kernel to where a change wanted it; returns what couldn't be.
pub(crate) fn put_forward(system: &mut dyn System, checkpoint: &Checkpoint) -> Vec<String> {
    converge(system, &checkpoint.scope, |now| overlay(now, &checkpoint.wanted, &checkpoint.scope))
}

fn converge(system: &mut dyn System, scope: &Scope, target: impl Fn(&Snapshot) -> Snapshot) -> Vec<String> {
    let mut errors = Vec::new();
    for round in 0..=TRIES {
        let now = match Snapshot::read(system) {
            Ok(now) => now,
            Err(error) => {
                errors = vec![error.to_string()];
                continue;
            }
        };
        let left = steps(&now, &target(&now), scope);
        if left.is_empty() {
            return Vec::new();
        }
        if round < TRIES {
            errors = left.iter().filter_map(|action| system.act(action).err()).map(|error| error.to_string()).collect();
        }
    }
    if errors.is_empty() { vec!["the kernel took a value but didn't keep it".to_owned()] } else { errors }
}

/// Everything that a change may have changed, by itself or along with it.
fn back_scope(checkpoint: &Checkpoint, state: &State) -> Scope {
    let mut scope = checkpoint.scope.with_side_effects();
    if let Some(along) = &state.along {
        scope.routes.extend(along.iter().cloned());
        scope.routes_through.clear();
    }
    scope
}

/// How everything is to be after a change was put back.
fn target(now: &Snapshot, checkpoint: &Checkpoint, here: &Identity) -> Snapshot {
    let before = &checkpoint.before;
    let devices = devices_as(now, &before.devices);
    let present: BTreeSet<u32> = now.devices.values().map(|device| device.index).collect();
    // What led through a device that is gone is gone with it.
    let can_be = |route: &&Route| route.hops().iter().all(|hop| hop.device == 0 || present.contains(&hop.device));
    let routes = if checkpoint.is_of(here) {
        before.routes.iter().filter(can_be).cloned().collect()
    } else {
        routes_of_another_time(now, checkpoint)
    };
    Snapshot { sysctls: before.sysctls.clone(), devices, routes }
}

/// The present state with what a change wanted in its place.
fn overlay(now: &Snapshot, wanted: &Snapshot, scope: &Scope) -> Snapshot {
    let mut sysctls = now.sysctls.clone();
    sysctls.extend(wanted.sysctls.clone());
    let outside = now.routes.iter().filter(|route| !scope.has_route(route)).cloned();
    let routes = outside.chain(wanted.routes.iter().cloned()).collect();
    let mut devices = now.devices.clone();
    devices.extend(devices_as(now, &wanted.devices));
    Snapshot { sysctls, devices, routes }
}

/// Devices as they were, as far as they are still there.
fn devices_as(now: &Snapshot, then: &BTreeMap<String, DeviceState>) -> BTreeMap<String, DeviceState> {
    let present = then.iter().filter_map(|(name, state)| Some((name, state, now.devices.get(name)?)));
    present.map(|(name, state, now)| (name.clone(), DeviceState { index: now.index, ..state.clone() })).collect()
}

/// After a reboot routes are made anew; those that the change concerned get the metrics that they had before it.
fn routes_of_another_time(now: &Snapshot, checkpoint: &Checkpoint) -> BTreeSet<Route> {
    let before: BTreeMap<String, &Route> =
        checkpoint.before.routes.iter().map(|route| (route_key(route), route)).collect();
    let as_before = |route: &Route| {
        let key = route_key(route);
        if !checkpoint.scope.routes.contains(&key) {
            return Some(route.clone());
        }
        before.get(&key).map(|old| route.with_metrics(&old.metrics()))
    };
    now.routes.iter().filter_map(as_before).collect()
}

/// Whether a device is meant whole.
#[must_use]
pub(crate) fn touches_mtu(scope: &Scope) -> bool {
    scope.devices.values().any(|parts| parts.contains(&DevicePart::Mtu))
}
