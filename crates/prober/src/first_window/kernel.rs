//! Without privilege: this kernel's own TCP asks, and is kept from acknowledging for as long as it takes.

use super::connections::Connections;
use super::finding::{HostFinding, SynAck, why};
use super::sessions::Sessions;
use super::tls::begins_record;
use crate::clock::now as clock_now;
use std::io::ErrorKind::BrokenPipe;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::ops::RangeInclusive;
use std::time::Duration;
use wt_probe::Time;
use wt_probe::first_window::{
    Counts, Decision, DecisionReason, DelayedAnswer, End, Goal, HEAD, Head, OpenedConnection, Opener as _, Queue,
    Reading, SurveyConfig, Verdict, decide,
};
use wt_problem::Problem;
use wt_sys::SysResult;
use wt_sys::tcp::{self, TcpInfo, TcpSocket};

/// Hosts at once: all of them are looked at every fraction of a millisecond.
pub(super) const AT_ONCE: usize = 32;
/// Between two looks.
pub(super) const TICK: Duration = Duration::from_micros(200);
/// How long a handshake may take.
const CONNECTING: Duration = Duration::from_secs(5);
/// After so long a SYN-ACK is retransmitted (RFC 6298 section 2).
const LATE: Duration = Duration::from_millis(900);
/// The receive buffer to ask for, bytes; the kernel gives what it may.
const BUFFER: u32 = 256 << 10;
/// Connections to one host, those that said nothing included.
const MOST: usize = 5;
/// `TCP_CLOSE_WAIT` and `TCP_CLOSE` of the kernel's `tcp_states.h`.
const CLOSE_WAIT: u8 = 8;
const CLOSED: u8 = 7;
/// The kernel makes no shorter segments for whoever asks for them (`TCP_MIN_MSS` of include/net/tcp.h), and several that are longer it
/// acknowledges at once: it takes segments to be of this length until it knows better (`tcp_initialize_rcv_mss()`).
pub(super) const SIZES: RangeInclusive<u16> = 88..=536;
/// Windows up to this may depend on the size of segments (RFC 5681 section 3.1).
const BY_SIZE: u32 = 4;

/// A connection of the kernel.
struct Probe {
    stream: TcpStream,
    mss: u16,
    begun: Time,
    request: Vec<u8>,
    /// `None` until the handshake is done.
    flight: Option<DelayedAnswer>,
    /// The server has said that there is no more.
    finished: bool,
}

/// What a look at a connection gave.
enum ProbeState {
    Waiting,
    Done(Option<Reading>),
}

impl Probe {
    fn open(goal: &Goal, mss: u16, request: Vec<u8>, now: Time) -> SysResult<Self> {
        let peer = SocketAddr::new(goal.address, goal.port);
        let socket = TcpSocket::new(&peer)?;
        tcp::set_max_segment(&socket, mss.into())?;
        tcp::set_receive_buffer(&socket, BUFFER)?;
        tcp::set_quick_ack(&socket, false)?;
        tcp::reset_on_close(&socket)?;
        Ok(Self { stream: socket.begin_connect(&peer)?, mss, begun: now, request, flight: None, finished: false })
    }

    fn look(&mut self, now: Time, facts: &mut Option<SynAck>) -> ProbeState {
        let ended = |end| ProbeState::Done(Some(empty(self.mss, end)));
        let Ok(info) = TcpInfo::read(&self.stream) else { return ended(End::Reset) };
        let Some(flight) = &mut self.flight else {
            return match self.stream.take_error() {
                Ok(Some(error)) if error.kind() == std::io::ErrorKind::ConnectionRefused => ended(End::Refused),
                Ok(Some(_)) | Err(_) => ended(End::Silent),
                _ if info.state == 1 || info.state == CLOSE_WAIT => self.ask(now, &info, facts),
                _ if now >= self.begun + CONNECTING => ended(End::Silent),
                _ => ProbeState::Waiting,
            };
        };
        // Whoever is reset after that gets another error than before (`tcp_reset()` in net/ipv4/tcp_input.c).
        let broken = |stream: &TcpStream| matches!(stream.take_error(), Ok(Some(error)) if error.kind() == BrokenPipe);
        self.finished |= info.state == CLOSE_WAIT || info.state == CLOSED && broken(&self.stream);
        // The FIN takes a sequence number, which the kernel counts, but no byte.
        let bytes = info.bytes_received.saturating_sub(self.finished.into());
        let counts = Counts {
            segments: info.data_segs_in,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            sent: info.segs_out,
            // The kernel's word for "not known" is the largest number.
            rtt: Duration::from_micros(if info.min_rtt == u32::MAX { 0 } else { info.min_rtt.into() }),
            disordered: info.rcv_ooopack > 0,
            ended: matches!(info.state, CLOSE_WAIT | CLOSED),
        };
        if !flight.see(now, counts) {
            return ProbeState::Waiting;
        }
        let reading = flight.reading();
        let reset = info.state == CLOSED && counts.bytes == 0;
        ProbeState::Done(if reset { Some(empty(self.mss, End::Reset)) } else { reading })
    }

