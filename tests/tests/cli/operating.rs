//! Fragments, heads, suspension, stores, templates, and what a broker says of itself.

use crate::serve::{Serve, assert_tells};
use tests::daemon;

#[test]
fn fragments_are_listed_in_each_form() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    serve.journals_of(&["append", "local/log"], "x".repeat(2000)).ok();
    serve.journals_of(&["append", "local/log"], "more\n").ok();
    serve.until_stored("local/log", 1);
    let table = serve.journals(&["fragments", "-l", "name=local/log"]).ok().text();
    assert!(table.starts_with("JOURNAL"), "{table}");
    assert!(table.contains("file:///"), "{table}");
    let json = serve.json(&["fragments", "local/log", "-o", "json", "--url-ttl", "1h"]);
    assert_eq!(json["fragments"][0]["spec"]["begin"], "0");
    assert!(json["fragments"][0]["signed_url"].as_str().unwrap().starts_with("file:///"));
    let proto = serve.journals(&["fragments", "local/log", "-o", "proto"]).ok().text();
    assert!(proto.contains("journal: \"local/log\""), "{proto}");
    // Case: nothing was stored before 1970 and a second
    let json = serve.json(&["fragments", "local/log", "-o", "json", "--to", "1"]);
    assert_eq!(json["fragments"], serde_json::json!([]));
}

#[test]
fn heads_are_reset_and_journals_suspended() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    serve.journals_of(&["append", "local/log"], "hello\n").ok();
    let told = serve.journals(&["reset-head", "local/log"]).ok().text();
    assert_tells(&told, &["local/log: its head is at 6", "nothing to reset"]);
    let told = serve.journals(&["suspend", "--force", "-l", "name=local/log"]).ok().text();
    assert_tells(&told, &["local/log: suspended (PARTIAL, at offset 6)"]);
    // Case: the next append resumes it
    serve.journals_of(&["append", "local/log"], "again\n").ok();
    assert_eq!(serve.content("local/log"), "hello\nagain\n");
    // Case: an empty one gives up all replicas; there is nothing to read or to list then
    serve.create(&["empty"], "");
    let told = serve.journals(&["suspend", "local/empty"]).ok().text();
    assert_tells(&told, &["local/empty: suspended (FULL"]);
    for command in ["read", "fragments"] {
        let ran = serve.journals(&[command, "local/empty"]).ok();
        assert!(ran.stderr.contains("local/empty: suspended"), "{command}: {}", ran.stderr);
    }
    for command in ["reset-head", "suspend", "fragments", "prune"] {
        let complaint = serve.journals(&[command, "-l", "name=local/none"]).refusal(1);
        assert_tells(&complaint, &["name=local/none", "courant journals list"]);
    }
}

#[test]
fn stores_are_checked() {
    let serve = Serve::start();
    let told = serve.journals(&["store-health", "file:///"]).ok().text();
    assert_eq!(told, "file:///: healthy");
    let told = serve.journals(&["store-health", "--check-delete-prefix", "probe/", "file:///"]);
    assert_eq!(told.ok().text(), "file:///: healthy");
    // Case: what is no store is wrong usage
    assert_eq!(serve.journals(&["store-health", "ftp://x/"]).code, Some(2));
    assert_eq!(serve.journals(&["store-health"]).code, Some(2));
}

const TEMPLATE: &str = "\
prefix: local/app/
refuse: ['*.bak']
replication: 1
labels: [{name: tag, value: app}]
fragment: {length: 2048, compression_codec: GZIP, stores: ['file:///'], refresh_interval: 1m}
";

#[test]
fn templates_are_put_and_deleted() {
    let mut serve = Serve::start();
    let table = serve.journals(&["templates", "list"]).ok().text();
    assert!(table.contains("(built in)"), "{table}");
    let told = serve.journals_of(&["templates", "put"], TEMPLATE).ok().text();
    assert_eq!(told, "put the template of \"local/app/\"");
    // Case: they are there after kill -9
    serve.daemon().kill();
    serve.again();
    let yaml = serve.journals(&["templates", "list", "-o", "yaml"]).ok().stdout;
    let yaml = String::from_utf8(yaml).unwrap();
    assert!(yaml.contains("prefix: local/app/") && yaml.contains("length: 2048"), "{yaml}");
    serve.journals_of(&["templates", "put"], yaml).ok();
    serve.journals(&["templates", "delete", "local/app/"]).ok();
    let complaint = serve.journals(&["templates", "delete", "local/app/"]).refusal(1);
    assert_tells(&complaint, &["local/app/", "templates list"]);
    // Case: what no journal could have
    let wrong = TEMPLATE.replace("length: 2048", "length: 5");
    let complaint = serve.journals_of(&["templates", "put"], wrong).refusal(1);
    assert_tells(&complaint, &["local/app/", "Length"]);
}

#[test]
fn a_broker_tells_its_status() {
    let serve = Serve::start();
    serve.create(&["log"], "");
    let url = serve.url();
    let table = daemon::run(&["status", "--broker", &url]).ok().text();
    assert_tells(&table, &["journals", "endpoint", &url, "no journal needs attention"]);
    let json = daemon::run(&["status", "--broker.address", &url, "-o", "json"]).ok().stdout;
    let json: serde_json::Value = serde_json::from_slice(&json).unwrap();
    assert_eq!(json["journals"], 1);
    // Case: nobody is there
    let complaint = daemon::refused(&["status", "--broker", "http://127.0.0.1:1"]);
    assert_tells(&complaint, &["http://127.0.0.1:1", "--broker.address"]);
}
