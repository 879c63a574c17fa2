//! What a simulation is asked to do, and why it may refuse.
//!
//! What this leaves out: programs that do several things at once on one connection, such as HTTP/2; it matters for pages there.
//!
//! | kernel | RFC | here |
//! |---|---|---|
//! | what programs do with sockets | – | [`Job`], [`FlowSpec`], [`RelaySpec`] |

use crate::cc;
use crate::tcp::StackConfig;
use std::time::Duration;
use wt_link::ConfigError;
use wt_trial::{Amount, Direction, Repeat};

/// Flows of one simulation at most.
pub const MAX_FLOWS: usize = 10_000;

/// Why a simulation can't be set up.
#[derive(Debug, thiserror::Error)]
pub enum SimError {
    /// The path is invalid.
    #[error(transparent)]
    Path(#[from] ConfigError),
    /// A congestion control that the model hasn't.
    #[error("the model has no congestion control \"{name}\"; it has {}", cc::NAMES.join(", "))]
    UnknownCongestionControl {
        /// What was asked for.
        name: String,
    },
    /// More flows than the model runs.
    #[error("{asked} flows are more than the {MAX_FLOWS} that the model runs at once")]
    TooManyFlows {
        /// How many were asked for.
        asked: usize,
    },
    /// A workload that the model doesn't run.
    #[error(
        "the model has no workload \"{name}\"; it has bulk, soak, duplex, transactions, bursts, stream, page, competing and load"
    )]
    Workload {
        /// Its name.
        name: &'static str,
    },
    /// An MTU that TCP doesn't fit into.
    #[error("an MTU of {mtu} bytes leaves TCP no room: at least 68 are needed (RFC 791)")]
    MtuTooSmall {
        /// What was asked for.
        mtu: u32,
    },
}

/// A request and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes of the request.
    pub ask: u64,
    /// Bytes of the answer.
    pub answer: u64,
    /// How long the client waits before it asks.
    pub pause: Duration,
}

/// What a connection is asked to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Job {
    /// One transfer as fast as it goes.
    Bulk {
        /// Which way.
        direction: Direction,
        /// How much.
        amount: Amount,
    },
    /// One exchange after the other.
    Exchanges(Vec<Exchange>),
    /// The same exchanges again and again: transactions, or bursts.
    Repeated {
        /// One turn.
        turn: Vec<Exchange>,
        /// Between two turns.
        pause: Duration,
        /// How many turns. One that has begun is brought to its end, and one is always done.
        amount: Repeat,
    },
    /// Takes exchanges from the pool of the page with this number.
    Page(usize),
    /// Messages at a steady pace, after the client has asked for them.
    Stream {
        /// Which way.
        direction: Direction,
        /// Bytes of the request.
        ask: u64,
        /// Bytes of each message.
        message: u64,
        /// From one message to the next.
        interval: Duration,
        /// How many.
        count: u32,
    },
}

/// A connection between the ends of a path.
#[derive(Debug, Clone, PartialEq)]
pub struct FlowSpec {
    /// At host A.
    pub client: StackConfig,
    /// At host B.
    pub server: StackConfig,
    /// What to do.
    pub job: Job,
    /// When the client begins to connect.
    pub start: Duration,
}

/// Two connections and the relay between them, which all data passes: a client, a relay, an origin.
#[derive(Debug, Clone, PartialEq)]
pub struct RelaySpec {
    /// The client.
    pub client: StackConfig,
    /// The relay towards the client.
    pub near: StackConfig,
    /// The relay towards the origin.
    pub far: StackConfig,
    /// The origin.
    pub origin: StackConfig,
    /// Bytes of its answer.
    pub answer: u64,
    /// Whether the relay connects to the origin only when it is asked, as a proxy without idle connections, or when the
    /// client connects to it.
    pub on_demand: bool,
}
