use crate::error::check;
use crate::sockaddr::{from_raw, to_raw};
use crate::{SysError, SysResult};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Room for the control messages of one packet.
const CONTROL: usize = 512;
/// Bytes that a socket may hold back for us; without `CAP_NET_ADMIN`, as far as `net.core.rmem_max` allows.
const RECEIVE_BUFFER: libc::c_int = 4 << 20;
/// Where a TCP header has its checksum, which the kernel fills in for IPv6 raw sockets.
const TCP_CHECKSUM_AT: libc::c_int = 16;
/// No packet from further away than the next host bears this time to live.
const NEIGHBOURS_ONLY: libc::c_int = 255;

/// A socket for probes: never fragments, never believes cached path MTUs, tells arrival times by the kernel's clock, the
/// time to live of what arrives, and ICMP errors.
///
/// # Source
/// ip(7) `IP_PMTUDISC_PROBE`, `IP_RECVERR`; ipv6(7); Documentation/networking/timestamping.rst of Linux.
#[derive(Debug)]
pub struct ProbeSocket {
    fd: OwnedFd,
    v6: bool,
}

/// What arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedPacket {
    /// How many bytes of the buffer it fills.
    pub len: usize,
    /// From where; `None` where the kernel doesn't tell.
    pub from: Option<SocketAddr>,
    /// When, in nanoseconds of [`monotonic_ns`](crate::clock::monotonic_ns).
    pub at_ns: u64,
    /// The time to live, or hop limit, with which it arrived.
    pub ttl: Option<u8>,
    /// For the error queue: what went wrong.
    pub error: Option<QueuedError>,
}

/// An entry of a socket's error queue.
///
/// # Source
/// ip(7), `struct sock_extended_err`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuedError {
    /// The error number.
    pub errno: u32,
    /// Whether an ICMP message reported it; or else this host's own kernel.
    pub icmp: bool,
    /// The ICMP message's type.
    pub kind: u8,
    /// The ICMP message's code.
    pub code: u8,
    /// For "too big": the MTU.
    pub info: u32,
    /// Whose address the ICMP message bears.
    pub offender: Option<IpAddr>,
}

impl ProbeSocket {
    /// Raw ICMP: every ICMP message of this host, errors about other sockets' packets included. IPv4 arrives with its IP
    /// header, IPv6 without.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_NET_RAW`.
    pub fn raw_icmp(v6: bool) -> SysResult<Self> {
        let protocol = if v6 { libc::IPPROTO_ICMPV6 } else { libc::IPPROTO_ICMP };
        Self::open(v6, libc::SOCK_RAW, protocol, "open a raw ICMP socket")
    }

