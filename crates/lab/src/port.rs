//! The two ways to a kernel's packets: a TUN device, or the other end of a veth pair.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use wt_sys::packet::PacketPort;
use wt_sys::tun::Tun;
use wt_sys::vnet::{VNET_LEN, VnetHeader};

/// Bytes of an Ethernet header.
const ETHERNET: usize = 14;
/// The largest packet with all that may stand before it.
pub(crate) const LARGEST: usize = VNET_LEN + ETHERNET + 65_536 + 256;

/// Where one host's packets come from and go to.
#[derive(Debug)]
pub(crate) enum Port {
    /// A TUN device in the host's namespace: packets begin with the IP header.
    Tun(Tun),
    /// The emulator's end of a veth pair: packets begin with an Ethernet header.
    Veth {
        /// The device.
        device: PacketPort,
        /// The host's Ethernet address.
        host: [u8; 6],
    },
}

impl Port {
    /// How the lab reaches the kernel, for people.
    pub(crate) fn backend(&self) -> &'static str {
        match self {
            Self::Tun(_) => "TUN with vnet header",
            Self::Veth { .. } => "AF_PACKET TPACKET_V2 with vnet header on veth",
        }
    }

    /// Reads one IP packet into `buffer`: its header (offsets from the IP header) and its place. `None`: none now.
    pub(crate) fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<(VnetHeader, std::ops::Range<usize>)>> {
        let (length, link) = match self {
            Self::Tun(tun) => (tun.receive(buffer)?, 0),
            Self::Veth { device, .. } => (device.receive(buffer), ETHERNET),
        };
        let Some(length) = length else { return Ok(None) };
        let start = VNET_LEN + link;
        if length <= start {
            return Ok(Some((VnetHeader::default(), 0..0)));
        }
        let mut header = VnetHeader::from_bytes(&std::array::from_fn(|i| buffer[i]));
        header.csum_start = header.csum_start.saturating_sub(link as u16);
        // ECN on a super-packet is in the TCP header; the type below says only that it may be.
        header.gso_type &= !wt_sys::vnet::GSO_ECN;
        Ok(Some((header, start..length)))
    }

    /// Why a port was ready that had nothing to read.
    ///
    /// # Errors
    /// Its device is gone, or down.
    pub(crate) fn take_error(&self) -> io::Result<()> {
        match self {
            // Its next read tells.
            Self::Tun(_) => Ok(()),
            Self::Veth { device, .. } => device.take_error(),
        }
    }

    /// Bytes of the link header that [`Port::send`] puts before the IP header.
    pub(crate) fn link_header(&self) -> u16 {
        if matches!(self, Self::Tun(_)) { 0 } else { ETHERNET as u16 }
    }

    /// Sends one IP packet in two pieces.
    pub(crate) fn send(&mut self, vnet: &[u8; VNET_LEN], headers: &[u8], payload: &[u8]) -> io::Result<()> {
        match self {
            Self::Tun(tun) => tun.send(&[IoSlice::new(vnet), IoSlice::new(headers), IoSlice::new(payload)]),
            Self::Veth { device, host } => {
                let mut ethernet = [0; ETHERNET];
                ethernet[..6].copy_from_slice(host);
                ethernet[6..12].copy_from_slice(&[2, 0, 0, 0, 0, 1]);
                let kind: u16 = if headers.first().is_some_and(|first| first >> 4 == 6) { 0x86DD } else { 0x0800 };
                ethernet[12..].copy_from_slice(&kind.to_be_bytes());
                device.send(&[
                    IoSlice::new(vnet),
                    IoSlice::new(&ethernet),
                    IoSlice::new(headers),
                    IoSlice::new(payload),
                ])
            }
        }
    }

    /// Packets that were lost between the kernel and us since this was last asked.
    pub(crate) fn take_drops(&mut self) -> u64 {
        match self {
            Self::Tun(_) => 0,
            Self::Veth { device, .. } => device.take_drops(),
        }
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tun(tun) => tun.as_fd(),
            Self::Veth { device, .. } => device.as_fd(),
        }
    }
}
