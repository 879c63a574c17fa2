//! Running an experiment: rounds in random order, every trial journaled before it begins and after it ends.

use super::design::Design;
use super::notebook::Notebook;
use super::progress::Progress;
use crate::commands::report::{Judged, observation};
use crate::edge::{Failure, Fault};
use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use std::time::Duration;
use wt_experiment::{Experiment, Observation, StopReason};
use wt_sys::clock::{monotonic_ns, unix_us};
use wt_trial::{Cancel, Phase, Status, TrialOutcome, TrialRecord, TrialSpec, Tunnel, TunnelError, Workload};
use wt_units::Settings;

/// A trial that says nothing is run again at most so often.
const REPEATS: usize = 2;
/// After so many rounds in a row that the far end refused, it is over.
const GIVEN_UP: usize = 6;

/// What stays the same from trial to trial.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    pub(crate) id: String,
    pub(crate) seed: u64,
    pub(crate) workload: Workload,
    /// How long that takes, as far as it is known.
    pub(crate) expected: Duration,
    pub(crate) cool_down: Duration,
    pub(crate) deadline: Duration,
}

impl Plan {
    /// How long a trial takes with all that belongs to it, if it has a fixed time.
    pub(crate) fn per_trial(&self, rtt: Duration) -> Duration {
        self.length() + self.cool_down + rtt * 2
    }

    /// How long a trial transfers.
    pub(crate) fn length(&self) -> Duration {
        self.workload.time().unwrap_or(self.expected)
    }
}

/// Where in the experiment a trial stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    pub(crate) round: u32,
    pub(crate) order: u32,
    pub(crate) arm: usize,
}

/// An experiment under way.
pub(crate) struct Driver<'a> {
    pub(crate) tunnel: &'a mut dyn Tunnel,
    pub(crate) notebook: &'a mut Notebook,
    pub(crate) progress: &'a mut Progress,
    pub(crate) cancel: &'a Cancel,
    pub(crate) plan: Plan,
    pub(crate) records: Vec<TrialRecord>,
    /// How long trials took, all together.
    pub(crate) spent: Duration,
    /// Why nothing more can be run, if that is so: the far end, or a budget that is used up.
    pub(crate) ended: Option<TunnelError>,
    /// No round begins that would end later than this.
    pub(crate) until_ns: Option<u64>,
}

