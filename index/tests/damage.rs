//! Bit rot in a data directory (case T15): one bit is flipped in a log segment, a mirror or the
//! checkpoint, after a mixed load and a clean stop or a kill. What is read then is right, or an
//! error that names it; a head never goes back, nothing is deleted, and the rest goes on.

#[allow(dead_code, reason = "the trial and repairs take the rest")]
#[path = "trial/shared.rs"]
mod trial;

use index::checkpoint::Checkpoint;
use index::clock::ManualClock;
use index::disk::{Crash, Disk, ForgetfulDisk};
use index::{Error, Located, Recovered, Replica, inspect, log};
use protocol::{Life, Offset, Span};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trial::left::{Left, content, find, go_on, is_right, lefts, open, places, walk};
use trial::model::{JournalModel, Promise};

/// What `inspect` says, which changes nothing.
fn look(disk: &ForgetfulDisk, why: &str) -> inspect::Report {
    let clock = Arc::new(ManualClock::at_us(1_800_000_000_000_000));
    let before = disk.operations_of("write") + disk.operations_of("remove");
    let report = inspect::inspect(Arc::new(disk.clone()), clock, |_, _| ());
    let after = disk.operations_of("write") + disk.operations_of("remove");
    assert_eq!(before, after, "{why}: it changed something");
    report.unwrap_or_else(|e| panic!("{why}: {e}"))
}

/// Places in the frames of the log that a recovery reads: of each one in its head, and one behind.
fn frames(disk: &ForgetfulDisk) -> Vec<(PathBuf, u64)> {
    let start = Checkpoint::read(disk).expect("it verifies").expect("it is there").start;
    let mut places = Vec::new();
    let scanned = log::scan(disk, start, |frame| {
        let path = log::path_of(frame.position.segment());
        let begin = u64::from(frame.position.offset());
        places.extend([5, 32 + u64::from(frame.len - 32) / 3].map(|at| (path.clone(), begin + at)));
        Ok(())
    });
    assert!(scanned.expect("memory").damaged.is_empty());
    places
}

fn is_noticed(recovered: &Recovered) -> bool {
    !recovered.damaged_log.is_empty() || recovered.cut_records > 0 || !recovered.is_clean
}

#[test]
fn a_damaged_log_is_kept_whenever_the_start_that_finds_it_stops() {
    let Left { disk, why, .. } = lefts().next().expect("there are some");
    let (path, at) = frames(&disk).into_iter().next().expect("a log has frames");
    disk.flip(&path, at);
    let damaged = content(&disk, &path);
    let aside = Path::new("aside").join(path.file_name().expect("a segment"));
    for stop in 0.. {
        let mut is_over = false;
        for crash in [Crash::Kill, Crash::Power(stop)] {
            let first = disk.crash(Crash::Kill);
            first.stop_at(stop);
            drop(open(&first));
            is_over = !first.is_stopped();
            let again = first.crash(crash);
            let why = format!("{why}, stopped at {stop}, {crash:?}");
            open(&again).unwrap_or_else(|error| panic!("{why}: {error}"));
            assert!(again.stat(&aside).expect("memory").is_some(), "{why}: it is not kept");
            assert!(damaged.starts_with(&content(&again, &aside)), "{why}: it is another");
        }
        if is_over {
            break;
        }
    }
}

#[test]
fn a_flipped_bit_of_the_log_is_never_served() {
    for Left { disk, model, why } in lefts() {
        for (path, at) in frames(&disk) {
            let disk = disk.crash(Crash::Kill);
            disk.flip(&path, at);
            let why = format!("{why}, {} at {at}", path.display());
            let report = look(&disk, &why);
            let (data, recovered) = open(&disk).unwrap_or_else(|e| panic!("{why}: {e}"));
            assert_eq!(report.recovered.damaged_log, recovered.damaged_log, "{why}");
            assert!(is_noticed(&recovered), "{why}: {recovered:?}");
            let aside = Path::new("aside").join(path.file_name().expect("a segment"));
            assert!(disk.stat(&aside).expect("memory").is_some(), "{why}: is not kept");
            assert_ne!(content(&disk, &aside).last(), Some(&0), "{why}: zeros take room");
            for (life, journal) in model.journals.iter().filter(|(_, known)| known.is_certain) {
                let why = format!("{why}: {life}");
                let replica = find(&data, *life, &why);
                walk(&replica, &model, journal, false, &why);
                for tried in journal.tried.iter().filter(|one| one.promise > Promise::Nothing) {
                    let is_ahead = replica.locate(tried.span.begin()) == Located::Ahead;
                    assert!(!is_ahead || tried.span.is_empty(), "{why}: {} is ahead", tried.span);
                }
                go_on(&data, &replica, journal.shown, &why);
            }
        }
    }
}

