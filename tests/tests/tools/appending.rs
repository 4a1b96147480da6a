//! Shells, pipes and downloads: programs that write their output to a file.

use crate::case::{Case, Group, Shown, check, refused, works};

pub const GROUPS: &[Group] = &[SHELLS, PIPES, DOWNLOADS];

const SHELLS: Group = Group {
    heading: "Shells and their redirections",
    cases: &[
        Case {
            tool: "bash, busybox, dd, tee, python3",
            does: "append a line",
            happens: "It is there at once, on every mount.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/appending.rs: \
                 t01_every_program_appends_and_every_mount_sees_it_at_once",
            ),
        },
        Case {
            tool: "any program",
            does: "a `write` of up to 1,044,480 bytes, at the same time as others",
            happens: "It is there whole; a larger one is answered short, and goes on.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/appending.rs: \
                 t02_writes_of_every_size_stay_whole_between_two_mounts",
            ),
        },
        Case {
            tool: "bash",
            does: "`cmd > FILE`, a new file",
            happens: "Works, once.",
            shown: works("seq 300 > log", &[("log", Some("seq 300"))]),
        },
        Case {
            tool: "bash",
            does: "`cmd > FILE`, a file with bytes",
            happens: "`EPERM`: `>>` is what appends.",
            shown: refused(
                r#"
                echo kept >> log
                echo gone > log
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "bash",
            does: "`set -o noclobber`",
            happens: "As on a local disk: `>` makes new files only.",
            shown: refused(
                r#"
                set -o noclobber
                echo kept > log
                echo gone > log
                "#,
                "cannot overwrite existing file",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "cat",
            does: "`cat FILE >> FILE`",
            happens: "Refused as on a local disk: `input file is output file`.",
            shown: refused(
                r#"
                echo kept >> log
                cat log >> log
                "#,
                "input file is output file",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "xargs -P",
            does: "eight shells `>>` one file, on two mounts",
            happens: "Each line is there once and whole.",
            shown: works(
                r#"
                append='echo $1 >> $HERE/log; echo $1 >> $OTHER/log'
                seq 200 | xargs -P 8 -I N bash -c "$append" - N
                (seq 200; seq 200) | sort | cmp - <(sort log)
                "#,
                &[("log", None)],
            ),
        },
        Case {
            tool: "GNU parallel",
            does: "eight jobs `>>` one file",
            happens: "Each line is there once and whole.",
            shown: works(
                r#"
                seq 100 | parallel --will-cite -j 8 'echo {} >> log'
                sort -n log | cmp - <(seq 100)
                "#,
                &[("log", None)],
            ),
        },
        Case {
            tool: "dd",
            does: "`oflag=append conv=notrunc`",
            happens: "Appends.",
            shown: works(
                r#"
                for block in 512 64K; do
                    seq 2000 | dd of=log bs=$block oflag=append conv=notrunc status=none
                done
                "#,
                &[("log", Some("seq 2000; seq 2000"))],
            ),
        },
        Case {
            tool: "dd",
            does: "without `conv=notrunc`, or to a place in the file",
            happens: "`EPERM`, unless the file is new.",
            shown: refused(
                r#"
                echo kept | dd of=log status=none
                echo x | fails_with 1 dd of=log status=none
                echo x | dd of=log bs=1 conv=notrunc status=none
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "dd",
            does: "`oflag=direct`, `iflag=direct`",
            happens: "Works, whatever the size of the blocks.",
            shown: works(
                r#"
                seq 2000 | dd of=log bs=4096 iflag=fullblock oflag=direct status=none
                dd if=log bs=4096 iflag=direct status=none | cmp - <(seq 2000)
                "#,
                &[("log", Some("seq 2000"))],
            ),
        },
    ],
};

const PIPES: Group = Group {
    heading: "Pipes and recorders",
    cases: &[
        Case {
            tool: "tee -a",
            does: "append to several files",
            happens: "Works. Without `-a` it is `EPERM` for a file with bytes.",
            shown: refused(
                r#"
                seq 5 | tee -a one two > $LOCAL/out
                seq 6 9 | tee -a one two > $LOCAL/out
                echo gone | tee one
                "#,
                "Operation not permitted",
                &[("one", Some("seq 9")), ("two", Some("seq 9"))],
            ),
        },
        Case {
            tool: "sponge",
            does: "write a new file",
            happens: "Works.",
            shown: works("seq 300 | sponge log", &[("log", Some("seq 300"))]),
        },
        Case {
            tool: "sponge, sponge -a",
            does: "write to a file with bytes",
            happens: "`EPERM`: both write the whole file anew. Its input is gone; \
                      the file is as it was.",
            shown: refused(
                r#"
                echo kept >> log
                echo more | fails_with 1 sponge log
                echo more | sponge -a log
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "ts, pv",
            does: "pass lines on to `>>`",
            happens: "Works.",
            shown: works(
                r#"
                seq 300 | ts '%Y' | cut -d ' ' -f 2 >> log
                seq 301 600 > $LOCAL/more
                pv -q $LOCAL/more >> log
                pv -q log | cmp - <(seq 600)
                "#,
                &[("log", Some("seq 600"))],
            ),
        },
        Case {
            tool: "gawk, mawk",
            does: "`print >> FILE`",
            happens: "Appends. `print > FILE` is `EPERM` for a file with bytes.",
            shown: refused(
                r#"
                seq 3 | gawk '{ print >> "log" }'
                seq 4 6 | mawk '{ print >> "log"; close("log") }'
                fails_with 2 mawk 'BEGIN { print "gone" > "log" }'
                gawk 'BEGIN { print "gone" > "log" }'
                "#,
                "Operation not permitted",
                &[("log", Some("seq 6"))],
            ),
        },
        Case {
            tool: "socat",
            does: "`OPEN:FILE,creat,append`",
            happens: "Appends.",
            shown: works(
                r#"
                seq 5 | socat -u - OPEN:log,creat,append
                seq 6 9 | socat -u - OPEN:log,append
                "#,
                &[("log", Some("seq 9"))],
            ),
        },
        Case {
            tool: "script, script -a",
            does: "record a session",
            happens: "A new file takes one session, with `-a` any file takes more.",
            shown: works(
                r#"
                script -q -c 'echo one' log > $LOCAL/out
                script -q -a -c 'echo two' log > $LOCAL/out
                [ $(grep -Ec '^(one|two).$' log) -eq 2 ]
                "#,
                &[("log", None)],
            ),
        },
        Case {
            tool: "strace -o",
            does: "trace to a file",
            happens: "A new file takes one trace; with `-A` any file takes more.",
            shown: refused(
                r#"
                strace -o log true
                strace -A -o log true
                [ $(grep -c 'exited with 0' log) -eq 2 ]
                strace -o log true
                "#,
                "Operation not permitted",
                &[("log", None)],
            ),
        },
        Case {
            tool: "tmux",
            does: "`pipe-pane \"cat >> FILE\"`",
            happens: "What the pane shows is appended as it comes.",
            shown: works(
                r#"
                trap end_terminal EXIT
                on_terminal 'until [ -e go ]; do sleep 0.05; done; seq 5; sleep 60'
                mux pipe-pane "cat >> $HERE/log"
                echo >> go
                reach has_lines log 5
                tr -d '\r' < log | cmp - <(seq 5)
                "#,
                &[("go", None), ("log", None)],
            ),
        },
    ],
};

const DOWNLOADS: Group = Group {
    heading: "Downloads",
    cases: &[
        Case {
            tool: "curl -o, wget -O",
            does: "download to a new file",
            happens: "Works.",
            shown: works(
                r#"
                seq 2000 > $LOCAL/file
                python3 $TOOLS/served.py $LOCAL > $LOCAL/port &
                trap 'stop %1' EXIT
                reach has_lines $LOCAL/port 1
                url=http://127.0.0.1:$(cat $LOCAL/port)/file
                curl -sS -o one $url
                wget -nv -O two $url
                "#,
                &[("one", Some("seq 2000")), ("two", Some("seq 2000"))],
            ),
        },
        Case {
            tool: "curl -C - -o, wget -c",
            does: "go on with a part of a file",
            happens: "The rest is appended.",
            shown: works(
                r#"
                seq 2000 > $LOCAL/file
                python3 $TOOLS/served.py $LOCAL > $LOCAL/port &
                trap 'stop %1' EXIT
                reach has_lines $LOCAL/port 1
                url=http://127.0.0.1:$(cat $LOCAL/port)/file
                seq 20 >> one
                seq 20 >> file
                curl -sS -C - -o one file://$LOCAL/file
                wget -nv -c $url
                "#,
                &[("one", Some("seq 2000")), ("file", Some("seq 2000"))],
            ),
        },
        Case {
            tool: "curl -o, wget -O",
            does: "download over a file with bytes",
            happens: "`EPERM`; the file is as it was.",
            shown: refused(
                r#"
                echo kept >> log
                echo gone > $LOCAL/file
                fails_with 23 curl -sS -o log file://$LOCAL/file
                wget -nv -O log http://127.0.0.1:1/
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
    ],
};

#[test]
fn shells_append() {
    check(&SHELLS);
}

#[test]
fn pipes_and_recorders_append() {
    check(&PIPES);
}

#[test]
fn downloads_are_new_files_or_the_rest_of_one() {
    check(&DOWNLOADS);
}
