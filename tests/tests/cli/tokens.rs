//! Tokens that allow little: what they are enough for, and what is told of the rest.

use crate::serve::{Serve, assert_tells};
use client::token::{Capability, Claims, Keys};
use std::time::{Duration, SystemTime};
use tests::daemon;

const KEYS: &str = "c2VjcmV0LWtleS1vZi1vdXItdGVzdHM=";

#[expect(clippy::disallowed_methods, reason = "the broker is a process of this moment")]
fn token(capability: Capability) -> String {
    let keys: Keys = KEYS.parse().unwrap();
    let now = SystemTime::now();
    let expires = now + Duration::from_secs(3600);
    keys.sign(&Claims { capability, selector: "name=local/log".parse().unwrap(), expires }, now)
}

/// A broker that asks for tokens, with the journal `local/log`.
fn serve() -> Serve {
    let serve = Serve::with(&["--auth-keys", KEYS]);
    let specs = format!("name: local/log\n{}", crate::serve::SETTINGS);
    serve.journals_of(&["apply", "--broker.auth-keys", KEYS], specs).ok();
    serve
}

#[test]
fn a_name_is_enough_to_read_and_to_append() {
    let serve = serve();
    let (read, append) = (token(Capability::READ), token(Capability::APPEND));
    let append = ["append", "local/log", "--broker.auth-token", &append];
    serve.journals_of(&append, "whole\n").ok();
    serve.journals_of(&[&append[..], &["--lines"]].concat(), "line\n").ok();
    for options in [&[][..], &["--from", "0"], &["--since", "1h"]] {
        let command = [&["read", "local/log", "--broker.auth-token", &read], options].concat();
        assert_eq!(serve.journals(&command).ok().text(), "whole\nline");
    }
    let command = ["read", "local/log", "--from", "6", "--broker.auth-token", &read];
    assert_eq!(serve.journals(&command).ok().text(), "line");
    let command = ["fragments", "local/log", "--broker.auth-token", &read];
    assert_tells(&serve.journals(&command).ok().text(), &["local/log"]);
}

#[test]
fn a_token_that_lacks_a_capability_is_told_which_and_what_it_has() {
    let serve = serve();
    let both = Capability(Capability::LIST.0 | Capability::READ.0);
    let point = serve.path("mount");
    let (url, point) = (serve.url(), point.to_str().unwrap());
    let mount = ["mount", "--broker", &url, "--broker.auth-token", &token(Capability::READ), point];
    assert_tells(&daemon::refused(&mount), &["lacks the capability LIST", "it has READ"]);
    // Case: the token, the command, what it lacks, what that is for, what it has
    let cases: [(Capability, &[&str], &str, &str, &str); 3] = [
        (Capability::APPEND, &["list"], "LIST", "listing journals", "it has APPEND"),
        (both, &["append", "local/log"], "APPEND", "appending to journals", "it has LIST and READ"),
        (both, &["delete", "--yes", "local/log"], "APPLY", "deleting", "it has LIST and READ"),
    ];
    for (capability, command, lacks, purpose, has) in cases {
        let token = token(capability);
        let command = [command, &["--broker.auth-token", &token]].concat();
        let complaint = serve.journals(&command).refusal(1);
        assert_tells(&complaint, &["not authorized", lacks, purpose, has]);
    }
}
