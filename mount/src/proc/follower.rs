//! A process that does nothing but follow journals, as GNU `tail -f` does. Only the fstat of such a
//! one may be held (design, section 4, the set rule): tar, gzip and shippers wait for theirs.

use super::field;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// A follower has few files open; whoever has more is not looked into.
const FDS_MAX: u64 = 64;

/// Open flags as fdinfo prints them, in octal (include/uapi/asm-generic/fcntl.h of the kernel).
const ACCESS_MODE: u32 = 0o3;
const NONBLOCK: u32 = 0o4000;

/// One thread without siblings, of a program that follows, and the set that it follows: each of its
/// `O_NONBLOCK` files above descriptor 2, all on one mount of ours and read-only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Follower {
    /// By descriptor, never empty. A pass over the set begins with the first.
    pub set: Vec<Followed>,
    /// Standard output is a terminal: nothing waits in a buffer for the next pass.
    pub on_terminal: bool,
    /// It was told to end with another process (`--pid`), and looks for that only between passes.
    pub watches_pid: bool,
}

/// One file of the set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Followed {
    pub fd: u32,
    /// The kernel's number of the inode: `st_ino` of its last GETATTR reply, or the node's id
    /// before the first one.
    pub ino: u64,
    /// Where the next read goes.
    pub position: u64,
}

impl Follower {
    /// Whether the thread `tid` is of one of the programs. One short file of /proc tells.
    pub fn may_be(tid: u32, programs: &[String]) -> bool {
        let name = fs::read_to_string(format!("/proc/{tid}/comm")).unwrap_or_default();
        programs.iter().any(|program| program == name.trim_end_matches('\n'))
    }

    /// What the thread `tid` follows on the mount `mnt_id`; `None` when it is no follower: another
    /// program than `programs` (names as in /proc/PID/comm), more threads than one, many files, a
    /// followed file elsewhere or writable, or when /proc does not tell.
    ///
    /// Ask [`Follower::may_be`] first: it is cheap, and most callers are no followers.
    pub fn find(tid: u32, mnt_id: u64, programs: &[String]) -> Option<Follower> {
        if !Self::may_be(tid, programs) {
            return None;
        }
        let process = PathBuf::from(format!("/proc/{tid}"));
        if field(&fs::read_to_string(process.join("status")).ok()?, "Threads")? != "1" {
            return None;
        }
        let files = nonblocking_files(&process)?;
        let set = followed(&files, mnt_id)?;
        let stdout = fs::read_link(process.join("fd/1")).ok();
        let command = fs::read(process.join("cmdline")).ok()?;
        Some(Follower {
            set,
            on_terminal: stdout.is_some_and(|link| is_terminal(&link)),
            watches_pid: watches_pid(&command),
        })
    }
}

/// An open file as /proc/PID/fdinfo/FD tells of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OpenFile {
    position: u64,
    flags: u32,
    mnt_id: u64,
    ino: u64,
}

impl OpenFile {
    /// `None` where a field is missing: `ino` came with Linux 5.14.
    fn parse(fdinfo: &str) -> Option<OpenFile> {
        Some(OpenFile {
            position: field(fdinfo, "pos")?.parse().ok()?,
            flags: u32::from_str_radix(field(fdinfo, "flags")?, 8).ok()?,
            mnt_id: field(fdinfo, "mnt_id")?.parse().ok()?,
            ino: field(fdinfo, "ino")?.parse().ok()?,
        })
    }

    fn is_read_only(&self) -> bool {
        self.flags & ACCESS_MODE == 0
    }
}

/// The process's `O_NONBLOCK` files above descriptor 2. `None` when it has too many descriptors,
/// or they can't be read.
fn nonblocking_files(process: &Path) -> Option<BTreeMap<u32, OpenFile>> {
    let directory = process.join("fd");
    // Since Linux 6.2 the size is the number of descriptors; before it is 0, and the count tells.
    if fs::metadata(&directory).ok()?.len() > FDS_MAX {
        return None;
    }
    let mut files = BTreeMap::new();
    for (count, entry) in (1..).zip(fs::read_dir(&directory).ok()?) {
        if count > FDS_MAX {
            return None;
        }
        let fd: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        if fd <= 2 {
            continue;
        }
        let fdinfo = fs::read_to_string(process.join(format!("fdinfo/{fd}"))).ok()?;
        let file = OpenFile::parse(&fdinfo)?;
        let link = fs::read_link(directory.join(fd.to_string())).ok()?;
        if file.flags & NONBLOCK != 0 && is_file(&link) {
            files.insert(fd, file);
        }
    }
    Some(files)
}

/// The set, if every file of it is on the mount and read-only.
fn followed(files: &BTreeMap<u32, OpenFile>, mnt_id: u64) -> Option<Vec<Followed>> {
    let follows = |file: &OpenFile| file.mnt_id == mnt_id && file.is_read_only();
    if files.is_empty() || !files.values().all(follows) {
        return None;
    }
    let name =
        |(&fd, file): (&u32, &OpenFile)| Followed { fd, ino: file.ino, position: file.position };
    Some(files.iter().map(name).collect())
}

/// Whether the link of a descriptor may be that of a regular file. Sockets, pipes and anonymous
/// inodes have no path; devices are below /dev. The type is not asked: that would be a GETATTR.
fn is_file(link: &Path) -> bool {
    link.is_absolute() && !link.starts_with("/dev")
}

fn is_terminal(link: &Path) -> bool {
    let name = link.to_string_lossy();
    name.starts_with("/dev/pts/") || name.starts_with("/dev/tty") || name == "/dev/console"
}

/// Whether a command line has GNU tail's `--pid`, which may be shortened to `--p`.
fn watches_pid(command: &[u8]) -> bool {
    command
        .split(|byte| *byte == 0)
        .skip(1)
        .take_while(|argument| *argument != b"--")
        .filter_map(|argument| argument.split(|byte| *byte == b'=').next())
        .any(|option| option.len() > 2 && b"--pid".starts_with(option))
}

#[cfg(test)]
mod tests;
