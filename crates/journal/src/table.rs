use crate::columns::phase_name;
use crate::{Journal as _, JournalError, SqliteJournal, StoredExperiment, WithSamples};
use serde::Deserialize as _;
use serde_json::Value;
use std::collections::HashMap;
use std::io::Write;
use std::rc::Rc;
use wt_parquet::{Cell, ColumnKind, ParquetTable};
use wt_trial::Sample;
use wt_units::{Knob, Level, Settings};

/// Texts of settings that are kept read: an experiment has few, and imports may have any number.
const MOST_KEPT: usize = 4_096;

/// What the rows of a Parquet file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParquetRows {
    /// A row for each trial, with the columns of the view `v_trials`.
    Trials,
    /// A row for each sample of a trial.
    Samples,
}

/// Columns of trials before those of the knobs.
const TRIALS: [(&str, ColumnKind); 23] = [
    ("experiment", ColumnKind::Text),
    ("site", ColumnKind::Text),
    ("target", ColumnKind::Text),
    ("tunnel", ColumnKind::Text),
    ("trial", ColumnKind::Integer),
    ("phase", ColumnKind::Text),
    ("round", ColumnKind::Integer),
    ("ord", ColumnKind::Integer),
    ("arm", ColumnKind::Integer),
    ("label", ColumnKind::Text),
    ("workload", ColumnKind::Text),
    ("direction", ColumnKind::Text),
    ("status", ColumnKind::Text),
    ("started", ColumnKind::Moment),
    ("started_unix_us", ColumnKind::Integer),
    ("elapsed_s", ColumnKind::Real),
    ("bytes", ColumnKind::Integer),
    ("goodput_bps", ColumnKind::Real),
    ("score", ColumnKind::Real),
    ("rtt_us", ColumnKind::Integer),
    ("min_rtt_us", ColumnKind::Integer),
    ("retransmits", ColumnKind::Integer),
    ("server", ColumnKind::Text),
];

/// Columns of samples.
const SAMPLES: [(&str, ColumnKind); 16] = [
    ("experiment", ColumnKind::Text),
    ("trial", ColumnKind::Integer),
    ("round", ColumnKind::Integer),
    ("ord", ColumnKind::Integer),
    ("arm", ColumnKind::Integer),
    ("label", ColumnKind::Text),
    ("side", ColumnKind::Text),
    ("t_us", ColumnKind::Unsigned),
    ("bytes", ColumnKind::Unsigned),
    ("snd_cwnd", ColumnKind::Unsigned),
    ("ssthresh", ColumnKind::Unsigned),
    ("rtt", ColumnKind::Unsigned),
    ("min_rtt", ColumnKind::Unsigned),
    ("retransmits", ColumnKind::Unsigned),
    ("snd_wnd", ColumnKind::Unsigned),
    ("delivery_rate_bps", ColumnKind::Unsigned),
];

/// Writes the trials of an experiment, or their samples, as Parquet. Memory is bounded: a group of rows at a time.
///
/// # Errors
/// Those of [`Journal::load`](crate::Journal::load), [`JournalError::Damaged`] and [`JournalError::Export`].
pub fn export_parquet(
    journal: &SqliteJournal,
    key: &str,
    rows: ParquetRows,
    out: impl Write + Send,
) -> Result<(), JournalError> {
    let experiment = journal.load(key)?;
    match rows {
        ParquetRows::Trials => trials(journal, &experiment, out),
        ParquetRows::Samples => samples(journal, &experiment, out),
    }
}

/// The figures of what was observed that have columns.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Figures {
    #[serde(deserialize_with = "number")]
    rtt_us: Option<i64>,
    #[serde(deserialize_with = "number")]
    min_rtt_us: Option<i64>,
    #[serde(deserialize_with = "number")]
    retransmits: Option<i64>,
    /// The server, where there are several.
    #[serde(deserialize_with = "word")]
    target: Option<String>,
}

/// The words of a workload that have columns.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
struct Words {
    #[serde(deserialize_with = "word")]
    kind: Option<String>,
    #[serde(deserialize_with = "word")]
    direction: Option<String>,
}

/// Whatever else an import has put there isn't known.
fn number<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<i64>, D::Error> {
    Ok(Value::deserialize(from)?.as_i64())
}

/// The same of a text.
fn word<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(if let Value::String(word) = Value::deserialize(from)? { Some(word) } else { None })
}

/// What was read of texts that come again and again: of settings the word of each knob's level, in the order of the knobs.
#[derive(Debug, Default)]
struct ParsedTexts {
    settings: HashMap<String, Rc<Vec<Option<LevelCell>>>>,
    workloads: HashMap<String, Rc<Words>>,
}

/// A level as a cell.
#[derive(Debug)]
struct LevelCell {
    text: String,
    number: Option<u64>,
}

/// The value of a text: read once, or as it was read before.
fn kept<T>(
    known: &mut HashMap<String, Rc<T>>,
    text: &str,
    read: impl FnOnce(&str) -> Result<T, serde_json::Error>,
) -> Result<Rc<T>, serde_json::Error> {
    if let Some(found) = known.get(text) {
        return Ok(Rc::clone(found));
    }
    if known.len() >= MOST_KEPT {
        known.clear();
    }
    let found = Rc::new(read(text)?);
    known.insert(text.to_owned(), Rc::clone(&found));
    Ok(found)
}

