use super::summary::{OfVerdict, Summary};
use super::trials::{Batch, PushedTrials, measures_of};
use super::{PgJournal, Trouble};
use crate::client::Transaction;
use postgres::types::Type;
use serde_json::Value;
use std::collections::HashMap;
use wt_journal::columns::{name_fault, phase_name, signed, to_json, unsigned};
use wt_journal::{
    ExperimentConfig, JournalError, NewExperiment, Orphans, Owner, Prune, PruneOutcome, State, StoredExperiment,
    TrialId, encode_samples,
};
use wt_trial::{Sample, Status, TrialOutcome, TrialRecord, TrialSpec};

/// A trial as the rules on what is the same see it: its number, when it began, what arrived.
pub(crate) type Mark = (TrialId, i64, u64);
/// An experiment as they see it: when it began, on what, its seed.
pub(crate) type HeadMark = (i64, String, u64);

/// Why one isn't the other.
pub(crate) const ANOTHER: &str = "there is another one of that name there";

pub(crate) fn head_of(stored: &StoredExperiment) -> HeadMark {
    (stored.started_unix_us, stored.target.clone(), stored.seed)
}

/// An experiment that is there.
pub(crate) struct KnownExperiment {
    pub(crate) state: State,
    pub(crate) trials: u64,
    pub(crate) head: HeadMark,
}

impl PgJournal {
    pub(super) fn write_experiment(&mut self, new: &NewExperiment) -> Result<(), JournalError> {
        let stored = new.begun();
        let head = Head::of(&stored)?;
        let site = self.site.clone();
        self.transact(|t| {
            if let Some(before) = &stored.config.tune().continues {
                must_be_the_first_to_go_on(t, before)?;
            }
            head.insert(t, &site)?.map(drop).ok_or_else(|| taken(&stored.id))
        })
    }

