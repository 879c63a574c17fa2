//! What the journal holds of an experiment: its own trials, and those of the sessions that it continues.

use crate::commands::journal;
use crate::edge::Failure;
use std::collections::BTreeSet;
use std::time::Duration;
use wt_experiment::{Config, Ended, Experiment, Observation, PlateauConfig, StopReason};
use wt_journal::{Journal, State, StoredExperiment, TrialId, TrialRow, WithSamples};
use wt_report::TuneReport;
use wt_trial::{Phase, Status, TrialOutcome, TrialRecord};
use wt_units::Bytes;

/// Up to so many trials are shown, all of them.
const SHOWN_WHOLE: usize = 20_000;
/// Of more trials than that, the last so many are shown; and never more are read with their samples.
const TAIL: usize = 2_000;
/// What a trial without a byte counts as: one segment, whatever its exact size.
const SEGMENT: Bytes = Bytes(1_000);

/// What of a trial is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Judged {
    pub(crate) status: Status,
    pub(crate) bytes: u64,
    pub(crate) elapsed_us: u64,
    /// Where the workload isn't judged by payload over time.
    pub(crate) score: Option<f64>,
}

impl From<&TrialRow> for Judged {
    fn from(row: &TrialRow) -> Self {
        Self { status: row.status, bytes: row.bytes, elapsed_us: row.elapsed_us, score: row.score }
    }
}

impl From<&TrialOutcome> for Judged {
    fn from(outcome: &TrialOutcome) -> Self {
        let TrialOutcome { status, bytes, elapsed_us, .. } = *outcome;
        Self { status, bytes, elapsed_us, score: outcome.measures.score }
    }
}

