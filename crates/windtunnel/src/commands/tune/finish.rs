//! The end of an experiment: the verdict in the journal, then the report.

use super::{Measured, TuneArgs};
use crate::commands::report::{History, Told};
use crate::edge::{Failure, Outcome};
use wt_experiment::StopReason;
use wt_journal::{State, StoredExperiment};

/// Journals the verdict, writes the reports that were asked for, and answers.
///
/// # Errors
/// A [`Failure`] when something can't be written; what was measured is in the journal all the same.
pub(super) fn conclude(args: &TuneArgs, mut measured: Measured, history: Option<&History>) -> Outcome {
    let stored = close(&mut measured, history)?;
    let Measured { experiment, records, .. } = &measured;
    Told { stored: &stored, records, experiment, history }.give(&args.forms, args.forms.json || args.json_stream)
}

/// Journals the verdict.
///
/// # Errors
/// A [`Failure`] that names the journal.
pub(super) fn close(measured: &mut Measured, history: Option<&History>) -> Result<StoredExperiment, Failure> {
    let Measured { notebook, experiment, records } = measured;
    let stored = notebook.stored()?;
    let told = Told { stored: &stored, records, experiment, history };
    let verdict = serde_json::to_value(told.report().verdict).map_err(|error| Failure::ours(error.to_string()))?;
    let by_user = experiment.stop_reason() == Some(StopReason::User);
    notebook.end(if by_user { State::Stopped } else { State::Finished }, &verdict)?;
    Ok(stored)
}
