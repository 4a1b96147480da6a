//! A machine whose power can be cut: a broker on a disk that forgets what was not synced
//! (`mount/examples/forgetful.rs`), and a mount elsewhere, which goes on.

use std::io::Write;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Stdio};
use tests::daemon::{self, Daemon};
use tests::ground;
use tests::mountdir::MountDir;
use tests::running::Running;
use tests::shell::{self, Ran};

/// Runs a program in the boot that a file tells.
const IN_BOOT: &str = "mount --bind \"$1\" /proc/sys/kernel/random/boot_id && shift && exec \"$@\"";

pub struct Machine {
    // In the order in which they are to end.
    mounted: Option<Daemon>,
    broker: Option<Running>,
    commands: ChildStdin,
    disk: Running,
    cuts: usize,
    port: u16,
    elsewhere: MountDir,
    ground: MountDir,
}

impl Machine {
    pub fn start() -> Machine {
        let ground = MountDir::new();
        let mut command = Command::new(ground::example("forgetful"));
        let mut disk = Running::start(command.arg(ground.path()).stdin(Stdio::piped()));
        let commands = disk.stdin().expect("it is piped");
        disk.until_prints("ready:");
        let mut machine = Machine {
            mounted: None,
            broker: None,
            commands,
            disk,
            cuts: 0,
            port: ground::free_port(),
            elsewhere: MountDir::new(),
            ground,
        };
        machine.boot();
        let path = machine.elsewhere.path().to_str().expect("it is ours");
        let arguments = ["mount", "--broker", &machine.url(), "--prefix", "local/", path];
        machine.mounted = Some(Daemon::start(&arguments));
        machine
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// A file of the mount elsewhere.
    pub fn file(&self, name: &str) -> PathBuf {
        self.elsewhere.path().join(name)
    }

    /// Starts the broker on what its disk has.
    pub fn boot(&mut self) {
        let root = self.ground.path();
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash", "-c", IN_BOOT, "boot"]).arg(root.join(".boot"));
        command.arg(daemon::binary()).arg("serve").arg("--data").arg(root.join("data"));
        command.args(["--listen", &self.address(), "--min-free", "0"]);
        // Whatever is stored is freed soon.
        command.args(["--local-budget", "16M"]).stdin(Stdio::null());
        let mut broker = Running::start(&mut command);
        broker.until_prints("ready:");
        self.broker = Some(broker);
    }

    /// Ends the broker at once, and what its disk had not synced is gone, but for what the seed
    /// chooses.
    pub fn cut(&mut self, seed: usize) {
        let mut broker = self.broker.take().expect("it runs");
        assert!(broker.kill(), "the broker survives SIGKILL");
        self.cuts += 1;
        writeln!(self.commands, "cut {seed}").expect("it listens");
        let cuts = self.cuts;
        let done = || {
            let said = String::from_utf8_lossy(&self.disk.stdout()).into_owned();
            said.lines().filter(|line| *line == "cut").count() == cuts
        };
        tests::patience::until("the power is cut", done);
    }

    /// Runs a command of `courant` on the broker.
    pub fn ask(&self, arguments: &[&str]) -> Ran {
        let mut all: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        all.extend(["--broker.address".into(), self.url()]);
        daemon::run(&all)
    }

    /// Below which offset all is durable, as the mount tells it.
    pub fn synced(&self, name: &str) -> u64 {
        let line = "getfattr --only-values -n user.courant.synced \"$1\"";
        let ran = shell::bash(self.elsewhere.path(), line, &[name]).ok();
        ran.text().parse().expect("an offset")
    }

    /// What the broker has logged in this boot.
    pub fn log(&self) -> String {
        self.broker.as_ref().map(Running::stderr).unwrap_or_default()
    }
}
