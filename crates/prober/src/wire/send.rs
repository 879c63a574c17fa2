//! Probes as they leave, and connections that carry one.

use super::{Connection, Endpoints, Mark, RawSegment, Reply, SIDE_TOS, SendOutcome, Stream, Wire};
use crate::clock::now;
use std::net::SocketAddr;
use std::os::fd::AsFd as _;
use std::time::Duration;
use wt_probe::codec::{self, Segment, Token};
use wt_probe::{Kind, Probe, ProbeAnswer, Time};
use wt_problem::Problem;
use wt_sys::probe::ProbeSocket;
use wt_sys::stream::{DataProbe, DataState};
use wt_wire::TcpFlags;

/// Where UDP probes go: a port where nobody listens, as traceroute has it.
const UDP_PORT: u16 = 33_434;
/// Old data begins at so many places, and so far below the first byte at least. Together they stay within the 64 KiB
/// that connection trackers accept.
const OLD_DATA: u32 = 40_000;
const LONGEST_OLD: u32 = 16_384;
/// A connection of the kernel's is waited for no longer.
const LONGEST_STREAM: Duration = Duration::from_secs(4);
/// What shall not be retransmitted is waited for a round trip and this.
const BRIEF: Duration = Duration::from_millis(150);
/// Error numbers of Linux.
const EMSGSIZE: i32 = 90;
/// How often a packet is tried to be sent.
const ATTEMPTS: u32 = 6;
const EAGAIN: i32 = 11;
const ENOBUFS: i32 = 105;

impl Stream {
    /// Whether it is over. The kernel retransmits a round trip and 200 ms after the data left, at the earliest: that would
    /// tell nothing, and use up what routers say of packets that are too long.
    ///
    /// # Source
    /// `TCP_RTO_MIN` of include/net/tcp.h.
    fn gives_up(&self, at: Time) -> bool {
        let sent = self.sent.filter(|_| self.brief);
        sent.is_some_and(|sent| at > sent + sent.saturating_sub(self.since) + BRIEF)
    }
}

impl Wire {
    /// Sends a probe.
    pub(crate) fn send(
        &mut self,
        ends: &Endpoints,
        probe: &Probe,
        connection: &mut Connection,
    ) -> Result<SendOutcome, Problem> {
        let header = if self.v6 { 40 } else { 20 };
        let len = usize::from(probe.ip_len).saturating_sub(header);
        self.number = self.number.wrapping_add(1);
        match probe.kind {
            Kind::Echo | Kind::LooseEcho => {
                let bytes = codec::echo_request(self.v6, self.ident, self.number, probe.flow, len);
                let Some(socket) = self.raw.as_ref().or(self.ping.as_ref()) else { return Ok(SendOutcome::Never) };
                let gone = SendOutcome::Gone(Mark::Token(Token::Echo(self.number)));
                if probe.kind == Kind::Echo {
                    return transmit(socket, ends, 0, &bytes, probe.ttl, gone);
                }
                if socket.let_routers_fragment(true).is_err() {
                    return Ok(SendOutcome::Never);
                }
                let sent = transmit(socket, ends, 0, &bytes, probe.ttl, gone);
                let _ = socket.let_routers_fragment(false);
                sent
            }
            Kind::Udp => {
                let mut bytes = vec![0; len.saturating_sub(8).max(2)];
                bytes[..2].copy_from_slice(&self.number.to_be_bytes());
                let port = UDP_PORT + u16::from(probe.flow);
                transmit(
                    &self.udp,
                    ends,
                    port,
                    &bytes,
                    probe.ttl,
                    SendOutcome::Gone(Mark::Token(Token::Number(self.number))),
                )
            }
            Kind::Syn if self.tcp.is_none() => Ok(self.connect(ends, None, true)),
            Kind::Stream => Ok(self.connect(ends, Some(probe.ip_len), true)),
            Kind::LastingStream => Ok(self.connect(ends, Some(probe.ip_len), false)),
            Kind::Syn => self.send_syn(ends, probe, connection),
            Kind::RefusedSyn => self.send_refused(ends, len, probe, connection),
            Kind::OldSegment => self.send_old(ends, len, probe.ttl, connection),
        }
    }

