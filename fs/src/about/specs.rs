//! Specs as files: `.courant/specs/JOURNAL.yaml` is the text that `courant journals list -o yaml`
//! prints, and what is written there is applied at fsync and close, whole or not at all.
//!
//! The revision in the text is the condition: a spec that was changed since it was read is not
//! overwritten. Why a text was refused is told by `.courant/status`.

use super::SpecText;
use crate::handles::{Handle, HandleId, Kept};
use crate::nodes::{Node, Role, Subject};
use crate::patience::patiently;
use crate::{Attr, Entry, Error, Filesystem, names};
use client::specs;
use protocol::request::{Change, Expect};
use protocol::response::ListedJournal;
use protocol::{JournalSpec, Suspend};
use rustix::fs::OFlags;
use std::sync::Arc;

impl Filesystem {
    /// The spec of a name in a directory, if it is there.
    pub(super) async fn find_spec(
        &self,
        directory: &str,
        name: &[u8],
    ) -> Result<Option<Role>, Error> {
        let Some(path) = spec_path(directory, name)? else { return Ok(None) };
        Ok(self.spec(&path).await?.map(|_| Role::Spec(path)))
    }

    /// Opens a spec that may not be there yet. It is there once it was applied.
    pub(super) async fn create_spec(
        &self,
        directory: &str,
        name: &[u8],
        flags: OFlags,
    ) -> Result<(Entry, HandleId), Error> {
        let refused = || Error::Refused(String::from_utf8_lossy(name).into_owned());
        let path = spec_path(directory, name)?.ok_or_else(refused)?;
        self.journal(&path)?;
        if flags.contains(OFlags::EXCL) && self.spec(&path).await?.is_some() {
            return Err(Error::Exists);
        }
        let entry = self.enter(Role::Spec(path.clone())).await?;
        let opening = async {
            let node = self.node(entry.node)?;
            self.open_spec(node, &path, flags).await
        };
        self.open_entered(entry, opening).await
    }

    /// A handle on a spec: on its text as it is, or on what is to be written in its place.
    pub(crate) async fn open_spec(
        &self,
        node: Arc<Node>,
        path: &str,
        flags: OFlags,
    ) -> Result<Handle, Error> {
        let writes = flags.intersects(OFlags::WRONLY | OFlags::RDWR);
        let text = match writes && flags.contains(OFlags::TRUNC) {
            true => Vec::new(),
            false => self.spec_text(path).await?,
        };
        Ok(Handle::new(
            node,
            match writes {
                true => Kept::Spec(tokio::sync::Mutex::new(SpecText::new(text))),
                false => Kept::Text(text.into()),
            },
        ))
    }

    /// The text of a spec as it is; empty where there is none.
    async fn spec_text(&self, path: &str) -> Result<Vec<u8>, Error> {
        let Some(listed) = self.spec(path).await? else { return Ok(Vec::new()) };
        Ok(specs::to_yaml(vec![listed])?.into_bytes())
    }

