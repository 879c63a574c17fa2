//! Probes as bytes, and answers read from bytes that anybody may have written.
//!
//! An answer is matched by what a router must quote, the first eight bytes after the IP header (RFC 792): the identifier
//! and number of an echo request, the ports and length of a datagram, the ports and sequence number of a segment.

use crate::{ProbeAnswer, Quote, SynOptions};
use std::net::IpAddr;
use wt_wire::{
    Checksum, Icmpv4Kind, Icmpv4View, Icmpv6Kind, Icmpv6View, IpView, Protocol, Seq, TcpFlags, TcpOption, TcpView,
    UdpView,
};

/// By what a probe is known again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Token {
    /// The number of an echo request.
    Echo(u16),
    /// The sequence number of a segment from this port.
    Tcp {
        /// Our port.
        port: u16,
        /// The sequence number.
        seq: u32,
    },
    /// The first two bytes of a datagram's payload.
    Number(u16),
    /// The length of a datagram's payload, from this port, where no more was quoted.
    Udp {
        /// Our port.
        port: u16,
        /// Bytes of payload.
        len: u16,
    },
}

/// What was heard, about which probe to whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedAnswer {
    /// Where the probe went.
    pub target: IpAddr,
    /// Which one it was.
    pub token: Token,
    /// What is said.
    pub said: ProbeAnswer,
}

/// An echo request of `len` bytes of ICMP. Its checksum is the same whatever the number, so that load balancers which
/// look at it see one flow, and another for every other flow.
///
/// # Source
/// Augustin et al., IMC 2006, for the constant checksum.
#[must_use]
pub fn echo_request(v6: bool, ident: u16, seq: u16, flow: u8, len: usize) -> Vec<u8> {
    let mut bytes = vec![0u8; len.max(8)];
    bytes[0] = if v6 { 128 } else { 8 };
    bytes[4..6].copy_from_slice(&ident.to_be_bytes());
    bytes[6..8].copy_from_slice(&seq.to_be_bytes());
    if let Some(balance) = bytes.get_mut(8..10) {
        balance.copy_from_slice(&(!seq).to_be_bytes());
    }
    if let Some(byte) = bytes.get_mut(11) {
        *byte = flow;
    }
    if !v6 {
        let sum = Checksum::new().with(&bytes).finish();
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// A TCP segment to make.
#[derive(Debug, Clone, Copy)]
pub struct Segment<'a> {
    /// From where and to where.
    pub addresses: (IpAddr, IpAddr),
    /// From which port and to which.
    pub ports: (u16, u16),
    /// The sequence number.
    pub seq: u32,
    /// The acknowledgement.
    pub ack: u32,
    /// The flags.
    pub flags: TcpFlags,
    /// The window, unscaled.
    pub window: u16,
    /// The options, a multiple of four bytes, at most 40.
    pub options: &'a [u8],
    /// Bytes of payload.
    pub payload_len: usize,
    /// What the payload begins with; the rest is zero.
    pub data: &'a [u8],
}

impl Segment<'_> {
    /// The TCP header with its checksum, and the payload.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let options = &self.options[..self.options.len().min(40) & !3];
        let header = 20 + options.len();
        let mut bytes = vec![0u8; header + self.payload_len];
        bytes[0..2].copy_from_slice(&self.ports.0.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.ports.1.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.seq.to_be_bytes());
        bytes[8..12].copy_from_slice(&self.ack.to_be_bytes());
        let offset = u16::try_from(header / 4).unwrap_or(5) << 12;
        bytes[12..14].copy_from_slice(&(offset | self.flags.0).to_be_bytes());
        bytes[14..16].copy_from_slice(&self.window.to_be_bytes());
        bytes[20..header].copy_from_slice(options);
        bytes[header..].iter_mut().zip(self.data).for_each(|(to, from)| *to = *from);
        let len = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
        let sum = Checksum::pseudo_header(self.addresses.0, self.addresses.1, 6, len).with(&bytes).finish();
        bytes[16..18].copy_from_slice(&sum.to_be_bytes());
        bytes
    }
}

