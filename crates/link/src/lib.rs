//! A path between two hosts as a chain of stages, without I/O and without a clock.
//!
//! A [`Pipe`] is one direction of one link: a list of stages that delay, drop, mark and reorder packets. A [`Path`] is a
//! chain of links, each with two pipes, or with a shared medium for which its two directions contend. The lab's engine
//! drives a path in real time, the simulator in virtual time, and both get the same events: every time is computed from
//! the packets' arrivals, never from the moment at which somebody asks.
//!
//! What this leaves out: fragmentation and ICMP (the engine sees the drop and acts), bits on the line (a packet is its
//! length), and routers' processing time (add a delay stage where it matters).
#![forbid(unsafe_code)]

/// What a path is made of.
mod config;
/// Seeded generators.
mod dice;
/// Lengths on the wire.
mod framing;
/// The stages of several links in one pipe.
mod lane;
/// The half-duplex shared medium.
mod medium;
/// Packets and what becomes of them.
mod packet;
/// A chain of links.
mod path;
/// One direction of a link.
mod pipe;
/// The stages themselves.
mod stage;
/// Counters.
mod stats;
/// Time.
mod time;
/// Traces of delivery opportunities.
mod trace;
/// What a configuration may say.
mod validate;

pub use config::{
    AirtimeConfig, CoDelConfig, Discipline, Distribution, FqCoDelConfig, JitterConfig, LinkConfig, LossConfig,
    ModemConfig, OutageConfig, PathConfig, PieConfig, PipeConfig, PolicerConfig, QueueBound, QueueConfig, QueueLayer,
    RateConfig, RedConfig, RetrainConfig, StageConfig, StepsConfig, ThinningConfig, TokenBucketConfig, TraceConfig,
};
pub use framing::WireLen;
pub use medium::MediumConfig;
pub use packet::{DropReason, Event, Packet, Side};
pub use path::{Path, PathEvent};
pub use pipe::{MAX_HELD, Pipe};
pub use stats::{LinkStats, MediumStats, PathStats, PipeStats, StageStats};
pub use time::Time;
pub use trace::{MAX_TRACE_BYTES, Trace, TraceError};
pub use validate::ConfigError;
