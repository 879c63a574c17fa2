//! The sockets through which probes leave, and what they hear.

use crate::edge::Failure;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;
use wt_probe::codec::{self, Segment, TcpHeard, Token};
use wt_probe::{Kind, Probe, Quote, Said, Time};
use wt_sys::probe::{ProbeSocket, QuietPort, Received};
use wt_sys::stream::{DataProbe, DataState};
use wt_wire::TcpFlags;

/// Where UDP probes go: a port where nobody listens, as traceroute has it.
const UDP_PORT: u16 = 33_434;
/// The type of service of SYNs that shall not arrive: ECT(0).
pub(super) const SIDE_TOS: u8 = 2;
/// Old data begins at so many places, and so far below the first byte at least. Together they stay within the 64 KiB
/// that connection trackers accept.
const OLD_DATA: u32 = 40_000;
const LONGEST_OLD: u32 = 16_384;
/// With more hosts at once the kernel makes no connections for us: they would be too many.
const MOST_STREAMING: usize = 16;
/// A connection of the kernel's is waited for no longer.
const LONGEST_STREAM: Duration = Duration::from_secs(4);
/// Error numbers of Linux.
const EMSGSIZE: i32 = 90;
/// How often a packet is tried to be sent.
const ATTEMPTS: u32 = 6;
const EAGAIN: i32 = 11;
const ENOBUFS: i32 = 105;

/// By what an answer is matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Mark {
    /// What the codec reads.
    Token(Token),
    /// A TCP handshake from this port.
    Handshake(u16),
    /// A connection of this host's kernel.
    Stream(u16),
}

/// Something heard.
#[derive(Debug, Clone, Copy)]
pub(super) struct Echoed {
    pub(super) target: IpAddr,
    pub(super) mark: Mark,
    pub(super) at: Time,
    pub(super) from: Option<IpAddr>,
    pub(super) said: Said,
}

/// A TCP connection of ours that the kernel doesn't know.
#[derive(Debug, Clone, Copy)]
pub(super) struct Connection {
    pub(super) isn: u32,
    /// What we acknowledge; `None` before the handshake is complete.
    pub(super) ack: Option<u32>,
    /// How many old segments were sent.
    count: u32,
    /// Bytes of new data that were sent.
    pub(super) sent: u32,
}

impl Connection {
    /// One that isn't open yet, with our first sequence number.
    pub(super) const fn new(isn: u32) -> Self {
        Self { isn, ack: None, count: 0, sent: 0 }
    }
}

/// What a send led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
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
pub(super) struct Wire {
    v6: bool,
    udp: ProbeSocket,
    udp_port: u16,
    raw: Option<ProbeSocket>,
    ping: Option<ProbeSocket>,
    tcp: Option<Tcp>,
    /// Connections of the kernel's, where there is nothing better; `None` where there is, or would be too many.
    streams: Option<Vec<Stream>>,
    ident: u16,
    number: u16,
}

/// What a segment says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Talking<'a> {
    pub(super) port: u16,
    pub(super) seq: u32,
    pub(super) ack: u32,
    pub(super) flags: TcpFlags,
    pub(super) window: u16,
    pub(super) options: &'a [u8],
    pub(super) data: &'a [u8],
}

/// A connection of the kernel's that carries one probe.
struct Stream {
    probe: DataProbe,
    target: IpAddr,
    mark: Mark,
    /// The length of the packet that it shall carry; `None` when only the handshake counts.
    ip_len: Option<u16>,
    since: Time,
}

/// To whom a probe goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ends {
    pub(super) source: IpAddr,
    pub(super) target: IpAddr,
    pub(super) port: u16,
    /// The MSS to offer.
    pub(super) mss: u16,
}

