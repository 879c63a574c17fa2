//! What comes back: connections on which the target is asked to send, for [`Reverse`].
//!
//! The window stays shut until the target has had time to queue its answers, so that it fills its segments up. It is asked
//! for a page several times over in one packet, for one page is often shorter than a packet.

use crate::clock::now;
use crate::target::Target;
use crate::wire::{Connection, Endpoints, RawSegment, Wire};
use std::net::IpAddr;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;
use wt_probe::{Reverse, Time};
use wt_sys::probe::QuietPort;
use wt_sys::sniff::Sniffer;
use wt_trial::Cancel;
use wt_units::HostPort;
use wt_wire::{IpView, Protocol, TcpFlags, TcpView};

/// So long the target may take to queue its answers.
const THINKING: Duration = Duration::from_millis(15);
/// Bytes of all requests of a connection together, at most.
const REQUESTS: usize = 1000;
/// The whole of it takes no longer.
const LIMIT: Duration = Duration::from_secs(5);

/// One connection.
struct ReverseConnection {
    /// Keeps this host's kernel quiet; `None` for the connection of the search.
    quiet: Option<QuietPort>,
    port: u16,
    isn: u32,
    ack: Option<u32>,
    number: usize,
    since: Time,
    asked: Option<Time>,
    opened: Option<Time>,
    heard: Option<Time>,
}

/// The connections on which the target is asked to send, one for each question.
pub(crate) struct ReverseSearch {
    logic: Reverse,
    sniffer: Sniffer,
    ends: Endpoints,
    request: Vec<u8>,
    connections: Vec<ReverseConnection>,
    /// The first connection of the current round.
    round_from: usize,
    rtt: Duration,
    pub(crate) packets: u32,
}

impl ReverseSearch {
    /// For a target that probably speaks HTTP on the port; `None` where packets can't be seen as they arrive.
    pub(crate) fn new(target: &Target, ends: Endpoints) -> Option<Self> {
        let usual = matches!(ends.port, 80 | 3000 | 5000 | 8000..=8999);
        let v6 = target.ip.is_ipv6();
        let sniffer = Sniffer::open(&target.device, v6).ok().filter(|_| usual)?;
        let host = host_header(&target.name, ends.port);
        let one = format!("GET / HTTP/1.1\r\nHost: {host}\r\nUser-Agent: windtunnel\r\n\r\n");
        let request = one.repeat((REQUESTS / one.len()).clamp(1, 12)).into_bytes();
        let logic = Reverse::new(if v6 { 60 } else { 40 }, ends.mss);
        Some(Self {
            logic,
            sniffer,
            ends,
            request,
            connections: Vec::new(),
            round_from: 0,
            rtt: Duration::ZERO,
            packets: 0,
        })
    }

    /// The search has a connection: the first question goes with its acknowledgement. Gives its length.
    pub(crate) fn ask_first(&mut self, wire: &Wire, connection: &Connection, port: u16, opened: (Time, Time)) -> u32 {
        let (since, at) = opened;
        self.rtt = at.saturating_sub(since);
        let number = self.logic.open(self.ends.mss);
        let (isn, ack) = (connection.isn, connection.ack);
        let connection =
            ReverseConnection { quiet: None, port, isn, ack, number, since, asked: None, opened: None, heard: None };
        self.connections.push(connection);
        self.ask(wire, 0);
        self.asked_len()
    }

    fn asked_len(&self) -> u32 {
        u32::try_from(self.request.len()).unwrap_or(0)
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.sniffer.as_fd()
    }

    /// When to [`tick`](Self::tick) again.
    pub(crate) fn wakeup(&self) -> Option<Time> {
        let shut = self.connections.iter().filter(|connection| connection.opened.is_none());
        shut.filter_map(|connection| connection.asked).map(|asked| asked + THINKING).min()
    }

