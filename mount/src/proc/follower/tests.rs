//! Texts of /proc, and a living tail that polls a file.

use super::super::living::Living;
use super::*;
use std::io::Write;
use std::os::unix::fs::MetadataExt;

const FDINFO: &str = "pos:\t1234\nflags:\t0104000\nmnt_id:\t40\nino:\t77\n";

fn file(flags: u32, mnt_id: u64) -> OpenFile {
    OpenFile { position: 10, flags, mnt_id, ino: 7 }
}

#[test]
fn parses_fdinfo() {
    let parsed = OpenFile::parse(FDINFO).unwrap();
    assert_eq!(parsed, OpenFile { position: 1234, flags: 0o104000, mnt_id: 40, ino: 77 });
    // Case: further lines; a kernel without `ino`.
    assert_eq!(OpenFile::parse(&format!("{FDINFO}lock:\t1: FLOCK\n")), Some(parsed));
    assert_eq!(OpenFile::parse("pos:\t0\nflags:\t0100000\nmnt_id:\t40\n"), None);
    assert_eq!(OpenFile::parse(""), None);
}

#[test]
fn the_set_is_all_or_nothing() {
    const READ: u32 = NONBLOCK;
    const WRITE: u32 = NONBLOCK | 0o1;
    const BOTH: u32 = NONBLOCK | 0o2;
    let cases: [(&[OpenFile], usize); 6] = [
        (&[file(READ, 40)], 1),
        (&[file(READ, 40), file(READ, 40)], 2),
        (&[], 0),
        // Case: one of the set is on another mount, or may write.
        (&[file(READ, 40), file(READ, 41)], 0),
        (&[file(READ, 40), file(WRITE, 40)], 0),
        (&[file(BOTH, 40)], 0),
    ];
    for (files, count) in cases {
        let files: BTreeMap<u32, OpenFile> = (3..).zip(files.iter().copied()).collect();
        let set = followed(&files, 40);
        assert_eq!(set.as_ref().map_or(0, Vec::len), count, "{files:?}");
        assert!(set.is_none_or(|set| set[0].fd == 3));
    }
}

#[test]
fn knows_links_of_files_and_terminals() {
    let cases = [
        ("/srv/journals/log", true, false),
        ("/srv/journals/log (deleted)", true, false),
        ("/dev/pts/0", false, true),
        ("/dev/tty1", false, true),
        ("/dev/console", false, true),
        ("/dev/null", false, false),
        ("pipe:[123]", false, false),
        ("socket:[123]", false, false),
        ("anon_inode:inotify", false, false),
    ];
    for (link, is_a_file, is_a_terminal) in cases {
        let found = (is_file(Path::new(link)), is_terminal(Path::new(link)));
        assert_eq!(found, (is_a_file, is_a_terminal), "{link}");
    }
}

#[test]
fn finds_the_option_to_end_with_a_process() {
    let cases: [(&[u8], bool); 8] = [
        (b"tail\0-f\0--pid=12\0log\0", true),
        (b"tail\0-f\0--pid\x0012\0log\0", true),
        (b"tail\0--p=1\0-f\0log\0", true),
        (b"tail\0-f\0log\0", false),
        // Case: another option; no option any more; the program's own name.
        (b"tail\0--pidfile\0log\0", false),
        (b"tail\0-f\0--\0--pid=1\0", false),
        (b"--pid\0-f\0log\0", false),
        (b"", false),
    ];
    for (command, watches) in cases {
        assert_eq!(watches_pid(command), watches, "{}", String::from_utf8_lossy(command));
    }
}

/// The mount on which an open file of this process lies.
fn mnt_id(file: &fs::File) -> u64 {
    use std::os::fd::AsRawFd;
    let fdinfo = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).unwrap();
    OpenFile::parse(&fdinfo).unwrap().mnt_id
}

#[test]
fn finds_what_a_living_tail_follows() {
    let path = std::env::temp_dir().join(format!("followed-{}", std::process::id()));
    let mut written = fs::File::create(&path).unwrap();
    written.write_all(b"one line\n").unwrap();
    let mnt_id = mnt_id(&written);
    let tail = ["tail".to_string()];

    // It polls as it does on a mount of ours: a local file it would watch by inotify.
    let name = path.to_str().unwrap();
    let child = Living::start("tail", &["---disable-inotify", "-s", "0.05", "-f", name]);
    let at_head = || {
        Follower::find(child.id(), mnt_id, &tail)
            .is_some_and(|follower| follower.set[0].position == 9)
    };
    child.until(at_head);
    let follower = Follower::find(child.id(), mnt_id, &tail).unwrap();
    assert_eq!(follower.set.len(), 1);
    assert_eq!(follower.set[0].ino, written.metadata().unwrap().ino());
    assert!(!follower.on_terminal && !follower.watches_pid);

    // Case: the file is on another mount; the program is not one that follows; nobody.
    assert_eq!(Follower::find(child.id(), mnt_id + 1_000_000, &tail), None);
    assert_eq!(Follower::find(child.id(), mnt_id, &["less".to_string()]), None);
    assert_eq!(Follower::find(u32::MAX, mnt_id, &tail), None);
    // Case: a tail that reads a pipe follows nothing.
    let reader = Living::start("tail", &["-f", "/dev/null"]);
    reader.until(|| fs::read_to_string(format!("/proc/{}/comm", reader.id())).unwrap() == "tail\n");
    assert_eq!(Follower::find(reader.id(), mnt_id, &tail), None);

    child.end();
    fs::remove_file(&path).unwrap();
}

#[test]
fn a_follower_has_one_thread_and_few_files() {
    let path = std::env::temp_dir().join(format!("few-{}", std::process::id()));
    let file = fs::File::create(&path).unwrap();
    let script = "
import os, sys, threading, time
path, files, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
open('/proc/self/comm', 'w').write('tail')
for _ in range(threads - 1): threading.Thread(target=time.sleep, args=(60,)).start()
for _ in range(files): os.open(path, os.O_RDONLY | os.O_NONBLOCK)
os.mkfifo(path + '.ready')
time.sleep(60)";
    let programs = ["tail".to_string()];
    // Case: (files, threads, whether it may be held). It has some files more, from its parent.
    for (files, threads, expected) in
        [("1", "1", true), ("40", "1", true), ("64", "1", false), ("1", "2", false)]
    {
        let child =
            Living::start("python3", &["-c", script, path.to_str().unwrap(), files, threads]);
        let ready = path.with_extension("ready");
        child.until(|| ready.exists());
        fs::remove_file(&ready).unwrap();
        let follower = Follower::find(child.id(), mnt_id(&file), &programs);
        assert_eq!(follower.is_some(), expected, "{files} files, {threads} threads");
    }
    fs::remove_file(&path).unwrap();
}
