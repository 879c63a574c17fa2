use crate::store::{ANOTHER, Mark, PushStore, head_of};
use crate::{AgentStore, PgJournal};
use std::collections::{HashMap, HashSet};
use wt_journal::{Filter, Journal, JournalError, State, StoredExperiment, TrialId, TrialRow, WithSamples};
use wt_trial::{Status, TrialRecord};

/// So many trials go at once at most.
const MOST_TRIALS: usize = 200;
/// So many samples go at once, or those of one trial; about 20 bytes each.
const MOST_SAMPLES: usize = 200_000;

/// How an experiment stands in the common journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushState {
    /// Something of it was written, or isn't there yet.
    Pushed,
    /// All was there already.
    Known,
    /// It can't go there, and why.
    Refused(String),
}

/// What came of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PushLine {
    /// Its name.
    pub id: String,
    /// Its trials here that have ended.
    pub trials: u64,
    /// Of those, the ones that were written; where it is only asked, those that aren't there.
    pub new: u64,
    /// How it stands.
    pub state: PushState,
}

/// What came of each experiment, the oldest first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PushReport {
    /// One after the other.
    pub experiments: Vec<PushLine>,
}

/// Which of the two journals failed.
#[derive(Debug, thiserror::Error)]
pub enum PushError {
    /// The one that is read.
    #[error(transparent)]
    Local(JournalError),
    /// The one that is written.
    #[error(transparent)]
    Common(JournalError),
}

impl From<PushError> for JournalError {
    fn from(error: PushError) -> Self {
        match error {
            PushError::Local(error) | PushError::Common(error) => error,
        }
    }
}

impl PushStore for PgJournal {
    fn begin(&mut self, stored: &StoredExperiment, site: &str) -> Result<Vec<Mark>, JournalError> {
        self.begin_push(stored, site)
    }

    fn write(&mut self, id: &str, trials: &[TrialRecord]) -> Result<u64, JournalError> {
        self.push_trials(id, trials).map(|pushed| pushed.new)
    }

    fn end(&mut self, stored: &StoredExperiment) -> Result<bool, JournalError> {
        self.end_push(stored)
    }
}

/// As [`push`], with the rights of an agent: the site is the agent itself.
///
/// # Errors
/// [`PushError`]; what was written before is there.
pub fn push_as_agent(
    local: &dyn Journal,
    common: &mut AgentStore,
    ids: Option<&[String]>,
) -> Result<PushReport, PushError> {
    push_all(local, common, ids, &|_| String::new())
}

/// Writes what isn't there yet of these experiments of a local journal, or of all.
///
/// Trials go as wholes, in batches that are each there or not: whatever ends it, pushing again goes on. One that is
/// under way is pushed as far as it has come. Nothing comes twice: a trial is known by its experiment and its number here. An
/// experiment of the same name that began at another time, on another target, with another seed or with other trials is refused, and so
/// is one that is damaged here. `site_of` says which host measured.
///
/// # Errors
/// Those of reading the one journal and of writing the other; what was written before is there.
pub fn push(
    local: &dyn Journal,
    common: &mut PgJournal,
    ids: Option<&[String]>,
    site_of: &dyn Fn(&StoredExperiment) -> String,
) -> Result<PushReport, JournalError> {
    Ok(push_all(local, common, ids, site_of)?)
}

fn push_all(
    local: &dyn Journal,
    common: &mut dyn PushStore,
    ids: Option<&[String]>,
    site_of: &dyn Fn(&StoredExperiment) -> String,
) -> Result<PushReport, PushError> {
    let mut report = PushReport::default();
    for id in chosen(local, ids).map_err(PushError::Local)? {
        let mut line = PushLine { id, trials: 0, new: 0, state: PushState::Known };
        line.state = match push_one(local, common, &mut line, site_of) {
            // The others are pushed all the same.
            Err(PushError::Local(error @ JournalError::Damaged { .. })) => PushState::Refused(error.to_string()),
            state => state?,
        };
        report.experiments.push(line);
    }
    Ok(report)
}

/// The names of these experiments, or of all, the oldest first: what continues another one comes after it.
fn chosen(local: &dyn Journal, ids: Option<&[String]>) -> Result<Vec<String>, JournalError> {
    let wanted: Option<HashSet<&String>> = ids.map(|ids| ids.iter().collect());
    let mut all: Vec<String> = local.list(&Filter::default())?.into_iter().map(|one| one.id).collect();
    all.reverse();
    all.retain(|id| wanted.as_ref().is_none_or(|wanted| wanted.contains(id)));
    Ok(all)
}

