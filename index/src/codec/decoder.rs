//! Decompression that is fed: it takes chunks as they come and says when it wants more.
//!
//! The codecs' libraries read from a [`Feed`], which answers `WouldBlock` while it is empty. Gzip's
//! and zstandard's keep their state over that error. Snappy's does at the edges of a framing chunk
//! only, so a framing chunk goes into its feed when it is there as a whole.

use bytes::{Buf, Bytes, BytesMut};
use flate2::bufread::MultiGzDecoder;
use protocol::Codec;
use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

/// The most bytes that one step gives.
const CHUNK_LEN_MAX: usize = 128 << 10;

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// A type byte and a length of three bytes, little endian (snappy's framing format).
const SNAPPY_HEADER_LEN: usize = 4;

/// Longer framing chunks than any that snappy makes: the library refuses them by their header, so
/// there is no need to have them whole.
const SNAPPY_CHUNK_LEN_MAX: usize = 128 << 10;

/// What came of one step of a [`Decoder`].
#[derive(Debug, PartialEq, Eq)]
pub enum Step {
    /// Decompressed bytes, at least one.
    Chunk(Bytes),
    /// Nothing until `feed` or `finish` is called.
    Hungry,
    /// The stream ended as its codec wants it to end.
    End,
}

/// Decompresses one stream of a codec. An error is final.
pub struct Decoder {
    inner: Inner,
    scratch: Box<[u8]>,
}

enum Inner {
    Plain(Feed),
    /// Gzip, if it begins as gzip does; else the store has undone it already (gazette-spec 3.7).
    /// Content that itself is a gzip file can't be told apart, and fails by its sum.
    Offloaded(Feed),
    Gzip(Box<MultiGzDecoder<Feed>>),
    Zstandard(zstd::stream::read::Decoder<'static, Feed>),
    Snappy {
        /// The begin of a framing chunk that is not there as a whole yet.
        pending: BytesMut,
        decoder: Box<snap::read::FrameDecoder<Feed>>,
    },
}

impl Decoder {
    pub fn new(codec: Codec) -> Self {
        let feed = Feed::default();
        let inner = match codec {
            Codec::None => Inner::Plain(feed),
            Codec::Gzip => Inner::gzip(feed),
            Codec::GzipOffload => Inner::Offloaded(feed),
            Codec::Zstandard => {
                let decoder = zstd::stream::read::Decoder::with_buffer(feed);
                Inner::Zstandard(decoder.expect("zstandard decodes without a dictionary"))
            }
            Codec::Snappy => Inner::Snappy {
                pending: BytesMut::new(),
                decoder: Box::new(snap::read::FrameDecoder::new(feed)),
            },
        };
        let scratch_len = if codec == Codec::None { 0 } else { CHUNK_LEN_MAX };
        Decoder { inner, scratch: vec![0; scratch_len].into_boxed_slice() }
    }

    /// Takes the next bytes of the compressed stream. Feed when a step is hungry: what is fed is
    /// kept until it is decompressed.
    pub fn feed(&mut self, chunk: Bytes) {
        if let Inner::Snappy { pending, decoder } = &mut self.inner {
            pending.extend_from_slice(&chunk);
            decoder.get_mut().push(split_whole_chunks(pending));
        } else {
            self.inner.feed_mut().push(chunk);
        }
    }

    /// Says that the compressed stream has no more bytes.
    pub fn finish(&mut self) {
        if let Inner::Snappy { pending, decoder } = &mut self.inner {
            decoder.get_mut().push(pending.split().freeze());
        }
        self.inner.feed_mut().is_finished = true;
    }

