//! The process that raises events: it sets the mtime of each file that it is told, through the
//! mount. It ends with the daemon that started it, and holds nothing of the mount open, so that
//! it is never a reason why that can't be unmounted.

use rustix::fs::{
    AtFlags, CWD, StatxFlags, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, statx, utimensat,
};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::OsStr;
use std::io::{self, BufRead, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Behind each path that is told.
pub(super) const END: u8 = 0;

/// What the process is called, where programs are listed.
const NAME: &std::ffi::CStr = c"courant-notify";

/// Takes paths from `paths`, each with a NUL behind it, and answers each with a byte once its event
/// is raised, or can't be. Only files of the mount of this number are touched: another may lie on
/// it. Returns when nobody tells paths any more.
pub fn run(mount: u64, paths: impl io::Read, mut answers: impl Write) -> io::Result<()> {
    // The daemon's end closes `paths` too; this ends one that waits for an answer of the mount.
    set_parent_process_death_signal(Some(Signal::KILL))?;
    rustix::thread::set_name(NAME)?;
    let mut paths = io::BufReader::new(paths);
    let mut path = Vec::new();
    while paths.read_until(END, &mut path)? > 0 {
        if path.pop() != Some(END) {
            return Ok(());
        }
        // What can't be touched has gone meanwhile, or is hidden by another mount.
        let _ = touch(Path::new(OsStr::from_bytes(&path)), mount);
        answers.write_all(&[END])?;
        answers.flush()?;
        path.clear();
    }
    Ok(())
}

/// Sets the mtime alone, which raises `IN_MODIFY`; with the atime it would be `IN_ATTRIB`
/// (`fsnotify_change` in linux/fsnotify.h).
fn touch(path: &Path, mount: u64) -> rustix::io::Result<()> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::STATX_DONT_SYNC;
    let found = statx(CWD, path, flags, StatxFlags::MNT_ID)?;
    if found.stx_mnt_id != mount {
        return Ok(());
    }
    let only = |nanoseconds| Timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let times = Timestamps { last_access: only(UTIME_OMIT), last_modification: only(UTIME_NOW) };
    utimensat(CWD, path, &times, AtFlags::SYMLINK_NOFOLLOW)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn only_the_mtime_of_files_of_the_mount_is_set() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a b\nc");
        std::fs::write(&file, "").unwrap();
        let long_ago = Timespec { tv_sec: 1, tv_nsec: 0 };
        let times = Timestamps { last_access: long_ago, last_modification: long_ago };
        utimensat(CWD, &file, &times, AtFlags::empty()).unwrap();
        let mount = statx(CWD, &file, AtFlags::empty(), StatxFlags::MNT_ID).unwrap().stx_mnt_id;

        let changed = |mount| {
            touch(&file, mount).unwrap();
            let found = std::fs::metadata(&file).unwrap();
            (found.atime() != 1, found.mtime() != 1)
        };
        // Case: the file lies in another mount; it lies in this one.
        assert_eq!(changed(mount + 1), (false, false));
        assert_eq!(changed(mount), (false, true));
        assert!(touch(&folder.path().join("gone"), mount).is_err());
    }
}
