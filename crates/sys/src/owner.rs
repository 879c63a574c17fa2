//! Whose process is at the other end of a connection within this host.

use crate::{SysError, SysResult};
use netlink_sys::{Socket, SocketAddr as NetlinkAddr, protocols::NETLINK_SOCK_DIAG};
use std::io;
use std::net::{IpAddr, SocketAddr};

const NLM_F_REQUEST: u16 = 1;
const NLMSG_ERROR: u16 = 2;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;
const IPPROTO_TCP: u8 = 6;
/// `nlmsghdr`, `inet_diag_sockid`, `inet_diag_req_v2` and `inet_diag_msg`, bytes.
const HEADER: usize = 16;
const ID: usize = 48;
const REQUEST: usize = HEADER + 8 + ID;
const ANSWER: usize = HEADER + 4 + ID + 20;
/// States in which a socket may still be held by a process: established, and both of those whose holder said its last word.
const HELD: [u8; 3] = [1, 4, 5];

/// The user who made the socket at `theirs` that is connected with `ours`, both in this thread's network namespace, as this user
/// namespace knows that user; `None` where no process holds such a socket.
///
/// Nobody can make a socket that is told as another user's: the kernel notes the user when it is made. One whose process has gone
/// has no user, and isn't told as root's.
///
/// # Errors
/// [`SysError`] where the kernel doesn't tell, as without `CONFIG_INET_DIAG`.
///
/// # Source
/// sock_diag(7); `inet_diag_find_one_icsk()` in net/ipv4/inet_diag.c of Linux.
///
/// # Example
/// ```
/// let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
/// let ours = listener.local_addr().unwrap();
/// let client = std::net::TcpStream::connect(ours).unwrap();
/// let found = wt_sys::owner::of_connection(client.local_addr().unwrap(), ours);
/// if let Ok(owner) = found {
///     assert_eq!(owner, Some(wt_sys::process::effective_uid()));
/// }
/// ```
pub fn of_connection(theirs: SocketAddr, ours: SocketAddr) -> SysResult<Option<u32>> {
    let doing = "ask whose a connection is";
    let mut socket = Socket::new(NETLINK_SOCK_DIAG).map_err(SysError::io(doing))?;
    socket.bind_auto().map_err(SysError::io(doing))?;
    socket.connect(&NetlinkAddr::new(0, 0)).map_err(SysError::io(doing))?;
    let asked = request(theirs, ours);
    socket.send(&asked, 0).map_err(SysError::io(doing))?;
    let mut answer = Vec::with_capacity(4096);
    socket.recv(&mut answer, 0).map_err(SysError::io(doing))?;
    read(&answer, &asked[HEADER + 8..HEADER + 8 + 4]).map_err(SysError::io(doing))
}

fn request(theirs: SocketAddr, ours: SocketAddr) -> [u8; REQUEST] {
    let mut bytes = [0; REQUEST];
    let mut put = |at: usize, some: &[u8]| bytes[at..at + some.len()].copy_from_slice(some);
    put(0, &(REQUEST as u32).to_ne_bytes());
    put(4, &SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    put(6, &NLM_F_REQUEST.to_ne_bytes());
    put(HEADER, &[if theirs.is_ipv4() { AF_INET } else { AF_INET6 }, IPPROTO_TCP]);
    put(HEADER + 4, &u32::MAX.to_ne_bytes());
    let id = HEADER + 8;
    put(id, &theirs.port().to_be_bytes());
    put(id + 2, &ours.port().to_be_bytes());
    for (at, address) in [(id + 4, theirs.ip()), (id + 20, ours.ip())] {
        match address {
            IpAddr::V4(v4) => put(at, &v4.octets()),
            IpAddr::V6(v6) => put(at, &v6.octets()),
        }
    }
    // No cookie: whichever socket is there now.
    put(id + 40, &[0xFF; 8]);
    bytes
}

/// The user in the kernel's answer, if it is about these two ports.
fn read(answer: &[u8], ports: &[u8]) -> io::Result<Option<u32>> {
    const ENOENT: i32 = 2;
    let short = || io::Error::from(io::ErrorKind::UnexpectedEof);
    let word = |at: usize| {
        let bytes = answer.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).ok_or_else(short)?;
        Ok::<_, io::Error>(u32::from_ne_bytes(bytes))
    };
    let kind = u16::from_ne_bytes(answer.get(4..6).and_then(|kind| kind.try_into().ok()).ok_or_else(short)?);
    if kind == NLMSG_ERROR {
        let number = word(HEADER)?.cast_signed().saturating_neg();
        return if number == ENOENT { Ok(None) } else { Err(io::Error::from_raw_os_error(number)) };
    }
    if kind != SOCK_DIAG_BY_FAMILY || answer.len() < ANSWER {
        return Err(short());
    }
    let (user, inode) = (word(HEADER + 4 + ID + 12)?, word(HEADER + 4 + ID + 16)?);
    // A listener is found, too, where there is no connection; what nobody holds has no inode, and is told as user 0's.
    let held = HELD.contains(&answer[HEADER + 1]) && inode != 0 && answer[HEADER + 4..HEADER + 8] == *ports;
    Ok(held.then_some(user))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn a_connections_user_is_told_for_as_long_as_its_process_holds_it() {
        for address in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let ours = listener.local_addr().unwrap();
            let client = TcpStream::connect(ours).unwrap();
            let theirs = client.local_addr().unwrap();
            let own = Some(crate::process::effective_uid());
            assert_eq!(of_connection(theirs, ours).unwrap(), own, "{address}");
            client.shutdown(std::net::Shutdown::Write).unwrap();
            assert_eq!(of_connection(theirs, ours).unwrap(), own, "its holder still listens");
            drop(client);
            assert_eq!(of_connection(theirs, ours).unwrap(), None, "a socket without a holder is nobody's, not root's");
            assert_eq!(of_connection(ours, theirs).unwrap(), None, "a listener is no connection");
        }
    }

    #[test]
    fn answers_that_arent_about_the_connection_name_nobody() {
        let mut answer = vec![0; ANSWER];
        answer[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
        answer[HEADER + 1] = 1;
        answer[HEADER + 4..HEADER + 8].copy_from_slice(&[1, 2, 3, 4]);
        answer[HEADER + 64..HEADER + 72].copy_from_slice(&[[7, 0, 0, 0], [9, 0, 0, 0]].concat());
        assert_eq!(read(&answer, &[1, 2, 3, 4]).unwrap(), Some(u32::from_ne_bytes([7, 0, 0, 0])));
        assert_eq!(read(&answer, &[1, 2, 3, 5]).unwrap(), None);
        for end in 0..ANSWER {
            assert!(read(&answer[..end], &[1, 2, 3, 4]).is_err(), "{end}");
        }
        for (at, byte) in [(HEADER + 1, 10), (HEADER + 1, 6), (HEADER + 68, 0)] {
            let mut other = answer.clone();
            other[at] = byte;
            assert_eq!(read(&other, &[1, 2, 3, 4]).unwrap(), None, "{at}");
        }
    }
}
