//! Files about journals: stored fragments, specs, and registers.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod world;

use client::Error as Failure;
use fs::double::Double;
use fs::{HandleId, Trimmed};
use protocol::{Codec, Fragment, LabelSet, Offset, Span, Sum};
use rustix::fs::OFlags;
use rustix::io::Errno;
use std::time::{Duration, UNIX_EPOCH};
use world::{World, errno, journal};

const TEN: &str = "0000000000000000-000000000000000a-00000000000000000000000000000000000000aa.gz";
const REST: &str = "000000000000000a-0000000000000010-00000000000000000000000000000000000000bb.raw";
const SPEC: &str = ".courant/specs/d/a.log.yaml";

fn fragment(begin: u32, len: u64, sum: &str, codec: Codec) -> Fragment {
    let sum = Sum::from_hex(&format!("{sum:0>40}")).unwrap();
    let span = Span::at(Offset::from(begin), len);
    let fragment = Fragment::local(journal("test/d/a.log"), span, sum, codec);
    Fragment { mod_time: 7, backing_store: "file:///".to_owned(), ..fragment }
}

/// A journal of 16 bytes, of which a store has two fragments.
fn stored() -> World {
    stored_with(Trimmed::Error)
}

fn stored_with(trimmed: Trimmed) -> World {
    let world = World::with(Double::new(), |options| options.trimmed = trimmed);
    world.double.put("test/d/a.log", b"0123456789abcdef");
    world.double.store(fragment(0, 10, "aa", Codec::Gzip));
    world.double.store(fragment(10, 6, "bb", Codec::None));
    world
}

#[tokio::test]
async fn fragments_are_files_in_a_directory_of_their_journal() {
    let world = stored();
    world.double.put("test/d/a.log/inner", b"x");
    world.double.put("test/b%20c", b"x");
    // Case: (directory, its entries)
    let cases: [(&str, &[&str]); 4] =
        [("", &["b c", "d"]), ("d", &["a.log"]), ("d/a.log", &[TEN, REST, "inner"]), ("b c", &[])];
    for (directory, expected) in cases {
        assert_eq!(world.ls(&format!(".courant/fragments/{directory}")).await, expected);
    }
    // Case: (name, its content)
    for (name, content) in [(TEN, &b"0123456789"[..]), (REST, b"abcdef")] {
        let path = format!(".courant/fragments/d/a.log/{name}");
        let attr = world.stat(&path).await.unwrap();
        assert_eq!(attr.size, content.len() as u64);
        assert_eq!(attr.modified, UNIX_EPOCH + Duration::from_secs(7));
        assert_eq!(attr.mode, 0o444);
        assert_eq!(world.cat(&path).await.unwrap(), content);
    }
    let handle =
        world.open(&format!(".courant/fragments/d/a.log/{TEN}"), OFlags::RDONLY).await.unwrap();
    // Case: (offset, size, what is read)
    for (offset, size, expected) in
        [(8, 9, &b"89"[..]), (0, 3, b"012"), (10, 5, b""), (u64::MAX, 5, b"")]
    {
        assert_eq!(world.read(handle, offset, size).await.unwrap(), expected, "{offset}");
    }
}

#[tokio::test]
async fn fragments_can_only_be_read() {
    let world = stored();
    let fragment = format!(".courant/fragments/d/a.log/{TEN}");
    let new = ".courant/fragments/d/a.log/new";
    for flags in [OFlags::WRONLY, OFlags::RDWR, OFlags::TRUNC] {
        assert_eq!(errno(world.open(&fragment, flags).await), Errno::ROFS);
    }
    let create = OFlags::WRONLY | OFlags::CREATE;
    assert_eq!(errno(world.open(new, create).await), Errno::PERM);
    assert_eq!(errno(world.mkdir(new).await), Errno::PERM);
    assert_eq!(errno(world.unlink(&fragment).await), Errno::PERM);
    assert_eq!(errno(world.rename(&fragment, new).await), Errno::PERM);
    // Case: what is there under no such name
    let other_sum = TEN.replace("aa.gz", "ab.gz");
    let other_codec = TEN.replace(".gz", ".zst");
    for name in [other_sum.as_str(), &other_codec, "none"] {
        let path = format!(".courant/fragments/d/a.log/{name}");
        assert_eq!(errno(world.find(&path).await), Errno::NOENT, "{name}");
    }
}

