//! `courant serve` on a directory of its own, and commands that are run on it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tests::daemon::{self, Daemon};
use tests::ground;
use tests::patience::{self, LIMIT};
use tests::running::Running;
use tests::shell::Ran;

/// A broker. It can be ended and started again on the same data and port.
pub struct Serve {
    daemon: Option<Daemon>,
    ground: TempDir,
    port: u16,
    options: Vec<String>,
}

impl Serve {
    #[track_caller]
    pub fn start() -> Serve {
        Serve::with(&[])
    }

    /// With further options of the command line.
    #[track_caller]
    pub fn with(options: &[&str]) -> Serve {
        let mut serve = Serve {
            daemon: None,
            ground: ground::folder("cli-"),
            port: ground::free_port(),
            options: options.iter().map(ToString::to_string).collect(),
        };
        serve.again();
        serve
    }

    /// Runs the same command again; whatever still runs is ended by kill -9 first.
    #[track_caller]
    pub fn again(&mut self) {
        self.daemon = None;
        let data = self.path("data").to_str().unwrap().to_owned();
        let listen = format!("127.0.0.1:{}", self.port);
        let mut command = vec!["serve".to_owned(), "--data".into(), data];
        command.extend(["--listen".into(), listen]);
        command.extend(self.options.iter().cloned());
        self.daemon = Some(Daemon::start(&command));
    }

    #[track_caller]
    pub fn daemon(&mut self) -> &mut Daemon {
        self.daemon.as_mut().unwrap()
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn folder(&self) -> &Path {
        self.ground.path()
    }

    /// A file beside the data.
    pub fn path(&self, name: &str) -> PathBuf {
        self.ground.path().join(name)
    }

    /// Writes a file beside the data; its path.
    pub fn file(&self, name: &str, content: impl AsRef<[u8]>) -> String {
        let path = self.path(name);
        std::fs::write(&path, content).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// `courant journals ARGUMENTS` on this broker, ready to be started.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = daemon::courant(&["journals", "--broker.address", &self.url()]);
        command.args(arguments);
        command
    }

    /// `courant journals ARGUMENTS`, run to its end.
    #[track_caller]
    pub fn journals(&self, arguments: &[&str]) -> Ran {
        tests::shell::run(&mut self.command(arguments), LIMIT)
    }

    /// The same with a standard input.
    #[track_caller]
    pub fn journals_of(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        let input = self.file("stdin", input);
        let mut command = self.command(arguments);
        let mut running = Running::start(command.stdin(File::open(input).unwrap()));
        let code = running.wait(LIMIT).code();
        Ran { code, stdout: running.stdout(), stderr: running.stderr() }
    }

    /// Creates journals with small fragments; `more` is further YAML of the directory `local/`.
    #[track_caller]
    pub fn create(&self, names: &[&str], more: &str) {
        let mut specs = format!("name: local/\n{SETTINGS}{more}\nchildren:\n");
        for name in names {
            specs += &format!("- name: local/{name}\n");
        }
        self.journals_of(&["apply"], specs).ok();
    }

    /// The whole content of a journal.
    #[track_caller]
    pub fn content(&self, journal: &str) -> String {
        String::from_utf8(self.journals(&["read", journal]).ok().stdout).unwrap()
    }

    /// The members of a JSON that a command prints.
    #[track_caller]
    pub fn json(&self, arguments: &[&str]) -> serde_json::Value {
        serde_json::from_slice(&self.journals(arguments).ok().stdout).unwrap()
    }

    /// Waits until so many fragments of a journal are in its store.
    #[track_caller]
    pub fn until_stored(&self, journal: &str, count: usize) {
        patience::until("fragments are stored", || {
            let answer = self.json(&["fragments", journal, "-o", "json"]);
            let fragments = answer["fragments"].as_array().unwrap();
            let is_stored = |f: &&serde_json::Value| f["spec"]["mod_time"] != "0";
            fragments.iter().filter(is_stored).count() >= count
        });
    }
}

/// What journals of these tests share.
pub const SETTINGS: &str = "\
replication: 1
fragment:
  length: 1024
  compression_codec: NONE
  stores: ['file:///']
  refresh_interval: 1s
";

/// What a complaint must say: the thing and the remedy.
#[track_caller]
pub fn assert_tells(complaint: &str, words: &[&str]) {
    for word in words {
        assert!(complaint.contains(word), "nothing of {word} in: {complaint}");
    }
}