    pub(super) fn write_trial(&mut self, spec: &TrialSpec, started_unix_us: i64) -> Result<TrialId, JournalError> {
        let asked = to_json("the settings", &spec.settings)?;
        let workload = to_json("the workload", &spec.workload)?;
        let deadline = i64::try_from(spec.deadline.as_micros()).unwrap_or(i64::MAX);
        self.transact(|t| {
            let key = running_key(t, &spec.experiment)?;
            let row = t.query_typed_one(
                "INSERT INTO trials (id, local_id, experiment, phase, round, ord, arm, status, started_us, elapsed_us, \
                 bytes) SELECT number, number, $1, $2, $3, $4, $5, 'running', $6, 0, 0 FROM nextval('trial_ids') number \
                 RETURNING id",
                &[
                    (&key, Type::INT8),
                    (&phase_name(spec.phase), Type::TEXT),
                    (&i64::from(spec.round), Type::INT8),
                    (&i64::from(spec.order), Type::INT8),
                    (&signed(spec.arm as u64), Type::INT8),
                    (&started_unix_us, Type::INT8),
                ],
            )?;
            let trial: TrialId = row.try_get(0)?;
            t.execute_typed(
                "INSERT INTO details (trial, asked, workload, deadline_us, seed, granted, scopes, observed, busy_us, \
                 rwnd_limited_us, sndbuf_limited_us, notes) \
                 VALUES ($1, $2::text::json, $3::text::json, $4, $5, '{}', '{}', '{}', 0, 0, 0, '[]')",
                &[
                    (&trial, Type::INT8),
                    (&asked, Type::TEXT),
                    (&workload, Type::TEXT),
                    (&deadline, Type::INT8),
                    (&(spec.seed as i64), Type::INT8),
                ],
            )?;
            Ok(trial)
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
            // Only what was begun here has one number for both; what was pushed has ended.
            let changed = t.execute_typed(
                "UPDATE trials SET status = $1, elapsed_us = $2, bytes = $3 \
                 WHERE id = $4 AND local_id = id AND status = 'running'",
                &[
                    (&outcome.status.name(), Type::TEXT),
                    (&signed(outcome.elapsed_us), Type::INT8),
                    (&signed(outcome.bytes), Type::INT8),
                    (&trial, Type::INT8),
                ],
            )?;
            if changed == 0 {
                return Err(JournalError::TrialNotRunning { id: trial }.into());
            }
            let limits = &outcome.limits;
            t.execute_typed(
                "UPDATE details SET granted = $1::text::json, scopes = $2::text::json, observed = $3::text::json, \
                 busy_us = $4, rwnd_limited_us = $5, sndbuf_limited_us = $6, notes = $7::text::json WHERE trial = $8",
                &[
                    (&granted, Type::TEXT),
                    (&scopes, Type::TEXT),
                    (&observed, Type::TEXT),
                    (&signed(limits.busy_us), Type::INT8),
                    (&signed(limits.rwnd_limited_us), Type::INT8),
                    (&signed(limits.sndbuf_limited_us), Type::INT8),
                    (&notes, Type::TEXT),
                    (&trial, Type::INT8),
                ],
            )?;
            if let Some(measures) = &measures {
                t.execute_typed(
                    "INSERT INTO measures (trial, score, data) VALUES ($1, $2, $3::text::json)",
                    &[(&trial, Type::INT8), (&outcome.measures.score, Type::FLOAT8), (measures, Type::TEXT)],
                )?;
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
        verdict: Option<&Value>,
    ) -> Result<(), JournalError> {
        if state == State::Running {
            let why = "an experiment that has ended can't be running".to_owned();
            return Err(JournalError::Unwritable { what: "the end", why });
        }
        let end = End::of(state, Some(ended_unix_us), verdict)?;
        self.transact(|t| {
            let key = running_key(t, id)?;
            end.write(t, key)?;
            abort_trials(t, key, "the experiment ended while this trial was under way").map(drop)
        })
    }

    pub(super) fn write_orphans(&mut self, is_alive: &dyn Fn(&str, &Owner) -> bool) -> Result<Orphans, JournalError> {
        let site = self.site.clone();
        self.transact(|t| {
            // Of other sites nobody here knows who is alive.
            let running = t.query_typed(
                "SELECT key, id, owner_pid, owner_start, owner_boot FROM experiments \
                 WHERE state = 'running' AND site = $1 ORDER BY key FOR UPDATE",
                &[(&site, Type::TEXT)],
            )?;
            let mut found = Orphans::default();
            for row in &running {
                let (key, id): (i64, String) = (row.try_get(0)?, row.try_get(1)?);
                let pid = u32::try_from(row.try_get::<_, i64>(2)?).unwrap_or(0);
                let owner = Owner { pid, start_ticks: unsigned(row.try_get(3)?), boot_id: row.try_get(4)? };
                if is_alive(&id, &owner) {
                    continue;
                }
                found.trials += abort_trials(t, key, "the program died while this trial was under way")?;
                t.execute_typed(
                    "UPDATE experiments SET state = 'aborted', pushed = now(), ended_us = coalesce( \
                     (SELECT max(started_us + elapsed_us) FROM trials WHERE experiment = $1), started_us) WHERE key = $1",
                    &[(&key, Type::INT8)],
                )?;
                found.experiments.push(id);
            }
            Ok(found)
        })
    }

    /// Writes a whole experiment as another journal had it.
    pub(super) fn write_import(
        &mut self,
        stored: &StoredExperiment,
        trials: &[TrialRecord],
    ) -> Result<(), JournalError> {
        // What was under way when it was written never ended.
        let state = if stored.state == State::Running { State::Aborted } else { stored.state };
        let stored = StoredExperiment { state, ..stored.clone() };
        let (head, batch) = (Head::of(&stored)?, Batch::of(trials)?);
        let end = End::of(state, stored.ended_unix_us, stored.verdict.as_ref())?;
        // Where it says on which host it ran, that is its site.
        let host = stored.config.host().and_then(|host| host.name.as_deref()).unwrap_or(&self.site);
        let site = host.replace('\0', "");
        self.transact(|t| {
            let key = head.insert(t, &site)?.ok_or_else(|| taken(&stored.id))?;
            end.write(t, key)?;
            let count = trials.len() as i64;
            let fresh = "SELECT nextval('trial_ids') FROM generate_series(1, $1)";
            let rows = t.query_typed(fresh, &[(&count, Type::INT8)])?;
            let numbers: Vec<TrialId> = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?;
            batch.insert(t, key, &numbers).map(drop)
        })
    }

    /// Writes down an experiment of this site or finds it, and gives its trials that are there already.
    ///
    /// # Errors
    /// [`JournalError::BadId`] if the name is that of another experiment, or can't be one.
    pub(crate) fn begin_push(&mut self, stored: &StoredExperiment, site: &str) -> Result<Vec<Mark>, JournalError> {
        let head = Head::of(stored)?;
        self.transact(|t| {
            if head.insert(t, site)?.is_some() {
                return Ok(Vec::new());
            }
            let found = t.query_typed_one(
                "SELECT key, started_us, target, seed FROM experiments WHERE id = $1 FOR UPDATE",
                &[(&stored.id, Type::TEXT)],
            )?;
            let there = (found.try_get(1)?, found.try_get(2)?, found.try_get::<_, i64>(3)? as u64);
            if there != head_of(stored) {
                return Err(JournalError::BadId { id: stored.id.clone(), why: ANOTHER }.into());
            }
            let key: i64 = found.try_get(0)?;
            let rows = t.query_typed(
                "SELECT local_id, started_us, bytes FROM trials WHERE experiment = $1 ORDER BY local_id",
                &[(&key, Type::INT8)],
            )?;
            let mark = |row: &postgres::Row| Ok((row.try_get(0)?, row.try_get(1)?, unsigned(row.try_get(2)?)));
            rows.iter().map(mark).collect()
        })
    }

    /// Writes those of an experiment's trials that aren't there yet.
    ///
    /// # Errors
    /// [`JournalError::NoSuchExperiment`] if nobody began it, and those of writing.
    pub(crate) fn push_trials(&mut self, id: &str, trials: &[TrialRecord]) -> Result<PushedTrials, JournalError> {
        let batch = Batch::of(trials)?;
        let numbers: Vec<TrialId> = trials.iter().map(|trial| trial.id).collect();
        self.transact(|t| {
            // Two that push one experiment go one after the other.
            let key = t.query_typed("SELECT key FROM experiments WHERE id = $1 FOR UPDATE", &[(&id, Type::TEXT)])?;
            let key: i64 = key.first().ok_or_else(|| super::missing(id))?.try_get(0)?;
            batch.insert(t, key, &numbers)
        })
    }

    /// Writes down how an experiment ended, where that isn't known yet; whether it wasn't.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn end_push(&mut self, stored: &StoredExperiment) -> Result<bool, JournalError> {
        if stored.state == State::Running {
            return Ok(false);
        }
        let end = End::of(stored.state, stored.ended_unix_us, stored.verdict.as_ref())?;
        self.transact(|t| {
            let sql = "SELECT key FROM experiments WHERE id = $1 AND state = 'running' FOR UPDATE";
            let found = t.query_typed(sql, &[(&stored.id, Type::TEXT)])?;
            let Some(row) = found.first() else { return Ok(false) };
            end.write(t, row.try_get(0)?)?;
            Ok(true)
        })
    }

    /// Of these experiments those that are there, by name.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn known(&self, ids: &[String]) -> Result<HashMap<String, KnownExperiment>, JournalError> {
        self.read(|| {
            let rows = self.rows_of(
                "SELECT id, state, (SELECT count(*) FROM trials WHERE experiment = e.key), started_us, target, seed \
                 FROM experiments e WHERE id = ANY($1)",
                &[(&ids, Type::TEXT_ARRAY)],
            )?;
            let of = |row: &postgres::Row| {
                let known = KnownExperiment {
                    state: wt_journal::columns::state(row.try_get(1)?)?,
                    trials: unsigned(row.try_get(2)?),
                    head: (row.try_get(3)?, row.try_get(4)?, row.try_get::<_, i64>(5)? as u64),
                };
                Ok((row.try_get(0)?, known))
            };
            rows.iter().map(of).collect()
        })
    }

    pub(super) fn delete(&mut self, what: &Prune) -> Result<PruneOutcome, JournalError> {
        if what.before_unix_us.is_none() && what.keep_newest.is_none() && what.ids.is_none() {
            return Ok(PruneOutcome::default());
        }
        self.transact(|t| {
            let (keys, kept) = choose(t, what)?;
            let (touched, losers) = if what.samples_only {
                (
                    "SELECT count(DISTINCT t.id) FROM trials t JOIN samples s ON s.trial = t.id WHERE t.experiment = ANY($1)",
                    "SELECT id FROM experiments e WHERE key = ANY($1) AND EXISTS (SELECT 1 FROM trials t \
                     JOIN samples s ON s.trial = t.id WHERE t.experiment = e.key) ORDER BY started_us, key",
                )
            } else {
                (
                    "SELECT count(*) FROM trials WHERE experiment = ANY($1)",
                    "SELECT id FROM experiments WHERE key = ANY($1) ORDER BY started_us, key",
                )
            };
            let trials = t.query_typed_one(touched, &[(&keys, Type::INT8_ARRAY)])?;
            let ids = t.query_typed(losers, &[(&keys, Type::INT8_ARRAY)])?;
            if !what.dry_run {
                let sql = if what.samples_only {
                    "DELETE FROM samples WHERE trial IN (SELECT id FROM trials WHERE experiment = ANY($1))"
                } else {
                    "DELETE FROM experiments WHERE key = ANY($1)"
                };
                t.execute_typed(sql, &[(&keys, Type::INT8_ARRAY)])?;
            }
            Ok(PruneOutcome {
                ids: ids.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?,
                kept,
                experiments: ids.len() as u64,
                trials: unsigned(trials.try_get(0)?),
            })
        })
    }
}

/// The keys of what is to go, and the names of those that were meant too and stay: under way, or continued by one that stays.
fn choose(t: &mut Transaction<'_>, what: &Prune) -> Result<(Vec<i64>, Vec<String>), Trouble> {
    let newest = what.keep_newest.map_or(0, |n| i64::try_from(n).unwrap_or(i64::MAX));
    let before = what.before_unix_us.unwrap_or(i64::MAX);
    let rows = t.query_typed(
        "SELECT key, id, state, config::text, started_us < $1 AND ($3 IS NULL OR id = ANY($3)) AND key NOT IN \
         (SELECT key FROM experiments ORDER BY started_us DESC, key DESC LIMIT $2) \
         FROM experiments ORDER BY started_us, key FOR UPDATE",
        &[(&before, Type::INT8), (&newest, Type::INT8), (&what.ids, Type::TEXT_ARRAY)],
    )?;
    let mut all: Vec<(i64, String, Option<String>, bool, bool)> = Vec::with_capacity(rows.len());
    for row in &rows {
        let (key, id, meant): (i64, String, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(4)?);
        let config: Value = serde_json::from_str(row.try_get(3)?).unwrap_or_default();
        let continues = config.get("continues").and_then(Value::as_str).map(str::to_owned);
        let goes = meant && row.try_get::<_, &str>(2)? != State::Running.name();
        all.push((key, id, continues, meant, goes));
    }
    // What is continued by one that stays is needed for its report; of a chain one more link at a time.
    let mut changed = !what.samples_only;
    while changed {
        let needed: Vec<String> = all.iter().filter(|one| !one.4).filter_map(|one| one.2.clone()).collect();
        changed = false;
        for one in all.iter_mut().filter(|one| one.4 && needed.contains(&one.1)) {
            (one.4, changed) = (false, true);
        }
    }
    let kept = all.iter().filter(|one| one.3 && !one.4).map(|one| one.1.clone()).collect();
    Ok((all.iter().filter(|one| one.4).map(|one| one.0).collect(), kept))
}

/// An experiment's columns of JSON.
pub(super) struct Head<'a> {
    pub(super) stored: &'a StoredExperiment,
    pub(super) current: String,
    pub(super) config: String,
    pub(super) path: String,
    pub(super) arms: Vec<String>,
    pub(super) summary: Summary,
}

