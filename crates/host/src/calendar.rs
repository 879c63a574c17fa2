/// A moment as people and programs read it: `2026-01-31T12:00:00Z`.
///
/// # Source
/// RFC 3339; days to dates by the proleptic Gregorian calendar, counted in eras of 400 years that begin in March.
#[must_use]
pub fn utc(unix_s: u64) -> String {
    const DAY: u64 = 86_400;
    const ERA: u64 = 146_097;
    /// Days from 0000-03-01 to 1970-01-01.
    const EPOCH: u64 = 719_468;
    // Far beyond any deadline, and far below an overflow.
    let unix_s = unix_s.min(253_402_300_799);
    let days = unix_s / DAY + EPOCH;
    let (era, day_of_era) = (days / ERA, days % ERA);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    let second = unix_s % DAY;
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", second / 3_600, second / 60 % 60, second % 60)
}

#[cfg(test)]
mod tests {
    use super::utc;

    #[test]
    fn moments_are_dated_as_the_calendar_has_it() {
        for (unix_s, wanted) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_704_067_199, "2023-12-31T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (u64::MAX, "9999-12-31T23:59:59Z"),
        ] {
            assert_eq!(utc(unix_s), wanted);
        }
    }
}
