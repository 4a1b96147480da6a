//! A broker that does nothing: it reads each Append to its end, and answers with an empty message.
//! What is left is what the wire costs; `scripts/bench` sets appends to journals against it.
//!
//! The connections are served as the broker serves its own (`server/connection.rs`), under the same
//! limits. It prints `ready: URL` when it listens, and ends when its standard input does.

#[allow(dead_code, reason = "the broker's file, of which this needs a part")]
#[path = "../src/server/limits.rs"]
mod limits;

use futures::stream::Empty;
use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use protocol::wire::gazette::journal_server::{Journal, JournalServer};
use protocol::wire::gazette::{
    AppendRequest, AppendResponse, ApplyRequest, ApplyResponse, FragmentStoreHealthRequest,
    FragmentStoreHealthResponse, FragmentsRequest, FragmentsResponse, ListRequest, ListResponse,
    ReadRequest, ReadResponse, ReplicateRequest, ReplicateResponse,
};
use std::error::Error;
use std::io::Read;
use tokio::net::{TcpListener, TcpStream};
use tonic::{Request, Response, Status, Streaming};

type Answer<T> = Result<Response<T>, Status>;

struct Null;

fn unimplemented<T>() -> Answer<T> {
    Err(Status::unimplemented("only appends are dropped here"))
}

#[tonic::async_trait]
impl Journal for Null {
    type ListStream = Empty<Result<ListResponse, Status>>;
    type ReadStream = Empty<Result<ReadResponse, Status>>;
    type ReplicateStream = Empty<Result<ReplicateResponse, Status>>;

    async fn append(&self, request: Request<Streaming<AppendRequest>>) -> Answer<AppendResponse> {
        let mut messages = request.into_inner();
        while messages.message().await?.is_some() {}
        Ok(Response::new(AppendResponse::default()))
    }

    async fn list(&self, _: Request<ListRequest>) -> Answer<Self::ListStream> {
        unimplemented()
    }

    async fn apply(&self, _: Request<ApplyRequest>) -> Answer<ApplyResponse> {
        unimplemented()
    }

    async fn read(&self, _: Request<ReadRequest>) -> Answer<Self::ReadStream> {
        unimplemented()
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

async fn serve(stream: TcpStream) {
    let service = JournalServer::new(Null).max_decoding_message_size(limits::MESSAGE_LEN_MAX);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .keep_alive_interval(limits::KEEP_ALIVE)
        .keep_alive_timeout(limits::KEEP_ALIVE_ANSWER_MAX)
        .max_header_list_size(limits::HEAD_LEN_MAX)
        .max_concurrent_streams(limits::STREAMS_MAX)
        .max_pending_accept_reset_streams(limits::CANCELLED_MAX)
        .initial_stream_window_size(limits::STREAM_WINDOW)
        .initial_connection_window_size(limits::CONNECTION_WINDOW)
        .max_frame_size(limits::FRAME_LEN_MAX)
        .max_send_buf_size(limits::SEND_BUFFER);
    // A client that hangs up is the usual end.
    let _ = builder.serve_connection(TokioIo::new(stream), TowerToHyperService::new(service)).await;
}

async fn accept(listener: TcpListener) -> std::io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        stream.set_nodelay(true)?;
        tokio::spawn(serve(stream));
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
