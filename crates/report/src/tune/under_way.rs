//! What is said of an experiment that is still being measured: what is so until now, and nothing to type yet.

use super::TuneInputs;
use super::answer::{Answer, AnswerAction};
use crate::words;
use wt_units::counted;

/// What the journal calls the state of such an experiment.
pub(super) const RUNNING: &str = "running";

impl TuneInputs<'_> {
    /// `Under way since 2026-11-29 10:56 UTC, 4 rounds so far`.
    pub(super) fn so_far(&self) -> String {
        let since = words::date(self.run.started_unix_us);
        format!("Under way since {since}, {} so far", counted(self.assessment.rounds, "round"))
    }

    /// Makes of an answer that of an experiment under way. What is shown holds whenever one looks, but a change of the settings, or a second
    /// measurement on the same path, would disturb the trials that still run.
    pub(super) fn put_off(&self, answer: &mut Answer) {
        answer.steps.clear();
        // The undecided one begins so anyway.
        if answer.action != AnswerAction::Undecided {
            answer.what = format!("{}. {}", self.so_far(), answer.what);
        }
    }

    /// What to do next with it.
    pub(super) fn wait_for_it(&self) -> String {
        format!("It still runs; once it has ended: windtunnel report {}", self.id)
    }
}
