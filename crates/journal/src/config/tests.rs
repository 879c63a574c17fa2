use super::*;
use serde_json::json;

fn read(value: &Value) -> ExperimentConfig {
    let config: ExperimentConfig = serde_json::from_value(value.clone()).unwrap();
    assert_eq!(serde_json::to_value(&config).unwrap(), *value, "a row is written again as it was");
    assert_eq!(serde_json::to_string(&config).unwrap(), value.to_string(), "byte for byte");
    config
}

#[test]
fn the_kind_is_told_by_the_key_that_only_it_has() {
    for (row, kind) in [
        (json!({"alpha": 0.05}), "tune"),
        (json!({"screen": null, "compare": null, "stacks": [], "flent": 7}), "tune"),
        (json!({}), "tune"),
        (json!({"screen": {"factors": []}, "alpha": 0.05}), "screen"),
        (json!({"compare": {"arms": []}}), "controls"),
        (json!({"stacks": {"arms": []}}), "stacks"),
        (json!({"test": {"net.ipv4.ip_default_ttl": "64"}}), "test"),
        (json!({"test": "rrul"}), "tune"),
        (json!({"traffic": {"ports": [443]}, "backend": "sockops"}), "traffic"),
        (json!({"traffic": 7}), "tune"),
        (json!({"flent": "rrul"}), "flent"),
        (json!({"flent": ""}), "flent"),
        (json!({"format": 1, "compare": {}}), "controls"),
        (json!({"format": 2, "compare": {}}), "unknown"),
        (Value::Null, "unknown"),
        (json!(["compare"]), "unknown"),
    ] {
        let told = match read(&row) {
            ExperimentConfig::Tune(_) => "tune",
            ExperimentConfig::Screen(_) => "screen",
            ExperimentConfig::Controls(_) => "controls",
            ExperimentConfig::Stacks(_) => "stacks",
            ExperimentConfig::Tests(_) => "test",
            ExperimentConfig::Traffic(_) => "traffic",
            ExperimentConfig::Flent(_) => "flent",
            ExperimentConfig::Unknown(_) => "unknown",
        };
        assert_eq!(told, kind, "{row}");
    }
    assert_eq!(read(&json!({"format": 2})).later_format(), Some(2));
    assert_eq!(read(&Value::Null).later_format(), None);
}

#[test]
fn what_older_rows_lack_has_the_value_that_was_taken_for_granted_then() {
    let config = read(&json!({"plateau": {"knob": "rwin", "levels": [0, 1]}}));
    let tune = config.tune();
    assert_eq!((tune.alpha(), tune.indifference(), tune.max_trials), (0.05, 0.05, None));
    let plateau = tune.plateau.as_ref().unwrap();
    assert_eq!((plateau.epsilon(), plateau.is_strict()), (0.1, false));
    assert_eq!((tune.direction(), tune.held().unwrap().is_empty()), (wt_trial::Direction::Down, true));
}

#[test]
fn what_cannot_be_read_is_no_less_kept() {
    let row = json!({
        "workload": {"kind": "teleport", "direction": "up"}, "hold": {"warp": 9}, "alpha": 1, "weights": [1.0, null],
        "plateau": {"knob": "warp", "levels": "all"}, "live": {"address": "nowhere", "more": [1.50]},
    });
    let config = read(&row);
    let tune = config.tune();
    assert_eq!((&tune.workload, tune.alpha()), (&None, 1.0));
    assert_eq!(tune.said("workload"), row["workload"]);
    assert_eq!(tune.direction(), wt_trial::Direction::Up);
    assert!(tune.held().is_err() && tune.plateau.is_some() && tune.live.is_some());
}

#[test]
fn a_row_of_today_names_what_there_is_none_of() {
    let tune = TuneConfig { alpha: Some(0.05), continues: Some("a".to_owned()), ..TuneConfig::default() }.whole();
    let row =
        json!({"alpha": 0.05, "lab": null, "max_trials": null, "weights": null, "plateau": null, "continues": "a"});
    assert_eq!(serde_json::to_value(&tune).unwrap(), row);
    assert_eq!(read(&row), ExperimentConfig::Tune(Box::new(tune)));
}

#[test]
fn a_screens_plan_and_rules_are_one_row() {
    let row = json!({
        "screen": {"factors": [{"knob": "rwin", "low": 4096, "high": "auto"}], "rounds": 16}, "alpha": 0.05, "lab": "adsl",
    });
    let config = read(&row);
    let factors = config.screen().unwrap().factors.clone().unwrap();
    assert_eq!((factors[0].low.to_string(), factors[0].high.to_string()), ("4096".to_owned(), "auto".to_owned()));
    assert_eq!((config.lab(), config.tune().alpha), (Some("adsl"), Some(0.05)));
}