fn push_one(
    local: &dyn Journal,
    common: &mut dyn PushStore,
    line: &mut PushLine,
    site_of: &dyn Fn(&StoredExperiment) -> String,
) -> Result<PushState, PushError> {
    // Its state is read first: a trial that ends meanwhile is there before the experiment has ended.
    let stored = local.load(&line.id).map_err(PushError::Local)?;
    let rows = local.rows(&line.id).map_err(PushError::Local)?;
    let rows: Vec<TrialRow> = rows.into_iter().filter(|row| row.status != Status::Running).collect();
    line.trials = rows.len() as u64;
    let there = match common.begin(&stored, &site_of(&stored)) {
        Ok(there) => there,
        Err(JournalError::BadId { why, .. }) => return Ok(PushState::Refused(why.to_owned())),
        Err(error @ JournalError::Unwritable { .. }) => return Ok(PushState::Refused(error.to_string())),
        Err(error) => return Err(PushError::Common(error)),
    };
    let known: HashMap<TrialId, (i64, u64)> = there.iter().map(|(id, at, bytes)| (*id, (*at, *bytes))).collect();
    let mark = |row: &TrialRow| (row.started_unix_us, row.bytes);
    let differs = rows.iter().any(|row| known.get(&row.id).is_some_and(|other| *other != mark(row)));
    let shared = rows.iter().any(|row| known.contains_key(&row.id));
    if differs || (!shared && !there.is_empty()) {
        // The same trials under other numbers: one of the two journals has them from the other.
        let same =
            rows.len() <= there.len() && rows.iter().zip(&there).all(|(row, other)| mark(row) == (other.1, other.2));
        let why = "there are other trials under that name there";
        return Ok(if same { PushState::Known } else { PushState::Refused(why.to_owned()) });
    }
    let missing: HashSet<TrialId> = rows.iter().map(|row| row.id).filter(|id| !known.contains_key(id)).collect();
    push_missing(local, common, line, &missing)?;
    let ended = common.end(&stored).map_err(PushError::Common)?;
    let is_new = line.new > 0 || ended || (there.is_empty() && rows.is_empty() && stored.state == State::Running);
    Ok(if is_new { PushState::Pushed } else { PushState::Known })
}

/// Writes these trials of an experiment, and counts those that weren't there.
fn push_missing(
    local: &dyn Journal,
    common: &mut dyn PushStore,
    line: &mut PushLine,
    missing: &HashSet<TrialId>,
) -> Result<(), PushError> {
    let Some(first) = missing.iter().min() else { return Ok(()) };
    let (mut waiting, mut samples, mut is_theirs): (Vec<TrialRecord>, usize, bool) = (Vec::new(), 0, false);
    let PushLine { id, new, .. } = line;
    let read = local.for_each_trial_from(id, *first, WithSamples::Yes, &mut |trial| {
        if !missing.contains(&trial.id) {
            return Ok(());
        }
        samples += trial.outcome.sender.len() + trial.outcome.receiver.len();
        waiting.push(trial);
        if waiting.len() >= MOST_TRIALS || samples >= MOST_SAMPLES {
            *new += common.write(id, &waiting).inspect_err(|_| is_theirs = true)?;
            waiting.clear();
            samples = 0;
        }
        Ok(())
    });
    read.map_err(|error| if is_theirs { PushError::Common(error) } else { PushError::Local(error) })?;
    if !waiting.is_empty() {
        *new += common.write(id, &waiting).map_err(PushError::Common)?;
    }
    Ok(())
}

/// What isn't there yet of a local journal's experiments; nothing is written.
///
/// # Errors
/// Those of reading.
pub fn status(local: &dyn Journal, common: &PgJournal) -> Result<PushReport, JournalError> {
    let mut list = local.list(&Filter::default())?;
    list.reverse();
    let ids: Vec<String> = list.iter().map(|one| one.id.clone()).collect();
    let there = common.known(&ids)?;
    let mut report = PushReport::default();
    for one in list {
        let trials = if one.state == State::Running {
            local.rows(&one.id)?.iter().filter(|row| row.status != Status::Running).count() as u64
        } else {
            one.trials
        };
        let there = there.get(&one.id);
        let new = trials.saturating_sub(there.map_or(0, |known| known.trials));
        let is_known = there.is_some_and(|known| known.state != State::Running || one.state == State::Running);
        let state = match there.map(|known| local.load(&one.id).map(|stored| known.head == head_of(&stored))) {
            Some(Ok(false)) => PushState::Refused(ANOTHER.to_owned()),
            Some(Err(error @ JournalError::Damaged { .. })) => PushState::Refused(error.to_string()),
            Some(Err(error)) => return Err(error),
            _ if new == 0 && is_known => PushState::Known,
            _ => PushState::Pushed,
        };
        report.experiments.push(PushLine { id: one.id, trials, new, state });
    }
    Ok(report)
}
