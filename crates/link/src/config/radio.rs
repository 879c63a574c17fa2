use crate::{QueueBound, WireLen};
use std::time::Duration;
use wt_units::{BitsPerSecond, Bytes, Ratio};

/// A radio link that sends several packets per access to the medium: Wi-Fi, LTE, 5G.
///
/// Before each exchange there is a fixed cost, then everything that waits by then (within bounds) goes out in one
/// piece, and arrives at its end. Packets that fail are repeated in a later exchange; those behind them arrive when they
/// do, since the receiver keeps the order. With slots an exchange ends within a packet where no more fits, and the rest of
/// it goes first in the next one; it arrives with its last byte.
///
/// What this leaves out: the other direction and other stations, whose airtime must be part of `access`; rates that
/// follow the signal (add a trace); the headers that tell pieces of packets apart.
#[derive(Debug, Clone, PartialEq)]
pub struct AirtimeConfig {
    /// What a packet occupies within an exchange.
    pub framing: WireLen,
    /// Bits per second while sending.
    pub rate: BitsPerSecond,
    /// What an exchange costs besides the bits: contention, preamble, gaps, acknowledgement.
    pub access: Duration,
    /// Up to how much more of it, evenly at random: back-off.
    pub backoff: Duration,
    /// Exchanges begin at multiples of this, and carry pieces of packets, too: 1 ms for LTE's subframes; `None`: at any
    /// time, and whole packets.
    pub slot: Option<Duration>,
    /// The most packets of an exchange: 64 for a Wi-Fi block acknowledgement.
    pub max_packets: u32,
    /// The most bytes of an exchange, framing included; without slots one packet always goes.
    pub max_bytes: Bytes,
    /// How many packets, or pieces of them, fail at each attempt.
    pub failure: Ratio,
    /// After so many repeats of it, or of a piece, a packet is given up.
    pub max_retries: u8,
    /// How long it takes until a failed packet can be repeated: 8 ms for LTE's HARQ, none for Wi-Fi.
    pub retry_after: Duration,
    /// How much may wait.
    pub bound: QueueBound,
}

/// Fewer acknowledgements: of several that follow each other only the last goes on.
///
/// # Source
/// RFC 3449, section 5.2.1, "ACK Filtering".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThinningConfig {
    /// Of so many pure acknowledgements of a flow the last one goes on.
    pub every: u32,
    /// But none is held for longer.
    pub hold: Duration,
}

/// A policer: what comes faster than a token bucket allows is dropped, and nothing is delayed.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicerConfig {
    /// Which bytes count.
    pub framing: WireLen,
    /// How fast the bucket fills.
    pub rate: BitsPerSecond,
    /// How much it holds.
    pub burst: Bytes,
}
