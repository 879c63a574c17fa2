//! The network that this process began in, for one that moves into namespaces of its own: a child stays behind, looks names up there and
//! connects, and hands the connections over.
//!
//! What this leaves out: datagrams, and connections that come in.

use crate::error::check;
use crate::poll::wait_readable;
use crate::resolve::{ResolveError, resolve, resolve_unless};
use crate::tcp::TcpSocket;
use crate::{SysError, SysResult};
use std::io;
use std::mem::{size_of, zeroed};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

/// The longest question or answer, bytes: a name has 255 at most, and no more addresses are told than have room.
const LONGEST: usize = 4096;
/// How much longer than it may take an answer is waited for.
const SLACK: Duration = Duration::from_millis(500);

/// The child, once there is one.
static CHILD: OnceLock<Child> = OnceLock::new();

struct Child(Mutex<Line>);

/// Our end of the pair over which is asked.
struct Line {
    socket: OwnedFd,
    asked: u64,
}

/// Leaves a child behind, so that [`connect`] and [`addresses`] know this network when this process has left it. It ends with this process. To
/// be called while the process has a single thread; from the second time on it does nothing.
///
/// # Errors
/// [`SysError`] where no process can be made.
pub fn stay_in_reach() -> SysResult<()> {
    if CHILD.get().is_some() {
        return Ok(());
    }
    let mut pair = [0; 2];
    // SAFETY: socketpair writes two descriptors into two live ints.
    let made =
        unsafe { libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, pair.as_mut_ptr()) };
    check(made, || "open a pair of sockets".to_owned())?;
    // SAFETY: the kernel has just given us both descriptors.
    let [socket, theirs] = pair.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    let parent = std::process::id();
    // SAFETY: with a single thread nobody holds a lock that the child would miss.
    match check(unsafe { libc::fork() }, || "start a process".to_owned())? {
        0 => serve(&theirs, parent),
        _ => drop(CHILD.set(Child(Mutex::new(Line { socket, asked: 0 })))),
    }
    Ok(())
}

/// Connects within `timeout`, in the network where [`stay_in_reach`] was called, or else in this thread's.
///
/// # Errors
/// [`SysError`] as [`TcpSocket::connect`].
pub fn connect(peer: &SocketAddr, timeout: Duration) -> SysResult<TcpStream> {
    let Some(child) = CHILD.get() else { return TcpSocket::new(peer)?.connect(peer, timeout) };
    let (answer, stream) = child.ask(&Question::Connect(*peer, timeout), timeout)?;
    let refused = || {
        let errno = answer.parse().unwrap_or(libc::EIO);
        SysError { doing: format!("connect to {peer}"), source: io::Error::from_raw_os_error(errno) }
    };
    stream.map(TcpStream::from).ok_or_else(refused)
}

/// The addresses of a name within `timeout`, as they are known in the network where [`stay_in_reach`] was called, or else in this one.
///
/// # Errors
/// [`ResolveError`].
pub fn addresses(host: &str, port: u16, timeout: Duration) -> Result<Vec<SocketAddr>, ResolveError> {
    let until = crate::clock::monotonic_ns().saturating_add(nanos(timeout));
    let Some(child) = CHILD.get().filter(|_| host.parse::<std::net::IpAddr>().is_err()) else {
        return resolve_unless(host, port, || crate::clock::monotonic_ns() > until);
    };
    let asked = child.ask(&Question::Resolve(host.to_owned(), port), timeout);
    let (answer, _) = asked.map_err(|error| ResolveError::System(error.to_string()))?;
    match answer.split_once(' ').unwrap_or_default() {
        ("addresses", list) => Ok(list.split(' ').filter_map(|address| address.parse().ok()).collect()),
        ("unknown", why) => Err(ResolveError::Unknown(why.to_owned())),
        ("temporary", why) => Err(ResolveError::Temporary(why.to_owned())),
        (_, why) => Err(ResolveError::System(why.to_owned())),
    }
}

/// What the child is asked.
enum Question {
    Connect(SocketAddr, Duration),
    Resolve(String, u16),
}

