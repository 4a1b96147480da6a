//! A store whose requests are counted: nothing else about it is different.

use crate::metrics::{Meter, Request};
use futures::StreamExt;
use futures::stream::BoxStream;
use object_store::path::Path as Key;
use object_store::{
    Attribute, Attributes, CopyOptions, Error, GetOptions, GetResult, ListResult, MultipartUpload,
    ObjectMeta, ObjectStore, PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
    UploadPart,
};
use std::sync::Arc;
use tokio::time::Instant;

/// See the module.
#[derive(Debug)]
pub(super) struct Metered {
    inner: Arc<dyn ObjectStore>,
    meter: Meter,
}

impl Metered {
    pub fn new(inner: Arc<dyn ObjectStore>, meter: Meter) -> Self {
        Metered { inner, meter }
    }

    /// Counts the objects of a listing that is read to its end, or to its error.
    fn counted(
        &self,
        listing: BoxStream<'static, Result<ObjectMeta>>,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        let listed = Listed { listing, meter: self.meter.clone(), begun: Instant::now(), found: 0 };
        let next = |mut listed: Listed| async move { listed.next().await.map(|one| (one, listed)) };
        futures::stream::unfold(listed, next).boxed()
    }
}

/// Whether a store answered; that there is no such object is an answer too.
fn is_answer<T>(asked: &Result<T>) -> bool {
    matches!(asked, Ok(_) | Err(Error::NotFound { .. }))
}

/// Whether an object is there after a put of it: another replica may have been first.
fn is_put<T>(put: &Result<T>) -> bool {
    matches!(put, Ok(_) | Err(Error::AlreadyExists { .. }))
}

fn encoding_of(attributes: &Attributes) -> Option<String> {
    attributes.get(&Attribute::ContentEncoding).map(|value| value.as_ref().to_owned())
}

impl std::fmt::Display for Metered {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.inner.fmt(f)
    }
}

#[tonic::async_trait]
impl ObjectStore for Metered {
    async fn put_opts(
        &self,
        key: &Key,
        body: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        let (begun, len) = (Instant::now(), body.content_length() as u64);
        let encoding = encoding_of(&options.attributes);
        let put = self.inner.put_opts(key, body, options).await;
        self.meter.asked(Request::Put, begun, is_put(&put));
        if put.is_ok() {
            self.meter.put(len, encoding.as_deref());
        }
        put
    }

    async fn put_multipart_opts(
        &self,
        key: &Key,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let begun = Instant::now();
        let encoding = encoding_of(&options.attributes);
        match self.inner.put_multipart_opts(key, options).await {
            Ok(inner) => {
                let meter = self.meter.clone();
                Ok(Box::new(Upload { inner, meter, begun, len: 0, encoding }))
            }
            Err(error) => {
                self.meter.asked(Request::Put, begun, false);
                Err(error)
            }
        }
    }

    async fn get_opts(&self, key: &Key, options: GetOptions) -> Result<GetResult> {
        let begun = Instant::now();
        let request = if options.head { Request::Exists } else { Request::Get };
        let got = self.inner.get_opts(key, options).await;
        let is_ok = if request == Request::Exists { is_answer(&got) } else { got.is_ok() };
        self.meter.asked(request, begun, is_ok);
        got
    }

    fn delete_stream(
        &self,
        keys: BoxStream<'static, Result<Key>>,
    ) -> BoxStream<'static, Result<Key>> {
        let (meter, mut begun) = (self.meter.clone(), Instant::now());
        let deleted = self.inner.delete_stream(keys).inspect(move |deleted| {
            meter.asked(Request::Remove, begun, is_answer(deleted));
            begun = Instant::now();
        });
        deleted.boxed()
    }

    fn list(&self, prefix: Option<&Key>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counted(self.inner.list(prefix))
    }

    fn list_with_offset(
        &self,
        prefix: Option<&Key>,
        offset: &Key,
    ) -> BoxStream<'static, Result<ObjectMeta>> {
        self.counted(self.inner.list_with_offset(prefix, offset))
    }

    async fn list_with_delimiter(&self, prefix: Option<&Key>) -> Result<ListResult> {
        let begun = Instant::now();
        let listed = self.inner.list_with_delimiter(prefix).await;
        self.meter.asked(Request::List, begun, listed.is_ok());
        listed
    }

    async fn copy_opts(&self, from: &Key, to: &Key, options: CopyOptions) -> Result<()> {
        let begun = Instant::now();
        let copied = self.inner.copy_opts(from, to, options).await;
        self.meter.asked(Request::Put, begun, is_put(&copied));
        copied
    }
}

/// A listing under way.
struct Listed {
    listing: BoxStream<'static, Result<ObjectMeta>>,
    meter: Meter,
    begun: Instant,
    found: u64,
}

impl Listed {
    async fn next(&mut self) -> Option<Result<ObjectMeta>> {
        let next = self.listing.next().await;
        match &next {
            Some(Ok(_)) => self.found += 1,
            Some(Err(_)) => self.meter.asked(Request::List, self.begun, false),
            None => {
                self.meter.asked(Request::List, self.begun, true);
                self.meter.listed(self.found);
            }
        }
        next
    }
}

/// A put in parts, which is one put.
#[derive(Debug)]
struct Upload {
    inner: Box<dyn MultipartUpload>,
    meter: Meter,
    begun: Instant,
    len: u64,
    encoding: Option<String>,
}

#[tonic::async_trait]
impl MultipartUpload for Upload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        self.len += part.content_length() as u64;
        self.inner.put_part(part)
    }

    async fn complete(&mut self) -> Result<PutResult> {
        let put = self.inner.complete().await;
        self.meter.asked(Request::Put, self.begun, put.is_ok());
        if put.is_ok() {
            self.meter.put(self.len, self.encoding.as_deref());
        }
        put
    }

    /// A part failed, or what was to be put changed.
    async fn abort(&mut self) -> Result<()> {
        self.meter.asked(Request::Put, self.begun, false);
        self.inner.abort().await
    }
}