    /// The handshake is done: sends the request.
    fn ask(&mut self, now: Time, info: &TcpInfo, facts: &mut Option<SynAck>) -> ProbeState {
        if info.total_retrans > 0 || now >= self.begun + LATE {
            // After a repeated handshake a server begins with one segment (RFC 5681 section 3.1).
            return ProbeState::Done(None);
        }
        facts.get_or_insert(SynAck {
            // Our own MSS bounds what the kernel tells of theirs.
            mss: None,
            sack: Some(info.sack()),
            timestamps: Some(info.timestamps()),
            window_scale: info.window_scale().map(|(theirs, _)| theirs),
            window: u16::try_from(info.snd_wnd).ok(),
            ecn: info.ecn().then_some(true),
            fast_open: None,
        });
        let opened = OpenedConnection {
            mss: self.mss,
            timestamps: info.timestamps(),
            rtt: Duration::from_micros(info.rtt.into()),
            window: if info.rcv_wnd > 0 { info.rcv_wnd } else { u16::MAX.into() },
        };
        self.flight = Some(DelayedAnswer::new(opened, now));
        let sent = self.stream.write_all(&self.request).and_then(|()| {
            // Sending has taken the kernel out of the mode in which it waits.
            tcp::set_quick_ack(&self.stream, false).map_err(|error| error.source)
        });
        match sent {
            Ok(()) => ProbeState::Waiting,
            Err(_) => ProbeState::Done(Some(empty(self.mss, End::Reset))),
        }
    }

    /// Whether what came first is of another protocol than TLS, when all is over.
    fn is_foreign(&mut self) -> bool {
        let mut first = [0];
        self.stream.read(&mut first).is_ok_and(|len| len == 1 && !begins_record(first[0]))
    }

    /// The head of the response, when all is over.
    fn head(&mut self) -> Option<Head> {
        let mut bytes = vec![0; HEAD];
        let len = self.stream.read(&mut bytes).ok()?;
        Head::read(&bytes[..len])
    }
}

fn empty(mss: u16, end: End) -> Reading {
    Reading {
        mss,
        end,
        segments: 0,
        spare: 0,
        bytes: 0,
        max_segment: 0,
        left_over: None,
        sure: false,
        more: false,
        exhausted: false,
        capped: false,
        firm: true,
        limited: false,
        late: false,
    }
}

/// One host that is being asked.
struct Host {
    number: usize,
    goal: Goal,
    begun: Time,
    /// The sizes to offer first, if any were asked for.
    mss: Vec<u16>,
    probe: Option<Probe>,
    readings: Vec<Reading>,
    facts: Option<SynAck>,
    probes: usize,
    packets: u32,
    /// What was asked for before a redirect, and what that showed.
    before: Option<(Goal, Vec<Reading>)>,
    /// Where a response leads that is too short.
    redirect: Option<String>,
    /// The port that refused a connection.
    refused: Option<u16>,
    /// Why nothing could be sent at all.
    broken: Option<String>,
}

impl Host {
    fn start((number, goal): (usize, Goal), mss: &[u16], sessions: &Sessions, now: Time) -> Self {
        let mut host = Self {
            number,
            goal,
            begun: now,
            mss: mss.to_vec(),
            probe: None,
            readings: Vec::new(),
            facts: None,
            probes: 0,
            packets: 0,
            before: None,
            redirect: None,
            refused: None,
            broken: None,
        };
        host.open(sessions, now);
        host
    }

    fn open(&mut self, sessions: &Sessions, now: Time) {
        self.probes += 1;
        let request = sessions.open(&self.goal).opening();
        match Probe::open(&self.goal, next_size(&self.mss, &self.readings, self.goal.tls), request, now) {
            Ok(probe) => self.probe = Some(probe),
            Err(error) if error.source.kind() == std::io::ErrorKind::ConnectionRefused => {
                self.readings.push(empty(0, End::Refused));
                self.refused = Some(self.goal.port);
            }
            Err(error) => self.broken = Some(error.to_string()),
        }
    }

