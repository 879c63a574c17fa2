use super::course::Course;
use super::relocation::Relocation;
use super::store::Store;
use crate::change::{Checkpoint, Phase, State};
use crate::persist;
use crate::plan::IPV6_LEAST_MTU;
use crate::snapshot::{ALLOWED_CC, AVAILABLE_CC, CC, DevicePart, RouteIndex, Scope, Snapshot, route_key, steps};
use crate::system::{Identity, System};
use std::collections::BTreeSet;
use std::net::IpAddr;
use wt_sys::route::Route;

/// Times that putting everything back is tried: one step can make another one necessary, and drivers can be busy.
const TRIES: usize = 4;

/// Puts everything back that a change has changed, and says so in its state.
///
/// What can't be put back is tried again; what then still can't is in the errors, and the state says so. Files come
/// last: if the kernel can't be brought back, they stay as they are. What is put back under another name, or is gone, is
/// in the state's notes.
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
    let PutBack { mut errors, mut notes } = put_back(system, checkpoint, state);
    if errors.is_empty() || !was_confirmed {
        match persist::put_back(system, &state.files) {
            Ok(left) => notes.extend(left),
            Err(error) => errors.push(error.to_string()),
        }
    }
    state.by_guard = by_guard;
    state.errors.clone_from(&errors);
    state.notes = notes;
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

/// What came of bringing the kernel back.
#[derive(Debug, Default)]
pub(crate) struct PutBack {
    /// What isn't as it was.
    pub(crate) errors: Vec<String>,
    /// What is elsewhere or gone, so that nothing was to be put back there.
    pub(crate) notes: Vec<String>,
}

/// Brings the kernel back to where it was.
pub(crate) fn put_back(system: &mut dyn System, checkpoint: &Checkpoint, state: &State) -> PutBack {
    let here = system.identity();
    let scope = back_scope(checkpoint, state);
    let mut notes = Vec::new();
    let mut bring_back = |system: &mut dyn System, gone: &BTreeSet<String>| {
        converge(system, |now, available| {
            let devices = Relocation::of(&checkpoint.before.devices, now, checkpoint.is_of(&here));
            notes = devices.notes(&scope, &checkpoint.before, now);
            let mut course = Course::back(checkpoint, state, now);
            let mut target = target(&mut course, now, checkpoint, &here, &devices, (&scope, available));
            notes.extend(course.into_notes());
            // Whoever was cut off by a change wants all of it back, whatever came meanwhile; who kept it and takes it back later doesn't.
            if matches!(state.phase, Phase::Confirmed | Phase::Undoing) {
                notes.extend(spare_ipv6(&mut target, now));
            }
            (devices.scope(&scope), without_controls(target, now, gone))
        })
    };
    let mut errors = bring_back(system, &BTreeSet::new());
    let gone = if errors.is_empty() { BTreeSet::new() } else { gone_controls(system, &checkpoint.before, &scope) };
    if !gone.is_empty() {
        errors = bring_back(system, &gone);
    }
    let told =
        |name: &String| format!("the congestion control {name} is gone from this kernel: what used it stays as it is");
    notes.extend(gone.iter().map(told));
    notes.extend(take_back_permission(system, checkpoint));
    PutBack { errors, notes }
}

/// Leaves devices the MTU that they have where the one before would take IPv6 from them, which they have got since; returns what is
/// to be told.
fn spare_ipv6(target: &mut Snapshot, now: &Snapshot) -> Vec<String> {
    let has_ipv6 = |device: u32| {
        let is_of_nobody = |address: IpAddr| match address {
            IpAddr::V6(address) => address.is_unicast_link_local() || address.is_multicast(),
            IpAddr::V4(_) => true,
        };
        now.routes.iter().any(|route| route.is_v6() && route.uses(device) && !is_of_nobody(route.destination().0))
    };
    let mut notes = Vec::new();
    for (name, state) in &mut target.devices {
        let Some(present) = now.devices.get(name) else { continue };
        if state.mtu < IPV6_LEAST_MTU && present.mtu >= IPV6_LEAST_MTU && has_ipv6(present.index) {
            notes.push(format!(
                "the MTU of {name} stays {}: with {}, which it had before, it would lose IPv6, which it has got since",
                present.mtu, state.mtu
            ));
            state.mtu = present.mtu;
            let theirs = now.routes.iter().filter(|route| route.is_v6() && route.uses(present.index));
            target.routes.extend(theirs.cloned());
        }
    }
    notes
}

