//! Running an experiment: rounds in random order, every trial journaled before it begins and after it ends.

use super::delay_room::DelayRoom;
use super::event::{Sink, TuneEvent};
use super::notebook::Notebook;
use super::observed::{Attempts, CutRound, REPEATS, TrialFigures, is_done, observation, order_of};
use super::plan::{Plan, aside};
use super::turns::RoundTurns;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_experiment::{Experiment, Observation, StopReason};
use wt_problem::Problem;
use wt_setup::Design;
use wt_setup::tunnel_problem;
use wt_sys::clock::{monotonic_ns, since, unix_us};
use wt_trial::{Cancel, Phase, Status, TrialOutcome, TrialRecord, TrialSpec, Tunnel, TunnelError};
use wt_units::Settings;

/// After so many rounds in a row that the remote host refused, it is over.
const GIVEN_UP: usize = 6;

/// Where in the experiment a trial stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) round: u32,
    pub(crate) order: u32,
    pub(crate) arm: usize,
    pub(crate) phase: Phase,
    /// What became of attempts at it before.
    pub(crate) attempts: Attempts,
    /// Whether it meets random losses of its own: all settings of a round meet the same, unless each is there twice, or else the two
    /// trials of a setting would be one.
    pub(crate) own_losses: bool,
}

/// An experiment under way.
pub(crate) struct Driver<'a> {
    pub(crate) tunnel: &'a mut dyn Tunnel,
    pub(crate) notebook: &'a mut Notebook,
    pub(crate) events: Sink<'a>,
    pub(crate) cancel: &'a Cancel,
    pub(crate) turns: &'a mut RoundTurns,
    pub(crate) plan: Plan,
    pub(crate) records: Vec<TrialRecord>,
    /// How long trials took, all together, with the pauses that the remote host wanted before them.
    pub(crate) spent: Duration,
    /// How many that were.
    pub(crate) ran: u32,
    /// Why nothing more can be run, if that is so: the remote host, or a budget that is used up.
    pub(crate) ended: Option<TunnelError>,
    /// No round begins that would end later than this.
    pub(crate) until_ns: Option<u64>,
    /// What of the budget is the delay's.
    pub(crate) room: DelayRoom,
}

