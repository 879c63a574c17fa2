use super::codec::{phase_name, signed, to_json, unsigned};
use super::read::continued_by;
use super::{SqliteJournal, Trouble};
use crate::{
    JournalError, NewExperiment, Orphans, Owner, Prune, PruneOutcome, State, StoredExperiment, TrialId, encode_samples,
    id,
};
use rusqlite::{ErrorCode, OptionalExtension as _, Transaction, TransactionBehavior, params};
use std::path::Path;
use wt_trial::{Sample, Status, TrialOutcome, TrialRecord, TrialSpec};

impl SqliteJournal {
    /// Runs `work` as a whole or not at all.
    pub(super) fn transact<T>(
        &mut self,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, Trouble>,
    ) -> Result<T, JournalError> {
        let path: &Path = &self.path;
        let whole = (|| {
            // Immediate: a transaction that reads first and then finds another writer can't be retried.
            let transaction = self.connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
            let done = work(&transaction)?;
            transaction.commit()?;
            Ok(done)
        })();
        whole.map_err(|trouble: Trouble| trouble.into_error(path))
    }

    pub(super) fn write_experiment(&mut self, new: &NewExperiment) -> Result<(), JournalError> {
        let bad = |why| JournalError::BadId { id: new.id.clone(), why };
        if let Some(why) = id::fault(&new.id) {
            return Err(bad(why));
        }
        let stored = new.begun();
        let head = Head::of(&stored)?;
        self.transact(|t| {
            must_be_the_first_to_go_on(t, new)?;
            insert_experiment(t, &head, State::Running, bad).map(drop)
        })
    }

    pub(super) fn write_trial(&mut self, spec: &TrialSpec, started_unix_us: i64) -> Result<TrialId, JournalError> {
        let asked = to_json("the settings", &spec.settings)?;
        let workload = to_json("the workload", &spec.workload)?;
        let deadline = i64::try_from(spec.deadline.as_micros()).unwrap_or(i64::MAX);
        self.transact(|t| {
            let key = running_key(t, &spec.experiment)?;
            t.prepare_cached(
                "INSERT INTO trials (experiment, phase, round, ord, arm, status, started_us, elapsed_us, bytes) \
                 VALUES (?, ?, ?, ?, ?, 'running', ?, 0, 0)",
            )?
            .execute(params![
                key,
                phase_name(spec.phase),
                spec.round,
                spec.order,
                signed(spec.arm as u64),
                started_unix_us
            ])?;
            let trial = t.last_insert_rowid();
            t.prepare_cached(
                "INSERT INTO details (trial, asked, workload, deadline_us, seed, granted, scopes, observed, busy_us, \
                 rwnd_limited_us, sndbuf_limited_us, notes) VALUES (?, ?, ?, ?, ?, '{}', '{}', '{}', 0, 0, 0, '[]')",
            )?
            .execute(params![trial, asked, workload, deadline, spec.seed as i64])?;
            Ok(trial)
        })
    }

    /// Writes a whole experiment as another journal had it.
    pub(super) fn write_import(
        &mut self,
        stored: &StoredExperiment,
        trials: &[TrialRecord],
    ) -> Result<(), JournalError> {
        let bad = |why| JournalError::BadId { id: stored.id.clone(), why };
        if let Some(why) = id::fault(&stored.id) {
            return Err(bad(why));
        }
        let head = Head::of(stored)?;
        let verdict = stored.verdict.as_ref().map(|verdict| to_json("the verdict", verdict)).transpose()?;
        let details: Result<Vec<_>, _> = trials.iter().map(Detail::of).collect();
        let details = details?;
        // What was under way when it was written never ended.
        let state = if stored.state == State::Running { State::Aborted } else { stored.state };
        self.transact(|t| {
            let key = insert_experiment(t, &head, state, bad)?;
            t.execute(
                "UPDATE experiments SET ended_us = ?, verdict = ? WHERE key = ?",
                params![stored.ended_unix_us, verdict, key],
            )?;
            for (trial, detail) in trials.iter().zip(&details) {
                insert_trial(t, key, trial, detail)?;
            }
            Ok(())
        })
    }

