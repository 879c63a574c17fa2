//! The header that says how a packet is to be segmented and checksummed.

/// Bytes of the header on TUN and packet sockets.
pub const VNET_LEN: usize = 10;

/// `struct virtio_net_hdr`: what the kernel leaves to us, and we to it, for one super-packet.
///
/// # Source
/// Virtual I/O Device (VIRTIO) 1.2, 5.1.6; linux/virtio_net.h. Fields are in the host's byte order on TUN and AF_PACKET.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VnetHeader {
    /// [`NEEDS_CSUM`] and others.
    pub flags: u8,
    /// [`GSO_NONE`], [`GSO_TCPV4`], [`GSO_TCPV6`] or [`GSO_UDP_L4`], with [`GSO_ECN`] on top.
    pub gso_type: u8,
    /// Bytes of all headers before the payload.
    pub hdr_len: u16,
    /// Payload of each segment, bytes.
    pub gso_size: u16,
    /// Where the checksummed part begins.
    pub csum_start: u16,
    /// Where from there the checksum goes.
    pub csum_offset: u16,
}

/// The checksum isn't there yet: only the pseudo-header's sum is.
pub const NEEDS_CSUM: u8 = 1;
/// Whoever received it has checked it.
pub const DATA_VALID: u8 = 2;
/// One packet, nothing to segment.
pub const GSO_NONE: u8 = 0;
/// TCP over IPv4.
pub const GSO_TCPV4: u8 = 1;
/// TCP over IPv6.
pub const GSO_TCPV6: u8 = 4;
/// UDP datagrams of one size.
pub const GSO_UDP_L4: u8 = 5;
/// The segments have CWR to clear after the first.
pub const GSO_ECN: u8 = 0x80;

impl VnetHeader {
    /// Reads the header.
    #[must_use]
    pub fn from_bytes(bytes: &[u8; VNET_LEN]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        Self {
            flags: bytes[0],
            gso_type: bytes[1],
            hdr_len: word(2),
            gso_size: word(4),
            csum_start: word(6),
            csum_offset: word(8),
        }
    }

    /// Writes the header.
    #[must_use]
    pub fn to_bytes(self) -> [u8; VNET_LEN] {
        let mut bytes = [0; VNET_LEN];
        bytes[0] = self.flags;
        bytes[1] = self.gso_type;
        for (at, word) in [(2, self.hdr_len), (4, self.gso_size), (6, self.csum_start), (8, self.csum_offset)] {
            bytes[at..at + 2].copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }
}
