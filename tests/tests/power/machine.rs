//! A machine whose power can be cut: a broker on a disk that forgets what was not synced, and a
//! mount elsewhere, which goes on.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tempfile::TempDir;
use tests::daemon::{self, Daemon};
use tests::filesystem::Ext4;
use tests::ground;
use tests::mountdir::MountDir;
use tests::running::Running;
use tests::shell::{self, Ran};

/// Runs a program in the boot that a file tells.
const IN_BOOT: &str = "mount --bind \"$1\" /proc/sys/kernel/random/boot_id && shift && exec \"$@\"";

/// A disk, and the file that tells which boot this is.
pub trait Ground {
    fn root(&self) -> &Path;

    fn boot(&self) -> PathBuf;

    /// Ends it while the broker runs, where that can be.
    fn fail(&mut self) {}

    /// What was not synced is gone, but for what the seed chooses. The broker has ended.
    fn cut(&mut self, seed: usize);
}

/// `tests/examples/forgetful.rs`: of what was not synced the seed chooses any sectors.
pub struct Forgetful {
    commands: ChildStdin,
    server: Running,
    cuts: usize,
    mount: MountDir,
}

impl Forgetful {
    pub fn new() -> Forgetful {
        let mount = MountDir::new();
        let mut command = Command::new(ground::example("forgetful"));
        let mut server = Running::start(command.arg(mount.path()).stdin(Stdio::piped()));
        let commands = server.stdin().expect("it is piped");
        server.until_prints("ready:");
        Forgetful { commands, server, cuts: 0, mount }
    }
}

impl Ground for Forgetful {
    fn root(&self) -> &Path {
        self.mount.path()
    }

    fn boot(&self) -> PathBuf {
        self.mount.path().join(".boot")
    }

    fn cut(&mut self, seed: usize) {
        self.cuts += 1;
        writeln!(self.commands, "cut {seed}").expect("it listens");
        let cuts = self.cuts;
        let done = || {
            let said = String::from_utf8_lossy(&self.server.stdout()).into_owned();
            said.lines().filter(|line| *line == "cut").count() == cuts
        };
        tests::patience::until("the power is cut", done);
    }
}

/// An ext4: what was not synced is there as far as the kernel wrote it by itself.
pub struct Real {
    disk: Ext4,
    boot: TempDir,
    /// A loop device tells the next one who syncs it of writes that its last file system lost.
    _only: MutexGuard<'static, ()>,
}

static ONLY: Mutex<()> = Mutex::new(());

impl Real {
    pub fn new() -> Real {
        let only = ONLY.lock().unwrap_or_else(PoisonError::into_inner);
        let real = Real { disk: Ext4::new("512M"), boot: ground::folder("boot-"), _only: only };
        real.tell_boot(0);
        real
    }

    fn tell_boot(&self, number: usize) {
        std::fs::write(self.boot(), format!("boot-{number}\n")).expect("the folder is ours");
    }
}

impl Ground for Real {
    fn root(&self) -> &Path {
        self.disk.path()
    }

    fn boot(&self) -> PathBuf {
        self.boot.path().join("id")
    }

    fn fail(&mut self) {
        self.disk.cut();
    }

    /// The machine, or its file system alone, which is mounted anew in the same boot.
    fn cut(&mut self, seed: usize) {
        self.disk.again();
        if seed.is_multiple_of(2) {
            self.tell_boot(seed + 1);
        }
    }
}

/// An ext4 that an error makes read-only while the broker runs.
pub struct ReadOnly {
    real: Real,
    is_read_only: bool,
}

impl ReadOnly {
    pub fn new() -> ReadOnly {
        ReadOnly { real: Real::new(), is_read_only: false }
    }
}

impl Ground for ReadOnly {
    fn root(&self) -> &Path {
        self.real.root()
    }

    fn boot(&self) -> PathBuf {
        self.real.boot()
    }

    fn fail(&mut self) {
        if !std::mem::replace(&mut self.is_read_only, true) {
            self.real.disk.make_read_only();
        }
    }

    fn cut(&mut self, _seed: usize) {
        self.real.disk.again();
        self.is_read_only = false;
    }
}

pub struct Machine<G> {
    // In the order in which they are to end.
    mounted: Option<Daemon>,
    broker: Option<Running>,
    ground: G,
    port: u16,
    elsewhere: MountDir,
}

impl<G: Ground> Machine<G> {
    pub fn start(ground: G) -> Machine<G> {
        let mut machine = Machine {
            mounted: None,
            broker: None,
            ground,
            port: ground::free_port(),
            elsewhere: MountDir::new(),
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
        let root = self.ground.root();
        let mut command = Command::new("unshare");
        command.args(["--mount", "bash", "-c", IN_BOOT, "boot"]).arg(self.ground.boot());
        command.arg(daemon::binary()).arg("serve").arg("--data").arg(root.join("data"));
        command.args(["--listen", &self.address(), "--min-free", "0"]);
        // Whatever is stored is freed soon.
        command.args(["--local-budget", "16M"]).stdin(Stdio::null());
        let mut broker = Running::start(&mut command);
        broker.until_prints("ready:");
        self.broker = Some(broker);
    }

    /// Every operation of the disk fails from here on.
    pub fn fail(&mut self) {
        self.ground.fail();
    }

    /// Ends the broker at once, and what its disk had not synced is gone, but for what the seed
    /// chooses.
    pub fn cut(&mut self, seed: usize) {
        // It runs on for a moment with a disk that is gone.
        self.ground.fail();
        let mut broker = self.broker.take().expect("it runs");
        assert!(broker.kill(), "the broker survives SIGKILL");
        self.ground.cut(seed);
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
