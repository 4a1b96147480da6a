//! Copying to and from a mount.

use crate::case::{Case, Group, Shown, check, refused, works};

pub const GROUPS: &[Group] = &[COPIES, RSYNC];

const COPIES: Group = Group {
    heading: "Copying and moving",
    cases: &[
        Case {
            tool: "cp, install",
            does: "copy files to new names, with `-p` or `-a` too",
            happens: "Works. Owner, mode and times are those of the mount.",
            shown: works(
                r#"
                seq 2000 > $LOCAL/file
                cp $LOCAL/file one
                cp -p $LOCAL/file two
                mkdir $LOCAL/tree
                cp $LOCAL/file $LOCAL/tree
                cp -a $LOCAL/tree .
                install -m 700 $LOCAL/file three
                cp -u $LOCAL/file three
                "#,
                &[
                    ("one", Some("cat file")),
                    ("two", Some("cat file")),
                    ("three", Some("cat file")),
                    ("tree/file", Some("cat file")),
                ],
            ),
        },
        Case {
            tool: "cp, cp -f, install",
            does: "copy over a file with bytes",
            happens: "`EPERM`; the file is as it was.",
            shown: refused(
                r#"
                echo gone > $LOCAL/file
                echo kept >> log
                fails_with 1 cp $LOCAL/file log
                fails_with 1 cp -f $LOCAL/file log
                fails_with 1 cp --backup $LOCAL/file log
                install $LOCAL/file log
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "cp",
            does: "copy a file with holes",
            happens: "`EINVAL`, and an empty file stays: a journal has no holes. \
                      `--sparse=never` copies it.",
            shown: refused(
                r#"
                truncate -s 1M $LOCAL/file
                echo end >> $LOCAL/file
                cp --sparse=never $LOCAL/file whole
                cp $LOCAL/file log
                "#,
                "Invalid argument",
                &[("log", Some("true")), ("whole", Some("cat file"))],
            ),
        },
        Case {
            tool: "cp -a, tar x",
            does: "copy a tree with links in it",
            happens: "`EPERM` for each link, and all else is copied.",
            shown: refused(
                r#"
                mkdir $LOCAL/tree
                seq 5 > $LOCAL/tree/file
                ln -s file $LOCAL/tree/link
                tar -cf $LOCAL/tar -C $LOCAL tree
                fails_with 2 tar -xf $LOCAL/tar
                mkdir copy
                cp -a $LOCAL/tree/. copy
                "#,
                "Operation not permitted",
                &[("copy/file", Some("seq 5")), ("tree/file", Some("seq 5"))],
            ),
        },
        Case {
            tool: "mv",
            does: "move a file into the mount",
            happens: "It is copied, and removed where it was. Over a file with bytes it is \
                      `EPERM`, and both are as they were.",
            shown: refused(
                r#"
                seq 5 > $LOCAL/one
                mv $LOCAL/one .
                [ ! -e $LOCAL/one ]
                echo other > $LOCAL/one
                mv -f $LOCAL/one . || { [ -s $LOCAL/one ] && false; }
                "#,
                "Operation not permitted",
                &[("one", Some("seq 5"))],
            ),
        },
        Case {
            tool: "mv",
            does: "move a file out of the mount",
            happens: "It is copied, and fails to remove the journal: `EPERM`, unless the mount has \
                      `--allow-delete`.",
            shown: refused(
                r#"
                seq 5 >> log
                mv log $LOCAL/out || { cmp log $LOCAL/out && false; }
                "#,
                "cannot remove",
                &[("log", Some("seq 5"))],
            ),
        },
        Case {
            tool: "mv, rename",
            does: "rename a file within the mount",
            happens: "`EPERM`, unless it is still empty.",
            shown: refused(
                r#"
                touch empty
                mv empty named
                seq 5 >> log
                mv log other
                "#,
                "Operation not permitted",
                &[("log", Some("seq 5")), ("named", Some("true"))],
            ),
        },
        Case {
            tool: "rm",
            does: "remove a file",
            happens: "`EPERM`, unless the mount has `--allow-delete`: then the journal is deleted, \
                      with what is stored of it.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/files.rs: \
                 a_deleted_journal_is_gone_everywhere_and_the_next_one_is_another",
            ),
        },
        Case {
            tool: "truncate, ln, mv, rm, os.replace",
            does: "change, name or remove what is there",
            happens: "`EPERM`; nothing is left behind.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/appending.rs: \
                 t06_programs_that_would_change_old_bytes_fail_and_leave_nothing_behind",
            ),
        },
        Case {
            tool: "chmod, chown, touch, touch -d",
            does: "set attributes",
            happens: "They succeed and change nothing.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/files.rs: \
                 owner_mode_and_times_are_fixed_and_setting_them_succeeds",
            ),
        },
        Case {
            tool: "sync FILE, dd conv=fsync",
            does: "wait for the disk",
            happens: "What was written survives a power cut.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/files.rs: a_write_is_on_disk_where_that_was_asked_for",
            ),
        },
        Case {
            tool: "flock",
            does: "run a program under a lock",
            happens: "It excludes programs of the same mount only. Appends need no lock.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/files.rs: locks_are_those_of_one_node_of_one_mount",
            ),
        },
        Case {
            tool: "cat, cp, dd, head, tail, less, tar c, gzip, rsync",
            does: "read a file to its end",
            happens: "The same bytes as on a local disk, and then the end.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/reading.rs: t09_every_program_reads_to_the_end_and_no_further",
            ),
        },
    ],
};

