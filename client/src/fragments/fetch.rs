//! Fetching a fragment's object by its signed URL.

use bytes::Bytes;
use futures::stream::{BoxStream, StreamExt, TryStreamExt};
use index::name;
use index::store::{Content, PART_LEN, Parts, Pieces, StoreError};
use protocol::{Codec, Fragment, Offset};
use reqwest::header::{ACCEPT_ENCODING, CONTENT_RANGE, RANGE};
use reqwest::{Client, Response, StatusCode};
use std::ops::Range;

/// The fragment's bytes from `from` on, checked as those of a store are. With `parts`, a large
/// object is fetched so, as [`Store::open_in_parts`](index::store::Store::open_in_parts)
/// does. A URL is a secret: no error tells it.
pub(crate) async fn fetch(
    http: &Client,
    url: &str,
    fragment: &Fragment,
    from: Offset,
    parts: Option<Parts>,
) -> Result<Content, StoreError> {
    // Compressed bytes are fetched from the begin, and skipped when decompressed. Their parts could
    // not be asked for again after the URL has run out, and all would have to be.
    let is_plain = fragment.codec == Codec::None;
    let skipped = if is_plain { from.since(fragment.begin()) } else { 0 };
    let object = Object { http: http.clone(), url: url.to_owned(), fragment: fragment.clone() };
    let len = fragment.span.len();
    let parts = parts.filter(|_| is_plain && len - skipped > PART_LEN);
    let first_end = if parts.is_some() { Some(skipped + PART_LEN) } else { None };
    let answer = object.get(skipped, first_end).await?;
    let is_ranged = answer.status() == StatusCode::PARTIAL_CONTENT;
    let start = fragment.begin().plus(if is_ranged { skipped } else { 0 });
    let body = object.clone().body(answer);
    let body = match parts {
        Some(parts) if is_ranged => {
            let part = move |part: Range<u64>| {
                let object = object.clone();
                async move { object.part(part.start, part.end).await }
            };
            parts.in_order(body, skipped + PART_LEN..len, part)
        }
        _ => body,
    };
    Ok(Content::of_object(fragment.clone(), body, start, from))
}

/// Gzip is asked for as it lies in the store; what the store itself is to undo is not asked for in
/// any encoding (gazette-spec 1.7). Where it comes compressed all the same, that is told by its
/// first bytes.
fn encoding(codec: Codec) -> &'static str {
    match codec {
        Codec::Gzip => "gzip",
        Codec::None | Codec::Zstandard | Codec::Snappy | Codec::GzipOffload => "identity",
    }
}

/// What lies behind a URL.
#[derive(Clone)]
struct Object {
    http: Client,
    url: String,
    fragment: Fragment,
}

impl Object {
    /// The object from `begin` on, up to `end` where that is given; or all of it, where the server
    /// knows no ranges.
    async fn get(&self, begin: u64, end: Option<u64>) -> Result<Response, StoreError> {
        let request = self.http.get(&self.url);
        let mut request = request.header(ACCEPT_ENCODING, encoding(self.fragment.codec));
        match end {
            Some(end) => request = request.header(RANGE, format!("bytes={begin}-{}", end - 1)),
            None if begin > 0 => request = request.header(RANGE, format!("bytes={begin}-")),
            None => {}
        }
        let answer = request.send().await.map_err(|error| self.failed(error))?;
        let has_range = begin > 0 || end.is_some();
        check(&answer, begin, has_range).map_err(|detail| self.unfetched(detail))?;
        Ok(answer)
    }

    fn body(self, answer: Response) -> BoxStream<'static, Result<Bytes, StoreError>> {
        answer.bytes_stream().map(move |chunk| chunk.map_err(|error| self.failed(error))).boxed()
    }

    async fn part(&self, begin: u64, end: u64) -> Pieces<StoreError> {
        let answer = self.get(begin, Some(end)).await?;
        let is_part = answer.status() == StatusCode::PARTIAL_CONTENT
            && answer.content_length().is_some_and(|len| len == end - begin);
        if !is_part {
            return Err(self.unfetched(format!("it does not answer with {begin} to {end}")));
        }
        let pieces = answer.bytes_stream().try_collect().await;
        pieces.map_err(|error| self.failed(error))
    }

    fn failed(&self, error: reqwest::Error) -> StoreError {
        self.unfetched(crate::remote::cause(&error.without_url()))
    }

    fn unfetched(&self, detail: String) -> StoreError {
        StoreError::Unfetched { name: name::path(&self.fragment), detail }
    }
}

/// Whether an answer is what was asked for, or all instead of a range.
fn check(answer: &Response, begin: u64, has_range: bool) -> Result<(), String> {
    match answer.status() {
        StatusCode::OK => Ok(()),
        StatusCode::PARTIAL_CONTENT if has_range => {
            let range = answer.headers().get(CONTENT_RANGE).and_then(|range| range.to_str().ok());
            match range.is_some_and(|range| range.starts_with(&format!("bytes {begin}-"))) {
                true => Ok(()),
                false => Err(format!("it answers with the range {range:?}")),
            }
        }
        status => Err(format!("it answers {status}")),
    }
}