    /// Lets the kernel connect, and send one packet of this length when it has.
    fn connect(&mut self, ends: &Endpoints, ip_len: Option<u16>, brief: bool) -> SendOutcome {
        let mark = Mark::Stream(self.number);
        let Some(streams) = &mut self.streams else { return SendOutcome::Never };
        // One that is refused at once, or can't be opened, stays without an answer.
        if let Ok(probe) = DataProbe::open(SocketAddr::new(ends.target, ends.port)) {
            let since = now();
            streams.push(Stream { probe, target: ends.target, mark, ip_len, since, brief, sent: None, copies: 0 });
        }
        SendOutcome::Gone(mark)
    }

    /// Whether connections must be looked at from time to time.
    pub(crate) fn has_streams(&self) -> bool {
        self.streams.as_ref().is_some_and(|streams| !streams.is_empty())
    }

    /// Lets connections go on, and tells how they fare.
    pub(crate) fn advance_streams(&mut self, mut each: impl FnMut(Reply)) {
        let Some(streams) = &mut self.streams else { return };
        let at = now();
        streams.retain_mut(|stream| {
            let mut tell = |said| {
                each(Reply { target: stream.target, mark: stream.mark, at, from: Some(stream.target), said });
            };
            match (stream.probe.state(), stream.ip_len) {
                (DataState::Waiting, _) if stream.gives_up(at) => return false,
                (DataState::Waiting, _) => {
                    let copies = stream.probe.copies();
                    if std::mem::replace(&mut stream.copies, copies) < copies && copies > 1 {
                        tell(ProbeAnswer::Retransmitted { copies });
                    }
                    return at < stream.since + LONGEST_STREAM;
                }
                (DataState::Refused, None) => tell(ProbeAnswer::Refused),
                (DataState::Open { mss, .. }, None) => {
                    // The kernel knows to the microsecond when packets came; we see it when we look.
                    stream.probe.round_trip().into_iter().for_each(|trip| tell(ProbeAnswer::Timed { trip }));
                    tell(ProbeAnswer::Open { mss, sack: false });
                }
                (DataState::Open { longest, .. }, Some(ip_len)) => match stream.probe.send(ip_len) {
                    Ok(()) => {
                        tell(ProbeAnswer::Connected);
                        stream.sent = Some(at);
                        return true;
                    }
                    Err(_) => {
                        tell(ProbeAnswer::StreamLimit { longest });
                        tell(ProbeAnswer::LocalTooBig);
                    }
                },
                (DataState::Acknowledged { again: false }, _) => {
                    stream.probe.round_trip().into_iter().for_each(|trip| tell(ProbeAnswer::Timed { trip }));
                    tell(ProbeAnswer::Reached { ttl: None });
                }
                (DataState::Acknowledged { again: true }, _) => tell(ProbeAnswer::Late),
                (DataState::Split, _) => tell(ProbeAnswer::LocalTooBig),
                (DataState::Refused, _) => {}
            }
            false
        });
    }

    fn send_syn(&self, ends: &Endpoints, probe: &Probe, connection: &Connection) -> Result<SendOutcome, Problem> {
        let Some(tcp) = &self.tcp else { return Ok(SendOutcome::Never) };
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
        let sent = transmit(&tcp.socket, ends, 0, &bytes, probe.ttl, SendOutcome::Gone(mark));
        let _ = tcp.socket.set_tos(0);
        sent
    }

    /// The port of SYNs that shall not arrive, where one did: refuses what it was answered with.
    pub(crate) fn refuse(&self, ends: &Endpoints, port: u16, seq: u32) {
        let Some(tcp) = &self.tcp else { return };
        let bytes = segment(ends, port, seq, 0, TcpFlags::RST).to_bytes();
        let _ = tcp.socket.send(SocketAddr::new(ends.target, 0), &bytes, None);
    }

    /// A SYN with data, to a port that is known to refuse it.
    fn send_refused(
        &self,
        ends: &Endpoints,
        len: usize,
        probe: &Probe,
        connection: &Connection,
    ) -> Result<SendOutcome, Problem> {
        let Some(tcp) = &self.tcp else { return Ok(SendOutcome::Never) };
        let (port, seq) = (tcp.side.port(), connection.refused_seq(probe.id));
        let payload_len = len.saturating_sub(20);
        let segment = Segment { payload_len, ..segment(ends, port, seq, 0, TcpFlags::SYN) };
        let gone = SendOutcome::Gone(Mark::Token(Token::Tcp { port, seq }));
        transmit(&tcp.socket, ends, 0, &segment.to_bytes(), probe.ttl, gone)
    }

