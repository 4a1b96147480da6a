//! One journal of the double: what it holds, and how it takes an append.

use client::{Append, Appended, Error, Stat};
use protocol::{
    Codec, Flags, Fragment, FragmentSpec, Journal, JournalSpec, LabelSet, Life, Offset, Span,
};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tokio::sync::watch;

pub(super) struct Kept {
    pub life: Life,
    pub revision: i64,
    pub bytes: Vec<u8>,
    /// What a power cut took.
    pub lost: std::ops::Range<usize>,
    pub first: usize,
    pub synced: usize,
    pub modified: SystemTime,
    pub may_write: bool,
    pub stored: Vec<Fragment>,
    pub spec: JournalSpec,
    pub registers: Option<LabelSet>,
    pub mirror: Option<Arc<File>>,
    pub head: watch::Sender<Offset>,
    pub writers: BTreeMap<[u8; 16], (u64, Span)>,
}

impl Kept {
    pub fn head(&self) -> Offset {
        *self.head.borrow()
    }

    /// The mirror first, then the head: a passthrough reader never sees less than what is told.
    pub fn push(&mut self, content: &[u8]) -> Span {
        let span = Span::at(self.head(), content.len() as u64);
        if let Some(mirror) = &self.mirror {
            mirror.write_all_at(content, span.begin().as_u64()).expect("the mirror takes bytes");
        }
        self.bytes.extend_from_slice(content);
        self.head.send_replace(span.end());
        span
    }

    pub fn repeated(&self, append: &Append) -> Option<Result<Appended, Error>> {
        let writer = append.writer?;
        let (last, span) = *self.writers.get(&writer.id)?;
        match writer.sequence.cmp(&last) {
            std::cmp::Ordering::Greater => None,
            std::cmp::Ordering::Equal => {
                Some(Ok(Appended { span, life: self.life, repeated: true }))
            }
            std::cmp::Ordering::Less => {
                Some(Err(Error::StaleSequence(append.journal.clone(), writer.sequence)))
            }
        }
    }

    pub fn stat(&self, journal: &Journal) -> Stat {
        let offset = |at: usize| Offset::try_from(at as u64).expect("memory is small");
        let is_lost = self.lost.contains(&self.first);
        Stat {
            journal: journal.clone(),
            life: self.life,
            first: offset(if is_lost { self.lost.end } else { self.first }),
            trimmed: offset(self.first),
            head: self.head(),
            synced: offset(self.synced),
            persisted: Offset::ZERO,
            modified: self.modified,
            create_revision: self.revision,
            mod_revision: self.revision,
            content_type: None,
            may_read: true,
            may_write: self.may_write,
            fragments: 0,
            gaps: u64::from(!self.lost.is_empty()),
            registers: self.registers.clone(),
        }
    }
}

pub(super) fn spec_of(journal: &Journal) -> JournalSpec {
    let fragment = FragmentSpec {
        length: 1 << 20,
        codec: Codec::None,
        stores: Vec::new(),
        refresh_interval: Duration::from_secs(60),
        retention: Duration::ZERO,
        flush_interval: Duration::ZERO,
        path_postfix_template: String::new(),
    };
    JournalSpec {
        name: journal.clone(),
        replication: 1,
        labels: LabelSet::default(),
        fragment,
        flags: Flags::default(),
        max_append_rate: 0,
        suspend: None,
    }
}
