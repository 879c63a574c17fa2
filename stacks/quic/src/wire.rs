use std::io::{ErrorKind, IoSlice};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use wt_sys::clock::monotonic_ns;
use wt_sys::poll::wait_writable;
use wt_sys::tun::Tun;

/// Where local ports begin (RFC 6335 section 6).
const FIRST_PORT: u16 = 49_152;
const UDP: u8 = 17;
/// How long a full socket may stay full.
const PATIENCE: Duration = Duration::from_millis(100);

/// Where datagrams come from and go to.
pub(crate) enum Wire {
    Device(DeviceWire),
    Socket(SocketWire),
}

impl Wire {
    /// A datagram and where it comes from, if there is one now.
    ///
    /// # Errors
    /// When the device or the socket is gone.
    pub(crate) fn receive<'a>(&mut self, buffer: &'a mut [u8]) -> Result<ReceivedPacket<'a>, String> {
        match self {
            Self::Device(device) => device.receive(buffer),
            Self::Socket(socket) => socket.receive(buffer),
        }
    }

    /// Sends one. What isn't taken is lost, as on any wire.
    pub(crate) fn send(&mut self, to: SocketAddr, payload: &[u8]) {
        match self {
            Self::Device(device) => device.send(payload),
            Self::Socket(socket) => socket.send(to, payload),
        }
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Device(device) => device.tun.as_fd(),
            Self::Socket(socket) => socket.0.as_fd(),
        }
    }
}

/// What a look for a datagram can come to.
pub(crate) enum ReceivedPacket<'a> {
    Datagram(&'a [u8], SocketAddr),
    /// A packet that isn't for us.
    Other,
    Nothing,
}

/// A TUN device, with one local port on it.
pub(crate) struct DeviceWire {
    tun: Tun,
    own: SocketAddrV4,
    server: SocketAddrV4,
    identification: u16,
}

impl DeviceWire {
    /// Makes the device.
    ///
    /// # Errors
    /// Why it can't be made.
    pub(crate) fn new(device: &str, address: Ipv4Addr, server: SocketAddrV4) -> Result<Self, String> {
        let tun = Tun::plain(device).map_err(|error| error.to_string())?;
        // Another port than any process before.
        let port = FIRST_PORT + u16::try_from(monotonic_ns() / 1000 % 16_000).unwrap_or(0);
        Ok(Self { tun, own: SocketAddrV4::new(address, port), server, identification: 0 })
    }

    fn receive<'a>(&mut self, buffer: &'a mut [u8]) -> Result<ReceivedPacket<'a>, String> {
        let Some(length) = self.tun.receive(buffer).map_err(|error| error.to_string())? else {
            return Ok(ReceivedPacket::Nothing);
        };
        let payload = datagram(&buffer[..length], self.server, self.own);
        Ok(payload
            .map_or(ReceivedPacket::Other, |payload| ReceivedPacket::Datagram(payload, SocketAddr::V4(self.server))))
    }

    fn send(&mut self, payload: &[u8]) {
        self.identification = self.identification.wrapping_add(1);
        if let Some(headers) = headers(self.own, self.server, self.identification, payload) {
            let _ = self.tun.send(&[IoSlice::new(&headers), IoSlice::new(payload)]);
        }
    }
}

/// The payload of a datagram from one to the other, if a packet is one that is whole.
fn datagram(packet: &[u8], from: SocketAddrV4, to: SocketAddrV4) -> Option<&[u8]> {
    let header = usize::from(packet.first()? & 15) * 4;
    let total = usize::from(u16::from_be_bytes([*packet.get(2)?, *packet.get(3)?]));
    let fragment = u16::from_be_bytes([*packet.get(6)?, *packet.get(7)?]) & 0x3fff;
    let udp = packet.get(header..total)?;
    let right = packet[0] >> 4 == 4
        && header >= 20
        && fragment == 0
        && packet[9] == UDP
        && packet.get(12..16)? == from.ip().octets()
        && packet.get(16..20)? == to.ip().octets()
        && udp.get(0..2)? == from.port().to_be_bytes()
        && udp.get(2..4)? == to.port().to_be_bytes();
    let length = usize::from(u16::from_be_bytes([*udp.get(4)?, *udp.get(5)?]));
    // The checksum is left to QUIC, which notices any change.
    if right { udp.get(8..length) } else { None }
}

