use crate::SynOptions;
use wt_wire::TcpFlags;

/// A segment of the server.
#[derive(Debug, Clone, Copy)]
pub struct Incoming<'a> {
    /// Its sequence number.
    pub seq: u32,
    /// What it acknowledges.
    pub ack: u32,
    /// Its control bits.
    pub flags: TcpFlags,
    /// Its window, unscaled.
    pub window: u16,
    /// What a SYN-ACK says.
    pub options: Option<SynOptions>,
    /// The server's clock, if it sends timestamps.
    pub timestamp: Option<u32>,
    /// Its payload, or the beginning of it.
    pub payload: &'a [u8],
    /// How long the whole payload is, bytes.
    pub len: u32,
    /// The payload of each segment of which the device has merged it, bytes.
    pub unit: Option<u16>,
}

/// A segment to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// Its sequence number.
    pub seq: u32,
    /// What it acknowledges.
    pub ack: u32,
    /// Its control bits.
    pub flags: TcpFlags,
    /// Its window, unscaled.
    pub window: u16,
    /// Its options, a multiple of four bytes.
    pub options: Vec<u8>,
    /// Its payload.
    pub payload: Vec<u8>,
}

/// What the SYN-ACK says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SynAck {
    /// Its options.
    pub options: SynOptions,
    /// Its window, bytes.
    pub window: u16,
}
