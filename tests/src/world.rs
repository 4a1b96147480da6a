//! `courant up` with its data and its mount, and further mounts of the same broker: nearly every
//! fault hides behind the locks of one mount's kernel, so tests look through two.

use crate::daemon::{self, Daemon};
use crate::ground;
use crate::mountdir::MountDir;
use crate::shell::{self, Ran};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// What `up` puts before the names of files to make names of journals.
const PREFIX: &str = "local/";

/// A broker with an embedded mount. It can be ended and started again on the same data.
#[derive(Debug)]
pub struct Up {
    // Before the mount, so that it ends before the mount is taken away.
    daemon: Option<Daemon>,
    mount: MountDir,
    data: PathBuf,
    port: u16,
    options: Vec<OsString>,
    /// Where the data are, unless they are elsewhere.
    ground: Option<TempDir>,
}

impl Up {
    #[track_caller]
    pub fn start() -> Up {
        Up::with(&[])
    }

    /// With further options of the command line.
    #[track_caller]
    pub fn with(options: &[&str]) -> Up {
        let ground = ground::folder("up-");
        let mut up = Up::planned(&ground.path().join("data"), options);
        up.ground = Some(ground);
        up.again();
        up
    }

    /// One that is not started yet, with its data in a given directory.
    pub fn planned(data: &Path, options: &[&str]) -> Up {
        Up {
            daemon: None,
            mount: MountDir::new(),
            data: data.into(),
            port: ground::free_port(),
            options: options.iter().map(OsString::from).collect(),
            ground: None,
        }
    }

    /// Runs the same command again. Whatever still runs is ended by kill -9 first.
    #[track_caller]
    pub fn again(&mut self) {
        self.daemon = None;
        self.daemon = Some(Daemon::start(&self.command()));
    }

    /// Runs the command with further options, on the same data.
    #[track_caller]
    pub fn with_further(&mut self, options: &[&str]) {
        self.options.extend(options.iter().map(OsString::from));
        self.again();
    }

    /// Runs the same command, which must fail with exit code 1; its complaint.
    #[track_caller]
    pub fn refused(&self) -> String {
        daemon::refused(&self.command())
    }

    /// The arguments of `courant` that start it.
    pub fn command(&self) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec!["up".into()];
        command.extend(["--data".into(), self.data.clone().into()]);
        command.extend(["--mount".into(), self.mount.path().into()]);
        command.extend(["--listen".into(), self.address().into()]);
        command.extend(["--prefix".into(), PREFIX.into()]);
        command.extend(self.options.iter().cloned());
        command
    }

    #[track_caller]
    pub fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().expect("`again` puts a daemon back")
    }

    pub fn data(&self) -> &Path {
        &self.data
    }

    pub fn mount(&self) -> &MountDir {
        &self.mount
    }

    /// Where a journal's file is.
    pub fn file(&self, name: &str) -> PathBuf {
        self.mount.path().join(name)
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    /// Where HTTP finds the journal of a file.
    pub fn journal_url(&self, name: &str) -> String {
        format!("{}/{PREFIX}{name}", self.url())
    }

    /// A line of bash with the mount as its directory.
    #[track_caller]
    pub fn bash(&self, line: &str, arguments: &[&str]) -> Ran {
        shell::bash(self.mount.path(), line, arguments)
    }

    /// Another mount of this broker.
    #[track_caller]
    pub fn second(&self) -> Second {
        self.second_with(&[])
    }

    /// Another mount of this broker, with further options of the command line.
    #[track_caller]
    pub fn second_with(&self, options: &[&str]) -> Second {
        self.second_by(&self.url(), options)
    }

    /// The same, which finds the broker at another URL.
    #[track_caller]
    pub fn second_by(&self, url: &str, options: &[&str]) -> Second {
        let mut second = Second {
            daemon: None,
            mount: MountDir::new(),
            broker: url.to_owned(),
            cache: ground::folder("cache-"),
            options: options.iter().map(OsString::from).collect(),
        };
        second.again();
        second
    }
}

/// `courant mount` of a broker.
#[derive(Debug)]
pub struct Second {
    daemon: Option<Daemon>,
    mount: MountDir,
    broker: String,
    cache: TempDir,
    options: Vec<OsString>,
}

impl Second {
    /// Runs the same command again. Whatever still runs is ended by kill -9 first.
    #[track_caller]
    pub fn again(&mut self) {
        self.daemon = None;
        self.daemon = Some(Daemon::start(&self.command(self.mount.path())));
    }

    /// The arguments of `courant` that start it on a directory.
    pub fn command(&self, directory: &Path) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec!["mount".into()];
        command.extend(["--broker".into(), self.broker.clone().into()]);
        command.extend(["--prefix".into(), PREFIX.into()]);
        if !self.options.iter().any(|option| option == "--cache") {
            command.extend(["--cache".into(), self.cache.path().into()]);
        }
        command.extend(self.options.iter().cloned());
        command.push(directory.into());
        command
    }

    /// The directory of its cache, unless its options name another.
    pub fn cache(&self) -> &Path {
        self.cache.path()
    }

    #[track_caller]
    pub fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().expect("`again` puts a daemon back")
    }

    pub fn mount(&self) -> &MountDir {
        &self.mount
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.mount.path().join(name)
    }
}

/// Runs `courant journals` with these arguments on a broker, to its end.
#[track_caller]
pub fn journals(up: &Up, arguments: &[&str]) -> Ran {
    let mut command = vec!["journals".to_string()];
    command.extend(arguments.iter().map(ToString::to_string));
    command.extend(["--broker.address".into(), up.url()]);
    daemon::run(&command)
}

/// The spec of a file's journal in YAML: an append that takes a fragment to `length` closes it.
/// `more` are further fields, such as `, max_append_rate: 1000`.
pub fn spec(name: &str, length: usize, codec: &str, more: &str) -> String {
    let fragment = format!(
        "{{length: {length}, compression_codec: {codec}, stores: ['file:///'], \
         refresh_interval: 1s}}"
    );
    format!("- {{name: {PREFIX}{name}, replication: 1, fragment: {fragment}{more}}}\n")
}

/// Applies such a spec.
#[track_caller]
pub fn apply(up: &Up, name: &str, length: usize, codec: &str) {
    apply_specs(up, &spec(name, length, codec, ""));
}

/// Applies specs in YAML.
#[track_caller]
pub fn apply_specs(up: &Up, specs: &str) {
    let path = up.data().with_file_name("specs.yaml");
    std::fs::write(&path, specs).expect("the folder takes files");
    let path = path.to_str().expect("it is ours");
    // Thousands are more than one transaction takes.
    journals(up, &["apply", "--max-txn-size", "100", "--specs", path]).ok();
}

/// An attribute `user.courant.KEY` of a file.
#[track_caller]
pub fn attribute(up: &Up, name: &str, key: &str) -> String {
    up.bash("getfattr --only-values -n user.courant.$1 \"$2\"", &[key, name]).ok().text()
}
