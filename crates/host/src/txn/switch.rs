use super::error::{StoreError, TxnError};
use super::held::lock_here;
use super::revert::{put_back, put_forward};
use super::store::Store;
use crate::change::{Change, CheckpointId};
use crate::system::System;
use wt_sys::process::ProcessIdentity;

/// What a change in force made, and which it is: the latest of here if none is named.
///
/// # Errors
/// [`TxnError::NothingToUndo`] and [`TxnError::NotInForce`].
pub fn in_force(
    system: &mut dyn System,
    store: &Store,
    id: Option<CheckpointId>,
) -> Result<(CheckpointId, Vec<Change>), TxnError> {
    let here = system.identity();
    let ids = match id {
        Some(id) => vec![id],
        None => store.ids(system)?,
    };
    for each in ids.into_iter().rev() {
        let state = match store.begun(system, each)? {
            Some(state) => state,
            None if id.is_some() => return Err(StoreError::NoSuch(each).into()),
            None => continue,
        };
        if state.phase.is_in_force() {
            let checkpoint = store.read(system, each)?;
            if id.is_some() || checkpoint.concerns(&here) {
                return Ok((each, checkpoint.changes));
            }
        }
        if id.is_some() {
            return Err(TxnError::NotInForce { id: each, phase: state.phase });
        }
    }
    Err(TxnError::NothingToUndo)
}

/// Takes a change in force out of the kernel for a while, or puts it back in; its files and its state stay as they are.
///
/// # Errors
/// [`TxnError`]: it isn't in force any more, later changes build on it, or the kernel refuses.
pub fn switch(system: &mut dyn System, store: &Store, id: CheckpointId, on: bool) -> Result<(), TxnError> {
    let _lock = lock_here(system, store)?;
    let (checkpoint, mut state) = (store.read(system, id)?, store.read_state(system, id)?);
    super::undo::check(system, store, &checkpoint, &state)?;
    if !on {
        // Should this process end before it is back in, the next command of anybody sees that.
        state.out_by = Some(ProcessIdentity::own().to_string());
        store.write_state(system, id, &state)?;
    }
    let errors =
        if on { put_forward(system, &checkpoint, &state) } else { put_back(system, &checkpoint, &state).errors };
    if errors.is_empty() {
        if on && state.out_by.take().is_some() {
            store.write_state(system, id, &state)?;
        }
        return Ok(());
    }
    let backup = store.backup(id).display().to_string();
    Err(TxnError::NotPutBack { errors, backup, as_before: false })
}
