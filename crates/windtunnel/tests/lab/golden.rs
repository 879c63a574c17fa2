//! Experiments of every format that the journal ever had: they are taken in and given out again byte for byte, they are
//! reported as the program reported them before what an experiment was had a type, and those that can be are gone on with.
//!
//! Each file of `golden/journal/` is an export; the number in its name is the format of its configuration, in the order in
//! which `wt_journal::ExperimentConfig` lists them: 1 is the first that was ever written, 2 has a cool-down and a command,
//! 3 the lab, 4 the real path, 5 the host, 6 weights and a model, 7 what is held.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::{RunOutput, ran, shared, windtunnel};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Every file, in the order in which they were taken in when the goldens were made: that numbers the trials.
const ALL: [&str; 18] = [
    "confirms-7",
    "controls",
    "flent",
    "hold-7",
    "identical-3",
    "live-4",
    "live-7",
    "resumed-7",
    "screen-7",
    "stacks-1",
    "stacks-2",
    "tune-1",
    "tune-2",
    "tune-3",
    "tune-5",
    "tune-6",
    "tune-7",
    "test",
];
/// Those that compare nothing: there is no report of them.
const ALONE: [&str; 2] = ["flent", "test"];

/// The path that they were run on.
const PATH: &str = r#"
title = "20 Mbit/s, RTT 8 ms"
source = "Made for a test."

[[link]]
name = "line"
mtu = 1500
framing = "ethernet"
down = { rate = "20mbit", delay = "4ms", queue = "64KiB" }
up = { rate = "20mbit", delay = "4ms", queue = "64KiB" }
"#;

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/journal").join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn export(name: &str) -> Value {
    serde_json::from_str(&text(&format!("{name}.json"))).unwrap()
}

fn wt(home: &Path, args: &[&str]) -> RunOutput {
    ran(windtunnel(home).args(args).current_dir(home).output().unwrap())
}

fn object(ran: &RunOutput) -> Value {
    serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
}

/// A home whose journal holds them all.
fn home() -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    let files = ALL.map(|name| file(&format!("{name}.json")));
    let taken = ran(windtunnel(home.path()).args(["journal", "import"]).args(files).output().unwrap());
    assert_eq!(taken.code, 0, "{}{}", taken.out, taken.err);
    home
}

fn id(name: &str) -> String {
    export(name)["experiment"]["id"].as_str().unwrap().to_owned()
}

#[test]
fn every_file_is_one_of_these() {
    let mut names: Vec<String> = std::fs::read_dir(file(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".json").filter(|name| !name.contains('.')).map(str::to_owned))
        .collect();
    names.sort();
    let mut all = ALL;
    all.sort_unstable();
    assert_eq!(names, all);
}

#[test]
fn what_is_taken_in_is_given_out_again_byte_for_byte() {
    let home = home();
    for name in ALL {
        let given = wt(home.path(), &["journal", "export", &id(name), "--format", "json"]);
        assert_eq!(given.out, text(&format!("{name}.json")), "{name}");
        let shown = object(&wt(home.path(), &["journal", "show", &id(name), "--json"]));
        assert_eq!(shown["experiment"], export(name)["experiment"], "{name}");
    }
}

#[test]
fn every_report_is_what_it_was() {
    let home = home();
    for name in ALL {
        let told = wt(home.path(), &["report", &id(name), "--full"]);
        let text_now = format!("{}{}exit code {}\n", told.out, told.err, told.code);
        let json = wt(home.path(), &["report", &id(name), "--json"]);
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(file(&format!("{name}.report.txt")), &text_now).unwrap();
            if !ALONE.contains(&name) {
                std::fs::write(file(&format!("{name}.report.json")), &json.out).unwrap();
            }
        }
        assert_eq!(text_now, text(&format!("{name}.report.txt")), "{name}");
        if ALONE.contains(&name) {
            assert_eq!((json.code, json.out.as_str()), (2, ""), "{}", json.err);
        } else {
            let before: Value = serde_json::from_str(&text(&format!("{name}.report.json"))).unwrap();
            assert_eq!(object(&json), before, "{name}");
        }
    }
}

/// Whether two values are the same but for the last bit of numbers, in which the version that stored a verdict summed otherwise.
fn is_same(now: &Value, stored: &Value) -> bool {
    match (now, stored) {
        (Value::Number(now), Value::Number(stored)) if now.is_f64() && stored.is_f64() => {
            let (now, stored) = (now.as_f64().unwrap(), stored.as_f64().unwrap());
            (now - stored).abs() <= f64::EPSILON * stored.abs()
        }
        (Value::Array(now), Value::Array(stored)) => {
            now.len() == stored.len() && now.iter().zip(stored).all(|(now, stored)| is_same(now, stored))
        }
        (Value::Object(now), Value::Object(stored)) => {
            now.len() == stored.len()
                && stored.iter().all(|(name, stored)| now.get(name).is_some_and(|now| is_same(now, stored)))
        }
        _ => now == stored,
    }
}

