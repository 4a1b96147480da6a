//! The file store on a disk that fails, fills up and stops.

use super::*;
use crate::disk::{Crash, ForgetfulDisk, RealDisk, Trouble};
use futures::TryStreamExt;
use object_store::{GetRange, ObjectStoreExt, PutMode};

struct World {
    dir: tempfile::TempDir,
    store: FileStore,
}

fn world() -> World {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(RealDisk::new(dir.path()).unwrap());
    World { dir, store: FileStore::new(disk, "") }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

async fn keys(store: &FileStore, prefix: Option<&str>) -> Vec<String> {
    let prefix = prefix.map(key);
    let listed: Vec<ObjectMeta> = store.list(prefix.as_ref()).try_collect().await.unwrap();
    let mut keys: Vec<String> = listed.into_iter().map(|o| o.location.to_string()).collect();
    keys.sort();
    keys
}

async fn body(store: &FileStore, name: &str) -> Vec<u8> {
    store.get(&key(name)).await.unwrap().bytes().await.unwrap().to_vec()
}

#[tokio::test]
async fn objects_are_files_in_directories() {
    let World { dir, store } = world();
    store.put(&key("a/b%41/c d.raw"), "content".into()).await.unwrap();
    assert_eq!(std::fs::read(dir.path().join("a/b%41/c d.raw")).unwrap(), b"content");
    let meta = store.head(&key("a/b%41/c d.raw")).await.unwrap();
    assert_eq!(meta.size, 7);
    assert!(meta.last_modified.timestamp() > 0);
    store.put(&key("a/b%41/c d.raw"), "other".into()).await.unwrap();
    assert_eq!(body(&store, "a/b%41/c d.raw").await, b"other");
    store.put(&key("empty"), "".into()).await.unwrap();
    assert_eq!(body(&store, "empty").await, b"");
}

#[tokio::test]
async fn created_names_must_be_new() {
    let World { dir, store } = world();
    let x = key("a/x");
    store.put_opts(&x, "one".into(), PutMode::Create.into()).await.unwrap();
    let error = store.put_opts(&x, "two".into(), PutMode::Create.into()).await.unwrap_err();
    assert!(matches!(&error, Error::AlreadyExists { path, .. } if path == "a/x"), "{error}");
    assert_eq!(body(&store, "a/x").await, b"one");
    assert_eq!(std::fs::read_dir(dir.path().join("a")).unwrap().count(), 1);
}

#[tokio::test]
async fn ranges() {
    let World { dir: _dir, store } = world();
    let content: Vec<u8> = (0..600_000u32).map(|at| at as u8 ^ (at >> 8) as u8).collect();
    store.put(&key("x"), content.clone().into()).await.unwrap();
    let cases = [
        (GetRange::Bounded(0..1), 0..1),
        (GetRange::Bounded(10..600_000), 10..600_000),
        // Case: an end past the object's is its end.
        (GetRange::Bounded(599_999..700_000), 599_999..600_000),
        (GetRange::Offset(262_143), 262_143..600_000),
        (GetRange::Suffix(3), 599_997..600_000),
    ];
    for (asked, expected) in cases {
        let options = GetOptions::new().with_range(Some(asked.clone()));
        let got = store.get_opts(&key("x"), options).await.unwrap();
        assert_eq!(got.range, expected.start as u64..expected.end as u64, "{asked}");
        assert!(got.bytes().await.unwrap() == content[expected], "{asked}");
    }
    assert!(store.get_range(&key("x"), 600_000..600_001).await.is_err());
    let head = store.get_opts(&key("x"), GetOptions::new().with_head(true)).await.unwrap();
    assert_eq!(head.meta.size, 600_000);
}

#[tokio::test]
async fn listing_goes_by_whole_segments_and_skips_what_is_unfinished() {
    let World { dir, store } = world();
    for name in ["a/b/1", "a/b/c/2", "a/bc/3", "4"] {
        store.put(&key(name), "x".into()).await.unwrap();
    }
    std::fs::write(dir.path().join("a/b/.partial-5"), b"half").unwrap();
    assert_eq!(keys(&store, None).await, ["4", "a/b/1", "a/b/c/2", "a/bc/3"]);
    assert_eq!(keys(&store, Some("a/b")).await, ["a/b/1", "a/b/c/2"]);
    // Case: no such directory; an object's own name.
    assert!(keys(&store, Some("b")).await.is_empty());
    assert!(keys(&store, Some("4")).await.is_empty());

    let level = store.list_with_delimiter(Some(&key("a"))).await.unwrap();
    assert_eq!(level.common_prefixes, [key("a/b"), key("a/bc")]);
    assert!(level.objects.is_empty());
    let level = store.list_with_delimiter(Some(&key("a/b"))).await.unwrap();
    assert_eq!(level.common_prefixes, [key("a/b/c")]);
    assert_eq!(level.objects.len(), 1);
}

#[tokio::test]
async fn uploads_by_parts_appear_when_complete() {
    let World { dir, store } = world();
    let mut upload = store.put_multipart(&key("a/b/x")).await.unwrap();
    let parts = ["first, ", "second, ", "third"].map(|part| upload.put_part(part.into()));
    assert!(keys(&store, None).await.is_empty());
    // Case: another upload of the same name meanwhile.
    let error = store.put(&key("a/b/x"), "mine".into()).await.unwrap_err();
    assert!(error.to_string().contains("another upload"), "{error}");
    // Case: parts are written in any order.
    for part in parts.into_iter().rev() {
        part.await.unwrap();
    }
    upload.complete().await.unwrap();
    assert_eq!(body(&store, "a/b/x").await, b"first, second, third");
    assert_eq!(std::fs::read_dir(dir.path().join("a/b")).unwrap().count(), 1);
}

#[tokio::test]
async fn uploads_with_a_missing_part_fail() {
    let World { dir: _dir, store } = world();
    let mut upload = store.put_multipart(&key("x")).await.unwrap();
    drop(upload.put_part("never polled".into()));
    upload.put_part("second".into()).await.unwrap();
    assert!(upload.complete().await.is_err());
    assert!(keys(&store, None).await.is_empty());
}

#[tokio::test]
async fn what_an_upload_left_is_taken_over() {
    let World { dir, store } = world();
    std::fs::write(dir.path().join(".partial-x"), b"longer than what comes").unwrap();
    store.put(&key("x"), "whole".into()).await.unwrap();
    assert_eq!(body(&store, "x").await, b"whole");
    let mut upload = store.put_multipart(&key("y")).await.unwrap();
    upload.put_part("half".into()).await.unwrap();
    upload.abort().await.unwrap();
    drop(upload);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[tokio::test]
async fn a_store_whose_directory_is_gone_is_no_empty_store() {
    let World { dir, store } = world();
    store.put(&key("a/x"), "content".into()).await.unwrap();
    let away = dir.path().with_extension("away");
    std::fs::rename(dir.path(), &away).unwrap();
    store.put(&key("a/y"), "content".into()).await.unwrap_err();
    let listed: Result<Vec<ObjectMeta>> = store.list(None).try_collect().await;
    listed.unwrap_err();
    assert!(!dir.path().exists(), "it is made by nobody");
    // It comes back with nothing done.
    std::fs::rename(&away, dir.path()).unwrap();
    assert_eq!(keys(&store, None).await, ["a/x"]);
    store.put(&key("a/y"), "content".into()).await.unwrap();
}

#[tokio::test]
async fn errors_name_the_path() {
    let World { dir, store } = world();
    std::fs::write(dir.path().join("file"), b"").unwrap();
    let errors = [
        store.get(&key("a/missing")).await.unwrap_err(),
        store.put(&key("file/below"), "x".into()).await.unwrap_err(),
        store.put(&key(&format!("a/{}", "n".repeat(300))), "x".into()).await.unwrap_err(),
    ];
    let parts = ["a/missing", "file/", "nnn"];
    for (error, part) in errors.iter().zip(parts) {
        assert!(error.to_string().contains(part), "{error}");
    }
    assert!(matches!(errors[0], Error::NotFound { .. }));
    // Case: a directory is no object.
    store.put(&key("d/x"), "x".into()).await.unwrap();
    assert!(matches!(store.head(&key("d")).await, Err(Error::NotFound { .. })));
}

#[tokio::test]
async fn deleting() {
    let World { dir: _dir, store } = world();
    store.put(&key("a/x"), "x".into()).await.unwrap();
    store.delete(&key("a/x")).await.unwrap();
    // Case: gone already.
    store.delete(&key("a/x")).await.unwrap();
    assert!(keys(&store, None).await.is_empty());
}

const NAME: &str = "a/journal/day=1/object";
const PART: &str = "one part, and some bytes more than a sector. ";

/// Uploads in two parts of several sectors.
async fn upload(disk: &ForgetfulDisk) -> Result<()> {
    let store = FileStore::new(Arc::new(disk.clone()), "");
    let mut upload = store.put_multipart(&key(NAME)).await?;
    for _ in 0..2 {
        upload.put_part(PART.repeat(50).into()).await?;
    }
    upload.complete().await.map(|_| ())
}

async fn put(disk: &ForgetfulDisk) -> Result<()> {
    let store = FileStore::new(Arc::new(disk.clone()), "");
    store.put(&key(NAME), PART.repeat(100).into()).await.map(|_| ())
}

/// Whether the object is there; if so, it must be whole.
async fn is_there(disk: &ForgetfulDisk) -> bool {
    let store = FileStore::new(Arc::new(disk.clone()), "");
    if keys(&store, None).await.is_empty() {
        return false;
    }
    assert!(body(&store, NAME).await == PART.repeat(100).as_bytes(), "the object is not whole");
    true
}

fn crashes() -> impl Iterator<Item = Crash> {
    [Crash::Kill].into_iter().chain((0..20).map(Crash::Power))
}

#[tokio::test]
async fn what_was_put_survives_every_crash() {
    for crash in crashes() {
        for by_parts in [false, true] {
            let disk = ForgetfulDisk::new();
            if by_parts { upload(&disk).await } else { put(&disk).await }.unwrap();
            assert!(is_there(&disk.crash(crash)).await, "{crash:?}");
        }
    }
}

#[tokio::test]
async fn a_put_that_is_cut_anywhere_leaves_all_or_nothing_and_can_be_repeated() {
    let counted = ForgetfulDisk::new();
    upload(&counted).await.unwrap();
    for at in 0..counted.operations() {
        for crash in crashes() {
            let disk = ForgetfulDisk::new();
            disk.stop_at(at);
            // Where it stops in a `create_dir`, which this disk never cuts, later operations fail.
            upload(&disk).await.unwrap_err();
            let disk = disk.crash(crash);
            is_there(&disk).await;
            put(&disk).await.unwrap();
            assert!(is_there(&disk.crash(crash)).await, "stopped at {at}, then {crash:?}");
        }
    }
}

#[tokio::test]
async fn an_object_that_is_found_is_settled() {
    for crash in crashes() {
        let disk = ForgetfulDisk::new();
        // What Gazette does: no sync at all.
        disk.create_dir(Path::new("a/journal/day=1")).unwrap();
        let file = disk.open(Path::new(NAME), Open::New).unwrap();
        file.write_at(PART.repeat(100).as_bytes(), 0).unwrap();
        let store = FileStore::new(Arc::new(disk.clone()), "");
        store.settle(&key(NAME)).await.unwrap();
        assert!(is_there(&disk.crash(crash)).await, "{crash:?}");
    }
}

#[tokio::test]
async fn a_disk_that_fails_or_is_full_leaves_no_object() {
    const EIO: i32 = 5;
    for operation in ["create_dir", "open", "set_len", "write", "sync", "rename"] {
        let disk = ForgetfulDisk::new();
        disk.fail(Trouble { operation: Some(operation), nth: 0, errno: EIO });
        let error = put(&disk).await.unwrap_err();
        assert!(error.to_string().contains("a/journal/day=1"), "{operation}: {error}");
        assert!(!is_there(&disk).await, "{operation}");
        put(&disk).await.unwrap();
        assert!(is_there(&disk.crash(Crash::Power(1))).await, "{operation}");
    }
    let disk = ForgetfulDisk::new();
    disk.set_capacity(Some(2000));
    put(&disk).await.unwrap_err();
    let left = disk.list(Path::new("a/journal/day=1")).unwrap();
    assert_eq!(left, [], "what was written aside is removed");
}
