//! The processes that Courant is set against: they do what nobody can do less of.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use tests::ground;
use tests::mountdir::MountDir;
use tests::running::Running;

/// A FUSE file that drops what is written to it (`mount/examples/null.rs`).
pub struct NullFile {
    // Before the mount, so that it ends before the mount is taken away.
    _server: Running,
    mount: MountDir,
}

impl NullFile {
    pub fn start() -> NullFile {
        let mount = MountDir::new();
        let server = start("null", Some(mount.path().as_os_str()));
        NullFile { _server: server, mount }
    }

    pub fn path(&self) -> PathBuf {
        self.mount.path().join("sink")
    }

    /// A file beside it whose bytes are in its server's memory, all of them zeros.
    pub fn source(&self) -> PathBuf {
        self.mount.path().join("source")
    }
}

/// A broker that drops appends (`broker/examples/null_rpc.rs`).
pub struct NullBroker {
    server: Running,
}

impl NullBroker {
    pub fn start() -> NullBroker {
        NullBroker { server: start("null_rpc", None) }
    }

    pub fn url(&self) -> String {
        let printed = String::from_utf8(self.server.stdout()).unwrap();
        let url = printed.lines().find_map(|line| line.strip_prefix("ready: "));
        url.expect("it was waited for").to_owned()
    }
}

fn start(example: &str, argument: Option<&OsStr>) -> Running {
    let mut command = Command::new(ground::example(example));
    // It lives until its input ends, at the latest with us.
    let mut server = Running::start(command.args(argument).stdin(Stdio::piped()));
    server.until_prints("ready:");
    server
}
