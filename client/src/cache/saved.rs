//! The list of what a cache has, between a clean stop and the next start.
//!
//! The bytes themselves are not synced: they are in the page cache of this boot, or on disk. So a
//! list of another boot says nothing, and neither does one of another source.

use super::kept::{Kept, State};
use super::limits::LIST_MAX;
use super::refused::Refused;
use index::disk::{self, Disk, Open, read_exact_at};
use protocol::{Journal, Life, Offset, Span};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::io;
use std::path::Path;

/// The file of the list: a line with its sum, and JSON.
const LIST: &str = "list";

/// See the module.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Saved {
    pub source: String,
    pub boot: String,
    pub mirrors: Vec<SavedMirror>,
}

/// What one mirror has. Valid as read: spans are in order, and below the head.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Row", into = "Row")]
pub(super) struct SavedMirror {
    journal: Journal,
    life: Life,
    first: Offset,
    head: Offset,
    local: Vec<Span>,
}

/// A mirror as it is written.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Row {
    journal: String,
    life: u64,
    first: i64,
    head: i64,
    local: Vec<(i64, i64)>,
}

impl From<SavedMirror> for Row {
    fn from(saved: SavedMirror) -> Row {
        Row {
            journal: saved.journal.to_string(),
            life: saved.life.get(),
            first: saved.first.get(),
            head: saved.head.get(),
            local: saved.local.iter().map(|span| (span.begin().get(), span.end().get())).collect(),
        }
    }
}

impl TryFrom<Row> for SavedMirror {
    type Error = protocol::Invalid;

    fn try_from(row: Row) -> Result<Self, protocol::Invalid> {
        let span = |(begin, end)| Span::new(Offset::new(begin)?, Offset::new(end)?);
        let head = Offset::new(row.head)?;
        let local = row.local.into_iter().map(span).collect::<Result<Vec<Span>, _>>()?;
        if local.iter().any(|span| span.end() > head) {
            return Err(protocol::Invalid::new(format!("bytes beyond the head ({head})")));
        }
        let journal = Journal::new(&row.journal)?;
        let (life, first) = (Life::new(row.life), Offset::new(row.first)?);
        Ok(SavedMirror { journal, life, first, head, local })
    }
}

impl SavedMirror {
    /// What is worth being listed of a mirror.
    pub fn of(kept: &Kept) -> Option<SavedMirror> {
        let state = kept.state();
        let local: Vec<Span> = state.local.iter().collect();
        let (first, head) = (state.first, state.head);
        let is_listed = !state.is_gone && !local.is_empty();
        is_listed.then(|| SavedMirror {
            journal: kept.journal.clone(),
            life: kept.life,
            first,
            head,
            local,
        })
    }

    pub fn journal(&self) -> Journal {
        self.journal.clone()
    }

    pub fn life(&self) -> Life {
        self.life
    }

    pub fn into_state(self) -> State {
        State::new(self.local.into_iter().collect(), self.first, self.head)
    }
}

fn sum(body: &[u8]) -> String {
    let mut text = String::new();
    for byte in digest(&SHA256, body).as_ref() {
        write!(text, "{byte:02x}").expect("a string takes every byte");
    }
    text
}

/// Writes the list. Without a sync: it is worth something on this boot only.
pub(super) fn put(disk: &dyn Disk, saved: &Saved) -> io::Result<()> {
    let body = serde_json::to_vec(saved).map_err(io::Error::other)?;
    let text = [sum(&body).as_bytes(), b"\n", &body].concat();
    disk::replace(disk, Path::new(LIST), &text)
}

/// Reads the list and removes it. Nothing of one that is damaged, or of another boot or source.
pub(super) fn take(disk: &dyn Disk, source: &str) -> Result<Vec<SavedMirror>, Refused> {
    let path = Path::new(LIST);
    let text = match read(disk, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(Refused::disk(disk, path))?,
    };
    disk.remove(path).map_err(Refused::disk(disk, path))?;
    let boot = disk.boot_id().map_err(Refused::disk(disk, path))?;
    let saved = parse(&text).filter(|saved| saved.boot == boot && saved.source == source);
    if saved.is_none() {
        tracing::info!("the cache is of another start of the system, or of another source");
    }
    Ok(saved.map(|saved| saved.mirrors).unwrap_or_default())
}

fn read(disk: &dyn Disk, path: &Path) -> io::Result<Vec<u8>> {
    let file = disk.open(path, Open::Read)?;
    let len = file.len()?;
    if len > LIST_MAX {
        return Ok(Vec::new());
    }
    let mut text = vec![0; usize::try_from(len).expect("a list is small")];
    read_exact_at(&*file, &mut text, 0)?;
    Ok(text)
}

fn parse(text: &[u8]) -> Option<Saved> {
    let at = text.iter().position(|byte| *byte == b'\n')?;
    let (line, body) = (&text[..at], &text[at + 1..]);
    if line != sum(body).as_bytes() {
        return None;
    }
    serde_json::from_slice(body).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use index::disk::ForgetfulDisk;

    fn saved(boot: &str) -> Saved {
        let span = Span::at(Offset::from(5), 7);
        let mirror = SavedMirror {
            journal: "local/log".parse().expect("valid"),
            life: Life::new(17),
            first: Offset::ZERO,
            head: Offset::from(20),
            local: vec![span],
        };
        Saved { source: "here".to_owned(), boot: boot.to_owned(), mirrors: vec![mirror] }
    }

    #[test]
    fn a_list_is_taken_once_and_only_where_it_was_made() {
        let disk = ForgetfulDisk::new();
        let boot = disk.boot_id().expect("a boot");
        // Case: the boot of the list, whose source asks, how many mirrors there are
        let cases = [(boot.as_str(), "here", 1), (&boot, "there", 0), ("before", "here", 0)];
        for (of, source, expected) in cases {
            put(&disk, &saved(of)).expect("room");
            assert_eq!(take(&disk, source).expect("readable").len(), expected, "{of} {source}");
            assert_eq!(take(&disk, source).expect("readable").len(), 0, "it is gone");
        }
    }

    #[test]
    fn a_damaged_list_is_none() {
        let disk = ForgetfulDisk::new();
        let boot = disk.boot_id().expect("a boot");
        put(&disk, &saved(&boot)).expect("room");
        let text = read(&disk, Path::new(LIST)).expect("it was put");
        assert!(parse(&text).is_some());
        for at in 0..text.len() {
            let mut damaged = text.clone();
            damaged[at] ^= 1;
            assert!(parse(&damaged).is_none(), "byte {at}");
        }
        assert!(parse(&text[..text.len() - 1]).is_none());
    }
}
