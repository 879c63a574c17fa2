//! The fleet as its owner sees it: who is in it, what is to be measured, how it stands.

use crate::address::StoreAddress;
use crate::client::{Client, said};
use crate::rollout::Rollout;
use crate::turns::{TurnError, Turns};
use crate::{PgJournal, store};
use postgres::types::{ToSql, Type};
use std::time::Duration;
use wt_journal::JournalError;

/// The role that may call an agent's functions; each agent is a member.
pub const AGENT_ROLE: &str = "windtunnel_agent";
/// "Wtnl", under which programs that make the functions wait for each other.
const LOCK: i64 = 0x5774_6e6c;

/// What an agent may call.
const FUNCTIONS: &str = "ask_turn, keep_turn, end_turn, fleet_hello, fleet_next, fleet_keep, fleet_end, fleet_push_begin, \
                         fleet_push_trials, fleet_push_end, fleet_rollout_due, fleet_rollout_tasks, fleet_rollout_said, \
                         fleet_id";

/// What a role may do, or is, that an agent's isn't; nothing where it is no more than an agent's.
///
/// # Source
/// PostgreSQL 15, "pg_shdepend": `o` is an owner, `a` who is named in an object's access list, of all databases of a server.
const OTHER_RIGHTS: &str = "SELECT CASE \
     WHEN r.rolname IN (session_user, current_user) THEN 'it is the one with which you are connected' \
     WHEN r.rolsuper THEN 'it is a superuser' \
     WHEN r.rolcreaterole OR r.rolcreatedb OR r.rolreplication OR r.rolbypassrls \
       THEN 'it may create roles or databases, replicate, or pass over row security' \
     WHEN EXISTS (SELECT FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid \
       WHERE m.member = r.oid AND g.rolname <> $2) THEN 'it is a member of other roles' \
     WHEN EXISTS (SELECT FROM pg_shdepend d WHERE d.refclassid = 'pg_authid'::regclass AND d.refobjid = r.oid \
       AND d.deptype IN ('o', 'a')) THEN 'it owns something on this server, or has rights of its own' \
     WHEN NOT r.rolcanlogin THEN 'it may not log in' END FROM pg_roles r WHERE r.rolname = $1";

/// The owner's connection to a fleet's server.
pub struct FleetAdmin {
    pub(crate) client: Client,
    pub(crate) place: String,
}

impl std::fmt::Debug for FleetAdmin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FleetAdmin").field("place", &self.place).finish_non_exhaustive()
    }
}

/// Why it can't be done.
#[derive(Debug, thiserror::Error)]
pub enum FleetError {
    /// The server can't be reached.
    #[error("{place}: {why}")]
    Unreachable {
        /// Its address, without a password.
        place: String,
        /// What the system or the server says.
        why: String,
    },
    /// The database has no fleet.
    #[error("{place} has no fleet yet, or one of an older program")]
    NoFleet {
        /// Its address, without a password.
        place: String,
    },
    /// The server refuses.
    #[error("{place}: {why}")]
    Refused {
        /// Its address, without a password.
        place: String,
        /// What it says.
        why: String,
    },
    /// A mesh names who isn't in the fleet.
    #[error("no agent of the fleet is called {agent}")]
    NoSuchAgent {
        /// The name.
        agent: String,
    },
    /// A host would get the role of somebody else.
    #[error("the role {agent} is there already and is no agent's: {why}")]
    RoleOfOthers {
        /// The name.
        agent: String,
        /// What it is besides.
        why: String,
    },
    /// The tables of the journal can't be made.
    #[error(transparent)]
    Journal(#[from] JournalError),
}

/// A job as it is written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Who measures.
    pub agent: String,
    /// To what.
    pub target: String,
    /// How, as JSON.
    pub spec: String,
    /// What nobody else may use meanwhile.
    pub links: Vec<String>,
    /// How often; nothing means once.
    pub every: Option<Duration>,
    /// It begins at a random time within so long.
    pub spread: Duration,
}

