//! Going on with an experiment on another day: the same settings and rules; the evidence just continues.
//!
//! The new trials go into the journal as an experiment of their own that names its predecessor, so that nothing journaled
//! is ever changed; `report` on it reads both.

use super::answer::TuneAnswer;
use super::event::{Sink, TuneEvent};
use super::history::History;
use super::hold::held_in;
use super::measure::Start;
use super::plan::{Plan, deadline_of};
use super::request::TuneRequest;
use super::session::{PreparedExperiment, Session, enough_for_a_gain};
use super::turns::RoundTurns;
use super::{finish, machines, open};
use std::time::Duration;
use wt_experiment::StopReason;
use wt_journal::{ExperimentConfig, Journal as _, JournalError, State, StoredExperiment, TuneConfig};
use wt_lab::LabTunnel;
use wt_problem::Problem;
use wt_setup::{Budget, Controls, Design, design, tunnel_problem};
use wt_trial::{Cancel, Holding, TrialRecord, Tunnel, TunnelKind, Workload};
use wt_units::{Knob, Level, counted};

/// Goes on with the experiment of this name.
///
/// # Errors
/// A [`Problem`] when it can't be continued here.
pub(crate) fn run(request: &TuneRequest, key: &str, cancel: &Cancel, events: Sink<'_>) -> Result<TuneAnswer, Problem> {
    let journal = wt_setup::journal::open_here(request.journal.as_deref())?;
    let stored = journal.load(key).map_err(|error| wt_setup::journal::problem(&error))?;
    comparison_of_settings(&stored)?;
    no_longer_measured(&stored)?;
    let history = History::read(&journal, &stored)?;
    is_of_what_is_named(request, &stored)?;
    has_clock_of_now(&stored)?;
    if stored.tunnel == TunnelKind::Live.name() {
        drop(journal);
        return open::again(request, &stored, cancel, events)?.resume(&stored, &history, events);
    }
    let path = request.lab.as_deref().or(stored.config.lab()).unwrap_or(&stored.target);
    let scenario = wt_setup::lab::load(path)?;
    if scenario.name != stored.target {
        let told = format!("{} was run on {}, not on {}", stored.id, stored.target, scenario.name);
        return Err(Problem::usage(told).hint("leave --lab away, or begin a new experiment"));
    }
    let as_it_was = |text: &String| wt_setup::lab::is_as_written(&scenario, path, text);
    if !stored.config.tune().lab_text.as_ref().is_none_or(as_it_was) {
        return Err(Problem::usage(format!("{path} isn't the path any more that {} was run on", stored.id))
            .because("what was measured on two paths can't be judged as one experiment")
            .hint("make it as it was (journal show --json has it as lab_text), or begin a new experiment"));
    }
    drop(journal);
    let held = held_in(&stored)?;
    let arms = stored.arms.iter().map(|arm| &arm.settings).chain([&held]);
    let loaded = Controls::load(arms.filter_map(|settings| settings.name(Knob::Cc)))?;
    let mut tunnel = LabTunnel::new(request.start_lab(scenario)?).map_err(|error| wt_setup::lab::problem(&error))?;
    loaded.attach(&mut tunnel);
    let controls = tunnel.congestion_controls().to_vec();
    let tunnel = Holding::new(tunnel, held);
    let turns = RoundTurns::of(request.turns.as_ref())?;
    Session::new(request, tunnel, controls, turns, cancel).resume(&stored, &history, events)
}

/// Refuses what is said of another kind of path than that which the experiment was run on: its answer would be told of what was named.
fn is_of_what_is_named(request: &TuneRequest, stored: &StoredExperiment) -> Result<(), Problem> {
    let is_live = stored.tunnel == TunnelKind::Live.name();
    let named = match (&request.target, &request.lab, is_live) {
        (Some(target), _, false) => target.clone(),
        (_, Some(lab), true) => format!("the lab's {lab}"),
        _ => return Ok(()),
    };
    let (place, leave) = if is_live { ("", "--lab") } else { ("the lab's ", "the target") };
    Err(Problem::usage(format!("{} was run on {place}{}, not on {named}", stored.id, stored.target)).hint(format!(
        "leave {leave} away, or begin a new experiment; windtunnel journal list names those that there are"
    )))
}

/// Refuses an experiment whose uploads were timed by their receivers.
fn has_clock_of_now(stored: &StoredExperiment) -> Result<(), Problem> {
    if !stored.has_receivers_clock() {
        return Ok(());
    }
    Err(Problem::usage(format!("the uploads of {} were timed by their receivers", stored.id))
        .because(
            "now their senders time them, to the acknowledgement of the last byte: the two don't make one experiment",
        )
        .hint(format!("begin a new experiment; windtunnel report {} tells what was found", stored.id)))
}

