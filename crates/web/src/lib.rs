//! Windtunnel's HTTP API under `/api/v1`, and the page that uses it.
//!
//! The server computes nothing itself: it runs the program's own commands as child processes and hands on the very
//! objects that they print with `--json`. So an answer over HTTP can't differ from one on the command line, and whatever
//! happens to one command never hurts the server. Arguments are made from typed, validated requests; no shell is involved
//! and no request can name a flag.
//!
//! Safe by default: it listens on loopback, and elsewhere only with TLS and a password; it checks the Host header (DNS rebinding) and the Origin of every request
//! that does something, and changes this host only for those who know the token that it was started with.

/// What the API offers, and its OpenAPI document.
mod api;
/// Typed requests, and the arguments made from them.
mod ask;
/// Running the program's own commands.
mod command;
/// The password, and who guesses at it.
mod door;
/// Paths drawn from links.
mod drawn;
/// What goes wrong, as the API says it.
mod error;
/// Who may ask for what: Host, Origin, token, headers.
mod guard;
/// Probes, and workloads in a lab.
mod jobs;
/// The embedded page.
mod page;
/// Operations on what takes longer than a request.
mod running;
/// What runs, and its events.
mod runs;
/// What others must know: never kept, only compared.
mod secret;
/// Listening, and ending everything in time.
mod server;
/// The server's end of TLS.
mod tls;

pub use api::openapi_json;
pub use secret::{NoRandom, Secret};
pub use server::{Config, Ready, ServeError, is_open, serve};
pub use tls::TlsError;
