//! The same at a port that speaks TLS: nothing is known of a client until it has shaken hands.

use crate::{bad, good};
use client::{Connect, Remote};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tests::daemon::Daemon;
use tests::ground;
use tests::patience::until;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Runtime;

/// Connections that begin to shake hands and stop.
const STOPPED: usize = 2000;

/// Appends of others by which they are seen to go on.
const ENOUGH: u64 = 10;

/// Writes a certificate for this machine and its key into a folder.
fn write_papers(folder: &Path) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed(["127.0.0.1".into()]).unwrap();
    std::fs::write(folder.join("cert.pem"), cert.pem()).unwrap();
    std::fs::write(folder.join("key.pem"), signing_key.serialize_pem()).unwrap();
}

#[test]
fn garbage_and_half_a_handshake_on_a_port_with_tls() {
    let folder = ground::folder("tls-");
    write_papers(folder.path());
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let address = format!("127.0.0.1:{}", ground::free_port());
    let (data, certificate, key) = (path("data"), path("cert.pem"), path("key.pem"));
    let mut daemon = Daemon::start(&[
        "serve",
        "--data",
        &data,
        "--listen",
        &address,
        "--tls-cert",
        &certificate,
        "--tls-key",
        &key,
    ]);
    let runtime = Runtime::new().unwrap();
    let connect = Connect::new(&format!("https://{address}")).unwrap().with_ca_file(&certificate);
    let remote = || Remote::connect(&connect).unwrap();
    runtime.block_on(async {
        let remote = remote();
        let journal = "local/more".parse().unwrap();
        client::Journals::create(&remote, &journal).await.unwrap();
    });
    // Others come and go meanwhile, each with a handshake of its own.
    let done = Arc::<AtomicU64>::default();
    let going = {
        let (connect, done) = (connect.clone(), done.clone());
        runtime.spawn(async move {
            loop {
                good::append_once(Remote::connect(&connect).unwrap()).await;
                done.fetch_add(1, Ordering::Relaxed);
            }
        })
    };
    let go_on = || {
        let before = done.load(Ordering::Relaxed);
        until("others go on", || {
            assert!(!going.is_finished(), "one of them failed");
            done.load(Ordering::Relaxed) >= before + ENOUGH
        });
    };
    go_on();
    let before = daemon.resident();
    for (_, bytes) in bad::garbage(11) {
        bad::say(&runtime, &address, &bytes, 100);
        go_on();
    }
    // Case: the begin of a hello that goes on, and nothing more
    let mut stopped = bad::silent(&runtime, &address, STOPPED);
    runtime.block_on(async {
        for stream in &mut stopped {
            stream.write_all(b"\x16\x03\x01\x02\x00\x01").await.unwrap();
        }
    });
    go_on();
    let grown = daemon.resident().saturating_sub(before);
    assert!(grown < crate::GROWTH_MAX, "{} MiB more", grown >> 20);
    drop(stopped);
    go_on();
    going.abort();
    assert!(daemon.stop().success());
}