impl Driver<'_> {
    /// Runs one trial and journals it; `None` when the user wants to stop.
    fn trial(&mut self, spec: TrialSpec) -> Result<Option<TrialOutcome>, Problem> {
        let begun = monotonic_ns();
        let started = unix_us();
        let id = self.notebook.begin(&spec, started)?;
        (self.events)(TuneEvent::start(&spec));
        let outcome = match self.tunnel.run(&spec, self.turns.cancel(self.cancel)) {
            Ok(outcome) => outcome.comparable(&spec).ended_after(since(begun)),
            Err(error) => {
                let aborted = TrialOutcome::empty(Status::Aborted, since(begun), error.to_string());
                self.notebook.finish(id, &aborted)?;
                if let TunnelError::RemoteHost { .. } | TunnelError::Lost { .. } | TunnelError::Spent { .. } = error {
                    self.records.push(TrialRecord { id, spec, started_unix_us: started, outcome: aborted });
                    self.ended = Some(error);
                    return Ok(None);
                }
                return Err(tunnel_problem(&error));
            }
        };
        self.notebook.finish(id, &outcome)?;
        let aborted = outcome.status == Status::Aborted;
        (self.events)(TuneEvent::trial(&spec, &outcome));
        self.records.push(TrialRecord { id, spec, started_unix_us: started, outcome: outcome.clone() });
        self.cool_down();
        self.spent += since(begun);
        self.ran += 1;
        Ok((!aborted && !self.cancel.is_cancelled()).then_some(outcome))
    }

    /// Lets the path drain, unless the user wants to stop.
    fn cool_down(&self) {
        let end = monotonic_ns() + self.plan.cool_down.as_nanos() as u64;
        loop {
            let left = end.saturating_sub(monotonic_ns());
            if left == 0 || self.turns.cancel(self.cancel).is_cancelled() {
                return;
            }
            // Waits for nothing but time; a signal ends it early, and the flag is looked at again.
            let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_nanos(left.min(50_000_000))));
        }
    }

    /// Runs a trial that is thrown away, so that the first one that counts finds everything warm.
    pub(crate) fn warm_up(&mut self) -> Result<(), Problem> {
        // The turn of the first round is its, too. Where there is none, the rounds ask again, and say what follows.
        if self.take_turn()? {
            self.trial(aside(&self.plan, Phase::WarmUp))?;
        }
        Ok(())
    }

    /// Runs rounds until a stopping rule fires or the user wants to stop; `done` rounds have been run before, and `cut`
    /// in part: it is finished first, in the order in which it was drawn.
    pub(crate) fn rounds(
        &mut self,
        design: &Design,
        done: u32,
        mut cut: Option<CutRound>,
        experiment: &mut Experiment,
    ) -> Result<(), Problem> {
        let mut number = done;
        let mut given_up = 0;
        if self.ended.is_some() {
            experiment.stop(StopReason::User);
            return self.end(experiment);
        }
        'rounds: loop {
            let drawn = || experiment.next_round(&mut order_of(self.plan.order_seed, number + 1));
            let max_trials = experiment.config().max_trials;
            let fresh = || {
                let order = drawn()?;
                Some(CutRound { round: number + 1, order, max_trials, done: Vec::new(), attempts: BTreeMap::new() })
            };
            let is_begun = cut.is_some();
            let Some(mut this) = cut.take().or_else(fresh) else { break };
            let order = this.order.clone();
            let own_losses = (1..order.len()).any(|place| order[..place].contains(&order[place]));
            if !is_begun && self.leaves_to_delay(experiment, order.len()) {
                experiment.stop(StopReason::Budget);
                break;
            }
            if self.is_late(order.len()) {
                (self.events)(TuneEvent::note("the time is up"));
                experiment.stop(StopReason::User);
                experiment.cut(&this.done).map_err(|error| Problem::internal(error.to_string()))?;
                break;
            }
            if !self.take_turn()? {
                experiment.stop(StopReason::User);
                experiment.cut(&this.done).map_err(|error| Problem::internal(error.to_string()))?;
                return self.end(experiment);
            }
            number = number.max(this.round);
            for (place, arm) in order.iter().enumerate() {
                if is_done(&order, place, &this.done) {
                    continue;
                }
                let place = Place {
                    round: this.round,
                    order: place as u32 + 1,
                    arm: *arm,
                    phase: Phase::Round,
                    attempts: this.attempts(*arm),
                    own_losses,
                };
                let before = self.records.len();
                let Some(observation) = self.place(&design.arms[*arm].settings, place)? else {
                    if self.has_lost_turn() {
                        (self.events)(TuneEvent::note(
                            "the turn couldn't be kept: the rest of the round waits for the next one",
                        ));
                        let lost = Attempts::of(self.records[before..].iter().map(|record| record.outcome.status));
                        this.attempts.insert(*arm, this.attempts(*arm).plus(lost));
                        cut = Some(this);
                        continue 'rounds;
                    }
                    // The round is cut short and doesn't count until it is finished, whatever it has shown so far.
                    experiment.stop(StopReason::User);
                    experiment.cut(&this.done).map_err(|error| Problem::internal(error.to_string()))?;
                    return self.end(experiment);
                };
                this.attempts.remove(arm);
                this.done.push(observation);
                if self.tunnel.gives_up_round() {
                    break;
                }
            }
            self.turns.give_back();
            self.record(experiment, &this)?;
            given_up = if self.tunnel.gives_up_round() { given_up + 1 } else { 0 };
            if given_up == GIVEN_UP {
                let why = "the remote host refuses again and again".to_owned();
                self.ended = Some(TunnelError::RemoteHost { why, advice: None });
                experiment.stop(StopReason::User);
                return self.end(experiment);
            }
            (self.events)(TuneEvent::round(experiment, self.spent));
        }
        Ok(())
    }

    /// Waits until it is our turn on what is shared with others; false when the user wants to stop, or the time is up.
    pub(crate) fn take_turn(&mut self) -> Result<bool, Problem> {
        self.turns.take(self.cancel, self.until_ns, self.events)
    }

    /// Whether a trial ended because its turn did, and for no other reason.
    fn has_lost_turn(&self) -> bool {
        self.turns.is_cut() && !self.cancel.is_cancelled() && self.ended.is_none()
    }

    /// Whether a round wouldn't be over in time.
    pub(crate) fn is_late(&self, trials: usize) -> bool {
        let round = self.per_trial().saturating_mul(u32::try_from(trials).unwrap_or(u32::MAX));
        self.ends_late(round)
    }

    /// How long a trial takes: as planned, or as those before took with what the remote host made them wait.
    fn per_trial(&self) -> Duration {
        self.plan.per_trial(Duration::ZERO).max(self.spent.checked_div(self.ran).unwrap_or_default())
    }

    /// Whether the remote host wants to be left alone until there is no time for a trial any more.
    fn waits_too_long(&self) -> bool {
        let pause = self.tunnel.pause();
        !pause.is_zero() && self.ends_late(pause + self.plan.per_trial(Duration::ZERO))
    }

    /// What it means that the remote host wants to be left alone for longer than there is time.
    fn left_alone(&self) -> TunnelError {
        let (seconds, host) = (self.tunnel.pause().as_secs_f64(), self.tunnel.asked_last());
        let host = host.map_or_else(|| "the server".to_owned(), |(url, _)| url.to_string());
        let because = self.tunnel.refusal().map_or_else(String::new, |refusal| format!(" ({refusal})"));
        let why = format!("{host} wants to be left alone for {seconds:.0} s{because}, longer than there is time");
        TunnelError::RemoteHost { why, advice: None }
    }

    fn ends_late(&self, time: Duration) -> bool {
        self.until_ns.is_some_and(|until| monotonic_ns().saturating_add(time.as_nanos() as u64) > until)
    }

    /// Nothing more can be run: a failure if that is so from the beginning, else the end.
    fn end(&mut self, experiment: &Experiment) -> Result<(), Problem> {
        match self.ended.take() {
            Some(why) if experiment.rounds() == 0 => Err(tunnel_problem(&why)),
            Some(why) => {
                (self.events)(TuneEvent::Finished);
                let go_on = format!("windtunnel tune --resume {}", self.plan.id);
                let text = format!("{why}; what was measured before is kept, and {go_on} goes on with it");
                (self.events)(TuneEvent::Warning { text });
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn record(&self, experiment: &mut Experiment, round: &CutRound) -> Result<(), Problem> {
        if round.done.is_empty() {
            return Ok(());
        }
        let recorded = experiment.record_drawn_under(round.max_trials, &round.done);
        recorded.map(drop).map_err(|error| Problem::internal(error.to_string()))
    }

    /// One place of a round: the trial, and again if the tunnel spoilt it. `None` when the user wants to stop, or when the
    /// time is up before the remote host wants to be asked again.
    ///
    /// # Errors
    /// A [`Problem`] when the tunnel or the journal can't.
    pub(crate) fn place(&mut self, settings: &Settings, place: Place) -> Result<Option<Observation>, Problem> {
        let Place { round, order, arm, phase, attempts, own_losses } = place;
        let of_place = if own_losses { u64::from(order) << 48 } else { 0 };
        let mut spoilt = 0;
        for _ in 0..=REPEATS {
            if self.waits_too_long() {
                (self.events)(TuneEvent::note("the time is up: the server wants to be left alone until later"));
                self.ended = Some(self.left_alone());
                return Ok(None);
            }
            let spec = TrialSpec {
                phase,
                round,
                order,
                arm,
                seed: self.plan.seed.wrapping_add(u64::from(round)).wrapping_add(of_place),
                settings: settings.clone(),
                ..aside(&self.plan, phase)
            };
            let Some(outcome) = self.trial(spec)? else { return Ok(None) };
            if outcome.status != Status::Invalid {
                let had = self.plan.workload.time().unwrap_or(self.plan.deadline);
                let seen = observation(arm, &TrialFigures::of(&outcome, had)).after(spoilt);
                return Ok(Some(attempts.before(seen)));
            }
            spoilt += 1;
            if self.tunnel.gives_up_round() {
                break;
            }
        }
        Ok(Some(attempts.before(Observation::void(arm).after(spoilt))))
    }
}

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) mod made_up;
    mod quiet;
    mod wishful;
}
