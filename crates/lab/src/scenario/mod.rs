//! Paths as people write them: TOML with the text grammar of `wt-units`, checked field by field.
//!
//! A mistake is reported with file, line, field and the allowed range. [`presets`] holds the shipped ones.

/// Scenarios that are put together from values.
mod builder;
/// Links that name what they join, put in order.
mod chain;
/// Stages in words.
mod describe;
/// What happens once in a trial.
mod disturb;
/// From a scenario to the stages of `wt-link`, and what follows from its figures.
mod facts;
/// Middleboxes and hosts on the way.
mod hop;
/// What fields may be.
mod limits;
/// What a radio carries, and how long it takes.
mod radio;
/// The tables of single stages as they are written.
mod raw;
/// Reading and checking.
mod read;
/// What sends in a direction.
mod sending;
/// From those tables to stages.
mod stages;
/// Values that know where they stand.
mod value;

/// The shipped scenarios.
pub mod presets;

pub use builder::{DirectionBuilder, InvalidScenario, LinkBuilder, Radio, ScenarioBuilder};
pub use describe::DescribedStage;
pub use disturb::Disturbance;
pub use facts::FullSize;
pub use hop::{BlockedTraffic, EcnTreatment, Hop, HopDirection, HopIcmp, MiddleHost, MssClamp, StrippedOption};
pub use read::ScenarioError;

use std::time::Duration;
use wt_units::{BitsPerSecond, Bytes, Ratio};
use wt_wire::Framing;

/// Two hosts and the links between them.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// How it is called: the file's name without its ending.
    pub name: String,
    /// In one line.
    pub title: String,
    /// Where its figures come from.
    pub source: String,
    /// MTU of the client's device, bytes.
    pub client_mtu: u32,
    /// MTU of the server's device, bytes.
    pub server_mtu: u32,
    /// The links, the first one at the client. Between each two stands a router.
    pub links: Vec<Link>,
}

/// One link with its two directions.
#[derive(Debug, Clone, PartialEq)]
pub struct Link {
    /// How it is called.
    pub name: String,
    /// What stands in front of it, as seen from the client: nothing but a router, unless this says more.
    pub hop: Hop,
    /// The longest IP packet it takes, bytes.
    pub mtu: Bytes,
    /// Whether who stands before it tells the sender of longer packets, or swallows them: a black hole.
    pub icmp: bool,
    /// What its framing makes of an IP packet, and how that was written.
    pub framing: Framing,
    /// As written.
    pub framing_name: String,
    /// Whether both directions share one medium by CSMA/CD.
    pub half_duplex: bool,
    /// From the server to the client.
    pub down: Direction,
    /// From the client to the server.
    pub up: Direction,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct Direction {
    /// Of the bits on the wire.
    pub rate: BitsPerSecond,
    /// Propagation.
    pub delay: Duration,
    /// Standard deviation of a normal jitter on top, without reordering; zero for none.
    pub jitter: Duration,
    /// How much waits at most.
    pub queue: QueueBound,
    /// How many packets are lost.
    pub loss: Ratio,
    /// Which packets are lost.
    pub loss_by: LossBy,
    /// What sends instead of a drop-tail queue at a constant rate, if something else does; `rate` is then the most it
    /// can do in the long run.
    pub line: Option<wt_link::StageConfig>,
    /// Further stages before it.
    pub before: Vec<wt_link::StageConfig>,
    /// Further stages behind the delay.
    pub after: Vec<wt_link::StageConfig>,
}

/// The bound of a drop-tail queue, of the bytes of IP packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueueBound {
    /// So many bytes.
    Bytes(Bytes),
    /// So many packets.
    Packets(u32),
}

/// Which packets a direction loses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LossBy {
    /// Each one independently.
    #[default]
    Random,
    /// By the index of the data packet, the same ones in every trial with the same seed.
    Index,
}

#[cfg(test)]
mod tests;
