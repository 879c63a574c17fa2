//! Every trial in the journal: before it begins, and after it has ended.

use super::drive::Plan;
use super::{Prepared, TuneArgs};
use crate::commands::journal;
use crate::edge::Failure;
use serde_json::json;
use std::path::Path;
use wt_journal::{Arm, Claim, Journal as _, NewExperiment, SqliteJournal, State, StoredExperiment};
use wt_sys::clock::unix_us;
use wt_trial::{TrialOutcome, TrialRecord, TrialSpec, Tunnel};

/// One experiment in the journal, under way.
#[derive(Debug)]
pub(crate) struct Notebook {
    journal: SqliteJournal,
    /// That we are at work on it.
    _claim: Option<Claim>,
    id: String,
    ended: bool,
}

impl Notebook {
    /// Writes the experiment down as running; `more` goes into its configuration.
    ///
    /// # Errors
    /// A [`Failure`] that names the journal.
    pub(super) fn create(
        args: &TuneArgs,
        tunnel: &dyn Tunnel,
        prepared: &Prepared,
        plan: &Plan,
        more: &[(&str, serde_json::Value)],
    ) -> Result<Self, Failure> {
        let arm = |arm: &super::design::Arm| Arm { label: arm.label.clone(), settings: arm.settings.clone() };
        let new = NewExperiment {
            comment: args.comment.clone().unwrap_or_default(),
            current: prepared.current.clone(),
            arms: prepared.design.arms.iter().map(arm).collect(),
            config: config(args, prepared, plan, more),
            seed: plan.seed,
            path: prepared.path.clone(),
            ..begun(tunnel)
        };
        Self::open(args.journal.as_deref(), &new)
    }

    /// Writes an experiment down as running.
    ///
    /// # Errors
    /// A [`Failure`] that names the journal.
    pub(crate) fn open(journal: Option<&Path>, new: &NewExperiment) -> Result<Self, Failure> {
        let mut journal = journal::open(journal)?;
        let claim = Claim::take(journal.path(), &new.id);
        journal.create_experiment(new).map_err(|error| journal::failure(&error))?;
        Ok(Self { journal, _claim: claim, id: new.id.clone(), ended: false })
    }

    /// The experiment's name.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// The experiment as the journal has it.
    ///
    /// # Errors
    /// A [`Failure`] that names the journal.
    pub(crate) fn stored(&self) -> Result<StoredExperiment, Failure> {
        self.journal.load(&self.id).map_err(|error| journal::failure(&error))
    }

    /// A trial begins; its number in the journal.
    ///
    /// # Errors
    /// A [`Failure`] that names the journal.
    pub(crate) fn begin(&mut self, spec: &TrialSpec, started_unix_us: i64) -> Result<i64, Failure> {
        self.journal.begin_trial(spec, started_unix_us).map_err(|error| journal::failure(&error))
    }

    /// It has ended.
    ///
    /// # Errors
    /// A [`Failure`] that names the journal.
    pub(crate) fn finish(&mut self, id: i64, outcome: &TrialOutcome) -> Result<(), Failure> {
        self.journal.finish_trial(id, outcome).map_err(|error| journal::failure(&error))
    }

    /// Writes down a trial that was run before the experiment had a name.
    ///
    /// # Errors
    /// A [`Failure`] that names the journal.
    pub(crate) fn keep(
        &mut self,
        spec: TrialSpec,
        outcome: TrialOutcome,
        started: i64,
    ) -> Result<TrialRecord, Failure> {
        let id = self.begin(&spec, started)?;
        self.finish(id, &outcome)?;
        Ok(TrialRecord { id, spec, started_unix_us: started, outcome })
    }

    /// The experiment is over, with this verdict.
    ///
    /// # Errors
    /// A [`Failure`] that names the journal.
    pub(crate) fn end(&mut self, state: State, verdict: &serde_json::Value) -> Result<(), Failure> {
        self.ended = true;
        let ended = self.journal.finish_experiment(&self.id, state, unix_us(), Some(verdict));
        ended.map_err(|error| journal::failure(&error))
    }
}

