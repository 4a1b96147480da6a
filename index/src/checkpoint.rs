//! The state of all journals at one place of the commit log, so that what lies before can go.
//!
//! A checkpoint is written aside, synced and renamed. Each ledger in it is as of a record of its
//! own; `start` is the oldest place from which records may still be needed: for folding, or for
//! content that was not in its mirror. On replay, a record that its ledger has folded already only
//! moves its content again.

use crate::disk::{self, Disk, Open};
use crate::ledger::{Closed, Ledger, Spool, Stored, WriterState, offset};
use crate::record::{self, Mark, Persisted, Position, Rolled};
use crate::spans::SpanSet;
use crate::{Error, log, registers};
use prost::Message;
use protocol::{Codec, Journal, Life, Span, Sum};
use std::collections::BTreeMap;
use std::path::Path;

/// The checkpoint's file, below the data directory.
pub const FILE: &str = "checkpoint";

/// See the module.
#[derive(Debug, Clone, Default)]
pub struct Checkpoint {
    pub start: Position,
    /// The boot under which it was written.
    pub boot_id: String,
    pub ledgers: Vec<Ledger>,
}

#[derive(Clone, PartialEq, Message)]
struct StoredCheckpoint {
    #[prost(uint32, tag = "1")]
    format: u32,
    #[prost(uint64, tag = "2")]
    start: u64,
    #[prost(message, repeated, tag = "3")]
    journals: Vec<StoredLedger>,
    #[prost(string, tag = "4")]
    boot_id: String,
}

#[derive(Clone, PartialEq, Message)]
struct StoredLedger {
    #[prost(fixed64, tag = "1")]
    life: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int64, tag = "3")]
    head: i64,
    #[prost(int64, tag = "4")]
    ceiling: i64,
    #[prost(bytes = "vec", tag = "5")]
    registers: Vec<u8>,
    /// The spool, as the record that would close it.
    #[prost(message, optional, tag = "6")]
    spool: Option<Rolled>,
    #[prost(message, repeated, tag = "7")]
    closed: Vec<Rolled>,
    #[prost(message, repeated, tag = "8")]
    persisted: Vec<Persisted>,
    #[prost(message, repeated, tag = "9")]
    local: Vec<Mark>,
    #[prost(message, repeated, tag = "10")]
    lost: Vec<Mark>,
    #[prost(message, repeated, tag = "11")]
    damaged: Vec<Mark>,
    #[prost(int64, tag = "12")]
    trimmed: i64,
    #[prost(message, optional, tag = "13")]
    mark: Option<record::Synced>,
    #[prost(message, repeated, tag = "14")]
    writers: Vec<StoredWriter>,
    #[prost(uint64, tag = "15")]
    modified_us: u64,
    #[prost(uint64, tag = "16")]
    as_of: u64,
}

#[derive(Clone, PartialEq, Message)]
struct StoredWriter {
    #[prost(bytes = "vec", tag = "1")]
    id: Vec<u8>,
    #[prost(uint64, tag = "2")]
    sequence: u64,
    #[prost(int64, tag = "3")]
    begin: i64,
    #[prost(int64, tag = "4")]
    end: i64,
}

impl Checkpoint {
    /// Replaces the checkpoint on disk; durable when this returns.
    pub fn write(&self, disk: &dyn Disk) -> Result<(), Error> {
        disk::replace(disk, Path::new(FILE), &self.encode()).map_err(Error::disk("replace", FILE))
    }

    /// The bytes of its file.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let stored = StoredCheckpoint {
            format: record::FORMAT,
            start: self.start.0,
            boot_id: self.boot_id.clone(),
            journals: self.ledgers.iter().map(store).collect(),
        };
        let mut bytes = vec![0; 4];
        stored.encode(&mut bytes).expect("a Vec grows");
        let crc = crc32c::crc32c(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The checkpoint on disk; `None` in a new directory.
    pub fn read(disk: &dyn Disk) -> Result<Option<Checkpoint>, Error> {
        if let Some(bytes) = bytes(disk, Path::new(FILE))? {
            return Checkpoint::decode(&bytes).map(Some);
        }
        // It is there before the first segment is.
        if log::numbers(disk)?.next().is_some() {
            let why = "it is missing, and the commit log is there";
            return Err(Error::Damaged(FILE.into(), why.to_owned()));
        }
        Ok(None)
    }

    /// The checkpoint in a file of such bytes.
    pub fn decode(bytes: &[u8]) -> Result<Checkpoint, Error> {
        let path = Path::new(FILE);
        let damaged = |what: &str| Error::Damaged(path.into(), what.to_owned());
        let (crc, body) =
            bytes.split_first_chunk::<4>().ok_or_else(|| damaged("it is cut short"))?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*crc) {
            return Err(damaged("its checksum does not match"));
        }
        let stored = StoredCheckpoint::decode(body).map_err(|error| damaged(&error.to_string()))?;
        if stored.format > record::FORMAT {
            let (found, known) = (stored.format, record::FORMAT);
            return Err(Error::NewerFormat { file: path.into(), found, known });
        }
        let ledgers = stored.journals.into_iter().map(load).collect::<Option<Vec<_>>>();
        let ledgers = ledgers.ok_or_else(|| damaged("it holds an invalid name"))?;
        Ok(Checkpoint { start: Position(stored.start), boot_id: stored.boot_id, ledgers })
    }
}