    /// Raw TCP. What is sent needs its TCP checksum for IPv4; for IPv6 the kernel fills it in.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_NET_RAW`.
    pub fn raw_tcp(v6: bool) -> SysResult<Self> {
        let socket = Self::open(v6, libc::SOCK_RAW, libc::IPPROTO_TCP, "open a raw TCP socket")?;
        if v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_CHECKSUM, TCP_CHECKSUM_AT)?;
        }
        Ok(socket)
    }

    /// Echo requests for everybody whose group is within `net.ipv4.ping_group_range`; the kernel chooses the identifier.
    ///
    /// # Errors
    /// [`SysError`]; `EACCES` for other groups.
    ///
    /// # Source
    /// icmp(7).
    pub fn ping(v6: bool) -> SysResult<Self> {
        let protocol = if v6 { libc::IPPROTO_ICMPV6 } else { libc::IPPROTO_ICMP };
        let socket = Self::open(v6, libc::SOCK_DGRAM, protocol, "open a ping socket")?;
        socket.queue_errors()?;
        Ok(socket)
    }

    /// UDP.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn udp(v6: bool) -> SysResult<Self> {
        let socket = Self::open(v6, libc::SOCK_DGRAM, 0, "open a UDP socket")?;
        socket.queue_errors()?;
        Ok(socket)
    }

    fn open(v6: bool, kind: libc::c_int, protocol: libc::c_int, doing: &str) -> SysResult<Self> {
        let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
        let flags = libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // SAFETY: socket takes numbers.
        let fd = check(unsafe { libc::socket(family, kind | flags, protocol) }, || doing.to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        let socket = Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, v6 };
        if v6 {
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_DONTFRAG, 1)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_RECVHOPLIMIT, 1)?;
        } else {
            socket.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
            socket.set(libc::IPPROTO_IP, libc::IP_RECVTTL, 1)?;
        }
        let stamps = (libc::SOF_TIMESTAMPING_RX_SOFTWARE | libc::SOF_TIMESTAMPING_SOFTWARE) as libc::c_int;
        socket.set(libc::SOL_SOCKET, libc::SO_TIMESTAMPING, stamps)?;
        // Beyond the limit that ordinary users have, should somebody flood us.
        if socket.set(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, RECEIVE_BUFFER).is_err() {
            socket.set(libc::SOL_SOCKET, libc::SO_RCVBUF, RECEIVE_BUFFER)?;
        }
        Ok(socket)
    }

    fn queue_errors(&self) -> SysResult<()> {
        if self.v6 {
            self.set(libc::IPPROTO_IPV6, libc::IPV6_RECVERR, 1)
        } else {
            self.set(libc::IPPROTO_IP, libc::IP_RECVERR, 1)
        }
    }

    fn set(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> SysResult<()> {
        let length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: reads one int from a live variable.
        let result = unsafe { libc::setsockopt(self.fd.as_raw_fd(), level, option, (&raw const value).cast(), length) };
        check(result, || format!("set option {option} of level {level} of a probe socket")).map(drop)
    }

    /// Sets the type-of-service byte, or traffic class, of what is sent from now on.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn set_tos(&self, tos: u8) -> SysResult<()> {
        if self.v6 {
            self.set(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::c_int::from(tos))
        } else {
            self.set(libc::IPPROTO_IP, libc::IP_TOS, libc::c_int::from(tos))
        }
    }

    /// Whether routers may cut what is sent from now on into fragments; this host doesn't, whatever it remembers of the
    /// path.
    ///
    /// # Errors
    /// [`SysError`]; for IPv6, whose routers never do.
    ///
    /// # Source
    /// `IP_PMTUDISC_INTERFACE`, include/uapi/linux/in.h of Linux.
    pub fn let_routers_fragment(&self, may: bool) -> SysResult<()> {
        if self.v6 {
            let source = std::io::Error::from_raw_os_error(libc::EOPNOTSUPP);
            return Err(SysError { doing: "let routers fragment a packet of IPv6".to_owned(), source });
        }
        let how = if may { libc::IP_PMTUDISC_INTERFACE } else { libc::IP_PMTUDISC_PROBE };
        self.set(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, how)
    }

    /// Binds it to an address, 0 for any port, and gives the port.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn bind(&self, address: SocketAddr) -> SysResult<u16> {
        let (raw, length) = to_raw(&address);
        // SAFETY: the address lives through the call and has the length that we say.
        let result = unsafe { libc::bind(self.fd.as_raw_fd(), (&raw const raw).cast(), length) };
        check(result, || format!("bind a probe socket to {address}"))?;
        // SAFETY: an all-zero sockaddr_storage is valid.
        let mut bound: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        // SAFETY: the address is live and as large as we say.
        let result = unsafe { libc::getsockname(self.fd.as_raw_fd(), (&raw mut bound).cast(), &raw mut length) };
        check(result, || "ask for a probe socket's port".to_owned())?;
        Ok(from_raw(&bound).map_or(0, |address| address.port()))
    }

    /// Sends one packet, with this time to live if one is given. The port of `to` counts for UDP only.
    ///
    /// # Errors
    /// [`SysError`]; `EMSGSIZE` when the device doesn't take it, `EAGAIN` or `ENOBUFS` when it should be tried later, and
    /// with queued errors also the last of these (then it wasn't sent; ask [`receive_error`](Self::receive_error)).
    pub fn send(&self, to: SocketAddr, bytes: &[u8], ttl: Option<u8>) -> SysResult<()> {
        let (mut address, length) = to_raw(&to);
        let mut part = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let mut control = Control([0; CONTROL]);
        // SAFETY: an all-zero msghdr is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut address).cast();
        message.msg_namelen = length;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        if let Some(ttl) = ttl {
            let size = size_of::<libc::c_int>() as libc::c_uint;
            message.msg_control = control.0.as_mut_ptr().cast();
            // SAFETY: CMSG_SPACE computes with numbers.
            message.msg_controllen = unsafe { libc::CMSG_SPACE(size) } as _;
            // SAFETY: the control buffer is live, aligned, zeroed and larger than the one message that is written.
            unsafe {
                let header = libc::CMSG_FIRSTHDR(&raw const message);
                (*header).cmsg_level = if self.v6 { libc::IPPROTO_IPV6 } else { libc::IPPROTO_IP };
                (*header).cmsg_type = if self.v6 { libc::IPV6_HOPLIMIT } else { libc::IP_TTL };
                (*header).cmsg_len = libc::CMSG_LEN(size) as _;
                libc::CMSG_DATA(header).cast::<libc::c_int>().write_unaligned(libc::c_int::from(ttl));
            }
        }
        // SAFETY: every pointer of the message is to something live of the length that is said.
        let sent = unsafe { libc::sendmsg(self.fd.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        if sent < 0 { Err(SysError::last(format!("send a probe to {}", to.ip()))) } else { Ok(()) }
    }

    /// The next packet; `None` if there is none now.
    ///
    /// # Errors
    /// [`SysError`], but an error of an earlier packet only ends this call.
    pub fn receive(&self, buffer: &mut [u8]) -> SysResult<Option<ReceivedPacket>> {
        self.receive_with(buffer, 0)
    }

    /// The next entry of the error queue, with the payload of the packet that caused it, as far as it was quoted, and in
    /// [`ReceivedPacket::from`] where that packet went; `None` if there is none now.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn receive_error(&self, buffer: &mut [u8]) -> SysResult<Option<ReceivedPacket>> {
        self.receive_with(buffer, libc::MSG_ERRQUEUE)
    }

    fn receive_with(&self, buffer: &mut [u8], flags: libc::c_int) -> SysResult<Option<ReceivedPacket>> {
        // SAFETY: an all-zero sockaddr_storage is valid.
        let mut address: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let mut part = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        let mut control = Control([0; CONTROL]);
        // SAFETY: an all-zero msghdr is valid.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_name = (&raw mut address).cast();
        message.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        message.msg_iov = &raw mut part;
        message.msg_iovlen = 1;
        message.msg_control = control.0.as_mut_ptr().cast();
        message.msg_controllen = CONTROL as _;
        // SAFETY: every pointer of the message is to something live of the length that is said.
        let got = unsafe { libc::recvmsg(self.fd.as_raw_fd(), &raw mut message, flags | libc::MSG_DONTWAIT) };
        let Ok(len) = usize::try_from(got) else {
            let error = SysError::last("receive a probe's answer");
            return match error.errno() {
                Some(libc::EBADF | libc::EFAULT | libc::EINVAL | libc::ENOTSOCK | libc::ENOMEM) => Err(error),
                _ => Ok(None),
            };
        };
        let mut received =
            ReceivedPacket { len: len.min(buffer.len()), from: from_raw(&address), at_ns: 0, ttl: None, error: None };
        // SAFETY: recvmsg has filled the control buffer up to msg_controllen, and it outlives the reading.
        unsafe { read_control(&message, &mut received) };
        if received.at_ns == 0 {
            received.at_ns = crate::clock::monotonic_ns();
        }
        Ok(Some(received))
    }
}

