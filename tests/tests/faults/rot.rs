//! Case T15: bits flip in the local files and in stored fragments while nobody runs. Whatever is
//! read afterwards is right, or an error that names it; nothing is removed because of it.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tests::daemon;
use tests::ground;
use tests::patience::until;
use tests::running::Running;
use tests::shell;
use tests::world::{self, Up};

/// Flips in CI; `FLIPS` asks for more.
const FLIPS: usize = 20;

/// Directories whose files are what is known of journals, and their bytes. What stores have is
/// flipped in `index/tests/bit_rot.rs` and `tests/tests/fsck`.
const PLACES: [&str; 3] = ["log", "checkpoint", "mirror"];

#[test]
fn t15_a_flipped_bit_is_never_read() {
    let whole = Whole::make();
    let mut dice = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = |below: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (dice >> 20) % below
    };
    let (mut right, mut told) = (0, 0);
    for flip in 0..ground::number("FLIPS", FLIPS) {
        let copy = whole.copy();
        let data = copy.path().join("data");
        let files = files(&data, PLACES[flip % PLACES.len()]);
        let file = &files[usize::try_from(next(files.len() as u64)).unwrap()];
        let (at, bit) = (next(fs::metadata(file).unwrap().len()), 1 << next(8));
        flip_bit(file, at, bit);
        let place = format!("flip {flip}, bit {bit:#x} of byte {at} of {}", file.display());
        // What is local is read as it is, as from any file; it is found by who looks for it.
        let is_found = daemon::run(&["inspect", data.to_str().unwrap()]).text().contains("DAMAGED");
        match whole.check(&data) {
            Ok(()) => right += 1,
            Err(_) if is_found => told += 1,
            Err(Seen::Told) => told += 1,
            Err(Seen::Wrong(wrong)) => panic!("{place}: {wrong}"),
        }
    }
    assert!(right > 0, "{right} right, {told} told");
}

#[test]
fn what_is_damaged_opens_again_after_a_repair() {
    let whole = Whole::make();
    // Case: what is flipped, at which byte, whether a start refuses it, and what the repair keeps
    let cases = [
        ("checkpoint", 9, true, "checkpoint"),
        ("keyspace.redb", 2, true, "keyspace.redb"),
        ("mirror", 5000, false, "."),
    ];
    for (place, at, is_refused, kept) in cases {
        let copy = whole.copy();
        let data = copy.path().join("data");
        let path = data.to_str().unwrap();
        if !is_refused {
            // A start moves what is in the log again, over whatever is wrong.
            assert!(whole.check(&data).is_ok(), "it is sound");
        }
        let len = |file: &PathBuf| fs::metadata(file).unwrap().len();
        let file = files(&data, place).into_iter().max_by_key(len).unwrap();
        flip_bit(&file, at, 1);
        if is_refused {
            assert!(matches!(whole.check(&data), Err(Seen::Told)), "{place} is refused");
        }
        let would = daemon::run(&["repair", "--dry-run", path]).ok().text();
        assert!(would.contains(kept) && would.contains("would be"), "{place}: {would}");
        assert!(files(&data, "aside").is_empty(), "{place}: a dry run changed something");
        let done = daemon::run(&["repair", path]).ok().text();
        assert!(!done.contains("would"), "{place}: {done}");
        assert!(done.contains("gone"), "{place}: {done}");
        let is_kept = |file: &PathBuf| file.to_str().unwrap().contains(kept);
        assert!(files(&data, "aside").iter().any(is_kept), "{place}: {done}");
        match whole.check(&data) {
            Ok(()) | Err(Seen::Told) => {}
            Err(Seen::Wrong(wrong)) => panic!("{place}: {wrong}; {done}"),
        }
        let again = daemon::run(&["repair", path]).ok().text();
        assert!(again.contains("nothing was changed"), "{place}: {again}");
    }
}

#[test]
fn what_is_missing_is_refused_and_made_anew_by_a_repair() {
    let whole = Whole::make();
    // Case: a file, what becomes of it, and what inspect says of it
    let cases = [
        ("keyspace.redb", "rm keyspace.redb", "missing or empty"),
        ("keyspace.redb", ": > keyspace.redb", "missing or empty"),
        ("keyspace.redb", "truncate -s 0 keyspace.redb; truncate -s 57344 keyspace.redb", "empty"),
        ("keyspace.redb", "truncate -s 20000 keyspace.redb", "keyspace.redb"),
        ("checkpoint", "rm checkpoint", "missing"),
    ];
    for (file, line, why) in cases {
        let copy = whole.copy();
        let data = copy.path().join("data");
        let path = data.to_str().unwrap();
        shell::bash(&data, line, &[]).ok();
        let inspected = daemon::run(&["inspect", path]);
        assert_eq!(inspected.code, Some(1), "{line}");
        let said = inspected.text() + &inspected.stderr;
        assert!(said.contains(why) && said.contains("courant repair"), "{line}: {said}");
        assert!(matches!(whole.check(&data), Err(Seen::Told)), "{line} is refused");
        let would = daemon::run(&["repair", "--dry-run", path]).ok().text();
        assert!(would.contains("would be") && !would.contains("nothing had"), "{line}: {would}");
        let done = daemon::run(&["repair", path]).ok().text();
        assert!(done.contains("made anew") || done.contains("was made"), "{file}: {done}");
        match whole.check(&data) {
            Ok(()) | Err(Seen::Told) => {}
            Err(Seen::Wrong(wrong)) => panic!("{line}: {wrong}; {done}"),
        }
    }
}

