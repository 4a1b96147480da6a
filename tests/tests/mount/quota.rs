//! A journal's rate, as a writer of its file meets it.

use crate::reading::attribute;
use std::path::Path;
use tests::shell::{self, cat};
use tests::world::{Up, journals};

#[test]
fn a_write_over_the_rate_of_its_journal_is_edquot_and_appends_nothing() {
    let up = Up::with(&["--write-timeout", "4s"]);
    let second = up.second_with(&["--write-timeout", "4s"]);
    let spec = "- {name: local/slow, replication: 1, max_append_rate: 1000, fragment: {length: \
                1048576, compression_codec: NONE, stores: ['file:///'], refresh_interval: 1s}}\n";
    let specs = up.data().with_file_name("specs.yaml");
    std::fs::write(&specs, spec).unwrap();
    journals(&up, &["apply", "--specs", specs.to_str().unwrap()]).ok();
    for (number, mount) in [up.mount(), second.mount()].into_iter().enumerate() {
        // Case: more than a minute's worth, in one write
        let line = "head -c 100000 /dev/zero | dd of=slow oflag=append conv=notrunc bs=100000 \
                    iflag=fullblock status=none";
        let ran = shell::bash(mount.path(), line, &[]);
        assert!(ran.stderr.contains("Disk quota exceeded"), "{}", ran.stderr);
        assert_eq!(attribute(&up, "slow", "head"), (2 * 5 * number).to_string());
        // Case: what is allowed; the refused one took nothing of that
        shell::bash(mount.path(), "echo line >> slow; echo more >> slow", &[]).ok();
    }
    assert_eq!(cat(&up.file("slow")), b"line\nmore\n".repeat(2));
    assert_eq!(cat(Path::new(&second.file("slow"))), b"line\nmore\n".repeat(2));
}
