//! Chance: the one source of it, from which the rest of the program is handed what it needs.

use crate::Error;
use rustix::rand::{GetRandomFlags, getrandom};

/// Bytes that nobody else has.
pub fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let mut filled = 0;
    while filled < N {
        // The system's own source, without a file: it is there in any chroot.
        let got = getrandom(&mut bytes[filled..], GetRandomFlags::empty());
        filled +=
            got.map_err(|error| Error::io("ask the system for random bytes")(error.into()))?;
    }
    Ok(bytes)
}

/// A number of 64 bits.
pub fn number() -> Result<u64, Error> {
    bytes().map(u64::from_le_bytes)
}
