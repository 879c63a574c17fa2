//! Framing arithmetic, and views of the packets on the wire.
//!
//! [`Framing`] answers what an IP packet costs on a line: with its tunnels, link headers, padding, gaps and cells.
//!
//! Nothing here reads a clock, opens a file or a socket, and no bytes whatever make it panic.
#![forbid(unsafe_code)]

/// What a packet costs on the wire.
mod framing;

pub use framing::{
    Account, Coding, Framing, FramingError, Group, Headers, IpVersion, Linear, Part, Piece, SplitError, Transport, Word,
};