impl Wire {
    /// Opens what this user may open.
    pub(super) fn open(v6: bool, unprivileged: bool, hosts: usize, seed: u64) -> Result<Self, Failure> {
        let failure = |error: wt_sys::SysError| Failure::environment(error.to_string());
        let udp = ProbeSocket::udp(v6).map_err(|error| {
            failure(error).hint(if v6 { "this machine may have no IPv6; try --ip 4" } else { "try --ip 6" })
        })?;
        let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let udp_port = udp.bind(SocketAddr::new(any, 0)).map_err(failure)?;
        let raw = if unprivileged { None } else { ProbeSocket::raw_icmp(v6).ok() };
        let ping = if raw.is_some() { None } else { ProbeSocket::ping(v6).ok() };
        let tcp = if raw.is_some() { Tcp::open(v6) } else { None };
        let streams = (tcp.is_none() && hosts <= MOST_STREAMING).then(Vec::new);
        let [low, high, ..] = seed.to_le_bytes();
        Ok(Self { v6, udp, udp_port, raw, ping, tcp, streams, ident: u16::from_le_bytes([low, high]), number: 0 })
    }

    /// What can be sent, the best first.
    pub(super) fn kinds(&self) -> Vec<Kind> {
        let echo = (self.raw.is_some() || self.ping.is_some()).then_some(Kind::Echo);
        let tcp = self.tcp.is_some().then_some(Kind::OldSegment);
        let stream = self.streams.is_some().then_some(Kind::Stream);
        echo.into_iter().chain(tcp).chain(stream).chain([Kind::Udp]).collect()
    }