#[test]
fn replaying_the_journaled_rounds_gives_the_stored_verdict() {
    let home = home();
    for name in ALL
        .iter()
        .filter(|name| !matches!(**name, "controls" | "flent" | "screen-7" | "stacks-1" | "stacks-2" | "test"))
    {
        let told = object(&wt(home.path(), &["report", &id(name), "--json"]));
        let stored = &export(name)["experiment"]["verdict"];
        assert!(stored["kind"].is_string(), "{name}: {stored}");
        // What is shown and how surely is what it was; the sentences are those of the version that writes them.
        for (field, value) in stored.as_object().unwrap() {
            if !matches!(field.as_str(), "text" | "headline" | "details" | "answer") {
                let now = &told["verdict"][field];
                assert!(is_same(now, value), "{name}: {field}: {now} {value}");
            }
        }
    }
}

#[test]
fn an_experiment_and_the_one_that_goes_on_with_it_are_not_counted_twice() {
    let home = home();
    let continued = export("resumed-7")["experiment"]["config"]["continues"].as_str().unwrap().to_owned();
    let told = wt(home.path(), &["compare", &continued, &id("resumed-7"), "--json"]);
    let answer = object(&told);
    assert_eq!((told.code, &answer["comparable"], &answer["settings"]), (1, &false.into(), &Value::Array(Vec::new())));
    let notes = answer["notes"].to_string();
    assert!(notes.contains(&format!("{continued} is a part of {}", id("resumed-7"))), "{notes}");
    let anyway = object(&wt(home.path(), &["compare", &continued, &id("resumed-7"), "--anyway", "--json"]));
    assert_eq!(anyway["settings"], Value::Array(Vec::new()), "nothing multiplies");
}

#[test]
fn what_compares_no_settings_is_not_gone_on_with() {
    let home = home();
    for (name, why) in [
        ("screen-7", "is a screen"),
        ("controls", "is a comparison of congestion controls"),
        ("stacks-1", "is a comparison of stacks"),
        ("flent", "flent ran"),
        ("test", "is a single test"),
    ] {
        let refused = wt(home.path(), &["tune", "--resume", &id(name), "--dry-run"]);
        assert!(refused.code == 2 && refused.err.contains(why), "{name}: {}", refused.err);
    }
}

#[test]
fn an_experiment_of_every_format_in_the_lab_can_be_gone_on_with() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("path.toml"), PATH).unwrap();
    // The settings in force have to be those of then: here they are this machine's.
    let dry = ["tune", "--lab", "path.toml", "--trial", "250ms", "--dry-run", "--json"];
    let here = |hold: &[&str]| object(&wt(home.path(), &[&dry[..], hold].concat()))["current"].clone();
    let (plain, held) = (here(&[]), here(&["--hold", "sack=off"]));
    for name in ["tune-1", "tune-2", "tune-3", "tune-5", "tune-6", "tune-7", "hold-7", "identical-3", "confirms-7"] {
        let mut export = export(name);
        let holds = export["experiment"]["config"]["hold"].is_object();
        export["experiment"]["current"] = if holds { held.clone() } else { plain.clone() };
        std::fs::write(home.path().join("one.json"), export.to_string()).unwrap();
        let taken = wt(home.path(), &["journal", "import", "one.json"]);
        assert_eq!(taken.code, 0, "{}", taken.err);
        let args =
            ["tune", "--resume", &id(name), "--lab", "path.toml", "--budget", "60 trials", "--dry-run", "--json"];
        let plan = object(&wt(home.path(), &args));
        let arms = plan["arms"].as_array().unwrap();
        let labels: Vec<&Value> = arms.iter().map(|arm| &arm["label"]).collect();
        let before: Vec<&Value> =
            export["experiment"]["arms"].as_array().unwrap().iter().map(|arm| &arm["label"]).collect();
        assert_eq!(labels, before, "{name}");
        assert_eq!(plan["trial_s"], 0.25, "{name}: {plan}");
        let done = export["experiment"]["config"]["max_trials"].as_u64().unwrap();
        assert!(plan["max_trials"].as_u64().unwrap() >= done, "{name}: {plan}");
    }
}
