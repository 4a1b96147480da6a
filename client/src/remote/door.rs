//! The connection to a broker, and which of the two packages it speaks.

use super::fault;
use crate::Error;
use crate::limits;
use protocol::Invalid;
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::courant::{HeadsRequest, HeadsResponse};
use protocol::wire::gazette::journal_client::JournalClient;
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// A prefix that no journal's name has: a request of heads under it is about the census alone.
pub(crate) const NO_JOURNAL: &str = "//";

/// One HTTP/2 connection, made at the first request and made again after it broke.
pub(crate) struct Door {
    url: String,
    channel: Channel,
    is_courant: OnceCell<bool>,
}

/// Refuses a URL that no broker is reached by.
pub(crate) fn check_url(url: &str) -> Result<(), Invalid> {
    protocol::check_endpoint(url).map_err(|invalid| invalid_url(url, invalid.reason()))?;
    match url.split_once("://") {
        Some(("http", _)) => Ok(()),
        Some((scheme, _)) => Err(invalid_url(url, &format!("{scheme} is not supported"))),
        None => Err(invalid_url(url, "it has no scheme")),
    }
}

fn invalid_url(url: &str, why: &str) -> Invalid {
    Invalid::new(format!("not a broker's URL ({url}; expected http://HOST:PORT): {why}"))
}

impl Door {
    /// Needs a tokio runtime around it. Fails on a URL only.
    pub fn new(url: &str) -> Result<Self, Error> {
        check_url(url)?;
        let endpoint = Endpoint::from_shared(url.to_owned())
            .map_err(|error| invalid_url(url, &fault::cause(&error)))?
            .connect_timeout(limits::CONNECT_MAX)
            .tcp_nodelay(true)
            .tcp_keepalive(Some(limits::KEEP_ALIVE))
            .tcp_keepalive_interval(Some(limits::KEEP_ALIVE / 3))
            .tcp_keepalive_retries(Some(3))
            .initial_stream_window_size(limits::STREAM_WINDOW)
            .initial_connection_window_size(limits::CONNECTION_WINDOW);
        let is_courant = OnceCell::new();
        Ok(Door { url: url.to_owned(), channel: endpoint.connect_lazy(), is_courant })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Courant's own requests.
    pub fn courant(&self) -> CourantClient<Channel> {
        CourantClient::new(self.channel.clone()).max_decoding_message_size(limits::MESSAGE_MAX)
    }

    /// Gazette's requests.
    pub fn gazette(&self) -> JournalClient<Channel> {
        JournalClient::new(self.channel.clone()).max_decoding_message_size(limits::MESSAGE_MAX)
    }

    /// Whether the broker is one of ours. Asked once, with the first request.
    pub async fn is_courant(&self) -> Result<bool, Error> {
        self.is_courant.get_or_try_init(|| self.probe()).await.copied()
    }

    async fn probe(&self) -> Result<bool, Error> {
        let nothing = HeadsRequest { prefix: NO_JOURNAL.to_owned(), ..Default::default() };
        let asked = timeout(limits::ANSWER_MAX, self.courant().heads(nothing)).await;
        match asked.map_err(|_elapsed| self.silent())? {
            Ok(_) => Ok(true),
            Err(status) if status.code() == Code::Unimplemented => Ok(false),
            Err(status) => Err(self.fault(status)),
        }
    }

    /// Heads that are answered at once.
    pub async fn heads(&self, request: HeadsRequest) -> Result<HeadsResponse, Error> {
        let mut client = self.courant();
        self.ask(client.heads(request)).await
    }

    /// Heads that a broker may keep back for as long as the request says.
    pub async fn poll(&self, request: HeadsRequest) -> Result<HeadsResponse, Error> {
        let limit = Duration::from_millis(request.wait_ms.into()) + limits::ANSWER_MAX;
        let mut client = self.courant();
        self.ask_within(limit, client.heads(request)).await
    }

    /// The answer to a request that waits for nothing by design.
    pub async fn ask<T>(
        &self,
        asking: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> Result<T, Error> {
        self.ask_within(limits::ANSWER_MAX, asking).await
    }

    async fn ask_within<T>(
        &self,
        limit: Duration,
        asking: impl Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    ) -> Result<T, Error> {
        let asked = timeout(limit, asking).await.map_err(|_elapsed| self.silent())?;
        asked.map(tonic::Response::into_inner).map_err(|status| self.fault(status))
    }

    /// What a failed request means, where it bears being made twice.
    pub fn fault(&self, status: tonic::Status) -> Error {
        fault::error(&self.url, status)
    }

    fn silent(&self) -> Error {
        Error::Unreachable(format!("{} does not answer", self.url))
    }
}
