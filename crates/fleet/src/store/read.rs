use super::{PgJournal, Trouble, missing};
use postgres::Row;
use postgres::types::Type;
use std::time::Duration;
use wt_journal::columns::{from_json, phase, state, status, unsigned};
use wt_journal::{
    Arm, ExperimentSummary, Filter, JournalError, Owner, PROOF_BEGINS, State, StoredExperiment, TrialId, TrialRow,
    WithSamples, decode_samples,
};
use wt_trial::{Limits, Measures, Sample, TrialOutcome, TrialRecord, TrialSpec};

/// What is read of a trial, for [`row_of`].
const ROW: &str = "t.local_id, t.phase, t.round, t.ord, t.arm, t.status, t.started_us, t.elapsed_us, t.bytes, m.score";
/// Where they are.
const ROWS: &str = "trials t LEFT JOIN measures m ON m.trial = t.id";
/// So many trials are read at once; each may have a thousand samples.
const AT_ONCE: i64 = 200;

impl PgJournal {
    /// The name of the one experiment that `key` means.
    pub(super) fn find(&self, key: &str) -> Result<String, JournalError> {
        if key == "last" {
            let last = "SELECT id FROM experiments WHERE $1 = 'last' ORDER BY started_us DESC, key DESC LIMIT 1";
            let found = self.names(last, key)?.pop();
            return found.ok_or_else(|| JournalError::Empty { path: self.place.clone() });
        }
        let mut beginning = self.names(
            "SELECT id FROM experiments WHERE id = $1 OR ($1 <> '' AND starts_with(id, $1)) \
             ORDER BY id = $1 DESC, started_us DESC LIMIT 6",
            key,
        )?;
        match beginning.as_slice() {
            [] => {
                let all =
                    self.names("SELECT id FROM experiments WHERE $1 = $1 ORDER BY started_us DESC LIMIT 1000", key)?;
                let nearest = wt_units::nearest(key, all.iter().map(String::as_str));
                Err(JournalError::NoSuchExperiment { key: key.to_owned(), nearest })
            }
            [first, rest @ ..] if first == key || rest.is_empty() => Ok(beginning.swap_remove(0)),
            _ => Err(JournalError::Ambiguous { key: key.to_owned(), candidates: beginning }),
        }
    }

    fn names(&self, sql: &str, key: &str) -> Result<Vec<String>, JournalError> {
        // No name has it, and the server takes no text with it.
        let key = key.replace('\0', "\u{fffd}");
        self.read(|| {
            let rows = self.rows_of(sql, &[(&key, Type::TEXT)])?;
            Ok(rows.iter().map(|row| row.try_get(0)).collect::<Result<_, _>>()?)
        })
    }

    pub(super) fn read_continuation(&self, id: &str) -> Result<Option<String>, JournalError> {
        let by = "SELECT id FROM experiments WHERE CASE WHEN strpos(config::text, $1) > 0 \
                  THEN config ->> 'continues' END = $1 ORDER BY started_us, key LIMIT 1";
        Ok(self.names(by, id)?.pop())
    }

    pub(super) fn read_experiment(&self, id: &str) -> Result<StoredExperiment, JournalError> {
        let read = || {
            let rows = self.rows_of(
                "SELECT key, id, target, tunnel, state, started_us, ended_us, comment, version, current::text, \
                 config::text, seed, path::text, verdict::text, owner_pid, owner_start, owner_boot FROM experiments \
                 WHERE id = $1",
                &[(&id, Type::TEXT)],
            )?;
            let row = rows.first().ok_or_else(|| missing(id))?;
            let mut experiment = experiment_of(row)?;
            let key: i64 = row.try_get(0)?;
            let arms = "SELECT label, settings::text FROM arms WHERE experiment = $1 ORDER BY arm";
            for arm in self.rows_of(arms, &[(&key, Type::INT8)])? {
                let settings = from_json("settings", arm.try_get(1)?)?;
                experiment.arms.push(Arm { label: arm.try_get(0)?, settings });
            }
            Ok(experiment)
        };
        self.read(|| read().map_err(|e: Trouble| e.of(format_args!("experiment {id}"))))
    }

    /// When the newest trial of an experiment began, µs since the Unix epoch.
    ///
    /// # Errors
    /// [`JournalError`] when the database can't be read.
    pub fn last_trial_unix_us(&self, id: &str) -> Result<Option<i64>, JournalError> {
        self.read(|| {
            let newest = "SELECT started_us FROM trials WHERE experiment = $1 ORDER BY local_id DESC LIMIT 1";
            let rows = self.rows_of(newest, &[(&self.key(id)?, Type::INT8)])?;
            Ok(rows.first().map(|row| row.try_get(0)).transpose()?)
        })
    }

