use crate::error::check;
use crate::poll::wait_writable;
use crate::sockaddr::to_raw;
use crate::{SysError, SysResult};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

const TCP_MAXSEG: libc::c_int = 2;
const TCP_WINDOW_CLAMP: libc::c_int = 10;
const TCP_INFO: libc::c_int = 11;
const TCP_QUICKACK: libc::c_int = 12;
const TCP_CONGESTION: libc::c_int = 13;
const TCP_NOTSENT_LOWAT: libc::c_int = 25;
const TCP_CC_NAME_MAX: usize = 16;

/// A TCP socket that isn't connected yet, so that options which shape the handshake can be set.
#[derive(Debug)]
pub struct TcpSocket(OwnedFd);

impl TcpSocket {
    /// A socket for connections to such addresses.
    ///
    /// # Errors
    /// [`SysError`] when the process has no descriptors left.
    pub fn new(peer: &SocketAddr) -> SysResult<Self> {
        let family = if peer.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        // SAFETY: socket takes numbers.
        let fd = unsafe { libc::socket(family, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0) };
        let fd = check(fd, || "open a TCP socket".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The same from an address of this host's choice; the kernel chooses the port.
    ///
    /// # Errors
    /// [`SysError`]; `EADDRNOTAVAIL` when this host hasn't got the address.
    pub fn bound_to(self, own: IpAddr) -> SysResult<Self> {
        let (address, length) = to_raw(&SocketAddr::new(own, 0));
        // SAFETY: the address lives through the call and is at least `length` bytes long.
        let result = unsafe { libc::bind(self.0.as_raw_fd(), (&raw const address).cast(), length) };
        check(result, || format!("send from {own}"))?;
        Ok(self)
    }

    /// Connects, and gives up after `timeout`.
    ///
    /// # Errors
    /// [`SysError`]; `ETIMEDOUT` when the time is up, `ECONNREFUSED` when nobody listens.
    pub fn connect(self, peer: &SocketAddr, timeout: Duration) -> SysResult<TcpStream> {
        let doing = || format!("connect to {peer}");
        let stream = self.begin_connect(peer)?;
        let deadline = crate::clock::monotonic_ns().saturating_add(timeout.as_nanos() as u64);
        loop {
            let left = deadline.saturating_sub(crate::clock::monotonic_ns());
            if left == 0 {
                return Err(SysError { doing: doing(), source: std::io::Error::from_raw_os_error(libc::ETIMEDOUT) });
            }
            if wait_writable(&[stream.as_fd()], Some(Duration::from_nanos(left)))? != 0 {
                break;
            }
        }
        if let Some(source) = stream.take_error().map_err(SysError::io(doing()))? {
            return Err(SysError { doing: doing(), source });
        }
        stream.set_nonblocking(false).map_err(SysError::io(doing()))?;
        Ok(stream)
    }

    /// Begins to connect, and doesn't wait: the stream stays non-blocking.
    ///
    /// # Errors
    /// [`SysError`]; `ECONNREFUSED` when nobody listens on this very host.
    pub fn begin_connect(self, peer: &SocketAddr) -> SysResult<TcpStream> {
        let stream = TcpStream::from(self.0);
        let doing = || format!("connect to {peer}");
        stream.set_nonblocking(true).map_err(SysError::io(doing()))?;
        let (address, length) = to_raw(peer);
        // SAFETY: the address lives through the call and is at least `length` bytes long.
        let result = unsafe { libc::connect(stream.as_raw_fd(), (&raw const address).cast(), length) };
        if result != 0 {
            let error = SysError::last(doing());
            if error.errno() != Some(libc::EINPROGRESS) {
                return Err(error);
            }
        }
        Ok(stream)
    }
}

impl AsFd for TcpSocket {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Sets an option that is a number.
pub(crate) fn set(
    fd: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
    doing: &str,
) -> SysResult<()> {
    // SAFETY: a number has no pointers.
    unsafe { set_struct(fd, level, option, &value, doing) }
}

/// Sets an option that is a structure.
///
/// # Safety
/// If the option takes pointers within it, these must be what it says they are.
unsafe fn set_struct<T>(
    fd: &impl AsFd,
    level: libc::c_int,
    option: libc::c_int,
    value: &T,
    doing: &str,
) -> SysResult<()> {
    let pointer = std::ptr::from_ref(value).cast();
    // SAFETY: the kernel reads as many bytes as the value has, and refuses fewer than it needs; the caller vouches for
    // pointers within.
    let result =
        unsafe { libc::setsockopt(fd.as_fd().as_raw_fd(), level, option, pointer, size_of::<T>() as libc::socklen_t) };
    check(result, || doing.to_owned()).map(drop)
}

pub(crate) fn get_int(fd: &impl AsFd, level: libc::c_int, option: libc::c_int, doing: &str) -> SysResult<u32> {
    let mut value: libc::c_int = 0;
    let mut length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: writes at most one int into a live one.
    let result =
        unsafe { libc::getsockopt(fd.as_fd().as_raw_fd(), level, option, (&raw mut value).cast(), &raw mut length) };
    check(result, || doing.to_owned())?;
    Ok(u32::try_from(value).unwrap_or(0))
}

/// Bounds the window that this end advertises, bytes. Before the handshake it also fixes the window scale.
///
/// It doesn't hold by itself: autotuning raises it whenever it grows the buffer, and Linux since 6.11 sets it anew when
/// the first full-sized segments teach it how much memory a segment takes. Fix the buffer with [`set_receive_buffer`],
/// and set the clamp again when [`window_clamp`] reads otherwise.
///
/// # Errors
/// [`SysError`].
///
/// # Source
/// `TCP_WINDOW_CLAMP`, tcp(7); `tcp_measure_rcv_mss()` in net/ipv4/tcp_input.c of Linux.
pub fn set_window_clamp(fd: &impl AsFd, bytes: u32) -> SysResult<()> {
    set(fd, libc::IPPROTO_TCP, TCP_WINDOW_CLAMP, bytes as libc::c_int, "set TCP_WINDOW_CLAMP")
}

/// The window that this end will at most advertise, bytes; 0 before the handshake if nobody set one.
///
/// # Errors
/// [`SysError`].
pub fn window_clamp(fd: &impl AsFd) -> SysResult<u32> {
    get_int(fd, libc::IPPROTO_TCP, TCP_WINDOW_CLAMP, "read TCP_WINDOW_CLAMP")
}

/// Fixes the receive buffer, bytes of payload (the kernel doubles it for its own use), and so switches its autotuning
/// off. Silently bounded by `net.core.rmem_max`.
///
/// # Errors
/// [`SysError`].
///
/// # Source
/// `SO_RCVBUF`, socket(7).
pub fn set_receive_buffer(fd: &impl AsFd, bytes: u32) -> SysResult<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, bytes as libc::c_int, "set SO_RCVBUF")
}

/// The receive buffer that was granted, bytes, with the kernel's own share (twice what was asked).
///
/// # Errors
/// [`SysError`].
pub fn receive_buffer(fd: &impl AsFd) -> SysResult<u32> {
    get_int(fd, libc::SOL_SOCKET, libc::SO_RCVBUF, "read SO_RCVBUF")
}

/// Gathers pieces of `size` bytes, up to [`PIECES`] of them, in one call; how many bytes the kernel took.
/// A piece by a call of its own would be a segment of its own wherever a device takes packets at once: with 1500 bytes over a veth
/// pair, that runs both stacks for each piece in the sender's thread, however the call is flagged.
///
/// # Errors
/// The socket's, if nothing went before.
///
/// # Source
/// sendmsg(2).
pub fn send_pieces(stream: &TcpStream, bytes: &[u8], size: usize) -> std::io::Result<usize> {
    let mut pieces = [libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 }; PIECES];
    let mut count = 0;
    for (bytes, piece) in bytes.chunks(size.max(1)).zip(&mut pieces) {
        // The kernel only reads what a message that is sent points to.
        *piece = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        count += 1;
    }
    // SAFETY: an all-zero msghdr is valid.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = pieces.as_mut_ptr();
    message.msg_iovlen = count;
    // SAFETY: `count` pieces of a live slice.
    let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
    usize::try_from(sent).map_err(|_| std::io::Error::last_os_error())
}

