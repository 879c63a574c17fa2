//! What the journal holds of an experiment: its own trials, and those of the sessions that it continues.

use super::duration::TrialTime;
use super::machines::{self, SessionPlace};
use super::observed::{Attempts, CutRound, DIRECTED, REPEATS, SEGMENT, TrialFigures, is_done, observation, order_of};
use std::collections::{BTreeMap, BTreeSet};
use std::iter::repeat;
use std::time::Duration;
use wt_experiment::{Config, Experiment, ExperimentError, Method, Observation, PlateauConfig, StopReason, TrialEnd};
use wt_journal::{ExperimentConfig, Journal, JournalError, State, StoredExperiment, TrialId, TrialRow, WithSamples};
use wt_problem::Problem;
use wt_report::AllTrials;
use wt_report::tune::DelayRules;
use wt_trial::{Phase, Status, TrialRecord, Workload};

/// Up to so many trials are shown, all of them.
const SHOWN_WHOLE: usize = 20_000;
/// Of more trials than that, the last so many are shown; and never more are read with their samples.
const TAIL: usize = 2_000;

/// An experiment with the sessions that it continues, the oldest first.
pub struct History {
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
    /// A [`Problem`] that says what the journal lacks.
    pub fn read(journal: &dyn Journal, stored: &StoredExperiment) -> Result<Self, Problem> {
        if let Some(format) = stored.config.later_format() {
            let what = format!("{} was written by a later version of windtunnel (format {format})", stored.id);
            return Err(Problem::usage(what).hint("report it with that version"));
        }
        if let Some(change) = stored.proved_change() {
            let what = format!("{} is a proof of change {change}: it compares no settings with each other", stored.id);
            return Err(Problem::usage(what).hint(format!("windtunnel report {}", stored.id)));
        }
        if let ExperimentConfig::Traffic(_) = stored.config {
            let what = format!("{} is an experiment on a server's own connections: it has no trials", stored.id);
            return Err(Problem::usage(what).hint(format!("windtunnel traffic report {}", stored.id)));
        }
        if let ExperimentConfig::Flent(_) = stored.config {
            let what = format!("{} is one test that flent ran: it compares no settings", stored.id);
            return Err(Problem::usage(what).hint(format!("windtunnel journal show {}", stored.id)));
        }
        if let ExperimentConfig::Tests(_) = stored.config {
            let what = format!("{} is a single test: it compares no settings", stored.id);
            return Err(Problem::usage(what).hint(format!("windtunnel journal show {}", stored.id)));
        }
        let mut sessions = Vec::new();
        let mut seen = BTreeSet::new();
        let mut next = Some(stored.clone());
        while let Some(stored) = next {
            if !seen.insert(stored.id.clone()) {
                return Err(damaged(&stored, "it continues itself"));
            }
            let before = stored.config.tune().continues.as_deref().map(|id| journal.load(id));
            next = before.transpose().map_err(|error| without_predecessor(&stored, &error))?;
            let mut rows = journal.rows(&stored.id).map_err(|error| wt_setup::journal::problem(&error))?;
            rows.retain(|row| is_of_a_round(row.phase));
            sessions.push(Session { stored, rows });
        }
        sessions.reverse();
        Ok(Self { sessions })
    }

    /// Records the journaled rounds once more.
    ///
    /// # Errors
    /// A [`Problem`] if the journal contradicts itself.
    pub fn replay(&self) -> Result<Experiment, Problem> {
        let (mut experiment, cut) = self.replay_open()?;
        let last = self.sessions.last().filter(|last| last.stored.state != State::Running);
        // A round under way may still be finished.
        if let (Some(cut), Some(last)) = (cut, last) {
            experiment.cut(&cut.done).map_err(|error| damaged(&last.stored, &error.to_string()))?;
        }
        Ok(experiment)
    }

    /// As [`History::replay`], with the last round apart if it was cut short and can be finished.
    pub(crate) fn replay_open(&self) -> Result<(Experiment, Option<CutRound>), Problem> {
        let first = self.begun()?;
        let begun = Experiment::new(config(first));
        let mut experiment = begun.map_err(|error| damaged(first, &error.to_string()))?;
        let mut cut = None;
        for (number, session) in self.sessions.iter().enumerate() {
            if number > 0 {
                experiment.resume(session.stored.config.tune().max_trials);
            }
            cut = session.record(&mut experiment, cut).map_err(|error| damaged(&session.stored, &error.to_string()))?;
        }
        Ok((experiment, cut))
    }

