//! Reading at any offset, over flows that stay open behind sequential readers.

use super::Bucket;
use super::catalog::Place;
use crate::fragments::flow::Flow;
use crate::limits::{FLOW_SKIP, NEXT_FLOW_WITHIN};
use crate::{Error, Read};
use bytes::Bytes;
use index::store::{Places, Store, StoreError, Wish};
use protocol::{Fragment, Journal, Offset, Remedy};
use tokio::task::JoinSet;

/// A sequential reader of a journal.
pub(super) struct Cursor {
    journal: Journal,
    flow: Flow,
    /// The flow of the fragment after it, once the end is near. At most one task.
    next: JoinSet<Result<Flow, StoreError>>,
}

impl Cursor {
    /// Whether a read at the offset can go on with it.
    fn reaches(&self, journal: &Journal, offset: Offset) -> bool {
        let position = self.flow.position();
        self.journal == *journal
            && position <= offset
            && offset.since(position) <= FLOW_SKIP.min(self.flow.left())
    }
}

impl Bucket {
    /// Bytes at an offset: at least one, or none at the head.
    pub(super) async fn read_at(&self, read: Read) -> Result<Bytes, Error> {
        let Read { journal, life, offset, max } = read;
        let fragment = match self.shared.catalog().place(&journal, life, offset) {
            Place::Stored(fragment) => fragment,
            Place::Ahead => return Ok(Bytes::new()),
            Place::Gone(error) => return Err(error),
        };
        if max == 0 {
            return Ok(Bytes::new());
        }
        let mut cursor = self.cursor(&journal, *fragment, offset).await?;
        match cursor.flow.next(max).await {
            Ok(Some(bytes)) => {
                self.look_ahead(&mut cursor);
                self.shelf.keep(cursor);
                Ok(bytes)
            }
            Ok(None) => Err(Error::Later(format!("{journal}: {offset} is looked up again"))),
            Err(error) => Err(self.fault(cursor.flow.fragment(), error)),
        }
    }

    /// A cursor at the offset, which the fragment has.
    async fn cursor(
        &self,
        journal: &Journal,
        fragment: Fragment,
        offset: Offset,
    ) -> Result<Cursor, Error> {
        let kept = self.shelf.take(|cursor| cursor.reaches(journal, offset));
        if let Some(mut cursor) = kept {
            let skipped = cursor.flow.skip(offset.since(cursor.flow.position())).await;
            skipped.map_err(|error| self.fault(cursor.flow.fragment(), error))?;
            if cursor.flow.left() > 0 {
                return Ok(cursor);
            }
            // The end of a fragment that was read whole is told here: its sum may be wrong.
            let ended = cursor.flow.next(1).await;
            ended.map_err(|error| self.fault(cursor.flow.fragment(), error))?;
            let next = cursor.next.join_next().await.and_then(Result::ok).and_then(Result::ok);
            if let Some(flow) = next.filter(|flow| flow.position() == offset) {
                return Ok(Cursor { journal: journal.clone(), flow, next: JoinSet::new() });
            }
        }
        let store = &self.shared.store;
        let opened = start(store, &self.places, fragment.clone(), offset, Wish::Any).await;
        let flow = opened.map_err(|error| self.fault(&fragment, error))?;
        Ok(Cursor { journal: journal.clone(), flow, next: JoinSet::new() })
    }

    /// Near the end of a fragment, begins with the next one.
    fn look_ahead(&self, cursor: &mut Cursor) {
        let end = cursor.flow.fragment().end();
        if cursor.flow.left() > NEXT_FLOW_WITHIN || !cursor.next.is_empty() {
            return;
        }
        let place = self.shared.catalog().place(&cursor.journal, None, end);
        if let Place::Stored(fragment) = place {
            let (store, places) = (self.shared.store.clone(), self.places.clone());
            cursor
                .next
                .spawn(async move { start(&store, &places, *fragment, end, Wish::All).await });
        }
    }

    /// What the failure of a fragment is to a reader. One that is gone makes the store be listed
    /// again; one that is damaged is not tried any more.
    fn fault(&self, fragment: &Fragment, error: StoreError) -> Error {
        let journal = fragment.journal.clone();
        match error {
            StoreError::Damaged { .. } => {
                let (span, detail) = (fragment.span, error.to_string());
                self.shared.catalog().condemn(fragment, detail.clone());
                Error::Damaged { journal, span, detail }
            }
            StoreError::Missing { .. } => {
                self.shared.is_wanted.notify_one();
                Error::Later(error.to_string())
            }
            error if error.remedy() == Remedy::Later => Error::Later(error.to_string()),
            error => Error::Io(error.to_string()),
        }
    }
}

async fn start(
    store: &Store,
    places: &Places,
    fragment: Fragment,
    from: Offset,
    wish: Wish,
) -> Result<Flow, StoreError> {
    let content = places.open(store, &fragment, from, wish).await?;
    Ok(Flow::start(fragment, content, from))
}
