//! What files look like from outside: owner, mode, inode, attributes, room, locks; and how they go.

use rustix::process::Signal;
use std::path::Path;
use tests::patience::{LIMIT, until};
use tests::running::Running;
use tests::shell::{self, Ran, cat};
use tests::world::{self, Up, journals};

/// A line of bash with two files as `$1` and `$2`.
#[track_caller]
fn bash(line: &str, one: &Path, two: &Path) -> Ran {
    shell::bash(Path::new("/"), line, &[one.to_str().unwrap(), two.to_str().unwrap()])
}

/// `st_ino` as `stat` tells it.
#[track_caller]
fn inode(file: &Path) -> u64 {
    bash("stat -c %i \"$1\"", file, file).ok().text().parse().unwrap()
}

#[test]
fn owner_mode_and_times_are_fixed_and_setting_them_succeeds() {
    let up = Up::with(&["--uid", "1234", "--gid", "4321", "--umask", "027"]);
    up.bash("echo one >> log; mkdir made", &[]).ok();
    let told = || up.bash("stat -c '%u %g %a %h %F %o' log made; stat -c %x%y%z log", &[]).ok();
    let before = told().text();
    let expected = "1234 4321 640 1 regular file 4096\n1234 4321 750 1 directory 4096\n";
    assert!(before.starts_with(expected), "{before}");
    let times = before.lines().last().unwrap();
    assert_eq!(times.len() % 3, 0, "{times}");
    // Case: atime and ctime are the mtime.
    assert_eq!(times, times[..times.len() / 3].repeat(3));

    let lines = "chmod 777 log made; chown 1:1 log; touch log; touch -d 2001-01-01 log made";
    up.bash(&format!("set -e; {lines}"), &[]).ok();
    assert_eq!(told().text(), before);
    // Case: what preserves attributes succeeds, and brings the bytes.
    let lines = "set -e; cp -p /etc/passwd p; mkdir t; tar -cf - -C /etc passwd | tar -xpf - -C t; \
                 install -m 700 /etc/passwd i; for f in p t/passwd i; do cmp $f /etc/passwd; done";
    up.bash(lines, &[]).ok();
    up.bash("sleep 0.01; echo two >> log", &[]).ok();
    assert_ne!(told().text(), before, "an append sets the times");
}

#[test]
fn a_read_only_mount_takes_nothing() {
    let mut up = Up::start();
    up.bash("echo kept >> log", &[]).ok();
    assert!(up.daemon().stop().success());
    up.with_further(&["--read-only"]);
    for line in ["echo lost >> log", "echo lost >> new", "mkdir new", "rm log", "touch new"] {
        let ran = up.bash(line, &[]);
        assert!(ran.stderr.contains("Read-only file system"), "{line}: {}", ran.stderr);
    }
    assert_eq!(up.bash("stat -c %a log; ls -A", &[]).ok().text(), "444\nlog");
    assert_eq!(cat(&up.file("log")), b"kept\n");
}

#[test]
fn a_journal_has_one_inode_on_every_mount_and_after_every_start() {
    let mut up = Up::start();
    let mut second = up.second();
    up.bash("mkdir d; echo one >> d/log", &[]).ok();
    let names = ["d/log", "d"];
    let inodes = names.map(|name| inode(&up.file(name)));
    // 2^53: numbers of JavaScript, and of shippers that keep inodes as floats, hold it.
    assert!(inodes.iter().all(|inode| *inode < 1 << 53), "{inodes:?}");
    for end in ["none", "stop", "kill"] {
        match end {
            "stop" => assert!(up.daemon().stop().success()),
            "kill" => up.daemon().kill(),
            _ => {}
        }
        if end != "none" {
            up.again();
            second.again();
        }
        for file in [
            up.file("d/log"),
            second.file("d/log"),
            up.mount().path().join(".courant/follow/d/log"),
        ] {
            assert_eq!(inode(&file), inodes[0], "{} after {end}", file.display());
        }
        assert_eq!(inode(&second.file("d")), inodes[1]);
    }
}

