use wt_units::Bytes;
use wt_wire::{Coding, Framing, Linear};

/// What a packet occupies on a line: a [`Framing`], or a few numbers for a model that has none.
///
/// # Example
/// ```
/// use wt_link::WireLen;
/// use wt_wire::Framing;
/// let adsl = WireLen::from(Framing::parse("pppoe-llc-bridged-fcs-atm")?);
/// assert_eq!(adsl.of(1444), 31 * 53);
/// # Ok::<(), wt_wire::FramingError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireLen {
    /// Added bytes, and a least length in all.
    Plain {
        /// Header and trailer, bytes.
        add: u32,
        /// The shortest frame, bytes.
        min: u32,
    },
    /// Cells of 53 bytes that carry 48 (ITU-T I.361: a cell's header is 5 bytes), the last one padded.
    Atm {
        /// Headers and AAL5 trailer, bytes.
        add: u32,
    },
    /// One byte of synchronisation after every 64 (64/65-octet encapsulation, as on VDSL2).
    Ptm {
        /// Headers and trailers, bytes.
        add: u32,
    },
    /// A stack that is no plain sum: a tunnel that pads, say.
    Stack(Framing),
}

impl WireLen {
    /// No framing: the IP packet alone.
    pub const IP: Self = Self::Plain { add: 0, min: 0 };

    /// Bytes on the wire of an IP packet of so many bytes.
    #[must_use]
    pub fn of(&self, ip_len: u32) -> u32 {
        match self {
            Self::Plain { add, min } => ip_len.saturating_add(*add).max(*min),
            Self::Atm { add } => ip_len.saturating_add(*add).div_ceil(48).saturating_mul(53),
            Self::Ptm { add } => {
                let len = u64::from(ip_len.saturating_add(*add));
                u32::try_from((len * 65).div_ceil(64)).unwrap_or(u32::MAX)
            }
            Self::Stack(framing) => u32::try_from(framing.wire_len(Bytes(ip_len.into())).get()).unwrap_or(u32::MAX),
        }
    }
}

impl From<Framing> for WireLen {
    /// The same lengths for every packet, as numbers where the stack is a sum.
    fn from(framing: Framing) -> Self {
        let Some(Linear { add, min, coding }) = framing.linear() else { return Self::Stack(framing) };
        match (u32::try_from(add), u32::try_from(min.get()), coding) {
            (Ok(add), Ok(min), Coding::Plain) => Self::Plain { add, min },
            (Ok(add), Ok(0), Coding::Atm) => Self::Atm { add },
            (Ok(add), Ok(0), Coding::Ptm) => Self::Ptm { add },
            _ => Self::Stack(framing),
        }
    }
}

/// Remembers the wire length last asked for: a link sees very few sizes.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    framing: WireLen,
    last: (u32, u32),
}

impl Meter {
    pub(crate) fn new(framing: &WireLen) -> Self {
        Self { last: (0, framing.of(0)), framing: framing.clone() }
    }

    #[inline]
    pub(crate) fn wire_len(&mut self, ip_len: u32) -> u32 {
        if self.last.0 != ip_len {
            self.last = (ip_len, self.framing.of(ip_len));
        }
        self.last.1
    }
}
