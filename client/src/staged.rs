//! Content of an append that waits in a local file, and is read as it is sent.

use crate::Error;
use crate::limits::PIECE_LEN;
use bytes::Bytes;
use futures::stream::{self, BoxStream, StreamExt};
use index::blocking::off_thread;
use index::disk::{DiskFile, read_exact_at};
use std::io;
use std::sync::{Arc, OnceLock};

/// A part of a local file. Clones are the same content, so that what is asked again is the same.
///
/// Nobody changes the part while any clone is left.
#[derive(Debug, Clone)]
pub struct Staged {
    file: Arc<dyn DiskFile>,
    begin: u64,
    len: u64,
    /// Why it could not be read. Whoever takes the pieces can only stop for it.
    failure: Arc<OnceLock<String>>,
}

impl Staged {
    /// The `len` bytes of `file` from `begin` on.
    pub fn new(file: Arc<dyn DiskFile>, begin: u64, len: u64) -> Self {
        Staged { file, begin, len, failure: Arc::default() }
    }

    pub fn len(&self) -> u64 {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Why the content could not be read, if it was tried.
    pub fn failure(&self) -> Option<Error> {
        self.failure.get().map(|why| Error::Io(format!("staged content can't be read: {why}")))
    }

    /// The content from its begin, in pieces that fit a message. It ends with the first error.
    pub fn pieces(&self) -> BoxStream<'static, io::Result<Bytes>> {
        let whole = self.clone();
        stream::try_unfold(0, move |at| {
            let whole = whole.clone();
            async move {
                if at == whole.len {
                    return Ok(None);
                }
                let piece = whole.piece(at).await?;
                let next = at + piece.len() as u64;
                Ok(Some((piece, next)))
            }
        })
        .boxed()
    }

    /// The pieces for who can't be told of an error: they end too early then, and
    /// [`Staged::failure`] says why.
    pub(crate) fn readable_pieces(&self) -> BoxStream<'static, Bytes> {
        let pieces = self.pieces().scan((), |(), piece| std::future::ready(piece.ok()));
        pieces.boxed()
    }

    async fn piece(&self, at: u64) -> io::Result<Bytes> {
        let len = usize::try_from(self.len - at).unwrap_or(usize::MAX).min(PIECE_LEN);
        let (file, from) = (self.file.clone(), self.begin + at);
        // What was staged long ago has left the page cache.
        let reading = off_thread(move || {
            let mut piece = vec![0; len];
            read_exact_at(&*file, &mut piece, from).map(|()| Bytes::from(piece))
        });
        reading.await.inspect_err(|error| {
            let _first_stays = self.failure.set(error.to_string());
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::TryStreamExt;
    use index::disk::{Disk, ForgetfulDisk, Open};
    use std::path::Path;

    fn file(content: &[u8]) -> Arc<dyn DiskFile> {
        let disk = ForgetfulDisk::new();
        let file = disk.open(Path::new("x"), Open::New).expect("a new disk takes files");
        file.write_at(content, 0).expect("it has room");
        file
    }

    #[tokio::test]
    async fn a_part_of_a_file_is_read_in_pieces_as_often_as_asked() {
        let content: Vec<u8> = (0..2 * PIECE_LEN + 9).map(|at| (at % 251) as u8).collect();
        let file = file(&content);
        // Case: begin, length, pieces
        for (begin, len, count) in
            [(0, 0, 0), (3, 5, 1), (7, PIECE_LEN, 1), (9, 2 * PIECE_LEN, 2), (8, PIECE_LEN + 1, 2)]
        {
            let staged = Staged::new(file.clone(), begin as u64, len as u64);
            for _ in 0..2 {
                let pieces: Vec<Bytes> = staged.pieces().try_collect().await.expect("it is there");
                assert_eq!(pieces.len(), count);
                assert!(pieces.concat() == content[begin..begin + len], "{begin} {len}");
            }
            assert!(staged.failure().is_none());
        }
    }

    #[tokio::test]
    async fn what_can_not_be_read_ends_early_and_says_why() {
        let staged = Staged::new(file(b"short"), 0, 6);
        let pieces: Vec<Bytes> = staged.readable_pieces().collect().await;
        assert!(pieces.is_empty());
        let why = staged.failure().expect("it failed").to_string();
        assert!(why.contains("staged content can't be read"), "{why}");
    }
}
