//! The checks of all stores, on those of clouds: scripts/test-stores starts the servers, makes a
//! bucket `courant`, and says by variables where they are.

mod checks;
mod trial;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use index::cloud::Surroundings;
use index::disk::ForgetfulDisk;
use index::store::Store;
use std::sync::Arc;
use trial::{Fetch, Trial, Wrong};

/// What the script says; without it there is nothing to run against.
fn told(name: &str) -> String {
    std::env::var(name)
        .unwrap_or_else(|_| panic!("{name} is not set: run this by scripts/test-stores"))
}

/// The environment of this process, with some variables changed.
fn around(changed: &[(&str, &str)]) -> Surroundings {
    let changed = changed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    std::env::vars().chain(changed).collect()
}

fn open(url: &str, around: &Surroundings) -> Store {
    Store::within(url, Arc::new(ForgetfulDisk::new()), around).expect("a valid URL")
}

/// `begin` is the URL up to the bucket's name; `end` is what follows that of the prefix.
fn trial(begin: &str, end: &str, wrong: Vec<Wrong>) -> Trial {
    let url = format!("{begin}courant/pre/fix/?{end}");
    let open = move |arguments: &str| open(&format!("{url}&{arguments}"), &around(&[]));
    Trial {
        store: open(""),
        open: Box::new(open),
        fetch: Some(Box::new(fetch) as Box<Fetch>),
        signs_percent: true,
        checks_signatures: true,
        keeps_registers: true,
        takes_parts: true,
        wrong,
    }
}

/// A plain GET, by a client that has no credentials and takes gzip, as most do.
fn fetch(url: String) -> BoxFuture<'static, Result<Bytes, String>> {
    async move {
        let client = reqwest::Client::new();
        let get = client.get(url).header(reqwest::header::ACCEPT_ENCODING, "gzip");
        let response = get.send().await.map_err(|error| error.to_string())?;
        let response = response.error_for_status().map_err(|error| error.to_string())?;
        response.bytes().await.map_err(|error| error.to_string())
    }
    .boxed()
}

#[tokio::test]
async fn s3() {
    let endpoint = told("COURANT_TEST_S3");
    let end = format!("endpoint={endpoint}&region=us-east-1");
    let url = |bucket: &str| format!("s3://{bucket}/pre/fix/?{end}");
    let wrong = vec![
        Wrong {
            store: open(&url("courant"), &around(&[("AWS_SECRET_ACCESS_KEY", "not-the-secret")])),
            says: "SignatureDoesNotMatch".to_owned(),
        },
        Wrong {
            store: open(&url("courant"), &around(&[("AWS_ACCESS_KEY_ID", "nobody")])),
            says: "InvalidAccessKeyId".to_owned(),
        },
        Wrong { store: open(&url("none"), &around(&[])), says: "NoSuchBucket".to_owned() },
    ];
    let trial = trial("s3://", &end, wrong);
    checks::all(&trial).await;
    // Case: what the URL wants each object to have.
    let arguments = "acl=private&storageclass=REDUCED_REDUNDANCY";
    let special = trial.with_arguments(arguments);
    let journal = trial::journal("special/a-journal");
    let content = trial::random(100);
    let codec = protocol::Codec::Gzip;
    let put = trial::put(&special, &journal, protocol::Offset::ZERO, &content, codec, "").await;
    special.verify(&put).await.expect("it is there");
}

#[tokio::test]
async fn gs() {
    told("COURANT_TEST_GS");
    let none = open("gs://none/pre/fix/", &around(&[]));
    let wrong = vec![Wrong { store: none, says: "bucket".to_owned() }];
    let trial = Trial {
        // What fake-gcs-server has not: checks of signatures, and uploads in parts by XML.
        checks_signatures: false,
        takes_parts: false,
        signs_percent: false,
        ..trial("gs://", "", wrong)
    };
    checks::all(&trial).await;
}

#[tokio::test]
async fn azure() {
    told("COURANT_TEST_AZURE");
    // The key of another account, as good as any that is not the emulator's.
    let other = around(&[("AZURE_ACCOUNT_KEY", "bm90IHRoZSBrZXkgb2YgdGhlIGVtdWxhdG9y")]);
    let wrong = vec![
        Wrong {
            store: open("azure://courant/pre/fix/", &other),
            says: "AuthorizationFailure".to_owned(),
        },
        Wrong {
            store: open("azure://none/pre/fix/", &around(&[])),
            says: "ContainerNotFound".to_owned(),
        },
    ];
    let trial = Trial { signs_percent: false, ..trial("azure://", "", wrong) };
    checks::all(&trial).await;
}
