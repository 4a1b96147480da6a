//! `courant journals read`: content of journals, to its end or for ever.

use crate::progress::{self, Progress};
use crate::selection::Selection;
use crate::{Error, output, random};
use bytes::Bytes;
use client::{Journals, Piece, Reader, Remote};
use protocol::request::ReadFrom;
use protocol::{Journal, Offset};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const EXAMPLES: &str = "\
Examples:
  courant journals read local/log                    all of it, to the end as it is
  courant journals read -b --tail local/log          what is appended from here on
  courant journals read --offset 4096 local/log
  courant journals read -l 'name:prefix=local/app/' -o all.log";

/// Pieces that wait to be written.
const PIECES_MAX: usize = 4;

/// Read journals.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Read {
    #[command(flatten)]
    selection: Selection,

    /// Wait at the end for more, for ever. Several journals come as they grow, in pieces.
    #[arg(short = 'b', long)]
    block: bool,

    /// Begin at the end as it is.
    #[arg(long, conflicts_with = "offset")]
    tail: bool,

    /// Begin at this offset.
    #[arg(long, value_name = "N", default_value_t = 0)]
    offset: u64,

    /// The file that is written; - is standard output.
    #[arg(short = 'o', long, value_name = "FILE", default_value = "-")]
    output: PathBuf,
}

impl Read {
    pub async fn run(self, remote: &Arc<Remote>) -> Result<(), Error> {
        // A broker that is not there from the start is not waited for.
        remote.probe().await?;
        let journals = self.selection.journals(remote).await?;
        let from = match self.tail {
            true => ReadFrom::Head,
            false => ReadFrom::At(Offset::try_from(self.offset).map_err(client::Error::from)?),
        };
        let mut out = output::open(&self.output)?;
        let readers = journals.into_iter().enumerate().map(|(at, journal)| {
            let seed = random::number()?.wrapping_add(at as u64);
            let reader = Reader::new(remote.clone(), journal.clone(), from, seed);
            Ok((journal, reader.blocking(self.block)))
        });
        let readers = readers.collect::<Result<Vec<_>, Error>>()?;
        if self.block {
            return follow(readers, &mut *out).await;
        }
        for (journal, reader) in readers {
            let is_shown = self.is_progress_shown();
            let total = if is_shown { remaining(remote, &journal, from).await } else { None };
            let progress = Progress::bytes(journal.as_str(), total, is_shown);
            copy(&journal, reader, &mut *out, &progress).await?;
        }
        Ok(())
    }

    /// A bar would mix with content that goes to the same terminal, or to a pager on it.
    fn is_progress_shown(&self) -> bool {
        self.output != Path::new(output::STANDARD) || progress::is_output_a_file()
    }
}

/// Bytes that there are to read, for the bar alone.
async fn remaining(remote: &Remote, journal: &Journal, from: ReadFrom) -> Option<u64> {
    let stat = remote.stat(journal).await.ok()?;
    match from {
        ReadFrom::At(offset) => Some(stat.head.since(offset.max(stat.first))),
        ReadFrom::Head => Some(0),
    }
}

async fn copy(
    journal: &Journal,
    mut reader: Reader,
    out: &mut dyn Write,
    progress: &Progress,
) -> Result<(), Error> {
    while let Some(piece) = reader.next().await? {
        if let Some(content) = content(journal, piece) {
            out.write_all(&content).map_err(Error::output)?;
            progress.advance(content.len() as u64);
        }
    }
    out.flush().map_err(Error::output)
}

/// The content of a piece. What can't be read is told, and not written.
fn content(journal: &Journal, piece: Piece) -> Option<Bytes> {
    match piece {
        Piece::Content(_, content) => Some(content),
        Piece::Gap(span) => {
            let (begin, end) = (span.begin(), span.end());
            output::note(&format!("{journal}: bytes {begin} to {end} are gone: going on at {end}"));
            None
        }
    }
}

/// Writes whatever comes from any of the journals, until one of them fails.
async fn follow(readers: Vec<(Journal, Reader)>, out: &mut dyn Write) -> Result<(), Error> {
    let (sender, mut pieces) = mpsc::channel(PIECES_MAX);
    // Ended when this returns.
    let mut reading = JoinSet::new();
    for (journal, mut reader) in readers {
        let sender = sender.clone();
        reading.spawn(async move {
            loop {
                let next = reader.next().await;
                let is_last = !matches!(next, Ok(Some(_)));
                if sender.send((journal.clone(), next)).await.is_err() || is_last {
                    return;
                }
            }
        });
    }
    drop(sender);
    while let Some((journal, next)) = pieces.recv().await {
        let Some(content) = next?.and_then(|piece| content(&journal, piece)) else { continue };
        out.write_all(&content).and_then(|()| out.flush()).map_err(Error::output)?;
    }
    Ok(())
}
