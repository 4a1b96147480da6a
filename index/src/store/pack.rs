//! Putting a fragment: its local bytes are read twice, once for the sum that names them and once to
//! compress and upload them in parts.

use super::error::Doing;
use super::{Store, StoreError, failure};
use crate::blocking::off_thread;
use crate::codec::Compressor;
use bytes::Bytes;
use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, MultipartUpload, ObjectStore, ObjectStoreExt, PutMode,
    PutMultipartOptions, PutOptions,
};
use protocol::{Codec, Fragment, LabelSet, Offset, Span, Sum};
use sha1::{Digest as _, Sha1};
use std::io::{self, Write};
use std::sync::Arc;

/// Bytes of one part. It is the least that S3 takes for a part that is not the last, and 10,000 of
/// them, S3's most, hold the longest fragment (16 GiB). Two are in memory: one is uploaded while
/// the next one is packed.
const PART_LEN: usize = 5 << 20;

/// Bytes of one read of the source.
const READ_LEN: usize = 256 << 10;

/// Bytes that are read and summed between two looks whether anybody still wants the sum.
const DIGEST_LEN: u64 = 16 << 20;

const IN_MEMORY: &str = "compressing into memory does not fail";

/// The uncompressed bytes of a journal, by offset: its mirror.
pub trait Source: Send + Sync + 'static {
    /// Reads up to `buf.len()` bytes at `offset`, at least one. Reads of one pass ascend without
    /// gaps, so a source may check what it gives against sums of its own and fail.
    fn read_at(&self, offset: Offset, buf: &mut [u8]) -> io::Result<usize>;
}

/// What identifies the bytes of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    pub sum: Sum,
    /// CRC32C of all bytes.
    pub crc32c: u32,
}

/// Reads a span once: the first pass, that gives a fragment its name.
pub async fn digest(span: Span, source: Arc<dyn Source>) -> Result<Digest, StoreError> {
    let mut reader = Reader::new(span, source);
    let (mut sha1, mut crc32c) = (Sha1::new(), 0);
    while !reader.left.is_empty() {
        (reader, sha1, crc32c) = off_thread(move || {
            let stop = reader.left.begin().plus(DIGEST_LEN.min(reader.left.len()));
            while reader.left.begin() < stop {
                let bytes = reader.next()?;
                sha1.update(bytes);
                crc32c = crc32c::crc32c_append(crc32c, bytes);
            }
            Ok((reader, sha1, crc32c))
        })
        .await?;
    }
    let sum = if span.is_empty() { Sum::ZERO } else { Sum::new(sha1.finalize().into()) };
    Ok(Digest { sum, crc32c })
}

/// Compresses the fragment's bytes and uploads them: the second pass. The object gets its name only
/// if they have the fragment's sum.
pub(super) async fn upload(
    store: &Store,
    fragment: &Fragment,
    key: &Key,
    registers: &LabelSet,
    source: Arc<dyn Source>,
) -> Result<(), StoreError> {
    let failed = |error| store.failed(Doing::Put, key.as_ref(), error);
    let attributes = attributes(store, fragment.codec, registers);
    let (packer, first) = Packer::new(fragment, source).part().await?;
    let Some(packer) = packer else {
        return put_once(store, key, first, attributes).await.map_err(failed);
    };
    let options = PutMultipartOptions { attributes, ..PutMultipartOptions::default() };
    let mut upload = store.objects.put_multipart_opts(key, options).await.map_err(failed)?;
    let uploaded = upload_parts(&mut *upload, packer, first, failed).await;
    if uploaded.is_err()
        && let Err(error) = upload.abort().await
    {
        tracing::debug!(%key, %error, "parts of an abandoned upload stay in the store");
    }
    uploaded
}

/// Puts an object of one part, unless there is one: replicas put the same content at the same time.
///
/// What lies there and is short was left by a power cut under Gazette's file store, and is put
/// again over it. A store that knows no such condition gets the object without.
async fn put_once(
    store: &Store,
    key: &Key,
    body: Bytes,
    attributes: Attributes,
) -> object_store::Result<()> {
    use object_store::Error;
    let put = |mode| {
        let options = PutOptions { mode, attributes: attributes.clone(), ..PutOptions::default() };
        store.objects.put_opts(key, body.clone().into(), options)
    };
    match put(PutMode::Create).await {
        Ok(_) => Ok(()),
        Err(Error::AlreadyExists { .. }) => {
            let there = store.objects.head(key).await?;
            if there.size == body.len() as u64 {
                return Ok(());
            }
            put(PutMode::Overwrite).await.map(|_| ())
        }
        Err(error) if failure::is_not_supported(&error) => {
            put(PutMode::Overwrite).await.map(|_| ())
        }
        Err(error) => Err(error),
    }
}

