//! The A/A test on a lab path: experiments in which all settings are the same, and how many of them claim something.

use super::event::{Sink, TuneEvent};
use super::finish;
use super::live;
use super::measure::Start;
use super::path_rtt::measured;
use super::plan::Plan;
use super::request::TuneRequest;
use super::session::Session;
use std::path::Path;
use std::time::Duration;
use wt_experiment::StopReason;
use wt_lab::LabTunnel;
use wt_problem::Problem;
use wt_setup::Budget;
use wt_trial::{Cancel, Holding, Tunnel};
use wt_units::{Settings, format_minutes};

/// Which experiments.
pub(crate) struct Identical<'a> {
    /// A preset's name or a TOML file.
    pub lab: &'a str,
    /// How many, one after another.
    pub runs: u64,
    /// Trials that each may take.
    pub trials: usize,
    /// Settings in each, the current one included.
    pub settings: usize,
    /// Seeds the order of the rounds; each experiment has one derived from it.
    pub seed: u64,
    /// How long each trial transfers.
    pub trial: Duration,
    /// The journal's file; nothing means the usual one.
    pub journal: Option<&'a Path>,
    /// What was typed to ask for this.
    pub command: String,
}

/// What they gave.
pub(crate) struct Claims {
    /// Experiments that ended by themselves.
    pub runs: u64,
    /// Of those, with a claim.
    pub claims: u64,
    /// Their trials.
    pub trials: usize,
    /// Their names in the journal.
    pub experiments: Vec<String>,
}

/// Runs them, one after another, on one path.
///
/// # Errors
/// A [`Problem`] that says what to try.
pub(crate) fn run(what: &Identical<'_>, cancel: &Cancel, events: Sink<'_>) -> Result<Claims, Problem> {
    let request = TuneRequest {
        lab: Some(what.lab.to_owned()),
        identical: Some(what.settings.saturating_sub(1)),
        budget: Some(Budget::Trials(what.trials)),
        trial: Some(what.trial),
        comment: "A/A test: all settings are the same".to_owned(),
        journal: what.journal.map(Path::to_owned),
        command: what.command.clone(),
        ..TuneRequest::default()
    };
    request.check()?;
    let tunnel =
        LabTunnel::new(request.start_lab(wt_setup::lab::load(what.lab)?)?).map_err(|e| wt_setup::lab::problem(&e))?;
    let controls = tunnel.congestion_controls().to_vec();
    let (tunnel, turns) = (Holding::new(tunnel, Settings::new()), crate::turns::RoundTurns::default());
    Session::new(&request, tunnel, controls, turns, cancel).identical(what, events)
}

impl<T: Tunnel> Session<'_, T> {
    fn identical(mut self, what: &Identical<'_>, events: Sink<'_>) -> Result<Claims, Problem> {
        let facts = self.tunnel.path(self.request.payload_direction());
        self.prepare(facts.clone(), &self.plan(&facts))?;
        let pilot = self.pilot(&facts, events)?;
        let path = measured(&facts, &pilot.1, live::payload(None, &facts, self.tunnel.header_len()));
        let plan = self.plan(&path);
        let prepared = self.prepare(path, &plan)?;
        let trials = u32::try_from(what.trials).unwrap_or(u32::MAX);
        let each = plan.per_trial(Duration::from_micros(prepared.path.rtt_us)) * trials;
        let all = each.saturating_mul(u32::try_from(what.runs).unwrap_or(u32::MAX));
        events(TuneEvent::note(format!(
            "{} experiments of at most {} trials: about {} if none ends early; Ctrl-C ends it and counts those that are done",
            what.runs,
            what.trials,
            format_minutes(all)
        )));
        let mut found = Claims { runs: 0, claims: 0, trials: 0, experiments: Vec::new() };
        for run in 0..what.runs {
            // Each run has an order and losses of its own.
            let seed = what.seed.wrapping_add(run << 32);
            let mut start = Start::fresh(&prepared, None)?;
            start.more.identical = Some(true);
            start.order_seed = Some(seed);
            let mut one = self.measure(&prepared, Plan { seed, ..plan.clone() }, start, &mut |_| {})?;
            finish::close(&mut one, None)?;
            if self.cancel.is_cancelled() || one.experiment.stop_reason() == Some(StopReason::User) {
                break;
            }
            found.runs += 1;
            found.trials += one.experiment.trials();
            found.claims += u64::from(one.experiment.pick() != 0);
            found.experiments.push(one.notebook.id().to_owned());
            let (done, claims) = (found.runs, found.claims);
            events(TuneEvent::note(format!(
                "{done} of {}: {} trials, {claims} claims so far",
                what.runs,
                one.experiment.trials()
            )));
        }
        Ok(found)
    }
}
