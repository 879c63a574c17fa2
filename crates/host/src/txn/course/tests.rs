//! What is to be, of what the change set and what others have set since.

use super::super::stray::strays;
use super::{Course, Relocation};
use crate::change::{
    CHECKPOINT_FORMAT, Change, Checkpoint, Phase, Place, RouteFamily, SCHEMA_VERSION, ScopeName, State,
};
use crate::knob::Value;
use crate::snapshot::{DevicePart, DeviceState, QdiscState, Scope, Snapshot, route_key};
use crate::system::{Identity, Now};
use std::collections::{BTreeMap, BTreeSet};
use wt_bpf::ConnectionRule;
use wt_sys::route::{Metric, Route};

const TTL: &str = "net.ipv4.ip_default_ttl";
const RMEM: &str = "net.ipv4.tcp_rmem";

/// `default via 10.0.0.2 dev 3` as the kernel describes it, with these metrics.
fn route(metrics: &[(Metric, u32)]) -> Route {
    let bare =
        "02000000fe04000110000000080005000a00000208000400030000000800 0f00fe000000".replace(' ', "").parse().unwrap();
    with(&bare, metrics)
}

fn with(route: &Route, metrics: &[(Metric, u32)]) -> Route {
    let mut all = route.metrics();
    metrics.iter().for_each(|(metric, number)| all.set(*metric, Some(*number), *metric == Metric::Mtu));
    route.with_metrics(&all)
}

fn device(mtu: u32, tso: bool, gso: bool) -> DeviceState {
    let features = BTreeMap::from([("tso".to_owned(), tso), ("gso".to_owned(), gso)]);
    DeviceState {
        index: 3,
        mtu,
        ipv6_mtu: None,
        queue_len: 1000,
        qdisc: QdiscState { kind: "noqueue".to_owned(), handle: 0, options: String::new(), has_children: false },
        rings: None,
        active: features.clone(),
        features,
    }
}

fn snapshot(ttl: &str, rmem: &str, device: DeviceState, routes: &[Route]) -> Snapshot {
    Snapshot {
        sysctls: [(TTL, ttl), (RMEM, rmem)].map(|(name, text)| (name.to_owned(), text.to_owned())).into(),
        devices: BTreeMap::from([("d0".to_owned(), device)]),
        routes: routes.iter().cloned().collect(),
        connections: BTreeSet::new(),
    }
}

/// A change of everything that there is here, and its state once it was in force.
fn change(before: Snapshot, wanted: Snapshot, phase: Phase) -> (Checkpoint, State) {
    let identity = Identity {
        boot_id: String::new(),
        network_of_init: None,
        owns_etc: true,
        network: String::new(),
        network_cookie: None,
        uid: 0,
        kernel: String::new(),
        net_admin: true,
    };
    let scope = Scope {
        sysctls: [TTL, RMEM].map(str::to_owned).into(),
        devices: BTreeMap::from([("d0".to_owned(), [DevicePart::Mtu, DevicePart::Features].into())]),
        routes: wanted.routes.iter().map(route_key).collect(),
        ..Scope::default()
    };
    let checkpoint = Checkpoint {
        format: CHECKPOINT_FORMAT.to_owned(),
        schema_version: SCHEMA_VERSION,
        id: "1".parse().unwrap(),
        created_unix_s: 0,
        identity,
        to: "host".to_owned(),
        changes: Vec::new(),
        actions: Vec::new(),
        wanted,
        before,
        scope,
        basis: None,
    };
    let now = Now { boottime_ns: 0, unix_s: 0 };
    (checkpoint, State { phase, along: Some(Vec::new()), ..State::prepared(now, 1) })
}

/// Where a course leads, and what it tells.
fn goal(mut course: Course<'_>, checkpoint: &Checkpoint, now: &Snapshot) -> (Snapshot, Vec<String>) {
    let places = Relocation::of(&checkpoint.before.devices, now, true);
    let sysctls = course.sysctls();
    let devices = course.devices(&places);
    let routes = course.routes(&checkpoint.scope, &places).into_iter().collect();
    (Snapshot { sysctls, devices, routes, connections: BTreeSet::new() }, course.into_notes())
}

