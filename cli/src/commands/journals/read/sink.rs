//! Where content goes that was read, and how far that is for each journal.

use crate::offsets::{self, Offsets};
use crate::{Error, output};
use client::Piece;
use protocol::{Journal, Offset};
use std::io::Write;
use std::path::Path;

/// The output. Invariant: all below a journal's offset was written.
pub struct Sink {
    out: Box<dyn Write + Send>,
    is_standard: bool,
    offsets: Offsets,
}

impl Sink {
    /// Standard output or a file, with the offsets that are known.
    pub fn open(path: &Path, offsets: Offsets) -> Result<Self, Error> {
        let is_standard = path == Path::new(output::STANDARD);
        Ok(Sink { out: output::open(path)?, is_standard, offsets })
    }

    /// Waits until nobody reads what is written; for ever where it goes to a file.
    pub fn closed(&self) -> impl Future<Output = ()> + use<> {
        let is_standard = self.is_standard;
        async move {
            match is_standard {
                true => output::closed().await,
                false => std::future::pending().await,
            }
        }
    }

    /// Where the next byte of a journal comes from, if that is known.
    pub fn offset(&self, journal: &Journal) -> Option<Offset> {
        self.offsets.get(journal).copied()
    }

    /// Takes note of where a journal begins.
    pub fn note_start(&mut self, journal: &Journal, offset: Option<Offset>) {
        if let Some(offset) = offset {
            self.offsets.insert(journal.clone(), offset);
        }
    }

    /// Forgets a journal: another of its name begins anew.
    pub fn forget(&mut self, journal: &Journal) {
        self.offsets.remove(journal);
    }

    /// Writes the content of a piece, behind which the reader is at `position`; its bytes. What
    /// can't be read is told, and not written.
    pub fn take(
        &mut self,
        journal: &Journal,
        piece: Piece,
        position: Option<Offset>,
    ) -> Result<u64, Error> {
        let len = match piece {
            Piece::Content(_, content) => {
                self.out.write_all(&content).map_err(Error::output)?;
                content.len() as u64
            }
            Piece::Gap(span) => {
                let (begin, end) = (span.begin(), span.end());
                output::note(&format!(
                    "{journal}: bytes {begin} to {end} are gone: going on at {end}"
                ));
                0
            }
        };
        self.note_start(journal, position);
        Ok(len)
    }

    pub fn flush(&mut self) -> Result<(), Error> {
        self.out.flush().map_err(Error::output)
    }

    pub fn save_offsets(&self, path: &Path) -> Result<(), Error> {
        offsets::write(path, &self.offsets)
    }
}
