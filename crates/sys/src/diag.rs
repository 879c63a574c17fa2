//! The TCP sockets of this thread's network namespace, as they are and as they end.

use crate::rtattr::{attributes, text_of};
use crate::tcp::TcpInfo;
use crate::{SysError, SysResult};
use netlink_sys::{Socket, SocketAddr as NetlinkAddr, protocols::NETLINK_SOCK_DIAG};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};

const NLM_F_REQUEST: u16 = 1;
const NLM_F_DUMP: u16 = 0x300;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const IPPROTO_TCP: u8 = 6;
const INET_DIAG_INFO: u16 = 2;
const INET_DIAG_CONG: u16 = 4;
/// `nlmsghdr`, `inet_diag_req_v2` and `inet_diag_msg`, bytes.
const HEADER: usize = 16;
const REQUEST: usize = HEADER + 8 + 48;
const MESSAGE: usize = 72;
/// What the kernel may keep of ends that nobody has taken yet, bytes: some 8,000 of them.
const ROOM: i32 = 8 << 20;
/// `SKNLGRP_INET_TCP_DESTROY` and `SKNLGRP_INET6_TCP_DESTROY` of linux/sock_diag.h, as bits.
const ENDS: u32 = 1 | 1 << 2;
const REPLY: usize = 1 << 16;

/// A socket's state: `TCP_LISTEN` and `TCP_SYN_RECV` of net/tcp_states.h. A dump is asked for requests by `TCP_NEW_SYN_RECV`, and tells
/// them as the other (`inet_req_diag_fill()` in net/ipv4/inet_diag.c of Linux).
const LISTEN: u8 = 10;
const SYN_RECEIVED: u8 = 3;
/// The timer of what only waits for late segments, or for the other end's FIN (`idiag_timer` of sock_diag(7)).
const WAITS: u8 = 3;

/// A TCP socket, as sock_diag describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiagSocket {
    /// The number that it has for as long as it lives; that of the request from which it came.
    pub cookie: u64,
    /// Its own end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Its state, by the kernel's number; 7 for one that has ended.
    pub state: u8,
    /// Its congestion control, where that was told.
    pub congestion_control: Option<String>,
    /// Its figures, where they were told.
    pub info: Option<TcpInfo>,
}

impl DiagSocket {
    /// Whether it waits for connections.
    #[must_use]
    pub fn is_listener(&self) -> bool {
        self.state == LISTEN
    }

    /// Whether it is a request that isn't a connection yet. A connection that came with its first data (TCP Fast Open) has the same
    /// state until it is confirmed, but a congestion control, too, which the kernel tells in every list.
    #[must_use]
    pub fn is_request(&self) -> bool {
        self.state == SYN_RECEIVED && self.congestion_control.is_none()
    }
}

/// Told of every TCP socket of this network namespace that ends, from now on.
///
/// # Source
/// sock_diag(7); `sock_diag_broadcast_destroy()` in net/core/sock_diag.c of Linux. It takes no capability.
pub struct SocketEnds {
    socket: Socket,
}

impl std::fmt::Debug for SocketEnds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SocketEnds").finish_non_exhaustive()
    }
}

impl SocketEnds {
    /// From now on.
    ///
    /// # Errors
    /// [`SysError`] where the kernel has no `CONFIG_INET_DIAG`.
    pub fn watch() -> SysResult<Self> {
        let doing = "watch the ends of connections";
        let mut socket = Socket::new(NETLINK_SOCK_DIAG).map_err(SysError::io(doing))?;
        // More than others may have, if this process may: an end that finds no room isn't told.
        let room = ROOM;
        // SAFETY: passes the address and size of a live integer.
        unsafe {
            libc::setsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_RCVBUFFORCE,
                (&raw const room).cast(),
                size_of::<i32>() as libc::socklen_t,
            );
        }
        socket.bind(&NetlinkAddr::new(0, ENDS)).map_err(SysError::io(doing))?;
        socket.set_non_blocking(true).map_err(SysError::io(doing))?;
        Ok(Self { socket })
    }

    /// The sockets that have ended since the last call, and whether some found no room and aren't told.
    ///
    /// # Errors
    /// [`SysError`].
    pub fn take(&mut self) -> SysResult<(Vec<DiagSocket>, bool)> {
        let (mut ended, mut lost) = (Vec::new(), false);
        let mut buffer = Vec::with_capacity(REPLY);
        loop {
            buffer.clear();
            match self.socket.recv(&mut buffer, 0) {
                Ok(_) => ended.extend(messages(&buffer).filter_map(|(_, body)| read(body))),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok((ended, lost)),
                Err(error) if error.raw_os_error() == Some(libc::ENOBUFS) => lost = true,
                Err(error) => return Err(SysError::io("watch the ends of connections")(error)),
            }
        }
    }
}

