//! Addresses of names, with the reason where there are none.

use crate::sockaddr::from_raw;
use std::ffi::{CStr, CString};
use std::net::{IpAddr, SocketAddr};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

/// Between two looks at whether somebody has given up waiting for an answer.
const LOOK: Duration = Duration::from_millis(50);

/// Why a name has no address.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// There is no such name, or it has no address; or it can't be one.
    #[error("{0}")]
    Unknown(String),
    /// No server of names answered, or none that knows: it may go better later.
    #[error("{0}")]
    Temporary(String),
    /// This system can't look names up.
    #[error("{0}")]
    System(String),
    /// Nobody waits for the answer any more.
    #[error("stopped before there was an answer")]
    Stopped,
}

impl ResolveError {
    /// Whether the name may well be right: the resolver, or the way to it, is at fault.
    #[must_use]
    pub const fn is_temporary(&self) -> bool {
        matches!(self, Self::Temporary(_))
    }

    fn of(code: libc::c_int) -> Self {
        if code == libc::EAI_SYSTEM {
            return Self::System(std::io::Error::last_os_error().to_string());
        }
        // SAFETY: it gives a static string for every number.
        let text = unsafe { CStr::from_ptr(libc::gai_strerror(code)) }.to_string_lossy().into_owned();
        match code {
            libc::EAI_NONAME | libc::EAI_NODATA | libc::EAI_FAIL => Self::Unknown(text),
            libc::EAI_AGAIN => Self::Temporary(text),
            _ => Self::System(text),
        }
    }
}

/// Like [`resolve`], but returns soon after `stopped` says so: a resolver that doesn't answer is waited for by a thread of its own,
/// which ends with the resolver's patience (resolv.conf(5): `timeout` times `attempts`) or with the process.
///
/// # Errors
/// [`ResolveError`], [`ResolveError::Stopped`] among them.
pub fn resolve_unless(host: &str, port: u16, stopped: impl Fn() -> bool) -> Result<Vec<SocketAddr>, ResolveError> {
    if host.parse::<IpAddr>().is_ok() {
        return resolve(host, port);
    }
    let name = host.to_owned();
    unless_stopped(move || resolve(&name, port), stopped)
}

fn unless_stopped<T: Send + 'static>(
    ask: impl FnOnce() -> Result<T, ResolveError> + Send + 'static,
    stopped: impl Fn() -> bool,
) -> Result<T, ResolveError> {
    let (sender, answer) = sync_channel(1);
    let system = |error: std::io::Error| ResolveError::System(error.to_string());
    // Nobody listens to an answer that comes too late.
    std::thread::Builder::new().spawn(move || drop(sender.send(ask()))).map_err(system)?;
    loop {
        match answer.recv_timeout(LOOK) {
            Ok(answer) => return answer,
            Err(RecvTimeoutError::Timeout) if stopped() => return Err(ResolveError::Stopped),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(ResolveError::System("the thread that asks has died".to_owned()));
            }
        }
    }
}

/// The list that getaddrinfo(3) gave, freed with it.
struct List(*mut libc::addrinfo);

impl Drop for List {
    fn drop(&mut self) {
        // SAFETY: it came from getaddrinfo(3) and is freed once.
        unsafe { libc::freeaddrinfo(self.0) }
    }
}

/// An IPv4 address in the notation of IPv6, as `ss` names IPv4 peers of IPv6 sockets, is that IPv4 address: packets of IPv6 with it
/// go nowhere.
///
/// # Source
/// RFC 4291 section 2.5.5.2.
fn plain(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        ip @ IpAddr::V4(_) => SocketAddr::new(ip, address.port()),
        // With its scope.
        IpAddr::V6(_) => address,
    }
}

/// The addresses of a name, the system's first choice first, at least one; blocks as long as the resolver takes.
///
/// # Errors
/// [`ResolveError`].
///
/// # Source
/// getaddrinfo(3); the order of its answers is RFC 6724's.
pub fn resolve(host: &str, port: u16) -> Result<Vec<SocketAddr>, ResolveError> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![plain(SocketAddr::new(address, port))]);
    }
    let name = CString::new(host).map_err(|_| ResolveError::of(libc::EAI_NONAME))?;
    // SAFETY: an all-zero addrinfo is valid: no flags, any family, no pointers.
    let mut hints: libc::addrinfo = unsafe { std::mem::zeroed() };
    hints.ai_socktype = libc::SOCK_STREAM;
    let mut first = std::ptr::null_mut();
    // SAFETY: name and hints live through the call, no service is asked for, and the list is owned from here on.
    let code = unsafe { libc::getaddrinfo(name.as_ptr(), std::ptr::null(), &raw const hints, &raw mut first) };
    if code != 0 {
        return Err(ResolveError::of(code));
    }
    let list = List(first);
    let mut addresses = Vec::new();
    let mut next = list.0;
    // SAFETY: every entry of the list is valid until it is freed.
    while let Some(entry) = unsafe { next.as_ref() } {
        next = entry.ai_next;
        // SAFETY: an all-zero sockaddr_storage is valid.
        let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
        let length = (entry.ai_addrlen as usize).min(size_of::<libc::sockaddr_storage>());
        // SAFETY: an entry's address has as many bytes as it says, and the storage has room for them.
        unsafe { std::ptr::copy_nonoverlapping(entry.ai_addr.cast::<u8>(), (&raw mut storage).cast(), length) };
        addresses.extend(from_raw(&storage).map(|mut address| {
            address.set_port(port);
            plain(address)
        }));
    }
    if addresses.is_empty() { Err(ResolveError::of(libc::EAI_NONAME)) } else { Ok(addresses) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_resolve_to_themselves_and_the_loopback_has_one() {
        for (host, address) in
            [("192.0.2.7", "192.0.2.7:80"), ("2001:db8::7", "[2001:db8::7]:80"), ("::ffff:192.0.2.7", "192.0.2.7:80")]
        {
            assert_eq!(resolve(host, 80).unwrap(), [address.parse().unwrap()], "{host}");
        }
        assert!(
            resolve("localhost", 7).unwrap().iter().all(|address| address.ip().is_loopback() && address.port() == 7)
        );
    }

    #[test]
    fn who_gives_up_waits_for_no_resolver() {
        let (keep_silent, silence) = std::sync::mpsc::channel::<()>();
        let ask = move || {
            let _ended = silence.recv();
            Ok(())
        };
        // It returns at all, though the answer never comes.
        assert_eq!(unless_stopped(ask, || true), Err(ResolveError::Stopped));
        drop(keep_silent);
        assert_eq!(unless_stopped(|| Ok(7), || true), Ok(7));
        assert!(resolve_unless("localhost", 7, || false).unwrap().iter().all(|address| address.ip().is_loopback()));
    }

    #[test]
    fn reasons_are_told_apart_by_their_codes() {
        assert!(ResolveError::of(libc::EAI_AGAIN).is_temporary());
        for code in [libc::EAI_NONAME, libc::EAI_NODATA] {
            assert!(matches!(ResolveError::of(code), ResolveError::Unknown(_)), "{code}");
        }
        assert!(matches!(ResolveError::of(libc::EAI_MEMORY), ResolveError::System(_)));
        assert!(matches!(resolve("a\0b", 80), Err(ResolveError::Unknown(_))));
    }
}
