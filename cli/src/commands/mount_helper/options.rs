//! Options of a mount as flags of `courant mount`.

use super::Asked;
use clap::{Arg, ArgAction, Command, CommandFactory, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// The URLs of brokers; all others are those of stores.
const BROKERS: [&str; 3] = ["http", "https", "unix"];

/// Options that are for mount(8) or systemd, or that every mount of ours is like already. `async`
/// and `sync` are here for their old meaning, which says nothing about appends: `queued` is what
/// `--async` is called here.
const FOREIGN: [&str; 46] = [
    "defaults",
    "rw",
    "auto",
    "noauto",
    "user",
    "users",
    "nouser",
    "owner",
    "group",
    "nofail",
    "_netdev",
    "dev",
    "nodev",
    "suid",
    "nosuid",
    "exec",
    "noexec",
    "async",
    "sync",
    "dirsync",
    "atime",
    "noatime",
    "diratime",
    "nodiratime",
    "relatime",
    "norelatime",
    "strictatime",
    "nostrictatime",
    "lazytime",
    "nolazytime",
    "mand",
    "nomand",
    "iversion",
    "noiversion",
    "silent",
    "loud",
    "symfollow",
    "nosymfollow",
    "allow_other",
    "default_permissions",
    "bg",
    "fg",
    "comment",
    "uhelper",
    "helper",
    "context",
];

/// Flags of `courant mount` whose values are the source, or which are no options.
const NO_OPTIONS: [&str; 4] = ["bucket", "broker.address", "help", "version"];

/// Where the log goes unless an option says so: nobody reads the terminal any more.
const LOG: &str = "syslog";

/// The program that is to be started.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Planned {
    /// What comes behind its name.
    pub arguments: Vec<OsString>,
    /// A file of `NAME=VALUE` lines for its environment.
    pub environment: Option<PathBuf>,
}

/// What to start for a mount; a complaint names the option that is not understood.
pub(super) fn planned(asked: &Asked) -> Result<Planned, String> {
    let command = Flags::of_mount();
    let mut planned = Planned::default();
    let mut log = LOG.to_owned();
    planned.arguments.push("mount".into());
    planned.arguments.push(source(&asked.source)?.into());
    for option in all(&asked.options)? {
        let (name, value) = match option.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (option.as_str(), None),
        };
        match (name, value) {
            ("", None) => {}
            ("ro", None) => planned.arguments.push("--read-only".into()),
            ("queued", None) => planned.arguments.push("--async".into()),
            ("log", Some(target)) => log = target.to_owned(),
            ("environment", Some(file)) => planned.environment = Some(file.into()),
            ("remount", _) => {
                return Err("a mount can't be changed: umount it, and mount it anew".to_owned());
            }
            _ if is_foreign(name) => {}
            _ => match command.flag(name, value) {
                Ok(flag) => planned.arguments.push(flag.into()),
                Err(_) if asked.sloppy => {}
                Err(complaint) => return Err(complaint),
            },
        }
    }
    planned.arguments.push(format!("--log-to={log}").into());
    planned.arguments.push("--".into());
    planned.arguments.push(asked.directory.clone());
    Ok(planned)
}

/// The flag that names the source.
fn source(url: &str) -> Result<String, String> {
    let Some((scheme, _)) = url.split_once("://") else {
        return Err(format!(
            "{url} is no URL of a broker (http://, https://, unix://) or of a store (s3://, gs://, \
             azure://, file://)"
        ));
    };
    let flag = if BROKERS.contains(&scheme) { "broker.address" } else { "bucket" };
    Ok(format!("--{flag}={url}"))
}

/// Whether an option is none of ours: `x-` is for programs in user space, `X-` for mount(8) itself.
fn is_foreign(name: &str) -> bool {
    name.starts_with("x-") || name.starts_with("X-") || FOREIGN.contains(&name)
}

fn all(lists: &[String]) -> Result<Vec<String>, String> {
    Ok(lists.iter().map(|list| split(list)).collect::<Result<Vec<_>, _>>()?.concat())
}

/// The options of a list, which commas part, but not within double quotes.
fn split(list: &str) -> Result<Vec<String>, String> {
    let mut options = vec![String::new()];
    let mut is_quoted = false;
    for char in list.chars() {
        match char {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => options.push(String::new()),
            other => options.last_mut().expect("there is always one").push(other),
        }
    }
    match options.pop() {
        // What stands behind the quote would be of the value, not the option that it looks like.
        Some(open) if is_quoted => Err(format!("the quote in {open} is not closed")),
        last => Ok(options.into_iter().chain(last).collect()),
    }
}

/// The flags that `courant mount` has.
struct Flags(Command);

