use super::*;
use serde_json::{Value, json};
use wt_problem::Fault;

fn ask(request: Value) -> Result<Value, Problem> {
    let request: Request = serde_json::from_value(request).map_err(|error| Problem::usage(error.to_string()))?;
    let answer = run(request, &Services::default(), &mut |_| {}, &Cancel::new())?;
    Ok(serde_json::to_value(&answer).unwrap())
}

#[test]
fn every_answer_has_a_version() {
    for request in [
        json!({"operation": "overhead", "request": {"encap": "vlan+ethernet", "payload": "1000"}}),
        json!({"operation": "overhead_words"}),
        json!({"operation": "controls_list"}),
        json!({"operation": "control_show", "request": {"name": "chd@freebsd-hz100"}}),
        json!({"operation": "stacks_list"}),
        json!({"operation": "predict", "request": {"path": {"scenario": "adsl"}, "knobs": ["cc"], "size": "100kB", "seeds": 1}}),
    ] {
        assert_eq!(ask(request.clone()).unwrap()["schema_version"], 1, "{request}");
    }
}

#[test]
fn what_is_invalid_is_the_callers_fault() {
    for request in [
        json!({"operation": "overheat"}),
        json!({"operation": "overhead", "request": {"encap": "pigeon"}}),
        json!({"operation": "overhead", "request": {"encap": "ethernet", "colour": "red"}}),
        json!({"operation": "predict", "request": {"path": {"scenario": "adsl"}, "size": "0B"}}),
        json!({"operation": "tune", "request": {"lab": "adsl", "trial": "1ms"}}),
        json!({"operation": "tune", "request": {}}),
        json!({"operation": "control_show", "request": {"name": "bic"}}),
        json!({"operation": "control_load", "request": {"name": "chd@linux"}}),
        json!({"operation": "watch", "request": {"device": "lo", "filter": "nonsense"}}),
        json!({"operation": "serve", "request": {"drain_s": -1.0}}),
        json!({"operation": "self_test", "request": {"settings": 1}}),
        json!({"operation": "stack_run", "request": {"stack": "smoltcp", "argv": ["true"]}}),
        json!({"operation": "self_test", "request": {"trials": 2}}),
        json!({"operation": "settings_prove", "request": {"by": {"command": "true"}, "rounds": 1}}),
        json!({"operation": "settings_prove", "request": {"rounds": 7}}),
        json!({"operation": "journal_export", "request": {"experiment": "last", "file": "/nowhere/x", "samples": true}}),
    ] {
        assert_eq!(ask(request.clone()).unwrap_err().fault, Fault::Usage, "{request}");
    }
}

#[test]
fn overhead_is_what_the_layers_are() {
    let answer = ask(json!({"operation": "overhead", "request": {"encap": "pppoe-llc-bridged-fcs-atm"}})).unwrap();
    assert_eq!(answer["cells"], 33);
}