impl Question {
    fn to_text(&self) -> String {
        match self {
            Self::Connect(peer, timeout) => format!("connect {} {peer}", nanos(*timeout)),
            Self::Resolve(host, port) => format!("resolve {port} {host}"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (what, rest) = text.split_once(' ')?;
        let (number, rest) = rest.split_once(' ')?;
        Some(match what {
            "connect" => Self::Connect(rest.parse().ok()?, Duration::from_nanos(number.parse().ok()?)),
            _ => Self::Resolve(rest.to_owned(), number.parse().ok()?),
        })
    }

    /// What the child says to it, with the connection if that is what was asked for.
    fn answer(self) -> (String, Option<TcpStream>) {
        match self {
            Self::Connect(peer, timeout) => match TcpSocket::new(&peer).and_then(|to| to.connect(&peer, timeout)) {
                Ok(stream) => (String::new(), Some(stream)),
                Err(error) => (error.errno().unwrap_or(libc::EIO).to_string(), None),
            },
            Self::Resolve(host, port) => {
                let text = match resolve(&host, port) {
                    Ok(found) => found.iter().take(50).fold("addresses".to_owned(), |all, one| format!("{all} {one}")),
                    Err(ResolveError::Unknown(why)) => format!("unknown {why}"),
                    Err(ResolveError::Temporary(why)) => format!("temporary {why}"),
                    Err(error) => format!("system {error}"),
                };
                (text, None)
            }
        }
    }
}

impl Child {
    /// Asks, and waits a little longer than `timeout` for the answer.
    fn ask(&self, question: &Question, timeout: Duration) -> SysResult<(String, Option<OwnedFd>)> {
        let doing = "ask the process outside of the lab";
        let failed = |errno| SysError { doing: doing.to_owned(), source: io::Error::from_raw_os_error(errno) };
        let mut line = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        line.asked += 1;
        let number = line.asked.to_string();
        send(line.socket.as_raw_fd(), &format!("{number} {}", question.to_text()), None)?;
        let until = crate::clock::monotonic_ns().saturating_add(nanos(timeout + SLACK));
        loop {
            let left = until.saturating_sub(crate::clock::monotonic_ns());
            if left == 0 {
                return Err(failed(libc::ETIMEDOUT));
            }
            if wait_readable(&[line.socket.as_fd()], Some(Duration::from_nanos(left)))? == 0 {
                continue;
            }
            let (text, stream) = receive(line.socket.as_raw_fd())?.ok_or_else(|| failed(libc::EPIPE))?;
            // An answer that came too late isn't this one's.
            match text.split_once(' ') {
                Some((of, answer)) if of == number => return Ok((answer.to_owned(), stream)),
                _ => {}
            }
        }
    }
}

/// In the child: answers until nobody can ask any more.
fn serve(socket: &OwnedFd, parent: u32) -> ! {
    let done = std::panic::catch_unwind(|| {
        leave_all_but(socket.as_raw_fd(), parent);
        while let Ok(Some((text, _))) = receive(socket.as_raw_fd()) {
            let Some((number, question)) = text.split_once(' ') else { return };
            let Some(question) = Question::parse(question) else { return };
            let (answer, stream) = question.answer();
            if send(socket.as_raw_fd(), &format!("{number} {answer}"), stream.as_ref().map(AsRawFd::as_raw_fd)).is_err()
            {
                return;
            }
        }
    });
    // SAFETY: ends the child at once, without what the parent would do at its end.
    unsafe { libc::_exit(i32::from(done.is_err())) }
}

/// In the child: holds nothing that is the parent's, and ends with it and by no key that is meant for it.
fn leave_all_but(socket: RawFd, parent: u32) {
    for number in [libc::SIGINT, libc::SIGQUIT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        crate::process::ignore_signal(number);
    }
    // SAFETY: these calls take numbers, and a name that ends with a zero; the descriptors that are closed are used by nobody in this process,
    // which has one thread and comes back from nothing that held them.
    unsafe {
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL, 0, 0, 0);
        if u32::try_from(libc::getppid()) != Ok(parent) {
            libc::_exit(0);
        }
        let null = libc::open(c"/dev/null".as_ptr(), libc::O_RDWR);
        for standard in 0..3 {
            libc::dup2(null, standard);
        }
        let own = socket as libc::c_uint;
        if own > 3 {
            libc::syscall(libc::SYS_close_range, 3 as libc::c_uint, own - 1, 0 as libc::c_uint);
        }
        libc::syscall(libc::SYS_close_range, own + 1, libc::c_uint::MAX, 0 as libc::c_uint);
    }
}

/// Room for one descriptor beside a message.
const ROOM: usize = 64;

/// Sends a message, with a descriptor if there is one.
///
/// # Source
/// unix(7), `SCM_RIGHTS`; cmsg(3).
fn send(socket: RawFd, text: &str, passed: Option<RawFd>) -> SysResult<()> {
    let mut piece = libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len().min(LONGEST) };
    let mut control = [0_u64; ROOM / size_of::<u64>()];
    // SAFETY: an all-zero msghdr is valid; the pieces and the room live through the call, and the room is large and aligned enough for one
    // header with one descriptor.
    let sent = unsafe {
        let mut message: libc::msghdr = zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
        if let Some(fd) = passed {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            (*header).cmsg_level = libc::SOL_SOCKET;
            (*header).cmsg_type = libc::SCM_RIGHTS;
            (*header).cmsg_len = libc::CMSG_LEN(size_of::<RawFd>() as u32) as _;
            libc::CMSG_DATA(header).cast::<RawFd>().write_unaligned(fd);
        }
        libc::sendmsg(socket, &raw const message, libc::MSG_NOSIGNAL)
    };
    if sent < 0 { Err(SysError::last("send to the process outside of the lab".to_owned())) } else { Ok(()) }
}

