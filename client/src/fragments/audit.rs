//! What is wrong with a journal's stored fragments: gaps, overlaps that disagree, damage.
//!
//! Every object is read whole, so that its sum is verified. What lies below the first fragment was
//! trimmed and is no gap (design, section 2).

use super::Fragments;
use crate::limits::AUDITED_AT_ONCE;
use crate::naming::Strange;
use bytes::Bytes;
use futures::{StreamExt, TryStreamExt};
use index::name;
use index::store::{Content, StoreError, Wish};
use protocol::response::ListedFragment;
use protocol::{Fragment, Journal, Offset, Span};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Something that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `None` for an object that is in no journal's directory.
    pub journal: Option<Journal>,
    /// `None` where there are no offsets: for a name.
    pub span: Option<Span>,
    pub kind: Kind,
    /// The object, as a path below its store; empty where there is none.
    pub object: String,
    /// For people, in one line.
    pub detail: String,
}

/// What kind of wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// No fragment has bytes that lie between two that are there.
    Gap,
    /// A gap that a power cut left, and that the broker knows of.
    Lost,
    /// Two fragments have other bytes at the same offsets.
    Disagreement,
    /// An object is not what its name says.
    Damaged,
    /// An object was listed, and is not there.
    Missing,
    /// An object could not be read to its end.
    Unread,
    /// A name is none that a fragment has.
    Name,
}

impl Kind {
    /// The word for it, in output that scripts read.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Gap => "gap",
            Kind::Lost => "lost",
            Kind::Disagreement => "disagreement",
            Kind::Damaged => "damaged",
            Kind::Missing => "missing",
            Kind::Unread => "unread",
            Kind::Name => "name",
        }
    }
}

/// Objects of a listing that are no fragments, though they are named or placed like such.
pub fn names(strange: &[Strange]) -> Vec<Finding> {
    let found = strange.iter().map(|Strange { journal, path, reason }| Finding {
        journal: journal.clone(),
        span: None,
        kind: Kind::Name,
        object: path.clone(),
        detail: reason.clone(),
    });
    found.collect()
}

/// The gaps between fragments, and those of them that `lost` explains.
pub fn gaps(journal: &Journal, fragments: &[Fragment], lost: &[Span]) -> Vec<Finding> {
    let mut spans: Vec<Span> = fragments.iter().map(|fragment| fragment.span).collect();
    spans.sort_by_key(|span| (span.begin(), span.end()));
    let mut found = Vec::new();
    let mut end = spans.first().map_or(Offset::ZERO, |span| span.begin());
    for span in spans {
        if span.begin() > end {
            explain(journal, Span::between(end, span.begin()), lost, &mut found);
        }
        end = end.max(span.end());
    }
    found
}

/// Cuts a gap where what is known to be lost begins and ends.
fn explain(journal: &Journal, gap: Span, lost: &[Span], found: &mut Vec<Finding>) {
    let mut at = gap.begin();
    let mut add = |begin, end, kind, detail: &str| {
        if begin < end {
            let (span, detail) = (Span::between(begin, end), detail.to_owned());
            let (journal, object) = (Some(journal.clone()), String::new());
            found.push(Finding { journal, span: Some(span), kind, object, detail });
        }
    };
    let unexplained = "no fragment has these bytes";
    let mut known: Vec<Span> = lost.iter().filter_map(|lost| lost.intersect(gap)).collect();
    known.sort_by_key(|span| span.begin());
    for lost in known {
        add(at, lost.begin(), Kind::Gap, unexplained);
        add(lost.begin().max(at), lost.end(), Kind::Lost, "a power cut took them before a sync");
        at = at.max(lost.end());
    }
    add(at, gap.end(), Kind::Gap, unexplained);
}

/// Two fragments with offsets in common, which may have other bytes there.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Overlap {
    one: ListedFragment,
    other: ListedFragment,
    span: Span,
}

/// Each fragment with the one before it that reaches furthest, where they overlap and are not the
/// same content.
fn overlaps(listed: &[ListedFragment]) -> Vec<Overlap> {
    let mut sorted: Vec<&ListedFragment> = listed.iter().collect();
    sorted.sort_by_key(|listed| (listed.fragment.begin(), listed.fragment.end()));
    let mut found = Vec::new();
    let mut widest: Option<&ListedFragment> = None;
    for other in sorted {
        if let Some(one) = widest
            && !one.fragment.same_content(&other.fragment)
            && let Some(span) = one.fragment.span.intersect(other.fragment.span)
            && !span.is_empty()
        {
            found.push(Overlap { one: one.clone(), other: other.clone(), span });
        }
        if widest.is_none_or(|widest| other.fragment.end() >= widest.fragment.end()) {
            widest = Some(other);
        }
    }
    found
}

