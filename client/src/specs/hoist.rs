//! Specs to the smallest tree: what all children of a directory share is said by it once.

use super::node::{Node, Settings};
use protocol::{Label, LabelSet};

/// The tree of journals, which are ascending by name: directories where names share them, and
/// shared values moved up. One journal is its own tree; none is a directory without children.
pub fn hoist(journals: Vec<Node>) -> Node {
    let mut journals = journals;
    if journals.len() == 1 {
        return journals.swap_remove(0);
    }
    let name = shared_directory(&journals).to_owned();
    let mut children = Vec::new();
    for group in groups(journals, name.len()) {
        children.push(hoist(group));
    }
    lift(Node { name, children, ..Node::default() })
}

/// The longest directory that all names lie in.
fn shared_directory(journals: &[Node]) -> &str {
    // Of sorted names all share what the first and the last share.
    let (Some(first), Some(last)) = (journals.first(), journals.last()) else { return "" };
    let shared = first.name.bytes().zip(last.name.bytes()).take_while(|(a, b)| a == b).count();
    let end = first.name.as_bytes()[..shared].iter().rposition(|byte| *byte == b'/');
    end.map_or("", |end| &first.name[..=end])
}

/// Journals that go on alike to the next slash behind `skipped` bytes.
fn groups(journals: Vec<Node>, skipped: usize) -> Vec<Vec<Node>> {
    let mut groups: Vec<Vec<Node>> = Vec::new();
    for journal in journals {
        let directory = directory_after(&journal.name, skipped).map(str::to_owned);
        let last = groups.last_mut().filter(|group| {
            directory.is_some() && directory_after(&group[0].name, skipped) == directory.as_deref()
        });
        match last {
            Some(group) => group.push(journal),
            None => groups.push(vec![journal]),
        }
    }
    groups
}

/// The name to the first slash behind `skipped` bytes.
fn directory_after(name: &str, skipped: usize) -> Option<&str> {
    let slash = name.as_bytes()[skipped..].iter().position(|byte| *byte == b'/')?;
    Some(&name[..=skipped + slash])
}

/// Moves into a directory what all of its children have. What a child leaves unset stays unset
/// there, since a child can't take a value back.
fn lift(mut directory: Node) -> Node {
    let children = &mut directory.children;
    if children.is_empty() {
        return directory;
    }
    let own = &mut directory.settings;
    own.replication = lifted(children, |settings| &mut settings.replication);
    own.length = lifted(children, |settings| &mut settings.length);
    own.codec = lifted(children, |settings| &mut settings.codec);
    own.stores = lifted(children, |settings| &mut settings.stores);
    own.refresh_interval = lifted(children, |settings| &mut settings.refresh_interval);
    own.retention = lifted(children, |settings| &mut settings.retention);
    own.flush_interval = lifted(children, |settings| &mut settings.flush_interval);
    own.path_postfix_template = lifted(children, |settings| &mut settings.path_postfix_template);
    own.flags = lifted(children, |settings| &mut settings.flags);
    own.max_append_rate = lifted(children, |settings| &mut settings.max_append_rate);
    own.labels = lifted_labels(children);
    directory
}

/// The value that all children have; they lose it. The unset one where they differ.
fn lifted<T: PartialEq + Default + Clone>(
    children: &mut [Node],
    field: impl Fn(&mut Settings) -> &mut T,
) -> T {
    let shared = field(&mut children[0].settings).clone();
    if children.iter_mut().any(|child| *field(&mut child.settings) != shared) {
        return T::default();
    }
    for child in children {
        *field(&mut child.settings) = T::default();
    }
    shared
}

/// The labels of those names for which all children have the same values; they lose them.
fn lifted_labels(children: &mut [Node]) -> LabelSet {
    let mut shared: Vec<Label> = Vec::new();
    for (name, group) in children[0].settings.labels.groups() {
        if children.iter().all(|child| child.settings.labels.named(name) == group) {
            shared.extend_from_slice(group);
        }
    }
    let shared = LabelSet::new(shared).expect("whole groups of a valid set");
    for child in children {
        for (name, _) in shared.groups() {
            child.settings.labels = std::mem::take(&mut child.settings.labels).without(name);
        }
    }
    shared
}
