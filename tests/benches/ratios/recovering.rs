//! Row 16: from the start after a kill -9 to the line that says that it serves, with many bytes in
//! the mirrors and many commits in the log, against reading that log.

use crate::Scale;
use crate::report::{Case, Wanted};
use crate::samples::{Samples, since};
use crate::storing;
use crate::wire::Wire;
use bytes::Bytes;
use std::path::Path;
use tests::ground;
use tests::shell;
use tests::world::Up;
use tokio::time::Instant;

/// Small appends of the full run, and bytes in large ones.
const COMMITS: usize = 1_000_000;
const BYTES: usize = 10 << 30;

/// Of both, what a quick run has.
const QUICK_SHARE: usize = 10;

/// Bytes of a small append, and of a large one.
const SMALL: usize = 100;
const LARGE: usize = 1 << 20;

/// Each is a start, and slow.
const STARTS: usize = 3;

pub fn measure(scale: Scale, _is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let share = if scale.is_full() { 1 } else { QUICK_SHARE };
    let (commits, bytes) = (COMMITS / share, BYTES / share);
    let ground = ground::folder("bench-");
    let data = ground.path().join("data");
    let mut up = Up::planned(&data, &["--durability", "memory"]);
    up.again();
    storing::create_without_store(&up);
    let wire = Wire::new();
    let large = wire.appends(&up.url(), "local/log", &Bytes::from(storing::noise(LARGE)));
    wire.make(&large, 4, bytes / LARGE);
    let small = wire.appends(&up.url(), "local/log", &Bytes::from(vec![b'x'; SMALL]));
    let mut samples = Samples::default();
    for _ in 0..STARTS {
        wire.make(&small, 64, commits / STARTS / 64 * 64);
        up.daemon().kill();
        samples.theirs.push(read_log(&data));
        let begun = Instant::now();
        up.again();
        samples.ours.push(since(begun) * 1e3);
    }
    vec![Case {
        row: 16,
        what: format!("kill -9 to ready, {} GiB, {commits} commits", bytes >> 30),
        against: "reading the log that is left",
        unit: "ms",
        samples,
        wanted: Wanted::AtMost(2.0),
    }]
}

/// Milliseconds.
fn read_log(data: &Path) -> f64 {
    let begun = Instant::now();
    shell::bash(data, "cat log/* | wc -c", &[]).ok();
    since(begun) * 1e3
}
