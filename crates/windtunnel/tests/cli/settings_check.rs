//! `settings check` and `schedule`: does what was changed still hold, and what it rests on?
#![expect(clippy::unwrap_used, reason = "helpers of tests fail like tests")]

use crate::common::host::{directory, rows, script};
use crate::common::{ran, windtunnel};
use serde_json::{Value, json};
use std::path::Path;
use wt_journal::{Arm, ExperimentConfig, Journal as _, NewExperiment, SqliteJournal, State};
use wt_trial::PathFacts;
use wt_units::{Knob, Level, Settings};

/// A server that takes connections, within the namespace.
const SERVER: &str = r#"mkfifo up; python3 -c "
import socket
server = socket.create_server(('10.0.0.1', 8080))
print('up', flush=True)
while True: server.accept()[0].close()" > up & server=$!; read line < up
"#;

/// The journal with an experiment that recommends `initrwnd=20`, measured on a path to that server.
fn journal(folder: &Path, id: &str, kernel: &str, rtt_us: u64) {
    let settings = Settings::new().with(Knob::Initrwnd, Level::Number(20));
    journal_of(folder, id, "10.0.0.1", &settings, kernel, rtt_us);
}

/// The journal with an experiment that recommends these settings for a download from this address.
fn journal_of(folder: &Path, id: &str, address: &str, settings: &Settings, kernel: &str, rtt_us: u64) {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let config = json!({
        "alpha": 0.05, "host": {"name": host.trim(), "kernel": kernel},
        "live": {"targets": [format!("http://{address}:8080/file")], "address": address},
    });
    let arms = [("current", Settings::new()), ("faster", settings.clone())];
    let new = NewExperiment {
        arms: arms.map(|(label, settings)| Arm { label: label.to_owned(), settings }).into(),
        config: ExperimentConfig::from(config),
        path: PathFacts { rtt_us, pmtu: 1_500, ..PathFacts::default() },
        started_unix_us: 1_700_000_000_000_000,
        ..NewExperiment::new(id, format!("{address}:8080"), "live")
    };
    let mut journal = SqliteJournal::open(&folder.join("journal")).unwrap();
    journal.create_experiment(&new).unwrap();
    let verdict = json!({"headline": "It is faster.", "settings": settings});
    journal.finish_experiment(id, State::Finished, 1, Some(&verdict)).unwrap();
}

fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap().trim().to_owned()
}

fn objects(text: &str) -> Vec<Value> {
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

fn same(report: &Value, name: &str) -> Value {
    let all = rows(&report["verdicts"][0], "circumstances");
    all.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name}: {report}"))["same"].clone()
}

#[test]
fn a_plan_in_several_places_is_made_for_the_default_routes_too_and_its_json_is_the_same_plan() {
    let directory = directory();
    let settings =
        Settings::new().with(Knob::Initrwnd, Level::Number(20)).with(Knob::Timestamps, Level::Name("off".to_owned()));
    journal_of(directory.path(), "found", "192.0.2.80", &settings, &kernel(), 1_000);
    let ran = script(
        directory.path(),
        "ip route add 198.51.100.0/24 via 10.0.0.2 initcwnd 20
         for what in '--verdict found' '--verdict found --to default' '--verdict found --to v0' --defaults; do
             wt plan $what --journal journal --json > plan.json; cat plan.json; wt plan plan.json --json
         done",
    );
    let plans = objects(&ran.out);
    assert_eq!(plans.len(), 8, "{}{}", ran.out, ran.err);
    for pair in plans.chunks(2) {
        let told = |plan: &Value| {
            let of = |row: &&Value| ["key", "new", "scope", "target"].map(|field| row[field].clone());
            (plan["commands"].clone(), rows(plan, "changes").iter().map(of).collect::<Vec<_>>())
        };
        assert_eq!(told(&pair[0]), told(&pair[1]));
    }
    let commands = |at: usize| plans[at]["commands"].to_string();
    for at in [0, 2, 4] {
        assert!(commands(at).contains("tcp_timestamps") && commands(at).contains("initrwnd 20"), "{}", commands(at));
    }
    assert!(commands(0).contains("192.0.2.80") && commands(2).contains("default"), "{}", commands(0));
    assert!(commands(7).contains("198.51.100.0/24"), "{}", commands(7));
}