impl<T: Tunnel> Session<'_, T> {
    fn resume(mut self, stored: &StoredExperiment, history: &History, events: Sink<'_>) -> Result<TuneAnswer, Problem> {
        let known: Vec<(Knob, Level)> = stored.current.iter().map(|(knob, level)| (knob, level.clone())).collect();
        let current = self.current_beside(&known);
        if current != stored.current {
            return Err(Problem::usage(format!(
                "the current settings aren't what they were when {} was begun: {} then, {current} now",
                stored.id, stored.current
            ))
            .hint("set them as they were, or begin a new experiment: what is compared would be something else"));
        }
        self.is_the_first_to_go_on(stored)?;
        let (mut experiment, cut) = history.replay_open()?;
        let was_over = experiment.stop_reason().is_some_and(|reason| reason != StopReason::User);
        let journal = wt_setup::journal::open_here(self.request.journal.as_deref())?;
        let records = history.records(&journal)?;
        drop(journal);
        let plan = self.plan_again(history.begun()?, &records)?;
        let more = self.more_trials(&plan, stored);
        let paid = cut.as_ref().map_or(0, |cut| cut.done.len());
        let mut most = experiment.trials().saturating_add(paid).saturating_add(more);
        if self.request.budget.is_none() {
            most = enough_for_a_gain(most, experiment.config());
        }
        experiment.resume(Some(most));
        let delay = history.delay_rules();
        let open_delay = delay.and_then(|rules| rules.open_test(&records, experiment.pick()));
        // What has begun, or was left over when the race had ended, isn't put off again.
        let open_delay = open_delay.filter(|open| was_over || open.rounds > 0);
        let has_room = open_delay.is_some_and(|open| self.request.budget.is_none() || more >= 2 * open.fewest);
        if let Some(reason) = experiment.stop_reason().filter(|_| !has_room) {
            let why = match (open_delay, reason) {
                (Some(open), _) => format!(
                    "{more} more trials have no room for {} of the test of less delay, which alone is left open",
                    counted(open.fewest, "round")
                ),
                (None, StopReason::Budget) => format!("{more} more trials have no room for a round"),
                (None, _) => "nothing is left open in it".to_owned(),
            };
            return Err(Problem::usage(format!("{} can't be continued: {why}", stored.id))
                .hint(format!("windtunnel report {}", stored.id)));
        }
        let prepared = PreparedExperiment {
            path: stored.path.clone(),
            current,
            design: design_again(stored),
            expected: None,
            config: experiment.config().clone(),
            delay,
        };
        for arm in &prepared.design.arms {
            self.tunnel.check(&arm.settings).map_err(|error| tunnel_problem(&error))?;
        }
        if let Some(text) = machines::before_going_on(stored) {
            events(TuneEvent::Warning { text });
        }
        if self.request.dry_run {
            let lacks = open_delay.filter(|_| !has_room).map(|open| {
                format!(
                    "this budget has no room for less delay to be shown: that takes {} more trials",
                    2 * open.fewest
                )
            });
            return Ok(self.planned(&prepared, &plan, lacks));
        }
        self.stands_ready(&prepared)?;
        let start = Start {
            experiment,
            rounds: history.last_round(),
            cut,
            records,
            pilot: None,
            order_seed: None,
            open_delay: open_delay.filter(|_| has_room),
            until_ns: None,
            more: TuneConfig {
                lab: stored.config.tune().lab.clone(),
                lab_text: stored.config.tune().lab_text.clone(),
                continues: Some(stored.id.clone()),
                cut_as_drawn: Some(true),
                ..TuneConfig::default()
            },
        };
        let measured = self.measure(&prepared, plan, start, events)?;
        let journal = wt_setup::journal::open_here(self.request.journal.as_deref())?;
        let both = History::read(&journal, &measured.notebook.stored()?)?;
        finish::conclude(measured, Some(&both))
    }

    /// Refuses an experiment that another one goes on with: whoever may try again from the same place, until it goes on as it is hoped,
    /// finds a difference in the end. The journal asks again once it writes down what goes on: who began meanwhile is the first.
    fn is_the_first_to_go_on(&self, stored: &StoredExperiment) -> Result<(), Problem> {
        let journal = wt_setup::journal::open(self.request.journal.as_deref())?;
        let chain = journal.continuations(&stored.id).map_err(|error| wt_setup::journal::problem(&error))?;
        let [by, ..] = chain.as_slice() else { return Ok(()) };
        let last = chain.last().unwrap_or(by);
        let continued = JournalError::Continued { id: stored.id.clone(), by: by.clone() };
        Err(wt_setup::journal::problem(&continued).hint(format!("windtunnel tune --resume {last}")))
    }

    /// Trials as the first session planned them, in an order that is new, and with losses that are new in each further round. How long
    /// one is expected to take isn't estimated anew: nothing is measured before the rounds. Nor is the deadline: what of one session
    /// is cut off and of the other isn't can't be compared.
    fn plan_again(&self, begun: &StoredExperiment, records: &[TrialRecord]) -> Result<Plan, Problem> {
        let config = begun.config.tune();
        let workload: Workload = serde_json::from_value(config.said("workload"))
            .map_err(|error| Problem::internal(format!("the workload of {} can't be read: {error}", begun.id)))?;
        let fresh = self.plan(&begun.path);
        let cool_down = config.cool_down_us.map_or(fresh.cool_down, Duration::from_micros);
        let rtt = Duration::from_micros(begun.path.rtt_us);
        let per_trial = config.per_trial_us.map(Duration::from_micros);
        let expected = per_trial.map_or(fresh.expected, |all| Plan::length_in(all, cool_down, rtt));
        let had = records.first().map(|record| record.spec.deadline);
        let deadline = had.unwrap_or_else(|| deadline_of(&workload, expected, rtt));
        Ok(Plan { seed: begun.seed, workload, expected, cool_down, deadline, ..fresh })
    }

    /// How many trials this session may add.
    fn more_trials(&self, plan: &Plan, stored: &StoredExperiment) -> usize {
        let per_trial = plan.per_trial(Duration::from_micros(stored.path.rtt_us));
        let bytes = self.bytes_per_trial(&stored.path, plan);
        match (self.request.budget, &self.live) {
            (Some(Budget::Size(total)), Some(live)) => live.trials_of(total, bytes),
            (budget, _) => budget.unwrap_or(Budget::Time(Duration::from_secs(150))).trials(per_trial, bytes),
        }
    }
}

