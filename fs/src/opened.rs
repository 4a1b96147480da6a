//! Which journals are open through a mount, how they are read, and who waits for them: for people
//! who want to know what keeps local bytes from being freed.

use crate::handles::{Handles, Kept};
use crate::nodes::{Role, Side};
use crate::xattr::mode;
use crate::{Filesystem, limits::NAMED_MAX};
use protocol::Journal;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The open handles of one node of a journal.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Open {
    handles: usize,
    /// Those among them that keep the mirror's bytes.
    pins: usize,
}

/// How many wait for something.
#[derive(Debug, Default)]
pub(crate) struct Waiting(AtomicUsize);

impl Waiting {
    /// Counts one more until the guard is dropped.
    pub(crate) fn enter(&self) -> impl Drop + '_ {
        self.0.fetch_add(1, Ordering::Relaxed);
        Entered(&self.0)
    }
}

struct Entered<'a>(&'a AtomicUsize);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Filesystem {
    /// The lines of `.courant/status` about what is open. Of many journals only some are named.
    pub(crate) fn add_opened(&self, text: &mut String) {
        let open = by_node(&self.handles);
        let pins: usize = open.values().map(|open| open.pins).sum();
        let followers = self.waiting.0.load(Ordering::Relaxed);
        let mut line = |line: std::fmt::Arguments| {
            writeln!(text, "{line}").expect("a string takes every byte");
        };
        line(format_args!("followers {followers}"));
        line(format_args!("pins {pins}"));
        line(format_args!("revoked {}", self.revoked.load(Ordering::Relaxed)));
        line(format_args!("open-journals {}", open.len()));
        for ((journal, side), Open { handles, pins }) in open.iter().take(NAMED_MAX) {
            line(format_args!("open {} {handles} {pins} {journal}", mode(*side)));
        }
    }
}

fn by_node(handles: &Handles) -> BTreeMap<(Journal, Side), Open> {
    let mut open: BTreeMap<(Journal, Side), Open> = BTreeMap::new();
    for handle in handles.all() {
        if let Role::Journal(shown, side) = handle.node.role() {
            let node = open.entry((shown.journal().clone(), side)).or_default();
            node.handles += 1;
            node.pins += usize::from(matches!(handle.kept, Kept::Loan(_)));
        }
    }
    open
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::double::Double;
    use crate::{Caller, NodeId, Options};
    use rustix::fs::OFlags;
    use std::sync::Arc;
    use std::time::SystemTime;

    #[tokio::test]
    async fn what_is_open_is_named_with_its_mode() {
        let options = Options::new([1; 16], SystemTime::UNIX_EPOCH);
        let fs = Filesystem::new(Arc::new(Double::new()), options);
        let caller = Caller { thread: 1 };
        let creating = fs.create(NodeId::ROOT, b"app.log", OFlags::WRONLY | OFlags::APPEND, caller);
        let (_, handle) = creating.await.unwrap();
        let content = &b"one\n"[..];
        let flags = OFlags::WRONLY | OFlags::APPEND;
        fs.write(crate::WriteAt { handle, offset: 0, content, flags }).await.unwrap();
        let waiting = fs.waiting.enter();
        let mut text = String::new();
        fs.add_opened(&mut text);
        assert_eq!(
            text,
            "followers 1\npins 0\nrevoked 0\nopen-journals 1\nopen direct 1 0 app.log\n"
        );

        // Case: nobody waits, and nothing is open.
        drop(waiting);
        let _closed = fs.release(handle);
        let mut text = String::new();
        fs.add_opened(&mut text);
        assert_eq!(text, "followers 0\npins 0\nrevoked 0\nopen-journals 0\n");
    }
}
