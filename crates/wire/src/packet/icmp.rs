use super::{Checksum, Ipv4View, Ipv6View, ViewError, at_least, u16_at, u32_at};
use std::net::{IpAddr, Ipv6Addr};

/// What an ICMP message for IPv4 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Icmpv4Kind {
    /// An echo request.
    EchoRequest {
        /// Whose.
        ident: u16,
        /// Which.
        seq: u16,
    },
    /// An echo reply.
    EchoReply {
        /// Whose.
        ident: u16,
        /// Which.
        seq: u16,
    },
    /// Too long for the next hop, and not to be fragmented (RFC 1191 section 4).
    FragNeeded {
        /// The MTU of the next hop; zero from routers older than RFC 1191.
        mtu: u16,
    },
    /// Unreachable for another reason.
    Unreachable {
        /// Which (RFC 792, RFC 1812 section 5.2.7.1).
        code: u8,
    },
    /// The time to live ran out on the way (0) or at reassembly (1).
    TimeExceeded {
        /// Which of both.
        code: u8,
    },
    /// Anything else.
    Other {
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
    },
}

/// An ICMP message for IPv4.
///
/// # Source
/// RFC 792.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmpv4View<'a> {
    bytes: &'a [u8],
}

impl<'a> Icmpv4View<'a> {
    /// A message with its eight bytes of header.
    ///
    /// # Errors
    /// [`ViewError`] if they are not there.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ViewError> {
        at_least(bytes, 8, "an ICMP message")?;
        Ok(Self { bytes })
    }

    /// What it says.
    #[must_use]
    pub fn kind(&self) -> Icmpv4Kind {
        let (ident, seq) = (u16_at(self.bytes, 4), u16_at(self.bytes, 6));
        match (self.bytes[0], self.bytes[1]) {
            (8, 0) => Icmpv4Kind::EchoRequest { ident, seq },
            (0, 0) => Icmpv4Kind::EchoReply { ident, seq },
            (3, 4) => Icmpv4Kind::FragNeeded { mtu: seq },
            (3, code) => Icmpv4Kind::Unreachable { code },
            (11, code) => Icmpv4Kind::TimeExceeded { code },
            (kind, code) => Icmpv4Kind::Other { kind, code },
        }
    }

    /// Whether it reports an error, to which no error may be sent (RFC 1122 section 3.2.2).
    #[must_use]
    pub const fn is_error(&self) -> bool {
        is_v4_error(self.bytes[0])
    }

    /// Whether the checksum is right over all the bytes of the view.
    #[must_use]
    pub fn checksum_ok(&self) -> bool {
        Checksum::new().with(self.bytes).finish() == 0
    }

    /// What follows the header: an echo's data, or the packet that an error quotes.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[8..]
    }

    /// The packet that an error quotes, as far as it does.
    #[must_use]
    pub fn quote(&self) -> Option<Ipv4View<'a>> {
        if self.is_error() { Ipv4View::quoted(self.payload()).ok() } else { None }
    }
}

/// Destination unreachable, source quench, redirect, time exceeded, parameter problem.
pub(super) const fn is_v4_error(kind: u8) -> bool {
    matches!(kind, 3 | 4 | 5 | 11 | 12)
}

/// What an ICMP message for IPv6 says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Icmpv6Kind {
    /// An echo request.
    EchoRequest {
        /// Whose.
        ident: u16,
        /// Which.
        seq: u16,
    },
    /// An echo reply.
    EchoReply {
        /// Whose.
        ident: u16,
        /// Which.
        seq: u16,
    },
    /// Too long for the next hop (RFC 4443 section 3.2).
    PacketTooBig {
        /// The MTU of the next hop.
        mtu: u32,
    },
    /// Unreachable.
    Unreachable {
        /// Why (RFC 4443 section 3.1).
        code: u8,
    },
    /// The hop limit ran out on the way (0) or the time for reassembly (1).
    TimeExceeded {
        /// Which of both.
        code: u8,
    },
    /// Anything else.
    Other {
        /// The type.
        kind: u8,
        /// The code.
        code: u8,
    },
}

/// An ICMP message for IPv6.
///
/// # Source
/// RFC 4443 section 2.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Icmpv6View<'a> {
    bytes: &'a [u8],
}

impl<'a> Icmpv6View<'a> {
    /// A message with its eight bytes of header.
    ///
    /// # Errors
    /// [`ViewError`] if they are not there.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ViewError> {
        at_least(bytes, 8, "an ICMPv6 message")?;
        Ok(Self { bytes })
    }

    /// What it says.
    #[must_use]
    pub fn kind(&self) -> Icmpv6Kind {
        let (ident, seq) = (u16_at(self.bytes, 4), u16_at(self.bytes, 6));
        match (self.bytes[0], self.bytes[1]) {
            (128, 0) => Icmpv6Kind::EchoRequest { ident, seq },
            (129, 0) => Icmpv6Kind::EchoReply { ident, seq },
            // The code says nothing and must be ignored.
            (2, _) => Icmpv6Kind::PacketTooBig { mtu: u32_at(self.bytes, 4) },
            (1, code) => Icmpv6Kind::Unreachable { code },
            (3, code) => Icmpv6Kind::TimeExceeded { code },
            (kind, code) => Icmpv6Kind::Other { kind, code },
        }
    }

    /// Whether it reports an error: the upper half of the types doesn't (RFC 4443 section 2.1).
    #[must_use]
    pub const fn is_error(&self) -> bool {
        self.bytes[0] < 128
    }

    /// Whether the checksum is right over all the bytes of the view.
    #[must_use]
    pub fn checksum_ok(&self, src: Ipv6Addr, dst: Ipv6Addr) -> bool {
        let len = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        Checksum::pseudo_header(IpAddr::V6(src), IpAddr::V6(dst), 58, len).with(self.bytes).finish() == 0
    }

    /// What follows the header: an echo's data, or the packet that an error quotes.
    #[must_use]
    pub fn payload(&self) -> &'a [u8] {
        &self.bytes[8..]
    }

    /// The packet that an error quotes, as far as it does.
    #[must_use]
    pub fn quote(&self) -> Option<Ipv6View<'a>> {
        if self.is_error() { Ipv6View::quoted(self.payload()).ok() } else { None }
    }
}