    /// What must be waited for.
    pub(super) fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        let sockets =
            [Some(&self.udp), self.raw.as_ref(), self.ping.as_ref(), self.tcp.as_ref().map(|tcp| &tcp.socket)];
        sockets.into_iter().flatten().map(|socket| socket.as_fd()).collect()
    }

    /// Sends a probe.
    pub(super) fn send(&mut self, ends: &Ends, probe: &Probe, connection: &mut Connection) -> Result<Sent, Failure> {
        let header = if self.v6 { 40 } else { 20 };
        let len = usize::from(probe.ip_len).saturating_sub(header);
        self.number = self.number.wrapping_add(1);
        match probe.kind {
            Kind::Echo | Kind::LooseEcho => {
                let bytes = codec::echo_request(self.v6, self.ident, self.number, probe.flow, len);
                let Some(socket) = self.raw.as_ref().or(self.ping.as_ref()) else { return Ok(Sent::Never) };
                let gone = Sent::Gone(Mark::Token(Token::Echo(self.number)));
                if probe.kind == Kind::Echo {
                    return transmit(socket, ends, 0, &bytes, probe.ttl, gone);
                }
                if socket.let_routers_fragment(true).is_err() {
                    return Ok(Sent::Never);
                }
                let sent = transmit(socket, ends, 0, &bytes, probe.ttl, gone);
                let _ = socket.let_routers_fragment(false);
                sent
            }
            Kind::Udp => {
                let mut bytes = vec![0; len.saturating_sub(8).max(2)];
                bytes[..2].copy_from_slice(&self.number.to_be_bytes());
                let port = UDP_PORT + u16::from(probe.flow);
                transmit(&self.udp, ends, port, &bytes, probe.ttl, Sent::Gone(Mark::Token(Token::Number(self.number))))
            }
            Kind::Syn if self.tcp.is_none() => Ok(self.connect(ends, None)),
            Kind::Stream => Ok(self.connect(ends, Some(probe.ip_len))),
            Kind::Syn => self.send_syn(ends, probe, connection),
            Kind::OldSegment => self.send_old(ends, len, probe.ttl, connection),
        }
    }

    /// Lets the kernel connect, and send one packet of this length when it has.
    fn connect(&mut self, ends: &Ends, ip_len: Option<u16>) -> Sent {
        let mark = Mark::Stream(self.number);
        let Some(streams) = &mut self.streams else { return Sent::Never };
        // One that is refused at once, or can't be opened, stays without an answer.
        if let Ok(probe) = DataProbe::open(SocketAddr::new(ends.target, ends.port)) {
            let since = Duration::from_nanos(wt_sys::clock::monotonic_ns());
            streams.push(Stream { probe, target: ends.target, mark, ip_len, since });
        }
        Sent::Gone(mark)
    }

    /// Whether connections must be looked at from time to time.
    pub(super) fn has_streams(&self) -> bool {
        self.streams.as_ref().is_some_and(|streams| !streams.is_empty())
    }

    /// Lets connections go on, and tells how they fare.
    pub(super) fn advance_streams(&mut self, mut each: impl FnMut(Echoed)) {
        let Some(streams) = &mut self.streams else { return };
        let at = Duration::from_nanos(wt_sys::clock::monotonic_ns());
        streams.retain_mut(|stream| {
            let mut tell = |said| {
                each(Echoed { target: stream.target, mark: stream.mark, at, from: Some(stream.target), said });
            };
            match (stream.probe.state(), stream.ip_len) {
                (DataState::Waiting, _) => return at < stream.since + LONGEST_STREAM,
                (DataState::Refused, None) => tell(Said::Refused),
                (DataState::Open { mss, .. }, None) => tell(Said::Open { mss, sack: false }),
                (DataState::Open { .. }, Some(ip_len)) => match stream.probe.send(ip_len) {
                    Ok(()) => return true,
                    Err(_) => tell(Said::LocalTooBig),
                },
                (DataState::Acknowledged { again: false }, _) => tell(Said::Reached { ttl: None }),
                (DataState::Split, _) => tell(Said::LocalTooBig),
                (DataState::Refused | DataState::Acknowledged { .. }, _) => {}
            }
            false
        });
    }

    fn send_syn(&self, ends: &Ends, probe: &Probe, connection: &Connection) -> Result<Sent, Failure> {
        let Some(tcp) = &self.tcp else { return Ok(Sent::Never) };
        let (port, flags, options, seq) = if probe.ttl.is_none() {
            (tcp.main.port(), TcpFlags::SYN, codec::opening_options(ends.mss), connection.isn)
        } else {
            let flags = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ECE.0 | TcpFlags::CWR.0);
            (tcp.side.port(), flags, codec::full_options(ends.mss), connection.isn.wrapping_add(probe.id))
        };
        let mark = if probe.ttl.is_none() { Mark::Handshake(port) } else { Mark::Token(Token::Tcp { port, seq }) };
        let bytes = Segment { options: &options, ..segment(ends, port, seq, 0, flags) }.to_bytes();
        // Whether ECT survives shows in quotations; on a SYN that arrives it would make Linux refuse ECN.
        let tos = if probe.ttl.is_none() { 0 } else { SIDE_TOS };
        let _ = tcp.socket.set_tos(tos);
        let sent = transmit(&tcp.socket, ends, 0, &bytes, probe.ttl, Sent::Gone(mark));
        let _ = tcp.socket.set_tos(0);
        sent
    }

    /// The port of SYNs that shall not arrive, where one did: refuses what it was answered with.
    pub(super) fn refuse(&self, ends: &Ends, port: u16, seq: u32) {
        let Some(tcp) = &self.tcp else { return };
        let bytes = segment(ends, port, seq, 0, TcpFlags::RST).to_bytes();
        let _ = tcp.socket.send(SocketAddr::new(ends.target, 0), &bytes, None);
    }

    fn send_old(&self, ends: &Ends, len: usize, ttl: Option<u8>, connection: &mut Connection) -> Result<Sent, Failure> {
        let (Some(tcp), Some(ack)) = (&self.tcp, connection.ack) else { return Ok(Sent::Never) };
        let payload_len = len.saturating_sub(20).max(1);
        // It ends before the first byte that the target expects, and begins at a place of its own.
        let below = LONGEST_OLD.max(u32::try_from(payload_len).unwrap_or(0)) + connection.count % OLD_DATA;
        connection.count = connection.count.wrapping_add(1);
        let seq = connection.isn.wrapping_add(1).wrapping_sub(below);
        let port = tcp.main.port();
        let segment = Segment { payload_len, ..segment(ends, port, seq, ack, TcpFlags::ACK) };
        let gone = Sent::Gone(Mark::Token(Token::Tcp { port, seq }));
        transmit(&tcp.socket, ends, 0, &segment.to_bytes(), ttl, gone)
    }

    /// Completes a handshake.
    pub(super) fn complete(&self, ends: &Ends, connection: &Connection) {
        let (Some(tcp), Some(ack)) = (&self.tcp, connection.ack) else { return };
        let bytes = segment(ends, tcp.main.port(), connection.isn.wrapping_add(1), ack, TcpFlags::ACK).to_bytes();
        // A lost one costs nothing: every old segment acknowledges the same.
        let _ = tcp.socket.send(SocketAddr::new(ends.target, 0), &bytes, None);
    }

    /// A segment of a connection that the caller keeps.
    pub(super) fn speak(&self, ends: &Ends, talk: &Talking<'_>) {
        let Some(tcp) = &self.tcp else { return };
        let plain = segment(ends, talk.port, talk.seq, talk.ack, talk.flags);
        let Talking { window, options, data, .. } = *talk;
        let bytes = Segment { window, options, data, payload_len: data.len(), ..plain }.to_bytes();
        // A lost one is seen by what doesn't come.
        let _ = tcp.socket.send(SocketAddr::new(ends.target, 0), &bytes, None);
    }

    /// Leaves nothing open at the target.
    pub(super) fn reset(&self, ends: &Ends, connection: &Connection) {
        let (Some(tcp), Some(ack)) = (&self.tcp, connection.ack) else { return };
        let flags = TcpFlags(TcpFlags::RST.0 | TcpFlags::ACK.0);
        let seq = connection.isn.wrapping_add(1).wrapping_add(connection.sent);
        let bytes = segment(ends, tcp.main.port(), seq, ack, flags).to_bytes();
        let _ = tcp.socket.send(SocketAddr::new(ends.target, 0), &bytes, None);
    }

    /// All that has been heard; `SynAck`s as they are, for only the caller knows the connection.
    pub(super) fn hear(&self, mut each: impl FnMut(Echoed), mut handshake: impl FnMut(IpAddr, u16, TcpHeard, Time)) {
        let mut buffer = vec![0u8; 65_536];
        if let Some(raw) = &self.raw {
            drain(
                |buffer| raw.receive(buffer),
                &mut buffer,
                |received, bytes| {
                    let Some(from) = received.from.map(|from| from.ip()) else { return };
                    let Some(heard) = codec::read_icmp(bytes, from, received.ttl, self.ident) else { return };
                    each(Echoed {
                        target: heard.target,
                        mark: Mark::Token(heard.token),
                        at: Duration::from_nanos(received.at_ns),
                        from: Some(from),
                        said: heard.said,
                    });
                },
            );
        }
        if let Some(ping) = &self.ping {
            drain(
                |buffer| ping.receive(buffer),
                &mut buffer,
                |received, bytes| {
                    let (Some(from), Some(seq)) = (received.from.map(|from| from.ip()), word(bytes, 6)) else { return };
                    each(Echoed {
                        target: from,
                        mark: Mark::Token(Token::Echo(seq)),
                        at: Duration::from_nanos(received.at_ns),
                        from: Some(from),
                        said: Said::Reached { ttl: received.ttl },
                    });
                },
            );
            let mark = |bytes: &[u8]| Some(Mark::Token(Token::Echo(word(bytes, 6)?)));
            self.errors(ping, &mut buffer, mark, &mut each);
        }
        self.errors(&self.udp, &mut buffer, |bytes| Some(Mark::Token(Token::Number(word(bytes, 0)?))), &mut each);
        if let Some(tcp) = &self.tcp {
            let ports = [tcp.main.port(), tcp.side.port()];
            drain(
                |buffer| tcp.socket.receive(buffer),
                &mut buffer,
                |received, bytes| {
                    let Some(from) = received.from.map(|from| from.ip()) else { return };
                    let Some(((_, port), heard)) = codec::read_tcp(bytes, self.v6) else { return };
                    if !ports.contains(&port) {
                        return;
                    }
                    let at = Duration::from_nanos(received.at_ns);
                    if let TcpHeard::Duplicate { start } = heard {
                        let mark = Mark::Token(Token::Tcp { port, seq: start });
                        let said = Said::Reached { ttl: received.ttl };
                        each(Echoed { target: from, mark, at, from: Some(from), said });
                    } else {
                        handshake(from, port, heard, at);
                    }
                },
            );
        }
        // Whatever a UDP service may say back is an answer to nothing that we count.
        drain(|buffer| self.udp.receive(buffer), &mut buffer, |_, _| {});
    }

    fn errors(
        &self,
        socket: &ProbeSocket,
        buffer: &mut [u8],
        mark: impl Fn(&[u8]) -> Option<Mark>,
        each: &mut impl FnMut(Echoed),
    ) {
        drain(
            |buffer| socket.receive_error(buffer),
            buffer,
            |received, bytes| {
                let (Some(error), Some(target)) = (received.error, received.from.map(|to| to.ip())) else { return };
                let (Some(mark), true) = (mark(bytes), error.icmp) else { return };
                let reached = error.offender == Some(target) && error.code == codec::port_unreachable(self.v6);
                let said = match (self.v6, error.kind, error.code) {
                    (false, 3, 4) | (true, 2, _) => Said::TooBig { mtu: error.info },
                    (false, 11, 0) | (true, 3, 0) => Said::Expired { quote: Quote::default() },
                    (false, 3, _) | (true, 1, _) if reached => Said::Reached { ttl: received.ttl },
                    (false, 3, code) | (true, 1, code) => Said::Unreachable { code },
                    _ => return,
                };
                each(Echoed { target, mark, at: Duration::from_nanos(received.at_ns), from: error.offender, said });
            },
        );
    }

    /// The port from which UDP probes come.
    pub(super) const fn udp_port(&self) -> u16 {
        self.udp_port
    }
}

