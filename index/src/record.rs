//! The entries of the commit log: what they say, and how they are framed.
//!
//! A frame is 32 bytes and a body, padded with zeros to eight:
//!
//! ```text
//! 0  magic and version   4 bytes  "CR1" and the version
//! 4  checksum            4        CRC32C of all that follows, padding left out
//! 8  position            8        where the frame lies: segment number << 32 | offset
//! 16 synced              8        how far the log was synced when this was written
//! 24 chain               4        checksum of the frame before
//! 28 length              4        of the body
//! 32 body                         a `Record` in protobuf encoding
//! ```
//!
//! The position salts the checksum, so that what a recycled segment still holds never verifies. The
//! chain says whether two frames were written one after the other.

mod sane;

use bytes::{Bytes, BytesMut};
use prost::Message;

/// The version of the whole data directory; a newer one is refused by name.
pub const FORMAT: u32 = 1;

const MAGIC: [u8; 4] = *b"CR1\x01";

/// Bytes of a frame before its body.
pub const FRAME_LEN: usize = 32;

/// A place in the commit log. Ordered as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

impl Position {
    pub fn new(segment: u32, offset: u32) -> Self {
        Position(u64::from(segment) << 32 | u64::from(offset))
    }

    pub fn segment(self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub fn offset(self) -> u32 {
        self.0 as u32
    }
}

impl std::fmt::Display for Position {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:08x}+{}", self.segment(), self.offset())
    }
}

/// One entry.
#[derive(Clone, PartialEq, Message)]
pub struct Record {
    #[prost(oneof = "Body", tags = "1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15")]
    pub body: Option<Body>,
}

/// What an entry says. All but `Segment` and `Stop` are of one journal.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Body {
    #[prost(message, tag = "1")]
    Segment(Segment),
    #[prost(message, tag = "2")]
    Created(Created),
    #[prost(message, tag = "3")]
    Append(Append),
    #[prost(message, tag = "4")]
    Rolled(Rolled),
    #[prost(message, tag = "5")]
    Persisted(Persisted),
    #[prost(message, tag = "6")]
    Evicted(Mark),
    #[prost(message, tag = "7")]
    Trimmed(Mark),
    #[prost(message, tag = "8")]
    Lost(Mark),
    #[prost(message, tag = "9")]
    Damaged(Mark),
    #[prost(message, tag = "10")]
    Adopted(Mark),
    #[prost(message, tag = "11")]
    Synced(Synced),
    #[prost(message, tag = "12")]
    Ceiling(Mark),
    #[prost(message, tag = "13")]
    Gathered(Mark),
    #[prost(message, tag = "14")]
    Deleted(Mark),
    #[prost(message, tag = "15")]
    Stop(Stop),
}

/// Opens a segment, and closes the one before at the place where it really ends.
#[derive(Clone, PartialEq, Message)]
pub struct Segment {
    #[prost(uint32, tag = "1")]
    pub format: u32,
    #[prost(string, tag = "2")]
    pub boot_id: String,
    /// Where the segment before ends, as a position; what lies beyond there was cut.
    #[prost(uint64, tag = "3")]
    pub previous_end: u64,
}

/// A journal's life begins.
#[derive(Clone, PartialEq, Message)]
pub struct Created {
    #[prost(fixed64, tag = "1")]
    pub life: u64,
    #[prost(string, tag = "2")]
    pub name: String,
}

/// An append. Its content is here, or in a staging file.
#[derive(Clone, PartialEq, Message)]
pub struct Append {
    #[prost(fixed64, tag = "1")]
    pub life: u64,
    #[prost(int64, tag = "2")]
    pub begin: i64,
    #[prost(uint64, tag = "3")]
    pub len: u64,
    #[prost(uint64, tag = "4")]
    pub time_us: u64,
    /// CRC32C of the content.
    #[prost(fixed32, tag = "5")]
    pub crc: u32,
    #[prost(bytes = "bytes", tag = "6")]
    pub content: Bytes,
    #[prost(message, optional, tag = "7")]
    pub staged: Option<Staged>,
    #[prost(message, optional, tag = "8")]
    pub writer: Option<Writer>,
    /// In full when they changed.
    #[prost(message, optional, tag = "9")]
    pub registers: Option<Registers>,
    /// Revision of the route under which the pipeline synchronised (replication).
    #[prost(int64, tag = "10")]
    pub epoch: i64,
    /// The broker that ordered the append (replication).
    #[prost(string, tag = "11")]
    pub orderer: String,
    /// Where the spool begins, so that a lost roll is seen by the next append.
    #[prost(int64, tag = "12")]
    pub spool_begin: i64,
    /// The spool's codec, as numbered on the wire.
    #[prost(int32, tag = "13")]
    pub codec: i32,
}

