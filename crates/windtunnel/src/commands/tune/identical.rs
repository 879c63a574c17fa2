//! The A/A test on a lab path: experiments in which all settings are the same, and how many of them claim something.

use super::drive::Plan;
use super::{Budget, Progress, Session, Start, TuneArgs, cancel_on_signals, finish, measured, minutes};
use crate::commands::lab;
use crate::edge::Failure;
use clap::Parser;
use serde_json::json;
use std::path::Path;
use std::time::Duration;
use wt_experiment::StopReason;
use wt_lab::LabTunnel;
use wt_trial::{Holding, Tunnel};
use wt_units::Settings;

/// Which experiments.
pub(crate) struct Identical<'a> {
    /// A preset's name or a TOML file.
    pub(crate) lab: &'a str,
    pub(crate) runs: u64,
    /// Trials that each may take.
    pub(crate) trials: usize,
    /// Settings in each, the current one included.
    pub(crate) settings: usize,
    pub(crate) seed: u64,
    /// How long each trial transfers.
    pub(crate) trial: Duration,
    pub(crate) journal: Option<&'a Path>,
    pub(crate) json: bool,
}

/// What they gave.
pub(crate) struct Claims {
    /// Experiments that came to their end.
    pub(crate) runs: u64,
    /// Of those, with a claim.
    pub(crate) claims: u64,
    /// Their trials.
    pub(crate) trials: usize,
    /// Their names in the journal.
    pub(crate) experiments: Vec<String>,
}

/// `tune` with everything at its default, to be run from within.
#[derive(Parser)]
#[command(no_binary_name = true)]
struct Tune {
    #[command(flatten)]
    args: TuneArgs,
}

/// Runs them, one after another, on one path.
///
/// # Errors
/// A [`Failure`] that says what to try.
pub(crate) fn run(what: &Identical<'_>) -> Result<Claims, Failure> {
    let candidates = what.settings.saturating_sub(1).to_string();
    let words = ["--lab", what.lab, "--quiet", "--identical", &candidates];
    let parsed = Tune::try_parse_from(words).map_err(|error| Failure::usage(error.to_string()))?;
    let args = TuneArgs {
        budget: Some(Budget::Trials(what.trials)),
        trial: Some(what.trial),
        comment: Some("A/A test: all settings are the same".to_owned()),
        journal: what.journal.map(Path::to_owned),
        ..parsed.args
    };
    let tunnel = LabTunnel::new(lab::start(lab::load(what.lab)?, &args.options)?).map_err(|e| lab::failure(&e))?;
    let controls = tunnel.congestion_controls().to_vec();
    Session {
        args: &args,
        tunnel: Holding::new(tunnel, Settings::new()),
        best_mtu: &|_| None,
        controls,
        cancel: cancel_on_signals()?,
        oracle: None,
        live: None,
    }
    .identical(what)
}

impl<T: Tunnel> Session<'_, T> {
    fn identical(mut self, what: &Identical<'_>) -> Result<Claims, Failure> {
        let told = Progress::new(false, what.json, false);
        let facts = self.tunnel.path(self.args.direction.into());
        self.prepare(facts.clone(), &self.plan(&facts))?;
        let pilot = self.pilot(&facts, &told)?;
        let path = measured(&facts, &pilot.1);
        let plan = self.plan(&path);
        let prepared = self.prepare(path, &plan)?;
        let trials = u32::try_from(what.trials).unwrap_or(u32::MAX);
        let each = plan.per_trial(Duration::from_micros(prepared.path.rtt_us)) * trials;
        let all = each.saturating_mul(u32::try_from(what.runs).unwrap_or(u32::MAX));
        told.say(&format!(
            "{} experiments of at most {} trials: {} or less; Ctrl-C ends it and counts those that are done",
            what.runs,
            what.trials,
            minutes(all)
        ));
        let mut found = Claims { runs: 0, claims: 0, trials: 0, experiments: Vec::new() };
        for run in 0..what.runs {
            // Each run has an order and losses of its own.
            let seed = what.seed.wrapping_add(run << 32);
            let mut start = Start::fresh(&prepared, None)?;
            start.more = vec![("identical", json!(true))];
            let mut quiet = Progress::new(false, false, true);
            let mut one = self.measure(&prepared, Plan { seed, ..plan.clone() }, start, &mut quiet)?;
            finish::close(&mut one, None)?;
            if self.cancel.is_cancelled() || one.experiment.stop_reason() == Some(StopReason::User) {
                break;
            }
            found.runs += 1;
            found.trials += one.experiment.trials();
            found.claims += u64::from(one.experiment.pick() != 0);
            found.experiments.push(one.notebook.id().to_owned());
            let (done, claims) = (found.runs, found.claims);
            told.say(&format!("{done} of {}: {} trials, {claims} claims so far", what.runs, one.experiment.trials()));
        }
        Ok(found)
    }
}