#[test]
fn what_others_have_set_beside_the_change_stays_on_its_way_out_and_in() {
    let lan = [(Metric::Hoplimit, 9)];
    let before = snapshot("64", "4096 131072 6291456", device(1500, true, true), &[route(&lan)]);
    let made = [(Metric::Hoplimit, 9), (Metric::Initcwnd, 20)];
    let wanted = snapshot("77", "4096 131072 1048576", device(1400, false, true), &[route(&made)]);
    let theirs = [(Metric::Mtu, 1380), (Metric::RtoMin, 300)];
    let now = snapshot("77", "8192 200000 1048576", device(1400, false, false), &[with(&route(&made), &theirs)]);
    let out = snapshot("64", "8192\t200000\t6291456", device(1500, true, false), &[with(&route(&lan), &theirs)]);
    for phase in [Phase::Applied, Phase::Reverting, Phase::Confirmed, Phase::Undoing] {
        let (checkpoint, state) = change(before.clone(), wanted.clone(), phase);
        let (mut back, notes) = goal(Course::back(&checkpoint, &state, &now), &checkpoint, &now);
        back.devices.get_mut("d0").unwrap().active = out.devices["d0"].active.clone();
        assert_eq!(back, out, "{phase}");
        let told = ["somebody set net.ipv4.tcp_rmem", "gso of d0", "mtu, rto_min of the default route"];
        assert!(told.iter().all(|text| notes.iter().any(|note| note.contains(text))), "{notes:?}");
        let (forward, _) = goal(Course::forward(&checkpoint, &state, &out), &checkpoint, &out);
        assert_eq!((&forward.routes, &forward.devices["d0"].features), (&now.routes, &now.devices["d0"].features));
        assert_eq!(forward.sysctls[RMEM].split_whitespace().collect::<Vec<_>>().join(" "), now.sysctls[RMEM]);
    }
}

#[test]
fn another_value_in_the_place_of_the_changes_own_stays_once_that_was_to_stay_and_not_before() {
    let lan = [(Metric::Initcwnd, 12)];
    let before = snapshot("64", "1 2 3", device(1500, true, true), &[route(&lan)]);
    let wanted = snapshot("77", "1 2 4", device(1400, true, true), &[route(&[(Metric::Initcwnd, 20)])]);
    let now = snapshot("99", "1 2 5", device(1300, true, true), &[route(&[(Metric::Initcwnd, 30)])]);
    for (phase, stays) in
        [(Phase::Applied, false), (Phase::Reverting, false), (Phase::Confirmed, true), (Phase::Undoing, true)]
    {
        let (checkpoint, state) = change(before.clone(), wanted.clone(), phase);
        let (mut back, notes) = goal(Course::back(&checkpoint, &state, &now), &checkpoint, &now);
        back.sysctls.values_mut().for_each(|text| *text = text.replace('\t', " "));
        assert_eq!((&back, notes.len()), if stays { (&now, 4) } else { (&before, 0) }, "{phase}: {notes:?}");
    }
    // What was never in force as a whole may have left anything.
    let (checkpoint, state) = change(before.clone(), wanted, Phase::Reverting);
    let state = State { along: None, ..state };
    assert_eq!(goal(Course::back(&checkpoint, &state, &now), &checkpoint, &now), (before, Vec::new()));
}

/// `default via 10.0.0.3 dev 3`: with the key of [`route`].
fn elsewhere(metrics: &[(Metric, u32)]) -> Route {
    with(&route(&[]).to_string().replace("0a000002", "0a000003").parse().unwrap(), metrics)
}

#[test]
fn a_route_that_others_removed_stays_away_but_for_what_the_change_itself_made_lead_elsewhere() {
    let of = |routes: &[Route]| snapshot("64", "1 2 3", device(1500, true, true), routes);
    let (before, wanted, now) = (of(&[route(&[])]), of(&[route(&[(Metric::Initcwnd, 20)])]), of(&[]));
    for phase in [Phase::Applied, Phase::Reverting, Phase::Confirmed, Phase::Undoing] {
        let (checkpoint, state) = change(before.clone(), wanted.clone(), phase);
        for course in [Course::back(&checkpoint, &state, &now), Course::forward(&checkpoint, &state, &now)] {
            let (goal, notes) = goal(course, &checkpoint, &now);
            assert_eq!((goal.routes, notes.len()), (BTreeSet::new(), 1), "{phase}: {notes:?}");
            assert!(notes[0].starts_with("somebody removed the default route"), "{notes:?}");
        }
        // Half of a change may have taken anything away.
        let half = State { along: None, ..state };
        assert_eq!(goal(Course::back(&checkpoint, &half, &now), &checkpoint, &now), (before.clone(), Vec::new()));
        // As a restored backup does: the way that there was is gone by the change's own doing.
        let (checkpoint, state) = change(before.clone(), of(&[elsewhere(&[])]), phase);
        assert_eq!(goal(Course::back(&checkpoint, &state, &now), &checkpoint, &now), (before.clone(), Vec::new()));
        let (mut checkpoint, state) = change(before.clone(), now.clone(), phase);
        checkpoint.scope.routes = before.routes.iter().map(route_key).collect();
        assert_eq!(goal(Course::back(&checkpoint, &state, &now), &checkpoint, &now), (before.clone(), Vec::new()));
    }
}

