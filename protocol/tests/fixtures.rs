//! What a real Gazette said, through our messages and words and back (`shared/fixtures`).

use prost::Message;
use protocol::wire::gazette;
use protocol::{request, response};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::path::Path;

/// Messages of each kind that were checked, so that an emptied fixture does not pass.
type Counts = BTreeMap<&'static str, usize>;

fn load(name: &str) -> Vec<Value> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures").join(name);
    let text = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("fixture {} is needed: {error}", path.display()));
    match serde_json::from_str(&text).expect("a fixture is JSON") {
        Value::Array(records) => records,
        _ => panic!("fixture {name} is not a list of records"),
    }
}

fn hex_bytes(hex: &str) -> Vec<u8> {
    assert!(hex.len().is_multiple_of(2), "{hex}");
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
    (0..hex.len()).step_by(2).map(byte).collect()
}

/// The encoded messages of a record's `requests` or `responses`.
fn messages(record: &Value, side: &str) -> Vec<Vec<u8>> {
    let list = record[side].as_array().unwrap_or_else(|| panic!("no {side}: {record}"));
    list.iter().map(|message| hex_bytes(message["hex"].as_str().expect("hex"))).collect()
}

/// The message of those bytes, which encodes to the same bytes again.
fn decode<M: Message + Default + Debug>(bytes: &[u8]) -> M {
    let message = M::decode(bytes).expect("decodes");
    assert_eq!(message.encode_to_vec(), bytes, "{message:?}");
    message
}

