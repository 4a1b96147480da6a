//! What the services of identities are asked, by URL and surroundings: one that listens here takes
//! the request down and refuses.

use super::{around, opened};
use object_store::ObjectStoreExt;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// Listens for one request: where, and what it was.
fn listen() -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let url = format!("http://{}", listener.local_addr().expect("it is bound"));
    let took = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("somebody asks");
        let mut request = Vec::new();
        let mut part = [0; 4096];
        while !is_whole(&request) {
            let len = stream.read(&mut part).expect("it goes on");
            assert!(len > 0, "it breaks off: {}", String::from_utf8_lossy(&request));
            request.extend_from_slice(&part[..len]);
        }
        let refusal = "HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(refusal.as_bytes()).expect("it is told");
        String::from_utf8(request).expect("it is text")
    });
    (url, took)
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let len = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= len.map_or(0, |len| len.parse().expect("a length"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn azure_is_asked_for_the_identity_that_is_there() {
    let dir = tempfile::tempdir().expect("a directory");
    let token = dir.path().join("token");
    std::fs::write(&token, "of-the-workload").expect("it is written");
    let token = token.to_str().expect("text");
    let of_tenant = "azure-ad://tenant/account/container/";
    let of_account = "azure://container/";
    let account = ("AZURE_ACCOUNT_NAME", "account");
    let client = ("AZURE_CLIENT_ID", "the-client");
    let secret = ("AZURE_CLIENT_SECRET", "the-secret");
    let workload = ("AZURE_FEDERATED_TOKEN_FILE", token);
    let scope = "scope=https%3A%2F%2Fstorage.azure.com%2F.default";
    let assertion = "client_assertion=of-the-workload";
    let machine = "resource=https%3A%2F%2Fstorage.azure.com";
    // Case: URL, variables, how the request begins, what it has
    type Case<'a> = (&'a str, Vec<(&'a str, &'a str)>, &'a str, &'a [&'a str]);
    let cases: [Case; 6] = [
        (
            of_tenant,
            vec![client, secret],
            "POST /tenant/oauth2/v2.0/token ",
            &["client_id=the-client", "client_secret=the-secret", scope],
        ),
        (
            of_tenant,
            vec![client, workload],
            "POST /tenant/oauth2/v2.0/token ",
            &["client_id=the-client", assertion, "jwt-bearer", scope],
        ),
        // Case: a secret goes before a workload's identity.
        (
            of_tenant,
            vec![client, secret, workload],
            "POST /tenant/oauth2/v2.0/token ",
            &["client_secret=the-secret"],
        ),
        (of_tenant, vec![client], "GET /", &[machine, "client_id=the-client"]),
        (
            of_account,
            vec![account, client, workload, ("AZURE_TENANT_ID", "other")],
            "POST /other/oauth2/v2.0/token ",
            &[assertion],
        ),
        (of_account, vec![account], "GET /", &[machine]),
    ];
    for (url, mut variables, begin, has) in cases {
        let (service, took) = listen();
        variables.extend([("AZURE_AUTHORITY_HOST", &*service), ("IDENTITY_ENDPOINT", &*service)]);
        let cloud = opened(url, &variables).expect("there is enough");
        let key = object_store::path::Path::from("a/key");
        cloud.objects.head(&key).await.expect_err("nobody is let in");
        let request = took.join().expect("it was asked");
        assert!(request.starts_with(begin), "{url} {variables:?}: {request}");
        for part in has {
            assert!(request.contains(part), "{url} {variables:?}: {part} in {request}");
        }
    }
}

#[test]
fn files_of_google_that_can_not_be_used_are_named() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("credentials.json");
    let name = path.to_str().expect("text");
    let user = r#"{"type": "authorized_user", "client_id": "i", "client_secret": "s",
                   "refresh_token": "t"}"#;
    // Case: the file, what the error says; nothing where it is opened
    let cases = [
        (user, None),
        ("nonsense", Some("expected")),
        (r#"{"type": "external_account"}"#, Some("external_account")),
        (r#"{"type": "impersonated_service_account"}"#, Some("give the key of a service account")),
    ];
    for (text, expected) in cases {
        std::fs::write(&path, text).expect("it is written");
        let opened = opened("gs://bucket/", &[("GOOGLE_APPLICATION_CREDENTIALS", name)]);
        match (opened, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => {
                assert!(error.contains(expected) && error.contains(name), "{text}: {error}");
            }
            (found, _) => panic!("{text}: {:?}", found.err()),
        }
    }
    assert_eq!(around(&[]).get("GOOGLE_APPLICATION_CREDENTIALS"), None);
}