    pub(super) fn write_outcome(&mut self, trial: TrialId, outcome: &TrialOutcome) -> Result<(), JournalError> {
        if outcome.status == Status::Running {
            let why = "a trial that is finished can't be running".to_owned();
            return Err(JournalError::Unwritable { what: "the outcome", why });
        }
        let granted = to_json("the granted settings", &outcome.granted)?;
        let scopes = to_json("the scopes", &outcome.scopes)?;
        let observed = to_json("what was observed", &outcome.observed)?;
        let notes = to_json("the notes", &outcome.notes)?;
        let measures = measures_of(outcome)?;
        self.transact(|t| {
            let changed = t
                .prepare_cached(
                    "UPDATE trials SET status = ?, elapsed_us = ?, bytes = ? WHERE id = ? AND status = 'running'",
                )?
                .execute(params![outcome.status.name(), signed(outcome.elapsed_us), signed(outcome.bytes), trial])?;
            if changed == 0 {
                return Err(JournalError::TrialNotRunning { id: trial }.into());
            }
            let limits = &outcome.limits;
            t.prepare_cached(
                "UPDATE details SET granted = ?, scopes = ?, observed = ?, busy_us = ?, rwnd_limited_us = ?, \
                 sndbuf_limited_us = ?, notes = ? WHERE trial = ?",
            )?
            .execute(params![
                granted,
                scopes,
                observed,
                signed(limits.busy_us),
                signed(limits.rwnd_limited_us),
                signed(limits.sndbuf_limited_us),
                notes,
                trial
            ])?;
            if let Some(measures) = &measures {
                write_measures(t, trial, outcome.measures.score, measures)?;
            }
            write_samples(t, trial, "sender", &outcome.sender)?;
            write_samples(t, trial, "receiver", &outcome.receiver)
        })
    }

    pub(super) fn write_end(
        &mut self,
        id: &str,
        state: State,
        ended_unix_us: i64,
        verdict: Option<&serde_json::Value>,
    ) -> Result<(), JournalError> {
        if state == State::Running {
            let why = "an experiment that has ended can't be running".to_owned();
            return Err(JournalError::Unwritable { what: "the end", why });
        }
        let verdict = verdict.map(|v| to_json("the verdict", v)).transpose()?;
        self.transact(|t| {
            let key = running_key(t, id)?;
            t.execute(
                "UPDATE experiments SET state = ?, ended_us = ?, verdict = ? WHERE key = ?",
                params![state.name(), ended_unix_us, verdict, key],
            )?;
            abort_trials(t, key, "the experiment ended while this trial was under way")?;
            Ok(())
        })
    }

