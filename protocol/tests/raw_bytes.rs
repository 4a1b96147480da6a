//! Bytes that nobody promised anything about, through every message that comes from others: they
//! are refused, or become a word that goes to the wire and back without loss. Nothing panics.

use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message;
use protocol::wire::gazette;
use protocol::{Invalid, Journal, MetaJournal, PostfixTemplate, StoreUrl, request, response};
use serde_json::Value;
use std::fmt::Debug;
use std::path::Path;
use std::sync::LazyLock;

/// Messages that a real Gazette and its clients sent: what is bent here a little.
static SEEDS: LazyLock<Vec<Vec<u8>>> = LazyLock::new(seeds);

fn seeds() -> Vec<Vec<u8>> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/fixtures/gazette-wire.json");
    let text = std::fs::read_to_string(path).expect("a fixture");
    let records: Vec<Value> = serde_json::from_str(&text).expect("JSON");
    let sides = records.iter().flat_map(|record| [&record["requests"], &record["responses"]]);
    let messages = sides.filter_map(Value::as_array).flatten();
    let hex = messages.map(|message| message["hex"].as_str().expect("hex"));
    hex.map(|hex| {
        let byte = |at| u8::from_str_radix(&hex[at..at + 2], 16).expect("hex digits");
        (0..hex.len()).step_by(2).map(byte).collect()
    })
    .collect()
}

/// What is done to a message: a byte set, some cut out, some put in.
#[derive(Debug, Clone)]
enum Bend {
    Set(Index, u8),
    Cut(Index, usize),
    Insert(Index, Vec<u8>),
}

fn bend() -> impl Strategy<Value = Bend> {
    prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Bend::Set(at, byte)),
        (any::<Index>(), 1..9_usize).prop_map(|(at, len)| Bend::Cut(at, len)),
        (any::<Index>(), prop::collection::vec(any::<u8>(), 1..12))
            .prop_map(|(at, bytes)| Bend::Insert(at, bytes)),
    ]
}

impl Bend {
    fn apply(&self, bytes: &mut Vec<u8>) {
        match self {
            Bend::Set(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Bend::Set(..) => {}
            Bend::Cut(at, len) => {
                let at = at.index(bytes.len() + 1);
                bytes.drain(at..(at + len).min(bytes.len()));
            }
            Bend::Insert(at, more) => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, more.iter().copied());
            }
        }
    }
}

/// Noise, or a message of Gazette's with up to three faults.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let bent = (any::<Index>(), prop::collection::vec(bend(), 0..4)).prop_map(|(seed, bends)| {
        let mut bytes = SEEDS[seed.index(SEEDS.len())].clone();
        bends.iter().for_each(|bend| bend.apply(&mut bytes));
        bytes
    });
    prop_oneof![1 => prop::collection::vec(any::<u8>(), 0..200), 9 => bent]
}

/// Refused, or a word that survives the wire.
fn check<M, W>(bytes: &[u8]) -> Result<(), TestCaseError>
where
    M: Message + Default + Clone + From<W>,
    W: TryFrom<M, Error = Invalid> + Clone + Debug + PartialEq,
{
    let Ok(message) = M::decode(bytes) else { return Ok(()) };
    let Ok(word) = W::try_from(message) else { return Ok(()) };
    let again = M::from(word.clone()).encode_to_vec();
    let message = M::decode(&*again).expect("what was encoded is decoded");
    prop_assert_eq!(W::try_from(message), Ok(word));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn requests_are_refused_or_survive(bytes in bytes()) {
        check::<gazette::ReadRequest, request::ReadRequest>(&bytes)?;
        check::<gazette::AppendRequest, request::AppendRequest>(&bytes)?;
        check::<gazette::AppendRequest, request::AppendPart>(&bytes)?;
        check::<gazette::ListRequest, request::ListRequest>(&bytes)?;
        check::<gazette::ApplyRequest, request::ApplyRequest>(&bytes)?;
        check::<gazette::FragmentsRequest, request::FragmentsRequest>(&bytes)?;
        check::<gazette::FragmentStoreHealthRequest, request::FragmentStoreHealthRequest>(&bytes)?;
        check::<gazette::ReplicateRequest, request::ReplicateRequest>(&bytes)?;
    }

    #[test]
    fn responses_are_refused_or_survive(bytes in bytes()) {
        check::<gazette::ReadResponse, response::ReadResponse>(&bytes)?;
        check::<gazette::AppendResponse, response::AppendResponse>(&bytes)?;
        check::<gazette::ListResponse, response::ListResponse>(&bytes)?;
        check::<gazette::ApplyResponse, response::ApplyResponse>(&bytes)?;
        check::<gazette::FragmentsResponse, response::FragmentsResponse>(&bytes)?;
        check::<gazette::FragmentStoreHealthResponse, response::FragmentStoreHealthResponse>(
            &bytes,
        )?;
        check::<gazette::ReplicateResponse, response::ReplicateResponse>(&bytes)?;
    }

    #[test]
    fn values_of_the_key_space_are_refused_or_survive(bytes in bytes()) {
        check::<gazette::JournalSpec, protocol::JournalSpec>(&bytes)?;
        check::<gazette::BrokerSpec, protocol::BrokerSpec>(&bytes)?;
        check::<gazette::Route, protocol::Route>(&bytes)?;
    }

    #[test]
    fn names_are_refused_or_come_back(text in "[a-z0-9./;#=%_ \u{e9}-]{0,24}") {
        if let Ok(journal) = Journal::new(&text) {
            prop_assert_eq!(journal.as_str(), &text);
            // A name is a path below a root, and stays there.
            let parts: Vec<&str> = text.split('/').collect();
            prop_assert!(parts.iter().all(|part| !["", ".", ".."].contains(part)), "{}", text);
        }
        if let Ok(named) = MetaJournal::new(&text) {
            prop_assert_eq!(named.to_string(), text);
        }
    }

    #[test]
    fn stores_and_templates_do_not_panic(
        url in "(s3|gs|azure|azure-ad|file|x)?:?/{0,3}[a-z0-9./?=&%#-]{0,24}/?",
        template in "[{} .a-zA-Z\"0-9=%/-]{0,60}",
    ) {
        if let Ok(store) = StoreUrl::parse(&url) {
            prop_assert_eq!(store.as_str(), &url);
        }
        if let Ok(template) = PostfixTemplate::parse(&template) {
            let _ = template.check(&protocol::LabelSet::default());
        }
    }
}
