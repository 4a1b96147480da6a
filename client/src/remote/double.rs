//! A broker in memory behind a real port, for tests of the client: journals are byte vectors.

mod each;
mod ours;
mod sessions;
mod theirs;

use protocol::wire::courant::Fault;
use protocol::wire::courant::courant_server::CourantServer;
use protocol::wire::gazette::journal_server::JournalServer;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::Status;
use tonic::transport::Server;

type Replies<T> = mpsc::Sender<Result<T, Status>>;

type Answers<T> = ReceiverStream<Result<T, Status>>;

/// Answers a stream by a task; the error that it ends with is the last answer.
fn answering<T, F>(task: impl FnOnce(Replies<T>) -> F) -> Answers<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(), Status>> + Send + 'static,
{
    let (replies, answers) = mpsc::channel(1);
    let task = task(replies.clone());
    tokio::spawn(async move {
        if let Err(status) = task.await {
            let _ = replies.send(Err(status)).await;
        }
    });
    ReceiverStream::new(answers)
}

/// The double; clones share everything.
#[derive(Clone)]
pub(crate) struct Double {
    shared: Arc<Shared>,
}

struct Shared {
    speaks_courant: bool,
    table: Mutex<Table>,
    /// Counts all changes, for those who wait.
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct Table {
    journals: BTreeMap<String, Kept>,
    created: i64,
    census: u64,
    /// How often each request came, and how many polls are waiting, and the most of them.
    requests: BTreeMap<&'static str, usize>,
    polls: (usize, usize),
    /// Answers of appends that are lost: the append is made, the caller gets an error.
    lost_answers: usize,
    /// It knows nothing of sessions and of streams of appends, as brokers before them.
    is_without_sessions: bool,
    /// Sessions and streams of appends answer nothing.
    holds_sessions: bool,
    /// What the next groups of sessions, or appends, are refused with, the last one first.
    refusals: Vec<Fault>,
    /// Reads that break after so many bytes.
    broken_reads: Vec<usize>,
}

#[derive(Default)]
struct Kept {
    life: u64,
    revision: i64,
    bytes: Vec<u8>,
    /// Below, bytes are trimmed.
    first: usize,
    /// Fragments that only a store has, and their URLs.
    stored: Vec<(protocol::Fragment, String)>,
    /// Bytes that are lost.
    gap: std::ops::Range<usize>,
    writers: BTreeMap<Vec<u8>, (u64, usize, usize)>,
}

impl Double {
    /// Serves a new double; the URL to find it at.
    pub async fn start(speaks_courant: bool) -> (Double, String) {
        let shared =
            Shared { speaks_courant, table: Mutex::default(), changes: watch::Sender::new(0) };
        let double = Double { shared: Arc::new(shared) };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let serving = Server::builder()
            .add_service(CourantServer::new(double.clone()))
            .add_service(JournalServer::new(double.clone()))
            .serve_with_incoming(TcpListenerStream::new(listener));
        tokio::spawn(serving);
        (double, url)
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.shared.table.lock().expect("no holder panics")
    }

    fn changed(&self) {
        self.shared.changes.send_modify(|count| *count += 1);
    }

    pub fn create(&self, name: &str) {
        let mut table = self.table();
        table.created += 1;
        table.census += 1;
        let revision = table.created;
        let life = revision.unsigned_abs() * 1_000_003;
        table.journals.insert(name.into(), Kept { life, revision, ..Kept::default() });
        drop(table);
        self.changed();
    }

    pub fn remove(&self, name: &str) {
        let mut table = self.table();
        table.journals.remove(name);
        table.census += 1;
        drop(table);
        self.changed();
    }

    pub fn append(&self, name: &str, bytes: &[u8]) {
        self.with(name, |kept| kept.bytes.extend_from_slice(bytes));
    }

    pub fn trim(&self, name: &str, first: usize) {
        self.with(name, |kept| kept.first = first);
    }

    pub fn lose(&self, name: &str, gap: std::ops::Range<usize>) {
        self.with(name, |kept| kept.gap = gap);
    }

    /// From here on the bytes of a fragment are only in a store, and found at a URL.
    pub fn store(&self, fragment: protocol::Fragment, url: &str) {
        let name = fragment.journal.to_string();
        self.with(&name, |kept| kept.stored.push((fragment, url.to_owned())));
    }

    fn with(&self, name: &str, change: impl FnOnce(&mut Kept)) {
        change(self.table().journals.get_mut(name).expect("the test made it"));
        self.changed();
    }

    pub fn bytes(&self, name: &str) -> Vec<u8> {
        self.table().journals[name].bytes.clone()
    }

    pub fn life(&self, name: &str) -> u64 {
        self.table().journals[name].life
    }

    pub fn lose_answers(&self, count: usize) {
        self.table().lost_answers = count;
    }

    pub fn without_sessions(&self) {
        self.table().is_without_sessions = true;
    }

    /// Sessions and streams of appends answer nothing, or go on.
    pub fn hold_sessions(&self, is_so: bool) {
        self.table().holds_sessions = is_so;
        self.changed();
    }

    /// The next group of a session, or the next append, is refused.
    pub fn refuse(&self, fault: Fault) {
        self.table().refusals.insert(0, fault);
    }

    /// The next reads break after so many bytes.
    pub fn break_reads(&self, after: &[usize]) {
        self.table().broken_reads = after.to_vec();
    }

    /// How often a request came.
    pub fn requests(&self, name: &str) -> usize {
        self.table().requests.get(name).copied().unwrap_or_default()
    }

    /// Polls that wait at this moment, and the most that ever did.
    pub fn polls(&self) -> (usize, usize) {
        self.table().polls
    }

    /// Waits until something holds.
    pub async fn until(&self, holds: impl Fn(&Double) -> bool) {
        let mut changes = self.shared.changes.subscribe();
        while !holds(self) {
            changes.changed().await.expect("the double lives");
        }
    }

    fn count(&self, request: &'static str) -> Result<(), Status> {
        let is_courants = !request.starts_with("gazette.");
        if is_courants && !self.shared.speaks_courant {
            return Err(Status::unimplemented("not one of ours"));
        }
        *self.table().requests.entry(request).or_default() += 1;
        Ok(())
    }
}

impl Table {
    /// Makes an append once for each writer and sequence: where it lies, and whether it was there.
    fn append(&mut self, name: &str, content: &[u8], writer: (&[u8], u64)) -> (usize, usize, bool) {
        let kept = self.journals.get_mut(name).expect("checked before");
        if let Some((sequence, begin, end)) = kept.writers.get(writer.0)
            && *sequence == writer.1
        {
            return (*begin, *end, true);
        }
        let begin = kept.bytes.len();
        kept.bytes.extend_from_slice(content);
        let end = kept.bytes.len();
        if !writer.0.is_empty() {
            kept.writers.insert(writer.0.to_vec(), (writer.1, begin, end));
        }
        (begin, end, false)
    }

    /// Whether an append that was made is to look as if it had not been.
    fn loses_answer(&mut self) -> bool {
        let is_lost = self.lost_answers > 0;
        self.lost_answers -= usize::from(is_lost);
        is_lost
    }
}
