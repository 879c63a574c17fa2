//! `windtunnel traffic` without connections: plans, files, refusals, and what its exit codes say.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, ran, windtunnel};
use serde_json::{Value, json};
use std::path::Path;
use wt_journal::{ExperimentConfig, Journal as _, NewExperiment, ServerTrafficConfig, Sighting, SqliteJournal, State};
use wt_traffic::{TrafficAnalysis, TrafficArm, TrafficConfig, TrafficReport, TrafficRun, TrafficTally};

fn traffic(home: &Path, args: &[&str]) -> RunOutput {
    ran(windtunnel(home).arg("traffic").args(args).output().unwrap())
}

#[test]
fn a_dry_run_says_in_its_first_line_whom_it_would_touch_and_no_line_is_wider_than_80_columns() {
    let home = tempfile::tempdir().unwrap();
    let args = ["start", "--port", "443", "--levels", "initcwnd=10,32", "--allocations", "mixed", "--dry-run"];
    let plan = traffic(home.path(), &args);
    assert_eq!(plan.code, 0, "{}", plan.err);
    let lines: Vec<&str> = plan.out.lines().collect();
    assert_eq!(lines[0], "It would touch new connections to port 443 from public addresses.");
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{}", plan.out);
    for said in
        ["Left alone: this host, private ranges", "+5 %", "four of five", "slots doesn't work here: it gives everybody"]
    {
        assert!(plan.out.contains(said), "{said}: {}", plan.out);
    }
}

#[test]
fn an_experiment_file_is_run_as_its_options_would_be_and_what_it_cant_be_is_refused_with_its_name() {
    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("edge.toml");
    std::fs::write(&file, "ports = [443]\nlevels = [\"initcwnd=10,32\"]\nunit = \"slot\"\nepoch = \"5m\"\n").unwrap();
    let file = file.to_str().unwrap();
    let plan = traffic(home.path(), &["start", file, "--epoch", "7m", "--dry-run", "--json"]);
    let plan: Value = serde_json::from_str(&plan.out).unwrap();
    assert_eq!((&plan["epoch_s"], &plan["arms"][1]["settings"]), (&json!(420.0), &json!({"initcwnd": 32})));
    assert_eq!(plan["arms"][1]["share"], 0.5, "everybody has each as long: {plan:#}");
    // In a namespace where none come, slots still take their time.
    let told = traffic(home.path(), &["start", file, "--dry-run"]).out;
    assert!(!told.contains(" 0 connections"), "{told}");
    let ecn = ["start", "--port", "443", "--levels", "ecn=off,on", "--dry-run"];
    let told = traffic(home.path(), &ecn).out;
    assert_eq!(told.contains("\nSo it can't begin here.\n"), !told.contains(" works here: "), "{told}");
    for (args, said) in [
        (vec!["start", "--levels", "initcwnd=10,32", "--dry-run"], "no port is named"),
        (vec!["start", "--port", "443", "--dry-run"], "2 to 8"),
        (vec!["start", file, "--allocations", "mixed", "--dry-run"], "mixed allocations need"),
        (
            vec!["start", file, "--backend", "routes", "--levels", "pacing=20mbit,30mbit", "--dry-run"],
            "no route can give",
        ),
        (vec!["start", file, "--levels", "cc=cubic,bbrr", "--dry-run"], "cc=bbrr: the kernel hasn't loaded it"),
        (vec!["start", "/nowhere.toml", "--dry-run"], "/nowhere.toml"),
        (vec!["start", file, "--epoch", "soon", "--dry-run"], "epoch"),
    ] {
        let refused = traffic(home.path(), &args);
        assert_eq!(refused.code, 2, "{args:?}: {} {}", refused.out, refused.err);
        assert!(refused.err.contains(said), "{args:?}: {}", refused.err);
    }
}

