use super::options::TcpOptions;
use super::{Checksum, ViewError, at_least, u16_at, u32_at};
use std::net::IpAddr;

/// A sequence number: compared around the circle of 2³².
///
/// # Source
/// RFC 9293 section 3.4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether it comes before the other one: less than half the circle behind it.
    #[must_use]
    pub const fn is_before(self, other: Self) -> bool {
        (self.0.wrapping_sub(other.0) as i32) < 0
    }

    /// How far ahead of the other one it is; negative if it is behind.
    #[must_use]
    pub const fn since(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0) as i32
    }

    /// So many bytes further.
    #[must_use]
    pub const fn plus(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

/// The control bits of a segment.
///
/// # Source
/// RFC 9293 section 3.1; RFC 9768 for AE, the bit that RFC 3540 called NS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct TcpFlags(pub u16);

impl TcpFlags {
    /// No more data.
    pub const FIN: Self = Self(1);
    /// Synchronise.
    pub const SYN: Self = Self(2);
    /// Reset.
    pub const RST: Self = Self(4);
    /// Push.
    pub const PSH: Self = Self(8);
    /// The acknowledgement counts.
    pub const ACK: Self = Self(16);
    /// The urgent pointer counts.
    pub const URG: Self = Self(32);
    /// Congestion was echoed.
    pub const ECE: Self = Self(64);
    /// The window was reduced.
    pub const CWR: Self = Self(128);
    /// Accurate ECN.
    pub const AE: Self = Self(256);

    /// Whether all of these are set.
    #[must_use]
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Whether any of these is set.
    #[must_use]
    pub const fn has_any(self, flags: Self) -> bool {
        self.0 & flags.0 != 0
    }
}

impl std::ops::BitOr for TcpFlags {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// A TCP segment.
///
/// # Source
/// RFC 9293 section 3.1.
///
/// # Example
/// ```
/// use wt_wire::{TcpFlags, TcpOption, TcpView};
/// let mut bytes = [0; 24];
/// bytes[12] = 6 << 4; // 24 bytes of header
/// bytes[13] = 2; // SYN
/// bytes[20..].copy_from_slice(&[2, 4, 0x05, 0xb4]);
/// let syn = TcpView::new(&bytes)?;
/// assert!(syn.flags().has(TcpFlags::SYN));
/// assert_eq!(syn.options().next(), Some(Ok(TcpOption::Mss(1460))));
/// # Ok::<(), wt_wire::ViewError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpView<'a> {
    bytes: &'a [u8],
}

impl<'a> TcpView<'a> {
    /// A segment with its whole header.
    ///
    /// # Errors
    /// [`ViewError`] if the header is cut short or its length is impossible.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ViewError> {
        let view = Self::quoted(bytes)?;
        if view.header_len() < 20 {
            return Err(ViewError::Length { what: "a TCP header", value: view.header_len() });
        }
        at_least(bytes, view.header_len(), "a TCP header")?;
        Ok(view)
    }

    /// The eight bytes that every ICMP error quotes at least: ports and sequence number; the rest reads as zero or is
    /// empty where it is missing.
    ///
    /// # Errors
    /// [`ViewError`] if not even those are there.
    pub fn quoted(bytes: &'a [u8]) -> Result<Self, ViewError> {
        at_least(bytes, 8, "a quoted TCP header")?;
        Ok(Self { bytes })
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

    /// The number of the first byte of the payload, or of the SYN.
    #[must_use]
    pub fn seq(&self) -> Seq {
        Seq(u32_at(self.bytes, 4))
    }

    /// The number of the next byte that is expected.
    #[must_use]
    pub fn ack(&self) -> Seq {
        Seq(u32_at(self.bytes, 8))
    }

    /// The header's length with its options, bytes.
    #[must_use]
    pub fn header_len(&self) -> usize {
        self.bytes.get(12).map_or(0, |byte| usize::from(byte >> 4) * 4)
    }

    /// The control bits.
    #[must_use]
    pub fn flags(&self) -> TcpFlags {
        TcpFlags(u16_at(self.bytes, 12) & 0x01ff)
    }

    /// The window as it is written, not scaled.
    #[must_use]
    pub fn window(&self) -> u16 {
        u16_at(self.bytes, 14)
    }

    /// The checksum.
    #[must_use]
    pub fn checksum(&self) -> u16 {
        u16_at(self.bytes, 16)
    }

    /// The urgent pointer.
    #[must_use]
    pub fn urgent(&self) -> u16 {
        u16_at(self.bytes, 18)
    }

    /// Whether the checksum is right over all the bytes of the view.
    #[must_use]
    pub fn checksum_ok(&self, src: IpAddr, dst: IpAddr) -> bool {
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        Checksum::pseudo_header(src, dst, 6, len).with(self.bytes).finish() == 0
    }

    /// The options.
    #[must_use]
    pub fn options(&self) -> TcpOptions<'a> {
        TcpOptions::new(self.bytes.get(20..self.header_len()).unwrap_or_default())
    }

    /// What follows the header, as far as it is there.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        self.bytes.get(self.header_len().max(20)..).unwrap_or_default()
    }

    /// How many numbers it takes: its payload, and one each for SYN and FIN.
    #[must_use]
    pub fn seq_len(&self) -> u32 {
        let controls = u32::from(self.flags().has(TcpFlags::SYN)) + u32::from(self.flags().has(TcpFlags::FIN));
        u32::try_from(self.payload().len()).unwrap_or(u32::MAX).saturating_add(controls)
    }
}