#[tokio::test]
async fn what_can_not_be_read_of_a_fragment_is_an_error() {
    let world = stored_with(Trimmed::Sparse);
    let path = format!(".courant/fragments/d/a.log/{TEN}");
    let handle = world.open(&path, OFlags::RDONLY).await.unwrap();
    let span = Span::at(Offset::ZERO, 10);
    let (journal, detail) = (journal("test/d/a.log"), "its sum is another".to_owned());
    world.double.fail_next(Failure::Damaged { journal: journal.clone(), span, detail });
    assert_eq!(errno(world.read(handle, 0, 10).await), Errno::IO);
    // Case: trimmed, on a mount that shows trimmed ranges of journals as holes
    world.double.trim(&journal, 10);
    assert_eq!(errno(world.read(handle, 0, 10).await), Errno::NODATA);
}

#[tokio::test]
async fn more_fragments_than_one_request_lists_are_all_there() {
    let world = World::new();
    world.double.put("test/d/a.log", b"");
    let count = u32::try_from(2 * fs::limits::FRAGMENTS_AT_ONCE + 1).unwrap();
    (0..count).for_each(|at| world.double.store(fragment(at, 1, "aa", Codec::None)));
    assert_eq!(world.ls(".courant/fragments/d/a.log").await.len(), count as usize);
}

/// Writes a whole text as `cp` does; what the close tells.
async fn copy(world: &World, path: &str, text: &str) -> Result<(), fs::Error> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC;
    let handle = world.open(path, flags).await?;
    let outcome = write_and_close(world, handle, text).await;
    world.fs.release(handle);
    outcome
}

async fn write_and_close(world: &World, handle: HandleId, text: &str) -> Result<(), fs::Error> {
    assert!(world.fs.tells_at_close(handle));
    // As a shell: it closes the descriptor that it opened for the program.
    world.fs.flush(handle).await?;
    world.write(handle, 0, text.as_bytes(), OFlags::WRONLY).await?;
    world.fs.flush(handle).await
}

async fn text_of(world: &World, path: &str) -> String {
    String::from_utf8(world.cat(path).await.unwrap()).unwrap()
}

async fn status(world: &World) -> String {
    text_of(world, ".courant/status").await
}

#[tokio::test]
async fn a_spec_is_read_as_text_and_applied_when_it_is_written() {
    let world = stored();
    world.double.put("test/top", b"x");
    assert_eq!(world.ls(".courant/specs").await, ["d", "top.yaml"]);
    assert_eq!(world.ls(".courant/specs/d").await, ["a.log.yaml"]);
    let text = text_of(&world, SPEC).await;
    assert!(text.contains("name: test/d/a.log\n") && text.contains("revision: 1\n"), "{text}");
    assert_eq!(world.stat(SPEC).await.unwrap().size, text.len() as u64);
    copy(&world, SPEC, &text.replace("replication: 1", "replication: 3")).await.unwrap();
    let after = text_of(&world, SPEC).await;
    assert!(after.contains("replication: 3\n") && !after.contains("revision: 1\n"), "{after}");
    // Case: what is there already
    copy(&world, SPEC, &text.replace("replication: 1", "replication: 3")).await.unwrap();
    assert_eq!(text_of(&world, SPEC).await, after);
    assert!(!status(&world).await.contains("spec-refused"));
}

#[tokio::test]
async fn a_spec_that_is_not_there_is_made() {
    let world = stored();
    let text = text_of(&world, SPEC).await.replace("revision: 1\n", "");
    let new = ".courant/specs/e/new.yaml";
    assert_eq!(errno(world.find(new).await), Errno::NOENT);
    // Case: there is no directory yet, as in the tree itself
    assert_eq!(errno(copy(&world, new, &text).await), Errno::NOENT);
    let new = ".courant/specs/d/new.yaml";
    copy(&world, new, &text.replace("a.log", "new")).await.unwrap();
    assert_eq!(world.stat("d/new").await.unwrap().size, 0);
    assert_eq!(world.ls(".courant/specs/d").await, ["a.log.yaml", "new.yaml"]);
    // Case: a name that is none, or that no journal can have
    for (name, expected) in [("new", Errno::PERM), (".yaml", Errno::PERM)] {
        assert_eq!(errno(copy(&world, &format!(".courant/specs/d/{name}"), "x").await), expected);
    }
}

