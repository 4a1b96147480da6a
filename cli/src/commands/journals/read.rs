//! `courant journals read`: content of journals, to its end or for ever.

mod follow;
mod sink;

use crate::offsets::{self, Offsets};
use crate::progress::{self, Progress};
use crate::selection::Selection;
use crate::signals::Signals;
use crate::{Error, output, random, seams, time};
use client::{Journals, Reader, Remote};
use protocol::request::ReadFrom;
use protocol::response::ListedJournal;
use protocol::{Journal, Offset, SuspendLevel};
use sink::Sink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

const EXAMPLES: &str = "\
Examples:
  courant journals read local/log                    all of it, to the end as it is
  courant journals read -b --tail local/log          what is appended from here on
  courant journals read --from 4096 local/log        from a byte offset on
  courant journals read --since 10m local/log        from the first fragment of the last 10 minutes
  courant journals read -l 'name:prefix=local/app/' -o all.log
  courant journals read -b -l tag=web --offsets seen.json --offsets-out seen.json

--from is an offset, in bytes. gazctl's --from, a time in Unix seconds, is --from-time here. Times
are those at which fragments were stored: older bytes of the first fragment come along, and bytes
that are in no store yet always come.";

/// A number that is hardly an offset and rather a time, in Unix seconds.
const LIKE_A_TIME: i64 = 1_000_000_000;

/// Read journals.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Read {
    #[command(flatten)]
    selection: Selection,

    /// Wait at the end for more, for ever. Of several journals appends come whole, as they are
    /// made; with a selector, journals that come to match it are read too.
    #[arg(short = 'b', long)]
    block: bool,

    #[command(flatten)]
    begin: Begin,

    /// Begin where this file says, for the journals in it: {"journal": offset}.
    #[arg(long, value_name = "FILE")]
    offsets: Option<PathBuf>,

    /// Write to this file, at the end or when interrupted, where to go on.
    #[arg(long, value_name = "FILE")]
    offsets_out: Option<PathBuf>,

    /// The broker's root of file:// stores, where it can be read from here: then their fragments do
    /// not pass through the broker.
    #[arg(long, value_name = "DIR")]
    pub file_root: Option<PathBuf>,

    /// The file that is written; - is standard output.
    #[arg(short = 'o', long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

/// Where to begin; not given, at the first byte.
#[derive(clap::Args, Debug, Clone, Copy)]
#[group(multiple = false)]
struct Begin {
    /// Begin at the end as it is.
    #[arg(long)]
    tail: bool,

    /// Begin at this offset, in bytes.
    #[arg(long, visible_alias = "offset", value_name = "OFFSET")]
    from: Option<u64>,

    /// Begin with what was stored so long ago, such as 10m or 24h.
    #[arg(long, value_name = "DURATION", value_parser = time::duration)]
    since: Option<Duration>,

    /// Begin with what was stored at this time, in Unix seconds, or later.
    #[arg(long, value_name = "SECONDS")]
    from_time: Option<i64>,
}

/// Where one journal is read from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Start {
    At(Offset),
    Head,
    /// In Unix seconds.
    Stored(i64),
}

impl Begin {
    fn start(self) -> Result<Start, Error> {
        if self.tail {
            return Ok(Start::Head);
        }
        let now = seams::clock().now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let ago = |since: Duration| now.saturating_sub(since).as_secs();
        if let Some(since) = self.since {
            return Ok(Start::Stored(i64::try_from(ago(since)).unwrap_or(i64::MAX)));
        }
        if let Some(seconds) = self.from_time {
            return Ok(Start::Stored(seconds));
        }
        let offset = Offset::try_from(self.from.unwrap_or_default());
        Ok(Start::At(offset.map_err(client::Error::from)?))
    }
}

impl Read {
    pub async fn run(self, remote: &Arc<Remote>) -> Result<(), Error> {
        // A broker that is not there from the start is not waited for.
        remote.probe().await?;
        let known = self.known()?;
        let journals = self.held(remote).await?;
        let mut sink = Sink::open(&self.output, known.clone())?;
        let reading = Reading {
            remote: remote.clone(),
            start: self.begin.start()?,
            known,
            block: self.block,
            seed: random::number()?,
        };
        let done = match &self.offsets_out {
            None => self.read(&reading, &mut sink, journals).await,
            // Interrupted, it still has to say how far it came.
            Some(_) => {
                let mut signals = Signals::take()?;
                tokio::select! {
                    biased;
                    _ = signals.next() => Ok(()),
                    done = self.read(&reading, &mut sink, journals) => done,
                }
            }
        };
        let saved = match &self.offsets_out {
            Some(path) => sink.save_offsets(path),
            None => Ok(()),
        };
        done.and(saved)
    }

    /// The journals that can be read, those that can't told.
    async fn held(&self, remote: &Remote) -> Result<Vec<Journal>, Error> {
        let mut held = Vec::new();
        for (journal, listed) in self.selection.named_or_listed(remote).await? {
            match listed.as_ref().is_none_or(is_held) {
                true => held.push(journal),
                false => output::note(&format!(
                    "{journal}: suspended, so nobody has it: append to it to resume it"
                )),
            }
        }
        Ok(held)
    }