    fn send_old(
        &self,
        ends: &Endpoints,
        len: usize,
        ttl: Option<u8>,
        connection: &mut Connection,
    ) -> Result<SendOutcome, Problem> {
        let (Some(tcp), Some(ack)) = (&self.tcp, connection.ack) else { return Ok(SendOutcome::Never) };
        let payload_len = len.saturating_sub(20).max(1);
        // It ends before the first byte that the target expects, and begins at a place of its own.
        let below = LONGEST_OLD.max(u32::try_from(payload_len).unwrap_or(0)) + connection.count % OLD_DATA;
        connection.count = connection.count.wrapping_add(1);
        let seq = connection.isn.wrapping_add(1).wrapping_sub(below);
        let port = tcp.main.port();
        let segment = Segment { payload_len, ..segment(ends, port, seq, ack, TcpFlags::ACK) };
        let gone = SendOutcome::Gone(Mark::Token(Token::Tcp { port, seq }));
        transmit(&tcp.socket, ends, 0, &segment.to_bytes(), ttl, gone)
    }

    /// Completes a handshake.
    pub(crate) fn complete(&self, ends: &Endpoints, connection: &Connection) {
        let (Some(tcp), Some(ack)) = (&self.tcp, connection.ack) else { return };
        let bytes = segment(ends, tcp.main.port(), connection.isn.wrapping_add(1), ack, TcpFlags::ACK).to_bytes();
        // A lost one is sent again, by who asked for the connection or before old segments.
        let _ = tcp.socket.send(SocketAddr::new(ends.target, 0), &bytes, None);
    }

    /// A segment of a connection that the caller keeps.
    pub(crate) fn speak(&self, ends: &Endpoints, raw: &RawSegment<'_>) {
        let Some(tcp) = &self.tcp else { return };
        let plain = segment(ends, raw.port, raw.seq, raw.ack, raw.flags);
        let RawSegment { window, options, data, .. } = *raw;
        let bytes = Segment { window, options, data, payload_len: data.len(), ..plain }.to_bytes();
        // A lost one is seen by what doesn't come.
        let _ = tcp.socket.send(SocketAddr::new(ends.target, 0), &bytes, None);
    }

    /// Leaves nothing open at the target.
    pub(crate) fn reset(&self, ends: &Endpoints, connection: &Connection) {
        let (Some(tcp), Some(ack)) = (&self.tcp, connection.ack) else { return };
        let flags = TcpFlags(TcpFlags::RST.0 | TcpFlags::ACK.0);
        let seq = connection.isn.wrapping_add(1).wrapping_add(connection.sent);
        let bytes = segment(ends, tcp.main.port(), seq, ack, flags).to_bytes();
        let _ = tcp.socket.send(SocketAddr::new(ends.target, 0), &bytes, None);
    }
}

fn segment(ends: &Endpoints, port: u16, seq: u32, ack: u32, flags: TcpFlags) -> Segment<'static> {
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

fn transmit(
    socket: &ProbeSocket,
    ends: &Endpoints,
    port: u16,
    bytes: &[u8],
    ttl: Option<u8>,
    gone: SendOutcome,
) -> Result<SendOutcome, Problem> {
    let to = SocketAddr::new(ends.target, port);
    let mut last = None;
    // With an error queue a send may fail for what an earlier packet met; that uses the error up. In a burst the next one's may
    // have come meanwhile, so that only a fault that stays is this packet's.
    for attempt in 0..ATTEMPTS {
        match socket.send(to, bytes, ttl) {
            Ok(()) => return Ok(gone),
            Err(error) if error.errno() == Some(EMSGSIZE) && attempt + 1 == ATTEMPTS => return Ok(SendOutcome::TooBig),
            Err(error) if matches!(error.errno(), Some(EAGAIN | ENOBUFS)) => {
                let _ = wt_sys::poll::wait_writable(&[socket.as_fd()], Some(Duration::from_millis(1)));
                last = Some(error);
            }
            Err(error) => last = Some(error),
        }
    }
    match last {
        Some(error) if matches!(error.errno(), Some(EAGAIN | ENOBUFS)) => Ok(gone),
        Some(error) => Err(Problem::environment(error.to_string())
            .because("this host has no way to the target, its interface went down, or a firewall here forbids it")
            .hint(format!("ip route get {} shows the way", ends.target))),
        None => Ok(gone),
    }
}
