//! Input as records: lines, or Gazette's fixed frames (gazette-spec 7.3), found as it comes.

use crate::Error;
use bytes::{Buf, Bytes, BytesMut};

/// How records are told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// Each ends with a newline.
    Lines,
    /// Each follows a header: four bytes that mark it, and its length.
    Fixed,
}

/// What a fixed frame begins with.
const MAGIC: [u8; 4] = [0x66, 0x33, 0x93, 0x36];
const HEADER_LEN: usize = 8;

/// The longest record: it is kept in memory until it is whole.
const RECORD_MAX: usize = 64 << 20;

/// Input that is gathered until records are whole. Its memory is bounded by one record and what was
/// pushed since.
pub struct Records {
    framing: Framing,
    kept: BytesMut,
    /// Bytes of `kept` in which no newline is.
    searched: usize,
    /// Bytes of the input before `kept`.
    before: u64,
}

/// One record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// As it stands in the input: with its newline, or with its header.
    pub framed: Bytes,
    payload: std::ops::Range<usize>,
}

impl Record {
    /// Without what frames it.
    pub fn payload(&self) -> &[u8] {
        &self.framed[self.payload.clone()]
    }
}

impl Records {
    pub fn new(framing: Framing) -> Self {
        Records { framing, kept: BytesMut::new(), searched: 0, before: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.kept.extend_from_slice(bytes);
    }

    /// The next record that is whole.
    pub fn next(&mut self) -> Result<Option<Record>, Error> {
        let len = match self.framing {
            Framing::Lines => self.line_len(),
            Framing::Fixed => self.frame_len()?.filter(|len| *len <= self.kept.len()),
        };
        match len {
            Some(len) => Ok(Some(self.take(len))),
            None if self.kept.len() > RECORD_MAX => Err(self.refused("a record is too long")),
            None => Ok(None),
        }
    }

    /// What is left when the input has ended: a last line without its newline, which it gets here.
    pub fn last(mut self) -> Result<Option<Record>, Error> {
        if self.kept.is_empty() {
            return Ok(None);
        }
        match self.framing {
            Framing::Lines => {
                self.kept.extend_from_slice(b"\n");
                self.next()
            }
            Framing::Fixed => Err(self.refused("it ends within a frame")),
        }
    }

    fn line_len(&mut self) -> Option<usize> {
        let end = self.kept[self.searched..].iter().position(|byte| *byte == b'\n');
        match end {
            Some(end) => Some(self.searched + end + 1),
            None => {
                self.searched = self.kept.len();
                None
            }
        }
    }

    /// The length of the frame that begins here, if its header is there.
    fn frame_len(&self) -> Result<Option<usize>, Error> {
        let begins = self.kept.len().min(MAGIC.len());
        if self.kept[..begins] != MAGIC[..begins] {
            return Err(self.refused("no frame begins there (66 33 93 36 in hex)"));
        }
        if self.kept.len() < HEADER_LEN {
            return Ok(None);
        }
        let payload = (&self.kept[MAGIC.len()..HEADER_LEN]).get_u32_le();
        let len = HEADER_LEN + usize::try_from(payload).expect("32 bits fit");
        if len > RECORD_MAX {
            return Err(self.refused("a record is too long"));
        }
        Ok(Some(len))
    }

    fn take(&mut self, len: usize) -> Record {
        let framed = self.kept.split_to(len).freeze();
        self.searched = 0;
        self.before += len as u64;
        let payload = match self.framing {
            Framing::Lines => 0..len - 1,
            Framing::Fixed => HEADER_LEN..len,
        };
        Record { framed, payload }
    }

    fn refused(&self, why: &str) -> Error {
        Error::Record(self.before, format!("{why} (at most {} MiB)", RECORD_MAX >> 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(framing: Framing, pieces: &[&[u8]]) -> Result<Vec<Vec<u8>>, Error> {
        let mut records = Records::new(framing);
        let mut found = Vec::new();
        for piece in pieces {
            records.push(piece);
            while let Some(record) = records.next()? {
                found.push(record.payload().to_vec());
            }
        }
        found.extend(records.last()?.map(|record| record.payload().to_vec()));
        Ok(found)
    }

    fn frame(payload: &[u8]) -> Vec<u8> {
        let len = u32::try_from(payload.len()).expect("short").to_le_bytes();
        [&MAGIC[..], &len, payload].concat()
    }

    #[test]
    fn lines_are_found_across_pieces() {
        // Case: the pieces of the input, the lines
        type Case<'a> = (&'a [&'a [u8]], &'a [&'a [u8]]);
        let cases: [Case; 5] = [
            (&[], &[]),
            (&[b"one\ntwo\n"], &[b"one", b"two"]),
            (&[b"on", b"e\n\ntw", b"o"], &[b"one", b"", b"two"]),
            (&[b"\n"], &[b""]),
            (&[b"last"], &[b"last"]),
        ];
        for (pieces, expected) in cases {
            assert_eq!(all(Framing::Lines, pieces).expect("lines"), expected, "{pieces:?}");
        }
    }

    #[test]
    fn frames_are_found_across_pieces() {
        let input = [frame(b"one"), frame(b""), frame(b"three\n")].concat();
        let expected: [&[u8]; 3] = [b"one", b"", b"three\n"];
        for at in 0..input.len() {
            let found = all(Framing::Fixed, &[&input[..at], &input[at..]]).expect("frames");
            assert_eq!(found, expected, "cut at {at}");
        }
        // Case: what is no frame, the byte at which it is told
        let long = [&MAGIC[..], &u32::MAX.to_le_bytes()].concat();
        let cases = [
            (b"text".to_vec(), "byte 0"),
            ([frame(b"x"), b"fext".to_vec()].concat(), "byte 9"),
            (frame(b"cut")[..9].to_vec(), "ends within a frame"),
            (long, "too long"),
        ];
        for (input, expected) in cases {
            let error = all(Framing::Fixed, &[&input]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
