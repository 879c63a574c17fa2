//! Who measures on this machine, whatever their journal and user are: each holds a socket with an abstract name, which everybody in
//! the same network namespace reads in /proc/net/unix, and which the kernel takes away with the process.
//!
//! A process that rehearses moves into namespaces of its own. It keeps the list, and a socket without a name, of the one it came from.
//! What this leaves out: containers, which see their own network namespace only.

use std::fs::File;
use std::io::{Read as _, Seek as _};
use std::mem::offset_of;
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixDatagram;
use std::sync::{Mutex, OnceLock, PoisonError};

/// How the names of these sockets begin.
const NAME: &str = "windtunnel-measures";
/// The longest name that is told to others.
const LONGEST: usize = 64;
/// The kernel's list of sockets.
const LIST: &str = "/proc/net/unix";

/// What is kept of the network namespace that this process began in.
struct Origin {
    list: Mutex<File>,
    socket: Mutex<Option<UnixDatagram>>,
}

static ORIGIN: OnceLock<Option<Origin>> = OnceLock::new();

/// To be called before this process leaves its network namespace; from the second time on it does nothing.
pub(crate) fn keep_origin() {
    ORIGIN.get_or_init(|| {
        let (list, socket) = (File::open(LIST).ok()?, UnixDatagram::unbound().ok()?);
        Some(Origin { list: Mutex::new(list), socket: Mutex::new(Some(socket)) })
    });
}

fn origin() -> Option<&'static Origin> {
    ORIGIN.get()?.as_ref()
}

/// That this process measures, for as long as it is held.
#[derive(Debug)]
pub struct Presence {
    _socket: UnixDatagram,
}

impl Presence {
    /// Lets others see this name; `None` where sockets can't be made, or the name has other characters than letters, digits, dots,
    /// hyphens and underscores. Of a process that has left its first network namespace, others there see the first name only.
    #[must_use]
    pub fn announce(name: &str) -> Option<Self> {
        if !is_plain(name) {
            return None;
        }
        let kept = origin().and_then(|origin| origin.socket.lock().unwrap_or_else(PoisonError::into_inner).take());
        let socket = kept.map_or_else(UnixDatagram::unbound, Ok).ok()?;
        bind_abstract(&socket, &format!("{NAME}/{}/{name}", std::process::id())).then_some(Self { _socket: socket })
    }

    /// The names that other processes announce, sorted.
    #[must_use]
    pub fn of_others() -> Vec<String> {
        let sockets = origin().map_or_else(
            || std::fs::read_to_string(LIST),
            |origin| {
                let mut list = origin.list.lock().unwrap_or_else(PoisonError::into_inner);
                list.rewind()?;
                let mut text = String::new();
                list.read_to_string(&mut text).map(|_| text)
            },
        );
        named(&sockets.unwrap_or_default(), std::process::id())
    }
}

/// Gives a socket an abstract name, in the network namespace where it was made.
///
/// # Source
/// unix(7), "Address format", abstract.
fn bind_abstract(socket: &UnixDatagram, name: &str) -> bool {
    // SAFETY: all zeros is a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    let Some(room) = address.sun_path.get_mut(1..=name.len()) else { return false };
    for (to, from) in room.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    let length = (offset_of!(libc::sockaddr_un, sun_path) + 1 + name.len()) as libc::socklen_t;
    // SAFETY: the address lives through the call and is at least `length` bytes long.
    unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) == 0 }
}

/// The names in a list of sockets, but for those of one process.
fn named(sockets: &str, own: u32) -> Vec<String> {
    let begin = format!("@{NAME}/");
    let mine = own.to_string();
    let one = |line: &str| {
        let (process, name) = line.split_whitespace().next_back()?.strip_prefix(&begin)?.split_once('/')?;
        // Others may call their sockets as they like.
        (process != mine && is_plain(name)).then(|| name.to_owned())
    };
    let mut names: Vec<String> = sockets.lines().filter_map(one).collect();
    names.sort();
    names.dedup();
    names
}

fn is_plain(name: &str) -> bool {
    (1..=LONGEST).contains(&name.len()) && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_are_read_and_nothing_else() {
        let line = |name: &str| format!("0000000000000000: 00000002 00000000 00000000 0002 01 12345 {name}\n");
        let all = [
            "@windtunnel-measures/7/mine",
            "@windtunnel-measures/8/b",
            "@windtunnel-measures/9/a",
            "@other/8/c",
            "/run/x",
        ];
        let mut sockets = "Num       RefCount Protocol Flags    Type St Inode Path\n".to_owned();
        sockets.extend(all.map(line));
        sockets.push_str(&line("@windtunnel-measures/9/\u{1b}[2J"));
        sockets.push_str("0000000000000000: 00000002 00000000 00000000 0002 01 12345\n");
        assert_eq!(named(&sockets, 7), ["a", "b"]);
    }

    #[test]
    fn a_presence_is_a_socket_of_this_process_and_goes_with_it() {
        let own = || std::fs::read_to_string("/proc/net/unix").unwrap().contains("/presence-of-a-test");
        let held = Presence::announce("presence-of-a-test").unwrap();
        assert!(own() && !Presence::of_others().contains(&"presence-of-a-test".to_owned()));
        drop(held);
        assert!(!own() && Presence::announce("a b").is_none() && Presence::announce("").is_none());
    }
}