const APPLY: &str = "wt apply --verdict found --journal journal --to default --yes > out || exit 9\n";

#[test]
fn a_change_holds_until_a_setting_drifts_or_its_server_is_not_to_be_had() {
    let directory = directory();
    journal(directory.path(), "found", &kernel(), 50);
    let ran = script(
        directory.path(),
        &format!(
            "{SERVER}{APPLY}wt check --journal journal --json; echo \"rc $?\"; wt check --journal journal; kill $server; wait $server
             wt check --journal journal --json; echo \"rc $?\"; wt check --offline --journal journal --json
             ip route change default via 10.0.0.2 initrwnd 5; wt check --json; echo \"rc $?\"; \"$WT\" metrics"
        ),
    );
    let [holds, gone, offline, drifted] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!((&holds["holds"], &holds["schema_version"]), (&json!(true), &json!(1)), "{holds}");
    let verdict = &holds["verdicts"][0];
    assert_eq!((&verdict["experiment"], &verdict["applies"]), (&json!("found"), &json!(true)), "{holds}");
    for name in ["kernel", "device", "rtt_us"] {
        assert_eq!(same(holds, name), true, "{name}: {holds}");
    }
    // What can't be looked at is no reason to distrust the rest.
    for report in [gone, offline] {
        assert_eq!((same(report, "rtt_us"), &report["holds"]), (Value::Null, &json!(true)), "{report}");
    }
    assert_eq!((rows(drifted, "drift").len(), &drifted["holds"]), (1, &json!(false)), "{drifted}");
    let codes: Vec<&str> = ran.out.lines().filter(|line| line.starts_with("rc ")).collect();
    assert_eq!(codes, ["rc 0", "rc 0", "rc 1"], "{}", ran.out);
    assert!(ran.out.contains("windtunnel_settings_hold 0\n"), "{}", ran.out);
    assert!(ran.out.contains("what was changed holds.\n"), "{}", ran.out);
}

#[test]
fn a_verdict_does_not_apply_under_another_kernel_or_over_a_path_ten_times_as_long() {
    for (measured_on, rtt_us, other) in [("4.19.0-1", 50, "kernel"), (&*kernel(), 300_000, "rtt_us")] {
        let directory = directory();
        journal(directory.path(), "found", measured_on, rtt_us);
        let ran = script(
            directory.path(),
            &format!("{SERVER}{APPLY}wt check --journal journal --json; echo \"rc $?\"; kill $server"),
        );
        let [report] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
        assert!(ran.out.contains("rc 1"), "{}", ran.out);
        assert_eq!((&report["holds"], &report["verdicts"][0]["applies"]), (&json!(false), &json!(false)), "{report}");
        for name in ["kernel", "device", "rtt_us"] {
            assert_eq!(same(report, name), name != other, "{name}: {report}");
        }
    }
}

#[test]
fn a_change_stored_by_an_older_version_still_loads_and_rests_on_nothing() {
    let directory = directory();
    journal(directory.path(), "found", &kernel(), 50);
    let ran = script(
        directory.path(),
        &format!(
            "{APPLY}python3 - \"$STATE/checkpoints/1/checkpoint.json\" <<'END'
import json, sys
stored = json.load(open(sys.argv[1]))
assert stored.pop('basis')['experiment'] == 'found'
open(sys.argv[1], 'w').write(json.dumps(stored))
END
             wt check --json; echo \"rc $?\"; wt undo"
        ),
    );
    let [report] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
    assert_eq!((&report["checked"], &report["verdicts"]), (&json!(["1"]), &json!([])), "{report}");
    assert!(ran.out.contains("rc 0") && ran.out.contains("was taken back"), "{}{}", ran.out, ran.err);
}