/// Takes a message to its word and back without loss, to the byte.
fn check_word<M, W>(counts: &mut Counts, kind: &'static str, bytes: &[u8])
where
    M: Message + Default + Debug + Clone + From<W>,
    W: TryFrom<M, Error = protocol::Invalid> + Clone + Debug + PartialEq,
{
    let message: M = decode(bytes);
    let word = W::try_from(message.clone()).unwrap_or_else(|e| panic!("{e}: {message:?}"));
    let back = M::from(word.clone());
    assert_eq!(back.encode_to_vec(), bytes, "{word:?}");
    assert_eq!(W::try_from(back), Ok(word));
    *counts.entry(kind).or_default() += 1;
}

/// The refusal of a word, as Gazette's client printed it.
fn refusal<M, W>(bytes: &[u8]) -> Option<String>
where
    M: Message + Default + Debug,
    W: TryFrom<M, Error = protocol::Invalid>,
{
    W::try_from(decode(bytes)).err().map(|invalid| invalid.to_string())
}

fn check_append(counts: &mut Counts, requests: &[Vec<u8>]) {
    for (at, bytes) in requests.iter().enumerate() {
        match at {
            0 => check_word::<gazette::AppendRequest, request::AppendRequest>(
                counts,
                "append first",
                bytes,
            ),
            _ => check_word::<gazette::AppendRequest, request::AppendPart>(
                counts,
                "append part",
                bytes,
            ),
        }
    }
}

fn check_requests(counts: &mut Counts, method: &str, requests: &[Vec<u8>]) {
    if method == "Append" {
        return check_append(counts, requests);
    }
    for bytes in requests {
        match method {
            "List" => check_word::<gazette::ListRequest, request::ListRequest>(
                counts,
                "list request",
                bytes,
            ),
            "Read" => check_word::<gazette::ReadRequest, request::ReadRequest>(
                counts,
                "read request",
                bytes,
            ),
            "ListFragments" => check_word::<gazette::FragmentsRequest, request::FragmentsRequest>(
                counts,
                "fragments request",
                bytes,
            ),
            "Apply" => check_word::<gazette::ApplyRequest, request::ApplyRequest>(
                counts,
                "apply request",
                bytes,
            ),
            other => panic!("a method no case is for: {other}"),
        }
    }
}

fn check_responses(counts: &mut Counts, method: &str, responses: &[Vec<u8>]) {
    for bytes in responses {
        match method {
            "List" => check_word::<gazette::ListResponse, response::ListResponse>(
                counts,
                "list response",
                bytes,
            ),
            "Read" => check_word::<gazette::ReadResponse, response::ReadResponse>(
                counts,
                "read response",
                bytes,
            ),
            "Append" => check_word::<gazette::AppendResponse, response::AppendResponse>(
                counts,
                "append response",
                bytes,
            ),
            "ListFragments" => {
                check_word::<gazette::FragmentsResponse, response::FragmentsResponse>(
                    counts,
                    "fragments response",
                    bytes,
                )
            }
            "Apply" => check_word::<gazette::ApplyResponse, response::ApplyResponse>(
                counts,
                "apply response",
                bytes,
            ),
            other => panic!("a method no case is for: {other}"),
        }
    }
}

/// The first request of a method, refused.
fn first_refusal(method: &str, requests: &[Vec<u8>]) -> Option<String> {
    let bytes = &requests[0];
    match method {
        "List" => refusal::<gazette::ListRequest, request::ListRequest>(bytes),
        "Read" => refusal::<gazette::ReadRequest, request::ReadRequest>(bytes),
        "Append" => refusal::<gazette::AppendRequest, request::AppendRequest>(bytes),
        "Apply" => refusal::<gazette::ApplyRequest, request::ApplyRequest>(bytes),
        other => panic!("a method no case is for: {other}"),
    }
}

#[test]
fn every_message_of_a_broker_survives_messages_and_words() {
    let mut counts = Counts::new();
    for record in load("gazette-wire.json") {
        let method = record["method"].as_str().expect("a method");
        let requests = messages(&record, "requests");
        match record.get("error").and_then(Value::as_str) {
            Some(error) if !error.contains("append stream") => {
                let text = error.split_once("desc = ").expect("a gRPC error").1;
                let found = first_refusal(method, &requests);
                assert_eq!(found.as_deref(), Some(text), "{}", record["name"]);
                *counts.entry("refusal").or_default() += 1;
            }
            // What fails about the stream as a whole is no fault of one message.
            _ => check_requests(&mut counts, method, &requests),
        }
        check_responses(&mut counts, method, &messages(&record, "responses"));
    }
    let expected = Counts::from([
        ("append first", 14),
        ("append part", 26),
        ("append response", 11),
        ("apply request", 2),
        ("apply response", 2),
        ("fragments request", 3),
        ("fragments response", 3),
        ("list request", 3),
        ("list response", 3),
        ("read request", 5),
        ("read response", 14),
        ("refusal", 4),
    ]);
    assert_eq!(counts, expected);
}

#[test]
fn every_replicate_message_of_a_cluster_survives_messages_and_words() {
    let mut counts = Counts::new();
    let records = load("gazette-cluster.json");
    for record in records.iter().filter(|record| record["rpc"] == "Replicate") {
        for bytes in messages(record, "requests") {
            check_word::<gazette::ReplicateRequest, request::ReplicateRequest>(
                &mut counts,
                "request",
                &bytes,
            );
        }
        for bytes in messages(record, "responses") {
            check_word::<gazette::ReplicateResponse, response::ReplicateResponse>(
                &mut counts,
                "response",
                &bytes,
            );
        }
    }
    assert_eq!(counts, Counts::from([("request", 35), ("response", 20)]));
}

#[test]
fn every_value_of_the_key_space_survives_messages_and_words() {
    let mut counts = Counts::new();
    for record in load("gazette-etcd.json") {
        let key = record["key"].as_str().expect("a key");
        let bytes = hex_bytes(record["value_hex"].as_str().expect("a value"));
        match key.split('/').nth(3) {
            Some("items") => check_word::<gazette::JournalSpec, protocol::JournalSpec>(
                &mut counts,
                "item",
                &bytes,
            ),
            Some("members") => check_word::<gazette::BrokerSpec, protocol::BrokerSpec>(
                &mut counts,
                "member",
                &bytes,
            ),
            Some("assign") => {
                check_word::<gazette::Route, protocol::Route>(&mut counts, "assignment", &bytes)
            }
            _ => panic!("a key no case is for: {key}"),
        }
    }
    assert_eq!(counts, Counts::from([("item", 5), ("member", 1), ("assignment", 5)]));
}