#[test]
fn a_route_that_went_along_with_ipv6_comes_back_and_one_that_did_not_stays_away() {
    // `2001:db8:9::/48 dev 3`, which the change doesn't name.
    let lan: Route =
        "0a300000fe03000100000000 1400010020010db8000900000000000000000000 0800060000040000 0800040003000000"
            .replace(' ', "")
            .parse()
            .unwrap();
    let of = |mtu: u32, routes: &[Route]| snapshot("64", "1 2 3", device(mtu, true, true), routes);
    let lan = std::slice::from_ref(&lan);
    for (mtu, comes_back) in [(1200, true), (1400, false)] {
        let (before, wanted, now) = (of(1500, lan), of(mtu, lan), of(mtu, &[]));
        let (mut checkpoint, mut state) = change(before.clone(), wanted, Phase::Confirmed);
        (checkpoint.scope.routes, state.along) = (BTreeSet::new(), Some(lan.iter().map(route_key).collect()));
        let scope = Scope { routes: lan.iter().map(route_key).collect(), ..checkpoint.scope.clone() };
        let places = Relocation::of(&checkpoint.before.devices, &now, true);
        let back = Course::back(&checkpoint, &state, &now).routes(&scope, &places);
        assert_eq!(back.as_slice() == lan, comes_back, "{mtu}");
    }
}

#[test]
fn a_route_that_others_added_beside_the_changes_own_stays() {
    let of = |routes: &[Route]| snapshot("64", "1 2 3", device(1500, true, true), routes);
    let (before, made) = (route(&[]), route(&[(Metric::Initcwnd, 20)]));
    let beside = elsewhere(&[(Metric::Mtu, 1300)]);
    let (checkpoint, state) =
        change(of(std::slice::from_ref(&before)), of(std::slice::from_ref(&made)), Phase::Applied);
    let now = of(&[made, beside.clone()]);
    let (back, _) = goal(Course::back(&checkpoint, &state, &now), &checkpoint, &now);
    assert_eq!(back.routes, [before, beside].into());
}

#[test]
fn what_connections_get_by_others_stays_as_values_do() {
    let target = "192.0.2.80".parse().unwrap();
    let rule = |window: u32| ConnectionRule { window: Some(window), ..ConnectionRule::new(7, target, 32) };
    let of = |windows: &[u32]| Snapshot {
        connections: windows.iter().map(|window| rule(*window)).collect(),
        ..snapshot("64", "1 2 3", device(1500, true, true), &[])
    };
    for (phase, now, wanted) in [
        (Phase::Confirmed, &[2][..], &[1][..]),
        (Phase::Confirmed, &[3], &[3]),
        (Phase::Undoing, &[], &[]),
        (Phase::Undoing, &[1, 2], &[1]),
        (Phase::Applied, &[3], &[1]),
        (Phase::Reverting, &[], &[1]),
    ] {
        let (mut checkpoint, state) = change(of(&[1]), of(&[2]), phase);
        checkpoint.scope.connections = ["192.0.2.80".to_owned()].into();
        let present = of(now);
        let mut course = Course::back(&checkpoint, &state, &present);
        assert_eq!(course.connections(), of(wanted).connections, "{phase} {now:?}");
        assert_eq!(course.into_notes().len(), usize::from(now == wanted), "{phase} {now:?}");
    }
}

