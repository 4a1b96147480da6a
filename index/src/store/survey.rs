//! Everything that lies in a store, for who has no list of journals.

use super::Store;
use super::error::{Doing, StoreError};
use super::health::is_probe;
use futures::TryStreamExt;
use object_store::path::Path as Key;

/// An object of a store, whether or not it is a fragment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// Below the store, as a journal's fragments have it: a rewrite by the URL is undone.
    pub path: String,
    /// Last modification, in unix seconds; at least 1.
    pub mod_time: i64,
    /// Bytes as they lie in the store.
    pub len: u64,
}

impl Store {
    /// All objects of the store, by path. Those of health checks are left out, and those whose
    /// path is no rewritten one (gazette-spec 3.8, `find` and `replace`).
    pub async fn survey(&self) -> Result<Vec<Object>, StoreError> {
        let prefix = self.url.key_prefix();
        let failed = |error| self.failed(Doing::List, prefix, error);
        let dir = self.key_of(prefix.trim_end_matches('/'))?;
        let within = (!dir.as_ref().is_empty()).then_some(&dir);
        let mut listed = self.objects.list(within);
        let mut objects = Vec::new();
        while let Some(meta) = listed.try_next().await.map_err(failed)? {
            let Some(path) = self.path_of(&meta.location) else { continue };
            // At least 1: 0 would say that a fragment is not in a store.
            let mod_time = meta.last_modified.timestamp().max(1);
            objects.push(Object { path, mod_time, len: meta.size });
        }
        objects.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(objects)
    }

    fn path_of(&self, key: &Key) -> Option<String> {
        let below = key.as_ref().strip_prefix(self.url.key_prefix())?;
        if is_probe(below) { None } else { self.url.restore(below) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;
    use object_store::{ObjectStore, ObjectStoreExt};
    use std::sync::Arc;

    #[tokio::test]
    async fn all_objects_of_the_store_are_seen_and_no_others() {
        let objects = Arc::new(InMemory::new());
        let keys = [
            "pre/b/x",
            "pre/a/log/y",
            "pre/a/log/day=1/z",
            "prefix/other",
            "top",
            "pre/.test/health-check",
        ];
        for key in keys {
            objects.put(&Key::parse(key).unwrap(), "12345".into()).await.unwrap();
        }
        // Case: the URL, the paths.
        let cases: [(&str, &[&str]); 3] = [
            ("s3://bucket/pre/", &["a/log/day=1/z", "a/log/y", "b/x"]),
            // Case: the paths are those that journals have, before the rewrite.
            ("s3://bucket/pre/?find=old/&replace=a/", &["b/x", "old/log/day=1/z", "old/log/y"]),
            (
                "s3://bucket/",
                &[
                    "pre/.test/health-check",
                    "pre/a/log/day=1/z",
                    "pre/a/log/y",
                    "pre/b/x",
                    "prefix/other",
                    "top",
                ],
            ),
        ];
        for (url, expected) in cases {
            let store = Store::over(url, objects.clone() as Arc<dyn ObjectStore>).unwrap();
            let found = store.survey().await.unwrap();
            let paths: Vec<&str> = found.iter().map(|object| object.path.as_str()).collect();
            assert_eq!(paths, expected, "{url}");
            assert!(found.iter().all(|object| object.len == 5 && object.mod_time > 0));
        }
    }
}