    /// Takes what has arrived, and opens windows for which it is time.
    pub(crate) fn tick(&mut self, wire: &Wire) {
        let heard = now();
        let mut accepted = Vec::new();
        while let Some(sniffed) = self.sniffer.receive() {
            let Some((port, seq, segment)) = from_target(sniffed.packet, self.ends.target, self.ends.port) else {
                continue;
            };
            let Some(index) = self.connections.iter().position(|connection| connection.port == port) else { continue };
            let connection = &mut self.connections[index];
            if segment.flags().has(TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0)) {
                let ours = connection.quiet.is_some()
                    && connection.ack.is_none()
                    && segment.ack().0 == connection.isn.wrapping_add(1);
                if ours {
                    connection.ack = Some(seq.wrapping_add(1));
                    accepted.push(index);
                }
                continue;
            }
            let at = seq.wrapping_sub(connection.ack.unwrap_or(seq));
            let len = u32::try_from(segment.payload().len()).unwrap_or(0);
            if segment.flags().has(TcpFlags::FIN) {
                self.logic.end(connection.number, at.wrapping_add(len));
            }
            if len > 0 {
                let each = u32::from(sniffed.segment.unwrap_or(u16::MAX)).clamp(1, len);
                for from in (0..len).step_by(each as usize) {
                    let piece = u16::try_from(each.min(len - from)).unwrap_or(u16::MAX);
                    self.logic.segment(connection.number, at.wrapping_add(from), piece);
                }
                connection.heard = Some(heard);
            }
        }
        for index in accepted {
            self.ask(wire, index);
        }
        for index in 0..self.connections.len() {
            if self.connections[index].opened.is_none()
                && self.connections[index].asked.is_some_and(|asked| asked + THINKING <= heard)
            {
                self.connections[index].opened = Some(heard);
                self.say(wire, index, TcpFlags::ACK, u16::MAX, &[]);
            }
        }
    }

    fn ask(&mut self, wire: &Wire, index: usize) {
        let request = std::mem::take(&mut self.request);
        self.say(wire, index, TcpFlags(TcpFlags::ACK.0 | TcpFlags::PSH.0), 0, &request);
        self.request = request;
        self.connections[index].asked = Some(now());
    }

    fn say(&mut self, wire: &Wire, index: usize, flags: TcpFlags, window: u16, data: &[u8]) {
        let connection = &self.connections[index];
        // The request has gone before the window opens and before the reset.
        let sent = if connection.asked.is_some() { self.asked_len() } else { 0 };
        let seq = connection.isn.wrapping_add(1).wrapping_add(sent);
        let (port, ack) = (connection.port, connection.ack.unwrap_or(0));
        wire.speak(&self.ends, &RawSegment { port, seq, ack, flags, window, options: &[], data });
        self.packets += 1;
    }

    /// Goes on until it is clear what comes back, the search having found what gets there.
    pub(crate) fn finish(&mut self, wire: &Wire, forward: Option<u16>, cancel: &Cancel) -> Option<u16> {
        let end = now() + LIMIT;
        while !self.connections.is_empty() && now() < end && !cancel.is_cancelled() {
            self.tick(wire);
            if self.logic.pmtu(forward).is_some() {
                break;
            }
            let due = self.round_due();
            if due <= now() {
                let round = self.logic.next_round(forward);
                if round.is_empty() {
                    break;
                }
                self.round_from = self.connections.len();
                round.into_iter().for_each(|mss| self.connect(wire, mss));
                continue;
            }
            let next = self.wakeup().unwrap_or(due).min(due).saturating_sub(now()).max(Duration::from_micros(50));
            if wt_sys::poll::wait_readable(&[self.descriptor()], Some(next)).is_err() {
                break;
            }
        }
        for index in 0..self.connections.len() {
            if self.connections[index].quiet.is_some() {
                self.say(wire, index, TcpFlags(TcpFlags::RST.0 | TcpFlags::ACK.0), 0, &[]);
            }
        }
        self.logic.pmtu(forward)
    }

    /// Whether longer packets than the largest that comes back vanish on their way, and nobody tells the target.
    pub(crate) fn is_hole(&self, forward: Option<u16>) -> bool {
        self.logic.is_hole(forward)
    }

    /// When nothing more is awaited of the current round.
    fn round_due(&self) -> Time {
        let grace = self.rtt / 4 + Duration::from_millis(15);
        let due = |connection: &ReverseConnection| match (connection.opened, connection.asked) {
            // A router's word and what the target then sends again take a round trip more.
            (Some(opened), _) => {
                (opened + self.rtt + grace).max(connection.heard.unwrap_or(opened) + self.rtt / 2) + grace
            }
            (None, Some(asked)) => asked + THINKING + self.rtt * 2 + grace,
            (None, None) => connection.since + self.rtt + grace,
        };
        self.connections[self.round_from..].iter().map(due).max().unwrap_or_default()
    }

    fn connect(&mut self, wire: &Wire, mss: u16) {
        let Ok(quiet) = QuietPort::open(self.ends.target.is_ipv6()) else { return };
        let (port, number, since) = (quiet.port(), self.logic.open(mss), now());
        let isn = (since.as_nanos() as u32) ^ (u32::from(port) << 16);
        let [high, low] = mss.to_be_bytes();
        let options = [2, 4, high, low];
        let syn = RawSegment { port, seq: isn, ack: 0, flags: TcpFlags::SYN, window: 0, options: &options, data: &[] };
        wire.speak(&self.ends, &syn);
        self.packets += 1;
        let quiet = Some(quiet);
        self.connections.push(ReverseConnection {
            quiet,
            port,
            isn,
            ack: None,
            number,
            since,
            asked: None,
            opened: None,
            heard: None,
        });
    }
}

/// Our port, the sequence number and the segment, of a packet from the target.
fn from_target(packet: &[u8], target: IpAddr, port: u16) -> Option<(u16, u32, TcpView<'_>)> {
    let view = IpView::new(packet).ok().filter(|view| view.src() == target)?;
    let (protocol, bytes) = view.transport()?;
    let segment = TcpView::new(bytes).ok().filter(|segment| protocol == Protocol::TCP && segment.src_port() == port)?;
    Some((segment.dst_port(), segment.seq().0, segment))
}

/// `Host:`'s value for a host as it was written, perhaps with its port.
fn host_header(name: &str, port: u16) -> String {
    let host = name.parse().map_or(name.to_owned(), |place: HostPort| place.host);
    HostPort { host, port: Some(port).filter(|port| *port != 80) }.to_string()
}

#[cfg(test)]
mod tests {
    use super::host_header;

    #[test]
    fn a_host_is_named_with_its_port_and_ipv6_addresses_in_brackets() {
        for (name, port, header) in [
            ("server", 80, "server"),
            ("server:80", 80, "server"),
            ("127.0.0.1:8080", 8080, "127.0.0.1:8080"),
            ("fd00::80", 80, "[fd00::80]"),
            ("[fd00::1]:8080", 8080, "[fd00::1]:8080"),
        ] {
            assert_eq!(host_header(name, port), header, "{name}");
        }
    }
}
