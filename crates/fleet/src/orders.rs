//! What a fleet's owner orders of hosts on the way of a change.

use crate::admin::{FleetAdmin, FleetError, failed};
use crate::rollout::{Rollout, RolloutHost, RolloutOrder, RolloutPhase};
use postgres::types::Type;
use std::time::Duration;

impl FleetAdmin {
    /// Writes a change down, nothing of which is ordered yet.
    ///
    /// # Errors
    /// [`FleetError::NoSuchAgent`]; [`FleetError::Refused`] where there is one of that name.
    pub fn begin_rollout(&mut self, name: &str, spec: &str, hosts: &[(String, u32)]) -> Result<(), FleetError> {
        let place = self.place.clone();
        let mut unknown = None;
        let whole = (|| {
            let mut transaction = self.client.transaction()?;
            let row = transaction.query_typed_one(
                "INSERT INTO fleet_rollouts (name, spec) VALUES ($1, $2) RETURNING rollout",
                &[(&name, Type::TEXT), (&spec, Type::TEXT)],
            )?;
            let number: i64 = row.try_get(0)?;
            for (agent, wave) in hosts {
                let known = "SELECT FROM fleet_agents WHERE agent = $1";
                if transaction.query_typed(known, &[(agent, Type::TEXT)])?.is_empty() {
                    unknown = Some(agent.clone());
                    return Ok(());
                }
                transaction.execute_typed(
                    "INSERT INTO fleet_rollout_hosts (rollout, agent, wave) VALUES ($1, $2, $3)",
                    &[(&number, Type::INT8), (agent, Type::TEXT), (&i64::from(*wave), Type::INT8)],
                )?;
            }
            transaction.commit()
        })();
        whole.map_err(|error: postgres::Error| failed(&place, &error))?;
        unknown.map_or(Ok(()), |agent| Err(FleetError::NoSuchAgent { agent }))
    }

    /// Changes, all or the one of a name, the newest first, as they stand.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn rollouts(&mut self, name: Option<&str>) -> Result<Vec<Rollout>, FleetError> {
        let place = self.place.clone();
        let whole = (|| {
            let rows = self.client.query_typed(
                "SELECT r.rollout, name, state, r.reason, spec, agent, wave, ordered, phase, h.reason, \
                 extract(epoch FROM clock_timestamp() - asked)::float8, extract(epoch FROM clock_timestamp() - since)::float8 \
                 FROM fleet_rollouts r JOIN fleet_rollout_hosts h USING (rollout) WHERE $1 IS NULL OR name = $1 \
                 ORDER BY r.rollout DESC, wave, agent",
                &[(&name, Type::TEXT)],
            )?;
            let mut all: Vec<Rollout> = Vec::new();
            for row in &rows {
                let number: i64 = row.try_get(0)?;
                if all.last().is_none_or(|last| last.number != number) {
                    all.push(Rollout {
                        number,
                        name: row.try_get(1)?,
                        state: row.try_get(2)?,
                        reason: row.try_get(3)?,
                        spec: row.try_get(4)?,
                        hosts: Vec::new(),
                    });
                }
                let ago = |column: usize| -> Result<Duration, postgres::Error> {
                    Ok(Duration::try_from_secs_f64(row.try_get(column)?).unwrap_or_default())
                };
                let host = RolloutHost {
                    agent: row.try_get(5)?,
                    wave: u32::try_from(row.try_get::<_, i64>(6)?).unwrap_or(u32::MAX),
                    // The table's own check has no other words.
                    ordered: RolloutOrder::of(row.try_get(7)?).unwrap_or(RolloutOrder::Nothing),
                    phase: RolloutPhase::of(row.try_get(8)?).unwrap_or(RolloutPhase::Applying),
                    reason: row.try_get(9)?,
                    asked: ago(10)?,
                    since: ago(11)?,
                };
                if let Some(last) = all.last_mut() {
                    last.hosts.push(host);
                }
            }
            Ok(all)
        })();
        whole.map_err(|error: postgres::Error| failed(&place, &error))
    }

    /// Orders something of hosts.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn order(&mut self, rollout: i64, ordered: RolloutOrder, agents: &[String]) -> Result<(), FleetError> {
        let sql = "UPDATE fleet_rollout_hosts SET ordered = $2, asked = clock_timestamp() \
                   WHERE rollout = $1 AND agent = ANY($3) AND ordered <> $2";
        let parameters: [(&(dyn postgres::types::ToSql + Sync), Type); 3] =
            [(&rollout, Type::INT8), (&ordered.name(), Type::TEXT), (&agents, Type::TEXT_ARRAY)];
        self.client.execute_typed(sql, &parameters).map(drop).map_err(|error| failed(&self.place, &error))
    }

    /// Says how far a change is as a whole: `running`, `done`, `undoing` or `undone`. Whether it was in one of the states `from`: if it
    /// wasn't, somebody else wants something else of it, and it stays as it is.
    ///
    /// # Errors
    /// [`FleetError`].
    pub fn set_rollout(&mut self, rollout: i64, from: &[&str], state: &str, reason: &str) -> Result<bool, FleetError> {
        let sql = "UPDATE fleet_rollouts SET state = $2, reason = $3 WHERE rollout = $1 AND state = ANY($4)";
        let parameters: [(&(dyn postgres::types::ToSql + Sync), Type); 4] =
            [(&rollout, Type::INT8), (&state, Type::TEXT), (&reason, Type::TEXT), (&from, Type::TEXT_ARRAY)];
        self.client
            .execute_typed(sql, &parameters)
            .map(|changed| changed > 0)
            .map_err(|error| failed(&self.place, &error))
    }
}
