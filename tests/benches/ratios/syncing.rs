//! Row 12: small writes through the mount that are synced one by one, against the same on the local
//! file system. Row 22: small writes through a mount of a broker that queues them.

use crate::Scale;
use crate::report::{Case, Wanted};
use crate::rivals::NullFile;
use crate::samples::{Samples, since};
use crate::writing;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread;
use tests::ground;
use tests::world::Up;
use tokio::time::Instant;

/// Bytes of a write.
const LEN: usize = 100;

/// Row 12.
pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let up = Up::start();
    let folder = ground::folder("bench-");
    let (journal, local) = (up.file("log"), folder.path().join("log"));
    let mut cases = Vec::new();
    for writers in [1, 8] {
        let (mut middle, mut slow) = (Samples::default(), Samples::default());
        for _ in 0..scale.repeats {
            let ours = latencies(&journal, writers, scale.requests);
            let theirs = latencies(&local, writers, scale.requests);
            for (samples, part) in [(&mut middle, 0.5), (&mut slow, 0.99)] {
                samples.ours.push(quantile(&ours, part));
                samples.theirs.push(quantile(&theirs, part));
            }
        }
        cases.extend([("p50", middle), ("p99", slow)].map(|(name, samples)| Case {
            row: 12,
            what: format!("{LEN}-byte write, fsync, writers: {writers}, {name}"),
            against: "the same on the local file system",
            unit: "us",
            samples,
            wanted: Wanted::AtMost(1.5),
        }));
    }
    cases
}

/// Microseconds of each write with its sync, ascending, by threads that share a file.
fn latencies(path: &Path, writers: usize, requests: usize) -> Vec<f64> {
    let each = requests.div_ceil(writers);
    let mut all: Vec<f64> = thread::scope(|scope| {
        let writers: Vec<_> =
            (0..writers).map(|_| scope.spawn(|| write_and_sync(path, each))).collect();
        writers.into_iter().flat_map(|writer| writer.join().unwrap()).collect()
    });
    all.sort_by(f64::total_cmp);
    all
}

fn write_and_sync(path: &Path, requests: usize) -> Vec<f64> {
    let mut file: File = OpenOptions::new().append(true).create(true).open(path).unwrap();
    let one = || {
        let begun = Instant::now();
        file.write_all(&[b'x'; LEN]).unwrap();
        file.sync_all().unwrap();
        since(begun) * 1e6
    };
    std::iter::repeat_with(one).take(requests).collect()
}

/// Of numbers that ascend.
pub fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part).round() as usize]
}

/// Row 22.
pub fn measure_queued(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let up = Up::start();
    let (plain, queued) = (up.second(), up.second_with(&["--async"]));
    let null = NullFile::start();
    let sink = null.path();
    let case = |what: &str, path: &Path| Case {
        row: 22,
        what: format!("{LEN}-byte write(2), remote mount{what}"),
        against: "a FUSE file that drops its writes",
        unit: "/s",
        samples: Samples::by_turns(
            scale.repeats,
            || writing::rate(path, 1, scale.seconds),
            || writing::rate(&sink, 1, scale.seconds),
        ),
        wanted: Wanted::Told,
    };
    vec![case("", &plain.file("plain")), case(", --async", &queued.file("queued"))]
}
