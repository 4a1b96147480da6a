//! Data directories as earlier releases wrote them open, with every byte and register, and go on;
//! those of a newer release are refused by the name of the file that says so.
//!
//! `tests/formats` has a packed directory of each format. A release adds its own, made by the
//! binary that is released:
//!
//! ```text
//! PACK=tests/formats/NUMBER.tar.gz cargo test -p tests --test formats the_present
//! ```

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod contents;
mod newer;

use contents::{check, write};
use std::fs;
use std::path::{Path, PathBuf};
use tests::ground;
use tests::patience::until;
use tests::shell;
use tests::world::{Up, journals};

/// Everything is synced, so that a pack is whole on every machine.
const OPTIONS: [&str; 2] = ["--durability", "disk"];

/// What is made anew, or is of one machine.
const UNPACKED: &str = "--exclude=data/lock --exclude=data/ballast --exclude=data/address";

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// The packs of all formats.
fn packs() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("formats");
    let mut packs: Vec<PathBuf> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()).collect();
    packs.sort();
    packs
}

/// A directory out of a pack.
fn unpack(pack: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = ground::folder("format-");
    shell::bash(folder.path(), "tar -xSzf \"$1\"", &[text(pack)]).ok();
    let data = folder.path().join("data");
    (folder, data)
}

/// Opens a directory that has what [`write`] wrote, and reads and appends.
fn opens(data: &Path) {
    let mut up = Up::planned(data, &OPTIONS);
    up.again();
    check(&up);
    assert!(up.daemon().stop().success());
}

#[test]
fn data_of_each_format_opens() {
    let packs = packs();
    assert!(!packs.is_empty(), "tests/formats has a pack of each format");
    for pack in packs {
        let (_folder, data) = unpack(&pack);
        opens(&data);
    }
}

#[test]
fn the_present_format_is_packed_and_opens() {
    let folder = ground::folder("format-");
    let data = folder.path().join("data");
    let mut up = Up::planned(&data, &OPTIONS);
    up.again();
    write(&mut up);
    // What a kill leaves has every kind of file in use.
    up.daemon().kill();
    let pack = folder.path().join("pack.tar.gz");
    // A segment is written with zeros before it is used, of which a packed one has no need.
    let dig = "for segment in data/log/*.seg; do fallocate --dig-holes \"$segment\" || exit; done";
    shell::bash(folder.path(), dig, &[]).ok();
    let line = format!("tar -cSzf \"$1\" {UNPACKED} data");
    shell::bash(folder.path(), &line, &[text(&pack)]).ok();
    let len = fs::metadata(&pack).unwrap().len();
    assert!(len < 100 << 10, "a pack of {len} bytes is too large for the tree");
    if let Some(kept) = std::env::var_os("PACK") {
        // Tests run in the directory of their package.
        fs::copy(&pack, Path::new("..").join(kept)).unwrap();
    }
    let (_folder, data) = unpack(&pack);
    opens(&data);
}
