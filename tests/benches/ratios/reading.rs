//! Rows 1 and 2: reading a local journal through the mount, against the same bytes in a file.

use crate::Scale;
use crate::machine;
use crate::report::{Case, Wanted};
use crate::samples::{Samples, since};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::process::Command;
use tests::ground;
use tests::shell;
use tests::world::Up;
use tokio::time::Instant;

const AGAINST: &str = "the same bytes on the local file system";

/// Bytes that cat writes at once.
const PIECE: usize = 128 << 10;

/// What `grep` counts: one line in five.
const SOUGHT: &str = " 503 ";

/// Both are read from the page cache.
pub fn measure(scale: Scale, is_wanted: &dyn Fn(u32) -> bool) -> Vec<Case> {
    let mut up = Up::start();
    let folder = ground::folder("bench-");
    let local = folder.path().join("log");
    write_log(&local, scale.file_len);
    let journal = up.file("log");
    shell::bash(folder.path(), "cat log >> \"$1\"", &[journal.to_str().unwrap()]).ok();
    // Its fragments are compressed and put in the background.
    machine::until_idle(up.daemon().id());
    // Also brings both into memory.
    shell::run(Command::new("cmp").args([&journal, &local]), tests::patience::LIMIT).ok();

    let mut cases = Vec::new();
    if is_wanted(1) {
        cases.extend([128 << 10, 1 << 20].map(|block| read_case(scale, &journal, &local, block)));
    }
    if is_wanted(2) {
        let programs: [&[&str]; 2] = [&["wc", "-l"], &["grep", "-c", SOUGHT]];
        cases.extend(programs.map(|program| program_case(scale, &journal, &local, program)));
    }
    cases
}

fn read_case(scale: Scale, journal: &Path, local: &Path, block: usize) -> Case {
    let megabytes = scale.file_len as f64 / 1e6;
    let rate = |path: &Path| {
        let begun = Instant::now();
        assert_eq!(read_up_to(path, block, u64::MAX), scale.file_len);
        megabytes / since(begun)
    };
    Case {
        row: 1,
        what: format!("sequential read, {} KiB blocks", block >> 10),
        against: AGAINST,
        unit: "MB/s",
        samples: Samples::by_turns(scale.repeats, || rate(journal), || rate(local)),
        wanted: Wanted::AtLeast(0.95),
    }
}

/// Reads a file to its end, or so many bytes of it; how many there were.
pub fn read_up_to(path: &Path, block: usize, max: u64) -> u64 {
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; block];
    let mut len = 0;
    while len < max {
        match file.read(&mut buffer).unwrap() {
            0 => break,
            count => len += count as u64,
        }
    }
    len
}

fn program_case(scale: Scale, journal: &Path, local: &Path, program: &[&str]) -> Case {
    let megabytes = scale.file_len as f64 / 1e6;
    let rate = |path: &Path| {
        let begun = Instant::now();
        let mut command = Command::new(program[0]);
        let output = command.args(&program[1..]).arg(path).env("LC_ALL", "C").output().unwrap();
        assert!(output.status.success(), "{program:?} fails: {output:?}");
        megabytes / since(begun)
    };
    Case {
        row: 2,
        what: program[..2].join(" "),
        against: AGAINST,
        unit: "MB/s",
        samples: Samples::by_turns(scale.repeats, || rate(journal), || rate(local)),
        wanted: Wanted::AtLeast(0.95),
    }
}

/// Lines as a web server writes them, with numbers that differ, cut at the length.
pub fn write_log(path: &Path, len: u64) {
    // In the pieces in which cat writes the journal: the page cache keeps what was written at once
    // together, and is read as fast as its pieces are large.
    let mut file = BufWriter::with_capacity(PIECE, File::create(path).unwrap());
    let (mut written, mut number) = (0, 1_u64);
    let mut line = String::new();
    while written < len {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let chance = number >> 33;
        let status = [200, 200, 304, 404, 503][chance as usize % 5];
        line.clear();
        writeln!(line, "10.0.0.{} GET /item/{chance}?q={number:x} {status} ", chance % 256)
            .unwrap();
        let part = line.len().min(usize::try_from(len - written).unwrap());
        file.write_all(&line.as_bytes()[..part]).unwrap();
        written += part as u64;
    }
    file.flush().unwrap();
}
