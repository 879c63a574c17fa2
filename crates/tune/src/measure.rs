//! Rounds of an experiment, from the first to the last.

use super::answer::whole_time;
use super::delay_room::DelayRoom;
use super::drive::Driver;
use super::event::{Sink, TuneEvent};
use super::live::Live;
use super::notebook::{Notebook, config};
use super::observed::CutRound;
use super::plan::Plan;
use super::session::{Pilot, PreparedExperiment, Session};
use std::time::Duration;
use wt_experiment::{Experiment, StopReason};
use wt_forecast::Expectation;
use wt_journal::{ExperimentConfig, TuneConfig};
use wt_problem::Problem;
use wt_report::tune::OpenDelayTest;
use wt_setup::Budget;
use wt_trial::{TrialRecord, TrialSpec, Tunnel, TunnelKind};
use wt_units::format_minutes;

/// An experiment that has been run, with its verdict not yet written down.
pub(crate) struct MeasuredExperiment {
    pub(crate) notebook: Notebook,
    pub(crate) experiment: Experiment,
    pub(crate) records: Vec<TrialRecord>,
}

/// From where an experiment starts.
pub(crate) struct Start {
    pub(crate) experiment: Experiment,
    /// Rounds that were run in earlier sessions.
    pub(crate) rounds: u32,
    /// The last one, if it was cut short.
    pub(crate) cut: Option<CutRound>,
    /// Trials that belong to it already.
    pub(crate) records: Vec<TrialRecord>,
    pub(crate) pilot: Option<Pilot>,
    /// What the order of the trials is drawn from, if that isn't drawn itself.
    pub(crate) order_seed: Option<u64>,
    /// The test of less delay that is left open, where it comes before further rounds of the race.
    pub(crate) open_delay: Option<OpenDelayTest>,
    /// When it has to be over, if that isn't for the budget to say.
    pub(crate) until_ns: Option<u64>,
    /// Goes into the journaled configuration.
    pub(crate) more: TuneConfig,
}

impl Start {
    /// From nothing.
    pub(crate) fn fresh(prepared: &PreparedExperiment, pilot: Option<Pilot>) -> Result<Self, Problem> {
        let experiment = Experiment::new(prepared.config.clone()).map_err(|error| Problem::usage(error.to_string()))?;
        Ok(Self {
            experiment,
            rounds: 0,
            cut: None,
            records: Vec::new(),
            pilot,
            order_seed: None,
            open_delay: None,
            until_ns: None,
            more: TuneConfig::default(),
        })
    }
}