    pub(super) fn write_orphans(&mut self, is_alive: &dyn Fn(&str, &Owner) -> bool) -> Result<Orphans, JournalError> {
        self.transact(|t| {
            let mut query = t.prepare(
                "SELECT key, id, owner_pid, owner_start, owner_boot FROM experiments WHERE state = 'running' ORDER BY key",
            )?;
            let running = query.query_map([], |row| {
                let owner = Owner {
                    pid: row.get(2)?,
                    start_ticks: unsigned(row.get(3)?),
                    boot_id: row.get(4)?,
                };
                Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?, owner))
            })?;
            let mut found = Orphans::default();
            for row in running.collect::<Result<Vec<_>, _>>()? {
                let (key, id, owner) = row;
                if is_alive(&id, &owner) {
                    continue;
                }
                found.trials += abort_trials(t, key, "the program died while this trial was under way")?;
                t.execute(
                    "UPDATE experiments SET state = 'aborted', ended_us = coalesce( \
                     (SELECT max(started_us + elapsed_us) FROM trials WHERE experiment = key), started_us) WHERE key = ?",
                    [key],
                )?;
                found.experiments.push(id);
            }
            // What an experiment on connections noted last is what it has found, and goes wherever it goes.
            t.execute(
                "UPDATE experiments SET verdict = (SELECT found FROM sightings WHERE kind = 'traffic' AND host = lower(experiments.id) \
                 ORDER BY at_us DESC, id DESC LIMIT 1) WHERE state = 'aborted' AND verdict IS NULL AND tunnel = 'traffic' \
                 AND EXISTS (SELECT 1 FROM sightings WHERE kind = 'traffic' AND host = lower(experiments.id))",
                [],
            )?;
            Ok(found)
        })
    }

    pub(super) fn delete(&mut self, what: &Prune) -> Result<PruneOutcome, JournalError> {
        if what.before_unix_us.is_none() && what.keep_newest.is_none() && what.ids.is_none() {
            return Ok(PruneOutcome::default());
        }
        let pruned = self.transact(|t| {
            let kept = choose(t, what)?;
            let (touched, losers) = if what.samples_only {
                (
                    "SELECT count(DISTINCT t.id) FROM trials t JOIN temp.pruned p ON p.key = t.experiment JOIN samples s ON s.trial = t.id",
                    "SELECT e.id FROM experiments e JOIN temp.pruned p ON p.key = e.key WHERE EXISTS (SELECT 1 FROM trials t \
                     JOIN samples s ON s.trial = t.id WHERE t.experiment = e.key) ORDER BY e.started_us, e.key",
                )
            } else {
                (
                    "SELECT count(*) FROM trials t JOIN temp.pruned p ON p.key = t.experiment",
                    "SELECT e.id FROM experiments e JOIN temp.pruned p ON p.key = e.key ORDER BY e.started_us, e.key",
                )
            };
            let trials: i64 = t.query_row(touched, [], |row| row.get(0))?;
            let ids = names(t, losers)?;
            if !what.dry_run {
                t.execute_batch(if what.samples_only {
                    "DELETE FROM samples WHERE trial IN (SELECT t.id FROM trials t JOIN temp.pruned p ON p.key = t.experiment)"
                } else {
                    "DELETE FROM sightings WHERE kind = 'traffic' AND host IN \
                     (SELECT lower(e.id) FROM experiments e JOIN temp.pruned p ON p.key = e.key); \
                     DELETE FROM experiments WHERE key IN (SELECT key FROM temp.pruned)"
                })?;
            }
            Ok(PruneOutcome { experiments: ids.len() as u64, ids, kept, trials: unsigned(trials) })
        })?;
        if !what.dry_run {
            self.give_space_back()?;
        }
        Ok(pruned)
    }

    /// Cuts free pages off the file. Another program that reads may keep the log from being emptied; it is emptied later.
    pub(super) fn give_space_back(&self) -> Result<(), JournalError> {
        for pragma in ["PRAGMA incremental_vacuum", "PRAGMA wal_checkpoint(TRUNCATE)"] {
            let drained = self.connection.prepare(pragma).and_then(|mut statement| {
                let mut rows = statement.query([])?;
                while rows.next()?.is_some() {}
                Ok(())
            });
            drained.map_err(|e| self.error(&e))?;
        }
        Ok(())
    }
}

/// An experiment's columns of JSON.
struct Head<'a> {
    stored: &'a StoredExperiment,
    current: String,
    config: String,
    path: String,
    arms: Vec<String>,
}

impl<'a> Head<'a> {
    fn of(stored: &'a StoredExperiment) -> Result<Self, JournalError> {
        let arms: Result<Vec<_>, _> = stored.arms.iter().map(|arm| to_json("the settings", &arm.settings)).collect();
        Ok(Self {
            stored,
            current: to_json("the current settings", &stored.current)?,
            config: to_json("the configuration", &stored.config)?,
            path: to_json("the path", &stored.path)?,
            arms: arms?,
        })
    }
}

/// Refuses what goes on with an experiment that another one goes on with. Only who writes may ask: whoever asks before finds what was
/// so then.
fn must_be_the_first_to_go_on(t: &Transaction<'_>, new: &NewExperiment) -> Result<(), Trouble> {
    let Some(id) = &new.config.tune().continues else { return Ok(()) };
    match continued_by(t, id)? {
        Some(by) => Err(JournalError::Continued { id: id.clone(), by }.into()),
        None => Ok(()),
    }
}