/// Controls that were in force before and that this kernel has no more: whoever loaded them has taken them away. One that the kernel
/// loads by itself is there once it was asked for.
fn gone_controls(system: &mut dyn System, before: &Snapshot, scope: &Scope) -> BTreeSet<String> {
    let Ok(Some(available)) = system.sysctl(AVAILABLE_CC) else { return BTreeSet::new() };
    let of_host = before.sysctls.get(CC).filter(|_| scope.sysctls.contains(CC)).cloned();
    let of_routes = before.routes.iter().filter(|route| scope.has_route(route));
    let of_routes = of_routes.filter_map(|route| route.metrics().congctl().map(str::to_owned));
    let names = of_host.into_iter().chain(of_routes);
    names.filter(|name| !available.split_whitespace().any(|word| word == name)).collect()
}

/// A goal that can be had without these controls: the host keeps what it has, and routes leave it to the host.
fn without_controls(mut goal: Snapshot, now: &Snapshot, gone: &BTreeSet<String>) -> Snapshot {
    if let (true, Some(present)) = (goal.sysctls.get(CC).is_some_and(|name| gone.contains(name)), now.sysctls.get(CC)) {
        goal.sysctls.insert(CC.to_owned(), present.clone());
    }
    let without = |route: Route| {
        let mut metrics = route.metrics();
        if metrics.congctl().is_none_or(|name| !gone.contains(name)) {
            return route;
        }
        metrics.set_congctl(None);
        route.with_metrics(&metrics)
    };
    goal.routes = goal.routes.into_iter().map(without).collect();
    goal
}

/// Takes a control off the list of allowed ones if the kernel put it there because the change made it the default.
/// Nothing depends on that list, so that what can't be done here is a note, never an error.
fn take_back_permission(system: &mut dyn System, checkpoint: &Checkpoint) -> Option<String> {
    if !checkpoint.scope.sysctls.contains(CC) || checkpoint.scope.sysctls.contains(ALLOWED_CC) {
        return None;
    }
    let scope = Scope { sysctls: [ALLOWED_CC.to_owned()].into(), ..Scope::default() };
    let errors = converge(system, |now, available| {
        let mut wanted = now.clone();
        wanted.sysctls.extend(allowed_before(now, checkpoint, available).map(|list| (ALLOWED_CC.to_owned(), list)));
        (scope.clone(), wanted)
    });
    (!errors.is_empty())
        .then(|| format!("{ALLOWED_CC} still has a control that the change added: {}", errors.join("; ")))
}

