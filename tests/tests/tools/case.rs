//! One row of the table, what shows that it is true, and the ground that its line runs on.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;
use tests::ground;
use tests::patience::LIMIT;
use tests::shell::{self, Ran};
use tests::world::Up;

/// Rows of one kind, under a heading of their own.
#[derive(Debug, Clone, Copy)]
pub struct Group {
    pub heading: &'static str,
    pub cases: &'static [Case],
}

/// What a user may do with a program on a mount, and what comes of it.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The program, by the name of its command.
    pub tool: &'static str,
    pub does: &'static str,
    /// One sentence or two, for who reads the table.
    pub happens: &'static str,
    pub shown: Shown,
}

/// What shows that a row is true.
#[derive(Debug, Clone, Copy)]
pub enum Shown {
    /// A line of bash, in a directory of its own on a mount. `programs/tools/ground.sh` says what
    /// it finds there.
    By(Line),
    /// A test of this repository: its file and its function, as docs/SEMANTICS.md names them.
    Elsewhere(&'static str),
}

/// A line of bash and what must be true after it.
#[derive(Debug, Clone, Copy)]
pub struct Line {
    line: &'static str,
    ends: Ends,
    holds: Holds,
}

/// How a line ends.
#[derive(Debug, Clone, Copy)]
enum Ends {
    Well,
    /// With any other code than 0, and this text in what it says.
    Refused(&'static str),
}

/// Every file that is there afterwards, by its name or a pattern of the shell, and a line of bash
/// that prints its bytes: both mounts must have them. With `None` the line itself has looked at
/// the bytes, and the mounts must agree.
pub type Holds = &'static [(&'static str, Option<&'static str>)];

/// The line succeeds.
pub const fn works(line: &'static str, holds: Holds) -> Shown {
    Shown::By(Line { line, ends: Ends::Well, holds })
}

/// The line fails, and says this.
pub const fn refused(line: &'static str, says: &'static str, holds: Holds) -> Shown {
    Shown::By(Line { line, ends: Ends::Refused(says), holds })
}

/// Runs the lines of a group, and fails with all that is not as their rows say. They run on the
/// mount of `up`, or on that of a broker elsewhere with `REMOTE=1`, and are looked at through both.
#[track_caller]
pub fn check(group: &Group) {
    let up = Up::start();
    let second = up.second();
    let [here, other] = match ground::number("REMOTE", 0) {
        0 => [up.mount().path(), second.mount().path()],
        _ => [second.mount().path(), up.mount().path()],
    };
    let mut wrong = Vec::new();
    for (at, case) in group.cases.iter().enumerate() {
        let Shown::By(line) = case.shown else { continue };
        if let Err(what) = Place::new(here, other, at).check(&line) {
            wrong.push(format!("{}, {}: {what}\n  after: {}", case.tool, case.does, line.line));
        }
    }
    assert!(wrong.is_empty(), "{} rows are not true:\n{}", wrong.len(), wrong.join("\n"));
}

/// The ground of one line: a directory as two mounts show it, and a folder beside them.
struct Place {
    here: PathBuf,
    other: PathBuf,
    local: TempDir,
}

impl Place {
    fn new(here: &Path, other: &Path, at: usize) -> Place {
        let [here, other] = [here, other].map(|mount| mount.join(format!("case-{at}")));
        // A directory that was made lasts with its mount, and shows on no other.
        for made in [&here, &other] {
            std::fs::create_dir(made).unwrap();
        }
        // Elsewhere than the other folders of tests: a socket's path has at most 107 bytes.
        let local = tempfile::Builder::new().prefix("tools-").tempdir().unwrap();
        Place { here, other, local }
    }

