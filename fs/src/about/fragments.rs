//! Stored fragments as files: each by its content name, which is its span and the SHA1 of its bytes
//! (gazette-spec 3.1).
//!
//! A file has the journal's bytes of the span, decompressed, so that `sha1sum` checks them against
//! the name. They come from wherever the journal's bytes come from. Local fragments that no store
//! has are left out: their sums, and so their names, are known only when they are stored.

use crate::directories::entry;
use crate::limits::FRAGMENTS_AT_ONCE;
use crate::nodes::{Role, Subject};
use crate::patience::patiently;
use crate::shown::Shown;
use crate::{Attr, DirEntry, Error, Filesystem, Trimmed, names};
use bytes::Bytes;
use client::name::{content_name, parse};
use protocol::{Fragment, Offset};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

impl Filesystem {
    /// The fragment of a name in the directory of a journal; `None` where the name is of none.
    pub(super) async fn find_fragment(
        &self,
        directory: &str,
        name: &[u8],
    ) -> Result<Option<Role>, Error> {
        let named = std::str::from_utf8(name).ok().and_then(|name| parse(name).ok());
        let Some(named) = named else { return Ok(None) };
        let Some((shown, _)) = self.find_shown(directory).await? else { return Ok(None) };
        let found = self.stored(&shown, named.span.begin(), 1).await?;
        let found = found.into_iter().find(|it| content_name(it).as_bytes() == name);
        Ok(found.map(|fragment| Role::Fragment(shown, Arc::new(fragment))))
    }

    /// Adds the fragments of the journal of a directory, if it is one.
    pub(super) async fn add_fragments(
        &self,
        directory: &str,
        found: &mut BTreeMap<Vec<u8>, DirEntry>,
    ) -> Result<(), Error> {
        let Some((shown, _)) = self.find_shown(directory).await? else { return Ok(()) };
        let mut from = Offset::ZERO;
        loop {
            let page = self.stored(&shown, from, FRAGMENTS_AT_ONCE).await?;
            for fragment in &page {
                let name = content_name(fragment);
                let attr = self.attr_of_fragment(fragment, &name);
                found.insert(name.into_bytes(), entry(Vec::new(), attr));
            }
            match page.last() {
                Some(last) if page.len() == FRAGMENTS_AT_ONCE => from = last.begin().plus(1),
                _ => return Ok(()),
            }
        }
    }

    pub(crate) fn fragment_attr(&self, fragment: &Fragment) -> Attr {
        self.attr_of_fragment(fragment, &content_name(fragment))
    }

    fn attr_of_fragment(&self, fragment: &Fragment, name: &str) -> Attr {
        let place = Subject::Fragments.place(&names::join(fragment.journal.as_str(), name));
        let attr = Attr::file(&self.options, names::control_inode(&place), false);
        let stored = Duration::from_secs(fragment.mod_time.max(0).unsigned_abs());
        Attr { size: fragment.span.len(), modified: UNIX_EPOCH + stored, ..attr }
    }

    /// Bytes of a fragment's file. What was trimmed meanwhile is an error on every mount: zeros
    /// would be a file of another sum.
    pub(crate) async fn read_fragment(
        &self,
        shown: &Shown,
        fragment: &Fragment,
        offset: u64,
        size: usize,
    ) -> Result<Bytes, Error> {
        let left = fragment.span.len().saturating_sub(offset);
        let size = usize::try_from(left).unwrap_or(usize::MAX).min(size);
        match size {
            0 => Ok(Bytes::new()),
            size => self.gather(shown, fragment.begin().plus(offset), size, Trimmed::Error).await,
        }
    }

    async fn stored(
        &self,
        shown: &Shown,
        from: Offset,
        max: usize,
    ) -> Result<Vec<Fragment>, Error> {
        let ask = || self.journals.stored(shown.journal(), from, max);
        match patiently(self.options.write_timeout, ask).await {
            Err(client::Error::NotFound(_)) => Ok(Vec::new()),
            found => Ok(found?),
        }
    }
}
