//! What the kernel has looked up and not yet forgotten.

use crate::names;
use crate::placeholders::Placeholder;
use crate::shown::Shown;
use protocol::{Fragment, Life, Span, Sum, inode_range};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};
use tokio::sync::OwnedMutexGuard;

/// The kernel's number for what it looked up: never an `st_ino`, and never used twice in a mount.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeId(pub u64);

impl NodeId {
    pub const ROOT: NodeId = NodeId(1);
}

/// In which of the trees a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum View {
    Plain,
    /// Below `.courant/follow`: a read at the head waits.
    Follow,
    /// Below `.courant/lines`: only whole lines are committed.
    Lines,
    /// Below `.courant/whole`: what is written between open and close is one append.
    Whole,
}

impl View {
    /// The views of `.courant`, by the names of their directories.
    pub(crate) const NAMED: [(&'static str, View); 3] =
        [(names::FOLLOW, View::Follow), (names::LINES, View::Lines), (names::WHOLE, View::Whole)];

    /// The directory of `.courant` that it is.
    pub(crate) fn name(self) -> Option<&'static str> {
        Self::NAMED.into_iter().find(|(_, view)| *view == self).map(|(name, _)| name)
    }

    /// Whether files can be made there, and files without a byte are shown.
    pub(crate) fn is_writable(self) -> bool {
        self != View::Follow
    }

    /// The node of a journal in this view that does not pass reads to the kernel.
    pub(crate) fn side(self) -> Side {
        match self {
            View::Plain => Side::Direct,
            View::Follow => Side::Follow,
            View::Lines => Side::Lines,
            View::Whole => Side::Whole,
        }
    }
}

/// What the files of a directory of `.courant` are about journals, which are no files there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Below `.courant/fragments`: a journal is a directory of its stored fragments.
    Fragments,
    /// Below `.courant/specs`: a journal is the file of its spec.
    Specs,
}

impl Subject {
    /// The subjects, by the names of their directories in `.courant`.
    pub(crate) const NAMED: [(&'static str, Subject); 2] =
        [(names::FRAGMENTS, Subject::Fragments), (names::SPECS, Subject::Specs)];

    /// The name of what lies at a path below its directory, from `.courant` on.
    pub(crate) fn place(self, path: &str) -> String {
        match self {
            Subject::Fragments => names::join(names::FRAGMENTS, path),
            Subject::Specs => names::join(names::SPECS, path),
        }
    }
}

/// Which node of a journal. They share one `st_ino`, since the kernel allows one mode a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Side {
    /// The kernel reads the mirror: node P of the design.
    Passthrough,
    /// Every read and write comes here: node D.
    Direct,
    /// As `Direct`, in the follow view.
    Follow,
    /// As `Direct`, in the view of whole lines.
    Lines,
    /// As `Direct`, in the whole view.
    Whole,
}

/// What a node is.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    /// A directory of a view, by what journal names begin with below it (without the last `/`).
    Directory(View, String),
    Journal(Arc<Shown>, Side),
    /// A file without a byte, and the view in which it is seen.
    Placeholder(Arc<Placeholder>, View),
    /// The directory `.courant`.
    Control,
    /// The file `.courant/status`.
    Status,
    /// A directory of files about journals, by what their names begin with below it.
    About(Subject, String),
    /// A stored fragment of a journal.
    Fragment(Arc<Shown>, Arc<Fragment>),
    /// The spec of a journal, by the journal's name of the tree. It may not be there.
    Spec(String),
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Directory(View, String),
    Journal(Life, Side),
    Placeholder(u64, View),
    Control,
    Status,
    About(Subject, String),
    Fragment(Life, Span, Sum),
    Spec(String),
}

impl Role {
    fn key(&self) -> Key {
        match self {
            Role::Directory(view, path) => Key::Directory(*view, path.clone()),
            Role::Journal(shown, side) => Key::Journal(shown.life(), *side),
            Role::Placeholder(placeholder, view) => Key::Placeholder(placeholder.inode(), *view),
            Role::Control => Key::Control,
            Role::Status => Key::Status,
            Role::About(subject, path) => Key::About(*subject, path.clone()),
            Role::Fragment(shown, fragment) => {
                Key::Fragment(shown.life(), fragment.span, fragment.sum)
            }
            Role::Spec(name) => Key::Spec(name.clone()),
        }
    }
}

/// One node. Only a placeholder ever changes its role, once, to the journal it became.
#[derive(Debug)]
pub(crate) struct Node {
    id: NodeId,
    role: RwLock<Role>,
    /// Held by the one whose close commits what it has waiting: in the order of the closes.
    closes: Arc<tokio::sync::Mutex<()>>,
}

