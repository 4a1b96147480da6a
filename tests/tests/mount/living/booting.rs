//! mount(8) and /etc/fstab: the helper `mount.courant`.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard};
use tests::patience::{LIMIT, until};
use tests::shell::{self, Ran};
use tests::world::Up;
use tests::{daemon, ground, mountdir::MountDir};

/// Where mount(8) looks for its helpers, and nowhere else.
const INSTALLED: &str = "/sbin/mount.courant";

/// One test at a time has the helper in its place.
static PLACE: Mutex<()> = Mutex::new(());

/// The helper in its place, for as long as this lives.
struct Installed<'a> {
    _place: MutexGuard<'a, ()>,
}

impl Installed<'_> {
    fn new() -> Self {
        let place = PLACE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let made = symlink(daemon::binary(), INSTALLED);
        made.unwrap_or_else(|error| panic!("{INSTALLED} is somebody else's, or no root: {error}"));
        Installed { _place: place }
    }
}

impl Drop for Installed<'_> {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(INSTALLED);
    }
}

/// The helper under its name, in a folder of its own.
fn helper(folder: &Path) -> PathBuf {
    let helper = folder.join("mount.courant");
    symlink(daemon::binary(), &helper).unwrap();
    helper
}

/// What /proc/mounts shows of a mount: its source and type.
fn shown(mount: &MountDir) -> Option<(String, String)> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap();
    let path = mount.path().to_str().unwrap();
    let mut fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let found = fields.find(|fields| fields[1] == path)?;
    Some((found[0].to_owned(), found[2].to_owned()))
}

/// Runs the helper as mount(8) does, on a directory that is there.
fn run(helper: &Path, source: &str, mount: &MountDir, options: &[&str]) -> Ran {
    std::fs::create_dir_all(mount.path()).unwrap();
    let mut command = Command::new(helper);
    command.arg(source).arg(mount.path()).args(options);
    shell::run(&mut command, LIMIT)
}

#[test]
fn the_helper_mounts_in_the_background_and_umount_ends_it() {
    let up = Up::start();
    up.bash("echo one >> log", &[]).ok();
    let folder = ground::folder("helper-");
    let helper = helper(folder.path());
    let log = folder.path().join("log");
    let mount = MountDir::new();
    let options = format!("ro,noauto,_netdev,x-systemd.automount,umask=027,log={}", log.display());
    // It ends with its output closed, or this would wait.
    run(&helper, &up.url(), &mount, &["-n", "-o", &options]).ok();
    assert_eq!(shown(&mount), Some((up.url(), "fuse.courant".to_owned())));
    let read = shell::bash(mount.path(), "cat log; stat -c %a log; echo x >> log", &[]);
    assert_eq!(read.text(), "one\n440");
    assert!(read.stderr.contains("Read-only"), "{}", read.stderr);

    shell::run(Command::new("umount").arg(mount.path()), LIMIT).ok();
    until("the daemon ends", || {
        std::fs::read_to_string(&log).is_ok_and(|log| log.contains("ending"))
    });
    assert_eq!(shown(&mount), None);
    // Case: mounted again, and ended by our own command.
    run(&helper, &up.url(), &mount, &["-o", &options]).ok();
    assert_eq!(shell::bash(mount.path(), "cat log", &[]).ok().text(), "one");
    daemon::run(&["umount".as_ref(), mount.path().as_os_str()]).ok();
    assert_eq!(shown(&mount), None);
}

#[test]
fn what_can_not_be_mounted_is_told_and_leaves_nothing() {
    let folder = ground::folder("helper-");
    let helper = helper(folder.path());
    let nowhere = format!("http://127.0.0.1:{}", ground::free_port());
    let mount = MountDir::new();
    // Case: the source, the options, the exit code as mount(8) knows it, a word of the complaint
    let cases: [(&str, &[&str], i32, &str); 6] = [
        (&nowhere, &["-o", "ro,no_such_option"], 1, "no_such_option"),
        (&nowhere, &["-o", "uid"], 1, "uid"),
        ("host:/logs", &[], 1, "host:/logs"),
        (&nowhere, &["-o", "umask=999"], 32, "umask"),
        (&nowhere, &["-o", "log=stderr"], 32, "127.0.0.1"),
        ("file:///no/such/store/", &["-o", "file_root=/no/such/root"], 32, "/no/such/root"),
    ];
    for (source, options, code, word) in cases {
        let ran = run(&helper, source, &mount, options);
        assert_eq!(ran.code, Some(code), "{source} {options:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(word), "nothing of {word} in: {}", ran.stderr);
        assert_eq!(shown(&mount), None);
    }
    // Case: what is only to be tried is not mounted, and is understood.
    assert_eq!(run(&helper, &nowhere, &mount, &["-f", "-o", "ro"]).code, Some(0));
    assert_eq!(run(&helper, &nowhere, &mount, &["-sf", "-o", "no_such_option"]).code, Some(0));
    assert_eq!(shown(&mount), None);
}

#[test]
fn a_line_of_fstab_is_mounted_once() {
    let _installed = Installed::new();
    let up = Up::start();
    up.bash("echo one >> log", &[]).ok();
    let mount = MountDir::new();
    std::fs::create_dir_all(mount.path()).unwrap();
    let folder = ground::folder("fstab-");
    let fstab = folder.path().join("fstab");
    let line = format!(
        "{} {} courant rw,prefix=local/,_netdev,nofail,log={}/log 0 0\n",
        up.url(),
        mount.path().display(),
        folder.path().display()
    );
    std::fs::write(&fstab, line).unwrap();
    for _ in 0..2 {
        let mut command = Command::new("mount");
        command.args(["-a", "-T"]).arg(&fstab);
        shell::run(&mut command, LIMIT).ok();
        assert_eq!(mount.mounts().len(), 1, "what is mounted is not mounted again");
    }
    shell::bash(mount.path(), "echo two >> log", &[]).ok();
    assert_eq!(up.bash("cat log", &[]).ok().text(), "one\ntwo");
    shell::run(Command::new("umount").arg(mount.path()), LIMIT).ok();
    assert_eq!(shown(&mount), None);

    // Case: by hand, with the type and the source alone.
    let mut command = Command::new("mount");
    command.args(["-t", "courant", &up.url()]).arg(mount.path());
    shell::run(&mut command, LIMIT).ok();
    assert_eq!(shell::bash(mount.path(), "cat log", &[]).ok().text(), "one\ntwo");
    shell::run(Command::new("umount").arg(mount.path()), LIMIT).ok();
}

#[test]
fn a_secret_is_not_shown_in_the_table_of_mounts() {
    let up = Up::start();
    assert_eq!(shown(up.mount()), Some((up.url(), "fuse.courant".to_owned())));
}
