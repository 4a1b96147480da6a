//! `courant fsck`: each kind of damage is found and named, and nothing else is.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod broker;

use std::path::{Path, PathBuf};
use tempfile::TempDir;
use tests::daemon;
use tests::ground;
use tests::shell::{self, Ran};

/// The store that Gazette wrote.
fn fixtures() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/gazette-store");
    assert!(path.is_dir(), "the store that Gazette wrote is not at {}", path.display());
    path.canonicalize().unwrap()
}

/// What the lines that damage a store have at hand: the second fragments of two journals, 200 bytes
/// of the first of these at 500, and a way to put those as another fragment.
const AT_HAND: &str = "F=$(echo none/*154-*1298-*); Z=$(echo snappy/*17c-*11d0-*)
part() { tail -c +161 $F | head -c 200; }
put() { cat > x && mv x none/00000000000001f4-00000000000002bc-$(sha1sum < x | cut -c -40).raw; }
";

/// A store to break: the smaller journals of Gazette's.
fn copy() -> TempDir {
    let ground = ground::folder("fsck-");
    let to = ground.path().join("fixtures");
    std::fs::create_dir(&to).unwrap();
    let line = "cp -r \"$1\"/none \"$1\"/snappy \"$1\"/postfix \"$2\"";
    let from = fixtures().join("fixtures");
    shell::bash(&to, line, &[from.to_str().unwrap(), to.to_str().unwrap()]).ok();
    ground
}

fn fsck(root: &Path, options: &[&str]) -> Ran {
    let root = root.to_str().unwrap();
    let mut command = vec!["fsck", "--store", "file:///", "--file-root", root];
    command.extend(options);
    daemon::run(&command)
}

#[test]
fn what_gazette_stored_is_whole() {
    let ran = fsck(&fixtures(), &[]).ok();
    assert_eq!(
        ran.text(),
        "journals: 6, fragments: 22, verified: 3.5 MiB; nothing is wrong",
        "{}",
        ran.stderr
    );
    assert_eq!(ran.stderr, "", "there is no terminal to show progress on");
    // Case: a selector, and the same by its URL's path.
    let text = fsck(&fixtures(), &["-l", "name=fixtures/none"]).ok().text();
    assert!(text.starts_with("journals: 1, fragments: 4,"), "{text}");
    let root = fixtures();
    let root = root.parent().unwrap().to_str().unwrap();
    let url = "file:///gazette-store/";
    let text = daemon::run(&["fsck", "--store", url, "--file-root", root]).ok().text();
    assert!(text.starts_with("journals: 6, fragments: 22,"), "{text}");
}

#[test]
fn each_kind_of_damage_is_named() {
    // Case: what is done to the store, and what the one line says; none where nothing is wrong.
    let cases: [(&str, Option<&str>); 14] = [
        ("true", None),
        ("rm none/*154-*1298-*", Some("fixtures/none 340..4760 gap -: no fragment has")),
        // Case: what lies below the first fragment was trimmed.
        ("rm none/0000000000000000-*", None),
        ("printf X | dd of=$F bs=1 seek=1000 conv=notrunc", Some("340..4760 damaged")),
        ("printf X | dd of=$Z bs=1 seek=500 conv=notrunc", Some("380..4560 damaged")),
        ("truncate -s -1 $F", Some("340..4760 damaged fixtures/none/0000000000000154-")),
        ("truncate -s 100 $Z", Some("380..4560 damaged fixtures/snappy/000000000000017c-")),
        ("truncate -s 0 $F", Some("340..4760 damaged")),
        ("printf X >> $F", Some("340..4760 damaged")),
        ("echo x > none/notes.txt", Some("fixtures/none - name fixtures/none/notes.txt: ")),
        ("mv $F none/154-1298-${F##*-}", Some("name fixtures/none/154-1298-")),
        // Case: the same bytes in another fragment, and other bytes.
        ("part | put", None),
        ("part | tr 0-9a-z A | put", Some("disagreement fixtures/none/00000000000001f4-")),
        // Case: objects that are no business of journals.
        ("echo x > ../README; mkdir ../other; echo x > ../other/file", None),
    ];
    for (damage, expected) in cases {
        let store = copy();
        let line = format!("{AT_HAND}{damage}");
        shell::bash(&store.path().join("fixtures"), &line, &[]).ok();
        let ran = fsck(store.path(), &[]);
        let text = ran.text();
        let lines: Vec<&str> = text.lines().collect();
        match expected {
            None => {
                assert_eq!(lines.len(), 1, "{damage}: {text} {}", ran.stderr);
                assert!(lines[0].ends_with("nothing is wrong"), "{damage}: {text}");
                assert_eq!(ran.code, Some(0), "{damage}");
            }
            Some(expected) => {
                assert!(lines.iter().any(|line| line.contains(expected)), "{damage}: {text}");
                assert!(
                    ran.refusal(1).contains("could not be verified whole"),
                    "{damage}: {}",
                    ran.stderr
                );
                let is_moved = damage.starts_with("mv $F");
                assert_eq!(lines.len(), if is_moved { 3 } else { 2 }, "{damage}: {text}");
            }
        }
    }
}

#[test]
fn findings_are_objects_in_json() {
    let store = copy();
    shell::bash(
        store.path(),
        "rm fixtures/none/*154-*1298-*; printf X >> fixtures/snappy/*17c-*11d0-*",
        &[],
    )
    .ok();
    let ran = fsck(store.path(), &["-o", "json"]);
    assert_eq!(ran.code, Some(1));
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap();
    let told: Vec<_> = findings
        .iter()
        .map(|found| (found["journal"].as_str().unwrap(), found["kind"].as_str().unwrap()))
        .collect();
    assert_eq!(told, [("fixtures/none", "gap"), ("fixtures/snappy", "damaged")]);
    assert_eq!((&findings[0]["begin"], &findings[0]["end"]), (&340.into(), &4760.into()));
    assert_eq!(report["journals"], 3);
    // Case: a selector that leaves the damage out.
    let ran = fsck(store.path(), &["-l", "name=fixtures/postfix", "-o", "json"]).ok();
    let report: serde_json::Value = serde_json::from_slice(&ran.stdout).unwrap();
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(0));
}
