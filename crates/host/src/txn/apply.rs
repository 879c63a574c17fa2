use super::confirm::confirm_locked;
use super::error::TxnError;
use super::guard::{Guard, GuardCommand};
use super::held::{HeldChange, lock_here};
use super::observe::observe;
use super::outcome::{AppliedRow, ApplyOutcome, RevertReport};
use super::recovery::{recover_locked, waiting};
use super::revert::{enter, revert, touches_mtu};
use super::store::{Store, StoreLock};
use crate::calendar::utc;
use crate::change::{self, CHECKPOINT_FORMAT, Change, Checkpoint, CheckpointId, Phase, Plan, State};
use crate::persist;
use crate::read::{Survey, Values};
use crate::snapshot::{CC, RouteIndex, Scope, Snapshot, route_key, steps};
use crate::system::{Action, System};
use std::path::Path;
use std::time::Duration;
use wt_sys::SysError;

/// The version of the JSON that [`ApplyOutcome`] becomes.
const SCHEMA_VERSION: u32 = 1;
/// Times that what was written is checked before it counts as failed: links and drivers can take a moment.
const CHECKS: usize = 5;
/// Between two checks.
const BETWEEN_CHECKS: Duration = Duration::from_millis(20);

/// How a change is made.
#[derive(Debug, Clone)]
pub struct ApplyOptions {
    /// It is put back unless it is confirmed within this time.
    pub confirm_within: Duration,
    /// It is confirmed at once.
    pub yes: bool,
    /// A connection is made to see whether the change is in force, to a target with one SYN.
    pub observe: bool,
    /// What starts a guard.
    pub guard: GuardCommand,
}

/// A change under way.
struct Transaction<'a> {
    system: &'a mut dyn System,
    store: &'a Store,
    checkpoint: Checkpoint,
    state: State,
    plan: &'a Plan,
    survey: &'a Survey,
}

/// Makes a change: stores how everything is, starts a guard, writes, reads again and compares; puts everything back if
/// anything fails. Unless it is confirmed, by `yes` or by [`confirm`](super::confirm), it doesn't stay.
///
/// # Errors
/// [`TxnError`]. Then everything is as it was; [`TxnError::Failed`] says so, or what isn't.
pub fn apply(
    system: &mut dyn System,
    store: &Store,
    survey: &Survey,
    plan: &Plan,
    options: &ApplyOptions,
) -> Result<ApplyOutcome, TxnError> {
    check_privilege(survey, plan)?;
    if !persist::has_place(system, survey, &plan.scope.sysctls)? {
        return Err(TxnError::NoPlace);
    }
    let (mut transaction, _lock) = begin(system, store, survey, plan, options.confirm_within)?;
    // The guards depend on this process until it is done: they see its end, however it comes.
    let guards = transaction.prepare(options)?;
    let result = transaction.run(options);
    drop(guards);
    result
}

/// Everything before the first guard: what is in the way, and what is to be put back.
fn begin<'a>(
    system: &'a mut dyn System,
    store: &'a Store,
    survey: &'a Survey,
    plan: &'a Plan,
    confirm_within: Duration,
) -> Result<(Transaction<'a>, StoreLock), TxnError> {
    check_privilege(survey, plan)?;
    let lock = lock_here(system, store)?;
    recover_locked(system, store)?;
    if let Some((checkpoint, state)) = waiting(system, store)? {
        let id = checkpoint.id;
        return Err(match state.phase {
            Phase::RevertFailed => TxnError::Stuck { id, errors: state.errors },
            _ => TxnError::Pending { id },
        });
    }
    // Only what is read now, while nobody else of us can change it, is what is to be put back.
    let before = Snapshot::read(system)?;
    check_planned_for(survey, plan, &before)?;
    rehearse(system, survey, plan, &before)?;
    let now = system.now();
    let id = store.create(system)?;
    let checkpoint = checkpoint_of(id, plan, survey, before, now.unix_s);
    let state = State::prepared(now, confirm_within.as_secs());
    Ok((Transaction { system, store, checkpoint, state, plan, survey }, lock))
}

/// Makes a change that is in force only while somebody holds it: it counts as half-way all the while, so that the guards put
/// everything back as soon as this process ends, however it ends, or once `options.confirm_within` has passed. Nobody
/// else's change to this network namespace can begin meanwhile; the store is free for others.
///
/// # Errors
/// As [`apply`].
pub fn hold(
    system: &mut dyn System,
    store: &Store,
    survey: &Survey,
    plan: &Plan,
    options: &ApplyOptions,
) -> Result<HeldChange, TxnError> {
    let (mut transaction, _lock) = begin(system, store, survey, plan, options.confirm_within)?;
    // From the beginning: as soon as the store's lock is free, this alone tells it from what somebody left half-way.
    let hold = store.hold(transaction.checkpoint.id)?;
    let within = u64::try_from(options.confirm_within.as_nanos()).unwrap_or(u64::MAX);
    transaction.state.apply_until_ns = transaction.system.now().boottime_ns.saturating_add(within);
    let guards = transaction.prepare(options)?;
    transaction.write_and_verify()?;
    // So that whoever puts it back knows that it was in force as a whole: what others change from here on is theirs.
    let _ = store.write_state(transaction.system, transaction.checkpoint.id, &transaction.state);
    let Transaction { checkpoint, state, .. } = transaction;
    Ok(HeldChange::new(store.clone(), checkpoint, state, guards, hold))
}

