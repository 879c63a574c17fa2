//! What brings changes to an end that nobody watches any more.

use super::error::{StoreError, TxnError};
use super::revert::{enter, put_forward, revert};
use super::store::Store;
use crate::change::{Checkpoint, CheckpointId, Phase, State};
use crate::persist;
use crate::read::{Finding, Severity};
use crate::system::{Identity, System};
use std::fs::File;
use std::path::Path;

/// A change that nobody guarded any more and that was therefore put back, or brought to its end.
#[derive(Debug, Clone)]
pub struct RecoveredChange {
    /// Which.
    pub checkpoint: CheckpointId,
    /// What came of it.
    pub phase: Phase,
    /// What went wrong.
    pub errors: Vec<String>,
    /// What was put back elsewhere, or is gone: devices that were renamed or removed meanwhile.
    pub notes: Vec<String>,
    /// Whether it was put in force again, for whoever had taken it out for a while is gone.
    pub was_left_out: bool,
}

impl RecoveredChange {
    /// The same as a finding.
    #[must_use]
    pub fn finding(&self) -> Finding {
        let id = self.checkpoint;
        match self.phase {
            _ if self.was_left_out && self.errors.is_empty() => Finding::new(
                "recovered",
                Severity::Warning,
                format!(
                    "change {id} was put in force again just now: a measurement that had taken it out ended half-way"
                ),
            ),
            _ if self.was_left_out => Finding::new(
                "recovered",
                Severity::Problem,
                format!(
                    "change {id} is out of force, since a measurement ended half-way, and couldn't be put in again: {}",
                    self.errors.join("; ")
                ),
            ),
            Phase::Confirmed => Finding::new(
                "recovered",
                Severity::Info,
                format!("change {id} was confirmed; the last step was missing"),
            ),
            Phase::Lapsed => Finding::new(
                "lapsed",
                Severity::Info,
                format!("change {id} was never confirmed and ended with the reboot"),
            ),
            _ if self.errors.is_empty() => Finding::new(
                "recovered",
                Severity::Warning,
                format!(
                    "change {id} was put back just now: nobody had confirmed it, and its guard was gone{}",
                    self.notes.iter().map(|note| format!("; {note}")).collect::<String>()
                ),
            ),
            _ => Finding::new(
                "revert-failed",
                Severity::Problem,
                format!("change {id} couldn't be put back: {}", self.errors.join("; ")),
            ),
        }
    }
}

/// Brings changes to an end that nobody watches any more: unconfirmed ones are put back. For use before anything else.
///
/// # Errors
/// [`TxnError::Busy`] when somebody is at it, which is as well.
pub fn recover(system: &mut dyn System, store: &Store) -> Result<Vec<RecoveredChange>, TxnError> {
    if !store.exists(system) || stale(system, store, LockState::No)?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = store.lock(system)?;
    recover_locked(system, store)
}

/// Whether a change stands here that nobody watches any more and that isn't over: [`recover`] would put it back.
///
/// # Errors
/// [`TxnError`] when the store can't be read.
pub fn is_unwatched(system: &mut dyn System, store: &Store) -> Result<bool, TxnError> {
    Ok(store.exists(system) && !stale(system, store, LockState::No)?.is_empty())
}

/// The same by somebody who has the lock.
pub(crate) fn recover_locked(system: &mut dyn System, store: &Store) -> Result<Vec<RecoveredChange>, TxnError> {
    let mut recovered = Vec::new();
    let here = system.identity();
    for (checkpoint, mut state) in stale(system, store, LockState::Yes)? {
        let was_left_out = state.was_left_out(system.now().boottime_ns);
        if was_left_out {
            state.errors = put_in_again(system, store, &checkpoint, &mut state);
        } else {
            bring_to_end(system, store, &checkpoint, &mut state);
        }
        if checkpoint.ended_with_its_network(&here) {
            continue;
        }
        let State { phase, errors, notes, .. } = state;
        recovered.push(RecoveredChange { checkpoint: checkpoint.id, phase, errors, notes, was_left_out });
    }
    Ok(recovered)
}

/// Whether whoever looks has the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LockState {
    No,
    Yes,
}

/// Changes of this network namespace that are neither over nor held nor watched, and, with the lock, those that somebody has left half-way:
/// whoever makes one has the lock all the while, and a guard may take it only after somebody who would build on the half. Files that aren't believed are passed over:
/// whoever names such a change is told why.
fn stale(system: &mut dyn System, store: &Store, locked: LockState) -> Result<Vec<(Checkpoint, State)>, TxnError> {
    let here = system.identity();
    let boottime_ns = system.now().boottime_ns;
    let mut found = Vec::new();
    for id in store.ids(system)? {
        let Ok(state) = store.read_state(system, id) else { continue };
        if state.was_left_out(boottime_ns) {
            found.extend(store.read(system, id).ok().filter(|made| made.is_of(&here)).map(|made| (made, state)));
            continue;
        }
        if state.phase.is_over() || store.holder(id, &state, boottime_ns).is_some() {
            continue;
        }
        let Ok(checkpoint) = store.read(system, id) else { continue };
        let half_way = locked == LockState::Yes && is_half_way(state.phase);
        // Whoever has the lock also closes what ended with its namespace.
        let has_ended = locked == LockState::Yes && checkpoint.ended_with_its_network(&here) && state.files.is_empty();
        if has_ended
            || checkpoint.concerns(&here) && (half_way || is_stale(&checkpoint, &state, &here, boottime_ns, store))
        {
            found.push((checkpoint, state));
        }
    }
    Ok(found)
}