    pub(super) fn read_list(&self, filter: &Filter) -> Result<Vec<ExperimentSummary>, JournalError> {
        self.read(|| {
            let limit = filter.limit.map(|n| i64::try_from(n).unwrap_or(i64::MAX));
            let rows = self.rows_of(
                "SELECT id, target, tunnel, state, started_us, ended_us, comment, \
                 (SELECT count(*) FROM trials WHERE experiment = e.key), \
                 CASE WHEN kind = 'tune' AND comment LIKE $6 || '%' AND config::text = 'null' THEN 'proof' ELSE kind END, \
                 workload, verdict_kind, action, answer, setting, change_bp FROM experiments e \
                 WHERE ($1 IS NULL OR state = $1) AND ($2 IS NULL OR target = $2) AND ($3 IS NULL OR tunnel = $3) \
                 AND ($4 IS NULL OR started_us >= $4) ORDER BY started_us DESC, key DESC LIMIT $5",
                &[
                    (&filter.state.map(State::name), Type::TEXT),
                    (&filter.target, Type::TEXT),
                    (&filter.tunnel, Type::TEXT),
                    (&filter.since_unix_us, Type::INT8),
                    (&limit, Type::INT8),
                    (&PROOF_BEGINS, Type::TEXT),
                ],
            )?;
            rows.iter().map(summary_of).collect()
        })
    }

    pub(super) fn read_rows(&self, id: &str) -> Result<Vec<TrialRow>, JournalError> {
        self.read(|| {
            let key = self.key(id)?;
            // Only of few: who isn't completed is judged by it.
            let rows = self.rows_of(
                &format!(
                    "SELECT {ROW}, CASE WHEN t.status IN ('incomplete', 'failed') \
                     THEN (SELECT deadline_us FROM details WHERE trial = t.id) END \
                     FROM {ROWS} WHERE t.experiment = $1 ORDER BY t.local_id"
                ),
                &[(&key, Type::INT8)],
            )?;
            let mut all = Vec::with_capacity(rows.len());
            for row in &rows {
                let deadline_us = row.try_get::<_, Option<i64>>(10)?.map(unsigned);
                all.push(TrialRow { deadline_us, ..row_of(row)? });
            }
            Ok(all)
        })
    }

    pub(super) fn read_trials(
        &self,
        id: &str,
        from: TrialId,
        samples: WithSamples,
        each: &mut dyn FnMut(TrialRecord) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        let side = |side| format!("(SELECT data FROM samples WHERE trial = t.id AND side = '{side}')");
        let (sender, receiver) = match samples {
            WithSamples::Yes => (side("sender"), side("receiver")),
            WithSamples::No => ("NULL::bytea".to_owned(), "NULL::bytea".to_owned()),
        };
        let sql = format!(
            "SELECT {ROW}, d.asked::text, d.workload::text, d.deadline_us, d.seed, d.granted::text, d.scopes::text, \
             d.observed::text, d.busy_us, d.rwnd_limited_us, d.sndbuf_limited_us, d.notes::text, {sender}, {receiver}, \
             m.data::text FROM {ROWS} JOIN details d ON d.trial = t.id WHERE t.experiment = $1 AND t.local_id >= $2 \
             ORDER BY t.local_id LIMIT $3"
        );
        let key = self.read(|| self.key(id))?;
        let mut next = from;
        loop {
            let parameters = [(&key as _, Type::INT8), (&next as _, Type::INT8), (&AT_ONCE as _, Type::INT8)];
            let rows = self.read(|| self.rows_of(&sql, &parameters))?;
            for row in &rows {
                let record = self.read(|| {
                    let basic = row_of(row)?;
                    record_of(id, &basic, row).map_err(|e| e.of(format_args!("trial {}", basic.id)))
                })?;
                next = record.id.saturating_add(1);
                each(record)?;
            }
            if (rows.len() as i64) < AT_ONCE {
                return Ok(());
            }
        }
    }

    /// The key of an experiment's rows.
    pub(super) fn key(&self, id: &str) -> Result<i64, Trouble> {
        let rows = self.rows_of("SELECT key FROM experiments WHERE id = $1", &[(&id, Type::TEXT)])?;
        Ok(rows.first().ok_or_else(|| missing(id))?.try_get(0)?)
    }
}

