//! A broker that does nothing: it reads each Append to its end, and answers with an empty message.
//! What is left is what the wire costs; `scripts/bench` sets appends to journals against it.
//!
//! The connections are served as the broker serves its own, under the same limits. It prints
//! `ready: URL` when it listens, and ends when its standard input does.

use broker::server::{MESSAGE_LEN_MAX, http2_builder};
use futures::stream::Empty;
use hyper_util::rt::TokioIo;
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
    let service = JournalServer::new(Null).max_decoding_message_size(MESSAGE_LEN_MAX);
    // A client that hangs up is the usual end.
    let service = TowerToHyperService::new(service);
    let _ = http2_builder().serve_connection(TokioIo::new(stream), service).await;
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
