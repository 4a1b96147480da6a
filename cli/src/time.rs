//! Moments for people, seconds of Unix as a date and a time of UTC; and durations from them.

use std::time::Duration;

const DAY: i64 = 24 * 60 * 60;

/// As `2026-11-29T19:50:58Z`. Moments before 1970 too.
pub fn format(unix_seconds: i64) -> String {
    let (days, second) = (unix_seconds.div_euclid(DAY), unix_seconds.rem_euclid(DAY));
    let (year, month, day) = date(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// A duration as options have it. `Err` says how one is written.
pub fn duration(text: &str) -> Result<Duration, String> {
    let hint = |invalid| format!("{invalid}: expected a number with its unit, as 30s, 10m or 24h");
    protocol::duration::parse(text).map_err(hint)
}

/// The date of a day, counted from 1970-01-01. Years are taken to begin in March, so that the leap
/// day is the last one of its year, and repeat in eras of 400.
fn date(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_has_a_unit() {
        assert_eq!(duration("10m"), Ok(Duration::from_secs(600)));
        assert!(duration("10").unwrap_err().contains("10m or 24h"));
    }

    #[test]
    fn moments_are_written_in_utc() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_709_251_199, "2024-02-29T23:59:59Z"),
            (1_709_251_200, "2024-03-01T00:00:00Z"),
            (4_107_542_399, "2100-02-28T23:59:59Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
            (-1, "1969-12-31T23:59:59Z"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(format(seconds), expected);
        }
    }
}