fn levels(text: &str) -> Result<Vec<Option<LevelCell>>, serde_json::Error> {
    let settings: Settings = serde_json::from_str(text)?;
    let cell = |level: &Level| {
        let number = if let Level::Number(number) = level { Some(*number) } else { None };
        LevelCell { text: level.to_string(), number }
    };
    Ok(Knob::all().into_iter().map(|knob| settings.get(knob).map(cell)).collect())
}

fn trials(journal: &SqliteJournal, experiment: &StoredExperiment, out: impl Write + Send) -> Result<(), JournalError> {
    let column = |knob: &Knob| knob.name().replace('-', "_");
    let granted_kind = |knob: &Knob| if knob.is_ordered() { ColumnKind::Integer } else { ColumnKind::Text };
    let knobs = Knob::all();
    let columns = TRIALS.iter().map(|(name, kind)| ((*name).to_owned(), *kind));
    let columns = columns.chain(knobs.iter().map(|knob| (format!("asked_{}", column(knob)), ColumnKind::Text)));
    let columns = columns.chain(knobs.iter().map(|knob| (format!("granted_{}", column(knob)), granted_kind(knob))));
    let mut table = ParquetTable::new(out, columns).map_err(JournalError::Export)?;
    let config = serde_json::to_value(&experiment.config).unwrap_or_default();
    let site = config["host"]["name"].as_str();
    let mut known = ParsedTexts::default();
    journal.for_each_table_trial(&experiment.id, &mut |trial| {
        let row = trial.row;
        let bad = |what: &str, error: &serde_json::Error| JournalError::Damaged {
            path: journal.path().to_owned(),
            what: format!("trial {}: {what}: {error}", row.id),
        };
        let asked = kept(&mut known.settings, trial.asked, levels).map_err(|e| bad("settings", &e))?;
        let granted = kept(&mut known.settings, trial.granted, levels).map_err(|e| bad("granted settings", &e))?;
        let workload = kept(&mut known.workloads, trial.workload, |text| serde_json::from_str::<Words>(text))
            .map_err(|e| bad("workload", &e))?;
        let Figures { rtt_us, min_rtt_us, retransmits, target: server } =
            serde_json::from_str(trial.observed).map_err(|e| bad("observed", &e))?;
        let label = experiment.arms.get(row.arm).map(|arm| arm.label.as_str());
        let own = [
            Cell::Text(&experiment.id),
            site.into(),
            Cell::Text(&experiment.target),
            Cell::Text(&experiment.tunnel),
            Cell::Integer(row.id),
            Cell::Text(phase_name(row.phase)),
            Cell::Integer(row.round.into()),
            Cell::Integer(row.order.into()),
            whole(row.arm as u64),
            label.into(),
            workload.kind.as_deref().into(),
            workload.direction.as_deref().into(),
            Cell::Text(row.status.name()),
            if row.started_unix_us < 0 { Cell::Missing } else { Cell::Integer(row.started_unix_us) },
            Cell::Integer(row.started_unix_us),
            Cell::Real(row.elapsed_us as f64 / 1e6),
            whole(row.bytes),
            Cell::Real(row.goodput_bps()),
            row.score.into(),
            rtt_us.into(),
            min_rtt_us.into(),
            retransmits.into(),
            Cell::Text(server.as_ref().unwrap_or(&experiment.target)),
        ];
        let asked = asked.iter().map(|level| Cell::from(level.as_ref().map(|level| level.text.as_str())));
        let granted = granted.iter().zip(&knobs).map(|(level, knob)| match level {
            Some(level) if knob.is_ordered() => level.number.map_or(Cell::Missing, whole),
            Some(level) => Cell::Text(&level.text),
            None => Cell::Missing,
        });
        table.row(own.into_iter().chain(asked).chain(granted)).map_err(JournalError::Export)
    })?;
    table.finish().map(drop).map_err(JournalError::Export)
}

fn samples(journal: &SqliteJournal, experiment: &StoredExperiment, out: impl Write + Send) -> Result<(), JournalError> {
    let mut table = ParquetTable::new(out, SAMPLES).map_err(JournalError::Export)?;
    journal.for_each_trial(&experiment.id, WithSamples::Yes, &mut |trial| {
        let label = experiment.arms.get(trial.spec.arm).map(|arm| arm.label.as_str());
        for (side, samples) in [("sender", &trial.outcome.sender), ("receiver", &trial.outcome.receiver)] {
            for sample in samples {
                let head = [
                    Cell::Text(&experiment.id),
                    Cell::Integer(trial.id),
                    Cell::Integer(trial.spec.round.into()),
                    Cell::Integer(trial.spec.order.into()),
                    whole(trial.spec.arm as u64),
                    label.into(),
                    Cell::Text(side),
                ];
                let fields = fields(sample).map(Cell::Unsigned);
                table.row(head.into_iter().chain(fields)).map_err(JournalError::Export)?;
            }
        }
        Ok(())
    })?;
    table.finish().map(drop).map_err(JournalError::Export)
}

fn fields(sample: &Sample) -> [u64; 9] {
    let Sample { t_us, bytes, snd_cwnd, ssthresh, rtt, min_rtt, retransmits, snd_wnd, delivery_rate_bps } = *sample;
    [t_us, bytes, snd_cwnd, ssthresh, rtt, min_rtt, retransmits, snd_wnd, delivery_rate_bps]
}

/// As the database has it, which knows no larger number.
fn whole<'a>(number: u64) -> Cell<'a> {
    Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}