impl AsFd for ProbeSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A control buffer with the alignment that its messages need.
#[repr(C, align(8))]
struct Control([u8; CONTROL]);

/// Reads what the kernel says beside the bytes.
///
/// # Safety
/// `message` must be as `recvmsg` left it, with its control buffer alive.
unsafe fn read_control(message: &libc::msghdr, received: &mut ReceivedPacket) {
    // SAFETY: the caller vouches for the message.
    let mut header = unsafe { libc::CMSG_FIRSTHDR(std::ptr::from_ref(message)) };
    while !header.is_null() {
        // SAFETY: CMSG_FIRSTHDR and CMSG_NXTHDR give null or a header within the buffer.
        let (level, kind, data) = unsafe { ((*header).cmsg_level, (*header).cmsg_type, libc::CMSG_DATA(header)) };
        // SAFETY: as above; CMSG_LEN computes with numbers.
        let len = unsafe { ((*header).cmsg_len as usize).saturating_sub(libc::CMSG_LEN(0) as usize) };
        match (level, kind) {
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) if len >= 4 => {
                // SAFETY: there are four bytes.
                let ttl = unsafe { data.cast::<libc::c_int>().read_unaligned() };
                received.ttl = u8::try_from(ttl).ok();
            }
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPING) if len >= size_of::<libc::timespec>() => {
                // SAFETY: there are as many bytes as a timespec has.
                let stamp = unsafe { data.cast::<libc::timespec>().read_unaligned() };
                received.at_ns = crate::clock::monotonic_of(stamp.tv_sec, stamp.tv_nsec);
            }
            (libc::IPPROTO_IP, libc::IP_RECVERR) | (libc::IPPROTO_IPV6, libc::IPV6_RECVERR)
                if len >= size_of::<libc::sock_extended_err>() =>
            {
                // SAFETY: there are as many bytes as the structure has.
                let error = unsafe { data.cast::<libc::sock_extended_err>().read_unaligned() };
                // SAFETY: the bytes after the structure lie within the message's `len`.
                let offender = unsafe { offender(data.add(size_of::<libc::sock_extended_err>()), len - 16) };
                let icmp = matches!(error.ee_origin, libc::SO_EE_ORIGIN_ICMP | libc::SO_EE_ORIGIN_ICMP6);
                received.error = Some(QueuedError {
                    errno: error.ee_errno,
                    icmp,
                    kind: error.ee_type,
                    code: error.ee_code,
                    info: error.ee_info,
                    offender: offender.filter(|_| icmp),
                });
            }
            _ => {}
        }
        // SAFETY: as for CMSG_FIRSTHDR.
        header = unsafe { libc::CMSG_NXTHDR(std::ptr::from_ref(message), header) };
    }
}

