//! The adapter under a real kernel: journals in memory, served by the example `double`, touched by
//! other programs. Needs root, /dev/fuse, bash, python3 and GNU tail.
//!
//! Nothing here touches the mount itself: each access is another process with a time limit.

#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use mount::mountpoint::{self, table};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use tempfile::TempDir;

/// A mount with its daemon, gone when dropped.
struct Mounted {
    folder: TempDir,
    daemon: Child,
}

impl Mounted {
    /// Journals that are lent to the kernel, or all served by the daemon.
    fn new(lends: bool) -> Mounted {
        Mounted::with(lends, &[("ALLOW_DELETE", "1")])
    }

    fn with(lends: bool, variables: &[(&str, &str)]) -> Mounted {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(double());
        command.arg(folder.path().join("m"));
        if lends {
            let mirrors = folder.path().join("mirrors");
            std::fs::create_dir(&mirrors).unwrap();
            command.arg(mirrors);
        }
        let daemon = command.envs(variables.iter().copied()).spawn().unwrap();
        let mounted = Mounted { folder, daemon };
        // The first access waits for INIT by itself; the mount must be there before.
        for _ in 0..500 {
            if mounted.is_mounted() {
                return mounted;
            }
            Command::new("sleep").arg("0.02").status().unwrap();
        }
        panic!("the mount did not come up: is /dev/fuse there, and is this root?");
    }

    fn path(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("m")
    }

    fn is_mounted(&self) -> bool {
        table::top(&table::read().unwrap(), &self.path()).is_some()
    }

    /// Runs a bash script with the mount as `$M`, and returns what it printed.
    fn bash(&self, script: &str) -> String {
        self.run("bash", script)
    }

    fn python(&self, script: &str) -> String {
        self.run("python3", script)
    }

    fn run(&self, program: &str, script: &str) -> String {
        let Output { status, stdout, stderr } = Command::new("timeout")
            .args(["-s", "KILL", "60", program, "-c", script])
            .env("M", self.path())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&stderr);
        assert!(status.success(), "{program} ended with {status}: {stderr}\n{script}");
        String::from_utf8(stdout).unwrap()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Without its daemon nothing in the mount waits any more.
        let _ = self.daemon.kill();
        let _ = self.daemon.wait();
        let _ = mountpoint::unmount(&self.path());
    }
}

/// The daemon, which cargo builds beside the tests.
fn double() -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let built = test.parent().and_then(Path::parent).unwrap();
    let double = built.join("examples/double");
    assert!(double.exists(), "run all tests of the package, or build the example first");
    double
}

/// Both ways of reading.
fn both(check: impl Fn(&Mounted)) {
    for lends in [false, true] {
        check(&Mounted::new(lends));
    }
}

#[test]
fn ordinary_programs_append_and_read() {
    both(|mounted| {
        let printed = mounted.bash(
            r#"set -e; cd /
            echo one >> $M/a.log; echo two >> $M/a.log
            printf three | dd of=$M/a.log oflag=append conv=notrunc status=none
            cat $M/a.log; echo; busybox cat $M/a.log; echo; stat -c %s $M/a.log
            (echo x > $M/a.log) 2>&1 | grep -o 'not permitted'
            mv $M/a.log $M/b.log 2>&1 | grep -o 'not permitted'
            mkdir $M/d; cp /etc/hostname $M/d/h; cmp /etc/hostname $M/d/h; ls $M
            rm $M/a.log; ls $M"#,
        );
        let text = "one\ntwo\nthree\n";
        let refused = "not permitted\n".repeat(2);
        assert_eq!(printed, format!("{text}{text}13\n{refused}a.log\nd\nd\n"));
    });
}

#[test]
fn one_file_whatever_the_mode_of_its_handles() {
    both(|mounted| {
        let printed = mounted.python(
            r#"
import os, mmap
p = os.environ['M'] + '/a.log'
open(p, 'w').write('one\n')
r = os.open(p, os.O_RDONLY)
a = os.open(p, os.O_WRONLY | os.O_APPEND)
rw = os.open(p, os.O_RDWR)
os.write(a, b'two\n')
os.lseek(rw, 0, os.SEEK_END)
os.write(rw, b'three\n')
for fd in (r, rw):
    print(os.pread(fd, 100, 0), os.fstat(fd).st_size)
print(len({os.fstat(fd).st_ino for fd in (r, a, rw)} | {os.stat(p).st_ino}))
try: mmap.mmap(rw, 0)
except OSError as e: print(e.strerror)
for offset in (0, 1000):
    try: os.pwrite(rw, b'X', offset)
    except OSError as e: print(e.strerror)
print(os.pread(r, 100, 0))
"#,
        );
        let text = "b'one\\ntwo\\nthree\\n'";
        assert_eq!(
            printed,
            format!(
                "{text} 14\n{text} 14\n1\nNo such device\nOperation not permitted\n\
                 Invalid argument\n{text}\n"
            )
        );
    });
}

