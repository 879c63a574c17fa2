use super::{Ipv4View, Ipv6View, ViewError, at_least, u16_at, updated_checksum};
use crate::IpVersion;
use std::net::IpAddr;

/// The number of a protocol above IP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Protocol(pub u8);

impl Protocol {
    /// ICMP for IPv4.
    pub const ICMP: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// ICMP for IPv6.
    pub const ICMPV6: Self = Self(58);
}

/// What a packet says about congestion.
///
/// # Source
/// RFC 3168 section 5.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The transport is not capable of ECN: a queue can only drop.
    NotCapable,
    /// Capable: ECT(1).
    Ect1,
    /// Capable: ECT(0).
    Ect0,
    /// A queue marked it.
    Ce,
}

impl Ecn {
    pub(super) const fn of(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Self::NotCapable,
            1 => Self::Ect1,
            2 => Self::Ect0,
            _ => Self::Ce,
        }
    }

    /// Whether a queue may mark it instead of dropping it.
    #[must_use]
    pub const fn is_capable(self) -> bool {
        !matches!(self, Self::NotCapable)
    }
}

/// A packet of either version.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpView<'a> {
    /// IPv4.
    V4(Ipv4View<'a>),
    /// IPv6.
    V6(Ipv6View<'a>),
}

impl<'a> IpView<'a> {
    /// A whole packet.
    ///
    /// # Errors
    /// [`ViewError`] if it is neither version, or not whole.
    pub fn new(bytes: &'a [u8]) -> Result<Self, ViewError> {
        match version(bytes)? {
            IpVersion::V4 => Ipv4View::new(bytes).map(Self::V4),
            IpVersion::V6 => Ipv6View::new(bytes).map(Self::V6),
        }
    }

    /// A packet of which perhaps only the beginning is there.
    ///
    /// # Errors
    /// [`ViewError`] if it is neither version, or its header is not whole.
    pub fn quoted(bytes: &'a [u8]) -> Result<Self, ViewError> {
        match version(bytes)? {
            IpVersion::V4 => Ipv4View::quoted(bytes).map(Self::V4),
            IpVersion::V6 => Ipv6View::quoted(bytes).map(Self::V6),
        }
    }

    /// The packet's length as its header says, bytes.
    #[must_use]
    pub fn total_len(&self) -> usize {
        match self {
            Self::V4(view) => view.total_len(),
            Self::V6(view) => view.total_len(),
        }
    }

    /// The time to live or hop limit.
    #[must_use]
    pub fn ttl(&self) -> u8 {
        match self {
            Self::V4(view) => view.ttl(),
            Self::V6(view) => view.hop_limit(),
        }
    }

    /// What it says about congestion.
    #[must_use]
    pub fn ecn(&self) -> Ecn {
        match self {
            Self::V4(view) => view.ecn(),
            Self::V6(view) => view.ecn(),
        }
    }

    /// Whether a router must not fragment it: always so for IPv6.
    #[must_use]
    pub fn dont_fragment(&self) -> bool {
        match self {
            Self::V4(view) => view.dont_fragment(),
            Self::V6(_) => true,
        }
    }

    /// From where.
    #[must_use]
    pub fn src(&self) -> IpAddr {
        match self {
            Self::V4(view) => view.src().into(),
            Self::V6(view) => view.src().into(),
        }
    }

    /// To where.
    #[must_use]
    pub fn dst(&self) -> IpAddr {
        match self {
            Self::V4(view) => view.dst().into(),
            Self::V6(view) => view.dst().into(),
        }
    }

    /// The transport's protocol and bytes, as far as they are there; `None` in a later fragment, which has no transport
    /// header, and behind broken extension headers.
    #[must_use]
    pub fn transport(&self) -> Option<(Protocol, &'a [u8])> {
        match self {
            Self::V4(view) => (view.fragment_offset() == 0).then(|| (view.protocol(), view.payload())),
            Self::V6(view) => {
                let upper = view.upper_layer().ok()?;
                (upper.fragment_offset == 0).then_some((upper.protocol, upper.payload))
            }
        }
    }
}

fn version(bytes: &[u8]) -> Result<IpVersion, ViewError> {
    at_least(bytes, 1, "an IP packet")?;
    match bytes[0] >> 4 {
        4 => Ok(IpVersion::V4),
        6 => Ok(IpVersion::V6),
        version => Err(ViewError::Version { what: "an IP packet", version }),
    }
}

/// Takes one from the time to live and keeps IPv4's checksum right; the new value. One that is zero stays zero.
///
/// # Errors
/// [`ViewError`] if it is no IP packet.
pub fn decrement_ttl(packet: &mut [u8]) -> Result<u8, ViewError> {
    match IpView::quoted(packet)? {
        IpView::V4(view) => {
            let ttl = view.ttl().saturating_sub(1);
            replace(packet, 8, [ttl, packet[9]]);
            Ok(ttl)
        }
        IpView::V6(view) => {
            packet[7] = view.hop_limit().saturating_sub(1);
            Ok(packet[7])
        }
    }
}

/// Marks "congestion experienced" and keeps IPv4's checksum right; false, and nothing changed, if the transport isn't
/// capable of ECN.
///
/// # Errors
/// [`ViewError`] if it is no IP packet.
pub fn mark_ce(packet: &mut [u8]) -> Result<bool, ViewError> {
    let view = IpView::quoted(packet)?;
    if !view.ecn().is_capable() {
        return Ok(false);
    }
    match view {
        IpView::V4(_) => replace(packet, 0, [packet[0], packet[1] | 3]),
        IpView::V6(_) => packet[1] |= 0x30,
    }
    Ok(true)
}

/// Replaces a word of an IPv4 header and keeps its checksum right.
fn replace(packet: &mut [u8], at: usize, new: [u8; 2]) {
    let sum = updated_checksum(u16_at(packet, 10), u16_at(packet, at), u16::from_be_bytes(new));
    packet[at..at + 2].copy_from_slice(&new);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
}
