//! Archives, compression, and programs that cut or sort files.

use crate::case::{Case, Group, check, refused, works};

pub const GROUPS: &[Group] = &[ARCHIVES, SORTING];

const ARCHIVES: Group = Group {
    heading: "Archives and compression",
    cases: &[
        Case {
            tool: "tar x",
            does: "unpack new files",
            happens: "Works. For files that are there it is `EEXIST`, and they are as they were; \
                      `--skip-old-files` passes them over.",
            shown: refused(
                r#"
                seq 2000 > $LOCAL/one
                seq 5 > $LOCAL/two
                tar -cf $LOCAL/tar -C $LOCAL one two
                tar -xf $LOCAL/tar
                tar -xf $LOCAL/tar --skip-old-files
                tar -xf $LOCAL/tar
                "#,
                "File exists",
                &[("one", Some("seq 2000")), ("two", Some("seq 5"))],
            ),
        },
        Case {
            tool: "tar c",
            does: "make an archive in a mount, of files of it",
            happens: "Works, once.",
            shown: works(
                r#"
                seq 2000 >> log
                tar -cf log.tar log
                tar -xOf log.tar | cmp - log
                tar -czf log.tgz log
                tar -xzOf log.tgz | cmp - log
                "#,
                &[("log", Some("seq 2000")), ("log.tar", None), ("log.tgz", None)],
            ),
        },
        Case {
            tool: "tar r",
            does: "add to an archive in a mount",
            happens: "`EPERM`, since it writes over the end mark; the archive is as it was.",
            shown: refused(
                r#"
                seq 5 >> log
                tar -cf log.tar log
                cp log.tar $LOCAL
                tar -rf log.tar log || { cmp log.tar $LOCAL/log.tar && false; }
                "#,
                "Operation not permitted",
                &[("log", Some("seq 5")), ("log.tar", None)],
            ),
        },
        Case {
            tool: "gzip, xz, zstd, bzip2",
            does: "`-c` to `>>`",
            happens: "Appends a member; all of them are read as one.",
            shown: works(
                r#"
                for with in gzip xz zstd bzip2; do
                    for to in 1,100 101,2000; do
                        seq ${to%,*} ${to#*,} | $with -c >> log.$with
                    done
                    $with -dc < log.$with | cmp - <(seq 2000)
                done
                "#,
                &[("log.gzip", None), ("log.xz", None), ("log.zstd", None), ("log.bzip2", None)],
            ),
        },
        Case {
            tool: "gzip -k, xz -k, zstd",
            does: "compress a file of a mount, and keep it",
            happens: "Works, once.",
            shown: works(
                r#"
                seq 2000 >> log
                gzip -k log
                xz -k log
                zstd -q log
                zcat log.gz | cmp - log
                xz -dc log.xz | cmp - log
                zstd -qdc log.zst | cmp - log
                "#,
                &[("log", Some("seq 2000")), ("log.gz", None), ("log.xz", None), ("log.zst", None)],
            ),
        },
        Case {
            tool: "gzip, xz, zstd --rm",
            does: "compress a file of a mount, and remove it",
            happens: "The compressed file is made and the journal stays: `EPERM`, unless the mount \
                      has `--allow-delete`. xz and zstd tell so and end with 0.",
            shown: refused(
                r#"
                seq 2000 >> log
                xz log 2> $LOCAL/said || true
                zstd -q --rm log 2>> $LOCAL/said || true
                [ $(grep -c 'Operation not permitted' $LOCAL/said) -eq 2 ]
                xz -dc log.xz | cmp - log
                gzip log || { zcat log.gz | cmp - log && false; }
                "#,
                "Operation not permitted",
                &[("log", Some("seq 2000")), ("log.gz", None), ("log.xz", None), ("log.zst", None)],
            ),
        },
        Case {
            tool: "xz -d, zstd -d",
            does: "decompress to a mount what holds long runs of zeros",
            happens: "`EINVAL`, since they make holes, by `>>` too; `--no-sparse`, or a pipe \
                      through `cat`, writes the zeros.",
            shown: refused(
                r#"
                head -c 1M /dev/zero > $LOCAL/zeros
                xz -k $LOCAL/zeros
                zstd -q $LOCAL/zeros
                xz -dc --no-sparse $LOCAL/zeros.xz >> one
                zstd -qd --no-sparse $LOCAL/zeros.zst -o two
                xz -dc $LOCAL/zeros.xz | cat >> three
                fails_with 1 zstd -qd $LOCAL/zeros.zst -o four
                xz -dc $LOCAL/zeros.xz >> five
                "#,
                "Invalid argument",
                &[
                    ("one", Some("cat zeros")),
                    ("two", Some("cat zeros")),
                    ("three", Some("cat zeros")),
                    ("five", Some("true")),
                ],
            ),
        },
    ],
};

const SORTING: Group = Group {
    heading: "Cutting, sorting, comparing",
    cases: &[
        Case {
            tool: "split, csplit",
            does: "cut a file into new ones",
            happens: "Works; a second time it is `EPERM`.",
            shown: refused(
                r#"
                seq 1000 > $LOCAL/file
                split -l 500 $LOCAL/file part-
                csplit -s $LOCAL/file 501
                split -l 500 $LOCAL/file part-
                "#,
                "Operation not permitted",
                &[
                    ("part-aa", Some("seq 500")),
                    ("part-ab", Some("seq 501 1000")),
                    ("xx00", Some("seq 500")),
                    ("xx01", Some("seq 501 1000")),
                ],
            ),
        },
        Case {
            tool: "sort -o",
            does: "to a new file",
            happens: "Works. Over a file with bytes it is `EPERM`, and the file is as it was.",
            shown: refused(
                r#"
                seq 1000 | shuf | sort -n -o log
                sort -r -o log log
                "#,
                "Operation not permitted",
                &[("log", Some("seq 1000"))],
            ),
        },
        Case {
            tool: "sort -m, comm, join, diff, cmp",
            does: "read several files of a mount",
            happens: "As on a local disk.",
            shown: works(
                r#"
                seq 10 2 30 >> one
                seq 11 2 30 >> two
                sort -m one two | cmp - <(seq 10 30)
                [ $(comm -3 one two | wc -l) -eq 21 ]
                [ -z "$(join one two)" ]
                fails_with 1 cmp -s one two
                fails_with 1 diff one two > $LOCAL/out
                cmp one $OTHER/one
                diff one $OTHER/one
                "#,
                &[("one", Some("seq 10 2 30")), ("two", Some("seq 11 2 30"))],
            ),
        },
        Case {
            tool: "tac, shuf, tail, nl, rev, od, wc",
            does: "read a file from its end, its middle, or twice",
            happens: "As on a local disk.",
            shown: works(
                r#"
                seq 3000 >> log
                seq 3000 > $LOCAL/log
                tac log | cmp - <(seq 3000 -1 1)
                shuf log | sort -n | cmp - log
                rev log | rev | cmp - log
                for with in 'tail -n 3' 'tail -c 5' 'head -n -2998' nl od wc; do
                    $with log | cmp - <(cd $LOCAL; $with log)
                done
                "#,
                &[("log", Some("seq 3000"))],
            ),
        },
        Case {
            tool: "sha256sum -c",
            does: "check sums that are a file of the mount",
            happens: "As on a local disk.",
            shown: works(
                r#"
                seq 1000 >> log
                sha256sum log > SUMS
                sha256sum -c SUMS
                cd $OTHER
                sha256sum -c SUMS
                "#,
                &[("SUMS", None), ("log", Some("seq 1000"))],
            ),
        },
    ],
};

#[test]
fn archives_and_compressed_files_are_new_or_appended_to() {
    check(&ARCHIVES);
}

#[test]
fn files_are_cut_and_sorted_into_new_ones() {
    check(&SORTING);
}
