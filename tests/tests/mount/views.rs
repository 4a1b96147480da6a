//! Line mode, the whole view and `--async` by ordinary programs, through two mounts: cases T04 and
//! T11.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tests::ground;
use tests::patience::{LIMIT, pause, reached, until};
use tests::running::Running;
use tests::shell::{self, cat};
use tests::world::Up;
use tests::writer::{Manner, Writer};

/// The records of case T04.
const LEN: usize = 4 << 20;

#[test]
fn t04_lines_of_any_size_are_whole_between_two_mounts() {
    let up = Up::start();
    let second = up.second();
    // One file is opened for five lines, which many processes write to: each one's end is a FLUSH.
    let line = "for i in 1 2 3 4 5; do head -c \"$1\" /dev/zero | tr '\\0' \"$2\"; echo; done \
                >> .courant/lines/log";
    let start = |directory: &Path, letter: &str| {
        let mut command = Command::new("bash");
        let length = LEN.to_string();
        command.current_dir(directory).args(["-c", line, "bash", &length, letter]);
        Running::start(&mut command)
    };
    let mut writers = [start(up.mount().path(), "a"), start(second.mount().path(), "b")];
    for writer in &mut writers {
        assert!(writer.wait(2 * LIMIT).success(), "{}", writer.stderr());
    }
    let seen = cat(&up.file("log"));
    let lines: Vec<&[u8]> = seen.split_inclusive(|byte| *byte == b'\n').collect();
    assert_eq!(lines.len(), 10);
    for line in lines {
        let whole = line.len() == LEN + 1 && line[..LEN].iter().all(|byte| *byte == line[0]);
        assert!(whole, "a line of {} bytes is torn", line.len());
    }
    assert!(seen == cat(&second.file("log")), "the mounts differ");
}

#[test]
fn t04_what_is_written_between_open_and_close_is_whole_between_two_mounts() {
    let up = Up::start();
    let second = up.second();
    let ground = ground::folder("whole-");
    // Case: a program, and how it writes 5 MiB in many writes
    let programs = [
        "dd if=\"$1\" of=.courant/whole/log oflag=append conv=notrunc bs=64k status=none",
        "cat \"$1\" >> .courant/whole/log",
        "dd if=\"$1\" of=.courant/whole/log oflag=append conv=notrunc,fsync bs=3000 status=none",
    ];
    let len = 5 << 20;
    let mut letters = b'a'..=b'z';
    let mut running = Vec::new();
    for program in programs {
        for mount in [up.mount(), second.mount()] {
            let letter = letters.next().unwrap();
            let source = ground.path().join(char::from(letter).to_string());
            fs::write(&source, vec![letter; len]).unwrap();
            let mut command = Command::new("bash");
            command.current_dir(mount.path()).args(["-c", program, "bash"]).arg(&source);
            running.push(Running::start(&mut command));
        }
    }
    for program in &mut running {
        assert!(program.wait(2 * LIMIT).success(), "{}", program.stderr());
    }
    // Nobody waits for a RELEASE.
    until("all are committed", || fs::metadata(up.file("log")).unwrap().len() == 6 * len as u64);
    let seen = cat(&second.file("log"));
    let mut found = BTreeSet::new();
    for whole in seen.chunks(len) {
        assert!(whole.iter().all(|byte| *byte == whole[0]), "torn");
        found.insert(whole[0]);
    }
    assert_eq!(found.len(), 6);
    let status = String::from_utf8(cat(&second.file(".courant/status"))).unwrap();
    assert!(status.matches(" committed").count() >= 2, "{status}");
}