#[test]
fn what_one_has_is_compared_with_what_an_old_system_began_with_and_needs_no_change() {
    let folder = tempfile::tempdir().unwrap();
    let tune = |more: Value| {
        let mut request = json!({"lab": "adsl", "model": true, "trial": "1s", "budget": "60 trials"});
        request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let services = Services { journal: Some(folder.path().join("journal.sqlite3")), ..Services::default() };
        let request = serde_json::from_value(json!({"operation": "tune", "request": request})).unwrap();
        let answer = run(request, &services, &mut |_| {}, &Cancel::new()).unwrap();
        serde_json::to_value(&answer).unwrap()
    };
    let report = tune(json!({"baseline": "windows-98", "arms": ["current"]}));
    assert_eq!((&report["baseline"]["rwin"], report["arms"].as_array().unwrap().len()), (&json!(8192), 2));
    assert_eq!(report["verdict"]["label"], "your current settings", "{report:#}");
    let what = report["verdict"]["answer"]["what"].as_str().unwrap();
    assert!(what.contains("than the baseline (windows-98: rwin=8192)"), "{what}");
    assert!(report["plan"].as_array().unwrap().is_empty(), "{report:#}");

    // What nothing beats is no recommendation: the verdict's settings are those that hold.
    let report = tune(json!({"baseline": "rwin=65536", "levels": ["rwin=8192"]}));
    assert_eq!(
        (&report["verdict"]["kind"], &report["verdict"]["settings"]),
        (&json!("no-difference"), &report["current"])
    );
    let what = report["verdict"]["answer"]["what"].as_str().unwrap();
    assert!(what.contains("the baseline (rwin=65536)"), "{what}");

    // A smaller MTU costs a tenth where the link is the limit, and where the window is, its multiples.
    let square = tune(json!({"baseline": "rwin=65536", "arms": ["mtu=1000", "rwin=9000", "both: mtu=1000,rwin=9000"]}));
    let cells = &square["cells"];
    assert_eq!(cells["arms"], json!([0, 1, 2, 3]), "{square:#}");
    let figures: Vec<f64> = cells["figures"].as_array().unwrap().iter().map(|f| f.as_f64().unwrap()).collect();
    let interaction = figures[3] * figures[0] / (figures[1] * figures[2]);
    assert!((cells["interaction"].as_f64().unwrap() / interaction - 1.0).abs() < 1e-6, "{cells:#}");
}

#[test]
fn what_is_kept_is_asked_like_everything_else() {
    let folder = tempfile::tempdir().unwrap();
    let services = Services {
        journal: Some(folder.path().join("journal.sqlite3")),
        state_dir: Some(folder.path().join("state")),
        root: Some(folder.path().to_owned()),
    };
    let ask = |operation: &str, request: Value| {
        let request = serde_json::from_value(json!({"operation": operation, "request": request})).unwrap();
        run(request, &services, &mut |_| {}, &Cancel::new()).map(|answer| serde_json::to_value(&answer).unwrap())
    };
    for (operation, request, field) in [
        ("journal_list", json!({}), "experiments"),
        ("journal_prune", json!({"keep": 3, "dry_run": true}), "pruned"),
        ("lab_list", Value::Null, "presets"),
        ("lab_show", json!({"path": "adsl"}), "links"),
        ("settings_show", json!({}), "knobs"),
        ("settings_plan", json!({"settings": ["sack=off"]}), "changes"),
        ("settings_export", json!({"format": "sysctl.d", "change": {"settings": ["sack=off"]}}), "files"),
        ("settings_history", Value::Null, "changes"),
        ("settings_verify", Value::Null, "drift"),
        ("schedule", json!({"change": "3", "url": "https://h/f"}), "units"),
        ("settings_check", json!({"offline": true}), "verdicts"),
        ("settings_defaults", json!({"os": "Windows XP"}), "systems"),
        (
            "analyse",
            json!({"means": [{"mean": 1602.0, "sd_of_mean": 100.0}, {"mean": 1548.0, "sd_of_mean": 89.0}]}),
            "schema_version",
        ),
    ] {
        let answer = ask(operation, request).unwrap_or_else(|problem| panic!("{operation}: {problem}"));
        assert_eq!(answer["schema_version"], 1, "{operation}");
        assert!(answer.get(field).is_some(), "{operation}: {answer}");
    }
    for (operation, request, part) in [
        ("journal_show", json!({"experiment": "nope"}), "no experiment"),
        ("journal_prune", json!({}), "what shall go"),
        ("report", json!({"experiment": "nope"}), "no experiment"),
        ("compare", json!({"experiments": ["a", "b"]}), "no experiment"),
        ("lab_show", json!({"path": "nope"}), "no preset"),
        ("lab_probe", json!({"lab": {"path": "adsl"}, "probe": {"operation": "doctor"}}), "no probe"),
        ("settings_plan", json!({"settings": ["sack=perhaps"]}), "sack"),
        ("settings_show", json!({"adapter": "nope0"}), "no adapter"),
        (
            "settings_apply",
            json!({"change": {"settings": ["sack=off"]}, "confirmation": {"within": "1ms"}}),
            "out of range",
        ),
        ("analyse", json!({}), "no file"),
    ] {
        let problem = ask(operation, request).unwrap_err();
        assert!(problem.fault == Fault::Usage && problem.what.contains(part), "{operation}: {problem}");
    }
}

