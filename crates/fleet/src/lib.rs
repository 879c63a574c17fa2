//! One journal for many hosts: in PostgreSQL, and what is pushed to it.
//!
//! Trials are written to the local SQLite while they run and pushed as wholes afterwards ([`push`]); what reads a journal reads
//! either ([`PgJournal`] is a [`Journal`](wt_journal::Journal) too). [`Turns`] are leases on links and hosts that must not be measured at once.
#![forbid(unsafe_code)]

/// Where a journal in PostgreSQL is.
mod address;
/// The fleet as its owner sees it.
mod admin;
/// A connection that waits for nobody for ever.
mod client;
/// Which of a server's addresses answers.
mod dial;
/// A turn that is kept while something runs.
mod held;
/// What is ordered of hosts.
mod orders;
/// What goes from a local journal to the common one.
mod push;
/// Changes of settings on their way through the fleet.
mod rollout;
/// The journal in a database of PostgreSQL.
mod store;
/// TLS to the server.
mod tls;
/// Turns on what hosts share.
mod turns;

pub use address::{AddressError, StoreAddress};
pub use admin::{AGENT_ROLE, AgentLine, FleetAdmin, FleetError, FleetState, JobLine, NewJob, RunLine, TurnLine};
pub use held::{HeldTurn, TurnTaker, TurnWaits};
pub use push::{PushError, PushLine, PushReport, PushState, push, push_as_agent, status};
pub use rollout::{Rollout, RolloutHost, RolloutOrder, RolloutPhase, RolloutTask};
pub use store::{AgentState, AgentStore, FleetIdentity, FleetJob, JobEnd, PgJournal, PushedTrials};
pub use turns::{Turn, TurnAnswer, TurnError, TurnTicket, TurnWish, Turns};
