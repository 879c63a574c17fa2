use super::TxnError;
use super::checkpoint::{Checkpoint, Phase, State};
use super::confirm::confirm_locked;
use super::guard::{Guard, GuardCommand};
use super::history::{recover_locked, waiting};
use super::revert::{enter, revert, touches_mtu};
use super::store::{CheckpointId, Store};
use crate::calendar::utc;
use crate::knob::Value;
use crate::plan::{Plan, Risk, ScopeName};
use crate::read::Survey;
use crate::snapshot::{Scope, Snapshot, route_key, steps};
use crate::system::{Action, System};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;
use wt_sys::SysError;

/// The version of the JSON that [`Applied`] becomes.
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
    /// What starts a guard.
    pub guard: GuardCommand,
}

/// What came of a change.
#[derive(Debug, Clone, Serialize)]
pub struct Applied {
    /// The version of this form.
    pub schema_version: u32,
    /// Which change it is.
    pub id: CheckpointId,
    /// What was asked, and what the kernel says.
    pub applied: Vec<AppliedRow>,
    /// When it is put back unless it is confirmed; `null` once it is confirmed, or put back.
    pub confirm_deadline: Option<String>,
    /// How long that is, seconds.
    pub confirm_within_s: Option<u64>,
    /// Whether it stays.
    pub confirmed: bool,
    /// Files that make it stay.
    pub files: Vec<String>,
    /// What doesn't stay, and why.
    pub notes: Vec<Risk>,
    /// What was left out, and why.
    pub skipped: Vec<Risk>,
    /// If it failed: whether it was put back.
    pub revert: Option<RevertReport>,
    /// Why it failed.
    pub error: Option<String>,
}

/// What was asked, and what the kernel says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AppliedRow {
    /// The setting.
    pub key: String,
    /// What was to be.
    pub asked: Value,
    /// What is; `null` if it can't be told.
    pub granted: Option<Value>,
    /// Where.
    pub scope: ScopeName,
    /// On which route or device.
    pub target: String,
}

/// Whether a change that failed was put back.
#[derive(Debug, Clone, Serialize)]
pub struct RevertReport {
    /// Whether everything is as it was.
    pub done: bool,
    /// What isn't, and what the kernel said.
    pub errors: Vec<String>,
    /// The file with the old state.
    pub backup: String,
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
) -> Result<Applied, TxnError> {
    check_privilege(survey, plan)?;
    let _lock = store.lock(system)?;
    recover_locked(system, store)?;
    if let Some((checkpoint, _)) = waiting(system, store)? {
        return Err(TxnError::Pending { id: checkpoint.id });
    }
    rehearse(system, survey, plan)?;
    let now = system.now();
    let id = store.create(system)?;
    let checkpoint = Checkpoint::of(id, plan, survey, now.unix_s);
    let state = State::prepared(now, options.confirm_within.as_secs());
    let mut transaction = Transaction { system, store, checkpoint, state, plan, survey };
    // The guards hang on this process until it is done: they see its end, however it comes.
    let guards = transaction.prepare(options)?;
    let result = transaction.run(options);
    drop(guards);
    result
}

fn check_privilege(survey: &Survey, plan: &Plan) -> Result<(), TxnError> {
    if survey.identity.net_admin || plan.is_empty() {
        return Ok(());
    }
    let names = survey.names();
    let what = plan.actions.first().map(|action| action.command(&names)).unwrap_or_default();
    Err(TxnError::NotPrivileged { what: format!("\"{what}\"") })
}

/// Writes everything that is to change just as it is: what can't be written now couldn't be put back later.
fn rehearse(system: &mut dyn System, survey: &Survey, plan: &Plan) -> Result<(), TxnError> {
    for action in &plan.actions {
        let Some(same) = unchanged(action, &survey.snapshot) else { continue };
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
    matches!(action, Action::Sysctl { name, .. } if name == crate::snapshot::CC)
}

/// The action that writes what is there already; `None` where that would do harm or can't be done.
fn unchanged(action: &Action, now: &Snapshot) -> Option<Action> {
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
            let route = now.routes.iter().find(|other| other.key() == route.key())?.clone();
            Action::ReplaceRoute { route }
        }
        Action::Qdisc { device, .. } | Action::DefaultQdisc { device } => {
            // One that the kernel put there is put back by removing the new one.
            let old = &now.devices.get(&device.name)?.qdisc;
            let (kind, handle, options) = (old.kind.clone(), old.handle, old.options.clone());
            (old.handle != 0).then(|| Action::Qdisc { device: device.clone(), kind, handle, options })?
        }
        // Drivers restart the device even for the same sizes.
        Action::Rings { .. } | Action::AddRoute { .. } => return None,
    })
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
        let _ = enter(self.system, self.store, &self.checkpoint, &mut self.state, Phase::Reverted);
        error
    }

    fn run(&mut self, options: &ApplyOptions) -> Result<Applied, TxnError> {
        if let Err(why) = enter(self.system, self.store, &self.checkpoint, &mut self.state, Phase::Applying) {
            return Err(self.fail(why, Vec::new()));
        }
        if let Err(error) = self.write() {
            return Err(self.fail(describe(&error), Vec::new()));
        }
        let rows = match self.verify() {
            Ok(rows) => rows,
            Err((why, rows)) => return Err(self.fail(why, rows)),
        };
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

    fn write(&mut self) -> Result<(), SysError> {
        self.plan.actions.iter().try_for_each(|action| self.system.act(action))
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
            let left = steps(&now, &self.plan.wanted, &self.planned_scope());
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

    /// What was asked for, without what may change along with it.
    fn planned_scope(&self) -> Scope {
        Scope { routes_through: std::collections::BTreeSet::new(), ..self.plan.scope.clone() }
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
        let kernel = self.survey.kernel();
        let row = |change: &crate::plan::Change| AppliedRow {
            key: change.key.clone(),
            asked: change.new.clone(),
            granted: change.value_in(now, kernel),
            scope: change.scope,
            target: change.target.clone(),
        };
        self.plan.changes.iter().map(row).collect()
    }

    fn report(&self, applied: Vec<AppliedRow>) -> Applied {
        Applied {
            schema_version: SCHEMA_VERSION,
            id: self.checkpoint.id,
            applied,
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
        report.revert = Some(RevertReport { done: errors.is_empty(), errors, backup });
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
fn describe(error: &SysError) -> String {
    const EPERM: i32 = 1;
    const ENOENT: i32 = 2;
    let cc = error.doing.contains("tcp_congestion_control");
    match error.errno() {
        Some(EPERM) if cc => format!(
            "{error}: the congestion control isn't in net.ipv4.tcp_allowed_congestion_control, and only the first network namespace may allow it"
        ),
        Some(ENOENT) if cc => format!("{error}: the kernel doesn't have this congestion control"),
        Some(ENOENT) if error.doing.contains("qdisc") => format!("{error}: the kernel doesn't have this qdisc"),
        _ => error.to_string(),
    }
}
