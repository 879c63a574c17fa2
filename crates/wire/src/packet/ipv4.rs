use super::{Checksum, Ecn, Protocol, ViewError, addr_at, at_least, u16_at};
use std::net::Ipv4Addr;

/// An IPv4 packet.
///
/// # Source
/// RFC 791 section 3.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv4View<'a> {
    /// At least the whole header, at most the total length.
    bytes: &'a [u8],
}

impl<'a> Ipv4View<'a> {
    /// A whole packet; what follows its total length is left out.
    ///
    /// # Errors
    /// [`ViewError`] if it isn't IPv4, is cut short, or its length fields are impossible.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ViewError> {
        let view = Self::quoted(bytes)?;
        at_least(bytes, view.total_len(), "an IPv4 packet")?;
        Ok(view)
    }

    /// A packet of which perhaps only the beginning is there, as ICMP errors quote it: the whole header at least.
    ///
    /// # Errors
    /// [`ViewError`] if it isn't IPv4, the header is cut short, or its length fields are impossible.
    pub fn quoted(bytes: &'a [u8]) -> Result<Self, ViewError> {
        at_least(bytes, 20, "an IPv4 header")?;
        let version = bytes[0] >> 4;
        if version != 4 {
            return Err(ViewError::Version { what: "an IPv4 packet", version });
        }
        let view = Self { bytes };
        if view.header_len() < 20 {
            return Err(ViewError::Length { what: "an IPv4 header", value: view.header_len() });
        }
        at_least(bytes, view.header_len(), "an IPv4 header")?;
        if view.total_len() < view.header_len() {
            return Err(ViewError::Length { what: "an IPv4 packet", value: view.total_len() });
        }
        Ok(Self { bytes: &bytes[..bytes.len().min(view.total_len())] })
    }

    /// The header's length with its options, bytes.
    #[must_use]
    pub const fn header_len(&self) -> usize {
        (self.bytes[0] & 15) as usize * 4
    }

    /// The packet's length as its header says, bytes.
    #[must_use]
    pub fn total_len(&self) -> usize {
        usize::from(u16_at(self.bytes, 2))
    }

    /// The differentiated services code point.
    #[must_use]
    pub const fn dscp(&self) -> u8 {
        self.bytes[1] >> 2
    }

    /// What it says about congestion.
    #[must_use]
    pub const fn ecn(&self) -> Ecn {
        Ecn::of(self.bytes[1])
    }

    /// The identification that fragments share.
    #[must_use]
    pub fn ident(&self) -> u16 {
        u16_at(self.bytes, 4)
    }

    /// Whether it must not be fragmented.
    #[must_use]
    pub const fn dont_fragment(&self) -> bool {
        self.bytes[6] & 0x40 != 0
    }

    /// Whether more fragments follow.
    #[must_use]
    pub const fn more_fragments(&self) -> bool {
        self.bytes[6] & 0x20 != 0
    }

    /// Where the payload lies in the original packet, bytes.
    #[must_use]
    pub fn fragment_offset(&self) -> usize {
        usize::from(u16_at(self.bytes, 6) & 0x1fff) * 8
    }

    /// Whether it is a part of a packet.
    #[must_use]
    pub fn is_fragment(&self) -> bool {
        self.more_fragments() || self.fragment_offset() > 0
    }

    /// The time to live.
    #[must_use]
    pub const fn ttl(&self) -> u8 {
        self.bytes[8]
    }

    /// What the payload is.
    #[must_use]
    pub const fn protocol(&self) -> Protocol {
        Protocol(self.bytes[9])
    }

    /// The header's checksum.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes, 10)
    }

    /// Whether the header's checksum is right.
    #[must_use]
    pub fn checksum_ok(&self) -> bool {
        Checksum::new().with(&self.bytes[..self.header_len()]).finish() == 0
    }

    /// From where.
    #[must_use]
    pub fn src(&self) -> Ipv4Addr {
        Ipv4Addr::from(addr_at::<4>(self.bytes, 12))
    }

    /// To where.
    #[must_use]
    pub fn dst(&self) -> Ipv4Addr {
        Ipv4Addr::from(addr_at::<4>(self.bytes, 16))
    }

    /// The header with its options.
    #[must_use]
    pub fn header(&self) -> &'a [u8] {
        &self.bytes[..self.header_len()]
    }

    /// The header's options.
    #[must_use]
    pub fn options(&self) -> &'a [u8] {
        &self.bytes[20..self.header_len()]
    }

    /// What follows the header, as far as it is there.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[self.header_len()..]
    }

    /// The packet, as far as it is there.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// Makes the checksum of a header of IPv4.
pub(super) fn fill_checksum(header: &mut [u8]) {
    header[10..12].fill(0);
    let sum = Checksum::new().with(header).finish();
    header[10..12].copy_from_slice(&sum.to_be_bytes());
}
