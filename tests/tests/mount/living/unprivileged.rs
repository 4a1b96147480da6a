//! Mounting as a user that is not root, by fusermount3.
//!
//! Each test runs in a mount namespace of its own, in which everybody may open /dev/fuse, as
//! distributions have it; whatever it mounts goes with the namespace.

use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use tests::patience::LIMIT;
use tests::shell::{self, Ran};
use tests::{daemon, ground};

/// The user `nobody` of Debian and others.
const NOBODY: u32 = 65_534;

/// What comes before each test's script: `as_user COMMAND...`, `up OPTION...`, which leaves the id
/// of the daemon in `$daemon`, and `mounts`, how many there are of ours.
const PRELUDE: &str = r#"
    set -e
    mknod fuse c 10 229; chmod 666 fuse; mount --bind fuse /dev/fuse
    user="setpriv --reuid=65534 --regid=65534 --clear-groups"
    as_user() { $user "$@"; }
    up() {
        $user ./courant up --data own/data --listen "$LISTEN" "$@" > out 2> log & daemon=$!
        for _ in {1..600}; do
            if grep -q ready: out; then return; fi
            kill -0 $daemon || { cat log >&2; return 1; }
            sleep 0.05
        done
        echo "not ready" >&2; return 1
    }
    mounts() { grep -c "$PWD/own/m fuse.courant" /proc/self/mounts || true; }
"#;

/// A folder that a user may look into, with the binary and a `own` that is the user's.
fn place() -> TempDir {
    let folder = tempfile::Builder::new().prefix("courant-").tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::copy(daemon::binary(), folder.path().join("courant")).unwrap();
    for path in ["own", "own/m"] {
        let path = folder.path().join(path);
        std::fs::create_dir(&path).unwrap();
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
    }
    folder
}

fn in_namespace(folder: &Path, script: &str) -> Ran {
    let mut command = Command::new("unshare");
    command.args(["--mount", "bash", "-c", &format!("{PRELUDE}{script}")]).current_dir(folder);
    command.env("LISTEN", format!("127.0.0.1:{}", ground::free_port()));
    shell::run(&mut command, LIMIT)
}

#[test]
fn a_user_mounts_by_fusermount_and_without_passthrough() {
    let folder = place();
    let ran = in_namespace(
        folder.path(),
        r#"
        up --mount own/m
        as_user bash -c 'echo one >> own/m/log; cat own/m/log; stat -c %u own/m/log'
        as_user getfattr --only-values -n user.courant.mode own/m/log; echo
        grep "$PWD/own/m fuse" /proc/self/mounts | cut -d" " -f3,4 | cut -d, -f1-3
        # Nobody else may look.
        ls own/m 2>&1 | grep -c denied
        kill $daemon; wait $daemon; mounts
        up --mount own/m
        as_user ./courant umount own/m; wait $daemon; mounts
        "#,
    );
    let expected = "one\n65534\ndirect\nfuse.courant rw,nosuid,nodev\n1\n0\n0";
    assert_eq!(ran.clone().ok().text(), expected, "{}", ran.stderr);
}

#[test]
fn what_a_user_may_not_mount_on_is_named() {
    let folder = place();
    // Case: the script, words of the complaint
    let cases: [(&str, &[&str]); 3] = [
        ("mkdir roots; up --mount roots", &["fusermount3", "roots", "no write access"]),
        (
            "as_user env PATH=/nowhere \
             ./courant up --data own/data --listen $LISTEN --mount own/m",
            &["fusermount3", "install"],
        ),
        (
            "umount /dev/fuse; chmod 600 fuse; mount --bind fuse /dev/fuse; up --mount own/m",
            &["/dev/fuse", "give this user the right"],
        ),
    ];
    for (script, words) in cases {
        let _ = std::fs::remove_file(folder.path().join("fuse"));
        let ran = in_namespace(folder.path(), script);
        assert_ne!(ran.code, Some(0), "{script}");
        for word in words {
            assert!(ran.stderr.contains(word), "nothing of {word} in: {}", ran.stderr);
        }
    }
}
