//! The JSON gateway: List and Read as lines, errors, and pages of other origins.

use crate::http::Answer;
use crate::world::World;
use broker::server::Settings;
use serde_json::Value;

async fn with_journals() -> World {
    let origins = vec!["https://dash.example".to_owned()];
    let world = World::start(Settings { origins, ..Settings::default() }).await;
    for name in ["logs/one", "logs/two", "else/three"] {
        world.create(name, b"hello").await;
    }
    world
}

async fn post(world: &World, path: &str, body: &str, more: &str) -> (Answer, Vec<Value>) {
    let more = format!("{more}Content-Length: {}\r\n\r\n{body}", body.len());
    let answer = world.ask("POST", path, &more).await;
    let lines = answer.body.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    (answer, lines)
}

#[tokio::test]
async fn journals_are_listed() {
    let world = with_journals().await;
    // Case: the selector, the names
    let cases: [(&str, &[&str]); 3] = [
        ("", &["else/three", "logs/one", "logs/two"]),
        (r#"{"name":"name","value":"logs/","prefix":true}"#, &["logs/one", "logs/two"]),
        (r#"{"name":"name","value":"no/such"}"#, &[]),
    ];
    for (label, names) in cases {
        let body = format!(r#"{{"selector":{{"include":{{"labels":[{label}]}}}}}}"#);
        let (answer, lines) = post(&world, "/v1/journals/list", &body, "").await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"));
        assert_eq!(lines.len(), 1, "{answer:?}");
        let result = &lines[0]["result"];
        assert_eq!(result["status"], "OK");
        let revision = result["header"]["etcd"]["revision"].as_str().expect("a string");
        assert!(revision.parse::<i64>().unwrap() > 0);
        let journals = result["journals"].as_array().expect("journals");
        let found: Vec<_> =
            journals.iter().map(|it| it["spec"]["name"].as_str().unwrap()).collect();
        assert_eq!(found, names);
        for journal in journals {
            let fragment = &journal["spec"]["fragment"];
            assert!(fragment["length"].is_string() && fragment["refreshInterval"].is_string());
        }
    }
    world.stop().await;
}

#[tokio::test]
async fn journals_are_read() {
    let world = with_journals().await;
    let body = r#"{"journal":"logs/one","offset":"1"}"#;
    let (answer, lines) = post(&world, "/v1/journals/read", body, "").await;
    assert_eq!(answer.status, 200);
    let results: Vec<&Value> = lines.iter().map(|line| &line["result"]).collect();
    assert_eq!((&results[0]["status"], &results[0]["writeHead"]), (&"OK".into(), &"5".into()));
    // "ello"
    assert_eq!(results[1]["content"], "ZWxsbw==");
    assert_eq!(results[2]["status"], "OFFSET_NOT_YET_AVAILABLE");
    assert_eq!(results.len(), 3);
    let (answer, lines) = post(&world, "/v1/journals/read", r#"{"journal":"no/such"}"#, "").await;
    assert_eq!((answer.status, &lines[0]["result"]["status"]), (200, &"JOURNAL_NOT_FOUND".into()));
    world.stop().await;
}

#[tokio::test]
async fn what_is_no_request_is_an_error() {
    let world = with_journals().await;
    let long = format!(r#"{{"journal":"{}"}}"#, "a".repeat(5 << 20));
    // Case: path, body, HTTP and gRPC code, what is said
    let cases = [
        ("/v1/journals/read", "{", 400, 3, "EOF"),
        ("/v1/journals/read", r#"{"jornal":"logs/one"}"#, 400, 3, "jornal"),
        ("/v1/journals/read", r#"{"journal":"x"}"#, 500, 2, "Journal: invalid length"),
        ("/v1/journals/read", &*long, 400, 3, "over the limit"),
        ("/v1/journals/apply", "{}", 404, 5, "no such path"),
    ];
    for (path, body, http, grpc, text) in cases {
        let (answer, lines) = post(&world, path, body, "").await;
        let error = &lines[0]["error"];
        assert_eq!(answer.status, http, "{error}");
        assert_eq!((&error["http_code"], &error["grpc_code"]), (&http.into(), &grpc.into()));
        assert!(error["message"].as_str().unwrap().contains(text), "{error}");
    }
    let answer = world.ask("GET", "/v1/journals/list", "").await;
    assert_eq!((answer.status, answer.header("allow")), (405, "POST, OPTIONS"));
    world.stop().await;
}

#[tokio::test]
async fn pages_of_the_list_may_ask() {
    let world = with_journals().await;
    // Case: the origin, whether its pages may see the answer
    for (origin, expected) in [("https://dash.example", true), ("https://evil.example", false)] {
        let more = format!("Origin: {origin}\r\n");
        let asked = world.ask("OPTIONS", "/v1/journals/list", &more).await;
        let (posted, _) = post(&world, "/v1/journals/list", "{}", &more).await;
        for answer in [asked, posted] {
            let allowed = answer.header("access-control-allow-origin");
            assert_eq!(answer.status, 200);
            assert_eq!(allowed, if expected { origin } else { "" });
            let methods = answer.header("access-control-allow-methods");
            assert_eq!(methods, if expected { "GET, POST, OPTIONS" } else { "" });
        }
    }
    world.stop().await;
}
