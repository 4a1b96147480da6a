//! The requests that a real Gazette was asked, in their order, and its answers: those of
//! `courant serve` are the same.
//!
//! Set aside, because they must differ:
//!
//! | what | why |
//! |---|---|
//! | process id, endpoint, cluster, member, term, revisions | that broker's; ours hold together |
//! | modification times | those of the copied files |
//! | store, time and URL of `fixtures/none` 9180..10200 | local when recorded; stored in the copy |
//! | how content is cut into messages | may differ; what lies between metadata is compared whole |

#![expect(clippy::unwrap_used, reason = "a test may end where it stands")]

use prost::Message;
use protocol::wire::gazette::apply_request::Change;
use protocol::wire::gazette::journal_client::JournalClient;
use protocol::wire::gazette::{
    self, AppendRequest, ApplyRequest, Fragment, FragmentsRequest, Header, JournalSpec,
    ListRequest, ListResponse, ReadRequest, ReadResponse,
};
use serde_json::Value;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use tests::daemon::Daemon;
use tests::ground;
use tonic::Status;

const LAST_FRAGMENT: i64 = 9180;
/// A revision, time or id that was set aside.
const ASIDE: i64 = 1;

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures")
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).expect("the store that Gazette wrote") {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), to).unwrap();
        }
    }
}

struct Record(Value);

impl Record {
    fn text(&self, name: &str) -> &str {
        self.0[name].as_str().unwrap_or_default()
    }

    fn messages<M: Message + Default>(&self, side: &str) -> Vec<M> {
        let messages = self.0[side].as_array().cloned().unwrap_or_default();
        let hex = |message: &Value| message["hex"].as_str().unwrap().to_owned();
        messages.iter().map(|message| M::decode(&*bytes_of(&hex(message))).unwrap()).collect()
    }

    fn request<M: Message + Default>(&self) -> M {
        self.messages("requests").pop().unwrap()
    }

    /// Checks the answers of a call, or its error, against what Gazette said.
    fn check<M: Message + Default + Debug + PartialEq>(
        &self,
        found: Result<Vec<M>, Status>,
        normal: impl Fn(Vec<M>) -> Vec<M>,
    ) {
        let name = self.text("name");
        match (found, self.text("error")) {
            (Ok(found), "") => {
                assert_eq!(normal(found), normal(self.messages("responses")), "{name}");
            }
            (Err(status), error) => {
                let text = format!("rpc error: code = Unknown desc = {}", status.message());
                assert_eq!((status.code(), &*text), (tonic::Code::Unknown, error), "{name}");
            }
            (Ok(found), error) => panic!("{name}: expected {error}, found {found:?}"),
        }
    }
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap();
    (0..hex.len()).step_by(2).map(byte).collect()
}

fn records() -> Vec<Record> {
    let text = std::fs::read_to_string(fixtures().join("gazette-wire.json")).expect("a fixture");
    let records: Vec<Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(records.len(), 31);
    records.into_iter().map(Record).collect()
}

/// The specs that the recorded broker had, and those its README speaks of.
fn specs(records: &[Record]) -> Vec<JournalSpec> {
    let listed = records.iter().find(|record| record.text("name") == "list prefix").unwrap();
    let listed = listed.messages::<ListResponse>("responses");
    let fixtures = listed.into_iter().flat_map(|page| page.journals);
    let mut specs: Vec<JournalSpec> = fixtures.filter_map(|journal| journal.spec).collect();
    let mut plain = specs[0].clone();
    plain.fragment.as_mut().unwrap().compression_codec = gazette::CompressionCodec::None.into();
    specs.push(JournalSpec { name: "wire/test".into(), ..plain.clone() });
    specs.push(JournalSpec { name: "wire/read-only".into(), flags: 1, ..plain });
    specs
}

