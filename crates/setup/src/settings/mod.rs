//! This host's TCP/IP settings: show, plan, apply, confirm, undo, and what was changed.
//!
//! Each operation takes the machine as [`HostAccess`] and answers with what `windtunnel settings … --json` prints. A change
//! is reverted by a guard, a process of its own, unless it is confirmed in time.

/// The machine.
mod access;
/// What comes out.
mod answers;
/// What changes rest on.
mod basis;
/// What is to be changed.
mod change;
/// Whether changes still hold, and still rest on something.
mod check;
/// What failures mean.
mod problem;
/// What a server's own connections recommend.
mod traffic;
/// A change in words for other hosts.
mod written_out;

pub use access::HostAccess;
pub use answers::{BackupAnswer, ChangeAnswer, DefaultsAnswer, HistoryAnswer, PendingAnswer};
pub use change::ChangeRequest;
pub use check::{CheckReport, CheckRequest, Circumstance, LaterProof, ProofCheck, VerdictCheck};
pub use written_out::{WrittenChange, reaches_beyond};

use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use wt_host::{
    ApplyOptions, Backup, Change, CheckpointId, CheckpointIdError, ConfirmOutcome, Export, ExportFormat, Finding,
    GuardOptions, HeldChange, HistoryRow, Knob, Phase, Plan, RecoveredChange, ReleasedChange, Report, Request, Survey,
    System as _, TxnError, Undone, Value, VerifyReport,
};
use wt_problem::Problem;
use wt_traffic::ArmSettings;
use wt_units::{Settings, serde_duration, suggestion};

/// How long a change may wait for its confirmation.
const CONFIRM_WITHIN: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(7 * 86_400);

/// Which settings are shown.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShowRequest {
    /// The adapter whose settings are shown; nothing means the one that carries the default route.
    pub adapter: Option<String>,
    /// Findings that are left out this once, by their ids.
    pub mute: Vec<String>,
}

/// A change to make.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ApplyRequest {
    /// What.
    pub change: ChangeRequest,
    /// How it is confirmed.
    pub confirmation: Confirmation,
}

/// How a change is confirmed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Confirmation {
    /// Everything is reverted unless a confirmation comes within this time, 1 s to 7 days.
    #[serde(with = "serde_duration")]
    pub within: Duration,
    /// Confirm at once: nobody can if this cuts the machine off.
    pub at_once: bool,
}

impl Default for Confirmation {
    fn default() -> Self {
        Self { within: Duration::from_secs(120), at_once: false }
    }
}

/// Settings in the words of another system or manager.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExportRequest {
    /// Whose words.
    pub format: ExportFormat,
    /// Which settings; none means those of this host that aren't the kernel's own.
    #[serde(default)]
    pub change: ChangeRequest,
}

/// A change in force.
#[derive(Debug, Clone, PartialEq)]
pub struct InForce {
    /// Its number.
    pub id: CheckpointId,
    /// What it makes, for people: `rwin=8192 on 192.0.2.1`.
    pub what: String,
    /// The same in the words of experiments, as far as those have words for it.
    pub settings: Settings,
}

impl InForce {
    fn of(id: CheckpointId, changes: &[Change]) -> Self {
        let text = |change: &Change| format!("{}={} on {}", change.key, change.new, change.target);
        let level = |change: &Change| {
            let knob: wt_units::Knob = change.key.parse().ok()?;
            Some((knob, knob.parse_level(&change.new.to_string()).ok()?))
        };
        let what = changes.iter().map(text).collect::<Vec<_>>().join(", ");
        Self { id, what, settings: changes.iter().filter_map(level).collect() }
    }
}

/// Whoever loses so often against others isn't alone with these settings.
const ATTEMPTS: usize = 8;

impl HostAccess {
    fn survey(&mut self) -> Result<Survey, Problem> {
        Survey::take(&mut self.system).map_err(|error| problem::system(&error))
    }

