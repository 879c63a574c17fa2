//! The sockets through which probes leave, and what they hear.

/// What comes back.
mod hear;
/// What leaves.
mod send;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};
use wt_probe::codec::Token;
use wt_probe::{Kind, ProbeAnswer, Time};
use wt_problem::Problem;
use wt_sys::probe::{ProbeSocket, QuietPort};
use wt_sys::stream::DataProbe;
use wt_wire::TcpFlags;

/// The type of service of SYNs that must not arrive: ECT(0).
pub(crate) const SIDE_TOS: u8 = 2;
/// With more hosts at once the kernel makes no connections for us: they would be too many.
const MOST_STREAMING: usize = 16;

/// By what an answer is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mark {
    /// What the codec reads.
    Token(Token),
    /// A TCP handshake from this port.
    Handshake(u16),
    /// A connection of this host's kernel.
    Stream(u16),
}

/// Something heard.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reply {
    pub(crate) target: IpAddr,
    pub(crate) mark: Mark,
    pub(crate) at: Time,
    pub(crate) from: Option<IpAddr>,
    pub(crate) said: ProbeAnswer,
}

/// A TCP connection of ours that the kernel doesn't know.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Connection {
    pub(crate) isn: u32,
    /// What we acknowledge; `None` before the handshake is complete.
    pub(crate) ack: Option<u32>,
    /// How many old segments were sent.
    count: u32,
    /// Bytes of new data that were sent.
    pub(crate) sent: u32,
    /// Whether the target is known to have the connection: it named old data, or sent new data.
    pub(crate) stands: bool,
    /// When the handshake was completed, as far as we know; the packet that did may be lost.
    pub(crate) completed: Time,
}

/// The packet that completes a handshake is sent again no sooner.
const COMPLETED_AGAIN: Time = Time::from_millis(20);

impl Connection {
    /// One that isn't open yet, with our first sequence number.
    pub(crate) const fn new(isn: u32) -> Self {
        Self { isn, ack: None, count: 0, sent: 0, stands: false, completed: Time::ZERO }
    }

    /// Whether the packet that completes the handshake goes ahead of an old segment once more: as long as the target hasn't had it, old
    /// segments aren't answered as such, and don't complete it.
    pub(crate) fn wants_completion(&self, at: Time) -> bool {
        self.ack.is_some() && !self.stands && at >= self.completed + COMPLETED_AGAIN
    }

    /// The sequence number of a SYN with data that is going to be refused: no two are nearer than what one may carry.
    pub(crate) const fn refused_seq(&self, id: u32) -> u32 {
        self.isn.wrapping_add(id.wrapping_add(1) << 16)
    }

    /// The sequence number of the SYN with data that a refusal acknowledges, with all that it carries or without.
    ///
    /// # Source
    /// RFC 9293 section 3.10.7.1: the acknowledgement of a reset is the segment's sequence number and length.
    pub(crate) const fn refused_by(&self, ack: u32) -> u32 {
        let above = ack.wrapping_sub(1).wrapping_sub(self.isn);
        self.isn.wrapping_add(above & !0xFFFF)
    }
}

/// What a send led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendOutcome {
    /// It left.
    Gone(Mark),
    /// This host's device doesn't take it.
    TooBig,
    /// It can't be sent by what we have.
    Never,
}

struct Tcp {
    socket: ProbeSocket,
    /// The port of connections.
    main: QuietPort,
    /// The port of SYNs that shall not arrive.
    side: QuietPort,
}

/// All sockets of one version of IP.
pub(crate) struct Wire {
    v6: bool,
    udp: ProbeSocket,
    udp_port: u16,
    raw: Option<ProbeSocket>,
    ping: Option<ProbeSocket>,
    tcp: Option<Tcp>,
    /// Connections of the kernel's; `None` where they would be too many.
    streams: Option<Vec<Stream>>,
    ident: u16,
    number: u16,
}

/// What a segment says.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RawSegment<'a> {
    pub(crate) port: u16,
    pub(crate) seq: u32,
    pub(crate) ack: u32,
    pub(crate) flags: TcpFlags,
    pub(crate) window: u16,
    pub(crate) options: &'a [u8],
    pub(crate) data: &'a [u8],
}

/// A connection of the kernel's that carries one probe.
struct Stream {
    probe: DataProbe,
    target: IpAddr,
    mark: Mark,
    /// The length of the packet that it shall carry; `None` when only the handshake counts.
    ip_len: Option<u16>,
    since: Time,
    /// Whether it is given up before its data is retransmitted.
    brief: bool,
    /// When its data left.
    sent: Option<Time>,
    /// How often its data had left when it was looked at last.
    copies: u32,
}

/// To whom a probe goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endpoints {
    pub(crate) source: IpAddr,
    pub(crate) target: IpAddr,
    pub(crate) port: u16,
    /// The MSS to offer.
    pub(crate) mss: u16,
}

impl Wire {
    /// Opens what this user may open.
    pub(crate) fn open(v6: bool, unprivileged: bool, hosts: usize, seed: u64) -> Result<Self, Problem> {
        let failure = |error: wt_sys::SysError| Problem::environment(error.to_string());
        let udp = ProbeSocket::udp(v6).map_err(|error| {
            failure(error).hint(if v6 { "this machine may have no IPv6; try --ip 4" } else { "try --ip 6" })
        })?;
        let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let udp_port = udp.bind(SocketAddr::new(any, 0)).map_err(failure)?;
        let raw = if unprivileged { None } else { ProbeSocket::raw_icmp(v6).ok() };
        let ping = if raw.is_some() { None } else { ProbeSocket::ping(v6).ok() };
        let tcp = if raw.is_some() { Tcp::open(v6) } else { None };
        let streams = (hosts <= MOST_STREAMING).then(Vec::new);
        let [low, high, ..] = seed.to_le_bytes();
        Ok(Self { v6, udp, udp_port, raw, ping, tcp, streams, ident: u16::from_le_bytes([low, high]), number: 0 })
    }

    /// What can be sent, the best first.
    pub(crate) fn kinds(&self) -> Vec<Kind> {
        let echo = (self.raw.is_some() || self.ping.is_some()).then_some(Kind::Echo);
        let tcp: &[Kind] = match (&self.tcp, &self.streams) {
            (Some(_), _) => &[Kind::OldSegment, Kind::RefusedSyn],
            (None, Some(_)) => &[Kind::Stream],
            (None, None) => &[],
        };
        echo.into_iter().chain(tcp.iter().copied()).chain([Kind::Udp]).collect()
    }

    /// Whether the kernel may make connections for us.
    pub(crate) const fn streams(&self) -> bool {
        self.streams.is_some()
    }

    /// What must be waited for.
    pub(crate) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let sockets =
            [Some(&self.udp), self.raw.as_ref(), self.ping.as_ref(), self.tcp.as_ref().map(|tcp| &tcp.socket)];
        sockets.into_iter().flatten().map(|socket| socket.as_fd()).collect()
    }

    /// The port from which UDP probes come.
    pub(crate) const fn udp_port(&self) -> u16 {
        self.udp_port
    }
}

impl Tcp {
    fn open(v6: bool) -> Option<Self> {
        let socket = ProbeSocket::raw_tcp(v6).ok()?;
        Some(Self { socket, main: QuietPort::open(v6).ok()?, side: QuietPort::open(v6).ok()? })
    }
}
