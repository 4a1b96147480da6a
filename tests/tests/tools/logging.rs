//! Daemons that log, what starts them, and what rotates their files.

use crate::case::{Case, Group, check, refused, works};

pub const GROUPS: &[Group] = &[SHIPPERS, ROTATION];

const SHIPPERS: Group = Group {
    heading: "Loggers and shippers",
    cases: &[
        Case {
            tool: "rsyslog, logger",
            does: "`omfile`, and `HUP` to open its files again",
            happens: "Each message is appended, before and after.",
            shown: works(
                r#"
                python3 $TOOLS/rsyslog_conf.py $LOCAL $HERE/log > $LOCAL/conf
                rsyslogd -n -f $LOCAL/conf -i $LOCAL/pid &
                trap 'stop %1' EXIT
                reach test -S $LOCAL/socket
                say() { seq $1 $2 | while read n; do logger -u $LOCAL/socket -t app $n; done; }
                say 1 20
                reach has_lines log 20
                kill -HUP %1
                say 21 40
                reach has_lines log 40
                "#,
                &[("log", Some("seq -f ' %g' 40"))],
            ),
        },
        Case {
            tool: "nginx",
            does: "`access_log` and `error_log`, and `USR1` to open its files again",
            happens: "Each request is a line, of whichever worker, before and after.",
            shown: works(
                r#"
                python3 $TOOLS/nginx_conf.py $LOCAL $HERE > $LOCAL/conf
                nginx -c $LOCAL/conf -e $LOCAL/errors &
                server=$!
                trap 'stop %1' EXIT
                reach test -S $LOCAL/socket
                ask() {
                    seq -f 'http://host/%g' $1 $2 |
                        xargs curl -sS --unix-socket $LOCAL/socket > $LOCAL/out
                }
                ask 1 50
                reach has_lines access.log 50
                kill -USR1 $server
                ask 51 100
                reach has_lines access.log 100
                kill -QUIT $server
                wait $server
                cut -d ' ' -f 7 access.log | sort -V | cmp - <(seq -f '/%g' 100)
                [ $(grep -c 'No such file' error.log) -eq 100 ]
                "#,
                &[("access.log", None), ("error.log", None)],
            ),
        },
        Case {
            tool: "systemd",
            does: "`StandardOutput=append:FILE`",
            happens: "What the service prints is appended. systemd does not run where the tests \
                      do: its open and dup2 are done by `tests/programs/tools/service.py`.",
            shown: works(
                r#"
                for n in 1 3; do
                    python3 $TOOLS/service.py $HERE/log bash -c 'echo $0; echo $(($0 + 1)) >&2' $n
                done
                "#,
                &[("log", Some("seq 4"))],
            ),
        },
    ],
};

const ROTATION: Group = Group {
    heading: "Rotation, which a journal needs none of",
    cases: &[
        Case {
            tool: "logrotate",
            does: "`create`, its default",
            happens: "Refused at its first step, the rename: `EPERM`. Nothing is lost or left \
                      behind, and the logger goes on. It is told so each time: take the file out \
                      of its configuration.",
            shown: refused(
                r#"
                echo kept >> app.log
                rotate $HERE/app.log create
                "#,
                "failed to rename",
                &[("app.log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "logrotate",
            does: "`copytruncate`",
            happens: "It copies the file to `app.log.1`, a journal that stays, and fails to \
                      truncate: `EPERM`. Nothing is lost. The next time it fails before it copies.",
            shown: refused(
                r#"
                echo kept >> app.log
                fails_with 1 rotate $HERE/app.log copytruncate 2> $LOCAL/said
                grep -q 'error truncating' $LOCAL/said
                echo more >> app.log
                rotate $HERE/app.log copytruncate
                "#,
                "error renaming",
                &[("app.log", Some("echo kept; echo more")), ("app.log.1", Some("echo kept"))],
            ),
        },
        Case {
            tool: "logrotate",
            does: "`copy` with `olddir` on a local disk",
            happens: "Works: copies of the whole file, local ones.",
            shown: works(
                r#"
                mkdir $LOCAL/old
                echo kept >> app.log
                for n in 1 2; do
                    rotate $HERE/app.log copy "olddir $LOCAL/old"
                done
                cmp app.log $LOCAL/old/app.log.1
                cmp app.log $LOCAL/old/app.log.2
                "#,
                &[("app.log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "cronolog",
            does: "a file for each day, named by the date",
            happens: "Works: where files of bounded size are wanted, this is how to have them.",
            shown: works(
                r#"
                for from in 1 151; do
                    # It ends with 3 where its input ends.
                    seq $from $((from + 149)) | fails_with 3 cronolog $HERE/%Y/log
                done
                "#,
                &[("????/log", Some("seq 300"))],
            ),
        },
        Case {
            tool: "multilog",
            does: "log to a directory of a mount",
            happens: "It appends to `current` until that has the size at which it rotates; then it \
                      waits for a rename that never succeeds, says so, and reads no more. What it \
                      wrote is there. Use `>>` instead.",
            shown: refused(
                r#"
                seq 2000 > $LOCAL/in
                timeout -s KILL 3 multilog s4096 ./main < $LOCAL/in 2> $LOCAL/said || true
                cmp -n $(stat -c %s main/current) main/current $LOCAL/in
                [ -s main/current ]
                ! grep 'unable to rename' $LOCAL/said >&2
                "#,
                "unable to rename current",
                &[
                    ("main/current", None),
                    ("main/lock", Some("true")),
                    ("main/state", Some("true")),
                ],
            ),
        },
    ],
};

#[test]
fn loggers_append() {
    check(&SHIPPERS);
}

#[test]
fn rotation_is_refused_and_loses_nothing() {
    check(&ROTATION);
}