    /// Looks; what was found once it is done.
    fn look(&mut self, now: Time, sessions: &Sessions) -> Option<HostFinding> {
        if let Some(probe) = &mut self.probe {
            let ProbeState::Done(reading) = probe.look(now, &mut self.facts) else { return None };
            self.packets += TcpInfo::read(&probe.stream).map_or(0, |info| info.segs_out);
            let head = if reading.is_some_and(|r| r.exhausted) && !self.goal.tls { probe.head() } else { None };
            // That shows also where a busy machine measured nothing.
            let may_be = self.goal.tls && reading.is_none_or(|reading| reading.end == End::Flight);
            let reading = if may_be && probe.is_foreign() { Some(empty(probe.mss, End::Foreign)) } else { reading };
            self.probe = None;
            self.readings.extend(reading);
            if reading.is_some_and(|reading| reading.end == End::Refused) {
                self.refused = Some(self.goal.port);
            }
            if let Some(url) = head.as_ref().and_then(|head| self.goal.leads_to(head)) {
                self.redirect = Some(url);
            }
            if let Some(goal) = self.redirected(head) {
                let goal = std::mem::replace(&mut self.goal, goal);
                self.before = Some((goal, std::mem::take(&mut self.readings)));
            }
        }
        let decision = decide(&self.readings);
        let lost = decision.verdict == Verdict::Unknown && !self.readings.is_empty();
        if self.broken.is_some() || lost || self.probes >= MOST || self.is_enough(&decision) {
            return Some(self.finding(now));
        }
        self.open(sessions, now);
        None
    }

    fn is_enough(&self, decision: &Decision) -> bool {
        let short = |size| self.readings.iter().any(|r| r.exhausted && r.mss <= size);
        decision.verdict == Verdict::Exact || short(136) || self.readings.len() >= MOST - 1
    }

    fn redirected(&self, head: Option<Head>) -> Option<Goal> {
        let head = head.filter(|head| self.before.is_none() && (300..400).contains(&head.status))?;
        self.goal.redirected(&head.location?).filter(|goal| goal.address == self.goal.address)
    }

    fn finding(&mut self, now: Time) -> HostFinding {
        let mut decision = decide(&self.readings);
        if let (Verdict::Unknown, Some((goal, readings))) = (decision.verdict, self.before.take()) {
            // Where the redirect leads nothing was found out, but before.
            (self.goal, self.readings, self.broken) = (goal, readings, None);
            decision = decide(&self.readings);
        }
        let redirect = self.redirect.take().filter(|_| decision.why == DecisionReason::ShortResponse);
        let why = match &self.broken {
            Some(why) => why.clone(),
            None if self.readings.is_empty() => "segments got lost on the way, or this host was too busy".to_owned(),
            None => why(decision.why, redirect.as_deref()),
        };
        let known = decision.verdict != Verdict::Unknown;
        HostFinding {
            address: Some(self.goal.address),
            verdict: decision.verdict,
            segments: known.then_some(decision.segments),
            bytes: known.then_some(decision.bytes),
            mss: known.then_some(decision.mss),
            limit: decision.limit,
            why,
            redirect,
            method: "delayed-ack",
            syn_ack: self.facts,
            probes: self.probes,
            packets: self.packets,
            seconds: now.saturating_sub(self.begun).as_secs_f64(),
            ..HostFinding::default()
        }
    }
}

/// The size to offer next: those that were asked for, first. Of TLS only the first answer shows, before it waits for us: short
/// segments make the most of it.
fn next_size(mss: &[u16], readings: &[Reading], tls: bool) -> u16 {
    let flights = || readings.iter().filter(|reading| reading.end == End::Flight);
    let most = flights().map(|reading| reading.segments).max().unwrap_or(0);
    let short = tls || flights().any(|reading| reading.exhausted);
    let sizes: [u16; 4] = match () {
        () if short => [88, 120, 104, 136],
        () if most > BY_SIZE => [536, 268, 400, 200],
        () => [536, 1240, 268, 400],
    };
    let unused = |mss: &u16| flights().all(|reading| reading.mss != *mss);
    mss.iter().copied().chain(sizes).find(unused).unwrap_or(sizes[0])
}

/// All hosts that are being asked by the kernel's own connections, and those that wait.
pub(super) struct KernelConnections<'a> {
    sessions: &'a Sessions,
    mss: &'a [u16],
    queue: Queue<(usize, Goal)>,
    active: Vec<Host>,
    refused: Vec<(IpAddr, u16)>,
}