impl<'a> Head<'a> {
    /// # Errors
    /// [`JournalError::BadId`] for a name that can't be one, [`JournalError::Unwritable`] for a text that PostgreSQL doesn't take.
    pub(super) fn of(stored: &'a StoredExperiment) -> Result<Self, JournalError> {
        if let Some(why) = name_fault(&stored.id) {
            return Err(JournalError::BadId { id: stored.id.clone(), why });
        }
        let labels = stored.arms.iter().map(|arm| &arm.label);
        let texts = [&stored.target, &stored.tunnel, &stored.comment, &stored.version, &stored.owner.boot_id];
        if texts.into_iter().chain(labels).any(|text| text.contains('\0')) {
            let why = "PostgreSQL keeps no text with a zero byte".to_owned();
            return Err(JournalError::Unwritable { what: "a text of the experiment", why });
        }
        let arms: Result<Vec<_>, _> = stored.arms.iter().map(|arm| to_json("the settings", &arm.settings)).collect();
        Ok(Self {
            stored,
            current: to_json("the current settings", &stored.current)?,
            config: to_json("the configuration", &stored.config)?,
            path: to_json("the path", &stored.path)?,
            arms: arms?,
            summary: Summary::of(&value_of(&stored.config)),
        })
    }

    /// The key of the new row as one that is under way; `None` if there is one of that name.
    fn insert(&self, t: &mut Transaction<'_>, site: &str) -> Result<Option<i64>, Trouble> {
        let (stored, owner) = (self.stored, &self.stored.owner);
        let inserted = t.query_typed(
            "INSERT INTO experiments (id, site, target, tunnel, state, started_us, comment, version, current, config, \
             seed, path, owner_pid, owner_start, owner_boot, kind, workload) VALUES ($1, $2, $3, $4, 'running', $5, $6, \
             $7, $8::text::json, $9::text::json, $10, $11::text::json, $12, $13, $14, $15, $16) \
             ON CONFLICT (id) DO NOTHING RETURNING key",
            &[
                (&stored.id, Type::TEXT),
                (&site, Type::TEXT),
                (&stored.target, Type::TEXT),
                (&stored.tunnel, Type::TEXT),
                (&stored.started_unix_us, Type::INT8),
                (&stored.comment, Type::TEXT),
                (&stored.version, Type::TEXT),
                (&self.current, Type::TEXT),
                (&self.config, Type::TEXT),
                (&(stored.seed as i64), Type::INT8),
                (&self.path, Type::TEXT),
                (&i64::from(owner.pid), Type::INT8),
                (&signed(owner.start_ticks), Type::INT8),
                (&owner.boot_id, Type::TEXT),
                (&self.summary.kind, Type::TEXT),
                (&self.summary.workload, Type::TEXT),
            ],
        )?;
        let Some(row) = inserted.first() else { return Ok(None) };
        let key: i64 = row.try_get(0)?;
        let numbers: Vec<i64> = (0..).take(stored.arms.len()).collect();
        let labels: Vec<&str> = stored.arms.iter().map(|arm| arm.label.as_str()).collect();
        t.execute_typed(
            "INSERT INTO arms (experiment, arm, label, settings) SELECT $1, arm, label, settings::json \
             FROM unnest($2, $3, $4) AS new (arm, label, settings)",
            &[
                (&key, Type::INT8),
                (&numbers, Type::INT8_ARRAY),
                (&labels, Type::TEXT_ARRAY),
                (&self.arms, Type::TEXT_ARRAY),
            ],
        )?;
        Ok(Some(key))
    }
}