#[test]
fn what_was_cancelled_before_it_began_is_stopped() {
    let cancel = Cancel::new();
    cancel.cancel();
    let request = json!({"operation": "predict", "request": {"path": {"scenario": "adsl"}}});
    let request: Request = serde_json::from_value(request).unwrap();
    let problem = run(request, &Services::default(), &mut |_| {}, &cancel).unwrap_err();
    assert_eq!(problem.fault, Fault::Stopped);
}

#[test]
fn a_server_says_where_it_listens_and_answers_when_it_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let request = json!({"listen": ["127.0.0.1:0"], "key_file": folder.path().join("key")});
    let request = serde_json::from_value(json!({"operation": "serve", "request": request})).unwrap();
    let (cancel, mut events) = (Cancel::new(), Vec::new());
    let mut sink = |event: Event| {
        events.push(serde_json::to_value(&event).unwrap());
        cancel.cancel();
    };
    let answer = serde_json::to_value(run(request, &Services::default(), &mut sink, &cancel).unwrap()).unwrap();
    assert_eq!((&events[0]["event"], &events[1]["event"]), (&"listening".into(), &"draining".into()), "{events:?}");
    assert_eq!((&answer["schema_version"], &answer["listening"]), (&1.into(), &events[0]["listening"]), "{answer}");
    assert!(answer["clients"][0].as_str().unwrap().starts_with("wt://"), "{answer}");
}

#[test]
fn the_method_is_tested_on_itself_and_an_experiment_is_written_to_a_file() {
    let answer = ask(json!({"operation": "self_test", "request": {"runs": 20, "seed": 3}})).unwrap();
    assert_eq!((&answer["passed"], &answer["trials"], &answer["seed"]), (&json!(true), &json!(120), &json!(3)));
    assert!(answer["noise"].as_array().is_some_and(|kinds| kinds.len() > 2) && answer.get("lab").is_none(), "{answer}");

    let folder = tempfile::tempdir().unwrap();
    let services = Services { journal: Some(folder.path().join("journal.sqlite3")), ..Services::default() };
    let ask = |operation: &str, request: Value| {
        let request = serde_json::from_value(json!({"operation": operation, "request": request})).unwrap();
        run(request, &services, &mut |_| {}, &Cancel::new()).map(|answer| serde_json::to_value(&answer).unwrap())
    };
    let tuned =
        ask("tune", json!({"lab": "adsl", "model": true, "trial": "1s", "budget": "20 trials", "knobs": ["cc"]}))
            .unwrap();
    let (csv, all) = (folder.path().join("x.csv"), folder.path().join("x.json"));
    let written = ask("journal_export", json!({"experiment": "last", "format": "csv", "file": csv})).unwrap();
    assert_eq!((&written["schema_version"], &written["format"]), (&json!(1), &json!("csv")));
    ask("journal_export", json!({"experiment": "last", "file": all})).unwrap();
    let object: Value = serde_json::from_slice(&std::fs::read(&all).unwrap()).unwrap();
    assert_eq!(object["experiment"]["id"], tuned["id"], "{tuned}");
    let lines = std::fs::read_to_string(&csv).unwrap().lines().count();
    assert_eq!(lines, object["trials"].as_array().unwrap().len() + 1);
    // What fails leaves nothing.
    let nothing = folder.path().join("y.csv");
    assert!(ask("journal_export", json!({"experiment": "none-such", "file": nothing})).is_err());
    assert!(!nothing.exists());
}
