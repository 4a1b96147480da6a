//! What a listing says of a store's journals.

use super::naming::Named;
use crate::{Error, Stat};
use index::cover::{Cover, CoverSet};
use protocol::{Fragment, Journal, Life, Offset, Span};
use ring::digest::{Context, SHA256};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The journals of a store, by name.
#[derive(Debug, Default)]
pub(super) struct Catalog {
    journals: BTreeMap<Journal, Known>,
    lives: BTreeSet<Life>,
}

/// One journal.
#[derive(Debug)]
pub(super) struct Known {
    life: Life,
    cover: CoverSet,
    /// Heads never go back, whatever is deleted in the store.
    head: Offset,
    /// When the last fragment was stored.
    modified: SystemTime,
    /// Spans between fragments, and up to the head.
    gaps: u64,
    /// Fragments that were read whole and hold something else. A part of one could be read without
    /// being checked, so it is not.
    damaged: BTreeMap<Span, String>,
}

/// Where a read at an offset goes on.
#[derive(Debug)]
pub(super) enum Place {
    Stored(Box<Fragment>),
    /// At the head or beyond.
    Ahead,
    Gone(Error),
}

impl Catalog {
    /// Puts a listing in the place of what was known. Answers whether journals came or went.
    pub fn replace(&mut self, store: &str, named: Named) -> bool {
        let count = |journals: &BTreeMap<Journal, Known>| -> Vec<Life> {
            journals.values().map(|known| known.life).collect()
        };
        let before = count(&self.journals);
        let mut old = std::mem::take(&mut self.journals);
        for (journal, fragments) in named.journals {
            let mut known = match old.remove(&journal) {
                Some(known) => known,
                None => Known::new(self.new_life(store, &journal)),
            };
            known.replace(fragments);
            self.journals.insert(journal, known);
        }
        for gone in old.values() {
            self.lives.remove(&gone.life);
        }
        before != count(&self.journals)
    }

    /// Adds fragments that came since the last listing. Answers whether the journal grew.
    pub fn add(&mut self, journal: &Journal, fragments: Vec<Fragment>) -> bool {
        let Some(known) = self.journals.get_mut(journal) else { return false };
        let head = known.head;
        known.cover.extend(fragments);
        known.count();
        known.head > head
    }

    pub fn stat(&self, journal: &Journal) -> Result<Stat, Error> {
        let known = self.journals.get(journal);
        known.map(|known| known.stat(journal)).ok_or_else(|| Error::NotFound(journal.clone()))
    }

    /// Bytes of all journals' fragments, decompressed.
    pub fn bytes(&self) -> u64 {
        let fragments = self.journals.values().flat_map(|known| known.cover.iter());
        fragments.map(|fragment| fragment.span.len()).sum()
    }

    pub fn list(&self, prefix: &str) -> Vec<Stat> {
        // Journal names are ordered as their text is.
        let below = self
            .journals
            .range::<str, _>((std::ops::Bound::Included(prefix), std::ops::Bound::Unbounded));
        let below = below.take_while(|(journal, _)| journal.as_str().starts_with(prefix));
        below.map(|(journal, known)| known.stat(journal)).collect()
    }

    /// Where a read of that life goes on.
    pub fn place(&self, journal: &Journal, life: Option<Life>, offset: Offset) -> Place {
        match self.journals.get(journal) {
            Some(known) if life.is_none_or(|life| life == known.life) => {
                known.place(journal, offset)
            }
            _ if life.is_some() => Place::Gone(Error::Deleted(journal.clone())),
            _ => Place::Gone(Error::NotFound(journal.clone())),
        }
    }

    /// The first `max` fragments that begin at `from` or above, in order.
    pub fn stored(
        &self,
        journal: &Journal,
        from: Offset,
        max: usize,
    ) -> Result<Vec<Fragment>, Error> {
        let known = self.journals.get(journal);
        let known = known.ok_or_else(|| Error::NotFound(journal.clone()))?;
        Ok(known.cover.iter_from(from).take(max).cloned().collect())
    }

