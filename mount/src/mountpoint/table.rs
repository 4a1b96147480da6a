//! The mount table of this process, as /proc/self/mountinfo tells it (proc_pid_mountinfo(5)).
//!
//! Reading it asks no file system anything, so it is safe while a mount's daemon is dead or stuck.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Where the table is.
pub const TABLE: &str = "/proc/self/mountinfo";

/// How much of it is read at once. A line of the table is rarely longer than 200 bytes.
const PIECE: usize = 16 << 10;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Unique while the mount lives; `mnt_id` in fdinfo.
    pub id: u64,
    /// The mount on which this one lies: its equal at the same point where mounts are stacked.
    pub parent: u64,
    /// `st_dev` of the files in it: major, minor. A FUSE connection is known by the minor.
    pub device: (u32, u32),
    /// Absolute, as seen from this process's root.
    pub point: PathBuf,
    /// The file system type, with its subtype: `fuse.courant`.
    pub kind: String,
    /// What is mounted, as whoever mounted it says: for one of ours the URL of its journals.
    pub source: String,
}

/// The table, held open: it is read when no descriptor is left to open it with, too.
#[derive(Debug)]
pub struct Table(File);

impl Table {
    pub fn open() -> io::Result<Table> {
        File::open(TABLE).map(Table)
    }

    /// The mounts of this process's namespace, as they are.
    pub fn mounts(&self) -> io::Result<Vec<Mount>> {
        let mut text = Vec::new();
        let mut piece = vec![0; PIECE];
        loop {
            match self.0.read_at(&mut piece, text.len() as u64)? {
                0 => return Ok(parse(&text)),
                length => text.extend_from_slice(&piece[..length]),
            }
        }
    }
}

/// The mounts of this process's namespace.
pub fn read() -> io::Result<Vec<Mount>> {
    Table::open()?.mounts()
}

/// The mounts of a table. A line that is not understood is left out: it is none of ours.
pub fn parse(table: &[u8]) -> Vec<Mount> {
    table.split(|byte| *byte == b'\n').filter_map(parse_line).collect()
}

/// The uppermost mount at exactly `point`: the one that no other lies on.
pub fn top<'a>(mounts: &'a [Mount], point: &Path) -> Option<&'a Mount> {
    let here = || mounts.iter().filter(|mount| mount.point == point);
    here().find(|mount| here().all(|other| other.parent != mount.id))
}

/// `36 35 98:0 / /mnt rw,noatime master:1 - ext3 /dev/root rw`: optional fields end with the dash.
fn parse_line(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let id = number(fields.next()?)?;
    let parent = number(fields.next()?)?;
    let device = parse_device(fields.next()?)?;
    let point = unescape(fields.nth(1)?);
    let mut fields = fields.skip_while(|field| *field != b"-");
    let text = |field| String::from_utf8_lossy(&unescape(field)).into_owned();
    let kind = text(fields.nth(1)?);
    let source = text(fields.next()?);
    let point = PathBuf::from(OsString::from_vec(point));
    Some(Mount { id, parent, device, point, kind, source })
}

fn parse_device(field: &[u8]) -> Option<(u32, u32)> {
    let (major, minor) = std::str::from_utf8(field).ok()?.split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn number(field: &[u8]) -> Option<u64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

/// Undoes the kernel's `mangle`: space, tab, newline, backslash and `#` stand as `\ooo`.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut plain = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&byte, tail)) = rest.split_first() {
        match (byte, octal(tail)) {
            (b'\\', Some(escaped)) => {
                plain.push(escaped);
                rest = &tail[3..];
            }
            _ => {
                plain.push(byte);
                rest = tail;
            }
        }
    }
    plain
}

/// The byte that three leading octal digits name.
fn octal(digits: &[u8]) -> Option<u8> {
    let digits = std::str::from_utf8(digits.get(..3)?).ok()?;
    u8::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &[u8] = b"\
        21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw\n\
        22 21 0:20 / /proc rw,nosuid shared:2 master:3 - proc proc rw\n\
        40 21 0:41 / /srv/my\\040logs rw,nosuid,nodev - fuse.courant courant rw,user_id=0\n\
        41 40 0:42 / /srv/my\\040logs rw,nosuid,nodev - fuse.courant courant rw,user_id=0\n\
        42 21 0:43 /sub /srv/a\\134b\\011c\\012d\\043 ro - fuse.sshfs host:/ rw\n\
        not a line\n\
        43 21 no:device / /x rw - tmpfs tmpfs rw\n";

    #[test]
    fn reads_the_fields_around_the_optional_ones() {
        let mounts = parse(SAMPLE);
        let brief: Vec<_> =
            mounts.iter().map(|mount| (mount.id, mount.device.1, mount.kind.as_str())).collect();
        assert_eq!((mounts[2].source.as_str(), mounts[4].source.as_str()), ("courant", "host:/"));
        // Case: one optional field, two, none; lines that are none are left out.
        assert_eq!(
            brief,
            [
                (21, 0, "ext4"),
                (22, 20, "proc"),
                (40, 41, "fuse.courant"),
                (41, 42, "fuse.courant"),
                (42, 43, "fuse.sshfs"),
            ]
        );
    }

    #[test]
    fn unescapes_mount_points() {
        let mounts = parse(SAMPLE);
        assert_eq!(mounts[2].point, Path::new("/srv/my logs"));
        assert_eq!(mounts[4].point, Path::new("/srv/a\\b\tc\nd#"));
        // Case: a backslash that begins no escape stays.
        for (field, plain) in [("\\", "\\"), ("\\04", "\\04"), ("\\778", "\\778"), ("a\\x", "a\\x")]
        {
            assert_eq!(unescape(field.as_bytes()), plain.as_bytes(), "{field}");
        }
    }

    #[test]
    fn the_top_of_a_stack_is_the_one_nothing_lies_on() {
        let mut mounts = parse(SAMPLE);
        let point = Path::new("/srv/my logs");
        assert_eq!(top(&mounts, point).map(|mount| mount.id), Some(41));
        // Case: whatever the order of the lines.
        mounts.reverse();
        assert_eq!(top(&mounts, point).map(|mount| mount.id), Some(41));
        // Case: below a mount point is not at it.
        assert_eq!(top(&mounts, Path::new("/srv/my logs/x")), None);
        assert_eq!(top(&mounts, Path::new("/")).map(|mount| mount.id), Some(21));
    }

    #[test]
    fn reads_the_table_of_this_process() {
        let mounts = read().unwrap();
        assert!(top(&mounts, Path::new("/proc")).is_some_and(|mount| mount.kind == "proc"));
    }
}