impl Node {
    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    /// The turn of a close, which is taken where this is first polled.
    pub(crate) fn closing(&self) -> impl Future<Output = OwnedMutexGuard<()>> + use<> {
        self.closes.clone().lock_owned()
    }

    pub(crate) fn role(&self) -> Role {
        self.role.read().expect("no holder panics").clone()
    }

    /// Nodes are used for one thing only, so that this rises only as handles are taken back.
    pub(crate) fn generation(&self) -> u64 {
        match self.role() {
            Role::Journal(shown, Side::Passthrough) => shown.generation.current(),
            _ => 0,
        }
    }

    fn become_journal(&self, shown: Arc<Shown>) {
        shown.seen_through(self.id);
        let mut role = self.role.write().expect("no holder panics");
        let view = match &*role {
            Role::Placeholder(_, view) => *view,
            _ => View::Plain,
        };
        *role = Role::Journal(shown, view.side());
    }
}

/// The nodes of a mount. Invariant: `by_key` names exactly one living node for each key in it.
#[derive(Debug)]
pub(crate) struct Nodes(Mutex<Table>);

#[derive(Debug)]
struct Table {
    by_id: BTreeMap<NodeId, Known>,
    by_key: BTreeMap<Key, NodeId>,
    next: u64,
}

#[derive(Debug)]
struct Known {
    node: Arc<Node>,
    lookups: u64,
}

impl Nodes {
    pub(crate) fn new() -> Self {
        let mut table =
            Table { by_id: BTreeMap::new(), by_key: BTreeMap::new(), next: NodeId::ROOT.0 };
        table.remember(Role::Directory(View::Plain, String::new()));
        Nodes(Mutex::new(table))
    }

    pub(crate) fn get(&self, id: NodeId) -> Option<Arc<Node>> {
        self.table().by_id.get(&id).map(|known| known.node.clone())
    }

    /// The node of a role, made if there is none, with one more look-up counted.
    pub(crate) fn remember(&self, role: Role) -> Arc<Node> {
        self.table().remember(role)
    }

    /// Takes back look-ups. The root stays.
    pub(crate) fn forget(&self, id: NodeId, lookups: u64) {
        let mut table = self.table();
        let Some(known) = table.by_id.get_mut(&id) else { return };
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups > 0 || id == NodeId::ROOT {
            return;
        }
        let role = known.node.role();
        table.by_id.remove(&id);
        if table.by_key.get(&role.key()) == Some(&id) {
            table.by_key.remove(&role.key());
        }
        if let Role::Journal(shown, _) = role {
            shown.unseen_through(id);
        }
    }

    /// The placeholder of this node has become a journal. Its node is the direct one of its view,
    /// unless the kernel knows another already: then there are two, which does no harm.
    pub(crate) fn adopt(&self, node: &Node, shown: Arc<Shown>) {
        let mut table = self.table();
        let old = node.role().key();
        if table.by_key.get(&old) == Some(&node.id) {
            table.by_key.remove(&old);
        }
        node.become_journal(shown);
        if table.by_id.contains_key(&node.id) {
            table.by_key.entry(node.role().key()).or_insert(node.id);
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.table().by_id.len()
    }

    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.0.lock().expect("no holder panics")
    }
}

impl Table {
    fn remember(&mut self, role: Role) -> Arc<Node> {
        let key = role.key();
        if let Some(known) = self.by_key.get(&key).and_then(|id| self.by_id.get_mut(id)) {
            known.lookups += 1;
            return known.node.clone();
        }
        let id = NodeId(self.next);
        // Invariant: node ids and inodes are disjoint, so that neither is taken for the other.
        assert!(id.0 < inode_range::PLACEHOLDERS, "2^50 nodes were looked up");
        self.next += 1;
        if let Role::Journal(shown, _) = &role {
            shown.seen_through(id);
        }
        let node = Arc::new(Node { id, role: RwLock::new(role), closes: Arc::default() });
        self.by_key.insert(key, id);
        self.by_id.insert(id, Known { node: node.clone(), lookups: 1 });
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_lives_as_long_as_its_look_ups() {
        let nodes = Nodes::new();
        let role = || Role::Directory(View::Plain, "a".to_owned());
        let first = nodes.remember(role()).id();
        assert_eq!(nodes.remember(role()).id(), first);
        nodes.forget(first, 1);
        assert!(nodes.get(first).is_some());
        nodes.forget(first, 1);
        assert!(nodes.get(first).is_none());
        assert_ne!(nodes.remember(role()).id(), first, "an id is never used twice");
        nodes.forget(NodeId::ROOT, 100);
        assert!(nodes.get(NodeId::ROOT).is_some());
    }
}