/// Reads every stored fragment of a journal whole, a few at once, and compares those that overlap.
/// `verified` is told the bytes of each as it is done.
pub async fn read_all(
    ways: &Arc<Fragments>,
    listed: &[ListedFragment],
    mut verified: impl FnMut(u64),
) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut wrong = BTreeSet::new();
    let verifying = listed.iter().cloned().map(|listed| {
        let ways = ways.clone();
        async move {
            let fragment = listed.fragment.clone();
            // A task of its own: sums and codecs keep a core busy.
            let verified = tokio::spawn(async move { verify(&ways, &listed).await }).await;
            (fragment, verified)
        }
    });
    let mut verifying = futures::stream::iter(verifying).buffer_unordered(AUDITED_AT_ONCE);
    while let Some((fragment, outcome)) = verifying.next().await {
        verified(fragment.span.len());
        let failed = match outcome {
            Ok(Ok(())) => continue,
            Ok(Err(error)) => told(&fragment, &error),
            Err(error) => finding(&fragment, Kind::Unread, error.to_string()),
        };
        wrong.insert(name::path(&fragment));
        found.push(failed);
    }
    let is_sound = |listed: &ListedFragment| !wrong.contains(&name::path(&listed.fragment));
    for overlap in overlaps(listed) {
        if is_sound(&overlap.one) && is_sound(&overlap.other) {
            found.extend(compare(ways, &overlap).await);
        }
    }
    found.sort_by_key(|found| (found.span.map(|span| (span.begin(), span.end())), found.kind));
    found
}

async fn verify(ways: &Fragments, listed: &ListedFragment) -> Result<(), StoreError> {
    let (fragment, url) = (&listed.fragment, &listed.signed_url);
    let (mut content, _) = ways.open(fragment, url, fragment.begin(), Wish::All).await?;
    while content.try_next().await?.is_some() {}
    Ok(())
}

fn told(fragment: &Fragment, error: &StoreError) -> Finding {
    let kind = match error {
        StoreError::Damaged { .. } => Kind::Damaged,
        StoreError::Missing { .. } => Kind::Missing,
        _ => Kind::Unread,
    };
    let detail = match error {
        StoreError::Damaged { offset, reason, .. } => format!("at offset {offset}, {reason}"),
        other => other.to_string(),
    };
    finding(fragment, kind, detail)
}

fn finding(fragment: &Fragment, kind: Kind, detail: String) -> Finding {
    let (journal, span) = (Some(fragment.journal.clone()), Some(fragment.span));
    Finding { journal, span, kind, object: name::path(fragment), detail }
}

/// The first byte in which two fragments differ, as a finding up to the overlap's end.
async fn compare(ways: &Fragments, overlap: &Overlap) -> Option<Finding> {
    let (one, other) = (&overlap.one.fragment, &overlap.other.fragment);
    match first_difference(ways, overlap).await {
        Ok(None) => None,
        Ok(Some(offset)) => {
            let detail = format!("{} has other bytes there", name::path(one));
            let span = Some(Span::between(offset, overlap.span.end()));
            Some(Finding { span, ..finding(other, Kind::Disagreement, detail) })
        }
        Err(error) => {
            let detail = format!("it can't be compared with {}: {error}", name::path(one));
            Some(Finding { span: Some(overlap.span), ..finding(other, Kind::Unread, detail) })
        }
    }
}

async fn first_difference(
    ways: &Fragments,
    overlap: &Overlap,
) -> Result<Option<Offset>, StoreError> {
    let mut at = overlap.span.begin();
    let mut one = Side::open(ways, &overlap.one, at).await?;
    let mut other = Side::open(ways, &overlap.other, at).await?;
    while at < overlap.span.end() {
        let (a, b) = (one.chunk().await?, other.chunk().await?);
        let left = usize::try_from(overlap.span.end().since(at)).unwrap_or(usize::MAX);
        let len = a.len().min(b.len()).min(left);
        // Invariant: both have bytes up to the overlap's end, or fail.
        assert!(len > 0, "a fragment ends before its end");
        if let Some(differs) = a[..len].iter().zip(&b[..len]).position(|(a, b)| a != b) {
            return Ok(Some(at.plus(differs as u64)));
        }
        at = at.plus(len as u64);
        one.take(len);
        other.take(len);
    }
    Ok(None)
}

/// One of two fragments that are compared.
struct Side {
    content: Content,
    chunk: Bytes,
}

impl Side {
    async fn open(
        ways: &Fragments,
        listed: &ListedFragment,
        from: Offset,
    ) -> Result<Side, StoreError> {
        let (content, _) = ways.open(&listed.fragment, &listed.signed_url, from, Wish::Any).await?;
        Ok(Side { content, chunk: Bytes::new() })
    }

    /// What comes next; empty at the end.
    async fn chunk(&mut self) -> Result<Bytes, StoreError> {
        while self.chunk.is_empty() {
            match self.content.try_next().await? {
                Some(chunk) => self.chunk = chunk,
                None => break,
            }
        }
        Ok(self.chunk.clone())
    }

    fn take(&mut self, len: usize) {
        let _taken = self.chunk.split_to(len);
    }
}

#[cfg(test)]
mod tests;
