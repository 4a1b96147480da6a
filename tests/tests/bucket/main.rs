//! `courant mount --bucket`: what a Gazette cluster stored, as files, with no broker.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tests::daemon::{self, Daemon};
use tests::ground;
use tests::mountdir::MountDir;
use tests::patience::until;
use tests::running::Running;
use tests::shell::{self, cat};

/// File, bytes and SHA256 of what Gazette stored (the README beside the fixtures).
const JOURNALS: [(&str, usize, &str); 6] = [
    ("none", 10200, "7f5b5dcec942c5112441df4e4cc10e0e42b06c1473eea265cd3f5445d0f33c27"),
    ("gzip", 10200, "6397bb6b296bf43c8df721a959b83812b587a9c3b18c6e9ebc3739ee758b0701"),
    ("zstandard", 13200, "2ef10fe97efd7bd7df5b7efc987b30d44c728dfd9610c56772d9b753d071257a"),
    ("snappy", 11400, "83f8c26593160e56e865e8a74f2ad2e735bce76ea7c8fbb1ccafa2a79b9c25d6"),
    ("postfix", 12000, "39247754981d4bc3c59074c5336739f05d2c87236fd4dff424e4f9b86f60322e"),
    ("gzip-members", 3600000, "0e07840609b3e071c5068609904b63437981b2bef03f81571485853d3827f8eb"),
];

/// The store that Gazette wrote.
fn fixtures() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/gazette-store");
    assert!(path.is_dir(), "the store that Gazette wrote is not at {}", path.display());
    path.canonicalize().unwrap()
}

/// A mounted store. The daemon ends before the mount is taken away.
struct Mounted {
    daemon: Daemon,
    mount: MountDir,
}

impl Mounted {
    #[track_caller]
    fn start(root: &Path, url: &str, options: &[&str]) -> Mounted {
        let mount = MountDir::new();
        let (root, point) = (root.to_str().unwrap(), mount.path().to_str().unwrap());
        let mut command = vec!["mount", "--bucket", url, "--file-root", root, point];
        command.extend(options);
        Mounted { daemon: Daemon::start(&command), mount }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.mount.path().join(name)
    }

    #[track_caller]
    fn bash(&self, line: &str) -> shell::Ran {
        shell::bash(self.mount.path(), line, &[])
    }
}

#[test]
fn what_gazette_stored_is_read_to_the_byte() {
    let fixtures = fixtures();
    let root = fixtures.parent().unwrap();
    let mut mounted = Mounted::start(root, "file:///gazette-store/", &[]);
    let names = mounted.bash("cd fixtures && ls").ok().text();
    assert_eq!(names, "gzip\ngzip-members\nnone\npostfix\nsnappy\nzstandard");
    for (name, len, sum) in JOURNALS {
        let told = mounted.bash(&format!("stat -c %s fixtures/{name}; sha256sum fixtures/{name}"));
        assert_eq!(told.ok().text(), format!("{len}\n{sum}  fixtures/{name}"), "{name}");
        // Case: from the middle, and the last bytes.
        let whole = cat(&mounted.file(&format!("fixtures/{name}")));
        for from in [1, len / 2, len - 1] {
            let line = format!("tail -c +{} fixtures/{name} | head -c 5000", from + 1);
            let part = mounted.bash(&line).ok().stdout;
            assert!(part == whole[from..len.min(from + 5000)], "{name} from {from}");
        }
    }
    // Case: many readers at once.
    let line = "for i in 1 2 3 4; do sha256sum fixtures/* & done; wait";
    let sums = mounted.bash(line).ok().text();
    for (_, _, sum) in JOURNALS {
        assert_eq!(sums.matches(sum).count(), 4);
    }
    assert!(mounted.daemon.stop().success());
}

#[test]
fn what_was_read_once_is_read_by_the_kernel() {
    let fixtures = fixtures();
    let cache = ground::folder("cache-");
    let cache = cache.path().to_str().unwrap();
    let mounted = Mounted::start(&fixtures, "file:///", &["--cache", cache]);
    for (name, _, sum) in JOURNALS {
        for mode in ["direct", "passthrough"] {
            let line = format!(
                "getfattr --only-values -n user.courant.mode fixtures/{name}
                 sha256sum < fixtures/{name}"
            );
            let told = mounted.bash(&line).ok().text();
            assert_eq!(told, format!("{mode}{sum}  -"), "{name}");
        }
    }
}

