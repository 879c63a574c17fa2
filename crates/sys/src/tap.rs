use crate::error::check;
use crate::vnet::{GSO_NONE, VNET_LEN, VnetHeader};
use crate::{SysError, SysResult};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Bytes that may wait for us, as far as `net.core.rmem_max` allows without privilege.
const RECEIVE_BUFFER: libc::c_int = 8 << 20;
/// Where classic BPF finds the network header, whatever the device's own header.
const NET_OFF: u32 = 0xfff0_0000;
/// Room for the timestamp's control message.
const CONTROL: usize = 128;

/// The TCP segments that arrive for a few ports, on all devices, as the network sent them: for those that the device or
/// the kernel has merged it tells of what size they were. A raw socket doesn't.
///
/// # Source
/// packet(7); `PACKET_VNET_HDR` in net/packet/af_packet.c of Linux; Documentation/networking/filter.rst for `SKF_NET_OFF`.
#[derive(Debug)]
pub struct SegmentTap {
    fd: OwnedFd,
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tapped {
    /// Where in the buffer the IP packet begins.
    pub start: usize,
    /// Where it ends.
    pub end: usize,
    /// Payload of each of the segments of which it was merged, bytes; `None` for a packet as it was sent.
    pub unit: Option<u16>,
    /// When, in nanoseconds of [`monotonic_ns`](crate::clock::monotonic_ns).
    pub at_ns: u64,
}

impl SegmentTap {
    /// Listens for TCP to these ports; at most 32.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_NET_RAW`.
    pub fn open(ports: &[u16]) -> SysResult<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0 receives nothing until the filter is there and the socket is bound.
        // SAFETY: socket takes numbers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) }, || "open a packet socket".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        let tap = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } };
        tap.set(libc::SOL_PACKET, PACKET_VNET_HDR, &1i32)?;
        tap.set(libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
        tap.set(libc::SOL_SOCKET, libc::SO_RCVBUF, &RECEIVE_BUFFER)?;
        tap.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
        let mut program = filter(&ports[..ports.len().min(32)]);
        let filter = libc::sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
        // The kernel copies the program.
        tap.set(libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)?;
        // SAFETY: an all-zero sockaddr_ll is valid: every device.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives through the call and has the length that we say.
        let result = unsafe { libc::bind(tap.fd.as_raw_fd(), (&raw const address).cast(), length) };
        check(result, || "bind a packet socket".to_owned())?;
        Ok(tap)
    }

    fn set<T>(&self, level: libc::c_int, option: libc::c_int, value: &T) -> SysResult<()> {
        let length = size_of::<T>() as libc::socklen_t;
        // SAFETY: reads `length` bytes from a live value; every caller passes the type that the option takes.
        let result =
            unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, std::ptr::from_ref(value).cast(), length) };
        check(result, || format!("set option {option} of a packet socket")).map(drop)
    }

    /// The next packet, in `buffer`; `None` if there is none now.
    ///
    /// # Errors
    /// [`SysError`] when the socket is broken.
    pub fn receive(&self, buffer: &mut [u8]) -> SysResult<Option<Tapped>> {
        loop {
            // SAFETY: an all-zero sockaddr_ll is valid.
            let mut from: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
            let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
            let mut control = Control([0; CONTROL]);
            // SAFETY: an all-zero msghdr is valid.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            message.msg_name = (&raw mut from).cast();
            message.msg_namelen = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
            message.msg_iov = &raw mut part;
            message.msg_iovlen = 1;
            message.msg_control = control.0.as_mut_ptr().cast();
            message.msg_controllen = CONTROL as _;
            // SAFETY: every pointer of the message is to something live of the length that is said.
            let got = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, libc::MSG_DONTWAIT) };
            let Ok(len) = usize::try_from(got) else {
                let error = SysError::last("receive from a packet socket");
                return match error.errno() {
                    Some(libc::EAGAIN | libc::EINTR | libc::ENETDOWN) => Ok(None),
                    _ => Err(error),
                };
            };
            let len = len.min(buffer.len());
            // SAFETY: recvmsg has filled the control buffer up to msg_controllen.
            let at_ns = unsafe { stamp(&message) };
            let Some(header) = buffer[..len].first_chunk::<VNET_LEN>() else { continue };
            let header = VnetHeader::from_bytes(header);
            let unit = (header.gso_type != GSO_NONE && header.gso_size > 0).then_some(header.gso_size);
            if let Some(start) = network_header(&buffer[VNET_LEN..len], from.sll_hatype) {
                return Ok(Some(Tapped { start: VNET_LEN + start, end: len, unit, at_ns }));
            }
        }
    }
}