/// An agent as it stands.
#[derive(Debug, Clone, PartialEq, serde::Serialize, utoipa::ToSchema)]
pub struct AgentLine {
    /// Its name.
    pub agent: String,
    /// How long ago it was heard of, seconds; nothing means never.
    pub seen_s: Option<f64>,
    /// Its version of the program.
    pub version: String,
    /// Its wall clock less the server's, seconds; right to within a round trip.
    pub skew_s: Option<f64>,
    /// Experiments that aren't here yet.
    pub outbox: i64,
}

/// A job as it stands.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, utoipa::ToSchema)]
pub struct JobLine {
    /// The mesh that it belongs to.
    pub mesh: String,
    /// Who measures.
    pub agent: String,
    /// To what.
    pub target: String,
    /// `waiting`, `running`, `done`, `refused`, `failed` or `stopped`.
    pub state: String,
    /// In how long it is due, seconds; of one that waits.
    pub due_s: Option<f64>,
    /// Which time it is, from 1.
    pub run: i64,
    /// Why it was refused, failed or waits.
    pub reason: String,
    /// The newest experiment.
    pub experiment: Option<String>,
    /// What its verdict is called: `faster`, `none`.
    pub verdict: Option<String>,
    /// What its verdict says to do: `set`, `keep`, `undecided`, `failed`.
    pub action: Option<String>,
    /// Its verdict's first line.
    pub answer: Option<String>,
    /// What it recommends to set.
    pub setting: Option<String>,
    /// What that changes, in hundredths of a percent; negative where the figure gets smaller.
    pub change_bp: Option<i64>,
    /// How long ago it ended, seconds.
    pub age_s: Option<f64>,
}

/// A turn that somebody has or waits for.
#[derive(Debug, Clone, PartialEq, serde::Serialize, utoipa::ToSchema)]
pub struct TurnLine {
    /// Who.
    pub agent: String,
    /// Whether it has it.
    pub granted: bool,
    /// For what alone.
    pub alone: Vec<String>,
    /// For what with others.
    pub shared: Vec<String>,
    /// Since when it has it or waits, seconds.
    pub since_s: f64,
}

/// A fleet as it stands.
#[derive(Debug, Clone, Default, PartialEq, serde::Serialize, utoipa::ToSchema)]
pub struct FleetState {
    /// Who is in it.
    pub agents: Vec<AgentLine>,
    /// What is measured.
    pub jobs: Vec<JobLine>,
    /// Who has or waits for which turn.
    pub turns: Vec<TurnLine>,
    /// Changes of settings on their way, the newest first.
    pub rollouts: Vec<Rollout>,
}

