//! Turns on what hosts share: a link, a host, a server. One database grants them, by its own clock only.
//!
//! A turn is a lease on several named things at once: all of them or none. It is counted here from *before* the request left, so
//! that it ends here no later than there; whoever holds one ends its *transfer* before that, not only what it makes of it.
//!
//! What this leaves out: fencing. No path refuses the packets of a host whose turn is over. Its own kernel ends the process that sends
//! them (`held.rs`), also one that is stopped; a machine that sleeps through the end of its turn may send some before that.

use crate::address::StoreAddress;
use crate::client::{Client, said};
use postgres::types::Type;
use std::time::Duration;

/// "Wtnl", under which programs that make the functions wait for each other.
const LOCK: i64 = 0x5774_6e6c;

/// Why there is no turn.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TurnError {
    /// The server can't be reached; ask again later with the same ticket.
    #[error("turns can't be asked for: {0}")]
    Unreachable(String),
    /// The server refuses: no right, or a wish that is none.
    #[error("the server of turns refuses: {0}")]
    Refused(String),
}

/// What is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnWish {
    /// What nobody else may have meanwhile: `link:berlin`, `host:a`, `target:example.org`. Transfers want their links so.
    pub alone: Vec<String>,
    /// What others may have too, but nobody alone. Probes want their links so.
    pub shared: Vec<String>,
    /// For how long, 10 ms to 10 minutes; it can be kept longer.
    pub hold: Duration,
    /// After so long without a word the server forgets a ticket that waits: several times the time between two requests.
    pub patience: Duration,
}

/// A turn that is held.
#[derive(Debug, PartialEq, Eq)]
pub struct Turn {
    ticket: i64,
    ends: Duration,
}

impl Turn {
    /// When it ends, on the clock of whoever asked.
    #[must_use]
    pub fn ends(&self) -> Duration {
        self.ends
    }

    /// How long it lasts yet.
    #[must_use]
    pub fn left(&self, now: Duration) -> Duration {
        self.ends.saturating_sub(now)
    }
}

/// The place in the queue of one that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnTicket(i64);

/// What the server says.
#[derive(Debug, PartialEq, Eq)]
pub enum TurnAnswer {
    /// It is your turn.
    Granted(Turn),
    /// Ask again with this ticket.
    Waits {
        /// The ticket, which grows older.
        ticket: TurnTicket,
        /// How many turns and older tickets are in the way.
        ahead: u64,
    },
}

/// A connection to the server of turns.
pub struct Turns {
    client: Client,
}

impl std::fmt::Debug for Turns {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Turns").finish_non_exhaustive()
    }
}

impl Turns {
    /// Makes the tables and functions in the database's own schema, or brings them up to date: for its owner, once. Who is to take
    /// turns gets `GRANT EXECUTE ON FUNCTION ask_turn, keep_turn, end_turn TO role`, and needs no other right.
    ///
    /// # Errors
    /// [`TurnError`].
    pub fn install(address: &StoreAddress) -> Result<(), TurnError> {
        let mut client = address.connect().map_err(TurnError::Unreachable)?;
        let mut transaction = client.transaction().map_err(|error| refused(&error))?;
        transaction
            .query_typed("SELECT pg_advisory_xact_lock($1)", &[(&LOCK, Type::INT8)])
            .map_err(|error| refused(&error))?;
        let schema = transaction
            .query_typed_one("SELECT quote_ident(current_schema())", &[])
            .and_then(|row| row.try_get::<_, Option<String>>(0))
            .map_err(|error| refused(&error))?
            .ok_or_else(|| {
                TurnError::Refused("the search_path of this role names no schema that is there".to_owned())
            })?;
        let sql = include_str!("migrations/turns.sql").replace("SCHEMA.", &format!("{schema}."));
        let sql = sql.replace("search_path = SCHEMA,", &format!("search_path = {schema},"));
        transaction.batch_execute(&sql).and_then(|()| transaction.commit()).map_err(|error| refused(&error))
    }