    /// Ends changes that nobody watches any more; what became of each, and which can't be read.
    pub fn recover(&mut self) -> Vec<Finding> {
        // Where somebody is at it, there is nothing to recover.
        let recovered = wt_host::recover(&mut self.system, &self.store).unwrap_or_default();
        let damaged = wt_host::damaged(&mut self.system, &self.store).unwrap_or_default();
        recovered.iter().map(RecoveredChange::finding).chain(damaged).collect()
    }

    /// Whether a change stands here whose process and guards are gone: [`Self::put_back_unwatched`] takes it back.
    pub fn has_unwatched(&mut self) -> bool {
        wt_host::is_unwatched(&mut self.system, &self.store).unwrap_or(false)
    }

    /// Takes back what nobody watches any more; whether there was anything.
    ///
    /// # Errors
    /// An environment [`Problem`] where somebody else is at it, or it can't be put back.
    pub fn put_back_unwatched(&mut self) -> Result<bool, Problem> {
        let recovered = wt_host::recover(&mut self.system, &self.store).map_err(|error| problem::txn(&error))?;
        match recovered.iter().find(|one| !one.errors.is_empty()) {
            Some(failed) => Err(Problem::environment(failed.finding().text)),
            None => Ok(!recovered.is_empty()),
        }
    }

    /// Everything on one screen.
    ///
    /// # Errors
    /// A usage [`Problem`] where there is no such adapter, an environment one where the machine can't be read.
    pub fn show(&mut self, request: &ShowRequest) -> Result<Report, Problem> {
        let recovered = self.recover();
        let survey = self.survey()?;
        let pending = wt_host::pending(&mut self.system, &self.store).unwrap_or_default();
        let mut muted = self.store.muted(&mut self.system);
        muted.extend(request.mute.iter().cloned());
        let report = Report::at(&survey, request.adapter.as_deref(), pending, &recovered, &muted);
        let names = || report.adapters.iter().map(|adapter| adapter.name.as_str());
        match request.adapter.as_deref().filter(|wanted| !names().any(|name| name == *wanted)) {
            None => Ok(report),
            Some(name) => Err(Problem::usage(format!("there is no adapter \"{name}\"{}", suggestion(name, names())))
                .hint("windtunnel settings show lists them")),
        }
    }

    /// The change that waits for its confirmation, if one does. Cheap enough to be asked every few seconds: nothing of the
    /// machine's settings is read.
    #[must_use]
    pub fn pending(&mut self) -> PendingAnswer {
        let pending = wt_host::pending(&mut self.system, &self.store).unwrap_or_default();
        PendingAnswer { schema_version: 1, pending, hidden: self.hidden() }
    }

    /// What would change: old and new, the commands, what could go wrong. Writes nothing.
    ///
    /// # Errors
    /// A usage [`Problem`] for an invalid change, an environment one where this machine can't make it.
    pub fn plan(&mut self, request: &ChangeRequest) -> Result<Plan, Problem> {
        self.surveyed_plan(request).map(|(_, plan)| plan)
    }

    fn surveyed_plan(&mut self, request: &ChangeRequest) -> Result<(Survey, Plan), Problem> {
        let survey = self.survey()?;
        let mut request = request.read(&survey)?;
        if let Some(basis) = &mut request.basis {
            let towards = basis.server.map(|server| server.ip());
            basis.device = basis::device(&mut self.system, &survey, towards);
        }
        let plan = Plan::make(&mut self.system, &survey, &request).map_err(|error| problem::plan(&error))?;
        Ok((survey, Plan { basis: request.basis, ..plan }))
    }

    /// Changes settings; everything is reverted unless it is confirmed in time.
    ///
    /// # Errors
    /// As [`Self::plan`], and an environment [`Problem`] where nothing was begun; a change that failed half-way is an answer
    /// with a problem.
    pub fn apply(&mut self, request: &ApplyRequest) -> Result<ChangeAnswer, Problem> {
        self.carry_out(request.confirmation, |host| host.surveyed_plan(&request.change))
    }

