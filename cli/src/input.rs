//! Input of a command: a file or standard input, read beside the network.

use crate::Error;
use crate::output::STANDARD;
use bytes::Bytes;
use std::fs::File;
use std::io::{self, IsTerminal, Read};
use std::path::Path;
use tokio::sync::mpsc;

/// Bytes that are read at once.
const READ_LEN: usize = 256 << 10;

/// Chunks that wait for whoever takes them.
const CHUNKS_MAX: usize = 4;

/// What a command reads.
pub struct Input {
    pub reader: Box<dyn Read + Send>,
    /// Bytes of it, where that is known.
    pub len: Option<u64>,
    /// Somebody types it.
    pub is_typed: bool,
}

impl Input {
    /// A file, or standard input for `-`.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new(STANDARD) {
            let is_typed = io::stdin().is_terminal();
            return Ok(Input { reader: Box::new(io::stdin()), len: None, is_typed });
        }
        let attempt = || format!("read {}", path.display());
        let file = File::open(path).map_err(Error::io(attempt()))?;
        let meta = file.metadata().map_err(Error::io(attempt()))?;
        if meta.is_dir() {
            return Err(Error::Io(attempt(), io::ErrorKind::IsADirectory.into()));
        }
        let len = meta.is_file().then_some(meta.len());
        Ok(Input { reader: Box::new(file), len, is_typed: false })
    }

    /// All of it, on a thread of its own, since standard input can't be read otherwise without
    /// waiting. The thread ends with the input, or with the process.
    pub fn chunks(self) -> Chunks {
        let (sender, chunks) = mpsc::channel(CHUNKS_MAX);
        let mut reader = self.reader;
        std::thread::spawn(move || {
            let mut buffer = vec![0; READ_LEN];
            loop {
                let chunk = match reader.read(&mut buffer) {
                    Ok(0) => return,
                    Ok(len) => Ok(Bytes::copy_from_slice(&buffer[..len])),
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    Err(error) => Err(Error::Io("read the input".to_owned(), error)),
                };
                let is_last = chunk.is_err();
                if sender.blocking_send(chunk).is_err() || is_last {
                    return;
                }
            }
        });
        Chunks(chunks)
    }
}

/// Input as it comes.
pub struct Chunks(mpsc::Receiver<Result<Bytes, Error>>);

impl Chunks {
    /// The next bytes, at least one; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        self.0.recv().await.transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn input_comes_in_chunks() {
        let bytes = vec![7; READ_LEN + 5];
        let reader = Box::new(io::Cursor::new(bytes.clone()));
        let mut chunks = Input { reader, len: None, is_typed: false }.chunks();
        let mut found = Vec::new();
        while let Some(chunk) = chunks.next().await.expect("a cursor can be read") {
            found.extend_from_slice(&chunk);
        }
        assert_eq!(found, bytes);
    }

    #[test]
    fn what_can_t_be_read_is_named() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR"));
        for name in ["missing", "src"] {
            let error = Input::open(&here.join(name)).err().expect("no file").to_string();
            assert!(error.contains(name), "{error}");
        }
        assert!(Input::open(&here.join("Cargo.toml")).expect("a file").len.is_some());
    }
}
