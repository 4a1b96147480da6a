//! What may be found after a stop: the journal as a list of appends, and how far each was promised.

use index::{DataDir, Located, Replica};
use protocol::{Life, Offset, Span};
use std::collections::BTreeMap;

/// One append that was tried.
#[derive(Debug, Clone)]
pub struct Tried {
    pub span: Span,
    pub content: Vec<u8>,
    pub promise: Promise,
}

/// How far an append got before the stop.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Promise {
    /// It failed, or was never answered: it may be there, whole.
    Nothing,
    /// Acknowledged at `memory`, and shown to readers.
    Memory,
    /// Acknowledged at `disk`, or synced since.
    Disk,
}

#[derive(Debug, Clone, Default)]
pub struct JournalModel {
    pub tried: Vec<Tried>,
    /// The highest head that was shown.
    pub shown: Offset,
    /// Bytes that were given up by will, perhaps.
    pub trimmed: Offset,
    /// The creation is durable, and no deletion was asked.
    pub is_certain: bool,
}

/// All journals, and the store that a fragment went to: whatever is in it is durable.
#[derive(Debug, Clone, Default)]
pub struct Model {
    pub journals: BTreeMap<Life, JournalModel>,
    pub store: BTreeMap<(Life, Span), Vec<u8>>,
}

impl JournalModel {
    /// Appends may have moved on after the stop: what lies at an offset now.
    fn candidates(&self, begin: Offset) -> impl Iterator<Item = &Tried> {
        self.tried.iter().filter(move |tried| tried.span.begin() == begin)
    }
}

/// Checks a recovered directory against the model, which then goes on from what is there.
pub fn check(model: &mut Model, data: &DataDir, is_power: bool, why: &str) {
    for (life, journal) in &mut model.journals {
        let Some(replica) = data.replica(*life) else {
            assert!(!journal.is_certain, "{why}: journal {life} is gone");
            continue;
        };
        assert!(
            replica.head() >= journal.shown,
            "{why}: head {} below {}",
            replica.head(),
            journal.shown
        );
        let found = walk(&replica, &model.store, journal, why);
        for tried in &journal.tried {
            let promised = match tried.promise {
                Promise::Nothing => false,
                Promise::Memory => !is_power,
                Promise::Disk => true,
            };
            let is_given_up = tried.span.begin() < journal.trimmed.max(replica.trimmed());
            if promised && !is_given_up && !tried.span.is_empty() {
                let got = found.get(&tried.span.begin());
                let ledger = replica.ledger();
                assert!(
                    got == Some(&tried.content),
                    "{why}: {life} {} promised {:?}: {}; trimmed {} head {} lost {:?} local {:?}",
                    tried.span,
                    tried.promise,
                    if got.is_none() { "is not there" } else { "has another content" },
                    ledger.trimmed,
                    ledger.head,
                    ledger.lost,
                    ledger.local,
                );
            }
        }
        // An append that a trim begins inside of is still needed to know its rest.
        let trimmed = replica.trimmed();
        journal.tried.retain(|tried| {
            tried.span.begin() < trimmed && trimmed < tried.span.end()
                || found.get(&tried.span.begin()) == Some(&tried.content)
        });
        journal.tried.iter_mut().for_each(|tried| tried.promise = Promise::Disk);
        journal.shown = replica.head();
        journal.is_certain = true;
    }
}

/// Reads a journal from its beginning: every readable byte belongs to an append that was tried at
/// that offset, and is there whole.
fn walk(
    replica: &Replica,
    store: &BTreeMap<(Life, Span), Vec<u8>>,
    journal: &JournalModel,
    why: &str,
) -> BTreeMap<Offset, Vec<u8>> {
    let life = replica.life();
    let mut at = Offset::ZERO;
    let mut bytes: BTreeMap<Offset, Vec<u8>> = BTreeMap::new();
    let mut run: Option<Offset> = None;
    while at < replica.head() {
        let (end, content) = match replica.locate(at) {
            Located::Ahead => unreachable!("{why}: below the head"),
            Located::Trimmed(span) | Located::Lost(span) => (span.end(), None),
            Located::Damaged(span) => panic!("{why}: {life} {span} is damaged"),
            Located::Local(span) => {
                let mut buf = vec![0; span.len() as usize];
                let n = replica.read(at, &mut buf).unwrap_or_else(|e| panic!("{why}: {e}"));
                buf.truncate(n);
                (at.plus(n as u64), Some(buf))
            }
            Located::Remote(span) => {
                let ((_, stored), content) = store
                    .iter()
                    .find(|((owner, stored), _)| *owner == life && stored.contains(at))
                    .unwrap_or_else(|| panic!("{why}: {life} {span} is neither here nor stored"));
                let end = stored.end().min(span.end());
                let from = at.since(stored.begin()) as usize;
                (end, Some(content[from..from + end.since(at) as usize].to_vec()))
            }
        };
        match (content, run) {
            (Some(content), Some(begin)) => bytes.get_mut(&begin).expect("begun").extend(content),
            (Some(content), None) => {
                run = Some(at);
                bytes.insert(at, content);
            }
            (None, _) => run = None,
        }
        at = end;
    }
    let mut found = BTreeMap::new();
    for (begin, run) in bytes {
        cut_into_appends(journal, begin, &run, replica.trimmed(), why, &mut found);
    }
    found
}

fn cut_into_appends(
    journal: &JournalModel,
    begin: Offset,
    run: &[u8],
    trimmed: Offset,
    why: &str,
    found: &mut BTreeMap<Offset, Vec<u8>>,
) {
    let mut at = 0;
    // A trim may begin inside an append: its rest is checked as a suffix.
    if begin == trimmed && begin > Offset::ZERO {
        let around = journal
            .tried
            .iter()
            .filter(|tried| tried.span.begin() < begin && begin < tried.span.end());
        for tried in around {
            let rest = &tried.content[begin.since(tried.span.begin()) as usize..];
            if run.starts_with(rest) {
                at = rest.len();
            }
        }
    }
    while at < run.len() {
        let offset = begin.plus(at as u64);
        let whole = journal
            .candidates(offset)
            .find(|tried| !tried.content.is_empty() && run[at..].starts_with(&tried.content))
            .unwrap_or_else(|| {
                panic!("{why}: bytes at {offset} are no append that was tried there")
            });
        found.insert(offset, whole.content.clone());
        at += whole.content.len();
    }
}