#[test]
fn an_experiment_of_another_journal_is_told_by_status_and_stop_and_its_port_is_refused_to_others() {
    use std::os::linux::net::SocketAddrExt as _;
    use std::os::unix::net::{SocketAddr, UnixDatagram};
    let home = tempfile::tempdir().unwrap();
    let port = (20_000 + std::process::id() % 40_000).to_string();
    let bound = |name: String| UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(name).unwrap()).unwrap();
    let held = [
        bound(format!("windtunnel-assigns/{port}")),
        bound(format!("windtunnel-traffic/{port}/20261121-0815-port-443-abcd")),
    ];
    let start = ["start", "--port", "443", "--port", &port, "--levels", "initcwnd=10,32", "--dry-run"];
    let refused = traffic(home.path(), &start);
    assert_eq!(refused.code, 3, "{} {}", refused.out, refused.err);
    let said = format!("20261121-0815-port-443-abcd assigns connections of port {port} already");
    assert!(refused.err.contains(&said), "{}", refused.err);
    for words in ["status", "stop"] {
        let people = traffic(home.path(), &[words]);
        assert!(
            people.out.starts_with("No experiment on connections of this journal is under way.\n"),
            "{}",
            people.out
        );
        assert!(people.out.contains("20261121-0815-port-443-abcd assigns connections of port"), "{}", people.out);
        let json: Value = serde_json::from_str(&traffic(home.path(), &[words, "--json"]).out).unwrap();
        let elsewhere = json["elsewhere"].as_array().unwrap();
        let expected = json!({"id": "20261121-0815-port-443-abcd", "ports": [port.parse::<u16>().unwrap()]});
        assert!(elsewhere.contains(&expected), "{json:#}");
    }
    drop(held);
    assert_eq!(traffic(home.path(), &start).code, 0);
}

/// A journal in which a holdback is under way, run by this process, that shows this state.
fn holdback(home: &Path, state: &str) {
    let arm = |name: &str, settings: &str| TrafficArm { name: name.to_owned(), settings: settings.parse().unwrap() };
    let tried = TrafficConfig {
        ports: vec![443],
        arms: vec![arm("initcwnd=10", "initcwnd=10"), arm("initcwnd=32", "initcwnd=32")],
        ..TrafficConfig::default()
    };
    let [old, new] = [0, 1].map(|at| tried.arms[at].clone());
    let config = tried.holdback(new, old, 0.05, 1.4);
    let analysis = TrafficAnalysis::new(config.clone()).unwrap();
    let report = analysis.report(TrafficRun { id: "H", backend: "sockops" }, &TrafficTally::default());
    let mut report = serde_json::to_value(report).unwrap();
    report["holdback"]["state"] = json!(state);
    report["holdback"]["text"] = json!(format!("The gain of 1.40 times is {state}."));
    assert_eq!(serde_json::from_value::<TrafficReport>(report.clone()).unwrap().id, "H");
    let folder = home.join("data/windtunnel");
    std::fs::create_dir_all(&folder).unwrap();
    let mut journal = SqliteJournal::open(&folder.join("journal.sqlite3")).unwrap();
    let id = "20261121-0815-port-443-abcd";
    let new = NewExperiment {
        config: ExperimentConfig::Traffic(Box::new(ServerTrafficConfig {
            traffic: Some(serde_json::to_value(config).unwrap()),
            backend: Some("sockops".to_owned()),
            ..ServerTrafficConfig::default()
        })),
        owner: wt_setup::journal::own_identity(),
        ..NewExperiment::new(id, "port-443", "traffic")
    };
    journal.create_experiment(&new).unwrap();
    let found = json!({"kind": state, "headline": report["holdback"]["text"], "tally": TrafficTally::default(), "report": report});
    journal.note("traffic", &[Sighting { host: id.to_owned(), at_unix_us: 1, found: found.clone() }]).unwrap();
    if state == "holds" {
        journal.finish_experiment(id, State::Finished, 2, Some(&found)).unwrap();
    }
}

#[test]
fn status_and_report_end_with_1_where_a_gain_is_gone_and_with_0_where_it_holds_or_is_open() {
    for (state, code) in [("gone", 1), ("smaller", 0), ("open", 0), ("holds", 0)] {
        let home = tempfile::tempdir().unwrap();
        holdback(home.path(), state);
        for words in [["status", "--json"], ["report", "--json"]] {
            let said = traffic(home.path(), &words);
            assert_eq!(said.code, code, "{state}, {words:?}: {} {}", said.out, said.err);
        }
        let people = traffic(home.path(), &["report"]);
        assert_eq!(people.code, code, "{}", people.err);
        assert!(people.out.starts_with(&format!("The gain of 1.40 times is {state}.\n")), "{}", people.out);
        let status = traffic(home.path(), &["status"]);
        let is_named = status.out.contains("20261121-0815-port-443-abcd: port 443");
        assert_eq!((is_named, status.code), (state != "holds", code), "{}", status.out);
    }
    let nothing = tempfile::tempdir().unwrap();
    assert_eq!(traffic(nothing.path(), &["status"]).code, 0);
}
