//! What comparisons over one emulated path have in common: trials in rounds, in the journal.

use super::event::{CompareEvent, ComparedTrial, Sink, Subject};
use rand::SeedableRng as _;
use rand::seq::SliceRandom as _;
use rand_chacha::ChaCha12Rng;
use std::time::Duration;
use wt_experiment::EProcess;
use wt_problem::Problem;
use wt_sys::clock::{monotonic_ns, since, unix_us};
use wt_trial::{Cancel, Direction, Phase, Status, TrialOutcome, TrialSpec, Tunnel, Workload};
use wt_tune::notebook::Notebook;
use wt_units::Settings;

/// What a report begins with whose comparison is under way.
pub(super) const STILL_RUNS: &str = "The comparison still runs; this is what is so until now.";

/// A trial that says nothing is run again at most so often.
pub(super) const REPEATS: u32 = 20;

/// Between a trial that says nothing and the next at most.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Waits for nothing but time; a signal ends it early.
fn pause(time: Duration) {
    let _ = wt_sys::poll::wait_readable(&[], Some(time));
}

/// What a workload is called among others: `bulk`, and `bulk-up` where the client sends.
pub(super) fn key(workload: &Workload) -> &'static str {
    match workload {
        Workload::Bulk { direction: Direction::Up, .. } => "bulk-up",
        Workload::Soak { direction: Direction::Up, .. } => "soak-up",
        Workload::Stream { direction: Direction::Up, .. } => "stream-up",
        _ => workload.name(),
    }
}

/// The fewest rounds of one and the same difference after which a claim that needs this evidence can be made.
pub(super) fn fewest_rounds(needed: f64) -> u32 {
    EProcess::fewest_rounds(needed)
}

/// A verdict as the journal keeps it: with its first sentence as the headline, which lists have room for.
///
/// # Errors
/// An internal [`Problem`].
pub(super) fn kept_verdict(verdict: &impl serde::Serialize) -> Result<serde_json::Value, Problem> {
    let mut kept = serde_json::to_value(verdict).map_err(|error| Problem::internal(error.to_string()))?;
    let text = kept["text"].as_str().unwrap_or_default();
    let headline = text.find(". ").map_or(text, |end| &text[..=end]).to_owned();
    kept["headline"] = headline.into();
    Ok(kept)
}

/// A tunnel, and what is kept of the trials in it.
pub(super) struct Rounds<'a, T> {
    pub(super) tunnel: T,
    pub(super) notebook: Notebook,
    pub(super) cancel: &'a Cancel,
    pub(super) events: Sink<'a>,
    /// What is compared.
    pub(super) subject: Subject,
    /// Of everything random on the path.
    pub(super) seed: u64,
    /// Of the order of trials.
    pub(super) order_seed: u64,
    /// The RTT of the idle path.
    pub(super) rtt: Duration,
    /// Trials that were run.
    pub(super) trials: u32,
}

/// One of a round.
pub(super) struct Place<'a> {
    /// The round, from 1.
    pub(super) round: u32,
    /// The number of what is tried.
    pub(super) arm: usize,
    /// What that is called.
    pub(super) label: String,
    pub(super) settings: Settings,
    pub(super) workload: &'a Workload,
    pub(super) deadline: Duration,
    /// How often its trial is run again at most.
    pub(super) repeats: u32,
    /// A completed trial in a few words.
    pub(super) figure: fn(&str, &TrialOutcome) -> String,
}

impl<T: Tunnel> Rounds<'_, T> {
    /// Between two trials: the ends need a few round trips to let go.
    pub(super) fn cool_down(&self) -> Duration {
        (self.rtt * 4).clamp(Duration::from_millis(50), Duration::from_secs(5))
    }

    /// Says what happens.
    pub(super) fn tell(&mut self, event: CompareEvent) {
        (self.events)(event);
    }

    /// Runs a place's trial, and again until one counts; `None` when the user wants to stop. The last one is given back also
    /// where none counts.
    ///
    /// # Errors
    /// Those of [`Self::trial`], and what `counts` finds.
    pub(super) fn place(
        &mut self,
        place: &Place<'_>,
        counts: &mut dyn FnMut(&TrialOutcome) -> Result<bool, Problem>,
    ) -> Result<Option<TrialOutcome>, Problem> {
        let mut repeats = 0;
        loop {
            let outcome = self.trial(place)?;
            if outcome.status == Status::Aborted || self.cancel.is_cancelled() {
                return Ok(None);
            }
            let counts = counts(&outcome)?;
            let workload = key(place.workload);
            self.tell(CompareEvent::Trial(ComparedTrial {
                subject: self.subject,
                round: place.round,
                label: place.label.clone(),
                workload,
                status: outcome.status,
                counts,
                goodput_bps: outcome.goodput_bps(),
                figure: (outcome.status == Status::Completed).then(|| (place.figure)(workload, &outcome)),
                notes: outcome.notes.clone(),
            }));
            if counts || repeats == place.repeats {
                return Ok(Some(outcome));
            }
            repeats += 1;
            // What kept the lab from its time may last.
            pause((self.cool_down() * repeats).min(LONGEST_PAUSE));
        }
    }

    /// Runs one trial. It is in the journal when this returns.
    ///
    /// # Errors
    /// A [`Problem`] when the tunnel broke or the journal can't be written.
    fn trial(&mut self, place: &Place<'_>) -> Result<TrialOutcome, Problem> {
        self.trials += 1;
        let spec = TrialSpec {
            experiment: self.notebook.id().to_owned(),
            phase: Phase::Round,
            round: place.round,
            order: self.trials,
            arm: place.arm,
            settings: place.settings.clone(),
            workload: place.workload.clone(),
            deadline: place.deadline,
            // All of a round meet the same random losses.
            seed: self.seed.wrapping_add(u64::from(place.round)),
        };
        let id = self.notebook.begin(&spec, unix_us())?;
        let begun = monotonic_ns();
        let outcome = match self.tunnel.run(&spec, self.cancel) {
            Ok(outcome) => outcome.ended_after(since(begun)),
            Err(error) => {
                self.notebook.finish(id, &TrialOutcome::empty(Status::Aborted, since(begun), error.to_string()))?;
                return Err(Problem::internal(error.to_string()).hint("run `windtunnel doctor`"));
            }
        };
        self.notebook.finish(id, &outcome)?;
        pause(self.cool_down());
        Ok(outcome)
    }
}

/// The orders in which rounds run what they compare.
pub(super) struct Orders {
    rng: ChaCha12Rng,
    order: Vec<usize>,
}

impl Orders {
    /// Of so many.
    pub(super) fn new(seed: u64, arms: usize) -> Self {
        Self { rng: ChaCha12Rng::seed_from_u64(seed), order: (0..arms).collect() }
    }

    /// Runs all of a round in the next random order: what came of each, with its number. `None` where one was stopped: a
    /// round that isn't complete compares nothing.
    ///
    /// # Errors
    /// The first of `one`.
    pub(super) fn round<O>(
        &mut self,
        mut one: impl FnMut(usize) -> Result<Option<O>, Problem>,
    ) -> Result<Option<Vec<(usize, O)>>, Problem> {
        self.order.shuffle(&mut self.rng);
        let mut done = Vec::with_capacity(self.order.len());
        for index in &self.order {
            let Some(outcome) = one(*index)? else { return Ok(None) };
            done.push((*index, outcome));
        }
        Ok(Some(done))
    }
}