impl FleetAdmin {
    /// Makes all that a fleet needs in a database, or brings it up to date: the journal, turns, jobs, and the role of agents.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn install(address: &StoreAddress) -> Result<(), FleetError> {
        drop(PgJournal::open(address, "")?);
        Turns::install(address).map_err(|error| match error {
            TurnError::Unreachable(why) => FleetError::Unreachable { place: address.to_string(), why },
            TurnError::Refused(why) => FleetError::Refused { place: address.to_string(), why },
        })?;
        let mut admin = Self::open(address)?;
        let place = admin.place.clone();
        let whole = (|| {
            let mut transaction = admin.client.transaction()?;
            transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)])?;
            let row = transaction.query_typed_one("SELECT quote_ident(current_schema())", &[])?;
            let schema: String = row.try_get(0)?;
            for sql in [include_str!("migrations/fleet.sql"), include_str!("migrations/rollouts.sql")] {
                let sql = sql.replace("SCHEMA.", &format!("{schema}."));
                transaction
                    .batch_execute(&sql.replace("search_path = SCHEMA,", &format!("search_path = {schema},")))?;
            }
            let there = "SELECT count(*) FROM pg_roles WHERE rolname = $1";
            let count: i64 = transaction.query_typed_one(there, &[(&AGENT_ROLE, Type::TEXT)])?.try_get(0)?;
            if count == 0 {
                transaction.batch_execute(&format!("CREATE ROLE {AGENT_ROLE} NOLOGIN"))?;
            }
            transaction.batch_execute(&format!(
                "GRANT USAGE ON SCHEMA {schema} TO {AGENT_ROLE}; GRANT EXECUTE ON FUNCTION {FUNCTIONS} TO {AGENT_ROLE}"
            ))?;
            transaction.commit()
        })();
        whole.map_err(|error: postgres::Error| failed(&place, &error))
    }

    /// Connects to a fleet that was made.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn connect(address: &StoreAddress) -> Result<Self, FleetError> {
        let mut admin = Self::open(address)?;
        let sql = "SELECT to_regclass('fleet_rollouts') IS NOT NULL";
        let row = admin.client.query_typed_one(sql, &[]).map_err(|error| failed(&admin.place, &error))?;
        let is_there: bool = row.try_get(0).map_err(|error| failed(&admin.place, &error))?;
        if is_there { Ok(admin) } else { Err(FleetError::NoFleet { place: admin.place }) }
    }

    fn open(address: &StoreAddress) -> Result<Self, FleetError> {
        let place = address.to_string();
        match address.connect() {
            Ok(client) => Ok(Self { client, place }),
            Err(why) => Err(FleetError::Unreachable { place, why }),
        }
    }

    /// Takes a host into the fleet: a role of that name, which may log in and call an agent's functions. Whether it is new. A role that
    /// is there already is taken where it may do nothing else: whoever has the host's certificate comes in as this role.
    ///
    /// # Errors
    /// [`FleetError`]; [`FleetError::RoleOfOthers`] leaves all as it is.
    pub fn add(&mut self, agent: &str) -> Result<bool, FleetError> {
        let place = self.place.clone();
        let mut of_others = None;
        let whole = (|| {
            let mut transaction = self.client.transaction()?;
            let row = transaction.query_typed_one(
                "SELECT quote_ident($1), EXISTS (SELECT FROM pg_roles WHERE rolname = $1), \
                 EXISTS (SELECT FROM fleet_agents WHERE agent = $1)",
                &[(&agent, Type::TEXT)],
            )?;
            let (role, is_there, is_agent): (String, bool, bool) = (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
            if !is_there {
                transaction.batch_execute(&format!("CREATE ROLE {role} LOGIN"))?;
            } else if !is_agent {
                let rights = [(&agent as &(dyn ToSql + Sync), Type::TEXT), (&AGENT_ROLE, Type::TEXT)];
                of_others = transaction.query_typed_one(OTHER_RIGHTS, &rights)?.try_get(0)?;
                if of_others.is_some() {
                    return Ok(false);
                }
            }
            transaction.batch_execute(&format!("GRANT {AGENT_ROLE} TO {role}"))?;
            let insert = "INSERT INTO fleet_agents (agent) VALUES ($1) ON CONFLICT DO NOTHING";
            let new = transaction.execute_typed(insert, &[(&agent, Type::TEXT)])?;
            transaction.commit()?;
            Ok(new > 0)
        })();
        let new = whole.map_err(|error: postgres::Error| failed(&place, &error))?;
        of_others.map_or(Ok(new), |why| Err(FleetError::RoleOfOthers { agent: agent.to_owned(), why }))
    }

    /// Makes a mesh what is said now: new jobs are due at a random time within their spread, those that are gone are stopped, those
    /// that ended or are to measure otherwise begin anew, and whoever is at one of these is told to end. How many jobs it has.
    ///
    /// # Errors
    /// [`FleetError::NoSuchAgent`] leaves all as it is.
    pub fn run(&mut self, mesh: &str, jobs: &[NewJob]) -> Result<usize, FleetError> {
        let place = self.place.clone();
        let mut unknown = None;
        let whole = (|| {
            let mut transaction = self.client.transaction()?;
            let periods =
                "SELECT EXISTS (SELECT FROM pg_proc WHERE proname = 'fleet_period' AND pg_function_is_visible(oid))";
            let upsert = upsert_job(transaction.query_typed_one(periods, &[])?.try_get(0)?);
            let mut kept: Vec<i64> = Vec::new();
            for job in jobs {
                let known = "SELECT FROM fleet_agents WHERE agent = $1";
                if transaction.query_typed(known, &[(&job.agent, Type::TEXT)])?.is_empty() {
                    unknown = Some(job.agent.clone());
                    return Ok(());
                }
                let row = transaction.query_typed_one(
                    &upsert,
                    &[
                        (&mesh, Type::TEXT),
                        (&job.agent, Type::TEXT),
                        (&job.target, Type::TEXT),
                        (&job.spec, Type::TEXT),
                        (&job.links, Type::TEXT_ARRAY),
                        (&job.every.map(millis), Type::INT8),
                        (&millis(job.spread), Type::INT8),
                    ],
                )?;
                kept.push(row.try_get(0)?);
            }
            transaction.execute_typed(
                "UPDATE fleet_jobs SET state = 'stopped', changed = now(), reason = 'the mesh has it no more' \
                 WHERE mesh = $1 AND job <> ALL($2) AND state IN ('waiting', 'running')",
                &[(&mesh, Type::TEXT), (&kept, Type::INT8_ARRAY)],
            )?;
            transaction.commit()
        })();
        whole.map_err(|error: postgres::Error| failed(&place, &error))?;
        unknown.map_or(Ok(jobs.len()), |agent| Err(FleetError::NoSuchAgent { agent }))
    }

    /// Whether all who are to measure are in the fleet; writes nothing.
    ///
    /// # Errors
    /// [`FleetError::NoSuchAgent`] names the first who isn't.
    pub fn knows(&mut self, jobs: &[NewJob]) -> Result<(), FleetError> {
        let agents: Vec<&str> = jobs.iter().map(|job| job.agent.as_str()).collect();
        let sql = "SELECT a FROM unnest($1) WITH ORDINALITY AS of_mesh (a, nth) \
                   WHERE a NOT IN (SELECT agent FROM fleet_agents) ORDER BY nth LIMIT 1";
        let unknown = self.client.query_typed(sql, &[(&agents, Type::TEXT_ARRAY)]);
        match unknown.map_err(|error| failed(&self.place, &error))?.first() {
            None => Ok(()),
            Some(row) => {
                Err(FleetError::NoSuchAgent { agent: row.try_get(0).map_err(|error| failed(&self.place, &error))? })
            }
        }
    }

    /// Stops what waits or runs of a mesh, or of all; agents under way end with what they have. How many jobs.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn stop(&mut self, mesh: Option<&str>) -> Result<u64, FleetError> {
        let sql = "UPDATE fleet_jobs SET state = 'stopped', changed = now(), reason = 'stopped' \
                   WHERE ($1 IS NULL OR mesh = $1) AND state IN ('waiting', 'running')";
        self.client.execute_typed(sql, &[(&mesh, Type::TEXT)]).map_err(|error| failed(&self.place, &error))
    }

    /// The names of all meshes that were ever written down, sorted.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn meshes(&mut self) -> Result<Vec<String>, FleetError> {
        let rows = self.client.query_typed("SELECT DISTINCT mesh FROM fleet_jobs ORDER BY mesh", &[]);
        let rows = rows.map_err(|error| failed(&self.place, &error))?;
        let names = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, postgres::Error>>();
        names.map_err(|error| failed(&self.place, &error))
    }

    /// How all stands.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn state(&mut self) -> Result<FleetState, FleetError> {
        let place = self.place.clone();
        let mut rollouts = self.rollouts(None)?;
        rollouts.iter_mut().for_each(|change| change.state = change.standing().to_owned());
        let seconds = |of: &str| format!("extract(epoch FROM {of})::float8");
        let whole = (|| {
            let sql = format!(
                "SELECT agent, {}, version, skew_us / 1e6::float8, outbox FROM fleet_agents ORDER BY agent",
                seconds("clock_timestamp() - seen")
            );
            let rows = self.client.query_typed(&sql, &[])?;
            let agents = rows.iter().map(|row| {
                Ok(AgentLine {
                    agent: row.try_get(0)?,
                    seen_s: row.try_get(1)?,
                    version: row.try_get(2)?,
                    skew_s: row.try_get(3)?,
                    outbox: row.try_get(4)?,
                })
            });
            let agents = agents.collect::<Result<_, postgres::Error>>()?;
            let sql = format!(
                "SELECT mesh, j.agent, j.target, j.state, CASE WHEN j.state = 'waiting' THEN {} END, run, reason, \
                 newest.experiment, e.verdict_kind, e.action, e.answer, e.setting, e.change_bp, \
                 extract(epoch FROM clock_timestamp())::float8 - e.ended_us / 1e6::float8 \
                 FROM fleet_jobs j LEFT JOIN LATERAL (SELECT experiment FROM fleet_runs r WHERE r.job = j.job \
                 ORDER BY r.run DESC LIMIT 1) newest ON true LEFT JOIN experiments e ON e.id = newest.experiment \
                 ORDER BY mesh, j.agent, j.target",
                seconds("next - clock_timestamp()")
            );
            let rows = self.client.query_typed(&sql, &[])?;
            let jobs = rows.iter().map(|row| {
                Ok(JobLine {
                    mesh: row.try_get(0)?,
                    agent: row.try_get(1)?,
                    target: row.try_get(2)?,
                    state: row.try_get(3)?,
                    due_s: row.try_get(4)?,
                    run: row.try_get(5)?,
                    reason: row.try_get(6)?,
                    experiment: row.try_get(7)?,
                    verdict: row.try_get(8)?,
                    action: row.try_get(9)?,
                    answer: row.try_get(10)?,
                    setting: row.try_get(11)?,
                    change_bp: row.try_get(12)?,
                    age_s: row.try_get(13)?,
                })
            });
            let jobs = jobs.collect::<Result<_, postgres::Error>>()?;
            let sql = format!(
                "SELECT agent, granted IS NOT NULL, alone, shared, {} FROM turns WHERE until > clock_timestamp() \
                 ORDER BY granted IS NULL, ticket",
                seconds("clock_timestamp() - coalesce(granted, asked)")
            );
            let rows = self.client.query_typed(&sql, &[])?;
            let turns = rows.iter().map(|row| {
                Ok(TurnLine {
                    agent: row.try_get(0)?,
                    granted: row.try_get(1)?,
                    alone: row.try_get(2)?,
                    shared: row.try_get(3)?,
                    since_s: row.try_get(4)?,
                })
            });
            let turns = turns.collect::<Result<_, postgres::Error>>()?;
            Ok(FleetState { agents, jobs, turns, rollouts })
        })();
        whole.map_err(|error: postgres::Error| failed(&place, &error))
    }

    /// The experiments of a mesh, the newest of each job first; of all runs, or of the newest only.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn experiments(&mut self, mesh: &str, all: bool) -> Result<Vec<String>, FleetError> {
        let sql = "SELECT experiment FROM (SELECT DISTINCT ON (r.job, CASE WHEN $2 THEN r.run END) r.experiment, j.agent, \
                   j.target, r.run FROM fleet_runs r JOIN fleet_jobs j USING (job) WHERE j.mesh = $1 \
                   ORDER BY r.job, CASE WHEN $2 THEN r.run END, r.run DESC) newest ORDER BY agent, target, run";
        let rows = self.client.query_typed(sql, &[(&mesh, Type::TEXT), (&all, Type::BOOL)]);
        let rows = rows.map_err(|error| failed(&self.place, &error))?;
        let ids = rows.iter().map(|row| row.try_get(0)).collect::<Result<_, postgres::Error>>();
        ids.map_err(|error| failed(&self.place, &error))
    }
}

