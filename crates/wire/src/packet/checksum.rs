use std::net::IpAddr;

/// The Internet checksum, built up piece by piece: the ones' complement of the ones' complement sum of 16-bit words.
///
/// # Source
/// RFC 1071.
///
/// # Example
/// ```
/// use wt_wire::Checksum;
/// // The example of RFC 1071 section 3.
/// let sum = Checksum::new().with(&[0x00, 0x01, 0xf2, 0x03]).with(&[0xf4, 0xf5, 0xf6, 0xf7]);
/// assert_eq!(sum.finish(), !0xddf2);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[must_use]
pub struct Checksum {
    /// Never overflows: folded to 17 bits after each slice.
    sum: u64,
    /// Whether an odd number of bytes came so far, so that the next one is the low half of a word.
    odd: bool,
}

impl Checksum {
    /// Of nothing yet.
    pub const fn new() -> Self {
        Self { sum: 0, odd: false }
    }

    /// Of the pseudo-header that TCP, UDP and ICMPv6 include; zero for two addresses of different versions.
    ///
    /// # Source
    /// RFC 9293 section 3.1 (IPv4), RFC 8200 section 8.1 (IPv6).
    pub fn pseudo_header(src: IpAddr, dst: IpAddr, protocol: u8, len: u32) -> Self {
        let sum = match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Self::new().with(&src.octets()).with(&dst.octets()),
            (IpAddr::V6(src), IpAddr::V6(dst)) => Self::new().with(&src.octets()).with(&dst.octets()),
            _ => return Self::new(),
        };
        sum.with(&len.to_be_bytes()).with(&[0, protocol])
    }

    /// With these bytes after the ones before.
    pub fn with(mut self, bytes: &[u8]) -> Self {
        let mut bytes = bytes;
        if self.odd
            && let Some((first, rest)) = bytes.split_first()
        {
            self.sum += u64::from(*first);
            self.odd = false;
            bytes = rest;
        }
        // Four words at a time: the ones' complement sum doesn't care how words are grouped.
        let mut blocks = bytes.chunks_exact(4);
        for block in &mut blocks {
            self.sum += u64::from(u32::from_be_bytes([block[0], block[1], block[2], block[3]]));
        }
        let mut words = blocks.remainder().chunks_exact(2);
        for word in &mut words {
            self.sum += u64::from(u16::from_be_bytes([word[0], word[1]]));
        }
        if let [last] = words.remainder() {
            self.sum += u64::from(*last) << 8;
            self.odd = true;
        }
        self.sum = (self.sum & 0xffff_ffff) + (self.sum >> 32);
        self
    }

    /// The field's value. Over bytes that hold a right checksum it is zero.
    #[must_use]
    pub const fn finish(self) -> u16 {
        !self.folded()
    }

    /// The sum without the final complement: what the kernel wants in a field that it is to complete.
    #[must_use]
    pub const fn folded(self) -> u16 {
        let mut sum = self.sum;
        while sum >> 16 != 0 {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        sum as u16
    }
}

/// The checksum after one 16-bit word has changed.
///
/// # Source
/// RFC 1624 section 3, equation 3.
#[must_use]
pub const fn updated_checksum(checksum: u16, old: u16, new: u16) -> u16 {
    let mut sum = !checksum as u32 + !old as u32 + new as u32;
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    !(sum as u16)
}
