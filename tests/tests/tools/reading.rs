//! Followers, viewers, searches and watches.

use crate::case::{Case, Group, Shown, check, works};

pub const GROUPS: &[Group] = &[FOLLOWERS, SEARCHES];

const FOLLOWERS: Group = Group {
    heading: "Following and watching",
    cases: &[
        Case {
            tool: "tail -f, tail -F, busybox tail -f, less +F",
            does: "follow a file",
            happens: "Each line is shown once and in order, whichever mount it comes from.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/reading.rs: t08_followers_see_every_line_once_and_in_order",
            ),
        },
        Case {
            tool: "tail -F",
            does: "wait for a file that is not there, and follow it",
            happens: "Works, also where the file comes from another mount.",
            shown: works(
                r#"
                tail -n +1 -s 0.1 -F log > $LOCAL/seen 2> $LOCAL/said &
                trap 'stop %1' EXIT
                reach grep 'cannot open' $LOCAL/said
                seq 5 >> $OTHER/log
                reach has_lines $LOCAL/seen 5
                seq 6 9 >> log
                reach has_lines $LOCAL/seen 9
                cmp log $LOCAL/seen
                "#,
                &[("log", Some("seq 9"))],
            ),
        },
        Case {
            tool: "multitail",
            does: "follow files on a terminal",
            happens: "New lines are shown, whichever mount they come from.",
            shown: works(
                r#"
                trap end_terminal EXIT
                seq 5 >> log
                on_terminal 'multitail -u 1 log'
                # It paints when it likes, on a local disk too: lines go on until it does.
                appears() { echo more >> $OTHER/log; sleep 0.1; shows more; }
                reach appears
                "#,
                &[("log", None)],
            ),
        },
        Case {
            tool: "inotifywait",
            does: "wait for appends through the same mount",
            happens: "`MODIFY` is reported, and `CREATE` of a new file.",
            shown: works(
                r#"
                inotifywait -q -m -e create,modify . > $LOCAL/seen 2> $LOCAL/said &
                trap 'stop %1' EXIT
                await() { touch start-$RANDOM; grep -q start $LOCAL/seen; }
                reach await
                rm start-*
                echo one >> log
                echo two >> log
                reach grep 'CREATE log' $LOCAL/seen
                reach grep 'MODIFY log' $LOCAL/seen
                "#,
                &[("log", Some("echo one; echo two"))],
            ),
        },
        Case {
            tool: "poll, select, epoll, cat, grep",
            does: "wait at the end of `.courant/follow/FILE`",
            happens: "They are told of each append.",
            shown: Shown::Elsewhere(
                "mount/tests/kernel.rs: polling_reports_growth_of_the_follow_view",
            ),
        },
    ],
};

const SEARCHES: Group = Group {
    heading: "Viewers, searches and reports",
    cases: &[
        Case {
            tool: "lnav",
            does: "`-n` with filters and SQL",
            happens: "As on a local disk.",
            shown: works(
                r#"
                for n in 1 2 3; do
                    echo "2024-01-01 10:00:0$n ERROR number $n" >> log
                    echo "2024-01-01 10:00:0$n INFO other $n" >> log
                done
                lnav -n -c ':filter-in ERROR' log | cmp - <(grep ERROR log)
                "#,
                &[("log", None)],
            ),
        },
        Case {
            tool: "goaccess",
            does: "a report of a log, and one written to a mount",
            happens: "As on a local disk; a report is a new file.",
            shown: works(
                r#"
                line='127.0.0.1 - - [10/Oct/2024:13:55:36 +0000] "GET /a HTTP/1.1" 200 10 "-" "-"'
                for n in $(seq 20); do
                    echo "$line" >> access.log
                done
                goaccess access.log --log-format=COMBINED --no-progress -o report.json
                grep -q '"total_requests": 20,' report.json
                "#,
                &[("access.log", None), ("report.json", None)],
            ),
        },
        Case {
            tool: "jq",
            does: "write and read `.ndjson`",
            happens: "As on a local disk; the journal's content type is `application/x-ndjson`.",
            shown: works(
                r#"
                seq 300 | jq -c '{ n: . }' >> log.ndjson
                jq .n log.ndjson | cmp - <(seq 300)
                type=$(getfattr --only-values -n user.courant.content-type log.ndjson)
                [ "$type" = application/x-ndjson ]
                "#,
                &[("log.ndjson", None)],
            ),
        },
        Case {
            tool: "ripgrep",
            does: "`--mmap`, `--no-mmap`, a whole tree",
            happens: "As on a local disk.",
            shown: works(
                r#"
                mkdir tree
                seq 20000 >> tree/log
                for map in --mmap --no-mmap; do
                    [ $(rg $map -c 7 tree/log) -eq $(seq 20000 | grep -c 7) ]
                done
                [ $(rg -uuu -l 7777 . | wc -l) -eq 1 ]
                "#,
                &[("tree/log", Some("seq 20000"))],
            ),
        },
        Case {
            tool: "find, grep -r, du, tar c, ls -R",
            does: "walk the tree",
            happens: "They come to an end: the control directory is listed nowhere.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/files.rs: programs_that_walk_the_tree_come_to_an_end",
            ),
        },
        Case {
            tool: "find -newer, du -b, test -nt",
            does: "compare times and sizes",
            happens: "The time is that of the last append, the size that of the journal.",
            shown: works(
                r#"
                echo one >> one
                sleep 0.05
                seq 5 >> two
                [ "$(find . -newer one -type f)" = ./two ]
                [ two -nt one ]
                [ $(du -b two | cut -f 1) -eq 10 ]
                sleep 0.05
                echo more >> one
                [ one -nt two ]
                "#,
                &[("one", Some("echo one; echo more")), ("two", Some("seq 5"))],
            ),
        },
        Case {
            tool: "sendfile, splice, readv, mmap",
            does: "read a file",
            happens: "The same bytes as `read`.",
            shown: Shown::Elsewhere(
                "tests/tests/mount/reading.rs: t09_every_program_reads_to_the_end_and_no_further",
            ),
        },
    ],
};

#[test]
fn followers_and_watchers_are_told() {
    check(&FOLLOWERS);
}

#[test]
fn searches_and_reports_are_as_on_a_local_disk() {
    check(&SEARCHES);
}
