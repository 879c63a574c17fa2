//! Words, numbers and JSON in columns: the same in every store.

use crate::{JournalError, State};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wt_trial::{Phase, Status};

pub use crate::id::fault as name_fault;

const PHASES: [Phase; 5] = [Phase::Pilot, Phase::WarmUp, Phase::Round, Phase::Plateau, Phase::Delay];
const STATUSES: [Status; 6] =
    [Status::Running, Status::Completed, Status::Incomplete, Status::Failed, Status::Aborted, Status::Invalid];

/// The word of a phase in columns and exports.
#[must_use]
pub fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pilot => "pilot",
        Phase::WarmUp => "warm-up",
        Phase::Round => "round",
        Phase::Plateau => "plateau",
        Phase::Delay => "delay",
    }
}

/// The phase of this word.
///
/// # Errors
/// What is wrong with the column.
pub fn phase(word: &str) -> Result<Phase, String> {
    PHASES.into_iter().find(|phase| phase_name(*phase) == word).ok_or_else(|| unknown("phase", word))
}

/// The status of this word.
///
/// # Errors
/// What is wrong with the column.
pub fn status(word: &str) -> Result<Status, String> {
    STATUSES.into_iter().find(|status| status.name() == word).ok_or_else(|| unknown("status", word))
}

/// The state of this word.
///
/// # Errors
/// What is wrong with the column.
pub fn state(word: &str) -> Result<State, String> {
    State::ALL.into_iter().find(|state| state.name() == word).ok_or_else(|| unknown("state", word))
}

/// A value as a column of JSON; `what` names it.
///
/// # Errors
/// [`JournalError::Unwritable`].
pub fn to_json(what: &'static str, value: &impl Serialize) -> Result<String, JournalError> {
    serde_json::to_string(value).map_err(|e| JournalError::Unwritable { what, why: e.to_string() })
}

/// A column of JSON as a value; `what` names it.
///
/// # Errors
/// What is wrong with the column.
pub fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, String> {
    serde_json::from_str(text).map_err(|e| format!("{what}: {e}"))
}

/// Columns have no unsigned 64-bit numbers; nothing that is measured comes near 2⁶³.
#[must_use]
pub fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that was never negative when it was written.
#[must_use]
pub fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn unknown(what: &str, word: &str) -> String {
    format!("unknown {what} \"{word}\"")
}
