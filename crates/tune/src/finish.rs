//! The end of an experiment: the verdict in the journal, then the report.

use super::answer::TuneAnswer;
use super::history::History;
use super::measure::MeasuredExperiment;
use super::report::ReportedExperiment;
use wt_experiment::StopReason;
use wt_journal::{State, StoredExperiment};
use wt_problem::Problem;

/// Journals the verdict and reports.
///
/// # Errors
/// A [`Problem`] when something can't be written; what was measured is in the journal all the same.
pub(crate) fn conclude(mut measured: MeasuredExperiment, history: Option<&History>) -> Result<TuneAnswer, Problem> {
    let stored = close(&mut measured, history)?;
    let MeasuredExperiment { experiment, records, .. } = &measured;
    let ended =
        ReportedExperiment { stored: &stored, is_running: false, continued_by: None, records, experiment, history };
    Ok(TuneAnswer::Report(Box::new(ended.report())))
}

/// Journals the verdict.
///
/// # Errors
/// A [`Problem`] that names the journal.
pub(crate) fn close(measured: &mut MeasuredExperiment, history: Option<&History>) -> Result<StoredExperiment, Problem> {
    let MeasuredExperiment { notebook, experiment, records } = measured;
    let stored = notebook.stored()?;
    let told =
        ReportedExperiment { stored: &stored, is_running: false, continued_by: None, records, experiment, history };
    let verdict = serde_json::to_value(told.report().verdict).map_err(|error| Problem::internal(error.to_string()))?;
    let by_user = experiment.stop_reason() == Some(StopReason::User);
    notebook.end(if by_user { State::Stopped } else { State::Finished }, &verdict)?;
    Ok(stored)
}