    /// Plans and applies, anew if somebody else changed the same settings in between.
    fn carry_out(
        &mut self,
        Confirmation { within, at_once }: Confirmation,
        plan: impl Fn(&mut Self) -> Result<(Survey, Plan), Problem>,
    ) -> Result<ChangeAnswer, Problem> {
        if !CONFIRM_WITHIN.contains(&within) {
            return Err(Problem::usage(format!("{} s is out of range: allowed is 1s to 168h", within.as_secs_f64())));
        }
        let options = ApplyOptions { confirm_within: within, yes: at_once, observe: true, guard: self.guard.clone() };
        let attempt = |host: &mut Self| -> Result<_, Problem> {
            let (survey, plan) = plan(host)?;
            Ok(wt_host::apply(&mut host.system, &host.store, &survey, &plan, &options))
        };
        let mut result = attempt(self)?;
        for _ in 1..ATTEMPTS {
            if !matches!(result, Err(TxnError::Stale { .. })) {
                break;
            }
            result = attempt(self)?;
        }
        result.map(|applied| ChangeAnswer { applied, problem: None }).or_else(|error| {
            let problem = problem::txn(&error);
            match error {
                TxnError::Failed { report, .. } => Ok(ChangeAnswer { applied: *report, problem: Some(problem) }),
                _ => Err(problem),
            }
        })
    }

    /// Whether this host as a whole can have the settings of an arm.
    ///
    /// # Errors
    /// A usage [`Problem`] that names what it can't have.
    pub fn can_hold(settings: &ArmSettings) -> Result<(), Problem> {
        traffic::of_arm(settings).map(drop)
    }

