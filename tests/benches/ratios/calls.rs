//! Rows 4, 5 and 6: small appends over gRPC, against a service that drops them, with a sync of the
//! disk where it is due.

use crate::Scale;
use crate::report::{Case, Wanted};
use crate::rivals::NullBroker;
use crate::samples::{Samples, median, since};
use crate::wire::{Appends, Wire};
use bytes::Bytes;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tests::ground;
use tests::shell;
use tests::world::Up;
use tokio::time::Instant;

/// Bytes of an append.
const LEN: usize = 100;

/// Bytes of the file that is synced, all of them written before.
const PREWRITTEN: u64 = 64 << 20;

pub fn measure(scale: Scale, is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let wire = Wire::new();
    let content = Bytes::from(vec![b'x'; LEN]);
    let null = NullBroker::start();
    let dropped = wire.appends(&null.url(), "local/log", &content);
    let mut cases = Vec::new();
    if is_wanted(4) {
        let up = Up::with(&["--durability", "memory"]);
        let appends = appends(&wire, &up, &content);
        cases.extend([1, 8, 64].map(|count| rate_case(scale, &wire, &appends, &dropped, count)));
    }
    if is_wanted(5) {
        let [disk, memory] = ["disk", "memory"].map(|name| Up::with(&["--durability", name]));
        let [disk, memory] = [&disk, &memory].map(|up| appends(&wire, up, &content));
        cases.push(disk_case(scale, &wire, &disk, &memory));
    }
    if is_wanted(6) {
        let up = Up::with(&["--durability", "disk"]);
        cases.push(latency_case(scale, &wire, &appends(&wire, &up, &content), &dropped));
    }
    cases
}

/// Appends to a journal that is made for it.
fn appends(wire: &Wire, up: &Up, content: &Bytes) -> Appends {
    up.bash("echo begin >> log", &[]).ok();
    wire.appends(&up.url(), "local/log", content)
}

fn rate_case(
    scale: Scale,
    wire: &Wire,
    appends: &Appends,
    dropped: &Appends,
    in_flight: usize,
) -> Case {
    let rate = |appends| wire.rate(appends, in_flight, scale.seconds);
    Case {
        row: 4,
        what: format!("{LEN}-byte Append, memory, {in_flight} in flight"),
        against: "a client-streaming RPC that does nothing",
        unit: "/s",
        samples: Samples::by_turns(scale.repeats, || rate(appends), || rate(dropped)),
        wanted: Wanted::AtLeast(0.8),
    }
}

fn disk_case(scale: Scale, wire: &Wire, disk: &Appends, memory: &Appends) -> Case {
    const IN_FLIGHT: usize = 64;
    let rate = |appends| wire.rate(appends, IN_FLIGHT, scale.seconds);
    Case {
        row: 5,
        what: format!("{LEN}-byte Append, disk, {IN_FLIGHT} in flight"),
        against: "the same at memory",
        unit: "/s",
        samples: Samples::by_turns(scale.repeats, || rate(disk), || rate(memory)),
        wanted: Wanted::AtLeast(0.7),
    }
}

/// Request by request in turn: a sync is as slow as the disk is busy.
fn latency_case(scale: Scale, wire: &Wire, appends: &Appends, dropped: &Appends) -> Case {
    let folder = ground::folder("bench-");
    let mut disk = Prewritten::new(&folder.path().join("prewritten"));
    let (mut appends, mut dropped) = (appends.clone(), dropped.clone());
    let mut samples = Samples::default();
    for _ in 0..scale.repeats {
        let round = async || [appends.timed().await, dropped.timed().await, disk.sync()];
        let [append, drop, sync] = wire.rounds(scale.requests, round).map(|all| median(&all) * 1e6);
        samples.ours.push(append);
        samples.theirs.push(drop + sync);
    }
    Case {
        row: 6,
        what: format!("{LEN}-byte Append, disk, 1 in flight, p50"),
        against: "the RPC that does nothing, and one fdatasync of a pre-written file",
        unit: "us",
        samples,
        wanted: Wanted::AtMost(1.3),
    }
}

/// A file whose blocks are all there, so that a sync writes content and nothing else.
struct Prewritten {
    file: File,
    next: u64,
}

impl Prewritten {
    fn new(path: &Path) -> Prewritten {
        let folder = path.parent().unwrap();
        let blocks = (PREWRITTEN >> 20).to_string();
        let line = "dd if=/dev/zero of=\"$1\" bs=1M count=$2 conv=fsync";
        shell::bash(folder, line, &[path.to_str().unwrap(), &blocks]).ok();
        Prewritten { file: OpenOptions::new().write(true).open(path).unwrap(), next: 0 }
    }

    /// Writes as much as an append, and syncs it; the seconds that it took.
    fn sync(&mut self) -> f64 {
        let begun = Instant::now();
        self.file.write_all_at(&[b'x'; LEN], self.next).unwrap();
        self.file.sync_data().unwrap();
        self.next = (self.next + LEN as u64) % (PREWRITTEN - LEN as u64);
        since(begun)
    }
}
