/// What the bytes of a captured packet begin with: a number of the tcpdump group's list.
///
/// # Source
/// <https://www.tcpdump.org/linktypes.html>
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LinkLayer(pub u16);

/// Tags of virtual LANs and the like, one within the other; more is an attack, not a frame.
const MOST_TAGS: usize = 8;

impl LinkLayer {
    /// Ethernet.
    pub const ETHERNET: Self = Self(1);
    /// An IP packet of either version.
    pub const RAW: Self = Self(101);
    /// Linux's "cooked" header, version 1.
    pub const LINUX_SLL: Self = Self(113);
    /// Linux's "cooked" header, version 2.
    pub const LINUX_SLL2: Self = Self(276);

    /// Whether [`LinkLayer::ip`] knows it.
    #[must_use]
    pub const fn is_known(self) -> bool {
        matches!(self.0, 0 | 1 | 9 | 12 | 14 | 50 | 51 | 101 | 108 | 113 | 228 | 229 | 276)
    }

    /// The number of the device that a packet passed, where a capture of all devices says so.
    #[must_use]
    pub fn device(self, bytes: &[u8]) -> Option<u32> {
        let number = bytes.get(4..8).filter(|_| self == Self::LINUX_SLL2)?;
        Some(u32::from_be_bytes(number.try_into().ok()?))
    }

    /// The IP packet behind everything that stands before it; `None` if there is none or it isn't known where.
    #[must_use]
    pub fn ip(self, bytes: &[u8]) -> Option<&[u8]> {
        let word = |at: usize| Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]));
        match self.0 {
            1 => ip_behind_ethertype(word(12)?, bytes.get(14..)?),
            // The family of the address, in the byte order of the host that captured, or in network order; the version
            // of the packet says the same.
            0 | 108 => checked(bytes.get(4..)?),
            101 | 12 | 14 | 228 | 229 => checked(bytes),
            113 => ip_behind_ethertype(word(14)?, bytes.get(16..)?),
            276 => ip_behind_ethertype(word(0)?, bytes.get(20..)?),
            9 | 50 => ppp(bytes),
            51 => pppoe(bytes),
            _ => None,
        }
    }
}

/// The IP packet in what an Ethernet header of this type announces: behind tags of virtual LANs (802.1Q, 802.1ad), PPPoE
/// sessions and MPLS labels.
#[must_use]
pub fn ip_behind_ethertype(ethertype: u16, bytes: &[u8]) -> Option<&[u8]> {
    let (mut ethertype, mut bytes) = (ethertype, bytes);
    for _ in 0..MOST_TAGS {
        match ethertype {
            0x0800 | 0x86dd => return checked(bytes),
            0x8100 | 0x88a8 | 0x9100 => {
                ethertype = u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]);
                bytes = bytes.get(4..)?;
            }
            0x8864 => return pppoe(bytes),
            0x8847 | 0x8848 => return mpls(bytes),
            _ => return None,
        }
    }
    None
}

/// Behind a PPPoE header, as far as its length goes.
///
/// # Source
/// RFC 2516 section 4.
fn pppoe(bytes: &[u8]) -> Option<&[u8]> {
    if *bytes.first()? != 0x11 || *bytes.get(1)? != 0 {
        return None;
    }
    let len = usize::from(u16::from_be_bytes([*bytes.get(4)?, *bytes.get(5)?]));
    let rest = bytes.get(6..)?;
    ppp(rest.get(..len.min(rest.len()))?)
}

/// Behind a PPP header: with or without address and control, the protocol of one byte or two.
///
/// # Source
/// RFC 1661 sections 2 and 6.5, RFC 1662 section 3.1.
fn ppp(bytes: &[u8]) -> Option<&[u8]> {
    let bytes = bytes.strip_prefix(&[0xff, 0x03]).unwrap_or(bytes);
    match bytes {
        [0x00, 0x21 | 0x57, rest @ ..] | [0x21 | 0x57, rest @ ..] => checked(rest),
        _ => None,
    }
}

/// Behind labels, the last of which says that it is the last.
///
/// # Source
/// RFC 3032 section 2.1.
fn mpls(bytes: &[u8]) -> Option<&[u8]> {
    for label in 0..MOST_TAGS {
        if bytes.get(label * 4 + 2)? & 1 == 1 {
            return checked(bytes.get(label * 4 + 4..)?);
        }
    }
    None
}

/// What looks like an IP packet.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    matches!(bytes.first()? >> 4, 4 | 6).then_some(bytes)
}
