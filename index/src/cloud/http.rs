//! How clouds are spoken to: one HTTP client a store, with bounded waits and few retries.

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use object_store::client::{HttpClient, HttpConnector};
use object_store::{BackoffConfig, ClientOptions, Result, RetryConfig};
use reqwest::header::{ACCEPT_ENCODING, HeaderMap, HeaderValue};
use std::time::Duration;

/// A store that does not take a connection in this time is down.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The longest silence within a request. There is no limit on the whole of it: a large fragment
/// over a slow line takes its time.
const SILENCE_MAX: Duration = Duration::from_secs(30);

/// Who we say that we are.
const AGENT: &str = concat!("courant/", env!("CARGO_PKG_VERSION"));

/// A few quick retries: they bridge a lost connection or one busy answer. A store that is down
/// for longer is the business of the caller, who asks at a lower rate and tells about it.
pub(super) fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(2),
            base: 2.0,
        },
        max_retries: 2,
        retry_timeout: Duration::from_secs(20),
    }
}

/// Hands one client to all that a store needs connections for.
#[derive(Debug)]
pub(super) struct Https {
    client: reqwest::Client,
}

impl Https {
    pub fn new() -> Result<Self, String> {
        Https::with(HeaderMap::new())
    }

    /// One that takes gzip as it lies in the store, and does not let the store undo it: what is
    /// undone on the way has no length, and can't be read in part.
    pub fn taking_gzip() -> Result<Self, String> {
        Https::with(HeaderMap::from_iter([(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))]))
    }

    fn with(headers: HeaderMap) -> Result<Self, String> {
        Ok(Https { client: client(headers).map_err(|error| error.to_string())? })
    }
}

impl HttpConnector for Https {
    fn connect(&self, _options: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(self.client.clone()))
    }
}

fn client(headers: HeaderMap) -> reqwest::Result<reqwest::Client> {
    // The process has one provider of ciphers. It fails where another part has set it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    reqwest::Client::builder()
        .user_agent(AGENT)
        .default_headers(headers)
        .connect_timeout(CONNECT_MAX)
        .read_timeout(SILENCE_MAX)
        .build()
}

/// An HTTP client with no credentials, for URLs that are signed. It has the limits above.
pub fn http_client() -> Result<reqwest::Client, String> {
    client(HeaderMap::new()).map_err(|error| error.to_string())
}

/// What a plain client gets at `url`, which must answer 200 and at most `len_max` bytes.
pub(crate) async fn fetch(url: &str, len_max: usize) -> Result<Bytes, String> {
    // The text of reqwest's errors has the URL, which may be signed: it is a secret.
    let failed = |error: reqwest::Error| root_of(&error.without_url());
    let response = client(HeaderMap::new()).map_err(failed)?.get(url).send().await;
    let response = response.map_err(failed)?;
    if response.status() != reqwest::StatusCode::OK {
        return Err(format!("it answers {}", response.status()));
    }
    let (mut chunks, mut content) = (response.bytes_stream(), BytesMut::new());
    while let Some(chunk) = chunks.next().await {
        content.extend_from_slice(&chunk.map_err(failed)?);
        if content.len() > len_max {
            return Err(format!("it answers more than {len_max} bytes"));
        }
    }
    Ok(content.freeze())
}

/// An error and what caused it in the end.
fn root_of(error: &dyn std::error::Error) -> String {
    let mut root = error;
    while let Some(source) = root.source() {
        root = source;
    }
    let (text, cause) = (error.to_string(), root.to_string());
    if text.contains(&cause) { text } else { format!("{text}: {cause}") }
}
