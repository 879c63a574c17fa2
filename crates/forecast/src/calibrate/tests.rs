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
/// What `windtunnel calibrate --table mixes --repeat 3 --virtual --kernel FILE --json` found there, without the model's figures:
/// means over three draws of starts, here put in the order of names. Of mixes in which three don't tell chance from an error of the
/// model, and their like, `--repeat 12 --only TEXT`.
const MIXES: &str = include_str!("mixes.json");

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

/// A row of the golden file; what the model will say is left open.
fn golden_mix(row: &Value) -> MixRow {
    let class = |class: &Value| MixClass {
        control: class["control"].as_str().unwrap().to_owned(),
        flows: u32::try_from(class["flows"].as_u64().unwrap()).unwrap(),
        share: [class["share"].as_f64().unwrap(), f64::NAN],
        completion_us: [class["completion_us"].as_f64().unwrap(), f64::NAN],
    };
    MixRow {
        name: row["name"].as_str().unwrap().to_owned(),
        draws: row["draws"].as_u64().unwrap(),
        rtt_excess_us: row["rtt_excess_us"].as_u64().unwrap(),
        classes: row["classes"].as_array().unwrap().iter().map(class).collect(),
    }
}

/// The golden mixes with what the model says of them.
fn mixes_in_the_model() -> Vec<MixRow> {
    let golden: Value = serde_json::from_str(MIXES).unwrap();
    let rows: Vec<MixRow> = golden["mixes"].as_array().unwrap().iter().map(golden_mix).collect();
    let cells = mixes::cells();
    let stack = &stack(&golden);
    let next = &std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        while let Some(row) = rows.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) {
            let cell = cells.iter().find(|cell| cell.name == row.name).unwrap();
            done.push(mixes::beside(cell, stack, row.clone()));
        }
        done
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn flows_that_share_a_path_get_the_shares_and_times_of_a_real_kernel() {
    let rows = mixes_in_the_model();
    assert!(rows.len() == 70 && rows.iter().any(|row| row.classes.iter().map(|class| class.flows).sum::<u32>() == 10));
    let judged = |error: fn(&MixRow) -> f64, of_several: bool| {
        // One congestion control alone has all of the path, whoever asks.
        let whose = rows.iter().filter(|row| !of_several || row.classes.len() > 1);
        let mut errors: Vec<f64> = whose.map(|row| error(row).abs()).collect();
        errors.sort_by(f64::total_cmp);
        let at = |share: f64| errors[(share * (errors.len() - 1) as f64).ceil() as usize];
        (at(0.5), at(0.9), at(1.0))
    };
    for row in &rows {
        let (time, share) = (row.worst_class_time_error(), row.share_error());
        if time.abs() > 0.05 || share.abs() > 0.05 {
            println!("misses: {:<48} time {:+.1} %, share {:+.1} points", row.name, time * 100.0, share * 100.0);
        }
    }
    let (times, each, shares) = (
        judged(MixRow::time_error, false),
        judged(MixRow::worst_class_time_error, false),
        judged(MixRow::share_error, true),
    );
    println!(
        "all flows' times {times:?}; the worst control's {each:?}; shares {shares:?} (median, nine in ten, worst)"
    );
    assert!(times.0 <= 0.02 && times.2 <= 0.06, "times of all flows, see above");
    assert!(each.0 <= 0.03 && each.2 <= 0.10, "times by congestion control, see above");
    assert!(shares.0 <= 0.03 && shares.2 <= 0.08, "shares, see above");
}

#[test]
fn a_mix_is_told_with_its_worst_congestion_control() {
    let class = |control: &str, share: [f64; 2], completion_us: [f64; 2]| MixClass {
        control: control.to_owned(),
        flows: 2,
        share,
        completion_us,
    };
    let classes = vec![class("cubic", [0.5, 0.4], [2e6, 2.2e6]), class("bbr", [0.5, 0.6], [2e6, 1.6e6])];
    let row = MixRow { name: "a mix".to_owned(), draws: 1, rtt_excess_us: 0, classes };
    assert!((row.time_error() + 0.05).abs() < 1e-9 && (row.worst_class_time_error() + 0.2).abs() < 1e-9);
    assert!((row.share_error().abs() - 0.1).abs() < 1e-9);
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
