//! The port against RPCs that do nothing: each ratio of the design beside its comparator, in one
//! run. `cargo bench -p broker`; an argument picks rows by their names.

#![allow(clippy::unwrap_used, clippy::print_stdout)]

use broker::server::Server;
use broker::{Broker, Config};
use bytes::Bytes;
use client::Durability;
use futures::future::join_all;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use index::SystemClock;
use protocol::Journal as Name;
use protocol::wire::gazette as wire;
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::journal_server::{Journal, JournalServer};
use sha1::{Digest, Sha1};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::time::Instant;
use tonic::transport::Channel;
use tonic::{Request, Response, Status, Streaming};

type Client = JournalClient<Channel>;

const JOURNAL: &str = "bench/log";
const RUN: Duration = Duration::from_secs(2);
const BULK: usize = 512 << 20;
const PIECE: usize = 128 << 10;

/// A service that does as little as each comparator of the design says.
struct Nothing {
    file: PathBuf,
    growth: tokio::sync::watch::Sender<i64>,
}

type Answers<T> = BoxStream<'static, Result<T, Status>>;

#[tonic::async_trait]
impl Journal for Nothing {
    type ListStream = Answers<wire::ListResponse>;
    type ReadStream = Answers<wire::ReadResponse>;
    type ReplicateStream = Answers<wire::ReplicateResponse>;

    async fn list(
        &self,
        _: Request<wire::ListRequest>,
    ) -> Result<Response<Self::ListStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn apply(
        &self,
        _: Request<wire::ApplyRequest>,
    ) -> Result<Response<wire::ApplyResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    /// Blocking: a message for each append. Else: as many bytes as the end says.
    async fn read(
        &self,
        request: Request<wire::ReadRequest>,
    ) -> Result<Response<Self::ReadStream>, Status> {
        let request = request.into_inner();
        let content = Bytes::from(vec![b'x'; PIECE]);
        let response = move |content| Ok(wire::ReadResponse { content, ..Default::default() });
        if !request.block {
            let pieces = usize::try_from(request.end_offset).unwrap() / PIECE;
            return Ok(Response::new(
                stream::iter(std::iter::repeat_n(content, pieces)).map(response).boxed(),
            ));
        }
        let growth = self.growth.subscribe();
        let grown = stream::unfold(growth, |mut growth| async move {
            growth.changed().await.ok()?;
            Some((Bytes::from_static(&[b'x'; 100]), growth))
        });
        Ok(Response::new(grown.map(response).boxed()))
    }

    /// Takes messages; where they are large, hashes and writes them.
    async fn append(
        &self,
        request: Request<Streaming<wire::AppendRequest>>,
    ) -> Result<Response<wire::AppendResponse>, Status> {
        let mut messages = request.into_inner();
        let (mut sum, mut file) = (Sha1::new(), None);
        while let Some(message) = messages.message().await? {
            if message.content.len() >= PIECE {
                sum.update(&message.content);
                let file = file.get_or_insert_with(|| std::fs::File::create(&self.file).unwrap());
                file.write_all(&message.content)?;
            }
        }
        self.growth.send_modify(|growth| *growth += 1);
        Ok(Response::new(wire::AppendResponse::default()))
    }

    async fn replicate(
        &self,
        _: Request<Streaming<wire::ReplicateRequest>>,
    ) -> Result<Response<Self::ReplicateStream>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn list_fragments(
        &self,
        _: Request<wire::FragmentsRequest>,
    ) -> Result<Response<wire::FragmentsResponse>, Status> {
        Err(Status::unimplemented(""))
    }

    async fn fragment_store_health(
        &self,
        _: Request<wire::FragmentStoreHealthRequest>,
    ) -> Result<Response<wire::FragmentStoreHealthResponse>, Status> {
        Err(Status::unimplemented(""))
    }
}

async fn nothing(dir: &TempDir) -> Client {
    let incoming = tonic::transport::server::TcpIncoming::bind("127.0.0.1:0".parse().unwrap());
    let incoming = incoming.unwrap().with_nodelay(Some(true));
    let address = incoming.local_addr().unwrap();
    let nothing = Nothing { file: dir.path().join("nothing"), growth: Default::default() };
    let server = tonic::transport::Server::builder().add_service(JournalServer::new(nothing));
    tokio::spawn(server.serve_with_incoming(incoming));
    JournalClient::connect(format!("http://{address}")).await.unwrap()
}