/// An experiment without its arms.
fn experiment_of(row: &Row) -> Result<StoredExperiment, Trouble> {
    let text = |column: usize| row.try_get::<_, String>(column);
    let verdict: Option<&str> = row.try_get(13)?;
    let pid = u32::try_from(row.try_get::<_, i64>(14)?).map_err(|_| "owner_pid is no process's".to_owned())?;
    Ok(StoredExperiment {
        id: text(1)?,
        target: text(2)?,
        tunnel: text(3)?,
        state: state(row.try_get(4)?)?,
        started_unix_us: row.try_get(5)?,
        ended_unix_us: row.try_get(6)?,
        comment: text(7)?,
        version: text(8)?,
        current: from_json("current settings", row.try_get(9)?)?,
        arms: Vec::new(),
        config: from_json("configuration", row.try_get(10)?)?,
        seed: row.try_get::<_, i64>(11)? as u64,
        path: from_json("path", row.try_get(12)?)?,
        verdict: verdict.map(|text| from_json("verdict", text)).transpose()?,
        owner: Owner { pid, start_ticks: unsigned(row.try_get(15)?), boot_id: text(16)? },
    })
}

fn summary_of(row: &Row) -> Result<ExperimentSummary, Trouble> {
    Ok(ExperimentSummary {
        id: row.try_get(0)?,
        target: row.try_get(1)?,
        tunnel: row.try_get(2)?,
        state: state(row.try_get(3)?)?,
        started_unix_us: row.try_get(4)?,
        ended_unix_us: row.try_get(5)?,
        comment: row.try_get(6)?,
        trials: unsigned(row.try_get(7)?),
        kind: row.try_get(8)?,
        workload: row.try_get(9)?,
        verdict: row.try_get(10)?,
        action: row.try_get(11)?,
        answer: row.try_get(12)?,
        setting: row.try_get(13)?,
        change_bp: row.try_get(14)?,
    })
}

/// The narrow part of a trial.
fn row_of(row: &Row) -> Result<TrialRow, Trouble> {
    let small = |column: usize| -> Result<u32, Trouble> {
        u32::try_from(row.try_get::<_, i64>(column)?).map_err(|_| "a round isn't one".to_owned().into())
    };
    Ok(TrialRow {
        id: row.try_get(0)?,
        phase: phase(row.try_get(1)?)?,
        round: small(2)?,
        order: small(3)?,
        arm: usize::try_from(row.try_get::<_, i64>(4)?).unwrap_or(usize::MAX),
        status: status(row.try_get(5)?)?,
        started_unix_us: row.try_get(6)?,
        elapsed_us: unsigned(row.try_get(7)?),
        bytes: unsigned(row.try_get(8)?),
        score: row.try_get(9)?,
        deadline_us: None,
    })
}

/// The whole of a trial.
fn record_of(experiment: &str, basic: &TrialRow, row: &Row) -> Result<TrialRecord, Trouble> {
    let spec = TrialSpec {
        experiment: experiment.to_owned(),
        phase: basic.phase,
        round: basic.round,
        order: basic.order,
        arm: basic.arm,
        settings: from_json("settings", row.try_get(10)?)?,
        workload: from_json("workload", row.try_get(11)?)?,
        deadline: Duration::from_micros(unsigned(row.try_get(12)?)),
        seed: row.try_get::<_, i64>(13)? as u64,
    };
    let limits = Limits {
        busy_us: unsigned(row.try_get(17)?),
        rwnd_limited_us: unsigned(row.try_get(18)?),
        sndbuf_limited_us: unsigned(row.try_get(19)?),
    };
    let measures: Option<&str> = row.try_get(23)?;
    let outcome = TrialOutcome {
        status: basic.status,
        bytes: basic.bytes,
        elapsed_us: basic.elapsed_us,
        granted: from_json("granted settings", row.try_get(14)?)?,
        scopes: from_json("scopes", row.try_get(15)?)?,
        observed: from_json("observed", row.try_get(16)?)?,
        sender: samples_of(row, 21)?,
        receiver: samples_of(row, 22)?,
        limits,
        notes: from_json("notes", row.try_get(20)?)?,
        measures: measures.map_or_else(|| Ok(Measures::default()), |data| from_json("measures", data))?,
    };
    Ok(TrialRecord { id: basic.id, spec, started_unix_us: basic.started_unix_us, outcome })
}

fn samples_of(row: &Row, column: usize) -> Result<Vec<Sample>, Trouble> {
    let data: Option<&[u8]> = row.try_get(column)?;
    data.map_or_else(|| Ok(Vec::new()), |bytes| decode_samples(bytes).map_err(|e| format!("samples: {e}").into()))
}