#[test]
fn a_growing_tail_is_never_read_as_nuls() {
    // sendfile and splice go through the page cache whatever the handle says. A writer on another
    // node than the readers is one of whose bytes only we can tell the kernel; without that up to
    // three reads in a thousand held NULs where the mirror is lent. For one on their own node the
    // kernel drops the pages that a write covers.
    //
    // The kernel looks a page up first and the size after that (filemap_splice_read). So it is not
    // enough to drop the old tail's page, which a reader may hold by then: beside processes that
    // spin 2 of 440,000 reads held NULs. None of 2,500,000 does since the page gets its bytes where
    // it lies.
    let script = r#"
import os, random, time
flags = FLAGS
p = os.environ['M'] + '/a.log'
pattern = bytes(i % 255 + 1 for i in range(255 * 400))
def at(offset, n): return pattern[offset % 255:offset % 255 + n]
fd = os.open(p, os.O_WRONLY | os.O_CREAT)
os.write(fd, at(0, 1))
os.close(fd)
end = time.monotonic() + 3
def write():
    fd, offset = os.open(p, flags | os.O_APPEND), 1
    while time.monotonic() < end:
        n = random.randint(1, 3000)
        assert os.write(fd, at(offset, n)) == n
        offset += n
        time.sleep(0.0003)
def read(copy):
    fd, (r, w) = os.open(p, os.O_RDWR), os.pipe()
    bad = reads = 0
    while time.monotonic() < end:
        offset = max(0, os.fstat(fd).st_size - random.randint(1, 6000))
        n = copy(fd, w, offset)
        got = os.read(r, n) if n else b''
        bad += got != at(offset, len(got))
        reads += 1
    os.write(1, f'{bad} {reads > 100}\n'.encode())
def splice(fd, w, offset): return os.splice(fd, w, 60000, offset_src=offset)
def sendfile(fd, w, offset): return os.sendfile(w, fd, offset, 60000)
def pread(fd, w, offset): return os.write(w, os.pread(fd, 60000, offset))
def run(work, *arguments):
    if os.fork() == 0:
        work(*arguments)
        os._exit(0)
run(write)
for copy in (splice, sendfile, pread, splice): run(read, copy)
for _ in range(5): assert os.wait()[1] == 0
"#;
    for flags in [rustix::fs::OFlags::WRONLY, rustix::fs::OFlags::RDWR] {
        let script = script.replace("FLAGS", &flags.bits().to_string());
        both(|mounted| assert_eq!(mounted.python(&script), "0 True\n".repeat(4)));
    }
}

#[test]
fn bytes_that_waited_are_read_through_the_page_cache_once_they_are_there() {
    // The kernel believes in them before they are committed, and fills pages with NULs for them.
    let script = r#"
import os, random
p = os.environ['M'] + '/a.log'
pattern = bytes(i % 255 + 1 for i in range(255 * 400))
def at(offset, n): return pattern[offset % 255:offset % 255 + n]
writer = os.open(p, os.O_RDWR | os.O_APPEND | os.O_CREAT)
reader, size, bad = os.open(p, os.O_RDWR), 0, 0
r, w = os.pipe()
def splice(offset, n):
    got = b''
    while len(got) < n:
        moved = os.splice(reader, w, min(n - len(got), 60000), offset_src=offset + len(got))
        if moved == 0: break
        got += os.read(r, moved)
    return got
for _ in range(200):
    n = random.choice([1, 3000, 4096, 60000])
    assert os.write(writer, at(size, n)) == n
    splice(max(0, size - 5000), n + 5000)
    os.fsync(writer)
    size += n
    begin = max(0, size - 70000)
    got = splice(begin, size - begin)
    for i in range(0, len(got), 255):
        bad += got[i:i + 255] != at(begin + i, len(got[i:i + 255]))
    bad += len(got) != size - begin
print(bad)
"#;
    for lends in [false, true] {
        let mounted = Mounted::with(lends, &[("ASYNC", "1")]);
        assert_eq!(mounted.python(script), "0\n");
    }
}

