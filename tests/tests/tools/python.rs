//! What programs in Python do to files, by their usual calls.

use crate::case::{Case, Group, check, refused, works};

pub const GROUPS: &[Group] = &[PYTHON];

const PYTHON: Group = Group {
    heading: "Python",
    cases: &[
        Case {
            tool: "open",
            does: "modes `a`, `ab`, `a+`, `r`",
            happens: "Works.",
            shown: works(
                r#"
                echo kept >> log
                python3 $TOOLS/python_files.py log a a+ r > $LOCAL/out
                python3 $TOOLS/python_files.py log unbuffered
                "#,
                &[("log", Some("echo kept; echo more; echo more; seq 5"))],
            ),
        },
        Case {
            tool: "open",
            does: "mode `r+`, and `seek` to the end",
            happens: "Appends, as long as nobody else does; written anywhere else it is `EPERM`.",
            shown: refused(
                r#"
                echo kept >> log
                python3 $TOOLS/python_files.py log r+end
                python3 $TOOLS/python_files.py log r+
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept; echo more"))],
            ),
        },
        Case {
            tool: "open, pathlib",
            does: "mode `w`, `write_text`",
            happens: "`EPERM` for a file with bytes.",
            shown: refused(
                r#"
                echo kept >> log
                fails_with 1 python3 $TOOLS/python_files.py log write_text
                python3 $TOOLS/python_files.py log w
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "open",
            does: "mode `x`",
            happens: "Makes a new file; a second time it is `EEXIST`.",
            shown: refused(
                r#"
                python3 $TOOLS/python_files.py log x
                python3 $TOOLS/python_files.py log x
                "#,
                "File exists",
                &[("log", Some("echo more"))],
            ),
        },
        Case {
            tool: "mmap",
            does: "`ACCESS_READ`, `flags=MAP_PRIVATE`",
            happens: "Works where the kernel itself reads (`user.courant.mode` is `passthrough`). \
                      Elsewhere `ACCESS_READ`, which is a shared mapping, is `ENODEV`, and a \
                      private one works.",
            shown: works(
                r#"
                seq 2000 >> log
                python3 $TOOLS/python_files.py log mmap-private | cmp - log
                if [ $(getfattr --only-values -n user.courant.mode log) = passthrough ]; then
                    python3 $TOOLS/python_files.py log mmap | cmp - log
                else
                    fails_with 1 python3 $TOOLS/python_files.py log mmap
                fi
                "#,
                &[("log", Some("seq 2000"))],
            ),
        },
        Case {
            tool: "mmap",
            does: "a shared mapping to write",
            happens: "`ENODEV`.",
            shown: refused(
                r#"
                echo kept >> log
                python3 $TOOLS/python_files.py log mmap-shared
                "#,
                "No such device",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "shutil, os",
            does: "`copyfile`, `copy2`",
            happens: "Works for a new name. `os.replace` is `EPERM`.",
            shown: refused(
                r#"
                seq 5 >> one
                seq 5 >> two
                python3 $TOOLS/python_files.py one copyfile
                python3 $TOOLS/python_files.py two copy2
                python3 $TOOLS/python_files.py one replace
                "#,
                "Operation not permitted",
                &[
                    ("one", Some("seq 5")),
                    ("one-copy", Some("seq 5")),
                    ("two", Some("seq 5")),
                    ("two-copy", Some("seq 5")),
                ],
            ),
        },
        Case {
            tool: "logging",
            does: "`FileHandler`, `WatchedFileHandler`",
            happens: "Each record is appended.",
            shown: works(
                r#"
                python3 $TOOLS/python_files.py log logging
                python3 $TOOLS/python_files.py log watched
                "#,
                &[("log", Some("seq 5; seq 5"))],
            ),
        },
        Case {
            tool: "logging",
            does: "`RotatingFileHandler`, when it comes to rotate",
            happens: "The rename is `EPERM`. What is in the journal stays; Python drops the record \
                      and each later one, with a traceback on stderr. Use `FileHandler`, or \
                      `maxBytes=0`.",
            shown: works(
                r#"
                python3 $TOOLS/python_files.py log rotating 2> $LOCAL/said
                grep -q 'PermissionError: .Errno 1' $LOCAL/said
                "#,
                &[("log", Some("seq 7"))],
            ),
        },
    ],
};

#[test]
fn python_appends() {
    check(&PYTHON);
}