    /// The first of its sessions, by whose rules the others go on.
    ///
    /// # Errors
    /// An internal [`Problem`]: none is known.
    pub(crate) fn begun(&self) -> Result<&StoredExperiment, Problem> {
        let first = self.sessions.first().map(|session| &session.stored);
        first.ok_or_else(|| Problem::internal("an experiment without a session"))
    }

    /// What a person should know where its sessions were run on different machines.
    pub(crate) fn machines(&self) -> Option<String> {
        let place = |session: &'_ Session| session.rows.iter().map(|row| row.round).min();
        let places = self.sessions.iter().map(|one| SessionPlace { stored: &one.stored, round: place(one) });
        machines::warning(&places.collect::<Vec<_>>())
    }

    /// The names of its sessions, and what the order of each was drawn from.
    pub fn sessions(&self) -> impl Iterator<Item = (&str, u64)> {
        self.sessions
            .iter()
            .map(|session| (session.stored.id.as_str(), session.order_seed().unwrap_or(session.stored.seed)))
    }

    /// How less delay is claimed, where it is: as the first session that did so began.
    pub fn delay_rules(&self) -> Option<DelayRules> {
        self.sessions.iter().find_map(|session| delay_rules(&session.stored))
    }

    /// Payload over time of every trial of one of the settings that moved something, bit/s; of those that weren't completed
    /// over the time that they had.
    pub fn rates(&self, arm: usize) -> Vec<f64> {
        self.moving(arm).map(|(seen, _)| rate(&seen)).collect()
    }

    /// What each of them is judged by, larger being better: the same, or the score of a workload that has one.
    pub fn judged(&self, arm: usize) -> Vec<f64> {
        self.moving(arm).map(|(seen, scored)| if scored { seen.y.exp() } else { rate(&seen) }).collect()
    }

    /// How many trials of one of the settings moved nothing, and so have no rate.
    pub fn failed(&self, arm: usize) -> usize {
        self.telling(arm).filter(|(seen, _)| seen.ended == TrialEnd::Failed).count()
    }

    fn moving(&self, arm: usize) -> impl Iterator<Item = (Observation, bool)> + '_ {
        self.telling(arm).filter(|(seen, _)| seen.ended != TrialEnd::Failed)
    }

    /// The trials of one of the settings that say something, and whether each has a score.
    fn telling(&self, arm: usize) -> impl Iterator<Item = (Observation, bool)> + '_ {
        let of = move |session: &'_ Session| {
            let planned = session.planned();
            let rows = session.rows.iter().filter(move |row| row.arm == arm);
            let seen = |row| observation(arm, &TrialFigures::in_journal(row, planned));
            rows.map(|row| (seen(row), row.score.is_some())).collect::<Vec<_>>()
        };
        self.sessions.iter().flat_map(of).filter(|(seen, _)| seen.ended != TrialEnd::Void)
    }

    /// Whether all sessions say when their trials were.
    pub(crate) fn has_measured_time(&self) -> bool {
        self.sessions.iter().all(|session| session.stored.config.tune().measured_time == Some(true))
    }

    /// When the trials of rounds were, each with the name of its session.
    pub(crate) fn times(&self) -> impl Iterator<Item = (&str, TrialTime)> {
        let rows = self.sessions.iter().flat_map(|session| repeat(session.stored.id.as_str()).zip(&session.rows));
        rows.map(|(session, row)| (session, TrialTime::of_row(row)))
    }

    /// The number of the last round.
    pub fn last_round(&self) -> u32 {
        self.rows().map(|row| row.round).max().unwrap_or(0)
    }

    /// The trials that a report shows: all, or the last ones of very many; samples are read for the last ones only.
    ///
    /// # Errors
    /// A [`Problem`] that names the journal.
    pub fn records(&self, journal: &dyn Journal) -> Result<Vec<TrialRecord>, Problem> {
        let count = self.rows().count();
        let tail = count.saturating_sub(TAIL);
        let shown = if count > SHOWN_WHOLE { tail } else { 0 };
        let mut records = Vec::new();
        // Numbers of trials ascend within a session only: who imports the later one first has them the other way round.
        let mut begun = 0;
        for Session { stored, rows } in &self.sessions {
            // Rounds of a test of less delay may come before all others of a session, or be all that it has.
            let first_from = |place: usize| match place.checked_sub(begun) {
                None | Some(0) => Some(TrialId::MIN),
                Some(place) => rows.get(place).map(|row| row.id),
            };
            let (first_shown, first_sampled) = (first_from(shown), first_from(tail));
            begun += rows.len();
            let Some(first_shown) = first_shown else { continue };
            let mut read = |from, samples, before: TrialId| {
                journal.for_each_trial_from(&stored.id, from, samples, &mut |record| {
                    if record.id < before && (is_of_a_round(record.spec.phase) || record.spec.phase == Phase::Delay) {
                        records.push(record);
                    }
                    Ok(())
                })
            };
            let plain = if first_sampled == Some(first_shown) {
                Ok(())
            } else {
                read(first_shown, WithSamples::No, first_sampled.unwrap_or(TrialId::MAX))
            };
            plain
                .and_then(|()| first_sampled.map_or(Ok(()), |first| read(first, WithSamples::Yes, TrialId::MAX)))
                .map_err(|error| wt_setup::journal::problem(&error))?;
        }
        Ok(records)
    }

    /// All trials in figures, where there are so many that [`History::records`] gives the last ones only.
    pub fn all_trials(&self, arms: usize) -> Option<AllTrials> {
        let count = self.rows().count();
        if count <= SHOWN_WHOLE {
            return None;
        }
        let median = |arm: usize| {
            let counts = |row: &&TrialRow| {
                row.arm == arm && matches!(row.status, Status::Completed | Status::Incomplete) && row.elapsed_us > 0
            };
            let rate = |row: &TrialRow| row.bytes as f64 * 8e6 / row.elapsed_us as f64;
            let mut rates: Vec<f64> = self.rows().filter(counts).map(rate).filter(|bps| *bps > 0.0).collect();
            rates.sort_unstable_by(f64::total_cmp);
            rates.get(rates.len() / 2).copied()
        };
        Some(AllTrials { count, goodput_bps: (0..arms).map(median).collect() })
    }

    /// The trials of rounds, of all sessions.
    pub fn rows(&self) -> impl Iterator<Item = &TrialRow> {
        self.sessions.iter().flat_map(|session| &session.rows)
    }
}

