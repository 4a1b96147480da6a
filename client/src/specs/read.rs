//! From text to changes, strictly: what is not understood is an error that names it.

use super::flatten::flatten;
use super::node::Node;
use super::text::NodeText;
use crate::Error;
use protocol::request::Change;
use serde::de::DeserializeOwned;
use serde_yaml_ng::Value;
use std::collections::BTreeSet;

/// The changes that a text asks for, in its order. `origin` names it in errors.
pub fn changes(origin: &str, text: &str) -> Result<Vec<Change>, Error> {
    let refused = |why: String| Error::Specs(origin.to_owned(), why);
    let mut changes = Vec::new();
    let mut seen = BTreeSet::new();
    for node in nodes(text).map_err(refused)? {
        for change in flatten(node).map_err(refused)? {
            if !seen.insert(change.journal().clone()) {
                return Err(refused(format!("{} comes twice", change.journal())));
            }
            changes.push(change);
        }
    }
    Ok(changes)
}

/// The trees of a text: one, or those of a list.
pub fn nodes(text: &str) -> Result<Vec<Node>, String> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let shape: Value = parsed(text)?;
    let texts: Vec<NodeText> = match shape {
        Value::Null => return Ok(Vec::new()),
        Value::Sequence(_) => parsed(text)?,
        Value::Mapping(_) => vec![parsed(text)?],
        _ => return Err("expected journals: a tree of them, a list, or one".into()),
    };
    let nodes = texts.into_iter().map(Node::try_from).collect::<Result<Vec<_>, _>>()?;
    // A list of no journals is written so.
    let is_nothing = |node: &Node| node.name.is_empty() && node.children.is_empty();
    match &nodes[..] {
        [node] if is_nothing(node) && has_no_settings(node) => Ok(Vec::new()),
        _ => Ok(nodes),
    }
}

fn has_no_settings(node: &Node) -> bool {
    *node == Node { comment: node.comment.clone(), ..Node::default() }
}

fn parsed<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    serde_yaml_ng::from_str(text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests;
