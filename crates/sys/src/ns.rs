use crate::error::check;
use crate::{SysError, SysResult};
use std::ffi::CString;
use std::fs::File;
use std::io::{PipeWriter, Write as _};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Moves this process into a new user namespace in which it is root, with new network and mount namespaces.
///
/// Where we are root already, every user there is keeps its name and its files in there, so that servers can step down to
/// users of their own. Otherwise our own user becomes uid 0, and no other user exists.
///
/// # Errors
/// [`SysError`]; `EPERM` or `ENOSPC` where user namespaces are forbidden, `EINVAL` when the process has several threads.
///
/// # Source
/// user_namespaces(7): a process may map its own uid and gid without privilege once `setgroups` is denied; who has
/// `CAP_SETUID` and `CAP_SETGID` in the namespace above may map all that there are.
pub fn enter_user_namespace() -> SysResult<()> {
    // SAFETY: these calls only read credentials.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let flags = libc::CLONE_NEWUSER | libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWUTS;
    let everybody = if uid == 0 && gid == 0 { Mapper::start() } else { None };
    unshare(flags, "create a user namespace")?;
    if !everybody.is_some_and(Mapper::map) {
        let write = |file: &str, text: String| {
            std::fs::write(file, text).map_err(SysError::io(format!("write {file} of the new user namespace")))
        };
        // A root with few rights, as in a container, could map its uid from above and not its gid.
        let mapped = |file: &str| std::fs::read_to_string(file).is_ok_and(|map| !map.trim().is_empty());
        write("/proc/self/setgroups", "deny".to_owned())?;
        for (file, own) in [(UID_MAP, uid), ("/proc/self/gid_map", gid)] {
            if !mapped(file) {
                write(file, format!("0 {own} 1"))?;
            }
        }
    }
    // What we mount must not reach the host.
    mount("none", "/", None, libc::MS_REC | libc::MS_PRIVATE)
}

/// Where a process maps its users.
const UID_MAP: &str = "/proc/self/uid_map";

/// Whether this process's user namespace is the first one, in which the machine itself booted.
///
/// # Source
/// `PROC_USER_INIT_INO` of the kernel's include/linux/proc_ns.h: the inode 0xEFFFFFFD is the first one's, at every boot.
#[must_use]
pub fn is_first_user_namespace() -> bool {
    std::fs::read_link("/proc/thread-self/ns/user").is_ok_and(|link| link.as_os_str() == "user:[4026531837]")
}

/// Whether this process's user namespace is one that `enter_user_namespace` or `unshare --user --map-root-user` makes: below
/// another one, with root there as root here or with one user at all, and without a system of its own. The files that it sees
/// are those of the machine or container around it. Containers map their users elsewhere, or say what they are.
#[must_use]
pub fn is_guest_of_a_machine() -> bool {
    let map = std::fs::read_to_string(UID_MAP).unwrap_or_default();
    !is_first_user_namespace() && is_guests_map(&map) && !says_it_is_a_container()
}

fn is_guests_map(map: &str) -> bool {
    let ranges: Vec<Vec<&str>> = map.lines().map(|line| line.split_whitespace().collect()).collect();
    let keeps_root = ranges.iter().any(|range| range.starts_with(&["0", "0"]));
    let has_one_user = ranges.len() == 1 && ranges.iter().all(|range| range.get(2) == Some(&"1"));
    keeps_root || has_one_user
}

/// Whether process 1 was told that it is in a container, as those of systemd, LXC and Podman are.
fn says_it_is_a_container() -> bool {
    let environment = std::fs::read("/proc/1/environ").unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable.starts_with(b"container="))
}

/// Whether [`enter_user_namespace`] failed because this process is root without `CAP_SETFCAP`: such a one may map nobody.
///
/// # Source
/// capabilities(7), `CAP_SETFCAP`: "Since Linux 5.12, this capability is also needed to map user ID 0 in a new user namespace".
#[must_use]
pub fn is_root_that_may_map_nobody(error: &SysError) -> bool {
    error.errno() == Some(libc::EPERM) && error.doing.contains(UID_MAP)
}

/// The cookie of this thread's network namespace: a number that no other one gets until the next boot, unlike the inode of
/// its file. Programs in the kernel know the namespace by it.
///
/// # Errors
/// [`SysError`]; `ENOPROTOOPT` before Linux 5.14.
///
/// # Source
/// `SO_NETNS_COOKIE` of linux/asm-generic/socket.h, commit e8b9eab99232.
pub fn network_cookie() -> SysResult<u64> {
    const SO_NETNS_COOKIE: libc::c_int = 71;
    let socket = std::net::UdpSocket::bind((std::net::Ipv4Addr::UNSPECIFIED, 0))
        .map_err(SysError::io("open a socket to ask for the network namespace"))?;
    let mut cookie = 0_u64;
    let mut length = size_of::<u64>() as libc::socklen_t;
    // SAFETY: writes at most 8 bytes into a live variable of 8 bytes.
    let result = unsafe {
        let at = (&raw mut cookie).cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_SOCKET, SO_NETNS_COOKIE, at, &raw mut length)
    };
    check(result, || "ask for the network namespace's cookie".to_owned())?;
    Ok(cookie)
}