impl Session {
    /// The time of a trial, if that was fixed.
    fn planned(&self) -> Option<Duration> {
        self.stored.config.tune().workload.as_ref().and_then(Workload::time)
    }

    /// What the order of its trials was drawn from; `None` where it can't be drawn again.
    fn order_seed(&self) -> Option<u64> {
        self.stored.config.tune().order_seed
    }

    /// Records the rounds of this session, after one that was cut short before; gives the last one if it was cut short
    /// again. A trial that was repeated counts once, the last time; that it was interrupted or spoilt before is told.
    fn record(
        &self,
        experiment: &mut Experiment,
        mut cut: Option<CutRound>,
    ) -> Result<Option<CutRound>, ExperimentError> {
        let mut rows: Vec<&TrialRow> = self.rows.iter().collect();
        rows.sort_unstable_by_key(|row| (row.round, row.order, row.id));
        let last = rows.last().map(|row| row.round);
        let cut_short = self.stored.state != State::Finished;
        let mut open = None;
        for rows in rows.chunk_by(|a, b| a.round == b.round) {
            let number = rows.first().map_or(0, |row| row.round);
            let is_open = cut_short && Some(number) == last;
            let (mut done, mut attempts) = (Vec::new(), BTreeMap::new());
            for rows in rows.chunk_by(|a, b| a.order == b.order) {
                match self.place(rows, is_open) {
                    Some(seen) => done.push(seen),
                    None => drop(attempts.insert(rows[0].arm, self.attempts(rows))),
                }
            }
            let mut order = None;
            let now = experiment.config().max_trials;
            let (mut drawn_under, mut under) = (now, now);
            if let Some(mut before) = cut.take() {
                if before.round == number {
                    for seen in &mut done {
                        // They are those of the first place of the setting that was open.
                        *seen = before.attempts.remove(&seen.arm).unwrap_or_default().before(*seen);
                    }
                    for (arm, earlier) in before.attempts {
                        let own: &mut Attempts = attempts.entry(arm).or_default();
                        *own = own.plus(earlier);
                    }
                    done.splice(0..0, before.done);
                    order = Some(before.order);
                    drawn_under = before.max_trials;
                    if self.stored.config.tune().cut_as_drawn == Some(true) {
                        under = drawn_under;
                    }
                } else {
                    experiment.cut(&before.done)?;
                }
            }
            if !is_open {
                experiment.record_drawn_under(under, &done)?;
                continue;
            }
            let redrawn = || experiment.next_round(&mut order_of(self.order_seed()?, number));
            let can_be_finished = order.is_some() || self.order_seed().is_some();
            let order = order.or_else(redrawn).unwrap_or_else(|| experiment.planned());
            let lacks = (0..order.len()).any(|place| !is_done(&order, place, &done));
            match (lacks, can_be_finished) {
                (false, _) => drop(experiment.record_drawn_under(under, &done)?),
                (true, true) => open = Some(CutRound { round: number, order, max_trials: drawn_under, done, attempts }),
                // Of journals from before orders could be drawn again.
                (true, false) => drop(experiment.cut(&done)?),
            }
        }
        if cut_short && self.stored.state != State::Running {
            experiment.stop(StopReason::User);
        }
        if !cut_short && self.stored.config.tune().delay_room.is_some() {
            // What hadn't stopped by itself left the rest of its budget to the test of less delay.
            experiment.stop(StopReason::Budget);
        }
        Ok(open.or(cut))
    }

