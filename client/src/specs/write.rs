//! From journals to the text that `journals apply` takes again.

use super::hoist::hoist;
use super::node::Node;
use super::text::NodeText;
use crate::Error;
use protocol::response::ListedJournal;

/// The tree of listed journals, each with the revision on whose condition it can be applied.
pub fn to_yaml(mut listed: Vec<ListedJournal>) -> Result<String, Error> {
    listed.sort_by(|one, next| one.spec.name.cmp(&next.spec.name));
    written(hoist(listed.into_iter().map(node).collect()))
}

fn node(listed: ListedJournal) -> Node {
    Node {
        name: listed.spec.name.to_string(),
        revision: listed.mod_revision,
        suspend: listed.spec.suspend,
        settings: listed.spec.into(),
        ..Node::default()
    }
}

pub fn written(node: Node) -> Result<String, Error> {
    if node == Node::default() {
        return Ok("children: []\n".to_owned());
    }
    serde_yaml_ng::to_string(&NodeText::from(node))
        .map_err(|error| Error::Specs("the list".to_owned(), error.to_string()))
}

#[cfg(test)]
mod tests;
