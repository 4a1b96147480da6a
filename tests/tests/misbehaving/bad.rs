//! Clients that misbehave.

use bytes::Bytes;
use futures::stream::{self, StreamExt};
use protocol::wire::courant::courant_client::CourantClient;
use protocol::wire::courant::{
    AppendEachRequest, AppendEachResponse, AppendsRequest, AppendsResponse,
};
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{AppendRequest, ReadRequest, ReadResponse};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tests::ground;
use tests::patience::until;
use tests::shell;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use tonic::Streaming;
use tonic::transport::Channel;

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Between two bytes of who is slow.
const DRIP: Duration = Duration::from_millis(20);

fn first(journal: &str) -> AppendRequest {
    AppendRequest { journal: journal.into(), ..AppendRequest::default() }
}

fn content(content: &'static [u8]) -> AppendRequest {
    AppendRequest { content: Bytes::from_static(content), ..AppendRequest::default() }
}

async fn gazette(url: String) -> JournalClient<Channel> {
    JournalClient::connect(url).await.unwrap()
}

/// An append of which a byte comes at a time, for ever.
pub struct SlowAppend {
    sent: Arc<AtomicU64>,
    task: JoinHandle<()>,
}

impl SlowAppend {
    pub fn start(runtime: &Runtime, url: &str) -> SlowAppend {
        let (url, sent) = (url.to_owned(), Arc::<AtomicU64>::default());
        let count = sent.clone();
        let task = runtime.spawn(async move {
            let drips = stream::unfold(count, |count| async move {
                tokio::time::sleep(DRIP).await;
                count.fetch_add(1, Ordering::Relaxed);
                Some((content(b"x"), count))
            });
            let messages = stream::iter([first("local/slow")]).chain(drips);
            let answer = gazette(url).await.append(messages).await;
            panic!("an append without an end is answered: {answer:?}");
        });
        SlowAppend { sent, task }
    }

    pub fn sent(&self) -> u64 {
        self.sent.load(Ordering::Relaxed)
    }

    pub fn goes_on(&self) -> bool {
        !self.task.is_finished()
    }

    pub fn end(self) {
        self.task.abort();
    }
}

/// A PUT of which a byte comes at a time.
pub fn slow_put(runtime: &Runtime, address: &str) -> JoinHandle<()> {
    let address = address.to_owned();
    runtime.spawn(async move {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let head = "PUT /local/slow HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
        stream.write_all(head.as_bytes()).await.unwrap();
        // Until it is cut off.
        while stream.write_all(b"1\r\nx\r\n").await.is_ok() {
            tokio::time::sleep(DRIP).await;
        }
    })
}

/// Reads of a journal whose messages nobody takes.
pub fn idle_reads(
    runtime: &Runtime,
    url: &str,
    journal: &str,
    count: usize,
) -> Vec<Streaming<ReadResponse>> {
    runtime.block_on(async {
        let mut reads = Vec::new();
        for _ in 0..count {
            let request = ReadRequest { journal: journal.into(), ..ReadRequest::default() };
            reads.push(gazette(url.to_owned()).await.read(request).await.unwrap().into_inner());
        }
        reads
    })
}

/// The same by HTTP.
pub fn idle_gets(runtime: &Runtime, address: &str, path: &str, count: usize) -> Vec<TcpStream> {
    runtime.block_on(async {
        let mut gets = Vec::new();
        for _ in 0..count {
            let mut stream = TcpStream::connect(address).await.unwrap();
            let head = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            // The answer has begun.
            stream.readable().await.unwrap();
            gets.push(stream);
        }
        gets
    })
}

/// Streams of each kind that wait, so many of each on a connection of its own.
pub struct Streams {
    appends: Vec<JoinHandle<()>>,
    reads: Vec<Streaming<ReadResponse>>,
    sessions: Vec<Streaming<AppendsResponse>>,
    each: Vec<Streaming<AppendEachResponse>>,
}

impl Streams {
    #[track_caller]
    pub fn open(runtime: &Runtime, url: &str, count: usize) -> Streams {
        let (begun, url) = (Arc::<AtomicU64>::default(), url.to_owned());
        let appending = runtime.block_on(gazette(url.clone()));
        let appends = (0..count).map(|_| {
            let (mut client, begun) = (appending.clone(), begun.clone());
            runtime.spawn(async move {
                let told = stream::once(async move {
                    begun.fetch_add(1, Ordering::Relaxed);
                    content(b"part")
                });
                let messages = stream::iter([first("local/slow")]).chain(told);
                let answer = client.append(messages.chain(stream::pending())).await;
                panic!("an append without an end is answered: {answer:?}");
            })
        });
        let appends = appends.collect();
        let others = async {
            let mut reading = gazette(url.clone()).await;
            let mut reads = Vec::new();
            for _ in 0..count {
                let (journal, block) = ("local/slow".to_owned(), true);
                let request = ReadRequest { journal, offset: -1, block, ..Default::default() };
                reads.push(reading.read(request).await.unwrap().into_inner());
            }
            let mut ours = CourantClient::connect(url.clone()).await.unwrap();
            let (mut sessions, mut each) = (Vec::new(), Vec::new());
            for _ in 0..count {
                let writer_id = Bytes::from_static(&[3; 16]);
                let first = AppendsRequest { writer_id, ..AppendsRequest::default() };
                let messages = stream::iter([first]).chain(stream::pending());
                sessions.push(ours.appends(messages).await.unwrap().into_inner());
            }
            let mut ours = CourantClient::connect(url).await.unwrap();
            for _ in 0..count {
                let messages = stream::pending::<AppendEachRequest>();
                each.push(ours.append_each(messages).await.unwrap().into_inner());
            }
            (reads, sessions, each)
        };
        let (reads, sessions, each) = runtime.block_on(others);
        until("all appends are begun", || begun.load(Ordering::Relaxed) == count as u64);
        Streams { appends, reads, sessions, each }
    }

