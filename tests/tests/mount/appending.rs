//! Appends by shells, Python and dd, through two mounts: cases T01, T02 and T06.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use tests::model::{History, records};
use tests::patience::LIMIT;
use tests::running::Running;
use tests::shell::{self, cat};
use tests::world::Up;
use tests::writer::{Manner, Writer};

#[test]
fn t01_every_program_appends_and_every_mount_sees_it_at_once() {
    let up = Up::start();
    let second = up.second();
    let (one, two) = (up.file("app/log"), second.file("app/log"));
    up.bash("mkdir -p app", &[]).ok();
    let python = "import sys; open(sys.argv[1], 'a').write(sys.argv[2] + '\\n')";
    // Case: each way to append, through the one mount and the other, and what it adds.
    let ways = [
        (&one, "echo one >> \"$1\"", "one\n"),
        (&one, "echo two >> \"$1\"", "two\n"),
        (&two, "echo three >> \"$1\"", "three\n"),
        (&one, "python3 -c \"$2\" \"$1\" four", "four\n"),
        (&two, "python3 -c \"$2\" \"$1\" five", "five\n"),
        (&one, "echo six | dd of=\"$1\" oflag=append conv=notrunc status=none", "six\n"),
        (&two, "echo seven | dd of=\"$1\" oflag=append conv=notrunc status=none", "seven\n"),
        (&two, "echo eight | tee -a \"$1\" > /dev/null", "eight\n"),
        (&one, "busybox sh -c 'echo nine >> \"$0\"' \"$1\"", "nine\n"),
        (&one, "(echo ten; echo eleven) >> \"$1\"", "ten\neleven\n"),
        (&two, "printf no-newline >> \"$1\"; printf '\\n' >> \"$1\"", "no-newline\n"),
    ];
    let mut expected = String::new();
    for (file, line, adds) in ways {
        shell::bash(Path::new("/"), line, &[file.to_str().unwrap(), python]).ok();
        expected.push_str(adds);
        for mount in [&one, &two] {
            let seen = String::from_utf8(cat(mount)).unwrap();
            assert_eq!(seen, expected, "after {line}, through {}", mount.display());
        }
    }
    let sums = "printf %s \"$3\" | sha256sum; for f in \"$1\" \"$2\"; do sha256sum < \"$f\"; done";
    let arguments = [one.to_str().unwrap(), two.to_str().unwrap(), &expected];
    let sums = shell::bash(Path::new("/"), sums, &arguments).ok().text();
    let mut sums: Vec<&str> = sums.lines().collect();
    assert_eq!(sums.len(), 3);
    sums.dedup();
    assert_eq!(sums.len(), 1, "the sums differ: {sums:?}");
}

/// For each writer's tag its numbers, in the journal's order.
fn numbers(journal: &[u8]) -> BTreeMap<String, Vec<u64>> {
    let mut numbers: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for line in std::str::from_utf8(journal).unwrap().lines() {
        let (tag, number) = line.split_once(' ').unwrap_or_else(|| panic!("torn: {line:?}"));
        numbers.entry(tag.into()).or_default().push(number.parse().unwrap());
    }
    numbers
}

#[test]
fn t02_lines_of_two_mounts_are_all_there_once_and_in_order() {
    const ALTERNATING: u64 = 200;
    const LINES: u64 = 1000;
    let up = Up::start();
    let second = up.second();
    let (one, two) = (up.file("log"), second.file("log"));
    let (one, two) = (one.to_str().unwrap(), two.to_str().unwrap());

    let turns = "for i in $(seq 1 $3); do echo one $i >> \"$1\"; echo two $i >> \"$2\"; done";
    shell::bash(Path::new("/"), turns, &[one, two, &ALTERNATING.to_string()]).ok();
    let alone = "for i in $(seq $3 $4); do echo $2 $i >> \"$1\"; done";
    let start = |file: &str, tag: &str| {
        let (first, last) = ((ALTERNATING + 1).to_string(), LINES.to_string());
        Running::start(Command::new("bash").args(["-c", alone, "bash", file, tag, &first, &last]))
    };
    for mut writer in [start(one, "one"), start(two, "two")] {
        assert!(writer.wait(2 * LIMIT).success(), "{}", writer.stderr());
    }

    let expected: Vec<u64> = (1..=LINES).collect();
    let seen = cat(Path::new(one));
    assert!(seen.starts_with(b"one 1\ntwo 1\none 2\ntwo 2\n"));
    let numbers = numbers(&seen);
    assert_eq!(numbers.len(), 2);
    assert_eq!(numbers["one"], expected);
    assert_eq!(numbers["two"], expected);
    assert!(seen == cat(Path::new(two)), "the mounts differ");
}

#[test]
fn t02_writes_of_every_size_stay_whole_between_two_mounts() {
    // The most that one write(2) is sure to append whole, whatever its place in a page.
    const WHOLE_MAX: usize = 1_044_480;
    // The longest head of a record: two digits of a number at the most.
    let head = b"<4 12 1044480>\n".len();
    let up = Up::start();
    let second = up.second();
    // Case: within a page, about a page, over the pipe and buffer sizes of shells, at the limit.
    for (case, fill) in [1, 4000, 16_385, 131_072, WHOLE_MAX - head].into_iter().enumerate() {
        let name = format!("log-{fill}");
        let count = if fill > 100_000 { 12 } else { 100 };
        let manner = Manner { count: Some(count), fill, ..Manner::default() };
        let mut history = History::new();
        let files = [up.file(&name), second.file(&name), up.file(&name), second.file(&name)];
        let writers: Vec<Writer> =
            (1..).zip(&files).map(|(id, file)| Writer::start(file, id, 1, manner)).collect();
        for writer in writers {
            writer.finish(&mut history);
        }
        let seen = cat(&files[0]);
        history.check(&seen).unwrap_or_else(|wrong| panic!("case {case}, fill {fill}: {wrong}"));
        assert_eq!(records(&seen).unwrap().len(), 4 * usize::try_from(count).unwrap());
        assert!(seen == cat(&files[1]), "the mounts differ for fill {fill}");
    }
}

