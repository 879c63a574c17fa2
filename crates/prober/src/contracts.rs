//! Requests as they are read, and answers as they are written: their names are contracts.

use crate::RefusalAnswer;
use crate::answers::Answers;
use crate::mtu::{MtuAnswer, MtuRequest, SearchAnswer, mtu};
use crate::path::{PathAnswer, PathRequest, RttAnswer, path};
use crate::trace::{RouteAnswer, TraceAnswer, TraceEnd, TraceRequest, trace};
use serde_json::{Value, json};
use std::net::{IpAddr, Ipv4Addr};
use wt_probe::{LossCount, PathKind, RouterRefusal};
use wt_problem::{Fault, Problem};
use wt_trial::Cancel;

const ADDRESS: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7));

fn search() -> SearchAnswer {
    SearchAnswer {
        schema_version: 1,
        target: "example.org".to_owned(),
        address: Some(ADDRESS),
        device: Some("eth0".to_owned()),
        device_mtu: Some(1500),
        pmtu: Some(1400),
        pmtu_at_least: false,
        reverse_pmtu: None,
        kind: PathKind::BlackHole,
        black_hole_hop: None,
        mss: Some(1460),
        mss_clamp: None,
        flows: None,
        df_cleared_hop: None,
        best_size: Some(1400),
        method: Some("icmp-echo"),
        hints: Vec::new(),
        findings: Vec::new(),
        packets: 55,
        probes: 50,
        rounds: 6,
        seconds: 0.25,
        sizes: Vec::new(),
        advice: Vec::new(),
        unreachable: None,
        loss: (LossCount::default(), LossCount::default()),
        problem: None,
    }
}

fn names(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}

const SEARCH: [&str; 23] = [
    "address",
    "advice",
    "best_size",
    "black_hole_hop",
    "device",
    "device_mtu",
    "df_cleared_hop",
    "findings",
    "flows",
    "hints",
    "kind",
    "method",
    "mss",
    "mss_clamp",
    "packets",
    "pmtu",
    "probes",
    "reverse_pmtu",
    "rounds",
    "schema_version",
    "seconds",
    "sizes",
    "target",
];

