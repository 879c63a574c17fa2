//! The lab on a kernel of its own, in virtual time. Such a kernel takes minutes to build, so what needs one is run where
//! `WINDTUNNEL_KERNEL` names one (`scripts/build-uml.sh`), and says so elsewhere.

use crate::common::run;
use serde_json::Value;
use wt_testing::require;

#[test]
fn what_is_no_such_kernel_is_refused_before_anything_is_run() {
    for (args, code, reason) in [
        (&["lab", "run", "adsl", "--virtual", "--", "true"][..], 2, "--kernel"),
        (&["lab", "run", "adsl", "--kernel", "/bin/true", "--", "true"], 2, "--virtual"),
        (&["lab", "run", "adsl", "--virtual", "--kernel", "/nonexistent", "--", "true"], 3, "/nonexistent"),
        (&["lab", "run", "adsl", "--virtual", "--kernel", "/bin/true", "--", "true"], 3, "build-uml.sh"),
        (&["lab", "ping", "adsl", "--virtual", "--kernel", "/etc/hostname"], 3, "can't run"),
        (&["lab", "up", "adsl", "--virtual", "--kernel", "/bin/true"], 2, "stand still"),
        (&["calibrate", "--virtual", "--kernel", "/bin/true", "--only", "dsl"], 3, "no User-Mode Linux"),
    ] {
        let ran = run(args);
        assert_eq!(ran.code, code, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(reason), "{args:?}: {}", ran.err);
    }
}

/// A kernel, if somebody has built one.
fn kernel() -> Result<String, &'static str> {
    std::env::var("WINDTUNNEL_KERNEL").map_err(|_| "WINDTUNNEL_KERNEL names no kernel; scripts/build-uml.sh builds one")
}

#[test]
fn a_program_runs_on_the_other_kernel_with_its_files_output_and_exit_code() {
    let kernel = require!("virtual-kernel", kernel());
    let there = |script: &str| run(&["lab", "run", "adsl", "--virtual", "--kernel", &kernel, "--", "sh", "-c", script]);
    let ran = there("uname -r; pwd; echo aside >&2; cat; exit 7");
    assert_eq!(ran.code, 7, "{}{}", ran.out, ran.err);
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_ne!(lines[0], std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim());
    assert_eq!(lines[1..], [std::env::current_dir().unwrap().to_str().unwrap()]);
    assert!(ran.err.contains("aside"), "{}", ran.err);
}

#[test]
fn a_hundred_pings_are_all_alike_and_take_no_time() {
    let kernel = require!("virtual-kernel", kernel());
    let ran =
        run(&["lab", "run", "transatlantic", "--virtual", "--kernel", &kernel, "--", "ping", "-c", "100", "server"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    let summary = ran.out.lines().last().unwrap();
    // rtt min/avg/max/mdev = 120.1/120.1/120.2/0.01 ms
    let figures: Vec<f64> = summary.split(['=', ' ', '/']).filter_map(|word| word.parse().ok()).collect();
    let (min, max) = (figures[0], figures[2]);
    assert!(max - min < 0.2, "{summary}");
}

#[test]
fn two_runs_agree_to_a_thousandth() {
    let kernel = require!("virtual-kernel", kernel());
    let time = || {
        let ran = run(&[
            "calibrate",
            "--table",
            "grid",
            "--only",
            "cubic 10Mbit 20ms 2BDP 1MB",
            "--repeat",
            "1",
            "--json",
            "--virtual",
            "--kernel",
            &kernel,
        ]);
        let answer: Value =
            serde_json::from_str(&ran.out).unwrap_or_else(|error| panic!("{error}: {}{}", ran.out, ran.err));
        assert_eq!(answer["virtual"], true);
        answer["rows"][0]["lab_us"][0].as_f64().unwrap()
    };
    let (one, other) = (time(), time());
    assert!((one / other - 1.0).abs() < 1e-3, "{one} and {other} µs");
}

#[test]
fn an_experiment_on_a_modem_runs_there_without_a_late_trial_and_is_in_the_journal() {
    let kernel = require!("virtual-kernel", kernel());
    let home = tempfile::tempdir().unwrap();
    let tune = "tune --lab dialup --levels rwin=2x,8x --trial 20s --budget";
    let mut command = crate::common::windtunnel(home.path());
    command.args(tune.split(' ')).args([
        "12 trials",
        "--no-model",
        "--quiet",
        "--json",
        "--virtual",
        "--kernel",
        &kernel,
    ]);
    let told = crate::common::ran(command.output().unwrap());
    let report: Value = serde_json::from_str(&told.out).unwrap_or_else(|error| panic!("{error}: {}", told.err));
    let there = report["run"]["spent_s"].as_f64().unwrap();
    let trials = report["trial_table"].as_array().unwrap();
    assert!(trials.len() >= 12 && trials.iter().all(|trial| trial["status"] == "completed"), "{report:#}");
    assert!(there >= 200.0, "{there} s there");
    // The line is the limit, whatever the window: 33.6 kbit/s less what framing takes.
    let limit = report["physical_goodput_bps"].as_f64().unwrap();
    assert!(trials.iter().all(|trial| trial["goodput_bps"].as_f64().unwrap() <= limit * 1.01), "{limit}: {trials:#?}");
    let list = crate::common::ran(
        crate::common::windtunnel(home.path()).args(["journal", "list", "--json"]).output().unwrap(),
    );
    let list: Value = serde_json::from_str(&list.out).unwrap();
    assert_eq!(list["experiments"][0]["id"], report["id"], "{list:#}");
}
