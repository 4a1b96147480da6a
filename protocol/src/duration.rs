//! Durations as Gazette's messages, files and flags write them.

use crate::Invalid;
use std::time::Duration;

const NANOS_PER_SECOND: u128 = 1_000_000_000;

/// The units of Go's duration texts, longest match first, in nanoseconds. Both signs for micro are
/// read; Go writes the first.
const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("\u{b5}s", 1_000),
    ("\u{3bc}s", 1_000),
    ("ms", 1_000_000),
    ("s", NANOS_PER_SECOND),
    ("m", 60 * NANOS_PER_SECOND),
    ("h", 3600 * NANOS_PER_SECOND),
];

/// A duration of a message; absence is zero. Refuses a negative one.
pub fn from_wire(duration: Option<prost_types::Duration>) -> Result<Duration, Invalid> {
    let prost_types::Duration { seconds, nanos } = duration.unwrap_or_default();
    let refused = || Invalid::new(format!("invalid Duration ({seconds}s and {nanos}ns)"));
    let nanos = u32::try_from(nanos).ok().filter(|nanos| *nanos < 1_000_000_000);
    match (u64::try_from(seconds), nanos) {
        (Ok(seconds), Some(nanos)) => Ok(Duration::new(seconds, nanos)),
        _ => Err(refused()),
    }
}

/// As `from_wire`, with zero for a negative duration: for fields where both mean "for ever".
pub fn from_wire_or_zero(duration: Option<prost_types::Duration>) -> Result<Duration, Invalid> {
    match &duration {
        Some(duration) if duration.seconds < 0 || duration.nanos < 0 => Ok(Duration::ZERO),
        _ => from_wire(duration),
    }
}

/// A duration for a message, where Gazette writes zero as an empty one rather than leaving it out.
/// Durations past the range of 64-bit seconds become the longest that fits.
pub fn to_wire(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).expect("below a second"),
    }
}

/// Writes a duration as Go does: `1h0m0s`, `1m30s`, `1.5s`, `20ms`, `0s`.
pub fn format(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, size, above) in [("ns", 1, 1_000), ("\u{b5}s", 1_000, 1_000_000)] {
        if (1..above).contains(&nanos) {
            return decimal(nanos, size) + unit;
        }
    }
    if (1..NANOS_PER_SECOND).contains(&nanos) {
        return decimal(nanos, 1_000_000) + "ms";
    }
    let minutes = nanos / (60 * NANOS_PER_SECOND);
    let seconds = decimal(nanos % (60 * NANOS_PER_SECOND), NANOS_PER_SECOND);
    match (minutes / 60, minutes % 60) {
        (0, 0) => format!("{seconds}s"),
        (0, minutes) => format!("{minutes}m{seconds}s"),
        (hours, minutes) => format!("{hours}h{minutes}m{seconds}s"),
    }
}

/// `nanos` in units of `size`, without trailing zeros.
fn decimal(nanos: u128, size: u128) -> String {
    let (whole, mut part) = (nanos / size, nanos % size);
    if part == 0 {
        return whole.to_string();
    }
    let mut digits = size.ilog10() as usize;
    while part.is_multiple_of(10) {
        (part, digits) = (part / 10, digits - 1);
    }
    format!("{whole}.{part:0digits$}")
}

/// Reads a duration as Go does: a sequence of decimal numbers with units, or a bare `0`. Refuses
/// negative ones, and digits below a nanosecond.
pub fn parse(text: &str) -> Result<Duration, Invalid> {
    let refused = || Invalid::new(format!("invalid duration ({text})"));
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    let mut nanos: u128 = 0;
    let mut is_empty = true;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(refused)?;
        let (number, after) = rest.split_at(digits);
        // `ms` before `m`: the table has the longer of two units that begin alike first.
        let unit = UNITS.into_iter().find(|(unit, _)| after.starts_with(unit));
        let (unit, size) = unit.ok_or_else(refused)?;
        let part = scaled(number, size).ok_or_else(refused)?;
        nanos = nanos.checked_add(part).ok_or_else(refused)?;
        rest = &after[unit.len()..];
        is_empty = false;
    }
    // Go counts nanoseconds in 63 bits.
    match i64::try_from(nanos) {
        Ok(nanos) if !is_empty => Ok(Duration::from_nanos(nanos.unsigned_abs())),
        _ => Err(refused()),
    }
}

/// A decimal number times `size`, when that is whole and within 128 bits.
fn scaled(number: &str, size: u128) -> Option<u128> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && part.is_empty() {
        return None;
    }
    let digits = |text: &str| if text.is_empty() { Some(0) } else { text.parse::<u128>().ok() };
    let scale = 10u128.checked_pow(u32::try_from(part.len()).ok()?)?;
    let above = digits(whole)?.checked_mul(size)?;
    let below = digits(part)?.checked_mul(size)?;
    below.is_multiple_of(scale).then_some(above.checked_add(below / scale)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_are_those_of_go() {
        let cases = [
            (0, "0s"),
            (1, "1ns"),
            (1_500, "1.5\u{b5}s"),
            (20_000_000, "20ms"),
            (1_000_000_000, "1s"),
            (1_500_000_000, "1.5s"),
            (90_000_000_000, "1m30s"),
            (60_000_000_000, "1m0s"),
            (3_600_000_000_000, "1h0m0s"),
            (86_400_000_000_001, "24h0m0.000000001s"),
        ];
        for (nanos, text) in cases {
            assert_eq!(format(Duration::from_nanos(nanos)), text);
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        }
        for (text, seconds) in [("0", 0), ("+5m", 300), ("1h30m", 5400), (".5m", 30), ("1.m", 60)] {
            assert_eq!(parse(text), Ok(Duration::from_secs(seconds)), "{text}");
        }
        for text in ["", "5", "s", "-5s", "1x", "1.2.3s", "1 s", ".s", "0.1ns", "9999999999h"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn messages_without_a_duration_say_zero() {
        let message = |seconds, nanos| Some(prost_types::Duration { seconds, nanos });
        assert_eq!(from_wire(None), Ok(Duration::ZERO));
        assert_eq!(from_wire(message(1, 5)), Ok(Duration::new(1, 5)));
        assert!(from_wire(message(-1, 0)).is_err());
        assert!(from_wire(message(0, 1_000_000_000)).is_err());
        assert_eq!(from_wire_or_zero(message(-1, 0)), Ok(Duration::ZERO));
        assert_eq!(to_wire(Duration::ZERO), prost_types::Duration::default());
        assert_eq!(to_wire(Duration::MAX).seconds, i64::MAX);
    }

    proptest! {
        #[test]
        fn every_duration_survives(nanos in 0..=i64::MAX as u64) {
            let duration = Duration::from_nanos(nanos);
            prop_assert_eq!(parse(&format(duration)), Ok(duration));
            prop_assert_eq!(from_wire(Some(to_wire(duration))), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "[0-9.hmsnu+-]{0,24}") {
            let _ = parse(&text);
        }
    }
}