/// Where staged content lies.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Staged {
    #[prost(uint64, tag = "1")]
    pub file: u64,
    #[prost(uint64, tag = "2")]
    pub offset: u64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Writer {
    #[prost(bytes = "vec", tag = "1")]
    pub id: Vec<u8>,
    #[prost(uint64, tag = "2")]
    pub sequence: u64,
}

/// A label set in protobuf encoding (`protocol.LabelSet`).
#[derive(Clone, PartialEq, Message)]
pub struct Registers {
    #[prost(bytes = "vec", tag = "1")]
    pub encoded: Vec<u8>,
}

/// The spool was closed at `end`.
#[derive(Clone, PartialEq, Message)]
pub struct Rolled {
    #[prost(fixed64, tag = "1")]
    pub life: u64,
    #[prost(int64, tag = "2")]
    pub begin: i64,
    #[prost(int64, tag = "3")]
    pub end: i64,
    /// CRC32C of the closed span.
    #[prost(fixed32, tag = "4")]
    pub crc: u32,
    #[prost(uint64, tag = "5")]
    pub first_append_us: u64,
    #[prost(int32, tag = "6")]
    pub codec: i32,
}

/// A closed span is in a store, durable and confirmed.
#[derive(Clone, PartialEq, Message)]
pub struct Persisted {
    #[prost(fixed64, tag = "1")]
    pub life: u64,
    #[prost(int64, tag = "2")]
    pub begin: i64,
    #[prost(int64, tag = "3")]
    pub end: i64,
    #[prost(bytes = "vec", tag = "4")]
    pub sum: Vec<u8>,
    #[prost(string, tag = "5")]
    pub store: String,
    #[prost(string, tag = "6")]
    pub postfix: String,
    #[prost(int64, tag = "7")]
    pub mod_time: i64,
    #[prost(int32, tag = "8")]
    pub codec: i32,
}

/// Something about `begin..end` of a journal; marks of one offset set only `end`.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Mark {
    #[prost(fixed64, tag = "1")]
    pub life: u64,
    #[prost(int64, tag = "2")]
    pub begin: i64,
    #[prost(int64, tag = "3")]
    pub end: i64,
}

/// The spool's checksum at one moment, by which persister and `inspect` know its bytes.
#[derive(Clone, Copy, PartialEq, Message)]
pub struct Synced {
    #[prost(fixed64, tag = "1")]
    pub life: u64,
    #[prost(int64, tag = "2")]
    pub begin: i64,
    #[prost(int64, tag = "3")]
    pub end: i64,
    /// CRC32C of `begin..end`, which is the spool up to this moment.
    #[prost(fixed32, tag = "4")]
    pub crc: u32,
}

/// A clean stop: nothing was under way.
#[derive(Clone, PartialEq, Message)]
pub struct Stop {
    #[prost(string, tag = "1")]
    pub boot_id: String,
}

/// A frame that verified.
#[derive(Debug, Clone)]
pub struct Frame {
    pub position: Position,
    pub synced: Position,
    /// Of the frame before, as this one claims.
    pub chain: u32,
    pub checksum: u32,
    pub body: Body,
    /// Bytes to the next frame.
    pub len: u32,
}

/// Bytes that a record takes in the log.
pub fn framed_len(record: &Record) -> u32 {
    let len = FRAME_LEN + record.encoded_len();
    u32::try_from(len.next_multiple_of(8)).expect("records are far below 4 GiB")
}

/// Frames `record`. Returns the bytes and their checksum, which the next frame chains to.
pub fn encode(record: &Record, position: Position, synced: Position, chain: u32) -> (Bytes, u32) {
    let body_len = record.encoded_len();
    let mut frame = BytesMut::with_capacity(framed_len(record) as usize);
    frame.extend_from_slice(&MAGIC);
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(&position.0.to_le_bytes());
    frame.extend_from_slice(&synced.0.to_le_bytes());
    frame.extend_from_slice(&chain.to_le_bytes());
    frame.extend_from_slice(&(body_len as u32).to_le_bytes());
    record.encode(&mut frame).expect("a BytesMut grows");
    let checksum = crc32c::crc32c(&frame[8..]);
    frame[4..8].copy_from_slice(&checksum.to_le_bytes());
    frame.resize(framed_len(record) as usize, 0);
    (frame.freeze(), checksum)
}

