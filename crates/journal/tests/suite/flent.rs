//! flent's files, ours and those of flent itself.

use super::{chain, exported, local};
use serde_json::{Value, json};
use wt_journal::{Filter, Journal, WithSamples, export_flent, import_json};
use wt_trial::{Sample, TrialOutcome, TrialRecord};

fn as_flent(journal: &dyn Journal, id: &str) -> Value {
    let mut out = Vec::new();
    export_flent(journal, id, &mut out).unwrap();
    serde_json::from_slice(&out).unwrap()
}

/// A test that flent itself might have run: a step of 0.2 s, one second before the flows begin.
fn of_flent(series: &[(&str, f64)]) -> Value {
    let x: Vec<f64> = (0..60).map(|n| f64::from(n) * 0.2).collect();
    let values = |value: f64| x.iter().map(|x| (*x > 0.9).then_some(value)).collect::<Vec<_>>();
    let results: serde_json::Map<String, Value> =
        series.iter().map(|(name, value)| ((*name).to_owned(), json!(values(*value)))).collect();
    json!({
        "metadata": {"NAME": "a_test", "HOST": "server.example", "TITLE": "by the window", "STEP_SIZE": 0.2,
                     "TIME": "2026-11-21T08:15:00.250000Z", "T0": null, "FLENT_VERSION": "2.1.1", "LENGTH": 10},
        "version": 4, "x_values": x, "results": results, "raw_values": {},
    })
}

