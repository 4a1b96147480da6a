//! Whether somebody else writes to a journal's stores: what is listed and can't be ours.

use super::{Foreign, LocalBytes};
use crate::stores::Stores;
use crate::{Error, Served};
use futures::TryStreamExt;
use index::ledger::Ledger;
use index::store::digest;
use index::{Located, Replica};
use protocol::{Fragment, Offset, Span};
use std::fmt::Display;
use std::sync::Arc;

/// Says so when a second writer appears, and when it is gone.
pub(super) fn report(served: &Served, second_writer: Option<&Foreign>) {
    let before = served.stored().second_writer();
    let journal = served.journal();
    match (before, second_writer) {
        (None, Some(Foreign { detail: found, .. })) => {
            tracing::error!(%journal, %found, "a second writer: appends stop");
        }
        (Some(_), None) => tracing::info!(%journal, "no second writer any more: appends go on"),
        (None, None) | (Some(_), Some(_)) => {}
    }
}

/// What in the listing this broker can't have put: it overlaps local bytes that are others, or ends
/// above the head of a journal with local records. The former is worse, and told first.
pub(super) async fn find_second_writer(
    served: &Served,
    stores: &Stores,
    listing: &[Fragment],
) -> Option<Foreign> {
    if served.replica().is_blank() {
        return None;
    }
    // Read after the listing: what we put meanwhile ends below it.
    let head = served.replica().head();
    let ledger = served.replica().ledger();
    // A journal that nobody may write to here follows a store that others fill.
    let follows = follows(served);
    let mut above = None;
    for fragment in listing.iter().filter(|fragment| !fragment.span.is_empty()) {
        let name = index::name::content_name(fragment);
        if fragment.end() > head && !follows {
            let detail = || format!("{name} ends above the head {head}");
            above.get_or_insert_with(|| Foreign { detail: detail(), is_fork: false });
        }
        match overlap(&ledger, fragment) {
            Overlap::None => continue,
            _ if is_known(served, &ledger, fragment) => continue,
            Overlap::Whole if has_local_content(served, fragment).await => continue,
            // As where local files are older than the store: what both have may still be the same.
            Overlap::Part if has_content_of_local(served, stores, fragment).await => continue,
            Overlap::Whole | Overlap::Part => {}
        }
        let detail = format!("{name} has other content than local bytes");
        return Some(Foreign { detail, is_fork: true });
    }
    above
}

/// Whether the journal's end is that of its stores, whoever fills them: it is read-only, and has no
/// bytes of its own (gazette-spec 4.1).
pub(super) fn follows(served: &Served) -> bool {
    !served.entry().spec.flags.may_write() && served.replica().local_len() == 0
}

#[derive(Debug, PartialEq, Eq)]
enum Overlap {
    None,
    Part,
    Whole,
}

fn overlap(ledger: &Ledger, fragment: &Fragment) -> Overlap {
    let gaps = ledger.local.gaps(fragment.span);
    match gaps[..] {
        [] => Overlap::Whole,
        [gap] if gap == fragment.span => Overlap::None,
        _ => Overlap::Part,
    }
}

/// Whether the fragment is one that was put from the local bytes, or was compared with them.
fn is_known(served: &Served, ledger: &Ledger, fragment: &Fragment) -> bool {
    let put = ledger.closed.iter().any(|closed| {
        closed.span == fragment.span
            && closed.persisted.as_ref().is_some_and(|stored| stored.sum == fragment.sum)
    });
    put || served.stored().verified(fragment)
}

/// Compares sums.
async fn has_local_content(served: &Served, fragment: &Fragment) -> bool {
    let found = digest(fragment.span, Arc::new(LocalBytes::of(served))).await;
    is_same(served, fragment, found.map(|found| found.sum == fragment.sum))
}

/// The same where only a part of the fragment is local: that part of its object is compared.
async fn has_content_of_local(served: &Served, stores: &Stores, fragment: &Fragment) -> bool {
    is_same(served, fragment, is_of_local(served, stores, fragment).await)
}

/// Keeps that a fragment was compared. Where it can't be the question stays open until next time.
fn is_same<E: Display>(served: &Served, fragment: &Fragment, compared: Result<bool, E>) -> bool {
    match compared {
        Ok(true) => {
            served.stored().set_verified(fragment);
            true
        }
        Ok(false) => false,
        Err(error) => {
            let journal = served.journal();
            tracing::warn!(%journal, %error, "a listed fragment can't be compared");
            true
        }
    }
}

async fn is_of_local(served: &Served, stores: &Stores, fragment: &Fragment) -> Result<bool, Error> {
    let store = stores.get(&fragment.backing_store)?;
    let mut at = fragment.begin();
    let mut content = store.open(fragment, at).await?;
    while let Some(chunk) = content.try_next().await? {
        if !agrees(served.replica(), at, &chunk)? {
            return Ok(false);
        }
        at = at.plus(chunk.len() as u64);
    }
    Ok(true)
}

/// Whether the local ones among the bytes at `begin` are these.
fn agrees(replica: &Replica, begin: Offset, chunk: &[u8]) -> Result<bool, Error> {
    let span = Span::at(begin, chunk.len() as u64);
    let mut at = begin;
    while at < span.end() {
        at = match replica.locate(at) {
            Located::Ahead => return Ok(true),
            Located::Trimmed(other)
            | Located::Lost(other)
            | Located::Damaged(other)
            | Located::Remote(other) => other.end(),
            Located::Local(local) => {
                let len = local.end().min(span.end()).since(at);
                let found = replica.read_new(at, usize::try_from(len).unwrap_or(usize::MAX))?;
                let from = usize::try_from(at.since(begin)).unwrap_or(usize::MAX);
                if found != chunk[from..from + found.len()] {
                    return Ok(false);
                }
                at.plus(found.len() as u64)
            }
        };
    }
    Ok(true)
}
