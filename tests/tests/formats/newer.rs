//! Each kind of file that has a version, as a newer release would write it.

use super::{OPTIONS, packs, text, unpack};
use client::crc32c_append;
use std::fs;
use std::path::{Path, PathBuf};
use tests::world::Up;

/// The first file of a directory below the data.
fn first(data: &Path, dir: &str) -> PathBuf {
    let mut files: Vec<PathBuf> =
        fs::read_dir(data.join(dir)).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.remove(0)
}

/// Changes a file, whose checksum of `checked` and on lies at `sum`.
fn change(file: &Path, at: usize, sum: usize, checked: std::ops::Range<usize>) {
    let mut bytes = fs::read(file).unwrap();
    assert_eq!(bytes[at], 1, "the version of {} lies elsewhere", text(file));
    bytes[at] = 2;
    let checked = checked.start..checked.end.min(bytes.len());
    let crc = crc32c_append(0, &bytes[checked]);
    bytes[sum..sum + 4].copy_from_slice(&crc.to_le_bytes());
    fs::write(file, bytes).unwrap();
}

fn mark(data: &Path) -> PathBuf {
    let file = data.join("format");
    fs::write(&file, "courant data format 2\n").unwrap();
    file
}

/// Behind the checksum the format is the first field of a message.
fn checkpoint(data: &Path) -> PathBuf {
    let file = data.join("checkpoint");
    change(&file, 5, 0, 4..usize::MAX);
    file
}

/// The last byte of the first frame's magic is the version of all frames (`index/src/record.rs`).
fn frames(data: &Path) -> PathBuf {
    let file = first(data, "log");
    let len = fs::read(&file).unwrap()[28..32].try_into().unwrap();
    change(&file, 3, 4, 8..32 + u32::from_le_bytes(len) as usize);
    file
}

/// The first field of a segment's first record, behind a frame's head and two bytes.
fn segment(data: &Path) -> PathBuf {
    let file = first(data, "log");
    let len = fs::read(&file).unwrap()[28..32].try_into().unwrap();
    change(&file, 35, 4, 8..32 + u32::from_le_bytes(len) as usize);
    file
}

/// What waits to be committed through the mount.
fn draft(data: &Path) -> PathBuf {
    let file = data.join("mount-staging/000000000001.draft");
    let text = "courant draft 2\nheader ";
    let sum = crc32c_append(0, text.as_bytes());
    let mut bytes = format!("{text}{sum}\n").into_bytes();
    bytes.resize(4096, b'\n');
    fs::create_dir_all(data.join("mount-staging")).unwrap();
    fs::write(&file, bytes).unwrap();
    file
}

#[test]
fn a_newer_file_of_each_kind_is_refused_by_name() {
    let pack = packs().pop().unwrap();
    // Case: what a newer release writes. The key space's is in `cluster/src/embedded/tests.rs`.
    let cases: [fn(&Path) -> PathBuf; 5] = [mark, checkpoint, frames, segment, draft];
    for newer in cases {
        let (_folder, data) = unpack(&pack);
        let file = newer(&data);
        let name = file.file_name().unwrap().to_str().unwrap();
        let before = fs::read(&file).unwrap();
        let refusal = Up::planned(&data, &OPTIONS).refused();
        for word in [name, "format 2", "up to 1", "newer"] {
            assert!(refusal.contains(word), "nothing of {word} in: {refusal}");
        }
        assert_eq!(fs::read(&file).unwrap(), before, "{name} was changed");
    }
}
