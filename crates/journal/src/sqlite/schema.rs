use super::database_error;
use crate::JournalError;
use rusqlite::{Connection, TransactionBehavior};
use std::path::Path;

/// "Wtnl": says to `file` and to us whose database it is.
pub(super) const APPLICATION_ID: i64 = 0x5774_6e6c;

/// The migrations in order. Number n leads from schema n − 1 to schema n; none is ever changed or taken out.
const MIGRATIONS: [&str; 4] = [
    include_str!("../migrations/0001_journal.sql"),
    include_str!("../migrations/0002_measures.sql"),
    include_str!("../migrations/0003_sightings.sql"),
    include_str!("../migrations/0004_views.sql"),
];

/// The schema that brought our views, which are the only ones a journal may have.
const VIEWS: i64 = 4;

/// The oldest schema whose tables this program reads as they are: what came later are views, which it doesn't read itself.
const OLDEST_READ: i64 = 3;

/// The newest schema.
pub(super) const NEWEST: i64 = MIGRATIONS.len() as i64;

/// Makes the tables of a new file, or brings those of an older program up to date. Anything else is left untouched.
pub(super) fn bring_up_to_date(connection: &mut Connection, path: &Path) -> Result<(), JournalError> {
    let fail = |e: rusqlite::Error| database_error(path, &e);
    // One transaction, so that a file which another program is just making isn't seen half made.
    let found = check(&*connection.transaction().map_err(fail)?, path)?;
    if found == NEWEST {
        return Ok(());
    }
    // Takes effect on an empty file only: lets pruning give space back without writing the whole file anew.
    connection.pragma_update(None, "auto_vacuum", "INCREMENTAL").map_err(fail)?;
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(fail)?;
    // Another program may have been faster.
    let found = check(&transaction, path)?;
    for (number, migration) in (1i64..).zip(MIGRATIONS).filter(|(number, _)| *number > found) {
        transaction.execute_batch(migration).map_err(fail)?;
        transaction.pragma_update(None, "user_version", number).map_err(fail)?;
    }
    transaction.pragma_update(None, "application_id", APPLICATION_ID).map_err(fail)?;
    transaction.commit().map_err(fail)
}

/// Says what is wrong with a file that isn't a journal whose tables are those of the newest schema.
pub(super) fn must_be_readable(connection: &Connection, path: &Path) -> Result<(), JournalError> {
    let found = check(connection, path)?;
    if found >= OLDEST_READ {
        return Ok(());
    }
    let why = format!("its schema is {found}, this program's is {NEWEST}: open it with windtunnel journal list first");
    Err(JournalError::Other { path: path.to_owned(), why })
}

/// The schema of the file, 0 if it is empty. To be called within a transaction.
fn check(connection: &Connection, path: &Path) -> Result<i64, JournalError> {
    let fail = |e: rusqlite::Error| database_error(path, &e);
    let pragma = |name| connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0)).map_err(fail);
    let (application, version) = (pragma("application_id")?, pragma("user_version")?);
    let foreign = |why: &str| Err(JournalError::NotAJournal { path: path.to_owned(), why: why.to_owned() });
    if application == APPLICATION_ID {
        return match version {
            1..=NEWEST => only_ours(connection, path, version).map(|()| version),
            _ if version > NEWEST => Err(JournalError::Newer { path: path.to_owned(), found: version, known: NEWEST }),
            _ => Err(JournalError::Damaged { path: path.to_owned(), what: format!("schema {version}") }),
        };
    }
    let tables: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0)).map_err(fail)?;
    match (application, version, tables) {
        (0, 0, 0) => Ok(0),
        (0, ..) => foreign("it is another program's database of SQLite"),
        _ => foreign("its application id is another program's"),
    }
}

/// Refuses a file of others that does more than hold rows: a view or a trigger is a program, which may never end, and so may
/// be what stands behind a virtual table. Our own views are told from others by every byte of their text.
fn only_ours(connection: &Connection, path: &Path, version: i64) -> Result<(), JournalError> {
    let fail = |e: rusqlite::Error| database_error(path, &e);
    let sql = "SELECT type, name, sql FROM sqlite_schema \
               WHERE type NOT IN ('table', 'index') OR sql LIKE 'create virtual %'";
    let mut query = connection.prepare(sql).map_err(fail)?;
    let mut rows = query.query([]).map_err(fail)?;
    while let Some(row) = rows.next().map_err(fail)? {
        let (kind, text) = (row.get::<_, String>(0).map_err(fail)?, row.get::<_, Option<String>>(2).map_err(fail)?);
        if kind == "view" && version >= VIEWS && text.is_some_and(|text| views().any(|view| view == text)) {
            continue;
        }
        let kind = if kind == "table" { "virtual table" } else { &kind };
        let name: String = row.get(1).map_err(fail)?;
        let why = format!("it has a {kind}, {name:?}, and a journal has tables and its own views only");
        return Err(JournalError::NotAJournal { path: path.to_owned(), why });
    }
    Ok(())
}

/// The text of each of our views, as the database keeps it.
pub(super) fn views() -> impl Iterator<Item = &'static str> {
    let statements = MIGRATIONS[VIEWS as usize - 1].split(';');
    statements.filter_map(|statement| statement.find("CREATE VIEW ").map(|at| statement[at..].trim_end()))
}
