//! Editors, databases and version control: programs that would change what is there.

use crate::case::{Case, Group, check, refused, works};

pub const GROUPS: &[Group] = &[EDITORS, KEEPERS];

const EDITORS: Group = Group {
    heading: "Editors",
    cases: &[
        Case {
            tool: "vim",
            does: "`:w` of a journal that it has open",
            happens: "Refused: `E514`. Nothing is left behind, and the journal is as it was, \
                      whatever vim's warning says.",
            shown: refused(
                r#"
                echo kept >> log
                vi -u NONE -V1 -es -c '%s/kept/gone/' -c 'wq!' log
                "#,
                "E514",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "vim",
            does: "`:w NEW`, `:w >> FILE`, `:view FILE`",
            happens: "Works.",
            shown: works(
                r#"
                seq 5 > $LOCAL/file
                vi -u NONE -es -c 'w new' -c 'w >> new' -c 'q!' $LOCAL/file
                vi -u NONE -R -es -c '%p' -c 'q!' new | cmp - <(seq 5; seq 5)
                "#,
                &[("new", Some("seq 5; seq 5"))],
            ),
        },
        Case {
            tool: "ed",
            does: "`w` of a journal that it has open",
            happens: "`EPERM`; the journal is as it was. `W`, which appends, works.",
            shown: refused(
                r#"
                echo kept >> log
                seq 5 > $LOCAL/file
                printf 'W log\nq\n' | ed -s $LOCAL/file
                printf 's/^/not /\nw\nq\n' | ed -s log > $LOCAL/out
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept; seq 5"))],
            ),
        },
        Case {
            tool: "nano",
            does: "write a journal that it has open",
            happens: "`EPERM`, and the journal is as it was.",
            shown: works(
                r#"
                echo kept >> log
                trap end_terminal EXIT
                on_terminal 'nano --ignorercfiles log'
                reach shows 'Read 1 line'
                mux send-keys gone C-o Enter
                reach shows 'Error writing log: Operation not permitted'
                mux send-keys C-x n
                reach has_ended
                "#,
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "sed -i, sed -i.bak",
            does: "edit in place",
            happens: "`EPERM` at its first step, a temporary file; nothing is left behind.",
            shown: refused(
                r#"
                echo kept >> log
                fails_with 4 sed -i s/kept/gone/ log
                sed -i.bak s/kept/gone/ log
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
        Case {
            tool: "sed",
            does: "`w FILE`",
            happens: "Works for a new file.",
            shown: works("seq 5 | sed -n 'w log'", &[("log", Some("seq 5"))]),
        },
        Case {
            tool: "perl -i",
            does: "edit in place",
            happens: "`EPERM` at its last step, the rename. The journal is as it was; the edited \
                      copy stays behind as `XX??????`.",
            shown: refused(
                r#"
                echo kept >> log
                perl -i -pe 's/kept/edited/' log
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept")), ("XX??????", Some("echo edited"))],
            ),
        },
        Case {
            tool: "busybox sed -i",
            does: "edit in place",
            happens: "`EPERM` at its last step, the rename. The journal is as it was; the edited \
                      copy stays behind as `NAME??????`.",
            shown: refused(
                r#"
                echo kept >> log
                busybox sed -i s/kept/edited/ log
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept")), ("log??????", Some("echo edited"))],
            ),
        },
        Case {
            tool: "gawk -i inplace",
            does: "edit in place",
            happens: "Refused: `EPERM` for its work file. Nothing stays behind.",
            shown: refused(
                r#"
                echo kept >> log
                gawk -i inplace '{ print "edited" }' log
                "#,
                "Operation not permitted",
                &[("log", Some("echo kept"))],
            ),
        },
    ],
};

const KEEPERS: Group = Group {
    heading: "Databases and version control",
    cases: &[
        Case {
            tool: "sqlite3",
            does: "`.import FILE`",
            happens: "As from a local disk.",
            shown: works(
                r#"
                seq -f '%g,row' 300 >> rows.csv
                sqlite3 $LOCAL/db '.mode csv' 'create table t (n, text)' '.import rows.csv t'
                [ $(sqlite3 $LOCAL/db 'select count(*) from t') -eq 300 ]
                "#,
                &[("rows.csv", Some("seq -f '%g,row' 300"))],
            ),
        },
        Case {
            tool: "sqlite3",
            does: "`.output FILE`, `.once FILE`",
            happens: "Works for a new file. For one with bytes it says that it can't open it; \
                      `.output` to a pipe (`cat >> FILE`), or `>>` in the shell, appends.",
            shown: refused(
                r#"
                sqlite3 $LOCAL/db 'create table t (n)' 'insert into t values (1), (2)'
                query='select n from t'
                sqlite3 $LOCAL/db '.output one' "$query"
                sqlite3 $LOCAL/db '.once two' "$query"
                sqlite3 $LOCAL/db '.output |cat >> two' "$query"
                sqlite3 $LOCAL/db '.output one' "$query"
                "#,
                "cannot open",
                &[("one", Some("seq 2")), ("two", Some("seq 2; seq 2"))],
            ),
        },
        Case {
            tool: "sqlite3",
            does: "a database in a mount",
            happens: "Refused: `disk I/O error`. An empty database and a `-journal` of 512 bytes \
                      stay behind.",
            shown: refused(
                "sqlite3 db 'create table t (n)'",
                "disk I/O error",
                &[("db", Some("true")), ("db-journal", None)],
            ),
        },
        Case {
            tool: "git init, git clone",
            does: "a repository in a mount",
            happens: "Refused: `EPERM` for the directory `.git`. Nothing stays behind but an empty \
                      directory.",
            shown: refused(
                "git init -q repository",
                "repository/.git: Operation not permitted",
                &[],
            ),
        },
        Case {
            tool: "git add, git commit, git diff",
            does: "files of a mount, with the repository elsewhere (`GIT_DIR`)",
            happens: "Works. `git checkout` of an older state is `EPERM`, and the files are as \
                      they were.",
            shown: refused(
                r#"
                export GIT_DIR=$LOCAL/git GIT_WORK_TREE=$HERE
                git init -q
                seq 5 >> log
                git add log
                git -c user.name=name -c user.email=mail commit -q -m first
                seq 6 9 >> log
                [ $(git diff | grep -c '^+[0-9]') -eq 4 ]
                git checkout -q log
                "#,
                "Operation not permitted",
                &[("log", Some("seq 9"))],
            ),
        },
    ],
};

#[test]
fn editors_are_refused() {
    check(&EDITORS);
}

#[test]
fn databases_and_repositories_are_refused() {
    check(&KEEPERS);
}
