use crate::export::SCHEMA_VERSION;
use crate::from_flent::{FlentFile, Metadata};
use crate::id::{fault, is_time};
use crate::{Filter, Journal, JournalError, State, StoredExperiment, WithSamples};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::Read;
use wt_trial::TrialRecord;

/// An experiment as [`export_json`](crate::export_json) writes it, or a data file of flent: what of one is there isn't of the other.
#[derive(Debug, Deserialize)]
struct Object {
    schema_version: Option<u32>,
    experiment: Option<StoredExperiment>,
    trials: Option<Vec<TrialRecord>>,
    metadata: Option<Metadata>,
    x_values: Option<Vec<f64>>,
    results: Option<BTreeMap<String, Vec<Option<f64>>>>,
}

impl Object {
    /// The experiment and its trials, or what is wrong.
    fn experiment(self) -> Result<(StoredExperiment, Vec<TrialRecord>), String> {
        match self {
            Self { metadata: Some(metadata), x_values: Some(x), results: Some(results), .. } => {
                FlentFile { metadata, x, results }.experiment()
            }
            Self { schema_version: Some(version), experiment: Some(experiment), trials: Some(trials), .. } => {
                if version == SCHEMA_VERSION {
                    Ok((experiment, trials))
                } else {
                    Err(format!("its schema_version is {version}, and this program reads {SCHEMA_VERSION}"))
                }
            }
            Self { schema_version: Some(_), experiment: None, .. } => Err("it has no experiment".to_owned()),
            Self { schema_version: Some(_), .. } => Err("it has no trials".to_owned()),
            _ => Err("it has neither a schema_version nor flent's metadata, x_values and results".to_owned()),
        }
    }
}

/// What an import did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImportOutcome {
    /// Experiments that were taken in, by name.
    pub taken: Vec<String>,
    /// Their trials.
    pub trials: u64,
    /// Experiments that were here already, and the same.
    pub known: Vec<String>,
    /// Experiments that weren't taken, and why.
    pub refused: Vec<(String, String)>,
}

/// An import that ended early.
#[derive(Debug, thiserror::Error)]
#[error("{error}")]
pub struct ImportError {
    /// Why.
    pub error: JournalError,
    /// What was done before, and stays.
    pub before: Box<ImportOutcome>,
}