/// IPv4 and UDP before a payload; fragments are forbidden, so that QUIC can search the path MTU (RFC 9000 section 14).
fn headers(from: SocketAddrV4, to: SocketAddrV4, identification: u16, payload: &[u8]) -> Option<[u8; 28]> {
    let udp_length = u16::try_from(payload.len() + 8).ok()?;
    let total = udp_length.checked_add(20)?;
    let mut bytes = [0; 28];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&total.to_be_bytes());
    bytes[4..6].copy_from_slice(&identification.to_be_bytes());
    bytes[6] = 0x40;
    (bytes[8], bytes[9]) = (64, UDP);
    bytes[12..16].copy_from_slice(&from.ip().octets());
    bytes[16..20].copy_from_slice(&to.ip().octets());
    bytes[20..22].copy_from_slice(&from.port().to_be_bytes());
    bytes[22..24].copy_from_slice(&to.port().to_be_bytes());
    bytes[24..26].copy_from_slice(&udp_length.to_be_bytes());
    let pseudo = sum(&bytes[12..20]) + u32::from(UDP) + u32::from(udp_length);
    let checksum = match folded(pseudo + sum(&bytes[20..26]) + sum(payload)) {
        // None at all would be zero (RFC 768).
        0 => u16::MAX,
        other => other,
    };
    bytes[26..28].copy_from_slice(&checksum.to_be_bytes());
    let header = folded(sum(&bytes[..20]));
    bytes[10..12].copy_from_slice(&header.to_be_bytes());
    Some(bytes)
}

/// RFC 1071.
fn sum(bytes: &[u8]) -> u32 {
    let pairs = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair.get(1).copied().unwrap_or(0)));
    pairs.sum()
}

fn folded(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// A UDP socket of the kernel's.
pub(crate) struct SocketWire(UdpSocket);

impl SocketWire {
    /// Binds it.
    ///
    /// # Errors
    /// The kernel's.
    pub(crate) fn new(at: SocketAddrV4) -> Result<Self, String> {
        let failed = |error: std::io::Error| format!("can't listen on UDP {at}: {error}");
        let socket = UdpSocket::bind(at).map_err(failed)?;
        socket.set_nonblocking(true).map_err(failed)?;
        Ok(Self(socket))
    }

    fn receive<'a>(&mut self, buffer: &'a mut [u8]) -> Result<ReceivedPacket<'a>, String> {
        match self.0.recv_from(buffer) {
            Ok((length, from)) => Ok(ReceivedPacket::Datagram(&buffer[..length], from)),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock) => Ok(ReceivedPacket::Nothing),
            // What a router said of a datagram before: that one is lost, and QUIC finds out.
            Err(_) => Ok(ReceivedPacket::Other),
        }
    }

    fn send(&mut self, to: SocketAddr, payload: &[u8]) {
        if let Err(error) = self.0.send_to(payload, to)
            && error.kind() == ErrorKind::WouldBlock
        {
            // The socket is full of what the device hasn't taken: no reason to lose anything.
            let _ = wait_writable(&[self.0.as_fd()], Some(PATIENCE));
            let _ = self.0.send_to(payload, to);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_reads_back_and_nothing_else_is_taken_for_one() {
        let (a, b) =
            (SocketAddrV4::new([198, 18, 0, 2].into(), 50_000), SocketAddrV4::new([198, 19, 0, 1].into(), 7411));
        let payload = [7; 33];
        let packet = [&headers(a, b, 5, &payload).unwrap()[..], &payload].concat();
        assert_eq!(datagram(&packet, a, b), Some(&payload[..]));
        assert_eq!(datagram(&packet, b, a), None);
        assert_eq!(folded(sum(&packet[..20])), 0);
        let pseudo = sum(&packet[12..20]) + u32::from(UDP) + 41;
        assert_eq!(folded(pseudo + sum(&packet[20..])), 0);
        for (at, value) in [(9, 6), (6, 0x20), (3, 200), (20, 1), (0, 0x65), (25, 200)] {
            let mut other = packet.clone();
            other[at] = value;
            assert_eq!(datagram(&other, a, b), None, "{at}={value}");
        }
        for length in 0..packet.len() {
            assert_eq!(datagram(&packet[..length], a, b), None);
        }
    }
}