#[test]
fn archives_and_copies_are_made_in_the_whole_view() {
    let up = Up::start();
    let second = up.second();
    let ground = ground::folder("whole-");
    let source = ground.path().join("source");
    fs::create_dir(&source).unwrap();
    for (number, len) in [(1, 10), (2, 3 << 20), (3, 100_000)] {
        fs::write(source.join(number.to_string()), vec![b'0' + number; len]).unwrap();
    }
    let from = source.to_str().unwrap();
    up.bash("tar -cf .courant/whole/archive.tar -C \"$1\" .", &[from]).ok();
    up.bash("cp \"$1\"/2 .courant/whole/copy", &[from]).ok();
    until("the copy is committed", || {
        fs::metadata(second.file("copy")).is_ok_and(|meta| meta.len() == 3 << 20)
    });
    until("the archive is committed", || {
        fs::metadata(second.file("archive.tar")).is_ok_and(|meta| meta.len() > 0)
    });
    let line = "tar -xf archive.tar -C \"$2\" && diff -r \"$1\" \"$2\" && cmp copy \"$1\"/2";
    let unpacked = ground.path().join("unpacked");
    fs::create_dir(&unpacked).unwrap();
    let arguments = [from, unpacked.to_str().unwrap()];
    shell::bash(second.mount().path(), line, &arguments).ok();
    // Case: an existing journal's bytes never change
    let ran = up.bash("cp \"$1\"/1 .courant/whole/copy", &[from]);
    assert!(ran.stderr.contains("Operation not permitted"), "{}", ran.stderr);
}

