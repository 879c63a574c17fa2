//! What trials do beside bulk transfers, on this machine's kernel in the lab.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

mod common;

use common::{Ran, ran, shared, windtunnel};
use serde_json::Value;
use std::path::Path;

/// Runs `tune` on a lab path with these arguments; its object, and what else it said.
fn tune(home: &Path, args: &[&str]) -> (Value, Ran) {
    let ran = ran(windtunnel(home).args(["tune", "--quiet", "--json"]).args(args).output().unwrap());
    let value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    (value, ran)
}

/// What a command says.
fn said(home: &Path, args: &[&str]) -> String {
    ran(windtunnel(home).args(args).output().unwrap()).out
}

/// The trials that count.
fn trials(report: &Value) -> Vec<&Value> {
    report["trial_table"].as_array().unwrap().iter().filter(|trial| trial["status"] == "completed").collect()
}

/// What no report of this experiment may say, in any form; and what all of them must.
fn speaks(home: &Path, never: &str, always: &str) {
    let html = home.join("report.html");
    let text = said(home, &["report", "last", "--html", html.to_str().unwrap()]);
    let page = std::fs::read_to_string(&html).unwrap();
    // The style and the address aside.
    let page = page.split_once("<body>").unwrap().1.to_lowercase();
    for (form, text) in [("terminal", text.to_lowercase()), ("page", page)] {
        assert!(!text.contains(never), "{form} says {never}: {text}");
        assert!(text.contains(always), "{form} doesn't say {always}: {text}");
    }
}

#[test]
fn a_page_is_told_by_its_load_time_and_says_which_first_window_bounds_it() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let csv = home.path().join("trials.csv");
    let (report, _) = tune(
        home.path(),
        &[
            "--lab",
            "transatlantic",
            "--workload",
            "page",
            "--levels",
            "initrwnd=4",
            "--knobs",
            "initrwnd",
            "--budget",
            "6 trials",
            "--csv",
            csv.to_str().unwrap(),
        ],
    );
    assert_eq!(report["measured"]["name"], "load time");
    let rtt = report["path"]["rtt_us"].as_f64().unwrap() / 1e6;
    for trial in trials(&report) {
        assert_eq!(trial["bytes"], 265_100);
        let objects = trial["measures"]["objects"].as_array().unwrap();
        assert_eq!(objects.len(), 44);
        // Law: connect, the document, connect again, and at least one of the rest's round trips.
        assert!(trial["figure"].as_f64().unwrap() >= 4.0 * rtt, "{trial}");
    }
    let small: Vec<f64> = figures(&report, 1);
    let usual: Vec<f64> = figures(&report, 0);
    assert!(!small.is_empty() && !usual.is_empty());
    let csv = std::fs::read_to_string(csv).unwrap();
    assert!(csv.lines().nth(1).unwrap().ends_with("s,load time"), "{csv}");
    speaks(home.path(), "goodput", "load time");
    let limits = &report["limits"];
    assert!(limits["text"].as_str().unwrap().contains("initcwnd"), "{limits}");
    // What was journaled gives the same answer.
    let again: Value = serde_json::from_str(&said(home.path(), &["report", "last", "--json"])).unwrap();
    assert_eq!((&again["verdict"]["evidence"], &again["arms"]), (&report["verdict"]["evidence"], &report["arms"]));
}

/// The figures of a setting's trials.
fn figures(report: &Value, arm: u64) -> Vec<f64> {
    trials(report).iter().filter(|trial| trial["arm"] == arm).map(|trial| trial["figure"].as_f64().unwrap()).collect()
}

#[test]
fn workloads_that_do_not_exist_are_named_with_those_that_do() {
    let _machine = shared();
    for (workload, wanted) in [("pages", "download-12mb"), ("page:connections=0", "1 to 64"), ("bulk:think=1s", "size")]
    {
        let ran = common::run(&["tune", "--lab", "lan", "--workload", workload]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(wanted), "{workload}: {}", ran.err);
    }
}
