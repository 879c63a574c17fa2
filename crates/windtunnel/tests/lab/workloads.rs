//! What trials do beside bulk transfers, on this machine's kernel in the lab.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common;
use crate::common::{RunOutput, alone, eventually, ran, shared, windtunnel};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs `tune` on a lab path with these arguments; its object, and what else it said.
fn tune(home: &Path, args: &[&str]) -> (Value, RunOutput) {
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
    let text = said(home, &["report", "last", "--full", "--html", html.to_str().unwrap()]);
    let page = std::fs::read_to_string(&html).unwrap();
    // The style and the address aside.
    let page = page.split_once("<body>").unwrap().1.to_lowercase();
    // Lines end where the terminal does.
    let text = text.to_lowercase().split_whitespace().collect::<Vec<_>>().join(" ");
    for (form, text) in [("terminal", text), ("page", page)] {
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
    assert!(csv.lines().nth(1).unwrap().ends_with("s,load time,"), "{csv}");
    speaks(home.path(), "goodput", "load time");
    let limits = &report["limits"];
    let text = limits["text"].as_str().unwrap();
    assert!(text.contains("The server's initcwnd of 10 × 1448 bytes bounds what comes first"), "{text}");
    let why = "With initrwnd=4 the server's initcwnd of 10 × 1448 bytes was not reached: it allows 4 segments.";
    assert!(text.contains(why), "{text}");
    // What was journaled gives the same answer.
    let again: Value = serde_json::from_str(&said(home.path(), &["report", "last", "--json"])).unwrap();
    assert_eq!((&again["verdict"]["evidence"], &again["arms"]), (&report["verdict"]["evidence"], &report["arms"]));
}

#[test]
fn a_page_of_2012_takes_as_long_in_the_lab_as_the_model_says_with_3_segments_and_with_10() {
    let _machine = alone();
    for workload in ["page", "page:keepalive=off"] {
        let window = ["--workload", workload, "--knobs", "initcwnd", "--levels", "initcwnd=3"];
        let model = common::json(
            &[
                &["predict", "blog-2012", "--json"][..],
                &["--workload", workload, "--levels", "initcwnd=3", "--knobs", "initcwnd"],
            ]
            .concat(),
        );
        let home = tempfile::tempdir().unwrap();
        let in_lab = ["--lab", "blog-2012", "--hold", "cc=cubic", "--budget", "6 trials", "--no-model"];
        let (report, ran) = tune(home.path(), &[&in_lab[..], &window].concat());
        let mut times = Vec::new();
        for arm in [0, 1] {
            let expected = model["arms"][arm]["figure"].as_f64().unwrap();
            // A busy machine only makes a load longer.
            let seen = figures(&report, arm as u64).into_iter().fold(f64::INFINITY, f64::min);
            let longer = seen / expected - 1.0;
            assert!((-0.03..0.06).contains(&longer), "{workload} {arm}: {seen} s for {expected}: {}", ran.err);
            times.push(seen);
        }
        // A larger first window makes a page faster; over cold connections by no more than two round trips instead of four.
        assert!((1.1..2.0).contains(&(times[1] / times[0])), "{workload}: {times:?}");
    }
}

/// A link whose queue holds 20 packets.
const SHALLOW: &str = "title = \"twenty packets\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"10mbit\", delay = \"20ms\", queue_packets = 20 }\nup = { rate = \"10mbit\", delay = \"20ms\" }\n";

#[test]
fn bursts_of_64_segments_into_a_queue_of_20_packets_come_out_as_worse_with_what_they_lose() {
    let _machine = alone();
    for control in ["reno", "cubic"] {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("shallow.toml");
        std::fs::write(&path, SHALLOW).unwrap();
        let (lab, hold) = (path.to_str().unwrap(), format!("cc={control}"));
        // Two first windows of ten segments fit into the queue, two of 64 don't: six connections would lose by chance in either case.
        let page = ["--lab", lab, "--workload", "page:connections=2", "--knobs", "initcwnd", "--levels", "initcwnd=64"];
        let (report, ran) = tune(home.path(), &[&page[..], &["--hold", &hold, "--budget", "16 trials"]].concat());
        assert_eq!((ran.code, &report["current"]["cc"]), (1, &control.into()), "{report:#} {}", ran.err);
        assert!(report["verdict"]["settings"]["initcwnd"].is_null(), "{:#}", report["verdict"]);
        let (usual, burst) = (&report["arms"][0], &report["arms"][1]);
        assert!(burst["ratio"].as_f64().unwrap() < 1.0, "{control}: {burst:#}");
        let lost = |arm: &Value, name: &str| arm[name].as_f64().unwrap();
        assert!(lost(burst, "retransmits") > lost(usual, "retransmits") + 5.0, "{control}: {usual:#} {burst:#}");
        assert!(lost(burst, "queue_drops") > lost(usual, "queue_drops"), "{control}: {usual:#} {burst:#}");
        // All trials were run with it, and what was journaled says so.
        let stored: Value = serde_json::from_str(&said(home.path(), &["journal", "show", "--json"])).unwrap();
        assert_eq!(stored["experiment"]["config"]["hold"]["cc"], control);
        let all = stored["trials"].as_array().unwrap();
        assert!(all.iter().all(|trial| trial["outcome"]["observed"]["cc"] == control), "{stored:#}");
        speaks(home.path(), "goodput", "initcwnd=64 loses more");
        speaks(home.path(), "goodput", "segments a trial are retransmitted");
    }
}

#[test]
fn the_labs_own_server_brings_pages_in_each_way_that_browsers_ask_for() {
    let _machine = shared();
    for (workload, connections, named) in [
        ("page:http=2", 1, "1 cold connection with HTTP/2"),
        ("page:tls=on", 6, "6 cold connections through TLS"),
        ("page:tls=on,keepalive=off,connections=3", 44, "a cold connection for each, 3 at once through TLS"),
        ("page:keepalive=off", 44, "a cold connection for each, 6 at once"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let few = ["--knobs", "initcwnd", "--levels", "initcwnd=3", "--budget", "4 trials", "--hold", "cc=cubic"];
        let (report, ran) = tune(home.path(), &[&["--lab", "lan", "--workload", workload][..], &few].concat());
        assert!(report["run"]["workload"].as_str().unwrap().ends_with(named), "{}", report["run"]);
        let trials = trials(&report);
        assert!(!trials.is_empty(), "{workload}: {report:#} {}", ran.err);
        for trial in trials {
            let objects = trial["measures"]["objects"].as_array().unwrap();
            let used: std::collections::BTreeSet<u64> =
                objects.iter().map(|object| object["connection"].as_u64().unwrap()).collect();
            assert_eq!((objects.len(), &trial["bytes"]), (44, &265_100.into()), "{workload}: {trial}");
            assert!(used.len() <= connections && (connections < 44 || used.len() == 44), "{workload}: {used:?}");
        }
        // What the kernel began with, whatever the handshake of TLS made of it: 10 segments where nothing is set.
        let stored: Value = serde_json::from_str(&said(home.path(), &["journal", "show", "--json"])).unwrap();
        let all = stored["trials"].as_array().unwrap();
        let of_rounds = all.iter().filter(|trial| trial["spec"]["phase"] == "round");
        let completed: Vec<&Value> = of_rounds.filter(|trial| trial["outcome"]["status"] == "completed").collect();
        let set = |trial: &Value| trial["spec"]["settings"]["initcwnd"].as_u64();
        for trial in &completed {
            let observed = &trial["outcome"]["observed"];
            assert_eq!(
                (observed["initial_cwnd"].as_u64(), &observed["mss"]),
                (set(trial).or(Some(10)), &1448.into()),
                "{workload}: {trial}"
            );
        }
        assert!(completed.iter().any(|trial| set(trial).is_none()), "{workload}: {stored:#}");
    }
}

#[test]
fn what_was_held_is_held_again_on_another_day() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let few = ["--trial", "200ms", "--budget", "4 trials", "--levels", "mss=1200", "--knobs", "mss"];
    let (first, _) = tune(home.path(), &[&["--lab", "lan", "--hold", "cc=reno,rwin=64KiB"][..], &few].concat());
    let (again, ran) = tune(home.path(), &["--resume", "last", "--budget", "4 trials"]);
    assert_eq!((&again["current"]["cc"], &again["current"]["rwin"]), (&"reno".into(), &65_536.into()), "{}", ran.err);
    assert_ne!(first["id"], again["id"]);
    let stored: Value = serde_json::from_str(&said(home.path(), &["journal", "show", "--json"])).unwrap();
    assert_eq!(stored["experiment"]["config"]["hold"]["rwin"], 65_536, "{stored:#}");
    let all = stored["trials"].as_array().unwrap();
    assert!(all.iter().all(|trial| trial["outcome"]["observed"]["cc"] == "reno"), "{stored:#}");
}

#[test]
fn what_is_held_is_not_varied_and_is_named_if_it_cannot_be_held() {
    let _machine = shared();
    for (args, wanted) in [
        (&["--hold", "cc=reno", "--knobs", "cc,rwin"][..], "--hold"),
        (&["--hold", "cc=reno", "--levels", "cc=cubic"], "--hold"),
        (&["--hold", "cc=reno,cc=cubic"], "twice"),
        (&["--hold", "cc=no_such"], "no_such"),
        (&["--hold", "rwin"], "KNOB=LEVEL"),
        (&["--hold", "cc=reno", "--workload", "competing"], "rivals"),
        (&["--hold", "cc=reno", "--resume", "last"], "--resume"),
    ] {
        let ran = common::run(&[&["tune", "--lab", "lan"][..], args].concat());
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(wanted), "{args:?}: {}", ran.err);
    }
    let plan = common::json(&["tune", "--lab", "lan", "--hold", "cc=reno,rwin=8x", "--dry-run", "--json"]);
    assert_eq!((&plan["current"]["cc"], &plan["current"]["rwin"]), (&"reno".into(), &(8 * 1448).into()), "{plan:#}");
    let arms = plan["arms"].as_array().unwrap();
    assert!(arms.iter().all(|arm| arm["settings"]["cc"].is_null() && arm["settings"]["rwin"].is_null()), "{plan:#}");
}