/// The first place in `bytes`, a multiple of eight, at which a frame may begin: true of every one.
pub fn next_start(bytes: &[u8]) -> Option<usize> {
    memchr::memmem::find_iter(bytes, &MAGIC).find(|place| place % 8 == 0)
}

/// Whether a frame was begun here that was to lie at `position`, whether it verifies or not.
pub fn is_begun(bytes: &[u8], position: Position) -> bool {
    bytes.starts_with(&MAGIC) && bytes.get(8..16) == Some(&position.0.to_le_bytes())
}

/// Bytes of the frame that begins here, as it says itself; padding left out.
pub fn claimed_len(bytes: &[u8]) -> Option<usize> {
    let body_len = bytes.starts_with(&MAGIC).then(|| word(bytes, 28))??;
    FRAME_LEN.checked_add(body_len as usize)
}

/// The version of a frame at the start of `bytes` that a newer release wrote at `position`: it
/// verifies, and all that is known of it is where its checksum lies.
pub fn newer_version(bytes: &Bytes, position: Position) -> Option<u32> {
    let version = *bytes.strip_prefix(&MAGIC[..3])?.first()?;
    let checked = bytes.get(8..FRAME_LEN.checked_add(word(bytes, 28)? as usize)?)?;
    let is_frame = long(bytes, 8)? == position.0 && crc32c::crc32c(checked) == word(bytes, 4)?;
    (is_frame && version > MAGIC[3]).then_some(version.into())
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let word: [u8; 4] = bytes.get(at..at + 4)?.try_into().ok()?;
    Some(u32::from_le_bytes(word))
}

fn long(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from(word(bytes, at)?) | u64::from(word(bytes, at + 4)?) << 32)
}

/// The frame at `from` in `window`, if one verifies there that was written at `position`. Its
/// content shares the window's memory.
pub fn decode(window: &Bytes, from: usize, position: Position) -> Option<Frame> {
    let bytes = window.get(from..)?;
    let word = |at: usize| word(bytes, at);
    let long = |at: usize| long(bytes, at);
    if !is_begun(bytes, position) {
        return None;
    }
    let end = claimed_len(bytes)?;
    let checksum = word(4)?;
    if crc32c::crc32c(bytes.get(8..end)?) != checksum {
        return None;
    }
    let body = Record::decode(window.slice(from + FRAME_LEN..from + end))
        .ok()?
        .body
        .filter(sane::is_sane)?;
    Some(Frame {
        position,
        synced: Position(long(16)?),
        chain: word(24)?,
        checksum,
        body,
        len: u32::try_from(end.next_multiple_of(8)).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Record {
        let append =
            Append { life: 7, len: 3, content: Bytes::from_static(b"abc"), ..<_>::default() };
        Record { body: Some(Body::Append(append)) }
    }

    #[test]
    fn a_frame_verifies_only_where_it_was_written() {
        let at = Position::new(3, 64);
        let (bytes, checksum) = encode(&sample(), at, Position::new(2, 8), 99);
        assert_eq!(bytes.len() % 8, 0);
        let frame = decode(&bytes, 0, at).expect("just framed");
        assert_eq!((frame.checksum, frame.chain), (checksum, 99));
        assert_eq!(frame.body, sample().body.expect("has one"));
        assert!(decode(&bytes, 0, Position::new(3, 72)).is_none());
    }

    #[test]
    fn a_frame_is_found_and_read_in_the_middle() {
        let at = Position::new(3, 64);
        let (frame, _) = encode(&sample(), at, Position::default(), 0);
        // The magic where no frame can lie, twice, and zeros as in a segment that is not full.
        let mut window = [&[0; 40], &MAGIC[..], &[0; 10], &MAGIC[..], &[0; 38]].concat();
        let place = window.len();
        window.extend_from_slice(&frame);
        window.extend_from_slice(&[0; 80]);
        assert_eq!(next_start(&window), Some(40));
        assert_eq!(next_start(&window[48..]), Some(place - 48));
        assert_eq!(next_start(&window[place + 8..]), None);
        let found = decode(&window.into(), place, at).expect("it is there");
        assert_eq!(found.body, sample().body.expect("has one"));
    }

    #[test]
    fn any_flipped_bit_or_cut_byte_is_seen() {
        let at = Position::new(1, 0);
        let (bytes, _) = encode(&sample(), at, Position::default(), 0);
        let used = FRAME_LEN + sample().encoded_len();
        for bit in 0..used * 8 {
            let mut bad = bytes.to_vec();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&bad.into(), 0, at).is_none(), "bit {bit}");
        }
        for len in 0..used {
            assert!(decode(&bytes.slice(..len), 0, at).is_none(), "cut at {len}");
        }
    }
}