    /// The fragment that ends last.
    pub fn last(&self, journal: &Journal) -> Option<Fragment> {
        self.journals.get(journal)?.cover.last().cloned()
    }

    /// Whether the directory of a journal's postfix is, or is in, another journal.
    pub fn is_another(&self, journal: &Journal, postfix: &str) -> bool {
        let path = format!("{journal}/{postfix}");
        let above = std::iter::successors(Some(path.as_str()), |path| {
            path.rsplit_once('/').map(|(above, _)| above)
        });
        above
            .take_while(|path| path.len() > journal.as_str().len())
            .any(|path| self.journals.contains_key(path))
    }

    /// A fragment was read whole, and is not what its name says.
    pub fn condemn(&mut self, fragment: &Fragment, detail: String) {
        if let Some(known) = self.journals.get_mut(&fragment.journal) {
            known.damaged.insert(fragment.span, detail);
        }
    }

    /// A hash of the store's URL and the name, and of a nonce where two journals would share it.
    fn new_life(&mut self, store: &str, journal: &Journal) -> Life {
        let lives = (0u32..).map(|nonce| life(store, journal, nonce));
        let mut free = lives.filter(|life| !self.lives.contains(life));
        let life = free.next().expect("a store holds fewer than 2^32 journals");
        self.lives.insert(life);
        life
    }
}

fn life(store: &str, journal: &Journal, nonce: u32) -> Life {
    let mut hash = Context::new(&SHA256);
    for part in [store.as_bytes(), b"\0", journal.as_str().as_bytes(), &nonce.to_le_bytes()] {
        hash.update(part);
    }
    let digest = hash.finish();
    let (first, _) = digest.as_ref().split_first_chunk().expect("a digest has 32 bytes");
    Life::new(u64::from_le_bytes(*first))
}

impl Known {
    fn new(life: Life) -> Self {
        Known {
            life,
            cover: CoverSet::new(),
            head: Offset::ZERO,
            modified: UNIX_EPOCH,
            gaps: 0,
            damaged: BTreeMap::new(),
        }
    }

    fn replace(&mut self, fragments: Vec<Fragment>) {
        self.cover.replace(fragments);
        self.count();
        let cover = &self.cover;
        self.damaged.retain(|span, _| {
            matches!(cover.covering(span.begin()), Cover::Here(there) if there.span == *span)
        });
    }

    fn first(&self) -> Offset {
        self.cover.first().map_or(self.head, Fragment::begin)
    }

    /// What a look at each fragment tells, so that nobody else has to look.
    fn count(&mut self) {
        self.head = self.head.max(self.cover.end());
        let (mut end, mut gaps, mut stored) = (self.first(), 0, 0);
        for fragment in self.cover.iter() {
            gaps += u64::from(fragment.begin() > end);
            end = fragment.end();
            stored = stored.max(fragment.mod_time.unsigned_abs());
        }
        self.gaps = gaps + u64::from(self.head > end);
        self.modified = UNIX_EPOCH + Duration::from_secs(stored);
    }

    fn stat(&self, journal: &Journal) -> Stat {
        Stat {
            journal: journal.clone(),
            life: self.life,
            first: self.first(),
            trimmed: self.first(),
            head: self.head,
            synced: self.head,
            persisted: self.head,
            modified: self.modified,
            create_revision: 0,
            mod_revision: 0,
            content_type: None,
            may_read: true,
            may_write: false,
            fragments: self.cover.len() as u64,
            gaps: self.gaps,
            registers: None,
        }
    }

