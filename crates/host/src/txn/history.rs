use super::error::{StoreError, TxnError};
use super::recovery::{is_guarded, waiting};
use super::relocation::Relocation;
use super::store::Store;
use super::stray::strays;
use crate::calendar::utc;
use crate::change::{Change, Checkpoint, CheckpointId, Pending, Phase, Place, RouteChange};
use crate::knob::Value;
use crate::persist::losers;
use crate::read::{KernelVersion, Survey, Values};
use crate::snapshot::{RouteIndex, Snapshot};
use crate::system::{Identity, System};
use serde::Serialize;
use utoipa::ToSchema;

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
        phase: state.phase,
        confirm_deadline: state.deadline_unix_s.map(utc),
        seconds_left: state.deadline_ns.unwrap_or(0).saturating_sub(boottime_ns) / 1_000_000_000,
        guarded: is_guarded(&store.guard_lock(checkpoint.id)),
    }))
}

/// A change that was made some time.
#[derive(Debug, Clone, Serialize, ToSchema)]
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
    /// Routes that went or came with it, apart from those that only hold one of the settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub routes: Vec<RouteChange>,
    /// Whether it was made in this network namespace.
    pub here: bool,
    /// Why it can't be used.
    pub error: Option<String>,
    /// What was put back elsewhere, or is gone: devices that were renamed or removed meanwhile.
    pub notes: Vec<String>,
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
                routes: checkpoint.route_changes(),
                here: checkpoint.identity.is_same_network(&here),
                error: (!state.errors.is_empty()).then(|| state.errors.join("; ")),
                notes: state.notes,
            },
            Err(error) => {
                let never_begun = store.was_never_begun(system, id);
                HistoryRow {
                    id,
                    created: None,
                    phase: never_begun.then_some("never-begun"),
                    since: None,
                    changes: Vec::new(),
                    routes: Vec::new(),
                    here: false,
                    error: (!never_begun).then(|| error.to_string()),
                    notes: Vec::new(),
                }
            }
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
    /// What has become of its device, if that was renamed, removed or replaced; that its route isn't the only one of its kind, or that
    /// everything around it goes another way since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
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
pub fn verify(system: &mut dyn System, store: &Store, survey: &Survey) -> Result<VerifyReport, TxnError> {
    let mut report = VerifyReport { schema_version: 1, checked: Vec::new(), drift: Vec::new(), at_boot: Vec::new() };
    let mut seen = std::collections::BTreeSet::new();
    // A setting of the kernel is the same by whatever name a change knows it: a window is one of three numbers of it.
    let place = |key: &str, target: &str, place: &Place| match place {
        Place::Host => (String::new(), target.to_owned()),
        Place::Route(_) | Place::Link(_) | Place::Connections(_) => (key.to_owned(), target.to_owned()),
    };
    let here = system.identity();
    for id in store.ids(system)?.into_iter().rev() {
        let Some(state) = store.begun(system, id)?.filter(|state| state.phase.is_in_force()) else { continue };
        let checkpoint = store.read(system, id)?;
        if !checkpoint.concerns(&here) {
            continue;
        }
        report.checked.push(id);
        let mut drifted = drift(&checkpoint, &survey.snapshot, survey.kernel(), &here);
        let stray = |(change, note): (&Change, String)| Drift {
            id: checkpoint.id,
            key: change.key.clone(),
            target: change.target.clone(),
            expected: change.new.clone(),
            found: Some(change.new.clone()),
            note: Some(note),
        };
        let mut strays: Vec<Drift> = strays(&checkpoint, &survey.snapshot).into_iter().map(stray).collect();
        strays.retain(|stray| !drifted.iter().any(|row| row.key == stray.key && row.target == stray.target));
        drifted.extend(strays);
        let places = checkpoint.changes.iter().map(|change| place(&change.key, &change.target, &change.place));
        let places: std::collections::BTreeSet<(String, String)> = places.collect();
        drifted.retain(|row| {
            let of = checkpoint.changes.iter().find(|change| change.key == row.key && change.target == row.target);
            of.is_none_or(|change| !seen.contains(&place(&change.key, &change.target, &change.place)))
        });
        report.drift.extend(drifted);
        seen.extend(places);
        if state.phase == Phase::Confirmed {
            report.at_boot.extend(losers(&checkpoint, survey));
        }
    }
    Ok(report)
}

/// What isn't as a change made it. A device that was renamed, or isn't the one that it was, counts as gone; a route beside which there
/// is another with its target and priority may be passed by.
pub(crate) fn drift(checkpoint: &Checkpoint, now: &Snapshot, kernel: KernelVersion, here: &Identity) -> Vec<Drift> {
    let devices = Relocation::of(&checkpoint.before.devices, now, checkpoint.is_of(here));
    let values = Values::of(now, kernel);
    let (routes, alone) = (RouteIndex::of(&now.routes), RouteIndex::of(&checkpoint.wanted.routes));
    let row = |change: &Change| {
        let several = match &change.place {
            Place::Route(key) if alone.count_hex(key) < 2 => routes.count_hex(key) > 1,
            _ => false,
        };
        let several =
            several.then_some("several routes have its target and priority now, so that others may be followed");
        let moved = match &change.place {
            Place::Link(name) => devices.whereabouts(name, now),
            Place::Host | Place::Route(_) | Place::Connections(_) => None,
        };
        let found = if moved.is_some() { None } else { values.get(change) };
        (several.is_some() || found.as_ref() != Some(&change.new)).then(|| Drift {
            id: checkpoint.id,
            key: change.key.clone(),
            target: change.target.clone(),
            expected: change.new.clone(),
            found,
            note: moved.or(several.map(str::to_owned)),
        })
    };
    checkpoint.changes.iter().filter(|change| !change.is_idle(&checkpoint.wanted)).filter_map(row).collect()
}

impl std::fmt::Display for Drift {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} on {} was made {}, and ", self.key, self.target, self.expected)?;
        match (&self.note, &self.found) {
            (Some(note), _) => f.write_str(note),
            (None, Some(found)) => write!(f, "is {found}"),
            (None, None) => f.write_str("is gone"),
        }
    }
}