/// The figures of a setting's trials.
fn figures(report: &Value, arm: u64) -> Vec<f64> {
    trials(report).iter().filter(|trial| trial["arm"] == arm).map(|trial| trial["figure"].as_f64().unwrap()).collect()
}

#[test]
fn workloads_that_do_not_exist_are_named_with_those_that_do() {
    let _machine = shared();
    for (workload, wanted) in [("pages", "download-12mb"), ("page:connections=0", "1 to 60"), ("bulk:think=1s", "size")]
    {
        let ran = common::run(&["tune", "--lab", "lan", "--workload", workload]);
        assert_eq!(ran.code, 2, "{}", ran.err);
        assert!(ran.err.contains(wanted), "{workload}: {}", ran.err);
    }
}

#[test]
fn each_workload_is_told_in_its_own_words_and_units() {
    let _machine = shared();
    for (workload, name, unit, measured, words) in [
        ("transactions:response=10kB", "transactions a second", "1/s", "/exchanges/latency/p99_us", "response time"),
        ("bursts:count=2,pause=50ms", "completion time", "s", "/exchanges/latency/p99_us", "completion time"),
        ("stream:interval=5ms", "lateness (99 %)", "s", "/lateness/spread/p99_us", "late"),
        ("load", "round trips a minute under load", "1/min", "/under_load/loaded/p95_us", "beside the transfer"),
    ] {
        let home = tempfile::tempdir().unwrap();
        let args = [
            "--lab",
            "lan",
            "--workload",
            workload,
            "--knobs",
            "rwin",
            "--levels",
            "rwin=64KiB",
            "--trial",
            "400ms",
            "--budget",
            "6 trials",
        ];
        let (report, ran) = tune(home.path(), &args);
        assert_eq!(report["measured"]["name"], name, "{workload}: {}", ran.err);
        assert_eq!(report["measured"]["unit"], unit);
        let trials = trials(&report);
        assert!(!trials.is_empty(), "{workload}: {report:#}");
        for trial in trials {
            let found = trial["measures"].pointer(measured).and_then(Value::as_u64);
            assert!(found.is_some() && trial["figure"].is_number(), "{workload}: {trial}");
        }
        speaks(home.path(), "goodput", words);
    }
}