    /// Whether this host has the settings of an arm anyway.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub fn has(&mut self, settings: &ArmSettings) -> Result<bool, Problem> {
        if settings.is_current() {
            return Ok(true);
        }
        let request = traffic::of_arm(settings)?;
        let survey = self.survey()?;
        let plan = Plan::make(&mut self.system, &survey, &request).map_err(|error| problem::plan(&error))?;
        Ok(plan.is_empty())
    }

    /// Gives this host the settings of an arm while the answer is held; guards put everything back when this process ends,
    /// however it ends, or when `within` has passed. `None` where the host has them anyway.
    ///
    /// # Errors
    /// As [`Self::plan`], and an environment [`Problem`] where they can't be had. What somebody else changed in between is planned anew.
    pub fn hold(&mut self, settings: &ArmSettings, within: Duration) -> Result<Option<HeldChange>, Problem> {
        if settings.is_current() {
            return Ok(None);
        }
        let request = traffic::of_arm(settings)?;
        let options = ApplyOptions { confirm_within: within, yes: false, observe: false, guard: self.guard.clone() };
        let mut attempts = 0;
        loop {
            attempts += 1;
            let survey = self.survey()?;
            let plan = Plan::make(&mut self.system, &survey, &request).map_err(|error| problem::plan(&error))?;
            if plan.is_empty() {
                return Ok(None);
            }
            match wt_host::hold(&mut self.system, &self.store, &survey, &plan, &options) {
                Err(TxnError::Stale { .. }) if attempts < ATTEMPTS => {}
                held => return held.map(Some).map_err(|error| problem::txn(&error)),
            }
        }
    }

    /// Takes what is held out of the kernel, or puts it back in.
    ///
    /// # Errors
    /// An environment [`Problem`] where the kernel refuses.
    pub fn switch_held(&mut self, held: &HeldChange, on: bool) -> Result<(), Problem> {
        held.switch(&mut self.system, on).map_err(|error| problem::txn(&error))
    }

    /// Puts everything back that is held.
    ///
    /// # Errors
    /// An environment [`Problem`] where the kernel refuses.
    pub fn release(&mut self, held: HeldChange) -> Result<(), Problem> {
        held.put_back(&mut self.system).map_err(|error| problem::txn(&error))
    }

    /// What it would take to make all settings as a file has them.
    ///
    /// # Errors
    /// A usage [`Problem`] where the file holds no settings.
    pub fn plan_backup(&mut self, file: &Path) -> Result<Plan, Problem> {
        self.surveyed_backup(file).map(|(_, plan)| plan)
    }

    fn surveyed_backup(&mut self, file: &Path) -> Result<(Survey, Plan), Problem> {
        let bytes = std::fs::read(file).map_err(|error| {
            Problem::usage(format!("{}: {error}", file.display()))
                .hint("name a file that windtunnel settings backup FILE wrote; windtunnel settings undo needs none")
        })?;
        let backup = Backup::parse(&bytes, file).map_err(|error| Problem::usage(error.to_string()))?;
        let survey = self.survey()?;
        let plan = backup.plan(&survey);
        Ok((survey, plan))
    }

    /// Makes all settings as a file has them, like a change.
    ///
    /// # Errors
    /// As [`Self::plan_backup`] and [`Self::apply`].
    pub fn restore(&mut self, file: &Path, confirmation: Confirmation) -> Result<ChangeAnswer, Problem> {
        self.carry_out(confirmation, |host| host.surveyed_backup(file))
    }

    /// Stores all settings in a file that doesn't exist yet.
    ///
    /// # Errors
    /// An environment [`Problem`] that names the file.
    pub fn back_up(&mut self, file: &Path) -> Result<BackupAnswer, Problem> {
        let survey = self.survey()?;
        let backup = Backup::of(&survey, self.system.now().unix_s);
        let text = serde_json::to_string(&backup).map_err(|error| Problem::internal(error.to_string()))?;
        let write = || {
            let mut made = std::fs::File::options().write(true).create_new(true).mode(0o600).open(file)?;
            made.write_all(text.as_bytes())?;
            made.write_all(b"\n")?;
            made.sync_all()
        };
        write().map_err(|error| {
            let hint = match error.kind() {
                std::io::ErrorKind::AlreadyExists => "name a file that doesn't exist yet",
                std::io::ErrorKind::NotFound => "make the folder first, or name a file in one that is there",
                _ => "name a file in a folder that you may write to, with room on its disk",
            };
            Problem::environment(format!("{}: {error}", file.display())).hint(hint)
        })?;
        Ok(BackupAnswer::of(&backup))
    }

    /// Makes a change stay: the one that waits, unless another is named.
    ///
    /// # Errors
    /// A usage [`Problem`] where there is none, an environment one where it can't be kept.
    pub fn confirm(&mut self, which: Option<&str>) -> Result<ConfirmOutcome, Problem> {
        wt_host::confirm(&mut self.system, &self.store, id(which)?).map_err(|error| problem::txn(&error))
    }

    /// Reverts a change: the latest in force, unless another is named.
    ///
    /// # Errors
    /// A usage [`Problem`] where there is none, an environment one where it can't be reverted.
    pub fn undo(&mut self, which: Option<&str>) -> Result<Undone, Problem> {
        let undone = wt_host::undo(&mut self.system, &self.store, id(which)?, &self.guard);
        undone.map_err(|error| problem::txn(&error))
    }

    /// Reverts what can be, and is done with a change: the latest in force, unless another is named.
    ///
    /// # Errors
    /// A usage [`Problem`] where there is none.
    pub fn undo_by_force(&mut self, which: Option<&str>) -> Result<ReleasedChange, Problem> {
        wt_host::undo_by_force(&mut self.system, &self.store, id(which)?).map_err(|error| problem::txn(&error))
    }

    /// Leaves everything as it is, and is done with a change.
    ///
    /// # Errors
    /// A usage [`Problem`] where there is none.
    pub fn forget(&mut self, which: &str) -> Result<ReleasedChange, Problem> {
        let which = which.parse().map_err(|error: CheckpointIdError| problem::store(&error.into()))?;
        wt_host::forget(&mut self.system, &self.store, which).map_err(|error| problem::txn(&error))
    }

    /// A change in force, the latest unless another is named, with what it changed.
    ///
    /// # Errors
    /// A usage [`Problem`] where there is none.
    pub fn in_force(&mut self, which: Option<&str>) -> Result<InForce, Problem> {
        let found = wt_host::in_force(&mut self.system, &self.store, id(which)?);
        found.map(|(id, changes)| InForce::of(id, &changes)).map_err(|error| match error {
            TxnError::NothingToUndo => Problem::usage("no change is in force")
                .hint("windtunnel settings apply makes one; windtunnel settings history lists those that were made"),
            error => problem::txn(&error),
        })
    }

    /// Takes a change in force out of the kernel for a while, or puts it back in.
    ///
    /// # Errors
    /// An environment [`Problem`] where the kernel refuses.
    pub fn switch(&mut self, which: CheckpointId, on: bool) -> Result<(), Problem> {
        wt_host::switch(&mut self.system, &self.store, which, on).map_err(|error| problem::txn(&error))
    }

    /// The changes that were made.
    ///
    /// # Errors
    /// An environment [`Problem`] where they can't be read.
    pub fn history(&mut self) -> Result<HistoryAnswer, Problem> {
        let recovered = self.recover();
        let changes = wt_host::history(&mut self.system, &self.store).map_err(|error| problem::store(&error))?;
        Ok(HistoryAnswer { schema_version: 1, changes, recovered, hidden: self.hidden() })
    }

    /// The changes of this host in force, the latest first; none where they can't be read. Unlike [`Self::history`] this ends nothing that
    /// nobody watches any more: who only asks what there is changes nothing.
    #[must_use]
    pub fn standing(&mut self) -> Vec<HistoryRow> {
        let mut changes = wt_host::history(&mut self.system, &self.store).unwrap_or_default();
        changes.retain(|row| {
            row.here && [Phase::Applied, Phase::Confirmed].iter().any(|phase| row.phase == Some(phase.name()))
        });
        changes
    }

    /// Whether what was changed is still so.
    ///
    /// # Errors
    /// An environment [`Problem`] where that can't be read.
    pub fn verify(&mut self) -> Result<VerifyReport, Problem> {
        self.recover();
        let survey = self.survey()?;
        let report = wt_host::verify(&mut self.system, &self.store, &survey).map_err(|error| problem::txn(&error))?;
        self.knows(&report.checked)?;
        Ok(report)
    }

    /// Refuses to answer that no change is in force, where only root can know that.
    fn knows(&self, in_force: &[CheckpointId]) -> Result<(), Problem> {
        match self.hidden().filter(|_| in_force.is_empty()) {
            Some(hidden) => Err(problem::hidden(hidden)),
            None => Ok(()),
        }
    }

    /// Whether what was changed is still so, and whether the verdicts behind it still apply.
    ///
    /// # Errors
    /// An environment [`Problem`] where that can't be read.
    pub fn check(&mut self, request: &CheckRequest) -> Result<CheckReport, Problem> {
        self.recover();
        let report = self.look(request)?;
        self.knows(&report.checked)?;
        Ok(report)
    }

    /// The same as everything stands: no change is ended.
    pub(crate) fn look(&mut self, request: &CheckRequest) -> Result<CheckReport, Problem> {
        let survey = self.survey()?;
        let verified = wt_host::verify(&mut self.system, &self.store, &survey).map_err(|error| problem::txn(&error))?;
        Ok(check::look(&mut self.system, &self.store, &survey, verified, request))
    }

    /// Settings in the words of another system or manager, and the plan whose settings they are.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub fn export(&mut self, request: &ExportRequest) -> Result<(Export, Vec<wt_host::Risk>), Problem> {
        let survey = self.survey()?;
        let own = request.change.is_empty();
        let mut change = if own { Request::current(&survey) } else { request.change.read_for_export(&survey)? };
        if own && change.pairs.is_empty() {
            let format = request.format.name();
            return Ok((Export { schema_version: 1, format, files: Vec::new(), skipped: Vec::new() }, Vec::new()));
        }
        // Whether this kernel has a congestion control is no matter to another system.
        let foreign = |(knob, _): &mut (&Knob, Value)| knob.name == "cc" && request.format.is_foreign();
        let cc = change.pairs.extract_if(.., foreign).last().map(|(_, value)| value);
        let plan = match &cc {
            Some(_) if change.pairs.is_empty() => Plan::nothing(),
            _ => Plan::make(&mut self.system, &survey, &change).map_err(|error| problem::plan(&error))?,
        };
        Ok((wt_host::export(request.format, &plan, cc.as_ref(), &survey), plan.skipped))
    }

    /// Stops showing a finding, or with `off` shows it again; whether that changes anything.
    ///
    /// # Errors
    /// A usage [`Problem`] for what is no id, an environment one where it can't be noted.
    pub fn mute(&mut self, id: &str, off: bool) -> Result<bool, Problem> {
        let mut muted: BTreeSet<String> = self.store.muted(&mut self.system);
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.@".contains(c);
        if id.is_empty() || id.len() > 80 || !id.chars().all(plain) {
            return Err(Problem::usage(format!("\"{id}\" is not the id of a finding"))
                .hint("windtunnel settings show prints them"));
        }
        let changed = if off { muted.remove(id) } else { muted.insert(id.to_owned()) };
        self.store.set_muted(&mut self.system, &muted).map_err(|error| problem::store(&error))?;
        Ok(changed)
    }

    /// Watches a change until it is confirmed or reverted.
    ///
    /// # Errors
    /// A [`Problem`] where there is no such change.
    pub fn guard(&mut self, which: &str) -> Result<(), Problem> {
        let id = which.parse().map_err(|error: CheckpointIdError| problem::store(&error.into()))?;
        let options = GuardOptions { store: self.store.clone(), id };
        wt_host::guard(&mut self.system, &options).map_err(|error| problem::store(&error))
    }
}