/// So many pieces go by one call at most.
pub const PIECES: usize = 64;

/// Fixes the send buffer, bytes of payload. Silently bounded by `net.core.wmem_max`.
///
/// # Errors
/// [`SysError`].
pub fn set_send_buffer(fd: &impl AsFd, bytes: u32) -> SysResult<()> {
    set(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, bytes as libc::c_int, "set SO_SNDBUF")
}

/// The send buffer that was granted, bytes, with the kernel's own share (twice what was asked).
///
/// # Errors
/// [`SysError`].
pub fn send_buffer(fd: &impl AsFd) -> SysResult<u32> {
    get_int(fd, libc::SOL_SOCKET, libc::SO_SNDBUF, "read SO_SNDBUF")
}

/// Bounds the MSS of this connection, bytes; before the handshake also the one that is announced.
///
/// # Errors
/// [`SysError`]; `EINVAL` outside of 88 to 32767.
///
/// # Source
/// `TCP_MAXSEG`, tcp(7).
pub fn set_max_segment(fd: &impl AsFd, bytes: u32) -> SysResult<()> {
    set(fd, libc::IPPROTO_TCP, TCP_MAXSEG, bytes as libc::c_int, "set TCP_MAXSEG")
}

/// Acknowledges every segment at once for a while, or not.
///
/// # Errors
/// [`SysError`].
pub fn set_quick_ack(fd: &impl AsFd, on: bool) -> SysResult<()> {
    set(fd, libc::IPPROTO_TCP, TCP_QUICKACK, libc::c_int::from(on), "set TCP_QUICKACK")
}