#[test]
fn a_flipped_bit_of_the_checkpoint_is_named() {
    for Left { disk, why, .. } in lefts() {
        for at in (0..content(&disk, Path::new("checkpoint")).len() as u64).step_by(97) {
            let disk = disk.crash(Crash::Kill);
            disk.flip(Path::new("checkpoint"), at);
            let opened = open(&disk).map(drop);
            assert!(matches!(opened, Err(Error::Damaged(..))), "{why}, at {at}: {opened:?}");
            // Nothing was touched: the bit put right, everything is there.
            disk.flip(Path::new("checkpoint"), at);
            open(&disk).unwrap_or_else(|e| panic!("{why}, at {at}: {e}"));
        }
    }
}

#[test]
fn a_flipped_bit_of_a_mirror_never_becomes_a_fragment() {
    for Left { disk, model, why } in lefts() {
        for (path, at) in places(&disk, "mirror") {
            let disk = disk.crash(Crash::Kill);
            disk.flip(&path, at);
            let why = format!("{why}, {} at {at}", path.display());
            let report = look(&disk, &why);
            let (data, _) = open(&disk).unwrap_or_else(|e| panic!("{why}: {e}"));
            for replica in data.replicas() {
                let journal = &model.journals[&replica.life()];
                let of = report.journals.iter().find(|of| of.ledger.life == replica.life());
                let wrong = &of.expect("it is looked at").wrong;
                check_sums(&replica, journal, wrong, &why);
            }
        }
    }
}

/// The offset of a journal at which a byte of a mirror lies.
fn offset_of(path: &Path, at: u64) -> (Life, Offset) {
    let name = path.file_name().and_then(|name| name.to_str()).expect("it is a name");
    let (life, first) = index::mirror::parse_name(name).expect("it is a mirror");
    (life, Offset::try_from(first + at).expect("a file name holds an offset"))
}

#[test]
fn a_flipped_bit_of_a_mirror_that_the_log_heals_is_named() {
    let mut healed = 0;
    for Left { disk, why, .. } in lefts() {
        for (path, at) in places(&disk, "mirror") {
            let why = format!("{why}, {} at {at}", path.display());
            let right = content(&disk, &path)[at as usize];
            let disk = disk.crash(Crash::Kill);
            disk.flip(&path, at);
            let wrong = content(&disk, &path)[at as usize];
            let told = look(&disk, &why);
            let (data, recovered) = open(&disk).unwrap_or_else(|e| panic!("{why}: {e}"));
            drop(data);
            let left = disk.stat(&path).expect("memory");
            let is_there = left.is_some_and(|entry| entry.len > at);
            let is_healed = is_there && content(&disk, &path)[at as usize] == right;
            // A byte that became zero may as well be one that was not written yet; one that was
            // zero is of a hole, which is freed again.
            if is_healed && wrong != 0 && right != 0 {
                let (life, offset) = offset_of(&path, at);
                let place = vec![(format!("trial/{life}"), Span::at(offset, 1))];
                for recovered in [&recovered, &told.recovered] {
                    let found = recovered.healed.iter();
                    let found: Vec<_> = found.map(|(name, at)| (name.to_string(), *at)).collect();
                    assert_eq!(found, place, "{why}");
                }
                assert!(told.needs_repair() && !told.is_sound(), "{why}");
                healed += 1;
            }
            // Case: it is started once more
            let (_, again) = open(&disk).unwrap_or_else(|e| panic!("{why}: {e}"));
            assert!(again.healed.is_empty(), "{why}: {:?}", again.healed);
        }
    }
    assert!(healed > 0, "no flip was in what the log has");
}

/// Spans whose local bytes are not those that were appended are named by `inspect`, and fail the
/// checksum that the persister compares.
fn check_sums(replica: &Replica, journal: &JournalModel, wrong: &[Span], why: &str) {
    let ledger = replica.ledger();
    let spool = Span::between(ledger.spool.begin, ledger.head);
    let closed = ledger.closed.iter().map(|closed| (closed.span, closed.crc));
    for (span, crc) in closed.chain([(spool, ledger.spool.crc)]) {
        if span.is_empty() || !ledger.local.covers(span) {
            continue;
        }
        let mut buf = vec![0; span.len() as usize];
        let n = replica.read(span.begin(), &mut buf).unwrap_or_else(|e| panic!("{why}: {e}"));
        assert_eq!(n, buf.len(), "{why}: one file has a whole span");
        let is_right = is_right(journal, span.begin(), &buf);
        assert_eq!(crc32c::crc32c(&buf) == crc, is_right, "{why}: the checksum of {span}");
        assert_eq!(!wrong.contains(&span), is_right, "{why}: {span} and what is wrong: {wrong:?}");
    }
}
