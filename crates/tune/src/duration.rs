//! How long the trials of an experiment took, with the pauses between them.

use std::collections::BTreeMap;
use std::time::Duration;
use wt_journal::{TrialId, TrialRow};
use wt_trial::{Phase, TrialRecord};

/// When a trial was, and in which round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TrialTime {
    id: TrialId,
    is_of_delay: bool,
    round: u32,
    started_unix_us: i64,
    elapsed_us: i64,
}

impl TrialTime {
    pub(crate) fn of_row(row: &TrialRow) -> Self {
        Self {
            id: row.id,
            is_of_delay: row.phase == Phase::Delay,
            round: row.round,
            started_unix_us: row.started_unix_us,
            elapsed_us: i64::try_from(row.elapsed_us).unwrap_or(i64::MAX),
        }
    }

    /// The same as the journal has it.
    pub(crate) fn of_record(record: &TrialRecord) -> Self {
        Self {
            id: record.id,
            is_of_delay: record.spec.phase == Phase::Delay,
            round: record.spec.round,
            started_unix_us: record.started_unix_us,
            elapsed_us: i64::try_from(record.outcome.elapsed_us).unwrap_or(i64::MAX),
        }
    }

    /// From its end to the beginning of the next one, µs.
    fn pause_before(&self, next: &Self) -> i64 {
        let end = self.started_unix_us.saturating_add(self.elapsed_us);
        next.started_unix_us.saturating_sub(end).max(0)
    }

    fn shares_round(&self, other: &Self) -> bool {
        (self.is_of_delay, self.round) == (other.is_of_delay, other.round)
    }
}

/// How long all these trials took, those that said nothing among them, each with the name of its session: from the beginning of each
/// to that of the next. What lies between two sessions isn't part of it, nor is what was waited for a turn on a shared link: of a pause
/// between two rounds no more counts than the longest one within a round. With `cool_down` every pause is that one: the model's time isn't that
/// of this machine.
pub(crate) fn whole<'a>(trials: impl Iterator<Item = (&'a str, TrialTime)>, cool_down: Option<Duration>) -> Duration {
    let mut sessions: BTreeMap<&str, Vec<TrialTime>> = BTreeMap::new();
    for (session, trial) in trials {
        sessions.entry(session).or_default().push(trial);
    }
    sessions.into_values().map(|trials| of_session(trials, cool_down)).sum()
}

fn of_session(mut trials: Vec<TrialTime>, cool_down: Option<Duration>) -> Duration {
    trials.sort_unstable_by_key(|trial| trial.id);
    let pairs = || trials.iter().zip(trials.iter().skip(1));
    let longest = pairs().filter(|(a, b)| a.shares_round(b)).map(|(a, b)| a.pause_before(b)).max();
    let pause = |(a, b): (&TrialTime, &TrialTime)| match cool_down {
        Some(cool_down) => i64::try_from(cool_down.as_micros()).unwrap_or(i64::MAX),
        None if a.shares_round(b) => a.pause_before(b),
        None => a.pause_before(b).min(longest.unwrap_or(0)),
    };
    let micros = trials.iter().map(|trial| trial.elapsed_us).chain(pairs().map(pause));
    Duration::from_micros(micros.fold(0, i64::saturating_add).unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A trial of a round that began so many seconds after the first and took so many.
    fn trial(id: TrialId, round: u32, started_s: i64, elapsed_s: i64) -> TrialTime {
        let (started_unix_us, elapsed_us) = (1_795_974_333_000_000 + started_s * 1_000_000, elapsed_s * 1_000_000);
        TrialTime { id, is_of_delay: false, round, started_unix_us, elapsed_us }
    }

    fn seconds(trials: &[(&'static str, TrialTime)], cool_down: Option<u64>) -> u64 {
        whole(trials.iter().copied(), cool_down.map(Duration::from_secs)).as_secs()
    }

    #[test]
    fn trials_take_what_they_took_with_the_pauses_between_them() {
        // Two rounds; the third trial took far longer than was expected of it, and the second one said nothing.
        let trials = [trial(1, 1, 0, 2), trial(2, 1, 3, 1), trial(3, 1, 5, 15), trial(4, 2, 22, 2), trial(5, 2, 25, 2)];
        let here = trials.map(|trial| ("a", trial));
        // From the first one's beginning to the last one's end, but for a second between the rounds: within them no pause was longer than one.
        assert_eq!(seconds(&here, None), 27 - 1);
        let mut turned = here;
        turned.reverse();
        assert_eq!(seconds(&turned, None), 26, "whatever the order in which they are read");
        assert_eq!(seconds(&here, Some(4)), 22 + 4 * 4, "in the model's time");
        assert_eq!(seconds(&[], None), 0);
    }

    #[test]
    fn neither_the_wait_for_a_turn_nor_the_night_between_two_sessions_is_time_of_the_trials() {
        let first = [trial(1, 1, 0, 5), trial(2, 1, 6, 5), trial(3, 2, 3_000, 5), trial(4, 2, 3_007, 5)];
        // The round that was cut short goes on the next day.
        let next = [trial(5, 2, 90_000, 5), trial(6, 3, 90_006, 5), trial(7, 3, 90_013, 5)];
        let all: Vec<_> = first.map(|trial| ("a", trial)).into_iter().chain(next.map(|trial| ("b", trial))).collect();
        assert_eq!(seconds(&all, None), 20 + 1 + 2 + 2 + 15 + 1 + 2);
    }

    #[test]
    fn a_clock_that_is_set_back_leaves_what_the_trials_took() {
        let trials = [trial(1, 1, 0, 5), trial(2, 1, -7_000, 5), trial(3, 1, -6_994, 5)];
        assert_eq!(seconds(&trials.map(|trial| ("a", trial)), None), 15 + 1);
    }
}
