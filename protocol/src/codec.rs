//! How a fragment's bytes are compressed in its store.

use crate::Invalid;

/// A compression codec, numbered as on the wire (`CompressionCodec`, gazette-spec 1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i32)]
pub enum Codec {
    /// As it is.
    None = 1,
    Gzip = 2,
    Zstandard = 3,
    /// Snappy's framing format.
    Snappy = 4,
    /// Gzip that the store itself undoes on the way out (GCS decompressive transcoding).
    GzipOffload = 5,
}

impl Codec {
    pub const ALL: [Codec; 5] =
        [Codec::None, Codec::Gzip, Codec::Zstandard, Codec::Snappy, Codec::GzipOffload];

    /// The wire's number.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The name in YAML, JSON and flags.
    pub const fn name(self) -> &'static str {
        match self {
            Codec::None => "NONE",
            Codec::Gzip => "GZIP",
            Codec::Zstandard => "ZSTANDARD",
            Codec::Snappy => "SNAPPY",
            Codec::GzipOffload => "GZIP_OFFLOAD_DECOMPRESSION",
        }
    }
}

impl TryFrom<i32> for Codec {
    type Error = Invalid;

    fn try_from(number: i32) -> Result<Self, Invalid> {
        Codec::ALL
            .into_iter()
            .find(|codec| codec.number() == number)
            .ok_or_else(|| Invalid::new(format!("invalid CompressionCodec ({number})")))
    }
}

impl std::str::FromStr for Codec {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Self, Invalid> {
        Codec::ALL
            .into_iter()
            .find(|codec| codec.name() == name)
            .ok_or_else(|| Invalid::new(format!("invalid CompressionCodec ({name})")))
    }
}

impl std::fmt::Display for Codec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_names_are_those_of_the_wire() {
        use crate::wire::gazette::CompressionCodec as Wire;
        for codec in Codec::ALL {
            let wire = Wire::try_from(codec.number()).expect("known to the wire");
            assert_eq!(wire.as_str_name(), codec.name());
            assert_eq!(Codec::try_from(codec.number()), Ok(codec));
            assert_eq!(codec.name().parse(), Ok(codec));
        }
        // Case: the wire's INVALID and what lies past the last.
        assert_eq!(Codec::try_from(0).unwrap_err().to_string(), "invalid CompressionCodec (0)");
        assert!(Codec::try_from(6).is_err());
        assert!("gzip".parse::<Codec>().is_err());
    }
}
