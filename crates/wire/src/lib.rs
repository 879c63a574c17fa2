//! Framing arithmetic, and views of the packets on the wire.
//!
//! - [`Framing`] answers what an IP packet costs on a line: with its tunnels, link headers, padding, gaps and cells.
//! - [`overhead`] answers all of that at once, as an object.
//! - [`IpView`] and the other views read packets without allocating; [`time_exceeded`], [`frag_needed`] and
//!   [`packet_too_big`] make a router's answers; [`fragment_ipv4`] splits what is too long; [`PacketEdit`] changes headers
//!   as middleboxes do.
//! - [`PcapngWriter`] writes packets so that Wireshark and tcpdump read them; [`CaptureReader`] reads what those write.
//!
//! Nothing here reads a clock, opens a file or a socket, and no bytes whatever make it panic.
#![forbid(unsafe_code)]

/// Files of captured packets.
mod capture;
/// What a packet costs on the wire.
mod framing;
/// What the layers below TCP cost, as a question and an answer.
mod overhead;
/// Packets as views over bytes.
mod packet;
/// Captured packets as a file that other tools read.
mod pcapng;

pub use capture::{
    CaptureError, CaptureInterface, CaptureReader, CapturedRecord, LinkLayer, ip_behind_ethertype, is_capture,
};
pub use framing::{
    Account, Coding, Framing, FramingError, Group, Headers, IpVersion, IpVersionError, Linear, Part, Piece, SplitError,
    Transport, Word,
};
pub use overhead::{
    GoodputRate, MtuRange, OptionsLen, OverheadAnswer, OverheadError, OverheadLayer, OverheadProto, OverheadRequest,
    OverheadWord, OverheadWords, PacketLen, PayloadLen, QuantityError, SweepStep, WireRate, overhead, overhead_words,
};
pub use packet::{
    Checksum, Ecn, FragmentError, Icmpv4Kind, Icmpv4View, Icmpv6Kind, Icmpv6View, IpView, Ipv4View, Ipv6View,
    PacketEdit, Protocol, SackBlocks, Seq, TcpFlags, TcpOption, TcpOptions, TcpView, TransportChecksum, UdpView,
    UpperLayer, ViewError, decrement_ttl, echo_reply, fill_icmp_checksum, frag_needed, fragment_ipv4, mark_ce,
    packet_too_big, port_unreachable, time_exceeded, updated_checksum,
};
pub use pcapng::{CapturedPacket, Direction, Interface, LinkType, PcapngWriter};
