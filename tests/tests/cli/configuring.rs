//! Where values come from: a flag, else a file, else the environment, else a default.

use crate::serve::{Serve, assert_tells};
use std::path::Path;
use std::process::Command;
use tests::daemon;
use tests::patience::LIMIT;
use tests::running::Running;
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
fn what_no_command_understands_is_told_and_harms_nothing() {
    let serve = Serve::start();
    let url = serve.url();
    let text = format!(
        "[journals.Broker]\nAddress = {url}\nAdress = http://h:1\n\
         [Colours]\nlog = green\n[Etcd]\nPrefix = /gazette\n[journals.read]\nblock = true\n"
    );
    std::fs::write(serve.path("gazctl.ini"), text).unwrap();
    let ran = list(serve.folder(), &[], &[]).ok();
    assert_eq!(ran.text(), "NAME");
    assert_tells(&ran.stderr, &["gazctl.ini", "[journals.Broker] Adress, [Colours] log\n"]);
    assert_eq!(ran.stderr.lines().count(), 1, "{}", ran.stderr);
}

#[test]
fn a_variable_that_is_set_to_nothing_is_not_set() {
    let serve = Serve::start();
    let flag = format!("--broker={}", serve.url());
    let variables = [
        "BROKER_ADDRESS",
        "BROKER_AUTH_TOKEN",
        "BROKER_AUTH_KEYS",
        "BROKER_CERT_FILE",
        "BROKER_CERT_KEY_FILE",
        "BROKER_TRUSTED_CA_FILE",
        "BROKER_CACHE_SIZE",
        "BROKER_CACHE_TTL",
        "ZONE",
        "COURANT_LOG",
    ];
    for variable in variables {
        let ran = list(serve.folder(), &[&flag], &[(variable, "")]);
        assert_eq!(ran.code, Some(0), "{variable}: {}", ran.stderr);
    }
    // Case: those of a broker
    let variables = [
        "BROKER_PORT",
        "BROKER_HOST",
        "BROKER_FILE_ROOT",
        "BROKER_MAX_APPEND_RATE",
        "BROKER_MIN_APPEND_RATE",
        "BROKER_AUTH_KEYS",
        "BROKER_SERVER_CERT_FILE",
        "BROKER_SERVER_CERT_KEY_FILE",
        "BROKER_SERVER_CA_FILE",
        "BROKER_ALLOW_ORIGIN",
        "BROKER_MAX_GRPC_RECV_SIZE",
    ];
    let data = serve.path("other");
    let arguments = ["serve", "--data", data.to_str().unwrap(), "--listen", "127.0.0.1:0"];
    let mut command = daemon::courant(&arguments);
    let mut other = Running::start(command.envs(variables.map(|variable| (variable, ""))));
    other.until_prints("ready: broker at http://127.0.0.1:");
    // Case: the default is asked then, whoever is there
    let ran = list(serve.folder(), &[], &[("BROKER_ADDRESS", "")]);
    assert_ne!(ran.code, Some(2), "{}", ran.stderr);
}

#[test]
fn the_address_of_a_socket_can_be_pasted() {
    let serve = Serve::start();
    let socket = format!("unix://{}", serve.path("broker.sock").display());
    let data = serve.path("other");
    let command = ["serve", "--data", data.to_str().unwrap(), "--listen", &socket];
    let daemon = daemon::Daemon::start(&command);
    let ready = daemon.ready_line();
    assert_eq!(ready, format!("ready: broker at {socket}"));
    let address = ready.rsplit(' ').next().unwrap();
    let ran = list(serve.folder(), &[], &[("BROKER_ADDRESS", address)]);
    assert_eq!(ran.ok().text(), "NAME");
}

#[test]
fn short_help_leaves_out_what_has_no_effect() {
    let flags = ["--broker.cache.size", "--broker.cache.ttl", "--zone"];
    let short = daemon::run(&["journals", "list", "-h"]).ok().text();
    let long = daemon::run(&["journals", "list", "--help"]).ok().text();
    let (_, without_effect) = long.split_once("without effect:").unwrap();
    for flag in flags {
        assert!(!short.contains(flag), "{flag}: {short}");
        assert!(without_effect.contains(flag), "{flag}: {long}");
    }
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