/// Receives a message with its descriptor; nothing once the other end is closed.
///
/// # Source
/// As [`send`].
fn receive(socket: RawFd) -> SysResult<Option<(String, Option<OwnedFd>)>> {
    let mut bytes = [0_u8; LONGEST];
    let mut piece = libc::iovec { iov_base: bytes.as_mut_ptr().cast(), iov_len: bytes.len() };
    let mut control = [0_u64; ROOM / size_of::<u64>()];
    let (mut passed, mut length);
    // SAFETY: an all-zero msghdr is valid; bytes and room live through the call. A descriptor that came is ours alone.
    unsafe {
        let mut message: libc::msghdr = zeroed();
        (message.msg_iov, message.msg_iovlen) = (&raw mut piece, 1);
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(size_of::<RawFd>() as u32) as _;
        loop {
            length = libc::recvmsg(socket, &raw mut message, libc::MSG_CMSG_CLOEXEC);
            if length >= 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
                break;
            }
        }
        passed = None;
        if length > 0 {
            let header = libc::CMSG_FIRSTHDR(&raw const message);
            if !header.is_null() && (*header).cmsg_type == libc::SCM_RIGHTS {
                let fd = libc::CMSG_DATA(header).cast::<RawFd>().read_unaligned();
                passed = Some(OwnedFd::from_raw_fd(fd));
            }
        }
    }
    let Ok(length) = usize::try_from(length) else {
        return Err(SysError::last("hear from the process outside of the lab".to_owned()));
    };
    let text = bytes.get(..length).filter(|bytes| !bytes.is_empty());
    Ok(text.map(|text| (String::from_utf8_lossy(text).into_owned(), passed)))
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ns::NetNs;
    use crate::process::{CAP_SYS_ADMIN, has_capability};
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    #[test]
    fn who_has_left_a_network_still_connects_there() {
        let outside = TcpListener::bind("127.0.0.1:0").unwrap();
        let (here, soon) = (outside.local_addr().unwrap(), Duration::from_secs(20));
        let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let connected = || {
            assert_eq!(addresses("localhost", here.port(), soon).unwrap()[0].port(), here.port());
            assert!(addresses("no.such.name.invalid", 1, soon).is_err());
            assert_eq!(connect(&nobody, soon).unwrap_err().errno(), Some(libc::ECONNREFUSED));
            connect(&here, soon).unwrap()
        };
        stay_in_reach().unwrap();
        stay_in_reach().unwrap();
        // Where the rights lack, at least through the child.
        let is_root = has_capability(CAP_SYS_ADMIN);
        let mut stream = if is_root { NetNs::create().unwrap().run(connected).unwrap() } else { connected() };
        stream.write_all(b"?").unwrap();
        let (mut accepted, mut byte) = (outside.accept().unwrap().0, [0]);
        accepted.read_exact(&mut byte).unwrap();
        assert_eq!(&byte, b"?");
    }
}
