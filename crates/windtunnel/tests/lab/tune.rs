//! The main job on this machine's kernel: measure, vary, decide, journal.
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common;
use crate::common::{RunOutput, alone, eventually, ran, run, shared, windtunnel};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Runs `tune` with these arguments and reads its object.
fn tune(args: &[&str]) -> (Value, RunOutput) {
    let mut all = vec!["tune", "--quiet", "--json"];
    all.extend(args);
    let ran = run(&all);
    let value = serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
    (value, ran)
}

fn rows<'a>(report: &'a Value, knob: &str, level: &Value) -> Vec<&'a Value> {
    let table = report["trial_table"].as_array().unwrap();
    table.iter().filter(|row| row["settings"][knob] == *level && row["status"] == "completed").collect()
}

#[test]
fn a_small_window_gives_rwin_over_rtt_and_the_default_reaches_the_links_limit() {
    let _machine = alone();
    let (report, _) =
        tune(&["--lab", "adsl", "--levels", "rwin=11x", "--knobs", "rwin", "--trial", "3s", "--budget", "4 trials"]);
    let rtt = report["path"]["rtt_us"].as_f64().unwrap();
    let limit = report["physical_goodput_bps"].as_f64().unwrap();
    // 8 Mbit/s in cells: 1440 of every 32 × 53 bytes.
    assert!((limit - 8e6 * 1440.0 / 1696.0).abs() < 1.0, "{limit}");
    let window =
        report["trial_table"].as_array().unwrap().iter().find_map(|row| row["settings"]["rwin"].as_f64()).unwrap();
    let small = rows(&report, "rwin", &Value::from(window as u64));
    // Two of four, if the machine let all of them be valid.
    assert!((1..=2).contains(&small.len()), "{report:#}");
    for row in small {
        let ratio = row["goodput_bps"].as_f64().unwrap() / (window * 8e6 / rtt);
        assert!((0.95..=1.05).contains(&ratio), "{ratio}");
    }
    let whole = rows(&report, "rwin", &Value::from("auto"));
    assert!((1..=2).contains(&whole.len()), "{report:#}");
    for row in whole {
        let ratio = row["goodput_bps"].as_f64().unwrap() / limit;
        assert!((0.97..=1.0).contains(&ratio), "{ratio}");
    }
}

#[test]
fn the_report_keeps_its_contract() {
    let _machine = shared();
    let (report, ran) = tune(&["--lab", "lan", "--knobs", "cc", "--trial", "200ms", "--budget", "8 trials"]);
    assert_eq!(ran.code, 1, "{}", ran.err);
    for (pointer, is) in [
        ("/schema_version", Value::is_u64 as fn(&Value) -> bool),
        ("/id", Value::is_string),
        ("/target", Value::is_string),
        ("/path/rtt_us", Value::is_u64),
        ("/path/pmtu", Value::is_u64),
        ("/path/bdp_bytes", Value::is_u64),
        ("/current/cc", Value::is_string),
        ("/rounds", Value::is_u64),
        ("/trials", Value::is_u64),
        ("/verdict/kind", Value::is_string),
        ("/verdict/settings", Value::is_object),
        ("/verdict/evidence", Value::is_number),
        ("/verdict/needed", Value::is_number),
        ("/verdict/text", Value::is_string),
        ("/physical_goodput_bps", Value::is_number),
        ("/trial_table/0/round", Value::is_u64),
        ("/trial_table/0/order", Value::is_u64),
        ("/trial_table/0/settings", Value::is_object),
        ("/trial_table/0/goodput_bps", Value::is_number),
        ("/trial_table/0/status", Value::is_string),
    ] {
        assert!(report.pointer(pointer).is_some_and(is), "{pointer} in {report:#}");
    }
    assert_eq!((&report["tunnel"], &report["target"]), (&Value::from("lab"), &Value::from("lan")));
    assert!(report.get("plateau").is_some());
    // A trial that the lab itself spoilt is in the table, and was run again, at most twice: of each place in a round only the last
    // row may count, and each place is one trial.
    let table = report["trial_table"].as_array().unwrap();
    let places = table.chunk_by(|a, b| (&a["round"], &a["order"]) == (&b["round"], &b["order"]));
    for rows in places.clone() {
        let (_, again) = rows.split_last().unwrap();
        assert!(again.len() <= 2 && again.iter().all(|row| row["status"] == "invalid"), "{rows:#?}");
    }
    assert_eq!(report["trials"], places.count(), "{table:#?}");
}

#[test]
fn behind_a_black_hole_the_mtu_that_gets_through_is_found_and_claimed() {
    let _machine = shared();
    let (report, ran) = tune(&[
        "--lab",
        "black-hole",
        "--levels",
        "mtu=1400",
        "--knobs",
        "mtu",
        "--trial",
        "400ms",
        "--budget",
        "60 trials",
    ]);
    assert_eq!(report["verdict"]["kind"], "faster", "{report:#}");
    assert_eq!(report["verdict"]["settings"]["mtu"], 1400);
    assert_eq!(ran.code, 0);
}