/// Findings on changes whose files can't be read: nobody knows whether those are in force.
///
/// # Errors
/// [`StoreError`] when the directory can't be read.
pub fn damaged(system: &mut dyn System, store: &Store) -> Result<Vec<Finding>, StoreError> {
    let mut findings = Vec::new();
    for id in store.ids(system)? {
        let read = match store.read_state(system, id) {
            // Without a state it ended before anything was begun; what is over is of no consequence any more.
            Err(StoreError::NoSuch(_)) => continue,
            Ok(state) if matches!(state.phase, Phase::Reverted | Phase::Undone | Phase::Lapsed) => continue,
            Ok(_) => store.read(system, id).map(drop),
            Err(error) => Err(error),
        };
        if let Err(error) = read {
            let text = format!(
                "change {id} can't be read, so it may be in force and is neither put back nor confirmed: {error}; once you have \
                 looked at its values, remove {}",
                store.of(id).display()
            );
            findings.push(Finding::new("damaged-state", Severity::Problem, text));
        }
    }
    Ok(findings)
}

/// Whether only whoever has the lock leads a change on from here.
fn is_half_way(phase: Phase) -> bool {
    matches!(phase, Phase::Prepared | Phase::Applying | Phase::Confirming | Phase::Reverting | Phase::Undoing)
}

fn is_stale(checkpoint: &Checkpoint, state: &State, here: &Identity, boottime_ns: u64, store: &Store) -> bool {
    let waits = state.phase == Phase::Applied && !state.is_expired(boottime_ns) && checkpoint.is_of(here);
    !waits && !is_guarded(&store.guard_lock(checkpoint.id))
}

/// Puts a change in force again that somebody took out for a while and left so; returns what couldn't be.
fn put_in_again(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, state: &mut State) -> Vec<String> {
    let errors = put_forward(system, checkpoint, state);
    if errors.is_empty() {
        state.out_by = None;
        let _ = store.write_state(system, checkpoint.id, state);
    }
    errors
}

fn bring_to_end(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, state: &mut State) {
    let here = system.identity();
    let is_of_now = checkpoint.is_of(&here);
    if checkpoint.ended_with_its_network(&here) {
        let _ = enter(system, store, checkpoint, state, Phase::Lapsed);
        return;
    }
    match state.phase {
        Phase::Confirming => {
            settle(system, store, checkpoint, state);
            if state.phase == Phase::Applied && state.is_expired(system.now().boottime_ns) {
                let _ = revert(system, store, checkpoint, state, true);
            }
        }
        Phase::Undoing => drop(undo_stale(system, store, checkpoint, state)),
        // Nothing of it was written to stay, so the reboot has taken it back.
        _ if !is_of_now => {
            let _ = enter(system, store, checkpoint, state, Phase::Lapsed);
        }
        _ => {
            if revert(system, store, checkpoint, state, true).is_err() && !checkpoint.can_cut_off() {
                put_forward(system, checkpoint, state);
            }
        }
    }
}

/// Goes on with taking back a confirmed change; whether it is done.
pub(crate) fn undo_stale(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, state: &mut State) -> bool {
    revert(system, store, checkpoint, state, state.by_guard).is_ok()
}

/// The change that waits here for its confirmation.
pub(crate) fn waiting(system: &mut dyn System, store: &Store) -> Result<Option<(Checkpoint, State)>, TxnError> {
    let here = system.identity();
    for id in store.ids(system)?.into_iter().rev() {
        let Ok(state) = store.read_state(system, id) else { continue };
        if matches!(state.phase, Phase::Applied | Phase::RevertFailed) {
            let checkpoint = store.read(system, id)?;
            if checkpoint.is_of(&here) {
                return Ok(Some((checkpoint, state)));
            }
        }
    }
    Ok(None)
}

/// Takes the files away again; the change still waits.
pub(crate) fn back_to_applied(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, state: &mut State) {
    if persist::put_back(system, &state.files).is_ok() {
        state.files = Vec::new();
    }
    let _ = enter(system, store, checkpoint, state, Phase::Applied);
}

/// Ends a confirmation whose process ended half-way: it counts if every file is in place, or else none stays.
pub(crate) fn settle(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, state: &mut State) {
    let files = state.files.clone();
    if files.iter().all(|file| file.is_in_place(system))
        && enter(system, store, checkpoint, state, Phase::Confirmed).is_ok()
    {
        return;
    }
    state.files = files;
    back_to_applied(system, store, checkpoint, state);
}

/// Whether the guard of a checkpoint, or its stand-in, still runs: they keep its file locked.
pub(crate) fn is_guarded(lock: &Path) -> bool {
    match File::open(lock) {
        Ok(file) => file.try_lock().is_err(),
        Err(_) => false,
    }
}