#[tokio::test]
async fn a_spec_that_can_not_be_is_refused_and_the_reason_is_told() {
    let world = stored();
    let text = text_of(&world, SPEC).await;
    // Case: the text, its errno, what the reason names
    let cases = [
        ("just text".to_owned(), Errno::INVAL, "expected journals"),
        (text.replace("replication", "replicaton"), Errno::INVAL, "replicaton"),
        (text.replace("a.log", "other"), Errno::INVAL, "the spec of test/d/a.log"),
        (format!("{text}delete: true\n"), Errno::INVAL, "the spec of test/d/a.log"),
        (text.replace("revision: 1", "revision: 9"), Errno::STALE, "changed meanwhile"),
        (
            text.replace("revision: 1", "").replace("replication: 1", "replication: 2"),
            Errno::STALE,
            "changed meanwhile",
        ),
    ];
    for (written, expected, reason) in cases {
        let written = if expected == Errno::STALE {
            written.replace("replication: 1", "replication: 2")
        } else {
            written
        };
        assert_eq!(errno(copy(&world, SPEC, &written).await), expected, "{written}");
        let status = status(&world).await;
        let last = status.lines().rfind(|line| line.starts_with("spec-refused ")).unwrap();
        assert!(last.starts_with("spec-refused d/a.log: ") && last.contains(reason), "{last}");
        assert_eq!(text_of(&world, SPEC).await, text, "it is as it was");
    }
    // Case: only the last reasons are kept
    for _ in 0..fs::limits::OUTCOMES_MAX + 5 {
        errno(copy(&world, SPEC, "just text").await);
    }
    let told = status(&world).await.matches("spec-refused ").count();
    assert_eq!(told, fs::limits::OUTCOMES_MAX);
}

#[tokio::test]
async fn one_open_file_follows_its_own_changes() {
    let world = stored();
    let text = text_of(&world, SPEC).await;
    let handle = world.open(SPEC, OFlags::RDWR).await.unwrap();
    assert_eq!(world.read(handle, 0, 4096).await.unwrap(), text.as_bytes());
    for replication in ["3", "2"] {
        let text = text.replace("replication: 1", &format!("replication: {replication}"));
        world.write(handle, 0, text.as_bytes(), OFlags::RDWR).await.unwrap();
        world.fs.fsync(handle).await.unwrap();
        let there = text_of(&world, SPEC).await;
        assert!(there.contains(&format!("replication: {replication}\n")), "{there}");
    }
    // Case: cut through the open file, and through none
    let node = world.find(SPEC).await.unwrap().node;
    world.fs.setattr(node, None, Some(0)).await.unwrap();
    assert_eq!(world.read(handle, 0, 4096).await.unwrap(), b"");
    world.fs.flush(handle).await.unwrap();
    world.fs.release(handle);
    assert_eq!(errno(world.fs.setattr(node, None, Some(0)).await), Errno::PERM);
    let size = world.stat(SPEC).await.unwrap().size;
    world.fs.setattr(node, None, Some(size)).await.unwrap();
}

#[tokio::test]
async fn a_spec_whose_answer_was_lost_is_applied_once() {
    let world = stored();
    let text = text_of(&world, SPEC).await.replace("replication: 1", "replication: 3");
    let handle = world.open(SPEC, OFlags::WRONLY | OFlags::TRUNC).await.unwrap();
    world.write(handle, 0, text.as_bytes(), OFlags::WRONLY).await.unwrap();
    world.double.fail_next(Failure::Unreachable("the answer was lost".to_owned()));
    world.fs.flush(handle).await.unwrap();
    assert!(text_of(&world, SPEC).await.contains("replication: 3\n"));
}

#[tokio::test]
async fn specs_can_not_be_removed_and_read_only_mounts_take_none() {
    let world = stored();
    assert_eq!(errno(world.unlink(SPEC).await), Errno::PERM);
    assert_eq!(errno(world.rename(SPEC, ".courant/specs/d/b.yaml").await), Errno::PERM);
    assert_eq!(errno(world.mkdir(".courant/specs/e").await), Errno::PERM);
    let long = vec![b'#'; fs::limits::SPEC_LEN_MAX + 1];
    let handle = world.open(SPEC, OFlags::WRONLY | OFlags::TRUNC).await.unwrap();
    let at = fs::limits::SPEC_LEN_MAX as u64;
    assert_eq!(errno(world.write(handle, at, &long, OFlags::WRONLY).await), Errno::FBIG);
    let other = world.other_with(|options| options.read_only = true);
    assert_eq!(errno(copy(&other, SPEC, "x").await), Errno::ROFS);
    assert_eq!(errno(copy(&other, ".courant/specs/d/b.yaml", "x").await), Errno::ROFS);
    assert_eq!(text_of(&other, SPEC).await, text_of(&world, SPEC).await);
}

#[tokio::test]
async fn registers_are_told_where_the_broker_tells_them() {
    let world = stored();
    let node = world.find("d/a.log").await.unwrap().node;
    let get = async || world.fs.getxattr(node, b"user.courant.registers").await;
    let listed = async || {
        let names = world.fs.listxattr(node).await.unwrap();
        String::from_utf8(names).unwrap().contains("user.courant.registers\0")
    };
    assert_eq!(errno(get().await), Errno::NODATA);
    assert!(!listed().await);
    let registers = LabelSet::default().with("owner", "2").unwrap().with("cut", "1+3").unwrap();
    world.double.set_registers(&journal("test/d/a.log"), registers);
    assert_eq!(get().await.unwrap(), b"cut=1+3\nowner=2\n");
    assert!(listed().await);
}
