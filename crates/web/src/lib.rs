//! Windtunnel's HTTP API under `/api/v1`, and the page that uses it.
//!
//! What is computed, read or looked up is answered in this process by the calls of `wt-api`. What must be alone (namespaces,
//! root, long jobs) is the same call in a child process, `windtunnel worker`, which takes one request and gives events and the
//! answer. So an answer over HTTP can't differ from one on the command line, and whatever happens to a worker never hurts
//! the server. Requests are typed and validated; no shell is involved, and no request can name a flag or a file.
//!
//! Safe by default: it listens on loopback, and elsewhere only with TLS and a password; it checks the Host header (DNS rebinding) and the Origin of every request
//! that does something; it starts and stops experiments only for its owner, and changes this host only for those who know the token that
//! it was started with. Places, turns and memory are shared among those who ask, so that nobody keeps others out.

/// What the API offers, and its OpenAPI document.
mod api;
/// Texts of requests, checked.
mod checked;
/// Congestion controls and stacks, side by side over a path of the lab.
mod comparisons;
/// The password, and who guesses at it.
mod door;
/// Paths drawn from links.
mod drawn;
/// What goes wrong, as the API says it.
mod error;
/// Experiments to start.
mod experiment;
/// Files that are sent or given: reports, captures, tables.
mod files;
/// What many hosts measure.
mod fleet;
/// Who may ask for what: Host, Origin, token, headers.
mod guard;
/// Who asks: an address and an account; and whose accounts are the owner's.
mod guest;
/// What is answered in this process.
mod inside;
/// Congestion controls and stacks.
mod inventory;
/// Probes, and workloads in a lab.
mod jobs;
/// What of a shipped path a drawn one keeps.
mod kept;
/// Transfers that are logged.
mod logged;
/// The names under which the server may be asked for.
mod names;
/// The embedded page.
mod page;
/// Whom a request comes from.
mod peer;
/// Places of connections, and who makes room.
mod places;
/// Queries and bodies, and the library's requests made from them.
mod queries;
/// Answers that depend on the question alone, kept.
mod remembered;
mod reported;
/// Memory of answers that aren't read yet.
mod room;
/// Operations on what takes longer than a request.
mod running;
/// What runs, and its events.
mod runs;
/// What monitoring reads.
mod scraped;
/// What others must know: never kept, only compared.
mod secret;
/// Listening, and ending everything in time.
mod server;
/// Shipped paths, ready to be changed.
mod shipped;
/// What every request can see.
mod state;
/// The server's end of TLS.
mod tls;
/// Experiments on this server's own connections.
mod traffic;
/// Turns to compute.
mod turns;
/// Connections whose other end must take what it asked for.
mod watched;
/// Requests that need a process of their own.
mod worker;

pub use api::openapi_json;
pub use secret::{NoRandom, Secret};
pub use server::{Config, Ready, ServeError, is_open, serve};
pub use tls::TlsError;