/// The list of allowed congestion controls without what a change did to it: by itself, or since the kernel allows what
/// becomes the default. What others did to the list meanwhile stays, and a control that is gone isn't named again.
fn allowed_before(now: &Snapshot, checkpoint: &Checkpoint, available: &BTreeSet<String>) -> Option<String> {
    let words = |snapshot: &Snapshot, name: &str| -> BTreeSet<String> {
        let text = snapshot.sysctls.get(name).map(String::as_str).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let (before, wanted) = (&checkpoint.before, &checkpoint.wanted);
    let listed = words(before, ALLOWED_CC);
    let mut by_change: BTreeSet<String> = words(before, CC).union(&words(wanted, CC)).cloned().collect();
    let mut list = words(now, ALLOWED_CC);
    if checkpoint.scope.sysctls.contains(ALLOWED_CC) {
        let asked = words(wanted, ALLOWED_CC);
        list.extend(listed.difference(&asked).filter(|name| available.contains(*name)).cloned());
        by_change.extend(asked);
    }
    list.retain(|name| listed.contains(name) || !by_change.contains(name));
    // The kernel takes no empty list.
    (!list.is_empty()).then(|| list.into_iter().collect::<Vec<_>>().join(" "))
}

/// Brings the kernel to where a change wanted it; returns what couldn't be.
pub(crate) fn put_forward(system: &mut dyn System, checkpoint: &Checkpoint, state: &State) -> Vec<String> {
    let here = system.identity();
    // What changes along with a device the kernel changes again; whatever else leads through that device isn't ours.
    let scope = Scope { routes_through: BTreeSet::new(), ..checkpoint.scope.clone() };
    converge(system, |now, _| {
        let devices = Relocation::of(&checkpoint.before.devices, now, checkpoint.is_of(&here));
        let mut course = Course::forward(checkpoint, state, now);
        (devices.scope(&scope), overlay(&mut course, now, &scope, &devices))
    })
}

/// Takes steps until the kernel is where `goal` wants it within its scope; returns what couldn't be done. The goal is given
/// the present state and the congestion controls that there are.
fn converge(
    system: &mut dyn System,
    mut goal: impl FnMut(&Snapshot, &BTreeSet<String>) -> (Scope, Snapshot),
) -> Vec<String> {
    let mut errors = Vec::new();
    for round in 0..=TRIES {
        let now = match Snapshot::read(system) {
            Ok(now) => now,
            Err(error) => {
                errors = vec![error.to_string()];
                continue;
            }
        };
        let available = system.sysctl(AVAILABLE_CC).ok().flatten().unwrap_or_default();
        let (scope, wanted) = goal(&now, &available.split_whitespace().map(str::to_owned).collect());
        let left = steps(&now, &wanted, &scope);
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
    let mut scope = checkpoint.scope.clone();
    if let Some(along) = &state.along {
        scope.routes.extend(along.iter().cloned());
        scope.routes_through.clear();
    }
    scope
}

/// How everything is to be after a change was put back.
fn target(
    course: &mut Course<'_>,
    now: &Snapshot,
    checkpoint: &Checkpoint,
    here: &Identity,
    devices: &Relocation,
    (scope, available): (&Scope, &BTreeSet<String>),
) -> Snapshot {
    let mut sysctls = course.sysctls();
    sysctls.extend(allowed_before(now, checkpoint, available).map(|list| (ALLOWED_CC.to_owned(), list)));
    let states = course.devices(devices);
    let routes = if checkpoint.is_of(here) {
        course.routes(scope, devices).into_iter().collect()
    } else {
        routes_of_another_time(course, now, checkpoint)
    };
    // Rules for connections end with the namespace for which they were.
    let connections = if checkpoint.is_of(here) { course.connections() } else { now.connections.clone() };
    Snapshot { sysctls, devices: states, routes, connections }
}

/// The present state with what a change wanted in its place.
fn overlay(course: &mut Course<'_>, now: &Snapshot, scope: &Scope, devices: &Relocation) -> Snapshot {
    let mut sysctls = now.sysctls.clone();
    sysctls.extend(course.sysctls());
    let outside = now.routes.iter().filter(|route| !scope.has_route(route)).cloned();
    let inside = course.routes(scope, devices).into_iter().filter(|route| scope.has_route(route));
    let routes = outside.chain(inside).collect();
    let mut states = now.devices.clone();
    states.extend(course.devices(devices));
    Snapshot { sysctls, devices: states, routes, connections: course.connections() }
}

/// After a reboot routes are made anew; those that the change concerned get the metrics that they had before it.
fn routes_of_another_time(course: &mut Course<'_>, now: &Snapshot, checkpoint: &Checkpoint) -> BTreeSet<Route> {
    let [before, wanted] = [&checkpoint.before, &checkpoint.wanted].map(|state| RouteIndex::of(&state.routes));
    let as_before = |route: &Route| {
        if !checkpoint.scope.routes.contains(&route_key(route)) {
            return Some(route.clone());
        }
        let key = route.key();
        let old = before.get(&key)?.metrics();
        let made = wanted.get(&key).map_or_else(|| old.clone(), Route::metrics);
        Some(route.with_metrics(&course.metrics(&made, &old, route)))
    };
    now.routes.iter().filter_map(as_before).collect()
}

/// Whether a device is meant whole.
#[must_use]
pub(crate) fn touches_mtu(scope: &Scope) -> bool {
    scope.devices.values().any(|parts| parts.contains(&DevicePart::Mtu))
}