/// Wakes the writer only when fewer than so many unsent bytes wait in the send buffer.
///
/// # Errors
/// [`SysError`].
pub fn set_unsent_low_water(fd: &impl AsFd, bytes: u32) -> SysResult<()> {
    set(fd, libc::IPPROTO_TCP, TCP_NOTSENT_LOWAT, bytes as libc::c_int, "set TCP_NOTSENT_LOWAT")
}

/// Bytes that this end of a connection has sent, or is to send, and the other one hasn't acknowledged; of a Unix socket those that it hasn't read.
///
/// # Errors
/// [`SysError`].
///
/// # Source
/// `SIOCOUTQ`, tcp(7).
pub fn unacknowledged(fd: &impl AsFd) -> SysResult<u32> {
    let mut bytes: libc::c_int = 0;
    // SAFETY: SIOCOUTQ, which has the number of TIOCOUTQ, writes one int into a live one.
    let result = unsafe { libc::ioctl(fd.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut bytes) };
    check(result, || "read SIOCOUTQ".to_owned())?;
    Ok(u32::try_from(bytes).unwrap_or(0))
}

/// How an idle connection is kept alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAlive {
    /// After so long without a packet, in whole seconds.
    pub idle: Duration,
    /// Between two probes that nobody answers, in whole seconds; nothing means the system's.
    pub interval: Option<Duration>,
    /// So many probes are sent; nothing means the system's number.
    pub probes: Option<u32>,
}

