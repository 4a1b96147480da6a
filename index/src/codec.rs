//! Compressing and decompressing fragments as streams (gazette-spec 3.7).
//!
//! [`Compressor`] is a writer over a writer. [`Decoder`] is fed instead of reading: it never waits
//! for input, so one future can fetch and decompress in turn, on any runtime and without a thread.

mod decoder;

pub use decoder::{Decoder, Step};

use flate2::write::GzEncoder;
use protocol::Codec;
use std::io::{self, Write};

/// Zstandard's own default. Gazette takes 5, which saves a few percent of space for about twice the
/// time; here appends run beside the compression, on the same cores. Readers don't see a level.
const ZSTANDARD_LEVEL: i32 = 3;

/// Compresses what is written into it and writes that to `W`.
///
/// What is written without a [`finish`](Compressor::finish) at the end is no valid stream.
pub enum Compressor<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstandard(zstd::stream::write::Encoder<'static, W>),
    Snappy(Box<snap::write::FrameEncoder<W>>),
}

impl<W: Write> Compressor<W> {
    pub fn new(codec: Codec, out: W) -> Self {
        match codec {
            Codec::None => Compressor::Plain(out),
            Codec::Gzip | Codec::GzipOffload => {
                Compressor::Gzip(GzEncoder::new(out, flate2::Compression::default()))
            }
            Codec::Zstandard => {
                let encoder = zstd::stream::write::Encoder::new(out, ZSTANDARD_LEVEL);
                Compressor::Zstandard(encoder.expect("the level is one that zstandard has"))
            }
            Codec::Snappy => Compressor::Snappy(Box::new(snap::write::FrameEncoder::new(out))),
        }
    }

    /// The writer below. What it holds already is a beginning of the stream and may be taken out.
    pub fn get_mut(&mut self) -> &mut W {
        match self {
            Compressor::Plain(out) => out,
            Compressor::Gzip(encoder) => encoder.get_mut(),
            Compressor::Zstandard(encoder) => encoder.get_mut(),
            Compressor::Snappy(encoder) => encoder.get_mut(),
        }
    }

    /// Writes what ends the stream and gives the writer back.
    pub fn finish(self) -> io::Result<W> {
        match self {
            Compressor::Plain(out) => Ok(out),
            Compressor::Gzip(encoder) => encoder.finish(),
            Compressor::Zstandard(encoder) => encoder.finish(),
            Compressor::Snappy(encoder) => encoder.into_inner().map_err(|error| error.into_error()),
        }
    }

    fn writer(&mut self) -> &mut dyn Write {
        match self {
            Compressor::Plain(out) => out,
            Compressor::Gzip(encoder) => encoder,
            Compressor::Zstandard(encoder) => encoder,
            Compressor::Snappy(encoder) => encoder.as_mut(),
        }
    }
}

impl<W: Write> Write for Compressor<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        self.writer().write(buf)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer().flush()
    }
}

#[cfg(test)]
mod tests;
