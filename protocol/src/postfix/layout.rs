//! Times as Go's layouts write them: the reference time is `Mon Jan 2 15:04:05 MST 2006`.

mod civil;

use civil::Civil;
use std::fmt::Write;

/// A layout, cut into what is copied and what stands for a part of the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Layout(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Literal(String),
    Verb(Verb),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Year,
    YearOfCentury,
    MonthName,
    MonthShort,
    Month(Pad),
    WeekdayName,
    WeekdayShort,
    Day(Pad),
    DayOfYear(Pad),
    Hour,
    Hour12(Pad),
    Minute(Pad),
    Second(Pad),
    HalfUpper,
    HalfLower,
    /// What a zone's verb writes for UTC.
    Zone(&'static str),
    /// A separator and that many zeros, as times are in whole seconds.
    Fraction(char, usize),
    /// A fraction without its trailing zeros: nothing.
    NoFraction,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pad {
    Bare,
    Zero,
    Space,
}

/// The verbs by their text; of two that begin alike the longer stands first.
const VERBS: [(&str, Verb); 33] = [
    ("January", Verb::MonthName),
    ("Jan", Verb::MonthShort),
    ("Monday", Verb::WeekdayName),
    ("Mon", Verb::WeekdayShort),
    ("MST", Verb::Zone("UTC")),
    ("2006", Verb::Year),
    ("002", Verb::DayOfYear(Pad::Zero)),
    ("__2", Verb::DayOfYear(Pad::Space)),
    ("06", Verb::YearOfCentury),
    ("01", Verb::Month(Pad::Zero)),
    ("02", Verb::Day(Pad::Zero)),
    ("03", Verb::Hour12(Pad::Zero)),
    ("04", Verb::Minute(Pad::Zero)),
    ("05", Verb::Second(Pad::Zero)),
    ("15", Verb::Hour),
    ("_2", Verb::Day(Pad::Space)),
    ("1", Verb::Month(Pad::Bare)),
    ("2", Verb::Day(Pad::Bare)),
    ("3", Verb::Hour12(Pad::Bare)),
    ("4", Verb::Minute(Pad::Bare)),
    ("5", Verb::Second(Pad::Bare)),
    ("PM", Verb::HalfUpper),
    ("pm", Verb::HalfLower),
    ("-07:00:00", Verb::Zone("+00:00:00")),
    ("-070000", Verb::Zone("+000000")),
    ("-07:00", Verb::Zone("+00:00")),
    ("-0700", Verb::Zone("+0000")),
    ("-07", Verb::Zone("+00")),
    ("Z07:00:00", Verb::Zone("Z")),
    ("Z070000", Verb::Zone("Z")),
    ("Z07:00", Verb::Zone("Z")),
    ("Z0700", Verb::Zone("Z")),
    ("Z07", Verb::Zone("Z")),
];

impl Verb {
    /// The place of the unit, from years on, if its text sorts as the unit does.
    fn rank(self) -> Option<u8> {
        match self {
            Verb::Year => Some(0),
            Verb::Month(Pad::Zero) => Some(1),
            Verb::Day(Pad::Zero) => Some(2),
            Verb::Hour => Some(3),
            Verb::Minute(Pad::Zero) => Some(4),
            Verb::Second(Pad::Zero) => Some(5),
            _ => None,
        }
    }
}

impl Layout {
    /// Any text is a layout: what is no verb stands for itself.
    pub(super) fn parse(layout: &str) -> Self {
        let mut pieces = Vec::new();
        let mut literal = String::new();
        let mut rest = layout;
        while let Some(c) = rest.chars().next() {
            let Some((verb, len)) = verb_at(rest) else {
                literal.push(c);
                rest = &rest[c.len_utf8()..];
                continue;
            };
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            pieces.push(Piece::Verb(verb));
            rest = &rest[len..];
        }
        if !literal.is_empty() {
            pieces.push(Piece::Literal(literal));
        }
        Layout(pieces)
    }

    /// The ranks of the units that it writes, years first; `None` where their text does not ascend
    /// with them.
    pub(super) fn ranks(&self) -> Option<Vec<u8>> {
        let rank = |piece: &Piece| match piece {
            // The same in all times, as zones and fractions are.
            Piece::Literal(_)
            | Piece::Verb(Verb::Zone(_) | Verb::Fraction(..) | Verb::NoFraction) => None,
            Piece::Verb(verb) => Some(verb.rank()),
        };
        self.0.iter().filter_map(rank).collect()
    }

    /// Writes a UTC time, given in unix seconds.
    pub(super) fn format(&self, unix_seconds: i64, out: &mut String) {
        let time = Civil::of(unix_seconds);
        for piece in &self.0 {
            match piece {
                Piece::Literal(literal) => out.push_str(literal),
                Piece::Verb(verb) => {
                    verb.write(&time, out).expect("writing to a String never fails");
                }
            }
        }
    }
}

/// The verb that a text begins with, and its length.
fn verb_at(text: &str) -> Option<(Verb, usize)> {
    if text.starts_with(['.', ',']) {
        return fraction_at(text);
    }
    // `_2006` is an underscore and a year, not a padded day.
    if text.starts_with("_2006") {
        return None;
    }
    let (name, verb) = VERBS.into_iter().find(|(name, _)| text.starts_with(name))?;
    // `Jan` and `Mon` are no verbs where a longer word goes on.
    let is_short_name = matches!(verb, Verb::MonthShort | Verb::WeekdayShort);
    let goes_on = text[name.len()..].starts_with(|c: char| c.is_ascii_lowercase());
    (!is_short_name || !goes_on).then_some((verb, name.len()))
}

/// `.000` and `.999` of any length, with either separator, where no other digit follows.
fn fraction_at(text: &str) -> Option<(Verb, usize)> {
    let separator = text.chars().next()?;
    let digits = &text[1..];
    let digit = digits.chars().next().filter(|c| matches!(c, '0' | '9'))?;
    let len = digits.len() - digits.trim_start_matches(digit).len();
    if digits[len..].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let verb = if digit == '0' { Verb::Fraction(separator, len) } else { Verb::NoFraction };
    Some((verb, 1 + len))
}

impl Verb {
    fn write(self, time: &Civil, out: &mut String) -> std::fmt::Result {
        let half = if time.hour < 12 { "AM" } else { "PM" };
        match self {
            Verb::Year if time.year < 0 => write!(out, "-{:04}", time.year.unsigned_abs()),
            Verb::Year => write!(out, "{:04}", time.year),
            Verb::YearOfCentury => write!(out, "{:02}", time.year.unsigned_abs() % 100),
            Verb::MonthName => out.write_str(time.month_name()),
            Verb::MonthShort => out.write_str(&time.month_name()[..3]),
            Verb::Month(pad) => padded(out, pad, time.month, 2),
            Verb::WeekdayName => out.write_str(time.weekday_name()),
            Verb::WeekdayShort => out.write_str(&time.weekday_name()[..3]),
            Verb::Day(pad) => padded(out, pad, time.day, 2),
            Verb::DayOfYear(pad) => padded(out, pad, time.day_of_year, 3),
            Verb::Hour => padded(out, Pad::Zero, time.hour, 2),
            Verb::Hour12(pad) => padded(out, pad, (time.hour + 11) % 12 + 1, 2),
            Verb::Minute(pad) => padded(out, pad, time.minute, 2),
            Verb::Second(pad) => padded(out, pad, time.second, 2),
            Verb::HalfUpper => out.write_str(half),
            Verb::HalfLower => out.write_str(&half.to_lowercase()),
            Verb::Zone(utc) => out.write_str(utc),
            Verb::Fraction(separator, zeros) => write!(out, "{separator}{:0zeros$}", 0),
            Verb::NoFraction => Ok(()),
        }
    }
}

fn padded(out: &mut String, pad: Pad, number: u32, width: usize) -> std::fmt::Result {
    match pad {
        Pad::Bare => write!(out, "{number}"),
        Pad::Zero => write!(out, "{number:0width$}"),
        Pad::Space => write!(out, "{number:width$}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn format(layout: &str, unix_seconds: i64) -> String {
        let mut out = String::new();
        Layout::parse(layout).format(unix_seconds, &mut out);
        out
    }

    #[test]
    fn layouts_write_as_in_go() {
        // 2009-02-05 05:00:57 UTC, a Thursday, the 36th day.
        let time = 1_233_810_057;
        let cases = [
            ("2006-01-02T15:04:05Z07:00", "2009-02-05T05:00:57Z"),
            ("Mon Jan _2 15:04:05 MST 2006", "Thu Feb  5 05:00:57 UTC 2009"),
            ("Monday, 2 January 06 3:4:5PM", "Thursday, 5 February 09 5:0:57AM"),
            ("03pm -0700 -07:00 -07", "05am +0000 +00:00 +00"),
            ("002 __2 1/2", "036  36 2/5"),
            ("20060102150405", "20090205050057"),
            // Case: what looks like a verb and is none.
            ("Janet Mondays Months x00", "Janet Thursdays Months x00"),
            ("_2006_01", "_2009_02"),
            ("05.000 05,00 05.999 05.001", "57.000 57,00 57 57.002"),
            ("day=2", "day=5"),
            ("\u{e9}15", "\u{e9}05"),
            ("", ""),
        ];
        for (layout, expected) in cases {
            assert_eq!(format(layout, time), expected, "{layout}");
        }
    }

    #[test]
    fn hours_of_a_clock_face() {
        let cases =
            [(0, "12AM"), (1, "1AM"), (11, "11AM"), (12, "12PM"), (13, "1PM"), (23, "11PM")];
        for (hour, expected) in cases {
            assert_eq!(format("3PM", hour * 3600), expected);
        }
    }

    proptest! {
        #[test]
        fn a_written_time_reads_back(time in -62_135_596_800..253_402_300_800i64) {
            let text = format("2006 002 15 04 05", time);
            let numbers: Vec<i64> = text.split(' ').map(|n| n.parse().unwrap()).collect();
            let [year, day, hour, minute, second] = numbers[..] else { panic!("{text}") };
            let leaps = |year: i64| year / 4 - year / 100 + year / 400;
            let days = (year - 1970) * 365 + leaps(year - 1) - leaps(1969) + day - 1;
            prop_assert_eq!(days * 86_400 + hour * 3600 + minute * 60 + second, time);
        }

        #[test]
        fn literals_stand_for_themselves(text in "[a-ik-oq-zA-IK-LN-OQ-Y67=/+-]{0,12}") {
            prop_assert_eq!(format(&text, 0), text);
        }

        #[test]
        fn no_layout_panics(text in "\\PC{0,12}", time in any::<i64>()) {
            format(&text, time);
        }
    }
}