/// What is read of flipped bytes.
pub enum Seen {
    /// An error that names the place.
    Told,
    Wrong(String),
}

/// A data directory at rest, and what its journal has.
pub struct Whole {
    folder: tempfile::TempDir,
    content: Vec<u8>,
}

impl Whole {
    pub fn make() -> Whole {
        let folder = ground::folder("rot-");
        let mut up = Up::planned(&folder.path().join("data"), &[]);
        up.again();
        world::apply(&up, "log", 65_536, "ZSTANDARD");
        let line = "for i in $(seq 3000); do echo \"line $i of what is stored and what is not\"; \
                    done >> log; seq 100000 >> log; for i in 1 2 3; do echo last $i >> log; done";
        up.bash(line, &[]).ok();
        let content = shell::cat(&up.file("log"));
        until("some is stored", || !files(&folder.path().join("data"), "store").is_empty());
        // As a crash leaves it: the log is read again.
        up.daemon().kill();
        Whole { folder, content }
    }

    pub fn copy(&self) -> tempfile::TempDir {
        let copy = ground::folder("rot-");
        let line = "cp -a --sparse=always data \"$1\"";
        shell::bash(self.folder.path(), line, &[copy.path().to_str().unwrap()]).ok();
        copy
    }

    /// Starts a broker on it and reads all.
    pub fn check(&self, data: &Path) -> Result<(), Seen> {
        let up = Up::planned(data, &[]);
        let mut starting = Running::start(&mut daemon::courant(&up.command()));
        let serves = |of: &Running| String::from_utf8_lossy(&of.stdout()).contains("ready:");
        until("it serves, or ends", || serves(&starting) || starting.ended().is_some());
        if !serves(&starting) {
            starting.wait(SAID_LIMIT);
            let said = starting.stderr();
            return match said.contains("courant: ") && !said.contains("panicked") {
                true => Err(Seen::Told),
                false => Err(Seen::Wrong(said)),
            };
        }
        let read = self.read(&up.file("log"));
        let log = starting.stderr();
        let is_told = ["damaged", "cut off", "lost"].iter().any(|word| log.contains(word));
        match read {
            Err(wrong) => Err(Seen::Wrong(format!("{wrong}; the log: {log}"))),
            Ok(len) if len == self.content.len() => Ok(()),
            Ok(_) if is_told => Err(Seen::Told),
            Ok(len) => {
                Err(Seen::Wrong(format!("{len} bytes are there, and nobody says why: {log}")))
            }
        }
    }

    /// How many bytes are there, of which each is right.
    fn read(&self, file: &Path) -> Result<usize, String> {
        let file = match fs::File::open(file) {
            Ok(file) => file,
            Err(error) => return Err(format!("it can't be opened: {error}")),
        };
        let (mut at, mut found, mut piece) = (0, 0, vec![0; PIECE]);
        while at < self.content.len() {
            // A damaged part is an error, and what is behind it goes on.
            let n = file.read_at(&mut piece, at as u64).unwrap_or(0);
            if piece[..n] != self.content[at..at + n] {
                return Err(format!("of {n} bytes at {at} some are wrong"));
            }
            found += n;
            at += if n == 0 { PIECE - at % PIECE } else { n };
        }
        Ok(found)
    }
}

/// How long the last words of one that ended may be under way.
const SAID_LIMIT: Duration = Duration::from_secs(30);

/// Bytes of a read.
const PIECE: usize = 4096;

pub fn flip_bit(path: &Path, at: u64, bit: u8) {
    let file = fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ bit], at).unwrap();
}

/// All files below a place that have bytes.
pub fn files(data: &Path, place: &str) -> Vec<PathBuf> {
    let line = "find \"$1\" -type f -size +0 | sort";
    let found = shell::bash(data, line, &[place]).ok().text();
    found.lines().map(|line| data.join(line)).collect()
}