impl ImportOutcome {
    fn take(
        &mut self,
        journal: &mut dyn Journal,
        experiment: &StoredExperiment,
        trials: &[TrialRecord],
    ) -> Result<(), JournalError> {
        let id = experiment.id.clone();
        if let Some(why) = fault(&id) {
            self.refused.push((id, why.to_owned()));
            return Ok(());
        }
        if experiment.state == State::Running {
            self.refused.push((id, "it is still under way there".to_owned()));
            return Ok(());
        }
        if let Some(trial) = trials.iter().find(|trial| trial.spec.arm >= experiment.arms.len().max(1)) {
            self.refused.push((id, format!("trial {} is of settings that it doesn't list", trial.id)));
            return Ok(());
        }
        if let Some(time) = times(experiment, trials).find(|time| !is_time(*time)) {
            self.refused.push((id, format!("{time} µs since 1970 is no time of the years 1 to 9999")));
            return Ok(());
        }
        match journal.load(&id) {
            Ok(own) if own.id == id => {
                if is_same(journal, &own, experiment, trials)? {
                    self.known.push(id);
                } else {
                    self.refused.push((id, "there is another one of that name here".to_owned()));
                }
                return Ok(());
            }
            Err(error @ JournalError::Damaged { .. }) => {
                self.refused.push((id, error.to_string()));
                return Ok(());
            }
            Ok(_) | Err(JournalError::NoSuchExperiment { .. } | JournalError::Ambiguous { .. }) => {}
            Err(error) => return Err(error),
        }
        match journal.import(experiment, trials) {
            Ok(()) => {
                self.taken.push(id);
                self.trials += trials.len() as u64;
                Ok(())
            }
            Err(JournalError::BadId { why, .. }) => {
                self.refused.push((id, why.to_owned()));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

/// When an experiment and its trials began, and when it ended, µs since 1970.
fn times(experiment: &StoredExperiment, trials: &[TrialRecord]) -> impl Iterator<Item = i64> {
    let begun = trials.iter().map(|trial| trial.started_unix_us);
    [experiment.started_unix_us].into_iter().chain(experiment.ended_unix_us).chain(begun)
}

/// Whether an experiment is the one that is here: it began at the same time on the same target, and has as many trials that
/// began when these did.
fn is_same(
    journal: &dyn Journal,
    own: &StoredExperiment,
    other: &StoredExperiment,
    trials: &[TrialRecord],
) -> Result<bool, JournalError> {
    let head = own.started_unix_us == other.started_unix_us && own.target == other.target && own.seed == other.seed;
    let rows = journal.rows(&own.id)?;
    let same = rows.len() == trials.len()
        && rows
            .iter()
            .zip(trials)
            .all(|(row, trial)| row.started_unix_us == trial.started_unix_us && row.bytes == trial.outcome.bytes);
    Ok(head && same)
}

/// Takes in experiments that [`export_json`](crate::export_json) has written, or data files of flent, one object or several after each
/// other. Each is taken as a whole or not at all, and none twice; trials get numbers of this journal.
///
/// Of flent's own files the rates of TCP and the round trips become one experiment of one trial; of those that
/// [`export_flent`](crate::export_flent) has written the whole experiment comes back, with the samples that were drawn.
///
/// # Errors
/// [`ImportError`] with [`JournalError::NotAnExport`] at the first object that is none, or with those of writing.
pub fn import_json(journal: &mut dyn Journal, input: impl Read) -> Result<ImportOutcome, ImportError> {
    let mut imported = ImportOutcome::default();
    match take_objects(journal, input, &mut imported) {
        Ok(()) => Ok(imported),
        Err(error) => Err(ImportError { error, before: Box::new(imported) }),
    }
}

fn take_objects(journal: &mut dyn Journal, input: impl Read, imported: &mut ImportOutcome) -> Result<(), JournalError> {
    for (number, object) in serde_json::Deserializer::from_reader(input).into_iter::<Object>().enumerate() {
        let not = |why: String| JournalError::NotAnExport { number: number + 1, why };
        let (experiment, trials) = object.map_err(|e| not(e.to_string()))?.experiment().map_err(not)?;
        imported.take(journal, &experiment, &trials)?;
    }
    if *imported == ImportOutcome::default() {
        return Err(JournalError::NotAnExport { number: 1, why: "there is nothing".to_owned() });
    }
    Ok(())
}

/// Takes in all experiments of another journal, which stays as it is. One that is damaged there is refused.
///
/// # Errors
/// [`ImportError`] with those of reading the other one and of writing this one.
pub fn import_journal(journal: &mut dyn Journal, other: &dyn Journal) -> Result<ImportOutcome, ImportError> {
    let mut imported = ImportOutcome::default();
    match take_all(journal, other, &mut imported) {
        Ok(()) => Ok(imported),
        Err(error) => Err(ImportError { error, before: Box::new(imported) }),
    }
}

fn take_all(journal: &mut dyn Journal, other: &dyn Journal, imported: &mut ImportOutcome) -> Result<(), JournalError> {
    let mut list = other.list(&Filter::default())?;
    // The oldest first, so that what continues another one comes after it.
    list.reverse();
    for summary in list {
        let read = other.load(&summary.id).and_then(|it| Ok((it, other.trials(&summary.id, WithSamples::Yes)?)));
        match read {
            Ok((experiment, trials)) => imported.take(journal, &experiment, &trials)?,
            // The others are taken all the same.
            Err(error @ JournalError::Damaged { .. }) => imported.refused.push((summary.id, error.to_string())),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