pub(super) fn flents_file_has_as_many_values_in_each_series_as_times_and_rates_in_mbit(journal: &mut dyn Journal) {
    chain(journal, &["a"]);
    let file = as_flent(journal, "a");
    assert_eq!((&file["version"], &file["metadata"]["NAME"]), (&json!(4), &json!("tcp_download")));
    assert_eq!(file["metadata"]["TIME"], "1970-01-01T00:00:01.000001Z");
    let x: Vec<f64> = file["x_values"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert!(x.windows(2).all(|pair| pair[0] <= pair[1]), "{x:?}");
    for (name, series) in file["results"].as_object().unwrap() {
        assert_eq!(series.as_array().unwrap().len(), x.len(), "{name}");
    }
    assert_eq!(file["raw_values"]["TCP download"][0]["val"], 24.0);
    // Three bytes a microsecond, twice in a row.
    let rates: Vec<f64> =
        file["results"]["TCP download"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
    assert_eq!(rates, [24.0; 3]);
    let of_one: usize = ["current", "4x"]
        .iter()
        .map(|arm| file["results"][arm].as_array().unwrap().iter().filter(|v| v.is_number()).count())
        .sum();
    assert_eq!((of_one, &file["results"]["Ping (ms) ICMP"][0]), (3, &json!(31.0)));
}

pub(super) fn an_experiment_comes_back_from_flents_file_with_all_but_what_it_doesnt_draw(to: &mut dyn Journal) {
    let mut from = local();
    chain(&mut from.journal, &["a"]);
    let file = as_flent(&from.journal, "a");
    let imported = import_json(to, file.to_string().as_bytes()).unwrap();
    assert_eq!((imported.taken, imported.trials), (vec!["a".to_owned()], 3));
    assert_eq!(to.load("a").unwrap(), from.journal.load("a").unwrap());
    let (own, others) =
        (to.trials("a", WithSamples::Yes).unwrap(), from.journal.trials("a", WithSamples::Yes).unwrap());
    for (own, other) in own.iter().zip(&others) {
        assert_eq!((&own.spec, own.started_unix_us), (&other.spec, other.started_unix_us));
        let bare =
            |trial: &TrialRecord| TrialOutcome { sender: Vec::new(), receiver: Vec::new(), ..trial.outcome.clone() };
        assert_eq!(bare(own), bare(other));
        let drawn = |samples: &[Sample]| samples.iter().map(|s| (s.t_us, s.bytes, s.rtt)).collect::<Vec<_>>();
        let samples = |trial: &TrialRecord| match trial.outcome.receiver.len() {
            0 | 1 => drawn(&trial.outcome.sender),
            _ => drawn(&trial.outcome.receiver),
        };
        assert!(samples(own).len() > 1);
        assert_eq!(samples(own), samples(other));
    }
    assert_eq!(as_flent(to, "a"), file, "written again it is the same");
    let again = import_json(to, file.to_string().as_bytes()).unwrap();
    assert_eq!((again.taken.len(), again.known.len()), (0, 1));
    let whole = import_json(to, &exported(&from.journal, "a")[..]).unwrap();
    assert_eq!(whole.known, ["a"], "it is the same experiment");
}

pub(super) fn a_test_that_flent_ran_becomes_one_trial_of_its_rates_and_round_trips(to: &mut dyn Journal) {
    let file = of_flent(&[("TCP download", 80.0), ("Ping (ms) ICMP", 20.0), ("TCP download::tcp_cwnd", 9.0)]);
    let imported = import_json(to, file.to_string().as_bytes()).unwrap();
    let [id] = imported.taken.as_slice() else { panic!("{imported:?}") };
    let experiment = to.load(id).unwrap();
    assert_eq!((experiment.target.as_str(), experiment.tunnel.as_str()), ("server.example", "live"));
    assert_eq!(
        (experiment.comment.as_str(), experiment.started_unix_us),
        ("a_test: by the window", 1_795_248_900_250_000)
    );
    let [trial] = to.trials(id, WithSamples::Yes).unwrap().try_into().unwrap();
    // Eleven seconds, ten megabytes a second.
    assert_eq!((trial.outcome.elapsed_us, trial.outcome.bytes), (11_000_000, 110_000_000));
    assert_eq!((trial.outcome.goodput_bps(), trial.outcome.receiver[5].rtt), (80e6, 20_000));
    assert_eq!(trial.outcome.receiver.len(), 56);
    assert_eq!(import_json(to, file.to_string().as_bytes()).unwrap().known.len(), 1);

    // Several flows are summed, both directions are a duplex.
    let both = of_flent(&[
        ("TCP download BE", 30.0),
        ("TCP download BK", 10.0),
        ("TCP download avg", 20.0),
        ("TCP upload", 10.0),
        ("Ping (ms) avg", 5.0),
    ]);
    let imported = import_json(to, both.to_string().as_bytes()).unwrap();
    assert!(imported.taken.is_empty(), "the same time, host and title: {imported:?}");
    let mut both = both;
    both["metadata"]["TITLE"] = json!("both ways");
    let imported = import_json(to, both.to_string().as_bytes()).unwrap();
    let [trial] = to.trials(&imported.taken[0], WithSamples::No).unwrap().try_into().unwrap();
    assert_eq!(trial.outcome.measures.flows_bps, [40e6, 10e6]);
    assert_eq!(trial.outcome.figure(trial.spec.workload.scale()), Some(20e6));
}

pub(super) fn files_of_flent_that_make_no_sense_are_refused_with_the_reason(to: &mut dyn Journal) {
    let good = of_flent(&[("TCP download", 80.0)]);
    let mut from = local();
    chain(&mut from.journal, &["a"]);
    let of_ours = as_flent(&from.journal, "a");
    for (file, pointer, value, wanted) in [
        (&good, "/results/TCP download/30", json!(-1.0), "is invalid"),
        (&good, "/results/TCP download/30", json!(1e300), "is invalid"),
        (&good, "/results/TCP download", json!([1.0]), "hasn't as many values"),
        (&good, "/results", json!({"Ping (ms) ICMP": vec![1.0; 60]}), "no series"),
        (&good, "/x_values/3", json!(1e300), "its times"),
        (&good, "/x_values/30", json!(0.0), "go backwards"),
        (&good, "/metadata/TIME", json!("yesterday"), "is no time"),
        (&good, "/metadata/TIME", json!(null), "when it was"),
        (&good, "/results/TCP download", json!("x"), "invalid type"),
        (&of_ours, "/metadata/WINDTUNNEL/schema_version", json!(9), "schema_version is 9"),
        (&of_ours, "/metadata/WINDTUNNEL/trials/2/points", json!(u64::MAX), "less points"),
        (&of_ours, "/metadata/WINDTUNNEL/trials/0/trial/outcome/sender", json!([]), "first sample"),
        (&of_ours, "/metadata/WINDTUNNEL/experiment", json!(7), "invalid type"),
    ] {
        let mut file = file.clone();
        *file.pointer_mut(pointer).unwrap() = value;
        let error = import_json(to, file.to_string().as_bytes()).unwrap_err();
        assert!(error.to_string().contains(wanted), "{pointer}: {error}");
    }
    assert_eq!(to.list(&Filter::default()).unwrap().len(), 0);
}
