use jiff::SignedDuration;
use jiff::civil::{DateTime, datetime};

/// A moment as people and programs read it: `2026-01-31T12:00:00Z`. Later ones than the year 9999 has count as its end.
///
/// # Source
/// RFC 3339.
#[must_use]
pub fn utc(unix_s: u64) -> String {
    const EPOCH: DateTime = datetime(1970, 1, 1, 0, 0, 0, 0);
    let since = SignedDuration::from_secs(i64::try_from(unix_s).unwrap_or(i64::MAX));
    EPOCH.saturating_add(since).strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
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