const RSYNC: Group = Group {
    heading: "rsync",
    cases: &[
        Case {
            tool: "rsync",
            does: "to a mount, without options",
            happens: "`EPERM` at its first step, a temporary file; nothing is left behind.",
            shown: refused(
                r#"
                seq 5 > $LOCAL/file
                rsync $LOCAL/file log
                "#,
                "Operation not permitted",
                &[],
            ),
        },
        Case {
            tool: "rsync -a --inplace",
            does: "to a mount, a tree of new files",
            happens: "Works.",
            shown: works(
                r#"
                mkdir $LOCAL/tree
                seq 2000 > $LOCAL/tree/one
                seq 5 > $LOCAL/tree/two
                rsync -a --inplace $LOCAL/tree .
                "#,
                &[("tree/one", Some("seq 2000")), ("tree/two", Some("seq 5"))],
            ),
        },
        Case {
            tool: "rsync --inplace",
            does: "to a mount, files that have changed or grown",
            happens: "`EPERM`, since it writes from the start; the file is as it was.",
            shown: refused(
                r#"
                seq 2000 > $LOCAL/file
                rsync --inplace $LOCAL/file log
                seq 2001 2010 >> $LOCAL/file
                rsync --inplace $LOCAL/file log
                "#,
                "Operation not permitted",
                &[("log", Some("seq 2000"))],
            ),
        },
        Case {
            tool: "rsync --append, --append-verify",
            does: "to a mount, again and again, files that grow",
            happens: "What is new is appended.",
            shown: works(
                r#"
                for to in 100 2000 2000 5000; do
                    seq $to > $LOCAL/file
                    rsync --append $LOCAL/file one
                    rsync --append-verify $LOCAL/file two
                done
                "#,
                &[("one", Some("seq 5000")), ("two", Some("seq 5000"))],
            ),
        },
        Case {
            tool: "rsync",
            does: "from a mount, with any options",
            happens: "Works.",
            shown: works(
                r#"
                for to in 1,100 101,2000; do
                    seq ${to%,*} ${to#*,} >> log
                    rsync -a . $LOCAL/one
                    rsync -a --inplace . $LOCAL/two
                    rsync -a --append . $LOCAL/three
                    for copy in one two three; do
                        cmp log $LOCAL/$copy/log
                    done
                done
                "#,
                &[("log", Some("seq 2000"))],
            ),
        },
    ],
};

#[test]
fn copies_make_new_files() {
    check(&COPIES);
}

#[test]
fn rsync_appends_where_it_is_told_to() {
    check(&RSYNC);
}
