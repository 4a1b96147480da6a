//! Waiting for journals to grow: held reads, poll(2), and whoever follows by asking for attributes.

use crate::nodes::{Role, Side};
use crate::patience::outlast;
use crate::shown::Shown;
use crate::{Error, Filesystem, HandleId, NodeId, Wait};
use protocol::{Life, Offset, inode_range};
use std::sync::Arc;
use tokio::sync::watch;

/// A journal that somebody follows, as it was when asked for.
#[derive(Debug, Clone)]
pub struct Followed {
    shown: Arc<Shown>,
    head: Offset,
}

impl Followed {
    /// The journal's `st_ino`.
    pub fn inode(&self) -> u64 {
        self.shown.life().inode()
    }

    pub fn head(&self) -> u64 {
        self.head.as_u64()
    }
}

/// What `poll(2)` of a handle is answered.
pub struct Polled {
    /// A read would be answered at once.
    pub is_readable: bool,
    /// Ends when the journal is longer than it was seen to be, or is gone; `None` where nothing can
    /// change any more.
    pub grown: Option<Wait<()>>,
}

impl Filesystem {
    /// The journal behind the number that the kernel shows for an inode: its `st_ino`, or the id of
    /// one of its nodes. `None` for anything but a journal that this mount shows.
    pub fn followed(self: &Arc<Self>, number: u64) -> Wait<Option<Followed>> {
        let fs = self.clone();
        Box::pin(async move {
            let Some(shown) = fs.numbered(number) else { return Ok(None) };
            let head = fs.stat(&shown).await?.head;
            Ok(Some(Followed { shown, head }))
        })
    }

    fn numbered(&self, number: u64) -> Option<Arc<Shown>> {
        if number >= inode_range::JOURNALS {
            return self.gallery.shown(Life::new(number));
        }
        match self.nodes.get(NodeId(number))?.role() {
            Role::Journal(shown, _) => Some(shown),
            _ => None,
        }
    }

    /// Waits until a journal has grown since, or its life is over.
    pub fn growth(self: &Arc<Self>, followed: &Followed) -> Wait<()> {
        let (fs, followed) = (self.clone(), followed.clone());
        Box::pin(async move { fs.grown(&followed.shown, followed.head).await })
    }

    /// A number that changes with each creation and deletion.
    pub fn census(&self) -> watch::Receiver<u64> {
        self.journals.census()
    }

    /// Whether reads through the handle wait at the head.
    pub fn waits_at_head(&self, handle: HandleId) -> bool {
        let role = self.handles.get(handle).map(|handle| handle.node.role());
        matches!(role, Ok(Role::Journal(_, Side::Follow)))
    }

    /// Whether a read through the handle would be answered at once, and what to wait for until that
    /// may have changed: `poll(2)`.
    pub fn poll(self: &Arc<Self>, handle: HandleId) -> Wait<Polled> {
        let fs = self.clone();
        Box::pin(async move {
            let handle = fs.handles.get(handle)?;
            let Role::Journal(shown, Side::Follow) = handle.node.role() else {
                return Ok(Polled { is_readable: true, grown: None });
            };
            let position = Offset::try_from(handle.position()).map_err(client::Error::from)?;
            let (is_readable, seen) = match fs.stat(&shown).await {
                Ok(stat) => (stat.head > position, stat.head.max(position)),
                // The read would wait for the broker.
                Err(error) if error.passes() => (false, position),
                // The read is told what is wrong, at once.
                Err(_) => return Ok(Polled { is_readable: true, grown: None }),
            };
            let fs = fs.clone();
            // The handle may be released meanwhile; what it pins is not held for this.
            let grown: Wait<()> = Box::pin(async move { fs.grown(&shown, seen).await });
            Ok(Polled { is_readable, grown: Some(grown) })
        })
    }

    /// Waits until a byte at `offset` is there. It has no limit of its own: whoever waits is held,
    /// and can be given up by dropping this.
    pub(crate) async fn grown(&self, shown: &Shown, offset: Offset) -> Result<(), Error> {
        let _counted = self.waiting.enter();
        let journal = shown.journal();
        let ask = || self.journals.grown(journal, shown.life(), offset);
        let note = |error| tracing::debug!(%error, %journal, "growth is asked for again");
        match outlast(ask, note).await {
            Ok(stat) if stat.life == shown.life() => Ok(()),
            Ok(_) | Err(client::Error::NotFound(_)) => Err(Error::Stale),
            Err(error) => Err(error.into()),
        }
    }
}
