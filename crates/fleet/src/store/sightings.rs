use super::PgJournal;
use postgres::types::Type;
use wt_journal::columns::{from_json, to_json};
use wt_journal::{JournalError, Sighting};

impl PgJournal {
    pub(super) fn write_sightings(&mut self, kind: &str, seen: &[Sighting]) -> Result<(), JournalError> {
        let texts: Result<Vec<String>, _> = seen.iter().map(|one| to_json("what was seen", &one.found)).collect();
        let texts = texts?;
        let hosts: Vec<&str> = seen.iter().map(|one| one.host.as_str()).collect();
        let times: Vec<i64> = seen.iter().map(|one| one.at_unix_us).collect();
        self.transact(|t| {
            t.execute_typed(
                "INSERT INTO sightings (kind, host, at_us, found) SELECT $1, host, at_us, found::json \
                 FROM unnest($2, $3, $4) WITH ORDINALITY AS new (host, at_us, found, place) ORDER BY place",
                &[
                    (&kind, Type::TEXT),
                    (&hosts, Type::TEXT_ARRAY),
                    (&times, Type::INT8_ARRAY),
                    (&texts, Type::TEXT_ARRAY),
                ],
            )?;
            Ok(())
        })
    }

    pub(super) fn read_sightings(
        &self,
        kind: &str,
        host: Option<&str>,
        most: usize,
    ) -> Result<Vec<Sighting>, JournalError> {
        self.read(|| {
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let rows = self.rows_of(
                "SELECT host, at_us, found::text FROM sightings WHERE kind = $1 AND ($2 IS NULL OR host = $2) \
                 ORDER BY at_us DESC, id DESC LIMIT $3",
                &[(&kind, Type::TEXT), (&host, Type::TEXT), (&most, Type::INT8)],
            )?;
            let mut all = Vec::new();
            for row in rows.iter().rev() {
                let (host, at_unix_us): (String, i64) = (row.try_get(0)?, row.try_get(1)?);
                let found = from_json("what was seen", row.try_get(2)?).map_err(|bad| format!("{host}: {bad}"))?;
                all.push(Sighting { host, at_unix_us, found });
            }
            Ok(all)
        })
    }
}