#[test]
fn fragments_are_files_and_there_are_no_specs() {
    let mounted = Mounted::start(&fixtures(), "file:///", &[]);
    for (name, len, _) in JOURNALS {
        // Case: each has the bytes of its sum, whatever its codec, and all are the journal.
        let line = format!(
            "set -e; cd .courant/fragments/fixtures/{name}; for f in *; do h=${{f##*-}}; \
             echo \"${{h%%.*}}  $f\" | sha1sum -c --quiet; done; cat * | wc -c"
        );
        assert_eq!(mounted.bash(&line).ok().text(), len.to_string(), "{name}");
    }
    assert_eq!(mounted.bash("ls -A .courant/specs").ok().text(), "");
    for line in ["echo x > .courant/specs/new.yaml", "rm .courant/fragments/fixtures/none/*"] {
        let ran = mounted.bash(line);
        assert!(ran.stderr.contains("Read-only file system"), "{line}: {}", ran.stderr);
    }
}

#[test]
fn nothing_is_written() {
    let fixtures = fixtures();
    let mounted = Mounted::start(&fixtures, "file:///", &[]);
    let writes = [
        "echo x >> fixtures/none",
        "echo x > fixtures/new",
        "touch fixtures/new",
        "mkdir fixtures/dir",
        "rm -f fixtures/none",
        "mv fixtures/none fixtures/other",
        "truncate -s 0 fixtures/none",
    ];
    for line in writes {
        let ran = mounted.bash(line);
        assert_ne!(ran.code, Some(0), "{line}");
        assert!(ran.stderr.contains("Read-only file system"), "{line}: {}", ran.stderr);
    }
    assert_eq!(cat(&mounted.file("fixtures/none")).len(), 10200);
}

#[test]
fn what_is_stored_later_is_followed() {
    let ground = ground::folder("bucket-");
    let dir = ground.path().join("fixtures/postfix/date=2026-11-29/hour=17");
    let source = fixtures().join("fixtures/postfix/date=2026-11-29/hour=17");
    std::fs::create_dir_all(&dir).unwrap();
    let mut names: Vec<_> =
        std::fs::read_dir(&source).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    std::fs::copy(source.join(&names[0]), dir.join(&names[0])).unwrap();
    // A listing in an hour: what is followed is looked for in between.
    let mounted = Mounted::start(ground.path(), "file:///", &["--refresh", "1h"]);
    let file = mounted.file("fixtures/postfix");
    let mut tail = Command::new("tail");
    tail.args(["-c", "+1", "-f"]).arg(&file).stdin(Stdio::null());
    let tail = Running::start(&mut tail);
    until("the first fragment is read", || tail.stdout().len() == 0x190);
    for (name, end) in names[1..].iter().zip([0x12c0, 0x23f0, 0x2ee0]) {
        std::fs::copy(source.join(name), dir.join(name)).unwrap();
        until("the next fragment is read", || tail.stdout().len() == end);
    }
    assert!(tail.stdout() == cat(&file));
}

#[test]
fn damage_is_an_error_of_the_read() {
    let ground = ground::folder("bucket-");
    let dir = ground.path().join("fixtures/none");
    std::fs::create_dir_all(&dir).unwrap();
    for entry in std::fs::read_dir(fixtures().join("fixtures/none")).unwrap() {
        let entry = entry.unwrap();
        let mut content = std::fs::read(entry.path()).unwrap();
        let is_second = entry.file_name().to_string_lossy().starts_with("0000000000000154-");
        if is_second {
            content[1000] ^= 1;
        }
        std::fs::write(dir.join(entry.file_name()), content).unwrap();
    }
    let mounted = Mounted::start(ground.path(), "file:///", &[]);
    let ran = mounted.bash("cat fixtures/none");
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("Input/output error"), "{}", ran.stderr);
    assert!(ran.stdout.len() <= 0x1298, "{} bytes", ran.stdout.len());
    let after = mounted.bash("tail -c +$((0x1298 + 1)) fixtures/none").ok();
    assert_eq!(after.stdout.len(), 10200 - 0x1298);
}

#[test]
fn what_is_no_bucket_is_refused_before_anything_is_mounted() {
    let mount = MountDir::new();
    let point = mount.path().to_str().unwrap();
    let root = ground::folder("bucket-");
    let root = root.path().to_str().unwrap();
    // Case: URL, root, what the complaint says
    let cases = [
        ("file:///no-such-store/", root, "no-such-store"),
        ("file:///store", root, "must end in '/'"),
        ("http://host/", root, "unknown scheme"),
        ("file:///", "/no-such-root", "/no-such-root"),
    ];
    for (url, root, expected) in cases {
        let said = daemon::refused(&["mount", "--bucket", url, "--file-root", root, point]);
        assert!(said.contains(expected), "{said}");
        assert!(mount.mounts().is_empty());
    }
}