    /// Connects.
    ///
    /// # Errors
    /// [`TurnError::Unreachable`].
    pub fn connect(address: &StoreAddress) -> Result<Self, TurnError> {
        Ok(Self { client: address.connect().map_err(TurnError::Unreachable)? })
    }

    /// Asks for a turn, with the ticket of the request before if there was one. `now` is what the caller's clock, one that goes on
    /// while the machine sleeps, says before this is called.
    ///
    /// # Errors
    /// [`TurnError`].
    pub fn ask(&mut self, wish: &TurnWish, ticket: Option<TurnTicket>, now: Duration) -> Result<TurnAnswer, TurnError> {
        let ticket = ticket.map(|ticket| ticket.0);
        let row = self
            .client
            .query_typed_one(
                "SELECT own_ticket, is_granted, place FROM ask_turn($1, $2, $3, $4, $5)",
                &[
                    (&ticket, Type::INT8),
                    (&wish.alone, Type::TEXT_ARRAY),
                    (&wish.shared, Type::TEXT_ARRAY),
                    (&millis(wish.hold), Type::INT8),
                    (&millis(wish.patience), Type::INT8),
                ],
            )
            .map_err(|error| refused(&error))?;
        let column = |error: postgres::Error| refused(&error);
        let ticket: i64 = row.try_get(0).map_err(column)?;
        if row.try_get(1).map_err(column)? {
            return Ok(TurnAnswer::Granted(Turn { ticket, ends: now + whole_millis(wish.hold) }));
        }
        let ahead: i64 = row.try_get(2).map_err(column)?;
        Ok(TurnAnswer::Waits { ticket: TurnTicket(ticket), ahead: ahead.unsigned_abs() })
    }

    /// Keeps a turn for so long from `now` on; whether it was still held. If it wasn't, it is over.
    ///
    /// # Errors
    /// [`TurnError`]; the turn then ends when it was to end.
    pub fn keep(&mut self, turn: &mut Turn, hold: Duration, now: Duration) -> Result<bool, TurnError> {
        let parameters = [(&turn.ticket as _, Type::INT8), (&millis(hold) as _, Type::INT8)];
        let held = self.yes("SELECT keep_turn($1, $2)", &parameters)?;
        turn.ends = if held { now + whole_millis(hold) } else { turn.ends.min(now) };
        Ok(held)
    }

    /// Gives a turn back; whether it was still held, so that nobody else can have had it meanwhile.
    ///
    /// # Errors
    /// [`TurnError`]; the server gives it to others when it ends.
    pub fn end(&mut self, turn: Turn) -> Result<bool, TurnError> {
        self.yes("SELECT end_turn($1)", &[(&turn.ticket as _, Type::INT8)])
    }

    /// Gives a ticket back that waits.
    ///
    /// # Errors
    /// [`TurnError`]; the server forgets it after its patience.
    pub fn give_up(&mut self, ticket: TurnTicket) -> Result<(), TurnError> {
        self.yes("SELECT end_turn($1)", &[(&ticket.0 as _, Type::INT8)]).map(drop)
    }

    fn yes(
        &mut self,
        sql: &str,
        parameters: &[(&(dyn postgres::types::ToSql + Sync), Type)],
    ) -> Result<bool, TurnError> {
        let row = self.client.query_typed_one(sql, parameters).and_then(|row| row.try_get(0));
        row.map_err(|error| refused(&error))
    }
}

/// In whole milliseconds, rounded down: what the server counts.
fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// The same as a time, so that both ends count alike.
fn whole_millis(time: Duration) -> Duration {
    Duration::from_millis(u64::try_from(time.as_millis()).unwrap_or(u64::MAX))
}

fn refused(error: &postgres::Error) -> TurnError {
    if crate::store::is_gone(error) { TurnError::Unreachable(said(error)) } else { TurnError::Refused(said(error)) }
}
