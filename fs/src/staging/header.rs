//! The first page of a draft: what the content below it is, as text that people can read too.

use client::{Writer, crc32c_append};
use protocol::{Journal, Life};
use std::fmt::Write;

/// The bytes of a header, filled up with newlines. It lies within the first page of its file, so
/// that a process that is killed leaves the old or the new one.
pub(crate) const HEADER_LEN: usize = 1024;

const MAGIC: &str = "courant draft 1";

/// The version in it.
pub(crate) const VERSION: u32 = 1;

/// How what is written through a handle becomes appends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// Whole lines only.
    Lines,
    /// All that was written, as one.
    Whole,
}

/// What a draft is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub manner: Manner,
    pub journal: Journal,
    /// `None` while the journal is not there: its first append creates it.
    pub life: Option<Life>,
    /// Who appends the content, and as which of its appends: what makes it happen once.
    pub writer: Writer,
    /// Whether an append of exactly this content may be on its way, or is to be made.
    pub is_sealed: bool,
    /// Whether the append has to be synced.
    pub is_disk: bool,
    pub mark: Mark,
}

/// A length of content, and the CRC32C of its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mark {
    pub len: u64,
    pub crc: u32,
}

impl Mark {
    /// With more bytes behind it.
    pub fn plus(self, content: &[u8]) -> Mark {
        let crc = crc32c_append(self.crc, content);
        Mark { len: self.len + content.len() as u64, crc }
    }
}

impl Header {
    /// Whether there is no content.
    pub fn is_empty(&self) -> bool {
        self.mark.len == 0
    }

    pub fn encode(&self) -> [u8; HEADER_LEN] {
        let life = self.life.map_or("-".to_owned(), |life| life.get().to_string());
        let id = format!("{:032x}", u128::from_be_bytes(self.writer.id));
        let lines: [(&str, &dyn std::fmt::Display); 9] = [
            ("manner", &self.manner.as_str()),
            ("journal", &self.journal),
            ("life", &life),
            ("writer", &id),
            ("sequence", &self.writer.sequence),
            ("sealed", &self.is_sealed),
            ("disk", &self.is_disk),
            ("length", &self.mark.len),
            ("crc", &self.mark.crc),
        ];
        let mut text = format!("{MAGIC}\n");
        for (name, value) in lines {
            writeln!(text, "{name} {value}").expect("a string takes every byte");
        }
        text.push_str("header ");
        let sum = crc32c_append(0, text.as_bytes());
        writeln!(text, "{sum}").expect("a string takes every byte");
        let mut bytes = [b'\n'; HEADER_LEN];
        // A journal's name has at most 512 bytes (gazette-spec 1.4), the rest has some 300.
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        bytes
    }

    /// The version of a header that a newer release wrote; its sum has to be right.
    pub fn newer_version(bytes: &[u8]) -> Option<u32> {
        let first = verified(bytes)?.lines().next()?;
        let version = first.strip_prefix("courant draft ")?.parse().ok()?;
        Some(version).filter(|version| *version > VERSION)
    }

    /// `None` for what no header is.
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        let text = verified(bytes)?;
        let mut lines = text.lines();
        if lines.next()? != MAGIC {
            return None;
        }
        let mut next = |name: &str| lines.next()?.strip_prefix(name)?.strip_prefix(' ');
        Some(Header {
            manner: Manner::of(next("manner")?)?,
            journal: next("journal")?.parse().ok()?,
            life: match next("life")? {
                "-" => None,
                life => Some(Life::new(life.parse().ok()?)),
            },
            writer: Writer {
                id: u128::from_str_radix(next("writer")?, 16).ok()?.to_be_bytes(),
                sequence: next("sequence")?.parse().ok()?,
            },
            is_sealed: next("sealed")?.parse().ok()?,
            is_disk: next("disk")?.parse().ok()?,
            mark: Mark { len: next("length")?.parse().ok()?, crc: next("crc")?.parse().ok()? },
        })
    }
}

/// The text of a header whose sum is right.
fn verified(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let end = text.find("\nheader ")? + "\nheader ".len();
    let sum: u32 = text[end..].trim_end().parse().ok()?;
    (sum == crc32c_append(0, &text.as_bytes()[..end])).then_some(text)
}

impl Manner {
    pub fn as_str(self) -> &'static str {
        match self {
            Manner::Lines => "lines",
            Manner::Whole => "whole",
        }
    }

    fn of(text: &str) -> Option<Manner> {
        [Manner::Lines, Manner::Whole].into_iter().find(|manner| manner.as_str() == text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_as_it_was_written() {
        let long = format!("local/{}", "x".repeat(506));
        // Case: manner, journal, life, sealed
        let cases = [
            (Manner::Lines, "local/log", None, false),
            (Manner::Whole, long.as_str(), Some(Life::new(u64::MAX >> 11)), true),
        ];
        for (manner, journal, life, is_sealed) in cases {
            let header = Header {
                manner,
                journal: journal.parse().unwrap(),
                life,
                writer: Writer { id: [0xfe; 16], sequence: u64::MAX },
                is_sealed,
                is_disk: !is_sealed,
                mark: Mark::default().plus(b"content"),
            };
            let bytes = header.encode();
            assert_eq!(Header::decode(&bytes), Some(header));
            // Case: each of its bytes is another
            for at in 0..bytes.iter().rposition(|byte| *byte != b'\n').unwrap() {
                let mut damaged = bytes;
                damaged[at] ^= 1;
                assert_eq!(Header::decode(&damaged), None, "byte {at}");
            }
        }
        assert_eq!(Header::decode(&[0; HEADER_LEN]), None);
    }
}
