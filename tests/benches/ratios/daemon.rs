//! Row 13: reads that go through the daemon, against a FUSE file that is served from memory. Row
//! 20: small reads at random places that the kernel makes itself, against the local file.

use crate::Scale;
use crate::machine;
use crate::reading;
use crate::report::{Case, Wanted};
use crate::rivals::NullFile;
use crate::samples::{Samples, since};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use tests::ground;
use tests::shell;
use tests::world::Up;
use tokio::time::Instant;

/// Bytes that are read in one measurement, at most: as many as the FUSE file has.
const LEN_MAX: u64 = 256 << 20;

/// Bytes of a read at a random place, and how many such reads are measured at once.
const SMALL: usize = 4096;
const READS: u64 = 20_000;

/// Row 13.
pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let len = scale.file_len.min(LEN_MAX);
    let mut up = Up::with(&["--no-passthrough"]);
    let folder = ground::folder("bench-");
    let journal = journal_of(&mut up, &folder.path().join("log"), len);
    let null = NullFile::start();
    let source = null.source();
    let rate = |path: &Path, block: usize| {
        let begun = Instant::now();
        assert!(reading::read_up_to(path, block, len) == len, "the file is short");
        len as f64 / 1e6 / since(begun)
    };
    let case = |block: usize| Case {
        row: 13,
        what: format!("read through the daemon, {} KiB blocks", block >> 10),
        against: "a FUSE file served from memory",
        unit: "MB/s",
        samples: Samples::by_turns(
            scale.repeats,
            || rate(&journal, block),
            || rate(&source, block),
        ),
        wanted: Wanted::AtLeast(0.8),
    };
    [16 << 10, 128 << 10, 1 << 20].map(case).into()
}

/// Row 20.
pub fn measure_random(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let mut up = Up::start();
    let folder = ground::folder("bench-");
    let local = folder.path().join("log");
    let journal = journal_of(&mut up, &local, scale.file_len);
    let (ours, theirs) = (File::open(&journal).unwrap(), File::open(&local).unwrap());
    // Both into memory.
    for file in [&ours, &theirs] {
        rate_at_random(file, scale.file_len);
    }
    vec![Case {
        row: 20,
        what: format!("{SMALL}-byte reads at random places"),
        against: "the same of the local file",
        unit: "/s",
        samples: Samples::by_turns(
            scale.repeats,
            || rate_at_random(&ours, scale.file_len),
            || rate_at_random(&theirs, scale.file_len),
        ),
        // Passthrough within 1.2 times of the local file.
        wanted: Wanted::AtLeast(0.83),
    }]
}

fn rate_at_random(file: &File, len: u64) -> f64 {
    let mut buffer = vec![0; SMALL];
    let mut place = 1_u64;
    let begun = Instant::now();
    for _ in 0..READS {
        place = place.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let offset = (place >> 20) % (len - SMALL as u64);
        file.read_exact_at(&mut buffer, offset).unwrap();
    }
    READS as f64 / since(begun)
}

/// A journal of so many bytes, which are in `local` as well, when nothing is compressed or put any
/// more.
fn journal_of(up: &mut Up, local: &Path, len: u64) -> PathBuf {
    reading::write_log(local, len);
    let journal = up.file("log");
    let paths = [local.to_str().unwrap(), journal.to_str().unwrap()];
    shell::bash(up.data(), "cat \"$1\" >> \"$2\"", &paths).ok();
    machine::until_idle(up.daemon().id());
    journal
}
