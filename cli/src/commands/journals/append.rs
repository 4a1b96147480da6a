//! `courant journals append`: input into journals, as one append or record by record.

mod mapping;
mod records;
mod writer;

use crate::commands::serving::Guarantee;
use crate::input::{Chunks, Input};
use crate::progress::Progress;
use crate::selection::Selection;
use crate::{Error, random};
use bytes::{Bytes, BytesMut};
use client::{Append as Request, Remote};
use futures::future::{BoxFuture, FutureExt};
use futures::stream::{FuturesOrdered, StreamExt};
use mapping::{Mapping, Partitions};
use protocol::Journal;
use protocol::request::AppendPart;
use records::{Record, Records};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::mpsc;
use writer::Writer;

const EXAMPLES: &str = "\
Examples:
  echo hello | courant journals append local/log
  courant journals append local/web -i big.csv             one append, whole or not at all
  producer | courant journals append local/log --lines     each line whole, as they come
  courant journals append -l 'tag=web' --lines             any of the journals that match
  courant journals append -l 'tag=web' --lines -m modulo   lines in pairs: a key, and what it is of

With --lines (-f lines) or -f fixed the broker may be away for up to two minutes, or be restarted:
every record comes once, and in order.";

/// Input that is kept in memory, so that it can be sent again when the broker is away.
const KEPT_MAX: usize = 4 << 20;

/// Parts of the input that wait for the network.
const PARTS_MAX: usize = 4;

/// Append input to journals.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Append {
    #[command(flatten)]
    selection: Selection,

    /// The file that is appended; - is standard input.
    #[arg(short = 'i', long, value_name = "FILE", default_value = "-")]
    input: PathBuf,

    /// What of the input is one append. Of several journals that match, each append takes one as
    /// `--mapping` says.
    #[arg(short = 'f', long, value_enum, default_value = "none")]
    framing: Framing,

    /// The same as --framing lines.
    #[arg(long, conflicts_with = "framing")]
    lines: bool,

    /// Which journal a record goes to. All but random want each record after its key, a record as
    /// well.
    #[arg(short = 'm', long, value_enum, default_value = "random")]
    mapping: Mapping,

    /// Keys are in base64.
    #[arg(long)]
    base64: bool,

    /// When an append is acknowledged [default: the broker's].
    #[arg(long, value_enum)]
    durability: Option<Guarantee>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// All of it, whole or not at all.
    None,
    /// Its lines: no line is torn or interleaved with those of others. Lines that are there
    /// together go together.
    Lines,
    /// Gazette's fixed frames: 66 33 93 36, a length of four bytes, little-endian, the content.
    Fixed,
}

impl Append {
    pub async fn run(self, remote: &Arc<Remote>) -> Result<(), Error> {
        let framing = match (self.lines, self.framing) {
            (true, _) | (_, Framing::Lines) => Some(records::Framing::Lines),
            (_, Framing::Fixed) => Some(records::Framing::Fixed),
            (_, Framing::None) if self.mapping.has_keys() => return Err(Error::KeysOfNothing),
            (_, Framing::None) => None,
        };
        // A broker that is not there from the start is not waited for.
        remote.probe().await?;
        let journals = self.selection.journals(remote).await?;
        let input = Input::open(&self.input)?;
        let progress = Progress::bytes("appending", input.len, !input.is_typed);
        let chunks = input.chunks();
        let target = Target {
            remote: remote.clone(),
            writer: Writer::new(remote).await?,
            partitions: Partitions::new(journals, self.mapping, self.base64, random::number()?),
            has_keys: self.mapping.has_keys(),
            durability: self.durability,
            progress,
        };
        match framing {
            None => target.append_whole(chunks).await,
            Some(framing) => target.append_records(chunks, Records::new(framing)).await,
        }
    }
}

/// Where input goes, and how.
struct Target {
    remote: Arc<Remote>,
    writer: Writer,
    partitions: Partitions,
    has_keys: bool,
    durability: Option<Guarantee>,
    progress: Progress,
}

impl Target {
    fn request(&self, journal: Journal, content: Bytes) -> Request {
        let durability = self.durability.map(Into::into);
        Request { durability, ..Request::new(journal, content) }
    }

    /// Makes all of the input one append: sent again as often as needed while it fits in memory.
    async fn append_whole(mut self, mut chunks: Chunks) -> Result<(), Error> {
        let journal = self.partitions.any();
        let mut kept = BytesMut::new();
        while kept.len() <= KEPT_MAX {
            let Some(chunk) = chunks.next().await? else {
                return self.append(journal, kept.freeze()).await;
            };
            kept.extend_from_slice(&chunk);
        }
        self.append_parts(journal, kept.freeze(), chunks).await
    }