impl Tcp {
    fn open(v6: bool) -> Option<Self> {
        let socket = ProbeSocket::raw_tcp(v6).ok()?;
        Some(Self { socket, main: QuietPort::open(v6).ok()?, side: QuietPort::open(v6).ok()? })
    }
}

fn segment(ends: &Ends, port: u16, seq: u32, ack: u32, flags: TcpFlags) -> Segment<'static> {
    Segment {
        addresses: (ends.source, ends.target),
        ports: (port, ends.port),
        seq,
        ack,
        flags,
        window: 65_535,
        options: &[],
        payload_len: 0,
        data: &[],
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
}

/// Reads until there is nothing, or a fair share of it.
fn drain(
    mut receive: impl FnMut(&mut [u8]) -> wt_sys::SysResult<Option<Received>>,
    buffer: &mut [u8],
    mut each: impl FnMut(Received, &[u8]),
) {
    for _ in 0..4096 {
        let Ok(Some(received)) = receive(buffer) else { return };
        each(received, &buffer[..received.len]);
    }
}

fn transmit(
    socket: &ProbeSocket,
    ends: &Ends,
    port: u16,
    bytes: &[u8],
    ttl: Option<u8>,
    gone: Sent,
) -> Result<Sent, Failure> {
    let to = SocketAddr::new(ends.target, port);
    let mut last = None;
    // With an error queue a send may fail for what an earlier packet met; that uses the error up. In a burst the next one's may
    // have come meanwhile, so that only a fault that stays is this packet's.
    for attempt in 0..ATTEMPTS {
        match socket.send(to, bytes, ttl) {
            Ok(()) => return Ok(gone),
            Err(error) if error.errno() == Some(EMSGSIZE) && attempt + 1 == ATTEMPTS => return Ok(Sent::TooBig),
            Err(error) if matches!(error.errno(), Some(EAGAIN | ENOBUFS)) => {
                let _ = wt_sys::poll::wait_writable(&[socket.as_fd()], Some(Duration::from_millis(1)));
                last = Some(error);
            }
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) if matches!(error.errno(), Some(EAGAIN | ENOBUFS)) => Ok(gone),
        Some(error) => Err(Failure::environment(error.to_string())
            .because("this host has no way to the target, its interface went down, or a firewall here forbids it")
            .hint(format!("ip route get {} shows the way", ends.target))),
        None => Ok(gone),
    }
}
