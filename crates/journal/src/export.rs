use crate::{ExperimentConfig, Journal, JournalError, StoredExperiment, WithSamples};
use std::io::Write;
use wt_trial::TrialRecord;

/// Version of the exported JSON.
pub(crate) const SCHEMA_VERSION: u32 = 1;

/// Writes an experiment with all its trials as one JSON object: `schema_version`, `experiment`, `trials`.
///
/// # Errors
/// Those of [`Journal::load`] and [`JournalError::Export`].
pub fn export_json(
    journal: &dyn Journal,
    key: &str,
    samples: WithSamples,
    out: &mut dyn Write,
) -> Result<(), JournalError> {
    let experiment = journal.load(key)?;
    write!(out, "{{\"schema_version\":{SCHEMA_VERSION},\"experiment\":").map_err(JournalError::Export)?;
    serde_json::to_writer(&mut *out, &experiment).map_err(|e| JournalError::Export(e.into()))?;
    out.write_all(b",\"trials\":[").map_err(JournalError::Export)?;
    let mut first = true;
    journal.for_each_trial(&experiment.id, samples, &mut |trial| {
        out.write_all(if first { b"\n" } else { b",\n" }).map_err(JournalError::Export)?;
        first = false;
        serde_json::to_writer(&mut *out, &trial).map_err(|e| JournalError::Export(e.into()))
    })?;
    out.write_all(b"\n]}\n").map_err(JournalError::Export)
}

const COLUMNS: [&str; 21] = [
    "trial",
    "phase",
    "round",
    "order",
    "arm",
    "label",
    "settings",
    "granted",
    "status",
    "started_unix_us",
    "elapsed_us",
    "bytes",
    "goodput_bps",
    "retransmits",
    "min_rtt_us",
    "rwnd_limited_us",
    "notes",
    "server",
    "device",
    "connect_us",
    "in_force",
];

/// Writes the trials of an experiment as CSV with a header line.
///
/// # Errors
/// Those of [`Journal::load`] and [`JournalError::Export`].
pub fn export_csv(journal: &dyn Journal, key: &str, out: &mut dyn Write) -> Result<(), JournalError> {
    let experiment = journal.load(key)?;
    let mut csv = csv::Writer::from_writer(out);
    csv.write_record(COLUMNS).map_err(failed)?;
    let in_force = in_force(&experiment);
    journal.for_each_trial(&experiment.id, WithSamples::Yes, &mut |trial| {
        csv.write_record(record(&trial, &experiment, &in_force)).map_err(failed)
    })?;
    csv.flush().map_err(JournalError::Export)
}

/// The kind of what the system said is kept: a closed pipe is none of our troubles.
fn failed(error: csv::Error) -> JournalError {
    JournalError::Export(match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => std::io::Error::other(format!("{kind:?}")),
    })
}

/// What the kernel did with every connection of logged tests: `name=value; …`.
fn in_force(experiment: &StoredExperiment) -> String {
    let ExperimentConfig::Tests(tests) = &experiment.config else { return String::new() };
    let each =
        tests.test.iter().flatten().map(|(name, value)| format!("{name}={}", value.as_str().unwrap_or_default()));
    each.collect::<Vec<_>>().join("; ")
}

fn record(trial: &TrialRecord, experiment: &StoredExperiment, in_force: &str) -> [String; COLUMNS.len()] {
    let (spec, outcome) = (&trial.spec, &trial.outcome);
    let label = experiment.arms.get(spec.arm).map_or("", |arm| arm.label.as_str());
    let device = outcome.observed.link.as_ref().and_then(|link| link.get("device")?.as_str());
    let last = outcome.sender.last().copied().unwrap_or_default();
    [
        trial.id.to_string(),
        crate::columns::phase_name(spec.phase).to_owned(),
        spec.round.to_string(),
        spec.order.to_string(),
        spec.arm.to_string(),
        label.to_owned(),
        spec.settings.to_string(),
        outcome.granted.to_string(),
        outcome.status.name().to_owned(),
        trial.started_unix_us.to_string(),
        outcome.elapsed_us.to_string(),
        outcome.bytes.to_string(),
        format!("{:.0}", outcome.goodput_bps()),
        // The samples are of the sender, which may be the other end.
        outcome.observed.retransmits.unwrap_or(last.retransmits).to_string(),
        outcome.observed.min_rtt_us.unwrap_or(last.min_rtt).to_string(),
        outcome.limits.rwnd_limited_us.to_string(),
        outcome.notes.join("; "),
        outcome.observed.target.as_ref().unwrap_or(&experiment.target).clone(),
        device.unwrap_or_default().to_owned(),
        outcome.observed.connect_us.map_or_else(String::new, |us| us.to_string()),
        in_force.to_owned(),
    ]
}
