//! Fragments of a broker's journals.

use std::path::PathBuf;
use tests::daemon;
use tests::patience::until;
use tests::shell;
use tests::world::{self, Up, journals};

/// Bytes after which a fragment is closed.
const LENGTH: usize = 1 << 20;

/// A broker with two stored fragments of `local/log` and some local bytes.
fn broker() -> Up {
    let up = Up::start();
    world::apply(&up, "log", LENGTH, "SNAPPY");
    for part in 1..=2 {
        let line = format!(
            "head -c {LENGTH} /dev/urandom | dd of=log bs=64k oflag=append \
                            conv=notrunc iflag=fullblock status=none"
        );
        up.bash(&line, &[]).ok();
        let persisted = (LENGTH * part).to_string();
        let attribute = "getfattr --only-values -n user.courant.persisted log";
        until("it is stored", || up.bash(attribute, &[]).text() == persisted);
    }
    up.bash("echo local >> log", &[]).ok();
    up
}

fn store(up: &Up) -> PathBuf {
    up.data().join("store")
}

#[test]
fn a_brokers_journals_are_verified_with_the_root_of_its_files() {
    let up = broker();
    let (url, store) = (up.url(), store(&up));
    let root = store.to_str().unwrap();
    let run = || daemon::run(&["fsck", "--broker", &url, "--file-root", root]);
    let text = run().ok().text();
    assert!(text.starts_with("journals: 1, fragments: 2, verified: 2.0 MiB; nothing"), "{text}");

    // Case: without the root nothing can be read, and that is no success.
    let ran = daemon::run(&["fsck", "--broker", &url]);
    assert_eq!(ran.code, Some(1));
    assert_eq!(ran.text().matches(" unread local/log/").count(), 2, "{}", ran.text());
    assert!(ran.text().contains("--file-root"), "{}", ran.text());

    // Case: damage, and a name that is none.
    let line = "cd local/log && echo x > notes && printf X | dd of=$(ls | head -1) bs=1 \
                seek=70000 conv=notrunc";
    shell::bash(&store, line, &[]).ok();
    let ran = run();
    let text = ran.text();
    assert!(text.contains("local/log - name local/log/notes: "), "{text}");
    assert!(text.contains("local/log 0..1048576 damaged local/log/0000"), "{text}");
    assert!(text.ends_with("2 findings"), "{text}");
    assert_eq!(ran.code, Some(1));

    // Case: a selector of other journals.
    let options = ["fsck", "--broker", &url, "--file-root", root, "-l", "name:prefix=other/"];
    let text = daemon::run(&options).ok().text();
    assert!(text.starts_with("journals: 0,"), "{text}");
}

/// Another broker wrote to the store, and left a gap, over which the head was reset.
#[test]
fn what_nobody_has_is_lost_and_named() {
    let mut up = broker();
    let begin = 3 * LENGTH;
    let line = format!(
        "cd local/log && printf other > x && mv x \
         $(printf %016x-%016x-%s.raw {begin} {} $(sha1sum < x | cut -c -40))",
        begin + 5
    );
    shell::bash(&store(&up), &line, &[]).ok();
    until("the other writer is seen", || up.bash("echo more >> log", &[]).code != Some(0));
    journals(&up, &["reset-head", "local/log"]).ok();

    let head = up.bash("getfattr --only-values -n user.courant.head log", &[]).ok().text();
    assert_eq!(head, (begin + 5).to_string());
    let root = store(&up);
    let fsck =
        |url: &str| daemon::run(&["fsck", "--broker", url, "--file-root", root.to_str().unwrap()]);
    let ran = fsck(&up.url());
    let lost = ran.text().lines().filter(|line| line.contains(" lost ")).count();
    assert_eq!((ran.code, lost), (Some(1), 1), "{}", ran.text());
    assert!(ran.text().contains(&format!("..{begin} lost ")), "{}", ran.text());

    // Case: after a restart it is as lost as before.
    assert!(up.daemon().stop().success());
    up.again();
    let url = up.url();
    let ran = fsck(&url);
    assert!(ran.text().contains(&format!("..{begin} lost ")), "{}", ran.text());
    let told = daemon::run(&["status", "--broker", &url, "local/log", "-o", "json"]).ok().text();
    assert!(told.contains(&format!("\"end\": {begin}")), "{told}");
}