impl Flags {
    fn of_mount() -> Self {
        let mut command = crate::Arguments::command();
        // Hands the options of the whole program on to its commands.
        command.build();
        let mount = command.find_subcommand("mount").expect("it is a command of this program");
        Flags(mount.clone())
    }

    /// The flag that an option stands for. `_` and `-` are the same, as options of other file
    /// systems are written with `_`.
    fn flag(&self, name: &str, value: Option<&str>) -> Result<String, String> {
        let flag = self.0.get_arguments().find(|flag| is_named(flag, name));
        let unknown = || format!("{name} is no option: courant mount --help shows what there is");
        let long = flag.and_then(Arg::get_long).ok_or_else(unknown)?;
        if NO_OPTIONS.contains(&long) {
            return Err(unknown());
        }
        let takes_value = flag
            .is_some_and(|flag| matches!(flag.get_action(), ArgAction::Set | ArgAction::Append));
        // Ours is the root, and that of whoever wrote the option another.
        let is_path = flag.is_some_and(|flag| flag.get_value_hint() == ValueHint::AnyPath);
        if is_path && value.is_some_and(|value| !value.starts_with('/')) {
            return Err(format!("the path of {name} has to begin with /"));
        }
        match (takes_value, value) {
            (true, Some(value)) => Ok(format!("--{long}={value}")),
            (false, None) => Ok(format!("--{long}")),
            (true, None) => Err(format!("the option {name} needs a value: {name}=...")),
            (false, Some(_)) => Err(format!("the option {name} takes no value")),
        }
    }
}

fn is_named(flag: &Arg, name: &str) -> bool {
    let same = |long: &str| long.replace('-', "_") == name.replace('-', "_");
    flag.get_long().is_some_and(same) || flag.get_all_aliases().into_iter().flatten().any(same)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(source: &str, options: &str) -> Result<Vec<String>, String> {
        let asked = Asked {
            source: source.into(),
            directory: "/m".into(),
            options: vec![options.into()],
            ..Asked::default()
        };
        let arguments = planned(&asked)?.arguments;
        Ok(arguments.into_iter().map(|it| it.into_string().unwrap()).collect())
    }

    #[test]
    fn options_become_flags() {
        // Case: the options, the flags
        let cases: [(&str, &[&str]); 11] = [
            ("", &[]),
            ("defaults,rw,noauto,_netdev,nofail,user,x-systemd.automount,X-mount.mkdir", &[]),
            ("ro", &["--read-only"]),
            ("allow_delete,prefix=logs/", &["--allow-delete", "--prefix=logs/"]),
            ("uid=5,gid=6,umask=077", &["--uid=5", "--gid=6", "--umask=077"]),
            ("write_timeout=5s,no-passthrough", &["--write-timeout=5s", "--no-passthrough"]),
            ("follow_programs=\"tail,less\"", &["--follow-programs=tail,less"]),
            ("broker.trusted-ca-file=/c", &["--broker.trusted-ca-file=/c"]),
            ("log_level=debug", &["--log-level=debug"]),
            ("lines", &["--lines"]),
            ("async,queued", &["--async"]),
        ];
        for (options, flags) in cases {
            let mut expected = vec!["mount", "--broker.address=http://h:1"];
            expected.extend(flags);
            expected.extend(["--log-to=syslog", "--", "/m"]);
            assert_eq!(plan("http://h:1", options).unwrap(), expected, "{options}");
        }
    }

    #[test]
    fn what_is_not_understood_is_named() {
        // Case: the options, and what the complaint names
        for (options, name) in [
            ("ro,no_such_thing=5", "no_such_thing"),
            ("prefix", "prefix"),
            ("allow_delete=1", "allow_delete"),
            ("bucket=s3://b/", "bucket"),
            ("help", "help"),
            ("remount,ro", "umount"),
            ("prefix=\"a/,ro", "prefix=a/,ro is not closed"),
            ("cache=cache,ro", "cache"),
        ] {
            let complaint = plan("http://h:1", options).unwrap_err();
            assert!(complaint.contains(name), "nothing of {name} in: {complaint}");
        }
        assert!(plan("host:/logs", "").unwrap_err().contains("host:/logs"));
    }

    #[test]
    fn the_source_says_what_is_mounted() {
        // Case: the source, its flag
        for (source, flag) in [
            ("http://h:1", "--broker.address=http://h:1"),
            ("unix:///run/c.sock", "--broker.address=unix:///run/c.sock"),
            ("s3://bucket/prefix/", "--bucket=s3://bucket/prefix/"),
            ("file:///srv/store/", "--bucket=file:///srv/store/"),
        ] {
            assert_eq!(
                plan(source, "log=/var/log/c").unwrap()[1..3],
                [flag, "--log-to=/var/log/c"]
            );
        }
    }
}