/// A process that stays above the new namespace, since only from there all users can be mapped into it.
struct Mapper {
    child: libc::pid_t,
    /// Closed without a word, it tells the child to end.
    go: Option<PipeWriter>,
}

impl Mapper {
    /// Starts it; `None` where that can't be.
    fn start() -> Option<Self> {
        let pid = std::process::id();
        let [users, groups] = ["uid_map", "gid_map"].map(|file| {
            let known = std::fs::read_to_string(format!("/proc/self/{file}")).ok()?;
            Some((CString::new(format!("/proc/{pid}/{file}")).ok()?, identity(&known)?))
        });
        let maps = [users?, groups?];
        let (ready, go) = std::io::pipe().ok()?;
        // SAFETY: the child calls nothing but system calls until it ends.
        let child = unsafe { libc::fork() };
        match child {
            -1 => None,
            0 => {
                // SAFETY: both are open and ours; the child must not hold the end that it waits for.
                unsafe { libc::close(go.as_raw_fd()) };
                write_maps(ready.as_raw_fd(), &maps)
            }
            child => Some(Self { child, go: Some(go) }),
        }
    }

    /// Lets it map the users of the namespace in which this process is now; whether it could.
    fn map(mut self) -> bool {
        self.go.as_mut().is_some_and(|go| go.write_all(&[1]).is_ok()) && self.end()
    }

    /// Waits for its end; whether all went well.
    fn end(&mut self) -> bool {
        let mut status = 0;
        drop(self.go.take());
        // SAFETY: waitpid writes one int; the child ends once it is told or the pipe is closed.
        let ended = unsafe { libc::waitpid(self.child, &raw mut status, 0) };
        ended == self.child && status == 0
    }
}

impl Drop for Mapper {
    fn drop(&mut self) {
        if self.go.is_some() {
            self.end();
        }
    }
}