impl AsFd for SocketEnds {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// The TCP sockets of this thread's network namespace: listeners, requests and connections, without those that only wait for
/// late segments, or for the other end's FIN after they were closed: their end was told.
///
/// # Source
/// `tcp_time_wait()` in net/ipv4/tcp_minisocks.c of Linux: what was closed waits in `FIN_WAIT2`, too, and its socket has ended.
///
/// # Errors
/// [`SysError`] where the kernel doesn't tell.
pub fn tcp_sockets() -> SysResult<Vec<DiagSocket>> {
    listed(1 << (INET_DIAG_CONG - 1))
}

/// The same with their figures, which takes the kernel some time for each.
///
/// # Errors
/// [`SysError`] where the kernel doesn't tell.
pub fn tcp_sockets_with_figures() -> SysResult<Vec<DiagSocket>> {
    listed(1 << (INET_DIAG_CONG - 1) | 1 << (INET_DIAG_INFO - 1))
}

fn listed(attributes: u8) -> SysResult<Vec<DiagSocket>> {
    /// All but `TCP_SYN_SENT`, `TCP_TIME_WAIT` and `TCP_CLOSE`.
    const STATES: u32 = 0x1FFF & !(1 << 2 | 1 << 6 | 1 << 7 | 1);
    let doing = "list the sockets";
    let mut socket = Socket::new(NETLINK_SOCK_DIAG).map_err(SysError::io(doing))?;
    socket.bind_auto().map_err(SysError::io(doing))?;
    socket.connect(&NetlinkAddr::new(0, 0)).map_err(SysError::io(doing))?;
    let mut found = Vec::new();
    for family in [libc::AF_INET, libc::AF_INET6] {
        let mut bytes = [0_u8; REQUEST];
        let mut put = |at: usize, some: &[u8]| bytes[at..at + some.len()].copy_from_slice(some);
        put(0, &(REQUEST as u32).to_ne_bytes());
        put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        put(6, &(NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
        put(HEADER, &[u8::try_from(family).unwrap_or(0), IPPROTO_TCP, attributes]);
        put(HEADER + 4, &STATES.to_ne_bytes());
        socket.send(&bytes, 0).map_err(SysError::io(doing))?;
        let mut buffer = Vec::with_capacity(REPLY);
        'dump: loop {
            buffer.clear();
            socket.recv(&mut buffer, 0).map_err(SysError::io(doing))?;
            for (kind, body) in messages(&buffer) {
                match kind {
                    NLMSG_DONE => break 'dump,
                    NLMSG_ERROR => {
                        let number = body.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
                        let error = io::Error::from_raw_os_error(number.saturating_neg());
                        return Err(SysError::io(doing)(error));
                    }
                    _ => found.extend(read(body)),
                }
            }
        }
    }
    Ok(found)
}

/// Each netlink message: its type and what follows its header.
fn messages(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let head = rest.first_chunk::<HEADER>()?;
        let length = u32::from_ne_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let body = rest.get(HEADER..length)?;
        let kind = u16::from_ne_bytes([head[4], head[5]]);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some((kind, body))
    })
}

