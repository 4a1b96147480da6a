//! Directories that are somebody else's, and such that are journals: no data directory is made
//! there, and nothing else either.

use std::path::Path;
use tests::world::Up;
use tests::{daemon, ground, shell};

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_directory_of_somebody_else_is_left_alone() {
    let (folder, mounts) = (ground::folder("foreign-"), ground::folder("mounts-"));
    let mount = mounts.path().join("m");
    let bash = |line: &str| shell::bash(folder.path(), line, &[]).ok().text();
    bash(
        "mkdir home log-files; echo mine > home/notes.txt; mkdir log-files/log; touch log-files/a",
    );
    bash("mkdir other; echo a format of its own > other/format; echo > other/b");
    let before = bash("find . | sort");
    // Case: the directory, and what is said
    let cases = [
        ("home", "holds notes.txt"),
        ("log-files", "holds a:"),
        (".", "holds home"),
        ("other", "holds b"),
    ];
    for (data, said) in cases {
        let up = ["up", "--data", data, "--mount", text(&mount), "--listen", "127.0.0.1:0"];
        let serve = ["serve", "--data", data, "--listen", "127.0.0.1:0"];
        for arguments in [&up[..], &serve] {
            let mut command = daemon::courant(arguments);
            let refused = shell::run(command.current_dir(folder.path()), tests::patience::LIMIT);
            let refusal = refused.refusal(1);
            assert!(refusal.contains(said), "{arguments:?}: {refusal}");
        }
        assert_eq!(bash("find . | sort"), before, "{data}");
    }
}

#[test]
fn what_is_no_data_directory_is_neither_shown_nor_repaired_nor_copied() {
    let folder = ground::folder("foreign-");
    let bash = |line: &str| shell::bash(folder.path(), line, &[]).ok().text();
    bash("mkdir empty other; echo a format of its own > other/format");
    let before = bash("find . | sort");
    for data in ["empty", "other", "other/format"] {
        let data = folder.path().join(data);
        let copy = folder.path().join("copy");
        for arguments in [
            &["inspect", text(&data)][..],
            &["repair", text(&data)],
            &["repair", "--dry-run", text(&data)],
            &["backup", text(&data), text(&copy)],
        ] {
            let refusal = daemon::refused(arguments);
            assert!(refusal.contains("no data directory"), "{arguments:?}: {refusal}");
        }
    }
    assert_eq!(bash("find . | sort"), before);
}

#[test]
fn a_mount_takes_no_data_directory() {
    let up = Up::start();
    up.bash("echo one > log", &[]).ok();
    let inside = up.file("data");
    let refusal = daemon::refused(&["serve", "--data", text(&inside), "--listen", "127.0.0.1:0"]);
    assert!(refusal.contains("lies in the mount"), "{refusal}");
    assert_eq!(up.bash("ls", &[]).ok().text(), "log");
}