#[tokio::test]
async fn answers_are_those_of_gazette() {
    let records = records();
    let folder = ground::folder("recorded-");
    let (data, files) = (folder.path().join("data"), folder.path().join("files"));
    copy(&fixtures().join("gazette-store"), &files);
    let (data, files) = (data.to_str().unwrap(), files.to_str().unwrap());
    let listen = "127.0.0.1:0";
    let mut daemon =
        Daemon::start(&["serve", "--data", data, "--listen", listen, "--file-root", files]);
    let endpoint = daemon.ready_line().split_once(" at ").unwrap().1.to_owned();
    let mut client = JournalClient::connect(endpoint).await.unwrap();
    let change = |spec| Change { upsert: Some(spec), ..Change::default() };
    let changes = specs(&records).into_iter().map(change).collect();
    let applied = client.apply(ApplyRequest { changes }).await.unwrap().into_inner();
    assert_eq!(applied.status(), gazette::Status::Ok);
    for record in &records {
        match record.text("method") {
            "List" => {
                let found = client.list(record.request::<ListRequest>()).await;
                record.check(collected(found).await, |pages| normal(pages, list));
            }
            "Read" => {
                let found = client.read(record.request::<ReadRequest>()).await;
                record.check(collected(found).await, |found| joined(normal(found, read)));
            }
            "ListFragments" => {
                let found = client.list_fragments(record.request::<FragmentsRequest>()).await;
                record.check(one(found), |found| normal(found, fragments));
            }
            "Append" => {
                let requests = record.messages::<AppendRequest>("requests");
                let found = client.append(tokio_stream::iter(requests)).await;
                record.check(one(found), |found| {
                    normal(found, |response: &mut gazette::AppendResponse| {
                        response.header.iter_mut().for_each(header);
                    })
                });
            }
            "Apply" => {
                let found = client.apply(record.request::<ApplyRequest>()).await;
                record.check(one(found), |found| {
                    normal(found, |response: &mut gazette::ApplyResponse| {
                        response.header.iter_mut().for_each(header);
                    })
                });
            }
            other => panic!("no such method: {other}"),
        }
    }
    assert!(daemon.stop().success());
}

fn one<M>(response: Result<tonic::Response<M>, Status>) -> Result<Vec<M>, Status> {
    response.map(|response| vec![response.into_inner()])
}

async fn collected<M>(
    response: Result<tonic::Response<tonic::Streaming<M>>, Status>,
) -> Result<Vec<M>, Status> {
    let mut stream = response?.into_inner();
    let mut messages = Vec::new();
    while let Some(message) = stream.message().await? {
        messages.push(message);
    }
    Ok(messages)
}

fn normal<M>(mut messages: Vec<M>, set_aside: impl Fn(&mut M)) -> Vec<M> {
    messages.iter_mut().for_each(set_aside);
    messages
}

fn header(header: &mut Header) {
    let word = protocol::Header::try_from(header.clone()).expect("a header that clients accept");
    assert!(word.process_id.is_some(), "{header:?}");
    // Who answers is the one member of its routes.
    assert!(word.route.members.iter().all(|member| Some(member) == word.process_id.as_ref()));
    assert_eq!(word.route.primary_endpoint().is_some(), !word.route.members.is_empty());
    header.process_id = None;
    header.etcd = None;
    header.route.iter_mut().for_each(route);
}

fn route(route: &mut gazette::Route) {
    let name = |id: &mut gazette::process_spec::Id| *id = Default::default();
    route.members.iter_mut().for_each(name);
    route.endpoints.iter_mut().for_each(String::clear);
}

fn list(page: &mut ListResponse) {
    page.header.iter_mut().for_each(header);
    for journal in &mut page.journals {
        assert!(journal.mod_revision > 0 && journal.create_revision > 0);
        (journal.mod_revision, journal.create_revision) = (ASIDE, ASIDE);
        journal.route.iter_mut().for_each(route);
    }
}

fn read(response: &mut ReadResponse) {
    response.header.iter_mut().for_each(header);
    if let Some(found) = &mut response.fragment {
        fragment(found);
        if found.begin == LAST_FRAGMENT {
            response.fragment_url.clear();
        }
    }
}

fn fragments(response: &mut gazette::FragmentsResponse) {
    response.header.iter_mut().for_each(header);
    response.fragments.iter_mut().flat_map(|listed| &mut listed.spec).for_each(fragment);
}

fn fragment(fragment: &mut Fragment) {
    if fragment.mod_time != 0 {
        assert!(!fragment.backing_store.is_empty());
        fragment.mod_time = ASIDE;
    }
    if fragment.begin == LAST_FRAGMENT {
        fragment.mod_time = 0;
        fragment.backing_store.clear();
    }
}

/// Joins content that follows content.
fn joined(responses: Vec<ReadResponse>) -> Vec<ReadResponse> {
    let mut joined: Vec<ReadResponse> = Vec::new();
    for response in responses {
        match joined.last_mut() {
            Some(last) if !last.content.is_empty() && !response.content.is_empty() => {
                let end = last.offset + i64::try_from(last.content.len()).unwrap();
                assert_eq!(end, response.offset);
                last.content = [&last.content[..], &response.content[..]].concat().into();
            }
            _ => joined.push(response),
        }
    }
    joined
}