/// All bytes of a file of checkpoints, if there is one.
pub(crate) fn bytes(disk: &dyn Disk, path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let file = match disk.open(path, Open::Read) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        other => other.map_err(Error::disk("open", path))?,
    };
    let len = file.len().map_err(Error::disk("stat", path))?;
    let bytes = disk::read_file(&*file, 0, len).map_err(Error::disk("read", path))?;
    Ok(Some(bytes))
}

fn store_spans(life: Life, set: &SpanSet) -> Vec<Mark> {
    let mark =
        |span: Span| Mark { life: life.get(), begin: span.begin().get(), end: span.end().get() };
    set.iter().map(mark).collect()
}

fn load_spans(marks: &[Mark]) -> SpanSet {
    marks.iter().map(|mark| Span::between(offset(mark.begin), offset(mark.end))).collect()
}

fn store(ledger: &Ledger) -> StoredLedger {
    let life = ledger.life;
    let stored = ledger.closed.iter().filter_map(|closed| {
        closed.persisted.as_ref().map(|stored| persisted(life, closed.span, stored))
    });
    StoredLedger {
        life: life.get(),
        name: ledger.name.as_str().to_owned(),
        head: ledger.head.get(),
        ceiling: ledger.ceiling.get(),
        registers: registers::encode(&ledger.registers),
        spool: Some(ledger.rolled()),
        closed: ledger.closed.iter().map(|closed| rolled(life, closed)).collect(),
        persisted: stored.collect(),
        local: store_spans(life, &ledger.local),
        lost: store_spans(life, &ledger.lost),
        damaged: store_spans(life, &ledger.damaged),
        trimmed: ledger.trimmed.get(),
        mark: ledger.mark.map(|(end, crc)| record::Synced {
            life: life.get(),
            begin: ledger.spool.begin.get(),
            end: end.get(),
            crc,
        }),
        writers: ledger.writers.iter().map(store_writer).collect(),
        modified_us: ledger.modified_us,
        as_of: ledger.as_of.0,
    }
}

fn rolled(life: Life, closed: &Closed) -> Rolled {
    Rolled {
        life: life.get(),
        begin: closed.span.begin().get(),
        end: closed.span.end().get(),
        crc: closed.crc,
        first_append_us: closed.first_append_us,
        codec: closed.codec.number(),
    }
}

/// The record that says where a closed span is stored.
pub(crate) fn persisted(life: Life, span: Span, stored: &Stored) -> Persisted {
    Persisted {
        life: life.get(),
        begin: span.begin().get(),
        end: span.end().get(),
        sum: stored.sum.as_bytes().to_vec(),
        store: stored.store.clone(),
        postfix: stored.postfix.clone(),
        mod_time: stored.mod_time,
        codec: stored.codec.number(),
    }
}

fn store_writer(writer: &WriterState) -> StoredWriter {
    StoredWriter {
        id: writer.id.to_vec(),
        sequence: writer.sequence,
        begin: writer.span.begin().get(),
        end: writer.span.end().get(),
    }
}

fn codec(number: i32) -> Codec {
    Codec::try_from(number).unwrap_or(Codec::None)
}

fn load(stored: StoredLedger) -> Option<Ledger> {
    let spool = stored.spool.unwrap_or_default();
    let places =
        stored.persisted.iter().map(|persisted| ((persisted.begin, persisted.end), persisted));
    let places: BTreeMap<_, _> = places.collect();
    let closed = stored.closed.iter().map(|rolled| Closed {
        span: Span::between(offset(rolled.begin), offset(rolled.end)),
        crc: rolled.crc,
        first_append_us: rolled.first_append_us,
        codec: codec(rolled.codec),
        persisted: places.get(&(rolled.begin, rolled.end)).map(|persisted| load_stored(persisted)),
    });
    Some(Ledger {
        life: Life::new(stored.life),
        name: Journal::new(&stored.name).ok()?,
        head: offset(stored.head),
        ceiling: offset(stored.ceiling),
        registers: registers::decode(&stored.registers),
        spool: Spool {
            begin: offset(spool.begin),
            crc: spool.crc,
            first_append_us: spool.first_append_us,
            codec: codec(spool.codec),
        },
        closed: closed.collect(),
        local: load_spans(&stored.local),
        lost: load_spans(&stored.lost),
        damaged: load_spans(&stored.damaged),
        trimmed: offset(stored.trimmed),
        mark: stored.mark.map(|mark| (offset(mark.end), mark.crc)),
        writers: stored.writers.iter().filter_map(load_writer).collect(),
        modified_us: stored.modified_us,
        as_of: Position(stored.as_of),
    })
}

fn load_stored(persisted: &Persisted) -> Stored {
    Stored {
        sum: Sum::new(<[u8; 20]>::try_from(persisted.sum.as_slice()).unwrap_or_default()),
        store: persisted.store.clone(),
        postfix: persisted.postfix.clone(),
        mod_time: persisted.mod_time,
        codec: codec(persisted.codec),
    }
}

fn load_writer(writer: &StoredWriter) -> Option<WriterState> {
    Some(WriterState {
        id: writer.id.as_slice().try_into().ok()?,
        sequence: writer.sequence,
        span: Span::between(offset(writer.begin), offset(writer.end)),
    })
}
