//! One draft: content that was accepted and is not committed yet, in a file of its own.

use super::Staging;
use super::header::{HEADER_LEN, Header, Manner, Mark, VERSION};
use crate::Error;
use client::disk::{Disk, DiskFile, Open, read_exact_at};
use client::{Staged, Writer, crc32c_append};
use protocol::{Journal, Life};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the content begins: behind the page of the header.
pub(super) const CONTENT_AT: u64 = 4096;

/// Bytes that are read at once when a draft is verified.
const LOOK_LEN: usize = 256 << 10;

/// Content on its way to a journal. What [`Draft::push`] took is found after a crash of the mount.
///
/// A sealed draft does not change before it is known what became of its append.
#[derive(Debug)]
pub(crate) struct Draft {
    staging: Arc<Staging>,
    number: u64,
    file: Arc<dyn DiskFile>,
    header: Header,
    /// What stays when the append is refused: without the write that was not acknowledged.
    kept: Mark,
    /// Bytes that it takes of the mount's bound.
    charged: u64,
    /// Whether the file outlives this value.
    is_left: bool,
    /// Whether the directory has it after a power cut.
    is_entered: bool,
    /// Its append may have been made: a request for it had no answer.
    pub is_doubtful: bool,
}

impl Draft {
    /// An empty one.
    pub fn begin(
        staging: &Arc<Staging>,
        manner: Manner,
        journal: Journal,
        writer: [u8; 16],
    ) -> Result<Draft, Error> {
        let number = staging.take_number()?;
        let writer = Writer { id: own_id(writer, number), sequence: 1 };
        let header = Header {
            manner,
            journal,
            life: None,
            writer,
            is_sealed: false,
            is_disk: false,
            mark: Mark::default(),
        };
        let opened = staging.disk().open(&path(number), Open::New);
        let file = match opened {
            Ok(file) => file,
            Err(error) => {
                staging.give_back_number();
                if error.kind() == io::ErrorKind::NotFound {
                    let place = staging.disk().place(Path::new(""));
                    tracing::error!(
                        "the directory {} of what waits is gone: mount anew, which makes it",
                        place.display()
                    );
                }
                return Err(failed("begin", number)(error));
            }
        };
        let draft = Draft {
            staging: staging.clone(),
            number,
            file,
            header,
            kept: Mark::default(),
            charged: 0,
            is_left: false,
            is_entered: false,
            is_doubtful: false,
        };
        draft.write_header()?;
        Ok(draft)
    }

    /// One that a mount left behind; `None` where it had taken nothing yet. An error says what is
    /// wrong with its file: also where its content is cut off altogether.
    pub fn found(staging: &Arc<Staging>, number: u64) -> Result<Option<Draft>, Error> {
        let failed_read = || failed("read", number);
        let disk = staging.disk();
        let file = disk.open(&path(number), Open::Existing).map_err(failed("open", number))?;
        let has_none = file.len().map_err(failed_read())? <= CONTENT_AT;
        if has_none && header_of(&*file).is_ok_and(|header| header.is_none_or(|it| it.is_empty())) {
            disk.remove(&path(number)).map_err(failed("remove", number))?;
            return Ok(None);
        }
        let damaged = || failed_read()(io::Error::other("it is damaged"));
        let header = header_of(&*file).map_err(failed_read())?.ok_or_else(damaged)?;
        if crc_of(&*file, header.mark.len).map_err(failed_read())? != header.mark.crc {
            return Err(damaged());
        }
        let (staging, kept) = (staging.clone(), header.mark);
        let charged = kept.len;
        Ok(Some(Draft {
            staging,
            number,
            file,
            header,
            kept,
            charged,
            is_left: true,
            is_entered: false,
            is_doubtful: false,
        }))
    }

    pub fn header(&self) -> &Header {
        &self.header
    }

