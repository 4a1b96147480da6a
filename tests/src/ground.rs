//! Where tests live: temporary folders on a real disk, free ports, and the helper programs.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A folder that goes with its owner. It is below the target folder and not in /tmp, which may be
/// memory: a mirror needs holes, and a sync should mean something.
pub fn folder(name: &str) -> TempDir {
    let above = target().join("test-ground");
    std::fs::create_dir_all(&above).expect("the target folder takes files");
    tempfile::Builder::new().prefix(name).tempdir_in(above).expect("the target folder has room")
}

/// A port that nobody listens on. Somebody else may take it before its use, which is rare: the
/// kernel gives each port in turn.
pub fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("the loopback interface is up");
    listener.local_addr().expect("a bound listener has an address").port()
}

/// A program of `tests/programs`.
pub fn program(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name)
}

/// A number from the environment, such as the rounds of a long test.
pub fn number(variable: &str, otherwise: usize) -> usize {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is no number")),
        Err(_) => otherwise,
    }
}

/// An example of another crate, such as `mount/examples/null.rs`, in the profile of who asks.
pub fn example(name: &str) -> PathBuf {
    let example = profile().join("examples").join(name);
    assert!(
        example.exists(),
        "{} is not built: cargo test --workspace builds it, scripts/bench for a bench, and else \
         cargo build --example {name} -p with its crate",
        example.display()
    );
    example
}

/// The folder of the profile whose tests run: it holds the binaries and, in `deps`, the tests.
pub(crate) fn profile() -> PathBuf {
    let test = std::env::current_exe().expect("/proc tells the path of this process");
    test.ancestors().nth(2).expect("tests are in target/PROFILE/deps").to_path_buf()
}

fn target() -> PathBuf {
    profile().parent().expect("tests are in target/PROFILE/deps").to_path_buf()
}