/// Holds settings on new connections with a target, as a unit does at boot.
///
/// # Errors
/// A usage [`Problem`] for what is no setting; an environment one with what the kernel refused.
pub fn hold_connections(target: &str, settings: &[String]) -> Result<(), Problem> {
    let pairs: Result<Vec<_>, _> = settings.iter().map(|pair| Knob::parse_pair(pair)).collect();
    let pairs = pairs.map_err(|error| Problem::usage(error.to_string()))?;
    wt_host::hold_connections(target, &pairs).map_err(|error| match error.source.kind() {
        std::io::ErrorKind::InvalidInput => Problem::usage(error.to_string()),
        _ => Problem::environment(error.to_string()).hint("run it as root, outside of containers; Linux 5.15 or newer"),
    })
}

/// What operating systems begin with: all, or one by its name.
///
/// # Errors
/// A usage [`Problem`] with the nearest name.
pub fn defaults(os: Option<&str>) -> Result<DefaultsAnswer, Problem> {
    let systems = match os {
        None => wt_host::os_defaults().iter().collect(),
        Some(name) => vec![wt_host::os_default(name).map_err(|error| {
            let near = suggestion(name, error.known.iter().map(String::as_str));
            Problem::usage(format!("{error}{near}"))
        })?],
    };
    Ok(DefaultsAnswer { schema_version: 1, systems })
}

/// Reads how long a change may wait for its confirmation; a bare number means seconds, as in netplan try.
///
/// # Errors
/// Says what is allowed.
pub fn confirm_within(text: &str) -> Result<Duration, String> {
    let time = match text.parse::<u64>() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => wt_units::parse_duration(text).map_err(|error| error.to_string())?,
    };
    if CONFIRM_WITHIN.contains(&time) {
        Ok(time)
    } else {
        Err(format!("\"{text}\" is out of range: allowed is 1s to 168h"))
    }
}

fn id(text: Option<&str>) -> Result<Option<CheckpointId>, Problem> {
    text.map(str::parse).transpose().map_err(|error: CheckpointIdError| problem::store(&error.into()))
}