#[test]
fn identical_settings_are_hardly_ever_told_apart() {
    let _machine = shared();
    let mut claimed = Vec::new();
    for seed in ["1", "2", "3", "4", "5"] {
        let (report, ran) =
            tune(&["--lab", "wifi", "--identical", "3", "--trial", "200ms", "--budget", "40 trials", "--seed", seed]);
        let faster = report["verdict"]["kind"] == "faster";
        assert_eq!(ran.code, i32::from(!faster), "seed {seed}: {}", ran.err);
        claimed.extend(faster.then(|| format!("seed {seed}: {:#}", report["verdict"])));
    }
    // At most one of twenty may be told apart: three of five come about once in a thousand times.
    assert!(claimed.len() < 3, "{claimed:#?}");
}

#[test]
fn levels_and_arms_alone_vary_nothing_else() {
    let _machine = shared();
    let square = ["--arm", "mtu=1400", "--arm", "rwin=65536", "--arm", "both: mtu=1400,rwin=65536"];
    for (asked, labels) in [
        (&["--levels", "mtu=1400"][..], &["mtu=1400"][..]),
        (&["--arm", "old: rwin=8192,mtu=576"], &["old"]),
        (&square, &["mtu=1400", "rwin=65536", "both"]),
    ] {
        let (plan, ran) = tune(&[&["--lab", "adsl", "--dry-run"][..], asked].concat());
        assert_eq!(ran.code, 0, "{}", ran.err);
        let arms: Vec<&str> = plan["arms"].as_array().unwrap().iter().map(|a| a["label"].as_str().unwrap()).collect();
        assert_eq!(&arms[1..], labels, "{plan:#}");
    }
}

#[test]
fn mistakes_on_the_command_line_name_the_nearest_or_the_range() {
    let _machine = shared();
    for (args, wanted) in [
        (&["tune", "--lab", "adls"][..], "\"adsl\""),
        (&["tune", "--lab", "adsl", "--knobs", "rwnd"], "rwin"),
        (&["tune", "--lab", "adsl", "--levels", "mtu=99999"], "68 to 65535"),
        (&["tune", "--lab", "adsl", "--levels", "cc=cubick"], "cubic"),
        (&["tune", "--lab", "adsl", "--baseline", "windows-97"], "windows-98-se"),
        (&["tune", "--lab", "adsl", "--baseline", "rwin=8192,rwin=4x"], "twice"),
        (&["tune", "--lab", "adsl", "--arm", "current"], "same"),
        (&["tune", "--lab", "adsl", "--trial", "3 parsecs"], "ms"),
        (&["tune", "--lab", "adsl", "--budget", "2 trials"], "at least"),
        (&["tune"], "TARGET"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, 2, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(wanted), "{args:?}: {}", ran.err);
    }
}

/// Starts a long experiment and waits until it has journaled a trial of a round.
fn begun(home: &std::path::Path) -> std::process::Child {
    let mut command = windtunnel(home);
    command.args(["tune", "--lab", "lan", "--knobs", "cc", "--json", "--trial", "400ms", "--budget", "400 trials"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    eventually("a trial of a round is under way", || {
        trials(home).iter().any(|trial| trial["spec"]["round"] == 1 && trial["outcome"]["status"] == "running")
    });
    child
}

fn stored(home: &std::path::Path) -> Value {
    let shown = ran(windtunnel(home).args(["journal", "show", "--json"]).output().unwrap());
    serde_json::from_str(&shown.out).unwrap_or_default()
}

fn trials(home: &std::path::Path) -> Vec<Value> {
    stored(home)["trials"].as_array().cloned().unwrap_or_default()
}

#[test]
fn ctrl_c_ends_cleanly_with_what_was_measured() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let child = begun(home.path());
    // Twice, as timeout(1) and a terminal that is closed do.
    let sent =
        Command::new("sh").args(["-c", "kill -INT $0; kill -TERM $0", &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
    let ran = ran(child.wait_with_output().unwrap());
    let report: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!((ran.code, &report["verdict"]["kind"]), (1, &Value::from("stopped")));
    assert_eq!(stored(home.path())["experiment"]["state"], "stopped");
    let last = trials(home.path()).pop().unwrap();
    assert_eq!(last["outcome"]["status"], "aborted");
}

#[test]
fn a_second_experiment_on_this_machine_is_noticed() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let run = |args: &[&str]| ran(windtunnel(home.path()).args(args).output().unwrap());
    let lab = || run(&["lab", "run", "lan", "--", "true"]);
    let tune = || run(&["tune", "--lab", "lan", "--levels", "rwin=4x", "--trial", "200ms", "--budget", "4 trials"]);
    let noticed = |ran: &RunOutput| ran.err.contains("20261124-000000-adsl-0001");
    let alone = [lab(), tune()];
    assert!(!alone.iter().any(noticed) && alone[0].code == 0 && alone[1].code <= 1, "{}{}", alone[0].err, alone[1].err);
    let journal = home.path().join("data/windtunnel/journal.sqlite3");
    let claim = wt_journal::Claim::take(&journal, "20261124-000000-adsl-0001").unwrap();
    for ran in [lab(), tune()] {
        assert!(noticed(&ran) && ran.err.contains("each disturbs the other"), "{}", ran.err);
    }
    drop(claim);
    assert!(!noticed(&lab()));
}

#[test]
fn kill_minus_nine_costs_the_trial_in_flight_and_nothing_else() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let mut child = begun(home.path());
    child.kill().unwrap();
    child.wait().unwrap();
    let before = trials(home.path());
    assert_eq!(stored(home.path())["experiment"]["state"], "aborted");
    let (last, whole) = before.split_last().unwrap();
    assert_eq!(last["outcome"]["status"], "aborted");
    assert!(!whole.is_empty() && whole.iter().all(|trial| trial["outcome"]["status"] != "running"));
    let devices = std::fs::read_to_string("/proc/net/dev").unwrap();
    assert!(!devices.contains("wt0"), "{devices}");
}

#[test]
fn a_full_disk_is_an_error_that_says_so_and_damages_nothing() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let disk = home.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=160k none {0} && {1} tune --lab lan --knobs cc --quiet --trial 200ms --budget '60 trials' \
         --journal {0}/j.sqlite3; code=$?; {1} journal list --journal {0}/j.sqlite3 >&2; exit $code",
        disk.display(),
        common::binary().display()
    );
    let mut command = Command::new("unshare");
    command.args(["-Urm", "sh", "-c", &script]).env("HOME", home.path());
    let ran = ran(command.output().unwrap());
    assert_eq!(ran.code, 3, "{}", ran.err);
    assert!(ran.err.contains("no space left") && ran.err.contains("--journal"), "{}", ran.err);
}

