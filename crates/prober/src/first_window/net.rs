//! The sockets through which segments leave and are heard. They need `CAP_NET_RAW` and change nothing on this host.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd as _, BorrowedFd};
use std::time::Duration;
use wt_probe::codec::{Segment, syn_options};
use wt_probe::first_window::{Incoming, PORTS, Send};
use wt_probe::{SynOptions, Time};
use wt_sys::SysResult;
use wt_sys::probe::{ProbeSocket, QuietPort};
use wt_sys::tap::{SegmentTap, TappedPacket};
use wt_wire::{IpView, Protocol, TcpFlags, TcpOption, TcpView};

/// What one version of IP needs.
struct Version {
    socket: ProbeSocket,
    ports: Vec<QuietPort>,
}

impl Version {
    fn open(v6: bool) -> SysResult<Self> {
        let socket = ProbeSocket::raw_tcp(v6)?;
        let ports = (0..PORTS).map(|_| QuietPort::open(v6)).collect::<SysResult<Vec<_>>>()?;
        Ok(Self { socket, ports })
    }
}

/// All sockets.
pub(super) struct Net {
    v4: Option<Version>,
    v6: Option<Version>,
    tap: Option<SegmentTap>,
    /// Which of our ports has which number: (whether IPv6, port).
    numbers: HashMap<(bool, u16), usize>,
    /// Our address towards a host.
    sources: HashMap<IpAddr, IpAddr>,
}

/// So many addresses are remembered.
const MOST_SOURCES: usize = 4096;

/// What a listener is told: when, from which address and port, to which of our ports, and what.
pub(super) type IncomingPacket<'a> = (Time, IpAddr, u16, usize, Incoming<'a>);

impl Net {
    /// Opens them; so many segments may wait to be heard.
    ///
    /// # Errors
    /// The system's; `EPERM` without `CAP_NET_RAW`.
    pub(super) fn open(waiting: usize) -> SysResult<Self> {
        let v4 = Version::open(false);
        // A machine without IPv6 can still ask IPv4 hosts, and the other way round.
        let v6 = Version::open(true).ok();
        let v4 = if v6.is_some() { v4.ok() } else { Some(v4?) };
        let mut numbers = HashMap::new();
        for (is_v6, version) in [(false, &v4), (true, &v6)] {
            for (number, port) in version.iter().flat_map(|version| version.ports.iter().enumerate()) {
                numbers.insert((is_v6, port.port()), number);
            }
        }
        let all: Vec<u16> = numbers.keys().map(|(_, port)| *port).collect();
        let tap = SegmentTap::open(&all, waiting)?;
        Ok(Self { v4, v6, tap: Some(tap), numbers, sources: HashMap::new() })
    }

    /// What to wait for; `None` once nothing is heard any more.
    pub(super) fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.tap.as_ref().map(|tap| tap.as_fd())
    }

    /// Hears nothing more; our ports stay ours. The kernel takes a while to end a ring that it fills (two grace periods of
    /// RCU: `packet_release` in net/packet/af_packet.c of Linux).
    pub(super) fn deafen(&mut self) {
        self.tap = None;
    }

    /// Sends a segment; what can't be sent counts as lost.
    pub(super) fn send(&mut self, send: &Send) {
        let Some(source) = self.source(send.address) else { return };
        let version = if send.address.is_ipv6() { &self.v6 } else { &self.v4 };
        let Some(version) = version else { return };
        let Some(port) = version.ports.get(send.from) else { return };
        let segment = &send.segment;
        let header = Segment {
            addresses: (source, send.address),
            ports: (port.port(), send.port),
            seq: segment.seq,
            ack: segment.ack,
            flags: segment.flags,
            window: segment.window,
            options: &segment.options,
            payload_len: segment.payload.len(),
            data: &segment.payload,
        };
        let bytes = header.to_bytes();
        let _ = version.socket.send(SocketAddr::new(send.address, 0), &bytes, None);
    }

    /// Tells the next segments, at most so many; false if there may be more.
    pub(super) fn hear(&mut self, most: usize, mut each: impl FnMut(IncomingPacket<'_>)) -> bool {
        let Self { tap: Some(tap), numbers, .. } = self else { return true };
        !(0..most).all(|_| {
            tap.receive(|tapped| {
                if let Some(heard) = read(tapped, numbers) {
                    each(heard);
                }
            })
        })
    }

    /// Packets for us that this host had no room for since this was last asked.
    pub(super) fn take_drops(&mut self) -> u64 {
        self.tap.as_mut().map_or(0, SegmentTap::take_drops)
    }

    /// The address of ours that packets to a host bear.
    fn source(&mut self, address: IpAddr) -> Option<IpAddr> {
        if let Some(source) = self.sources.get(&address) {
            return Some(*source);
        }
        let any = if address.is_ipv6() { "[::]:0" } else { "0.0.0.0:0" };
        let socket = UdpSocket::bind(any).ok()?;
        socket.connect((address, 33_434)).ok()?;
        let source = socket.local_addr().ok()?.ip();
        if self.sources.len() >= MOST_SOURCES {
            self.sources.clear();
        }
        self.sources.insert(address, source);
        Some(source)
    }
}

fn read<'a>(tapped: &TappedPacket<'a>, numbers: &HashMap<(bool, u16), usize>) -> Option<IncomingPacket<'a>> {
    let packet = IpView::quoted(tapped.bytes).ok()?;
    let cut = packet.total_len().saturating_sub(tapped.bytes.len());
    let (protocol, bytes) = packet.transport()?;
    let view = TcpView::new(bytes).ok().filter(|_| protocol == Protocol::TCP)?;
    let number = *numbers.get(&(packet.src().is_ipv6(), view.dst_port()))?;
    let flags = view.flags();
    let timestamp = view.options().find(|option| match option {
        TcpOption::Timestamps { value, .. } => Some(value),
        _ => None,
    });
    // In a SYN-ACK, ECN is agreed to by ECE without CWR (RFC 3168 section 6.1.1).
    let ecn = flags.has(TcpFlags::ECE) && !flags.has(TcpFlags::CWR);
    let options = syn_options(&view).map(|options| SynOptions { ecn, ..options });
    let segment = Incoming {
        seq: view.seq().0,
        ack: view.ack().0,
        flags,
        window: view.window(),
        options,
        timestamp,
        payload: view.payload(),
        len: u32::try_from(view.payload().len() + cut).ok()?,
        unit: tapped.unit,
    };
    Some((Duration::from_nanos(tapped.at_ns), packet.src(), view.src_port(), number, segment))
}
