//! Listing a journal's fragments: all of them, or those behind one that is known.

use super::Store;
use super::error::{Doing, StoreError};
use crate::name;
use futures::future::ready;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{ObjectMeta, Result};
use protocol::{Fragment, Journal};

impl Store {
    /// The fragments of `journal`, in the order of their keys. Objects that are no fragments are
    /// skipped (gazette-spec 3.1).
    pub async fn list(&self, journal: &Journal) -> Result<Vec<Fragment>, StoreError> {
        let (prefix, dir) = self.place_of(journal)?;
        self.listed(journal, &prefix, self.objects.list(Some(&dir))).await
    }

    /// The fragments of `known`'s journal whose keys come behind its own, in their order. Where the
    /// store lists in the order of keys, those before are not looked at.
    pub async fn list_behind(&self, known: &Fragment) -> Result<Vec<Fragment>, StoreError> {
        let journal = &known.journal;
        let (prefix, dir) = self.place_of(journal)?;
        let offset = self.key_of(&self.key_text(&name::path(known)))?;
        let listed = self.objects.list_with_offset(Some(&dir), &offset);
        // Some that speak as a cloud does list everything, whatever is asked.
        let behind = listed.try_filter(move |object| ready(object.location > offset)).boxed();
        self.listed(journal, &prefix, behind).await
    }

    /// What all keys of a journal begin with, and the directory that holds them.
    fn place_of(&self, journal: &Journal) -> Result<(String, Key), StoreError> {
        let prefix = self.key_text(&format!("{journal}/"));
        // The rewritten prefix need not end where a directory does.
        let dir = prefix.rfind('/').map_or("", |end| &prefix[..end]);
        let dir = self.key_of(dir)?;
        Ok((prefix, dir))
    }

    async fn listed(
        &self,
        journal: &Journal,
        prefix: &str,
        objects: BoxStream<'static, Result<ObjectMeta>>,
    ) -> Result<Vec<Fragment>, StoreError> {
        let listed = objects.try_collect::<Vec<ObjectMeta>>().await;
        let mut objects = listed.map_err(|error| self.failed(Doing::List, prefix, error))?;
        objects.sort_by(|a, b| a.location.cmp(&b.location));
        let found = objects.iter().filter_map(|object| {
            let below = object.location.as_ref().strip_prefix(prefix)?;
            self.fragment_of(journal, below, object)
        });
        Ok(found.collect())
    }

    /// The fragment that an object is, by its name; `None` where it is none.
    fn fragment_of(&self, journal: &Journal, below: &str, object: &ObjectMeta) -> Option<Fragment> {
        // At least 1: 0 would say that the fragment is not in a store.
        let mod_time = object.last_modified.timestamp().max(1);
        let key = &object.location;
        match name::parse(below) {
            Ok(named) => {
                let store = self.url.text.clone();
                let fragment = named.into_fragment(journal.clone(), store, mod_time);
                // A fragment says where it lies by its fields alone. One that lies elsewhere (an
                // offset without its padding, say) could be listed, and never read.
                let is_there =
                    name::paths(&fragment).any(|path| self.key_text(&path) == key.as_ref());
                if !is_there {
                    tracing::debug!(%key, "skipping an object whose name is not a fragment's own");
                }
                is_there.then_some(fragment)
            }
            Err(error) => {
                tracing::debug!(%key, %error, "skipping an object that is no fragment");
                None
            }
        }
    }
}
