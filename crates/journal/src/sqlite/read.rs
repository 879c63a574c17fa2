use super::codec::{from_json, phase, state, status, unsigned};
use super::{SqliteJournal, Trouble};
use crate::model::TableTrial;
use crate::{
    Arm, ExperimentSummary, Filter, JournalError, Owner, PROOF_BEGINS, State, StoredExperiment, TrialId, TrialRow,
    WithSamples, decode_samples,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use std::time::Duration;
use wt_trial::{Limits, Measures, Sample, TrialOutcome, TrialRecord, TrialSpec};

/// What is read of a trial, for [`row_of`].
const ROW: &str = "t.id, t.phase, t.round, t.ord, t.arm, t.status, t.started_us, t.elapsed_us, t.bytes, m.score";
/// Where they are.
const ROWS: &str = "trials t LEFT JOIN measures m ON m.trial = t.id";
/// The same with the wide part, which every trial has in a journal that is whole; see [`must_have_details`].
const WHOLE: &str = "trials t LEFT JOIN measures m ON m.trial = t.id LEFT JOIN details d ON d.trial = t.id";

impl SqliteJournal {
    /// The name of the one experiment that `key` means.
    pub(super) fn find(&self, key: &str) -> Result<String, JournalError> {
        if key == "last" {
            let last = "SELECT id FROM experiments ORDER BY started_us DESC, key DESC LIMIT 1";
            let found = self.connection.query_row(last, [], |row| row.get(0)).optional().map_err(|e| self.error(&e))?;
            return found.ok_or_else(|| JournalError::Empty { path: self.path.clone() });
        }
        let mut beginning = self.names(
            "SELECT id FROM experiments WHERE id = ?1 OR (?1 <> '' AND substr(id, 1, length(?1)) = ?1) \
             ORDER BY id = ?1 DESC, started_us DESC LIMIT 6",
            key,
        )?;
        match beginning.as_slice() {
            [] => {
                let all =
                    self.names("SELECT id FROM experiments WHERE ?1 = ?1 ORDER BY started_us DESC LIMIT 1000", key)?;
                let nearest = wt_units::nearest(key, all.iter().map(String::as_str));
                Err(JournalError::NoSuchExperiment { key: key.to_owned(), nearest })
            }
            [first, rest @ ..] if first == key || rest.is_empty() => Ok(beginning.swap_remove(0)),
            _ => Err(JournalError::Ambiguous { key: key.to_owned(), candidates: beginning }),
        }
    }

    fn names(&self, sql: &str, key: &str) -> Result<Vec<String>, JournalError> {
        self.read(|| {
            let mut query = self.connection.prepare(sql)?;
            let names = query.query_map([key], |row| row.get(0))?;
            Ok(names.collect::<Result<_, _>>()?)
        })
    }

    pub(super) fn read_continuation(&self, id: &str) -> Result<Option<String>, JournalError> {
        self.read(|| Ok(continued_by(&self.connection, id)?))
    }

    pub(super) fn read_experiment(&self, id: &str) -> Result<StoredExperiment, JournalError> {
        let read = || {
            let mut query = self.connection.prepare(
                "SELECT key, id, target, tunnel, state, started_us, ended_us, comment, version, current, config, seed, \
                 path, verdict, owner_pid, owner_start, owner_boot FROM experiments WHERE id = ?",
            )?;
            let mut found = query.query([id])?;
            let row = found.next()?.ok_or_else(|| missing(id))?;
            let mut experiment = experiment_of(row)?;
            let mut arms =
                self.connection.prepare("SELECT label, settings FROM arms WHERE experiment = ? ORDER BY arm")?;
            let mut arms = arms.query([row.get::<_, i64>(0)?])?;
            while let Some(arm) = arms.next()? {
                let settings = from_json("settings", &arm.get::<_, String>(1)?)?;
                experiment.arms.push(Arm { label: arm.get(0)?, settings });
            }
            Ok(experiment)
        };
        self.read(|| read().map_err(|e: Trouble| e.of(format_args!("experiment {id}"))))
    }

    pub(super) fn read_list(&self, filter: &Filter) -> Result<Vec<ExperimentSummary>, JournalError> {
        self.read(|| {
            let mut query = self.connection.prepare(
                "SELECT id, target, tunnel, state, started_us, ended_us, comment, \
                 (SELECT count(*) FROM trials WHERE experiment = e.key), \
                 json_extract(config, '$.workload.kind'), json_extract(verdict, '$.kind'), json_extract(verdict, '$.answer.action'), \
                 coalesce(json_extract(verdict, '$.answer.what'), json_extract(verdict, '$.headline')), \
                 json_extract(verdict, '$.answer.setting'), \
                 CAST(round(json_extract(verdict, '$.answer.change_percent') * 100) AS INTEGER), \
                 CASE WHEN json_type(config, '$.compare') = 'object' THEN 'cc' WHEN json_type(config, '$.stacks') = 'object' THEN 'stacks' \
                 WHEN json_type(config, '$.test') = 'object' THEN 'test' WHEN json_type(config, '$.traffic') = 'object' THEN 'traffic' WHEN json_type(config, '$.flent') = 'text' THEN 'flent' \
                 WHEN json_type(config, '$.screen') = 'object' THEN 'screen' \
                 WHEN json_type(verdict, '$.proof') = 'object' OR (json_type(config) = 'null' AND comment LIKE ?6 || '%') THEN 'proof' \
                 ELSE 'tune' END \
                 FROM (SELECT *, CASE WHEN json_valid(c) THEN c END config, CASE WHEN json_valid(v) THEN v END verdict \
                 FROM (SELECT key, id, target, tunnel, state, started_us, ended_us, comment, config c, verdict v FROM experiments)) e \
                 WHERE (?1 IS NULL OR state = ?1) AND (?2 IS NULL OR target = ?2) AND (?3 IS NULL OR tunnel = ?3) \
                 AND (?4 IS NULL OR started_us >= ?4) ORDER BY started_us DESC, key DESC LIMIT ?5",
            )?;
            let mut rows = query.query(params![
                filter.state.map(State::name),
                filter.target,
                filter.tunnel,
                filter.since_unix_us,
                filter.limit.map_or(-1, |n| i64::try_from(n).unwrap_or(i64::MAX)),
                PROOF_BEGINS,
            ])?;
            let mut list = Vec::new();
            while let Some(row) = rows.next()? {
                list.push(summary_of(row)?);
            }
            Ok(list)
        })
    }

    /// When the newest trial of an experiment began, µs since the Unix epoch.
    ///
    /// # Errors
    /// [`JournalError`] when the file can't be read.
    pub fn last_trial_unix_us(&self, id: &str) -> Result<Option<i64>, JournalError> {
        self.read(|| {
            let key = self.key(id)?;
            let newest = "SELECT started_us FROM trials WHERE experiment = ? ORDER BY id DESC LIMIT 1";
            Ok(self.connection.query_row(newest, [key], |row| row.get(0)).optional()?)
        })
    }

    pub(super) fn read_rows(&self, id: &str) -> Result<Vec<TrialRow>, JournalError> {
        self.read(|| {
            // Only of few: who isn't completed is judged by it.
            let deadline = "CASE WHEN t.status IN ('incomplete', 'failed') \
                            THEN (SELECT deadline_us FROM details WHERE trial = t.id) END";
            let mut query = self
                .connection
                .prepare(&format!("SELECT {ROW}, {deadline} FROM {ROWS} WHERE t.experiment = ? ORDER BY t.id"))?;
            let mut rows = query.query([self.key(id)?])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                let deadline_us = row.get::<_, Option<i64>>(10)?.map(unsigned);
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
            WithSamples::No => ("NULL".to_owned(), "NULL".to_owned()),
        };
        let sql = format!(
            "SELECT {ROW}, d.asked, d.workload, d.deadline_us, d.seed, d.granted, d.scopes, d.observed, d.busy_us, \
             d.rwnd_limited_us, d.sndbuf_limited_us, d.notes, {sender}, {receiver}, m.data, d.trial \
             FROM {WHOLE} WHERE t.experiment = ? AND t.id >= ? ORDER BY t.id"
        );
        self.read(|| {
            let mut query = self.connection.prepare(&sql)?;
            let mut rows = query.query([self.key(id)?, from])?;
            while let Some(row) = rows.next()? {
                let basic = row_of(row)?;
                let whole = must_have_details(row, 24).and_then(|()| record_of(id, &basic, row));
                each(whole.map_err(|e| e.of(format_args!("trial {}", basic.id)))?)?;
            }
            Ok(())
        })
    }

    /// Hands what tables have of every trial to `each`, in the order in which they began, without reading its JSON.
    pub(crate) fn for_each_table_trial(
        &self,
        id: &str,
        each: &mut dyn FnMut(&TableTrial<'_>) -> Result<(), JournalError>,
    ) -> Result<(), JournalError> {
        self.read(|| {
            let mut query = self.connection.prepare(&format!(
                "SELECT {ROW}, d.asked, d.granted, d.workload, d.observed, d.trial \
                 FROM {WHOLE} WHERE t.experiment = ? ORDER BY t.id"
            ))?;
            let mut rows = query.query([self.key(id)?])?;
            while let Some(row) = rows.next()? {
                let basic = row_of(row)?;
                must_have_details(row, 14).map_err(|e| e.of(format_args!("trial {}", basic.id)))?;
                let text = |column| row.get_ref(column)?.as_str().map_err(|e| Trouble::Senseless(e.to_string()));
                let (asked, granted, workload, observed) = (text(10)?, text(11)?, text(12)?, text(13)?);
                each(&TableTrial { row: basic, asked, granted, workload, observed })?;
            }
            Ok(())
        })
    }

    fn key(&self, id: &str) -> Result<i64, Trouble> {
        let found = self.connection.query_row("SELECT key FROM experiments WHERE id = ?", [id], |row| row.get(0));
        found.optional()?.ok_or_else(|| missing(id))
    }
}

fn missing(id: &str) -> Trouble {
    JournalError::NoSuchExperiment { key: id.to_owned(), nearest: Vec::new() }.into()
}

/// An experiment without its arms.
fn experiment_of(row: &Row<'_>) -> Result<StoredExperiment, Trouble> {
    let text = |column: usize| row.get::<_, String>(column);
    let verdict: Option<String> = row.get(13)?;
    Ok(StoredExperiment {
        id: text(1)?,
        target: text(2)?,
        tunnel: text(3)?,
        state: state(&text(4)?)?,
        started_unix_us: row.get(5)?,
        ended_unix_us: row.get(6)?,
        comment: text(7)?,
        version: text(8)?,
        current: from_json("current settings", &text(9)?)?,
        arms: Vec::new(),
        config: from_json("configuration", &text(10)?)?,
        seed: row.get::<_, i64>(11)? as u64,
        path: from_json("path", &text(12)?)?,
        verdict: verdict.map(|text| from_json("verdict", &text)).transpose()?,
        owner: Owner { pid: row.get(14)?, start_ticks: unsigned(row.get(15)?), boot_id: text(16)? },
    })
}

/// A text, where there is one; whatever else an older program or another one put there is none.
fn words(row: &Row<'_>, column: usize) -> Result<Option<String>, Trouble> {
    Ok(row.get_ref(column)?.as_str().ok().map(str::to_owned))
}

fn summary_of(row: &Row<'_>) -> Result<ExperimentSummary, Trouble> {
    Ok(ExperimentSummary {
        id: row.get(0)?,
        target: row.get(1)?,
        tunnel: row.get(2)?,
        state: state(&row.get::<_, String>(3)?)?,
        started_unix_us: row.get(4)?,
        ended_unix_us: row.get(5)?,
        comment: row.get(6)?,
        trials: unsigned(row.get(7)?),
        kind: row.get(14)?,
        workload: words(row, 8)?,
        verdict: words(row, 9)?,
        action: words(row, 10)?,
        answer: words(row, 11)?,
        setting: words(row, 12)?,
        change_bp: row.get(13)?,
    })
}

/// The narrow part of a trial.
fn row_of(row: &Row<'_>) -> Result<TrialRow, Trouble> {
    // Borrowed, not copied: a million rows would make two million strings.
    let word = |column| row.get_ref(column)?.as_str().map_err(|e| Trouble::Senseless(e.to_string()));
    Ok(TrialRow {
        id: row.get(0)?,
        phase: phase(word(1)?)?,
        round: row.get(2)?,
        order: row.get(3)?,
        arm: usize::try_from(row.get::<_, i64>(4)?).unwrap_or(usize::MAX),
        status: status(word(5)?)?,
        started_unix_us: row.get(6)?,
        elapsed_us: unsigned(row.get(7)?),
        bytes: unsigned(row.get(8)?),
        score: row.get(9)?,
        deadline_us: None,
    })
}

/// Refuses a trial whose wide part isn't found: its page of the file was overwritten, or somebody deleted it. Left out, it would be missing
/// from everything that is made of the journal without a word. `column` has the number that the wide part has of its trial.
fn must_have_details(row: &Row<'_>, column: usize) -> Result<(), Trouble> {
    match row.get_ref(column)? {
        ValueRef::Null => Err(Trouble::Senseless("what it asked for and observed is missing".to_owned())),
        _ => Ok(()),
    }
}

/// The whole of a trial.
fn record_of(experiment: &str, basic: &TrialRow, row: &Row<'_>) -> Result<TrialRecord, Trouble> {
    let text = |column: usize| row.get::<_, String>(column);
    let spec = TrialSpec {
        experiment: experiment.to_owned(),
        phase: basic.phase,
        round: basic.round,
        order: basic.order,
        arm: basic.arm,
        settings: from_json("settings", &text(10)?)?,
        workload: from_json("workload", &text(11)?)?,
        deadline: Duration::from_micros(unsigned(row.get(12)?)),
        seed: row.get::<_, i64>(13)? as u64,
    };
    let limits = Limits {
        busy_us: unsigned(row.get(17)?),
        rwnd_limited_us: unsigned(row.get(18)?),
        sndbuf_limited_us: unsigned(row.get(19)?),
    };
    let outcome = TrialOutcome {
        status: basic.status,
        bytes: basic.bytes,
        elapsed_us: basic.elapsed_us,
        granted: from_json("granted settings", &text(14)?)?,
        scopes: from_json("scopes", &text(15)?)?,
        observed: from_json("observed", &text(16)?)?,
        sender: samples_of(row, 21)?,
        receiver: samples_of(row, 22)?,
        limits,
        notes: from_json("notes", &text(20)?)?,
        measures: row
            .get::<_, Option<String>>(23)?
            .map_or_else(|| Ok(Measures::default()), |data| from_json("measures", &data))?,
    };
    Ok(TrialRecord { id: basic.id, spec, started_unix_us: basic.started_unix_us, outcome })
}

fn samples_of(row: &Row<'_>, column: usize) -> Result<Vec<Sample>, Trouble> {
    let data = row.get_ref(column)?.as_blob_or_null().map_err(|e| Trouble::Senseless(format!("samples: {e}")))?;
    data.map_or_else(
        || Ok(Vec::new()),
        |bytes| decode_samples(bytes).map_err(|e| Trouble::Senseless(format!("samples: {e}"))),
    )
}

/// The experiment that goes on with this one, if there is one: the first.
pub(super) fn continued_by(connection: &Connection, id: &str) -> Result<Option<String>, rusqlite::Error> {
    // Few name it at all, and only those are parsed.
    let by = "SELECT id FROM experiments WHERE CASE WHEN instr(config, ?1) > 0 AND json_valid(config) \
              THEN json_extract(config, '$.continues') END = ?1 ORDER BY started_us, key LIMIT 1";
    connection.query_row(by, [id], |row| row.get(0)).optional()
}