#[test]
fn the_follow_view_waits_and_can_be_killed() {
    both(|mounted| {
        let printed = mounted.bash(
            r#"set -e; cd /
            echo one >> $M/a.log
            mkfifo_dir=$(mktemp -d); trap 'rm -r $mkfifo_dir' EXIT; mkfifo $mkfifo_dir/out
            cat $M/.courant/follow/a.log > $mkfifo_dir/out & cat=$!
            exec 3< $mkfifo_dir/out
            read -r line <&3; echo $line
            echo two >> $M/a.log
            read -r line <&3; echo $line
            for signal in INT TERM KILL; do
                python3 -c "
import os, signal, sys
signal.signal(signal.SIGINT, signal.SIG_DFL)
os.execvp('cat', ['cat', '$M/.courant/follow/a.log'])" > /dev/null & held=$!
                # Until then it ignores SIGINT, as what bash runs in the background does.
                until [ "$(cat /proc/$held/comm)" = cat ]; do sleep 0.05; done
                sleep 0.5; kill -$signal $held
                wait $held || echo $signal $?
            done
            kill $cat; wait $cat || true"#,
        );
        assert_eq!(printed, "one\ntwo\nINT 130\nTERM 143\nKILL 137\n");
    });
}

#[test]
fn polling_reports_growth_of_the_follow_view() {
    let mounted = Mounted::new(true);
    let printed = mounted.python(
        r#"
import os, select, subprocess
m = os.environ['M']
open(m + '/a.log', 'a').write('one\n')
fd = os.open(m + '/.courant/follow/a.log', os.O_RDONLY | os.O_NONBLOCK)
print(os.read(fd, 100))
try: os.read(fd, 100)
except BlockingIOError: print('EAGAIN')
epoll = select.epoll(); epoll.register(fd, select.EPOLLIN)
print(epoll.poll(0.1))
subprocess.Popen(['sh', '-c', 'sleep 0.3; echo two >> $M/a.log'])
print(len(epoll.poll(30)), os.read(fd, 100))
"#,
    );
    assert_eq!(printed, "b'one\\n'\nEAGAIN\n[]\n1 b'two\\n'\n");
}

#[test]
fn tail_is_held_and_archivers_are_not() {
    both(|mounted| {
        let printed = mounted.python(
            r#"
import os, select, subprocess, time
m = os.environ['M']
names = ['%s/%d.log' % (m, i) for i in range(10)]
def append(name, text): open(name, 'a').write(text)
for name in names: append(name, 'x\n')

master, slave = os.openpty()
command = ['tail', '-n', '0', '-f', '-q', '-s', '20'] + names[:3]
tail = subprocess.Popen(command, stdout=slave)
time.sleep(1)
began = time.monotonic()
for name in names[:3]:
    append(name, name[-5] + '\n')
    text = b''
    while not text.endswith(b'\n'): text += os.read(master, 100)
    print(text.decode().strip(), end=' ')
print(time.monotonic() - began < 15)
tail.terminate(); print(tail.wait(10))

began = time.monotonic()
archive = 'tar cf - $M/*.log | wc -c; gzip -c $M/*.log | wc -c; tail -n 1 $M/*.log'
subprocess.run(archive, shell=True, check=True, stdout=subprocess.DEVNULL)
print(time.monotonic() - began < 15)
"#,
        );
        assert_eq!(printed, "0 1 2 True\n-15\nTrue\n");
    });
}

#[test]
fn an_unmount_lets_go_what_is_held() {
    let mut mounted = Mounted::new(true);
    mounted.bash("echo one >> $M/a.log");
    let mut reader = Command::new("cat")
        .arg(mounted.path().join(".courant/follow/a.log"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    Command::new("sleep").arg("0.5").status().unwrap();
    let pid = rustix::process::Pid::from_child(&mounted.daemon);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert!(mounted.daemon.wait().unwrap().success());
    assert!(!reader.wait().unwrap().success());
    let complaint = std::io::read_to_string(reader.stderr.take().unwrap()).unwrap();
    assert!(complaint.contains("No such device"), "{complaint}");
    assert!(!mounted.is_mounted());
}
