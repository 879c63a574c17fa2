use super::error::{StoreError, TxnError};
use super::guard::{Guard, GuardCommand};
use super::held::lock_here;
use super::recovery::recover_locked;
use super::revert::{enter, put_forward, revert};
use super::store::Store;
use crate::change::{Change, Checkpoint, CheckpointId, Phase, Place, RouteChange, State};
use crate::persist;
use crate::read::{KernelVersion, Values};
use crate::snapshot::Snapshot;
use crate::system::System;
use serde::Serialize;
use utoipa::ToSchema;

/// A change that was taken back.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Undone {
    /// The version of this form.
    pub schema_version: u32,
    /// Which.
    pub id: CheckpointId,
    /// Whether it had been confirmed.
    pub was_confirmed: bool,
    /// Whether everything is as it was.
    pub done: bool,
    /// What was put back, in our words.
    pub changes: Vec<String>,
    /// Routes that went or came with that.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteChange>,
    /// What was put back elsewhere, or is gone: devices that were renamed or removed meanwhile.
    pub notes: Vec<String>,
}

/// Takes a change back, the latest in force if none is named: files, kernel settings, devices, routes.
///
/// # Errors
/// [`TxnError`]. If something can't be put back, everything is put forward again: all of the old or all of the new.
pub fn undo(
    system: &mut dyn System,
    store: &Store,
    id: Option<CheckpointId>,
    guard: &GuardCommand,
) -> Result<Undone, TxnError> {
    if !store.is_there(system)? {
        return Err(id.map_or(TxnError::NothingToUndo, |id| StoreError::NoSuch(id).into()));
    }
    let _lock = lock_here(system, store)?;
    // One that is named is looked at as it is; recovery might put it back first, which is as well.
    let recovered = recover_locked(system, store)?;
    if let Some(done) =
        recovered.iter().rev().find(|done| id.is_none_or(|id| id == done.checkpoint) && done.phase == Phase::Reverted)
    {
        let checkpoint = store.read(system, done.checkpoint)?;
        return Ok(undone(system, &checkpoint, false, done.notes.clone()));
    }
    let (checkpoint, mut state) = match id {
        Some(id) => (store.read(system, id)?, store.read_state(system, id)?),
        None => latest(system, store)?.ok_or(TxnError::NothingToUndo)?,
    };
    check(system, store, &checkpoint, &state)?;
    let was_confirmed = state.phase == Phase::Confirmed;
    let before = state.clone();
    // An unconfirmed change has its guard; for a confirmed one, somebody must finish if this process ends half-way.
    let guards = if was_confirmed { watched(system, store, &checkpoint, &mut state, guard)? } else { Vec::new() };
    let result = revert(system, store, &checkpoint, &mut state, false);
    if let Err(errors) = result {
        let error = roll_forward(system, store, &checkpoint, &before, errors);
        drop(guards);
        return Err(error);
    }
    drop(guards);
    Ok(undone(system, &checkpoint, was_confirmed, state.notes))
}

fn undone(system: &mut dyn System, checkpoint: &Checkpoint, was_confirmed: bool, notes: Vec<String>) -> Undone {
    let row = |change: &Change| format!("{}={} on {}", change.key, change.old, change.target);
    let kernel = KernelVersion::of(&system.identity().kernel);
    // Where the kernel doesn't answer any more, it did so when it was put back.
    let now = Snapshot::read(system).ok();
    let values = now.as_ref().map(|now| Values::of(now, kernel));
    let before = Values::of(&checkpoint.before, kernel);
    let is_theirs = |change: &Change| {
        let found = values.as_ref().map(|values| values.get(change));
        match found {
            Some(Some(value)) => value != change.old,
            Some(None) => matches!(change.place, Place::Route(_)) && before.get(change).is_some(),
            None => false,
        }
    };
    let routes = now.as_ref().map(|now| RouteChange::taken_back(&checkpoint.route_changes(), now));
    Undone {
        schema_version: 1,
        routes: routes.unwrap_or_default(),
        id: checkpoint.id,
        was_confirmed,
        done: true,
        changes: checkpoint.changes.iter().filter(|change| !is_theirs(change)).map(row).collect(),
        notes,
    }
}