/// How an experiment ended.
pub(super) struct End {
    pub(super) state: State,
    pub(super) ended_unix_us: Option<i64>,
    pub(super) verdict: Option<String>,
    pub(super) summary: OfVerdict,
}

impl End {
    pub(super) fn of(state: State, ended_unix_us: Option<i64>, verdict: Option<&Value>) -> Result<Self, JournalError> {
        let summary = verdict.map(OfVerdict::of).unwrap_or_default();
        let verdict = verdict.map(|v| to_json("the verdict", v)).transpose()?;
        Ok(Self { state, ended_unix_us, verdict, summary })
    }

    fn write(&self, t: &mut Transaction<'_>, key: i64) -> Result<(), Trouble> {
        let summary = &self.summary;
        t.execute_typed(
            "UPDATE experiments SET state = $1, ended_us = $2, verdict = $3::text::json, verdict_kind = $4, action = $5, \
             answer = $6, setting = $7, change_bp = $8, pushed = now() WHERE key = $9",
            &[
                (&self.state.name(), Type::TEXT),
                (&self.ended_unix_us, Type::INT8),
                (&self.verdict, Type::TEXT),
                (&summary.kind, Type::TEXT),
                (&summary.action, Type::TEXT),
                (&summary.answer, Type::TEXT),
                (&summary.setting, Type::TEXT),
                (&summary.change_bp, Type::INT8),
                (&key, Type::INT8),
            ],
        )?;
        Ok(())
    }
}

