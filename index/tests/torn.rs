//! Torn tails: the log is cut, or zeroed, at every byte of its last records, and the mirror at
//! every byte of what they brought, after a kill and after another boot. Whatever was synced is
//! there; of the rest each append is there whole, or lost by name; the head does not go below one
//! that was shown.

use futures::FutureExt;
use index::checkpoint::Checkpoint;
use index::clock::ManualClock;
use index::disk::{Crash, Disk, ForgetfulDisk, Open, read_exact_at};
use index::{Content, DataDir, Entry, Located, Options, Recovered, Replica, log};
use protocol::{Journal, Life, Offset, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;

const LIFE: Life = Life::new(7);

/// Appends that are synced, and such that are not.
const SYNCED: usize = 3;
const ALL: usize = 7;

/// What lies behind a cut.
#[derive(Debug, Clone, Copy)]
enum Behind {
    /// The file ends there.
    Nothing,
    /// As it was pre-written, or as a file system fills what it lost.
    Zeros,
}

fn open(disk: &ForgetfulDisk) -> (Arc<DataDir>, Recovered) {
    let clock = Arc::new(ManualClock::at_us(1_800_000_000_000_000));
    let options = Options { segment_len: Some(64 << 10), ..Options::default() };
    DataDir::open(Arc::new(disk.clone()), clock, options).expect("it opens whatever is torn")
}

/// The content of an append: its number, as often as makes it longer than those before.
fn content(number: usize) -> String {
    char::from(b'a' + u8::try_from(number).expect("there are few")).to_string().repeat(20 + number)
}

fn span(number: usize) -> Span {
    let begin: usize = (0..number).map(|before| content(before).len()).sum();
    Span::at(Offset::try_from(begin as u64).expect("it is small"), content(number).len() as u64)
}

fn append(data: &DataDir, number: usize) -> Span {
    let replica = data.replica(LIFE).expect("it exists");
    let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
    let content = Content::Memory(content(number).into());
    // The last of those that are synced raises the ceiling for those that are not.
    let is_disk = number + 1 < SYNCED;
    let entry = Entry { content, registers: None, writer: None, is_disk };
    let commit = turn.record(entry).expect("there is room");
    drop(turn);
    if number < SYNCED {
        data.sync_round().expect("a healthy disk");
    }
    commit.done().now_or_never().expect("it is done").expect("it happened")
}

/// What a kill leaves: some appends that were synced, and some that were not.
struct Left {
    disk: ForgetfulDisk,
    /// The log's segment, and where each append's frame is in it, in order.
    segment: PathBuf,
    frames: Vec<(u64, u64)>,
    mirror: PathBuf,
}

fn left() -> Left {
    let disk = ForgetfulDisk::new();
    let (data, _) = open(&disk);
    data.create(LIFE, &Journal::new("a/journal").expect("a valid name")).expect("there is room");
    for number in 0..ALL {
        assert_eq!(append(&data, number), span(number));
    }
    let disk = disk.crash(Crash::Kill);
    let start = Checkpoint::read(&disk).expect("it verifies").expect("it is there").start;
    let mut frames = Vec::new();
    log::scan(&disk, start, |frame| {
        frames.push((frame.position, u64::from(frame.len)));
        Ok(())
    })
    .expect("nothing is torn yet");
    // The appends are last but for marks of ours.
    let segment = frames.last().expect("there are some").0.segment();
    let path = log::path_of(segment);
    let file = disk.open(&path, Open::Read).expect("it is there");
    let frames: Vec<(u64, u64)> = frames
        .iter()
        .filter(|(position, _)| position.segment() == segment)
        .map(|(position, len)| {
            let begin = u64::from(position.offset());
            let mut frame = vec![0; usize::try_from(*len).expect("it is short")];
            read_exact_at(&*file, &mut frame, begin).expect("memory");
            // Zeros that fill a frame up are there whether or not they are cut.
            let used = frame.iter().rposition(|byte| *byte != 0).expect("it has a sum") + 1;
            (begin, begin + used as u64)
        })
        .collect();
    let mirrors = disk.list(Path::new("mirror")).expect("memory");
    let mirror = Path::new("mirror").join(&mirrors.first().expect("there is one").name);
    Left { disk, segment: path, frames, mirror }
}

/// Cuts a file at a byte.
fn cut(disk: &ForgetfulDisk, path: &Path, at: u64, behind: Behind) {
    let file = disk.open(path, Open::Existing).expect("it is there");
    let len = file.len().expect("memory");
    match behind {
        Behind::Nothing => file.set_len(at).expect("memory"),
        Behind::Zeros => {
            let zeros = vec![0; usize::try_from(len - at).expect("it is short")];
            file.write_at(&zeros, at).expect("memory");
        }
    }
}

/// The disk as another boot finds it, with nothing forgotten but what was cut.
fn another_boot(disk: &ForgetfulDisk) -> ForgetfulDisk {
    let mut dirs = vec![PathBuf::new()];
    while let Some(dir) = dirs.pop() {
        for entry in disk.list(&dir).expect("memory") {
            let path = dir.join(&entry.name);
            match entry.is_dir {
                true => dirs.push(path),
                false => disk.open(&path, Open::Existing).expect("memory").sync().expect("memory"),
            }
        }
        disk.sync_dir(&dir).expect("memory");
    }
    disk.crash(Crash::Power(1))
}

/// Which appends are there, each right and whole.
fn found(replica: &Replica, why: &str) -> Vec<usize> {
    let is_there = |number: &usize| {
        let span = span(*number);
        let Located::Local(_) = replica.locate(span.begin()) else { return false };
        let mut buf = vec![0; usize::try_from(span.len()).expect("it is short")];
        let read = replica.read(span.begin(), &mut buf).unwrap_or_else(|e| panic!("{why}: {e}"));
        assert_eq!(&buf[..read], content(*number).as_bytes(), "{why}: append {number} is torn");
        true
    };
    (0..ALL).filter(is_there).collect()
}

/// Opens it, and checks that the first `whole` appends are there and the rest is lost by name.
fn check(disk: &ForgetfulDisk, whole: usize, why: &str) {
    let (data, recovered) = open(disk);
    let replica = data.replica(LIFE).expect("it exists");
    let found = found(&replica, why);
    let shown = span(ALL - 1).end();
    assert_eq!(found, (0..whole).collect::<Vec<_>>(), "{why}: {recovered:?}");
    assert!(replica.head() >= shown, "{why}: the head is {}, {shown} was shown", replica.head());
    if whole < ALL {
        let named = recovered.lost.iter().chain(&recovered.damaged);
        let missing = Span::between(span(whole).begin(), shown);
        let is_named = named
            .clone()
            .any(|(_, span)| span.begin() <= missing.begin() && missing.end() <= span.end());
        assert!(is_named, "{why}: {missing} is not named: {recovered:?}");
    }
    let next = {
        let mut turn = replica.turn().now_or_never().expect("nobody holds the turn");
        let entry = Entry {
            content: Content::Memory("more".into()),
            registers: None,
            writer: None,
            is_disk: true,
        };
        turn.record(entry).unwrap_or_else(|e| panic!("{why}: {e}"))
    };
    data.sync_round().unwrap_or_else(|e| panic!("{why}: {e}"));
    let next = next.done().now_or_never().expect("synced").expect("it happened");
    assert!(next.begin() >= shown, "{why}: {next} was given twice");
}

#[test]
fn a_log_that_is_torn_at_any_byte_loses_what_was_not_synced_and_names_it() {
    let Left { disk, segment, frames, mirror } = left();
    // Records of appends that were not synced, which another boot may lose from any byte on.
    let first = frames.len() - (ALL - SYNCED);
    let (begin, end) = (frames[first].0, frames.last().expect("there are some").1);
    for behind in [Behind::Nothing, Behind::Zeros] {
        for at in begin..=end {
            let torn = disk.crash(Crash::Kill);
            cut(&torn, &segment, at, behind);
            // What was not in the log was not on the disk either.
            let whole = frames[first..].iter().filter(|(_, end)| *end <= at).count();
            cut(&torn, &mirror, span(SYNCED + whole).begin().get() as u64, Behind::Nothing);
            let why = format!("cut at {at} of {begin}..{end}, {behind:?} behind");
            check(&another_boot(&torn), SYNCED + whole, &why);
        }
    }
}

#[test]
fn a_mirror_that_is_torn_at_any_byte_is_whole_again() {
    let Left { disk, mirror, .. } = left();
    let len = span(ALL - 1).end().get() as u64;
    for behind in [Behind::Nothing, Behind::Zeros] {
        for at in 0..=len {
            let torn = disk.crash(Crash::Kill);
            cut(&torn, &mirror, at, behind);
            check(&another_boot(&torn), ALL, &format!("cut at {at}, {behind:?} behind"));
        }
    }
}
