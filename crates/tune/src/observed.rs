//! What a trial is to its experiment, and what a round is drawn from.

use rand::SeedableRng as _;
use rand_chacha::ChaCha12Rng;
use std::collections::BTreeMap;
use std::time::Duration;
use wt_experiment::{Observation, TrialEnd};
use wt_journal::TrialRow;
use wt_trial::{Status, TrialOutcome, TrialRecord};
use wt_units::Bytes;

/// A trial that says nothing is run again at most so often.
pub(crate) const REPEATS: usize = 2;
/// What a trial without a byte counts as: one segment, whatever its exact size.
pub(crate) const SEGMENT: Bytes = Bytes(1_000);

/// What the order of a round is drawn from: the same whenever it is drawn again.
pub(crate) fn order_of(seed: u64, round: u32) -> ChaCha12Rng {
    let mut rng = ChaCha12Rng::seed_from_u64(seed);
    rng.set_stream(u64::from(round));
    rng
}

/// What the journal calls the method of today.
pub(crate) const DIRECTED: &str = "directed";

/// What of a trial is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TrialFigures {
    pub(crate) status: Status,
    pub(crate) bytes: u64,
    pub(crate) elapsed_us: u64,
    /// Where the workload isn't judged by payload over time.
    pub(crate) score: Option<f64>,
    /// How long a trial had that wasn't completed: its planned time, or its deadline. Whoever is cut off early isn't faster.
    pub(crate) had_us: Option<u64>,
}

impl TrialFigures {
    /// As the journal has it; `planned` is the time of a workload that has one.
    pub(crate) fn in_journal(row: &TrialRow, planned: Option<Duration>) -> Self {
        let had_us = planned.map(|time| time.as_micros() as u64).or(row.deadline_us);
        Self { status: row.status, bytes: row.bytes, elapsed_us: row.elapsed_us, score: row.score, had_us }
    }

    /// As it has just come out; it had so much time.
    pub(crate) fn of(outcome: &TrialOutcome, had: Duration) -> Self {
        let TrialOutcome { status, bytes, elapsed_us, .. } = *outcome;
        Self { status, bytes, elapsed_us, score: outcome.measures.score, had_us: Some(had.as_micros() as u64) }
    }

    /// As a record of the journal has it.
    pub(crate) fn in_record(record: &TrialRecord) -> Self {
        Self::of(&record.outcome, record.spec.workload.time().unwrap_or(record.spec.deadline))
    }

    /// How long it counts as having taken.
    fn elapsed(&self) -> Duration {
        let had = self.had_us.filter(|_| matches!(self.status, Status::Incomplete | Status::Failed)).unwrap_or(0);
        Duration::from_micros(self.elapsed_us.max(had).max(1))
    }
}

/// A round that was cut short: finished first when the experiment goes on, in the order in which it was drawn, so that nobody
/// who saw a part of it can choose whether it counts.
#[derive(Debug, Clone)]
pub(crate) struct CutRound {
    pub(crate) round: u32,
    /// All of its settings, in the order in which they are run; on a quiet path each may be there twice.
    pub(crate) order: Vec<usize>,
    /// Trials at most, as it was when the round was drawn: what is staked on the round follows it.
    pub(crate) max_trials: Option<usize>,
    /// What was run.
    pub(crate) done: Vec<Observation>,
    /// What became of attempts of the settings that are still to be run.
    pub(crate) attempts: BTreeMap<usize, Attempts>,
}

/// Whether a place of a round was run: who is in it twice was run first at its first place.
pub(crate) fn is_done(order: &[usize], place: usize, done: &[Observation]) -> bool {
    let before = order[..place].iter().filter(|arm| **arm == order[place]).count();
    done.iter().filter(|run| run.arm == order[place]).count() > before
}

impl CutRound {
    /// What became of attempts of this setting.
    pub(crate) fn attempts(&self, arm: usize) -> Attempts {
        self.attempts.get(&arm).copied().unwrap_or_default()
    }
}

/// Attempts at a place of a round that came to nothing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Attempts {
    /// Refused, or spoilt by this machine.
    pub(crate) spoilt: u32,
    /// Ended by somebody or something under way: whoever saw how it went can't have it anew for nothing.
    pub(crate) interrupted: u32,
}

impl Attempts {
    /// Of trials that ended so.
    pub(crate) fn of(ends: impl Iterator<Item = Status>) -> Self {
        ends.fold(Self::default(), |attempts, status| {
            attempts.plus(match status {
                Status::Invalid => Self { spoilt: 1, interrupted: 0 },
                Status::Running | Status::Aborted => Self { spoilt: 0, interrupted: 1 },
                Status::Completed | Status::Incomplete | Status::Failed => Self::default(),
            })
        })
    }

    /// These and others.
    pub(crate) fn plus(self, other: Self) -> Self {
        Self { spoilt: self.spoilt + other.spoilt, interrupted: self.interrupted + other.interrupted }
    }

    /// What came of the place after these.
    pub(crate) fn before(self, seen: Observation) -> Observation {
        seen.after(self.spoilt).interrupted(self.interrupted)
    }
}

/// What a trial is to the experiment.
pub(crate) fn observation(arm: usize, trial: &TrialFigures) -> Observation {
    let TrialFigures { status, bytes, score, .. } = *trial;
    let elapsed = trial.elapsed();
    let ended = match status {
        Status::Completed => TrialEnd::Completed,
        Status::Incomplete => TrialEnd::Incomplete,
        Status::Failed => TrialEnd::Failed,
        Status::Running | Status::Aborted | Status::Invalid => TrialEnd::Void,
    };
    if let Some(score) = score {
        return match ended {
            TrialEnd::Void => Observation::void(arm),
            ended => Observation::scored(arm, score, ended, Bytes(bytes), elapsed),
        };
    }
    match status {
        Status::Completed => Observation::completed(arm, Bytes(bytes), elapsed),
        Status::Incomplete => Observation::incomplete(arm, Bytes(bytes), elapsed, SEGMENT),
        Status::Failed => Observation::failed(arm, elapsed, SEGMENT),
        Status::Running | Status::Aborted | Status::Invalid => Observation::void(arm),
    }
}
