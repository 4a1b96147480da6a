//! One journal that this broker serves: its spec, its local half and its stored half.

use crate::Error;
use crate::append::Allowance;
use crate::metrics::Traffic;
use crate::stored::Stored;
use client::Stat;
use cluster::Entry;
use index::ledger::{Closed, Ledger};
use index::{Located, Policy, Replica};
use protocol::{Codec, Fragment, Journal, Life, Offset, Span, Sum};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::time::Instant;

/// How old the copy of a ledger may be by which fragments are shown. What is readable is asked
/// anew each time; only the borders of what is shown of it may be late.
const VIEW_AGE: Duration = Duration::from_millis(200);

/// A journal between creation and deletion.
#[derive(Debug)]
pub struct Served {
    entry: RwLock<Arc<Entry>>,
    replica: Arc<Replica>,
    stored: Stored,
    view: Mutex<Option<(Instant, Arc<Ledger>)>>,
    is_purged: AtomicBool,
    /// How much content it may take, where its rate is limited.
    allowance: Allowance,
    traffic: Traffic,
}

/// Where the bytes at an offset are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the mirror, from the offset to the end of the span.
    Local(Span),
    /// In a store.
    Stored(Fragment),
    /// At the head or beyond it.
    Ahead,
    /// Nowhere: `span` begins at the offset, and ends where something else begins.
    Gap(Gap, Span),
}

/// Why bytes are nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gap {
    Trimmed,
    Lost,
    Damaged,
    /// Neither local nor listed.
    Missing,
}

impl Served {
    pub(crate) fn new(entry: Arc<Entry>, replica: Arc<Replica>) -> Self {
        replica.set_policy(policy(&entry));
        let stored = Stored::new(entry.spec.fragment.stores.is_empty());
        Served {
            entry: RwLock::new(entry),
            replica,
            stored,
            view: Mutex::default(),
            is_purged: AtomicBool::new(false),
            allowance: Allowance::default(),
            traffic: Traffic::default(),
        }
    }

    pub fn journal(&self) -> &Journal {
        self.replica.name()
    }

    pub fn life(&self) -> Life {
        self.replica.life()
    }

    /// The spec as it is, with its revisions.
    pub fn entry(&self) -> Arc<Entry> {
        self.entry.read().expect("no holder of an entry panics").clone()
    }

    /// Refuses where the spec lets nobody read the journal.
    pub(crate) fn must_be_readable(&self) -> Result<(), Error> {
        if self.entry().spec.flags.may_read() {
            return Ok(());
        }
        let detail = "the journal is write-only";
        Err(Error::NotAllowed { journal: self.journal().clone(), detail })
    }

    /// The spec was applied again. One that is older than the last is passed over: those who apply
    /// may come in another order than their transactions.
    pub(crate) fn set_entry(&self, entry: Arc<Entry>) {
        let mut held = self.entry.write().expect("no holder of an entry panics");
        if entry.mod_revision < held.mod_revision {
            return;
        }
        self.replica.set_policy(policy(&entry));
        let has_other_stores = held.spec.fragment.stores != entry.spec.fragment.stores;
        *held = entry;
        drop(held);
        if has_other_stores {
            self.stored.refresh_soon();
        }
    }

    pub fn replica(&self) -> &Arc<Replica> {
        &self.replica
    }

    /// The journal's stored fragments are deleted: no new one may stay behind.
    pub(crate) fn set_purged(&self) {
        self.is_purged.store(true, Ordering::Release);
    }

    pub(crate) fn is_purged(&self) -> bool {
        self.is_purged.load(Ordering::Acquire)
    }

    /// What went in and out since this process serves it.
    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(crate) fn allowance(&self) -> &Allowance {
        &self.allowance
    }

    pub(crate) fn stored(&self) -> &Stored {
        &self.stored
    }

    /// Local bytes that could be freed, as far as nobody has the mirror open: those that a store
    /// has at this moment.
    pub(crate) fn freeable_len(&self) -> u64 {
        let stored = self.replica.stored_here();
        stored.iter().filter(|span| self.stored.covers(**span)).map(|span| span.len()).sum()
    }

