//! Commands on a data directory by somebody who lacks a permission for it: each names the path, the
//! permission and the remedy, and who may only read looks at it all the same.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tests::patience::LIMIT;
use tests::shell::{self, Ran};
use tests::world::Up;
use tests::{daemon, ground};

/// The user and the group that own nothing.
const NOBODY: u32 = 65_534;

/// A data directory of root, at rest.
struct Rest {
    folder: TempDir,
}

impl Rest {
    fn make() -> Rest {
        let folder = ground::folder("denied-");
        let mut up = Up::planned(&folder.path().join("data"), &[]);
        up.again();
        up.bash("seq 5000 >> log; sync log", &[]).ok();
        assert!(up.daemon().stop().success());
        let rest = Rest { folder };
        rest.bash("chmod 755 .; mkdir open; chmod 777 open");
        rest
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn bash(&self, line: &str) -> String {
        shell::bash(self.folder.path(), line, &[]).ok().text()
    }

    /// What every name of the directory is, and when it was changed.
    fn state(&self) -> String {
        self.bash("find data -printf '%p %y %m %s %T@ %C@\\n' | sort")
    }
}

fn as_nobody(arguments: &[&str]) -> Ran {
    shell::run(daemon::courant(arguments).uid(NOBODY).gid(NOBODY), LIMIT)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn what_lacks_is_named_with_its_path_and_a_remedy() {
    let rest = Rest::make();
    let (data, inside, shut) = (rest.at("data"), rest.at("data/lock"), rest.at("shut"));
    let (copy, far) = (rest.at("open/copy"), rest.at("copy"));
    let (data, copy, far) = (text(&data), text(&copy), text(&far));
    // Case: what is changed before, the command, the path that is named, and the permission
    let cases: [(&str, &[&str], &str, &str); 10] = [
        ("chmod 700 data", &["inspect", data], data, "to enter it"),
        ("", &["repair", data], data, "to enter it"),
        ("", &["repair", "--dry-run", data], data, "to enter it"),
        ("", &["backup", data, copy], data, "to enter it"),
        ("chmod -R a+rX data", &["repair", data], text(&inside), "to write it"),
        ("", &["backup", data, far], text(rest.folder.path()), "to write it"),
        ("", &["serve", "--data", data, "--listen", "127.0.0.1:0"], data, "to write it"),
        ("chmod 600 data/checkpoint", &["inspect", data], "data/checkpoint", "to read it"),
        ("", &["backup", data, copy], "data/checkpoint", "to read it"),
        (
            "chmod 644 data/checkpoint; mkdir -m 700 shut; mv data shut",
            &["inspect", "shut/data"],
            text(&shut),
            "to enter it",
        ),
    ];
    for (line, arguments, path, permission) in cases {
        rest.bash(line);
        let mut command = daemon::courant(arguments);
        let command = command.uid(NOBODY).gid(NOBODY).current_dir(rest.folder.path());
        let refusal = shell::run(command, LIMIT).refusal(1);
        for word in [path, permission, "run this as", "root"] {
            assert!(refusal.contains(word), "{arguments:?}: nothing of {word} in: {refusal}");
        }
        assert!(!refusal.contains("partial"), "{arguments:?}: {refusal}");
        assert_eq!(rest.bash("ls -A open; ls -A | grep -c copy || true"), "0", "{arguments:?}");
    }
}

#[test]
fn who_may_read_a_directory_may_look_at_it_and_copy_it() {
    let rest = Rest::make();
    rest.bash("chmod -R a+rX data");
    let (data, copy) = (rest.at("data"), rest.at("open/copy"));
    // Case: with the file that is locked, and without it
    for line in ["true", "rm data/lock"] {
        rest.bash(line);
        let before = rest.state();
        let shown = as_nobody(&["inspect", text(&data)]).ok().text();
        assert!(shown.contains("local/log"), "{line}: {shown}");
        let would = as_nobody(&["repair", "--dry-run", text(&data)]).ok().text();
        assert!(would.contains("nothing had to be repaired"), "{line}: {would}");
        as_nobody(&["backup", text(&data), text(&copy)]).ok();
        as_nobody(&["inspect", text(&copy)]).ok();
        assert_eq!(rest.state(), before, "{line}: something was changed");
        rest.bash("rm -r open/copy");
    }
}

#[test]
fn a_look_is_refused_while_a_broker_runs() {
    let up = Up::start();
    for command in ["inspect", "repair"] {
        let refusal = daemon::refused(&[command, text(up.data())]);
        assert!(refusal.contains("in use"), "{command}: {refusal}");
    }
}