/// Refuses an experiment that another process is at work on: both would measure at once, and the verdict of the second would be of
/// other trials than those that it goes on with in the end. What a process left that is gone, the journal says was aborted.
fn no_longer_measured(stored: &StoredExperiment) -> Result<(), Problem> {
    if stored.state != State::Running {
        return Ok(());
    }
    let id = &stored.id;
    Err(Problem::environment(format!("{id} still runs"))
        .because("who goes on with an experiment needs all its trials")
        .hint(format!(
            "wait until it has ended, or end it with Ctrl-C where it runs; windtunnel report {id} tells how far it is"
        )))
}

/// Refuses what compares no settings.
fn comparison_of_settings(stored: &StoredExperiment) -> Result<(), Problem> {
    let id = &stored.id;
    let refused = |what: String, hint: &'static str| Err(Problem::usage(what).hint(hint));
    if let Some(change) = stored.proved_change() {
        return refused(format!("{id} is a proof of change {change}"), "windtunnel settings prove runs another one");
    }
    match &stored.config {
        ExperimentConfig::Screen(_) => refused(
            format!("{id} is a screen; only comparisons of settings can be continued"),
            "run the screen again; its own rounds count by themselves",
        ),
        ExperimentConfig::Controls(_) => refused(
            format!("{id} is a comparison of congestion controls"),
            "windtunnel report tells what came of it; cc compare runs another one",
        ),
        ExperimentConfig::Stacks(_) => refused(
            format!("{id} is a comparison of stacks"),
            "windtunnel report tells what came of it; stacks compare runs another one",
        ),
        ExperimentConfig::Tests(_) => {
            refused(format!("{id} is a single test: it compares no settings"), "windtunnel test logs another one")
        }
        ExperimentConfig::Traffic(_) => refused(
            format!("{id} is an experiment on a server's own connections"),
            "windtunnel traffic report tells what came of it; traffic start runs another one",
        ),
        ExperimentConfig::Tune(tune) if tune.browser.is_some() => refused(
            format!("{id} is a comparison of page loads in a browser"),
            "windtunnel report tells what came of it; windtunnel page --compare runs another one",
        ),
        ExperimentConfig::Tune(_) | ExperimentConfig::Flent(_) | ExperimentConfig::Unknown(_) => Ok(()),
    }
}

/// What was compared.
fn design_again(stored: &StoredExperiment) -> Design {
    let arm = |arm: &wt_journal::Arm| design::Arm {
        settings: arm.settings.clone(),
        label: arm.label.clone(),
        why: format!("compared in {}", stored.id),
    };
    let plateau = stored.config.tune().plateau.as_ref();
    let plateau = plateau.and_then(|plateau| Some((plateau.knob?, plateau.levels.clone().unwrap_or_default())));
    Design { arms: stored.arms.iter().map(arm).collect(), plateau }
}

#[cfg(test)]
mod tests;
