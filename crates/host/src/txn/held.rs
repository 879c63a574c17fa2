use super::error::TxnError;
use super::guard::Guard;
use super::revert::{put_back, put_forward, revert};
use super::store::{Store, StoreLock};
use crate::change::{Checkpoint, Phase, State};
use crate::system::System;
use std::time::Duration;

/// How long the store may be another's while a change is held: nobody's change takes longer, as a rule.
const PATIENCE: Duration = Duration::from_secs(20);

/// A change that is in force while this is held ([`hold`](super::hold)), and can be switched off and on meanwhile.
///
/// The store's lock is taken only to do something: changes in other network namespaces may have the same store, and their guards end
/// whoever keeps it from them. A lock of its own says that the change is held.
///
/// Dropped without [`put_back`](Self::put_back), its guards put everything back.
#[derive(Debug)]
pub struct HeldChange {
    store: Store,
    checkpoint: Checkpoint,
    state: State,
    _guards: Vec<Guard>,
    _hold: StoreLock,
}

impl HeldChange {
    pub(super) fn new(store: Store, checkpoint: Checkpoint, state: State, guards: Vec<Guard>, hold: StoreLock) -> Self {
        Self { store, checkpoint, state, _guards: guards, _hold: hold }
    }

    /// Takes it out of the kernel, or puts it back in; it stays held.
    ///
    /// # Errors
    /// [`TxnError::NotPutBack`] with what the kernel refuses; [`TxnError::NotInForce`] where its time was up, so that its guards have
    /// put it back: nobody would do that again.
    pub fn switch(&self, system: &mut dyn System, on: bool) -> Result<(), TxnError> {
        let _lock = self.store.lock_for(system, PATIENCE)?;
        let id = self.checkpoint.id;
        let phase = self.store.read_state(system, id)?.phase;
        let errors = match on {
            true if phase == Phase::Applying => put_forward(system, &self.checkpoint, &self.state),
            true => return Err(TxnError::NotInForce { id, phase }),
            false if phase.is_over() => Vec::new(),
            false => put_back(system, &self.checkpoint, &self.state).errors,
        };
        self.result(errors)
    }

    /// Puts everything back for good.
    ///
    /// # Errors
    /// [`TxnError::NotPutBack`] with what the kernel refuses, [`TxnError::Busy`]; the guards go on trying.
    pub fn put_back(mut self, system: &mut dyn System) -> Result<(), TxnError> {
        let _lock = match self.store.lock_for(system, PATIENCE) {
            Err(error @ TxnError::Busy { .. }) => return Err(error),
            // Where nothing can be locked any more, as on a disk that failed, the kernel is brought back all the same.
            locked => locked.ok(),
        };
        if self.store.read_state(system, self.checkpoint.id).is_ok_and(|state| state.phase.is_over()) {
            return Ok(());
        }
        let errors = revert(system, &self.store, &self.checkpoint, &mut self.state, false).err().unwrap_or_default();
        self.result(errors)
    }

    fn result(&self, errors: Vec<String>) -> Result<(), TxnError> {
        if errors.is_empty() {
            return Ok(());
        }
        let backup = self.store.backup(self.checkpoint.id).display().to_string();
        Err(TxnError::NotPutBack { errors, backup, as_before: false })
    }
}

/// Takes the store's lock for what is done to the changes of this network namespace. Refused while one is held here: what is built on that
/// would outlast it.
pub(super) fn lock_here(system: &mut dyn System, store: &Store) -> Result<StoreLock, TxnError> {
    let lock = store.lock(system)?;
    let boottime_ns = system.now().boottime_ns;
    for id in store.ids(system)?.into_iter().rev() {
        let Ok(state) = store.read_state(system, id) else { continue };
        if state.phase.is_over() {
            continue;
        }
        let Some(holder) = store.holder(id, &state, boottime_ns) else { continue };
        if store.read(system, id)?.is_of(&system.identity()) {
            return Err(TxnError::Busy { holder });
        }
    }
    Ok(lock)
}