impl<'a> KernelConnections<'a> {
    /// Nobody yet.
    pub(super) fn new(config: SurveyConfig, mss: &'a [u16], sessions: &'a Sessions) -> Self {
        wt_sys::poll::sharpen_timers();
        Self { sessions, mss, queue: Queue::new(config), active: Vec::new(), refused: Vec::new() }
    }
}

impl Connections for KernelConnections<'_> {
    fn add(&mut self, number: usize, goal: Goal) {
        self.queue.add(goal.address, (number, goal));
    }

    fn step(&mut self, now: Time, found: &mut Vec<(usize, HostFinding)>) -> Result<(), Problem> {
        while self.active.len() < AT_ONCE {
            let busy = |address| self.active.iter().any(|host| host.goal.address == address);
            let Some((address, (number, goal))) = self.queue.next(now, busy) else { break };
            if self.refused.contains(&(address, goal.port)) {
                let why = DecisionReason::Refused.text().to_owned();
                found.push((number, HostFinding { address: Some(address), why, ..HostFinding::default() }));
                continue;
            }
            self.active.push(Host::start((number, goal), self.mss, self.sessions, now));
        }
        let (sessions, refused) = (self.sessions, &mut self.refused);
        self.active.retain_mut(|host| {
            // A look for each: the one before may have taken a while.
            let now = clock_now();
            let Some(finding) = host.look(now, sessions) else { return true };
            refused.extend(host.refused.map(|port| (host.goal.address, port)));
            found.push((host.number, finding));
            false
        });
        Ok(())
    }

    fn wakeup(&self, now: Time) -> Option<Time> {
        if self.active.is_empty() { self.queue.wakeup() } else { Some(now + TICK) }
    }

    fn has_found(&self) -> bool {
        self.active.is_empty() && self.queue.is_empty()
    }

    fn is_done(&self, _: Time) -> bool {
        self.has_found()
    }

    fn stop(&mut self, now: Time, found: &mut Vec<(usize, HostFinding)>) {
        self.queue.clear();
        for mut host in self.active.drain(..) {
            found.push((host.number, host.finding(now)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a connection shows of a server that answers so and closes.
    fn shown(answer: &'static [u8]) -> Reading {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let SocketAddr::V4(at) = listener.local_addr().unwrap() else { panic!("no IPv4") };
        let server = std::thread::spawn(move || {
            let (mut peer, _) = listener.accept().unwrap();
            let mut request = [0; 100];
            let asked = peer.read(&mut request).unwrap();
            peer.write_all(answer).unwrap();
            asked
        });
        let host = "127.0.0.1".to_owned();
        let goal = Goal { address: IpAddr::from(*at.ip()), port: at.port(), tls: false, host, path: "/".to_owned() };
        let mut probe = Probe::open(&goal, 536, b"GET / HTTP/1.0\r\n\r\n".to_vec(), clock_now()).unwrap();
        let reading = loop {
            if let ProbeState::Done(reading) = probe.look(clock_now(), &mut None) {
                break reading.unwrap();
            }
            wt_sys::poll::wait_readable(&[], Some(TICK)).unwrap();
        };
        assert_eq!(server.join().unwrap(), 18);
        reading
    }

    #[test]
    fn the_end_of_a_response_is_no_byte_of_it() {
        let empty = shown(b"");
        assert_eq!((empty.end, empty.bytes, empty.segments), (End::NoData, 0, 0), "{empty:?}");
        assert_eq!(decide(&[empty]).verdict, Verdict::Unknown);
        let short = shown(b"hello");
        assert_eq!((short.end, short.bytes, short.exhausted), (End::Flight, 5, true), "{short:?}");
    }

    #[test]
    fn sizes_that_were_asked_for_come_first() {
        let seen = |mss, segments| Reading { segments, ..empty(mss, End::Flight) };
        for (asked, readings, size) in [
            (&[][..], vec![], 536),
            (&[], vec![seen(536, 10)], 268),
            (&[300, 200], vec![], 300),
            (&[300, 200], vec![seen(300, 10)], 200),
            (&[300, 200], vec![seen(300, 10), seen(200, 9)], 536),
        ] {
            assert_eq!(next_size(asked, &readings, false), size, "{asked:?} {readings:?}");
        }
        assert_eq!((next_size(&[], &[], true), next_size(&[300], &[], true)), (88, 300));
    }
}