/// Uploads each part while the next one is packed.
async fn upload_parts(
    upload: &mut dyn MultipartUpload,
    packer: Packer,
    first: Bytes,
    failed: impl Fn(object_store::Error) -> StoreError,
) -> Result<(), StoreError> {
    let mut next = Some((packer, first));
    while let Some((packer, part)) = next.take() {
        let put = upload.put_part(part.into());
        let put = async { put.await.map_err(&failed) };
        let (packed, ()) = futures::try_join!(packer.part(), put)?;
        match packed {
            (Some(packer), part) => next = Some((packer, part)),
            (None, last) => upload.put_part(last.into()).await.map_err(&failed)?,
        }
    }
    upload.complete().await.map(|_| ()).map_err(&failed)
}

/// What an object is put with: what its store wants, the journal's registers, and the codec that
/// stores undo which undo gzip on the way out (gazette-spec 3.7).
fn attributes(store: &Store, codec: Codec, registers: &LabelSet) -> Attributes {
    let mut attributes = store.attributes.clone();
    super::registers::note(registers, &mut attributes);
    match codec {
        Codec::GzipOffload => {
            attributes.insert(Attribute::ContentEncoding, "gzip".into());
        }
        Codec::None | Codec::Gzip | Codec::Zstandard | Codec::Snappy => {}
    }
    attributes
}

/// A fragment's bytes on their way through a compressor.
struct Packer {
    reader: Reader,
    compressor: Compressor<Vec<u8>>,
    sha1: Sha1,
    span: Span,
    expected: Sum,
}

impl Packer {
    fn new(fragment: &Fragment, source: Arc<dyn Source>) -> Self {
        let span = fragment.span;
        Packer {
            reader: Reader::new(span, source),
            compressor: Compressor::new(fragment.codec, Vec::new()),
            sha1: Sha1::new(),
            span,
            expected: fragment.sum,
        }
    }

    /// The next part, of exactly `PART_LEN`, and what comes after it; or the last part and `None`,
    /// if all bytes were those of the sum.
    async fn part(self) -> Result<(Option<Packer>, Bytes), StoreError> {
        off_thread(move || self.pack()).await
    }

    fn pack(mut self) -> Result<(Option<Packer>, Bytes), StoreError> {
        while self.compressor.get_mut().len() <= PART_LEN && !self.reader.left.is_empty() {
            let bytes = self.reader.next()?;
            self.sha1.update(bytes);
            self.compressor.write_all(bytes).expect(IN_MEMORY);
        }
        let packed = self.compressor.get_mut();
        if packed.len() > PART_LEN {
            let rest = packed.split_off(PART_LEN);
            let part = std::mem::replace(packed, rest);
            return Ok((Some(self), part.into()));
        }
        self.finish().map(|last| (None, last))
    }

    fn finish(self) -> Result<Bytes, StoreError> {
        let Packer { compressor, sha1, span, expected, .. } = self;
        let found = Sum::new(sha1.finalize().into());
        if found != expected {
            return Err(StoreError::Changed { span, expected, found });
        }
        Ok(compressor.finish().expect(IN_MEMORY).into())
    }
}

/// Reads what is left of a span, in order.
struct Reader {
    left: Span,
    source: Arc<dyn Source>,
    buf: Box<[u8]>,
}

impl Reader {
    fn new(span: Span, source: Arc<dyn Source>) -> Self {
        Reader { left: span, source, buf: vec![0; READ_LEN].into_boxed_slice() }
    }

    /// The next bytes of the span, which must not be at its end.
    fn next(&mut self) -> Result<&[u8], StoreError> {
        let offset = self.left.begin();
        let len = usize::try_from(self.left.len()).map_or(READ_LEN, |len| len.min(READ_LEN));
        let read = match self.source.read_at(offset, &mut self.buf[..len]) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            read => read,
        };
        let read = read.map_err(|source| StoreError::Source { offset, source })?;
        self.left = Span::between(offset.plus(read as u64), self.left.end());
        Ok(&self.buf[..read])
    }
}
