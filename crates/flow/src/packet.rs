use std::net::{IpAddr, SocketAddr};
use wt_wire::{
    Ecn, Icmpv4Kind, Icmpv4View, Icmpv6Kind, Icmpv6View, IpView, Protocol, Seq, TcpFlags, TcpOption, TcpView, UdpView,
};

/// SACK blocks that one header has room for.
pub(crate) const MOST_SACKS: usize = 4;

/// What is read of a TCP segment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Segment {
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) flags: TcpFlags,
    pub(crate) window: u16,
    /// Whether all of its options were captured.
    pub(crate) is_header_whole: bool,
    /// Payload as the IP header says, bytes; all of it need not have been captured.
    pub(crate) len: u32,
    /// The IP packet, bytes.
    pub(crate) packet_len: u32,
    /// What tells one IPv4 packet of its sender from the next; 0 where there is nothing of the kind.
    pub(crate) ident: u16,
    /// How many hops it may still go.
    pub(crate) hops: u8,
    pub(crate) ecn: Ecn,
    pub(crate) mss: Option<u16>,
    pub(crate) window_scale: Option<u8>,
    pub(crate) sack_permitted: bool,
    pub(crate) timestamps: Option<(u32, u32)>,
    pub(crate) sacks: [(Seq, Seq); MOST_SACKS],
    pub(crate) sack_count: usize,
    pub(crate) duplicate_sack: bool,
}

impl Segment {
    pub(crate) fn has(&self, flags: TcpFlags) -> bool {
        self.flags.has(flags)
    }

    /// The number behind its last: payload, SYN and FIN count.
    pub(crate) fn end(&self) -> Seq {
        let controls = u32::from(self.has(TcpFlags::SYN)) + u32::from(self.has(TcpFlags::FIN));
        self.seq.plus(self.len.wrapping_add(controls))
    }
}

/// A router or host says that a packet was too large.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooBig {
    pub(crate) from: IpAddr,
    pub(crate) mtu: u32,
    /// Of the packet that was too large.
    pub(crate) src: SocketAddr,
    pub(crate) dst: SocketAddr,
}

/// What an IP packet is to us.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ParsedPacket {
    /// A segment, complete but perhaps for its payload.
    Tcp(Segment),
    /// A part of a packet: from where to where.
    Fragment(IpAddr, IpAddr),
    /// See [`TooBig`].
    TooBig(TooBig),
    /// Another protocol: its number, with ports if it has any.
    Other { src: IpAddr, dst: IpAddr, protocol: Protocol, ports: Option<(u16, u16)> },
    /// TCP of which too little was kept.
    Cut,
    /// Too little was kept for its IP header.
    CutInIp,
    /// No IP packet that makes sense.
    Broken,
}

/// No packet is longer than this: a super-packet of BIG TCP has at most 512 KiB.
const LONGEST: usize = 1 << 20;
/// All headers of an IP packet together are seldom longer, bytes.
const IP_HEADERS: usize = 128;
/// Protocols in which packets travel: IP in IP, IPv6 in IP, GRE, IPsec, EtherIP and L2TP.
///
/// # Source
/// IANA, Assigned Internet Protocol Numbers.
const TUNNELS: [Protocol; 7] =
    [Protocol(4), Protocol(41), Protocol(47), Protocol(50), Protocol(51), Protocol(97), Protocol(115)];
/// Ports of UDP at which they do: L2TP, GTP-U, VXLAN, IPsec, Geneve.
///
/// # Source
/// IANA, Service Name and Transport Protocol Port Number Registry.
const TUNNEL_PORTS: [u16; 5] = [1701, 2152, 4789, 4500, 6081];

/// Whether packets of a protocol carry other packets, which aren't looked at.
pub(crate) fn is_tunnel(protocol: Protocol, ports: Option<(u16, u16)>) -> bool {
    let at_port = |ports: (u16, u16)| TUNNEL_PORTS.contains(&ports.0) || TUNNEL_PORTS.contains(&ports.1);
    TUNNELS.contains(&protocol) || protocol == Protocol::UDP && ports.is_some_and(at_port)
}

/// The most bytes of headers that are looked at.
const HEADERS: usize = 512;

/// Reads an IP packet, `original_len` bytes long on the wire, of which perhaps only the beginning is there.
pub(crate) fn parse(bytes: &[u8], original_len: usize) -> ParsedPacket {
    let mut patched = [0; HEADERS];
    let (bytes, left_out) = with_length(bytes, original_len, &mut patched);
    let Ok(ip) = IpView::quoted(bytes) else {
        let needed = match bytes.first() {
            Some(first) if first >> 4 == 4 => usize::from(first & 15).max(5) * 4,
            Some(first) if first >> 4 == 6 => 40,
            _ => 0,
        };
        let is_cut = bytes.len() < needed.min(original_len);
        return if is_cut { ParsedPacket::CutInIp } else { ParsedPacket::Broken };
    };
    let (src, dst) = (ip.src(), ip.dst());
    let is_fragment = match ip {
        IpView::V4(view) => view.is_fragment(),
        // A fragment header that says "all of it" makes no fragment (RFC 6946).
        IpView::V6(view) => {
            view.upper_layer().is_ok_and(|upper| upper.is_fragment && !is_atomic(view.as_bytes(), upper.payload.len()))
        }
    };
    if is_fragment {
        return ParsedPacket::Fragment(src, dst);
    }
    let Some((protocol, payload)) = ip.transport() else {
        let is_cut = bytes.len() < original_len.min(IP_HEADERS);
        return if is_cut { ParsedPacket::CutInIp } else { ParsedPacket::Broken };
    };
    let captured = match ip {
        IpView::V4(view) => view.as_bytes().len(),
        IpView::V6(view) => view.as_bytes().len(),
    };
    let header = captured - payload.len().min(captured);
    let packet_len = left_out.unwrap_or_else(|| ip.total_len());
    match protocol {
        Protocol::TCP => tcp(&ip, payload, packet_len, packet_len.saturating_sub(header)),
        Protocol::UDP => {
            let ports = UdpView::quoted(payload).ok().map(|udp| (udp.src_port(), udp.dst_port()));
            ParsedPacket::Other { src, dst, protocol, ports }
        }
        Protocol::ICMP | Protocol::ICMPV6 => {
            too_big(src, protocol, payload).unwrap_or(ParsedPacket::Other { src, dst, protocol, ports: None })
        }
        _ => ParsedPacket::Other { src, dst, protocol, ports: None },
    }
}

