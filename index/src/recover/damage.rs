//! What recovery makes of a log of which records are damaged: a head never goes back below what was
//! shown, and no byte is served that nothing vouches for.

use crate::Error;
use crate::ledger::{Closed, Ledger, offset};
use crate::mirror::Mirror;
use crate::record::{self, Body};
use protocol::{Life, Offset, Span};

/// An append is about to be folded in. Where it begins beyond the head, records are missing before
/// it; where it begins a spool, so may be the record that closed the one before.
pub fn before_append(ledger: &mut Ledger, begin: Offset, spool_begin: Offset) {
    if begin > ledger.head {
        close(ledger, begin);
    } else if spool_begin == begin && !ledger.spool_is_empty() {
        fold(ledger, Body::Rolled(ledger.rolled()));
    }
}

/// A mark is about to be folded in. Appends may be missing before it, and so may the record that
/// closed the span which it is about.
pub fn before_mark(ledger: &mut Ledger, body: &Body) {
    let end = implied_end(body);
    let spool = Span::between(ledger.spool.begin, ledger.head);
    match body {
        // These move the head themselves.
        Body::Lost(_) | Body::Damaged(_) | Body::Adopted(_) => {}
        // The span goes on as it is told, with a hole in it.
        Body::Rolled(_) if end > ledger.head => {
            fold(ledger, Body::Damaged(mark(ledger.life, Span::between(ledger.head, end))));
        }
        Body::Rolled(_) => {}
        _ if end > ledger.head => close(ledger, end),
        Body::Persisted(record::Persisted { begin, end, .. })
        | Body::Evicted(record::Mark { begin, end, .. })
            if spool == Span::between(offset(*begin), offset(*end)) && !spool.is_empty() =>
        {
            fold(ledger, Body::Rolled(ledger.rolled()));
        }
        _ => {}
    }
}

/// How far a journal reached when the record was written, as far as the record tells.
pub fn implied_end(body: &Body) -> Offset {
    match body {
        Body::Rolled(record::Rolled { end, .. })
        | Body::Persisted(record::Persisted { end, .. })
        | Body::Synced(record::Synced { end, .. })
        | Body::Evicted(record::Mark { end, .. })
        | Body::Trimmed(record::Mark { end, .. })
        | Body::Lost(record::Mark { end, .. })
        | Body::Damaged(record::Mark { end, .. })
        | Body::Adopted(record::Mark { end, .. }) => offset(*end),
        Body::Append(append) => Span::at(offset(append.begin), append.len).end(),
        Body::Segment(_)
        | Body::Stop(_)
        | Body::Created(_)
        | Body::Deleted(_)
        | Body::Ceiling(_)
        | Body::Gathered(_) => Offset::ZERO,
    }
}

/// What a mirror holds beyond the head was recorded once, and may have been shown.
pub fn keep_end(ledger: &mut Ledger, mirror: &Mirror) -> Result<(), Error> {
    let end = mirror.extents()?.into_iter().map(|span| span.end()).max().unwrap_or_default();
    if end > ledger.head {
        close(ledger, end);
    }
    Ok(())
}

/// Compares all local bytes with their checksums: an eviction may be among the records that are
/// damaged, and its bytes are zeros by now.
pub fn verify(ledger: &mut Ledger, mirror: &Mirror) -> Result<(), Error> {
    let spool = Span::between(ledger.spool.begin, ledger.head);
    let sums = ledger.closed.iter().map(|closed| (closed.span, closed.crc, is_stored(closed)));
    let sums: Vec<_> = sums.chain([(spool, ledger.spool.crc, false)]).collect();
    for (span, crc, is_stored) in sums {
        let is_whole = !span.is_empty() && ledger.local.covers(span);
        if !is_whole || mirror.checksum(span).is_ok_and(|found| found == crc) {
            continue;
        }
        let mark = mark(ledger.life, span);
        fold(ledger, if is_stored { Body::Evicted(mark) } else { Body::Damaged(mark) });
    }
    Ok(())
}

pub fn is_stored(closed: &Closed) -> bool {
    closed.persisted.is_some()
}

/// Records are missing up to `end`: the bytes are damaged, and a new spool begins behind them.
pub fn close(ledger: &mut Ledger, end: Offset) {
    if !ledger.spool_is_empty() {
        fold(ledger, Body::Rolled(ledger.rolled()));
    }
    fold(ledger, Body::Damaged(mark(ledger.life, Span::between(ledger.head, end))));
}

pub fn mark(life: Life, span: Span) -> record::Mark {
    record::Mark { life: life.get(), begin: span.begin().get(), end: span.end().get() }
}

/// Folds in what recovery found out. No record says so: the checkpoint does.
pub fn fold(ledger: &mut Ledger, body: Body) {
    let as_of = ledger.as_of;
    ledger.apply(&body, as_of);
}
