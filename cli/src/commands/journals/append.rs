//! `courant journals append`: input into a journal, as one append or line by line.

use crate::commands::serving::Guarantee;
use crate::input::{Chunks, Input, Lines};
use crate::progress::Progress;
use crate::selection::Selection;
use crate::{Error, random};
use bytes::{Bytes, BytesMut};
use client::{Append as Request, Appender, Remote};
use protocol::Journal;
use protocol::request::AppendPart;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

const EXAMPLES: &str = "\
Examples:
  echo hello | courant journals append local/log
  courant journals append local/web -i big.csv             one append, whole or not at all
  producer | courant journals append local/log -f lines    each line whole, as they come
  courant journals append -l 'tag=web' -f lines            any of the journals that match";

/// Input that is kept in memory, so that it can be sent again when the broker is away.
const KEPT_MAX: usize = 4 << 20;

/// Parts of the input that wait for the network.
const PARTS_MAX: usize = 4;

/// How long an append that can be made again may take.
const PATIENCE: Duration = Duration::from_secs(60);

/// Append input to a journal.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Append {
    #[command(flatten)]
    selection: Selection,

    /// The file that is appended; - is standard input.
    #[arg(short = 'i', long, value_name = "FILE", default_value = "-")]
    input: PathBuf,

    /// What of the input is one append. Of several journals that match, each append takes one by
    /// chance.
    #[arg(short = 'f', long, value_enum, default_value = "none")]
    framing: Framing,

    /// When an append is acknowledged [default: the broker's].
    #[arg(long, value_enum)]
    durability: Option<Guarantee>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum Framing {
    /// All of it.
    None,
    /// Its lines: no line is torn or interleaved with those of others. Lines that are there
    /// together go together.
    Lines,
}

impl Append {
    pub async fn run(self, remote: &Arc<Remote>) -> Result<(), Error> {
        // A broker that is not there from the start is not waited for.
        remote.probe().await?;
        let journals = self.selection.journals(remote).await?;
        let journals = Journals { all: journals, state: random::number()? };
        let input = Input::open(&self.input)?;
        let progress = Progress::bytes("appending", input.len, !input.is_typed);
        let chunks = input.chunks();
        let target = Target {
            remote: remote.clone(),
            appender: Appender::new(remote.clone(), random::bytes()?, PATIENCE),
            journals,
            durability: self.durability,
            progress,
        };
        match self.framing {
            Framing::None => target.append_whole(chunks).await,
            Framing::Lines => target.append_lines(chunks).await,
        }
    }
}

/// The journals that appends go to.
struct Journals {
    all: Vec<Journal>,
    state: u64,
}

impl Journals {
    /// One of them, by chance where there are several.
    fn any(&mut self) -> Journal {
        // The upper bits of a linear congruence are even enough to share a load.
        self.state = self.state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let count = self.all.len() as u64;
        let at = usize::try_from((self.state >> 32) % count).expect("below a length");
        self.all[at].clone()
    }
}

struct Target {
    remote: Arc<Remote>,
    appender: Appender,
    journals: Journals,
    durability: Option<Guarantee>,
    progress: Progress,
}

impl Target {
    fn request(&mut self, content: Bytes) -> Request {
        let durability = self.durability.map(Into::into);
        Request { durability, ..Request::new(self.journals.any(), content) }
    }

    /// Makes all of the input one append: sent again as often as needed while it fits in memory.
    async fn append_whole(mut self, mut chunks: Chunks) -> Result<(), Error> {
        let mut kept = BytesMut::new();
        while kept.len() <= KEPT_MAX {
            let Some(chunk) = chunks.next().await? else {
                let request = self.request(kept.freeze());
                let appended = self.appender.append(request).await?;
                self.progress.advance(appended.span.len());
                return Ok(());
            };
            kept.extend_from_slice(&chunk);
        }
        self.append_parts(kept.freeze(), chunks).await
    }

    /// Sends input as it comes. It is committed at its end only, so that an input which fails
    /// leaves nothing.
    async fn append_parts(mut self, first: Bytes, mut chunks: Chunks) -> Result<(), Error> {
        let mut request = self.request(Bytes::new());
        request.writer = Some(self.appender.next_writer());
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

    /// Appends the lines that are there, then those that come.
    async fn append_lines(mut self, mut chunks: Chunks) -> Result<(), Error> {
        let mut lines = Lines::default();
        while let Some(chunk) = chunks.next().await? {
            lines.push(&chunk);
            if let Some(whole) = lines.whole() {
                self.append_once(whole).await?;
            }
        }
        match lines.rest() {
            Some(last) => self.append_once(last).await,
            None => Ok(()),
        }
    }

    async fn append_once(&mut self, content: Bytes) -> Result<(), Error> {
        let len = content.len() as u64;
        let request = self.request(content);
        self.appender.append(request).await?;
        self.progress.advance(len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_journal_gets_its_share() {
        let all: Vec<Journal> = ["a/b1", "a/b2", "a/b3"].map(|n| n.parse().expect("valid")).into();
        let mut journals = Journals { all: all.clone(), state: 7 };
        let taken: Vec<Journal> = (0..300).map(|_| journals.any()).collect();
        for journal in all {
            let count = taken.iter().filter(|taken| **taken == journal).count();
            assert!((50..150).contains(&count), "{journal}: {count}");
        }
    }
}