#[test]
fn a_deleted_journal_is_gone_everywhere_and_the_next_one_is_another() {
    let up = Up::with(&["--allow-delete"]);
    let second = up.second();
    let (one, two) = (up.file("log"), second.file("log"));
    bash("echo old >> \"$1\"", &one, &two).ok();
    let before = inode(&two);
    // Case: a reader of the kernel's, a writer, a reader of each mount's daemon, opened before.
    let line = "exec 3< \"$1\" 4>> \"$1\" 5< \"$2\" 6<> \"$1\"; rm \"$1\" || exit 9
        dd bs=99 count=1 status=none <&3; cat <&3; echo lost >&4; cat <&5; cat <&6
        ls -A \"$(dirname \"$1\")\" \"$(dirname \"$2\")\" | grep log
        echo new >> \"$2\"; cat \"$1\"";
    let ran = bash(line, &one, &two).ok();
    // The kernel goes on reading what it has open; all else is stale.
    assert_eq!(ran.text(), "old\nnew");
    assert_eq!(ran.stderr.matches("Stale file handle").count(), 4, "{}", ran.stderr);
    for file in [&one, &two] {
        assert_ne!(inode(file), before);
        assert_eq!(cat(file), b"new\n");
    }
}

#[test]
fn the_state_of_a_journal_is_told_by_extended_attributes() {
    let up = Up::start();
    let second = up.second();
    up.bash("echo a,b >> t.csv; echo '{}' >> t.ndjson; echo '{}' >> t.jsonl; echo x >> log", &[])
        .ok();
    let follow = up.mount().path().join(".courant/follow/log");
    // Case: (file, attribute, value)
    let cases = [
        (up.file("t.csv"), "content-type", "text/csv"),
        (up.file("t.ndjson"), "content-type", "application/x-ndjson"),
        (second.file("t.jsonl"), "content-type", "application/x-ndjson"),
        (up.file("log"), "journal", "local/log"),
        (second.file("log"), "head", "2"),
        (second.file("log"), "first", "0"),
        (up.file("log"), "gaps", "0"),
        (up.file("log"), "atomic-limit", "1044480"),
        (up.file("log"), "mode", "passthrough"),
        (second.file("log"), "mode", "direct"),
        (follow, "mode", "follow"),
    ];
    for (file, name, value) in cases {
        let line = "getfattr --only-values -n \"user.courant.$2\" \"$1\"";
        assert_eq!(bash(line, &file, Path::new(name)).ok().text(), value, "{name}");
    }
    // Case: what can't be set, or is not there.
    let lines = [
        ("setfattr -n user.courant.head -v 9 \"$1\"", "Operation not permitted"),
        ("setfattr -x user.courant.head \"$1\"", "Operation not permitted"),
        ("setfattr -n user.other -v 9 \"$1\"", "Operation not supported"),
        ("getfattr -n user.courant.other \"$1\"", "No such attribute"),
        ("getfattr -n user.courant.content-type \"$1\"", "No such attribute"),
    ];
    for (line, says) in lines {
        let ran = bash(line, &up.file("log"), Path::new(""));
        assert!(ran.code != Some(0) && ran.stderr.contains(says), "{line}: {}", ran.stderr);
    }
}

#[test]
fn the_room_is_that_of_the_data_directory() {
    let up = Up::start();
    // Case: blocks in all, the longest name, the type.
    let line =
        "stat -f -c '%b*%S %l' \"$1\"; stat -f -c '%b*%S %l' \"$2\"; df --output=fstype \"$1\"";
    let told = bash(line, up.mount().path(), up.data()).ok().text();
    let lines: Vec<&str> = told.lines().collect();
    assert_eq!(lines[0], lines[1]);
    assert_eq!(lines.last(), Some(&"fuse.courant"));
}

