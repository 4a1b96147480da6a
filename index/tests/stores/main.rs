//! The checks of all stores, on those that need no server: files and memory.

mod checks;
mod trial;

use bytes::Bytes;
use futures::FutureExt;
use index::disk::RealDisk;
use index::store::Store;
use object_store::memory::InMemory;
use std::path::Path;
use std::sync::Arc;
use trial::{Trial, Wrong};

#[tokio::test]
async fn a_store_of_files() {
    let root = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(root.path().join("sub/dir")).expect("a directory");
    let disk = Arc::new(RealDisk::new(root.path()).expect("it is there"));
    let open = {
        let disk = disk.clone();
        move |arguments: &str| {
            Store::new(&format!("file:///sub/dir/?{arguments}"), disk.clone()).expect("a valid URL")
        }
    };
    let path = root.path().to_owned();
    let trial = Trial {
        store: open(""),
        open: Box::new(open),
        fetch: Some(Box::new(move |url| std::future::ready(open_file(&path, &url)).boxed())),
        signs_percent: true,
        checks_signatures: false,
        keeps_registers: false,
        takes_parts: true,
        wrong: Vec::new(),
    };
    checks::all(&trial).await;
}

/// What a client with `--file-root` does with the URL of a file store.
fn open_file(root: &Path, url: &str) -> Result<Bytes, String> {
    let path = url.strip_prefix("file:///").ok_or("no file's URL")?;
    let path =
        percent_encoding::percent_decode_str(path).decode_utf8().map_err(|e| e.to_string())?;
    std::fs::read(root.join(&*path)).map(Bytes::from).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_store_in_memory() {
    let objects = Arc::new(InMemory::new());
    let open = move |arguments: &str| {
        let url = format!("gs://bucket/pre/fix/?{arguments}");
        Store::over(&url, objects.clone()).expect("a valid URL")
    };
    let trial = Trial {
        store: open(""),
        open: Box::new(open),
        fetch: None,
        signs_percent: true,
        checks_signatures: false,
        keeps_registers: true,
        takes_parts: true,
        wrong: Vec::new(),
    };
    checks::all(&trial).await;
}

#[tokio::test]
async fn a_file_store_that_is_not_mounted_is_no_empty_one() {
    let root = tempfile::tempdir().expect("a directory");
    let disk = Arc::new(RealDisk::new(root.path()).expect("it is there"));
    let store = Store::new("file:///none/", disk).expect("a valid URL");
    let wrong = Wrong { store, says: "mkdir -p /".to_owned() };
    let error = wrong.store.list(&trial::journal("a/journal")).await.expect_err("no directory");
    assert!(error.to_string().contains(&wrong.says), "{error}");
}
