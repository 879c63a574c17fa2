use serde::{Deserialize, Deserializer};
use std::str::FromStr;
use wt_units::{BitsPerSecond, Bytes, ParseError, suggestion};

/// The largest IP packet there is.
const LARGEST: u64 = 65_535;
/// The largest payload that is split: 1 PiB, far from where counting could overflow.
const LARGEST_PAYLOAD: u64 = 1 << 50;
/// The most bytes of options that a TCP header has.
const MOST_OPTIONS: u8 = 40;
/// What a packet's TCP options take, padded as Linux pads them: each to a multiple of four.
const OPTIONS: [(&str, u8); 6] =
    [("none", 0), ("timestamps", 12), ("sack1", 12), ("sack2", 20), ("sack3", 28), ("sack4", 36)];

/// What is wrong with a quantity of an [`OverheadRequest`](super::OverheadRequest) as somebody wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum QuantityError {
    /// It is no quantity of its kind.
    #[error("{0}")]
    Parse(ParseError),
    /// A part of a byte.
    #[error("\"{text}\" is no whole number of bytes")]
    NotWhole {
        /// What was written.
        text: String,
    },
    /// No IP packet is so long.
    #[error("{} is out of range: an IP packet has 1 to {LARGEST} bytes", .len.get())]
    PacketLen {
        /// What was written.
        len: Bytes,
    },
    /// A payload beyond all measure.
    #[error("it is out of range: allowed is 0 to 1024 TiB")]
    PayloadLen,
    /// Not two MTUs.
    #[error("write two MTUs with two dots between them: 1400..1500")]
    NotARange,
    /// The ends of a range the wrong way round.
    #[error("it ends before it begins: did you mean {}..{}?", .last.get(), .first.get())]
    Backwards {
        /// What was written first.
        first: Bytes,
        /// What was written last.
        last: Bytes,
    },
    /// TCP's options are padded.
    #[error("TCP pads its options to a multiple of 4: write {padded}")]
    NotPadded {
        /// Their length as TCP has them.
        padded: u8,
    },
    /// More bytes than a header has room for.
    #[error("a TCP header has at most 40 bytes of options")]
    TooManyOptions,
    /// Options that take together more than a header has room for.
    #[error("{total} bytes are too many: a TCP header has at most 40 bytes of options")]
    OptionsTogether {
        /// What they take.
        total: u32,
    },
    /// There is no such option.
    #[error(
        "\"{word}\" is no option{}: write {}, or bytes",
        suggestion(.word, OPTIONS.map(|(name, _)| name)),
        OPTIONS.map(|(name, _)| name).join(", ")
    )]
    UnknownOption {
        /// What was written.
        word: String,
    },
    /// A rate of nothing.
    #[error("a rate must be more than zero")]
    ZeroRate,
    /// A rate that can't be held.
    #[error("the rate is too large")]
    RateTooLarge,
}

impl From<ParseError> for QuantityError {
    fn from(error: ParseError) -> Self {
        Self::Parse(error)
    }
}

/// Reads a type from a text by its `FromStr`, so that JSON and query strings say what the command line says.
macro_rules! deserialize_from_text {
    ($($type:ty),+) => {$(
        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
            }
        }
    )+};
}
deserialize_from_text!(
    PacketLen,
    PayloadLen,
    MtuRange,
    OptionsLen,
    WireRate,
    GoodputRate,
    crate::framing::Framing,
    crate::framing::IpVersion
);

/// The length of an IP packet: 1 to 65535 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PacketLen(Bytes);

impl PacketLen {
    /// Ethernet's: 1500 bytes.
    pub const ETHERNET: Self = Self(Bytes(1500));

    /// The length.
    #[must_use]
    pub const fn get(self) -> Bytes {
        self.0
    }
}

impl FromStr for PacketLen {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let len = whole(text)?;
        if (1..=LARGEST).contains(&len.get()) { Ok(Self(len)) } else { Err(QuantityError::PacketLen { len }) }
    }
}

/// The length of a payload: at most 1 PiB.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PayloadLen(Bytes);

impl PayloadLen {
    /// The length.
    #[must_use]
    pub const fn get(self) -> Bytes {
        self.0
    }
}

impl FromStr for PayloadLen {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let len = whole(text)?;
        if len.get() <= LARGEST_PAYLOAD { Ok(Self(len)) } else { Err(QuantityError::PayloadLen) }
    }
}

/// A range of MTUs, both ends included: `1400..1500`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MtuRange {
    first: PacketLen,
    last: PacketLen,
}

impl MtuRange {
    /// The least MTU.
    #[must_use]
    pub const fn first(self) -> Bytes {
        self.first.get()
    }

    /// The largest MTU, not below the first.
    #[must_use]
    pub const fn last(self) -> Bytes {
        self.last.get()
    }
}

impl FromStr for MtuRange {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let (first, last) = text.split_once("..").ok_or(QuantityError::NotARange)?;
        let (first, last): (PacketLen, PacketLen) = (first.parse()?, last.strip_prefix('=').unwrap_or(last).parse()?);
        if first > last {
            return Err(QuantityError::Backwards { first: first.get(), last: last.get() });
        }
        Ok(Self { first, last })
    }
}

/// Whole bytes; `1.5` of them is a mistake, `1.5KiB` is not.
fn whole(text: &str) -> Result<Bytes, QuantityError> {
    let bytes: Bytes = text.parse()?;
    let number = text.trim().trim_end_matches(|c: char| c.is_ascii_alphabetic()).trim_end();
    let bare =
        number.len() == text.trim().len() || text.trim().ends_with(['B', 'b']) && number.len() + 1 >= text.trim().len();
    if bare && number.contains('.') {
        return Err(QuantityError::NotWhole { text: text.to_owned() });
    }
    Ok(bytes)
}

