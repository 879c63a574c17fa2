//! Workloads: the server and the clients that move the bytes, and what TCP said meanwhile.
//!
//! The receiver is the master of the clock: it counts what arrived until the time was up or the last byte came, checked
//! byte by byte. What the sender handed to its kernel is never a measure.
#![forbid(unsafe_code)]

/// How much several connections may move together.
mod allowance;
/// One trial's connection from the client's end.
mod client;
/// A connection of commands beside that of the payload.
mod control;
/// Which protocol an address is spoken to in.
mod dispatch;
/// Why a transfer couldn't begin, or not go on.
mod error;
/// Files of HTTP servers that aren't ours.
mod fetch;
/// Files of FTP servers.
mod ftp;
/// Plain HTTP for programs that aren't ours.
mod http;
/// Whether payload is what it was.
mod intact;
/// iperf3 servers.
mod iperf3;
/// What is asked of a peer, and what came of it.
mod job;
/// Pages: objects over several connections.
pub mod page;
/// The bytes that are sent, and the check that they arrived.
mod pattern;
/// Connections for HTTP/2.
mod polled;
/// The request at the head of a connection.
mod proto;
/// `TCP_INFO` over time.
mod sample;
/// Our own peer for everybody who has its key.
mod serve;
/// The peer within the lab: many connections, one report for each.
mod server;
/// What keeps a receiver from doing what it was granted.
mod strain;
/// TLS trust anchors.
mod tls;
/// Sending and receiving as fast as it goes.
mod transfer;
/// Fair scheduling of transfers.
mod turns;
/// A connection on which nothing waits for too long.
mod wire;
/// Workloads beyond a single transfer.
pub mod work;

/// What is fed with random bytes.
#[cfg(any(fuzzing, test))]
pub mod fuzzing;

pub use client::{Connection, download, upload, would_grant};
pub use dispatch::{bring, fetch, work_at};
pub use error::{FetchError, LoadError};
pub use fetch::USER_AGENT;
pub use intact::Reference;
pub use job::{Fetch, FetchOutcome, PeerReport};
pub use proto::{Request, RequestError, SenderOptions};
pub use sample::{Listener, listen};
pub use serve::{KeyError, NO_GREETING, Quota, Serve, ServeConfig, SharedKey, greeting};
pub use server::{Server, ServerConfig};
pub use strain::{ReceiverState, Strain};
pub use tls::{ServerTls, Tls, TlsError};
pub use transfer::{EndReport, Finish};
pub use wt_units::{Scheme, Url, UrlError};
