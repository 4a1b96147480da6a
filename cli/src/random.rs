//! Chance: the one source of it, from which the rest of the program is handed what it needs.

use crate::Error;
use std::fs::File;
use std::io::Read;

/// Bytes that nobody else has.
pub fn bytes<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    let mut source = File::open("/dev/urandom").map_err(Error::io("open /dev/urandom"))?;
    source.read_exact(&mut bytes).map_err(Error::io("read /dev/urandom"))?;
    Ok(bytes)
}

/// A number of 64 bits.
pub fn number() -> Result<u64, Error> {
    bytes().map(u64::from_le_bytes)
}
