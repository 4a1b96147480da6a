//! Appends in one process, without a door: what the doors and the mount stand on.
//!
//! Each line is a rate in a directory below `TMPDIR`, next to the comparator of the same run.

#![allow(clippy::print_stdout, reason = "a bench prints")]

use broker::{Broker, Config};
use bytes::Bytes;
use client::{Append, Durability, Journals};
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use index::SystemClock;
use index::disk::{Disk, Open, RealDisk};
use protocol::Journal;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

const RUN: Duration = Duration::from_secs(3);

fn journal(at: usize) -> Journal {
    Journal::new(&format!("bench/{at:04}")).expect("a valid name")
}

/// Appends for a while with so many in flight, round over so many journals.
async fn appends(broker: &Broker, what: &str, run: Run) {
    let Run { journals, in_flight, len, durability } = run;
    for at in 0..journals {
        broker.create(&journal(at)).await.expect("it can be created");
    }
    let names: Vec<Journal> = (0..journals).map(journal).collect();
    let content = Bytes::from(vec![b'x'; len]);
    let append = |at: usize| {
        let name = names[at % journals].clone();
        let append = Append { durability: Some(durability), ..Append::new(name, content.clone()) };
        Journals::append(broker, append)
    };
    let mut under_way: FuturesUnordered<_> = (0..in_flight).map(append).collect();
    let begin = Instant::now();
    let mut done = 0;
    while begin.elapsed() < RUN {
        under_way.next().await.expect("some are in flight").expect("it happens");
        done += 1;
        under_way.push(append(done + in_flight));
    }
    let seconds = begin.elapsed().as_secs_f64();
    while under_way.next().await.is_some() {}
    let rate = done as f64 / seconds;
    println!("{what:<44} {rate:>10.0}/s {:>8.1} MB/s", rate * len as f64 / 1e6);
}

struct Run {
    journals: usize,
    in_flight: usize,
    len: usize,
    durability: Durability,
}

/// The comparator of one append in flight at `disk`.
fn syncs(dir: &Path) {
    let disk = RealDisk::new(dir).expect("a directory");
    let file = disk.open(Path::new("comparator"), Open::Any).expect("a file");
    file.write_at(&vec![0; 16 << 20], 0).expect("it is written");
    file.sync().expect("it is synced");
    let begin = Instant::now();
    let mut done = 0u64;
    while begin.elapsed() < RUN {
        file.write_at(&[1; 200], done % 80_000 * 200).expect("it is written");
        file.sync().expect("it is synced");
        done += 1;
    }
    let rate = done as f64 / begin.elapsed().as_secs_f64();
    println!("{:<44} {rate:>10.0}/s", "comparator: write and fdatasync");
}

#[tokio::main]
async fn main() {
    let dir = tempfile::tempdir().expect("a directory");
    syncs(dir.path());
    let config = Config::at(dir.path().join("data"), Arc::new(SystemClock), 1);
    let broker = Broker::open(config.expect("a directory")).await.expect("it opens");
    let (memory, disk) = (Durability::Memory, Durability::Disk);
    // Case: what, journals, in flight, bytes, durability
    for (what, journals, in_flight, len, durability) in [
        ("disk, 1 in flight, 100 B", 1, 1, 100, disk),
        ("disk, 8 in flight, 100 B", 1, 8, 100, disk),
        ("disk, 64 in flight, 100 B", 1, 64, 100, disk),
        ("disk, 1000 journals, 1 each, 100 B", 1000, 1000, 100, disk),
        ("memory, 1 in flight, 100 B", 1, 1, 100, memory),
        ("memory, 8 in flight, 100 B", 1, 8, 100, memory),
        ("memory, 1 in flight, 128 KiB", 1, 1, 128 << 10, memory),
        ("disk, 4 in flight, 1 MiB", 1, 4, 1 << 20, disk),
    ] {
        appends(&broker, what, Run { journals, in_flight, len, durability }).await;
    }
    broker.close().await.expect("it closes");
}