    pub fn end(self) {
        assert!(self.appends.iter().all(|append| !append.is_finished()), "one was cut off");
        self.appends.iter().for_each(JoinHandle::abort);
        drop((self.reads, self.sessions, self.each));
    }
}

/// Lets this process have so many descriptors, and some for the rest of the tests.
#[track_caller]
fn allow_descriptors(count: usize) {
    let limit = getrlimit(Resource::Nofile);
    let (needed, may_have) = (count as u64 + 2000, limit.maximum.unwrap_or(u64::MAX));
    assert!(may_have >= needed, "this needs {needed} descriptors, of {may_have} (ulimit -Hn)");
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

/// Connections on which nothing is said.
#[track_caller]
pub fn silent(runtime: &Runtime, address: &str, count: usize) -> Vec<TcpStream> {
    allow_descriptors(count);
    runtime.block_on(async {
        let mut silent = Vec::new();
        for _ in 0..count {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        silent
    })
}

/// Says the same on so many connections, and keeps all of them until each was hung up on, or had
/// its answer.
pub fn say(runtime: &Runtime, address: &str, bytes: &[u8], count: usize) {
    runtime.block_on(async {
        let says = (0..count).map(|_| async move {
            let mut stream = TcpStream::connect(address).await.unwrap();
            // It may hang up before it has read everything.
            let _ = stream.write_all(bytes).await;
            let _ = stream.shutdown().await;
            let _ = stream.read_to_end(&mut Vec::new()).await;
        });
        futures::future::join_all(says).await;
    });
}

/// A number that is as good as chance.
fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}

fn noise(seed: &mut u64, len: usize) -> Vec<u8> {
    (0..len).map(|_| next(seed).to_le_bytes()[0]).collect()
}

/// Frames of any type, flags and stream, with anything in them (RFC 9113, section 4.1).
fn frames(seed: &mut u64) -> Vec<u8> {
    let mut bytes = PREFACE.to_vec();
    for _ in 0..50 {
        let len = usize::try_from(next(seed) % 200).unwrap();
        bytes.extend_from_slice(&u32::try_from(len).unwrap().to_be_bytes()[1..]);
        bytes.extend([next(seed).to_le_bytes()[0] % 11, next(seed).to_le_bytes()[0]]);
        bytes.extend(u32::try_from(next(seed) % 9).unwrap().to_be_bytes());
        bytes.extend(noise(seed, len));
    }
    bytes
}

/// Bytes that are no request, by what they are.
pub fn garbage(round: u64) -> Vec<(&'static str, Vec<u8>)> {
    let seed = &mut (round + 1);
    let head = |text: String| text.into_bytes();
    let mut tls = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec();
    tls.extend(noise(seed, 508));
    vec![
        ("noise", noise(seed, 100_000)),
        ("frames of anything", frames(seed)),
        ("a preface and noise", [PREFACE, &noise(seed, 100_000)].concat()),
        ("a hello of TLS that is none", tls),
        (
            "a head of a megabyte",
            head(format!("GET / HTTP/1.1\r\nA: {}\r\n\r\n", "b".repeat(1 << 20))),
        ),
        ("a hundred thousand heads", head("A: b\r\n".repeat(100_000))),
        (
            "a body that says that it is packed",
            head(format!(
                "PUT /local/slow HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\n\
                 Content-Length: 99999999999\r\n\r\n{}",
                "\0".repeat(100_000)
            )),
        ),
    ]
}

/// Calls of gRPC whose messages are noise, too long, or packed: none of them is taken.
#[track_caller]
pub fn wrong_messages(url: &str) {
    let folder = ground::folder("wrong-");
    let bomb = "head -c 268435456 /dev/zero | gzip -1 > bomb";
    shell::bash(folder.path(), bomb, &[]).ok();
    let bomb = std::fs::read(folder.path().join("bomb")).unwrap();
    let framed = |flag: u8, len: usize, body: &[u8]| {
        let len = u32::try_from(len).unwrap().to_be_bytes();
        [&[flag], &len[..], body].concat()
    };
    // Case: noise; a message of 4 GiB; one that is packed, and would be long
    let bodies = [
        framed(0, 1000, &noise(&mut 7, 1000)),
        framed(0, u32::MAX as usize, &[0; 100_000]),
        framed(1, bomb.len(), &bomb),
    ];
    let methods = ["courant.v1.Courant/AppendEach", "courant.v1.Courant/Appends"];
    let methods =
        methods.into_iter().chain(["courant.v1.Courant/Heads", "protocol.Journal/Append"]);
    let mut heard = 0;
    for method in methods {
        for body in &bodies {
            std::fs::write(folder.path().join("body"), body).unwrap();
            // Whoever still sends when he is refused may hear nothing but that the stream is over.
            let line = "for i in $(seq 20); do
                            curl -s --http2-prior-knowledge -H 'content-type: application/grpc' \
                                -H 'te: trailers' -H 'grpc-encoding: gzip' -D - -o /dev/null \
                                --data-binary @body \"$1/$2\" | grep -i '^grpc-status:'
                        done | tr -d '\\r' | sort -u";
            let ran = shell::bash(folder.path(), line, &[url, method]).ok();
            let text = ran.text();
            let told: Vec<&str> = text.lines().collect();
            heard += told.len();
            let what = &body[..5];
            assert!(!told.contains(&"grpc-status: 0"), "{method} takes {what:?}...: {told:?}");
        }
    }
    assert!(heard > 0, "nothing was asked");
}
