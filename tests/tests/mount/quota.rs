//! A journal's rate, as a writer of its file meets it.

use std::path::Path;
use tests::shell::{self, cat};
use tests::world::{Up, apply_specs, attribute, spec};

#[test]
fn a_write_over_the_rate_of_its_journal_is_edquot_and_appends_nothing() {
    let up = Up::with(&["--write-timeout", "4s"]);
    let second = up.second_with(&["--write-timeout", "4s"]);
    apply_specs(&up, &spec("slow", 1 << 20, "NONE", ", max_append_rate: 1000"));
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

#[test]
fn a_write_over_the_size_of_its_journal_is_edquot_on_every_mount() {
    let up = Up::start();
    let second = up.second();
    let limit = ", labels: [{name: courant/max-bytes, value: '12'}]";
    apply_specs(&up, &spec("small", 1 << 20, "NONE", limit));
    shell::bash(up.mount().path(), "echo line >> small", &[]).ok();
    shell::bash(second.mount().path(), "echo more >> small", &[]).ok();
    for mount in [up.mount(), second.mount()] {
        let ran = shell::bash(mount.path(), "echo last >> small", &[]);
        assert!(ran.stderr.contains("Disk quota exceeded"), "{}", ran.stderr);
    }
    // Case: what fits; a line in line mode, told at its fsync; the door of HTTP
    shell::bash(second.mount().path(), "printf 'x\n' >> small", &[]).ok();
    let line = "python3 -c \"import os; \
                fd = os.open('.courant/lines/small', os.O_WRONLY | os.O_APPEND); \
                os.write(fd, b'line'); os.fsync(fd)\"";
    let ran = shell::bash(up.mount().path(), line, &[]);
    assert!(ran.stderr.contains("Disk quota exceeded"), "{}", ran.stderr);
    let put = "curl -s -o /dev/null -w '%{http_code}' -X PUT --data-binary more $1";
    assert_eq!(up.bash(put, &[&up.journal_url("small")]).ok().text(), "507");
    assert_eq!(cat(&second.file("small")), b"line\nmore\nx\n");
}
