//! The SHA1 by which a fragment's content is named.

use crate::{Invalid, wire::gazette};

/// A SHA1 digest of uncompressed content. All zero for an empty fragment (gazette-spec 1.3), which
/// is not the digest of the empty string.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sum([u8; 20]);

impl Sum {
    pub const ZERO: Sum = Sum([0; 20]);

    pub const fn new(bytes: [u8; 20]) -> Self {
        Sum(bytes)
    }

    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    pub fn is_zero(&self) -> bool {
        self.0 == [0; 20]
    }

    /// Reads 40 hex digits of either case.
    pub fn from_hex(text: &str) -> Result<Self, Invalid> {
        let bad = || Invalid::new(format!("invalid SHA1 ({text}; expected 40 hex digits)"));
        if text.len() != 40 || !text.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(bad());
        }
        let mut bytes = [0; 20];
        for (byte, at) in bytes.iter_mut().zip((0..40).step_by(2)) {
            *byte = u8::from_str_radix(&text[at..at + 2], 16).map_err(|_| bad())?;
        }
        Ok(Sum(bytes))
    }
}

impl std::fmt::Display for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl std::fmt::Debug for Sum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

/// The digest's bytes are packed big-endian (gazette-spec 1.3).
impl From<gazette::Sha1Sum> for Sum {
    fn from(sum: gazette::Sha1Sum) -> Self {
        let mut bytes = [0; 20];
        bytes[..8].copy_from_slice(&sum.part1.to_be_bytes());
        bytes[8..16].copy_from_slice(&sum.part2.to_be_bytes());
        bytes[16..].copy_from_slice(&sum.part3.to_be_bytes());
        Sum(bytes)
    }
}

impl From<Sum> for gazette::Sha1Sum {
    fn from(Sum(bytes): Sum) -> Self {
        let number = |part: &[u8]| part.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
        gazette::Sha1Sum {
            part1: number(&bytes[..8]),
            part2: number(&bytes[8..16]),
            part3: u32::try_from(number(&bytes[16..])).expect("four bytes are left"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_packed_big_endian() {
        let sum = Sum::from_hex("000102030405060708090a0b0c0d0e0f10111213").expect("valid");
        let message = gazette::Sha1Sum {
            part1: 0x0001020304050607,
            part2: 0x08090a0b0c0d0e0f,
            part3: 0x10111213,
        };
        assert_eq!(gazette::Sha1Sum::from(sum), message);
        assert_eq!(Sum::from(message), sum);
        assert_eq!(Sum::from(gazette::Sha1Sum::default()), Sum::ZERO);
        assert_eq!(sum.to_string(), "000102030405060708090a0b0c0d0e0f10111213");
        assert!(Sum::from_hex("+001").is_err());
    }
}