    async fn spec(&self, path: &str) -> Result<Option<ListedJournal>, Error> {
        // A name that no journal can have has no spec either.
        let Ok(journal) = self.journal(path) else { return Ok(None) };
        if !self.journals.has_specs() {
            return Ok(None);
        }
        let ask = || self.journals.spec(&journal);
        match patiently(self.options.write_timeout, ask).await {
            Ok(listed) => Ok(Some(listed)),
            Err(client::Error::NotFound(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// The attributes of a spec's file, with the length of its text.
    pub(crate) async fn attr_of_spec(&self, path: &str) -> Result<Attr, Error> {
        Ok(self.spec_attr(path, self.spec_text(path).await?.len() as u64))
    }

    pub(super) fn spec_attr(&self, path: &str, size: u64) -> Attr {
        let place = Subject::Specs.place(path) + names::YAML;
        Attr { size, ..Attr::file(&self.options, names::control_inode(&place), true) }
    }

    /// Cuts what is being written of a spec. Where nobody has it open for that, its size stays.
    pub(crate) async fn resize_spec(&self, node: &Node, path: &str, len: u64) -> Result<(), Error> {
        if self.options.read_only {
            return Err(Error::ReadOnly);
        }
        let mut is_written = false;
        for handle in self.handles.all() {
            if let Kept::Spec(text) = &handle.kept
                && handle.node.id() == node.id()
            {
                text.lock().await.resize(len)?;
                is_written = true;
            }
        }
        match is_written || self.attr_of_spec(path).await?.size == len {
            true => Ok(()),
            false => Err(Error::Unchangeable),
        }
    }

    /// Applies what a handle wrote and was not applied yet; why it was refused is told.
    pub(crate) async fn apply_written(&self, handle: &Handle) -> Result<(), Error> {
        let (Kept::Spec(text), Role::Spec(path)) = (&handle.kept, handle.node.role()) else {
            return Ok(());
        };
        let mut text = text.lock().await;
        self.apply_text(&path, &mut text).await.inspect_err(|error| {
            let mut reason = format!("{path}: {}", one_line(&error.to_string()));
            if let Error::Journals(client::Error::Conflict(..)) = error {
                reason += ": begin with what the file has, of which the revision is a part";
            }
            tracing::warn!("the spec of {reason}");
            self.specs_refused.tell(reason);
        })
    }

    async fn apply_text(&self, path: &str, text: &mut SpecText) -> Result<(), Error> {
        let Some(written) = text.unapplied() else { return Ok(()) };
        let change = self.change_of(path, written)?;
        let expected = change.expect();
        let change = text.following(change);
        let ask = || self.journals.change(change.clone());
        let revision = match patiently(self.options.write_timeout, ask).await {
            Err(client::Error::Conflict(journal, revision)) => match self.already(&change).await? {
                Some(revision) => revision,
                None => return Err(client::Error::Conflict(journal, revision).into()),
            },
            applied => applied?,
        };
        text.applied(expected, revision);
        Ok(())
    }

    /// The one change that a text asks for: the spec of the journal whose file it was written to.
    fn change_of(&self, path: &str, text: &[u8]) -> Result<Change, Error> {
        let journal = self.journal(path)?;
        let origin = format!("{}{}", Subject::Specs.place(path), names::YAML);
        let refused = |why: &str| client::Error::Specs(origin.clone(), why.to_owned());
        let text = str::from_utf8(text).map_err(|_| refused("the text is not UTF-8"))?;
        let changes = specs::changes(&origin, text)?;
        match <[Change; 1]>::try_from(changes) {
            Ok([Change::Upsert { spec, expect }]) if spec.name == journal => {
                Ok(Change::Upsert { spec, expect })
            }
            _ => {
                Err(refused(&format!("it must be the spec of {journal}, and nothing else")).into())
            }
        }
    }

    /// The revision of a spec that is what a change asks for: its first attempt may have been made
    /// though its answer was lost.
    async fn already(&self, change: &Change) -> Result<Option<i64>, Error> {
        let Change::Upsert { spec, .. } = change else { return Ok(None) };
        let ask = || self.journals.spec(&spec.name);
        let found = match patiently(self.options.write_timeout, ask).await {
            Err(client::Error::NotFound(_)) => return Ok(None),
            found => found?,
        };
        let is_newer = match change.expect() {
            Expect::At(revision) => found.mod_revision > revision,
            Expect::Absent | Expect::Any => true,
        };
        // Whether it is suspended is the brokers' affair, and an apply leaves it as it is.
        let settings =
            |spec: &JournalSpec| JournalSpec { suspend: None::<Suspend>, ..spec.clone() };
        let is_same = settings(&found.spec) == settings(spec);
        Ok((is_newer && is_same).then_some(found.mod_revision))
    }
}

/// The journal's name of the tree for the name of a spec's file; `None` for what is no such name.
fn spec_path(directory: &str, name: &[u8]) -> Result<Option<String>, Error> {
    match name.strip_suffix(names::YAML.as_bytes()) {
        None | Some(b"") => Ok(None),
        Some(stem) => Ok(Some(names::join(directory, &names::encode(stem)?))),
    }
}

/// A reason may have come in several lines.
fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("; ")
}
