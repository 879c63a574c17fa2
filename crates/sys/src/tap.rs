use crate::SysResult;
use crate::ring::{PACKET_IGNORE_OUTGOING, PACKET_VNET_HDR, PacketSocket, Ring, Shape};
use crate::vnet::{GSO_NONE, VNET_LEN, VnetHeader};
use std::os::fd::{AsFd, BorrowedFd};

/// Where classic BPF finds the network header, whatever the device's own header.
const NET_OFF: u32 = 0xfff0_0000;
/// A frame holds the beginning of merged segments: handshakes and heads of responses. The ring isn't bounded by
/// `net.core.rmem_max`, as a socket's buffer is: ten first flights would fill that.
const FRAME: usize = 8192;
const PER_BLOCK: usize = 8;

/// The TCP segments that arrive for a few ports, on all devices, as the network sent them: for those that the device or
/// the kernel has merged it tells of what size they were. A raw socket doesn't.
///
/// # Source
/// packet(7); `PACKET_VNET_HDR` in net/packet/af_packet.c of Linux; Documentation/networking/filter.rst for `SKF_NET_OFF`.
#[derive(Debug)]
pub struct SegmentTap(Ring);

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TappedPacket<'a> {
    /// The IP packet, or its beginning if it is longer than 8 kB.
    pub bytes: &'a [u8],
    /// Payload of each of the segments of which it was merged, bytes; `None` for a packet as it was sent.
    pub unit: Option<u16>,
    /// When, in nanoseconds of [`monotonic_ns`](crate::clock::monotonic_ns).
    pub at_ns: u64,
}

impl SegmentTap {
    /// Listens for TCP to these ports; at most 32. So many segments, rounded up to a multiple of eight, may wait to be received,
    /// and take 8 kB each.
    ///
    /// # Errors
    /// [`SysError`](crate::SysError); `EPERM` without `CAP_NET_RAW`.
    pub fn open(ports: &[u16], waiting: usize) -> SysResult<Self> {
        let socket = PacketSocket::open(libc::SOCK_RAW)?;
        socket.set(PACKET_VNET_HDR, 1)?;
        socket.set(PACKET_IGNORE_OUTGOING, 1)?;
        socket.attach_filter(&mut filter(&ports[..ports.len().min(32)]))?;
        let shape = Shape { frame: FRAME, per_block: PER_BLOCK, blocks: waiting.div_ceil(PER_BLOCK).max(1) };
        Ok(Self(socket.start(shape, 0)?))
    }

    /// Hands the next packet to `see`; false if there is none now.
    pub fn receive(&mut self, see: impl FnOnce(&TappedPacket<'_>)) -> bool {
        let seen = self.0.next(|frame| {
            let (mac, net) = (usize::from(frame.mac), usize::from(frame.net));
            let end = (mac + frame.snaplen as usize).min(frame.bytes.len());
            let header = mac.checked_sub(VNET_LEN).and_then(|at| frame.bytes[at..].first_chunk::<VNET_LEN>());
            let (Some(header), Some(bytes)) = (header, frame.bytes.get(net..end)) else { return };
            let header = VnetHeader::from_bytes(header);
            let unit = (header.gso_type != GSO_NONE && header.gso_size > 0).then_some(header.gso_size);
            let at_ns = crate::clock::monotonic_of(i64::from(frame.at.0), i64::from(frame.at.1));
            see(&TappedPacket { bytes, unit, at_ns });
        });
        seen.is_some()
    }

    /// Packets that found the ring full since this was last asked.
    pub fn take_drops(&mut self) -> u64 {
        self.0.take_drops()
    }
}

impl AsFd for SegmentTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Accepts TCP to these ports, over IPv4 without options and over IPv6 without extension headers.
fn filter(ports: &[u16]) -> Vec<libc::sock_filter> {
    let load = |size: u32, at: u32| statement(libc::BPF_LD | size | libc::BPF_ABS, NET_OFF + at);
    let count = ports.len() as u8;
    let mut program = vec![
        load(libc::BPF_B, 0),
        statement(libc::BPF_ALU | libc::BPF_AND | libc::BPF_K, 0xf0),
        jump(0x60, 0, 4),
        // IPv6: next header, then the destination port.
        load(libc::BPF_B, 6),
        jump(6, 0, 6 + count),
        load(libc::BPF_H, 42),
        statement(libc::BPF_JMP | libc::BPF_JA, 4),
        // IPv4: protocol, then the destination port behind a header without options.
        jump(0x40, 0, 3 + count),
        load(libc::BPF_B, 9),
        jump(6, 0, 1 + count),
        load(libc::BPF_H, 22),
    ];
    for (number, port) in (0u8..).zip(ports) {
        program.push(jump(u32::from(*port), count - number, 0));
    }
    program.push(statement(libc::BPF_RET | libc::BPF_K, 0));
    program.push(statement(libc::BPF_RET | libc::BPF_K, u32::MAX));
    program
}

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter { code: code as u16, jt: 0, jf: 0, k }
}

fn jump(value: u32, yes: u8, no: u8) -> libc::sock_filter {
    libc::sock_filter { code: (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16, jt: yes, jf: no, k: value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_segments_to_our_ports_are_heard() {
        use std::io::Write as _;
        use std::net::{TcpListener, TcpStream};
        let ours = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = ours.local_addr().unwrap().port();
        let before = crate::clock::monotonic_ns();
        let mut tap = match SegmentTap::open(&[1, port, 2], 64) {
            Ok(tap) => tap,
            Err(error) if error.errno() == Some(libc::EPERM) => {
                wt_testing::not_run("net-raw", &error);
                return;
            }
            Err(error) => panic!("{error}"),
        };
        TcpStream::connect(theirs.local_addr().unwrap()).unwrap().write_all(b"not this").unwrap();
        TcpStream::connect(ours.local_addr().unwrap()).unwrap().write_all(b"this").unwrap();
        let mut heard = Vec::new();
        let mut more = true;
        while more {
            more = tap.receive(|tapped| {
                let packet = tapped.bytes;
                assert_eq!(packet[0], 0x45);
                assert_eq!(u16::from_be_bytes([packet[22], packet[23]]), port);
                assert!((before..=crate::clock::monotonic_ns()).contains(&tapped.at_ns));
                heard.extend_from_slice(packet);
            });
        }
        assert!(heard.windows(4).any(|four| four == b"this"));
        assert_eq!(tap.take_drops(), 0);
    }
}
