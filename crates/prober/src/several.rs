//! Several hosts of which one can't be reached: it is in the answer with the reason, and the others are probed.

use crate::driver::Cost;
use crate::mtu::{MtuRequest, SearchAnswer, SearchRun, SearchScope, mtu, search};
use crate::target::offered;
use crate::trace::{TraceAnswer, TraceRequest, trace, trace_all};
use crate::{ProbeOptions, Target};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng as _;
use std::collections::HashMap;
use wt_probe::{Kind, Machine as _, Search, SearchConfig, Time, Trace, TraceConfig};
use wt_problem::Fault;
use wt_trial::Cancel;

/// Without a socket that may broadcast, no kernel connects or sends there, whatever its routes are.
const NOWHERE: &str = "255.255.255.255";

fn options() -> ProbeOptions {
    ProbeOptions { unprivileged: true, ..ProbeOptions::default() }
}

fn mtu_of(hosts: &[&str]) -> MtuRequest {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    MtuRequest { hosts, flows: Some(1), options: options(), ..MtuRequest::default() }
}

fn trace_of(hosts: &[&str]) -> TraceRequest {
    let hosts = hosts.iter().map(|host| (*host).to_owned()).collect();
    TraceRequest { hosts, names: false, options: options(), ..TraceRequest::default() }
}

#[test]
fn a_host_without_a_way_is_a_problem_of_its_own_among_several() {
    let mut searched = Vec::new();
    let hosts = [NOWHERE, "127.0.0.1", "no-such-host.invalid"];
    let answers = mtu(&mtu_of(&hosts), &Cancel::new(), &mut |event| searched.push(event)).unwrap();
    let [none, loopback, nameless] = &answers.0[..] else { panic!("{answers:?}") };
    assert_eq!(searched.len(), 3);
    assert!(loopback.problem().is_none() && loopback.search.pmtu.is_some(), "{loopback:?}");
    let problem = none.problem().unwrap();
    assert_eq!((problem.fault, none.search.pmtu), (Fault::Environment, None), "{problem}");
    assert!(problem.what.contains("no way from this host to 255.255.255.255"), "{problem}");
    assert!(nameless.problem().unwrap().what.contains("no-such-host.invalid"), "{nameless:?}");
    let json = serde_json::to_value(&answers).unwrap();
    let [none, loopback, nameless] = [0, 1, 2].map(|i| &json["targets"][i]);
    assert_eq!(
        (&none["problem"]["code"], &none["target"], &none["address"]),
        (&3.into(), &NOWHERE.into(), &NOWHERE.into())
    );
    assert!(loopback.get("problem").is_none() && nameless["address"].is_null(), "{json:#}");

    let answers = trace(&trace_of(&hosts), &Cancel::new(), &mut |_| {}).unwrap();
    let problems: Vec<Option<Fault>> = answers.0.iter().map(|answer| answer.problem().map(|one| one.fault)).collect();
    assert_eq!(problems[..2], [Some(Fault::Environment), None], "{answers:?}");
    assert!(answers.0[1].route.reached && problems[2].is_some(), "{answers:?}");
}

#[test]
fn a_host_that_cant_be_sent_to_is_a_problem_of_its_own_among_several() {
    let loopback = Target::find("127.0.0.1", None, 80).unwrap();
    // The way there was known, and is gone when the first packet leaves.
    let gone = Target { name: "gone".to_owned(), ip: NOWHERE.parse().unwrap(), ..loopback.clone() };
    for targets in [vec![gone.clone(), loopback.clone()], vec![loopback.clone(), gone.clone()], vec![gone]] {
        let scope = SearchScope { losses: true, flows: Some(1) };
        let SearchRun { reports, .. } = search(&targets, &options(), scope, &Cancel::new()).unwrap();
        let (traces, _) = trace_all(&targets, &trace_of(&[]), &Cancel::new()).unwrap();
        for ((target, report), trace) in targets.iter().zip(&reports).zip(&traces) {
            if target.name == "gone" {
                assert_eq!(report.as_ref().unwrap_err().fault, Fault::Environment);
                assert_eq!(trace.as_ref().err().map(|problem| problem.fault), Some(Fault::Environment));
            } else {
                assert!(report.as_ref().unwrap().pmtu.is_some(), "{report:?}");
                assert!(trace.as_ref().is_ok_and(|trace| trace.target().is_some()), "{}", target.name);
            }
        }
    }
}

#[test]
fn what_is_wrong_with_the_only_host_or_with_how_one_is_written_is_wrong_with_the_request() {
    let said = |hosts: &[&str]| {
        let searched = mtu(&mtu_of(hosts), &Cancel::new(), &mut |_| {}).map(|_| ()).unwrap_err();
        let traced = trace(&trace_of(hosts), &Cancel::new(), &mut |_| {}).map(|_| ()).unwrap_err();
        assert_eq!(searched, traced);
        searched
    };
    let alone = said(&[NOWHERE]);
    assert_eq!(alone.fault, Fault::Environment);
    assert!(alone.what.contains("no way from this host") && alone.hint.is_some(), "{alone}");
    assert_eq!(said(&["127.0.0.1", "a b"]).fault, Fault::Usage);
}

#[test]
fn a_host_that_there_was_no_time_to_probe_is_not_called_down_or_behind_a_firewall() {
    let target = Target::find("127.0.0.1", None, 80).unwrap();
    let (kind, offered) = (Kind::Echo, offered(&target));
    let config = TraceConfig { kind, handshake: true, flows: 1, probes: 1, size: 64, max: 1500, offered };
    let mut trace = Trace::new(config);
    let config = SearchConfig {
        max: 1500,
        v6: false,
        kinds: vec![kind],
        handshake: true,
        patient: true,
        losses: true,
        flows: 1,
        told: None,
    };
    let mut search = Search::new(config, ChaCha8Rng::seed_from_u64(1));
    // One probe has left, as when many others have taken up the rate.
    assert!(trace.poll_probe(Time::ZERO).is_some() && search.poll_probe(Time::ZERO).is_some());
    let traced = TraceAnswer::of(&target, &trace, &HashMap::new(), Cost::default());
    let searched = SearchAnswer::of(&target, &search.report(), Cost::default());
    for problem in [traced.problem, searched.problem].map(Option::unwrap) {
        assert_eq!(problem.fault, Fault::Environment, "{problem}");
        assert!(problem.what.contains("no time to probe 127.0.0.1"), "{problem}");
    }
    assert!(!searched.findings.iter().any(|finding| finding.contains("answer")), "{:?}", searched.findings);
}