/// In the child: waits for a byte, writes the maps, and ends.
fn write_maps(ready: libc::c_int, maps: &[(CString, String); 2]) -> ! {
    let mut byte = 0u8;
    // SAFETY: reads one byte into a live one; all strings live on in the child's copy of the memory.
    let mut done = unsafe { libc::read(ready, (&raw mut byte).cast(), 1) } == 1;
    for (file, text) in maps {
        // SAFETY: as above; open, write and _exit are async-signal-safe.
        done = done
            && unsafe {
                let fd = libc::open(file.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
                fd >= 0 && libc::write(fd, text.as_ptr().cast(), text.len()) == text.len() as libc::ssize_t
            };
    }
    // SAFETY: ends the child at once, without what the parent would do at its end.
    unsafe { libc::_exit(libc::c_int::from(!done)) }
}

/// The map under which all whom a namespace knows stay who they are; `None` unless it knows more than one.
fn identity(known: &str) -> Option<String> {
    let mut map = String::new();
    let mut all = 0u64;
    for line in known.lines() {
        let mut fields = line.split_whitespace();
        let inside: u32 = fields.next()?.parse().ok()?;
        let count: u32 = fields.nth(1)?.parse().ok()?;
        all += u64::from(count);
        map.push_str(&format!("{inside} {inside} {count}\n"));
    }
    (all > 1).then_some(map)
}

/// Moves this process into new network and mount namespaces, without a user namespace: for root where those are forbidden.
///
/// # Errors
/// [`SysError`]; `EPERM` without `CAP_SYS_ADMIN`.
pub fn enter_network_namespace() -> SysResult<()> {
    unshare(libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWUTS, "create a network namespace")?;
    mount("none", "/", None, libc::MS_REC | libc::MS_PRIVATE)
}

/// `unshare(2)` with what it was for.
pub(crate) fn unshare(flags: libc::c_int, doing: &str) -> SysResult<()> {
    if flags & libc::CLONE_NEWNET != 0 {
        crate::presence::keep_origin();
    }
    // SAFETY: unshare takes a number; it affects this thread (and, for user namespaces, a single-threaded process).
    check(unsafe { libc::unshare(flags) }, || doing.to_owned()).map(drop)
}

/// Mounts a file system, or changes a mount's flags.
///
/// # Errors
/// [`SysError`] with source and target.
pub fn mount(source: &str, target: &str, kind: Option<&str>, flags: libc::c_ulong) -> SysResult<()> {
    mount_with(source, target, kind, flags, "")
}

/// As [`mount`], with options of the file system's own.
///
/// # Errors
/// As [`mount`].
pub fn mount_with(
    source: &str,
    target: &str,
    kind: Option<&str>,
    flags: libc::c_ulong,
    options: &str,
) -> SysResult<()> {
    let text = |text: &str| {
        CString::new(text).map_err(|_| SysError {
            doing: format!("mount {source} on {target}"),
            source: std::io::Error::from(std::io::ErrorKind::InvalidInput),
        })
    };
    let (from, to, kind) = (text(source)?, text(target)?, kind.map(text).transpose()?);
    let kind = kind.as_ref().map_or(std::ptr::null(), |kind| kind.as_ptr());
    let data = text(options)?;
    let data = if options.is_empty() { std::ptr::null() } else { data.as_ptr().cast() };
    // SAFETY: all pointers are null or live C strings.
    let result = unsafe { libc::mount(from.as_ptr(), to.as_ptr(), kind, flags, data) };
    check(result, || format!("mount {source} on {target}")).map(drop)
}

/// A network namespace, held open. It ends with the last holder, and every device in it with it.
#[derive(Debug)]
pub struct NetNs(File);

impl NetNs {
    /// The namespace of this thread.
    ///
    /// # Errors
    /// [`SysError`] when /proc isn't mounted.
    pub fn current() -> SysResult<Self> {
        let path = "/proc/thread-self/ns/net";
        File::open(path).map(Self).map_err(SysError::io(format!("open {path}")))
    }

    /// Makes a new one; this thread stays where it is.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_SYS_ADMIN` in the user namespace.
    pub fn create() -> SysResult<Self> {
        let made = std::thread::spawn(|| {
            unshare(libc::CLONE_NEWNET, "create a network namespace")?;
            Self::current()
        });
        made.join().unwrap_or_else(|_| {
            Err(SysError {
                doing: "create a network namespace".to_owned(),
                source: std::io::Error::other("the thread died"),
            })
        })
    }

    /// The one that `ip netns` calls so.
    ///
    /// # Errors
    /// [`SysError`] when there is none of that name.
    pub fn named(name: &str) -> SysResult<Self> {
        let path = format!("/run/netns/{name}");
        File::open(&path).map(Self).map_err(SysError::io(format!("open {path}")))
    }

    /// Moves this thread into it.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_SYS_ADMIN` in its user namespace.
    pub fn enter(&self) -> SysResult<()> {
        // SAFETY: setns takes a descriptor, which is open, and a number.
        check(unsafe { libc::setns(self.0.as_raw_fd(), libc::CLONE_NEWNET) }, || "enter a network namespace".to_owned())
            .map(drop)
    }

    /// Runs something in it, on a thread of its own.
    ///
    /// # Errors
    /// [`SysError`] when the namespace can't be entered.
    ///
    /// # Panics
    /// If `work` panics.
    pub fn run<T: Send>(&self, work: impl FnOnce() -> T + Send) -> SysResult<T> {
        std::thread::scope(|scope| {
            scope
                .spawn(|| {
                    self.enter()?;
                    Ok(work())
                })
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    }
}

impl From<File> for NetNs {
    /// The namespace that an open file is.
    fn from(file: File) -> Self {
        Self(file)
    }
}

impl AsFd for NetNs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Writes a `/proc/sys/net` setting of this thread's network namespace: `ipv4/tcp_no_metrics_save`.
///
/// # Errors
/// [`SysError`] with the file.
pub fn write_net_sysctl(name: &str, value: &str) -> SysResult<()> {
    let path = format!("/proc/sys/net/{name}");
    std::fs::write(&path, value).map_err(SysError::io(format!("write {value:?} to {path}")))
}

/// Reads a `/proc/sys/net` setting of this thread's network namespace.
///
/// # Errors
/// [`SysError`] with the file.
pub fn read_net_sysctl(name: &str) -> SysResult<String> {
    let path = format!("/proc/sys/net/{name}");
    std::fs::read_to_string(&path).map(|text| text.trim().to_owned()).map_err(SysError::io(format!("read {path}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_with_root_of_the_one_above_or_one_user_is_a_guest_and_one_with_users_elsewhere_a_container() {
        for guest in ["0 0 4294967295", "         0       1000          1\n", "0 0 1", "0 0 65536\n65536 1 1"] {
            assert!(is_guests_map(guest), "{guest}");
        }
        for container in ["0 100000 65536", "0 1000 1\n1 100000 65536", ""] {
            assert!(!is_guests_map(container), "{container}");
        }
    }
}
