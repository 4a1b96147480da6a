//! How much memory a daemon takes while much passes through it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;
use tests::shell;
use tests::world::Up;

/// The most that `up` may have resident, whatever passes through it.
const RESIDENT_MAX: u64 = 150 << 20;

/// For a gigabyte, on a slow disk.
const LONG: Duration = Duration::from_secs(300);

#[track_caller]
fn bash(line: &str, file: &Path) -> shell::Ran {
    let mut command = Command::new("bash");
    command.args(["-c", line, "bash"]).arg(file);
    shell::run(&mut command, LONG).ok()
}

#[test]
fn a_gigabyte_passes_through_in_bounded_memory() {
    let mut up = Up::start();
    let file = up.file("large");
    // Bytes that do not compress.
    let append = "set -o pipefail; head -c 1000000000 /dev/urandom | tee -a \"$1\" | sha256sum";
    let written = bash(append, &file).text();
    let size = bash("stat -c %s \"$1\"", &file).text();
    assert_eq!(size, "1000000000");
    let second = up.second();
    for file in [&file, &second.file("large")] {
        assert_eq!(bash("sha256sum < \"$1\"", file).text(), written, "{}", file.display());
    }
    let url = up.journal_url("large");
    let read = format!("curl -sS '{url}?offset=0' | sha256sum");
    assert_eq!(bash(&read, &file).text(), written);
    let resident = up.daemon().resident_max();
    assert!(resident < RESIDENT_MAX, "{} MiB were resident", resident >> 20);
    assert!(up.daemon().stop().success());
}