/// How long what was sent may stay unacknowledged, in whole milliseconds (nothing means as the system has it), and how an idle connection is
/// kept alive.
///
/// # Errors
/// [`SysError`].
///
/// # Source
/// `TCP_USER_TIMEOUT`, `TCP_KEEPIDLE`, `TCP_KEEPINTVL`, `TCP_KEEPCNT`, tcp(7).
pub fn set_liveness(fd: &impl AsFd, unacknowledged: Option<Duration>, keep_alive: Option<KeepAlive>) -> SysResult<()> {
    let number = |number: u128| libc::c_int::try_from(number).unwrap_or(libc::c_int::MAX);
    let seconds = |time: Duration| number(time.as_secs().max(1).into());
    let tcp = |option, value, doing| set(fd, libc::IPPROTO_TCP, option, value, doing);
    if let Some(time) = unacknowledged {
        tcp(libc::TCP_USER_TIMEOUT, number(time.as_millis()), "set TCP_USER_TIMEOUT")?;
    }
    let Some(KeepAlive { idle, interval, probes }) = keep_alive else { return Ok(()) };
    set(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1, "set SO_KEEPALIVE")?;
    tcp(libc::TCP_KEEPIDLE, seconds(idle), "set TCP_KEEPIDLE")?;
    interval.map_or(Ok(()), |time| tcp(libc::TCP_KEEPINTVL, seconds(time), "set TCP_KEEPINTVL"))?;
    probes.map_or(Ok(()), |probes| tcp(libc::TCP_KEEPCNT, number(probes.into()), "set TCP_KEEPCNT"))
}

/// Sets the time to live of this connection's packets.
///
/// # Errors
/// [`SysError`].
pub fn set_ttl(fd: &impl AsFd, hops: u32) -> SysResult<()> {
    set(fd, libc::IPPROTO_IP, libc::IP_TTL, hops as libc::c_int, "set IP_TTL")
}

/// The same for IPv6, where it is called the hop limit.
///
/// # Errors
/// [`SysError`].
///
/// # Source
/// `IPV6_UNICAST_HOPS`, ipv6(7).
pub fn set_hop_limit(fd: &impl AsFd, hops: u32) -> SysResult<()> {
    set(fd, libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS, hops as libc::c_int, "set IPV6_UNICAST_HOPS")
}

/// Chooses the congestion control.
///
/// # Errors
/// [`SysError`]; `ENOENT` when the kernel has none of this name, `EPERM` when it isn't allowed to this user.
///
/// # Source
/// `TCP_CONGESTION`, tcp(7).
pub fn set_congestion_control(fd: &impl AsFd, name: &str) -> SysResult<()> {
    let bytes = name.as_bytes();
    // SAFETY: reads `len` bytes of a live string.
    let result = unsafe {
        libc::setsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_CONGESTION,
            bytes.as_ptr().cast(),
            bytes.len() as libc::socklen_t,
        )
    };
    check(result, || format!("set the congestion control {name}")).map(drop)
}

/// The congestion control in use.
///
/// # Errors
/// [`SysError`].
pub fn congestion_control(fd: &impl AsFd) -> SysResult<String> {
    let mut name = [0u8; TCP_CC_NAME_MAX];
    let mut length = name.len() as libc::socklen_t;
    // SAFETY: writes at most `length` bytes into a live array.
    let result = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            TCP_CONGESTION,
            name.as_mut_ptr().cast(),
            &raw mut length,
        )
    };
    check(result, || "read the congestion control".to_owned())?;
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(String::from_utf8_lossy(&name[..end]).into_owned())
}