fn insert_experiment(
    t: &Transaction<'_>,
    head: &Head<'_>,
    state: State,
    bad: impl Fn(&'static str) -> JournalError,
) -> Result<i64, Trouble> {
    let stored = head.stored;
    let inserted = t.execute(
        "INSERT INTO experiments (id, target, tunnel, state, started_us, comment, version, current, config, seed, \
         path, owner_pid, owner_start, owner_boot) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            stored.id,
            stored.target,
            stored.tunnel,
            state.name(),
            stored.started_unix_us,
            stored.comment,
            stored.version,
            head.current,
            head.config,
            stored.seed as i64,
            head.path,
            stored.owner.pid,
            signed(stored.owner.start_ticks),
            stored.owner.boot_id
        ],
    );
    match inserted {
        Err(e) if e.sqlite_error_code() == Some(ErrorCode::ConstraintViolation) => {
            return Err(bad("there is one of that name").into());
        }
        other => other?,
    };
    let key = t.last_insert_rowid();
    let mut insert = t.prepare("INSERT INTO arms (experiment, arm, label, settings) VALUES (?, ?, ?, ?)")?;
    for (number, (arm, settings)) in stored.arms.iter().zip(&head.arms).enumerate() {
        insert.execute(params![key, number as i64, arm.label, settings])?;
    }
    Ok(key)
}

/// A trial's columns of JSON.
struct Detail {
    asked: String,
    workload: String,
    granted: String,
    scopes: String,
    observed: String,
    notes: String,
    measures: Option<String>,
}

impl Detail {
    fn of(trial: &TrialRecord) -> Result<Self, JournalError> {
        let TrialRecord { spec, outcome, .. } = trial;
        Ok(Self {
            asked: to_json("the settings", &spec.settings)?,
            workload: to_json("the workload", &spec.workload)?,
            granted: to_json("the granted settings", &outcome.granted)?,
            scopes: to_json("the scopes", &outcome.scopes)?,
            observed: to_json("what was observed", &outcome.observed)?,
            notes: to_json("the notes", &outcome.notes)?,
            measures: measures_of(outcome)?,
        })
    }
}

fn insert_trial(t: &Transaction<'_>, key: i64, trial: &TrialRecord, detail: &Detail) -> Result<(), Trouble> {
    let TrialRecord { spec, outcome, started_unix_us, .. } = trial;
    let status = if outcome.status == Status::Running { Status::Aborted } else { outcome.status };
    t.prepare_cached(
        "INSERT INTO trials (experiment, phase, round, ord, arm, status, started_us, elapsed_us, bytes) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        key,
        phase_name(spec.phase),
        spec.round,
        spec.order,
        signed(spec.arm as u64),
        status.name(),
        started_unix_us,
        signed(outcome.elapsed_us),
        signed(outcome.bytes)
    ])?;
    let number = t.last_insert_rowid();
    let deadline = i64::try_from(spec.deadline.as_micros()).unwrap_or(i64::MAX);
    t.prepare_cached(
        "INSERT INTO details (trial, asked, workload, deadline_us, seed, granted, scopes, observed, busy_us, \
         rwnd_limited_us, sndbuf_limited_us, notes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        number,
        detail.asked,
        detail.workload,
        deadline,
        spec.seed as i64,
        detail.granted,
        detail.scopes,
        detail.observed,
        signed(outcome.limits.busy_us),
        signed(outcome.limits.rwnd_limited_us),
        signed(outcome.limits.sndbuf_limited_us),
        detail.notes
    ])?;
    if let Some(measures) = &detail.measures {
        write_measures(t, number, outcome.measures.score, measures)?;
    }
    write_samples(t, number, "sender", &outcome.sender)?;
    write_samples(t, number, "receiver", &outcome.receiver)
}

/// What was measured beyond payload and time as JSON, if there is something.
fn measures_of(outcome: &TrialOutcome) -> Result<Option<String>, JournalError> {
    let measures = (!outcome.measures.is_empty()).then_some(&outcome.measures);
    measures.map(|measures| to_json("what was measured", measures)).transpose()
}

