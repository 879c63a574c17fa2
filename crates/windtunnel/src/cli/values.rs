use clap::{Args, ValueEnum};
use std::fmt::Display;
use std::str::FromStr;
use std::time::Duration;
use wt_trial::Direction;
use wt_tune::{Goal, TrialDirection};
use wt_units::parse_duration;

/// How long one trial transfers: 200 ms to 1 h.
///
/// # Errors
/// Says what is allowed.
pub(crate) fn trial_time(text: &str) -> Result<Duration, String> {
    let time = parse_duration(text).map_err(|error| error.to_string())?;
    let allowed = Duration::from_millis(200)..=Duration::from_secs(3600);
    if allowed.contains(&time) { Ok(time) } else { Err(format!("{text} is out of range: allowed is 200ms to 1h")) }
}

/// A rate with its unit: a bare number would be bits per second, which hardly anybody means who leaves the unit away.
///
/// # Errors
/// Says what may be meant, or what is wrong with it.
pub(crate) fn rate_with_unit<T: FromStr<Err: Display>>(text: &str) -> Result<T, String> {
    let number = text.trim();
    let is_bare = number.parse().is_ok_and(|bits: f64| bits.is_finite() && bits > 0.0);
    if is_bare {
        return Err(format!("\"{number}\" has no unit: did you mean {number}mbit, {number}kbit or {number}bit?"));
    }
    text.parse().map_err(|error: T::Err| error.to_string())
}

/// Directions by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum DirectionName {
    /// From the server to the client
    Down,
    /// From the client to the server
    Up,
    /// One each way at once
    Both,
}

impl From<DirectionName> for TrialDirection {
    fn from(name: DirectionName) -> Self {
        match name {
            DirectionName::Down => Self::Down,
            DirectionName::Up => Self::Up,
            DirectionName::Both => Self::Both,
        }
    }
}

/// Which way the payload goes, where it goes one way only.
#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Way {
    /// Which way the payload goes, seen from the client
    #[arg(long, value_enum, default_value_t = OneWay::Down)]
    direction: OneWay,
    /// As --direction up
    #[arg(long, hide = true, conflicts_with = "direction")]
    up: bool,
}

/// One direction by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum OneWay {
    /// From the server to the client
    Down,
    /// From the client to the server
    Up,
}

impl Way {
    pub(crate) const fn direction(self) -> Direction {
        match (self.direction, self.up) {
            (OneWay::Down, false) => Direction::Down,
            _ => Direction::Up,
        }
    }
}

/// Goals by their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum GoalName {
    /// The most goodput, whatever the delay
    Goodput,
    /// The most goodput, and the same with less delay
    #[default]
    Balanced,
    /// Less delay at the same goodput first
    Delay,
}

impl From<GoalName> for Goal {
    fn from(name: GoalName) -> Self {
        match name {
            GoalName::Goodput => Self::Goodput,
            GoalName::Balanced => Self::Balanced,
            GoalName::Delay => Self::Delay,
        }
    }
}

/// In which unit a rate is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum RateUnit {
    /// Bits per second, by size: kbit/s, Mbit/s
    #[default]
    Auto,
    /// Kilobits per second
    #[value(name = "kbit")]
    Kbit,
    /// Megabits per second
    #[value(name = "Mbit")]
    Mbit,
    /// Bytes per second
    #[value(name = "B")]
    Bytes,
    /// Kilobytes per second, of 1000 bytes
    #[value(name = "kB")]
    Kilobytes,
    /// Megabytes per second
    #[value(name = "MB")]
    Megabytes,
}