/// Whether a packet of IPv6 with a fragment header, right before its transport, is whole nevertheless.
fn is_atomic(bytes: &[u8], payload: usize) -> bool {
    let at = bytes.len().saturating_sub(payload + 8);
    // Neither an offset nor "more fragments": the two reserved bits between them don't matter.
    matches!(bytes.get(at + 2..at + 4), Some(&[high, low]) if high == 0 && low & 0xf9 == 0)
}

/// A sender that leaves segmentation to the device may leave the length zero, too, and does if the field is too small for it (BIG
/// TCP): then it is what was captured. The packet with as large a length as the field can hold, and the length that was left out.
fn with_length<'a>(bytes: &'a [u8], original_len: usize, patched: &'a mut [u8; HEADERS]) -> (&'a [u8], Option<usize>) {
    let (at, fixed) = match bytes.first().map(|byte| byte >> 4) {
        Some(4) => (2, 0),
        Some(6) => (4, 40),
        _ => return (bytes, None),
    };
    if bytes.get(at..at + 2) != Some(&[0, 0]) || original_len <= 40 + fixed {
        return (bytes, None);
    }
    let len = bytes.len().min(HEADERS);
    let (Some(to), Some(from)) = (patched.get_mut(..len), bytes.get(..len)) else { return (bytes, None) };
    to.copy_from_slice(from);
    let value = u16::try_from(original_len - fixed).unwrap_or(u16::MAX).to_be_bytes();
    if let Some(field) = to.get_mut(at..at + 2) {
        field.copy_from_slice(&value);
    }
    (to, Some(original_len.min(LONGEST)))
}

fn tcp(ip: &IpView<'_>, bytes: &[u8], packet_len: usize, transport_len: usize) -> ParsedPacket {
    // Without the window nothing can be said.
    let Ok(view) = TcpView::quoted(bytes) else { return ParsedPacket::Cut };
    let header = view.header_len();
    if bytes.len() < 16 || header < 20 || header > transport_len {
        return if bytes.len() < 16 { ParsedPacket::Cut } else { ParsedPacket::Broken };
    }
    let mut segment = Segment {
        src: SocketAddr::new(ip.src(), view.src_port()),
        dst: SocketAddr::new(ip.dst(), view.dst_port()),
        seq: view.seq(),
        ack: view.ack(),
        flags: view.flags(),
        window: view.window(),
        is_header_whole: bytes.len() >= header,
        len: u32::try_from(transport_len - header).unwrap_or(u32::MAX),
        packet_len: u32::try_from(packet_len).unwrap_or(u32::MAX),
        ident: if let IpView::V4(view) = ip { view.ident() } else { 0 },
        hops: ip.ttl(),
        ecn: ip.ecn(),
        mss: None,
        window_scale: None,
        sack_permitted: false,
        timestamps: None,
        sacks: [(Seq(0), Seq(0)); MOST_SACKS],
        sack_count: 0,
        duplicate_sack: false,
    };
    for option in view.options().map_while(Result::ok) {
        match option {
            TcpOption::Mss(mss) => segment.mss = Some(mss),
            TcpOption::WindowScale(shift) => segment.window_scale = Some(shift.min(14)),
            TcpOption::SackPermitted => segment.sack_permitted = true,
            TcpOption::Timestamps { value, echo } => segment.timestamps = Some((value, echo)),
            TcpOption::Sack(blocks) => {
                segment.duplicate_sack = segment.has(TcpFlags::ACK) && blocks.is_duplicate(segment.ack);
                for (slot, block) in segment.sacks.iter_mut().zip(blocks.iter()) {
                    *slot = block;
                }
                segment.sack_count = blocks.len().min(MOST_SACKS);
            }
            _ => {}
        }
    }
    ParsedPacket::Tcp(segment)
}

fn too_big(from: IpAddr, protocol: Protocol, payload: &[u8]) -> Option<ParsedPacket> {
    let (mtu, quote) = if protocol == Protocol::ICMP {
        let icmp = Icmpv4View::new(payload).ok()?;
        let Icmpv4Kind::FragNeeded { mtu } = icmp.kind() else { return None };
        (u32::from(mtu), IpView::V4(icmp.quote()?))
    } else {
        let icmp = Icmpv6View::new(payload).ok()?;
        let Icmpv6Kind::PacketTooBig { mtu } = icmp.kind() else { return None };
        (mtu, IpView::V6(icmp.quote()?))
    };
    let (Protocol::TCP, bytes) = quote.transport()? else { return None };
    let tcp = TcpView::quoted(bytes).ok()?;
    let end = |address, port| SocketAddr::new(address, port);
    let (src, dst) = (end(quote.src(), tcp.src_port()), end(quote.dst(), tcp.dst_port()));
    Some(ParsedPacket::TooBig(TooBig { from, mtu, src, dst }))
}