/// Writes that down.
fn write_measures(t: &Transaction<'_>, trial: TrialId, score: Option<f64>, measures: &str) -> Result<(), Trouble> {
    let mut insert = t.prepare_cached("INSERT INTO measures (trial, score, data) VALUES (?, ?, ?)")?;
    insert.execute(params![trial, score, measures])?;
    Ok(())
}

/// Puts the keys of what is to go into `temp.pruned`; the names of those that were meant too and stay.
fn choose(t: &Transaction<'_>, what: &Prune) -> Result<Vec<String>, Trouble> {
    t.execute_batch(
        "CREATE TEMP TABLE IF NOT EXISTS pruned (key INTEGER PRIMARY KEY); DELETE FROM temp.pruned; \
         CREATE TEMP TABLE IF NOT EXISTS meant (key INTEGER PRIMARY KEY); DELETE FROM temp.meant;",
    )?;
    let newest = what.keep_newest.map_or(0, |n| i64::try_from(n).unwrap_or(i64::MAX));
    let ids = what.ids.as_ref().map(|ids| to_json("the names", ids)).transpose()?;
    t.execute(
        "INSERT INTO temp.meant SELECT key FROM experiments WHERE started_us < ?1 \
         AND key NOT IN (SELECT key FROM experiments ORDER BY started_us DESC, key DESC LIMIT ?2) \
         AND (?3 IS NULL OR id IN (SELECT value FROM json_each(?3)))",
        params![what.before_unix_us.unwrap_or(i64::MAX), newest, ids],
    )?;
    t.execute(
        "INSERT INTO temp.pruned SELECT key FROM experiments WHERE key IN (SELECT key FROM temp.meant) AND state <> 'running'",
        [],
    )?;
    // What is continued by one that stays is needed for its report; of a chain one more link at a time.
    let continued = "DELETE FROM temp.pruned WHERE key IN (SELECT e.key FROM experiments e JOIN experiments later \
                     ON CASE WHEN json_valid(later.config) THEN json_extract(later.config, '$.continues') END = e.id WHERE later.key NOT IN (SELECT key FROM temp.pruned))";
    while !what.samples_only && t.execute(continued, [])? > 0 {}
    names(
        t,
        "SELECT e.id FROM experiments e JOIN temp.meant m ON m.key = e.key \
         WHERE e.key NOT IN (SELECT key FROM temp.pruned) ORDER BY e.started_us, e.key",
    )
}

fn names(t: &Transaction<'_>, sql: &str) -> Result<Vec<String>, Trouble> {
    let mut query = t.prepare(sql)?;
    let found = query.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    Ok(found)
}

/// The key of an experiment under way.
fn running_key(t: &Transaction<'_>, id: &str) -> Result<i64, Trouble> {
    let found = t
        .prepare_cached("SELECT key, state FROM experiments WHERE id = ?")?
        .query_row([id], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?)))
        .optional()?;
    match found {
        Some((key, word)) if word == State::Running.name() => Ok(key),
        Some(_) => Err(JournalError::ExperimentNotRunning { id: id.to_owned() }.into()),
        None => Err(JournalError::NoSuchExperiment { key: id.to_owned(), nearest: Vec::new() }.into()),
    }
}

/// Says of an experiment's trials under way that they were aborted.
fn abort_trials(t: &Transaction<'_>, key: i64, note: &'static str) -> Result<u64, Trouble> {
    let running = "SELECT id FROM trials WHERE experiment = ?1 AND status = 'running'";
    t.execute(
        &format!("UPDATE details SET notes = json_insert(notes, '$[#]', ?2) WHERE trial IN ({running})"),
        params![key, note],
    )?;
    let aborted =
        t.execute("UPDATE trials SET status = 'aborted' WHERE experiment = ?1 AND status = 'running'", [key])?;
    Ok(aborted as u64)
}

fn write_samples(t: &Transaction<'_>, trial: TrialId, side: &str, samples: &[Sample]) -> Result<(), Trouble> {
    if !samples.is_empty() {
        t.prepare_cached("INSERT INTO samples (trial, side, data) VALUES (?, ?, ?)")?.execute(params![
            trial,
            side,
            encode_samples(samples)
        ])?;
    }
    Ok(())
}