/// A proof of change 1 in the journal.
fn proof(folder: &Path, verdict: &str, slower: bool, minute: usize) {
    let id = format!("20991231-00000{minute}-proof-1-abcd");
    let started_unix_us = 4_102_358_400_000_000 + minute as i64;
    let comment = "proof of change 1: initrwnd=20 on default".to_owned();
    let settings = Settings::new().with(Knob::Initrwnd, Level::Number(20));
    let arms = [("without the change", Settings::new()), ("with the change", settings.clone())];
    let arms = arms.map(|(label, settings)| Arm { label: label.to_owned(), settings }).into();
    let new = NewExperiment { started_unix_us, comment, arms, ..NewExperiment::new(&id, "scp far:big .", "live") };
    let mut journal = SqliteJournal::open(&folder.join("journal")).unwrap();
    journal.create_experiment(&new).unwrap();
    let text = if slower { "It is SLOWER with the change." } else { "It may be." };
    let verdict = json!({"kind": verdict, "headline": text, "settings": settings, "proof": {
        "schema_version": 1, "id": id, "change": "1", "by": "scp far:big .", "rounds": 7, "verdict": verdict,
        "slower": slower, "ratio": 1.2, "ratio_low": null, "ratio_high": null, "before_s": 0.05, "after_s": 0.15, "text": text,
    }});
    journal.finish_experiment(&id, State::Finished, 1, Some(&verdict)).unwrap();
}

#[test]
fn a_proof_is_reported_as_one_and_recommends_nothing() {
    let directory = directory();
    proof(directory.path(), "no-difference", true, 0);
    let ran = script(
        directory.path(),
        "wt plan --verdict last --journal journal; echo \"rc $?\"; wt apply --verdict last --prove --journal journal
         report=\"$WT report last --journal journal\"; $report --html page; echo \"rc $?\"; $report --json; $report --csv x
         $WT tune --resume last --journal journal; $WT compare last last --journal journal
         $WT journal list --journal journal; $WT metrics --journal journal; cat page",
    );
    let report = objects(&ran.out);
    let report = report.iter().find(|one| one["before_s"] == 0.05).unwrap_or_else(|| panic!("{}{}", ran.out, ran.err));
    assert_eq!((&report["slower"], &report["what"]), (&json!(true), &json!("initrwnd=20 on default")), "{report}");
    for said in [
        "rc 2\n",
        "Proof of change 1: initrwnd=20 on default\nIt is SLOWER with the change.\n",
        "0.050 s without change 1, 0.150 s with it.\n",
        "rc 1\n",
        "-proof-1-abcd  proof  live",
        "<p>It is SLOWER with the change.</p>",
    ] {
        assert!(ran.out.contains(said), "{said:?}: {}", ran.out);
    }
    for wrong in ["Keep your settings", "windtunnel_verdict{", "Mbit/s"] {
        assert!(!ran.out.contains(wrong), "{wrong}: {}", ran.out);
    }
    let refused = "is a proof of change 1, which was in force when it was measured";
    assert_eq!(ran.err.matches(refused).count(), 2, "{}", ran.err);
    assert!(ran.err.contains("settings undo 1 takes it back"), "{}", ran.err);
    for said in ["a proof of a change has no table of settings", "it compares no settings with each other"] {
        assert!(ran.err.contains(said), "{said:?}: {}", ran.err);
    }
    assert!(ran.err.contains("settings prove runs another one"), "{}", ran.err);
}