    /// What came of one place of a round; `None` where the round is open, and the place still to be run.
    fn place(&self, rows: &[&TrialRow], is_open: bool) -> Option<Observation> {
        let last = rows.iter().rev().find(|row| !matches!(row.status, Status::Running | Status::Aborted))?;
        let spoilt = rows.iter().filter(|row| row.status == Status::Invalid).count();
        let given_up = !is_open || last.status != Status::Invalid || spoilt > REPEATS || self.order_seed().is_none();
        let seen = observation(last.arm, &TrialFigures::in_journal(last, self.planned()));
        given_up.then(|| self.attempts(rows).before(seen))
    }

    /// What became of attempts at a place. Journals from before rounds were finished count no interrupted ones.
    fn attempts(&self, rows: &[&TrialRow]) -> Attempts {
        let attempts = Attempts::of(rows.iter().map(|row| row.status));
        if self.order_seed().is_some() { attempts } else { Attempts { interrupted: 0, ..attempts } }
    }
}

/// Payload over time, bit/s.
fn rate(seen: &Observation) -> f64 {
    seen.bytes.max(SEGMENT).get() as f64 * 8.0 / seen.elapsed.as_secs_f64()
}

pub(crate) fn is_of_a_round(phase: Phase) -> bool {
    matches!(phase, Phase::Round | Phase::Plateau)
}

fn damaged(stored: &StoredExperiment, why: &str) -> Problem {
    not_assessable(&format!("experiment {}", stored.id), &why)
}

/// What it means that the experiment which this one continues can't be read.
fn without_predecessor(stored: &StoredExperiment, error: &JournalError) -> Problem {
    let before = stored.config.tune().continues.as_deref().unwrap_or_default();
    if !matches!(error, JournalError::NoSuchExperiment { .. } | JournalError::Empty { .. }) {
        return wt_setup::journal::problem(error);
    }
    Problem::usage(format!("{} continues {before}, which isn't in this journal", stored.id))
        .because("what it shows rests on the trials of both, and an export has one experiment")
        .hint(format!("windtunnel journal export {before} where it was measured, and windtunnel journal import here"))
}

/// What isn't as we write it: an import may say anything.
pub(crate) fn not_assessable(what: &str, why: &dyn std::fmt::Display) -> Problem {
    Problem::environment(format!("{what} can't be assessed: {why}"))
        .because("another program wrote it, or changed it")
        .hint("import it again from where it was measured, or measure again")
}

/// How less delay is claimed by the rules of this session alone.
pub(crate) fn delay_rules(stored: &StoredExperiment) -> Option<DelayRules> {
    let kept = stored.config.tune();
    kept.delay_alpha.zip(kept.delay_epsilon).map(|(alpha, epsilon)| DelayRules { alpha, epsilon })
}

/// The experiment's rules as the journal keeps them.
fn config(stored: &StoredExperiment) -> Config {
    let kept = stored.config.tune();
    let plateau = |kept: &wt_journal::PlateauConfig| {
        let levels = kept.levels.clone()?;
        Some(PlateauConfig { epsilon: kept.epsilon(), strict: kept.is_strict(), ..PlateauConfig::new(levels) })
    };
    Config {
        alpha: kept.alpha(),
        indifference: kept.indifference(),
        relevant: kept.relevant.unwrap_or(0.0),
        method: if kept.method.as_deref() == Some(DIRECTED) { Method::Directed } else { Method::Uniform },
        twice: kept.twice.unwrap_or(false),
        excludes: kept.excludes.unwrap_or(false),
        max_trials: kept.max_trials,
        weights: kept.weights.clone(),
        plateau: kept.plateau.as_ref().and_then(plateau),
        cells: kept.cells.clone().unwrap_or_default(),
        ..Config::new(stored.arms.len())
    }
}

#[cfg(test)]
mod tests;