impl AsFd for SegmentTap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A control buffer with the alignment that its messages need.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// When the kernel got the packet, by the monotonic clock.
///
/// # Safety
/// `message` must be as `recvmsg` left it, with its control buffer alive.
unsafe fn stamp(message: &libc::msghdr) -> u64 {
    let now = crate::clock::monotonic_ns();
    // SAFETY: the caller vouches for the message.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(std::ptr::from_ref(message)) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give null or a header within the buffer.
        let (level, kind) = unsafe { ((*header).cmsg_level, (*header).cmsg_type) };
        if (level, kind) == (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) {
            // SAFETY: this message holds a timespec.
            let time = unsafe { libc::CMSG_DATA(header).cast::<libc::timespec>().read_unaligned() };
            let mut wall = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: `wall` is a valid timespec to write to.
            unsafe { libc::clock_gettime(libc::CLOCK_REALTIME, &raw mut wall) };
            let ns = |time: libc::timespec| i128::from(time.tv_sec) * 1_000_000_000 + i128::from(time.tv_nsec);
            let age = u64::try_from((ns(wall) - ns(time)).max(0)).unwrap_or(0);
            // A clock that was set meanwhile doesn't make a packet older than a second.
            return now.saturating_sub(age.min(1_000_000_000));
        }
        // SAFETY: as for CMSG_FIRSTHDR.
        header = unsafe { libc::CMSG_NXTHDR(std::ptr::from_ref(message), header) };
    }
    now
}

/// How long the device's own header is: where the IP packet begins.
fn network_header(frame: &[u8], hardware: u16) -> Option<usize> {
    let is_ip = |at: usize| frame.get(at).is_some_and(|byte| matches!(byte >> 4, 4 | 6));
    match hardware {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => {
            let mut at = 12;
            // Tags of virtual LANs that the device has left in place.
            while matches!(frame.get(at..at + 2)?, [0x81, 0] | [0x88, 0xa8]) {
                at += 4;
            }
            Some(at + 2).filter(|at| is_ip(*at))
        }
        _ => Some(0).filter(|at| is_ip(*at)),
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
    fn the_network_header_is_found_behind_every_devices_own() {
        let mut frame = [0u8; 40];
        frame[12..14].copy_from_slice(&[8, 0]);
        frame[14] = 0x45;
        assert_eq!(network_header(&frame, libc::ARPHRD_ETHER), Some(14));
        frame[12..14].copy_from_slice(&[0x81, 0]);
        frame[18] = 0x60;
        assert_eq!(network_header(&frame, libc::ARPHRD_ETHER), Some(18));
        assert_eq!(network_header(&[0x45, 0], libc::ARPHRD_NONE), Some(0));
        assert_eq!(network_header(&[0x81; 12], libc::ARPHRD_ETHER), None);
        assert_eq!(network_header(&[], libc::ARPHRD_ETHER), None);
    }

    #[test]
    fn only_segments_to_our_ports_are_heard() {
        use std::io::Write as _;
        use std::net::{TcpListener, TcpStream};
        let ours = TcpListener::bind("127.0.0.1:0").unwrap();
        let theirs = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = ours.local_addr().unwrap().port();
        let tap = match SegmentTap::open(&[1, port, 2]) {
            Ok(tap) => tap,
            Err(error) if error.errno() == Some(libc::EPERM) => {
                println!("not run: this test needs CAP_NET_RAW");
                return;
            }
            Err(error) => panic!("{error}"),
        };
        TcpStream::connect(theirs.local_addr().unwrap()).unwrap().write_all(b"not this").unwrap();
        TcpStream::connect(ours.local_addr().unwrap()).unwrap().write_all(b"this").unwrap();
        let mut buffer = vec![0; 65_536 + 64];
        let mut heard = Vec::new();
        while let Some(tapped) = tap.receive(&mut buffer).unwrap() {
            let packet = &buffer[tapped.start..tapped.end];
            assert_eq!(packet[0], 0x45);
            assert_eq!(u16::from_be_bytes([packet[22], packet[23]]), port);
            assert!(tapped.at_ns <= crate::clock::monotonic_ns());
            heard.extend_from_slice(packet);
        }
        assert!(heard.windows(4).any(|four| four == b"this"));
    }
}