    pub fn len(&self) -> u64 {
        self.header.mark.len
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn is_sealed(&self) -> bool {
        self.header.is_sealed
    }

    /// Keeps room for so much more content; all of it, or none.
    pub fn reserve(&mut self, more: u64) -> Result<(), Error> {
        let lacking = (self.len() + more).saturating_sub(self.charged);
        self.staging.charge(lacking)?;
        self.charged += lacking;
        Ok(())
    }

    /// Takes content that room is reserved for; all of it, or none. With `is_disk` it is synced,
    /// and so is its append.
    pub fn push(&mut self, content: &[u8], is_disk: bool) -> Result<(), Error> {
        assert!(!self.is_sealed(), "a sealed draft does not change");
        let old = self.header.clone();
        self.header.mark = old.mark.plus(content);
        self.header.is_disk |= is_disk;
        let written = self
            .file
            .write_at(content, CONTENT_AT + old.mark.len)
            .and_then(|()| self.file.write_at(&self.header.encode(), 0))
            .and_then(|()| if is_disk { self.sync() } else { Ok(()) });
        if let Err(error) = written {
            self.header = old;
            self.give_back_down_to(self.len());
            return Err(failed("write", self.number)(error));
        }
        self.is_left = true;
        Ok(())
    }

    /// All that was taken is acknowledged: it stays, whatever becomes of an append.
    pub fn keep(&mut self) {
        self.kept = self.header.mark;
    }

    /// The file that it is for has another name: it is committed to this journal, after a crash
    /// too. One that was meant for a life of its journal stays there.
    pub fn rename(&mut self, journal: &Journal) {
        if self.header.life.is_some() || self.header.journal == *journal {
            return;
        }
        self.header.journal = journal.clone();
        if let Err(error) = self.write_header() {
            tracing::error!(%error, %journal, "after a crash it is committed by its old name");
        }
    }

    /// Says that the content is to be appended as it is: to the life of a journal that it was for
    /// before, or to one that is to be made.
    pub fn seal(&mut self) -> Result<(), Error> {
        self.seal_as(self.header.clone())
    }

    /// Has the append wait for the disk, where it is not asked for yet.
    pub fn ask_for_disk(&mut self) {
        self.header.is_disk |= !self.header.is_sealed;
    }

    /// As `seal`, to this life of a journal. Its name is another one where the file was renamed
    /// while it had no byte.
    pub fn seal_for(&mut self, journal: &Journal, life: Life) -> Result<(), Error> {
        self.seal_as(Header { journal: journal.clone(), life: Some(life), ..self.header.clone() })
    }

    fn seal_as(&mut self, header: Header) -> Result<(), Error> {
        let old = std::mem::replace(&mut self.header, header);
        self.header.is_sealed = true;
        self.write_header().inspect_err(|_| {
            self.header = old;
            self.revert();
        })
    }

    /// The append did not happen: what was acknowledged waits again.
    pub fn revert(&mut self) {
        self.header.is_sealed = false;
        self.give_back_down_to(self.kept.len);
        self.header.mark = self.kept;
        self.rewrite_header();
    }

    /// The sequence is another append's: the same content goes under the next one.
    pub fn take_next_sequence(&mut self) -> Result<(), Error> {
        let mut header = self.header.clone();
        header.writer.sequence += 1;
        self.seal_as(header)
    }

    /// The append happened: the draft is empty, and the next append is another one.
    pub fn done(&mut self) {
        self.kept = Mark::default();
        self.header.is_sealed = false;
        self.header.is_disk = false;
        self.header.mark = Mark::default();
        self.header.writer.sequence += 1;
        self.is_left = false;
        self.is_doubtful = false;
        self.give_back_down_to(0);
        self.rewrite_header();
        // Room for others, not a promise.
        let _kept = self.file.set_len(CONTENT_AT);
    }

    /// The content, for an append.
    pub fn staged(&self) -> Staged {
        Staged::new(self.file.clone(), CONTENT_AT, self.len())
    }

    /// Moves the file aside, for people; where it is then.
    pub fn set_aside(mut self) -> PathBuf {
        self.is_left = true;
        // It goes on taking its room.
        self.charged = 0;
        self.staging.set_aside(self.number)
    }

    /// The content goes with the file that it was for.
    pub fn discard(mut self) {
        self.is_left = false;
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync()?;
        if !self.is_entered {
            self.staging.disk().sync_dir(Path::new(""))?;
            self.is_entered = true;
        }
        Ok(())
    }

    fn give_back_down_to(&mut self, len: u64) {
        let freed = self.charged.saturating_sub(len);
        self.staging.give_back(freed);
        self.charged -= freed;
    }

    /// What is in memory holds as long as this process, also where the file can't be written.
    fn rewrite_header(&self) {
        if let Err(error) = self.write_header() {
            tracing::error!(%error, "what was committed may be committed again after a crash");
        }
    }

    fn write_header(&self) -> Result<(), Error> {
        let written = self.file.write_at(&self.header.encode(), 0);
        written.map_err(failed("write", self.number))
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        self.staging.give_back(self.charged);
        self.staging.give_back_number();
        if !self.is_left
            && let Err(error) = self.staging.disk().remove(&path(self.number))
        {
            tracing::warn!(%error, number = self.number, "an empty draft can't be removed");
        }
    }
}

/// The file of a draft.
pub(super) fn path(number: u64) -> PathBuf {
    Path::new(&format!("{number:012}.draft")).to_owned()
}

/// Each draft is a writer of its own, so that the appends of others never come between: a broker
/// takes the sequences of a writer in their order only. The mount's own id has number 0.
fn own_id(mount: [u8; 16], number: u64) -> [u8; 16] {
    (u128::from_be_bytes(mount) ^ u128::from(number)).to_be_bytes()
}

fn failed(operation: &'static str, number: u64) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Staging {
        is_full: matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded),
        detail: format!("{operation} {}: {error}", path(number).display()),
    }
}

/// Refuses a draft of a newer release, by its name.
pub(super) fn refuse_newer(disk: &dyn Disk, number: u64) -> io::Result<()> {
    let path = path(number);
    let mut bytes = [0; HEADER_LEN];
    match read_exact_at(&*disk.open(&path, Open::Read)?, &mut bytes, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
        read => read?,
    }
    match Header::newer_version(&bytes) {
        None => Ok(()),
        Some(found) => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            format!(
                "{} has format {found}, and this release reads up to {VERSION}: use the release \
                 that wrote it, or a newer one",
                path.display()
            ),
        )),
    }
}

/// `None` where no header lies there.
fn header_of(file: &dyn DiskFile) -> io::Result<Option<Header>> {
    let mut bytes = [0; HEADER_LEN];
    match read_exact_at(file, &mut bytes, 0) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(None),
        read => read.map(|()| Header::decode(&bytes)),
    }
}

fn crc_of(file: &dyn DiskFile, len: u64) -> io::Result<u32> {
    let (mut crc, mut at) = (0, 0);
    let mut piece = vec![0; LOOK_LEN];
    while at < len {
        let next = usize::try_from(len - at).unwrap_or(usize::MAX).min(LOOK_LEN);
        read_exact_at(file, &mut piece[..next], CONTENT_AT + at)?;
        crc = crc32c_append(crc, &piece[..next]);
        at += next as u64;
    }
    Ok(crc)
}
