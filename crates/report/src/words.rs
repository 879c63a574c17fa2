//! How figures are written, the same in every form of report.

use crate::tune::{Arm, ArmState};
use wt_units::BitsPerSecond;

/// `6.83 Mbit/s`; `–` if it isn't known.
pub(crate) fn rate(bps: Option<f64>) -> String {
    bps.map_or_else(|| "–".to_owned(), |bps| BitsPerSecond(bps.max(0.0) as u64).human())
}

/// `×1.19`; `–` if it isn't known.
pub(crate) fn times(ratio: Option<f64>) -> String {
    match ratio {
        None => "–".to_owned(),
        Some(r) if r >= 100.0 => format!("×{r:.0}"),
        Some(r) if r < 0.095 => format!("×{r:.3}"),
        Some(r) => format!("×{r:.2}"),
    }
}

/// The interval of a setting: that of the random order alone, else, with a `~`, that of the model.
pub(crate) fn interval_of(arm: &Arm) -> String {
    match (arm.low, arm.high) {
        _ if arm.state == ArmState::Current => String::new(),
        (None, None) if arm.model_low.is_some() => format!("~{}", interval(arm.model_low, arm.model_high)),
        (low, high) => interval(low, high),
    }
}

/// `×1.03 … ×1.30`, rounded outwards; an end that isn't known is open.
pub(crate) fn interval(low: Option<f64>, high: Option<f64>) -> String {
    let down = |r: f64| times(Some((r * 100.0 + 1e-9).floor() / 100.0));
    let up = |r: f64| times(Some((r * 100.0 - 1e-9).ceil() / 100.0));
    match (low, high) {
        (None, None) => "open".to_owned(),
        (Some(low), None) => format!("{} …", down(low)),
        (None, Some(high)) => format!("… {}", up(high)),
        (Some(low), Some(high)) => format!("{} … {}", down(low), up(high)),
    }
}

/// `71 : 1`.
pub(crate) fn odds(evidence: f64) -> String {
    match evidence {
        e if e > 1e4 => "> 10000 : 1".to_owned(),
        e if e >= 3.0 => format!("{:.0} : 1", e.floor()),
        e => format!("{e:.1} : 1"),
    }
}

/// The evidence that a claim needs, if it is the same for all settings.
pub(crate) fn needed_by_all(arms: &[Arm]) -> Option<f64> {
    let mut needed = arms.iter().filter_map(|arm| arm.needed);
    let first = needed.next()?;
    needed.all(|n| (n - first).abs() <= first * 1e-9).then_some(first)
}

/// What is shown of a setting, in a word or two.
pub(crate) fn state(arm: &Arm) -> &'static str {
    match arm.state {
        ArmState::Current => "current",
        ArmState::Faster => "faster",
        ArmState::Slower => "slower",
        ArmState::Same => "same",
        ArmState::Behind => "behind, left out",
        ArmState::Failing => "fails, left out",
        ArmState::Open => "not shown",
    }
}

/// `30.9 ms`.
pub(crate) fn milliseconds(us: u64) -> String {
    let ms = us as f64 / 1e3;
    if ms < 10.0 { format!("{ms:.2} ms") } else { format!("{ms:.1} ms") }
}

/// `12 s`, `2 min 30 s`, `1 h 5 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.max(0.0).round() as u64;
    match whole {
        _ if seconds < 10.0 => format!("{seconds:.1} s"),
        s if s < 60 => format!("{s} s"),
        s if s < 3_600 => format!("{} min {} s", s / 60, s % 60),
        s => format!("{} h {} min", s / 3_600, s % 3_600 / 60),
    }
}

/// `2026-11-21 08:15 UTC`.
pub(crate) fn date(unix_us: i64) -> String {
    let minutes = unix_us.div_euclid(60_000_000);
    // Days since the first of March of the year 0, so that the leap day comes last: 146 097 days are 400 years.
    let days = minutes.div_euclid(1_440) + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_400 = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_400 + of_400 / 4 - of_400 / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    let year = era * 400 + of_400 + i64::from(month <= 2);
    let of_day = minutes.rem_euclid(1_440);
    format!("{year:04}-{month:02}-{day:02} {:02}:{:02} UTC", of_day / 60, of_day % 60)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_rounded_outwards() {
        assert_eq!(interval(Some(1.0399), Some(1.2901)), "×1.03 … ×1.30");
        assert_eq!(interval(Some(1.04), Some(1.29)), "×1.04 … ×1.29");
        assert_eq!(interval(None, Some(1.2)), "… ×1.20");
        assert_eq!(interval(None, None), "open");
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01 00:00 UTC"),
            (951_782_400, "2000-02-29 00:00 UTC"),
            (1_795_248_900, "2026-11-21 08:15 UTC"),
            (4_107_542_399, "2100-02-28 23:59 UTC"),
            (-1, "1969-12-31 23:59 UTC"),
        ] {
            assert_eq!(date(seconds * 1_000_000), text);
        }
        for odd in [i64::MIN, i64::MAX] {
            assert!(date(odd).ends_with("UTC"));
        }
    }

    #[test]
    fn durations_are_as_people_say_them() {
        assert_eq!([0.4, 12.0, 150.0, 3_900.0].map(duration), ["0.4 s", "12 s", "2 min 30 s", "1 h 5 min"]);
    }
}