/// The address after an extended error.
///
/// # Safety
/// `len` bytes must be readable at `at`.
unsafe fn offender(at: *const u8, len: usize) -> Option<IpAddr> {
    // SAFETY: an all-zero sockaddr_storage is valid.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let len = len.min(size_of::<libc::sockaddr_storage>());
    // SAFETY: both sides have `len` bytes and don't overlap.
    unsafe { std::ptr::copy_nonoverlapping(at, (&raw mut storage).cast(), len) };
    from_raw(&storage).map(|address| address.ip())
}

/// A TCP port that this host's kernel keeps quiet about, so that a raw socket can use it: without a listener the kernel
/// would answer each SYN-ACK with a reset, and a listener with this minimum time to live ignores all that comes from
/// further away than a neighbour.
///
/// # Source
/// ip(7) `IP_MINTTL`; RFC 5082 has the idea.
#[derive(Debug)]
pub struct QuietPort {
    _listener: TcpListener,
    port: u16,
}

impl QuietPort {
    /// Takes a free port.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn open(v6: bool) -> SysResult<Self> {
        let any: IpAddr = if v6 { Ipv6Addr::UNSPECIFIED.into() } else { Ipv4Addr::UNSPECIFIED.into() };
        let family = if v6 { libc::AF_INET6 } else { libc::AF_INET };
        // SAFETY: socket takes numbers.
        let fd = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
        let fd = check(fd, || "open a TCP socket".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        let socket = ProbeSocket { fd: unsafe { OwnedFd::from_raw_fd(fd) }, v6 };
        if v6 {
            // Else the port is also an IPv4 port, with another minimum.
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
            socket.set(libc::IPPROTO_IPV6, libc::IPV6_MINHOPCOUNT, NEIGHBOURS_ONLY)?;
        } else {
            socket.set(libc::IPPROTO_IP, libc::IP_MINTTL, NEIGHBOURS_ONLY)?;
        }
        let port = socket.bind(SocketAddr::new(any, 0))?;
        // SAFETY: listen takes numbers.
        check(unsafe { libc::listen(socket.fd.as_raw_fd(), 1) }, || "listen on a quiet port".to_owned())?;
        Ok(Self { _listener: TcpListener::from(socket.fd), port })
    }

