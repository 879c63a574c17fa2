use crate::error::check;
use crate::vnet::{VNET_LEN, VnetHeader};
use crate::{SysError, SysResult};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// The largest packet with all that may stand before it.
const LARGEST: usize = VNET_LEN + ETHERNET + 65_536 + 64;

/// The IP packets of one version that arrive at a device, as they came over the wire: where the kernel has joined
/// segments, the size that each had is told.
///
/// Raw sockets show joined segments as one and keep to themselves how long each was.
///
/// # Source
/// packet(7) `PACKET_VNET_HDR`, `PACKET_IGNORE_OUTGOING`.
#[derive(Debug)]
pub struct Sniffer {
    socket: OwnedFd,
    buffer: Vec<u8>,
}

/// A packet that arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sniffed<'a> {
    /// Its bytes from the IP header on.
    pub packet: &'a [u8],
    /// The payload of each segment that was joined into it; `None` if it came as it is.
    pub segment: Option<u16>,
}

impl Sniffer {
    /// Listens at a device.
    ///
    /// # Errors
    /// [`SysError`]; `EPERM` without `CAP_NET_RAW`, `ENODEV` when there is no such device.
    pub fn open(device: &str, v6: bool) -> SysResult<Self> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
        // Protocol 0 receives nothing until the socket is bound to its one device.
        // SAFETY: socket takes numbers.
        let fd = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) }, || "open a packet socket".to_owned())?;
        // SAFETY: the kernel has just given us this descriptor.
        let socket = unsafe { OwnedFd::from_raw_fd(fd) };
        for option in [PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING] {
            let (value, length): (libc::c_int, _) = (1, size_of::<libc::c_int>() as libc::socklen_t);
            // SAFETY: reads one int from a live variable.
            let result = unsafe {
                libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, option, (&raw const value).cast(), length)
            };
            check(result, || format!("set option {option} of a packet socket"))?;
        }
        let name = std::ffi::CString::new(device).map_err(|_| SysError {
            doing: format!("find the device {device:?}"),
            source: std::io::Error::from(std::io::ErrorKind::InvalidInput),
        })?;
        // SAFETY: the name is a live C string.
        let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
        let index = libc::c_int::try_from(index).unwrap_or(0);
        check(if index == 0 { -1 } else { 0 }, || format!("find the device {device}"))?;
        // SAFETY: an all-zero sockaddr_ll is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (if v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP } as u16).to_be();
        address.sll_ifindex = index;
        let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: the address lives through the call and has the length that we say.
        let result = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
        check(result, || format!("listen at the device {device}"))?;
        Ok(Self { socket, buffer: vec![0; LARGEST] })
    }

    /// The next packet; `None` if there is none now, or the device is gone.
    pub fn receive(&mut self) -> Option<Sniffed<'_>> {
        // SAFETY: an all-zero sockaddr_ll is valid.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
        // SAFETY: buffer and address are live and as large as we say.
        let got = unsafe {
            libc::recvfrom(
                self.socket.as_raw_fd(),
                self.buffer.as_mut_ptr().cast(),
                self.buffer.len(),
                libc::MSG_DONTWAIT,
                (&raw mut address).cast(),
                &raw mut length,
            )
        };
        let got = usize::try_from(got).ok()?;
        let link = match address.sll_hatype {
            libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => ETHERNET,
            _ => 0,
        };
        let header = VnetHeader::from_bytes(self.buffer.first_chunk()?);
        let packet = self.buffer.get(VNET_LEN + link..got).unwrap_or_default();
        Some(Sniffed { packet, segment: (header.gso_size > 0).then_some(header.gso_size) })
    }
}

impl AsFd for Sniffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
