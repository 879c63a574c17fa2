use crate::scope::Scope;
use std::net::IpAddr;
use std::time::Duration;
use wt_host::{
    ApplyOptions, CheckpointId, GuardCommand, Plan, PlanError, RealSystem, Request, Store, Survey, TxnError,
};
use wt_sys::{SysError, process};
use wt_trial::TunnelError;
use wt_units::{Knob, Level, Settings};

/// After a trial should have been over for so long, the guard puts everything back, whatever has become of us.
const GRACE: Duration = Duration::from_secs(30);

/// So many times what is held by another process is waited for, some seconds each: its own guard, on a slow disk, or another
/// windtunnel. The guard has longer than all of them, and puts everything back if they don't do.
const ATTEMPTS: u32 = 6;

/// Changes routes and host-wide settings for the time of one trial, through the same transaction and guard as
/// `settings apply`.
#[derive(Debug)]
pub struct Changer {
    /// The machine.
    pub system: RealSystem,
    /// Where checkpoints are kept.
    pub store: Store,
    /// What starts a guard.
    pub guard: GuardCommand,
    /// Whether settings of the whole host may be changed: other programs feel that.
    pub allow_host_wide: bool,
}

/// Why a change wasn't made, or couldn't be put back.
#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    /// It is invalid here.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The setting isn't known there.
    #[error(transparent)]
    Knob(#[from] wt_host::KnobError),
    /// It wasn't made; or it couldn't be put back, and the error says where the backup lies.
    #[error(transparent)]
    Transaction(#[from] TxnError),
    /// The kernel couldn't be read.
    #[error(transparent)]
    System(#[from] SysError),
}

/// A change that is in force.
#[derive(Debug)]
pub(crate) struct ChangeInForce {
    id: Option<CheckpointId>,
    /// What the kernel says.
    pub(crate) granted: Settings,
}

/// Refuses what this process may never set, before anything is sent.
///
/// # Errors
/// [`TunnelError::Environment`] for settings of routes and of the whole host without `CAP_NET_ADMIN`.
pub(crate) fn may_set(scope: Scope) -> Result<(), TunnelError> {
    if !matches!(scope, Scope::Route | Scope::Host) || process::has_capability(process::CAP_NET_ADMIN) {
        return Ok(());
    }
    Err(TunnelError::Environment {
        why: "settings of routes and of the whole host need CAP_NET_ADMIN over this network namespace".to_owned(),
        remedy: Some(
            "the same command with sudo; knobs that one socket takes need no privilege: rwin, mtu, mss, ttl; for uploads cc and sndbuf"
                .to_owned(),
        ),
    })
}

/// A change that waits, and what to do.
#[derive(Debug)]
pub(crate) struct InTheWay {
    pub(crate) why: String,
    pub(crate) remedy: String,
}

/// Where it is to hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// On a route to this address only.
    Route(IpAddr),
    /// On the whole host.
    Host,
}

impl Changer {
    /// Makes it, for a trial that is over after `at_most`.
    pub(crate) fn make(
        &mut self,
        settings: &Settings,
        place: Place,
        at_most: Duration,
    ) -> Result<ChangeInForce, ChangeError> {
        let pairs: Vec<String> = settings.iter().map(|(knob, level)| format!("{knob}={level}")).collect();
        let request = Request {
            target: match place {
                Place::Route(address) => wt_host::Target::Route(address, None),
                Place::Host => wt_host::Target::Host,
            },
            ..Request::of_pairs(pairs.iter().map(String::as_str))?
        };
        let options =
            ApplyOptions { confirm_within: at_most + GRACE, yes: false, observe: false, guard: self.guard.clone() };
        let applied = patiently(|| {
            let survey = Survey::take(&mut self.system)?;
            let plan = Plan::make(&mut self.system, &survey, &request)?;
            if plan.is_empty() {
                return Ok(None);
            }
            Ok(Some(wt_host::apply(&mut self.system, &self.store, &survey, &plan, &options)?))
        })?;
        let Some(applied) = applied else { return Ok(ChangeInForce { id: None, granted: settings.clone() }) };
        let level = |(knob, asked): (Knob, &Level)| {
            let row = applied.applied.iter().find(|row| row.key == knob.name());
            let granted = row.and_then(|row| row.granted.as_ref()).map(|value| knob.parse_level(&value.to_string()));
            (knob, granted.and_then(Result::ok).unwrap_or_else(|| asked.clone()))
        };
        Ok(ChangeInForce { id: Some(applied.id), granted: settings.iter().map(level).collect() })
    }

    /// What to do about a change that still waits, if there is one: no other one can be made meanwhile.
    pub(crate) fn in_the_way(&mut self) -> Result<Option<InTheWay>, ChangeError> {
        let Some(pending) = wt_host::pending(&mut self.system, &self.store)? else { return Ok(None) };
        let id = pending.id;
        let undo = format!("windtunnel settings undo {id} puts it back now");
        let remedy = if pending.guarded {
            format!("wait: its guard puts it back in {} s unless it is confirmed; or {undo}", pending.seconds_left)
        } else {
            undo
        };
        let why =
            format!("change {id} to this host is still in force, of `settings apply` or of a trial that was killed");
        Ok(Some(InTheWay { why, remedy }))
    }

    /// Puts it back.
    pub(crate) fn put_back(&mut self, made: &ChangeInForce) -> Result<(), ChangeError> {
        let Some(id) = made.id else { return Ok(()) };
        match patiently(|| Ok(wt_host::undo(&mut self.system, &self.store, Some(id), &self.guard)?)) {
            // The guard was first.
            Ok(_) | Err(ChangeError::Transaction(TxnError::NotInForce { .. } | TxnError::NothingToUndo)) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// Does it, as soon as no other process changes the settings.
fn patiently<T>(mut what: impl FnMut() -> Result<T, ChangeError>) -> Result<T, ChangeError> {
    for _ in 1..ATTEMPTS {
        match what() {
            Err(ChangeError::Transaction(TxnError::Busy { .. } | TxnError::Stale { .. })) => {}
            done => return done,
        }
    }
    what()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_a_privilege_is_refused_before_anything_is_sent() {
        let privileged = process::has_capability(process::CAP_NET_ADMIN);
        for (scope, may) in
            [(Scope::Socket, true), (Scope::RemoteHost, true), (Scope::Route, privileged), (Scope::Host, privileged)]
        {
            assert_eq!(may_set(scope).is_ok(), may, "{scope:?}");
        }
    }
}
