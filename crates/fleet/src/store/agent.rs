use super::trials::{Batch, ended};
use super::write::{ANOTHER, End, Head, Mark};
use super::{PushStore, Trouble, TypedValue};
use crate::address::StoreAddress;
use crate::client::{Client, said};
use crate::rollout::{RolloutOrder, RolloutPhase, RolloutTask};
use postgres::Row;
use postgres::error::SqlState;
use postgres::types::Type;
use std::path::PathBuf;
use std::time::Duration;
use wt_journal::columns::{phase_name, signed, unsigned};
use wt_journal::{JournalError, State, StoredExperiment, TrialId, encode_samples};
use wt_trial::{Sample, TrialRecord};

/// How long the server has for each answer: all that an agent asks takes it a moment, and meanwhile the agent watches nothing else.
const PATIENCE: Duration = Duration::from_secs(15);

/// The server of a fleet as one of its agents sees it: it may call a handful of functions, and nothing else.
pub struct AgentStore {
    client: Client,
    place: PathBuf,
}

impl std::fmt::Debug for AgentStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentStore").field("place", &self.place).finish_non_exhaustive()
    }
}

/// What an agent is to measure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetJob {
    /// Its number.
    pub job: i64,
    /// Who shows this has it now.
    pub token: i64,
    /// The mesh that it belongs to.
    pub mesh: String,
    /// What is measured to.
    pub target: String,
    /// How, as JSON.
    pub spec: String,
    /// What nobody else may use meanwhile.
    pub links: Vec<String>,
    /// Which time it is, from 1.
    pub run: u64,
}

/// What came of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JobEnd {
    /// It was measured.
    Done {
        /// In the journal.
        experiment: String,
    },
    /// This agent isn't allowed to.
    Refused {
        /// Why.
        why: String,
    },
    /// It couldn't be measured; what was measured is kept.
    Failed {
        /// Why.
        why: String,
        /// What there is of it.
        experiment: Option<String>,
    },
    /// Not now.
    Later {
        /// Why.
        why: String,
        /// After so long it is asked for again.
        after: Duration,
    },
}

/// Which fleet an agent is in, so that numbers of jobs and changes mean the same for good.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FleetIdentity {
    /// Drawn when the fleet was made.
    pub id: String,
    /// Changes up to this number may be known to an agent by the server's address, from before fleets had an id.
    pub changes: i64,
}

/// How an agent is, for whoever looks at the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AgentState {
    /// Its wall clock, µs since the Unix epoch.
    pub unix_us: i64,
    /// How long the server's last answer took.
    pub rtt: Duration,
    /// Experiments that aren't at the server yet.
    pub outbox: u64,
    /// Whether it has just begun, and has none of the jobs that it had before.
    pub begins: bool,
}

impl AgentStore {
    /// Connects.
    ///
    /// # Errors
    /// [`JournalError::Unreachable`].
    pub fn connect(address: &StoreAddress) -> Result<Self, JournalError> {
        let place = PathBuf::from(address.to_string());
        match address.with_patience_of_at_most(PATIENCE).connect() {
            Ok(client) => Ok(Self { client, place }),
            Err(why) => Err(JournalError::Unreachable { path: place, why }),
        }
    }

    /// Says that the agent is there; gives the server's clock, µs since 1970.
    ///
    /// # Errors
    /// [`JournalError`], for one that isn't an agent of the fleet, too.
    pub fn hello(&mut self, version: &str, state: AgentState) -> Result<i64, JournalError> {
        let rtt = i64::try_from(state.rtt.as_micros()).unwrap_or(i64::MAX);
        let parameters: [TypedValue<'_>; 5] = [
            (&version, Type::TEXT),
            (&state.unix_us, Type::INT8),
            (&rtt, Type::INT8),
            (&signed(state.outbox), Type::INT8),
            (&state.begins, Type::BOOL),
        ];
        let rows = self.rows("SELECT fleet_hello($1, $2, $3, $4, $5)", &parameters)?;
        rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(|error| self.failed(error))
    }

