use super::{Ecn, Protocol, ViewError, addr_at, at_least, u16_at, u32_at};
use std::net::Ipv6Addr;

/// The most extension headers that are looked through; more is an attack, not a packet.
const MAX_EXTENSIONS: usize = 8;

/// An IPv6 packet.
///
/// # Source
/// RFC 8200 section 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ipv6View<'a> {
    /// At least the fixed header, at most the length that it gives.
    bytes: &'a [u8],
}

/// What lies behind the extension headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UpperLayer<'a> {
    /// What it is.
    pub protocol: Protocol,
    /// Its bytes, as far as they are there.
    pub payload: &'a [u8],
    /// Where they lie in the original packet, bytes: not zero in any fragment but the first.
    pub fragment_offset: usize,
    /// Whether the packet is a part of a packet.
    pub is_fragment: bool,
}

impl<'a> Ipv6View<'a> {
    /// A whole packet; what follows its length is left out.
    ///
    /// # Errors
    /// [`ViewError`] if it isn't IPv6 or is cut short.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ViewError> {
        let view = Self::quoted(bytes)?;
        at_least(bytes, view.total_len(), "an IPv6 packet")?;
        Ok(view)
    }

    /// A packet of which perhaps only the beginning is there, as ICMP errors quote it: the fixed header at least.
    ///
    /// # Errors
    /// [`ViewError`] if it isn't IPv6 or the header is cut short.
    pub fn quoted(bytes: &'a [u8]) -> Result<Self, ViewError> {
        at_least(bytes, 40, "an IPv6 header")?;
        let version = bytes[0] >> 4;
        if version != 6 {
            return Err(ViewError::Version { what: "an IPv6 packet", version });
        }
        let len = bytes.len().min(Self { bytes }.total_len());
        Ok(Self { bytes: &bytes[..len] })
    }

    /// The packet's length as its header says, bytes.
    #[must_use]
    pub fn total_len(&self) -> usize {
        40 + usize::from(u16_at(self.bytes, 4))
    }

    /// The traffic class.
    #[must_use]
    pub const fn traffic_class(&self) -> u8 {
        (self.bytes[0] & 15) << 4 | self.bytes[1] >> 4
    }

    /// The flow label.
    #[must_use]
    pub fn flow_label(&self) -> u32 {
        u32_at(self.bytes, 0) & 0xf_ffff
    }

    /// What it says about congestion.
    #[must_use]
    pub const fn ecn(&self) -> Ecn {
        Ecn::of(self.traffic_class())
    }

    /// The hop limit.
    #[must_use]
    pub const fn hop_limit(&self) -> u8 {
        self.bytes[7]
    }

    /// What follows the fixed header: an extension header or the transport.
    #[must_use]
    pub const fn next_header(&self) -> Protocol {
        Protocol(self.bytes[6])
    }

    /// From where.
    #[must_use]
    pub fn src(&self) -> Ipv6Addr {
        Ipv6Addr::from(addr_at::<16>(self.bytes, 8))
    }

    /// To where.
    #[must_use]
    pub fn dst(&self) -> Ipv6Addr {
        Ipv6Addr::from(addr_at::<16>(self.bytes, 24))
    }

    /// What follows the fixed header, as far as it is there.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[40..]
    }

    /// The packet, as far as it is there.
    #[must_use]
    pub const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// What lies behind the extension headers.
    ///
    /// # Errors
    /// [`ViewError`] if one of them is cut short or there are too many.
    ///
    /// # Source
    /// RFC 8200 section 4; RFC 4302 section 2.2 for the length of an authentication header.
    pub fn upper_layer(&self) -> Result<UpperLayer<'a>, ViewError> {
        let mut upper = UpperLayer {
            protocol: self.next_header(),
            payload: self.payload(),
            fragment_offset: 0,
            is_fragment: false,
        };
        for _ in 0..MAX_EXTENSIONS {
            let unit = match upper.protocol.0 {
                // Hop-by-hop options, routing, destination options: units of 8 bytes, not counting the first.
                0 | 43 | 60 => 8,
                44 => 0,
                // Authentication: units of 4 bytes, not counting the first two.
                51 => 4,
                _ => return Ok(upper),
            };
            at_least(upper.payload, 8, "an extension header")?;
            if unit == 0 {
                upper.is_fragment = true;
                upper.fragment_offset = usize::from(u16_at(upper.payload, 2) & 0xfff8);
            }
            let len = 8 + usize::from(upper.payload[1]) * unit;
            at_least(upper.payload, len, "an extension header")?;
            upper.protocol = Protocol(upper.payload[0]);
            upper.payload = &upper.payload[len..];
            if upper.fragment_offset > 0 {
                // Behind another fragment's beginning stands data, no header.
                return Ok(upper);
            }
        }
        Err(ViewError::Length { what: "a chain of extension headers", value: MAX_EXTENSIONS + 1 })
    }
}
