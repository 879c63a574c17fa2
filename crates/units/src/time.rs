use crate::{ParseError, nearest, split_number};
use std::time::Duration;

const KNOWN: &str = "ns, us, ms, s, min, h";

/// Reads `150ms`, `1.5s`, `250us`, `10min`; a bare `0` needs no unit.
///
/// # Errors
/// [`ParseError`] when the number or the unit is missing or unknown.
pub fn parse_duration(text: &str) -> Result<Duration, ParseError> {
    let (value, unit) = split_number(text, "duration", "50ms")?;
    let seconds = match unit.as_str() {
        "ns" => value / 1e9,
        "us" | "µs" | "μs" => value / 1e6,
        "ms" => value / 1e3,
        "s" | "sec" => value,
        "m" | "min" => value * 60.0,
        "h" => value * 3600.0,
        "" if value == 0.0 => 0.0,
        _ => {
            return Err(ParseError::UnknownUnit {
                what: "duration",
                nearest: nearest(&unit, ["ns", "us", "ms", "s", "min", "h"]).into_iter().next(),
                unit,
                known: KNOWN,
            });
        }
    };
    if seconds > 3.2e8 {
        return Err(ParseError::TooLarge { what: "duration", text: text.to_owned() });
    }
    Ok(Duration::from_nanos((seconds * 1e9).round() as u64))
}

/// Reads what [`parse_duration`] reads, and days and weeks besides: `90d`, `12w`.
///
/// # Errors
/// [`ParseError`] when the number or the unit is missing or unknown, or the time is too long.
pub fn parse_age(text: &str) -> Result<Duration, ParseError> {
    let long = [("d", 86_400.0), ("w", 604_800.0)].into_iter().find_map(|(unit, seconds)| {
        let number: f64 = text.trim().strip_suffix(unit)?.trim().parse().ok()?;
        Some(number * seconds)
    });
    let Some(seconds) = long else { return parse_duration(text) };
    if seconds < 0.0 {
        return Err(ParseError::Negative { what: "duration", text: text.to_owned() });
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| ParseError::TooLarge { what: "duration", text: text.to_owned() })
}

/// Writes a duration so that [`parse_duration`] reads it back as the same: `150ms`, `1.5s`, `250us`.
#[must_use]
pub fn format_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    let (unit, size) = match nanos {
        0 => return "0ms".to_owned(),
        n if n >= 1_000_000_000 => ("s", 1_000_000_000),
        n if n >= 1_000_000 => ("ms", 1_000_000),
        n if n >= 1_000 => ("us", 1_000),
        _ => ("ns", 1),
    };
    let (whole, rest) = (nanos / size, nanos % size);
    if rest == 0 {
        return format!("{whole}{unit}");
    }
    let width = size.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}{unit}", fraction.trim_end_matches('0'))
}

/// As [`format_duration`], to three digits: `46.8s` where it is 46.840875 s.
#[must_use]
pub fn format_about(duration: Duration) -> String {
    let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
    let grain = 10u64.pow(nanos.checked_ilog10().unwrap_or(0).saturating_sub(2));
    format_duration(Duration::from_nanos(nanos.saturating_add(grain / 2) / grain * grain))
}

/// A duration as people say it, to the second: `2 min 30 s`.
#[must_use]
pub fn format_minutes(time: Duration) -> String {
    match time.as_secs() {
        s if s < 60 => format!("{s} s"),
        s if s < 3600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3600, s % 3600 / 60),
    }
}

/// `#[serde(with = "serde_duration")]` reads and writes a `Duration` in the text grammar.
#[cfg(feature = "serde")]
pub mod serde_duration {
    use std::time::Duration;

    /// Writes `150ms`.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<S: serde::Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&super::format_duration(*duration))
    }

    /// Reads `150ms`.
    ///
    /// # Errors
    /// Those of the text grammar.
    pub fn deserialize<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
        let text = <String as serde::Deserialize>::deserialize(deserializer)?;
        super::parse_duration(&text).map_err(serde::de::Error::custom)
    }
}
