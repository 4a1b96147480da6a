//! Names that are written, read, and ignored.

use super::*;

const SUM: &str = "0102030405060708090a0b0c0d0e0f1011121314";

fn fragment(codec: Codec, postfix: &str) -> Fragment {
    Fragment {
        journal: Journal::new("a/journal").unwrap(),
        span: Span::new(Offset::new(1234567890).unwrap(), Offset::MAX).unwrap(),
        sum: Sum::from_hex(SUM).unwrap(),
        codec,
        backing_store: String::new(),
        mod_time: 0,
        path_postfix: postfix.to_owned(),
    }
}

#[test]
fn content_names_are_gazettes() {
    let stem = format!("00000000499602d2-7fffffffffffffff-{SUM}");
    let cases = [
        (Codec::None, ".raw"),
        (Codec::Gzip, ".gz"),
        (Codec::Zstandard, ".zst"),
        (Codec::Snappy, ".sz"),
        (Codec::GzipOffload, ""),
    ];
    for (codec, extension) in cases {
        assert_eq!(content_name(&fragment(codec, "")), format!("{stem}{extension}"));
        assert_eq!(path(&fragment(codec, "")), format!("a/journal/{stem}{extension}"));
    }
}

#[test]
fn paths_hold_journal_postfix_and_every_extension() {
    let stem = format!("00000000499602d2-7fffffffffffffff-{SUM}");
    let paths: Vec<String> = super::paths(&fragment(Codec::Gzip, "day=1/h=2")).collect();
    assert_eq!(
        paths,
        [format!("a/journal/day=1/h=2/{stem}.gz"), format!("a/journal/day=1/h=2/{stem}.gzip")]
    );
    assert_eq!(
        super::paths(&fragment(Codec::GzipOffload, "")).collect::<Vec<_>>(),
        [format!("a/journal/{stem}"), format!("a/journal/{stem}.gzod")]
    );
}

#[test]
fn every_written_name_parses_back() {
    for codec in Codec::ALL {
        for postfix in ["", "x", "date=2026-11-29/hour=17", "with.dot/y"] {
            let fragment = fragment(codec, postfix);
            for path in super::paths(&fragment) {
                let below = path.strip_prefix("a/journal/").unwrap();
                let named = parse(below).unwrap();
                let found = named.into_fragment(fragment.journal.clone(), String::new(), 0);
                assert_eq!(found, fragment, "{path}");
            }
        }
    }
}

#[test]
fn lenient_names_parse() {
    // Case: no zero padding, and the extension's case.
    let named = parse(&format!("1f-ABC-{SUM}.GZip")).unwrap();
    assert_eq!(named.span, Span::new(Offset::from(0x1f), Offset::from(0xabc)).unwrap());
    assert_eq!(named.codec, Codec::Gzip);
    // Case: an empty span.
    assert!(parse(&format!("1-1-{SUM}")).unwrap().span.is_empty());
}

#[test]
fn other_names_are_refused() {
    let cases = [
        // Case: not ours at all.
        "",
        "README.md",
        "index.raw",
        // Case: an extension that no codec has, and a dot alone.
        &format!("0-1-{SUM}.txt"),
        &format!("0-1-{SUM}."),
        // Case: too few and too many fields.
        &format!("0-{SUM}.raw"),
        &format!("0-1-2-{SUM}.raw"),
        // Case: begin above end.
        &format!("2-1-{SUM}.raw"),
        // Case: offsets that are empty, signed, no hex, or above 2^63 - 1.
        &format!("-1-{SUM}.raw"),
        &format!("+0-1-{SUM}.raw"),
        &format!("0-xyz-{SUM}.raw"),
        &format!("0-8000000000000000-{SUM}.raw"),
        // Case: a sum of another length.
        "0-1-0102.raw",
        // Case: a postfix that is no clean path.
        &format!("a//b/0-1-{SUM}.raw"),
        &format!("../0-1-{SUM}.raw"),
        &format!("{}/0-1-{SUM}.raw", "x".repeat(513)),
    ];
    for name in cases {
        assert!(parse(name).is_err(), "{name}");
    }
}
