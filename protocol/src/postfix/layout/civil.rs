//! Unix seconds as a date and a time of day, UTC, in the Gregorian calendar.

const DAY: i64 = 86_400;
const MONTHS: [(&str, u32); 12] = [
    ("January", 31),
    ("February", 28),
    ("March", 31),
    ("April", 30),
    ("May", 31),
    ("June", 30),
    ("July", 31),
    ("August", 31),
    ("September", 30),
    ("October", 31),
    ("November", 30),
    ("December", 31),
];
/// From the weekday of 1970-01-01 on.
const WEEKDAYS: [&str; 7] =
    ["Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday"];

/// A second, taken apart. Days, months and the day of the year count from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Civil {
    pub year: i64,
    pub month: u32,
    pub day: u32,
    pub day_of_year: u32,
    pub hour: u32,
    pub minute: u32,
    pub second: u32,
    /// Index into `WEEKDAYS`.
    weekday: usize,
}

impl Civil {
    pub fn of(unix_seconds: i64) -> Self {
        let (days, second) = (unix_seconds.div_euclid(DAY), unix_seconds.rem_euclid(DAY));
        let second = u32::try_from(second).expect("below a day");
        let (year, day_of_year) = year_of(days);
        let (month, day) = month_of(day_of_year, is_leap(year));
        Civil {
            year,
            month,
            day,
            day_of_year: day_of_year + 1,
            hour: second / 3600,
            minute: second / 60 % 60,
            second: second % 60,
            weekday: usize::try_from(days.rem_euclid(7)).expect("below seven"),
        }
    }

    pub fn month_name(&self) -> &'static str {
        MONTHS[self.month as usize - 1].0
    }

    pub fn weekday_name(&self) -> &'static str {
        WEEKDAYS[self.weekday]
    }
}

/// Days from 0001-01-01 to the first day of a year.
fn days_before(year: i64) -> i64 {
    let years = year - 1;
    years * 365 + years.div_euclid(4) - years.div_euclid(100) + years.div_euclid(400)
}

/// The year of a day counted from 1970, and the day within that year, from 0.
fn year_of(days_since_1970: i64) -> (i64, u32) {
    let days = days_since_1970 + days_before(1970);
    // 400 years have 146,097 days; leap days move the guess by at most one year.
    let mut year = (days * 400).div_euclid(146_097) + 1;
    while days_before(year) > days {
        year -= 1;
    }
    while days_before(year + 1) <= days {
        year += 1;
    }
    (year, u32::try_from(days - days_before(year)).expect("within the year"))
}

fn is_leap(year: i64) -> bool {
    days_before(year + 1) - days_before(year) == 366
}

/// Month and day of month, from 1, of a day of the year, from 0.
fn month_of(day_of_year: u32, is_leap: bool) -> (u32, u32) {
    let mut day = day_of_year;
    for (month, (name, days)) in (1..).zip(MONTHS) {
        let days = days + u32::from(is_leap && name == "February");
        if day < days {
            return (month, day + 1);
        }
        day -= days;
    }
    unreachable!("a year has no day {day_of_year}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates() {
        let cases = [
            (0, (1970, 1, 1), "Thursday"),
            (-1, (1969, 12, 31), "Wednesday"),
            (951_782_400, (2000, 2, 29), "Tuesday"),
            (951_868_800, (2000, 3, 1), "Wednesday"),
            (1_795_972_393, (2026, 11, 29), "Sunday"),
            (4_107_542_400, (2100, 3, 1), "Monday"),
            (-62_135_596_800, (1, 1, 1), "Monday"),
            (1_230_768_000 - 1, (2008, 12, 31), "Wednesday"),
        ];
        for (unix, date, weekday) in cases {
            let civil = Civil::of(unix);
            assert_eq!((civil.year, civil.month, civil.day), date, "{unix}");
            assert_eq!(civil.weekday_name(), weekday, "{unix}");
        }
        assert_eq!(Civil::of(1_230_768_000 - 1).day_of_year, 366);
    }
}