/// The latest change in force. One that can't be read might be that, unless there is a later one.
fn latest(system: &mut dyn System, store: &Store) -> Result<Option<(Checkpoint, State)>, TxnError> {
    let here = system.identity();
    for id in store.ids(system)?.into_iter().rev() {
        let Some(state) = store.begun(system, id)? else { continue };
        if state.phase.is_in_force() || state.phase == Phase::RevertFailed {
            let checkpoint = store.read(system, id)?;
            if checkpoint.concerns(&here) {
                return Ok(Some((checkpoint, state)));
            }
        }
    }
    Ok(None)
}

pub(super) fn check(
    system: &mut dyn System,
    store: &Store,
    checkpoint: &Checkpoint,
    state: &State,
) -> Result<(), TxnError> {
    let here = system.identity();
    let id = checkpoint.id;
    if !checkpoint.concerns(&here) && !state.phase.is_out_of_force() {
        return Err(TxnError::OtherNetwork { id, network: checkpoint.identity.network.clone() });
    }
    if !state.phase.is_in_force() && state.phase != Phase::RevertFailed {
        return Err(TxnError::NotInForce { id, phase: state.phase });
    }
    if !here.net_admin {
        return Err(TxnError::NotPrivileged { what: format!("undoing change {id}") });
    }
    for later in store.ids(system)?.into_iter().rev().take_while(|later| *later > id) {
        let Ok(state) = store.read_state(system, later) else { continue };
        if !state.phase.is_in_force() {
            continue;
        }
        let other = store.read(system, later)?;
        // What wasn't confirmed ended with the boot.
        let holds = other.is_of(&here) || (other.is_of_an_earlier_boot(&here) && state.phase == Phase::Confirmed);
        if holds && other.scope.builds_on(&checkpoint.scope) {
            return Err(TxnError::Later { later });
        }
    }
    Ok(())
}

/// Stores that it is being taken back, and starts guards that see to it.
fn watched(
    system: &mut dyn System,
    store: &Store,
    checkpoint: &Checkpoint,
    state: &mut State,
    guard: &GuardCommand,
) -> Result<Vec<Guard>, TxnError> {
    let before = state.clone();
    let now = system.now();
    state.apply_until_ns = State::prepared(now, 0).apply_until_ns;
    let last = State { phase: Phase::Undone, files: Vec::new(), ..state.clone() };
    let staged = store.stage_last_state(system, checkpoint.id, &last).map_err(|error| error.to_string());
    let stored = staged.and_then(|()| enter(system, store, checkpoint, state, Phase::Undoing));
    let lock = store.guard_lock(checkpoint.id);
    let started = stored.and_then(|()| {
        let _ = std::fs::remove_file(&lock);
        Guard::start_pair(guard, store, checkpoint.id)
    });
    started.map_err(|why| {
        *state = before.clone();
        let _ = store.write_state(system, checkpoint.id, &before);
        TxnError::Guard(why)
    })
}

/// Back to all of the new, since all of the old can't be had.
fn roll_forward(
    system: &mut dyn System,
    store: &Store,
    checkpoint: &Checkpoint,
    before: &State,
    mut errors: Vec<String>,
) -> TxnError {
    let kernel = put_forward(system, checkpoint, before);
    let files = persist::put_in_place(system, &before.files);
    let as_before = kernel.is_empty() && files.is_ok();
    errors.extend(kernel);
    errors.extend(files.err().map(|error| error.to_string()));
    let mut state = before.clone();
    state.errors.clone_from(&errors);
    if !as_before {
        state.phase = Phase::RevertFailed;
    }
    let _ = store.write_state(system, checkpoint.id, &state);
    TxnError::NotPutBack { errors, backup: store.backup(checkpoint.id).display().to_string(), as_before }
}
