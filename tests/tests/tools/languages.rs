//! What programs in Perl, Java and Node do to files, by their usual calls.

use crate::case::{Case, Group, check, refused, works};

pub const GROUPS: &[Group] = &[PERL, JAVA, NODE];

const PERL: Group = Group {
    heading: "Perl",
    cases: &[
        Case {
            tool: "open",
            does: "modes `>>`, `+>>`, `<`",
            happens: "Works.",
            shown: works(
                r#"
                echo kept >> log
                perl $TOOLS/perl_files.pl log '>>' '+>>' '<' > $LOCAL/out
                cmp $LOCAL/out <(cat log log)
                "#,
                &[("log", Some("echo kept; echo more; echo more"))],
            ),
        },
        Case {
            tool: "sysopen, flock",
            does: "append under a lock",
            happens: "Works.",
            shown: works(
                "perl $TOOLS/perl_files.pl log sysopen flock",
                &[("log", Some("echo more; echo more"))],
            ),
        },
        Case {
            tool: "-e, -f, -r, -w, -z, -s, -T, -B",
            does: "ask what a file is",
            happens: "As on a local disk.",
            shown: works(
                r#"
                echo kept >> log
                [ "$(perl $TOOLS/perl_files.pl log tests)" = '1 1 1 1 1 5 1 1' ]
                "#,
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "open",
            does: "modes `>`, `+<`",
            happens: "`EPERM` for a file with bytes: at the open, or at the write.",
            shown: refused(
                r#"
                echo kept >> log
                fails_with 1 perl $TOOLS/perl_files.pl log '>'
                perl $TOOLS/perl_files.pl log '+<'
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "truncate, rename, unlink",
            does: "change or remove a file",
            happens: "`EPERM`.",
            shown: refused(
                r#"
                echo kept >> log
                fails_with 1 perl $TOOLS/perl_files.pl log truncate
                fails_with 1 perl $TOOLS/perl_files.pl log rename
                perl $TOOLS/perl_files.pl log unlink
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
    ],
};

const JAVA: Group = Group {
    heading: "Java",
    cases: &[
        Case {
            tool: "FileOutputStream, FileWriter, Files",
            does: "the appending ones: `(file, true)`, `APPEND`",
            happens: "Works.",
            shown: works(
                r#"
                echo kept >> log
                java $TOOLS/JavaFiles.java log FileOutputStream-append FileWriter-append \
                    newBufferedWriter-append writeString-append
                "#,
                &[("log", Some("echo kept; printf 'more\\n%.0s' {1..4}"))],
            ),
        },
        Case {
            tool: "FileChannel",
            does: "`APPEND`, `force`, `lock`",
            happens: "Works.",
            shown: works(
                r#"
                echo kept >> log
                java $TOOLS/JavaFiles.java log FileChannel-append FileChannel-lock
                "#,
                &[("log", Some("echo kept; echo more; echo more"))],
            ),
        },
        Case {
            tool: "FileChannel",
            does: "`map(READ_ONLY)`, `transferTo` a new file",
            happens: "Works where the kernel itself reads (`user.courant.mode` is `passthrough`). \
                      Elsewhere both, which make a shared mapping, are `ENODEV`; `Files.copy` and \
                      streams work.",
            shown: works(
                r#"
                echo kept >> log
                java $TOOLS/JavaFiles.java log Files-copy
                if [ $(getfattr --only-values -n user.courant.mode log) = passthrough ]; then
                    java $TOOLS/JavaFiles.java log FileChannel-map FileChannel-transferTo
                else
                    fails_with 1 java $TOOLS/JavaFiles.java log FileChannel-map
                    fails_with 1 java $TOOLS/JavaFiles.java log FileChannel-transferTo
                    cat log > log-transferred
                fi
                "#,
                &[
                    ("log", Some("echo kept")),
                    ("log-copy", Some("echo kept")),
                    ("log-transferred", Some("echo kept")),
                ],
            ),
        },
        Case {
            tool: "FileChannel, RandomAccessFile",
            does: "write at the end: `position(size())`, `seek(length())`",
            happens: "Appends, as long as nobody else does; anywhere else it is `EPERM`.",
            shown: refused(
                r#"
                echo kept >> log
                java $TOOLS/JavaFiles.java log FileChannel-position RandomAccessFile-end \
                    RandomAccessFile-start
                "#,
                "IOException: Operation not permitted",
                &[("log", Some("echo kept; echo more; echo more"))],
            ),
        },
        Case {
            tool: "FileOutputStream, Files.writeString",
            does: "without append",
            happens: "`FileNotFoundException` and `FileSystemException` (`EPERM`) for a file with \
                      bytes.",
            shown: refused(
                r#"
                echo kept >> log
                fails_with 1 java $TOOLS/JavaFiles.java log FileOutputStream 2> $LOCAL/said
                grep -q 'log (Operation not permitted)' $LOCAL/said
                java $TOOLS/JavaFiles.java log writeString
                "#,
                "FileSystemException: log: Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "Files",
            does: "`copy` to a new name",
            happens: "Works. `move` and `delete` are `EPERM`.",
            shown: refused(
                r#"
                seq 5 >> log
                java $TOOLS/JavaFiles.java log Files-copy
                fails_with 1 java $TOOLS/JavaFiles.java log Files-move
                java $TOOLS/JavaFiles.java log Files-delete
                "#,
                "FileSystemException: log: Operation not permitted",
                &[("log", Some("seq 5")), ("log-copy", Some("seq 5"))],
            ),
        },
        Case {
            tool: "java.util.logging",
            does: "`FileHandler(pattern, true)`",
            happens: "Each record is appended; its lock file comes and goes.",
            shown: works(
                r#"
                echo kept >> log
                java $TOOLS/JavaFiles.java log FileHandler-append
                "#,
                &[("log", Some("echo kept; echo more"))],
            ),
        },
    ],
};

const NODE: Group = Group {
    heading: "Node",
    cases: &[
        Case {
            tool: "fs.appendFile, createWriteStream",
            does: "flags `a`, `a+`, `as`",
            happens: "Works.",
            shown: works(
                r#"
                echo kept >> log
                node $TOOLS/node_files.js log open-a+ appendFile appendFileSync \
                    createWriteStream-a createWriteStream-a+ createWriteStream-as
                "#,
                &[("log", Some("echo kept; printf 'more\\n%.0s' {1..6}"))],
            ),
        },
        Case {
            tool: "fs.watch, fs.watchFile",
            does: "wait for appends through the same mount",
            happens: "They are told.",
            shown: works(
                r#"
                echo kept >> log
                node $TOOLS/node_files.js log watch watchFile
                [ $(grep -cvx more log) -eq 1 ]
                "#,
                &[("log", None)],
            ),
        },
        Case {
            tool: "fs.writeFile, createWriteStream",
            does: "flags `w`, `r+`",
            happens: "`EPERM` for a file with bytes.",
            shown: refused(
                r#"
                echo kept >> log
                fails_with 1 node $TOOLS/node_files.js log writeFile
                fails_with 1 node $TOOLS/node_files.js log createWriteStream-w
                node $TOOLS/node_files.js log createWriteStream-r+
                "#,
                "EPERM: operation not permitted, write",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "createWriteStream",
            does: "flag `ax`",
            happens: "`EEXIST` for a file that is there.",
            shown: refused(
                r#"
                echo kept >> log
                node $TOOLS/node_files.js log createWriteStream-ax
                "#,
                "EEXIST",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "fs.copyFile",
            does: "to a new name",
            happens: "Works. `rename`, `truncate` and `unlink` are `EPERM`.",
            shown: refused(
                r#"
                seq 5 >> log
                node $TOOLS/node_files.js log copyFile
                fails_with 1 node $TOOLS/node_files.js log rename
                fails_with 1 node $TOOLS/node_files.js log truncate
                node $TOOLS/node_files.js log unlink
                "#,
                "EPERM: operation not permitted, unlink",
                &[("log", Some("seq 5")), ("log-copy", Some("seq 5"))],
            ),
        },
    ],
};

#[test]
fn perl_appends() {
    check(&PERL);
}

#[test]
fn java_appends() {
    check(&JAVA);
}

#[test]
fn node_appends() {
    check(&NODE);
}