#[test]
fn locks_are_those_of_one_node_of_one_mount() {
    let up = Up::start();
    let second = up.second();
    up.bash("echo one >> log", &[]).ok();
    // Case: a writer of the same node; one that reads and writes, which is another; another mount.
    let line = "exec 3< \"$1\" 4>> \"$1\" 5<> \"$1\" 6< \"$2\"; flock -n 3 || exit 9
        for fd in 4 5 6; do flock -n $fd && echo free || echo taken; done";
    let told = bash(line, &up.file("log"), &second.file("log")).ok().text();
    assert_eq!(told, "taken\nfree\nfree");
}

#[test]
fn programs_that_walk_the_tree_come_to_an_end() {
    let up = Up::start();
    let second = up.second();
    up.bash("mkdir -p a/b; echo one >> a/b/log; echo two >> log", &[]).ok();
    for mount in [up.mount(), second.mount()] {
        let run = |line: &str| shell::bash(mount.path(), line, &[]).ok().text();
        assert_eq!(run("grep -rh . . | sort"), "one\ntwo");
        assert_eq!(run("find . -type f | sort"), "./a/b/log\n./log");
        assert_eq!(run("tar -cf - . | tar -tf - | grep -c log"), "2");
        assert_eq!(run("d=$(mktemp -d); rsync -r ./ $d/; find $d -type f | wc -l; rm -r $d"), "2");
        // Case: the control directory is there for who names it.
        assert_eq!(run("ls -A"), "a\nlog");
        assert_eq!(
            run("ls -A .courant .courant/follow/a"),
            ".courant:\nfollow\nfragments\nlines\nspecs\nstatus\nwhole\n\n\
                   .courant/follow/a:\nb"
        );
        let status = run("cat .courant/status; tail -c 1 .courant/status | od -An -c");
        assert!(status.starts_with("prefix local/\n") && status.ends_with("\\n"), "{status}");
    }
}

#[test]
fn a_walk_of_a_remote_mount_asks_for_many_files_at_once() {
    const FILES: usize = 400;
    let up = Up::start();
    let second = up.second();
    up.bash("mkdir d; for i in $(seq $1); do echo $i > d/$i; done", &[&FILES.to_string()]).ok();
    let requests = || {
        let line = "curl -sf $1/metrics | sed -n 's/^grpc_server_handled_total{.*\"Heads\".*} //p'";
        let told = shell::bash(Path::new("/"), line, &[&up.url()]).ok().text();
        told.parse::<usize>().unwrap_or_else(|_| panic!("no number: {told}"))
    };
    let run = |line: &str| shell::bash(second.mount().path(), line, &[]).ok().text();
    // Programs that look up what they listed, and again for attributes.
    for line in ["ls -l d | grep -c ' root '", "find d -type f -size 1k | wc -l"] {
        let before = requests();
        assert_eq!(run(line), FILES.to_string(), "{line}");
        let asked = requests() - before;
        // One by one it would be two for each. A machine that is too slow for what is told of many
        // asks once for each.
        assert!(asked < FILES + FILES / 2, "{line}: {asked} requests");
    }
    // Case: what the walk told is what there is
    let sizes = "ls -l d | awk 'NF > 5 { print $5 }' | sort | uniq -c | sort -k2 | tr -s ' '";
    assert_eq!(run(sizes), " 9 2\n 90 3\n 301 4");
}

