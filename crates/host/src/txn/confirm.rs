use super::error::TxnError;
use super::held::lock_here;
use super::history::drift;
use super::recovery::{back_to_applied, recover_locked, waiting};
use super::revert::enter;
use super::store::Store;
use crate::change::{Checkpoint, CheckpointId, Phase, Risk, State};
use crate::persist;
use crate::read::Survey;
use crate::system::System;
use serde::Serialize;
use utoipa::ToSchema;
use wt_sys::SysError;

/// What makes a change stay.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Confirmed)]
pub struct ConfirmOutcome {
    /// The version of this form.
    pub schema_version: u32,
    /// Which change it is.
    pub id: CheckpointId,
    /// Files that were written.
    pub files: Vec<String>,
    /// What doesn't stay, and why.
    pub notes: Vec<Risk>,
}

/// Makes the change that waits for it stay: writes one drop-in for kernel settings, and one for the network manager
/// that was found. Either all files are written, or none.
///
/// # Errors
/// [`TxnError`]; unless it came too late, the change still waits afterwards.
pub fn confirm(system: &mut dyn System, store: &Store, id: Option<CheckpointId>) -> Result<ConfirmOutcome, TxnError> {
    let _lock = lock_here(system, store)?;
    let reverted = recover_locked(system, store)?;
    let Some((checkpoint, mut state)) = waiting(system, store)? else {
        let late = reverted.iter().rfind(|one| !matches!(one.phase, Phase::Applied | Phase::Confirmed));
        return Err(match late {
            Some(late) if id.is_none_or(|id| id == late.checkpoint) => TxnError::TooLate { id: late.checkpoint },
            _ => nothing_pending(system, store, id)?,
        });
    };
    if let Some(id) = id.filter(|id| *id != checkpoint.id) {
        return Err(nothing_pending(system, store, Some(id))?);
    }
    if state.is_expired(system.now().boottime_ns) {
        return Err(TxnError::Expired { id: checkpoint.id, errors: state.errors });
    }
    let survey = Survey::take(system)?;
    check_in_force(&checkpoint, &survey)?;
    confirm_locked(system, store, &checkpoint, &mut state, &survey)
}

/// Why there is nothing to confirm: because it was put back, if so.
fn nothing_pending(system: &mut dyn System, store: &Store, id: Option<CheckpointId>) -> Result<TxnError, TxnError> {
    let found = match id {
        Some(id) => Some((id, store.read_state(system, id)?)),
        None => last_begun(system, store)?,
    };
    Ok(match found {
        Some((id, state)) if state.phase == Phase::Reverted && state.by_guard => TxnError::TooLate { id },
        _ => TxnError::NothingPending,
    })
}

fn last_begun(system: &mut dyn System, store: &Store) -> Result<Option<(CheckpointId, State)>, TxnError> {
    for id in store.ids(system)?.into_iter().rev() {
        if let Some(state) = store.begun(system, id)? {
            return Ok(Some((id, state)));
        }
    }
    Ok(None)
}

/// The same by somebody who has the lock.
pub(crate) fn confirm_locked(
    system: &mut dyn System,
    store: &Store,
    checkpoint: &Checkpoint,
    state: &mut State,
    survey: &Survey,
) -> Result<ConfirmOutcome, TxnError> {
    let persisted = persist::files(system, checkpoint, survey)?;
    state.files.clone_from(&persisted.files);
    let stored = enter(system, store, checkpoint, state, Phase::Confirming);
    let result = stored.map_err(failure).and_then(|()| persist::put_in_place(system, &state.files));
    let result = result.and_then(|()| enter(system, store, checkpoint, state, Phase::Confirmed).map_err(failure));
    if let Err(source) = result {
        back_to_applied(system, store, checkpoint, state);
        return Err(TxnError::NotPersistent { source });
    }
    let files = state.files.iter().map(|file| file.path.display().to_string()).collect();
    Ok(ConfirmOutcome { schema_version: 1, id: checkpoint.id, files, notes: persisted.notes })
}

/// Only what is in force can stay.
fn check_in_force(checkpoint: &Checkpoint, survey: &Survey) -> Result<(), TxnError> {
    let drifted = drift(checkpoint, &survey.snapshot, survey.kernel(), &survey.identity);
    let what: Vec<String> = drifted.iter().map(ToString::to_string).collect();
    if what.is_empty() { Ok(()) } else { Err(TxnError::Drifted { id: checkpoint.id, what }) }
}

fn failure(why: String) -> SysError {
    SysError { doing: "store that the change is confirmed".to_owned(), source: std::io::Error::other(why) }
}