    /// Whether another broker wrote to the journal's store, and what of its was found there.
    pub fn second_writer(&self) -> Option<String> {
        self.stored.second_writer().map(|foreign| foreign.detail)
    }

    /// Where the journal's index ends: at the head, unless another broker wrote to the store.
    pub fn index_end(&self) -> Offset {
        self.replica.head().max(self.stored.end())
    }

    /// Whether the end of the journal is known: it has local records, or its stores were listed.
    pub fn is_known(&self) -> bool {
        self.stored.is_listed() || !self.replica.is_blank()
    }

    /// The first readable offset; the head where nothing is readable. Before the stores are listed
    /// everything that was not given up by will counts as readable.
    pub fn first(&self) -> Offset {
        let trimmed = self.replica.trimmed();
        if !self.stored.is_listed() {
            return trimmed;
        }
        self.readable_from(trimmed).unwrap_or_else(|| self.replica.head())
    }

    /// Below, every byte was given up by will: it is recorded as trimmed, or nobody has it and
    /// nothing before it. At most [`Served::first`]: what begins a journal may be lost or damaged.
    pub fn given_up(&self) -> Offset {
        let mut offset = self.replica.trimmed();
        if self.stored.is_listed() {
            while let Place::Gap(Gap::Trimmed | Gap::Missing, span) = self.place(offset) {
                offset = span.end();
            }
        }
        offset
    }

    /// The time of the last append; of one that was made elsewhere, when its fragment was stored.
    fn modified(&self) -> SystemTime {
        match self.replica.modified() {
            UNIX_EPOCH => self.stored.last_stored().unwrap_or(UNIX_EPOCH),
            modified => modified,
        }
    }

    /// What the journal is at this moment.
    pub fn stat(&self) -> Stat {
        let entry = self.entry();
        let spec = &entry.spec;
        // In this order: what is synced or persisted at one moment is below a later head.
        let (persisted, synced) = (self.replica.persisted(), self.replica.synced());
        let head = self.replica.head();
        Stat {
            journal: spec.name.clone(),
            life: entry.life,
            first: self.first().min(head),
            trimmed: self.given_up().min(head),
            head,
            synced: synced.min(head),
            persisted: persisted.min(head),
            modified: self.modified(),
            create_revision: entry.create_revision,
            mod_revision: entry.mod_revision,
            content_type: spec.content_type().map(str::to_owned),
            may_read: spec.flags.may_read(),
            may_write: spec.flags.may_write(),
            fragments: self.stored.fragments(),
            gaps: self.gaps(),
            registers: Some(self.replica.registers()),
        }
    }

    /// Spans below the head that were lost, and such that are damaged, as far as no store has them.
    ///
    /// A span is lost while nobody is known to have it: what another broker acknowledged there and
    /// stores later is found again, since it is the only content that its offsets ever had.
    pub fn missing(&self) -> (Vec<Span>, Vec<Span>) {
        let (lost, damaged) = self.replica.missing();
        let missing = |spans: Vec<Span>| {
            spans.into_iter().flat_map(|span| self.stored.gaps(span)).collect::<Vec<_>>()
        };
        (missing(lost), missing(damaged))
    }

    /// How many those are.
    pub(crate) fn gaps(&self) -> u64 {
        if self.replica.gaps() == 0 {
            return 0;
        }
        let (lost, damaged) = self.missing();
        (lost.len() + damaged.len()) as u64
    }

    /// Where the bytes at `offset` are at this moment.
    pub(crate) fn place(&self, offset: Offset) -> Place {
        let (gap, span) = match self.replica.locate(offset) {
            Located::Local(span) => return Place::Local(span),
            Located::Ahead => return Place::Ahead,
            Located::Trimmed(span) => return Place::Gap(Gap::Trimmed, span),
            Located::Lost(span) => (Gap::Lost, span),
            Located::Damaged(span) => (Gap::Damaged, span),
            Located::Remote(span) => (Gap::Missing, span),
        };
        match self.stored.covering(offset) {
            Ok(fragment) => Place::Stored(fragment),
            Err(next) => {
                let end = next.map_or(span.end(), |next| next.min(span.end()));
                Place::Gap(gap, Span::between(offset, end))
            }
        }
    }

