//! `.courant/fragments`, `.courant/specs` and registers, as programs meet them.

use client::{Append, Journals, Remote};
use protocol::LabelSet;
use std::path::Path;
use tests::patience::until;
use tests::shell::{self, Ran};
use tests::world::{self, Second, Up, journals};

/// A line of bash in a directory of the view of a mount.
#[track_caller]
fn within(root: &Path, directory: &str, line: &str) -> Ran {
    shell::bash(&root.join(".courant").join(directory), line, &[])
}

/// Bytes of a fragment of the journals that `apply` makes.
const LENGTH: usize = 2048;

#[track_caller]
fn apply(up: &Up, name: &str, codec: &str) {
    world::apply(up, name, LENGTH, codec);
}

#[test]
fn fragments_are_checked_by_sha1sum() {
    let up = Up::start();
    let second = up.second();
    for (name, codec) in [("d/gzip", "GZIP"), ("d/none", "NONE"), ("zstd", "ZSTANDARD")] {
        apply(&up, name, codec);
        let line = "for i in 1 2 3; do head -c $2 /dev/urandom >> \"$1\"; done";
        up.bash(line, &[name, &LENGTH.to_string()]).ok();
        let persisted = "getfattr --only-values -n user.courant.persisted \"$1\"";
        let stored = || up.bash(persisted, &[name]).ok().text() == (3 * LENGTH).to_string();
        until("all is stored", stored);
        for root in [up.mount().path(), second.mount().path()] {
            let listed = within(root, "fragments", &format!("ls {name}")).ok().text();
            assert_eq!(listed.lines().count(), 3, "{listed}");
            // Case: each has the bytes of its sum, and all together are the journal.
            let line = format!(
                "set -e; cd {name}; for f in *; do h=${{f##*-}}; \
                 echo \"${{h%%.*}}  $f\" | sha1sum -c --quiet; done; \
                 cat * | cmp - \"$OLDPWD/../../{name}\""
            );
            within(root, "fragments", &line).ok();
        }
    }
    assert_eq!(
        within(up.mount().path(), "fragments", "find . -type d | sort").ok().text(),
        ".\n./d\n./d/gzip\n./d/none\n./zstd"
    );
}

#[test]
fn a_damaged_fragment_is_an_error() {
    let up = Up::with(&["--local-budget", "0"]);
    apply(&up, "log", "NONE");
    let line = "head -c $1 /dev/urandom >> log; echo more >> log";
    up.bash(line, &[&LENGTH.to_string()]).ok();
    let list = || within(up.mount().path(), "fragments/log", "ls").ok().text();
    until("it is stored", || !list().is_empty());
    let listed = list();
    let object = up.data().join("store/local/log").join(&listed);
    let mut bytes = std::fs::read(&object).unwrap();
    bytes[LENGTH / 2] ^= 1;
    std::fs::write(&object, bytes).unwrap();
    // As soon as its local bytes are gone.
    let read = || within(up.mount().path(), "fragments/log", &format!("cat {listed} > /dev/null"));
    until("a read of it fails", || read().stderr.contains("Input/output error"));
}

/// Spec texts as programs bring them into their file, `$1` being the new text.
const PROGRAMS: [(&str, &str); 7] = [
    ("cp", "cp \"$1\" log.yaml"),
    ("cat", "cat \"$1\" > log.yaml"),
    ("sh", "sh -c '{ head -n 3 \"$1\"; tail -n +4 \"$1\"; } | cat > log.yaml' sh \"$1\""),
    ("dd", "dd if=\"$1\" of=log.yaml bs=16 status=none conv=fsync"),
    ("tee", "tee log.yaml < \"$1\" > /dev/null"),
    (
        "vim",
        "HOME=\"$2\" vim -u NONE -n -es -c 'set backupcopy=yes' -c '%d' -c \"0read $1\" -c wq \
         log.yaml",
    ),
    (
        "python",
        "python3 -c 'import sys; open(\"log.yaml\", \"w\").write(open(sys.argv[1]).read())' \"$1\"",
    ),
];

