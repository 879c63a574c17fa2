//! How figures are written, the same in every form of report.

use jiff::SignedDuration;
use jiff::civil::{DateTime, datetime};
use wt_units::BitsPerSecond;

/// `6.83 Mbit/s`; `–` if it isn't known.
pub(crate) fn rate(bps: Option<f64>) -> String {
    bps.map_or_else(|| "–".to_owned(), |bps| BitsPerSecond(bps.max(0.0) as u64).human())
}

/// `×1.19`; `–` if it isn't known.
pub(crate) fn times(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "–".to_owned(), times_of)
}

/// `×1.19`, `×0.012`, `×0.0003`: of a ratio that is there, never nothing.
#[must_use]
pub fn times_of(ratio: f64) -> String {
    match ratio {
        r if r >= 100.0 => format!("×{r:.0}"),
        r if r >= 0.095 => format!("×{r:.2}"),
        // In three digits it would be nothing.
        r if (1e-9..0.0005).contains(&r) => format!("×{r:.digits$}", digits = -r.log10().floor() as usize),
        r => format!("×{r:.3}"),
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

/// `6.2 %`, `18 %`, `< 0.1 %`: of what isn't negative.
pub(crate) fn percent(percent: f64) -> String {
    match percent {
        p if p < 0.05 => "< 0.1 %".to_owned(),
        p if p < 9.95 => format!("{p:.1} %").replace(".0 %", " %"),
        p => format!("{p:.0} %"),
    }
}

/// As [`percent`], of a change without its sign. What gets smaller never gets smaller by all of it.
pub(crate) fn change(change: f64) -> String {
    match change {
        c if c <= -99.95 => "> 99.9 %".to_owned(),
        c if c <= -99.5 => format!("{:.1} %", -c),
        c => percent(c.abs()),
    }
}

/// As [`percent`], rounded down: for what is at least so much.
pub(crate) fn percent_down(least: f64) -> String {
    let step = if least < 10.0 { 10.0 } else { 1.0 };
    percent((least * step + 1e-9).floor() / step)
}

/// As [`percent`], rounded up: for what is at most so much.
pub(crate) fn percent_up(most: f64) -> String {
    let step = if most < 10.0 { 10.0 } else { 1.0 };
    percent((most * step - 1e-9).ceil() / step)
}

/// `98 %`, `< 1 %`: of a share of something, which isn't negative.
pub(crate) fn whole_percent(percent: f64) -> String {
    if percent < 0.5 { "< 1 %".to_owned() } else { format!("{percent:.0} %") }
}

/// `71 : 1`.
pub(crate) fn odds(evidence: f64) -> String {
    match evidence {
        e if e > 1e4 => "> 10000 : 1".to_owned(),
        e if e >= 3.0 => format!("{:.0} : 1", e.floor()),
        e => format!("{e:.1} : 1"),
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
#[must_use]
pub fn date(unix_us: i64) -> String {
    const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
    EPOCH.saturating_add(SignedDuration::from_micros(unix_us)).strftime("%Y-%m-%d %H:%M UTC").to_string()
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
    fn shares_are_never_nothing_and_bounds_are_rounded_to_the_safe_side() {
        assert_eq!(
            [0.0, 0.04, 0.12, 6.0, 6.24, 17.8].map(percent),
            ["< 0.1 %", "< 0.1 %", "0.1 %", "6 %", "6.2 %", "18 %"]
        );
        assert_eq!([0.09, 4.19, 11.9].map(percent_down), ["< 0.1 %", "4.1 %", "11 %"]);
        assert_eq!([4.11, 11.1].map(percent_up), ["4.2 %", "12 %"]);
    }

    #[test]
    fn no_ratio_is_nothing() {
        let all = [150.0, 1.186, 0.0321, 0.0007, 0.00032, 0.0].map(times_of);
        assert_eq!(all, ["×150", "×1.19", "×0.032", "×0.001", "×0.0003", "×0.000"]);
    }

    #[test]
    fn nothing_is_saved_whole() {
        assert_eq!([-50.0, -99.2, -99.7, -99.99, 100.0].map(change), ["50 %", "99 %", "99.7 %", "> 99.9 %", "100 %"]);
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
