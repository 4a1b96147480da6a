//! What the kernel has looked up and not yet forgotten.

use crate::placeholders::Placeholder;
use crate::shown::Shown;
use protocol::{Life, inode_range};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, RwLock};

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
}

/// What a node is.
#[derive(Debug, Clone)]
pub(crate) enum Role {
    /// A directory of a view, by what journal names begin with below it (without the last `/`).
    Directory(View, String),
    Journal(Arc<Shown>, Side),
    Placeholder(Arc<Placeholder>),
    /// The directory `.courant`.
    Control,
    /// The file `.courant/status`.
    Status,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Directory(View, String),
    Journal(Life, Side),
    Placeholder(u64),
    Control,
    Status,
}

impl Role {
    fn key(&self) -> Key {
        match self {
            Role::Directory(view, path) => Key::Directory(*view, path.clone()),
            Role::Journal(shown, side) => Key::Journal(shown.life(), *side),
            Role::Placeholder(placeholder) => Key::Placeholder(placeholder.inode()),
            Role::Control => Key::Control,
            Role::Status => Key::Status,
        }
    }
}

/// One node. Only a placeholder ever changes its role, once, to the journal it became.
#[derive(Debug)]
pub(crate) struct Node {
    id: NodeId,
    role: RwLock<Role>,
}

impl Node {
    pub(crate) fn id(&self) -> NodeId {
        self.id
    }

    pub(crate) fn role(&self) -> Role {
        self.role.read().expect("no holder panics").clone()
    }

    fn become_journal(&self, shown: Arc<Shown>) {
        shown.seen_through(self.id);
        *self.role.write().expect("no holder panics") = Role::Journal(shown, Side::Direct);
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

    /// The placeholder of this node has become a journal. Its node is that journal's `Direct` one,
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
        let node = Arc::new(Node { id, role: RwLock::new(role) });
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
