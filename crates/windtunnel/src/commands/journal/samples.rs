//! `windtunnel journal samples`: what TCP said over time, trial by trial, on one axis.

use super::failure;
use crate::commands::samples::columns;
use crate::edge::{Exit, Failure, Outcome, say};
use serde_json::{Value, json};
use std::path::PathBuf;
use wt_journal::{Journal as _, JournalError, SqliteJournal, StoredExperiment, TrialId, WithSamples};
use wt_trial::{Sample, TrialRecord};

/// So many samples at most; trials beyond that are left out, and counted.
const MOST: usize = 1_000_000;

/// All that is told.
#[derive(Default)]
struct Told {
    trials: Vec<Value>,
    samples: Vec<Sample>,
    begun_unix_us: Option<i64>,
    left_out: usize,
}

/// Runs the command; `only` is one trial's number.
///
/// # Errors
/// A usage failure where there is no such experiment or trial.
pub(super) fn samples(journal: &SqliteJournal, key: &str, only: Option<TrialId>, json: bool) -> Outcome {
    let found = journal.load(key).map_err(|error| failure(&error))?;
    let mut told = Told::default();
    let mut done = false;
    let mut each = |trial: TrialRecord| {
        if only.is_none_or(|only| only == trial.id) {
            told.add(trial);
        }
        done = only.is_some();
        // There is no other way to say that this is enough.
        if done { Err(JournalError::Empty { path: PathBuf::new() }) } else { Ok(()) }
    };
    let read = journal.for_each_trial_from(&found.id, only.unwrap_or(TrialId::MIN), WithSamples::Yes, &mut each);
    match read {
        Err(error) if !done => return Err(failure(&error)),
        _ => {}
    }
    if let (Some(only), true) = (only, told.trials.is_empty()) {
        return Err(Failure::usage(format!("{} has no trial {only}", found.id))
            .hint(format!("windtunnel journal samples {} lists its trials", found.id)));
    }
    if json {
        say!("{}", told.json(&found));
    } else {
        told.show(&found);
    }
    Ok(Exit::Done)
}

impl Told {
    fn add(&mut self, trial: TrialRecord) {
        let outcome = trial.outcome;
        // The sender knows more; on the real path a download has the receiver's only.
        let (side, mut samples) =
            if outcome.sender.is_empty() { ("receiver", outcome.receiver) } else { ("sender", outcome.sender) };
        if self.samples.len() + samples.len() > MOST {
            self.left_out += 1;
            return;
        }
        let begun = *self.begun_unix_us.get_or_insert(trial.started_unix_us);
        let offset = u64::try_from(trial.started_unix_us.saturating_sub(begun)).unwrap_or(0);
        samples.iter_mut().for_each(|sample| sample.t_us = sample.t_us.saturating_add(offset));
        let goodput =
            if outcome.elapsed_us == 0 { 0.0 } else { outcome.bytes as f64 * 8e6 / outcome.elapsed_us as f64 };
        self.trials.push(json!({
            "id": trial.id, "phase": trial.spec.phase, "round": trial.spec.round, "order": trial.spec.order,
            "arm": trial.spec.arm, "settings": trial.spec.settings, "status": outcome.status, "goodput_bps": goodput,
            "begin_us": offset, "elapsed_us": outcome.elapsed_us, "side": side,
            "from": self.samples.len(), "count": samples.len(),
        }));
        self.samples.extend(samples);
    }

    fn json(&self, found: &StoredExperiment) -> Value {
        let labels: Vec<&str> = found.arms.iter().map(|arm| arm.label.as_str()).collect();
        json!({
            "schema_version": 1, "id": found.id, "target": found.target, "arms": labels, "trials": self.trials,
            "trials_left_out": self.left_out, "samples": columns(&self.samples),
        })
    }

    fn show(&self, found: &StoredExperiment) {
        say!("{}: {} trials with {} samples", found.id, self.trials.len(), self.samples.len());
        say!("{:>8} {:>6} {:>8} {:>9} {:>12}  settings", "trial", "round", "samples", "begin", "Mbit/s");
        for trial in &self.trials {
            let figure = |name: &str| trial[name].as_f64().unwrap_or(0.0);
            let settings = trial["settings"].as_object().into_iter().flatten();
            let settings: Vec<String> = settings.map(|(knob, level)| format!("{knob}={level}")).collect();
            say!(
                "{:>8} {:>6} {:>8} {:>7.1} s {:>12.3}  {}",
                trial["id"].to_string(),
                trial["round"].to_string(),
                trial["count"].to_string(),
                figure("begin_us") / 1e6,
                figure("goodput_bps") / 1e6,
                settings.join(" ")
            );
        }
        if self.left_out > 0 {
            say!("{} trials more are left out; name one with --trial", self.left_out);
        }
    }
}
