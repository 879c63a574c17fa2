//! Going on with an experiment on another day: the same settings and rules; the evidence just continues.
//!
//! The new trials go into the journal as an experiment of their own that names its predecessor, so that nothing journaled
//! is ever changed; `report` on it reads both.

use super::drive::Plan;
use super::hold::held_in;
use super::{Budget, Design, Prepared, Session, Start, cancel_on_signals, design, finish, live, show};
use super::{Progress, TuneArgs};
use crate::commands::cc::controls::Controls;
use crate::commands::report::History;
use crate::commands::{journal, lab};
use crate::edge::{Failure, Outcome};
use serde_json::json;
use std::time::Duration;
use wt_experiment::StopReason;
use wt_journal::{Journal as _, StoredExperiment};
use wt_lab::LabTunnel;
use wt_trial::{Holding, Tunnel, TunnelKind, Workload};
use wt_units::Knob;

/// Goes on with the experiment of this name.
///
/// # Errors
/// A [`Failure`] when it can't be continued here.
pub(super) fn run(args: &TuneArgs, key: &str) -> Outcome {
    let journal = journal::open(args.journal.as_deref())?;
    let stored = journal.load(key).map_err(|error| journal::failure(&error))?;
    if !stored.config["screen"].is_null() {
        return Err(Failure::usage(format!(
            "{} is a screen; only comparisons of settings can be continued",
            stored.id
        ))
        .hint("run the screen again; its own rounds count by themselves"));
    }
    if stored.config["compare"].is_object() {
        return Err(Failure::usage(format!("{} is a comparison of congestion controls", stored.id))
            .hint("windtunnel report tells what came of it; cc compare runs another one"));
    }
    if stored.config["stacks"].is_object() {
        return Err(Failure::usage(format!("{} is a comparison of stacks", stored.id))
            .hint("windtunnel report tells what came of it; stacks compare runs another one"));
    }
    let history = History::read(&journal, &stored)?;
    if stored.tunnel == TunnelKind::Live.name() {
        drop(journal);
        return live::again(args, &stored)?.resume(&stored, &history);
    }
    let path = args.lab.as_deref().or(stored.config["lab"].as_str()).unwrap_or(&stored.target);
    let scenario = lab::load(path)?;
    if scenario.name != stored.target {
        let told = format!("{} was run on {}, not on {}", stored.id, stored.target, scenario.name);
        return Err(Failure::usage(told).hint("leave --lab away, or begin a new experiment"));
    }
    drop(journal);
    let held = held_in(&stored)?;
    let arms = stored.arms.iter().map(|arm| &arm.settings).chain([&held]);
    let loaded = Controls::load(arms.filter_map(|settings| settings.name(Knob::Cc)))?;
    let mut tunnel = LabTunnel::new(lab::start(scenario, &args.options)?).map_err(|error| lab::failure(&error))?;
    loaded.attach(&mut tunnel);
    let controls = tunnel.congestion_controls().to_vec();
    let tunnel = Holding::new(tunnel, held);
    let session =
        Session { args, tunnel, best_mtu: &|_| None, controls, cancel: cancel_on_signals()?, oracle: None, live: None };
    session.resume(&stored, &history)
}

impl<T: Tunnel> Session<'_, T> {
    fn resume(mut self, stored: &StoredExperiment, history: &History) -> Outcome {
        let current = self.tunnel.current();
        if current != stored.current {
            return Err(Failure::usage(format!(
                "the current settings aren't what they were when {} was begun: {} then, {current} now",
                stored.id, stored.current
            ))
            .hint("set them as they were, or begin a new experiment: what is compared would be something else"));
        }
        let mut experiment = history.replay()?;
        let plan = self.plan_again(stored, history.last_round())?;
        let more = self.more_trials(&plan, stored);
        experiment.resume(Some(experiment.trials().saturating_add(more)));
        if let Some(reason) = experiment.stop_reason() {
            let why = match reason {
                StopReason::Budget => format!("{more} more trials have no room for a round"),
                _ => "nothing is left open in it".to_owned(),
            };
            return Err(Failure::usage(format!("{} can't be continued: {why}", stored.id))
                .hint(format!("windtunnel report {}", stored.id)));
        }
        let prepared = Prepared {
            path: stored.path.clone(),
            current,
            design: design_again(stored),
            expected: None,
            config: experiment.config().clone(),
        };
        for arm in &prepared.design.arms {
            self.tunnel.check(&arm.settings).map_err(|error| super::drive::tunnel_failure(&error))?;
        }
        if self.args.dry_run && self.args.forms.json {
            return Ok(self.show_json(&prepared, &plan));
        }
        if self.args.dry_run {
            return show(&prepared, &plan);
        }
        self.stands_ready(&prepared)?;
        let journal = journal::open(self.args.journal.as_deref())?;
        let start = Start {
            experiment,
            rounds: history.last_round(),
            records: history.records(&journal)?,
            pilot: None,
            more: vec![("continues", json!(stored.id))],
        };
        drop(journal);
        let mut progress = Progress::new(self.args.json_stream, self.args.forms.json, self.args.quiet);
        let measured = self.measure(&prepared, plan, start, &mut progress)?;
        let journal = journal::open(self.args.journal.as_deref())?;
        let both = History::read(&journal, &measured.notebook.stored()?)?;
        finish::conclude(self.args, measured, Some(&both))
    }

    /// Trials as they were, in an order and with losses that are new.
    fn plan_again(&self, stored: &StoredExperiment, rounds: u32) -> Result<Plan, Failure> {
        let workload: Workload = serde_json::from_value(stored.config["workload"].clone())
            .map_err(|error| Failure::ours(format!("the workload of {} can't be read: {error}", stored.id)))?;
        let fresh = self.plan(&stored.path);
        let old = Plan { workload, ..fresh };
        let cool_down = stored.config["cool_down_us"].as_u64().map_or(old.cool_down, Duration::from_micros);
        let rtt = Duration::from_micros(stored.path.rtt_us);
        let deadline = old.length() + (rtt * 40).max(Duration::from_secs(10));
        Ok(Plan { seed: self.args.options.seed.wrapping_add(u64::from(rounds)), cool_down, deadline, ..old })
    }

    /// How many trials this session may add.
    fn more_trials(&self, plan: &Plan, stored: &StoredExperiment) -> usize {
        let per_trial = plan.per_trial(Duration::from_micros(stored.path.rtt_us));
        let bytes = self.bytes_per_trial(&stored.path, plan);
        match (self.args.budget, &self.live) {
            (Some(Budget::Size(total)), Some(live)) => live.trials_of(total, bytes),
            (budget, _) => budget.unwrap_or(Budget::Time(Duration::from_secs(150))).trials(per_trial, bytes),
        }
    }
}

/// What was compared.
fn design_again(stored: &StoredExperiment) -> Design {
    let arm = |arm: &wt_journal::Arm| design::Arm {
        settings: arm.settings.clone(),
        label: arm.label.clone(),
        why: format!("compared in {}", stored.id),
    };
    let plateau = &stored.config["plateau"];
    let knob = plateau["knob"].as_str().and_then(|name| name.parse::<Knob>().ok());
    let levels = plateau["levels"].as_array().into_iter().flatten();
    let levels = levels.filter_map(|level| usize::try_from(level.as_u64()?).ok()).collect();
    Design { arms: stored.arms.iter().map(arm).collect(), plateau: knob.map(|knob| (knob, levels)) }
}