/// The options of a SYN that opens a connection for old segments: MSS and SACK, and no timestamps, which would make
/// every segment longer.
#[must_use]
pub fn opening_options(mss: u16) -> Vec<u8> {
    let [high, low] = mss.to_be_bytes();
    vec![2, 4, high, low, 1, 1, 4, 2]
}

/// The options of a SYN that shows what routers change: MSS, SACK, timestamps, window scale and a request for a TCP Fast
/// Open cookie.
#[must_use]
pub fn full_options(mss: u16) -> Vec<u8> {
    let [high, low] = mss.to_be_bytes();
    vec![2, 4, high, low, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7, 34, 2, 1, 1]
}

/// Reads a raw ICMP message: for IPv4 with its IP header, for IPv6 without, and from whom it came.
///
/// `ident` is the identifier of our echo requests. Gives nothing for what is not about a probe.
#[must_use]
pub fn read_icmp(bytes: &[u8], from: IpAddr, ttl: Option<u8>, ident: u16) -> Option<ReceivedAnswer> {
    if from.is_ipv6() {
        return read_icmpv6(bytes, from, ttl, ident);
    }
    let (protocol, message) = IpView::new(bytes).ok()?.transport()?;
    let view = Icmpv4View::new(message).ok().filter(|view| protocol == Protocol::ICMP && view.checksum_ok())?;
    let said = match view.kind() {
        Icmpv4Kind::EchoReply { ident: whose, seq } if whose == ident => {
            return Some(ReceivedAnswer { target: from, token: Token::Echo(seq), said: ProbeAnswer::Reached { ttl } });
        }
        Icmpv4Kind::FragNeeded { mtu } => ProbeAnswer::TooBig { mtu: u32::from(mtu) },
        Icmpv4Kind::TimeExceeded { code: 0 } => ProbeAnswer::Expired { quote: Quote::default() },
        Icmpv4Kind::Unreachable { code } => ProbeAnswer::Unreachable { code },
        _ => return None,
    };
    about(IpView::V4(view.quote()?), from, ttl, ident, said)
}

fn read_icmpv6(bytes: &[u8], from: IpAddr, ttl: Option<u8>, ident: u16) -> Option<ReceivedAnswer> {
    let view = Icmpv6View::new(bytes).ok()?;
    let said = match view.kind() {
        Icmpv6Kind::EchoReply { ident: whose, seq } if whose == ident => {
            return Some(ReceivedAnswer { target: from, token: Token::Echo(seq), said: ProbeAnswer::Reached { ttl } });
        }
        Icmpv6Kind::PacketTooBig { mtu } => ProbeAnswer::TooBig { mtu },
        Icmpv6Kind::TimeExceeded { code: 0 } => ProbeAnswer::Expired { quote: Quote::default() },
        Icmpv6Kind::Unreachable { code } => ProbeAnswer::Unreachable { code },
        _ => return None,
    };
    about(IpView::V6(view.quote()?), from, ttl, ident, said)
}

/// Which probe an error is about.
fn about(quoted: IpView<'_>, from: IpAddr, ttl: Option<u8>, ident: u16, said: ProbeAnswer) -> Option<ReceivedAnswer> {
    let (target, v6) = (quoted.dst(), quoted.dst().is_ipv6());
    let (protocol, bytes) = quoted.transport()?;
    let mut options = None;
    let token = match protocol {
        Protocol::ICMP | Protocol::ICMPV6 => {
            let header: &[u8; 8] = bytes.first_chunk()?;
            let request = if v6 { 128 } else { 8 };
            let whose = u16::from_be_bytes([header[4], header[5]]);
            if header[0] != request || whose != ident {
                return None;
            }
            Token::Echo(u16::from_be_bytes([header[6], header[7]]))
        }
        Protocol::TCP => {
            let header: &[u8; 8] = bytes.first_chunk()?;
            options = TcpView::quoted(bytes).ok().and_then(|view| syn_options(&view));
            Token::Tcp {
                port: u16::from_be_bytes([header[0], header[1]]),
                seq: u32::from_be_bytes([header[4], header[5], header[6], header[7]]),
            }
        }
        Protocol::UDP => {
            let view = UdpView::quoted(bytes).ok()?;
            let len = u16::try_from(view.len().checked_sub(8)?).ok()?;
            match *view.payload() {
                [high, low, ..] => Token::Number(u16::from_be_bytes([high, low])),
                _ => Token::Udp { port: view.src_port(), len },
            }
        }
        _ => return None,
    };
    let (tos, dont_fragment) = match quoted {
        IpView::V4(view) => (view.dscp() << 2 | view.ecn() as u8, Some(view.dont_fragment())),
        IpView::V6(view) => (view.traffic_class(), None),
    };
    let said = match said {
        ProbeAnswer::Expired { .. } => ProbeAnswer::Expired { quote: Quote { tos: Some(tos), dont_fragment, options } },
        // The target itself says that nobody listens on the port: it was reached.
        ProbeAnswer::Unreachable { code } if code == port_unreachable(v6) && from == target => {
            ProbeAnswer::Reached { ttl }
        }
        other => other,
    };
    Some(ReceivedAnswer { target, token, said })
}

