/// A name for an experiment: UTC date and time, target, four random hexadecimal digits.
///
/// The caller gives the time and the random number; two experiments of one second on one target share a name with a
/// probability of 1 : 65536, and the journal refuses the second.
#[must_use]
pub fn experiment_id(started_unix_us: i64, target: &str, random: u16) -> String {
    let seconds = started_unix_us.div_euclid(1_000_000);
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    let target = slug(target);
    format!("{year:04}{month:02}{day:02}-{hour:02}{minute:02}{second:02}-{target}-{random:04x}")
}

/// A time as ISO 8601 has it, in UTC, with microseconds: `2026-11-21T08:15:00.000000Z`.
pub(crate) fn iso_time(unix_us: i64) -> String {
    let (seconds, micros) = (unix_us.div_euclid(1_000_000), unix_us.rem_euclid(1_000_000));
    let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
}

/// The time that such a text means, µs since 1970, or that of seconds with fewer digits or none behind them, in UTC; `None` for any other.
pub(crate) fn parse_iso_time(text: &str) -> Option<i64> {
    let (date, time) = text.trim_end_matches('Z').split_once(['T', ' '])?;
    let number = |text: &str, most: i64| text.parse::<i64>().ok().filter(|n| (0..=most).contains(n));
    let [year, month, day] = date.splitn(3, '-').collect::<Vec<_>>().try_into().ok()?;
    let [hour, minute, second] = time.splitn(3, ':').collect::<Vec<_>>().try_into().ok()?;
    let (year, month, day) = (number(year, 9999)?, number(month, 12)?, number(day, 31)?);
    let (second, fraction) = second.split_once('.').unwrap_or((second, "0"));
    let micros = number(format!("{fraction:0<6}").get(..6)?, 999_999)?;
    let seconds = number(hour, 23)? * 3_600 + number(minute, 59)? * 60 + number(second, 60)?;
    // As `civil` counts: from the first of March of the year 0.
    let (year, march_month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let days = 365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let days = days + (153 * march_month + 2) / 5 + day - 1 - 719_468;
    let whole = civil(days);
    (month > 0 && day > 0 && whole.1 == month && whole.2 == day)
        .then_some((days * 86_400 + seconds) * 1_000_000 + micros)
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

/// Year, month and day of a number of days since 1970-01-01, in the Gregorian calendar.
///
/// Counted from the first of March of the year 0, so that the leap day comes last: 146 097 days are 400 years.
fn civil(days: i64) -> (i64, i64, i64) {
    let days = days.saturating_add(719_468);
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let of_400 = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * of_400 + of_400 / 4 - of_400 / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 { march_month + 3 } else { march_month - 9 };
    (era * 400 + of_400 + i64::from(month <= 2), month, day)
}

/// Why a text can't be the name of an experiment; names are used in file names and on command lines.
pub(crate) fn fault(id: &str) -> Option<&'static str> {
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
        ] {
            assert_eq!(parse_iso_time(text), None, "{text}");
        }
    }

    #[test]
    fn every_day_follows_the_day_before() {
        let mut before = civil(-200_000);
        for day in -199_999..200_000 {
            let now = civil(day);
            let next_day = now.2 == before.2 + 1 && (now.0, now.1) == (before.0, before.1);
            let next_month = now.2 == 1 && (28..=31).contains(&before.2);
            assert!(next_day || next_month, "{before:?} {now:?}");
            before = now;
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
