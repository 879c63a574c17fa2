//! The way out where something can't be put back: what stays is said, and nothing is locked any more.

use super::error::TxnError;
use super::held::lock_here;
use super::revert::revert;
use super::store::Store;
use crate::change::{CheckpointId, Phase, State};
use crate::read::{KernelVersion, Values};
use crate::snapshot::Snapshot;
use crate::system::System;
use serde::Serialize;

/// A change that this program doesn't look after any more.
#[derive(Debug, Clone, Serialize)]
pub struct ReleasedChange {
    /// The version of this form.
    pub schema_version: u32,
    /// Which.
    pub id: CheckpointId,
    /// What of it stays, in our words: `initcwnd=20 on default`.
    pub stays: Vec<String>,
    /// Files that stay, so that each boot sets it again.
    pub files: Vec<String>,
    /// What the kernel said to putting it back.
    pub errors: Vec<String>,
    /// The file with the old state.
    pub backup: String,
}

/// Takes a change back as far as that is possible, the latest that isn't over if none is named, and is done with it.
///
/// # Errors
/// [`TxnError`]; what can't be put back is no error.
pub fn undo_by_force(
    system: &mut dyn System,
    store: &Store,
    id: Option<CheckpointId>,
) -> Result<ReleasedChange, TxnError> {
    let _lock = lock_here(system, store)?;
    let id = which(system, store, id)?;
    let (checkpoint, mut state) = (store.read(system, id)?, store.read_state(system, id)?);
    let here = system.identity();
    if checkpoint.ended_with_its_network(&here) && state.files.is_empty() {
        return close(system, store, id, &mut state, Phase::Lapsed);
    }
    if !checkpoint.concerns(&here) {
        // What is over everywhere isn't to be looked for in its network.
        if state.phase.is_out_of_force() {
            return Err(TxnError::NotInForce { id, phase: state.phase });
        }
        return Err(TxnError::OtherNetwork { id, network: checkpoint.identity.network.clone() });
    }
    let last = if state.phase == Phase::Confirmed { Phase::Undone } else { Phase::Reverted };
    let errors = revert(system, store, &checkpoint, &mut state, false).err().unwrap_or_default();
    state.phase = last;
    state.errors.clone_from(&errors);
    store.write_state(system, id, &state)?;
    released(system, store, id, &state, errors)
}

/// Leaves everything as it is and is done with a change: nothing puts it back any more, and nothing waits for it.
///
/// # Errors
/// [`TxnError`].
pub fn forget(system: &mut dyn System, store: &Store, id: CheckpointId) -> Result<ReleasedChange, TxnError> {
    let _lock = lock_here(system, store)?;
    let mut state = store.read_state(system, id)?;
    if state.phase.is_out_of_force() {
        return Err(TxnError::NotInForce { id, phase: state.phase });
    }
    close(system, store, id, &mut state, Phase::Forgotten)
}

/// Is done with a change, and touches nothing.
fn close(
    system: &mut dyn System,
    store: &Store,
    id: CheckpointId,
    state: &mut State,
    phase: Phase,
) -> Result<ReleasedChange, TxnError> {
    state.phase = phase;
    state.since_unix_s = system.now().unix_s;
    store.write_state(system, id, state)?;
    released(system, store, id, state, Vec::new())
}

/// The change that is named, or else the latest of here that has something left to do or is in force.
fn which(system: &mut dyn System, store: &Store, id: Option<CheckpointId>) -> Result<CheckpointId, TxnError> {
    if let Some(id) = id {
        return Ok(id);
    }
    let here = system.identity();
    for id in store.ids(system)?.into_iter().rev() {
        let Ok(state) = store.read_state(system, id) else { continue };
        if state.phase.is_out_of_force() {
            continue;
        }
        // One whose checkpoint can't be read may be of here: whoever goes on is told why it can't be taken back.
        if store.read(system, id).map_or(true, |checkpoint| checkpoint.concerns(&here)) {
            return Ok(id);
        }
    }
    Err(TxnError::NothingToUndo)
}

fn released(
    system: &mut dyn System,
    store: &Store,
    id: CheckpointId,
    state: &State,
    errors: Vec<String>,
) -> Result<ReleasedChange, TxnError> {
    let now = Snapshot::read(system)?;
    let kernel = KernelVersion::of(&system.identity().kernel);
    // One that can't be read any more is forgotten all the same.
    let changes = store.read(system, id).map(|checkpoint| checkpoint.changes).unwrap_or_default();
    let values = Values::of(&now, kernel);
    let stays = changes.iter().filter(|change| !change.unchanged && values.get(change).as_ref() == Some(&change.new));
    let stays = stays.map(|change| format!("{}={} on {}", change.key, change.new, change.target)).collect();
    let files = state.files.iter().filter(|file| file.is_in_place(system)).map(|file| file.path.display().to_string());
    let files = files.collect();
    Ok(ReleasedChange { schema_version: 1, id, stays, files, errors, backup: store.backup(id).display().to_string() })
}
