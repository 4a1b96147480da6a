//! `mount.courant`: what mount(8) runs for `mount -t courant SOURCE DIR` and for lines of
//! /etc/fstab. This program is it when it is called by that name, as by a link in /sbin.
//!
//! It starts `courant mount` in the background, with a flag for each option, and ends when that
//! serves, or says why it doesn't. Which flags there are is asked of the command line itself.

mod background;
mod options;

use crate::error;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

/// The names by which mount(8) calls it: for the types `courant` and `fuse.courant`.
const NAMES: [&str; 2] = ["mount.courant", "mount.fuse.courant"];

/// What mount(8) takes for wrong usage, and for a mount that failed (its "Exit status").
const USAGE: u8 = 1;
const FAILED: u8 = 32;

/// What mount(8) asks for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    /// A broker's URL or a store's, and the directory.
    source: String,
    directory: OsString,
    /// The values of `-o`, in their order.
    options: Vec<String>,
    /// `-f`: everything but the mount.
    fake: bool,
    /// `-s`: options that nobody knows are passed over.
    sloppy: bool,
    /// `-v`.
    verbose: bool,
}

/// Its exit code, if this process was called by the helper's name.
pub fn called() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let name = arguments.next()?;
    let name = Path::new(&name).file_name().and_then(OsStr::to_str)?;
    NAMES.contains(&name).then(|| run(arguments))
}

fn run(arguments: impl Iterator<Item = OsString>) -> ExitCode {
    let asked = read(arguments).and_then(|asked| Ok((options::planned(&asked)?, asked)));
    let (planned, asked) = match asked {
        Ok(understood) => understood,
        Err(complaint) => return failed(USAGE, &complaint),
    };
    if asked.fake {
        return ExitCode::SUCCESS;
    }
    match background::start(&planned) {
        Ok(ready) => {
            if asked.verbose {
                // Whoever asked to be told has closed the output.
                let _ = writeln!(io::stdout(), "mount.courant: {ready}");
            }
            ExitCode::SUCCESS
        }
        // The daemon has said why.
        Err(background::Failed::Ended) => ExitCode::from(FAILED),
        Err(background::Failed::Start(error)) => failed(FAILED, &error::line(&error)),
    }
}

fn failed(code: u8, complaint: &str) -> ExitCode {
    // Nobody is left to tell when this fails too.
    let _ = writeln!(io::stderr(), "mount.courant: {complaint}");
    ExitCode::from(code)
}

/// The arguments as mount(8) gives them: `SOURCE DIR [-sfnvrw] [-N NS] [-o OPTIONS] [-t TYPE]`.
fn read(mut arguments: impl Iterator<Item = OsString>) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut places = Vec::new();
    while let Some(argument) = arguments.next() {
        let flags = argument.to_str().and_then(|text| text.strip_prefix('-'));
        let Some(flags) = flags.filter(|flags| !flags.is_empty()) else {
            places.push(argument);
            continue;
        };
        let mut value = || {
            let value = arguments.next().ok_or(format!("-{flags} needs a value"))?;
            value.into_string().map_err(|value| format!("{} is no text", value.display()))
        };
        match flags {
            "o" => asked.options.push(value()?),
            // The type is in our name; mounts are made in the namespace that we run in.
            "t" | "N" => drop(value()?),
            cluster => asked.take_flags(cluster)?,
        }
    }
    let Ok([source, directory]) = <[OsString; 2]>::try_from(places) else {
        return Err("usage: mount.courant SOURCE DIR [-o OPTIONS]".to_owned());
    };
    let source = source.into_string().map_err(|it| format!("{} is no URL", it.display()))?;
    Ok(Asked { source, directory, ..asked })
}

impl Asked {
    fn take_flags(&mut self, cluster: &str) -> Result<(), String> {
        for flag in cluster.chars() {
            match flag {
                'f' => self.fake = true,
                's' => self.sloppy = true,
                'v' => self.verbose = true,
                // Nothing is written to /etc/mtab.
                'n' => {}
                'r' => self.options.push("ro".to_owned()),
                'w' => self.options.push("rw".to_owned()),
                other => return Err(format!("-{other} is no flag of a mount helper")),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_as_mount_gives_them() {
        let line = "http://h:1 /m -sfnv -N 5 -o rw,prefix=a/ -o uid=1 -t fuse.courant";
        let asked = read(line.split(' ').map(OsString::from)).unwrap();
        let expected = Asked {
            source: "http://h:1".into(),
            directory: "/m".into(),
            options: vec!["rw,prefix=a/".into(), "uid=1".into()],
            fake: true,
            sloppy: true,
            verbose: true,
        };
        assert_eq!(asked, expected);
        // Case: the read-only flag is an option like another.
        let asked = read(["http://h:1", "/m", "-r"].map(OsString::from).into_iter()).unwrap();
        assert_eq!(asked.options, ["ro"]);
        // Case: what lacks something, or has too much
        for line in ["", "http://h:1", "http://h:1 /m /n", "http://h:1 /m -o", "http://h:1 /m -x"] {
            let words = line.split(' ').filter(|word| !word.is_empty());
            assert!(read(words.map(OsString::from)).is_err(), "{line}");
        }
    }
}
