use super::TxnError;
use super::checkpoint::{Checkpoint, Phase, State};
use super::confirm::settle;
use super::guard::is_guarded;
use super::revert::{put_forward, revert};
use super::store::{CheckpointId, Store, StoreError};
use crate::calendar::utc;
use crate::knob::Value;
use crate::read::{Finding, KernelVersion, Severity};
use crate::snapshot::Snapshot;
use crate::system::{Identity, System};
use serde::Serialize;

/// A change that waits for its confirmation.
#[derive(Debug, Clone, Serialize)]
pub struct Pending {
    /// Which.
    pub id: CheckpointId,
    /// How far it has come.
    pub phase: &'static str,
    /// When it is put back.
    pub confirm_deadline: Option<String>,
    /// Seconds until then.
    pub seconds_left: u64,
    /// Whether a guard watches it.
    pub guarded: bool,
}

impl Pending {
    /// The same as a finding.
    pub(crate) fn finding(&self) -> Finding {
        let (id, left) = (self.id, self.seconds_left);
        if self.phase == Phase::RevertFailed.name() {
            let text = format!("change {id} couldn't be put back whole: windtunnel settings undo {id} tries again");
            return Finding::new("revert-failed", Severity::Problem, text);
        }
        let text = if self.guarded {
            format!(
                "change {id} waits for its confirmation and is put back in {left} s: windtunnel settings confirm, or undo"
            )
        } else {
            format!(
                "change {id} waits for its confirmation, but its guard is gone: the next windtunnel settings after {left} s puts it back"
            )
        };
        Finding::new("unconfirmed", Severity::Warning, text)
    }
}

/// A change that nobody guarded any more and that was therefore put back, or brought to its end.
#[derive(Debug, Clone)]
pub struct Recovered {
    /// Which.
    pub checkpoint: CheckpointId,
    /// What came of it.
    pub phase: Phase,
    /// What went wrong.
    pub errors: Vec<String>,
}

