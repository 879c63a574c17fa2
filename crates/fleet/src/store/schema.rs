use super::database_error;
use crate::client::Client;
use postgres::Row;
use postgres::types::Type;
use std::path::Path;
use wt_journal::JournalError;

/// "Wtnl", under which programs that make or change the tables wait for each other.
const LOCK: i64 = 0x5774_6e6c;

/// The migrations with their numbers, which are those of the journal in SQLite. None is ever changed or taken out.
const MIGRATIONS: [(i64, &str); 2] =
    [(3, include_str!("../migrations/0003_journal.sql")), (4, include_str!("../migrations/0004_views.sql"))];

/// The oldest schema whose tables this program reads as they are: what came later are views, which it doesn't read itself.
const OLDEST_READ: i64 = 3;

/// The newest schema.
pub(super) const NEWEST: i64 = MIGRATIONS[MIGRATIONS.len() - 1].0;

/// Makes the tables where there are none, or brings those of an older program up to date. Anything else is left untouched.
pub(super) fn bring_up_to_date(client: &mut Client, place: &Path) -> Result<(), JournalError> {
    let fail = |e: postgres::Error| database_error(place, &e);
    if check(client, place)? == NEWEST {
        return Ok(());
    }
    let mut transaction = client.long_transaction().map_err(fail)?;
    transaction.query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)]).map_err(fail)?;
    // Another program may have been faster.
    let found = check(&mut transaction, place)?;
    for (number, migration) in MIGRATIONS.iter().filter(|(number, _)| *number > found) {
        transaction.batch_execute(migration).map_err(fail)?;
        transaction.batch_execute("DELETE FROM windtunnel_schema").map_err(fail)?;
        let note = "INSERT INTO windtunnel_schema VALUES ($1)";
        transaction.execute_typed(note, &[(number, Type::INT8)]).map_err(fail)?;
    }
    transaction.commit().map_err(fail)
}

/// Says what is wrong with a database that isn't a journal whose tables are those of the newest schema.
pub(super) fn must_be_readable(client: &mut Client, place: &Path) -> Result<(), JournalError> {
    let path = place.to_owned();
    match check(client, place)? {
        OLDEST_READ.. => Ok(()),
        0 => {
            let why = "it has no tables of a journal yet; windtunnel journal push makes them".to_owned();
            Err(JournalError::NotAJournal { path, why })
        }
        found => {
            let why = format!(
                "its schema is {found}, this program's is {NEWEST}: windtunnel journal push brings it up to date"
            );
            Err(JournalError::Other { path, why })
        }
    }
}

/// The schema of the database, 0 if it has no tables of ours.
fn check(client: &mut Client, place: &Path) -> Result<i64, JournalError> {
    let fail = |e: postgres::Error| database_error(place, &e);
    let path = || place.to_owned();
    // Not by to_regclass(), which may still know from before the lock that there was none.
    let sql = "SELECT coalesce(bool_or(relname = 'windtunnel_schema'), false), count(*) > 0 FROM pg_class \
               WHERE relname IN ('windtunnel_schema', 'experiments', 'trials') AND pg_table_is_visible(oid)";
    let row = first(client, sql, place)?;
    let (ours, others): (bool, bool) = (row.try_get(0).map_err(fail)?, row.try_get(1).map_err(fail)?);
    match (ours, others) {
        (false, false) => return Ok(0),
        (false, true) => {
            let why = "it has tables of these names that are another program's".to_owned();
            return Err(JournalError::NotAJournal { path: path(), why });
        }
        (true, _) => {}
    }
    let version = first(client, "SELECT coalesce(max(version), 0) FROM windtunnel_schema", place)?;
    match version.try_get::<_, i64>(0).map_err(fail)? {
        version if version > NEWEST => Err(JournalError::Newer { path: path(), found: version, known: NEWEST }),
        version if version <= 0 => Err(JournalError::Damaged { path: path(), what: format!("schema {version}") }),
        version => Ok(version),
    }
}

/// The one row that a statement gives.
fn first(client: &mut Client, sql: &str, place: &Path) -> Result<Row, JournalError> {
    let mut rows = client.query_typed(sql, &[]).map_err(|e| database_error(place, &e))?;
    rows.pop()
        .ok_or_else(|| JournalError::Damaged { path: place.to_owned(), what: "a statement gives no row".to_owned() })
}