#[test]
fn a_change_without_a_verdict_does_not_hold_once_it_is_shown_to_be_slower() {
    for (verdict, slower, code, said) in [
        ("no-difference", true, "rc 1", "it is SLOWER with the change"),
        ("no-difference", false, "rc 0", "no difference is shown"),
        ("faster", false, "rc 0", "it is faster with the change"),
    ] {
        let directory = directory();
        proof(directory.path(), verdict, slower, 0);
        let check = "wt check --offline --journal journal";
        let apply = "wt apply initrwnd=20 --to default --yes > out || exit 9";
        let ran = script(directory.path(), &format!("{apply}\n{check} --json; echo \"rc $?\"; {check}"));
        let [report] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
        let proof = &report["proofs"][0];
        assert_eq!((&proof["proof"]["slower"], &report["holds"]), (&json!(slower), &json!(!slower)), "{report}");
        assert_eq!((&proof["change"], &report["verdicts"]), (&json!("1"), &json!([])), "{report}");
        assert!(ran.out.contains(code) && ran.out.contains(said), "{}", ran.out);
        assert_eq!(ran.out.contains("Change 1 makes it slower. Take it back: "), slower, "{}", ran.out);
    }
}

#[test]
fn the_latest_proof_of_a_change_says_whether_its_gain_is_still_there() {
    for proofs in [&[true][..], &[true, false], &[true, false, true]] {
        let directory = directory();
        journal(directory.path(), "found", &kernel(), 50);
        for (minute, faster) in proofs.iter().enumerate() {
            proof(directory.path(), if *faster { "faster" } else { "no-difference" }, false, minute);
        }
        let check = "wt check --offline --journal journal --json; echo \"rc $?\"";
        let ran = script(directory.path(), &format!("{APPLY}{check}"));
        let [report] = &objects(&ran.out)[..] else { panic!("{}{}", ran.out, ran.err) };
        let (faster, latest) = (proofs.last(), &report["verdicts"][0]["proof"]);
        assert_eq!((&latest["faster"], &report["holds"]), (&json!(faster), &json!(faster)), "{report}");
        assert!(ran.out.contains(if faster == Some(&true) { "rc 0" } else { "rc 1" }), "{}", ran.out);
    }
}

#[test]
fn a_schedule_measures_what_the_verdict_fetched_and_systemd_takes_its_units() {
    let directory = directory();
    journal(directory.path(), "found", &kernel(), 50);
    let ran = script(
        directory.path(),
        &format!("{APPLY}mkdir units; \"$WT\" schedule --between 22:00-06:00 --days mon,Thu --to units && cat units/*"),
    );
    assert_eq!(ran.code, 0, "{}", ran.err);
    assert!(ran.out.contains(" settings prove 1 --url http://10.0.0.1:8080/file --rounds 20"), "{}", ran.out);
    assert!(ran.out.contains("OnCalendar=Mon,Thu *-*-* 22:00:00\nRandomizedDelaySec=480min\n"), "{}", ran.out);
    wt_testing::require!("systemd-analyze", std::process::Command::new("systemd-analyze").arg("--version").output());
    for unit in ["windtunnel-again-1.service", "windtunnel-again-1.timer"] {
        let path = directory.path().join("units").join(unit);
        let checked = std::process::Command::new("systemd-analyze").args(["verify", "--man=no"]).arg(&path).output();
        let checked = crate::common::ran(checked.unwrap());
        assert_eq!((checked.code, checked.err.as_str()), (0, ""), "{unit}");
    }
}

#[test]
fn a_schedule_without_anything_to_time_says_what_to_name() {
    let home = tempfile::tempdir().unwrap();
    for (arguments, wanted) in [
        (&["schedule"][..], "no change is in force"),
        (&["schedule", "--change", "x", "--url", "https://h/f"], "not the number of a change"),
        (&["schedule", "--change", "1", "--url", "https://h/f", "--between", "5-6"], "02:00-05:00"),
        (&["schedule", "--change", "1", "--url", "https://h/f", "--days", "Someday"], "no day of the week"),
        (&["schedule", "--change", "77", "--url", "https://h/f"], "77"),
        (&["schedule", "--change", "77", "--by", "true", "--on-failure", "bad unit"], "no name of a unit"),
    ] {
        let state = home.path().join("state");
        let ran = ran(windtunnel(home.path()).args(arguments).env("WINDTUNNEL_STATE_DIR", &state).output().unwrap());
        assert!(ran.code == 2 && ran.err.contains(wanted), "{arguments:?}: {} {}", ran.code, ran.err);
    }
}