fn check_privilege(survey: &Survey, plan: &Plan) -> Result<(), TxnError> {
    if survey.identity.net_admin || plan.is_empty() {
        return Ok(());
    }
    let names = survey.names();
    let what = plan.actions.first().map(|action| action.command(&names)).unwrap_or_default();
    Err(TxnError::NotPrivileged { what: format!("\"{what}\"") })
}

/// Refuses a plan for a state that is no more: it would overwrite what somebody else has set meanwhile.
fn check_planned_for(survey: &Survey, plan: &Plan, now: &Snapshot) -> Result<(), TxnError> {
    let names = survey.names();
    let (then, scope) = (&survey.snapshot, planned_scope(plan));
    let index = |snapshot: &Snapshot, name: &String| snapshot.devices.get(name).map(|device| device.index);
    let other = scope.devices.keys().filter(|name| index(then, name) != index(now, name));
    let mut what: Vec<String> = other.cloned().collect();
    what.extend(steps(then, now, &scope).iter().map(|action| action.subject(&names)));
    if what.is_empty() { Ok(()) } else { Err(TxnError::Stale { what }) }
}

/// What was asked for, without what may change along with it.
fn planned_scope(plan: &Plan) -> Scope {
    Scope { routes_through: std::collections::BTreeSet::new(), ..plan.scope.clone() }
}

/// Writes everything that is to change just as it is: what can't be written now couldn't be put back later.
fn rehearse(system: &mut dyn System, survey: &Survey, plan: &Plan, now: &Snapshot) -> Result<(), TxnError> {
    let routes = RouteIndex::of(&now.routes);
    for action in &plan.actions {
        let Some(same) = unchanged(action, now, &routes) else { continue };
        system.act(&same).map_err(|source| match source.errno() {
            // EPERM, EACCES.
            Some(1 | 13) if !is_refusal(&same) => not_permitted(system, &same, survey),
            _ => TxnError::Irreversible { source },
        })?;
    }
    Ok(())
}

/// Why the kernel doesn't permit it. A setting that nobody at all may write here belongs to the first network namespace.
fn not_permitted(system: &mut dyn System, action: &Action, survey: &Survey) -> TxnError {
    const WRITABLE: u32 = 0o222;
    let what = format!("\"{}\"", action.command(&survey.names()));
    if let Action::Sysctl { name, .. } = action {
        let file = system.ownership(Path::new(&wt_sys::sysctl::path(name)));
        if matches!(file, Ok(Some(found)) if found.mode & WRITABLE == 0) {
            return TxnError::OtherNamespace { what };
        }
    }
    TxnError::NotPrivileged { what }
}

/// Whether "not permitted" may mean the value rather than the process: a congestion control that isn't allowed.
fn is_refusal(action: &Action) -> bool {
    matches!(action, Action::Sysctl { name, .. } if name == CC)
}

/// The action that writes what is there already; `None` where that would do harm or can't be done.
fn unchanged(action: &Action, now: &Snapshot, routes: &RouteIndex<'_>) -> Option<Action> {
    Some(match action {
        Action::Sysctl { name, .. } => Action::Sysctl { name: name.clone(), value: now.sysctls.get(name)?.clone() },
        Action::Mtu { device, .. } => Action::Mtu { device: device.clone(), mtu: now.devices.get(&device.name)?.mtu },
        Action::QueueLen { device, .. } => {
            Action::QueueLen { device: device.clone(), packets: now.devices.get(&device.name)?.queue_len }
        }
        Action::Feature { device, feature, .. } => {
            let on = *now.devices.get(&device.name)?.features.get(feature)?;
            Action::Feature { device: device.clone(), feature: feature.clone(), on }
        }
        Action::ReplaceRoute { route } | Action::DeleteRoute { route } => {
            Action::ReplaceRoute { route: routes.get(&route.key())?.clone() }
        }
        Action::Qdisc { device, .. } | Action::DefaultQdisc { device } => {
            // One that the kernel put there is put back by removing the new one.
            let old = &now.devices.get(&device.name)?.qdisc;
            let (kind, handle, options) = (old.kind.clone(), old.handle, old.options.clone());
            (old.handle != 0).then(|| Action::Qdisc { device: device.clone(), kind, handle, options })?
        }
        // Drivers restart the device even for the same sizes.
        Action::Rings { .. } | Action::AddRoute { .. } | Action::AppendRoute { .. } => return None,
        // What is attached can be detached by whoever could attach it.
        Action::AddConnections { .. } | Action::RemoveConnections { .. } => return None,
    })
}

