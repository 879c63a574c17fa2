//! TCP as a state machine: one [`Endpoint`] is one end of one connection, sender and receiver alike.
//!
//! What this leaves out: closing (a connection ends with its workload), urgent data, keepalive, Fast Open, MD5, and the
//! memory pressure of a whole host. It matters where connections are torn down and set up at a high rate.
//!
//! The modules are cut as Linux cuts its files: `output` is tcp_output.c, `ack`, `sacks`, `recovery` and `receiver` are
//! tcp_input.c, `rack` is tcp_recovery.c, `rate` is tcp_rate.c, `timers` is tcp_timer.c.

/// Acknowledgements, from their arrival to what they let go.
mod ack;
/// Settings of a stack.
mod config;
/// Three packets before the first byte.
mod handshake;
/// Sending.
mod output;
/// The path's MTU, black holes.
mod pmtu;
/// Loss by time.
mod rack;
/// Delivery rate.
mod rate;
/// Receiving, and when to acknowledge.
mod receiver;
/// What happens after a loss.
mod recovery;
/// Round-trip time and the retransmission time-out.
mod rtt;
/// Selective acknowledgement at the sender.
mod sacks;
/// What was sent and isn't acknowledged.
mod scoreboard;
/// What an endpoint knows.
mod state;
/// What happens when nothing arrives.
mod timers;
/// The receive window and its tuning.
mod window;

pub use config::{BufferTuning, StackConfig};
pub(crate) use state::{Endpoint, Out};
