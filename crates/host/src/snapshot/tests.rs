use super::{CC, CHOSEN, DevicePart, DeviceState, QdiscState, Scope, Snapshot, same_text, steps};
use crate::system::Action;
use std::collections::{BTreeMap, BTreeSet};
use wt_sys::route::{Metric, Route};

fn device() -> DeviceState {
    DeviceState {
        index: 3,
        mtu: 1500,
        ipv6_mtu: None,
        queue_len: 1000,
        qdisc: QdiscState { kind: "noqueue".to_owned(), handle: 0, options: String::new(), has_children: false },
        rings: None,
        features: BTreeMap::from([("rx-gro".to_owned(), true)]),
        active: BTreeMap::from([("rx-gro".to_owned(), true)]),
    }
}

/// `default via 10.0.0.2 dev 3` as the kernel describes it.
fn route() -> Route {
    "02000000fe04000110000000080005000a00000208000400030000000800 0f00fe000000".replace(' ', "").parse().unwrap()
}

fn snapshot() -> Snapshot {
    Snapshot {
        sysctls: BTreeMap::from([
            ("net.ipv4.tcp_sack".to_owned(), "1".to_owned()),
            (CC.to_owned(), "cubic".to_owned()),
            (super::ALLOWED_CC.to_owned(), "reno cubic".to_owned()),
        ]),
        devices: BTreeMap::from([("eth0".to_owned(), device())]),
        routes: BTreeSet::from([route()]),
        connections: BTreeSet::new(),
    }
}

fn everything(snapshot: &Snapshot) -> Scope {
    let parts = [DevicePart::Mtu, DevicePart::QueueLen, DevicePart::Qdisc, DevicePart::Rings, DevicePart::Features];
    Scope {
        sysctls: snapshot.sysctls.keys().cloned().collect(),
        devices: BTreeMap::from([("eth0".to_owned(), parts.into())]),
        routes: BTreeSet::new(),
        copied: BTreeMap::new(),
        routes_through: BTreeSet::from([3]),
        connections: BTreeSet::new(),
    }
}

#[test]
fn nothing_is_done_between_equal_states() {
    let state = snapshot();
    assert!(steps(&state, &state, &everything(&state)).is_empty());
}

#[test]
fn each_difference_is_one_step_and_the_way_back_undoes_it() {
    let (old, mut new) = (snapshot(), snapshot());
    new.sysctls.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned());
    new.devices.get_mut("eth0").unwrap().mtu = 1400;
    new.devices.get_mut("eth0").unwrap().features.insert("rx-gro".to_owned(), false);
    let mut metrics = route().metrics();
    metrics.set(Metric::Initcwnd, Some(20), false);
    new.routes = BTreeSet::from([route().with_metrics(&metrics)]);
    let scope = everything(&old);
    assert_eq!(steps(&old, &new, &scope).len(), 4);
    let back = steps(&new, &old, &scope);
    assert!(
        matches!(&back[..], [Action::Sysctl { value, .. }, Action::Mtu { mtu: 1500, .. }, Action::Feature { on: true, .. }, Action::ReplaceRoute { route: old }] if value == "1" && *old == route())
    );
}

#[test]
fn nothing_outside_of_the_scope_is_touched() {
    let (old, mut new) = (snapshot(), snapshot());
    new.sysctls.insert("net.ipv4.tcp_sack".to_owned(), "0".to_owned());
    new.routes.clear();
    assert!(steps(&old, &new, &Scope::default()).is_empty());
}

#[test]
fn the_allowed_controls_follow_the_default_since_the_kernel_adds_it_to_them() {
    let (old, mut new) = (snapshot(), snapshot());
    new.sysctls.insert(CC.to_owned(), "bbr".to_owned());
    let actions = steps(&old, &new, &everything(&old));
    let names: Vec<&str> = actions
        .iter()
        .filter_map(|a| if let Action::Sysctl { name, .. } = a { Some(name.as_str()) } else { None })
        .collect();
    assert_eq!(names, [CC, super::ALLOWED_CC]);
    assert!(same_text(super::ALLOWED_CC, "reno bbr", "bbr  reno"));
    assert!(!same_text(CC, "reno bbr", "bbr reno"));
}

#[test]
fn a_qdisc_of_ones_own_is_replaced_by_name_and_the_kernels_by_removal() {
    let (old, mut new) = (snapshot(), snapshot());
    new.devices.get_mut("eth0").unwrap().qdisc =
        QdiscState { kind: "fq".to_owned(), handle: CHOSEN, options: String::new(), has_children: false };
    let scope = everything(&old);
    assert!(matches!(&steps(&old, &new, &scope)[..], [Action::Qdisc { kind, handle: 0, .. }] if kind == "fq"));
    assert!(matches!(&steps(&new, &old, &scope)[..], [Action::DefaultQdisc { .. }]));
    let mut granted = new.clone();
    granted.devices.get_mut("eth0").unwrap().qdisc.handle = 0x8001_0000;
    assert!(steps(&granted, &new, &scope).is_empty());
}

#[test]
fn a_route_that_is_gone_is_added_and_one_that_came_is_removed() {
    let (old, mut new) = (snapshot(), snapshot());
    new.routes.clear();
    let scope = everything(&old);
    assert!(matches!(&steps(&old, &new, &scope)[..], [Action::DeleteRoute { .. }]));
    assert!(matches!(&steps(&new, &old, &scope)[..], [Action::AddRoute { .. }]));
}

#[test]
fn states_survive_their_file() {
    let state = snapshot();
    let text = serde_json::to_string(&state).unwrap();
    assert_eq!(serde_json::from_str::<Snapshot>(&text).unwrap(), state);
}

#[test]
fn an_mtu_that_ipv6_has_of_its_own_comes_after_that_of_the_device_which_takes_it_away() {
    let (mut old, mut new) = (snapshot(), snapshot());
    old.devices.get_mut("eth0").unwrap().ipv6_mtu = Some(1300);
    new.devices.get_mut("eth0").unwrap().mtu = 1400;
    let scope = everything(&old);
    assert!(matches!(&steps(&old, &new, &scope)[..], [Action::Mtu { mtu: 1400, .. }]));
    let back = steps(&new, &old, &scope);
    assert!(
        matches!(&back[..], [Action::Mtu { mtu: 1500, .. }, Action::Sysctl { name, value }] if name == "net/ipv6/conf/eth0/mtu" && value == "1300")
    );
    // Files of older versions say nothing of it.
    let text = serde_json::to_string(&new).unwrap();
    assert!(!text.contains("ipv6_mtu") && serde_json::from_str::<Snapshot>(&text).unwrap() == new);
}