#[test]
fn a_route_that_the_change_made_goes_but_for_what_others_have_set_there() {
    let default = route(&[(Metric::Hoplimit, 9)]);
    let narrow = default.narrowed("192.0.2.80".parse().unwrap(), 32);
    let made = with(&narrow, &[(Metric::Advmss, 1360)]);
    let of = |routes: &[Route]| snapshot("64", "1 2 3", device(1500, true, true), routes);
    let (mut checkpoint, state) =
        change(of(std::slice::from_ref(&default)), of(std::slice::from_ref(&made)), Phase::Confirmed);
    checkpoint.scope.copied.insert(route_key(&made), route_key(&default));
    let now = of(&[default.clone(), made.clone()]);
    let (back, notes) = goal(Course::back(&checkpoint, &state, &now), &checkpoint, &now);
    assert_eq!((back.routes, notes), ([default.clone()].into(), Vec::new()));
    let theirs = with(&made, &[(Metric::Mtu, 1400)]);
    let now = of(&[default.clone(), theirs.clone()]);
    let (back, notes) = goal(Course::back(&checkpoint, &state, &now), &checkpoint, &now);
    assert_eq!(back.routes, [default.clone(), with(&narrow, &[(Metric::Mtu, 1400)])].into());
    assert!(notes[0].contains("mtu of the route to 192.0.2.80/32"), "{notes:?}");
    let (forward, _) = goal(Course::forward(&checkpoint, &state, &back), &checkpoint, &back);
    assert_eq!(forward.routes, [theirs].into());
}

#[test]
fn a_change_builds_on_what_its_routes_are_copies_of_and_those_of_older_versions_say_nothing_of_it() {
    let default = Scope { routes: ["aa".to_owned()].into(), ..Scope::default() };
    let narrow = Scope {
        routes: ["bb".to_owned()].into(),
        copied: [("bb".to_owned(), "aa".to_owned())].into(),
        ..Scope::default()
    };
    assert!(narrow.builds_on(&default) && !default.builds_on(&narrow));
    let mut old = serde_json::to_value(&narrow).unwrap();
    old.as_object_mut().unwrap().remove("copied");
    let old: Scope = serde_json::from_value(old).unwrap();
    assert!(!old.builds_on(&default) && old.builds_on(&old));
}

#[test]
fn a_copy_of_a_route_strays_once_everything_around_it_goes_another_way() {
    let default = route(&[]);
    let to = |route: &Route, target: &str, bits: u8| route.narrowed(target.parse().unwrap(), bits);
    let made = with(&to(&default, "192.0.2.80", 32), &[(Metric::Initcwnd, 20)]);
    let of = |routes: &[Route]| snapshot("64", "1 2 3", device(1500, true, true), routes);
    let other = elsewhere(&[]);
    // A wider one that was there before and wasn't followed, as of several default routes of IPv6.
    let beside = to(&other, "192.0.0.0", 16);
    let before = of(&[default.clone(), beside.clone()]);
    let (mut checkpoint, _) = change(before, of(std::slice::from_ref(&made)), Phase::Confirmed);
    checkpoint.scope.copied.insert(route_key(&made), route_key(&default));
    checkpoint.changes.push(Change {
        key: "initcwnd".to_owned(),
        old: Value::Auto,
        new: Value::Number(20),
        scope: ScopeName::Route,
        target: "192.0.2.80 via 10.0.0.2 dev d0".to_owned(),
        family: Some(RouteFamily::Ipv4),
        why: String::new(),
        asked: None,
        unchanged: false,
        place: Place::Route(route_key(&made)),
    });
    for (routes, wanted) in [
        (vec![default.clone(), made.clone()], None),
        (vec![default.clone(), made.clone(), beside.clone()], None),
        (vec![other.clone(), made.clone()], Some("default via 10.0.0.3 dev d0")),
        (vec![made.clone(), beside], Some("192.0.0.0/16 via 10.0.0.3 dev d0")),
        // A VPN, as OpenVPN makes its way.
        (vec![default.clone(), to(&other, "128.0.0.0", 1), made.clone()], Some("128.0.0.0/1 via 10.0.0.3 dev d0")),
        (vec![default.clone(), to(&other, "198.51.100.0", 24), made.clone()], None),
        // Somebody moved it, or nothing else leads there.
        (vec![default.clone(), to(&other, "192.0.2.80", 32)], None),
        (vec![other], None),
        (vec![made], None),
    ] {
        let found = strays(&checkpoint, &of(&routes));
        assert_eq!(found.len(), usize::from(wanted.is_some()), "{found:?}");
        let note = found.first().map(|(_, note)| note.clone()).unwrap_or_default();
        assert!(note.contains(wanted.unwrap_or_default()), "{note}");
    }
}