    fn place(&self, journal: &Journal, offset: Offset) -> Place {
        if offset >= self.head {
            return Place::Ahead;
        }
        let journal = journal.clone();
        let gap_until = |end: Offset| {
            let span = Span::between(offset, end);
            Place::Gone(match offset < self.first() {
                true => Error::Trimmed { journal: journal.clone(), span },
                false => {
                    let detail = "no fragment of the store has them".to_owned();
                    Error::Damaged { journal: journal.clone(), span, detail }
                }
            })
        };
        match self.cover.covering(offset) {
            Cover::Here(fragment) => match self.damaged.get(&fragment.span) {
                Some(detail) => {
                    let (span, detail) = (fragment.span, detail.clone());
                    Place::Gone(Error::Damaged { journal, span, detail })
                }
                None => Place::Stored(Box::new(fragment.clone())),
            },
            Cover::Next(fragment) => gap_until(fragment.begin()),
            Cover::Past => gap_until(self.head),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use protocol::{Codec, Sum};

    fn journal(name: &str) -> Journal {
        name.parse().expect("valid")
    }

    fn named(spans: &[(&str, u32, u64)]) -> Named {
        let mut named = Named::default();
        for (name, begin, len) in spans {
            let span = Span::at(Offset::from(*begin), *len);
            let fragment = Fragment::local(journal(name), span, Sum::ZERO, Codec::None);
            let fragment = Fragment { mod_time: 7, backing_store: "file:///".into(), ..fragment };
            named.journals.entry(journal(name)).or_default().push(fragment);
        }
        named
    }

    #[test]
    fn reads_go_where_the_bytes_are() {
        let mut catalog = Catalog::default();
        catalog.replace("file:///", named(&[("a/log", 10, 5), ("a/log", 20, 5)]));
        let stat = catalog.stat(&journal("a/log")).expect("listed");
        assert_eq!((stat.first.get(), stat.head.get(), stat.gaps), (10, 25, 1));
        // Case: the offset, and what a read there meets.
        let cases = [
            (0, "trimmed"),
            (9, "trimmed"),
            (10, "stored"),
            (14, "stored"),
            (15, "damaged"),
            (24, "stored"),
            (25, "ahead"),
            (99, "ahead"),
        ];
        for (offset, expected) in cases {
            let place = catalog.place(&journal("a/log"), None, Offset::from(offset));
            let found = match place {
                Place::Stored(_) => "stored",
                Place::Ahead => "ahead",
                Place::Gone(Error::Trimmed { .. }) => "trimmed",
                Place::Gone(Error::Damaged { .. }) => "damaged",
                Place::Gone(other) => panic!("{other}"),
            };
            assert_eq!(found, expected, "{offset}");
        }
    }

    #[test]
    fn heads_never_go_back_and_lives_stay() {
        let mut catalog = Catalog::default();
        assert!(catalog.replace("s3://b/", named(&[("a/log", 0, 5), ("a/log", 5, 5)])));
        let before = catalog.stat(&journal("a/log")).expect("listed");
        assert!(!catalog.replace("s3://b/", named(&[("a/log", 0, 5)])));
        let after = catalog.stat(&journal("a/log")).expect("listed");
        assert_eq!((after.head, after.life), (before.head, before.life));
        assert!(catalog.replace("s3://b/", named(&[("b/log", 0, 5)])));
        assert!(matches!(catalog.stat(&journal("a/log")), Err(Error::NotFound(_))));
        // Case: the same journal again, in this mount and in another one, has the same life.
        catalog.replace("s3://b/", named(&[("a/log", 0, 5)]));
        assert_eq!(catalog.stat(&journal("a/log")).expect("listed").life, before.life);
        let mut other = Catalog::default();
        other.replace("s3://c/", named(&[("a/log", 0, 5)]));
        assert_ne!(other.stat(&journal("a/log")).expect("listed").life, before.life);
    }

    #[test]
    fn lists_are_of_a_prefix_and_nested_journals_are_known() {
        let mut catalog = Catalog::default();
        catalog.replace("s3://b/", named(&[("a/log", 0, 5), ("a/log/x", 0, 5), ("b/log", 0, 5)]));
        let names = |prefix| -> Vec<String> {
            catalog.list(prefix).into_iter().map(|stat| stat.journal.to_string()).collect()
        };
        assert_eq!(names("a/"), ["a/log", "a/log/x"]);
        assert_eq!(names("").len(), 3);
        assert!(catalog.is_another(&journal("a/log"), "x"));
        assert!(catalog.is_another(&journal("a/log"), "x/day=1"));
        assert!(!catalog.is_another(&journal("a/log"), "day=1"));
    }
}
