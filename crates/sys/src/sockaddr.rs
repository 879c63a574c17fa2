use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// For connect(2), bind(2) and sendto(2), with its length.
pub(crate) fn to_raw(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: an all-zero sockaddr_storage is valid, and it is large and aligned enough for every family.
    let mut storage: libc::sockaddr_storage = unsafe { std::mem::zeroed() };
    let pointer = &raw mut storage;
    let length = match address {
        SocketAddr::V4(v4) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as u16,
                sin_port: v4.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(v4.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: as above.
            unsafe { pointer.cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(v6) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as u16,
                sin6_port: v6.port().to_be(),
                sin6_flowinfo: v6.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                sin6_scope_id: v6.scope_id(),
            };
            // SAFETY: as above.
            unsafe { pointer.cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

/// What the kernel gave; `None` if it is of no family of the Internet.
pub(crate) fn from_raw(storage: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let pointer = std::ptr::from_ref(storage);
    match libc::c_int::from(storage.ss_family) {
        libc::AF_INET => {
            // SAFETY: the storage is large and aligned enough for every family, and its family says which it is.
            let raw = unsafe { pointer.cast::<libc::sockaddr_in>().read() };
            let ip = Ipv4Addr::from(raw.sin_addr.s_addr.to_ne_bytes());
            Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
        }
        libc::AF_INET6 => {
            // SAFETY: as above.
            let raw = unsafe { pointer.cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
            Some(SocketAddrV6::new(ip, u16::from_be(raw.sin6_port), 0, raw.sin6_scope_id).into())
        }
        _ => None,
    }
}