/// A run of a job that has an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunLine {
    /// Who measured.
    pub agent: String,
    /// To what.
    pub target: String,
    /// Its experiment.
    pub experiment: String,
    /// The agent's wall clock less the server's, µs, as it was seen last.
    pub skew_us: i64,
}

impl FleetAdmin {
    /// Every run of a mesh.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn runs(&mut self, mesh: &str) -> Result<Vec<RunLine>, FleetError> {
        let sql = "SELECT agent, target, experiment, coalesce(skew_us, 0) FROM fleet_runs r JOIN fleet_jobs j USING (job) \
                   JOIN fleet_agents a USING (agent) WHERE mesh = $1 ORDER BY agent, target, r.run";
        let rows = self.client.query_typed(sql, &[(&mesh, Type::TEXT)]).map_err(|error| failed(&self.place, &error))?;
        let of = |row: &postgres::Row| {
            Ok(RunLine {
                agent: row.try_get(0)?,
                target: row.try_get(1)?,
                experiment: row.try_get(2)?,
                skew_us: row.try_get(3)?,
            })
        };
        rows.iter().map(of).collect::<Result<_, postgres::Error>>().map_err(|error| failed(&self.place, &error))
    }
}

/// What writes a job down, or makes a known one what is said now. When it is due stays only where it measures the same and isn't later than
/// it is to run again. A server that an older program brought up to date has no periods of meshes.
fn upsert_job(has_periods: bool) -> String {
    // Nothing of `every` is no time either: then it isn't so.
    let stays = "j.state IN ('running', 'waiting') AND j.spec = excluded.spec AND (j.every_ms IS NOT DISTINCT FROM excluded.every_ms \
                 OR j.next <= now() + (excluded.every_ms + excluded.spread_ms) * interval '1 millisecond')";
    let (column, value, update) = match has_periods {
        true => (
            ", period",
            ", fleet_period($1, $6, now())",
            format!(
                "period = CASE WHEN {stays} THEN CASE WHEN j.every_ms IS DISTINCT FROM excluded.every_ms \
                 THEN fleet_period($1, $6, coalesce(j.period, now())) ELSE j.period END ELSE excluded.period END, "
            ),
        ),
        false => ("", "", String::new()),
    };
    format!(
        "INSERT INTO fleet_jobs AS j (mesh, agent, target, spec, links, every_ms, spread_ms, state, next{column}) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, 'waiting', now() + random() * $7 * interval '1 millisecond'{value}) \
         ON CONFLICT (mesh, agent, target) DO UPDATE SET spec = excluded.spec, links = excluded.links, \
         every_ms = excluded.every_ms, spread_ms = excluded.spread_ms, changed = now(), {update}\
         run = j.run + CASE WHEN j.state IN ('waiting', 'running', 'refused') AND j.spec = excluded.spec THEN 0 \
         ELSE 1 END, \
         token = CASE WHEN j.state = 'running' AND j.spec = excluded.spec THEN j.token END, \
         state = CASE WHEN j.state = 'running' AND j.spec = excluded.spec THEN 'running' ELSE 'waiting' END, \
         next = CASE WHEN {stays} THEN j.next ELSE excluded.next END, \
         reason = CASE WHEN j.state IN ('running', 'waiting') AND j.spec = excluded.spec THEN j.reason ELSE '' END RETURNING job"
    )
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

pub(crate) fn failed(place: &str, error: &postgres::Error) -> FleetError {
    let (place, why) = (place.to_owned(), said(error));
    if store::is_gone(error) { FleetError::Unreachable { place, why } } else { FleetError::Refused { place, why } }
}
