use super::Trouble;
use crate::client::Transaction;
use postgres::types::Type;
use std::collections::HashMap;
use wt_journal::columns::{phase_name, signed, to_json};
use wt_journal::{JournalError, TrialId, encode_samples};
use wt_trial::{Status, TrialOutcome, TrialRecord};

/// What a batch of trials did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PushedTrials {
    /// Those that were written.
    pub new: u64,
    /// Those that were there already.
    pub known: u64,
}

/// Trials as columns: a batch is a handful of statements, however long the way to the server is.
pub(super) struct Batch<'a> {
    pub(super) trials: &'a [TrialRecord],
    pub(super) details: Vec<Detail>,
}

/// A trial's columns of JSON.
pub(super) struct Detail {
    pub(super) asked: String,
    pub(super) workload: String,
    pub(super) granted: String,
    pub(super) scopes: String,
    pub(super) observed: String,
    pub(super) notes: String,
    pub(super) measures: Option<String>,
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

/// What was measured beyond payload and time as JSON, if there is something.
pub(super) fn measures_of(outcome: &TrialOutcome) -> Result<Option<String>, JournalError> {
    let measures = (!outcome.measures.is_empty()).then_some(&outcome.measures);
    measures.map(|measures| to_json("what was measured", measures)).transpose()
}

impl<'a> Batch<'a> {
    pub(super) fn of(trials: &'a [TrialRecord]) -> Result<Self, JournalError> {
        Ok(Self { trials, details: trials.iter().map(Detail::of).collect::<Result<_, _>>()? })
    }

    /// Writes those whose numbers, given for each of them, the experiment doesn't have yet.
    pub(super) fn insert(
        &self,
        t: &mut Transaction<'_>,
        experiment: i64,
        numbers: &[TrialId],
    ) -> Result<PushedTrials, Trouble> {
        let column = |of: &dyn Fn(&TrialRecord) -> i64| self.trials.iter().map(of).collect::<Vec<i64>>();
        let phases: Vec<&str> = self.trials.iter().map(|trial| phase_name(trial.spec.phase)).collect();
        let statuses: Vec<&str> = self.trials.iter().map(|trial| ended(trial.outcome.status).name()).collect();
        let written = t.query_typed(
            "INSERT INTO trials (experiment, local_id, phase, round, ord, arm, status, started_us, elapsed_us, bytes) \
             SELECT $1, local_id, phase, round, ord, arm, status, started_us, elapsed_us, bytes \
             FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10) \
             AS new (local_id, phase, round, ord, arm, status, started_us, elapsed_us, bytes) ORDER BY local_id \
             ON CONFLICT (experiment, local_id) DO NOTHING RETURNING local_id, id",
            &[
                (&experiment, Type::INT8),
                (&numbers, Type::INT8_ARRAY),
                (&phases, Type::TEXT_ARRAY),
                (&column(&|trial| trial.spec.round.into()), Type::INT8_ARRAY),
                (&column(&|trial| trial.spec.order.into()), Type::INT8_ARRAY),
                (&column(&|trial| signed(trial.spec.arm as u64)), Type::INT8_ARRAY),
                (&statuses, Type::TEXT_ARRAY),
                (&column(&|trial| trial.started_unix_us), Type::INT8_ARRAY),
                (&column(&|trial| signed(trial.outcome.elapsed_us)), Type::INT8_ARRAY),
                (&column(&|trial| signed(trial.outcome.bytes)), Type::INT8_ARRAY),
            ],
        )?;
        let mut keys: HashMap<TrialId, i64> = HashMap::with_capacity(written.len());
        for row in &written {
            keys.insert(row.try_get(0)?, row.try_get(1)?);
        }
        let new: Vec<(i64, &TrialRecord, &Detail)> = self
            .trials
            .iter()
            .zip(&self.details)
            .zip(numbers)
            .filter_map(|((trial, detail), number)| Some((*keys.get(number)?, trial, detail)))
            .collect();
        if !new.is_empty() {
            insert_details(t, &new)?;
            insert_measures(t, &new)?;
            insert_samples(t, &new)?;
        }
        Ok(PushedTrials { new: new.len() as u64, known: (self.trials.len() - new.len()) as u64 })
    }
}

/// What was under way when it was written never ended.
pub(super) fn ended(status: Status) -> Status {
    if status == Status::Running { Status::Aborted } else { status }
}

fn insert_details(t: &mut Transaction<'_>, new: &[(i64, &TrialRecord, &Detail)]) -> Result<(), Trouble> {
    let column = |of: &dyn Fn(&TrialRecord) -> i64| new.iter().map(|(_, trial, _)| of(trial)).collect::<Vec<i64>>();
    let json = |of: for<'d> fn(&'d Detail) -> &'d str| new.iter().map(|(.., detail)| of(detail)).collect::<Vec<&str>>();
    let keys: Vec<i64> = new.iter().map(|(key, ..)| *key).collect();
    t.execute_typed(
        "INSERT INTO details (trial, asked, workload, deadline_us, seed, granted, scopes, observed, busy_us, \
         rwnd_limited_us, sndbuf_limited_us, notes) SELECT trial, asked::json, workload::json, deadline_us, seed, \
         granted::json, scopes::json, observed::json, busy_us, rwnd_limited_us, sndbuf_limited_us, notes::json \
         FROM unnest($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) AS new (trial, asked, workload, deadline_us, \
         seed, granted, scopes, observed, busy_us, rwnd_limited_us, sndbuf_limited_us, notes)",
        &[
            (&keys, Type::INT8_ARRAY),
            (&json(|detail| &detail.asked), Type::TEXT_ARRAY),
            (&json(|detail| &detail.workload), Type::TEXT_ARRAY),
            (&column(&|trial| i64::try_from(trial.spec.deadline.as_micros()).unwrap_or(i64::MAX)), Type::INT8_ARRAY),
            (&column(&|trial| trial.spec.seed as i64), Type::INT8_ARRAY),
            (&json(|detail| &detail.granted), Type::TEXT_ARRAY),
            (&json(|detail| &detail.scopes), Type::TEXT_ARRAY),
            (&json(|detail| &detail.observed), Type::TEXT_ARRAY),
            (&column(&|trial| signed(trial.outcome.limits.busy_us)), Type::INT8_ARRAY),
            (&column(&|trial| signed(trial.outcome.limits.rwnd_limited_us)), Type::INT8_ARRAY),
            (&column(&|trial| signed(trial.outcome.limits.sndbuf_limited_us)), Type::INT8_ARRAY),
            (&json(|detail| &detail.notes), Type::TEXT_ARRAY),
        ],
    )?;
    Ok(())
}

