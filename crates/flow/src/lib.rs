//! TCP connections as somebody sees them who only listens: what they suffer from, and which end is to blame.
//!
//! [`Tracker`] takes packets one by one, from a file or a device, and gives an [`Analysis`]. It may stand anywhere on the
//! path: what an end knew when it sent something is computed from the time that packets take from here to it and back.
//!
//! [`analyse_capture`] does so with a whole capture.
//!
//! # What this leaves out
//! Reassembly of fragments (they are counted), tunnels, and the payload. A stream of which some packets weren't captured
//! shows gaps; they are told apart from losses only as far as ACKs tell.
//!
//! Pure: no clock, no file, no socket; memory is bounded, whatever comes.
#![forbid(unsafe_code)]

/// Which end is to blame.
mod blame;
/// From a capture to what it tells.
mod capture;
/// Times of packets.
mod clock;
/// One connection.
mod connection;
/// Packets that were captured twice.
mod copies;
/// What is counted of one direction.
mod counts;
/// Which packets are looked at.
mod filter;
/// What is found, and who is to blame for it.
mod finding;
/// One direction of it.
mod half;
/// Packets in the order of their times.
mod order;
/// Windows over time.
mod over_time;
/// From bytes to segments.
mod packet;
/// What is told.
mod report;
/// Quantiles and courses of durations.
mod samples;
/// How what an end sends flows.
mod supply;
/// All connections.
mod table;
#[cfg(test)]
mod tests;

pub use capture::{CaptureAnswer, CaptureKind, CaptureRequest, CaptureSource, SourceInterface, analyse_capture};
pub use connection::{End, Shares};
pub use counts::{Counts, Offer};
pub use filter::{Filter, FilterError};
pub use finding::{Blame, Culprit, Finding, Reason};
pub use report::{
    AckDelay, Analysis, BlackHole, ConnectionReport, EndReport, Handshake, Packets, Position, State, Windows,
};
pub use samples::Spread;
pub use supply::SupplyShares;
pub use table::{Bounds, Tracker};
