use jiff::SignedDuration;
use jiff::civil::{Date, DateTime, datetime};

const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);

/// A name for an experiment: UTC date and time, target, four random hexadecimal digits.
///
/// The caller gives the time and the random number; two experiments of one second on one target share a name with a
/// probability of 1 : 65536, and the journal refuses the second.
#[must_use]
pub fn experiment_id(started_unix_us: i64, target: &str, random: u16) -> String {
    let at = utc(started_unix_us).strftime("%Y%m%d-%H%M%S");
    format!("{at}-{}-{random:04x}", slug(target))
}

/// A time as ISO 8601 has it, in UTC, with microseconds: `2026-11-21T08:15:00.000000Z`.
pub(crate) fn iso_time(unix_us: i64) -> String {
    utc(unix_us).strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}

/// The time that such a text means, µs since 1970, or that of seconds with fewer digits or none behind them, in UTC; `None` for any other.
pub(crate) fn parse_iso_time(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z').unwrap_or(text).split_once(['T', ' '])?;
    let number = |text: &str, most: i64| {
        text.parse().ok().filter(|n| text.as_bytes()[0].is_ascii_digit() && (0..=most).contains(n))
    };
    let [year, month, day] = date.splitn(3, '-').collect::<Vec<_>>().try_into().ok()?;
    let [hour, minute, second] = time.splitn(3, ':').collect::<Vec<_>>().try_into().ok()?;
    let (second, fraction) = second.split_once('.').unwrap_or((second, "0"));
    // Whatever else stands there: a zone that is left out would make it another time.
    let micros = Some(fraction).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_digit()));
    let micros = number(format!("{:0<6}", micros?).get(..6)?, 999_999)?;
    let (month, day) = (i8::try_from(number(month, 12)?).ok()?, i8::try_from(number(day, 31)?).ok()?);
    let day = Date::new(i16::try_from(number(year, 9999)?).ok()?, month, day).ok()?;
    let seconds = number(hour, 23)? * 3_600 + number(minute, 59)? * 60 + number(second, 60)?;
    let days = day.duration_since(EPOCH.date()).as_hours() / 24;
    Some((days * 86_400 + seconds) * 1_000_000 + micros)
}

/// Whether a time, µs since 1970, is one of the years 1 to 9999, which calendars of other programs have, too.
pub(crate) fn is_time(unix_us: i64) -> bool {
    (-62_135_596_800_000_000..=253_402_300_799_999_999).contains(&unix_us)
}

/// A time, µs since 1970, as the calendar has it in UTC; what is beyond the year 9999 counts as its end.
fn utc(unix_us: i64) -> DateTime {
    EPOCH.saturating_add(SignedDuration::from_micros(unix_us))
}

/// Small letters, digits and single dashes, at most 24 of them.
fn slug(text: &str) -> String {
    let mut slug = String::new();
    for c in text.chars() {
        let c = c.to_ascii_lowercase();
        if c.is_ascii_alphanumeric() {
            slug.push(c);
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
        if slug.len() >= 24 {
            break;
        }
    }
    let slug = slug.trim_end_matches('-');
    if slug.is_empty() { "target".to_owned() } else { slug.to_owned() }
}

/// Why a text can't be the name of an experiment; names are used in file names and on command lines.
#[must_use]
pub fn fault(id: &str) -> Option<&'static str> {
    if id.is_empty() || id.len() > 100 {
        return Some("a name has 1 to 100 characters");
    }
    if id == "last" {
        return Some("that word means the latest experiment");
    }
    let ok = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if !id.chars().all(ok) || id.starts_with(['-', '.']) {
        return Some("a name has letters, digits, -, _ and . only, and begins with a letter, a digit or _");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        // `date -u -d @N +%Y%m%d-%H%M%S`
        for (seconds, text) in [
            (0, "19700101-000000"),
            (951_782_400, "20000229-000000"),
            (1_795_248_900, "20261121-081500"),
            (4_107_542_399, "21000228-235959"),
            (4_107_542_400, "21000301-000000"),
            (-1, "19691231-235959"),
        ] {
            assert_eq!(experiment_id(seconds * 1_000_000, "x", 1), format!("{text}-x-0001"));
        }
    }

    #[test]
    fn a_time_that_was_written_is_read_again_and_nothing_else_is_a_time() {
        for seconds in [0, 951_782_400, 1_795_248_900, 4_107_542_399, 4_107_542_400] {
            let at = seconds * 1_000_000 + 123_456;
            assert_eq!(parse_iso_time(&iso_time(at)), Some(at));
        }
        assert_eq!(parse_iso_time("2026-11-21T08:15:00"), Some(1_795_248_900_000_000));
        assert_eq!(parse_iso_time("2026-11-21T08:15:00.5Z"), Some(1_795_248_900_500_000));
        for text in [
            "",
            "T",
            "2026-02-30T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-11-21",
            "2026-11-21T25:00:00Z",
            "ü-1-1T0:0:0.ü",
            "2026-11-21T08:15:00.123456+02:00",
            "2026-11-21T08:15:00+02:00",
            "2026-11-21T08:15:00.123456 nonsense",
            "2026-11-21T08:15:00ZZ",
            "2026-11-21T+8:15:00Z",
        ] {
            assert_eq!(parse_iso_time(text), None, "{text}");
        }
    }

    #[test]
    fn every_made_name_is_allowed() {
        for target in ["adsl", "lab adsl", "", "../../etc", "-x", "a\u{1b}b", "münchen.example:8080", &"x".repeat(500)]
        {
            for at in [i64::MIN, -1, 0, 1_795_248_900_000_000, i64::MAX] {
                let id = experiment_id(at, target, 0xffff);
                assert!(at < 0 || fault(&id).is_none(), "{id}");
            }
        }
    }
}