    fn check(&self, line: &Line) -> Result<(), String> {
        let ran = self.run(&self.here, line.line);
        if let Some(package) = missing(&ran.stderr) {
            return Err(format!("{package}: {}", ran.stderr));
        }
        let is_as_said = match line.ends {
            Ends::Well => ran.code == Some(0),
            Ends::Refused(says) => {
                ran.code.is_some_and(|code| code != 0) && ran.stderr.contains(says)
            }
        };
        if !is_as_said {
            let said = String::from_utf8_lossy(&ran.stdout);
            return Err(format!("it ends with {:?} and says {}{said}", ran.code, ran.stderr));
        }
        let names: Vec<String> = line.holds.iter().map(|(name, _)| self.named(name)).collect();
        let there = self.run(&self.here, "find . -type f -printf '%P\\n'").ok().text();
        if BTreeSet::from_iter(there.lines()) != names.iter().map(String::as_str).collect() {
            return Err(format!("these files are there: {}", there.replace('\n', ", ")));
        }
        let prints = line.holds.iter().map(|(_, prints)| *prints);
        names.iter().zip(prints).try_for_each(|(name, prints)| self.compare(name, prints))
    }

    /// The file that a pattern stands for, or the pattern if there is none.
    fn named(&self, pattern: &str) -> String {
        self.run(&self.here, &format!("echo {pattern}")).ok().text()
    }

    /// Whether a file has its bytes, on both mounts.
    fn compare(&self, name: &str, prints: Option<&str>) -> Result<(), String> {
        let seen = shell::cat(&self.here.join(name));
        if let Some(prints) = prints {
            let expected = self.run(self.local.path(), prints).ok().stdout;
            if seen != expected {
                let [seen, expected] = [&seen, &expected].map(|bytes| excerpt(bytes));
                return Err(format!("{name} holds {seen}, and not {expected}"));
            }
        }
        // An empty file is a placeholder of its own mount, which the other one does not show.
        if !seen.is_empty() && seen != shell::cat(&self.other.join(name)) {
            return Err(format!("{name} differs on the other mount"));
        }
        Ok(())
    }

    fn run(&self, directory: &Path, line: &str) -> Ran {
        let tools = ground::program("tools");
        let mut command = Command::new("bash");
        command.current_dir(directory).args(["-c", line]);
        command.env("BASH_ENV", tools.join("ground.sh")).env("TOOLS", tools);
        command.env("HERE", &self.here).env("OTHER", &self.other);
        // Nobody's settings count, and nobody's history is written.
        command.env("LOCAL", self.local.path()).env("HOME", self.local.path());
        command.env("LC_ALL", "C.UTF-8").env("TERM", "xterm").env_remove("TMUX");
        shell::run(&mut command, LIMIT)
    }
}

/// Of a shell that found no program: the package that has it, as `scripts/setup` knows it.
fn missing(said: &str) -> Option<String> {
    let command = said.lines().find_map(|line| line.strip_suffix(": command not found"))?;
    let command = command.rsplit(": ").next().unwrap_or(command);
    let setup = include_str!("../../../scripts/setup").lines();
    let package = setup.filter_map(|line| line.split_once(' ')).find(|(name, _)| *name == command);
    let package = package.map_or("(scripts/setup lacks it)", |(_, package)| package);
    // The last line of the list ends with its quote.
    let package = package.trim_end_matches('\'');
    Some(format!("{command} is missing: install the package {package} (scripts/setup test does)"))
}

/// The start of some bytes, and how many there are.
fn excerpt(bytes: &[u8]) -> String {
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
    format!("{start:?} ({} bytes)", bytes.len())
}

#[test]
fn a_missing_program_is_named_with_its_package() {
    let named = missing("kept\nbash: line 1: sponge: command not found\n").unwrap();
    assert!(named.contains("package moreutils "), "{named}");
    let last = missing("ground.sh: line 25: node: command not found").unwrap();
    assert!(last.contains("package nodejs "), "{last}");
    let unknown = missing("ground.sh: line 25: none-such: command not found").unwrap();
    assert!(unknown.contains("none-such is missing"), "{unknown}");
    assert_eq!(missing("bash: line 1: log: Operation not permitted"), None);
}