#[test]
fn a_thousand_waiting_readers_take_no_thread_and_end_by_a_signal() {
    const READERS: usize = 1000;
    const THREADS_MAX: usize = 30;
    // What a broker that does nothing has, and what the readers may take.
    const MEMORY_MAX: u64 = 64 << 20;
    let mut up = Up::start();
    up.bash("echo first >> log", &[]).ok();
    let line = "for i in $(seq $1); do cat .courant/follow/log & done; wait";
    let mut command = std::process::Command::new("bash");
    command.current_dir(up.mount().path()).args(["-c", line, "bash", &READERS.to_string()]);
    let mut readers = Running::start(&mut command);
    let printed = |lines: usize, readers: &Running| {
        readers.stdout().iter().filter(|byte| **byte == b'\n').count() == lines
    };
    until("each has read the first line", || printed(READERS, &readers));
    // The threads are those of the runtime, whose pool of blocking ones is idle.
    // What opened the files for them is idle by now, and goes after ten seconds.
    until("its threads are few", || up.daemon().threads() < THREADS_MAX);
    let resident = up.daemon().resident();
    assert!(resident < MEMORY_MAX, "{resident} bytes are resident");
    for signal in [Signal::INT, Signal::TERM, Signal::KILL] {
        // Case: one more, which reads what is there and waits among the others.
        let mut command = shell::with_signals("cat");
        let mut one = Running::start(command.arg(up.file(".courant/follow/log")));
        one.until_prints("first");
        one.signal(signal);
        assert!(!one.wait(LIMIT).success(), "{signal:?}");
    }
    up.bash("echo second >> log", &[]).ok();
    until("each has read the second line", || printed(2 * READERS, &readers));
    assert!(readers.kill(), "the readers hang");
    assert!(up.daemon().stop().success());
}

#[test]
fn a_write_is_on_disk_where_that_was_asked_for() {
    let mut up = Up::start();
    let second = up.second();
    let synced = |file: &Path| {
        let line =
            "for a in head synced; do getfattr --only-values -n user.courant.$a \"$1\"; echo; done";
        let told = bash(line, file, file).ok().text();
        let (head, synced) = told.split_once('\n').unwrap();
        head == synced
    };
    // Case: through each mount, the ways to ask for it.
    let lines = [
        "dd if=/dev/zero of=\"$1\" bs=1000 count=3 oflag=append,sync conv=notrunc status=none",
        "dd if=/dev/zero of=\"$1\" bs=1000 count=3 oflag=append,dsync conv=notrunc status=none",
        "dd if=/dev/zero of=\"$1\" bs=1000 count=3 oflag=append conv=notrunc,fsync status=none",
        "dd if=/dev/zero of=\"$1\" bs=1000 count=3 oflag=append conv=notrunc,fdatasync status=none",
        "echo one >> \"$1\"; sync \"$1\"",
    ];
    for file in [up.file("log"), second.file("log")] {
        for line in lines {
            bash(line, &file, &file).ok();
            assert!(synced(&file), "{line} on {}", file.display());
        }
    }
    // Case: a mount whose every write is synced.
    assert!(up.daemon().stop().success());
    up.with_further(&["--durability", "disk"]);
    for _ in 0..3 {
        up.bash("echo one >> log", &[]).ok();
        assert!(synced(&up.file("log")));
    }
}

#[test]
fn what_is_no_file_or_directory_is_refused() {
    let up = Up::start();
    up.bash("echo one >> log", &[]).ok();
    let lines = [
        "ln log other",
        "ln -s log other",
        "mkfifo other",
        "mknod other c 1 3",
        "python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"other\")'",
        "fallocate -l 100 log",
        "fallocate -p -o 0 -l 4096 log",
    ];
    for line in lines {
        let ran = up.bash(line, &[]);
        assert_eq!(ran.code, Some(1), "{line}");
        assert!(ran.stderr.contains("Operation not permitted"), "{line}: {}", ran.stderr);
    }
    assert_eq!(up.bash("ls -A; cat log", &[]).ok().text(), "log\none");
}

#[test]
fn a_file_of_stored_bytes_alone_has_the_time_of_its_last_fragment() {
    let up = Up::start();
    let apply = || world::apply(&up, "log", 1024, "NONE");
    apply();
    up.bash("head -c 1024 /dev/zero >> log", &[]).ok();
    let persisted = "getfattr --only-values -n user.courant.persisted log";
    until("it is stored", || up.bash(persisted, &[]).text() == "1024");
    journals(&up, &["delete", "--yes", "local/log"]).ok();
    apply();
    until("its store is listed", || up.bash("stat -c %s log", &[]).text() == "1024");
    let is_of_today = "test $(( $(date +%s) - $(stat -c %Y log) )) -lt 86400";
    assert_eq!(up.bash(is_of_today, &[]).code, Some(0), "{}", up.bash("ls -l log", &[]).text());
}