impl<T: Tunnel> Session<'_, T> {
    /// Runs the rounds and journals them.
    pub(crate) fn measure(
        &mut self,
        prepared: &PreparedExperiment,
        plan: Plan,
        start: Start,
        events: Sink<'_>,
    ) -> Result<MeasuredExperiment, Problem> {
        let Start { mut experiment, rounds, mut cut, mut records, pilot, order_seed, open_delay, until_ns, more } =
            start;
        let most = experiment.trials_left().unwrap_or(0);
        let room = self.delay_room(prepared, open_delay.as_ref(), most);
        let plan = Plan { order_seed: order_seed.map_or_else(|| self.request.draw_order_seed(), Ok)?, ..plan };
        let more = TuneConfig {
            live: self.live.as_ref().map(Live::config),
            model: prepared.expected.as_ref().map(Expectation::to_json),
            hold: self.held(),
            delay_room: prepared.delay.map(|_| room.trials),
            ..more
        };
        let config = ExperimentConfig::Tune(Box::new(config(self.request, prepared, &plan, more)));
        let mut notebook = Notebook::create(self.request, &self.tunnel, prepared, &plan, config)?;
        self.warn_of_others(&notebook.others(), events);
        let plan = Plan { id: notebook.id().to_owned(), ..plan };
        if let Some((spec, outcome, started)) = pilot {
            let spec = TrialSpec { experiment: plan.id.clone(), ..spec };
            records.push(notebook.keep(spec, outcome, started)?);
        }
        self.announce(prepared, &plan, most, events);
        let is_identical = self.request.identical.is_some();
        let most_time = self.time().or_else(|| time_in_lab(self.request.budget, self.tunnel.kind(), is_identical));
        let until_ns = until_ns.or_else(|| Some(wt_sys::clock::monotonic_ns() + most_time?.as_nanos() as u64));
        let mut driver = Driver {
            tunnel: &mut self.tunnel,
            notebook: &mut notebook,
            events,
            cancel: self.cancel,
            turns: &mut self.turns,
            plan: plan.clone(),
            records,
            spent: Duration::ZERO,
            ran: 0,
            ended: None,
            until_ns,
            room,
        };
        driver.warm_up()?;
        let mut rounds = rounds;
        if open_delay.is_some() {
            driver.test_delay(&prepared.design, &experiment)?;
            // No two rounds of a session have one number.
            rounds = driver.records.iter().map(|record| record.spec.round).fold(rounds, u32::max);
            if self.cancel.is_cancelled() {
                experiment.stop(StopReason::User);
                let done = cut.take().map(|cut| cut.done).unwrap_or_default();
                experiment.cut(&done).map_err(|error| Problem::internal(error.to_string()))?;
            }
        }
        driver.rounds(&prepared.design, rounds, cut, &mut experiment)?;
        driver.delay_rounds(&prepared.design, &experiment)?;
        driver.turns.give_back();
        (driver.events)(TuneEvent::Finished);
        let records = driver.records;
        Ok(MeasuredExperiment { notebook, experiment, records })
    }

    /// What of a session's budget of `most` trials is the delay's; `open` is the test that sessions before left open.
    pub(crate) fn delay_room(
        &self,
        prepared: &PreparedExperiment,
        open: Option<&OpenDelayTest>,
        most: usize,
    ) -> DelayRoom {
        let settings = prepared.design.arms.len();
        DelayRoom::of(prepared.delay, open, prepared.config.alpha, (most, settings), self.request.budget.is_some())
    }

    /// The time that a real path may be used for.
    pub(crate) fn time(&self) -> Option<Duration> {
        match self.request.budget {
            Some(Budget::Time(time)) if self.live.is_some() => Some(time),
            _ => None,
        }
    }

    /// Says how long it may take.
    fn announce(&self, prepared: &PreparedExperiment, plan: &Plan, most: usize, events: Sink<'_>) {
        let expected = whole_time(plan, &prepared.path, most);
        events(TuneEvent::begin(plan, prepared.design.labels(), most, expected));
        events(TuneEvent::note(format!(
            "{} settings, trials of {:.1} s, at most {most} of them, about {}; Ctrl-C stops and keeps what was measured",
            prepared.design.arms.len(),
            plan.length().as_secs_f64(),
            format_minutes(expected)
        )));
        for line in prepared.expected.iter().flat_map(Expectation::lines) {
            events(TuneEvent::note(line));
        }
        if let Some(bytes) = self.expected_bytes(plan, most) {
            events(TuneEvent::note(bytes));
        }
    }
}

/// The time after which no round begins in a lab that wouldn't be over: a tenth more than was asked for, since what its trials take
/// besides their transfers is known once they are run. A model's trials take none, and the method is tested on itself in whole
/// experiments.
fn time_in_lab(budget: Option<Budget>, kind: TunnelKind, is_identical: bool) -> Option<Duration> {
    match budget {
        Some(Budget::Time(time)) if kind == TunnelKind::Lab && !is_identical => Some(time.saturating_add(time / 10)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_kept_in_the_lab_too_but_not_by_a_model_or_where_the_method_is_tested_on_itself() {
        let minute = Some(Budget::Time(Duration::from_secs(60)));
        assert_eq!(time_in_lab(minute, TunnelKind::Lab, false), Some(Duration::from_secs(66)));
        for (budget, kind, is_identical) in [
            (minute, TunnelKind::Sim, false),
            (minute, TunnelKind::Lab, true),
            (Some(Budget::Trials(60)), TunnelKind::Lab, false),
            (None, TunnelKind::Lab, false),
        ] {
            assert_eq!(time_in_lab(budget, kind, is_identical), None, "{budget:?} {kind:?}");
        }
    }
}