    /// The offsets of the file that was given. One that is to be written at the end need not be
    /// there the first time.
    fn known(&self) -> Result<Offsets, Error> {
        match &self.offsets {
            None => Ok(Offsets::new()),
            Some(path) if self.offsets_out.as_ref() == Some(path) && !path.exists() => {
                Ok(Offsets::new())
            }
            Some(path) => offsets::read(path),
        }
    }

    async fn read(
        &self,
        reading: &Reading,
        sink: &mut Sink,
        names: Vec<Journal>,
    ) -> Result<(), Error> {
        for journal in &names {
            reading.check(journal).await?;
            let from = reading.resolved(journal, self.offsets_out.is_some()).await?;
            sink.note_start(journal, from);
        }
        if self.block {
            return follow::follow(reading, sink, names, self.selection.selector()).await;
        }
        for journal in &names {
            let is_shown = self.is_progress_shown();
            let total = if is_shown { reading.remaining(journal).await } else { None };
            let progress = Progress::bytes(journal.as_str(), total, is_shown);
            reading.copy(journal, sink, &progress).await?;
        }
        sink.flush()
    }

    /// A bar would mix with content that goes to the same terminal, or to a pager on it.
    fn is_progress_shown(&self) -> bool {
        self.output != Path::new(output::STANDARD) || progress::is_output_a_file()
    }
}

/// Whether some broker holds the journal: of one that is suspended, none does.
fn is_held(listed: &ListedJournal) -> bool {
    let level = listed.spec.suspend.map(|suspend| suspend.level).unwrap_or_default();
    level != SuspendLevel::Full
}

/// How journals are read, whichever they are.
struct Reading {
    remote: Arc<Remote>,
    start: Start,
    /// Where journals begin that were read before.
    known: Offsets,
    block: bool,
    seed: u64,
}

impl Reading {
    fn start_of(&self, journal: &Journal) -> Start {
        self.known.get(journal).map_or(self.start, |offset| Start::At(*offset))
    }

    /// Refuses an offset, given by hand or by a file, that the journal does not reach: what is
    /// appended until it does would never be read.
    async fn check(&self, journal: &Journal) -> Result<(), Error> {
        let Start::At(offset) = self.start_of(journal) else { return Ok(()) };
        if offset == Offset::ZERO {
            return Ok(());
        }
        let head = self.remote.stat(journal).await?.head;
        if offset <= head {
            return Ok(());
        }
        let hint = match (self.known.contains_key(journal), offset.get() >= LIKE_A_TIME) {
            (true, _) => ": is it another journal of that name? Take it out of the --offsets file",
            (false, true) => " (a time in Unix seconds goes with --from-time)",
            (false, false) => "",
        };
        Err(Error::Beyond(journal.clone(), offset, head, hint))
    }

    /// The offset that a journal is read from, where that is known or has to be.
    async fn resolved(&self, journal: &Journal, is_wanted: bool) -> Result<Option<Offset>, Error> {
        match self.start_of(journal) {
            Start::At(offset) => Ok(Some(offset)),
            Start::Head if is_wanted => Ok(Some(self.remote.stat(journal).await?.head)),
            Start::Head | Start::Stored(_) => Ok(None),
        }
    }

    /// The reader of a journal; `from` is where it begins if that was resolved.
    fn reader(&self, journal: &Journal, from: Option<Offset>) -> Reader {
        let start = from.map_or(self.start_of(journal), Start::At);
        let (from, begin_mod_time) = match start {
            Start::At(offset) => (ReadFrom::At(offset), 0),
            Start::Head => (ReadFrom::Head, 0),
            Start::Stored(seconds) => (ReadFrom::At(Offset::ZERO), seconds),
        };
        let seed = self.seed ^ journal.as_str().len() as u64;
        let reader = Reader::new(self.remote.clone(), journal.clone(), from, seed);
        reader.stored_since(begin_mod_time).blocking(self.block)
    }

    /// Bytes that there are to read, for the bar alone.
    async fn remaining(&self, journal: &Journal) -> Option<u64> {
        let stat = self.remote.stat(journal).await.ok()?;
        match self.start_of(journal) {
            Start::At(offset) => Some(stat.head.since(offset.max(stat.first))),
            Start::Head => Some(0),
            Start::Stored(_) => None,
        }
    }

    async fn copy(
        &self,
        journal: &Journal,
        sink: &mut Sink,
        progress: &Progress,
    ) -> Result<(), Error> {
        let mut reader = self.reader(journal, sink.offset(journal));
        while let Some(piece) = reader.next().await? {
            let len = sink.take(journal, piece, reader.position())?;
            progress.advance(len);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(begin: Begin) -> Start {
        begin.start().expect("valid")
    }

    #[test]
    fn a_place_to_begin_is_an_offset_or_a_time() {
        let none = Begin { tail: false, from: None, since: None, from_time: None };
        assert_eq!(start(none), Start::At(Offset::ZERO));
        assert_eq!(start(Begin { tail: true, ..none }), Start::Head);
        assert_eq!(start(Begin { from: Some(7), ..none }), Start::At(Offset::from(7)));
        assert_eq!(start(Begin { from_time: Some(7), ..none }), Start::Stored(7));
        let Start::Stored(hour) = start(Begin { since: Some(Duration::from_secs(3600)), ..none })
        else {
            panic!("a duration is about a time");
        };
        assert!(hour > LIKE_A_TIME);
        assert!(Begin { from: Some(u64::MAX), ..none }.start().is_err());
    }
}