/// What is stored of a plan before anything is written.
fn checkpoint_of(id: CheckpointId, plan: &Plan, survey: &Survey, before: Snapshot, created_unix_s: u64) -> Checkpoint {
    Checkpoint {
        format: CHECKPOINT_FORMAT.to_owned(),
        schema_version: change::SCHEMA_VERSION,
        id,
        created_unix_s,
        identity: survey.identity.clone(),
        to: plan.to.clone(),
        changes: plan.changes.clone(),
        actions: plan.actions.clone(),
        wanted: plan.wanted.within(&plan.scope),
        before,
        scope: plan.scope.clone(),
        basis: plan.basis.clone(),
    }
}

impl Transaction<'_> {
    /// Stores everything and starts the guards. Nothing in the kernel is touched.
    fn prepare(&mut self, options: &ApplyOptions) -> Result<Vec<Guard>, TxnError> {
        let id = self.checkpoint.id;
        let last = State { phase: Phase::Reverted, ..self.state.clone() };
        let stored = self
            .store
            .write(self.system, &self.checkpoint)
            .and_then(|()| self.store.stage_last_state(self.system, id, &last))
            .and_then(|()| self.store.write_state(self.system, id, &self.state));
        stored.map_err(|error| self.give_up(error.into()))?;
        let started = Guard::start_pair(&options.guard, self.store, self.checkpoint.id);
        started.map_err(|why| self.give_up(TxnError::Guard(why)))
    }

    /// Ends a change of which nothing is written yet.
    fn give_up(&mut self, error: TxnError) -> TxnError {
        let id = self.checkpoint.id;
        if !self.store.has_checkpoint(self.system, id) && self.store.discard(self.system, id).is_ok() {
            return error;
        }
        let ended = enter(self.system, self.store, &self.checkpoint, &mut self.state, Phase::Reverted);
        // On a full disk the state that lies ready needs no room.
        let ended = ended.is_ok() || self.store.use_last_state(self.system, id).is_ok();
        if !ended && matches!(self.store.begun(self.system, id), Ok(None)) {
            let _ = self.store.discard(self.system, id);
        }
        error
    }

    /// Writes everything, and puts it back unless it is in force then.
    fn write_and_verify(&mut self) -> Result<Vec<AppliedRow>, TxnError> {
        if let Err(why) = enter(self.system, self.store, &self.checkpoint, &mut self.state, Phase::Applying) {
            return Err(self.fail(why, Vec::new()));
        }
        if let Err(why) = self.write() {
            return Err(self.fail(why, Vec::new()));
        }
        self.verify().map_err(|(why, rows)| self.fail(why, rows))
    }

    fn run(&mut self, options: &ApplyOptions) -> Result<ApplyOutcome, TxnError> {
        let mut rows = self.write_and_verify()?;
        if options.observe
            && let Err(why) = observe(self.system, &self.plan.changes, &self.plan.wanted, &mut rows)
        {
            return Err(self.fail(why, rows));
        }
        let now = self.system.now();
        self.state.deadline_ns =
            Some(now.boottime_ns.saturating_add(u64::try_from(options.confirm_within.as_nanos()).unwrap_or(u64::MAX)));
        self.state.deadline_unix_s = Some(now.unix_s.saturating_add(options.confirm_within.as_secs()));
        if let Err(why) = enter(self.system, self.store, &self.checkpoint, &mut self.state, Phase::Applied) {
            return Err(self.fail(why, rows));
        }
        let mut applied = self.report(rows);
        if !options.yes {
            return Ok(applied);
        }
        match confirm_locked(self.system, self.store, &self.checkpoint, &mut self.state, self.survey) {
            Ok(confirmed) => {
                (applied.confirm_deadline, applied.confirm_within_s, applied.confirmed) = (None, None, true);
                (applied.files, applied.notes) = (confirmed.files, confirmed.notes);
                Ok(applied)
            }
            Err(error) => Err(self.fail(error.to_string(), applied.applied)),
        }
    }

    /// Writes everything; what failed, in words.
    fn write(&mut self) -> Result<(), String> {
        let written = |action: &Action| self.system.act(action).map_err(|error| describe(action, &error));
        self.plan.actions.iter().try_for_each(written)
    }

    /// Reads again and compares, a few times, for links and drivers can take a moment.
    fn verify(&mut self) -> Result<Vec<AppliedRow>, (String, Vec<AppliedRow>)> {
        let mut last = (String::new(), Vec::new());
        for check in 0..CHECKS {
            if check > 0 {
                // Nothing tells when a driver is ready: this is a pause.
                let _ = wt_sys::poll::wait_readable(&[], Some(BETWEEN_CHECKS));
            }
            let now = match Snapshot::read(self.system) {
                Ok(now) => now,
                Err(error) => {
                    last.0 = error.to_string();
                    continue;
                }
            };
            let rows = self.rows(&now);
            let wrong: Vec<String> =
                rows.iter().filter(|row| row.granted.as_ref() != Some(&row.asked)).map(difference).collect();
            let left = steps(&now, &self.plan.wanted, &planned_scope(self.plan));
            if wrong.is_empty() && left.is_empty() {
                self.state.along = Some(self.along(&now));
                return Ok(rows);
            }
            let names = self.survey.names();
            let left = left.iter().map(|action| format!("not in force: {}", action.command(&names)));
            let why = if wrong.is_empty() { left.collect::<Vec<_>>().join("; ") } else { wrong.join("; ") };
            last = (why, rows);
        }
        Err(last)
    }

    /// Routes that changed along with a device.
    fn along(&self, now: &Snapshot) -> Vec<String> {
        if !touches_mtu(&self.plan.scope) {
            return Vec::new();
        }
        let changed = now.routes.symmetric_difference(&self.checkpoint.before.routes);
        changed.filter(|route| self.plan.scope.has_route(route)).map(route_key).collect()
    }

    fn rows(&self, now: &Snapshot) -> Vec<AppliedRow> {
        let values = Values::of(now, self.survey.kernel());
        // A route of its own would differ in nothing from the one that leads there: what was asked is so.
        let idle = |change: &Change| change.is_idle(&self.plan.wanted).then(|| change.new.clone());
        let row = |change: &Change| AppliedRow {
            key: change.key.clone(),
            asked: change.new.clone(),
            granted: idle(change).or_else(|| values.get(change)),
            observed: None,
            scope: change.scope,
            target: change.target.clone(),
        };
        self.plan.changes.iter().map(row).collect()
    }

    fn report(&self, applied: Vec<AppliedRow>) -> ApplyOutcome {
        ApplyOutcome {
            schema_version: SCHEMA_VERSION,
            id: self.checkpoint.id,
            applied,
            routes: self.plan.routes.clone(),
            confirm_deadline: self.state.deadline_unix_s.map(utc),
            confirm_within_s: Some(self.state.confirm_within_s),
            confirmed: false,
            files: Vec::new(),
            notes: Vec::new(),
            skipped: self.plan.skipped.clone(),
            revert: None,
            error: None,
        }
    }

    /// Puts everything back and reports both: what failed, and what came of putting it back.
    fn fail(&mut self, cause: String, rows: Vec<AppliedRow>) -> TxnError {
        // What isn't stored as applied can't have been confirmed.
        if self.state.phase == Phase::Confirmed {
            self.state.phase = Phase::Applied;
        }
        let errors =
            revert(self.system, self.store, &self.checkpoint, &mut self.state, false).err().unwrap_or_default();
        let backup = self.store.backup(self.checkpoint.id).display().to_string();
        let mut report = self.report(rows);
        (report.confirm_deadline, report.confirm_within_s) = (None, None);
        report.error = Some(cause.clone());
        report.routes.clear();
        let notes = self.state.notes.clone();
        report.revert = Some(RevertReport { done: errors.is_empty(), errors, notes, backup });
        TxnError::Failed { cause, report: Box::new(report) }
    }
}

fn difference(row: &AppliedRow) -> String {
    match &row.granted {
        Some(granted) => format!("{} on {}: asked {}, granted {granted}", row.key, row.target, row.asked),
        None => format!("{} on {}: asked {}, but it is gone", row.key, row.target, row.asked),
    }
}

/// What the kernel said, with what it probably means.
fn describe(action: &Action, error: &SysError) -> String {
    const EPERM: i32 = 1;
    const ENOENT: i32 = 2;
    match (action, error.errno()) {
        (Action::Sysctl { name, .. }, Some(EPERM)) if name == CC => format!(
            "{error}: the congestion control isn't in net.ipv4.tcp_allowed_congestion_control, and only the first network namespace may allow it"
        ),
        (Action::Sysctl { name, .. }, Some(ENOENT)) if name == CC => {
            format!("{error}: the kernel doesn't have this congestion control")
        }
        (Action::Qdisc { .. } | Action::DefaultQdisc { .. }, Some(ENOENT)) => {
            format!("{error}: the kernel doesn't have this qdisc")
        }
        _ => error.to_string(),
    }
}
