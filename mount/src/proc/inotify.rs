//! Which inodes of a file system programs watch by inotify(7) or fanotify(7), as /proc/PID/fdinfo
//! tells it (proc_pid_fdinfo(5)).

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// What the descriptor of a watcher links to.
const WATCHERS: [&str; 2] = ["anon_inode:inotify", "anon_inode:[fanotify]"];

/// `IN_MODIFY` of sys/inotify.h, and `FAN_MODIFY` of sys/fanotify.h.
const MODIFY: u32 = 0x2;

/// A handle of FUSE: the node id in two halves, the upper first, then the generation
/// (`fuse_encode_fh` in fs/fuse/inode.c of the kernel). In hex, without the generation.
const NODE_DIGITS: usize = 16;

/// The minor number in the kernel's own form of a device (`MINORBITS` of linux/kdev_t.h).
const MINOR_BITS: u32 = 20;

/// The nodes of the FUSE file system of `device` (major, minor) that anybody watches for
/// modification, `limit` at most. Processes whose descriptors we may not see count for nothing.
pub fn watched(device: (u32, u32), limit: usize) -> BTreeSet<u64> {
    let mut nodes = BTreeSet::new();
    for process in entries(Path::new("/proc")) {
        if !is_number(process.file_name()) {
            continue;
        }
        for descriptor in entries(&process.join("fd")) {
            let Some(text) = marks(&process, &descriptor) else { continue };
            nodes.extend(parse(&text, device));
            if nodes.len() >= limit {
                return nodes.into_iter().take(limit).collect();
            }
        }
    }
    nodes
}

/// What the descriptor watches, if it is a watcher's. Only its link is read.
fn marks(process: &Path, descriptor: &Path) -> Option<String> {
    let target = fs::read_link(descriptor).ok()?;
    if !WATCHERS.iter().any(|watcher| target.as_os_str() == *watcher) {
        return None;
    }
    fs::read_to_string(process.join("fdinfo").join(descriptor.file_name()?)).ok()
}

/// Processes and descriptors come and go while they are listed.
fn entries(directory: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path())
}

fn is_number(name: Option<&OsStr>) -> bool {
    name.and_then(OsStr::to_str).is_some_and(|name| name.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The nodes in a text of marks.
fn parse(text: &str, device: (u32, u32)) -> impl Iterator<Item = u64> {
    text.lines().filter_map(move |line| parse_mark(line, device))
}

/// `inotify wd:1 ino:6 sdev:27 mask:2 ... f_handle:000000000600000000000000`, fields in hex.
fn parse_mark(line: &str, device: (u32, u32)) -> Option<u64> {
    let field =
        |name: &str| line.split(' ').find_map(|field| field.strip_prefix(name)?.strip_prefix(':'));
    let number = |name| u32::from_str_radix(field(name)?, 16).ok();
    let found = number("sdev")?;
    if (found >> MINOR_BITS, found & ((1 << MINOR_BITS) - 1)) != device {
        return None;
    }
    if number("mask")? & MODIFY == 0 {
        return None;
    }
    let digits = field("f_handle")?.get(..NODE_DIGITS)?;
    let half = |digits| u32::from_str_radix(digits, 16).ok().map(u32::swap_bytes);
    let (upper, lower) = digits.split_at(NODE_DIGITS / 2);
    Some(u64::from(half(upper)?) << 32 | u64::from(half(lower)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_node_of_each_mark_is_read() {
        let tail = "ignored_mask:0 fhandle-bytes:c fhandle-type:81 f_handle";
        // Case: the line, the node
        let cases = [
            (
                format!("inotify wd:1 ino:a9 sdev:27 mask:fff {tail}:00000000060000000{:07}", 0),
                Some(6),
            ),
            (
                format!("inotify wd:1 ino:a9 sdev:27 mask:2 {tail}:01000000020000000{:07}", 0),
                Some((1 << 32) | 2),
            ),
            (
                format!("fanotify ino:a9 sdev:27 mflags:0 mask:2 {tail}:00000000070100000{:07}", 0),
                Some(0x107),
            ),
            // Case: another file system, no modification asked for, a handle of another kind.
            (format!("inotify wd:1 ino:a9 sdev:28 mask:2 {tail}:00000000060000000{:07}", 0), None),
            (
                format!("inotify wd:1 ino:a9 sdev:800027 mask:2 {tail}:00000000060000000{:07}", 0),
                None,
            ),
            (
                format!("inotify wd:1 ino:a9 sdev:27 mask:100 {tail}:00000000060000000{:07}", 0),
                None,
            ),
            (format!("inotify wd:1 ino:a9 sdev:27 mask:2 {tail}:0000"), None),
            ("fanotify mnt_id:12 mflags:0 mask:2 ignored_mask:0".to_owned(), None),
            ("pos:\t0".to_owned(), None),
        ];
        for (line, expected) in cases {
            assert_eq!(parse_mark(&line, (0, 0x27)), expected, "{line}");
        }
    }
}