async fn courant(dir: &TempDir) -> Client {
    let server = Server::bind("127.0.0.1:0").await.unwrap();
    let config = Config::at(dir.path().join("data"), Arc::new(SystemClock), 7).unwrap();
    let durability = Durability::Memory;
    let config = Config { endpoint: server.endpoint(), durability, ..config };
    let broker = Broker::open(config).await.unwrap();
    broker.create(&Name::new(JOURNAL).unwrap()).await.unwrap();
    let url = server.endpoint();
    tokio::spawn(server.serve(broker, std::future::pending()));
    JournalClient::connect(url).await.unwrap()
}

async fn append(client: &mut Client, pieces: usize, piece: Bytes) {
    let first = wire::AppendRequest { journal: JOURNAL.into(), ..Default::default() };
    let content = wire::AppendRequest { content: piece, ..Default::default() };
    let contents = stream::iter(std::iter::repeat_n(content, pieces));
    let messages = stream::iter([first]).chain(contents);
    let messages = messages.chain(stream::iter([wire::AppendRequest::default()]));
    let response = client.append(messages).await.unwrap().into_inner();
    assert_eq!(response.status(), wire::Status::Ok);
}

/// Appends of 100 bytes a second, with so many in flight.
async fn rate(client: &Client, in_flight: usize) -> f64 {
    let start = Instant::now();
    let workers = (0..in_flight).map(|_| {
        let mut client = client.clone();
        tokio::spawn(async move {
            let mut count = 0_u32;
            while start.elapsed() < RUN {
                append(&mut client, 1, Bytes::from_static(&[b'x'; 100])).await;
                count += 1;
            }
            count
        })
    });
    let counts = join_all(workers).await;
    let count: u32 = counts.into_iter().map(Result::unwrap).sum();
    f64::from(count) / start.elapsed().as_secs_f64()
}

/// Megabytes a second of one append.
async fn bulk(client: &Client) -> f64 {
    let start = Instant::now();
    append(&mut client.clone(), BULK / PIECE, vec![b'x'; PIECE].into()).await;
    BULK as f64 / 1e6 / start.elapsed().as_secs_f64()
}

/// Megabytes a second of one read.
async fn read(client: &Client) -> f64 {
    let start = Instant::now();
    let end_offset = i64::try_from(BULK).unwrap();
    let request = wire::ReadRequest { journal: JOURNAL.into(), end_offset, ..Default::default() };
    let mut stream = client.clone().read(request).await.unwrap().into_inner();
    let mut len = 0;
    while let Some(response) = stream.message().await.unwrap() {
        len += response.content.len();
    }
    assert_eq!(len, BULK);
    BULK as f64 / 1e6 / start.elapsed().as_secs_f64()
}

/// Appends seen by a blocked reader, a second: the reciprocal of the usual time from one to other.
async fn tail(client: &Client) -> f64 {
    let journal = JOURNAL.into();
    let request = wire::ReadRequest { journal, offset: -1, block: true, ..Default::default() };
    let mut stream = client.clone().read(request).await.unwrap().into_inner();
    let mut times = Vec::new();
    let start = Instant::now();
    while start.elapsed() < RUN {
        let sent = Instant::now();
        let mut client = client.clone();
        let call = append(&mut client, 1, Bytes::from_static(&[b'x'; 100]));
        let seen = async {
            while stream.message().await.unwrap().unwrap().content.is_empty() {}
            sent.elapsed()
        };
        times.push(futures::join!(call, seen).1);
    }
    times.sort();
    1.0 / times[times.len() / 2].as_secs_f64()
}

fn show(row: &str, unit: &str, ours: f64, theirs: f64, at_least: f64) {
    let ratio = ours / theirs;
    println!("{row:24} {ours:10.0} {theirs:10.0} {unit:5} {ratio:5.2}x (at least {at_least:.2}x)");
}

#[tokio::main(worker_threads = 2)]
async fn main() {
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    let is_wanted = |row: &str| wanted.is_empty() || wanted.iter().any(|name| row.contains(name));
    let dir = TempDir::new().unwrap();
    let (ours, theirs) = (courant(&dir).await, nothing(&dir).await);
    println!("{:24} {:>10} {:>10}", "row", "courant", "nothing");
    for in_flight in [1, 8, 64] {
        let row = format!("append, {in_flight} in flight");
        if is_wanted(&row) {
            let theirs = rate(&theirs, in_flight).await;
            show(&row, "/s", rate(&ours, in_flight).await, theirs, 0.8);
        }
    }
    if is_wanted("bulk append") {
        show("bulk append", "MB/s", bulk(&ours).await, bulk(&theirs).await, 0.7);
    }
    if is_wanted("read") {
        bulk(&ours).await;
        for _ in 0..2 {
            show("read", "MB/s", read(&ours).await, read(&theirs).await, 0.8);
        }
    }
    if is_wanted("append to reader") {
        show("append to reader", "/s", tail(&ours).await, tail(&theirs).await, 1.0 / 1.3);
    }
}
