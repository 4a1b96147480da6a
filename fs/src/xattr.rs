//! The state of a journal as extended attributes, all of them `user.courant.*`.

use crate::limits::ATOMIC_MAX;
use crate::nodes::{Role, Side};
use crate::{Error, Filesystem, NodeId, Wait};
use client::Stat;
use protocol::LabelSet;
use std::sync::Arc;

const PREFIX: &[u8] = b"user.courant.";

/// The attributes of a journal; `content-type` only where there is one, `registers` where the
/// broker tells them.
const NAMES: [&str; 13] = [
    "atomic-limit",
    "content-type",
    "first",
    "fragments",
    "gaps",
    "head",
    "id",
    "journal",
    "mode",
    "persisted",
    "registers",
    "revision",
    "synced",
];

impl Filesystem {
    /// The value of an attribute. `NotSupported` outside of ours, so that programs which try ACLs
    /// and labels go on without.
    pub fn getxattr(self: &Arc<Self>, node: NodeId, name: &[u8]) -> Wait<Vec<u8>> {
        let fs = self.clone();
        let name = name.strip_prefix(PREFIX).map(<[u8]>::to_owned);
        Box::pin(async move {
            let name = name.ok_or(Error::NotSupported)?;
            let known = NAMES.into_iter().find(|known| known.as_bytes() == name);
            let name = known.ok_or(Error::NoAttribute)?;
            let Some((stat, side)) = fs.described(node).await? else {
                return Err(Error::NoAttribute);
            };
            value(name, &stat, side).map(String::into_bytes).ok_or(Error::NoAttribute)
        })
    }

    /// The names of a node's attributes, each ended by a NUL.
    pub fn listxattr(self: &Arc<Self>, node: NodeId) -> Wait<Vec<u8>> {
        let fs = self.clone();
        Box::pin(async move {
            let Some((stat, side)) = fs.described(node).await? else { return Ok(Vec::new()) };
            let present = NAMES.into_iter().filter(|name| value(name, &stat, side).is_some());
            Ok(present.flat_map(|name| [PREFIX, name.as_bytes(), b"\0"].concat()).collect())
        })
    }

    /// Setting or removing an attribute, which never succeeds.
    pub fn setxattr(&self, name: &[u8]) -> Error {
        if name.starts_with(PREFIX) { Error::Unchangeable } else { Error::NotSupported }
    }

    async fn described(&self, node: NodeId) -> Result<Option<(Stat, Side)>, Error> {
        let Role::Journal(shown, side) = self.role(&*self.node(node)?).await? else {
            return Ok(None);
        };
        Ok(Some((self.stat(&shown).await?, side)))
    }
}

fn value(name: &str, stat: &Stat, side: Side) -> Option<String> {
    Some(match name {
        "atomic-limit" => ATOMIC_MAX.to_string(),
        "content-type" => stat.content_type.clone()?,
        "first" => stat.first.to_string(),
        "fragments" => stat.fragments.to_string(),
        "gaps" => stat.gaps.to_string(),
        "head" => stat.head.to_string(),
        "id" => stat.life.to_string(),
        "journal" => stat.journal.to_string(),
        "mode" => mode(side).to_owned(),
        "persisted" => stat.persisted.to_string(),
        "registers" => registers(stat.registers.as_ref()?),
        "revision" => stat.mod_revision.to_string(),
        "synced" => stat.synced.to_string(),
        _ => return None,
    })
}

/// A line `NAME=VALUE` for each register, in the order of a label set.
fn registers(registers: &LabelSet) -> String {
    let lines = registers.labels().iter().map(|label| format!("{}={}\n", label.name, label.value));
    lines.collect()
}

/// Who answers reads through this node.
pub(crate) fn mode(side: Side) -> &'static str {
    match side {
        Side::Passthrough => "passthrough",
        Side::Direct => "direct",
        Side::Follow => "follow",
        Side::Lines => "lines",
        Side::Whole => "whole",
    }
}
