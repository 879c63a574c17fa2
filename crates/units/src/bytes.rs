use crate::{BitsPerSecond, ParseError, nearest, split_number};
use std::time::Duration;

const KNOWN: &str = "B, KiB, MiB, GiB (1024) or kB, MB, GB (1000)";
const UNITS: [(&str, u64); 14] = [
    ("", 1),
    ("b", 1),
    ("bytes", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("kb", 1_000),
    ("mb", 1_000_000),
    ("gb", 1_000_000_000),
];

/// A size in bytes. Which bytes (on the wire, of the IP packet, of the payload) is said by the name of the field.
///
/// # Example
/// ```
/// use wt_units::{BitsPerSecond, Bytes};
/// assert_eq!("64KiB".parse(), Ok(Bytes(65_536)));
/// assert_eq!(Bytes(1_500) / "12kbit".parse::<BitsPerSecond>()?, std::time::Duration::from_secs(1));
/// # Ok::<(), wt_units::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

impl Bytes {
    /// The bare number of bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// As people read it: `1448 bytes`, `64 KiB`, `100 kB`, `2.22 MB`. It may be rounded; [`Display`](std::fmt::Display) never is.
    #[must_use]
    pub fn human(self) -> String {
        let mut binary = [("GiB", 30), ("MiB", 20), ("KiB", 10)].into_iter();
        // Large decimal sizes are multiples of 1024, too.
        let whole =
            binary.find(|(_, shift)| self.0.is_multiple_of(1 << shift) && (1..10_000).contains(&(self.0 >> shift)));
        if let Some((unit, shift)) = whole {
            return format!("{} {unit}", self.0 >> shift);
        }
        let (unit, size) = match self.0 {
            1 => return "1 byte".to_owned(),
            n if n < 10_000 => return format!("{n} bytes"),
            n if n < 1_000_000 => ("kB", 1e3),
            n if n < 1_000_000_000 => ("MB", 1e6),
            _ => ("GB", 1e9),
        };
        let value = self.0 as f64 / size;
        let decimals = if value < 10.0 { 2 } else { usize::from(value < 100.0) };
        let text = format!("{value:.decimals$}");
        let short = if decimals > 0 { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
        format!("{short} {unit}")
    }

    /// The number of bits.
    #[must_use]
    pub const fn bits(self) -> u128 {
        self.0 as u128 * 8
    }
}

impl std::ops::Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl std::ops::Sub for Bytes {
    type Output = Self;
    /// Saturates at zero: there are no negative sizes.
    fn sub(self, other: Self) -> Self {
        Self(self.0.saturating_sub(other.0))
    }
}

impl std::ops::Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, times: u64) -> Self {
        Self(self.0.saturating_mul(times))
    }
}

impl std::ops::Div<BitsPerSecond> for Bytes {
    type Output = Duration;
    /// How long the bytes take at this rate, rounded up to the nanosecond; a rate of zero takes for ever.
    fn div(self, rate: BitsPerSecond) -> Duration {
        if rate.0 == 0 {
            return Duration::MAX;
        }
        let nanos = (self.bits() * 1_000_000_000).div_ceil(u128::from(rate.0));
        u64::try_from(nanos).map_or(Duration::MAX, Duration::from_nanos)
    }
}

impl std::fmt::Display for Bytes {
    /// The largest binary unit that holds the size without a remainder, so that it reads back as the same size.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            n if n > 0 && n % (1 << 30) == 0 => write!(f, "{}GiB", n >> 30),
            n if n > 0 && n % (1 << 20) == 0 => write!(f, "{}MiB", n >> 20),
            n if n > 0 && n % (1 << 10) == 0 => write!(f, "{}KiB", n >> 10),
            n => write!(f, "{n}B"),
        }
    }
}

impl std::str::FromStr for Bytes {
    type Err = ParseError;
    /// Reads `1500`, `1500B`, `64KiB`, `64k` (binary, as in iperf3) or `12MB` (decimal).
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = split_number(text, "size", "64KiB")?;
        let lower = unit.to_ascii_lowercase();
        let factor = UNITS.iter().find(|(name, _)| *name == lower).map(|(_, factor)| *factor).ok_or_else(|| {
            ParseError::UnknownUnit {
                what: "size",
                nearest: nearest(&unit, ["B", "KiB", "MiB", "GiB", "kB", "MB", "GB"]).into_iter().next(),
                unit,
                known: KNOWN,
            }
        })?;
        let bytes = (value * factor as f64).round();
        if bytes > 2f64.powi(53) {
            return Err(ParseError::TooLarge { what: "size", text: text.to_owned() });
        }
        Ok(Self(bytes as u64))
    }
}
