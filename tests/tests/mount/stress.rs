//! A growing file read in every way at once, through handles of every node, each byte checked: no
//! wrong byte, and no signal for touching one.

use std::time::Duration;
use tests::ground;
use tests::running::Running;
use tests::shell::python;
use tests::world::Up;

/// How long, unless `STRESS_SECONDS` says otherwise.
const SECONDS: usize = 4;

/// `stress.py` knows how each reads.
const WAYS: [&str; 7] = ["read", "pread", "readv", "mmap", "splice", "sendfile", "aio"];

/// What a mount is started with that makes other nodes of it.
fn mounts(options: &[&str]) {
    let seconds = ground::number("STRESS_SECONDS", SECONDS).to_string();
    let up = Up::with(options);
    let second = up.second();
    let start = |arguments: &[&str]| {
        Running::start(python("stress.py").args(arguments).env("TMPDIR", up.data()))
    };
    let (first, other) = (up.file("file"), second.file("file"));
    let (first, other) = (first.to_str().unwrap(), other.to_str().unwrap());
    up.bash("echo -n > file", &[]).ok();
    let mut writer = start(&["write", first, &seconds]);
    tests::patience::until("there is something to read", || {
        up.bash("stat -c %s file", &[]).text() != "0"
    });
    let mut readers = Vec::new();
    for way in WAYS {
        for mode in ["ro", "rw"] {
            for path in [first, other] {
                readers.push((way, mode, path, start(&[way, mode, path, &seconds])));
            }
        }
    }
    let limit = Duration::from_secs(60 + seconds.parse::<u64>().unwrap());
    assert!(writer.wait(limit).success(), "{}", writer.stderr());
    for (way, mode, path, mut reader) in readers {
        let status = reader.wait(limit);
        assert!(status.success(), "{way} {mode} {path}: {status} {}", reader.stderr());
        let reads = String::from_utf8(reader.stdout()).unwrap();
        assert!(reads.trim().parse::<u64>().unwrap() > 0, "{way} {mode} {path} read nothing");
    }
}

#[test]
fn no_way_of_reading_meets_a_wrong_byte() {
    mounts(&[]);
}

#[test]
fn no_way_of_reading_meets_a_wrong_byte_without_passthrough() {
    mounts(&["--no-passthrough"]);
}
