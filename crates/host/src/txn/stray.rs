//! Routes to single targets that a change made as copies of those that led there: they keep the way of that day, and nothing moves them
//! with what they are copies of.

use crate::change::{Change, Checkpoint, Place};
use crate::route_text::{self, Names};
use crate::snapshot::{RouteIndex, Snapshot, is_unicast};
use wt_sys::route::{Route, TABLE_MAIN};

/// The settings of copies that still lead as they were made, while everything around them goes another way since; each with a note that
/// says so.
pub(crate) fn strays<'a>(checkpoint: &'a Checkpoint, now: &Snapshot) -> Vec<(&'a Change, String)> {
    let [before, wanted, present] = [&checkpoint.before, &checkpoint.wanted, now].map(|s| RouteIndex::of(&s.routes));
    let names: Names = now.devices.iter().map(|(name, device)| (device.index, name.clone())).collect();
    let row = |change: &'a Change| {
        let Place::Route(key) = &change.place else { return None };
        let origin = checkpoint.scope.copied.get(key)?;
        let (made, copy) = (wanted.get_hex(key)?, present.get_hex(key)?);
        let around = leading_without(copy, now);
        let first = around.first()?;
        // One that was there before and wasn't followed says nothing, as long as the one that was followed is there, too.
        let was_there = |route: &&Route| before.all(&route.key()).iter().any(|other| same_way(other, route));
        let is_new = !around.iter().any(was_there);
        let is_kept = present.get_hex(origin).is_some_and(|route| same_way(route, made));
        let strays = same_way(made, copy) && !around.iter().any(|route| same_way(route, copy)) && (is_new || !is_kept);
        let note = || {
            let other = route_text::short(first, &names);
            format!("still leads where it did then, while everything around it follows \"{other}\"")
        };
        strays.then(|| (change, note()))
    };
    checkpoint.changes.iter().filter_map(row).collect()
}

/// Whether two routes lead over the same hops. Of several hops the kernel names the one first that it was asked for.
fn same_way(a: &Route, b: &Route) -> bool {
    let (a, b) = (a.hops(), b.hops());
    a.len() == b.len() && a.iter().all(|hop| b.contains(hop))
}

/// The routes of the main table that packets would follow without this one: the narrowest of those that are wider, by priority; several
/// where they are alike.
fn leading_without<'a>(copy: &Route, now: &'a Snapshot) -> Vec<&'a Route> {
    let leads = |route: &&Route| {
        let is_ordinary = is_unicast(route) && route.table() == TABLE_MAIN && route.tos() == 0;
        is_ordinary && route.is_wider_than(copy)
    };
    let rank = |route: &Route| (std::cmp::Reverse(route.destination().1), route.priority());
    let best = now.routes.iter().filter(leads).map(rank).min();
    now.routes.iter().filter(leads).filter(|route| Some(rank(route)) == best).collect()
}
