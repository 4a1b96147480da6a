//! A broker that does nothing: it reads each Append to its end, and answers with an empty message.
//! What is left is what the wire costs; `scripts/bench` sets appends to journals against it.
//!
//! It does as little as can be done of what else a broker does:
//!
//! * an Append to a journal below `kept/` is hashed by SHA-1, and written to a file, in turn. The
//!   file stays, as a log does: what is removed at once lends its pages to what comes next, and
//!   pages that were never written before cost several times as much;
//! * a Read answers with as many bytes as are asked for, from one buffer;
//! * a Read that blocks answers with a message for each Append that ends from then on.
//!
//! The connections are served as the broker serves its own, under the same limits. It prints
//! `ready: URL` when it listens, and ends when its standard input does.

use broker::server::{MESSAGE_LEN_MAX, http2_builder};
use bytes::Bytes;
use futures::stream::{self, BoxStream, Empty, StreamExt};
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use protocol::wire::gazette::journal_server::{Journal, JournalServer};
use protocol::wire::gazette::{
    AppendRequest, AppendResponse, ApplyRequest, ApplyResponse, FragmentStoreHealthRequest,
    FragmentStoreHealthResponse, FragmentsRequest, FragmentsResponse, ListRequest, ListResponse,
    ReadRequest, ReadResponse, ReplicateRequest, ReplicateResponse,
};
use sha1::{Digest, Sha1};
use std::error::Error;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::sync::{Arc, Mutex};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

type Answer<T> = Result<Response<T>, Status>;

/// Bytes of a message of content, as the broker has them.
const CHUNK: usize = 128 << 10;

/// Journals below it are written.
const KEPT: &str = "kept/";

/// Bytes that are kept, until a new file takes the place of the one that has them.
const KEPT_MAX: u64 = 4 << 30;

#[derive(Clone)]
struct Null {
    /// Appends that have ended.
    ended: watch::Sender<u64>,
    /// What is kept, and where the next bytes go.
    kept: Arc<Mutex<(Arc<File>, u64)>>,
}

impl Null {
    fn new() -> io::Result<Self> {
        let kept = Arc::new(tempfile::tempfile()?);
        Ok(Null { ended: watch::Sender::new(0), kept: Arc::new(Mutex::new((kept, 0))) })
    }

    /// Hashes and writes content as it comes.
    async fn keep(&self, messages: &mut Streaming<AppendRequest>) -> Result<(), Status> {
        let mut hasher = Sha1::new();
        while let Some(message) = messages.message().await? {
            hasher.update(&message.content);
            let (file, at) = self.place(message.content.len() as u64)?;
            file.write_all_at(&message.content, at)?;
        }
        std::hint::black_box(hasher.finalize());
        Ok(())
    }

    /// Where so many bytes go.
    fn place(&self, len: u64) -> io::Result<(Arc<File>, u64)> {
        let mut kept = self.kept.lock().expect("no holder panics");
        if kept.1 + len > KEPT_MAX {
            *kept = (Arc::new(tempfile::tempfile()?), 0);
        }
        let at = kept.1;
        kept.1 += len;
        Ok((kept.0.clone(), at))
    }
}

fn unimplemented<T>() -> Answer<T> {
    Err(Status::unimplemented("only appends and reads are answered here"))
}

fn content(content: Bytes) -> Result<ReadResponse, Status> {
    Ok(ReadResponse { content, ..ReadResponse::default() })
}

#[tonic::async_trait]
impl Journal for Null {
    type ListStream = Empty<Result<ListResponse, Status>>;
    type ReadStream = BoxStream<'static, Result<ReadResponse, Status>>;
    type ReplicateStream = Empty<Result<ReplicateResponse, Status>>;

    async fn append(&self, request: Request<Streaming<AppendRequest>>) -> Answer<AppendResponse> {
        let mut messages = request.into_inner();
        match messages.message().await? {
            Some(first) if first.journal.starts_with(KEPT) => self.keep(&mut messages).await?,
            _ => while messages.message().await?.is_some() {},
        }
        self.ended.send_modify(|ended| *ended += 1);
        Ok(Response::new(AppendResponse::default()))
    }

    async fn list(&self, _: Request<ListRequest>) -> Answer<Self::ListStream> {
        unimplemented()
    }

    async fn apply(&self, _: Request<ApplyRequest>) -> Answer<ApplyResponse> {
        unimplemented()
    }

    async fn read(&self, request: Request<ReadRequest>) -> Answer<Self::ReadStream> {
        let ReadRequest { offset, end_offset, block, .. } = request.into_inner();
        if block {
            let ended = self.ended.subscribe();
            // The first message says that it waits.
            let first = stream::once(async { content(Bytes::from_static(b"x")) });
            let messages = stream::unfold(ended, |mut ended| async move {
                ended.changed().await.ok()?;
                Some((content(Bytes::from_static(b"x")), ended))
            });
            return Ok(Response::new(first.chain(messages).boxed()));
        }
        let buffer = Bytes::from(vec![b'x'; CHUNK]);
        let chunks = usize::try_from(end_offset - offset).unwrap_or(0) / CHUNK;
        let messages = std::iter::repeat_n(buffer, chunks).map(content);
        Ok(Response::new(stream::iter(messages).boxed()))
    }

    async fn replicate(
        &self,
        _: Request<Streaming<ReplicateRequest>>,
    ) -> Answer<Self::ReplicateStream> {
        unimplemented()
    }

    async fn list_fragments(&self, _: Request<FragmentsRequest>) -> Answer<FragmentsResponse> {
        unimplemented()
    }

    async fn fragment_store_health(
        &self,
        _: Request<FragmentStoreHealthRequest>,
    ) -> Answer<FragmentStoreHealthResponse> {
        unimplemented()
    }
}

async fn serve(stream: TcpStream, null: Null) {
    let service = JournalServer::new(null).max_decoding_message_size(MESSAGE_LEN_MAX);
    // A client that hangs up is the usual end.
    let service = TowerToHyperService::new(service);
    let _ = http2_builder().serve_connection(TokioIo::new(stream), service).await;
}

async fn accept(listener: TcpListener) -> io::Result<()> {
    let null = Null::new()?;
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream, null.clone()));
    }
}

fn wait_for_end_of_input() {
    // Whatever ends it is the end.
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

#[expect(clippy::print_stdout, reason = "who starts it waits for the line")]
#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("ready: http://{}", listener.local_addr()?);
    tokio::select! {
        biased;
        _ = tokio::task::spawn_blocking(wait_for_end_of_input) => Ok(()),
        ended = accept(listener) => Ok(ended?),
    }
}
