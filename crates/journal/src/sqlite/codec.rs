use super::Trouble;
use crate::{JournalError, State};
use serde::Serialize;
use serde::de::DeserializeOwned;
use wt_trial::{Phase, Status};

const PHASES: [Phase; 5] = [Phase::Pilot, Phase::WarmUp, Phase::Round, Phase::Plateau, Phase::Delay];
const STATUSES: [Status; 6] =
    [Status::Running, Status::Completed, Status::Incomplete, Status::Failed, Status::Aborted, Status::Invalid];

/// The word of a phase in columns and exports.
pub(crate) fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Pilot => "pilot",
        Phase::WarmUp => "warm-up",
        Phase::Round => "round",
        Phase::Plateau => "plateau",
        Phase::Delay => "delay",
    }
}

pub(super) fn phase(word: &str) -> Result<Phase, Trouble> {
    PHASES.into_iter().find(|phase| phase_name(*phase) == word).ok_or_else(|| unknown("phase", word))
}

pub(super) fn status(word: &str) -> Result<Status, Trouble> {
    STATUSES.into_iter().find(|status| status.name() == word).ok_or_else(|| unknown("status", word))
}

pub(super) fn state(word: &str) -> Result<State, Trouble> {
    State::ALL.into_iter().find(|state| state.name() == word).ok_or_else(|| unknown("state", word))
}

pub(super) fn to_json(what: &'static str, value: &impl Serialize) -> Result<String, JournalError> {
    serde_json::to_string(value).map_err(|e| JournalError::Unwritable { what, why: e.to_string() })
}

pub(super) fn from_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Trouble> {
    serde_json::from_str(text).map_err(|e| Trouble::Senseless(format!("{what}: {e}")))
}

/// SQLite has no unsigned 64-bit numbers; nothing that is measured comes near 2⁶³.
pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A number that was never negative when it was written.
pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn unknown(what: &str, word: &str) -> Trouble {
    Trouble::Senseless(format!("unknown {what} \"{word}\""))
}