/// What a trial is to the experiment.
pub(crate) fn observation(arm: usize, trial: &Judged) -> Observation {
    let Judged { status, bytes, elapsed_us, score } = *trial;
    let elapsed = Duration::from_micros(elapsed_us.max(1));
    let ended = match status {
        Status::Completed => Ended::Completed,
        Status::Incomplete => Ended::Incomplete,
        Status::Failed => Ended::Failed,
        Status::Running | Status::Aborted | Status::Invalid => Ended::Void,
    };
    if let Some(score) = score {
        return match ended {
            Ended::Void => Observation::void(arm),
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

/// An experiment with the sessions that it continues, the oldest first.
pub(crate) struct History {
    sessions: Vec<Session>,
}

struct Session {
    stored: StoredExperiment,
    /// The trials of rounds.
    rows: Vec<TrialRow>,
}

impl History {
    /// Reads the experiment and its predecessors.
    ///
    /// # Errors
    /// A [`Failure`] that says what the journal lacks.
    pub(crate) fn read(journal: &dyn Journal, stored: &StoredExperiment) -> Result<Self, Failure> {
        if stored.config["flent"].is_string() {
            let what = format!("{} is one test that flent ran: it compares no settings", stored.id);
            return Err(Failure::usage(what).hint(format!("windtunnel journal show {}", stored.id)));
        }
        let mut sessions = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = Some(stored.clone());
        while let Some(stored) = next {
            if !seen.insert(stored.id.clone()) {
                return Err(damaged(&stored, "it continues itself"));
            }
            let before = stored.config["continues"].as_str().map(|id| journal.load(id));
            next = before.transpose().map_err(|error| journal::failure(&error))?;
            let mut rows = journal.rows(&stored.id).map_err(|error| journal::failure(&error))?;
            rows.retain(|row| is_of_a_round(row.phase));
            sessions.push(Session { stored, rows });
        }
        sessions.reverse();
        Ok(Self { sessions })
    }

    /// Records the journaled rounds once more.
    ///
    /// # Errors
    /// A [`Failure`] if the journal contradicts itself.
    pub(crate) fn replay(&self) -> Result<Experiment, Failure> {
        let Some(first) = self.sessions.first() else { return Err(Failure::ours("an experiment without a session")) };
        let begun = Experiment::new(config(&first.stored));
        let mut experiment = begun.map_err(|error| damaged(&first.stored, &error.to_string()))?;
        for (number, session) in self.sessions.iter().enumerate() {
            if number > 0 {
                experiment.resume(max_trials(&session.stored));
            }
            session.record(&mut experiment)?;
        }
        Ok(experiment)
    }

    /// The number of the last round.
    pub(crate) fn last_round(&self) -> u32 {
        self.rows().map(|row| row.round).max().unwrap_or(0)
    }

    /// The trials that a report shows: all, or the last ones of very many; samples are read for the last ones only.
    ///
    /// # Errors
    /// A [`Failure`] that names the journal.
    pub(crate) fn records(&self, journal: &dyn Journal) -> Result<Vec<TrialRecord>, Failure> {
        let all: Vec<TrialId> = self.rows().map(|row| row.id).collect();
        let tail = all.len().saturating_sub(TAIL);
        let from = all.get(if all.len() > SHOWN_WHOLE { tail } else { 0 }).copied().unwrap_or(TrialId::MIN);
        let sampled = all.get(tail).copied().unwrap_or(TrialId::MIN);
        let mut records = Vec::new();
        for session in self.sessions.iter().filter(|s| s.rows.last().is_some_and(|row| row.id >= from)) {
            let id = &session.stored.id;
            let first_sampled = session.rows.iter().find(|row| row.id >= sampled).map(|row| row.id);
            let mut read = |from, samples, before: TrialId| {
                journal.for_each_trial_from(id, from, samples, &mut |record| {
                    if record.id < before && is_of_a_round(record.spec.phase) {
                        records.push(record);
                    }
                    Ok(())
                })
            };
            let plain = if from < sampled { read(from, WithSamples::No, sampled) } else { Ok(()) };
            plain
                .and_then(|()| first_sampled.map_or(Ok(()), |first| read(first, WithSamples::Yes, TrialId::MAX)))
                .map_err(|error| journal::failure(&error))?;
        }
        Ok(records)
    }

    /// Where a report was made of the last trials only: says so, and puts those figures right that the others change.
    pub(crate) fn complete(&self, report: &mut TuneReport) {
        let (shown, all) = (report.trial_table.len(), self.rows().count());
        if shown >= all {
            return;
        }
        report.warnings.insert(
            0,
            format!(
                "The table shows the last {shown} of {all} trials, and what is said of the path's drift and of single \
                 trials is of these. The verdict, the estimates, the evidence and the medians are of all trials. \
                 windtunnel journal export has them all."
            ),
        );
        for (number, arm) in report.arms.iter_mut().enumerate() {
            let counts = |row: &&TrialRow| {
                row.arm == number && matches!(row.status, Status::Completed | Status::Incomplete) && row.elapsed_us > 0
            };
            let rate = |row: &TrialRow| row.bytes as f64 * 8e6 / row.elapsed_us as f64;
            let mut rates: Vec<f64> = self.rows().filter(counts).map(rate).filter(|bps| *bps > 0.0).collect();
            rates.sort_unstable_by(f64::total_cmp);
            arm.goodput_bps = rates.get(rates.len() / 2).copied();
        }
    }

    /// The trials of rounds, of all sessions.
    pub(crate) fn rows(&self) -> impl Iterator<Item = &TrialRow> {
        self.sessions.iter().flat_map(|session| &session.rows)
    }
}

impl Session {
    /// Records the rounds of this session. A trial that was repeated counts once, the last time.
    fn record(&self, experiment: &mut Experiment) -> Result<(), Failure> {
        let ended = |row: &&TrialRow| !matches!(row.status, Status::Running | Status::Aborted);
        let mut rows: Vec<&TrialRow> = self.rows.iter().filter(ended).collect();
        rows.sort_unstable_by_key(|row| (row.round, row.order, row.id));
        let last = rows.last().map(|row| row.round);
        let cut_short = self.stored.state != State::Finished;
        for round in rows.chunk_by(|a, b| a.round == b.round) {
            if cut_short && round.first().map(|row| row.round) == last {
                // If it was cut short it doesn't count, as it didn't then.
                experiment.stop(StopReason::User);
            }
            let places = round.chunk_by(|a, b| a.order == b.order).filter_map(<[_]>::last);
            let round: Vec<Observation> = places.map(|row| observation(row.arm, &Judged::from(*row))).collect();
            experiment.record(&round).map_err(|error| damaged(&self.stored, &error.to_string()))?;
        }
        if cut_short {
            experiment.stop(StopReason::User);
        }
        Ok(())
    }
}

fn is_of_a_round(phase: Phase) -> bool {
    matches!(phase, Phase::Round | Phase::Plateau)
}

fn damaged(stored: &StoredExperiment, why: &str) -> Failure {
    Failure::ours(format!("experiment {} can't be assessed: {why}", stored.id))
}

fn max_trials(stored: &StoredExperiment) -> Option<usize> {
    stored.config["max_trials"].as_u64().and_then(|n| usize::try_from(n).ok())
}

/// The experiment's rules as the journal keeps them.
fn config(stored: &StoredExperiment) -> Config {
    let kept = &stored.config;
    let mut config = Config::new(stored.arms.len());
    config.alpha = kept["alpha"].as_f64().unwrap_or(config.alpha);
    config.indifference = kept["indifference"].as_f64().unwrap_or(config.indifference);
    config.max_trials = max_trials(stored);
    let weights = kept["weights"].as_array();
    config.weights = weights.map(|weights| weights.iter().filter_map(serde_json::Value::as_f64).collect());
    let levels = kept["plateau"]["levels"].as_array();
    config.plateau = levels.map(|levels| PlateauConfig {
        epsilon: kept["plateau"]["epsilon"].as_f64().unwrap_or(0.1),
        strict: kept["plateau"]["strict"].as_bool().unwrap_or(false),
        ..PlateauConfig::new(levels.iter().filter_map(|arm| usize::try_from(arm.as_u64()?).ok()).collect())
    });
    config
}