fn sorted(names: &[&'static str]) -> Vec<&'static str> {
    let mut names = names.to_vec();
    names.sort_unstable();
    names
}

#[test]
fn a_search_is_one_object_and_several_are_a_list() {
    let bound = SearchAnswer { pmtu_at_least: true, ..search() };
    assert_eq!(serde_json::to_value(bound).unwrap()["pmtu_at_least"], true);
    let one = MtuAnswer { search: search(), rtt_us: Some(1500.0), reverse: None, scan: None };
    let value = serde_json::to_value(&one).unwrap();
    assert_eq!(names(&value), sorted(&[&SEARCH[..], &["rtt_us"]].concat()));
    assert_eq!((&value["kind"], &value["address"]), (&json!("black-hole"), &json!("192.0.2.7")));
    let cost = crate::Cost { packets: 3, time: std::time::Duration::from_millis(500) };
    let both = MtuAnswer { reverse: Some(cost.into()), ..one.clone() };
    let value = serde_json::to_value(Answers(vec![both.clone()])).unwrap();
    assert_eq!((&value["reverse_packets"], &value["reverse_seconds"]), (&json!(3), &json!(0.5)));
    let several = serde_json::to_value(Answers(vec![both, one])).unwrap();
    assert_eq!(names(&several), ["schema_version", "targets"]);
    assert_eq!(several["targets"][1]["pmtu"], 1400);
}

fn route() -> RouteAnswer {
    RouteAnswer { hops: Vec::new(), reached: true, hop_count: Some(3), reply_ttl: Some(61), unreachable: None }
}

const ROUTE: [&str; 4] = ["hop_count", "hops", "reached", "reply_ttl"];

#[test]
fn a_trace_is_one_object() {
    let answer = TraceAnswer {
        schema_version: 1,
        target: "example.org".to_owned(),
        address: Some(ADDRESS),
        by_tcp: false,
        route: route(),
        packets: 60,
        probes: 60,
        rounds: 2,
        seconds: 0.1,
        end: TraceEnd::Silent,
        problem: None,
    };
    let own = ["address", "by_tcp", "packets", "probes", "rounds", "schema_version", "seconds", "target"];
    assert_eq!(names(&serde_json::to_value(&answer).unwrap()), sorted(&[&own[..], &ROUTE].concat()));
    let said = RouterRefusal { from: Some(ADDRESS), expired: false, code: 13 };
    let route = RouteAnswer { unreachable: Some(RefusalAnswer::of(said, false, Some(2))), ..route() };
    let unreachable = &serde_json::to_value(TraceAnswer { route, ..answer.clone() }).unwrap()["unreachable"];
    assert_eq!((&unreachable["from"], &unreachable["hop"]), (&json!(ADDRESS), &json!(2)));
    assert_eq!((&unreachable["type"], &unreachable["code"]), (&json!(3), &json!(13)));
    let silent = TraceAnswer { problem: Some(Problem::remote("nobody answers")), ..answer };
    let value = serde_json::to_value(&silent).unwrap();
    assert_eq!((&value["problem"]["code"], &value["problem"]["what"]), (&json!(4), &json!("nobody answers")));
}

#[test]
fn a_summary_of_a_path_has_all_of_search_and_route() {
    let answer = PathAnswer {
        search: search(),
        route: route(),
        rtt_us: RttAnswer { min: Some(100.0), median: None, p99: None },
        jitter_us: None,
        loss: None,
        reordered: None,
        bottleneck_bps: None,
        bottleneck_low_bps: None,
        bottleneck_high_bps: None,
        bottleneck_packets: 0,
        bottleneck_seconds: 0.0,
        bottleneck_sender_limited: None,
        bottleneck_answers_limited: None,
        bdp_bytes: None,
        rwin_bytes: None,
        initcwnd: None,
        cell_us: None,
        link_guess: "Ethernet",
        source: ADDRESS,
        count: None,
        cut_after: None,
    };
    let own = [
        "bdp_bytes",
        "bottleneck_answers_limited",
        "bottleneck_bps",
        "bottleneck_high_bps",
        "bottleneck_low_bps",
        "bottleneck_packets",
        "bottleneck_seconds",
        "bottleneck_sender_limited",
        "cell_us",
        "initcwnd",
        "jitter_us",
        "link_guess",
        "loss",
        "reordered",
        "rtt_us",
        "rwin_bytes",
    ];
    let value = serde_json::to_value(&answer).unwrap();
    assert_eq!(names(&value), sorted(&[&SEARCH[..], &ROUTE, &own].concat()));
    assert_eq!(value["rtt_us"], json!({"min": 100.0, "median": null, "p99": null}));
}

/// What an operation says of a request, having been cancelled before it begins.
fn said(operation: &str, json: &str) -> Result<Fault, String> {
    let cancel = Cancel::new();
    cancel.cancel();
    let read = |error: serde_json::Error| error.to_string();
    let outcome: Result<(), Problem> = match operation {
        "mtu" => {
            let request: MtuRequest = serde_json::from_str(json).map_err(read)?;
            mtu(&request, &cancel, &mut |_| {}).map(|_| ())
        }
        "trace" => {
            let request: TraceRequest = serde_json::from_str(json).map_err(read)?;
            trace(&request, &cancel, &mut |_| {}).map(|_| ())
        }
        _ => {
            let request: PathRequest = serde_json::from_str(json).map_err(read)?;
            path(&request, &cancel, &mut |_| {}).map(|_| ())
        }
    };
    outcome.map_or_else(|problem| Ok(problem.fault), |()| Err("it ran".to_owned()))
}

#[test]
fn requests_are_read_and_what_is_out_of_range_is_refused() {
    for (operation, json, fault) in [
        ("mtu", r#"{"hosts": ["127.0.0.1"]}"#, Some(Fault::Stopped)),
        (
            "mtu",
            r#"{"hosts": ["127.0.0.1"], "scan": {"step": 4, "rate": "8mbit"}, "options": {"ip": "4"}}"#,
            Some(Fault::Stopped),
        ),
        ("mtu", "{}", Some(Fault::Usage)),
        ("mtu", r#"{"hosts": ["127.0.0.1"], "scan": {"step": 0}}"#, Some(Fault::Usage)),
        ("mtu", r#"{"hosts": ["127.0.0.1"], "scan": {"most": 49}}"#, Some(Fault::Usage)),
        ("mtu", r#"{"hosts": ["127.0.0.1"], "options": {"pps": 0}}"#, Some(Fault::Usage)),
        ("mtu", r#"{"hosts": ["127.0.0.1"], "flows": 64}"#, Some(Fault::Stopped)),
        ("mtu", r#"{"hosts": ["127.0.0.1"], "flows": 65}"#, Some(Fault::Usage)),
        ("mtu", r#"{"hosts": ["127.0.0.1"], "json": true}"#, None),
        ("trace", r#"{"hosts": ["127.0.0.1"], "names": false}"#, Some(Fault::Stopped)),
        ("trace", r#"{"hosts": ["127.0.0.1"], "flows": 17}"#, Some(Fault::Usage)),
        ("trace", r#"{"hosts": ["127.0.0.1"], "size": 51}"#, Some(Fault::Usage)),
        ("path", r#"{"host": "127.0.0.1"}"#, Some(Fault::Stopped)),
        ("path", r#"{"host": "127.0.0.1", "pings": 9}"#, Some(Fault::Usage)),
        ("path", r#"{"host": "127.0.0.1", "options": {"ip": "5"}}"#, None),
    ] {
        assert_eq!(said(operation, json).ok(), fault, "{operation} {json}");
    }
}
