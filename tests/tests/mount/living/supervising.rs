//! systemd: readiness, the watchdog, and the units.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;
use tests::patience::{LIMIT, until};
use tests::running::Running;
use tests::{daemon, ground, mountdir::MountDir, shell};

/// A supervisor that keeps what it is told.
struct Supervisor {
    socket: UnixDatagram,
    told: Vec<String>,
}

impl Supervisor {
    fn at(path: &Path) -> Supervisor {
        let socket = UnixDatagram::bind(path).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        Supervisor { socket, told: Vec::new() }
    }

    /// How many messages it was told that hold this line.
    fn heard(&mut self, line: &str) -> usize {
        let mut buffer = [0; 512];
        while let Ok(length) = self.socket.recv(&mut buffer) {
            self.told.push(String::from_utf8_lossy(&buffer[..length]).into_owned());
        }
        self.told.iter().filter(|message| message.lines().any(|it| it == line)).count()
    }
}

#[test]
fn a_supervisor_is_told_of_readiness_life_and_the_end() {
    let folder = ground::folder("supervised-");
    let data = folder.path().join("data");
    let mount = MountDir::new();
    let second = MountDir::new();
    let port = ground::free_port();
    let url = format!("http://127.0.0.1:{port}");
    let listen = format!("127.0.0.1:{port}");
    let (data, mount, second) =
        (data.to_str().unwrap(), mount.path().to_str().unwrap(), second.path().to_str().unwrap());
    let up = ["up", "--data", data, "--mount", mount, "--listen", &listen];
    let other = ["mount", "--broker", &url, second];
    let mut running = Vec::new();
    for (name, command) in [("up", &up[..]), ("mount", &other[..])] {
        let path = folder.path().join(name);
        let mut supervisor = Supervisor::at(&path);
        let mut command = daemon::courant(command);
        command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "400000").stdin(Stdio::null());
        let mut daemon = Running::start(&mut command);
        until("it says that it is ready", || supervisor.heard("READY=1") == 1);
        until("it gives signs of life", || supervisor.heard("WATCHDOG=1") > 2);
        assert_eq!(supervisor.heard("STOPPING=1"), 0, "{name}");
        daemon.until_prints("ready:");
        running.push((daemon, supervisor));
    }
    for (mut daemon, mut supervisor) in running.into_iter().rev() {
        daemon.signal(rustix::process::Signal::TERM);
        assert!(daemon.wait(LIMIT).success());
        assert_eq!(supervisor.heard("STOPPING=1"), 1);
    }
}

#[test]
fn a_daemon_that_fails_is_never_ready() {
    let folder = ground::folder("supervised-");
    let path = folder.path().join("socket");
    let mut supervisor = Supervisor::at(&path);
    let nowhere = format!("http://127.0.0.1:{}", ground::free_port());
    let mount = MountDir::new();
    let mut command = daemon::courant(&["mount", "--broker", &nowhere]);
    command.arg(mount.path()).env("NOTIFY_SOCKET", &path);
    shell::run(&mut command, LIMIT).refusal(1);
    assert_eq!(supervisor.heard("READY=1"), 0);
}

#[test]
fn systemd_understands_the_units() {
    let units = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join("packaging");
    let folder = ground::folder("units-");
    // The program is looked for, and is not installed here.
    let binary = daemon::binary();
    for (unit, name) in [
        ("courant.service", "courant.service"),
        ("courant-mount@.service", "courant-mount@srv.service"),
    ] {
        let text = std::fs::read_to_string(units.join(unit)).unwrap();
        let text = text.replace("/usr/local/bin/courant", binary.to_str().unwrap());
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        let mut command = Command::new("systemd-analyze");
        let verified = shell::run(command.arg("verify").arg("--man=no").arg(&path), LIMIT);
        assert_eq!((verified.code, verified.stderr.as_str()), (Some(0), ""), "{unit}");
    }
}
