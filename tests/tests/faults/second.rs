//! Two brokers that were given one store: the second writer is named, and neither acknowledges what
//! the other's bytes contradict.

use tests::daemon;
use tests::ground;
use tests::patience::until;
use tests::world::{self, Up};

#[test]
fn a_second_broker_on_one_store_is_named_and_nothing_more_is_acknowledged() {
    let store = ground::folder("store-");
    let root = store.path().to_str().unwrap();
    let brokers = [1, 2].map(|_| Up::with(&["--file-root", root, "--write-timeout", "2s"]));
    for up in &brokers {
        // Each takes the journal for its own, as after a copy of a configuration.
        world::apply(up, "log", 4096, "NONE");
    }
    for (name, up) in ["first", "second"].iter().zip(&brokers) {
        up.bash("for i in $(seq 1000); do echo \"$1 $i\" >> log; done", &[name]).ok();
    }
    // One of them finds the other's bytes in the place of its own.
    let is_named = |up: &Up| {
        let url = up.url();
        let told =
            daemon::run(&["status", "--broker", &url, "-o", "json", "local/log"]).ok().text();
        let told: serde_json::Value = serde_json::from_str(&told).unwrap();
        !told["second_writer"].is_null()
    };
    until("the second writer is named", || brokers.iter().any(is_named));
    let named = brokers.iter().find(|up| is_named(up)).unwrap();
    let refused = named.bash("echo more >> log", &[]);
    assert_ne!(refused.code, Some(0), "an append was acknowledged: {}", refused.stderr);
    assert!(refused.stderr.contains("Input/output error"), "{}", refused.stderr);
}
