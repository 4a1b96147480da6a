//! Appends over gRPC, as a Gazette client makes them: one stream each, all over one connection.

use crate::Scale;
use crate::samples::{Samples, median, since};
use bytes::Bytes;
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{AppendRequest, ListRequest, ReadRequest, ReadResponse};
use std::time::Duration;
use tokio::runtime::Runtime;
use tokio::time::Instant;
use tonic::Streaming;
use tonic::transport::{Channel, Endpoint};

/// What a writer may have in flight, as Courant's own client has it.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 8 << 20;

/// The largest piece of content in one message.
const PIECE: usize = 128 << 10;

/// A client, with threads of its own.
pub struct Wire {
    runtime: Runtime,
}

/// Appends of one content to one journal of one server.
#[derive(Clone)]
pub struct Appends {
    client: JournalClient<Channel>,
    messages: Vec<AppendRequest>,
}

impl Wire {
    pub fn new() -> Wire {
        Wire { runtime: Runtime::new().unwrap() }
    }

    fn connect(&self, url: &str) -> JournalClient<Channel> {
        let endpoint = Endpoint::from_shared(url.to_owned()).unwrap().tcp_nodelay(true);
        let endpoint = endpoint
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW);
        JournalClient::new(self.runtime.block_on(endpoint.connect()).unwrap())
    }

    pub fn asking(&self, url: &str) -> Asking {
        Asking { client: self.connect(url) }
    }

    /// Connects to a server. The journal must be there, where the server has journals.
    pub fn appends(&self, url: &str, journal: &str, content: &Bytes) -> Appends {
        let first = AppendRequest { journal: journal.to_owned(), ..AppendRequest::default() };
        let piece = |content: Bytes| AppendRequest { content, ..AppendRequest::default() };
        let pieces = content.chunks(PIECE).map(|part| piece(content.slice_ref(part)));
        // An empty piece commits.
        let messages = std::iter::once(first).chain(pieces).chain([piece(Bytes::new())]).collect();
        Appends { client: self.connect(url), messages }
    }

    /// Appends a second, with so many in flight all the time.
    pub fn rate(&self, appends: &Appends, in_flight: usize, seconds: f64) -> f64 {
        self.rate_of(std::slice::from_ref(appends), in_flight, seconds)
    }

    /// The same of several journals, to which the writers are dealt out.
    pub fn rate_of(&self, appends: &[Appends], in_flight: usize, seconds: f64) -> f64 {
        let begun = Instant::now();
        let until = begun + Duration::from_secs_f64(seconds);
        let done = self.run(appends, in_flight, move |_| Instant::now() < until);
        done as f64 / since(begun)
    }

    pub fn run_one<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }

    /// Makes so many appends, with some in flight all the time.
    pub fn make(&self, appends: &Appends, in_flight: usize, count: usize) {
        let each = count / in_flight;
        let appends = std::slice::from_ref(appends);
        assert_eq!(self.run(appends, in_flight, move |done| done < each), each * in_flight);
    }

    /// Does what `round` says, so many times, one after the other; the seconds of each.
    pub fn rounds<const N: usize, R: AsyncFnMut() -> [f64; N]>(
        &self,
        count: usize,
        mut round: R,
    ) -> [Vec<f64>; N] {
        let mut seconds = [const { Vec::new() }; N];
        self.runtime.block_on(async {
            for _ in 0..count {
                let took = round().await;
                seconds.iter_mut().zip(took).for_each(|(all, one)| all.push(one));
            }
        });
        seconds
    }

    /// Ours and theirs by turns, as `round` does them one after the other: the medians of each
    /// turn, in microseconds.
    pub fn latencies<R: AsyncFnMut() -> [f64; 2]>(&self, scale: Scale, mut round: R) -> Samples {
        let mut samples = Samples::default();
        for _ in 0..scale.repeats {
            let both = self.rounds(scale.requests, &mut round);
            let [ours, theirs] = both.map(|all| median(&all) * 1e6);
            samples.ours.push(ours);
            samples.theirs.push(theirs);
        }
        samples
    }

    /// How many appends were made by writers that each go on while `goes_on` says so of the number
    /// of those it has made.
    fn run(
        &self,
        appends: &[Appends],
        writers: usize,
        goes_on: impl Fn(usize) -> bool + Copy + Send + 'static,
    ) -> usize {
        let writer = |mut appends: Appends| async move {
            let mut done = 0;
            while goes_on(done) {
                appends.make_one().await;
                done += 1;
            }
            done
        };
        let dealt = appends.iter().cycle().take(writers);
        let writers: Vec<_> =
            dealt.map(|appends| self.runtime.spawn(writer(appends.clone()))).collect();
        let joined = writers.into_iter().map(|writer| self.runtime.block_on(writer).unwrap());
        joined.sum()
    }
}

/// Reads and lists of one server.
pub struct Asking {
    client: JournalClient<Channel>,
}

impl Asking {
    /// The first content of a read that does not block.
    pub async fn read(&mut self, journal: &str, offset: i64) -> Bytes {
        let request = ReadRequest { journal: journal.to_owned(), offset, ..ReadRequest::default() };
        let mut responses = self.client.read(request).await.unwrap().into_inner();
        while let Some(response) = responses.message().await.unwrap() {
            assert_eq!(response.status, 0, "a read is refused");
            if !response.content.is_empty() {
                return response.content;
            }
        }
        panic!("a read has no content");
    }

    /// Reads a span to its end; how many bytes came.
    pub async fn read_all(&mut self, journal: &str, begin: i64, end: i64) -> u64 {
        let request = ReadRequest {
            journal: journal.to_owned(),
            offset: begin,
            end_offset: end,
            ..ReadRequest::default()
        };
        let mut responses = self.client.read(request).await.unwrap().into_inner();
        let mut len = 0;
        while let Some(response) = responses.message().await.unwrap() {
            assert_eq!(response.status, 0, "a read is refused");
            len += response.content.len() as u64;
        }
        len
    }

    /// A read that waits for what comes, from the begin on.
    pub async fn follow(&mut self, journal: &str) -> Following {
        let request =
            ReadRequest { journal: journal.to_owned(), block: true, ..ReadRequest::default() };
        Following(self.client.read(request).await.unwrap().into_inner())
    }

    /// How many journals there are, as they come by pages.
    pub async fn list(&mut self) -> usize {
        let mut pages = self.client.list(ListRequest::default()).await.unwrap().into_inner();
        let mut count = 0;
        while let Some(page) = pages.message().await.unwrap() {
            count += page.journals.len();
        }
        count
    }
}

/// A read that waits at the head.
pub struct Following(Streaming<ReadResponse>);

impl Following {
    /// Returns with the next content.
    pub async fn content(&mut self) -> usize {
        loop {
            let response = self.0.message().await.unwrap().expect("it goes on");
            assert_eq!(response.status, 0, "a read is refused");
            if !response.content.is_empty() {
                return response.content.len();
            }
        }
    }
}

impl Appends {
    /// The same to another journal, over the same connection.
    pub fn to(&self, journal: &str) -> Appends {
        let mut to = self.clone();
        journal.clone_into(&mut to.messages[0].journal);
        to
    }

    /// Makes one append; the seconds that it took.
    pub async fn timed(&mut self) -> f64 {
        let begun = Instant::now();
        self.make_one().await;
        since(begun)
    }

    async fn make_one(&mut self) {
        let messages = tokio_stream::iter(self.messages.clone());
        let response = self.client.append(messages).await.unwrap().into_inner();
        assert_eq!(response.status, 0, "an append is refused");
    }
}
