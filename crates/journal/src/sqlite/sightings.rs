//! What was seen of hosts.

use super::SqliteJournal;
use super::codec::{from_json, to_json};
use crate::{JournalError, Sighting};
use rusqlite::params;

impl SqliteJournal {
    pub(super) fn write_sightings(&mut self, kind: &str, seen: &[Sighting]) -> Result<(), JournalError> {
        let texts: Result<Vec<String>, _> = seen.iter().map(|one| to_json("what was seen", &one.found)).collect();
        let texts = texts?;
        self.transact(|t| {
            let mut insert = t.prepare("INSERT INTO sightings (kind, host, at_us, found) VALUES (?, ?, ?, ?)")?;
            for (one, text) in seen.iter().zip(&texts) {
                insert.execute(params![kind, one.host, one.at_unix_us, text])?;
            }
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
            let mut query = self.connection.prepare(
                "SELECT host, at_us, found FROM sightings WHERE kind = ?1 AND (?2 IS NULL OR host = ?2) \
                 ORDER BY at_us DESC, id DESC LIMIT ?3",
            )?;
            let most = i64::try_from(most).unwrap_or(i64::MAX);
            let mut rows = query.query(params![kind, host, most])?;
            let mut all = Vec::new();
            while let Some(row) = rows.next()? {
                let (host, at_unix_us): (String, i64) = (row.get(0)?, row.get(1)?);
                let found = from_json("what was seen", &row.get::<_, String>(2)?).map_err(|bad| bad.of(&host))?;
                all.push(Sighting { host, at_unix_us, found });
            }
            all.reverse();
            Ok(all)
        })
    }
}
