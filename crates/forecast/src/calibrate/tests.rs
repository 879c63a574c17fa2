//! The table of the world against a real kernel in virtual time, without any kernel: `world.json` is what `windtunnel calibrate --table world
//! --repeat 1 --virtual --kernel FILE --json` found there, rows without chance.

use super::row::spec;
use super::table;
use super::*;
use crate::model;
use crate::stack::VIRTUAL_REACTION;
use serde_json::Value;
use std::time::Duration;
use wt_link::StageConfig;
use wt_problem::Fault;
use wt_sim::{BufferTuning, StackConfig};
use wt_trial::Tunnel as _;

const WORLD: &str = include_str!("world.json");

fn stack(golden: &Value) -> StackConfig {
    let ends = &golden["ends"];
    StackConfig {
        rmem: (ends["rmem"][0].as_u64().unwrap(), ends["rmem"][1].as_u64().unwrap()),
        wmem_max: ends["wmem_max"].as_u64().unwrap(),
        pacing: ends["pacing"].as_bool().unwrap(),
        tuning: BufferTuning::of_release(golden["kernel"].as_str().unwrap()),
        header_room: 192,
        reaction: VIRTUAL_REACTION,
        ..StackConfig::default()
    }
}

#[test]
fn every_setting_takes_as_long_as_on_a_real_kernel() {
    let golden: Value = serde_json::from_str(WORLD).unwrap();
    let cells = table::world();
    let mut errors = Vec::new();
    for row in golden["rows"].as_array().unwrap() {
        let cell = cells.iter().find(|cell| row["name"] == cell.name.as_str()).unwrap();
        let mut path = model::sim_path(&cell.scenario().unwrap());
        let delay = Duration::from_micros(row["rtt_excess_us"].as_u64().unwrap());
        path.config.links[0].backward.push(StageConfig::Delay { delay });
        let mut tunnel = model::tunnel_of(path, stack(&golden)).unwrap();
        let outcome = tunnel.run(&spec(&cell.settings, cell, 1), &Cancel::new()).unwrap();
        let error = outcome.elapsed_us as f64 / row["us"].as_f64().unwrap() - 1.0;
        // BBR draws the phase in which it begins to probe.
        let drawn = cell.settings.name(wt_units::Knob::Cc) == Some("bbr");
        let most = if drawn { 0.06 } else { 0.01 };
        assert!(error.abs() <= most, "{}: {:+.2} %", cell.name, error * 100.0);
        if !drawn && matches!(cell.region, "dial-up" | "dsl") && !cell.name.ends_with("reno") {
            assert_eq!(outcome.observed.retransmits, row["retransmits"].as_u64(), "{}", cell.name);
        }
        errors.push(error.abs());
    }
    errors.sort_by(f64::total_cmp);
    assert_eq!(errors.len(), 41);
    assert!(errors[errors.len() / 2] <= 1e-4, "the median is {}", errors[errors.len() / 2]);
}

#[test]
fn a_request_has_defaults_and_says_what_is_wrong_before_anything_runs() {
    let request: CalibrateRequest = serde_json::from_str(r#"{ "only": ["dsl"], "backend": "veth" }"#).unwrap();
    let wanted = CalibrateRequest { only: vec!["dsl".to_owned()], backend: Backend::Veth, ..Default::default() };
    assert_eq!(request, wanted);
    assert_eq!((request.repeat, request.seed, request.table), (3, 1, CalibrationTable::World));
    assert!(request.check().is_ok() && serde_json::from_str::<CalibrateRequest>(r#"{ "rows": 3 }"#).is_err());
    for (request, reason) in [
        (CalibrateRequest { only: vec!["the moon".to_owned()], ..Default::default() }, "the moon"),
        (CalibrateRequest { repeat: 0, ..Default::default() }, "1 to 100"),
    ] {
        let problem = request.check().unwrap_err();
        assert!(problem.fault == Fault::Usage && problem.what.contains(reason), "{problem}");
    }
}