#[test]
fn t02_a_writev_of_128_small_segments_stays_whole_between_two_mounts() {
    let up = Up::start();
    let second = up.second();
    let files = [up.file("log"), second.file("log"), up.file("log"), second.file("log")];
    let further = ["--segments=128"];
    let manner = Manner { count: Some(200), fill: 5000, further: &further, ..Manner::default() };
    let writers: Vec<Writer> =
        (1..).zip(&files).map(|(id, file)| Writer::start(file, id, 1, manner)).collect();
    let mut history = History::new();
    for writer in writers {
        writer.finish(&mut history);
    }
    history.check(&cat(&files[0])).unwrap_or_else(|wrong| panic!("{wrong}"));
}

#[test]
fn t04_each_answer_to_a_large_write_is_one_append() {
    const LEN: usize = 4 << 20;
    let up = Up::start();
    let second = up.second();
    let start = |file: &Path, letter: &str| {
        let mut command = shell::python("large_writes.py");
        Running::start(command.arg(file).args([letter, &LEN.to_string(), "10"]))
    };
    let mut writers = [start(&up.file("log"), "a"), start(&second.file("log"), "b")];
    let mut written: Vec<(u8, usize)> = Vec::new();
    for (letter, writer) in (b'a'..).zip(&mut writers) {
        assert!(writer.wait(2 * LIMIT).success(), "{}", writer.stderr());
        let said = String::from_utf8(writer.stdout()).unwrap();
        written.extend(said.lines().map(|line| (letter, line.parse::<usize>().unwrap())));
    }
    // Case: 4 MiB are four answers at the limit and one of 4 pages.
    assert!(written.iter().all(|(_, len)| [1_044_480, 16_384].contains(len)), "{written:?}");
    // The journal is cut into what was answered, in some order: no answer is torn by another.
    let seen = cat(&up.file("log"));
    assert_eq!(seen.len(), 20 * LEN);
    let mut rest = seen.as_slice();
    let mut next = [0, 0];
    let answers = |letter: u8| -> Vec<usize> {
        written.iter().filter(|(of, _)| *of == letter).map(|(_, len)| *len).collect()
    };
    let answers = [answers(b'a'), answers(b'b')];
    while let Some(letter) = rest.first() {
        let of = usize::from(letter - b'a');
        let len = answers[of][next[of]];
        next[of] += 1;
        let (whole, after) = rest.split_at_checked(len).unwrap();
        assert!(whole.iter().all(|byte| byte == letter), "torn at {}", seen.len() - rest.len());
        rest = after;
    }
    assert!(seen == cat(&second.file("log")), "the mounts differ");
}

#[test]
fn t06_writes_without_append_go_to_the_head_or_nowhere() {
    let up = Up::start();
    let second = up.second();
    let (one, two) = (up.file("log"), second.file("log"));
    up.bash("echo old > log", &[]).ok();
    let ran = shell::run(shell::python("offsets.py").args([&one, &two]), LIMIT).ok();
    let outcomes = [
        ("seek-end", "9"),
        ("go-on", "6"),
        ("late-append", "12"),
        ("first-at-head", "14"),
        // The head has moved on: below it is nothing to be written.
        ("second-at-head", "EPERM"),
        ("same-mount", "EPERM"),
        ("at-zero", "EPERM"),
        ("beyond", "EINVAL"),
        ("far-beyond", "EINVAL"),
        ("truncate", "EPERM"),
        ("open-truncate", "EPERM"),
        ("open-truncate-append", "EPERM"),
        ("allocate", "EPERM"),
        ("rename", "EPERM"),
        ("link", "EPERM"),
        ("unlink", "EPERM"),
        ("both-ways", "10"),
        // The kernel tells nothing of RWF_APPEND: it is a write where it believes the end to be.
        ("append-flag", "12"),
        ("append-flag-late", "EPERM"),
    ];
    let expected: Vec<String> = outcomes.map(|(name, outcome)| format!("{name} {outcome}")).into();
    let text = ran.text();
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    let journal = "old\nseek-end\ngo-on\nlate-append\nfirst-at-head\nboth-ways\n\
                   append-flag\nelsewhere\n";
    for file in [&one, &two] {
        assert_eq!(String::from_utf8(cat(file)).unwrap(), journal);
    }
}

#[test]
fn t06_programs_that_would_change_old_bytes_fail_and_leave_nothing_behind() {
    let up = Up::start();
    let second = up.second();
    up.bash("echo kept >> log; printf 'new\\n' > \"$1\"", &["/dev/null"]).ok();
    // Case: each program fails at its first step, and says so.
    let lines = [
        "echo gone > log",
        "cp /etc/passwd log",
        "sed -i s/kept/gone/ log",
        "rsync --whole-file /etc/passwd log",
        "mv log other",
        "ln log other",
        "rm -f log",
        "truncate -s 0 log",
        "dd if=/dev/zero of=log bs=1 count=1 conv=notrunc status=none",
        "python3 -c 'import os; os.replace(\"log\", \"other\")'",
    ];
    for line in lines {
        let ran = up.bash(line, &[]);
        assert!(ran.code.is_some_and(|code| code != 0), "{line} succeeded");
        assert!(!ran.stderr.is_empty(), "{line} said nothing");
        assert_eq!(up.bash("ls -A", &[]).ok().text(), "log", "after {line}");
    }
    assert_eq!(cat(&second.file("log")), b"kept\n");
}
