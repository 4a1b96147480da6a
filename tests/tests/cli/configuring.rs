//! Where values come from: a flag, else a file, else the environment, else a default.

use crate::serve::{Serve, assert_tells};
use std::path::Path;
use std::process::Command;
use tests::daemon;
use tests::patience::LIMIT;
use tests::shell::{self, Ran};

/// `courant journals list` in a directory, with a home and an environment of its own.
fn list(folder: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Ran {
    let mut command: Command = daemon::courant(&["journals", "list"]);
    command.args(arguments).current_dir(folder).env("HOME", folder.join("home"));
    command.env_remove("BROKER_ADDRESS").envs(environment.iter().copied());
    shell::run(&mut command, LIMIT)
}

#[test]
fn a_flag_goes_before_a_file_and_a_file_before_the_environment() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    let url = serve.url();
    let nowhere = "http://127.0.0.1:1";
    let good = format!("[journals.Broker]\nAddress = {url}\n");
    let bad = format!("[journals.Broker]\nAddress = {nowhere}\n");
    let home = serve.path("home/.config/gazette");
    std::fs::create_dir_all(&home).unwrap();
    let here = serve.path("gazctl.ini");
    let there = home.join("gazctl.ini");
    // Case: the file here, the file in the home, the environment, flags, whether it is reached
    type Case<'a> = (Option<&'a str>, Option<&'a str>, Option<&'a str>, &'a [&'a str], bool);
    let flag = format!("--broker={url}");
    let cases: [Case; 7] = [
        (None, None, Some(&url), &[], true),
        (None, None, Some(nowhere), &[], false),
        (Some(&good), None, Some(nowhere), &[], true),
        (None, Some(&good), Some(nowhere), &[], true),
        (Some(&good), Some(&bad), None, &[], true),
        (Some(&bad), Some(&good), Some(&url), &[], false),
        (Some(&bad), None, Some(nowhere), &[&flag], true),
    ];
    for (at, (in_folder, in_home, variable, flags, is_reached)) in cases.into_iter().enumerate() {
        for (path, content) in [(&here, in_folder), (&there, in_home)] {
            let _ = std::fs::remove_file(path);
            if let Some(content) = content {
                std::fs::write(path, content).unwrap();
            }
        }
        let environment: Vec<(&str, &str)> =
            variable.iter().map(|value| ("BROKER_ADDRESS", *value)).collect();
        let ran = list(serve.folder(), flags, &environment);
        match is_reached {
            true => assert_eq!(ran.ok().text(), "NAME\nlocal/log", "case {at}"),
            false => assert_tells(&ran.refusal(1), &[nowhere]),
        }
    }
}

#[test]
fn what_a_file_says_is_checked_like_a_flag() {
    let serve = Serve::start();
    std::fs::write(serve.path("courant.ini"), "[journals.list]\nformat = sideways\n").unwrap();
    let ran = list(serve.folder(), &[], &[]);
    assert_eq!(ran.code, Some(2), "{}", ran.stderr);
    assert!(ran.stderr.contains("sideways"), "{}", ran.stderr);
    std::fs::write(serve.path("courant.ini"), "[journals\n").unwrap();
    assert_tells(&list(serve.folder(), &[], &[]).refusal(1), &["courant.ini", "line 1"]);
}

#[test]
fn every_command_has_help_with_examples() {
    let commands = [
        "list",
        "apply",
        "edit",
        "append",
        "read",
        "fragments",
        "prune",
        "reset-head",
        "suspend",
        "store-health",
        "delete",
        "templates",
    ];
    for command in commands {
        let help = daemon::run(&["journals", command, "--help"]).ok().text();
        assert_tells(&help, &["Examples:\n", &format!("courant journals {command}")]);
    }
    let help = daemon::run(&["status", "--help"]).ok().text();
    assert_tells(&help, &["Examples:", "BROKER_ADDRESS", "--broker.auth-token"]);
}

#[test]
fn a_broker_with_keys_wants_a_token() {
    let keys = "c2VjcmV0LWtleS1vZi1vdXItdGVzdHM=";
    let serve = Serve::with(&["--auth-keys", keys]);
    let refusal = serve.journals(&["list"]).refusal(1);
    assert_tells(&refusal, &["not authorized"]);
    assert_eq!(serve.journals(&["list", "--broker.auth-keys", keys]).ok().text(), "NAME");
    let mut command = serve.command(&["list"]);
    assert_eq!(shell::run(command.env("BROKER_AUTH_KEYS", keys), LIMIT).ok().text(), "NAME");
    let refusal = serve.journals(&["list", "--broker.auth-token", "a.b.c"]).refusal(1);
    assert_tells(&refusal, &["not authorized"]);
    let refusal = serve.journals(&["list", "--broker.auth-keys", "no base64!"]).refusal(1);
    assert_tells(&refusal, &["--broker.auth-keys", "base64"]);
}