#[test]
fn several_flows_and_both_ways_are_goodput_and_say_what_each_got() {
    let _machine = shared();
    for (args, flows, words) in
        [(&["--workload", "competing:rivals=2"][..], 3, "jain"), (&["--direction", "both"], 2, "at once")]
    {
        let home = tempfile::tempdir().unwrap();
        let usual =
            ["--lab", "lan", "--knobs", "rwin", "--levels", "rwin=64KiB", "--trial", "400ms", "--budget", "6 trials"];
        let (report, ran) = tune(home.path(), &[args, &usual].concat());
        assert_eq!(report["measured"]["unit"], "bit/s", "{}", ran.err);
        for trial in trials(&report) {
            assert_eq!(trial["measures"]["flows_bps"].as_array().unwrap().len(), flows, "{trial}");
        }
        speaks(home.path(), "load time", words);
    }
}

#[test]
fn a_soak_is_told_by_its_thirds_and_a_short_one_claims_no_decay() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let args = [
        "--lab",
        "lan",
        "--workload",
        "soak",
        "--length",
        "1s",
        "--knobs",
        "rwin",
        "--levels",
        "rwin=64KiB",
        "--budget",
        "6 trials",
    ];
    let (report, _) = tune(home.path(), &args);
    let soaks = report["soak"].as_array().unwrap();
    assert!(soaks.iter().any(|soak| soak["what"] == "goodput" && soak["arm"] == 0), "{report:#}");
    assert!(soaks.iter().all(|soak| soak["decays"] == false), "{soaks:#?}");
    speaks(home.path(), "load time", "by thirds");
}

