//! Packets as views over bytes: checked once when the view is made, read without allocating, never panicking.
//!
//! # What this leaves out
//! Reassembly, jumbograms (RFC 2675), IPv4 source routes, and every option that neither TCP tuning nor path probing
//! reads; unknown ones are handed out as bytes.

/// Internet checksums.
mod checksum;
/// Changing headers as middleboxes do.
mod edit;
/// IPv4 fragmentation.
mod fragment;
/// ICMP for IPv4 and for IPv6.
mod icmp;
/// ICMP errors that routers send.
mod icmp_error;
/// Either version of IP.
mod ip;
/// IPv4.
mod ipv4;
/// IPv6.
mod ipv6;
/// TCP's options.
mod options;
/// TCP.
mod tcp;
/// UDP.
mod udp;

pub use checksum::{Checksum, updated_checksum};
pub use edit::{PacketEdit, TransportChecksum, fill_icmp_checksum};
pub use fragment::{FragmentError, fragment_ipv4};
pub use icmp::{Icmpv4Kind, Icmpv4View, Icmpv6Kind, Icmpv6View};
pub use icmp_error::{echo_reply, frag_needed, packet_too_big, port_unreachable, time_exceeded};
pub use ip::{Ecn, IpView, Protocol, decrement_ttl, mark_ce};
pub use ipv4::Ipv4View;
pub use ipv6::{Ipv6View, UpperLayer};
pub use options::{SackBlocks, TcpOption, TcpOptions};
pub use tcp::{Seq, TcpFlags, TcpView};
pub use udp::UdpView;

/// Why bytes are not what a view was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// They end too early.
    #[error("{what} needs {needed} bytes, there are {available}")]
    Truncated {
        /// What was being read.
        what: &'static str,
        /// How many bytes it needs.
        needed: usize,
        /// How many there are.
        available: usize,
    },
    /// The version field says something else.
    #[error("{what} of version {version}")]
    Version {
        /// What was being read.
        what: &'static str,
        /// The version field.
        version: u8,
    },
    /// A length field contradicts itself or another one.
    #[error("{what} has an impossible length field of {value}")]
    Length {
        /// What was being read.
        what: &'static str,
        /// The value of the field.
        value: usize,
    },
}

/// The first `needed` bytes, or an error that says what is missing.
fn at_least(bytes: &[u8], needed: usize, what: &'static str) -> Result<(), ViewError> {
    if bytes.len() < needed {
        return Err(ViewError::Truncated { what, needed, available: bytes.len() });
    }
    Ok(())
}

/// The big-endian 16 bits at an offset; zero beyond the end, which a checked view never reads.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).map_or(0, |b| u16::from_be_bytes([b[0], b[1]]))
}

/// The big-endian 32 bits at an offset; zero beyond the end, which a checked view never reads.
fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).map_or(0, |b| u32::from_be_bytes([b[0], b[1], b[2], b[3]]))
}

/// N bytes at an offset; zeros beyond the end, which a checked view never reads.
fn addr_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    bytes.get(at..at + N).and_then(|b| b.try_into().ok()).unwrap_or([0; N])
}

#[cfg(test)]
mod edit_tests;
#[cfg(test)]
mod tests;