fn insert_measures(t: &mut Transaction<'_>, new: &[(i64, &TrialRecord, &Detail)]) -> Result<(), Trouble> {
    let measured = || new.iter().filter_map(|(key, trial, detail)| Some((*key, trial, detail.measures.as_deref()?)));
    let keys: Vec<i64> = measured().map(|(key, ..)| key).collect();
    if keys.is_empty() {
        return Ok(());
    }
    let scores: Vec<Option<f64>> = measured().map(|(_, trial, _)| trial.outcome.measures.score).collect();
    let data: Vec<&str> = measured().map(|(.., data)| data).collect();
    t.execute_typed(
        "INSERT INTO measures (trial, score, data) SELECT trial, score, data::json FROM unnest($1, $2, $3) \
         AS new (trial, score, data)",
        &[(&keys, Type::INT8_ARRAY), (&scores, Type::FLOAT8_ARRAY), (&data, Type::TEXT_ARRAY)],
    )?;
    Ok(())
}

fn insert_samples(t: &mut Transaction<'_>, new: &[(i64, &TrialRecord, &Detail)]) -> Result<(), Trouble> {
    let (mut keys, mut sides, mut data) = (Vec::new(), Vec::new(), Vec::new());
    for (key, trial, _) in new {
        for (side, samples) in [("sender", &trial.outcome.sender), ("receiver", &trial.outcome.receiver)] {
            if !samples.is_empty() {
                keys.push(*key);
                sides.push(side);
                data.push(encode_samples(samples));
            }
        }
    }
    if !keys.is_empty() {
        t.execute_typed(
            "INSERT INTO samples (trial, side, data) SELECT trial, side, data FROM unnest($1, $2, $3) \
             AS new (trial, side, data)",
            &[(&keys, Type::INT8_ARRAY), (&sides, Type::TEXT_ARRAY), (&data, Type::BYTEA_ARRAY)],
        )?;
    }
    Ok(())
}