impl Drop for Notebook {
    /// Whatever stopped us: nothing is left as running.
    fn drop(&mut self) {
        if !self.ended {
            let _ = self.journal.finish_experiment(&self.id, State::Aborted, unix_us(), None);
        }
    }
}

/// An experiment that begins now, of this program, in this tunnel.
pub(crate) fn begun(tunnel: &dyn Tunnel) -> NewExperiment {
    let started = unix_us();
    let salt = u32::try_from(wt_sys::clock::monotonic_ns() & 0xFFFF).unwrap_or(0) ^ std::process::id();
    let id = wt_journal::experiment_id(started, &tunnel.target(), salt as u16);
    NewExperiment {
        started_unix_us: started,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        owner: journal::own_identity(),
        ..NewExperiment::new(id, tunnel.target(), tunnel.kind().name())
    }
}

/// All that is needed to assess the journaled rounds again.
fn config(args: &TuneArgs, prepared: &Prepared, plan: &Plan, more: &[(&str, serde_json::Value)]) -> serde_json::Value {
    let plateau = prepared.design.plateau.as_ref().zip(prepared.config.plateau.as_ref());
    let mut config = json!({
        "lab": args.lab,
        "alpha": prepared.config.alpha,
        "indifference": prepared.config.indifference,
        "max_trials": prepared.config.max_trials,
        "weights": prepared.config.weights,
        "workload": plan.workload,
        "per_trial_us": plan.per_trial(std::time::Duration::from_micros(prepared.path.rtt_us)).as_micros() as u64,
        "cool_down_us": plan.cool_down.as_micros() as u64,
        "host": host(),
        "command": command(),
        "plateau": plateau.map(|((knob, _), p)| json!({"knob": knob.name(), "levels": p.levels, "epsilon": p.epsilon, "strict": p.strict})),
    });
    for (name, value) in more {
        config[*name] = value.clone();
    }
    config
}

/// This machine: two experiments of different hosts aren't compared.
fn host() -> serde_json::Value {
    let read = |name: &str| {
        let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok()?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    json!({"name": read("hostname"), "kernel": read("osrelease")})
}

/// What was typed, so that it can be typed again.
pub(crate) fn command() -> String {
    let quoted = |word: std::ffi::OsString| {
        let word = without_password(&word.to_string_lossy());
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_=.,/:@%+".contains(c);
        if !word.is_empty() && word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', "'\\''")) }
    };
    let words: Vec<String> = std::env::args_os().skip(1).map(quoted).collect();
    format!("windtunnel {}", words.join(" "))
}

/// An address without the password in it.
fn without_password(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else { return word.to_owned() };
    let end = rest.find('/').unwrap_or(rest.len());
    if let Some((_, host)) = rest[..end].rsplit_once('@').filter(|_| scheme.ends_with("wt")) {
        return format!("{scheme}://…@{host}{}", &rest[end..]);
    }
    match rest[..end].rsplit_once('@').map(|(login, _)| (login.split(':').next().unwrap_or(""), login.len())) {
        Some((user, length)) if user.len() < length => format!("{scheme}://{user}:…{}", &rest[length..]),
        _ => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::without_password;

    #[test]
    fn no_password_is_kept() {
        for (typed, kept) in [
            ("ftp://me:secret@host/a@b", "ftp://me:…@host/a@b"),
            ("ftp://me:se@cret@host", "ftp://me:…@host"),
            ("ftp://me@host/x:y", "ftp://me@host/x:y"),
            ("http://host/@x", "http://host/@x"),
            ("wt://0123abcd@host:7411", "wt://…@host:7411"),
            ("--levels", "--levels"),
        ] {
            assert_eq!(without_password(typed), kept);
        }
    }
}