#[test]
fn programs_apply_specs_by_writing_them() {
    let up = Up::start();
    let second = up.second();
    apply(&up, "log", "NONE");
    let mounts = [up.mount().path(), second.mount().path()];
    let home = up.data().with_file_name("home");
    std::fs::create_dir(&home).unwrap();
    let file = up.data().with_file_name("new.yaml");
    for (number, (program, line)) in PROGRAMS.iter().enumerate() {
        let (here, there) = (mounts[number % 2], mounts[(number + 1) % 2]);
        let length = 2000 + number;
        let text = within(here, "specs", "cat log.yaml").ok().text();
        let new: String = text.lines().map(|line| with_length(line, length)).collect();
        std::fs::write(&file, new).unwrap();
        let arguments = [file.to_str().unwrap(), home.to_str().unwrap()];
        shell::bash(&here.join(".courant/specs"), line, &arguments).ok();
        let text = within(there, "specs", "cat log.yaml").ok().text();
        assert!(text.contains(&format!("length: {length}\n")), "{program}: {text}");
        let listed = journals(&up, &["list", "-l", "name=local/log", "-o", "yaml"]).ok().text();
        assert_eq!(text, listed, "{program}");
    }
    // Case: `sed` through a copy, and a new journal, which then is a file.
    let line = "sed -e 's/local.log/local\\/new/' -e '/^revision:/d' log.yaml > \"$1\"; \
                cp \"$1\" new.yaml";
    let specs = mounts[1].join(".courant/specs");
    shell::bash(&specs, line, &[file.to_str().unwrap()]).ok();
    assert_eq!(within(mounts[0], "specs", "ls").ok().text(), "log.yaml\nnew.yaml");
    assert_eq!(up.bash("stat -c %s new", &[]).ok().text(), "0");
}

fn with_length(line: &str, length: usize) -> String {
    match line.split_once("length:") {
        Some((before, _)) => format!("{before}length: {length}\n"),
        None => format!("{line}\n"),
    }
}

#[test]
fn a_spec_that_is_refused_fails_its_close_and_stays() {
    let up = Up::start();
    let second = up.second();
    apply(&up, "log", "NONE");
    let text = within(second.mount().path(), "specs", "cat log.yaml").ok().text();
    // Case: the line, what the program says, what the status says
    let cases = [
        ("sed s/length/lenght/ log.yaml > $T; cp $T log.yaml", "Invalid argument", "lenght"),
        ("echo nonsense > $T; cp $T log.yaml", "Invalid argument", "expected journals"),
        (
            "sed -E 's/^revision:.*/revision: 1000000/;s/length: .*/length: 7777/' log.yaml > $T; \
             cp $T log.yaml",
            "Stale file handle",
            "changed meanwhile",
        ),
        ("rm -f log.yaml", "Operation not permitted", ""),
        ("mv log.yaml other.yaml", "Operation not permitted", ""),
        ("sed -i s/1/2/ log.yaml", "Operation not permitted", ""),
        ("touch other", "Operation not permitted", ""),
        ("mkdir d", "Operation not permitted", ""),
    ];
    let file = up.data().with_file_name("new.yaml");
    for root in [up.mount().path(), second.mount().path()] {
        for (line, complaint, reason) in cases {
            let line = format!("T={}; {line}", file.display());
            let ran = within(root, "specs", &line);
            assert!(ran.stderr.contains(complaint), "{line}: {}", ran.stderr);
            let status = within(root, "", "cat status").ok().text();
            let told = status
                .lines()
                .any(|it| it.starts_with("spec-refused log: ") && it.contains(reason));
            assert!(reason.is_empty() || told, "{line}: {status}");
        }
    }
    assert_eq!(within(up.mount().path(), "specs", "cat log.yaml").ok().text(), text);
}

#[test]
fn a_read_only_mount_shows_specs_and_takes_none() {
    let up = Up::start();
    apply(&up, "log", "NONE");
    let second: Second = up.second_with(&["--read-only"]);
    let specs = second.mount().path();
    let text = within(specs, "specs", "cat log.yaml").ok().text();
    assert!(text.contains("name: local/log\n"), "{text}");
    for line in ["echo x > log.yaml", "echo x > new.yaml", "echo x >> log.yaml", "rm log.yaml"] {
        let ran = within(specs, "specs", line);
        assert!(ran.stderr.contains("Read-only file system"), "{line}: {}", ran.stderr);
    }
}

#[test]
fn registers_are_an_attribute_on_every_mount() {
    let up = Up::start();
    let second = up.second();
    up.bash("echo one >> log", &[]).ok();
    let told = |root: &Path| {
        shell::bash(root, "getfattr --only-values -n user.courant.registers log", &[]).ok().text()
    };
    assert_eq!(told(up.mount().path()), "");
    set_registers(&up, &[("owner", "me"), ("cut", "7")]);
    for root in [up.mount().path(), second.mount().path()] {
        assert_eq!(told(root), "cut=7\nowner=me");
    }
}

/// Appends with registers, which no command of ours does.
fn set_registers(up: &Up, registers: &[(&str, &str)]) {
    let labels = registers.iter().try_fold(LabelSet::default(), |set, it| set.with(it.0, it.1));
    let append = Append {
        union_registers: labels.unwrap(),
        ..Append::new("local/log".parse().unwrap(), "two\n".into())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let appending = async { Remote::new(&up.url()).unwrap().append(append).await };
    runtime.block_on(appending).unwrap();
}
