use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// Minutes of a day.
const DAY: u32 = 24 * 60;

/// Hours of the day in UTC, `22:00-06:00`: from the one until before the other, over midnight if need be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hours {
    from: u32,
    until: u32,
}

impl Hours {
    /// Whether they are now; `unix_s` is the time, seconds since 1970.
    pub(crate) fn is_open(self, unix_s: i64) -> bool {
        let since = (minute_of(unix_s) + DAY - self.from) % DAY;
        since < self.length()
    }

    fn length(self) -> u32 {
        match (self.until + DAY - self.from) % DAY {
            0 => DAY,
            minutes => minutes,
        }
    }
}

fn minute_of(unix_s: i64) -> u32 {
    u32::try_from(unix_s.rem_euclid(86_400) / 60).unwrap_or(0)
}

impl FromStr for Hours {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" are no hours of the day: write 22:00-06:00, in UTC");
        let minute = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute) = (hour.parse::<u32>().ok()?, minute.parse::<u32>().ok()?);
            (minute < 60 && (hour < 24 || (hour == 24 && minute == 0))).then_some((hour * 60 + minute) % DAY)
        };
        let (from, until) = text.split_once('-').ok_or_else(wrong)?;
        Ok(Self { from: minute(from).ok_or_else(wrong)?, until: minute(until).ok_or_else(wrong)? })
    }
}

impl Display for Hours {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { from, until } = self;
        write!(f, "{:02}:{:02}-{:02}:{:02}", from / 60, from % 60, until / 60, until % 60)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_go_over_midnight_and_are_read_back_as_they_were_written() {
        let at = |hour: i64, minute: i64| 1_700_006_400 / 86_400 * 86_400 + hour * 3600 + minute * 60;
        let night: Hours = "22:00-06:00".parse().unwrap();
        assert!(night.is_open(at(22, 0)) && night.is_open(at(0, 0)) && night.is_open(at(5, 59)));
        assert!(!night.is_open(at(6, 0)) && !night.is_open(at(21, 59)));
        let day: Hours = "8:00-17:30".parse().unwrap();
        assert_eq!(day.to_string(), "08:00-17:30");
        assert!(day.is_open(at(8, 0)) && !day.is_open(at(17, 30)));
        assert!("00:00-24:00".parse::<Hours>().unwrap().is_open(at(13, 7)), "the whole day");
        for wrong in ["", "8-17", "25:00-26:00", "08:60-09:00", "24:01-01:00", "08:00"] {
            assert!(wrong.parse::<Hours>().is_err(), "{wrong}");
        }
    }
}