    /// Which fleet it is; nothing where an older program made it.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn identity(&mut self) -> Result<Option<FleetIdentity>, JournalError> {
        let rows = self.client.query_typed("SELECT own_id, own_changes FROM fleet_id()", &[]);
        let of = |row: &Row| Ok::<_, postgres::Error>(FleetIdentity { id: row.try_get(0)?, changes: row.try_get(1)? });
        self.unless_older(rows)?.first().map(of).transpose().map_err(|error| self.failed(error))
    }

    /// The next job, which is this agent's for so long unless it is kept.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn next(&mut self, lease: Duration) -> Result<Option<FleetJob>, JournalError> {
        let sql = "SELECT own_job, own_token, own_mesh, own_target, own_spec, own_links, own_run FROM fleet_next($1)";
        let rows = self.rows(sql, &[(&millis(lease), Type::INT8)])?;
        let of = |row: &Row| {
            Ok::<_, postgres::Error>(FleetJob {
                job: row.try_get(0)?,
                token: row.try_get(1)?,
                mesh: row.try_get(2)?,
                target: row.try_get(3)?,
                spec: row.try_get(4)?,
                links: row.try_get(5)?,
                run: unsigned(row.try_get(6)?),
            })
        };
        rows.first().map(of).transpose().map_err(|error| self.failed(error))
    }

    /// Keeps a job for so long from now on; whether it is still this agent's.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn keep(&mut self, job: &FleetJob, lease: Duration) -> Result<bool, JournalError> {
        let parameters: [TypedValue<'_>; 3] =
            [(&job.job, Type::INT8), (&job.token, Type::INT8), (&millis(lease), Type::INT8)];
        self.one("SELECT fleet_keep($1, $2, $3)", &parameters)
    }

    /// Says what came of a job; whether it was still this agent's.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn end_job(&mut self, job: &FleetJob, end: &JobEnd) -> Result<bool, JournalError> {
        let (outcome, why, experiment, after) = match end {
            JobEnd::Done { experiment } => ("done", "", Some(experiment), Duration::ZERO),
            JobEnd::Refused { why } => ("refused", why.as_str(), None, Duration::ZERO),
            JobEnd::Failed { why, experiment } => ("failed", why.as_str(), experiment.as_ref(), Duration::ZERO),
            JobEnd::Later { why, after } => ("later", why.as_str(), None, *after),
        };
        let parameters: [TypedValue<'_>; 6] = [
            (&job.job, Type::INT8),
            (&job.token, Type::INT8),
            (&outcome, Type::TEXT),
            (&why, Type::TEXT),
            (&experiment, Type::TEXT),
            (&millis(after), Type::INT8),
        ];
        self.one("SELECT fleet_end($1, $2, $3, $4, $5, $6)", &parameters)
    }

    /// Whether a change of settings waits to be made, confirmed or taken back here.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn is_rollout_due(&mut self) -> Result<bool, JournalError> {
        let rows = self.client.query_typed("SELECT fleet_rollout_due()", &[]);
        Ok(self.unless_older(rows)?.first().is_some_and(|row| row.try_get(0).unwrap_or(false)))
    }

    /// Changes of settings that are to be made, confirmed or taken back here, or are under way; what is to be applied counts as under
    /// way from now on.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn rollout_tasks(&mut self) -> Result<Vec<RolloutTask>, JournalError> {
        let sql = "SELECT own_rollout, own_name, own_spec, own_order, own_phase FROM fleet_rollout_tasks()";
        let rows = self.client.query_typed(sql, &[]);
        let rows = self.unless_older(rows)?;
        let of = |row: &Row| {
            Ok::<_, postgres::Error>(RolloutTask {
                number: row.try_get(0)?,
                name: row.try_get(1)?,
                spec: row.try_get(2)?,
                ordered: RolloutOrder::of(row.try_get(3)?).unwrap_or(RolloutOrder::Nothing),
                phase: RolloutPhase::of(row.try_get(4)?).unwrap_or(RolloutPhase::Applying),
            })
        };
        rows.iter().map(of).collect::<Result<_, _>>().map_err(|error| self.failed(error))
    }

    /// Says what came of it; whether that can have come of it.
    ///
    /// # Errors
    /// [`JournalError`].
    pub fn rollout_said(&mut self, task: &RolloutTask, phase: RolloutPhase, why: &str) -> Result<bool, JournalError> {
        let parameters: [TypedValue<'_>; 3] =
            [(&task.number, Type::INT8), (&phase.name(), Type::TEXT), (&why, Type::TEXT)];
        self.one("SELECT fleet_rollout_said($1, $2, $3)", &parameters)
    }

    /// None of a server that an older program made, which has no such functions.
    fn unless_older(&self, rows: Result<Vec<Row>, postgres::Error>) -> Result<Vec<Row>, JournalError> {
        match rows {
            Err(error) if error.code() == Some(&SqlState::UNDEFINED_FUNCTION) => Ok(Vec::new()),
            rows => rows.map_err(|error| self.failed(error)),
        }
    }

    fn one<T: for<'r> postgres::types::FromSql<'r>>(
        &mut self,
        sql: &str,
        parameters: &[TypedValue<'_>],
    ) -> Result<T, JournalError> {
        let rows = self.rows(sql, parameters)?;
        let none = || JournalError::Damaged { path: self.place.clone(), what: "a function gives no row".to_owned() };
        rows.first().ok_or_else(none)?.try_get(0).map_err(|error| self.failed(error))
    }

    fn rows(&mut self, sql: &str, parameters: &[TypedValue<'_>]) -> Result<Vec<Row>, JournalError> {
        self.client.query_typed(sql, parameters).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: postgres::Error) -> JournalError {
        Trouble::from(error).into_error(&self.place)
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

impl PushStore for AgentStore {
    fn begin(&mut self, stored: &StoredExperiment, _site: &str) -> Result<Vec<Mark>, JournalError> {
        let (head, owner) = (Head::of(stored)?, &stored.owner);
        let labels: Vec<&str> = stored.arms.iter().map(|arm| arm.label.as_str()).collect();
        let parameters: [TypedValue<'_>; 17] = [
            (&stored.id, Type::TEXT),
            (&stored.target, Type::TEXT),
            (&stored.tunnel, Type::TEXT),
            (&stored.started_unix_us, Type::INT8),
            (&stored.comment, Type::TEXT),
            (&stored.version, Type::TEXT),
            (&head.current, Type::TEXT),
            (&head.config, Type::TEXT),
            (&(stored.seed as i64), Type::INT8),
            (&head.path, Type::TEXT),
            (&i64::from(owner.pid), Type::INT8),
            (&signed(owner.start_ticks), Type::INT8),
            (&owner.boot_id, Type::TEXT),
            (&head.summary.kind, Type::TEXT),
            (&head.summary.workload, Type::TEXT),
            (&labels, Type::TEXT_ARRAY),
            (&head.arms, Type::TEXT_ARRAY),
        ];
        let sql = "SELECT number, began, moved FROM fleet_push_begin($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, \
                   $13, $14, $15, $16, $17)";
        let rows = match self.client.query_typed(sql, &parameters) {
            Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) && !said(&error).is_empty() => {
                return Err(JournalError::BadId { id: stored.id.clone(), why: ANOTHER });
            }
            rows => rows.map_err(|error| self.failed(error))?,
        };
        let mark = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?, unsigned(row.try_get(2)?)));
        rows.iter().map(mark).collect::<Result<_, postgres::Error>>().map_err(|error| self.failed(error))
    }

    fn write(&mut self, id: &str, trials: &[TrialRecord]) -> Result<u64, JournalError> {
        let batch = Batch::of(trials)?;
        let (trials, details) = (batch.trials, &batch.details);
        let column = |of: &dyn Fn(&TrialRecord) -> i64| trials.iter().map(of).collect::<Vec<i64>>();
        let numbers: Vec<TrialId> = trials.iter().map(|trial| trial.id).collect();
        let phases: Vec<&str> = trials.iter().map(|trial| phase_name(trial.spec.phase)).collect();
        let statuses: Vec<&str> = trials.iter().map(|trial| ended(trial.outcome.status).name()).collect();
        let texts =
            |of: for<'d> fn(&'d super::trials::Detail) -> &'d str| details.iter().map(of).collect::<Vec<&str>>();
        let measured: Vec<Option<&str>> = details.iter().map(|detail| detail.measures.as_deref()).collect();
        let scores: Vec<Option<f64>> = trials.iter().map(|trial| trial.outcome.measures.score).collect();
        let samples = |of: fn(&TrialRecord) -> &Vec<Sample>| -> Vec<Option<Vec<u8>>> {
            trials
                .iter()
                .map(|trial| Some(of(trial)).filter(|all| !all.is_empty()).map(|all| encode_samples(all)))
                .collect()
        };
        let deadline = |trial: &TrialRecord| i64::try_from(trial.spec.deadline.as_micros()).unwrap_or(i64::MAX);
        let parameters: [TypedValue<'_>; 25] = [
            (&id, Type::TEXT),
            (&numbers, Type::INT8_ARRAY),
            (&phases, Type::TEXT_ARRAY),
            (&column(&|trial| trial.spec.round.into()), Type::INT8_ARRAY),
            (&column(&|trial| trial.spec.order.into()), Type::INT8_ARRAY),
            (&column(&|trial| signed(trial.spec.arm as u64)), Type::INT8_ARRAY),
            (&statuses, Type::TEXT_ARRAY),
            (&column(&|trial| trial.started_unix_us), Type::INT8_ARRAY),
            (&column(&|trial| signed(trial.outcome.elapsed_us)), Type::INT8_ARRAY),
            (&column(&|trial| signed(trial.outcome.bytes)), Type::INT8_ARRAY),
            (&texts(|detail| &detail.asked), Type::TEXT_ARRAY),
            (&texts(|detail| &detail.workload), Type::TEXT_ARRAY),
            (&column(&deadline), Type::INT8_ARRAY),
            (&column(&|trial| trial.spec.seed as i64), Type::INT8_ARRAY),
            (&texts(|detail| &detail.granted), Type::TEXT_ARRAY),
            (&texts(|detail| &detail.scopes), Type::TEXT_ARRAY),
            (&texts(|detail| &detail.observed), Type::TEXT_ARRAY),
            (&column(&|trial| signed(trial.outcome.limits.busy_us)), Type::INT8_ARRAY),
            (&column(&|trial| signed(trial.outcome.limits.rwnd_limited_us)), Type::INT8_ARRAY),
            (&column(&|trial| signed(trial.outcome.limits.sndbuf_limited_us)), Type::INT8_ARRAY),
            (&texts(|detail| &detail.notes), Type::TEXT_ARRAY),
            (&scores, Type::FLOAT8_ARRAY),
            (&measured, Type::TEXT_ARRAY),
            (&samples(|trial| &trial.outcome.sender), Type::BYTEA_ARRAY),
            (&samples(|trial| &trial.outcome.receiver), Type::BYTEA_ARRAY),
        ];
        let sql = "SELECT fleet_push_trials($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, \
                   $18, $19, $20, $21, $22, $23, $24, $25)";
        self.one::<i64>(sql, &parameters).map(unsigned)
    }

    fn end(&mut self, stored: &StoredExperiment) -> Result<bool, JournalError> {
        if stored.state == State::Running {
            return Ok(false);
        }
        let end = End::of(stored.state, stored.ended_unix_us, stored.verdict.as_ref())?;
        let parameters: [TypedValue<'_>; 9] = [
            (&stored.id, Type::TEXT),
            (&end.state.name(), Type::TEXT),
            (&end.ended_unix_us, Type::INT8),
            (&end.verdict, Type::TEXT),
            (&end.summary.kind, Type::TEXT),
            (&end.summary.action, Type::TEXT),
            (&end.summary.answer, Type::TEXT),
            (&end.summary.setting, Type::TEXT),
            (&end.summary.change_bp, Type::INT8),
        ];
        self.one("SELECT fleet_push_end($1, $2, $3, $4, $5, $6, $7, $8, $9)", &parameters)
    }
}
