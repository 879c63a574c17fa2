use super::error::TxnError;
use super::guard::Guard;
use super::revert::{put_back, put_forward, revert};
use super::store::{Store, StoreLock};
use crate::change::{Checkpoint, State};
use crate::system::System;

/// A change that is in force while this is held ([`hold`](super::hold)), and can be switched off and on meanwhile.
///
/// Dropped without [`put_back`](Self::put_back), its guards put everything back.
#[derive(Debug)]
pub struct HeldChange {
    store: Store,
    checkpoint: Checkpoint,
    state: State,
    // The lock goes after the guards' pipes: they wait for it.
    _guards: Vec<Guard>,
    _lock: StoreLock,
}

impl HeldChange {
    pub(super) fn new(store: Store, checkpoint: Checkpoint, state: State, guards: Vec<Guard>, lock: StoreLock) -> Self {
        Self { store, checkpoint, state, _guards: guards, _lock: lock }
    }

    /// Takes it out of the kernel, or puts it back in; it stays held.
    ///
    /// # Errors
    /// [`TxnError::NotPutBack`] with what the kernel refuses.
    pub fn switch(&self, system: &mut dyn System, on: bool) -> Result<(), TxnError> {
        let errors = if on {
            put_forward(system, &self.checkpoint)
        } else {
            put_back(system, &self.checkpoint, &self.state).errors
        };
        self.result(errors)
    }

    /// Puts everything back for good.
    ///
    /// # Errors
    /// [`TxnError::NotPutBack`] with what the kernel refuses; the guards go on trying.
    pub fn put_back(mut self, system: &mut dyn System) -> Result<(), TxnError> {
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
