//! Row 3: small appends by write(2) through the mount, against a FUSE file that drops them.

use crate::Scale;
use crate::report::{Case, Wanted};
use crate::rivals::NullFile;
use crate::samples::{Samples, since};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
use tests::patience;
use tests::world::Up;
use tokio::time::Instant;

/// Bytes of an append.
const LEN: usize = 100;

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let up = Up::with(&["--durability", "memory"]);
    let null = NullFile::start();
    let (journal, sink) = (up.file("log"), null.path());
    let case = |writers| Case {
        row: 3,
        what: format!("{LEN}-byte write(2), memory, writers: {writers}"),
        against: "a FUSE file that drops its writes",
        unit: "/s",
        samples: Samples::by_turns(
            scale.repeats,
            || rate(&journal, writers, scale.seconds),
            || rate(&sink, writers, scale.seconds),
        ),
        wanted: Wanted::AtLeast(0.8),
    };
    vec![case(1), case(8)]
}

/// Writes a second to one file, by threads that each have it open.
pub fn rate(path: &Path, writers: usize, seconds: f64) -> f64 {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let begun = Instant::now();
        let writers: Vec<_> =
            (0..writers).map(|_| scope.spawn(|| write_until(path, &stop))).collect();
        patience::pause(Duration::from_secs_f64(seconds));
        stop.store(true, Ordering::Relaxed);
        let written: u64 = writers.into_iter().map(|writer| writer.join().unwrap()).sum();
        written as f64 / since(begun)
    })
}

fn write_until(path: &Path, stop: &AtomicBool) -> u64 {
    let mut file = OpenOptions::new().append(true).create(true).open(path).unwrap();
    let mut content = [b'x'; LEN];
    content[LEN - 1] = b'\n';
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) {
        assert_eq!(file.write(&content).unwrap(), LEN, "a write was short");
        written += 1;
    }
    written
}
