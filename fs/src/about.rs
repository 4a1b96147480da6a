//! `.courant/fragments` and `.courant/specs`: directories of files about journals.
//!
//! Their directories are those that journals' names imply. A journal is a directory of its stored
//! fragments in the one, and the file of its spec in the other.

mod fragments;
mod specs;
mod text;

pub(crate) use text::SpecText;

use crate::directories::entry;
use crate::handles::HandleId;
use crate::nodes::{Role, Subject};
use crate::{Attr, DirEntry, Entry, Error, Filesystem, names};
use rustix::fs::OFlags;
use std::collections::BTreeMap;

impl Filesystem {
    /// What a name stands for in a directory of files about journals. Where a file and a directory
    /// would share it, the file has it.
    pub(crate) async fn resolve_about(
        &self,
        subject: Subject,
        directory: &str,
        name: &[u8],
    ) -> Result<Role, Error> {
        let file = match subject {
            Subject::Fragments => self.find_fragment(directory, name).await?,
            Subject::Specs => self.find_spec(directory, name).await?,
        };
        if let Some(role) = file {
            return Ok(role);
        }
        let path = names::join(directory, &names::encode(name)?);
        let is_journal = subject == Subject::Fragments && self.find_shown(&path).await?.is_some();
        match is_journal || self.is_directory(&path, false).await? {
            true => Ok(Role::About(subject, path)),
            false => Err(Error::NotFound),
        }
    }

    /// What is in a directory of files about journals, by name.
    pub(crate) async fn about_entries(
        &self,
        subject: Subject,
        path: &str,
    ) -> Result<Vec<DirEntry>, Error> {
        if subject == Subject::Specs && !self.journals.has_specs() {
            return Ok(Vec::new());
        }
        let mut found = BTreeMap::new();
        let full = self.full_below(path);
        for stat in self.journals_below(path).await? {
            let Some(rest) = stat.journal.as_str().strip_prefix(&full) else { continue };
            let (component, is_nested) = names::first(rest);
            let Some(mut name) = names::decode(component) else { continue };
            let place = names::join(path, component);
            if subject == Subject::Specs && !is_nested {
                name.extend_from_slice(names::YAML.as_bytes());
                found.insert(name, entry(Vec::new(), self.spec_attr(&place, 0)));
            } else {
                let attr = self.about_attr(subject, &place);
                found.entry(name).or_insert_with(|| entry(Vec::new(), attr));
            }
        }
        if subject == Subject::Fragments {
            self.add_fragments(path, &mut found).await?;
        }
        Ok(found.into_iter().map(|(name, entry)| DirEntry { name, ..entry }).collect())
    }

    /// The attributes of a directory of files about journals.
    pub(crate) fn about_attr(&self, subject: Subject, path: &str) -> Attr {
        self.control_attr(&subject.place(path))
    }

    /// Makes a file in such a directory and opens it: a spec alone can be made.
    pub(crate) async fn create_about(
        &self,
        subject: Subject,
        directory: &str,
        name: &[u8],
        flags: OFlags,
    ) -> Result<(Entry, HandleId), Error> {
        match subject {
            _ if self.options.read_only => Err(Error::ReadOnly),
            Subject::Fragments => Err(Error::Unchangeable),
            Subject::Specs => self.create_spec(directory, name, flags).await,
        }
    }
}
