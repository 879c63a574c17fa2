//! What a server's first window is: how much it sends before anything is acknowledged.
//!
//! A [`Connection`] is a TCP of ours that acknowledges nothing. A [`Host`] gets two of them with different MSS, and more
//! only where those don't agree. A [`Survey`] asks many hosts at a polite pace. [`decide`] says what may be claimed.

/// How fast, and how polite.
mod config;
/// A connection that acknowledges nothing.
mod connection;
/// What may be claimed.
mod decide;
/// What a kernel's own connection shows.
mod delayed;
/// What arrives before anything is acknowledged.
mod flight;
/// The probes of one host.
mod host;
/// How fast hosts are begun.
mod pace;
/// What a server holds back.
mod push;
/// Hosts that wait for their turn.
mod queue;
/// What a connection has shown.
mod reading;
/// What comes and goes.
mod segment;
/// What is said to the other end.
mod session;
/// Many hosts.
mod survey;

pub use config::{SurveyConfig, is_private};
pub use connection::{Connection, Setup};
pub use decide::{Decision, DecisionReason, Limit, Verdict, decide};
pub use delayed::{Counts, DelayedAnswer, OpenedConnection};
pub use flight::{ArrivalKind, Flight};
pub use host::{Goal, Host, HostResult, MOST_PROBES, Opener, Send};
pub use pace::WaitingPlace;
pub use queue::Queue;
pub use reading::{End, Reading};
pub use segment::{Incoming, Outgoing, SynAck};
pub use session::{HEAD, Head, Plain, Session, request};
pub use survey::{PORTS, Survey};