impl Recovered {
    /// The same as a finding.
    #[must_use]
    pub fn finding(&self) -> Finding {
        let id = self.checkpoint;
        match self.phase {
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
                format!("change {id} was put back just now: nobody had confirmed it, and its guard was gone"),
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
pub fn recover(system: &mut dyn System, store: &Store) -> Result<Vec<Recovered>, TxnError> {
    if !store.exists(system) || stale(system, store)?.is_empty() {
        return Ok(Vec::new());
    }
    let _lock = store.lock(system)?;
    recover_locked(system, store)
}

/// The same by somebody who has the lock.
pub(crate) fn recover_locked(system: &mut dyn System, store: &Store) -> Result<Vec<Recovered>, TxnError> {
    let mut recovered = Vec::new();
    for (checkpoint, mut state) in stale(system, store)? {
        bring_to_end(system, store, &checkpoint, &mut state);
        recovered.push(Recovered { checkpoint: checkpoint.id, phase: state.phase, errors: state.errors.clone() });
    }
    Ok(recovered)
}

/// Changes of this network namespace that are neither over nor watched. Files that aren't believed are passed over:
/// whoever names such a change is told why.
fn stale(system: &mut dyn System, store: &Store) -> Result<Vec<(Checkpoint, State)>, TxnError> {
    let here = system.identity();
    let boottime_ns = system.now().boottime_ns;
    let mut found = Vec::new();
    for id in store.ids(system)? {
        let Ok(state) = store.read_state(system, id) else { continue };
        if state.phase.is_over() {
            continue;
        }
        let Ok(checkpoint) = store.read(system, id) else { continue };
        if concerns(&checkpoint, &here) && is_stale(&checkpoint, &state, &here, boottime_ns, store) {
            found.push((checkpoint, state));
        }
    }
    Ok(found)
}

/// Whether a change was made here, or before the last reboot.
fn concerns(checkpoint: &Checkpoint, here: &Identity) -> bool {
    checkpoint.is_of(here) || checkpoint.is_of_an_earlier_boot(here)
}

fn is_stale(checkpoint: &Checkpoint, state: &State, here: &Identity, boottime_ns: u64, store: &Store) -> bool {
    let waits = state.phase == Phase::Applied && !state.is_expired(boottime_ns) && checkpoint.is_of(here);
    !waits && !is_guarded(&store.guard_lock(checkpoint.id))
}

fn bring_to_end(system: &mut dyn System, store: &Store, checkpoint: &Checkpoint, state: &mut State) {
    let here = system.identity();
    let is_of_now = checkpoint.is_of(&here);
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
            let _ = super::revert::enter(system, store, checkpoint, state, Phase::Lapsed);
        }
        _ => {
            if revert(system, store, checkpoint, state, true).is_err() && !checkpoint.can_cut_off() {
                put_forward(system, checkpoint);
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

/// The change that waits, for people.
///
/// # Errors
/// [`TxnError`] when the store can't be read.
pub fn pending(system: &mut dyn System, store: &Store) -> Result<Option<Pending>, TxnError> {
    if !store.exists(system) {
        return Ok(None);
    }
    let boottime_ns = system.now().boottime_ns;
    Ok(waiting(system, store)?.map(|(checkpoint, state)| Pending {
        id: checkpoint.id,
        phase: state.phase.name(),
        confirm_deadline: state.deadline_unix_s.map(utc),
        seconds_left: state.deadline_ns.unwrap_or(0).saturating_sub(boottime_ns) / 1_000_000_000,
        guarded: is_guarded(&store.guard_lock(checkpoint.id)),
    }))
}

/// A change that was made some time.
#[derive(Debug, Clone, Serialize)]
pub struct HistoryRow {
    /// Which.
    pub id: CheckpointId,
    /// When.
    pub created: Option<String>,
    /// How far it has come.
    pub phase: Option<&'static str>,
    /// Since when.
    pub since: Option<String>,
    /// What was asked for: `initcwnd=20 on default via …`.
    pub changes: Vec<String>,
    /// Whether it was made in this network namespace.
    pub here: bool,
    /// Why it can't be used.
    pub error: Option<String>,
}

/// Every change, the latest first.
///
/// # Errors
/// [`StoreError`] when the directory can't be read; what is wrong with single changes is in their rows.
pub fn history(system: &mut dyn System, store: &Store) -> Result<Vec<HistoryRow>, StoreError> {
    let here = system.identity();
    let mut rows = Vec::new();
    for id in store.ids(system)?.into_iter().rev() {
        let read = store.read(system, id).and_then(|checkpoint| Ok((checkpoint, store.read_state(system, id)?)));
        rows.push(match read {
            Ok((checkpoint, state)) => HistoryRow {
                id,
                created: Some(utc(checkpoint.created_unix_s)),
                phase: Some(state.phase.name()),
                since: Some(utc(state.since_unix_s)),
                changes: checkpoint.changes.iter().map(|c| format!("{}={} on {}", c.key, c.new, c.target)).collect(),
                here: checkpoint.identity.network == here.network,
                error: (!state.errors.is_empty()).then(|| state.errors.join("; ")),
            },
            Err(error) => HistoryRow {
                id,
                created: None,
                phase: None,
                since: None,
                changes: Vec::new(),
                here: false,
                error: Some(error.to_string()),
            },
        });
    }
    Ok(rows)
}

/// What isn't as a change made it.
#[derive(Debug, Clone, Serialize)]
pub struct Drift {
    /// Which change.
    pub id: CheckpointId,
    /// The setting.
    pub key: String,
    /// Where.
    pub target: String,
    /// What the change made it.
    pub expected: Value,
    /// What it is; `null` if it is gone.
    pub found: Option<Value>,
}

/// Whether the changes in force still hold.
#[derive(Debug, Clone, Serialize)]
pub struct VerifyReport {
    /// The version of this form.
    pub schema_version: u32,
    /// The changes that were looked at.
    pub checked: Vec<CheckpointId>,
    /// What isn't as they made it.
    pub drift: Vec<Drift>,
    /// What will not be so after the next boot, and why.
    pub at_boot: Vec<String>,
}

/// Compares what changes made of this host with what is. Where several made the same setting, the latest counts.
///
/// # Errors
/// [`TxnError`] when store or kernel can't be read.
pub fn verify(system: &mut dyn System, store: &Store, survey: &crate::read::Survey) -> Result<VerifyReport, TxnError> {
    let mut report = VerifyReport { schema_version: 1, checked: Vec::new(), drift: Vec::new(), at_boot: Vec::new() };
    let mut seen = std::collections::BTreeSet::new();
    let here = system.identity();
    for id in store.ids(system)?.into_iter().rev() {
        let state = store.read_state(system, id)?;
        if !state.phase.is_in_force() {
            continue;
        }
        let checkpoint = store.read(system, id)?;
        if !concerns(&checkpoint, &here) {
            continue;
        }
        report.checked.push(id);
        for change in &checkpoint.changes {
            if !seen.insert((change.key.clone(), change.target.clone())) {
                continue;
            }
            let drift = drift(id, change, &survey.snapshot, survey.kernel());
            report.drift.extend(drift);
        }
        if state.phase == Phase::Confirmed {
            report.at_boot.extend(crate::persist::losers(&checkpoint, survey));
        }
    }
    Ok(report)
}

fn drift(id: CheckpointId, change: &crate::plan::Change, now: &Snapshot, kernel: KernelVersion) -> Option<Drift> {
    let found = change.value_in(now, kernel);
    let same = found.as_ref() == Some(&change.new);
    let row =
        || Drift { id, key: change.key.clone(), target: change.target.clone(), expected: change.new.clone(), found };
    (!same).then(row)
}
