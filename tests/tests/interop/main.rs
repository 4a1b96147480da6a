//! A client in another language, made from a protocol file of its own, does its work against
//! `courant serve`: what both sides of this repository could get wrong together shows here.

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

mod python;

use std::path::Path;
use tests::daemon::Daemon;
use tests::ground;

/// A broker with its file store at `root`, and its HOST:PORT.
fn serve(data: &Path, root: &Path, more: &[&str]) -> (Daemon, String) {
    std::fs::create_dir(root).unwrap();
    let (data, root) = (data.to_str().unwrap(), root.to_str().unwrap());
    let mut arguments = vec!["serve", "--data", data, "--listen", "127.0.0.1:0"];
    arguments.extend(["--file-root", root]);
    arguments.extend(more);
    let daemon = Daemon::start(&arguments);
    let line = daemon.ready_line();
    let address = line.rsplit_once("http://").expect("the line names the endpoint").1.to_owned();
    (daemon, address)
}

#[test]
fn an_independent_client_does_its_work() {
    let folder = ground::folder("interop-");
    let root = folder.path().join("store");
    let (mut daemon, address) = serve(&folder.path().join("data"), &root, &[]);
    let summary = python::client(&["journals", &address, root.to_str().unwrap()]);
    assert_eq!(summary, "interop: 9 checks passed");
    assert!(daemon.stop().success(), "it ends by itself: {}", daemon.log());
}

#[test]
fn an_independent_client_is_refused_without_its_token() {
    let folder = ground::folder("interop-");
    let root = folder.path().join("store");
    // Any base64 will do.
    let key = "c2VjcmV0LWtleS1vZi1hLXRlc3Q=";
    let (mut daemon, address) = serve(&folder.path().join("data"), &root, &["--auth-keys", key]);
    let summary = python::client(&["tokens", &address, key]);
    assert_eq!(summary, "interop: 1 checks passed");
    assert!(daemon.stop().success(), "it ends by itself: {}", daemon.log());
}