    /// Decompresses the next bytes, as far as they are there.
    pub fn step(&mut self) -> io::Result<Step> {
        if let Inner::Offloaded(feed) = &mut self.inner {
            let Some(is_gzip) = feed.begins_with(GZIP_MAGIC) else { return Ok(Step::Hungry) };
            let feed = std::mem::take(feed);
            self.inner = if is_gzip { Inner::gzip(feed) } else { Inner::Plain(feed) };
        }
        match &mut self.inner {
            Inner::Plain(feed) | Inner::Offloaded(feed) => Ok(feed.take(CHUNK_LEN_MAX)),
            Inner::Gzip(decoder) => step_of(decoder, &mut self.scratch),
            Inner::Zstandard(decoder) => step_of(decoder, &mut self.scratch),
            Inner::Snappy { decoder, .. } => step_of(decoder, &mut self.scratch),
        }
    }
}

impl Inner {
    fn gzip(feed: Feed) -> Self {
        Inner::Gzip(Box::new(MultiGzDecoder::new(feed)))
    }

    fn feed_mut(&mut self) -> &mut Feed {
        match self {
            Inner::Plain(feed) | Inner::Offloaded(feed) => feed,
            Inner::Gzip(decoder) => decoder.get_mut(),
            Inner::Zstandard(decoder) => decoder.get_mut(),
            Inner::Snappy { decoder, .. } => decoder.get_mut(),
        }
    }
}

/// Fills `scratch` from the decoder as far as its feed reaches.
fn step_of(decoder: &mut impl Read, scratch: &mut [u8]) -> io::Result<Step> {
    let mut filled = 0;
    while filled < scratch.len() {
        match decoder.read(&mut scratch[filled..]) {
            Ok(0) if filled == 0 => return Ok(Step::End),
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                if filled == 0 {
                    return Ok(Step::Hungry);
                }
                break;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(Step::Chunk(Bytes::copy_from_slice(&scratch[..filled])))
}

/// Takes the whole framing chunks off the front of `pending`.
fn split_whole_chunks(pending: &mut BytesMut) -> Bytes {
    let mut whole = 0;
    while let Some(header) = pending.get(whole..whole + SNAPPY_HEADER_LEN) {
        let len =
            usize::from(header[1]) | usize::from(header[2]) << 8 | usize::from(header[3]) << 16;
        let end = whole + SNAPPY_HEADER_LEN + len;
        if len > SNAPPY_CHUNK_LEN_MAX {
            whole = pending.len();
            break;
        }
        if end > pending.len() {
            break;
        }
        whole = end;
    }
    pending.split_to(whole).freeze()
}

/// Bytes that came and were not read yet. Reads answer `WouldBlock` when there are none, until no
/// more will come.
#[derive(Debug, Default)]
struct Feed {
    // Invariant: no chunk is empty.
    chunks: VecDeque<Bytes>,
    is_finished: bool,
}

impl Feed {
    fn push(&mut self, chunk: Bytes) {
        if !chunk.is_empty() {
            self.chunks.push_back(chunk);
        }
    }

    /// The next bytes as they are, without a copy.
    fn take(&mut self, len_max: usize) -> Step {
        let Some(front) = self.chunks.front_mut() else {
            return if self.is_finished { Step::End } else { Step::Hungry };
        };
        let taken = front.split_to(front.len().min(len_max));
        if front.is_empty() {
            self.chunks.pop_front();
        }
        Step::Chunk(taken)
    }

    /// Whether the first two bytes are these; `None` while there are fewer and more may come.
    fn begins_with(&self, magic: [u8; 2]) -> Option<bool> {
        let mut first = self.chunks.iter().flatten();
        match (first.next(), first.next()) {
            (Some(one), Some(two)) => Some([*one, *two] == magic),
            _ => self.is_finished.then_some(false),
        }
    }
}

impl BufRead for Feed {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        match self.chunks.front() {
            Some(front) => Ok(front),
            None if self.is_finished => Ok(&[]),
            None => Err(io::ErrorKind::WouldBlock.into()),
        }
    }

    fn consume(&mut self, len: usize) {
        if let Some(front) = self.chunks.front_mut() {
            front.advance(len);
            if front.is_empty() {
                self.chunks.pop_front();
            }
        }
    }
}

impl Read for Feed {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let front = self.fill_buf()?;
        let len = front.len().min(buf.len());
        buf[..len].copy_from_slice(&front[..len]);
        self.consume(len);
        Ok(len)
    }
}
