use crate::{Bytes, ParseError, nearest, split_number};
use std::sync::OnceLock;
use std::time::Duration;

const KNOWN: &str = "bit, kbit, mbit, gbit (decimal, per second)";

/// A rate in bits per second; decimal, as the field has it (1 Mbit/s = 10⁶ bit/s).
///
/// # Example
/// ```
/// use wt_units::{BitsPerSecond, Bytes};
/// let rate: BitsPerSecond = "8mbit".parse()?;
/// assert_eq!(rate * std::time::Duration::from_millis(30), Bytes(30_000)); // the BDP
/// # Ok::<(), wt_units::ParseError>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct BitsPerSecond(pub u64);

impl BitsPerSecond {
    /// The bare number of bits per second.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The rate at which so many bytes went in so much time; zero if no time passed.
    #[must_use]
    pub fn over(bytes: Bytes, elapsed: Duration) -> Self {
        let nanos = elapsed.as_nanos();
        if nanos == 0 {
            return Self(0);
        }
        Self(u64::try_from(bytes.bits() * 1_000_000_000 / nanos).unwrap_or(u64::MAX))
    }

    /// In Mbit/s.
    #[must_use]
    pub fn mbit(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// As people read it: `6.83 Mbit/s`, `26.4 kbit/s`; in the unit that was [chosen](RateUnit::choose), if one was.
    #[must_use]
    pub fn human(self) -> String {
        if let Some(unit) = RateUnit::chosen() {
            return unit.write(self.0 as f64);
        }
        let (value, unit) = match self.0 {
            n if n >= 1_000_000_000 => (n as f64 / 1e9, "Gbit/s"),
            n if n >= 1_000_000 => (n as f64 / 1e6, "Mbit/s"),
            n if n >= 1_000 => (n as f64 / 1e3, "kbit/s"),
            n => return format!("{n} bit/s"),
        };
        let decimals = if value < 10.0 { 2 } else { 1 };
        format!("{value:.decimals$} {unit}")
    }
}

/// A unit in which rates are written for people, instead of the one that suits each rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateUnit {
    /// Kilobits per second.
    Kilobits,
    /// Megabits per second.
    Megabits,
    /// Bytes per second.
    Bytes,
    /// Kilobytes per second, of 1000 bytes.
    Kilobytes,
    /// Megabytes per second.
    Megabytes,
}

/// The unit of this process, as a locale is: what is computed and stored as a number doesn't depend on it.
static CHOSEN: OnceLock<RateUnit> = OnceLock::new();

impl RateUnit {
    /// Writes all rates of this process in this unit from now on. The first choice holds.
    pub fn choose(self) {
        let _ = CHOSEN.set(self);
    }

    /// What was chosen.
    #[must_use]
    pub fn chosen() -> Option<Self> {
        CHOSEN.get().copied()
    }

    /// Bits per second of one, and its name.
    #[must_use]
    pub const fn scale(self) -> (f64, &'static str) {
        match self {
            Self::Kilobits => (1e3, "kbit/s"),
            Self::Megabits => (1e6, "Mbit/s"),
            Self::Bytes => (8.0, "B/s"),
            Self::Kilobytes => (8e3, "kB/s"),
            Self::Megabytes => (8e6, "MB/s"),
        }
    }

    /// The unit of an axis of rates up to `most` bit/s, and by what bit/s are multiplied for it: the one that was chosen, else one in
    /// which a modem's ticks differ, too.
    ///
    /// # Example
    /// ```
    /// use wt_units::RateUnit;
    /// assert_eq!(RateUnit::of_axis(24_100.0), ("kbit/s", 1e-3));
    /// assert_eq!(RateUnit::of_axis(6.8e6), ("Mbit/s", 1e-6));
    /// ```
    #[must_use]
    pub fn of_axis(most: f64) -> (&'static str, f64) {
        if let Some((one, unit)) = Self::chosen().map(Self::scale) {
            return (unit, 1.0 / one);
        }
        if most > 0.0 && most < 1e6 { ("kbit/s", 1e-3) } else { ("Mbit/s", 1e-6) }
    }

    /// A rate in this unit, with three digits at least that say something.
    ///
    /// # Example
    /// ```
    /// use wt_units::RateUnit;
    /// assert_eq!(RateUnit::Bytes.write(12_384.0), "1548 B/s");
    /// assert_eq!(RateUnit::Megabits.write(24_100.0), "0.0241 Mbit/s");
    /// ```
    #[must_use]
    pub fn write(self, bps: f64) -> String {
        let (one, unit) = self.scale();
        format!("{} {unit}", three_digits(bps / one, bps / one))
    }
}

/// A value with as many decimals as three digits of `of` take.
#[must_use]
pub fn three_digits(value: f64, of: f64) -> String {
    let whole = if of > 0.0 { of.log10().floor() } else { 0.0 };
    let decimals = (2.0 - whole).clamp(0.0, 9.0) as usize;
    format!("{value:.decimals$}")
}

impl std::ops::Mul<Duration> for BitsPerSecond {
    type Output = Bytes;
    /// The bytes that this rate carries in so long, rounded down: with the RTT, the bandwidth-delay product.
    fn mul(self, time: Duration) -> Bytes {
        Bytes(u64::try_from(u128::from(self.0) * time.as_nanos() / 8_000_000_000).unwrap_or(u64::MAX))
    }
}

impl std::fmt::Display for BitsPerSecond {
    /// The largest decimal unit that needs at most six decimals, so that it reads back as the same rate.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            n if n >= 1_000_000_000 && n % 1_000 == 0 => write!(f, "{}gbit", n as f64 / 1e9),
            n if n >= 1_000_000 => write!(f, "{}mbit", n as f64 / 1e6),
            n if n >= 1_000 => write!(f, "{}kbit", n as f64 / 1e3),
            n => write!(f, "{n}bit"),
        }
    }
}

impl std::str::FromStr for BitsPerSecond {
    type Err = ParseError;
    /// Reads `8mbit`, `8Mbit/s`, `26.4kbit`, `1gbps`; a bare number is bits per second. `8MBps` is refused.
    ///
    /// ```
    /// use wt_units::BitsPerSecond;
    /// assert_eq!("8Mbps".parse(), Ok(BitsPerSecond(8_000_000)));
    /// assert!("8MBps".parse::<BitsPerSecond>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let (value, unit) = split_number(text, "rate", "8mbit")?;
        let unknown = |unit: String| ParseError::UnknownUnit {
            what: "rate",
            nearest: nearest(&unit, ["bit", "kbit", "mbit", "gbit"]).into_iter().next(),
            unit,
            known: KNOWN,
        };
        let lower = unit.to_ascii_lowercase();
        let stem = lower.strip_suffix("/s").unwrap_or(&lower);
        // Megabytes a second to whoever writes so, and eight times as much.
        let is_bytes = unit.ends_with("Bps");
        let factor = match stem {
            _ if is_bytes => return Err(unknown(unit)),
            "" | "bit" | "bps" => 1.0,
            "k" | "kbit" | "kbps" => 1e3,
            "m" | "mbit" | "mbps" => 1e6,
            "g" | "gbit" | "gbps" => 1e9,
            "t" | "tbit" | "tbps" => 1e12,
            _ => return Err(unknown(unit)),
        };
        let bits = (value * factor).round();
        if bits > 2f64.powi(53) {
            return Err(ParseError::TooLarge { what: "rate", text: text.to_owned() });
        }
        Ok(Self(bits as u64))
    }
}
