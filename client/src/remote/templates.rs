//! The templates of a broker of ours, and what it says of itself.

use super::words::{About, broken};
use super::{Remote, gazette as theirs};
use crate::Error;
use bytes::Bytes;
use prost::Message;
use protocol::wire::courant::{
    self, ChangedTemplate, DeleteTemplateRequest, PutTemplateRequest, StatusRequest,
    TemplatesRequest,
};
use protocol::wire::gazette;
use protocol::{Invalid, Journal, JournalSpec};
use tonic::{Code, Response};

/// How journals whose names begin with a prefix are created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    pub prefix: String,
    /// Its name says nothing.
    pub spec: JournalSpec,
    /// Patterns of last parts of names that are refused.
    pub refuse: Vec<String>,
    /// Nobody put it: it stands for names that no other is for.
    pub is_built_in: bool,
}

impl Remote {
    /// All templates, by prefix.
    pub async fn templates(&self) -> Result<Vec<Template>, Error> {
        self.expect_courant("has no templates").await?;
        let mut client = self.door().courant();
        let answer = self.door().ask(client.templates(TemplatesRequest {})).await?;
        answer.templates.into_iter().map(|one| Template::try_from(one).map_err(broken)).collect()
    }

    /// Puts a template in the place of the one of its prefix; the revision of the key space.
    pub async fn put_template(&self, template: Template) -> Result<i64, Error> {
        self.expect_courant("has no templates").await?;
        let prefix = template.prefix.clone();
        let request = PutTemplateRequest { template: Some(template.into()) };
        let mut client = self.door().courant();
        changed(self.door().ask(client.put_template(request)).await?, &prefix)
    }

    /// Removes the template of a prefix, if there is one; the revision of the key space.
    pub async fn delete_template(&self, prefix: &str) -> Result<i64, Error> {
        self.expect_courant("has no templates").await?;
        let request = DeleteTemplateRequest { prefix: prefix.to_owned() };
        let mut client = self.door().courant();
        changed(self.door().ask(client.delete_template(request)).await?, prefix)
    }

    /// What the broker holds and waits for: one JSON object, described in docs/OPERATIONS.md.
    pub async fn status(&self) -> Result<String, Error> {
        self.expect_courant("has no status").await?;
        let mut client = self.door().courant();
        Ok(self.door().ask(client.status(StatusRequest::default())).await?.json)
    }

    /// What the broker knows of one journal: one JSON object, described there as well.
    pub async fn status_of(&self, journal: &Journal) -> Result<String, Error> {
        self.expect_courant("has no status").await?;
        let mut client = self.door().courant();
        let request = StatusRequest { journal: journal.to_string() };
        let asked = async {
            match client.status(request).await {
                Err(status) if status.code() == Code::NotFound => Ok(Response::new(None)),
                answer => answer.map(|answer| answer.map(Some)),
            }
        };
        let answer = self.door().ask(asked).await?;
        Ok(answer.ok_or_else(|| Error::NotFound(journal.clone()))?.json)
    }

    /// Refuses what a Gazette broker has no request for.
    pub(super) async fn expect_courant(&self, lack: &str) -> Result<(), Error> {
        match self.door().is_courant().await? {
            true => Ok(()),
            false => Err(theirs::unsupported(self.door(), lack)),
        }
    }
}

fn changed(answer: ChangedTemplate, prefix: &str) -> Result<i64, Error> {
    // The only fault about a journal is one of a name, and a template has none.
    let journal = Journal::new("template").expect("a valid name");
    match About::journal(&journal).check(answer.fault, answer.detail, 0) {
        Ok(()) => Ok(answer.revision),
        Err(Error::Refused(_, detail)) => {
            Err(Error::Refused(format!("template {prefix:?}"), detail))
        }
        Err(error) => Err(error),
    }
}

impl TryFrom<courant::Template> for Template {
    type Error = Invalid;

    fn try_from(template: courant::Template) -> Result<Self, Invalid> {
        let spec = gazette::JournalSpec::decode(template.spec)
            .map_err(|error| Invalid::new(format!("not an encoded JournalSpec ({error})")))?;
        Ok(Template {
            prefix: template.prefix,
            spec: spec.try_into()?,
            refuse: template.refuse,
            is_built_in: template.is_built_in,
        })
    }
}

impl From<Template> for courant::Template {
    fn from(template: Template) -> Self {
        courant::Template {
            prefix: template.prefix,
            spec: Bytes::from(gazette::JournalSpec::from(template.spec).encode_to_vec()),
            refuse: template.refuse,
            is_built_in: template.is_built_in,
        }
    }
}