impl Driver<'_> {
    /// Runs one trial and journals it; `None` when the user wants to stop.
    fn trial(&mut self, spec: TrialSpec) -> Result<Option<TrialOutcome>, Failure> {
        let begun = monotonic_ns();
        let started = unix_us();
        let id = self.notebook.begin(&spec, started)?;
        let outcome = match self.tunnel.run(&spec, self.cancel) {
            Ok(outcome) => outcome.comparable(&spec),
            Err(error) => {
                let aborted = TrialOutcome::empty(Status::Aborted, Duration::ZERO, error.to_string());
                self.notebook.finish(id, &aborted)?;
                if let TunnelError::FarEnd { .. } | TunnelError::Lost { .. } | TunnelError::Spent { .. } = error {
                    self.records.push(TrialRecord { id, spec, started_unix_us: started, outcome: aborted });
                    self.ended = Some(error);
                    return Ok(None);
                }
                return Err(tunnel_failure(&error));
            }
        };
        self.notebook.finish(id, &outcome)?;
        let aborted = outcome.status == Status::Aborted;
        self.progress.trial(&spec, &outcome);
        self.records.push(TrialRecord { id, spec, started_unix_us: started, outcome: outcome.clone() });
        self.cool_down();
        self.spent += Duration::from_nanos(monotonic_ns() - begun);
        Ok((!aborted && !self.cancel.is_cancelled()).then_some(outcome))
    }

    /// Lets the path drain, unless the user wants to stop.
    fn cool_down(&self) {
        let end = monotonic_ns() + self.plan.cool_down.as_nanos() as u64;
        loop {
            let left = end.saturating_sub(monotonic_ns());
            if left == 0 || self.cancel.is_cancelled() {
                return;
            }
            // Waits for nothing but time; a signal ends it early, and the flag is looked at again.
            let _ = wt_sys::poll::wait_readable(&[], Some(Duration::from_nanos(left.min(50_000_000))));
        }
    }

    /// Runs a trial that is thrown away, so that the first one that counts finds everything warm.
    pub(crate) fn warm_up(&mut self) -> Result<(), Failure> {
        let spec = aside(&self.plan, Phase::WarmUp);
        self.trial(spec).map(drop)
    }

    /// Runs rounds until a stopping rule fires or the user wants to stop; `done` rounds have been run before.
    pub(crate) fn rounds(&mut self, design: &Design, done: u32, experiment: &mut Experiment) -> Result<(), Failure> {
        let mut rng = ChaCha12Rng::seed_from_u64(self.plan.seed);
        let mut number = done;
        let mut given_up = 0;
        if self.ended.is_some() {
            experiment.stop(StopReason::User);
            return self.end(experiment);
        }
        while let Some(order) = experiment.next_round(&mut rng) {
            if self.is_late(order.len()) {
                self.progress.say("the time is up");
                experiment.stop(StopReason::User);
                break;
            }
            number += 1;
            let mut round = Vec::with_capacity(order.len());
            for (place, arm) in order.iter().enumerate() {
                let place = Place { round: number, order: place as u32 + 1, arm: *arm };
                let Some(observation) = self.place(&design.arms[*arm].settings, place)? else {
                    // The round is cut short and doesn't count, whatever it has shown so far.
                    experiment.stop(StopReason::User);
                    self.record(experiment, &round)?;
                    return self.end(experiment);
                };
                round.push(observation);
                if self.tunnel.gives_up_round() {
                    break;
                }
            }
            self.record(experiment, &round)?;
            given_up = if self.tunnel.gives_up_round() { given_up + 1 } else { 0 };
            if given_up == GIVEN_UP {
                let why = "the far end refuses again and again".to_owned();
                self.ended = Some(TunnelError::FarEnd { why });
                experiment.stop(StopReason::User);
                return self.end(experiment);
            }
            self.progress.round(experiment, self.spent);
        }
        Ok(())
    }

    /// Whether a round wouldn't be over in time.
    fn is_late(&self, trials: usize) -> bool {
        let trials = u32::try_from(trials).unwrap_or(u32::MAX);
        let round = self.plan.per_trial(Duration::ZERO).saturating_mul(trials).as_nanos() as u64;
        self.until_ns.is_some_and(|until| monotonic_ns().saturating_add(round) > until)
    }

    /// Nothing more can be run: a failure if that is so from the beginning, else the end.
    fn end(&mut self, experiment: &Experiment) -> Result<(), Failure> {
        match self.ended.take() {
            Some(why) if experiment.rounds() == 0 => Err(tunnel_failure(&why)),
            Some(why) => {
                self.progress.end();
                let go_on = format!("windtunnel tune --resume {}", self.plan.id);
                self.progress.warn(&format!("{why}; what was measured before is kept, and {go_on} goes on with it"));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn record(&self, experiment: &mut Experiment, round: &[Observation]) -> Result<(), Failure> {
        if round.is_empty() {
            return Ok(());
        }
        experiment.record(round).map(drop).map_err(|error| Failure::ours(error.to_string()))
    }

    /// One place of a round: the trial, and again if the tunnel spoilt it. `None` when the user wants to stop.
    ///
    /// # Errors
    /// A [`Failure`] when the tunnel or the journal can't.
    pub(crate) fn place(&mut self, settings: &Settings, place: Place) -> Result<Option<Observation>, Failure> {
        let Place { round, order, arm } = place;
        for _ in 0..=REPEATS {
            let spec = TrialSpec {
                phase: Phase::Round,
                round,
                order,
                arm,
                // All settings of a round meet the same random losses.
                seed: self.plan.seed.wrapping_add(u64::from(round)),
                settings: settings.clone(),
                ..aside(&self.plan, Phase::Round)
            };
            let Some(outcome) = self.trial(spec)? else { return Ok(None) };
            if outcome.status == Status::Invalid && self.tunnel.gives_up_round() {
                break;
            }
            if outcome.status != Status::Invalid {
                return Ok(Some(observation(arm, &Judged::from(&outcome))));
            }
        }
        Ok(Some(Observation::void(arm)))
    }
}

/// A trial outside of the rounds, with the current settings.
pub(crate) fn aside(plan: &Plan, phase: Phase) -> TrialSpec {
    TrialSpec {
        experiment: plan.id.clone(),
        phase,
        round: 0,
        order: 0,
        arm: 0,
        settings: Settings::new(),
        workload: plan.workload.clone(),
        deadline: plan.deadline,
        seed: plan.seed,
    }
}

/// What to say when the tunnel can't run a trial at all.
pub(crate) fn tunnel_failure(error: &TunnelError) -> Failure {
    match error {
        TunnelError::Broken { .. } => Failure::ours(error.to_string()),
        TunnelError::FarEnd { why } if why.contains("UnknownIssuer") => Failure::new(Fault::FarEnd, error.to_string())
            .because("its certificate is signed by nobody whom this system believes")
            .hint("--ca FILE names a private authority"),
        TunnelError::FarEnd { .. } => Failure::new(Fault::FarEnd, error.to_string()),
        TunnelError::Lost { here, .. } => {
            let fault = if *here { Fault::Environment } else { Fault::FarEnd };
            Failure::new(fault, error.to_string())
                .hint("windtunnel journal list shows what was kept; once the network is back, --resume goes on with it")
        }
        TunnelError::Environment { why, remedy } => Failure::environment(why).hint(remedy.as_deref().unwrap_or(
            "knobs that one socket takes need no privilege: rwin, mtu, mss, ttl; for uploads cc and sndbuf",
        )),
        _ => Failure::usage(error.to_string()),
    }
}