/// A path on which ACKs have room for two seconds, and then come a tenth of a second apart.
const LATE_ACKS: &str = "title = \"late ACKs\"\nsource = \"a test\"\n[[link]]\nname = \"l\"\nmtu = 1500\n\
    down = { rate = \"20mbit\", delay = \"5ms\" }\n\
    up = { steps = { rates = [[\"0s\", \"1mbit\"], [\"2s\", \"4kbit\"]] }, delay = \"5ms\" }\n";

#[test]
fn a_gap_between_acks_that_grows_within_a_soak_is_in_its_thirds() {
    let _machine = alone();
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("late.toml");
    std::fs::write(&path, LATE_ACKS).unwrap();
    let lab = path.to_str().unwrap();
    let soak = ["--lab", lab, "--workload", "soak", "--length", "3s", "--levels", "rwin=64KiB", "--knobs", "rwin"];
    let (report, ran) = tune(home.path(), &[&soak[..], &["--budget", "4 trials"]].concat());
    let trials = trials(&report);
    // Those that this machine spoilt are marked, and say nothing.
    assert!(!trials.is_empty(), "{}{}", ran.out, ran.err);
    for trial in trials {
        let gap = |third: usize| trial["measures"]["thirds"][third]["ack_gap_us"].as_u64().unwrap();
        // 52 bytes at 4 kbit/s are 104 ms; where the machine was late, some of those before come among them.
        assert!(gap(0) < 40_000 && gap(2) > 50_000, "{trial}");
    }
    assert!(report["soak"].as_array().unwrap().iter().any(|soak| soak["what"] == "ack-gap"), "{report:#}");
}

#[test]
fn ctrl_c_in_the_middle_of_a_stream_ends_at_once_with_what_was_measured() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let mut command = windtunnel(home.path());
    command.args([
        "tune",
        "--lab",
        "lan",
        "--workload",
        "stream",
        "--levels",
        "rwin=64KiB",
        "--json",
        "--trial",
        "30s",
    ]);
    let child = command.args(["--budget", "1h"]).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let shown = || said(home.path(), &["journal", "show", "--json"]);
    let stored = || -> Value { serde_json::from_str(&shown()).unwrap_or_default() };
    eventually("a trial is under way", || {
        let trials = stored()["trials"].as_array().cloned().unwrap_or_default();
        trials.last().is_some_and(|trial| trial["outcome"]["status"] == "running")
    });
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    // Long before the trial would be over: `eventually` waits ten seconds.
    eventually("the experiment has ended", || stored()["experiment"]["state"] == "stopped");
    let ran = ran(child.wait_with_output().unwrap());
    assert_eq!(ran.code, 1, "{}", ran.err);
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(report["verdict"]["kind"], "stopped");
    assert_eq!(stored()["trials"].as_array().unwrap().last().unwrap()["outcome"]["status"], "aborted");
}