    /// Its number.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }
}

/// The name of an address, from wherever this system looks names up; blocks as long as that takes.
///
/// # Source
/// getnameinfo(3).
#[must_use]
pub fn name_of(address: IpAddr) -> Option<String> {
    let (raw, length) = to_raw(&SocketAddr::new(address, 0));
    let mut name = [0u8; 1025];
    let size = name.len() as libc::socklen_t;
    // SAFETY: the address and the buffer are live and as large as we say; no service is asked for.
    let result = unsafe {
        libc::getnameinfo(
            (&raw const raw).cast(),
            length,
            name.as_mut_ptr().cast(),
            size,
            std::ptr::null_mut(),
            0,
            libc::NI_NAMEREQD,
        )
    };
    let end = name.iter().position(|byte| *byte == 0)?;
    let name = std::str::from_utf8(&name[..end]).ok().filter(|_| result == 0)?;
    // Names come from strangers and go to terminals.
    (!name.is_empty() && !name.chars().any(char::is_control)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn wait(socket: &ProbeSocket) {
        crate::poll::wait_readable(&[socket.as_fd()], Some(Duration::from_secs(5))).unwrap();
    }

    #[test]
    fn a_udp_port_where_nobody_listens_says_so_with_the_probes_own_bytes() {
        for (v6, ip) in [(false, IpAddr::V4(Ipv4Addr::LOCALHOST)), (true, IpAddr::V6(Ipv6Addr::LOCALHOST))] {
            let socket = ProbeSocket::udp(v6).unwrap();
            let target = SocketAddr::new(ip, 9);
            if v6 && socket.send(target, b"", None).is_err() {
                wt_testing::not_run("ipv6", &"no loopback of IPv6");
                continue;
            }
            let mut buffer = [0u8; 64];
            if v6 {
                wait(&socket);
                assert!(socket.receive_error(&mut buffer).unwrap().is_some());
            }
            let before = crate::clock::monotonic_ns();
            socket.send(target, b"which one", Some(7)).unwrap();
            wait(&socket);
            let entry = socket.receive_error(&mut buffer).unwrap().unwrap();
            let error = entry.error.unwrap();
            assert!(error.icmp && error.offender == Some(ip), "{error:?}");
            assert_eq!((error.kind, error.code), if v6 { (1, 4) } else { (3, 3) });
            assert_eq!((&buffer[..entry.len], entry.from), (&b"which one"[..], Some(target)));
            assert!((before..=crate::clock::monotonic_ns()).contains(&entry.at_ns));
            assert!(socket.receive_error(&mut buffer).unwrap().is_none());
            assert!(socket.receive(&mut buffer).unwrap().is_none());
        }
    }

    #[test]
    fn packets_longer_than_the_device_takes_are_refused_at_home() {
        let socket = ProbeSocket::udp(false).unwrap();
        let error = socket.send((Ipv4Addr::LOCALHOST, 9).into(), &[0; 65_530], None).unwrap_err();
        assert_eq!(error.errno(), Some(libc::EMSGSIZE));
    }

    #[test]
    fn a_quiet_port_is_taken_and_accepts_nobody() {
        let quiet = QuietPort::open(false).unwrap();
        let own = SocketAddr::from((Ipv4Addr::LOCALHOST, quiet.port()));
        assert!(TcpListener::bind(own).is_err());
        let socket = crate::tcp::TcpSocket::new(&own).unwrap();
        let error = socket.connect(&own, Duration::from_millis(50)).unwrap_err();
        assert_eq!(error.errno(), Some(libc::ETIMEDOUT), "neither accepted nor refused");
    }
}