fn value_of(config: &ExperimentConfig) -> Value {
    serde_json::to_value(config).unwrap_or_default()
}

fn taken(id: &str) -> Trouble {
    JournalError::BadId { id: id.to_owned(), why: "there is one of that name" }.into()
}

/// Refuses to go on with an experiment that another one goes on with. Who asks at the same time waits until we have written.
fn must_be_the_first_to_go_on(t: &mut Transaction<'_>, id: &str) -> Result<(), Trouble> {
    t.query_typed("SELECT pg_advisory_xact_lock(hashtext('continues ' || $1))", &[(&id, Type::TEXT)])?;
    let that_name_it = t.query_typed(
        "SELECT id, config::text FROM experiments WHERE position($1 IN config::text) > 0 ORDER BY started_us, key",
        &[(&id, Type::TEXT)],
    )?;
    for row in that_name_it {
        let config: Value = serde_json::from_str(row.try_get(1)?).unwrap_or_default();
        if config.get("continues").and_then(Value::as_str) == Some(id) {
            return Err(JournalError::Continued { id: id.to_owned(), by: row.try_get(0)? }.into());
        }
    }
    Ok(())
}

/// The key of an experiment under way, which nobody else changes meanwhile.
fn running_key(t: &mut Transaction<'_>, id: &str) -> Result<i64, Trouble> {
    let found = t.query_typed("SELECT key, state FROM experiments WHERE id = $1 FOR UPDATE", &[(&id, Type::TEXT)])?;
    let row = found.first().ok_or_else(|| super::missing(id))?;
    if row.try_get::<_, &str>(1)? == State::Running.name() {
        Ok(row.try_get(0)?)
    } else {
        Err(JournalError::ExperimentNotRunning { id: id.to_owned() }.into())
    }
}

