//! Every trial in the journal: before it begins, and after it has ended.

pub use super::machines::host;
use super::observed::DIRECTED;
use super::plan::Plan;
use super::request::TuneRequest;
use super::session::PreparedExperiment;
use std::path::Path;
use std::time::Duration;
use wt_experiment::Method;
use wt_journal::{
    Arm, Claim, ExperimentConfig, Journal as _, NewExperiment, PlateauConfig, Prune, SqliteJournal, State,
    StoredExperiment, TuneConfig,
};
use wt_problem::Problem;
use wt_sys::clock::unix_us;
use wt_sys::presence::Presence;
use wt_trial::{TrialOutcome, TrialRecord, TrialSpec, Tunnel};

/// One experiment in the journal, under way.
#[derive(Debug)]
pub struct Notebook {
    journal: SqliteJournal,
    /// That we are at work on it.
    _claim: Option<Claim>,
    /// That others on this machine see it, whatever their journal is.
    _presence: Option<Presence>,
    id: String,
    ended: bool,
    /// The journal of many hosts to which it goes when it has ended.
    store: Option<String>,
}

impl Notebook {
    /// Writes the experiment down as running.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub(crate) fn create(
        request: &TuneRequest,
        tunnel: &dyn Tunnel,
        prepared: &PreparedExperiment,
        plan: &Plan,
        config: ExperimentConfig,
    ) -> Result<Self, Problem> {
        let arm = |arm: &wt_setup::Arm| Arm { label: arm.label.clone(), settings: arm.settings.clone() };
        let new = NewExperiment {
            comment: request.comment.clone(),
            current: prepared.current.clone(),
            arms: prepared.design.arms.iter().map(arm).collect(),
            config,
            seed: plan.seed,
            path: prepared.path.clone(),
            ..begun(tunnel)
        };
        Self::open(request.journal.as_deref(), &new)
    }

    /// Writes an experiment down as running.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub fn open(journal: Option<&Path>, new: &NewExperiment) -> Result<Self, Problem> {
        let store = wt_setup::journal::reached(journal)?;
        let mut journal = wt_setup::journal::open_here(journal)?;
        let claim = Claim::take(journal.path(), &new.id);
        journal.create_experiment(new).map_err(|error| wt_setup::journal::problem(&error))?;
        let presence = Presence::announce(&new.id);
        Ok(Self { journal, _claim: claim, _presence: presence, id: new.id.clone(), ended: false, store })
    }

    /// Other experiments that run right now, of this journal or of any other on this machine.
    pub fn others(&self) -> Vec<String> {
        let mut others = Claim::running(self.journal.path());
        others.extend(Presence::of_others());
        others.retain(|id| *id != self.id);
        others
    }

    /// The experiment's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The experiment as the journal has it.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub fn stored(&self) -> Result<StoredExperiment, Problem> {
        self.journal.load(&self.id).map_err(|error| wt_setup::journal::problem(&error))
    }

    /// A trial begins; its number in the journal.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub fn begin(&mut self, spec: &TrialSpec, started_unix_us: i64) -> Result<i64, Problem> {
        self.journal.begin_trial(spec, started_unix_us).map_err(|error| wt_setup::journal::problem(&error))
    }

    /// It has ended.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub fn finish(&mut self, id: i64, outcome: &TrialOutcome) -> Result<(), Problem> {
        self.journal.finish_trial(id, outcome).map_err(|error| wt_setup::journal::problem(&error))
    }

    /// Writes down a trial that was run before the experiment had a name.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub fn keep(&mut self, spec: TrialSpec, outcome: TrialOutcome, started: i64) -> Result<TrialRecord, Problem> {
        let id = self.begin(&spec, started)?;
        self.finish(id, &outcome)?;
        Ok(TrialRecord { id, spec, started_unix_us: started, outcome })
    }

    /// Nothing of it was measured: it is in no journal any more.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub(crate) fn discard(&mut self) -> Result<(), Problem> {
        self.ended = true;
        let of_this = Prune { ids: Some(vec![self.id.clone()]), ..Prune::default() };
        let ended = self.journal.finish_experiment(&self.id, State::Aborted, unix_us(), None);
        let pruned = ended.and_then(|()| self.journal.prune(of_this));
        pruned.map(drop).map_err(|error| wt_setup::journal::problem(&error))
    }

    /// The experiment is over, with this verdict; it is pushed if it is to go to a journal of many hosts.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub fn end(&mut self, state: State, verdict: &serde_json::Value) -> Result<(), Problem> {
        self.ended = true;
        let ended = self.journal.finish_experiment(&self.id, state, unix_us(), Some(verdict));
        ended.map_err(|error| wt_setup::journal::problem(&error))?;
        let Some(store) = self.store.take() else { return Ok(()) };
        wt_setup::journal::push_measured(&store, &self.id)
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
pub fn begun(tunnel: &dyn Tunnel) -> NewExperiment {
    let started = unix_us();
    let salt = u32::try_from(wt_sys::clock::monotonic_ns() & 0xFFFF).unwrap_or(0) ^ std::process::id();
    let id = wt_journal::experiment_id(started, &tunnel.target(), salt as u16);
    NewExperiment {
        started_unix_us: started,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        owner: wt_setup::journal::own_identity(),
        ..NewExperiment::new(id, tunnel.target(), tunnel.kind().name())
    }
}

/// All that is needed to assess the journaled rounds again; `more` is what only some experiments have.
pub(crate) fn config(
    request: &TuneRequest,
    prepared: &PreparedExperiment,
    plan: &Plan,
    more: TuneConfig,
) -> TuneConfig {
    let rules = &prepared.config;
    let plateau = prepared.design.plateau.as_ref().zip(rules.plateau.as_ref()).map(|((knob, _), rules)| {
        let (knob, levels) = (Some(*knob), Some(rules.levels.clone()));
        PlateauConfig {
            knob,
            levels,
            epsilon: Some(rules.epsilon),
            strict: Some(rules.strict),
            ..PlateauConfig::default()
        }
    });
    let per_trial = plan.per_trial(Duration::from_micros(prepared.path.rtt_us));
    let lab = request.lab.clone().or_else(|| more.lab.clone());
    TuneConfig {
        lab_text: more.lab_text.clone().or_else(|| wt_setup::lab::text(lab.as_deref()?)),
        lab,
        alpha: Some(rules.alpha),
        delay_alpha: prepared.delay.map(|rules| rules.alpha),
        delay_epsilon: prepared.delay.map(|rules| rules.epsilon),
        indifference: Some(rules.indifference),
        relevant: Some(rules.relevant),
        method: (rules.method == Method::Directed).then(|| DIRECTED.to_owned()),
        twice: Some(rules.twice),
        excludes: Some(rules.excludes),
        order_seed: Some(plan.order_seed),
        max_trials: rules.max_trials,
        weights: rules.weights.clone(),
        cells: Some(rules.cells.clone()).filter(|cells| !cells.is_empty()),
        by_sender: plan.workload.is_upload_of_size().then_some(true),
        workload: Some(plan.workload.clone()),
        per_trial_us: Some(per_trial.as_micros() as u64),
        measured_time: Some(true),
        cool_down_us: Some(plan.cool_down.as_micros() as u64),
        host: Some(host()),
        command: Some(request.command.clone()),
        plateau,
        ..more
    }
    .whole()
}