#[test]
fn an_interrupted_start_and_a_dry_run_journal_nothing() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let dry = ran(windtunnel(home.path()).args(["tune", "--lab", "adsl", "--dry-run"]).output().unwrap());
    assert_eq!(dry.code, 0, "{}", dry.err);
    assert!(dry.out.contains("rwin=") && dry.out.contains("mtu=1444"), "{}", dry.out);
    let stream =
        windtunnel(home.path()).args(["tune", "--lab", "adsl", "--dry-run", "--json-stream"]).output().unwrap();
    let plan: Value = serde_json::from_str(ran(stream).out.lines().last().unwrap()).unwrap();
    assert!(plan["arms"].as_array().is_some_and(|arms| arms.len() > 1), "{plan}");
    assert!(!home.path().join("data").exists());
}

#[test]
fn the_command_that_a_prediction_ends_with_can_be_run() {
    let _machine = shared();
    let predicted = run(&["predict", "transatlantic", "--set", "cc=bbr,initcwnd=40", "--size", "1MB", "--seeds", "2"]);
    let command = predicted.out.lines().find_map(|line| line.trim().strip_prefix("windtunnel ")).unwrap();
    let words: Vec<String> = command.split(' ').map(|word| word.replace('\'', "")).collect();
    let with = |more: &[&'static str]| {
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        words.extend(more);
        let dry = run(&words);
        assert!(dry.code == 0 && dry.out.contains("cc=bbr initcwnd=40"), "{words:?}: {}{}", dry.out, dry.err);
        dry.out
    };
    assert_eq!(with(&["--dry-run"]), with(&["--dry-run", "--arm", "current"]), "which come first anyhow");
}

#[test]
fn what_the_model_expects_is_told_beside_and_again_by_a_later_report() {
    let _machine = shared();
    let home = tempfile::tempdir().unwrap();
    let told = |args: &[&str]| -> Value {
        let ran = ran(windtunnel(home.path()).args(args).output().unwrap());
        serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err))
    };
    let common = ["tune", "--json", "--quiet", "--lab", "adsl", "--knobs", "rwin", "--levels", "rwin=4x,40x"];
    let of = |more: &[&str]| told(&[&common[..], more].concat());
    let report = of(&["--trial", "300ms", "--budget", "6 trials"]);
    let arms = report["model"]["arms"].as_array().unwrap();
    assert_eq!(arms.len(), 2, "{}", report["model"]);
    let small = &arms[0];
    assert!(small["expected_gain"].as_f64().unwrap() < -0.3, "four segments are a fifth of the product: {small}");
    assert_eq!((&small["weight"], &small["left_out"]), (&0.5.into(), &false.into()), "it was named");
    assert!(report["model"]["known_error"].as_f64().unwrap() > 0.0);
    let again = told(&["report", "last", "--json"]);
    assert_eq!(again["model"], report["model"]);
    assert_eq!((&again["verdict"], &again["arms"]), (&report["verdict"], &report["arms"]), "weights are journaled");
    assert_eq!(of(&["--dry-run", "--no-model"])["model"], Value::Null);
    assert!(of(&["--dry-run"])["model"]["arms"].is_array());
}