/// Bounds the window that this end advertises. A buffer of twice its size (which the kernel doubles once more for its
/// bookkeeping) switches autotuning off and leaves room; the clamp bounds the window.
///
/// A buffer beyond `net.core.rmem_max` takes `CAP_NET_ADMIN`. Without it the buffer is left to autotuning, which goes up
/// to `tcp_rmem`, and the clamp alone bounds the window: it has to be held ([`hold_window`]).
///
/// # Errors
/// [`SysError`].
///
/// # Source
/// `SO_RCVBUFFORCE`, socket(7).
pub fn fix_window(fd: &impl AsFd, bytes: u32) -> SysResult<()> {
    let buffer = bytes.saturating_mul(2).min(1 << 30);
    let forced = set(fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, buffer as libc::c_int, "set SO_RCVBUFFORCE");
    let most = std::fs::read_to_string("/proc/sys/net/core/rmem_max").ok().and_then(|text| text.trim().parse().ok());
    if forced.is_err() && most.is_none_or(|most: u32| buffer <= most) {
        set_receive_buffer(fd, buffer)?;
    }
    set_window_clamp(fd, bytes)
}

/// Sets the clamp again if the kernel has moved it.
///
/// # Errors
/// [`SysError`].
pub fn hold_window(fd: &impl AsFd, bytes: u32) -> SysResult<()> {
    if window_clamp(fd)? == bytes { Ok(()) } else { set_window_clamp(fd, bytes) }
}

/// Listens with a backlog.
///
/// # Errors
/// [`SysError`]; `EADDRINUSE` when somebody does already.
pub fn listen(address: SocketAddr) -> SysResult<TcpListener> {
    TcpListener::bind(address).map_err(SysError::io(format!("listen on {address}")))
}

/// Resets the connection when it is closed, instead of letting what is unsent linger: also when the kernel closes it, since the process
/// was killed.
///
/// # Errors
/// [`SysError`].
pub fn reset_on_close(fd: &impl AsFd) -> SysResult<()> {
    linger(fd, libc::linger { l_onoff: 1, l_linger: 0 })
}

/// Sends what is unsent after the connection is closed, as sockets do unless they are told otherwise.
///
/// # Errors
/// [`SysError`].
pub fn finish_after_close(fd: &impl AsFd) -> SysResult<()> {
    linger(fd, libc::linger { l_onoff: 0, l_linger: 0 })
}

fn linger(fd: &impl AsFd, linger: libc::linger) -> SysResult<()> {
    // SAFETY: the structure that the option takes has no pointers.
    unsafe { set_struct(fd, libc::SOL_SOCKET, libc::SO_LINGER, &linger, "set SO_LINGER") }
}

/// What the kernel knows of a connection: the fields of `struct tcp_info` in its order and units (µs, bytes, segments).
///
/// A kernel that knows fewer leaves the rest 0.
///
/// # Source
/// linux/tcp.h.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
#[expect(missing_docs, reason = "the kernel's names, documented in linux/tcp.h")]
pub struct TcpInfo {
    pub state: u8,
    pub ca_state: u8,
    pub retransmits: u8,
    pub probes: u8,
    pub backoff: u8,
    pub options: u8,
    pub wscale: u8,
    pub app_limited: u8,
    pub rto: u32,
    pub ato: u32,
    pub snd_mss: u32,
    pub rcv_mss: u32,
    pub unacked: u32,
    pub sacked: u32,
    pub lost: u32,
    pub retrans: u32,
    pub fackets: u32,
    pub last_data_sent: u32,
    pub last_ack_sent: u32,
    pub last_data_recv: u32,
    pub last_ack_recv: u32,
    pub pmtu: u32,
    pub rcv_ssthresh: u32,
    pub rtt: u32,
    pub rttvar: u32,
    pub snd_ssthresh: u32,
    pub snd_cwnd: u32,
    pub advmss: u32,
    pub reordering: u32,
    pub rcv_rtt: u32,
    pub rcv_space: u32,
    pub total_retrans: u32,
    pub pacing_rate: u64,
    pub max_pacing_rate: u64,
    pub bytes_acked: u64,
    pub bytes_received: u64,
    pub segs_out: u32,
    pub segs_in: u32,
    pub notsent_bytes: u32,
    pub min_rtt: u32,
    pub data_segs_in: u32,
    pub data_segs_out: u32,
    pub delivery_rate: u64,
    pub busy_time: u64,
    pub rwnd_limited: u64,
    pub sndbuf_limited: u64,
    pub delivered: u32,
    pub delivered_ce: u32,
    pub bytes_sent: u64,
    pub bytes_retrans: u64,
    pub dsack_dups: u32,
    pub reord_seen: u32,
    pub rcv_ooopack: u32,
    pub snd_wnd: u32,
    pub rcv_wnd: u32,
    pub rehash: u32,
    pub total_rto: u16,
    pub total_rto_recoveries: u16,
    pub total_rto_time: u32,
}

