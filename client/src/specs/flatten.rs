//! A tree of specs to changes: each journal takes from its directories what it leaves unset.

use super::node::{Node, Settings};
use protocol::request::{Change, Expect};
use protocol::{Journal, Label, LabelSet};

/// The changes that a node and all below it ask for, in order. `Err` names the node.
pub fn flatten(node: Node) -> Result<Vec<Change>, String> {
    let mut changes = Vec::new();
    push(node, Settings::default(), false, &mut changes)?;
    Ok(changes)
}

/// `outer` and `deletes` are what the directories above say.
fn push(
    node: Node,
    outer: Settings,
    deletes: bool,
    changes: &mut Vec<Change>,
) -> Result<(), String> {
    check(&node)?;
    let deletes = node.delete.unwrap_or(deletes);
    if !node.is_directory() {
        changes.push(change(node, outer, deletes)?);
        return Ok(());
    }
    let settings = node.settings.or(outer);
    for child in node.children {
        push(child, settings.clone(), deletes, changes)?;
    }
    Ok(())
}

/// The rules of names (gazette-spec 4.2).
fn check(node: &Node) -> Result<(), String> {
    let name = &node.name;
    match (node.is_directory(), node.children.is_empty()) {
        (true, true) => return Err(format!("directory {name:?}: it has no children")),
        (false, false) => return Err(format!("{name}: it has children, but does not end in /")),
        (true, false) if node.revision != 0 => {
            return Err(format!("directory {name:?}: only journals have a revision"));
        }
        (true, false) if node.suspend.is_some() => {
            return Err(format!("directory {name:?}: only journals are suspended"));
        }
        (true, false) | (false, true) => {}
    }
    for child in &node.children {
        if !child.name.starts_with(name.as_str()) {
            return Err(format!("{}: names are whole, so it must begin with {name}", child.name));
        }
    }
    for pair in node.children.windows(2) {
        let (one, next) = (&pair[0].name, &pair[1].name);
        if one == next {
            return Err(format!("{next} comes twice"));
        }
        if one > next {
            return Err(format!(
                "{next}: children are in ascending order, and this is after {one}"
            ));
        }
    }
    Ok(())
}

fn change(node: Node, outer: Settings, deletes: bool) -> Result<Change, String> {
    let journal =
        Journal::new(&node.name).map_err(|invalid| format!("name: {invalid} ({})", node.name))?;
    let named = |why: String| format!("{journal}: {why}");
    let expect = expectation(node.revision).map_err(named)?;
    if !deletes {
        let spec = node.settings.or(outer).spec(journal.clone(), node.suspend).map_err(named)?;
        return Ok(Change::Upsert { spec: Box::new(spec), expect });
    }
    match expect {
        Expect::Absent => Err(named("delete needs a revision, or -1 for any".into())),
        expect => Ok(Change::Delete { journal, expect }),
    }
}

/// Without a revision the journal must be new, as in gazctl; -1 asks for nothing.
fn expectation(revision: i64) -> Result<Expect, String> {
    match revision {
        -1 => Ok(Expect::Any),
        0 => Ok(Expect::Absent),
        revision @ 1.. => Ok(Expect::At(revision)),
        revision => Err(format!("revision: {revision} is below -1")),
    }
}

impl Settings {
    /// These, and where they are unset those of a directory. Lists are taken whole, labels name by
    /// name.
    fn or(self, outer: Settings) -> Settings {
        fn or<T: PartialEq + Default>(own: T, outer: T) -> T {
            if own == T::default() { outer } else { own }
        }
        Settings {
            replication: or(self.replication, outer.replication),
            labels: merged(&self.labels, &outer.labels),
            length: or(self.length, outer.length),
            codec: self.codec.or(outer.codec),
            stores: or(self.stores, outer.stores),
            refresh_interval: or(self.refresh_interval, outer.refresh_interval),
            retention: or(self.retention, outer.retention),
            flush_interval: or(self.flush_interval, outer.flush_interval),
            path_postfix_template: or(self.path_postfix_template, outer.path_postfix_template),
            flags: or(self.flags, outer.flags),
            max_append_rate: or(self.max_append_rate, outer.max_append_rate),
        }
    }
}

fn merged(own: &LabelSet, outer: &LabelSet) -> LabelSet {
    let inherited = outer.labels().iter().filter(|label| own.named(&label.name).is_empty());
    let mut labels: Vec<Label> = own.labels().iter().chain(inherited).cloned().collect();
    labels.sort();
    LabelSet::new(labels).expect("the names of two valid sets, each from one of them")
}
