//! Which journals a command means: named one by one, or by a selector.

use crate::{Error, output};
use client::Remote;
use protocol::response::ListedJournal;
use protocol::{Journal, Selector};

/// Journals by name or by selector; one of the two.
#[derive(clap::Args, Debug)]
#[group(required = true, multiple = false)]
pub struct Selection {
    /// The journal's full name, such as `local/log`.
    #[arg(value_name = "JOURNAL")]
    journal: Option<Journal>,

    /// Journals by their labels, such as `name:prefix=local/` or `tag in (a, b), !old`.
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    selector: Option<Selector>,
}

impl Selection {
    /// One journal, by its name.
    pub fn of(journal: Journal) -> Self {
        Selection { journal: Some(journal), selector: None }
    }

    /// The selector, where journals are meant by one.
    pub fn selector(&self) -> Option<&Selector> {
        self.selector.as_ref()
    }

    /// Whether one journal was named, so that a refusal of it is the command's failure.
    pub fn is_of_one(&self) -> bool {
        self.journal.is_some()
    }

    /// The journals, at least one. A name is not looked up: what is asked of it tells.
    pub async fn journals(&self, remote: &Remote) -> Result<Vec<Journal>, Error> {
        if let Some(journal) = &self.journal {
            return Ok(vec![journal.clone()]);
        }
        let listed = self.listed(remote).await?;
        Ok(listed.into_iter().map(|listed| listed.spec.name).collect())
    }

    /// The journals, at least one, with what is listed of them. Of one that was named the name is
    /// enough: the caller's token may be for reading or appending alone.
    pub async fn named_or_listed(
        &self,
        remote: &Remote,
    ) -> Result<Vec<(Journal, Option<ListedJournal>)>, Error> {
        match (self.listed(remote).await, &self.journal) {
            (Err(Error::Client(client::Error::Unauthorized(_))), Some(journal)) => {
                Ok(vec![(journal.clone(), None)])
            }
            (listed, _) => {
                let listed = listed?.into_iter();
                Ok(listed.map(|listed| (listed.spec.name.clone(), Some(listed))).collect())
            }
        }
    }

    /// The specs of the journals, at least one.
    pub async fn listed(&self, remote: &Remote) -> Result<Vec<ListedJournal>, Error> {
        let selector = match (&self.selector, &self.journal) {
            (Some(selector), _) => selector.clone(),
            (None, Some(journal)) => named(journal),
            (None, None) => Selector::default(),
        };
        let listed = remote.list_specs(selector.clone()).await?;
        match (listed.is_empty(), &self.journal) {
            (true, Some(journal)) => Err(client::Error::NotFound(journal.clone()).into()),
            (true, None) => Err(Error::NoMatch(selector.to_string())),
            (false, _) => Ok(listed),
        }
    }
}

/// Tells that a selector, where there is one, matches nothing: for commands whose answer is then
/// empty, and no failure.
pub fn note_if_none(selector: &Selector, is_none: bool) {
    if is_none && *selector != Selector::default() {
        output::note(&format!("no journal matches the selector {selector}"));
    }
}

/// The selector of one name.
fn named(journal: &Journal) -> Selector {
    format!("name={journal}").parse().expect("a journal's name is a valid value")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_a_selector() {
        for name in ["local/log", "a/b%20c", "name=with/equals"] {
            let journal: Journal = name.parse().expect("valid");
            assert_eq!(named(&journal).exact_names(), Some(vec![name]));
        }
    }
}
