//! The end of an experiment: the verdict in the journal, then the report.

use super::TuneArgs;
use super::notebook::Notebook;
use crate::commands::report::Told;
use crate::edge::{Failure, Outcome};
use wt_experiment::{Experiment, StopReason};
use wt_journal::State;
use wt_trial::TrialRecord;

/// Journals the verdict, writes the reports that were asked for, and answers.
///
/// # Errors
/// A [`Failure`] when something can't be written; what was measured is in the journal all the same.
pub(super) fn conclude(
    args: &TuneArgs,
    mut notebook: Notebook,
    experiment: &Experiment,
    records: &[TrialRecord],
) -> Outcome {
    let stored = notebook.stored()?;
    let told = Told { stored: &stored, records, experiment, history: None };
    let verdict = serde_json::to_value(told.report().verdict).map_err(|error| Failure::ours(error.to_string()))?;
    let by_user = experiment.stop_reason() == Some(StopReason::User);
    notebook.end(if by_user { State::Stopped } else { State::Finished }, &verdict)?;
    told.give(&args.forms, args.forms.json || args.json_stream)
}
