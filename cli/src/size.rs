//! Sizes as people write them: `64MiB`, `1G`, `1500`.

/// The units; a bare letter is the power of 1024, as in `dd` and `truncate`.
const UNITS: [(&str, u64); 16] = [
    ("", 1),
    ("b", 1),
    ("k", 1 << 10),
    ("kib", 1 << 10),
    ("kb", 1_000),
    ("m", 1 << 20),
    ("mib", 1 << 20),
    ("mb", 1_000_000),
    ("g", 1 << 30),
    ("gib", 1 << 30),
    ("gb", 1_000_000_000),
    ("t", 1 << 40),
    ("tib", 1 << 40),
    ("tb", 1_000_000_000_000),
    ("p", 1 << 50),
    ("pib", 1 << 50),
];

/// Bytes of a size.
pub fn parse(text: &str) -> Result<u64, String> {
    let refused = || format!("not a size ({text}): try 64MiB, 1G or 1500000");
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let unit = unit.trim().to_ascii_lowercase();
    let (_, scale) = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(refused)?;
    if let Ok(whole) = number.parse::<u64>() {
        return whole.checked_mul(scale).ok_or_else(refused);
    }
    let fraction: f64 = number.parse().map_err(|_| refused())?;
    let bytes = fraction * scale as f64;
    if scale == 1 || bytes >= u64::MAX as f64 {
        return Err(refused());
    }
    Ok(bytes as u64)
}

/// A size for people, in the largest unit that keeps it at least 1.
pub fn format(bytes: u64) -> String {
    const NAMES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let step = (bytes.max(1).ilog2() / 10).min(5);
    match step {
        0 => format!("{bytes} B"),
        _ => {
            let scaled = bytes as f64 / (1u64 << (10 * step)) as f64;
            format!("{scaled:.1} {}", NAMES[step as usize])
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        // Case: the text, its bytes
        let cases = [
            ("0", Some(0)),
            ("1500", Some(1500)),
            ("64MiB", Some(64 << 20)),
            ("64 mib", Some(64 << 20)),
            ("1G", Some(1 << 30)),
            ("1GB", Some(1_000_000_000)),
            ("1.5K", Some(1536)),
            ("2T", Some(2 << 40)),
            ("", None),
            ("G", None),
            ("1Q", None),
            ("-1", None),
            ("1.5", None),
            ("1..5K", None),
            ("99999999999P", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse(text).ok(), expected, "{text}");
        }
        assert!(parse("x").unwrap_err().contains("64MiB"));
    }

    #[test]
    fn sizes_are_written() {
        let cases = [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1536, "1.5 KiB"),
            (64 << 20, "64.0 MiB"),
            (u64::MAX, "16384.0 PiB"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(format(bytes), expected);
        }
    }
}