    /// The first offset from `offset` on at which bytes can be read; `None` up to the head.
    pub(crate) fn readable_from(&self, offset: Offset) -> Option<Offset> {
        let mut offset = offset;
        loop {
            match self.place(offset) {
                Place::Local(_) | Place::Stored(_) => return Some(offset),
                Place::Ahead => return None,
                // Invariant: a gap is not empty, so this ends at the head.
                Place::Gap(_, span) => {
                    assert!(!span.is_empty(), "{}: an empty gap at {offset}", self.journal());
                    offset = span.end();
                }
            }
        }
    }

    /// The fragment that local bytes are shown as: the closed span or the spool around the begin of
    /// `span`, which is local.
    pub(crate) fn shown(&self, span: Span) -> Fragment {
        let offset = span.begin();
        let view = self.view();
        let at = view.closed.partition_point(|closed| closed.span.end() <= offset);
        let closed = view.closed.get(at).filter(|closed| closed.span.contains(offset));
        match closed {
            Some(closed) => self.closed(closed),
            None => {
                let shown = Span::between(view.spool.begin.min(offset), span.end());
                Fragment::local(self.journal().clone(), shown, Sum::ZERO, self.spool_codec(&view))
            }
        }
    }

    fn spool_codec(&self, view: &Ledger) -> Codec {
        if view.spool_is_empty() { self.entry().spec.fragment.codec } else { view.spool.codec }
    }

    /// A closed span as a fragment: as it is stored, or with no sum while it is not.
    fn closed(&self, closed: &Closed) -> Fragment {
        let local = Fragment::local(self.journal().clone(), closed.span, Sum::ZERO, closed.codec);
        match &closed.persisted {
            None => local,
            Some(stored) => Fragment {
                sum: stored.sum,
                codec: stored.codec,
                backing_store: stored.store.clone(),
                mod_time: stored.mod_time,
                path_postfix: stored.postfix.clone(),
                ..local
            },
        }
    }

    /// Local fragments that no store has: closed ones, then the spool.
    pub(crate) fn unpersisted(&self) -> Vec<Fragment> {
        let ledger = self.replica.ledger();
        let head = self.replica.head();
        let closed = ledger.closed.iter().filter(|closed| closed.persisted.is_none());
        let closed = closed.map(|closed| self.closed(closed));
        let spool = Span::between(ledger.spool.begin, head);
        let codec = self.spool_codec(&ledger);
        let spool = Fragment::local(self.journal().clone(), spool, Sum::ZERO, codec);
        closed.chain([spool]).filter(|fragment| !fragment.span.is_empty()).collect()
    }

    /// Closed spans that were put once and that no store has any more, as far as their listings
    /// tell, while the local files have them whole; ascending.
    pub(crate) fn vanished(&self) -> Vec<Closed> {
        let ledger = self.replica.ledger();
        let local = ledger.local;
        let is_vanished = |closed: &Closed| {
            closed.persisted.is_some()
                && local.covers(closed.span)
                && !self.stored.covers(closed.span)
        };
        ledger.closed.into_iter().filter(is_vanished).collect()
    }

    fn view(&self) -> Arc<Ledger> {
        let now = Instant::now();
        let mut view = self.view.lock().expect("no holder of a view panics");
        match &*view {
            Some((at, ledger)) if now.duration_since(*at) < VIEW_AGE => ledger.clone(),
            _ => {
                let ledger = Arc::new(self.replica.ledger());
                *view = Some((now, ledger.clone()));
                ledger
            }
        }
    }

    /// What is shown of local bytes has changed.
    pub(crate) fn forget_view(&self) {
        *self.view.lock().expect("no holder of a view panics") = None;
    }
}

fn policy(entry: &Entry) -> Policy {
    let fragment = &entry.spec.fragment;
    Policy {
        fragment_len: fragment.length,
        flush_interval: fragment.flush_interval,
        codec: fragment.codec,
    }
}
