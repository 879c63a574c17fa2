/// What a packet occupies on a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireLen {
    /// Added bytes, and a least length in all.
    Plain {
        /// Header and trailer, bytes.
        add: u32,
        /// The shortest frame, bytes.
        min: u32,
    },
    /// Cells of 53 bytes that carry 48 (ITU-T I.361), the last one padded.
    Atm {
        /// Headers and AAL5 trailer, bytes.
        add: u32,
    },
    /// One byte of synchronisation after every 64 (IEEE 802.3 clause 61.3, 64/65-octet encapsulation).
    Ptm {
        /// Headers and trailers, bytes.
        add: u32,
    },
}

impl WireLen {
    /// No framing: the IP packet alone.
    pub const IP: Self = Self::Plain { add: 0, min: 0 };

    /// Bytes on the wire of an IP packet of so many bytes.
    #[must_use]
    pub fn of(self, ip_len: u32) -> u32 {
        match self {
            Self::Plain { add, min } => ip_len.saturating_add(add).max(min),
            Self::Atm { add } => ip_len.saturating_add(add).div_ceil(48).saturating_mul(53),
            Self::Ptm { add } => {
                let len = u64::from(ip_len.saturating_add(add));
                u32::try_from((len * 65).div_ceil(64)).unwrap_or(u32::MAX)
            }
        }
    }
}

/// Remembers the wire lengths last asked for: a link sees very few sizes.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    framing: WireLen,
    last: (u32, u32),
}

impl Meter {
    pub(crate) fn new(framing: WireLen) -> Self {
        Self { framing, last: (0, framing.of(0)) }
    }

    pub(crate) fn wire_len(&mut self, ip_len: u32) -> u32 {
        if self.last.0 != ip_len {
            self.last = (ip_len, self.framing.of(ip_len));
        }
        self.last.1
    }
}