/// `struct inet_diag_msg` and its attributes; `None` for what is too short, and for what only waits, some of which is listed with
/// the sockets in `FIN_WAIT2`.
fn read(body: &[u8]) -> Option<DiagSocket> {
    let head = body.first_chunk::<MESSAGE>()?;
    if head[2] == WAITS {
        return None;
    }
    let is_v6 = i32::from(head[0]) == libc::AF_INET6;
    let port = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
    let address = |at: usize| -> Option<IpAddr> {
        if is_v6 {
            <[u8; 16]>::try_from(&head[at..at + 16]).ok().map(IpAddr::from)
        } else {
            <[u8; 4]>::try_from(&head[at..at + 4]).ok().map(IpAddr::from)
        }
    };
    let word = |at: usize| u32::from_ne_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
    let mut socket = DiagSocket {
        cookie: u64::from(word(44)) | u64::from(word(48)) << 32,
        local: SocketAddr::new(address(8)?.to_canonical(), port(4)),
        remote: SocketAddr::new(address(24)?.to_canonical(), port(6)),
        state: head[1],
        congestion_control: None,
        info: None,
    };
    for (kind, value) in attributes(&body[MESSAGE..]) {
        match kind {
            INET_DIAG_INFO => socket.info = Some(TcpInfo::from_bytes(value)),
            INET_DIAG_CONG => socket.congestion_control = Some(text_of(value)),
            _ => {}
        }
    }
    Some(socket)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connection_is_listed_while_it_lives_and_told_with_its_figures_when_it_ends() {
        for address in ["127.0.0.1:0", "[::1]:0", "[::]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let mut to = listener.local_addr().unwrap();
            if to.ip().is_unspecified() {
                to.set_ip(IpAddr::from([127, 0, 0, 1]));
            }
            let mut ends = SocketEnds::watch().unwrap();
            let mut client = TcpStream::connect(to).unwrap();
            let (mut server, _) = listener.accept().unwrap();
            let all = tcp_sockets().unwrap();
            assert!(all.iter().any(|one| one.is_listener() && one.local.port() == to.port()));
            let ours = |one: &&DiagSocket| one.local.port() == to.port() && !one.is_listener();
            let open = all.iter().find(ours).unwrap();
            assert_eq!((open.local, open.remote), (to, client.local_addr().unwrap()));
            assert!(open.congestion_control.as_ref().is_some_and(|name| !name.is_empty()), "{open:?}");
            let cookie = open.cookie;
            server.write_all(&[7; 5000]).unwrap();
            client.read_exact(&mut [0; 5000]).unwrap();
            drop(client);
            assert_eq!(server.read(&mut [0; 9]).unwrap(), 0);
            drop(server);
            let ended = loop {
                crate::poll::wait_readable(&[ends.as_fd()], None).unwrap();
                let (ended, lost) = ends.take().unwrap();
                assert!(!lost);
                if let Some(one) = ended.into_iter().find(|one| one.cookie == cookie) {
                    break one;
                }
            };
            let info = ended.info.unwrap();
            assert_eq!((ended.remote, info.bytes_acked, info.bytes_sent), (open.remote, 5001, 5000), "the FIN counts");
        }
    }

    #[test]
    fn a_request_is_none_any_more_once_it_is_a_connection_and_keeps_its_number() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        // The last ACK of a handshake is as good as lost until data comes: the kernel keeps the request.
        let seconds = 60;
        // SAFETY: passes the address and size of a live integer.
        let set = unsafe {
            libc::setsockopt(
                listener.as_raw_fd(),
                libc::IPPROTO_TCP,
                libc::TCP_DEFER_ACCEPT,
                (&raw const seconds).cast(),
                size_of::<i32>() as libc::socklen_t,
            )
        };
        assert_eq!(set, 0);
        let to = listener.local_addr().unwrap();
        let mut client = TcpStream::connect(to).unwrap();
        let ours = |list: Vec<DiagSocket>| {
            let ours: Vec<DiagSocket> = list.into_iter().filter(|one| one.local == to && !one.is_listener()).collect();
            assert_eq!(ours.len(), 1, "{ours:?}");
            ours[0].clone()
        };
        let [half_open, with_figures] = [tcp_sockets(), tcp_sockets_with_figures()].map(|list| ours(list.unwrap()));
        assert!(half_open.is_request() && with_figures.is_request(), "{half_open:?}");
        assert_eq!(half_open.remote, client.local_addr().unwrap());
        client.write_all(&[7]).unwrap();
        let _server = listener.accept().unwrap();
        let open = ours(tcp_sockets().unwrap());
        assert!(!open.is_request() && open.cookie == half_open.cookie, "{open:?}");
        // One that came with its first data is a connection while its state is still that of a request.
        assert!(!DiagSocket { state: half_open.state, ..open }.is_request());
    }

    #[test]
    fn what_the_server_has_closed_is_listed_no_more_once_its_end_is_told_although_the_client_holds_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let to = listener.local_addr().unwrap();
            let mut ends = SocketEnds::watch().unwrap();
            let mut client = TcpStream::connect(to).unwrap();
            let (server, _) = listener.accept().unwrap();
            let connections = || {
                let ours =
                    |list: Vec<DiagSocket>| list.iter().filter(|one| one.local == to && !one.is_listener()).count();
                [ours(tcp_sockets().unwrap()), ours(tcp_sockets_with_figures().unwrap())]
            };
            server.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(client.read(&mut [0; 9]).unwrap(), 0);
            assert_eq!(connections(), [1, 1], "the server still reads");
            drop(server);
            loop {
                crate::poll::wait_readable(&[ends.as_fd()], None).unwrap();
                let (ended, lost) = ends.take().unwrap();
                assert!(!lost);
                if ended.iter().any(|one| one.local == to) {
                    break;
                }
            }
            let file = if to.is_ipv4() { "/proc/thread-self/net/tcp" } else { "/proc/thread-self/net/tcp6" };
            let all = std::fs::read_to_string(file).unwrap();
            let waits = format!(":{:04X} 05 ", client.local_addr().unwrap().port());
            assert!(all.contains(&waits), "nothing waits for the client's FIN: this shows nothing\n{all}");
            assert_eq!(connections(), [0, 0]);
        }
    }

    #[test]
    fn what_is_too_short_is_no_socket() {
        assert_eq!(read(&[0; MESSAGE - 1]), None);
        assert_eq!(messages(&[1, 0, 0, 0]).count(), 0);
    }
}