impl RateUnit {
    /// Bits per second of one, and its name; of `auto` those that suit a rate.
    fn scale(self, bps: f64) -> (f64, &'static str) {
        match self {
            Self::Auto if bps >= 1e9 => (1e9, "Gbit/s"),
            Self::Auto if bps >= 1e6 => (1e6, "Mbit/s"),
            Self::Auto if bps >= 1e3 => (1e3, "kbit/s"),
            Self::Auto => (1.0, "bit/s"),
            Self::Kbit => wt_units::RateUnit::Kilobits.scale(),
            Self::Mbit => wt_units::RateUnit::Megabits.scale(),
            Self::Bytes => wt_units::RateUnit::Bytes.scale(),
            Self::Kilobytes => wt_units::RateUnit::Kilobytes.scale(),
            Self::Megabytes => wt_units::RateUnit::Megabytes.scale(),
        }
    }

    /// Has all rates of this run written so.
    pub(crate) fn choose(self) {
        match self {
            Self::Auto => {}
            Self::Kbit => wt_units::RateUnit::Kilobits.choose(),
            Self::Mbit => wt_units::RateUnit::Megabits.choose(),
            Self::Bytes => wt_units::RateUnit::Bytes.choose(),
            Self::Kilobytes => wt_units::RateUnit::Kilobytes.choose(),
            Self::Megabytes => wt_units::RateUnit::Megabytes.choose(),
        }
    }

    /// A rate, with three digits at least that say something: 0.0241 Mbit/s, 1548 B/s.
    pub(crate) fn show(self, bps: f64) -> String {
        let (one, unit) = self.scale(bps);
        format!("{} {unit}", wt_units::three_digits(bps / one, bps / one))
    }

    /// How far a rate lies above another of about this size, with its interval: -12.0 (-40.1 to 16.1) B/s.
    pub(crate) fn show_above(self, above: Option<f64>, ends: Option<(f64, f64)>, size: f64) -> String {
        let Some(above) = above else { return String::new() };
        let (one, unit) = self.scale(size);
        let of = |bps: f64| wt_units::three_digits(bps / one, size / one);
        let ends = ends.map_or_else(String::new, |(low, high)| format!(" ({} to {})", of(low), of(high)));
        format!("{}{ends} {unit}", of(above))
    }

    /// A mean with its standard error in one unit: 1548 ± 89 B/s.
    pub(crate) fn show_mean(self, mean: Option<f64>, error: Option<f64>) -> String {
        let Some(mean) = mean else { return "–".to_owned() };
        let (one, unit) = self.scale(mean);
        let of = |bps: f64| wt_units::three_digits(bps / one, mean / one);
        let error = error.map_or_else(String::new, |error| format!(" ± {}", of(error)));
        format!("{}{error} {unit}", of(mean))
    }
}

/// What the order is drawn from: a number, or the names of an experiment and of the site that runs it.
pub(crate) fn order_seed(text: &str) -> Result<u64, String> {
    if let Ok(number) = text.parse() {
        return Ok(number);
    }
    match text.split_once('@') {
        Some((experiment, site)) if !experiment.is_empty() && !site.is_empty() => {
            Ok(wt_experiment::fleet::order_seed_of(experiment, site))
        }
        _ => Err("a number, or EXPERIMENT@SITE: mesh-7@berlin".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_lines_have_enough_digits_in_every_unit() {
        assert_eq!(RateUnit::Auto.show(24_100.0), "24.1 kbit/s");
        assert_eq!(RateUnit::Mbit.show(24_100.0), "0.0241 Mbit/s");
        assert_eq!(RateUnit::Bytes.show(12_384.0), "1548 B/s");
        assert_eq!(RateUnit::Bytes.show_mean(Some(12_384.0), Some(712.0)), "1548 ± 89 B/s");
        assert_eq!(RateUnit::Kilobytes.show_mean(Some(12_384.0), None), "1.55 kB/s");
        let ends = Some((-321.6, 129.6));
        assert_eq!(RateUnit::Bytes.show_above(Some(-96.0), ends, 12_384.0), "-12 (-40 to 16) B/s");
        assert_eq!(RateUnit::Auto.show_above(None, None, 1.0), "");
        assert_eq!((RateUnit::Auto.show(0.0), RateUnit::Kbit.show_mean(None, None)), ("0.00 bit/s".into(), "–".into()));
    }
}
