//! The connection to a broker, and which of the two packages it speaks.

use super::fault;
use crate::Error;
use crate::connect::{Connect, Wire};
use crate::limits;
use crate::line::Line;
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::courant::{HeadsRequest, HeadsResponse};
use protocol::wire::gazette::journal_client::JournalClient;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tonic::Code;

/// A prefix that no journal's name has: a request of heads under it is about the census alone.
pub const NO_JOURNAL: &str = "//";

/// One HTTP/2 connection, made at the first request and made again after it broke.
pub(crate) struct Door {
    url: String,
    wire: Wire,
    line: Line,
    learned: Mutex<Learned>,
}

/// What a broker speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gazette,
    Courant {
        /// It takes appends over one stream.
        appends_each: bool,
    },
}

/// What is known of the broker at the other end. It is learned anew with each connection: behind
/// the next one may be a newer broker, an older one, or one of the other kind.
#[derive(Default)]
struct Learned {
    /// The number of the connection.
    number: u64,
    kind: Arc<OnceCell<Kind>>,
    /// What it was last, for who may not wait.
    last: Option<Kind>,
}

impl Door {
    /// Needs a tokio runtime around it. Asks nobody yet.
    pub fn new(connect: &Connect) -> Result<Self, Error> {
        let line = Line::new();
        let (url, wire) = (connect.url().to_owned(), connect.open(&line)?);
        Ok(Door { url, wire, line, learned: Mutex::default() })
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// What its connections tell.
    pub fn line(&self) -> &Line {
        &self.line
    }

    /// Courant's own requests.
    pub fn courant(&self) -> CourantClient<Wire> {
        CourantClient::new(self.wire.clone()).max_decoding_message_size(limits::MESSAGE_MAX)
    }

    /// Gazette's requests.
    pub fn gazette(&self) -> JournalClient<Wire> {
        JournalClient::new(self.wire.clone()).max_decoding_message_size(limits::MESSAGE_MAX)
    }

    /// Whether the broker is one of ours. Asked once of each connection, with its first request.
    pub async fn is_courant(&self) -> Result<bool, Error> {
        let kind = self.of_connection(self.line.number());
        if let Some(known) = kind.get() {
            return Ok(*known != Kind::Gazette);
        }
        let known = *kind.get_or_try_init(|| self.probe()).await?;
        self.learn(known);
        Ok(known != Kind::Gazette)
    }

    /// Whether the broker is known to be one of Gazette.
    pub fn is_gazette(&self) -> bool {
        self.learned().last == Some(Kind::Gazette)
    }

    /// Whether the broker is known to take appends over one stream.
    pub fn appends_each(&self) -> bool {
        self.learned().last == Some(Kind::Courant { appends_each: true })
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().expect("no holder panics")
    }

    /// What is learned over a connection; who asks at once waits for one answer.
    fn of_connection(&self, number: u64) -> Arc<OnceCell<Kind>> {
        let mut learned = self.learned();
        if learned.number != number {
            *learned = Learned { number, kind: Arc::default(), last: learned.last };
        }
        learned.kind.clone()
    }

    /// Whether it is known what the broker at the other end of the last connection speaks.
    fn is_known(&self) -> bool {
        self.of_connection(self.line.number()).initialized()
    }

    /// Notes an answer. The one that made a connection is its first.
    fn learn(&self, kind: Kind) {
        let of_connection = self.of_connection(self.line.number());
        // What was learned over it meanwhile is as good.
        let _first_stands = of_connection.set(kind);
        self.learned().last = Some(kind);
    }

    async fn probe(&self) -> Result<Kind, Error> {
        let asked = timeout(limits::ANSWER_MAX, self.say_anything()).await;
        match asked.map_err(|_elapsed| self.silent())? {
            Ok(heads) => Ok(Kind::Courant { appends_each: heads.get_ref().appends_each }),
            Err(status) if status.code() == Code::Unimplemented => Ok(Kind::Gazette),
            Err(status) => Err(self.fault(status)),
        }
    }

    /// Makes the request that every broker answers at once, be it with an error.
    pub async fn say_anything(&self) -> Result<tonic::Response<HeadsResponse>, tonic::Status> {
        let nothing = HeadsRequest { prefix: NO_JOURNAL.to_owned(), ..Default::default() };
        self.courant().heads(nothing).await
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
        if status.code() == Code::Unimplemented && !self.is_known() {
            // It was asked as the broker before it was, whose connection had ended unseen.
            return Error::Later(format!("{}: another broker answers", self.url));
        }
        fault::error(&self.url, status)
    }

    /// A session is over that nobody here has ended.
    pub fn ended(&self) -> Error {
        Error::Unreachable(format!("{} has ended the session", self.url))
    }

    pub fn silent(&self) -> Error {
        Error::Unreachable(format!("{} does not answer", self.url))
    }
}
