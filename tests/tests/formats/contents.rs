//! What a packed directory has: journals that are small, stored, compressed, large, and such with
//! registers and a writer that is remembered.

use super::{Up, journals, until};
use bytes::Bytes;
use client::{Append, Journals, Remote, Writer};
use protocol::LabelSet;
use tests::shell::cat;
use tests::world;

/// A file, and the line of bash that writes it. Those of a first half are in the checkpoint.
const FIRST: [(&str, &str); 2] = [("plain", "seq 1 500"), ("stored", "seq 1 3000")];
const SECOND: [(&str, &str); 3] =
    [("packed", "seq 1 3000"), ("large", "yes large | head -c 200000"), ("plain", "seq 501 900")];

const REGISTERED: &str = "local/registered";

/// What each file has in the end, as a line of bash writes it.
const WHOLE: [(&str, &str); 4] = [
    ("plain", "seq 1 900"),
    ("stored", "seq 1 3000"),
    ("packed", "seq 1 3000"),
    ("large", "yes large | head -c 200000"),
];

pub fn write(up: &mut Up) {
    world::apply(up, "stored", 4096, "NONE");
    world::apply(up, "packed", 4096, "ZSTANDARD");
    world::apply(up, "registered", 1 << 20, "NONE");
    append(up, &FIRST);
    until("fragments are stored", || fragments(up, "local/stored") > 0);
    // A start makes a checkpoint.
    assert!(up.daemon().stop().success());
    up.again();
    append(up, &SECOND);
    until("fragments are stored", || fragments(up, "local/packed") > 0);
    assert!(!registered(up), "it is new");
}

fn append(up: &Up, lines: &[(&str, &str)]) {
    for (name, line) in lines {
        up.bash(
            &format!("{{ {line}; }} > /dev/shm/$$ && cat /dev/shm/$$ >> \"$1\"; rm /dev/shm/$$"),
            &[name],
        )
        .ok();
    }
}

fn fragments(up: &Up, journal: &str) -> usize {
    journals(up, &["fragments", journal, "-o", "json"]).text().matches("file:///").count()
}

/// Appends with a register, as a writer that is known again: whether it was there.
fn registered(up: &Up) -> bool {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let remote = Remote::new(&up.url()).unwrap();
        let content = Bytes::from_static(b"registered\n");
        let append = Append {
            writer: Some(Writer { id: [7; 16], sequence: 5 }),
            union_registers: LabelSet::default().with("owner", "format").unwrap(),
            ..Append::new(REGISTERED.parse().unwrap(), content)
        };
        remote.append(append).await.unwrap().repeated
    })
}

/// Every byte and every register is there, and every journal goes on.
pub fn check(up: &Up) {
    for (name, line) in WHOLE {
        let expected = up.bash(line, &[]).ok().stdout;
        assert!(cat(&up.file(name)) == expected, "{name} has other bytes");
        up.bash("echo more >> \"$1\"", &[name]).ok();
        assert!(cat(&up.file(name)) == [&expected, &b"more\n"[..]].concat(), "{name} goes on");
    }
    assert!(registered(up), "the writer is forgotten");
    assert_eq!(cat(&up.file("registered")), b"registered\n");
    assert!(world::attribute(up, "registered", "registers").contains("owner=format"));
    assert!(fragments(up, "local/stored") > 0 && fragments(up, "local/packed") > 0);
}
