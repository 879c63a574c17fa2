use crate::SysResult;
use crate::ring::{PACKET_IGNORE_OUTGOING, PACKET_VNET_HDR, PacketSocket, index_of};
use crate::vnet::{VNET_LEN, VnetHeader};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

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
pub struct SniffedPacket<'a> {
    /// Its bytes from the IP header on.
    pub packet: &'a [u8],
    /// The payload of each segment that was joined into it; `None` if it came as it is.
    pub segment: Option<u16>,
}

impl Sniffer {
    /// Listens at a device.
    ///
    /// # Errors
    /// [`SysError`](crate::SysError); `EPERM` without `CAP_NET_RAW`, `ENODEV` when there is no such device.
    pub fn open(device: &str, v6: bool) -> SysResult<Self> {
        let socket = PacketSocket::open(libc::SOCK_RAW)?;
        for option in [PACKET_VNET_HDR, PACKET_IGNORE_OUTGOING] {
            socket.set(option, 1)?;
        }
        let protocol = if v6 { libc::ETH_P_IPV6 } else { libc::ETH_P_IP };
        let socket = socket.listen(protocol, index_of(device)?)?;
        Ok(Self { socket, buffer: vec![0; LARGEST] })
    }

    /// The next packet; `None` if there is none now, or the device is gone.
    pub fn receive(&mut self) -> Option<SniffedPacket<'_>> {
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
        Some(SniffedPacket { packet, segment: (header.gso_size > 0).then_some(header.gso_size) })
    }
}

impl AsFd for Sniffer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
