use super::{Checksum, ViewError, at_least, u16_at};
use std::net::IpAddr;

/// A UDP datagram.
///
/// # Source
/// RFC 768.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UdpView<'a> {
    bytes: &'a [u8],
}

impl<'a> UdpView<'a> {
    /// A whole datagram; what follows its length is left out.
    ///
    /// # Errors
    /// [`ViewError`] if it is cut short or its length is impossible.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ViewError> {
        let view = Self::quoted(bytes)?;
        at_least(bytes, view.len(), "a UDP datagram")?;
        Ok(Self { bytes: &bytes[..view.len()] })
    }

    /// A datagram of which perhaps only the header is there.
    ///
    /// # Errors
    /// [`ViewError`] if the header is cut short or its length is impossible.
    pub fn quoted(bytes: &'a [u8]) -> Result<Self, ViewError> {
        at_least(bytes, 8, "a UDP header")?;
        let view = Self { bytes };
        if view.len() < 8 {
            return Err(ViewError::Length { what: "a UDP datagram", value: view.len() });
        }
        Ok(view)
    }

    /// From which port.
    #[must_use]
    pub fn src_port(&self) -> u16 {
        u16_at(self.bytes, 0)
    }

    /// To which port.
    #[must_use]
    pub fn dst_port(&self) -> u16 {
        u16_at(self.bytes, 2)
    }

    /// The datagram's length as its header says, bytes; never less than 8.
    #[expect(clippy::len_without_is_empty, reason = "a datagram has a header and is never empty")]
    #[must_use]
    pub fn len(&self) -> usize {
        usize::from(u16_at(self.bytes, 4))
    }

    /// The checksum; zero if the sender made none.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes, 6)
    }

    /// Whether the checksum is right, or absent over IPv4.
    #[must_use]
    pub fn checksum_ok(&self, src: IpAddr, dst: IpAddr) -> bool {
        if self.checksum() == 0 {
            return src.is_ipv4();
        }
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        Checksum::pseudo_header(src, dst, 17, len).with(self.bytes).finish() == 0
    }

    /// What follows the header, as far as it is there.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[8..]
    }
}
