use super::{Metric, Metrics, Route};
use proptest::prelude::*;

fn default_route() -> Route {
    // rtmsg: AF_INET, /0, table main, proto static, scope universe, unicast; via 10.0.0.2 dev 3.
    let mut body = vec![2, 0, 0, 0, 254, 4, 0, 1, 0x10, 0, 0, 0];
    super::push(&mut body, super::RTA_TABLE, &254_u32.to_ne_bytes());
    super::push(&mut body, super::RTA_GATEWAY, &[10, 0, 0, 2]);
    super::push(&mut body, super::RTA_OIF, &3_u32.to_ne_bytes());
    Route::from_bytes(&body).unwrap()
}

#[test]
fn a_route_says_what_it_is_without_the_state_of_its_device() {
    let route = default_route();
    assert_eq!(route.destination(), ("0.0.0.0".parse().unwrap(), 0));
    assert_eq!(route.hops()[0].gateway, Some("10.0.0.2".parse().unwrap()));
    assert!(route.uses(3) && !route.uses(4) && !route.is_onlink());
    assert!(route.metrics().is_empty());
}

#[test]
fn a_route_with_an_encapsulation_says_that_it_is_more_than_there_are_words_for() {
    let plain = default_route();
    let with = |kind: u16, value: &[u8]| {
        let mut body = plain.to_bytes();
        super::push(&mut body, kind, value);
        Route::from_bytes(&body).unwrap()
    };
    // One hop of 16 bytes: head, and an encapsulation in it.
    let hop = [16, 0, 0, 0, 3, 0, 0, 0, 8, 0, 22, 0, 0, 0, 0, 0];
    assert!(plain.is_plain() && with(super::RTA_NH_ID, &7_u32.to_ne_bytes()).is_plain() && with(20, &[0]).is_plain());
    assert!(!with(super::RTA_ENCAP, &[0; 4]).is_plain() && !with(20, &[1]).is_plain());
    assert!(!with(super::RTA_MULTIPATH, &hop).is_plain());
    assert_eq!(with(super::RTA_NH_ID, &7_u32.to_ne_bytes()).nexthop_object(), Some(7));
}

#[test]
fn a_route_is_wider_than_those_to_parts_of_its_target() {
    let to = |target: &str, bits: u8| default_route().narrowed(target.parse().unwrap(), bits);
    for (whole, bits, part, longer, wanted) in [
        ("0.0.0.0", 0, "192.0.2.1", 32, true),
        ("192.0.0.0", 19, "192.0.31.0", 24, true),
        ("192.0.0.0", 19, "192.0.32.0", 24, false),
        ("192.0.2.0", 24, "192.0.2.0", 24, false),
        ("192.0.2.1", 32, "192.0.2.0", 24, false),
    ] {
        assert_eq!(to(whole, bits).is_wider_than(&to(part, longer)), wanted, "{whole}/{bits} {part}/{longer}");
    }
}

#[test]
fn metrics_are_set_and_taken_away_without_touching_the_rest() {
    let route = default_route();
    let mut metrics = route.metrics();
    metrics.set(Metric::Initcwnd, Some(20), false);
    metrics.set(Metric::Mtu, Some(1400), true);
    metrics.set_congctl(Some("bbr".to_owned()));
    let changed = route.with_metrics(&metrics);
    assert_eq!(changed.metrics(), metrics);
    assert!(changed.metrics().is_locked(Metric::Mtu) && !changed.metrics().is_locked(Metric::Initcwnd));
    assert_eq!(changed.key(), route.key());
    assert_eq!(changed.with_metrics(&Metrics::default()), route);
}

#[test]
fn a_narrower_route_of_ipv6_has_the_key_that_the_kernel_gives_it() {
    let mut body = vec![10, 0, 0, 0, 254, 2, 0, 1, 0, 0, 0, 0];
    super::push(&mut body, super::RTA_PRIORITY, &256_u32.to_ne_bytes());
    let narrow = Route::from_bytes(&body).unwrap().narrowed("2001:db8::9".parse().unwrap(), 128);
    assert_eq!(narrow.priority(), super::PRIORITY_V6);
    assert_eq!(default_route().narrowed("192.0.2.9".parse().unwrap(), 32).priority(), 0);
}

#[test]
fn a_route_over_an_object_says_that_it_has_no_metrics() {
    let sent = |route: &Route, kind| Route::from_bytes(&route.message(kind).body).unwrap();
    let plain = default_route();
    let mut over_object = plain.clone();
    over_object.attributes.insert(super::RTA_NH_ID, 7_u32.to_ne_bytes().to_vec());
    assert_eq!(sent(&over_object, super::RTM_NEWROUTE).metrics().get(Metric::Initcwnd), Some(0));
    for (route, kind) in [(&over_object, super::RTM_DELROUTE), (&plain, super::RTM_NEWROUTE)] {
        assert!(sent(route, kind).metrics().is_empty());
    }
}

#[test]
fn a_stored_route_reads_back_and_rubbish_does_not() {
    let route = default_route();
    assert_eq!(route.to_string().parse::<Route>().unwrap(), route);
    for rubbish in ["", "0", "zz", "ffffffffffffffffffffffff", "é0"] {
        assert!(rubbish.parse::<Route>().is_err(), "{rubbish}");
    }
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
        let mut body = vec![2, 0, 0, 0, 254, 4, 0, 1, 0, 0, 0, 0];
        body.extend(bytes);
        let route = Route::from_bytes(&body).unwrap();
        let _ = (route.hops(), route.metrics(), route.key(), route.destination(), route.source());
        prop_assert_eq!(Route::from_bytes(&route.to_bytes()), Some(route.clone()));
        let mut metrics = route.metrics();
        metrics.set(Metric::Initcwnd, Some(7), true);
        prop_assert_eq!(route.with_metrics(&metrics).metrics(), metrics);
    }
}

#[test]
fn what_a_route_of_ipv6_still_lasts_is_sent_with_its_replacement_and_is_no_difference() {
    let of = |ticks: i32| {
        let mut body = vec![10, 48, 0, 0, 254, 3, 0, 1, 0, 0, 0, 0];
        super::push(&mut body, super::RTA_OIF, &3_u32.to_ne_bytes());
        let info: Vec<u8> = [0, 0, ticks, 0, 0, 0, 0, 0].iter().flat_map(|field: &i32| field.to_ne_bytes()).collect();
        super::push(&mut body, super::RTA_CACHEINFO, &info);
        Route::from_bytes(&body).unwrap()
    };
    let sent = |route: &Route| {
        let message = route.message(super::RTM_NEWROUTE);
        let mut all = super::attributes(&message.body[super::HEAD..]);
        all.find(|(kind, _)| *kind == super::RTA_EXPIRES).and_then(|(_, value)| super::u32_of(value))
    };
    let mut metrics = Metrics::default();
    metrics.set(Metric::Initcwnd, Some(20), false);
    for (ticks, seconds) in [(59_901, Some(600)), (1, Some(1)), (0, None), (-5, None)] {
        let route = of(ticks);
        assert_eq!(sent(&route.with_metrics(&metrics)), seconds, "{ticks}");
        assert_eq!((&route, route.to_string()), (&of(0), of(0).to_string()));
        let stored: Route = route.to_string().parse().unwrap();
        assert_eq!((sent(&stored), sent(&stored.lasting_as(&route))), (None, seconds));
        // One of our own doesn't end with the one that it is a copy of.
        assert_eq!(sent(&route.narrowed("2001:db8::1".parse().unwrap(), 128)), None);
    }
}