/// The code of "port unreachable" (RFC 792; RFC 4443 section 3.1).
#[must_use]
pub const fn port_unreachable(v6: bool) -> u8 {
    if v6 { 4 } else { 3 }
}

/// What a SYN says, if the header is there to its end; `None` for anything else.
#[must_use]
pub fn syn_options(view: &TcpView<'_>) -> Option<SynOptions> {
    let flags = view.flags();
    if !flags.has(TcpFlags::SYN) {
        return None;
    }
    let ecn = flags.has(TcpFlags(TcpFlags::ECE.0 | TcpFlags::CWR.0));
    let mut said = SynOptions { ecn, ..SynOptions::default() };
    for option in view.options() {
        match option.ok()? {
            TcpOption::Mss(mss) => said.mss = Some(mss),
            TcpOption::WindowScale(shift) => said.window_scale = Some(shift),
            TcpOption::SackPermitted => said.sack = true,
            TcpOption::Timestamps { .. } => said.timestamps = true,
            TcpOption::FastOpen(_) => said.fast_open = true,
            _ => {}
        }
    }
    Some(said)
}

/// A segment from the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TcpHeard {
    /// It accepts a connection.
    SynAck {
        /// Its first sequence number.
        isn: u32,
        /// What it acknowledges: one more than our first sequence number.
        ack: u32,
        /// What it offers.
        options: SynOptions,
    },
    /// It refuses, or gives up.
    Reset {
        /// What it acknowledges.
        ack: u32,
    },
    /// It has seen old data: which, if it says so (RFC 2883).
    Duplicate {
        /// The first sequence number of what it has seen.
        start: u32,
    },
    /// Data, or a plain acknowledgement.
    Other {
        /// Its first sequence number.
        seq: u32,
        /// Bytes of payload.
        len: usize,
    },
}

/// Reads a TCP segment; gives the target's port and ours, too. For IPv4 with the IP header, for IPv6 without.
#[must_use]
pub fn read_tcp(bytes: &[u8], v6: bool) -> Option<((u16, u16), TcpHeard)> {
    let segment = if v6 { bytes } else { IpView::new(bytes).ok()?.transport()?.1 };
    let view = TcpView::new(segment).ok()?;
    let (flags, ack) = (view.flags(), view.ack());
    let heard = if flags.has(TcpFlags::RST) {
        TcpHeard::Reset { ack: ack.0 }
    } else if flags.has(TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0)) {
        TcpHeard::SynAck { isn: view.seq().0, ack: ack.0, options: syn_options(&view)? }
    } else {
        let duplicate = view.options().find(|option| match option {
            TcpOption::Sack(blocks) if blocks.is_duplicate(ack) => blocks.iter().next().map(|(Seq(start), _)| start),
            _ => None,
        });
        let other = TcpHeard::Other { seq: view.seq().0, len: view.payload().len() };
        duplicate.map_or(other, |start| TcpHeard::Duplicate { start })
    };
    Some(((view.src_port(), view.dst_port()), heard))
}

#[cfg(test)]
mod tests;