/// Says of an experiment's trials under way that they were aborted.
fn abort_trials(t: &mut Transaction<'_>, key: i64, note: &'static str) -> Result<u64, Trouble> {
    let running = t.query_typed(
        "SELECT t.id, d.notes::text FROM trials t JOIN details d ON d.trial = t.id \
         WHERE t.experiment = $1 AND t.status = 'running'",
        &[(&key, Type::INT8)],
    )?;
    for row in &running {
        let mut notes: Vec<String> = wt_journal::columns::from_json("notes", row.try_get(1)?)?;
        notes.push(note.to_owned());
        let (trial, notes): (i64, String) = (row.try_get(0)?, to_json("the notes", &notes)?);
        let sql = "UPDATE details SET notes = $1::text::json WHERE trial = $2";
        t.execute_typed(sql, &[(&notes, Type::TEXT), (&trial, Type::INT8)])?;
    }
    let abort = "UPDATE trials SET status = 'aborted' WHERE experiment = $1 AND status = 'running'";
    Ok(t.execute_typed(abort, &[(&key, Type::INT8)])?)
}

fn write_samples(t: &mut Transaction<'_>, trial: TrialId, side: &str, samples: &[Sample]) -> Result<(), Trouble> {
    if !samples.is_empty() {
        t.execute_typed(
            "INSERT INTO samples (trial, side, data) VALUES ($1, $2, $3)",
            &[(&trial, Type::INT8), (&side, Type::TEXT), (&encode_samples(samples), Type::BYTEA)],
        )?;
    }
    Ok(())
}