impl TcpInfo {
    /// Asks the kernel.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn read(fd: &impl AsFd) -> SysResult<Self> {
        let mut info = Self::default();
        let mut length = size_of::<Self>() as libc::socklen_t;
        // SAFETY: writes at most `length` bytes into a live struct of integers, for which every pattern is valid.
        let result = unsafe {
            libc::getsockopt(
                fd.as_fd().as_raw_fd(),
                libc::IPPROTO_TCP,
                TCP_INFO,
                (&raw mut info).cast(),
                &raw mut length,
            )
        };
        check(result, || "read TCP_INFO".to_owned())?;
        Ok(info)
    }

    /// The figures as netlink has them; what a longer one has more is left out.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let mut info = Self::default();
        let length = bytes.len().min(size_of::<Self>());
        // SAFETY: copies at most the size of a live struct of integers, for which every pattern is valid.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), (&raw mut info).cast(), length) };
        info
    }

    /// Whether the peer agreed to timestamps.
    #[must_use]
    pub fn timestamps(&self) -> bool {
        self.options & 1 != 0
    }

    /// Whether the peer agreed to selective acknowledgements.
    #[must_use]
    pub fn sack(&self) -> bool {
        self.options & 2 != 0
    }

    /// The shifts by which the peer's and our window are scaled; `None` when scaling wasn't agreed to.
    #[must_use]
    pub fn window_scale(&self) -> Option<(u8, u8)> {
        // The kernel packs snd_wscale into the low and rcv_wscale into the high four bits.
        (self.options & 4 != 0).then_some((self.wscale & 15, self.wscale >> 4))
    }

    /// Whether the peer agreed to ECN.
    #[must_use]
    pub fn ecn(&self) -> bool {
        self.options & 8 != 0
    }
}

/// Whether the kernel's TCP is under pressure for memory: of all network namespaces together.
///
/// # Source
/// `tcp_mem` of ip-sysctl.rst, `mem` of /proc/net/sockstat; both in pages.
#[must_use]
pub fn is_short_of_memory() -> bool {
    let (used, limits) = (read("/proc/net/sockstat"), read("/proc/sys/net/ipv4/tcp_mem"));
    is_under_pressure(&used, &limits).unwrap_or(false)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(file).unwrap_or_default()
}

fn is_under_pressure(sockstat: &str, tcp_mem: &str) -> Option<bool> {
    let line = sockstat.lines().find_map(|line| line.strip_prefix("TCP: "))?;
    let mut words = line.split(' ');
    words.find(|word| *word == "mem")?;
    let used: u64 = words.next()?.parse().ok()?;
    let pressure: u64 = tcp_mem.split_whitespace().nth(1)?.parse().ok()?;
    Some(used >= pressure)
}

#[cfg(test)]
mod tests {
    use super::is_under_pressure;

    #[test]
    fn memory_is_short_where_more_pages_are_used_than_the_second_limit_says() {
        let used = |pages: u32| {
            format!("sockets: used 9\nTCP: inuse 4 orphan 0 tw 0 alloc 6 mem {pages}\nUDP: inuse 1 mem 9000\n")
        };
        let of = |pages| is_under_pressure(&used(pages), "100\t200\t300\n");
        assert_eq!([of(199), of(200), is_under_pressure("", "1 2 3")], [Some(false), Some(true), None]);
    }
}