    /// Sends input as it comes. It is committed at its end only, so that an input which fails
    /// leaves nothing.
    async fn append_parts(
        self,
        journal: Journal,
        first: Bytes,
        mut chunks: Chunks,
    ) -> Result<(), Error> {
        let request = self.writer.of_stream(self.request(journal, Bytes::new()));
        let (sender, parts) = mpsc::channel(PARTS_MAX);
        let progress = &self.progress;
        let feeding = async move {
            let mut next = Some(first);
            while let Some(chunk) = next {
                let len = chunk.len() as u64;
                if sender.send(AppendPart::Content(chunk)).await.is_err() {
                    // The append ended, and says why.
                    return Ok(());
                }
                progress.advance(len);
                next = chunks.next().await?;
            }
            let _ended = sender.send(AppendPart::Commit).await;
            Ok(())
        };
        let (fed, appended) = tokio::join!(feeding, self.remote.append_parts(request, parts));
        // What failed first is the cause: an input that broke is why the append did.
        fed.and(appended.map(drop).map_err(Error::from))
    }

    /// Appends the records that are there, then those that come.
    async fn append_records(
        mut self,
        mut chunks: Chunks,
        mut records: Records,
    ) -> Result<(), Error> {
        let mut key = None;
        let mut begun = Underway::new();
        while let Some(chunk) = self.next_chunk(&mut chunks, &mut begun).await? {
            records.push(&chunk);
            let mut batch = Batch::default();
            let sorted = self.sort_all(&mut records, &mut key, &mut batch);
            // What came before a record that is refused is appended all the same.
            self.begin_batch(batch, &mut begun).await?;
            if sorted.is_err() {
                self.end(begun).await?;
                return sorted;
            }
        }
        let mut batch = Batch::default();
        let last = records.last().and_then(|last| match last {
            Some(record) => self.sort(record, &mut key, &mut batch),
            None => Ok(()),
        });
        self.begin_batch(batch, &mut begun).await?;
        self.end(begun).await?;
        last?;
        match key {
            None => Ok(()),
            Some(key) => Err(Error::KeyOfNothing(String::from_utf8_lossy(key.payload()).into())),
        }
    }

    fn sort_all(
        &mut self,
        records: &mut Records,
        key: &mut Option<Record>,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        while let Some(record) = records.next()? {
            self.sort(record, key, batch)?;
        }
        Ok(())
    }

    /// Puts a record with those of its journal, or keeps it as the key of the next one.
    fn sort(
        &mut self,
        record: Record,
        key: &mut Option<Record>,
        batch: &mut Batch,
    ) -> Result<(), Error> {
        if !self.has_keys {
            // All that is there goes together: to one journal, taken by chance.
            let journal = batch.keys().next().cloned().unwrap_or_else(|| self.partitions.any());
            batch.entry(journal).or_default().push(record.framed);
            return Ok(());
        }
        match key.take() {
            None => *key = Some(record),
            Some(key) => {
                let journal = self.partitions.of_key(key.payload())?;
                batch.entry(journal).or_default().push(record.framed);
            }
        }
        Ok(())
    }

    /// The next of the input. Takes what is acknowledged until it is there.
    async fn next_chunk(
        &mut self,
        chunks: &mut Chunks,
        begun: &mut Underway,
    ) -> Result<Option<Bytes>, Error> {
        loop {
            tokio::select! {
                biased;
                Some(done) = begun.next() => self.progress.advance(done?),
                chunk = chunks.next() => return chunk,
            }
        }
    }

    /// Begins to append the records of each journal, one behind the other.
    async fn begin_batch(&mut self, batch: Batch, begun: &mut Underway) -> Result<(), Error> {
        for (journal, records) in batch {
            let durability = self.durability.map(Into::into);
            let request = |record| Request { durability, ..Request::new(journal.clone(), record) };
            let all = self.writer.begin_all(records, request).await?;
            begun.extend(all.map(|all| all.done().boxed()));
        }
        Ok(())
    }

    /// Waits for all that is under way.
    async fn end(&mut self, mut begun: Underway) -> Result<(), Error> {
        while let Some(done) = begun.next().await {
            self.progress.advance(done?);
        }
        Ok(())
    }

    async fn append(&mut self, journal: Journal, content: Bytes) -> Result<(), Error> {
        let len = content.len() as u64;
        let request = self.request(journal, content);
        self.writer.append(request).await?;
        self.progress.advance(len);
        Ok(())
    }
}

/// Records that are there together, by their journals.
type Batch = BTreeMap<Journal, Vec<Bytes>>;

/// What was begun and is not acknowledged, in its order.
type Underway = FuturesOrdered<BoxFuture<'static, Result<u64, Error>>>;