#[test]
fn only_the_last_close_ends_a_whole_file_and_an_unfinished_line() {
    let up = Up::start();
    let second = up.second();
    let script = "
import os, subprocess, sys
for view in 'lines', 'whole':
    fd = os.open(f'.courant/{view}/{view}', os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(fd, b'one')
    twin = os.dup(fd)
    os.write(twin, b' two')
    os.close(twin)
    if os.fork() == 0:
        os.write(fd, b' three')
        os._exit(0)
    os.wait()
    subprocess.run(['true'], pass_fds=[fd])
    print(os.path.exists(view) and os.stat(view).st_size or 0, flush=True)
    os.close(fd)
";
    let ran = up.bash("python3 -c \"$1\"", &[script]).ok();
    assert_eq!(ran.text(), "0\n0");
    for view in ["lines", "whole"] {
        let file = second.file(view);
        until("it is committed", || fs::read(&file).is_ok_and(|bytes| bytes == b"one two three"));
    }
}

#[test]
fn fsync_commits_what_waits() {
    let up = Up::start();
    let second = up.second();
    for view in ["lines", "whole"] {
        let script = "
import os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
os.write(fd, b'no newline')
os.fsync(fd)
print(os.stat(sys.argv[2]).st_size)
";
        let view_path = format!(".courant/{view}/{view}");
        let other = second.file(view);
        let arguments = [script, &view_path, other.to_str().unwrap()];
        let ran = up.bash("python3 -c \"$1\" \"$2\" \"$3\"", &arguments).ok();
        assert_eq!(ran.text(), "10", "{view}");
    }
}

/// The records of a journal in line mode whose writers were killed: whole ones by writer, and what
/// is left of lines that were never finished.
fn pieces(journal: &[u8]) -> (BTreeMap<u32, Vec<u64>>, Vec<String>) {
    let (mut whole, mut cut): (BTreeMap<u32, Vec<u64>>, _) = (BTreeMap::new(), Vec::new());
    let text = String::from_utf8(journal.to_vec()).unwrap();
    // No filler has a `<`: each one begins a record.
    for piece in text.split('<').skip(1) {
        let fields: Option<(u32, u64, usize, &str)> = (|| {
            let (head, rest) = piece.split_once('>')?;
            let mut fields = head.split(' ');
            let writer = fields.next()?.parse().ok()?;
            let number = fields.next()?.parse().ok()?;
            Some((writer, number, fields.next()?.parse().ok()?, rest))
        })();
        match fields {
            Some((writer, number, len, rest)) if rest.len() == len + 1 && rest.ends_with('\n') => {
                whole.entry(writer).or_default().push(number);
            }
            _ => cut.push(piece.chars().take(40).collect()),
        }
    }
    (whole, cut)
}

/// Deaths that one journal sees.
const ROUNDS_OF_A_JOURNAL: usize = 16;

#[test]
fn t11_in_line_mode_what_was_acknowledged_is_there_once_whatever_dies() {
    let mut up = Up::start();
    let mut second = up.second();
    let mut next = [1_u64, 1];
    let mut acknowledged: BTreeMap<u32, Vec<u64>> = BTreeMap::new();
    let rounds = ground::number("ROUNDS", 8);
    for round in 0..rounds {
        // Each round reads all of it, so it does not grow for ever.
        let log = format!("log-{}", round / ROUNDS_OF_A_JOURNAL);
        if round % ROUNDS_OF_A_JOURNAL == 0 {
            up.bash("echo -n > $1", &[&log]).ok();
            (next, acknowledged) = ([1, 1], BTreeMap::new());
        }
        let lines = format!(".courant/lines/{log}");
        let files = [up.file(&lines), second.file(&lines)];
        let fill = 50 + 30_011 * (round % 3);
        let manner = Manner { fill, further: &["--pieces", "5"], ..Manner::default() };
        let start = |(at, id): (usize, u32)| Writer::start(&files[at], id, next[at], manner);
        let mut writers = [(0, 1), (1, 2)].map(start);
        writers.iter_mut().for_each(Writer::until_acknowledged);
        pause(Duration::from_millis(20 + 37 * u64::try_from(round).unwrap() % 150));
        match round % 4 {
            0 => second.daemon().kill(),
            1 => assert!(second.daemon().stop().success()),
            2 => up.daemon().kill(),
            _ => assert!(up.daemon().stop().success()),
        }
        for (at, writer) in writers.iter_mut().enumerate() {
            writer.kill();
            acknowledged.entry(writer.id()).or_default().extend(writer.acknowledged());
            // The one on its way has a number too.
            next[at] = writer.unanswered() + 1;
        }
        match round % 4 {
            0 | 1 => second.again(),
            _ => up.again(),
        }
        // What the other writer had waiting is committed at its close, for which nobody waits.
        let mut found = (BTreeMap::new(), Vec::new());
        let settled = reached(LIMIT, || {
            let one = cat(&up.file(&log));
            found = pieces(&one);
            one == cat(&second.file(&log))
        });
        assert!(settled, "the mounts differ");
        let (whole, cut) = &found;
        let deaths = round % ROUNDS_OF_A_JOURNAL + 1;
        for (writer, numbers) in &acknowledged {
            let seen = whole.get(writer).cloned().unwrap_or_default();
            let mut rising = seen.clone();
            rising.sort_unstable();
            rising.dedup();
            assert_eq!(rising, seen, "round {round}, writer {writer}: twice, or out of order");
            let there: BTreeSet<&u64> = seen.iter().collect();
            let lost: Vec<_> = numbers.iter().filter(|number| !there.contains(number)).collect();
            assert!(lost.is_empty(), "round {round}, writer {writer} lost {lost:?}");
            let unknown = seen.len() - numbers.len();
            assert!(unknown <= deaths, "round {round}, writer {writer}: {unknown} more");
            assert!(numbers.len() >= deaths, "round {round}, writer {writer} wrote too little");
        }
        assert!(cut.len() <= 2 * deaths, "round {round}: torn {cut:?}");
    }
}

#[test]
fn a_whole_file_that_was_never_closed_is_set_aside_and_named() {
    let up = Up::start();
    let mut second = up.second();
    let mut command = Command::new("bash");
    let line = "exec 3>> .courant/whole/log; echo unfinished >&3; echo held; read -r";
    command.current_dir(second.mount().path()).args(["-c", line]);
    let mut holder = Running::start(command.stdin(std::process::Stdio::piped()));
    holder.until_prints("held");
    second.daemon().kill();
    assert!(holder.kill());
    second.again();
    let status = String::from_utf8(cat(&second.file(".courant/status"))).unwrap();
    let place = status.lines().find_map(|line| {
        line.strip_prefix("closed local/log 11 bytes set aside in ")?.split_once(": ")
    });
    let (place, why) = place.unwrap_or_else(|| panic!("{status}"));
    assert_eq!(why, "the mount ended before the file was closed");
    let kept = fs::read(place).unwrap();
    assert!(kept.starts_with(b"courant draft 1\nmanner whole\njournal local/log\n"));
    assert_eq!(&kept[4096..], b"unfinished\n");
    assert!(!up.file("log").exists());
}

#[test]
fn what_finds_no_room_to_wait_is_told_at_the_write() {
    let up = Up::with(&["--staging-max", "1M"]);
    // Case: a whole file is all or nothing
    let ran = up.bash("head -c 2000000 /dev/zero >> .courant/whole/log", &[]);
    assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
    until("it is dropped", || {
        let status = String::from_utf8(cat(&up.file(".courant/status"))).unwrap();
        status.contains("bytes dropped: ") && status.contains("staged-bytes 0\n")
    });
    assert_eq!(fs::metadata(up.file("log")).unwrap().len(), 0);
    // Case: a line that is too long, and lines that are not
    let ran = up.bash("head -c 2000000 /dev/zero >> .courant/lines/zeros", &[]);
    assert!(ran.stderr.contains("No space left on device"), "{}", ran.stderr);
    up.bash("seq 1 300000 >> .courant/lines/numbers", &[]).ok();
    up.bash("seq 1 300000 | cmp - numbers", &[]).ok();
}

#[test]
fn a_mount_with_lines_commits_whole_lines_through_every_file() {
    let up = Up::with(&["--lines"]);
    let second = up.second();
    let line = "exec 3>> log; printf 'one\\ntw' >&3; stat -c %s log; printf 'o\\n' >&3; cat log";
    assert_eq!(up.bash(line, &[]).ok().text(), "4\none\ntwo");
    // Case: through the node that the kernel reads itself too
    assert_eq!(up.bash(line, &[]).ok().text(), "12\none\ntwo\none\ntwo");
    assert_eq!(cat(&second.file("log")), b"one\ntwo\none\ntwo\n");
}

#[test]
fn queued_writes_are_there_after_the_close_which_tells_what_failed() {
    let up = Up::with(&["--async"]);
    let second = up.second();
    up.bash("seq 1 20000 | dd of=log oflag=append conv=notrunc bs=100 status=none", &[]).ok();
    up.bash("seq 1 20000 | cmp - log", &[]).ok();
    assert!(cat(&up.file("log")) == cat(&second.file("log")), "the mounts differ");
    let script = "
import errno, os, sys
fd = os.open('log', os.O_WRONLY)
end = os.lseek(fd, 0, os.SEEK_END)
with open(sys.argv[1], 'a') as other:
    other.write('elsewhere\\n')
print(os.write(fd, b'late'))
for call in os.fsync, os.close:
    try:
        call(fd)
    except OSError as error:
        print(errno.errorcode[error.errno])
";
    let elsewhere = second.file("log");
    let arguments = [script, elsewhere.to_str().unwrap()];
    let ran = up.bash("python3 -c \"$1\" \"$2\"", &arguments).ok();
    assert_eq!(ran.text(), "4\nEPERM\nEPERM");
}

#[test]
fn what_waits_is_never_truncated_on_a_mount() {
    let up = Up::start();
    let second = up.second();
    let program = "import errno, os, sys
fd = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT)
os.write(fd, b'abc')
os.ftruncate(fd, 3)
for size, why in [(0, errno.EPERM), (2, errno.EPERM), (4, errno.EINVAL)]:
    try:
        os.ftruncate(fd, size)
        sys.exit(f'{size}: it was a success')
    except OSError as error:
        assert error.errno == why, (size, error)
os.write(fd, b'def')
os.ftruncate(fd, 6)
os.close(fd)";
    for (number, mount) in [up.mount(), second.mount()].into_iter().enumerate() {
        let name = format!(".courant/whole/log{number}");
        shell::bash(mount.path(), "python3 -c \"$1\" \"$2\"", &[program, &name]).ok();
        let file = up.file(&format!("log{number}"));
        until("it is committed", || file.exists() && cat(&file) == b"abcdef");
    }
}

#[test]
fn two_names_are_not_exchanged() {
    let up = Up::start();
    let exchange = "import ctypes, os, sys\n\
        old, new, flags = sys.argv[1].encode(), sys.argv[2].encode(), int(sys.argv[3])\n\
        libc = ctypes.CDLL(None, use_errno=True)\n\
        failed = libc.renameat2(-100, old, -100, new, flags)\n\
        print(os.strerror(ctypes.get_errno()) if failed else \"done\")";
    let line = "exec 3>> .courant/whole/a 4>> .courant/whole/b; echo A >&3; echo B >&4; \
        python3 -c \"$1\" .courant/whole/a .courant/whole/b 2";
    let ran = shell::bash(up.mount().path(), line, &[exchange]).ok();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "Invalid argument\n");
    until("both are committed", || up.file("a").exists() && up.file("b").exists());
    assert_eq!((cat(&up.file("a")), cat(&up.file("b"))), (b"A\n".to_vec(), b"B\n".to_vec()));
}