/// Bytes of options on each data segment: `timestamps,sack3`, or their number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OptionsLen(u8);

impl OptionsLen {
    /// The bytes: a multiple of four, at most 40.
    #[must_use]
    pub const fn get(self) -> u8 {
        self.0
    }
}

impl FromStr for OptionsLen {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        if text.trim().starts_with(|c: char| c.is_ascii_digit()) {
            return match u8::try_from(whole(text)?.get()) {
                Ok(bytes) if bytes <= MOST_OPTIONS && bytes % 4 == 0 => Ok(Self(bytes)),
                Ok(bytes) if bytes <= MOST_OPTIONS => {
                    Err(QuantityError::NotPadded { padded: bytes.next_multiple_of(4) })
                }
                _ => Err(QuantityError::TooManyOptions),
            };
        }
        let mut total = 0;
        for word in text.split([',', '+']).map(str::trim) {
            let known = OPTIONS.iter().find(|(name, _)| *name == word);
            let (_, bytes) = known.ok_or_else(|| QuantityError::UnknownOption { word: word.to_owned() })?;
            total += u32::from(*bytes);
        }
        let fits = u8::try_from(total).ok().filter(|total| *total <= MOST_OPTIONS);
        fits.map(Self).ok_or(QuantityError::OptionsTogether { total })
    }
}

/// The rate of a wire: more than zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireRate(BitsPerSecond);

impl WireRate {
    /// The rate.
    #[must_use]
    pub const fn get(self) -> BitsPerSecond {
        self.0
    }
}

impl FromStr for WireRate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let rate: BitsPerSecond = text.parse()?;
        if rate.get() == 0 { Err(QuantityError::ZeroRate) } else { Ok(Self(rate)) }
    }
}

/// A rate of payload: in bits per second, or in bytes per second with a capital B: `8MiB/s`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GoodputRate(BitsPerSecond);

impl GoodputRate {
    /// The rate.
    #[must_use]
    pub const fn get(self) -> BitsPerSecond {
        self.0
    }
}

impl FromStr for GoodputRate {
    type Err = QuantityError;
    fn from_str(text: &str) -> Result<Self, QuantityError> {
        let bytes = text.trim().strip_suffix("/s").filter(|size| size.trim_end().ends_with('B'));
        let Some(bytes) = bytes else {
            return Ok(Self(text.parse::<WireRate>()?.get()));
        };
        let bytes: Bytes = bytes.parse()?;
        let bits = u64::try_from(bytes.bits()).map_err(|_| QuantityError::RateTooLarge)?;
        if bits == 0 { Err(QuantityError::ZeroRate) } else { Ok(Self(BitsPerSecond(bits))) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sweeps_have_both_ends_in_order() {
        let of = |first, last| Ok(MtuRange { first: PacketLen(Bytes(first)), last: PacketLen(Bytes(last)) });
        for (text, expected) in
            [("1400..1500", of(1400, 1500)), ("1400..=1500", of(1400, 1500)), ("9k..9k", of(9216, 9216))]
        {
            assert_eq!(text.parse(), expected, "{text}");
        }
        for text in ["1400", "1400-1500", "..", "1400..", "1500..1400", "0..1", "1..65536", "1.5..3", "a..b"] {
            assert!(text.parse::<MtuRange>().is_err(), "{text}");
        }
    }

    fn mtu(text: &str) -> Result<Bytes, QuantityError> {
        text.parse().map(PacketLen::get)
    }

    fn payload(text: &str) -> Result<Bytes, QuantityError> {
        text.parse().map(PayloadLen::get)
    }

    fn tcp_options(text: &str) -> Result<u8, QuantityError> {
        text.parse().map(OptionsLen::get)
    }

    fn goodput(text: &str) -> Result<BitsPerSecond, QuantityError> {
        text.parse().map(GoodputRate::get)
    }

    #[test]
    fn sizes_are_whole_bytes() {
        assert_eq!((mtu("1500"), mtu("1500B"), mtu("1.5KiB")), (Ok(Bytes(1500)), Ok(Bytes(1500)), Ok(Bytes(1536))));
        for text in ["1499.5", "1499.5B", "-1", "", "1500q", "0", "65536", "1e3"] {
            assert!(mtu(text).is_err(), "{text}");
        }
        assert_eq!((payload("0"), payload("8MiB")), (Ok(Bytes(0)), Ok(Bytes(8 << 20))));
        assert!(payload("8000TiB").is_err());
    }

    #[test]
    fn options_are_names_or_multiples_of_four() {
        for (text, expected) in
            [("none", 0), ("0", 0), ("12", 12), ("40", 40), ("timestamps", 12), ("timestamps,sack3", 40), ("sack4", 36)]
        {
            assert_eq!(tcp_options(text), Ok(expected), "{text}");
        }
        for (text, part) in [
            ("10", "write 12"),
            ("44", "at most 40"),
            ("300", "at most 40"),
            ("timestamp", "timestamps"),
            ("timestamps,sack4", "48 bytes are too many"),
            ("", "no option"),
        ] {
            let error = tcp_options(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_goodput_may_be_in_bytes() {
        assert_eq!(goodput("8MiB/s"), Ok(BitsPerSecond(8 * 8 * 1024 * 1024)));
        assert_eq!(goodput("64mbit"), Ok(BitsPerSecond(64_000_000)));
        assert_eq!(goodput("64 Mbit/s"), Ok(BitsPerSecond(64_000_000)));
        assert!(goodput("8Mb/s").is_err() && goodput("0").is_err() && goodput("0B/s").is_err());
    }
}
